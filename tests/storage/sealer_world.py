"""Worlds of journals in memory in which rows are sealed, merged, cut and collected, and a model of what there is."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from catalog_log.model import Setting
from catalog_log.objects import Column, Item, Table
from catalog_log.records import FORMAT_VERSION
from catalog_log.settings import clustering, clustering_key, history_key
from collection.binding import Binding, Inline, Move, Run
from collection.columns import DIFF, diff_schema
from collection.rows import decode, encode
from controllers.compute import feed
from controllers.compute.feed import Feed
from controllers.compute.relation import Relation
from controllers.storage import cutting, sealing
from controllers.storage import sealer as module
from controllers.storage.mover import movable
from controllers.storage.sealer import Sealer, Waits
from controllers.storage.sharing import CARRIED_BYTES
from controllers.vacuum import Asked, Won
from journal.errors import Conflict, Rejected, Unavailable
from journal.memory import MemoryCheckpointStore, MemoryTopic, MemoryTransport
from journal.names import TopicNames
from oracle.checkpoints import CheckpointPolicy, Checkpoints
from oracle.client import Oracle
from oracle.model import CommitPart
from oracle.records import CARRYING
from oracle.views_log import ViewsLog
from segments.log import SegmentsLog
from segments.reader import SegmentReader
from segments.store import DirectoryStore
from tests.compute.test_crashes import Rows, reader_of
from tests.compute.test_idle_views import SPARK, contents

KV = (Column("k", "int4", id=1), Column("v", "int8", id=2))
NAMES = TopicNames("t")
POLICY = CheckpointPolicy(retain_ms=20, slack_records=10)
WAITS = Waits(grace_s=100, orphaned_s=1000, patience_s=500)


class Killed(BaseException):
    """The process ends here."""


class Topics(Rows):
    """As there, in partitions, each after the other; and what is cut cannot be read."""

    def __init__(self) -> None:
        super().__init__()
        self.starts: Counter = Counter()
        self.partitions = 1
        self.turn = 0

    def write(self, collection, columns, rows, attempt) -> Future:
        self.turn += 1
        partition = self.turn % self.partitions
        written = super().write(self.place(collection, partition), columns, rows, attempt)
        done: Future = Future()
        done.set_result([run._replace(topic=collection, partition=partition) for run in written.result()])
        return done

    def place(self, topic: str, partition: int) -> str:
        name = topic.removeprefix(NAMES.data(""))
        return f"{name}/{partition}" if partition else name

    def cut(self, _bootstrap: str, upto, _timeout_s: float) -> None:
        name = self.place(upto.topic, upto.partition)
        assert upto.offset <= len(self.topics[name])
        self.starts[name] = max(self.starts[name], upto.offset)

    def table(self, run: Run) -> pa.Table:
        name = self.place(run.topic, run.partition)
        if run.lower < self.starts[name]:
            raise Unavailable(f"{run} is cut below {self.starts[name]}", sqlstate="58P01")
        return super().table(run._replace(topic=name))


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class World:
    def __init__(self, monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
        self.topics = Topics()
        self.clock, self.wall_ms = Clock(), 1_700_000_000_000
        self.path = path
        self.store = DirectoryStore(path / "store")
        self.items: dict[str, Item] = {}
        self.upper, self.next_id = 1, 100
        self.settings: dict[str, Setting] = {}
        self.journals = {name: MemoryTopic() for name in ("oracle", "views", "segments")}
        self.kept = {name: MemoryCheckpointStore() for name in self.journals}
        self.model: dict[str, list[tuple[int, Counter]]] = {}
        self.late: list[tuple[str, tuple[int, ...], Run]] = []
        self.moving: list[Move] = []
        reader = reader_of(self.topics)
        reader.chunks = lambda self, runs, columns, format: (
            table for table, _ in self.bound_chunks([SimpleNamespace(ts=0, run=r) for r in runs], columns, format)
        )
        monkeypatch.setattr("controllers.compute.feed.RunReader", reader)
        monkeypatch.setattr(module, "RunReader", reader)
        monkeypatch.setattr(sealing, "RECORD_ROWS", 1)
        monkeypatch.setattr(module, "next_item_id", lambda _image: self.next_id)
        monkeypatch.setattr(module, "wall_clock_ms", lambda: self.wall_ms)
        monkeypatch.setattr(cutting.clients, "delete_below", self.topics.cut)
        monkeypatch.setattr(feed, "SINCE_TIMEOUT_S", 0.01)
        self.oracle = Oracle.over(*self._journal("oracle"), "test", lambda: 0, now_ms=lambda: self.wall_ms)
        self.views = ViewsLog.over(*self._journal("views"), "test")
        self.opened = [self.oracle, self.views]

    def _journal(self, name: str):
        return lambda: MemoryTransport(self.journals[name]), Checkpoints(self.kept[name], name)

    def segments(self) -> SegmentsLog:
        found = SegmentsLog.over(*self._journal("segments"), "test", now_ms=lambda: self.wall_ms)
        self.opened.append(found)
        return found

    def sealer(
        self, rows: int = 3, measures: bool = True, format_version: int = FORMAT_VERSION, carried: int = CARRIED_BYTES
    ) -> Sealer:
        """One that knows nothing of those before it."""
        image = SimpleNamespace(
            item=self.items.get, all=lambda _: self.settings.items(), get=lambda _, key: self.settings.get(key),
            dependents=lambda _: (), genesis=SimpleNamespace(format_version=format_version),
        )  # fmt: skip
        done: Future = Future()
        done.set_result(image)
        catalog = SimpleNamespace(when_upper=lambda *_: done)
        found = Sealer("", NAMES, self.store, catalog, self.oracle, self.views, self.segments(), rows=rows,
                       policy=lambda: POLICY, waits=WAITS, measures=measures, carried=carried,
                       clock=self.clock)  # fmt: skip
        return found

    def create(self, name: str) -> None:
        self.items[name] = Table(name, "s1", name, "", KV)
        self.model[name] = [(0, Counter())]

    def keep(self, name: str, seconds: float) -> None:
        """Have history of it kept for so long."""
        self.settings[history_key(name)] = Setting(str(int(1000 * seconds)))

    def cluster(self, name: str, *columns: str) -> None:
        """Have its files kept apart by them."""
        self.settings[clustering_key(name)] = clustering(columns)

    def insert(self, name: str, *changes: tuple[int, int, int], garbage: bool = False) -> int:
        """At a new timestamp; each change is a row with its diff."""
        made = table_of(changes)
        if garbage:  # of a writer that never commits
            self.topics.write(name, KV, made, "dead").result()
        [run] = self.topics.write(name, KV, made, uuid.uuid4().hex).result()
        return self._committed(name, changes, bindings=(Binding(name, run._replace(topic=NAMES.data(name))),))

    def carry(self, name: str, *changes: tuple[int, int, int]) -> int:
        """Likewise, of rows that the oracle's log carries."""
        if self.oracle.state.record_version < CARRYING:
            self.oracle.raise_format().result(10)
        attempt = uuid.uuid4().hex
        [batch] = encode(KV, table_of(changes), attempt)
        return self._committed(name, changes, inline=(Inline(name, batch.value, attempt, batch.rows),))

    def _committed(self, name: str, changes: Sequence[tuple[int, int, int]], **part: Any) -> int:
        self.wall_ms += 1
        ts = self.oracle.commit(CommitPart(uuid.uuid4().hex, proposed_ts=self.wall_ms, **part)).result(10)
        now = Counter(self.model[name][-1][1])
        for *row, diff in changes:
            now[tuple(row)] += diff
        self.model[name].append((ts, now))
        return ts

    def write_moved(self, name: str, count: int) -> None:
        """What a mover does first with so many of the rows that it may move, at most."""
        for each in islice(movable(self.oracle.state, name), count) if name in self.oracle.state.held else ():
            [run] = self.topics.write(name, KV, decode(KV, [each.value]), each.run.attempt).result()
            self.moving.append(Move(name, each.run.lower, run._replace(topic=NAMES.data(name), rows=-1)))

    def exchange_moved(self) -> int:
        """What it does then, however much later; of how many."""
        moving, self.moving = self.moving, []
        done = 0
        for each in moving:
            with suppress(Rejected, Conflict):  # another one was first, or it comes too late
                self.oracle.move(each).result(10)
                done += 1
        return done

    def write_late(self, name: str, *row: int) -> None:
        """A row that somebody has written and will commit later."""
        [run] = self.topics.write(name, KV, table_of([(*row, 1)]), uuid.uuid4().hex).result()
        self.late.append((name, row, run._replace(topic=NAMES.data(name))))

    def commit_late(self) -> None:
        late, self.late = self.late, []
        for name, row, run in late:
            self._committed(name, [(*row, 1)], bindings=(Binding(name, run),))

    def passes(self, seconds: float) -> None:
        self.clock.now += seconds
        self.wall_ms += int(1000 * seconds)
        self.oracle.advance("table", self.wall_ms).result(10)

    def expected(self, name: str, ts: int) -> Counter:
        return Counter({row: n for row, n in [w for t, w in self.model[name] if t <= ts][-1].items() if n})

    def read(self, name: str, ts: int, log: SegmentsLog | None = None) -> Counter:
        """By somebody who holds nothing of it."""
        scratch = self.path / uuid.uuid4().hex
        scratch.mkdir()
        relation = Relation(SPARK, name, KV, scratch)
        reading = Feed("", self.oracle, self.views, SegmentReader(log or self.segments(), self.store))
        try:
            reading.catch_up(relation, self.items[name], ts)
            return Counter({row: n for row, n in contents(relation, ts).items() if n})
        finally:
            relation.close()

    def check(self, name: str) -> None:
        """At every timestamp that may be read."""
        since = self.oracle.state.since_of(name)
        last = self.oracle.state.last_ts
        for ts in {since, last, *(t for t, _ in self.model[name] if since <= t <= last)}:
            assert self.read(name, ts) == self.expected(name, ts), (name, ts)

    def close(self) -> None:
        for each in self.opened:
            each.close()


def table_of(changes: Iterable[tuple[int, int, int]]) -> pa.Table:
    """Rows with their diffs."""
    made = pa.table([pa.array(c) for c in zip(*changes, strict=True)], names=["k", "v", DIFF])
    return made.cast(diff_schema(KV))


def sealed(world: World, sealer: Sealer, name: str = "u1"):
    world.passes(module.MOVE_EVERY_S)
    sealer.look()
    return sealer._segments.state.sealed(name)


def vacuumed(sealer: Sealer, *names: str, full: bool = False, timeout_s: float = 600.0) -> Won:
    """As its thread does it for whoever waits."""
    done = sealer.vacuum(Asked(names, full, timeout_s))
    sealer._answer(sealer._asked.get_nowait())
    return done.result(0)
