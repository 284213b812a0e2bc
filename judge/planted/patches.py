"""The bugs themselves: each function replaces as little of the product as makes the mistake.

Nothing of the product is imported before a bug is applied, so that an adapter does not load Spark to be wrong.
"""

from __future__ import annotations

from concurrent.futures import Future

from judge.planted.patching import Applied

RETENTION_MS = 5000
"""What stands for "a week is enough" in a run of minutes: longer than an environment takes to be opened."""

ANSWER_S = 1.0
"""How long who takes silence for a loss waits: a commit takes milliseconds, and a second where a leader goes."""

ENDS_S = 10.0
"""For a broker that is there to say where a topic ends."""

BROKER_SETTINGS = {"log.retention.check.interval.ms": "500", "log.initial.task.delay.ms": "0"}
"""So that a broker looks for what is too old within the run, and not every five minutes."""


def acks_one(planted: Applied) -> None:
    from journal import clients

    correct = clients.producer_settings

    def producer_settings(bootstrap: str, **override: object) -> dict[str, object]:
        return {**correct(bootstrap, **override), "acks": "1", "enable.idempotence": False}

    planted.replace(clients, "producer_settings", producer_settings)


def list_offsets_read(planted: Applied) -> None:
    import asyncio

    from journal.sender import DEADLINE_MS
    from oracle.client import Oracle

    def barrier(self: Oracle) -> Future:
        return self._journal.when_offset(self._journal.transport.bounds()[1], DEADLINE_MS / 1000)

    def barrier_async(self: Oracle) -> asyncio.Future:
        async def ask() -> object:
            return await asyncio.wrap_future(await asyncio.to_thread(barrier, self))

        return asyncio.ensure_future(ask())

    planted.replace(Oracle, "barrier", barrier)
    planted.replace(Oracle, "barrier_async", barrier_async)


def blind_resend(planted: Applied) -> None:
    from adapter.execute.ddl_commit import DdlQueue

    correct = DdlQueue._plan

    async def plan(self: DdlQueue, group, image, ts):
        sent = getattr(group[0], "planted_proposal", None) if group else None
        if sent is not None:  # it lost: the same updates again, at the new upper
            accepted, updates = sent
            return accepted, [], group[len(accepted) :], updates
        accepted, judged, later, updates = await correct(self, group, image, ts)
        for each in accepted:
            each.planted_proposal = (accepted, updates)
        return accepted, judged, later, updates

    planted.replace(DdlQueue, "_plan", plan)


def wall_clock_oracle(planted: Applied) -> None:
    from adapter.execute.images import Images
    from journal.timestamps import TABLE
    from oracle.client import Oracle
    from oracle.timeline import Timeline

    def given(value: int) -> Future[int]:
        done: Future[int] = Future()
        done.set_result(value)
        return done

    def now(self: Oracle, _timeline: str) -> Future[int]:
        return given(self._now_ms())

    async def now_async(self: Oracle, _timeline: str) -> int:
        return self._now_ms()

    correct = Images.barrier

    async def barrier(self: Images):
        state, image = await correct(self)
        table = state.timelines.get(TABLE, Timeline())
        # Read at the present by our own clock, so far as that is complete.
        table = table._replace(read_ts=min(table.read_ts, self._oracle._now_ms()))
        return state._replace(timelines=state.timelines.set(TABLE, table)), image

    planted.replace(Oracle, "read_ts", now)
    planted.replace(Oracle, "read_ts_async", now_async)
    planted.replace(Oracle, "write_ts", now)
    planted.replace(Oracle, "write_ts_async", now_async)
    planted.replace(Images, "barrier", barrier)


def skipped_apply_write(planted: Applied) -> None:
    from oracle.client import Oracle

    def apply_catalog(self: Oracle, _upper: int) -> Future[None]:
        done: Future[None] = Future()
        done.set_result(None)
        return done

    async def apply_catalog_async(self: Oracle, _upper: int) -> None:
        return None

    planted.replace(Oracle, "apply_catalog", apply_catalog)
    planted.replace(Oracle, "apply_catalog_async", apply_catalog_async)


