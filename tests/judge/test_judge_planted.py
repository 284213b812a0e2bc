"""Every planted bug takes effect where it is applied, and is gone afterwards: no broker, no Spark session."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import closing, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from unittest.mock import MagicMock, patch

import pyarrow as pa
import pytest
from immutables import Map

from adapter.execute import inserter
from adapter.execute.commits import Commits
from adapter.execute.ddl_commit import DdlQueue
from adapter.execute.images import Images
from adapter.execute.inserter import Inserter
from adapter.execute.rows import Rows
from adapter.execute.sequences import _Held as SequenceHeld
from catalog_log import model
from catalog_log.fold import VerdictKind, admit, fold
from catalog_log.image import EMPTY
from catalog_log.model import Genesis, Setting
from catalog_log.objects import Item, Table
from catalog_log.records import FORMAT_VERSION, Proposal, decode_proposal, encode_proposal, put
from collection.binding import BoundRun, Run, pin
from controllers.commands import Kind
from controllers.commands_log import CommandFold, encode
from controllers.compute.outlet import Outlet
from controllers.peeks.peek import Peek
from controllers.quarantine import Notes
from controllers.storage.keyed_state import KeyedState
from controllers.storage.sink_topic import SinkTopic
from controllers.waiting import Dropped, PeekQueue
from embedded import broker as embedded_broker
from journal import clients, topics
from journal.api import Entry
from journal.errors import Conflict, Indeterminate, TidemarkError
from journal.memory import MemoryCheckpointStore, MemoryTopic, MemoryTransport
from journal.names import TopicNames
from journal.settling import Token
from journal.timestamps import TABLE, CatalogTs, DataTs
from judge.planted.__main__ import main
from judge.planted.patching import Applied
from judge.planted.registry import BUGS, chosen, kind_of
from judge.simulation import bugs as simulated
from oracle import fold as oracle_fold
from oracle.bindings import NOTHING, BoundRuns
from oracle.checkpoints import Checkpoints
from oracle.client import Oracle
from oracle.conflicts import Manager
from oracle.errors import Reason, SnapshotTooOld
from oracle.model import INLINE_BYTES_MAX, CommitPart, KeyRange
from schemas import codec
from segments import fold as segments_fold
from segments.fold import NO_SEGMENTS
from segments.model import Exchange, SegmentsKind, SegmentsRecord, new_path
from segments.store import DirectoryStore
from sql.objects.uniques import uniques_of
from subscribers.stepper import Stepper
from tests.adapter.world import World
from tests.oracle.oracle_logs import Log
from tests.sql.doubles import ddl, empty_image
from tests.storage.sealer_world import World as SealerWorld
from tests.storage.sealer_world import sealed
from values.numeric.sequence_values import Position

ROOT = Path(__file__).resolve().parents[2]
GENESIS = encode_proposal(Proposal("g", "test", 0, 10, (), Genesis(FORMAT_VERSION, "env", "topic")))


def open_oracle(topic: MemoryTopic, now_ms: Callable[[], int] = lambda: 1000, upper: int = 0) -> Oracle:
    return Oracle.over(lambda: MemoryTransport(topic), Checkpoints(MemoryCheckpointStore(), "o"), "test",
                       lambda: upper, now_ms=now_ms)  # fmt: skip


def table(number: int) -> Item:
    return Table(f"u{number}", "s1", f"t{number}", "CREATE TABLE …")


def acks_one() -> object:
    settings = clients.producer_settings("host:1", **{"acks": "all"})
    return settings["acks"], settings["enable.idempotence"]


def list_offsets_read() -> object:
    """How many records two barriers cost."""
    topic = MemoryTopic()
    oracle = open_oracle(topic)
    try:
        oracle.barrier().result(10)

        async def one() -> None:
            await oracle.barrier_async()

        asyncio.run(one())
        return topic.end
    finally:
        oracle.close()


def blind_resend() -> object:
    """Two adapters create a table each at the same upper: how many tables there are."""

    async def race() -> int:
        world = World()
        async with world.adapter("a") as a, world.adapter("b") as b:
            for turn in range(5):  # both plan before either reads the other's proposal, sooner or later
                await asyncio.gather(a.sql(f"CREATE TABLE a{turn} (k int)"), b.sql(f"CREATE TABLE b{turn} (k int)"))
            await a.executor.images.known(b.catalog.upper())
            return a.catalog.image.count(model.ITEMS)

    return asyncio.run(race()) == 10


def wall_clock_oracle() -> object:
    """The timestamps that a clock one second behind gets after a write, and at which its executor would read."""
    topic = MemoryTopic()
    ahead, behind = open_oracle(topic, lambda: 2000), open_oracle(topic, lambda: 1000)
    try:
        ahead.commit(CommitPart("p")).result(10)
        behind.barrier().result(10)

        async def executor_reads_at() -> int:
            catalog = SimpleNamespace(image=SimpleNamespace(upper=0))
            return (await Images(catalog, behind, None).barrier())[0].last_ts

        return behind.read_ts(TABLE).result(10) < 2000, asyncio.run(executor_reads_at()) < 2000
    finally:
        ahead.close()
        behind.close()


def skipped_apply_write() -> object:
    topic = MemoryTopic()
    oracle = open_oracle(topic)
    try:
        oracle.apply_catalog(CatalogTs(7)).result(10)
        asyncio.run(oracle.apply_catalog_async(CatalogTs(8)))
        return topic.end
    finally:
        oracle.close()


def early_catalog() -> object:
    """What becomes of a peek whose catalog timestamp the controller has not reached."""
    queue = PeekQueue()
    queue.on_catalog_frontier(CatalogTs(10), ())
    queue.on_data_frontier(lambda _: (DataTs(0), DataTs(100)))
    found = queue.add(Peek("p", "SELECT 1", ("u1",), CatalogTs(20), DataTs(50)), 0)
    assert queue.catalog_frontier == 10
    return [type(outcome) for outcome in found]


def lost_commands() -> object:
    """What a controller knows of three tables, the second of them made while its subscriber was away."""
    log = [GENESIS]
    upper = 10
    for number in (1, 2, 3):
        log.append(encode_proposal(Proposal(f"p{number}", "test", upper, upper + 10,
                                            (put(model.ITEMS, f"u{number}", table(number)),))))  # fmt: skip
        upper += 10
    entries = [Entry(offset, value) for offset, value in enumerate(log)]
    controller = CommandFold()

    def subscribe(to: list[Entry], catalog_end: int) -> None:
        stepper = Stepper("storage", controller.state.frontier, catalog_end)
        for entry in to:
            for command in stepper.feed(entry):
                controller.take(Entry(0, encode(command)))

    subscribe(entries[:2], 2)
    assert set(controller.state.objects) == {"u1"}
    subscribe(entries, 3)
    assert controller.state.frontier == upper, "the frontier passes what was lost"
    return sorted(controller.state.objects)


def double_view_commit() -> object:
    """The timestamp of which a restarted view believes to hold what it put out."""
    from controllers.compute.view import View

    fake = SimpleNamespace(_kept=SimpleNamespace(incremental=None), state_ts=None)
    View.restore(fake, None, DataTs(100))
    return fake.state_ts


def retention() -> object:
    return topics.journal_spec("t", 1).config["retention.ms"], "check.interval" in embedded_broker._PROPERTIES


def history_for_ever() -> object:
    """Whether a collection can be brought to a timestamp that history does not reach back to."""
    from controllers.compute.feed import Feed

    loaded = []
    relation = SimpleNamespace(id="u1", upper=0, advancing=nullcontext(), check_open=lambda: None,
                               load=lambda *_: loaded.append("loaded"))  # fmt: skip
    nothing = MagicMock(spec=["close"])
    feed = Feed.__new__(Feed)
    feed._segments, feed._read = None, lambda *_: nothing
    feed._intake = SimpleNamespace(takes=lambda _runs: False)
    feed._bound = lambda _item, _sealed=None: (BoundRuns(NOTHING, 100), 100)
    try:
        feed.catch_up(relation, None, DataTs(50))
    except SnapshotTooOld:
        return "too old"
    return loaded[0]


def restarted_into() -> object:
    notes = Notes(deaths=Map({"u1": 2, "u2": 1}))
    return notes.quarantined(), notes.is_quarantined("u1"), notes.is_quarantined("u2")


def topic_by_name() -> object:
    """Whether a source goes on with another topic of the same name, also in the midst of it, and readers with it."""
    from collection.reader import RunReader
    from controllers.storage import source

    problem = source.made_anew("t", "new", {"old"})
    reading = SimpleNamespace(status=SimpleNamespace(topic="t"), _topic_id="old")
    try:
        source.Source._check_id(reading, "new")
        checked = False
    except source.SourceProblem:
        checked = True
    with patch("collection.reader.ids_of") as asked:
        RunReader._ask_ids(SimpleNamespace(_bootstrap="b"), [BoundRun(1, Run("t", 0, 0, 1, pin("old")))])
    return problem is None, checked, asked.called


def moved_early() -> object:
    """Whether rows are exchanged while their writing is under way."""
    from controllers.storage import mover

    log = Log()
    log.raise_format()
    for _ in range(2 * mover.COLLECTION_BYTES // INLINE_BYTES_MAX):
        log.carry("u1", bytes(INLINE_BYTES_MAX))
    oracle, writer = MagicMock(state=log.state), MagicMock(_names=TopicNames("env"))
    writer.write_batches.return_value = Future()
    mover.Mover(oracle, writer).look()
    assert writer.write_batches.called
    return oracle.move.called


def reads_unchecked() -> object:
    """What a commit says of what its statement read, and when."""
    parts: list[CommitPart] = []

    async def commit_async(part: CommitPart, _upper_now: object) -> int:
        parts.append(part)
        return 7

    catalog, its_oracle = SimpleNamespace(image=None), SimpleNamespace(commit_async=commit_async)
    sending = SimpleNamespace(_oracle=its_oracle, _upper_now=lambda *_: 0, _catalog=catalog)
    assert asyncio.run(Inserter._bind(sending, [], [], 5, (KeyRange("u1"),))) == 7
    return parts[0].read_ts, [each.collection for each in parts[0].reads]


def range_skipped() -> object:
    """Which of two ranges a commit says."""
    read = [KeyRange("u1", b"u2/a", b"u2/b"), KeyRange("u1", b"u2/c", b"u2/d")]
    return inserter.keys_read([], (), (), read)


def phantoms_unnamed() -> object:
    """The keys that a commit says of a row that goes, and of one that comes."""
    image = ddl(empty_image(), "create table t (a int primary key)")
    table = image.item("u1")
    row = pa.table({"a": pa.array([7], pa.int32())})
    gone = Rows(table, row, 5, removed=table.columns, uniques=uniques_of(table, image))
    return [inserter.keys_written([each])[0].lower for each in (gone, replace(gone, removed=None))]


def window_as_free() -> object:
    """Why a transaction is refused that read before anything is remembered, of all tables and of one's keys."""
    log = Log()
    log.write("u1", 0, 1)
    read_ts = log.state.last_ts
    log.write("u1", 1, 2)
    forgetful = log.state._replace(since=log.state.last_ts, managers=Map())
    part = CommitPart("p", read_ts=read_ts, reads=(KeyRange("u1"),))
    manager = Manager(floor=10, last=20).check(KeyRange("u1", b"a", b"b"), 5)
    return oracle_fold._part(forgetful, part, log.state.last_ts + 1)[1].reason, manager and manager[0]


