"""The planted bugs that need three brokers: a leader that was deposed and does not know it, and its clients reach it.

Some 40 s each with starting three brokers: marked slow, and skipped where network namespaces are not permitted.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from catalog_log.bootstrap import create_environment
from catalog_log.log import CatalogLog
from catalog_log.objects import Column
from collection.binding import Binding
from collection.reader import RunReader
from collection.writer import CollectionWriter
from journal.errors import TidemarkError
from journal.names import TopicNames
from journal.topics import data_spec, ensure_topics
from judge.checkers import once, register
from judge.history import INFO
from judge.live.brokers import HEAL_TIMEOUT_S, REPLICATION, KafkaCluster
from judge.live.gaps import brokers
from judge.live.network import BROKERS, permitted
from judge.planted.registry import BUGS
from judge.planted.small import History, entries_of, first_seen, perform
from judge.verdict import INVALID, VALID
from judge.witness import catalog_lines, catalog_record
from judge.workloads.api import Invocation, World
from judge.workloads.log_client import Logs
from judge.workloads.outcome import outcome
from judge.workloads.register import RegisterClient
from oracle.client import Oracle
from oracle.model import CommitPart

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.skipif(permitted() is not None, reason=str(permitted())),
]

DEPOSED_S = 4.0
"""How long the leader is cut off before it is relied on that the others have chosen another (FACTS: 2 s)."""

ROWS = ("u1", "u2", "u3", "u4", "u5", "u6")
COLUMNS = (Column("id", "text"),)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[KafkaCluster]:
    with brokers(tmp_path) as started:
        yield started


def cut_off(cluster: KafkaCluster, topic: str) -> tuple[str, Callable[[], None]]:
    """The leader of ``topic`` without the other brokers, though with its clients; its name and what heals it."""
    host = cluster.leader(topic)
    assert host is not None
    return host, cluster.network.cut([host], [other for other in BROKERS if other != host]).heal


class OwnClient(RegisterClient):
    def __init__(self, world: World, worker: int, writer: str) -> None:
        self.node, self._mine = writer, Logs(world.kafka, world.register_env, writer)
        super().__init__(world, worker)

    @property
    def logs(self) -> Logs:
        return self._mine

    def close(self) -> None:
        self._mine.close()


@pytest.mark.parametrize("bug", ["", "list_offsets_read"])
def test_the_end_of_a_topic_is_no_linearizable_read(cluster: KafkaCluster, bug: str) -> None:
    """The reader knows the oracle's leader from before and reaches it; the writer comes later, by the other two."""
    names = TopicNames("ends")
    create_environment(cluster.bootstrap, names, REPLICATION)
    world = World(cluster.bootstrap, names.env, (), (), 0, names.env)
    history, over = History(), threading.Event()
    with BUGS[bug].apply() if bug else nullcontext():
        reader = OwnClient(world, 1, "reader")
        perform(history, "register", 0, reader, Invocation("cas", {"token": "w1-0"}))
        perform(history, "register", 0, reader, Invocation("read"))
        host, heal = cut_off(cluster, names.oracle)
        reading = threading.Thread(
            target=repeat, args=(history, reader, (Invocation("read") for _ in count()), 1, over)
        )
        reading.start()
        try:
            time.sleep(DEPOSED_S)
            others = ",".join(broker.bootstrap for name, broker in cluster.brokers.items() if name != host)
            writer = OwnClient(replace(world, kafka=others), 0, "writer")
            ending = threading.Timer(DEPOSED_S, over.set)
            ending.start()
            tokens = (Invocation("cas", {"token": f"w0-{n}"}) for n in count())
            repeat(history, writer, tokens, 2, over)
            writer.close()
        finally:
            over.set()
            heal()
            reading.join()
            reader.close()
        cluster.wait_in_sync(HEAL_TIMEOUT_S)
        last = OwnClient(world, 1, "last")
        perform(history, "register", 3, last, Invocation("read"))
        last.close()
    ops = history.ops()
    records = [catalog_record(line) for line in catalog_lines(entries_of(cluster.bootstrap, names.catalog))]
    verdict = register.check(ops, records)
    print(host, "was cut off;", verdict.counts, first_seen(ops, verdict.anomalies) if bug else "",
          [a.text for a in verdict.anomalies[:3]])  # fmt: skip
    assert sum(op.ok and op.f == "cas" for op in ops) > 2, "nobody wrote after the leader was cut off"
    assert verdict.valid == (INVALID if bug else VALID), verdict