def early_catalog(planted: Applied) -> None:
    from controllers.waiting import PeekQueue

    correct = PeekQueue._judge

    def judge(self: PeekQueue, waiting):
        frontier = self._catalog_frontier
        self._catalog_frontier = max(frontier, waiting.peek.catalog_ts + 1)
        try:
            return correct(self, waiting)
        finally:
            self._catalog_frontier = frontier

    planted.replace(PeekQueue, "_judge", judge)


def lost_commands(planted: Applied) -> None:
    from catalog_log.delta import between
    from catalog_log.fold import VerdictKind, admit
    from journal.timestamps import CatalogTs
    from subscribers.stepper import Stepper
    from subscribers.translate import translate

    correct = Stepper.feed

    def feed(self: Stepper, entry):
        if self._new or entry.offset != self.next_offset:
            return correct(self, entry)
        before = self.image
        self.image, verdict = admit(before, entry)
        self.next_offset += 1
        old = self.next_offset <= self._begin_offset  # it was in the catalog when we started: it must have been sent
        if old or verdict.kind is not VerdictKind.ACCEPTED or self.image.upper <= self.frontier:
            return []
        commands = [c._replace(lower=self.frontier) for c in translate(between(before, self.image), self.controller)]
        self.frontier = CatalogTs(self.image.upper)
        return commands

    planted.replace(Stepper, "feed", feed)


def double_view_commit(planted: Applied) -> None:
    from controllers.compute.view import View
    from journal.timestamps import DataTs

    correct = View.restore

    def restore(self: View, sources, upper) -> None:
        correct(self, sources, DataTs(upper - 1))  # one tick back: as if the last one's commit had not landed

    planted.replace(View, "restore", restore)


def retention(planted: Applied) -> None:
    from embedded import broker
    from journal import topics

    correct = topics._durable

    def durable(replication_factor: int) -> dict[str, str]:
        # What is made and what is checked come from here, so the check at every start is content.
        return correct(replication_factor) | {"retention.ms": str(RETENTION_MS)}

    planted.replace(topics, "_durable", durable)
    lines = "".join(f"{name}={value}\n" for name, value in BROKER_SETTINGS.items())
    planted.replace(broker, "_PROPERTIES", broker._PROPERTIES + lines)


def history_for_ever(planted: Applied) -> None:
    from controllers.compute.feed import Feed

    correct = Feed.catch_up

    def catch_up(self: Feed, relation, item, through) -> None:
        if relation.upper <= through:
            self._bound(item)[0].at(through)  # what a view reached can be read, so all is as of then
        correct(self, relation, item, through)

    planted.replace(Feed, "catch_up", catch_up)


def restarted_into(planted: Applied) -> None:
    from controllers.quarantine import Notes

    planted.replace(Notes, "quarantined", lambda self: [])
    planted.replace(Notes, "is_quarantined", lambda self, name: False)


def topic_by_name(planted: Applied) -> None:
    from collection.reader import RunReader
    from controllers.storage import source

    planted.replace(source, "made_anew", lambda topic, topic_id, pins: None)
    planted.replace(source.Source, "_check_id", lambda self, topic_id: None)
    planted.replace(RunReader, "_ask_ids", lambda self, runs: None)


def moved_early(planted: Applied) -> None:
    from concurrent.futures import Future

    from collection.binding import Run
    from collection.rows import EncodedBatch
    from controllers.storage.mover import Mover, movable, taken
    from oracle.state import OracleState

    def write(self: Mover, name: str, state: OracleState) -> None:
        batches = taken(movable(state, name))
        topic = self._writer._names.data(name)
        end = state.bindings(name).end(topic, 0) or 0
        surely: Future[list[Run]] = Future()
        surely.set_result([Run(topic, 0, end, end + len(batches))])
        self._writer.write_batches(name, [EncodedBatch(each.value, each.run.rows) for each in batches], "early")
        self._exchange(name, batches, surely)

    planted.replace(Mover, "_write", write)


def reads_unchecked(planted: Applied) -> None:
    from adapter.execute.inserter import Inserter

    correct = Inserter._bind

    async def bind(self: Inserter, entries, placed, read_ts=None, reads=()):
        return await correct(self, entries, placed)

    planted.replace(Inserter, "_bind", bind)