def unanswered_again() -> object:
    """What the session is told of a commit of which nobody knows whether it happened."""

    async def commit(*_: object) -> None:
        raise Indeterminate("no answer")

    block = SimpleNamespace(tables_read=(), keys_read=(), ranges_read={}, read_ts=None)
    commits = Commits(SimpleNamespace(commit=commit), None)
    try:
        asyncio.run(commits.commit(SimpleNamespace(transaction=block, serializable=True, written_ts=0), []))
    except TidemarkError as error:
        return type(error)
    return None


def unknown_version_skipped() -> object:
    """What this process writes, and whether it admits a newer version of it."""
    value = encode_proposal(Proposal("p", "test", 10, 20, (put(model.SETTINGS, "k", Setting("v")),)))
    newer = bytes((value[0], 2)) + value[2:]
    _, verdict = admit(fold(EMPTY, [Entry(0, GENESIS)]), Entry(1, newer))
    return value[1], verdict.kind


def keys_looked_up() -> object:
    """What an INSERT's commit says of the keys that were looked up."""
    return keys_hung_on(["insert into t values (1)"])


def upsert_unhinged() -> object:
    """Likewise of an INSERT that updates what it meets."""
    return keys_hung_on(
        ["insert into t values (1)", "insert into t values (1) on conflict (a) do update set n = t.n + 1"]
    )


