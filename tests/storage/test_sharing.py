"""Small collections share files: what the oracle's log carries of them goes there, and nobody can tell."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

import pytest

from catalog_log.objects import Column, Table
from catalog_log.records import SHARED_FILES_FROM
from collection.binding import INLINE, RETIRED, Run
from collection.rows import Undecodable
from controllers.storage import failing, sealing, sharing
from controllers.storage import sealer as module
from controllers.storage.sealer import Sealer
from controllers.storage.sharing import newest, sparse
from oracle.records import CARRIED_SEALED
from segments.fold import Sealed
from segments.log import SegmentsLog
from segments.model import Segment, new_path, new_shared_path, part_path, place_of
from segments.records import SHARED_VERSION
from segments.store import DirectoryStore, Unreadable
from tests.storage.sealer_world import KV, WAITS, World

NAMES = [f"u{n}" for n in range(1, 9)]


@pytest.fixture
def many(world: World) -> World:
    """Eight tables with a row each, told apart no more as soon as a sealer looks."""
    for name in NAMES[1:]:
        world.create(name)
    for n, name in enumerate(NAMES):
        world.carry(name, (n, 10 * n, 1))
    return world


def shared(world: World, sealer: Sealer) -> None:
    """Look until everything is done that is due by now; the first look may have to raise the logs' versions."""
    for _ in range(2):
        world.passes(module.MOVE_EVERY_S)
        sealer.look()


def parts(sealer: Sealer, name: str) -> list[Segment]:
    return list(sealer._segments.state.sealed(name).files)


def files(world: World) -> set[str]:
    return {each.path for each in world.store.files()}


def check(world: World, names: Iterable[str] = NAMES) -> None:
    for name in names:
        world.check(name)


def test_many_small_collections_share_a_file_and_need_no_topic(many: World) -> None:
    sealer = many.sealer(carried=1)
    shared(many, sealer)
    assert len(files(many)) == 1 and not any(many.topics.topics.values())
    assert {place_of(part.path).file for name in NAMES for part in parts(sealer, name)} == files(many)
    assert many.oracle.state.held_bytes == 0 and not many.oracle.state.held
    assert [many.oracle.state.bound[name].base[0].run for name in NAMES] == [Run(INLINE, 0, 0, 1, RETIRED, 1)] * 8
    check(many)
    state = many.oracle.state, sealer._segments.state.next_offset
    sealer.look()
    assert (many.oracle.state, sealer._segments.state.next_offset) == state, "there is nothing more to do"
    check(many)


def test_what_is_little_stays_where_it_is(many: World) -> None:
    sealer = many.sealer()
    shared(many, sealer)
    many.oracle.compact(sealer._policy)
    shared(many, sealer)
    assert many.oracle.state.held_for_good and not files(many)


def test_what_is_told_apart_stays_where_it_is(many: World) -> None:
    many.keep("u2", 10_000)
    sealer = many.sealer(carried=1)
    shared(many, sealer)
    assert set(many.oracle.state.held) == {"u2"} or not many.oracle.state.kept
    for name in NAMES:
        many.carry(name, (50, 1, 1))
    sealer.look()
    assert set(many.oracle.state.held) >= set(NAMES), "of what is new nothing is in files"
    check(many)


def test_the_largest_go_until_little_is_left(many: World) -> None:
    for n in range(20):
        many.carry("u3", *((k, n, 1) for k in range(50)))
    sealer = many.sealer(carried=many.oracle.state.held_bytes)
    shared(many, sealer)
    assert set(many.oracle.state.held) == set(NAMES) - {"u3"}
    check(many)


