"""Planted bugs of sinks and of sources of upserts, in the smallest system that shows them: a broker and a storage
controller, which is killed and started again.  With the bug the checker says invalid, and the same schedule without it
is valid.  Who writes, and who reads at timestamps, does so by the logs, as adapters do; a whole stack is asked by SQL
in ``test_judge_planted_calamities.py``.

Every test prints how soon the anomaly was there (``-rP`` shows it): the figures of ``docs/planted-bugs.md``.
"""

from __future__ import annotations

import json
import os
import random
import select
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from typing import Any

import pyarrow.flight as flight
import pytest

from catalog_log.objects import ERRORS_COLUMNS, Column, Errors, Item, Sink, Source, Table, numbered
from catalog_log.objects.reading import Format, Reading
from collection.binding import Inline
from collection.columns import DIFF, Columns, table_from_rows
from collection.reader import RunReader
from collection.rows import encode as encode_rows
from controllers.node_status import act
from judge.checkers import envelopes, sinks
from judge.checkers.sinks import FIRST, LOG, ROWS, SINKS, SUMS, group_of, said_by, sums_of
from judge.history import Op
from judge.planted.small import History, first_seen
from judge.verdict import INVALID, VALID, Verdict
from judge.workloads.envelopes import DEBEZIUM, PARTITIONS, UPSERT, as_logged, message_of
from judge.workloads.envelopes import told as message_drawn
from judge.workloads.sinks import begun, drawn, tail_of, topic_of, topics_of
from judge.workloads.topics import Sent, Writer, read_all
from oracle.model import CommitPart
from tests.storage.test_storage_controller import World, eventually

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

CAUGHT_UP_S = 60.0
"""For a controller that was just started, on a machine that does other things too."""


