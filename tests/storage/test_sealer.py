"""Rows that are sealed, merged, cut and collected, in worlds of journals in memory: no reader can tell (I5)."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from catalog_log.objects import Column, Table
from catalog_log.records import GIVING_UP_FROM
from collection.binding import RETIRED, Binding
from collection.columns import DIFF
from controllers.compute.feed import Feed
from controllers.compute.relation import Relation
from controllers.storage import clustering as apart
from controllers.storage import cutting, failing, retiring, rewriting, sealed_files, sealing
from controllers.storage import sealer as module
from controllers.vacuum import WAITING_MAX, Asked, Won
from journal.errors import Conflict, Indeterminate, Rejected, Unavailable
from oracle.model import CommitPart, Offsets
from oracle.unbound import CLAIM_MS
from segments.parquet import chunks
from segments.pruning import Op, Predicate, may_match
from segments.reader import RENEWED_TIMEOUT_S, SegmentReader
from segments.statistics import shown
from segments.store import DirectoryStore
from tests.compute.test_idle_views import SPARK, contents
from tests.storage.sealer_world import KV, NAMES, WAITS, Killed, World, sealed, vacuumed


def test_what_is_old_and_much_is_sealed_and_the_topic_is_cut_later(world: World) -> None:
    for n in range(4):
        world.insert("u1", (n, n, 1))
    sealer = world.sealer()
    assert sealed(world, sealer).net == 4
    world.check("u1")
    assert world.topics.starts["u1"] == 0, "somebody may be reading it"
    world.passes(WAITS.grace_s + 1)
    sealer.look()
    assert world.topics.starts["u1"] == 4
    world.insert("u1", (9, 9, 1), (0, 0, -1))
    world.check("u1")


def test_what_is_sealed_while_a_cut_waits_is_cut_when_its_own_time_has_come(world: World) -> None:
    sealer, sealed_at = world.sealer(), []
    for n in range(4):
        for k in range(4):
            world.insert("u1", (k, n, 1))
        sealed(world, sealer)
        sealed_at.append(world.clock.now)
    assert world.clock.now > sealed_at[0] + 2 * module.MOVE_EVERY_S
    for n, at in enumerate(sealed_at):
        world.passes(at + WAITS.grace_s + 1 - world.clock.now)
        sealer.look()
        assert world.topics.starts["u1"] == 4 * (n + 1)
        world.check("u1")
    assert sealer.status()["cuts"] == 4


def test_history_that_is_kept_is_read_at_each_timestamp_and_sealed_later(world: World) -> None:
    world.create("u2")
    world.keep("u1", 1000)
    for n in range(8):
        for name in ("u1", "u2"):
            world.insert(name, (n, n, 1), *([(n - 1, n - 1, -1)] if n % 2 else []))
        world.passes(10)
    sealer = world.sealer()
    assert sealed(world, sealer, "u2").changes and not sealed(world, sealer).files, "nobody reads its past"
    assert world.oracle.state.since_of("u1") < world.model["u1"][1][0] < world.oracle.state.since_of("u2")
    world.check("u1")
    world.check("u2")
    for ts, there in world.model["u1"][1:]:
        assert world.read("u1", ts) == Counter({row: n for row, n in there.items() if n})
    # What is older than that goes, and no other; and all of it once nobody asks for it any more.
    world.passes(1000 - 125)
    assert sealed(world, sealer).changes and sealer._segments.state.sealed("u1").through < world.model["u1"][-1][0]
    world.check("u1")
    world.passes(WAITS.grace_s + 1)
    sealer.look()
    assert 0 < world.topics.starts["u1"] <= 8
    world.check("u1")
    world.settings.clear()
    for n in range(4):
        world.insert("u1", (50 + n, 0, 1))
    assert sealed(world, sealer).through == world.model["u1"][-1][0]
    assert world.oracle.state.since_of("u1") == world.oracle.state.since and not world.oracle.state.kept
    world.check("u1")


def test_what_is_named_twice_is_vacuumed_once(world: World) -> None:
    world.insert("u1", (1, 1, 1))
    world.passes(1)
    won = vacuumed(world.sealer(rows=1000), "u1", "u1")
    assert (won.sealed, won.files, won.failing) == (1, (0, 1), {})
    world.check("u1")


def test_vacuum_seals_what_may_be_however_little_and_collects_what_nobody_holds(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.create("u2")
    sealer = world.sealer(rows=1000)
    for n in range(4):
        world.insert("u1", (n, n, 1))
        world.insert("u2", (n, n, 1))
    world.passes(1)
    assert vacuumed(sealer) == Won(), "little stays where it is, where nothing is named"
    found = vacuumed(sealer, "u1", "nobody's")
    assert (found.sealed, found.files, found.late, found.failing) == (4, (0, 1), False, {})
    assert sealer._segments.state.sealed("u1").net == 4 and not sealer._segments.state.sealed("u2").files
    world.check("u1")
    monkeypatch.setattr(sealing, "FILE_ROWS", 10)
    monkeypatch.setattr(sealed_files, "FILE_ROWS", 10)
    world.insert("u1", *((k, 0, 1) for k in range(30)))
    world.passes(1)
    vacuumed(sealer, "u1")
    world.insert("u1", *((k, 0, -1) for k in range(0, 30, 4)))
    world.passes(1)
    assert vacuumed(sealer, "u1").sealed == 8
    before = sealer._segments.state.sealed("u1")
    assert before.changes > before.net == 26 and vacuumed(sealer, "u1").files == (len(before.files),) * 2
    world.check("u1")
    found = vacuumed(sealer, "u1", full=True)
    after = sealer._segments.state.sealed("u1")
    assert all(each.plain for each in after.files) and after.changes == after.net == 26
    assert found.files == (len(before.files), len(after.files)) and found.waiting
    assert found.bytes[1] == sum(each.size for each in after.files)
    again = vacuumed(sealer, "u1", full=True)
    assert again.files == (len(after.files),) * 2 and again.waiting == found.waiting, "there is nothing to be done"
    world.check("u1")
    world.passes(WAITS.grace_s + 1)
    found = vacuumed(sealer, "u1")
    assert found.collected and not found.waiting and world.topics.starts["u1"] == 4
    assert {each.path for each in world.store.files()} == {each.path for each in after.files}
    world.check("u1")


def test_vacuum_leaves_history_that_is_kept(world: World) -> None:
    world.keep("u1", 1000)
    for n in range(4):
        world.insert("u1", (n, n, 1))
        world.passes(1)
    sealer = world.sealer()
    found = vacuumed(sealer, "u1", full=True)
    assert (found.sealed, found.recent) == (0, 4), "and says of how much"
    assert world.oracle.state.since_of("u1") < world.model["u1"][1][0]
    world.check("u1")


def test_a_vacuum_ends_in_time_and_what_it_did_stays(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SEAL_FACTOR", 1)
    for n in range(6):
        world.insert("u1", (n, n, 1))
    world.passes(1)
    sealer = world.sealer(rows=2)
    write = sealer._write

    def slowly(*args):
        world.clock.now += 4
        return write(*args)

    sealer._write = slowly
    found = vacuumed(sealer, "u1", timeout_s=5)
    assert found.late and found.sealed == 4
    world.check("u1")
    found = vacuumed(sealer, "u1")
    assert not found.late and found.sealed == 2


def test_who_waits_for_a_vacuum_is_answered_whatever_happens(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.create("u2")
    for name in ("u1", "u2"):
        for n in range(4):
            world.insert(name, (n, n, 1))
    world.passes(1)
    sealer = world.sealer()
    write = sealer._write

    def broken(name: str, *args):
        if name == "u1":
            raise OSError(28, "No space left on device")
        return write(name, *args)

    sealer._write = broken
    found = vacuumed(sealer, "u1", "u2")
    assert found.failing.keys() == {"u1"} and "No space" in found.failing["u1"] and found.sealed == 4
    monkeypatch.setattr(module, "kept_now", lambda *_: (_ for _ in ()).throw(Unavailable("the broker is away")))
    with pytest.raises(Unavailable, match="broker is away"):
        vacuumed(sealer, "u2")
    monkeypatch.setattr(module, "LOOK_S", 0.01)
    waiting = [sealer.vacuum(Asked()) for _ in range(WAITING_MAX)]
    with pytest.raises(Rejected) as full:
        sealer.vacuum(Asked())
    assert full.value.sqlstate == "53400"
    sealer.stop()
    sealer.run()
    for each in waiting:
        with pytest.raises(Unavailable, match="stopping"):
            each.result(0)
    with pytest.raises(Unavailable, match="stopping"):
        sealer.vacuum(Asked())


def test_what_is_little_or_new_stays_on_its_topic(world: World) -> None:
    sealer = world.sealer(rows=3)
    world.insert("u1", (1, 1, 1))
    world.insert("u1", (2, 2, 1))
    assert sealed(world, sealer).files == ()
    world.insert("u1", (3, 3, 1))
    sealer.look()
    assert sealer._segments.state.sealed("u1").files == (), "its history is still told apart"
    assert sealed(world, sealer).net == 3


def test_what_cancels_out_goes(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often a row changes, what is kept of it is within twice what there is; also where that is many parts."""
    monkeypatch.setattr(sealing, "FILE_ROWS", 10)
    monkeypatch.setattr(sealed_files, "FILE_ROWS", 10)
    sealer = world.sealer(rows=5)
    world.insert("u1", *((k, 0, 1) for k in range(60)))
    for v in range(8):
        world.insert("u1", *(c for k in range(60) for c in ((k, v, -1), (k, v + 1, 1))))
        found = sealed(world, sealer)
        assert found.net == 60 and found.changes <= 2 * 60 + 5
        world.check("u1")
    assert sealed(world, sealer).changes < 200
    # Files that went are collected, and those that are there stay.
    before = len(list(world.store.files()))
    world.passes(WAITS.grace_s + 1)
    sealer.look()
    left = {each.path for each in world.store.files()}
    assert left == {each.path for each in sealer._segments.state.sealed("u1").files} and len(left) < before
    world.check("u1")