def test_parts_become_one_with_what_comes_later(many: World) -> None:
    sealer = many.sealer(carried=1)
    for n in range(1, 12):
        shared(many, sealer)
        for name in NAMES[:4]:
            many.carry(name, (n, n, 1))
    shared(many, sealer)
    assert all(len(parts(sealer, name)) <= 3 for name in NAMES)
    assert sum(each.changes for each in parts(sealer, "u1")) == 12
    check(many)
    many.passes(WAITS.grace_s + 1)
    sealer.look()
    assert not sealer._segments.state.gone, "of what is elsewhere nothing is kept for readers for ever"
    check(many)


def test_what_is_more_than_a_part_has_a_file_of_its_own(many: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for owner in (sealing, sharing):
        monkeypatch.setattr(owner, "PART_LOADED", 1_000)
    sealer = many.sealer(carried=1)
    shared(many, sealer)
    many.carry("u1", *((k, 7, 1) for k in range(100)))
    shared(many, sealer)
    [file] = parts(sealer, "u1")
    assert place_of(file.path).part is None and file.changes == 101
    many.carry("u1", (9, 9, 1))
    shared(many, sealer)
    assert [place_of(each.path).part is None for each in parts(sealer, "u1")] == [True, False]
    check(many)


def test_what_cancels_out_is_nowhere(many: World) -> None:
    for n, name in enumerate(NAMES):
        many.carry(name, (n, 10 * n, -1))
    sealer = many.sealer(carried=1)
    shared(many, sealer)
    assert not files(many) and not many.oracle.state.held and not parts(sealer, "u1")
    many.carry("u1", (1, 1, 1))
    shared(many, sealer)
    assert len(files(many)) == 1
    check(many)


def test_a_file_goes_once_none_of_its_parts_is_in_use_any_more_and_nobody_may_be_late(many: World) -> None:
    """What is still in use of one that hardly is, is carried over to another."""
    sealer = many.sealer(carried=1)
    shared(many, sealer)
    [first] = files(many)
    for name in NAMES[:6]:
        many.items.pop(name)
    sealer.look()
    many.passes(sharing.SPARSE_LOOK_S)
    shared(many, sealer)
    assert {place_of(part.path).file for name in NAMES[6:] for part in parts(sealer, name)} == files(many) - {first}
    check(many, NAMES[6:])
    many.passes(WAITS.grace_s + 1)
    sealer.look()
    assert first in files(many), "somebody may still name a part of it, who was stopped"
    for _ in range(3):
        many.passes(WAITS.orphaned_s + 1)
        sealer.look()
    assert first not in files(many) and len(files(many)) == 1
    check(many, NAMES[6:])


def test_who_names_a_part_too_late_is_refused(many: World) -> None:
    one, late = many.sealer(carried=1), many.sealer(carried=1)
    shared(many, one)
    made = late._sharing._files.write_shared(0, [], False)
    assert made == []
    [part] = parts(one, "u1")
    old = part._replace(path=part_path(new_shared_path(0, "ab", 100), 0, 100), size=100)
    for _ in range(3):
        many.passes(WAITS.orphaned_s + 1)
        one.look()
    assert late._sharing._exchanged([module.Exchange("u1", removed=(part.path,), added=(old,))]) == [False]
    check(many)


def test_one_that_cannot_be_decoded_keeps_no_other_in_the_log(many: World, monkeypatch: pytest.MonkeyPatch) -> None:
    sealer = many.sealer(carried=1)
    table, broken = sharing._table, many.oracle.state.bound["u4"].recent[0].value

    def decoded(runs, columns):
        if any(each.value == broken for each in runs):
            raise Undecodable("not what was written")
        return table(runs, columns)

    monkeypatch.setattr(sharing, "_table", decoded)
    shared(many, sealer)
    assert set(many.oracle.state.held) == {"u4"}
    assert sealer.status()["failing"] == {"u4": "not what was written"}
    monkeypatch.undo()
    sealer.look()
    assert set(many.oracle.state.held) == {"u4"}, "it is left alone for a while"
    many.passes(failing.AFTER_FAILURE_MAX_S)
    shared(many, sealer)
    assert not many.oracle.state.held and not sealer.status()["failing"]
    check(many)


def test_what_is_new_waits_for_no_part_that_cannot_be_read(many: World, monkeypatch: pytest.MonkeyPatch) -> None:
    sealer = many.sealer(carried=1)
    shared(many, sealer)
    [old] = parts(sealer, "u4")
    read = DirectoryStore.read

    def reads(self: DirectoryStore, path: str) -> bytes:
        if path == old.path:
            raise Unreadable("its disk is broken")
        return read(self, path)

    monkeypatch.setattr(DirectoryStore, "read", reads)
    for name in NAMES:
        many.carry(name, (9, 9, 1))
    shared(many, sealer)
    assert not many.oracle.state.held
    assert len(parts(sealer, "u4")) == 2 and parts(sealer, "u4")[0] == old and len(parts(sealer, "u3")) == 1
    monkeypatch.undo()
    check(many)


def test_one_that_cannot_be_sealed_is_shared_all_the_same(many: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its topic cannot be read, say; nobody but us takes what is carried of it."""
    for n in range(4):
        many.insert("u4", (n, n, 1))
    sealer = many.sealer(carried=1)
    monkeypatch.setattr(Sealer, "_seal", _away)
    shared(many, sealer)
    assert not many.oracle.state.held and set(sealer.status()["failing"]) == {"u4"}
    check(many)


def test_a_store_that_is_full_is_tidied_up_and_nothing_is_left_of_what_was_begun(
    many: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sharing, "PART_LOADED", 1_000)
    sealer = many.sealer(carried=1)
    shared(many, sealer)
    there = files(many)
    many.items.pop("u2")
    for n in range(4):
        many.insert("u3", (n, n, 1))
    many.carry("u1", *((k, 7, 1) for k in range(100)))
    write = DirectoryStore.write

    def writes(self: DirectoryStore, path: str, data: bytes, begun: bool = False) -> None:
        if path.startswith("shared/"):
            _away()
        write(self, path, data, begun)

    monkeypatch.setattr(DirectoryStore, "write", writes)
    many.carry("u5", (9, 9, 1))
    for _ in range(12):
        many.passes(WAITS.grace_s)
        with suppress(module.Unavailable):
            sealer.look()
    own = {each.path for name in NAMES for each in parts(sealer, name)} & files(many)
    assert files(many) == there | own, "what has a file of its own is written again and again, and removed"
    assert not sealer._segments.state.gone and sealer._cuts.count
    monkeypatch.undo()
    many.passes(failing.AFTER_FAILURE_S)
    shared(many, sealer)
    assert not many.oracle.state.held
    check(many, [name for name in NAMES if name != "u2"])


def test_a_store_that_is_away_loses_nothing_and_moves_nothing(many: World, monkeypatch: pytest.MonkeyPatch) -> None:
    sealer = many.sealer(carried=1)
    monkeypatch.setattr(many.store, "write", _away)
    with pytest.raises(module.Unavailable):
        shared(many, sealer)
    sealer.look()
    assert set(many.oracle.state.held) == set(NAMES), "it is not asked again at once"
    monkeypatch.undo()
    check(many)
    many.passes(failing.AFTER_FAILURE_S)
    shared(many, sealer)
    assert not many.oracle.state.held
    check(many)


def _away(*_: object, **__: object) -> None:
    raise module.Unavailable("the store is away", sqlstate="58030")


def test_what_was_in_files_when_its_sealer_was_killed_is_let_go_of_by_the_next(many: World) -> None:
    sealer = many.sealer(carried=1)
    retire = many.oracle.retire
    many.oracle.retire = _killed
    with pytest.raises(KeyboardInterrupt):
        shared(many, sealer)
    many.oracle.retire = retire
    assert len(files(many)) == 1 and set(many.oracle.state.held) == set(NAMES)
    check(many)
    many.sealer(carried=1 << 30).look()
    assert not many.oracle.state.held and len(files(many)) == 1
    check(many)


def _killed(*_: object) -> None:
    raise KeyboardInterrupt


def test_two_share_each_row_once(many: World) -> None:
    one, other = many.sealer(carried=1), many.sealer(carried=1)
    for n in range(6):
        many.passes(module.MOVE_EVERY_S)
        many.oracle.compact(one._policy)
        one.look()
        other.look()
        many.carry(NAMES[n], (n, n, 1))
    check(many)


def test_in_an_older_format_none_does(many: World) -> None:
    older = many.sealer(carried=1, format_version=SHARED_FILES_FROM - 1)
    shared(many, older)
    assert not files(many) and many.oracle.state.record_version < CARRIED_SEALED
    assert older._segments.state.record_version < SHARED_VERSION
    many.write_moved("u1", 5)
    assert many.exchange_moved() == 1, "there it is moved to a topic as ever"
    check(many)


def test_who_has_not_heard_of_where_they_are_waits_for_that(many: World) -> None:
    late = many.segments()
    stale = late.state
    shared(many, many.sealer(carried=1))
    state = SegmentsLog.state
    told: list[float] = []

    def caught_up(timeout_s: float):
        told.append(timeout_s)
        return SegmentsLog.caught_up(late, timeout_s)

    late.caught_up = caught_up
    try:
        SegmentsLog.state = property(lambda self: stale if self is late and not told else state.fget(self))
        assert many.read("u1", many.oracle.state.last_ts, late) == many.expected("u1", many.wall_ms)
    finally:
        SegmentsLog.state = state
    assert told, "it had not heard of it"


def test_a_column_that_was_added_meanwhile_is_there(many: World) -> None:
    sealer = many.sealer(carried=1)
    shared(many, sealer)
    many.items["u1"] = Table("u1", "s1", "u1", "", (*KV, Column("x", "int4", id=3)))
    many.carry("u1", (5, 5, 1))
    shared(many, sealer)
    [part] = parts(sealer, "u1")
    assert part.changes == 2
    [table] = sealer._files.read([part], many.items["u1"].stored)
    assert table.column("x").to_pylist() == [None, None]
    check(many)


def a_part(file: str, changes: int, loaded: int = 100, offset: int = 0, size: int = 10) -> Segment:
    return Segment(part_path(file, offset, size), size, loaded, changes, changes, True, 0)


FILE = new_shared_path(3, "ab", 40)


@pytest.mark.parametrize(
    "changes, found",
    [((), 0), ((1,), 1), ((3,), 1), ((4,), 0), ((9, 3), 2), ((16, 3), 1), ((40, 12, 3), 3), ((3, 4), 0)],
)
def test_the_newest_parts_merge_by_size(changes: tuple[int, ...], found: int) -> None:
    made = [a_part(FILE, each) for each in changes]
    assert newest(made, 1, 1) == tuple(made[len(made) - found :])


def test_no_part_becomes_too_large_and_what_has_a_file_of_its_own_keeps_it() -> None:
    small = a_part(FILE, 1, loaded=100)
    assert newest([a_part(FILE, 1, loaded=sealing.PART_LOADED - 149), small], 1, 50) == (small,)
    assert newest([small._replace(path=new_path("u1", 3, "ab"))], 1, 1) == ()


def test_files_of_which_less_than_half_is_in_use_are_sparse() -> None:
    other = new_shared_path(4, "cd", 40)
    held = {
        "u1": Sealed(files=(a_part(FILE, 1), a_part(other, 1))),
        "u2": Sealed(files=(a_part(other, 1, offset=10), a_part(new_shared_path(5, "ef", 20), 1, size=20))),
        "u3": Sealed(files=(Segment(new_path("u3", 1, "a"), 1, 1, 1, 1, True, 0),)),
    }
    assert sparse(held) == [("u1", held["u1"].files[0])]