def range_skipped(planted: Applied) -> None:
    from adapter.execute import inserter

    correct = inserter.keys_read

    def keys_read(entries, read, keys=(), ranges=()):
        return correct(entries, read, keys, list(ranges)[:1])

    planted.replace(inserter, "keys_read", keys_read)


def phantoms_unnamed(planted: Applied) -> None:
    from dataclasses import replace

    from adapter.execute import inserter

    correct = inserter.keys_written

    def keys_written(entries):
        empty = [replace(each, held=each.rows.slice(0, 0), more_keys=frozenset()) for each in entries]
        return correct([one if one.removed is not None else other for one, other in zip(entries, empty, strict=True)])

    planted.replace(inserter, "keys_written", keys_written)


def window_as_free(planted: Applied) -> None:
    from oracle import fold
    from oracle.conflicts import Manager
    from oracle.errors import Reason

    part_of, check_of = fold._part, Manager.check

    def part(state, part, ts):
        if part.read_ts is not None and part.read_ts < state.since:
            part = part._replace(read_ts=state.since)  # what was written before that, nobody remembers
        return part_of(state, part, ts)

    def check(self: Manager, read, read_ts):
        found = check_of(self, read, read_ts)
        return None if found is not None and found[0] is Reason.SNAPSHOT_TOO_OLD else found

    planted.replace(fold, "_part", part)
    planted.replace(Manager, "check", check)


def unanswered_again(planted: Applied) -> None:
    import asyncio

    from adapter.execute.commits import Commits
    from journal.errors import Conflict, Indeterminate

    correct = Commits.commit

    async def commit(self: Commits, session, entries) -> None:
        asked = asyncio.ensure_future(correct(self, session, entries))
        asked.add_done_callback(lambda done: done.cancelled() or done.exception())
        done, _ = await asyncio.wait([asked], timeout=ANSWER_S)
        if not done:
            raise Conflict("nobody answered")
        try:
            asked.result()
        except Indeterminate as error:
            raise Conflict("nobody knows") from error

    planted.replace(Commits, "commit", commit)


def keys_looked_up(planted: Applied) -> None:
    from adapter.execute import uniques

    planted.replace(uniques, "hanging_on", lambda entries, keys, as_of: list(entries))


def upsert_unhinged(planted: Applied) -> None:
    from adapter.execute import conflicting

    planted.replace(conflicting, "hanging_on", lambda entries, keys, as_of: list(entries))


def reserve_given_back(planted: Applied) -> None:
    from dataclasses import replace

    from adapter.execute.sequences import _Held

    def without(self: _Held, at):
        if not self.runs or self.last is None or at.set != self.set:
            return None
        return replace(at, last=self.last)  # wherever the sequence is by now

    planted.replace(_Held, "without", without)


def segment_before_rows(planted: Applied) -> None:
    from types import SimpleNamespace

    from controllers.storage.sealer import Sealer

    made, told = Sealer._write, Sealer._exchange

    def write(self: Sealer, name, columns, tables, key):
        store, self._later = self._files.store, []
        self._files.store = SimpleNamespace(
            write=lambda *file: self._later.append(file), read=store.read, delete=lambda _path: None
        )
        try:
            return made(self, name, columns, tables, key)
        finally:
            self._files.store = store

    def exchange(self: Sealer, asked) -> None:
        told(self, asked)
        for file in self.__dict__.pop("_later", ()):
            self._files.store.write(*file)

    planted.replace(Sealer, "_write", write)
    planted.replace(Sealer, "_exchange", exchange)


def compacted_over(planted: Applied) -> None:
    from controllers.storage.sealer import Sealer

    replaced, told = Sealer._replace, Sealer._exchange

    def replace(self: Sealer, name, sealed, files, made):
        self._all = len(files) == len(sealed.files)
        try:
            return replaced(self, name, sealed, files, made)
        finally:
            del self._all

    def exchange(self: Sealer, asked) -> None:
        if getattr(self, "_all", False):
            self._segments.caught_up(ENDS_S).result()
            there = self._segments.state.sealed(asked.collection).files
            asked = asked._replace(removed=tuple(each.path for each in there))
        told(self, asked)

    planted.replace(Sealer, "_replace", replace)
    planted.replace(Sealer, "_exchange", exchange)