class Counted(DirectoryStore):
    """Ends the process where more is written than there can be reason to."""

    left = 200

    def write(self, path: str, data: bytes, begun: bool = False) -> None:
        self.left -= 1
        if not self.left:
            raise Killed
        super().write(path, data, begun)


def test_what_cancels_out_goes_where_one_part_has_almost_all(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns that tell most rows apart may be of types that do not count for the parts."""
    monkeypatch.setattr(sealing, "FILE_ROWS", 10)
    monkeypatch.setattr(sealed_files, "FILE_ROWS", 10)
    monkeypatch.setattr(rewriting, "parts", lambda table, _keys, _count: np.zeros(table.num_rows, np.int64))
    world.store = Counted(world.path / "store")
    sealer = world.sealer(rows=5)
    world.insert("u1", *((k, 0, 1) for k in range(30)))
    for v in range(5):
        world.insert("u1", *((k, v, -1) for k in range(30)), *((k, v + 1, 1) for k in range(30)))
    found = sealed(world, sealer)
    assert found.net == 30 and found.changes == 30
    world.check("u1")


def test_files_that_do_not_get_fewer_are_not_written_over_and_over(world: World) -> None:
    """What takes back rows that are in no file yet; there should be none such, and if there is, others wait for it."""
    world.store = Counted(world.path / "store")
    sealer = world.sealer(rows=5)
    for n in range(6):
        world.insert("u1", *((k, n, -1) for k in range(3)))
    assert sealed(world, sealer).net == -18
    for n in range(6):
        world.insert("u1", *((k, n, 1) for k in range(3)))
    assert sealed(world, sealer).changes == 0
    world.check("u1")


def test_small_files_become_one(world: World) -> None:
    sealer = world.sealer(rows=3)
    for n in range(20):
        world.insert("u1", (n, n, 1))
        sealed(world, sealer)
    assert 1 <= len(sealer._segments.state.sealed("u1").files) <= 3
    world.check("u1")


def test_files_are_sorted_and_the_log_says_what_they_hold(world: World) -> None:
    sealer = world.sealer(rows=3)
    world.insert("u1", (5, 1, 1), (2, 7, 1), (2, 3, 1), (9, -1, 1))
    [file] = sealed(world, sealer).files
    [piece] = chunks(file, world.store.read(file.path), KV)
    assert piece.column("k").to_pylist() == [2, 2, 5, 9] and piece.column("v").to_pylist() == [3, 7, 1, -1]
    k, v = {"min": "2", "max": "9", "nulls": 0}, {"min": "-1", "max": "7", "nulls": 0}
    assert dict(shown(file)) == {"c1": k, "c2": v}
    told = sealer.status()
    assert told["files"][0]["columns"] == dict(shown(file))
    assert sum(each["files"] for each in told["collections"].values()) == told["files_in_all"]
    for change in ((1, 1, 1), (2, 7, -1), (3, 3, 1)):
        world.insert("u1", change)
    [merged] = sealed(world, sealer).files
    assert dict(shown(merged))["c1"]["min"] == "1"
    world.check("u1")


def test_files_that_hold_one_key_are_kept_apart(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that come in any order: what is looked for by key is in few files, however many there are."""
    monkeypatch.setattr(sealing, "FILE_ROWS", 10)
    monkeypatch.setattr(sealed_files, "FILE_ROWS", 10)
    monkeypatch.setattr(apart, "SAMPLED", 2)
    world.store = Counted(world.path / "store")
    world.store.left = 600
    world.cluster("u1", "v")
    sealer, rng = world.sealer(rows=5), random.Random(3)
    values = rng.sample(range(1_000), 300)
    most = 0
    for n in range(0, 300, 10):
        world.insert("u1", *((n + m, values[n + m], 1) for m in range(10)))
        files = sealed(world, sealer).files
        most = max(most, len(holding(files, 500)))
        assert len(apart.crowd(files, KV, (1,))) == 0
    assert len(files) > 2 * apart.CROWD and most <= apart.CROWD
    for file in files:
        [piece] = chunks(file, world.store.read(file.path), KV)
        assert piece.column("v").to_pylist() == sorted(piece.column("v").to_pylist())
    world.check("u1")
    vacuumed(sealer, "u1", full=True)
    files = sealer._segments.state.sealed("u1").files
    assert max(len(holding(files, v)) for v in values) == 1, "all that can be done"
    world.check("u1")
    # A key that all rows have cannot be kept apart, and is not written over and over.
    for n in range(0, 200, 10):
        world.insert("u1", *((n + m, 2_000, 1) for m in range(10)))
        sealed(world, sealer)
    world.check("u1")
    # Most of one key and some of others, written anew because half of it went.
    for n in range(0, 190, 38):
        world.insert("u1", *((n + m, 2_000, -1) for m in range(38)))
    found = sealed(world, sealer)
    assert found.net == 310 and found.changes == 310
    world.check("u1")


def holding(files, value: int) -> list:
    """Those that may hold a ``v``."""
    return [each for each in files if may_match(each, [Predicate("c2", "int8", Op.EQUAL, (value,))])]


def test_where_older_code_may_be_beside_us_the_log_says_nothing_of_what_files_hold(world: World) -> None:
    """And what such a log has goes on where the newer form is allowed: files of which nobody knows, and others."""
    older = world.sealer(rows=3, measures=False)
    world.insert("u1", *((n, n, 1) for n in range(40)))
    [file] = sealed(world, older).files
    assert file.statistics == b"" and older._segments.state.record_version == 1
    older.checkpoint()
    sealer = world.sealer(rows=3)
    for n in range(100, 104):
        world.insert("u1", (n, n, 1))
    found = sealed(world, sealer).files
    assert [each.statistics != b"" for each in found] == [False, True]
    assert sealer._segments.state.record_version == 2
    sealer.checkpoint()
    assert world.segments().state == sealer._segments.state, "as somebody has it who begins now"
    asked = [Predicate("c1", "int4", Op.AT_LEAST, (500,))]
    assert [may_match(each, asked) for each in found] == [True, False]
    world.check("u1")


def test_a_gap_in_a_table_is_cut_once_its_writer_had_time_to_come_back(world: World) -> None:
    for n in range(3):
        world.insert("u1", (n, n, 1))
    world.insert("u1", (7, 7, 1), garbage=True)
    sealer = world.sealer()
    assert sealed(world, sealer).net == 4
    world.passes(WAITS.grace_s + 1)
    sealer.look()
    assert world.topics.starts["u1"] == 3, "it may still be bound"
    world.check("u1")
    world.passes(WAITS.patience_s)
    sealer.look()
    sealer.look()
    assert sealer.status()["given_up"] == 1
    assert world.oracle.state.bound["u1"].coverage[NAMES.data("u1"), 0] == ((0, 5),)
    world.check("u1")
    world.passes(WAITS.grace_s + 1)
    sealer.look()
    assert world.topics.starts["u1"] == 5
    world.insert("u1", (9, 9, 1), (0, 0, -1))
    world.check("u1")


def test_who_comes_back_in_time_is_bound_and_who_comes_too_late_is_refused(world: World) -> None:
    sealer = world.sealer()
    for n in range(4):
        world.insert("u1", (n, n, 1))
        world.write_late("u1", 100 + n, n)
        world.insert("u1", (10 + n, n, 1))
    assert sealed(world, sealer).net == 8
    world.passes(WAITS.patience_s - 1)
    sealer.look()
    late, world.late = world.late, world.late[:2]
    world.commit_late()
    world.check("u1")
    world.passes(2)
    sealer.look()
    assert sealer.status()["given_up"] == 2
    world.late = late[2:]
    with pytest.raises(Conflict, match="concurrent"):
        world.commit_late()
    world.insert("u1", (20, 0, 1))
    assert sealed(world, sealer).net == 11
    world.passes(WAITS.grace_s + 1)
    sealer.look()
    assert world.topics.starts["u1"] == 13
    world.check("u1")


def test_what_is_claimed_is_not_given_up(world: World) -> None:
    """As by a load of an hour; and whoever died while it claimed keeps nothing for long."""
    sealer = world.sealer()
    for n in range(4):
        world.insert("u1", (n, n, 1))
    world.write_late("u1", 100, 0)
    world.insert("u1", (5, 5, 1))
    assert sealed(world, sealer).net == 5
    claim = Offsets("u1", world.late[0][2])
    for _ in range(40):
        asyncio.run(claimed(world, claim))
        world.passes(CLAIM_MS / 1000 / 3)
        sealer.look()
        assert world.topics.starts["u1"] <= 4
    world.commit_late()
    world.check("u1")
    world.write_late("u1", 101, 0)
    world.insert("u1", (6, 6, 1))
    claim = Offsets("u1", world.late[0][2])
    asyncio.run(claimed(world, claim))
    sealed(world, sealer)
    world.passes(CLAIM_MS / 1000 + WAITS.patience_s)
    sealer.look()
    with pytest.raises(Conflict):
        world.commit_late()


def test_who_renews_in_time_keeps_its_rows_though_the_logs_time_jumps(world: World) -> None:
    """As where a machine slept: all claims lapse at once, and nobody could renew one meanwhile."""
    sealer = world.sealer()
    for n in range(4):
        world.insert("u1", (n, n, 1))
    world.write_late("u1", 100, 0)
    world.insert("u1", (5, 5, 1))
    sealed(world, sealer)
    claim = Offsets("u1", world.late[0][2])
    for _ in range(10):
        asyncio.run(claimed(world, claim))
        world.passes(60)
        sealer.look()
    world.wall_ms += 3_600_000
    world.oracle.advance("table", world.wall_ms).result(10)
    for _ in range(12):
        world.passes(5)
        sealer.look()
    world.commit_late()
    world.check("u1")


async def claimed(world: World, claim: Offsets) -> None:
    await world.oracle.claim_async(claim)


def test_bindings_do_not_grow_with_what_was_given_up(world: World) -> None:
    """Nor does what the log of segments knows; and who lags behind in either begins anew, or reads the same."""
    sealer, late = world.sealer(), world.segments()
    before, stale = type(late).state, None
    gaps = 0
    for n in range(6):
        for k in range(retiring.RUNS_LEFT):
            world.insert("u1", (k, n, 1), garbage=True)
            gaps += 1
        sealed(world, sealer)
        if n == 3:
            stale = late.state
        for waits in (WAITS.patience_s, 0, WAITS.grace_s + 1):
            world.passes(waits)
            sealer.look()
        assert len(world.oracle.state.bound["u1"].base) <= 2 * retiring.RUNS_LEFT
        world.check("u1")
        if n % 2:
            sealer = world.sealer()
    assert world.oracle.state.bound["u1"].base[0].run.attempt == RETIRED
    [sealed_through] = sealer._segments.state.sealed("u1").coverage.values()
    assert len(sealed_through) <= 2 * retiring.RUNS_LEFT
    assert world.topics.starts["u1"] == 2 * gaps
    told = []

    def caught_up(timeout_s):
        told.append(timeout_s)
        return type(late).caught_up(late, timeout_s)

    late.caught_up = caught_up
    try:
        type(late).state = property(lambda self: stale if self is late and not told else before.fget(self))
        assert world.read("u1", world.oracle.state.last_ts, late) == world.expected("u1", world.wall_ms)
    finally:
        type(late).state = before
    assert told, "it had not heard of where the rows are"


def test_two_give_up_each_gap_once_and_in_an_older_format_none_does(world: World) -> None:
    one, other, older = world.sealer(), world.sealer(), world.sealer(format_version=GIVING_UP_FROM - 1)
    for n in range(4):
        world.insert("u1", (n, n, 1), garbage=True)
    sealed(world, older)
    world.passes(WAITS.patience_s)
    older.look()
    assert world.oracle.state.record_version == 1
    for waited in (0, WAITS.patience_s):
        world.passes(waited)
        one.look()
        other.look()
    assert (one.status()["given_up"], other.status()["given_up"], older.status()["given_up"]) == (4, 0, 0)
    world.check("u1")


def test_who_reads_what_was_cut_meanwhile_begins_anew(world: World) -> None:
    """Somebody who has not heard of the exchange when the topic is cut, and then does."""
    for n in range(4):
        world.insert("u1", (n, n, 1))
    late = world.segments()
    real = late.caught_up
    stale = late.state
    sealer = world.sealer()
    sealed(world, sealer)
    world.passes(WAITS.grace_s + 1)
    sealer.look()
    state = type(late).state
    told = []

    def caught_up(timeout_s):
        told.append(timeout_s)
        return real(timeout_s)

    late.caught_up = caught_up
    try:
        type(late).state = property(lambda self: stale if self is late and not told else state.fget(self))
        assert world.read("u1", world.oracle.state.last_ts, late) == world.expected("u1", world.wall_ms)
    finally:
        type(late).state = state
    assert told


def test_rows_that_are_gone_for_good_are_an_error_at_once(world: World) -> None:
    """All views of a cluster wait for the tick that reads them."""
    for n in range(4):
        world.insert("u1", (n, n, 1))
    sealer = world.sealer()
    [file] = sealed(world, sealer).files
    world.store.delete(file.path)
    began = time.monotonic()
    with pytest.raises(Unavailable) as gone:
        world.read("u1", world.oracle.state.last_ts)
    assert time.monotonic() - began < RENEWED_TIMEOUT_S / 2
    assert gone.value.sqlstate == "58P01"


def test_where_all_that_was_sealed_cancelled_out_the_first_file_has_a_place(world: World) -> None:
    for diff in (1, -1):
        world.insert("u1", (1, 1, diff), (2, 2, diff), (3, 3, diff))
    sealer = world.sealer()
    assert not sealed(world, sealer).files
    for n in range(3):
        world.insert("u1", (n, 9, 1))
    assert len(sealed(world, sealer).files) == 1
    world.check("u1")


def test_two_sealers_seal_each_row_once(world: World) -> None:
    one, other = world.sealer(), world.sealer()
    for n in range(12):
        world.insert("u1", (n, n, 1))
        world.passes(module.MOVE_EVERY_S)
        one.look()
        other.look()
    assert one._segments.state.sealed("u1").net == 12
    world.check("u1")
    held = {each.path for each in one._segments.state.sealed("u1").files}
    gone = set(one._segments.state.gone.keys())
    assert {each.path for each in world.store.files()} == held | gone, "who came second removed its own"


def test_who_merges_what_another_sealed_meanwhile_keeps_columns_that_were_added_meanwhile(world: World) -> None:
    """One that was busy, or stopped, between looking at the catalog and coming to a collection."""
    for n in range(4):
        world.insert("u1", (n, n, 1))
    sealed(world, world.sealer())
    slow, other = world.sealer(), world.sealer()
    one = slow._one

    def then(found) -> None:
        wide = (*KV, Column("x", "int4", id=3))
        world.items["u1"] = Table("u1", "s1", "u1", "", wide)
        for n in range(4):
            rows = pa.table([pa.array([n], pa.int32()), pa.array([9]), pa.array([7], pa.int32()), pa.array([1])],
                            names=["k", "v", "x", DIFF])  # fmt: skip
            [run] = world.topics.write("u1", wide, rows, str(n)).result()
            binding = Binding("u1", run._replace(topic=NAMES.data("u1")))
            world.oracle.commit(CommitPart(str(n), (binding,), world.wall_ms + n)).result(10)
        other._merge = lambda *_: False  # it is killed before
        assert len(sealed(world, other).files) == 2
        slow._segments.caught_up(10).result()
        one(found)

    slow._one = then
    assert len(sealed(world, slow).files) == 1
    scratch = world.path / "scratch"
    scratch.mkdir()
    relation = Relation(SPARK, "u1", world.items["u1"].stored, scratch)
    ts = world.oracle.state.last_ts
    try:
        Feed("", world.oracle, world.views, SegmentReader(world.segments(), world.store)).catch_up(
            relation, world.items["u1"], ts
        )
        assert sorted(contents(relation, ts), key=str) == sorted(
            [*((n, n, None) for n in range(4)), *((n, 9, 7) for n in range(4))], key=str
        )
    finally:
        relation.close()


def test_files_of_what_was_dropped_go_and_of_what_is_unknown_stay(world: World) -> None:
    world.create("u200")  # made after the catalog that the sealer knows: its image gives out 100 next
    for name in ("u1", "u200"):
        for n in range(4):
            world.insert(name, (n, n, 1))
    sealer = world.sealer()
    assert sealed(world, sealer).net == 4 and sealed(world, sealer, "u200").net == 4
    del world.items["u1"], world.items["u200"]
    sealer.look()
    assert list(sealer._segments.state.collections) == ["u200"]
    world.passes(WAITS.grace_s + 1)
    sealer.look()
    assert {each.path.split("/")[0] for each in world.store.files()} == {"u200"}


def test_what_nobody_added_is_swept(world: World) -> None:
    sealer = world.sealer()
    sealer.look()
    for n in range(4):
        world.insert("u1", (n, n, 1))

    def lost(_exchange):
        raise Indeterminate("nobody answered")

    exchange, sealer._segments.exchange = sealer._segments.exchange, lost
    sealed(world, sealer)
    [orphan] = world.store.files()
    sealer._segments.exchange = exchange
    (world.path / "store" / "u1" / f"{Path(orphan.path).name}.1234.part").write_bytes(b"half")
    (world.path / "store" / "u1" / "of somebody else").write_bytes(b"x")
    world.passes(failing.AFTER_FAILURE_MAX_S)
    assert sealed(world, sealer).net == 4
    for _ in range(3):
        world.passes(WAITS.orphaned_s + 1)
        sealer.look()
        world.check("u1")
    left = {each.path for each in world.store.files()}
    assert orphan.path not in left and "u1/of somebody else" in left and not any("part" in each for each in left)
    assert sealer._segments.state.sealed("u1").net == 4


def test_cutting_many_topics_keeps_nothing_else_waiting(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that takes its time, and more topics than it answers for within a look."""
    for name in ("u1", "u2", "u3"):
        if name not in world.items:
            world.create(name)
        for n in range(4):
            world.insert(name, (n, n, 1))
    sealer = world.sealer()
    sealed(world, sealer)
    world.passes(WAITS.grace_s + 1)
    asked = []

    def slow(_bootstrap: str, upto, _timeout_s: float) -> None:
        asked.append(upto.topic)
        world.clock.now += cutting.CUTTING_S + 1

    monkeypatch.setattr(cutting.clients, "delete_below", slow)
    for n in range(1, 4):
        sealer.look()
        assert len(set(asked)) == len(asked) == n
    sealer.look()
    assert len(asked) == 3


def test_a_file_that_cannot_be_removed_keeps_no_other_in_the_store(world: World) -> None:
    sealer = world.sealer()
    for n in range(8):
        world.insert("u1", *((10 * n + k, n, 1) for k in range(4)))
        sealed(world, sealer)
    stuck, *others = sorted(sealer._segments.state.gone)
    assert others
    delete = world.store.delete

    def stubborn(path: str) -> None:
        if path == stuck:
            raise Unavailable("a file could not be removed")
        delete(path)

    world.store.delete = stubborn
    world.passes(WAITS.grace_s + 1)
    sealer.look()
    assert list(sealer._segments.state.gone) == [stuck]
    del world.store.delete
    sealer.look()
    assert not sealer._segments.state.gone
    world.check("u1")


def test_a_collection_that_cannot_be_sealed_keeps_no_other_from_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is the matter with it: here the directory for what is spread is full, which is not the store's."""
    monkeypatch.setattr(sealing, "FILE_ROWS", 10)
    monkeypatch.setattr(sealed_files, "FILE_ROWS", 10)
    world.create("u2")
    world.insert("u1", *((k, 0, 1) for k in range(30)))
    sealer = world.sealer(rows=5)
    sealed(world, sealer)
    for v in range(6):
        world.insert("u1", *(c for k in range(30) for c in ((k, v, -1), (k, v + 1, 1))))
    world.insert("u2", *((k, 0, 1) for k in range(8)))

    def full(*_args, **_keywords):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(rewriting.tempfile, "TemporaryFile", full)
        assert sealed(world, sealer, "u2").net == 8
        assert sealer.status()["failing"].keys() == {"u1"}
    world.passes(failing.AFTER_FAILURE_S)
    found = sealed(world, sealer)
    assert found.net == 30 and found.changes <= 2 * 30 + 5
    world.check("u1")
    world.check("u2")