def repeat(
    history: History, client: RegisterClient, todo: Iterator[Invocation], process: int, over: threading.Event
) -> None:
    """One invocation after the other; an unknown outcome begins another logical process."""
    while not over.is_set():
        if perform(history, "register", process, client, next(todo)) == INFO:
            process += 10
        time.sleep(0.02)


class Table:
    """Inserts as an adapter does them, without SQL: rows first, then the commit that makes them visible."""

    def __init__(self, kafka: str, names: TopicNames, table: str) -> None:
        self._table = table
        self._catalog = CatalogLog.open(kafka, names, "table")
        self._oracle = Oracle.open(kafka, names, "table", self._catalog.upper)
        self._writer = CollectionWriter(kafka, names)
        self._kafka = kafka

    def insert(self, id_: str) -> None:
        try:
            runs = self._writer.write(self._table, COLUMNS, [(id_,)], id_).result(40)
            part = CommitPart(id_, tuple(Binding(self._table, run) for run in runs))
            self._oracle.commit(part).result(40)
        except TidemarkError as error:
            raise outcome(error, write=True) from error

    def all(self) -> dict:
        """Each bound run by itself: one whose rows are gone is an error of every SELECT, and the others' rows are not
        to blame for it."""
        state = self._oracle.barrier().result(40)
        reader, found, unreadable = RunReader(self._kafka), [], []
        try:
            for bound in state.bindings(self._table).at(state.last_ts):
                try:
                    found += reader.read([bound.run], COLUMNS).column("id").to_pylist()
                except TidemarkError as error:
                    unreadable.append(error.message)
        finally:
            reader.close()
        print(len(unreadable), "bound runs cannot be read, for instance:", unreadable[:2])
        return {"ids": [[id_, found.count(id_)] for id_ in sorted(set(found))]}

    def close(self) -> None:
        self._writer.close()
        self._oracle.close()
        self._catalog.close()


@pytest.mark.parametrize("bug", ["", "acks_one"])
def test_one_brokers_word_is_not_enough(cluster: KafkaCluster, bug: str) -> None:
    names = TopicNames("acks")
    create_environment(cluster.bootstrap, names, REPLICATION)
    ensure_topics(cluster.bootstrap, [data_spec(names.data(each), REPLICATION) for each in ROWS])
    # The rows' leader is to be lost, and not the oracle's: the commit must get through.
    elsewhere = cluster.leader(names.oracle)
    table = next(each for each in ROWS if cluster.leader(names.data(each)) != elsewhere)
    history, number = History(), 0
    with BUGS[bug].apply() if bug else nullcontext():
        client = Table(cluster.bootstrap, names, table)
        try:

            def insert() -> None:
                nonlocal number
                id_, number = f"w{number}-0", number + 1
                history.do(number, "once", "insert", {"id": id_}, lambda: client.insert(id_))

            insert()
            host, heal = cut_off(cluster, names.data(table))
            try:
                began = time.monotonic()
                while time.monotonic() - began < 2 * DEPOSED_S:
                    insert()
                    time.sleep(0.1)
            finally:
                heal()
            cluster.wait_in_sync(HEAL_TIMEOUT_S)
            insert()
            history.do(0, "once", "all", {"from": "table"}, client.all)
        finally:
            client.close()
    ops = history.ops()
    verdict = once.check(ops)
    print(host, "was cut off;", verdict.counts, first_seen(ops, verdict.anomalies) if bug else "",
          [a.text for a in verdict.anomalies[:3]])  # fmt: skip
    assert verdict.valid == (INVALID if bug else VALID), verdict