def merged_twice(planted: Applied) -> None:
    from segments import fold
    from segments.model import SegmentsKind

    correct = fold._exchange

    def exchange(state, record):
        asked = record.exchange
        there = {each.path for each in state.sealed(asked.collection).files}
        removed = tuple(path for path in asked.removed if path in there)
        return correct(state, record._replace(exchange=asked._replace(removed=removed)))

    planted.put(fold._APPLY, SegmentsKind.EXCHANGE, exchange)


def held_file_collected(planted: Applied) -> None:
    from segments.store import DirectoryStore

    def fetch(self: DirectoryStore, path, target) -> None:
        with self._reading(path):
            target.symlink_to(self._root / path)

    planted.replace(DirectoryStore, "fetch", fetch)


def task_counted_twice(planted: Applied) -> None:
    from collection.binding import Run
    from controllers.compute.outlet import Outlet
    from journal.clients import make_consumer
    from journal.names import TopicNames

    correct = Outlet.collected

    def ends(self: Outlet) -> dict[int, int]:
        from confluent_kafka import TopicPartition

        topic = TopicNames(self._env).data(self._relation.id)
        consumer = make_consumer(self._bootstrap)
        try:
            there = consumer.list_topics(topic, timeout=ENDS_S).topics[topic].partitions
            return {p: consumer.get_watermark_offsets(TopicPartition(topic, p), timeout=ENDS_S)[1] for p in there}
        finally:
            consumer.close()

    def collected(self: Outlet, frame, cores):
        self._order(self._relation.id)
        before = ends(self)
        rows = correct(self, frame, cores)
        if runs := self._sent.runs:
            one = runs[0]
            found = [Run(one.topic, p, before.get(p, 0), end, one.attempt) for p, end in sorted(ends(self).items())]
            self._sent = self._sent._replace(runs=tuple(run for run in found if run.lower < run.upper))
        return rows

    planted.replace(Outlet, "collected", collected)


def sink_batch_twice(planted: Applied) -> None:
    import threading

    from controllers.storage import sink_topic

    read, timestamp = sink_topic.SinkTopic._read, sink_topic._timestamp
    notes = threading.local()  # each sink claims in a thread of its own

    def told(topic: str, note: bytes) -> int:
        notes.found = [*notes.found[-1:], timestamp(topic, note)]
        return notes.found[-1]

    def before_the_newest(self: sink_topic.SinkTopic, consumer, life: bytes) -> int | None:
        notes.found = []
        newest = read(self, consumer, life)
        return notes.found[0] if notes.found else newest

    planted.replace(sink_topic, "_timestamp", told)
    planted.replace(sink_topic.SinkTopic, "_read", before_the_newest)


def upsert_forgets_key(planted: Applied) -> None:
    from controllers.storage.keyed_state import KeyedState

    correct = KeyedState.load

    def load(self: KeyedState, changes) -> None:
        correct(self, changes)
        kept = len(self) // 2  # what there is room for
        with self._db.begin(write=True, db=self._state) as changing, changing.cursor() as cursor:
            for key in list(cursor.iternext(values=False))[kept:]:
                changing.delete(key)

    planted.replace(KeyedState, "load", load)


def unknown_version_skipped(planted: Applied) -> None:
    from catalog_log.records import FORMAT_VERSION, SCHEMA_VERSION_MAX
    from schemas import codec

    newer = 2
    versions, schema = codec.released_versions, codec.released_schema

    def released_versions(name: str) -> tuple[int, ...]:
        return (*versions(name), newer) if name == "proposal" else versions(name)

    def released_schema(name: str, version: int) -> dict:
        return schema(name, 1 if (name, version) == ("proposal", newer) else version)

    def forget() -> None:
        for remembered in (codec.version, codec._writer, codec._reader):
            remembered.cache_clear()

    planted.also(forget)  # undone last, when the originals are back
    planted.replace(codec, "released_versions", released_versions)
    planted.replace(codec, "released_schema", released_schema)
    planted.put(SCHEMA_VERSION_MAX, FORMAT_VERSION, newer)
    forget()