def keys_hung_on(statements: list[str]) -> int:
    """How many keys the commit of the last of ``statements`` hangs on."""

    async def story() -> int:
        async with World().adapter("a") as a:
            await a.sql("create table t (a int primary key, n int default 1)")
            *before, last = statements
            for each in before:
                await a.sql(each)
            parts, send = [], a.oracle.commit_async

            def noted(part: CommitPart, *rest: object) -> object:
                parts.append(part)
                return send(part, *rest)

            a.oracle.commit_async = noted
            await a.sql(last)
            return len(parts[0].reads)

    return asyncio.run(story())


def reserve_given_back() -> object:
    """Where a sequence is put back to by who gave 3 of it, when others have come to 9."""
    held = SequenceHeld(last=3, end=5, newest=5, set=0)
    held.runs.append(range(4, 6))
    back = held.without(Position(9))
    return back and back.last


def segment_before_rows() -> object:
    """Files in the store when the log is told of one."""
    with small_world() as world:
        world.insert("u1", *((n, n, 1) for n in range(4)))
        sealer, seen = world.sealer(), []
        tell = sealer._segments.exchange
        sealer._segments.exchange = lambda asked: seen.append(len([*world.store.files()])) or tell(asked)
        assert sealed(world, sealer).net == 4 and len([*world.store.files()]) == 1
        return seen


