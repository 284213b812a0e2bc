"""The exam on a stack that serves: transfers in, views over them, every version of each view out again by a sink.

Promises: what is looked at is what a consumer of the sinks' topics reads (committed messages alone), through the last
change of all views, whoever is killed meanwhile.  Raises ``Unavailable`` where nothing more came for as long as
:attr:`Exam.stall_s` says.
"""

from __future__ import annotations

import heapq
import json
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import NamedTuple

import numpy as np
import psycopg
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, Producer, TopicPartition

from demo.topics import end_offset, ensure_topic
from journal import clients
from journal.errors import FatalLog, Indeterminate, Unavailable
from judge.exam.transfers import Transfers, transfers
from judge.exam.versions import BALANCE, BY_ID, BY_ID_AND_TIME, CREDITS, DEBITS, TOTAL, Change, Versions, looked_at

STALL_S = 120.0
"""Without anything new while something is owed: longer than a restart of everything takes."""

CAUGHT_UP_A_S = 20_000
"""Transfers of which all views are made again in a second, at least, on two cores that are killed on: so much longer it
is waited for of many."""

LOOK_S = 0.5
"""Between two looks at how far the views are."""

SENT_AT_ONCE = 10_000
"""Messages handed to the producer between two looks at what became of them; it holds as many again (2 MB)."""

FLUSH_S = 60.0

ROOM_S = 1.0
"""A producer that is full is waited for in steps of it; whatever is delivered ends one."""

HEADER = "tidemark-timestamp"

COLUMNS = "id int8 NOT NULL, from_account int4 NOT NULL, to_account int4 NOT NULL, amount int4 NOT NULL, ts timestamp"

VIEWS = {
    CREDITS: "SELECT to_account AS account, sum(amount) AS amount FROM transfers GROUP BY to_account",
    DEBITS: "SELECT from_account AS account, sum(amount) AS amount FROM transfers GROUP BY from_account",
    BALANCE: "SELECT coalesce(c.account, d.account) AS account,"
             " coalesce(c.amount, 0) - coalesce(d.amount, 0) AS balance"
             " FROM credits c FULL JOIN debits d ON c.account = d.account",
    TOTAL: "SELECT sum(balance)::int8 AS total FROM balance",
    BY_ID: "SELECT t.id, u.id AS other FROM transfers t LEFT JOIN transfers u ON t.id = u.id",
    BY_ID_AND_TIME: "SELECT t.id, u.id AS other FROM transfers t LEFT JOIN transfers u ON t.id = u.id AND t.ts = u.ts",
}  # fmt: skip
"""As the public exam has them; a balance is also one of an account that only gave, or only took."""


class Outcome(NamedTuple):
    """What was found."""

    versions: Versions
    transfers: int
    took_s: float
    """From the first message sent to the last version read."""
    wrong: tuple[str, ...]
    """What the views held in the end and should not."""

    @property
    def passed(self) -> bool:
        return not (self.versions.impossible or self.versions.apart or self.wrong)