class Storage:
    """A storage controller in a process of its own, with a bug or without, again and again."""

    def __init__(self, world: World, bug: str) -> None:
        planted = ["judge.planted", bug, "--"] if bug else []
        self._argv = [sys.executable, "-m", *planted, "controllers.storage", "--kafka", world.bootstrap,
                      "--env", world.env]  # fmt: skip
        self._child: subprocess.Popen | None = None
        self._address = ""

    def start(self) -> None:
        self._child = subprocess.Popen(
            self._argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env=os.environ | {"TIDEMARK_PARENT_PIPE": "1", "TIDEMARK_LOG": "error"},
        )  # fmt: skip
        assert select.select([self._child.stdout], [], [], CAUGHT_UP_S)[0]
        self._address = json.loads(self._child.stdout.readline())["address"]

    def has_begun(self) -> bool:
        """Whether each source has bound something, or never will: one that two lives ended at while they were at its
        first messages would be in quarantine, and stand still."""
        with flight.FlightClient(self._address) as client:
            told = json.loads(act(client, "status", 10.0))["sources"]
        return all(each["commits"] or each["state"] == "failed" for each in told)

    def kill(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.send_signal(signal.SIGKILL)
            child.wait()
            for pipe in (child.stdin, child.stdout):
                pipe.close()


@contextmanager
def storage(broker: str, env_name: str, bug: str) -> Iterator[tuple[World, Storage]]:
    world = World(broker, env_name)
    world.oracle.raise_format().result()
    controller = Storage(world, bug)
    try:
        yield world, controller
    finally:
        controller.kill()
        world.close()


def commit(world: World, changes: Mapping[Table, Sequence[tuple[tuple, int]]]) -> int:
    """Rows of several tables that come and go, ``(row, diff)``, at one timestamp."""
    inline = []
    for item, rows in changes.items():
        if rows:
            table = table_from_rows(item.stored, [row for row, _ in rows])
            table = table.append_column(DIFF, [[diff for _, diff in rows]])
            [batch] = encode_rows(item.stored, table, "a")
            inline.append(Inline(item.id, batch.value, "a", batch.rows))
    return world.oracle.commit(CommitPart(f"p{random.random()}", inline=tuple(inline))).result()


def contents(world: World, reader: RunReader, item: str, columns: Columns, at: int | None = None) -> list[tuple]:
    """The rows of a collection at a timestamp, or now."""
    state = world.oracle.barrier().result()
    found: Counter[tuple] = Counter()
    bound = state.bindings(item).at(state.last_ts if at is None else at)
    for table, _ in reader.bound_chunks(bound, columns):
        for *row, diff in zip(*(column.to_pylist() for column in table.columns), strict=True):
            found[tuple(row)] += diff
    return sorted(found.elements())


def judged(bug: str, ops: Sequence[Op], verdict: Verdict) -> None:
    """``invalid`` with the bug, ``valid`` without; and say how soon."""
    told = "; ".join(a.text for a in verdict.anomalies[:3])
    assert verdict.valid == (INVALID if bug else VALID), (verdict.counts, verdict.reason, told)
    if bug:
        kinds = ", ".join(sorted(verdict.kinds))
        print(f"found {bug} by {verdict.checker} ({kinds}): {first_seen(ops, verdict.anomalies)}; {told[:400]}")
    else:
        print(f"{verdict.checker} is valid: {verdict.counts}")


# -- sinks

ROWS_TABLE = Table(
    "u1",
    "s1",
    "sinks_rows",
    "",
    numbered(
        (
            Column("k", "int4", False),
            Column("g", "int4", False),
            Column("id", "text", False),
            Column("n", "int8", False),
        )
    ),
)
LOG_TABLE = Table(
    "u2",
    "s1",
    "sinks_log",
    "",
    numbered((Column("id", "text", False), Column("k", "int4", False), Column("n", "int8"))),
)
SUMS_TABLE = Table("u3", "s1", "sinks_sums", "", numbered((
    Column("g", "int4", False), Column("n", "int8", False), Column("total", "int8", False))))  # fmt: skip
TABLES = {ROWS: ROWS_TABLE, LOG: LOG_TABLE, SUMS: SUMS_TABLE}
ENVELOPES = {ROWS: "upsert", LOG: "none", SUMS: "debezium"}


def sink_of(world: World, name: str) -> Sink:
    table, topic = TABLES[name], topic_of(world.env, name)
    columns = tuple((column.id, column.name) for column in table.columns)
    return Sink(f"u1{table.id[1:]}", "s1", f"to_{name}", "", relation_id=table.id, topic=topic,
                progress_topic=f"{topic}-progress", columns=columns, key=() if name == LOG else (1,),
                envelope=ENVELOPES[name], partitions=2)  # fmt: skip


class Changes:
    """Who writes the three tables: what the sums are is known here, so no view has to be kept."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.rows: dict[int, tuple[str, int]] = {}

    def make(self, value: dict) -> None:
        before, name = dict(self.rows), value["id"]
        for k, n in said_by(value).items():
            self.rows.pop(k, None)
            if n is not None:
                self.rows[k] = name, n
        lines = [((name, k, n), 1) for k, n in said_by(value).items()]
        changed = [*((row_of(k, *before[k]), -1) for k in said_by(value) if k in before),
                   *((row_of(k, *self.rows[k]), 1) for k in said_by(value) if k in self.rows)]  # fmt: skip
        old, new = (sums_of({k: n for k, (_, n) in rows.items()}) for rows in (before, self.rows))
        sums = [*(((g, *old[g]), -1) for g in old if old[g] != new.get(g)),
                *(((g, *new[g]), 1) for g in new if new[g] != old.get(g))]  # fmt: skip
        commit(self._world, {ROWS_TABLE: changed, LOG_TABLE: lines, SUMS_TABLE: sums})


def row_of(k: int, name: str, n: int) -> tuple:
    return k, group_of(k), name, n


@pytest.mark.long
@pytest.mark.parametrize("bug", ["", "sink_batch_twice"])
def test_a_sink_that_writes_its_last_batch_again_is_found(bug: str, broker: str, env_name: str) -> None:
    rng, history = random.Random(3), History()
    with storage(broker, env_name, bug) as (world, controller):
        changes = Changes(world)
        changes.make({"id": f"{FIRST}-0", "puts": {"0": 5, "1": 6, "2": 7}, "gone": []})
        world.tell(*TABLES.values(), *(sink_of(world, name) for name in SINKS))
        controller.start()
        begun(broker, world.env)

        def change(number: int) -> None:
            value = drawn(rng, f"0-{number}")
            history.do(0, "sinks", "change", value, lambda: changes.make(value))

        def tail(name: str) -> None:
            history.do(0, "sinks", "tail", {"sink": name}, lambda: tail_of(broker, world.env, name))

        for life in range(2):
            for number in range(20):
                change(100 * life + number)
            tail(SINKS[life])
            controller.kill()  # in the midst of what it writes
            for number in range(20, 25):
                change(100 * life + number)
            controller.start()

        def last() -> dict[str, Any]:
            with closing(RunReader(broker)) as reader:
                held = [[k, name, n] for k, _, name, n in contents(world, reader, "u1", ROWS_TABLE.stored)]
                names = sorted({name for name, _, _ in contents(world, reader, "u2", LOG_TABLE.stored)})
            owed = world.oracle.state.last_change("u2")
            return {"rows": held, "log": names, **topics_of(broker, world.env, owed, CAUGHT_UP_S)}

        tail(SUMS)
        history.do(0, "sinks", "topics", None, last)
    ops = history.ops()
    judged(bug, ops, sinks.check(ops))


# -- sources

COLUMNS = numbered((Column("key", "text", False), Column("id", "text", False), Column("g", "int4", False),
                    Column("n", "int8", False)))  # fmt: skip


def source_of(world: World, envelope: str, number: int) -> tuple[Source, Errors]:
    errors = Errors(f"u{number + 1}", "s1", f"{envelope}_errors", "", ERRORS_COLUMNS, source_id=f"u{number}")
    reading = Reading(Format("json"), Format("text"), ("key", "value", "value", "value"))
    return Source(f"u{number}", "s1", envelope, "", COLUMNS, topic=world.topic(envelope), format="json",
                  envelope=envelope, errors_id=errors.id, reading=reading), errors  # fmt: skip


class Sources:
    """Who writes the two topics and reads the two sources, by the logs."""

    def __init__(self, world: World, rng: random.Random) -> None:
        self._world, self._rng = world, rng
        self._writer, self._reader = Writer(world.bootstrap), RunReader(world.bootstrap)
        self.history = History()
        self.items: dict[str, tuple[Source, Errors]] = {}
        for number, envelope in ((1, UPSERT), (3, DEBEZIUM)):
            world.make_topic(envelope, PARTITIONS)
            self.items[envelope] = source_of(world, envelope, number)
        self._told = 0
        self._stamps: dict[str, list[int]] = {UPSERT: [], DEBEZIUM: []}

    def _do(self, f: str, value: dict, call: Callable[[], object]) -> None:
        assert self.history.do(0, "envelopes", f, value, call) == "ok", self.history.ops()[-1].error

    def produce(self, count: int) -> None:
        for _ in range(count):
            self._told += 1
            source = self._rng.choice([UPSERT, DEBEZIUM])
            said = [message_drawn(self._rng, f"{self._told}-{n}") for n in range(self._rng.randint(1, 4))]
            messages = [message_of(source, each) for each in said]
            self._do("produce", {"source": source, "messages": said}, partial(self._send, source, messages))

    def _send(self, source: str, messages: Sequence[Sent]) -> dict[str, list]:
        return {"offsets": self._writer.send(self._world.topic(source), messages)}

    def taken(self, source: str) -> bool:
        """Whether all that is in the topic is bound."""
        ends = self._world.oracle.barrier().result().bindings(self.items[source][0].progress_id).ends()
        found = read_all(self._world.bootstrap, self._world.topic(source))
        return all(not its or ends.get((self._world.topic(source), p), 0) > its[-1].offset for p, its in found.items())

    def read(self, last: bool = False) -> None:
        """As of now, and as of two timestamps of before, one of which was read before."""
        for source, stamps in self._stamps.items():
            state = self._world.oracle.barrier().result()
            newest = state.last_change(self.items[source][0].id)
            stamps += [newest] if newest else []
            for at in dict.fromkeys([*stamps[-1:], *stamps[len(stamps) // 2 :][:1]]):
                self._do("read", {"source": source, "at": at}, partial(self._rows, source, at))
            value = {"source": source, "at": None, **({"last": True} if last else {})}
            self._do("read", value, partial(self._rows, source))

    def _rows(self, source: str, at: int | None = None) -> dict[str, list]:
        item, errors = self.items[source]
        at = self._world.oracle.barrier().result().last_ts if at is None else at
        rows = [[key, name, n] for key, name, _, n in contents(self._world, self._reader, item.id, COLUMNS, at)]
        bad = [list(row[3:]) for row in contents(self._world, self._reader, errors.id, ERRORS_COLUMNS, at)]
        return {"rows": rows, "bad": sorted(bad)}

    def log(self) -> None:
        for source in self.items:
            self._do("log", {"source": source}, partial(self._logged, source))

    def _logged(self, source: str) -> dict[str, dict]:
        found = read_all(self._world.bootstrap, self._world.topic(source))
        return {"partitions": {str(p): [as_logged(each) for each in taken] for p, taken in found.items()}}

    def close(self) -> None:
        self._writer.close()
        self._reader.close()


@pytest.mark.parametrize("bug", ["", "upsert_forgets_key"])
def test_a_source_that_forgets_a_key_is_found(bug: str, broker: str, env_name: str) -> None:
    with storage(broker, env_name, bug) as (world, controller), closing(Sources(world, random.Random(5))) as told:
        items: list[Item] = [each for pair in told.items.values() for each in pair]
        world.tell(*items)
        controller.start()
        for _ in range(2):
            told.produce(20)
            told.read()
            told.produce(10)
            eventually(controller.has_begun, CAUGHT_UP_S)
            controller.kill()
            told.produce(5)
            controller.start()
            told.read()
        told.produce(20)
        told.read()
        if not bug:  # with it, a source may have failed for good
            eventually(lambda: told.taken(UPSERT) and told.taken(DEBEZIUM), CAUGHT_UP_S)
        told.read(last=True)
        told.log()
        ops = told.history.ops()
    judged(bug, ops, envelopes.check(ops, lag_ns=0))