def compacted_over() -> object:
    """Rows there are when something is sealed by another while all is written anew."""
    with small_world() as world:
        world.insert("u1", *((n, n, 1) for n in range(40)), (50, 50, 2))
        sealer = world.sealer()
        sealed(world, sealer)
        world.insert("u1", (50, 50, -2), (51, 51, 1))
        world.passes(1)
        write = sealer._files.write

        def late(*given):
            made = write(*given)
            world.sealer(rows=1).look()
            return made

        sealer._files.write = late
        sealer._rewrite("u1", sealer._segments.state.sealed("u1"))
        return sum(each.net for each in world.segments().state.sealed("u1").files)


def merged_twice() -> object:
    """What the fold says of a merge of a file that is gone."""
    path = new_path("u1", 1, "ab")
    record = SegmentsRecord(Token("w", 1, 1), SegmentsKind.EXCHANGE, 1, Exchange("u1", removed=(path,)))
    return segments_fold._APPLY[SegmentsKind.EXCHANGE](NO_SEGMENTS, record)[1].reason


def held_file_collected() -> object:
    """Whether who fetched a file has it when the store has it no more."""
    with TemporaryDirectory() as directory:
        store, mine = DirectoryStore(Path(directory) / "store"), Path(directory) / "mine"
        store.write("u1/a.parquet", b"rows")
        store.fetch("u1/a.parquet", mine)
        store.delete("u1/a.parquet")
        return mine.exists()


def task_counted_twice() -> object:
    """Whose word says which rows of tasks are bound; what it does is in ``tests/compute/test_outlet.py``."""
    return Outlet.collected.__module__


@contextmanager
def small_world() -> Iterator[SealerWorld]:
    with TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patching:
        world = SealerWorld(patching, Path(directory))
        world.create("u1")
        try:
            yield world
        finally:
            world.close()