class Exam:
    """Of ``count`` transfers; make one, :meth:`prepare` it, :meth:`sit` it, :meth:`close` it."""

    def __init__(self, kafka: str, dsn: str, env: str, count: int, seed: int) -> None:
        self._kafka, self._dsn = kafka, dsn
        self._schema = f"exam_{uuid.uuid4().hex[:8]}"
        self.topic = f"{env}-{self._schema}"
        self._given: Transfers = transfers(seed, count)
        self._count = count
        self.stall_s = STALL_S + count / CAUGHT_UP_A_S
        """Without anything new, after which it is given up."""
        self.looks: int | None = None
        """At all views since all transfers were sent; ``None`` before, and once all were seen."""

    def prepare(self) -> None:
        """Have the topic, the source, the views and their sinks made, and all sinks begun: before one has, nobody can
        tell what the others are beside it."""
        ensure_topic(self._kafka, self.topic, {"retention.ms": "-1"})
        for statement in self.statements():
            self._ask(lambda session, text=statement: session.execute(text))
        until = time.monotonic() + STALL_S
        while (begun := self._ask(self._begun)) < len(VIEWS):
            if time.monotonic() > until:
                raise Unavailable(f"{begun} of {len(VIEWS)} sinks have begun, and no more in {STALL_S:.0f} s")
            time.sleep(LOOK_S)  # no statement waits for a sink

    def close(self) -> None:
        """Have all of it dropped again, but for the topics."""
        self._ask(lambda session: session.execute(f"DROP SCHEMA IF EXISTS {self._schema} CASCADE"))

    def statements(self) -> Iterator[str]:
        schema = self._schema
        yield f"CREATE SCHEMA IF NOT EXISTS {schema}"
        yield (
            f"CREATE SOURCE IF NOT EXISTS {schema}.transfers ({COLUMNS}) FROM KAFKA TOPIC '{self.topic}' FORMAT JSON"
        )
        yield f"CREATE TABLE IF NOT EXISTS {schema}.{schema}_mark (n int4)"
        for name, query in VIEWS.items():
            yield f"CREATE MATERIALIZED VIEW IF NOT EXISTS {schema}.{name} AS {query}"
            yield (
                f"CREATE SINK IF NOT EXISTS {schema}.{name}_out FROM {schema}.{name} INTO KAFKA"
                f" (TOPIC '{self.topic_of(name)}', PARTITION COUNT 1) FORMAT JSON ENVELOPE DEBEZIUM"
            )

    def topic_of(self, view: str) -> str:
        """What the versions of ``view`` are written to."""
        return f"{self.topic}-{view}"

    def sit(self, rows_per_s: float | None = None, told: Callable[[int], None] = lambda _seen: None) -> Outcome:
        """Send all transfers, ``rows_per_s`` of them evenly or as fast as it goes, and look at every version.

        ``told`` hears now and then how many have been seen in a view.  Raises ``Indeterminate`` where one was not
        delivered, ``Unavailable``, ``FatalLog``.
        """
        began = time.monotonic()
        self._send(rows_per_s)
        last = self._seen(told)
        versions = self._read(last)
        return Outcome(versions, self._count, time.monotonic() - began, tuple(self._wrong(versions)))

    def _begun(self, session: psycopg.Connection) -> int:
        names = [f"{name}_out" for name in VIEWS]
        text = "SELECT count(*) FROM tm_internal.sink_status WHERE name = ANY(%s) AND through IS NOT NULL"
        return int(session.execute(text, (names,)).fetchone()[0])

    # -- in

    def _send(self, rows_per_s: float | None) -> None:
        failed: list[str] = []

        def delivered(error, _message) -> None:
            if error is not None:
                failed.append(str(error))

        producer = clients.make_producer(self._kafka, **{"linger.ms": 20 if rows_per_s is None else 0})
        began = time.monotonic()
        for n, message in enumerate(self._given.messages()):
            produced(producer, self.topic, message, delivered)
            if rows_per_s is not None:
                producer.poll(max(0.0, began + n / rows_per_s - time.monotonic()))
            elif n % SENT_AT_ONCE == 0:
                producer.poll(0)
        left = producer.flush(FLUSH_S)
        if failed or left:
            raise Indeterminate(f"{len(failed) + left} transfers may not have been sent", detail=failed and failed[0])

    # -- seen

    def _seen(self, told: Callable[[int], None]) -> int:
        """A timestamp at which all views show all transfers, once they do."""
        before, since = -1, time.monotonic()
        self.looks = 0
        while True:
            seen = self._ask(self._least)
            self.looks += 1
            told(seen)
            if seen >= self._count:
                self.looks = None
                return self._ask(self._mark)
            if seen != before:
                before, since = seen, time.monotonic()
            elif time.monotonic() > since + self.stall_s:
                raise Unavailable(f"{seen} of {self._count} transfers were seen, and no more in {self.stall_s:.0f} s")
            time.sleep(LOOK_S)  # no statement waits for a view to hold something

    def _least(self, session: psycopg.Connection) -> int:
        by = f"SELECT coalesce(sum(amount), 0) FROM {self._schema}.{{}}"
        joined = f"SELECT count(*) FROM {self._schema}.{{}}"
        asked = [by.format(CREDITS), by.format(DEBITS), joined.format(BY_ID), joined.format(BY_ID_AND_TIME)]
        seen = min(int(session.execute(text).fetchone()[0]) for text in asked)
        for view in (BALANCE, TOTAL):  # strictly, so that they are where the others are
            session.execute(f"SELECT count(*) FROM {self._schema}.{view}")
        return seen

    def _mark(self, session: psycopg.Connection) -> int:
        """A timestamp at which all views show what they were seen to show: that of a row which is written now."""
        session.execute(f"INSERT INTO {self._schema}_mark VALUES (1)")
        text = "SELECT last_change FROM tm_internal.frontiers WHERE object_name = %s"
        return int(session.execute(text, (f"{self._schema}_mark",)).fetchone()[0])

    def _ask(self, ask: Callable[[psycopg.Connection], object]) -> object:
        """``ask`` in a session of its own, again where that is lost: nothing that is asked here does harm twice."""
        until = time.monotonic() + self.stall_s
        while True:
            try:
                with psycopg.connect(self._dsn, autocommit=True) as session:
                    session.execute(f"SET search_path = {self._schema}")
                    return ask(session)
            except psycopg.OperationalError as error:
                if time.monotonic() > until:
                    raise Unavailable("nobody answered", detail=str(error)) from error
            time.sleep(LOOK_S)

    # -- out

    def _read(self, last: int) -> Versions:
        with ExitStack() as stack:
            settings = {"isolation.level": "read_committed", "enable.partition.eof": True}
            consumers = {
                view: stack.enter_context(closing(clients.make_consumer(self._kafka, **settings))) for view in VIEWS
            }
            found = [self._changes(view, consumer, last) for view, consumer in consumers.items()]
            return looked_at(heapq.merge(*found, key=lambda change: change.ts))

    def _changes(self, view: str, consumer: Consumer, last: int) -> Iterator[Change]:
        """Of one view, through ``last``."""
        topic = self.topic_of(view)
        for message in _messages(consumer, f"{topic}-progress", None, self.stall_s):
            if json.loads(message.value()).get("timestamp", 0) >= last:
                break
        # Brokers end a transaction in one topic sooner than in another: what it wrote is there, and not to be had yet.
        with closing(clients.make_consumer(self._kafka)) as uncommitted:
            end = end_offset(uncommitted, topic)
        before = 0
        for message in _messages(consumer, topic, end, self.stall_s):
            ts = int(dict(message.headers())[HEADER])
            if ts > last:
                return
            if ts < before:
                raise FatalLog(f"{view} has a message of {ts} behind one of {before}")
            before, pair = ts, json.loads(message.value())
            if pair["before"] is not None:
                yield Change(view, ts, pair["before"], -1)
            if pair["after"] is not None:
                yield Change(view, ts, pair["after"], 1)

    def _wrong(self, versions: Versions) -> Iterator[str]:
        """What the last version holds and should not."""
        for what, found, due in (
            ("credits", versions.credits(), self._given.credits()),
            ("debits", versions.debits(), self._given.debits()),
        ):
            if found != due:
                yield f"{what} are {found} in the end, and should be {due}"
        for view, numbers in versions.joined.items():
            if len(wrong := np.setxor1d(numbers, self._given.id)):
                yield f"{view} has not the transfers that were made in the end: {len(wrong)} differ, as {wrong[0]}"


def produced(producer: Producer, topic: str, message: bytes, delivered: Callable[..., None]) -> None:
    """Hand ``message`` on, once ``producer`` has room for it: brokers take fewer a second than are made here.

    Bounded by the producer itself, which gives up what is not delivered in its time and then has room.
    """
    while True:
        try:
            return producer.produce(topic, message, partition=0, on_delivery=delivered)
        except BufferError:
            producer.poll(ROOM_S)


def _messages(consumer: Consumer, topic: str, end: int | None, stall_s: float) -> Iterator[Message]:
    """All of the one partition of ``topic``, up to offset ``end`` or for as long as somebody reads them."""
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    since = time.monotonic()
    while time.monotonic() < since + stall_s:
        message = consumer.poll(1.0)
        if message is None or message.topic() != topic:  # or what was still to be told of another one
            continue
        if message.error() is None:
            since = time.monotonic()
            yield message
        elif message.error().code() == KafkaError._PARTITION_EOF and end is not None and message.offset() >= end:
            return
    raise Unavailable(f"no message came from {topic} in {stall_s:.0f} s")