def sink_batch_twice() -> object:
    """From which note a writer goes on, of two."""
    sink = SimpleNamespace(id="u9", topic="t", progress_topic="t-progress")
    topic = SinkTopic(sink, "log", dict, lambda: False)
    notes = [(topic._key, b'{"timestamp": 5}'), (topic._key, b'{"timestamp": 7}'), (topic._claim_key, b"mine")]
    said = [SimpleNamespace(error=lambda: None, key=lambda k=key: k, value=lambda v=value: v) for key, value in notes]
    consumer = SimpleNamespace(list_topics=lambda *_: None, assign=lambda _: None, poll=lambda _: said[0],
                               consume=lambda *_: said[1:])  # fmt: skip
    return topic._read(consumer, b"mine")


def upsert_forgets_key() -> object:
    """Of how many keys a source that begins knows what they are, of two."""
    with closing(KeyedState()) as state:
        state.load([[(b"a", b"1", 1), (b"b", b"2", 1)]])
        return len(state)


EFFECTS: dict[str, tuple[Callable[[], object], object, object]] = {
    "acks_one": (acks_one, ("all", True), ("1", False)),
    "list_offsets_read": (list_offsets_read, 2, 0),
    "blind_resend": (blind_resend, True, False),
    "wall_clock_oracle": (wall_clock_oracle, (False, False), (True, True)),
    "skipped_apply_write": (skipped_apply_write, 2, 0),
    "early_catalog": (early_catalog, [], [Dropped]),
    "lost_commands": (lost_commands, ["u1", "u2", "u3"], ["u1", "u3"]),
    "double_view_commit": (double_view_commit, 99, 98),
    "retention": (retention, ("-1", False), ("5000", True)),
    "unknown_version_skipped": (
        unknown_version_skipped, (1, VerdictKind.MALFORMED), (2, VerdictKind.ACCEPTED),
    ),
    "history_for_ever": (history_for_ever, "loaded", "too old"),
    "restarted_into": (restarted_into, (["u1"], True, False), ([], False, False)),
    "topic_by_name": (topic_by_name, (False, True, True), (True, False, False)),
    "moved_early": (moved_early, False, True),
    "reads_unchecked": (reads_unchecked, (5, ["u1"]), (None, [])),
    "range_skipped": (
        range_skipped,
        (KeyRange("u1", b"u2/a", b"u2/b"), KeyRange("u1", b"u2/c", b"u2/d")), (KeyRange("u1", b"u2/a", b"u2/b"),),
    ),
    "phantoms_unnamed": (phantoms_unnamed, [b"u2/\x81\x07", b"u2/\x81\x07"], [b"u2/\x81\x07", b"-"]),
    "window_as_free": (window_as_free, (Reason.SNAPSHOT_TOO_OLD, Reason.SNAPSHOT_TOO_OLD), (None, None)),
    "unanswered_again": (unanswered_again, Indeterminate, Conflict),
    "keys_looked_up": (keys_looked_up, 1, 0),
    "upsert_unhinged": (upsert_unhinged, 1, 0),
    "reserve_given_back": (reserve_given_back, None, 3),
    "segment_before_rows": (segment_before_rows, [1], [0]),
    "compacted_over": (compacted_over, 41, 42),
    "merged_twice": (merged_twice, Reason.NOT_THERE, None),
    "held_file_collected": (held_file_collected, True, False),
    "task_counted_twice": (task_counted_twice, "controllers.compute.outlet", "judge.planted.patches"),
    "sink_batch_twice": (sink_batch_twice, 7, 5),
    "upsert_forgets_key": (upsert_forgets_key, 2, 1),
}  # fmt: skip
"""What to look at, what it is without the bug, and what it is with it."""


def test_every_bug_is_shown_to_take_effect() -> None:
    assert EFFECTS.keys() == BUGS.keys()


@pytest.mark.parametrize("name", BUGS)
def test_a_bug_takes_effect_and_is_gone_afterwards(name: str) -> None:
    look, correct, wrong = EFFECTS[name]
    assert look() == correct
    with BUGS[name].apply():
        assert look() == wrong
    assert look() == correct
    applied = BUGS[name].apply()
    assert look() == wrong
    applied.undo()
    applied.undo()
    assert look() == correct


def test_all_at_once_come_and_go() -> None:
    before = (DdlQueue._plan, PeekQueue._judge, Stepper.feed, Oracle.barrier, topics._durable, codec.released_versions)
    applied = [bug.apply() for bug in BUGS.values()]
    for each in reversed(applied):
        each.undo()
    after = (DdlQueue._plan, PeekQueue._judge, Stepper.feed, Oracle.barrier, topics._durable, codec.released_versions)
    assert after == before
    assert decode_proposal(GENESIS).proposal_id == "g"


def test_a_patch_that_fails_leaves_nothing() -> None:
    class Owner:
        value = 1

    def patch(planted: Applied) -> None:
        planted.replace(Owner, "value", 2)
        raise RuntimeError("the product has changed")

    bug = BUGS["acks_one"]
    broken = type(bug)(bug.name, bug.text, bug.processes, "", "", "", (), patch)
    with pytest.raises(RuntimeError):
        broken.apply()
    assert Owner.value == 1


def test_the_table_in_the_docs_and_the_simulation_have_the_same_bugs() -> None:
    lines = (ROOT / "docs" / "planted-bugs.md").read_text().splitlines()
    told = [line.split("`")[1] for line in lines if line.startswith("| `")]
    assert told == list(BUGS)
    assert [name for name, bug in BUGS.items() if bug.simulated] == list(simulated.BUGS)


def test_names() -> None:
    assert [bug.name for bug in chosen("retention,acks_one")] == ["retention", "acks_one"]
    with pytest.raises(ValueError, match="nothing_like_it"):
        chosen("acks_one,nothing_like_it")
    assert {kind_of(m) for m in ("adapter", "subscribers", "controllers.compute", "controllers.storage", "x")} == {
        "adapter", "subscriber", "compute", "storage", "clients",
    }  # fmt: skip


@pytest.mark.parametrize("arguments", [[], ["acks_one"], ["acks_one", "adapter"], ["nothing_like_it", "--", "adapter"]])
def test_the_launcher_refuses_what_makes_no_sense(arguments: list[str], capsys) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err


def test_the_launcher_plants_what_concerns_the_process_and_becomes_it() -> None:
    """As the stack starts its children: isolated from the working directory, and told apart by the module."""
    for module, planted in (("adapter", ["blind_resend"]), ("subscribers", ["lost_commands"])):
        done = subprocess.run(
            [sys.executable, "-P", "-m", "judge.planted", "blind_resend,lost_commands", "--", module, "--help"],
            capture_output=True, text=True, timeout=60, env={"PYTHONPATH": str(ROOT)}, cwd="/",
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert f"python -m {module}" in done.stdout
        assert json.loads(done.stderr.splitlines()[0]) == {"event": "planted", "bugs": planted, "module": module}


def test_the_product_has_no_switch() -> None:
    """Nothing outside of the judge knows of any bug by name, nor of who plants them."""
    for path in ROOT.glob("*/**/*.py"):
        inside = path.relative_to(ROOT).parts
        if inside[0] in ("tests", "judge", ".tidemark"):
            continue
        text = path.read_text()
        assert "judge.planted" not in text, path
        assert not re.search(r"\b(blind_resend|list_offsets_read|wall_clock_oracle|double_view_commit)\b", text), path


def test_commands_are_closed_by_an_advance_also_when_some_are_lost() -> None:
    """The bug must be one that a controller cannot notice by itself: what it gets is a proper log of commands."""
    with BUGS["lost_commands"].apply():
        stepper = Stepper("storage", CatalogTs(20), 2)
        sent = []
        upper = 10
        for offset, value in enumerate([GENESIS, *(
            encode_proposal(Proposal(f"p{n}", "test", 10 * n, 10 * n + 10, (put(model.ITEMS, f"u{n}", table(n)),)))
            for n in (1, 2, 3)
        )]):  # fmt: skip
            sent += stepper.feed(Entry(offset, value))
            upper += 10
    assert [c.kind for c in sent] == [Kind.CREATE, Kind.ADVANCE_CATALOG_FRONTIER] * 2
    assert [c.lower for c in sent] == [20, 20, 30, 30]
