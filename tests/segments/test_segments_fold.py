"""The fold of ``<env>.segments``: each row is in one place, and no file is forgotten."""

from __future__ import annotations

import random

import pytest

from journal.api import Entry
from journal.errors import FatalLog, InvalidUsage
from oracle.errors import Reason
from oracle.model import Token
from segments.fold import NO_SEGMENTS, fold_segments
from segments.image import dump_segments, load_segments
from segments.model import Exchange, SegmentsKind, SegmentsRecord, check_exchange, check_path, new_path, number_of
from segments.records import decode_segments_record, encode_segments_record
from tests.segments.segment_logs import SegmentsHistory, run, segment


def test_what_is_sealed_is_in_files_from_then_on() -> None:
    log = SegmentsHistory()
    first, second = segment("u1", 0, 1, 10), segment("u1", 1, 2, 5)
    assert log.exchange("u1", [run("u1", 0, 4)], [first], through=7).reason is None
    assert log.exchange("u1", [run("u1", 4, 6)], [second], through=9).reason is None
    sealed = log.state.sealed("u1")
    assert (sealed.through, sealed.files, sealed.changes, sealed.net) == (9, (first, second), 15, 15)
    assert sealed.coverage["t.data.u1", 0] == ((0, 6),)
    assert log.state.sealed("u2").files == ()


def test_no_row_is_sealed_twice() -> None:
    """Of two that sealed the same rows, the second one's files are nobody's."""
    log = SegmentsHistory()
    assert log.exchange("u1", [run("u1", 0, 4)], [segment("u1", 0, 1)]).reason is None
    before = log.state.collections
    assert log.exchange("u1", [run("u1", 3, 5)], [segment("u1", 0, 2)]).reason is Reason.OVERLAP
    assert log.exchange("u1", [run("u1", 8, 9), run("u1", 8, 9)], [segment("u1", 0, 3)]).reason is Reason.OVERLAP
    assert log.state.collections == before and not log.state.gone


def test_of_two_that_merge_the_same_files_one_does() -> None:
    log = SegmentsHistory()
    old = [segment("u1", 0, 1), segment("u1", 0, 2)]
    log.exchange("u1", [run("u1", 0, 4)], old)
    merged = segment("u1", 1, 3, 2)
    assert log.exchange("u1", added=[merged], removed=old, at_ms=50).reason is None
    assert log.exchange("u1", added=[segment("u1", 1, 4, 2)], removed=old[:1]).reason is Reason.NOT_THERE
    assert log.files("u1") == [merged]
    assert dict(log.state.gone) == {each.path: 50 for each in old}
    assert log.state.sealed("u1").coverage["t.data.u1", 0] == ((0, 4),)


def test_a_file_that_is_there_or_goes_is_not_added() -> None:
    log = SegmentsHistory()
    one, other = segment("u1", 0, 1), segment("u1", 0, 2)
    log.exchange("u1", [run("u1", 0, 1)], [one])
    assert log.exchange("u1", [run("u1", 1, 2)], [one]).reason is Reason.OVERLAP
    assert log.exchange("u1", added=[one], removed=[one]).reason is Reason.OVERLAP
    log.exchange("u1", added=[other], removed=[one])
    assert log.exchange("u1", [run("u1", 1, 2)], [one]).reason is Reason.OVERLAP


def test_files_of_what_was_dropped_go() -> None:
    log = SegmentsHistory()
    one, other = segment("u1", 0, 1), segment("u2", 0, 2)
    log.exchange("u1", [run("u1", 0, 1)], [one])
    log.exchange("u2", [run("u2", 0, 1)], [other])
    log.add(SegmentsKind.FORGET, names=("u1", "u9"), at_ms=7)
    assert list(log.state.collections) == ["u2"] and dict(log.state.gone) == {one.path: 7}
    log.add(SegmentsKind.COLLECTED, paths=(one.path, other.path))
    assert not log.state.gone and log.files("u2") == [other], "a file that holds rows is not gone because one says so"


def test_who_comes_too_late_adds_nothing() -> None:
    """Its files may have been removed as nobody's meanwhile."""
    log = SegmentsHistory()
    late = segment("u1", log.state.next_offset, 1)
    for _ in range(3):
        log.add(SegmentsKind.FENCE)
    log.add(SegmentsKind.SWEEP, below=2)
    assert log.exchange("u1", [run("u1", 0, 1)], [late]).reason is Reason.NOT_THERE
    assert log.exchange("u1", [run("u1", 0, 1)], [segment("u1", 2, 1)]).reason is None
    log.add(SegmentsKind.SWEEP, below=1)
    assert log.state.swept == 2, "it never goes back"
    log.add(SegmentsKind.SWEEP, below=1 << 40)
    assert log.exchange("u1", [run("u1", 1, 2)], [segment("u1", log.state.next_offset, 3)]).reason is None, (
        "a sweep beyond the log shuts out nobody who begins after it"
    )


@pytest.mark.parametrize(
    "path",
    ["", "u1", "u1/x.parquet", "../u1/0000000000000000-1.parquet", "u1/../0000000000000000-1.parquet",
     "/u1/0000000000000000-1.parquet", "u1/0000000000000000-1.parquet\n", "u1/0000000000000000-1.parquet.part",
     "u1/00000000000000000-1.parquet", "..", "u1/000000000000000g-1.parquet", "ü1/0000000000000000-1.parquet"],
)  # fmt: skip
def test_paths_that_lead_elsewhere_are_none(path: str) -> None:
    with pytest.raises(InvalidUsage):
        check_path(path)


def test_a_path_says_when_its_writer_began() -> None:
    assert number_of(new_path("u12", 77, "ab")) == 77
    check_path(new_path("u12", 0, "0" * 32))


WRONG = [
    Exchange("u1"),
    Exchange("", 0, (run("u1", 0, 1),)),
    Exchange("u1", -1, (run("u1", 0, 1),)),
    Exchange("u1", 0, (run("u1", 1, 1),)),
    Exchange("u1", 0, (run("u1", 0, 1),), (segment("u1", 0, 1)._replace(size=0),)),
    Exchange("u1", 0, (run("u1", 0, 1),), (segment("u1", 0, 1)._replace(changes=0),)),
    Exchange("u1", 0, (run("u1", 0, 1),), (segment("u1", 0, 1)._replace(crc32=1 << 32),)),
    Exchange("u1", 0, (run("u1", 0, 1),), (segment("u1", 0, 1),) * 2),
    Exchange("u1", removed=("../../etc/passwd",)),
    Exchange("u1", removed=(new_path("u1", 0, "1"),) * 2),
]


@pytest.mark.parametrize("exchange", WRONG)
def test_a_record_that_breaks_its_rules_counts_for_nothing(exchange: Exchange) -> None:
    with pytest.raises(InvalidUsage):
        check_exchange(exchange)
    log = SegmentsHistory()
    assert log.add(SegmentsKind.EXCHANGE, exchange=exchange).refused is Reason.MALFORMED
    assert log.state.stats.malformed == 1 and not log.state.collections


def test_hostile_bytes_never_stop_the_fold() -> None:
    rng = random.Random(7)
    log = SegmentsHistory()
    good = encode_segments_record(
        SegmentsRecord(Token("x", 1, 1), SegmentsKind.EXCHANGE, 5, Exchange("u1", 3, (run("u1", 0, 9),),
                                                                            (segment("u1", 0, 1),)))
    )  # fmt: skip
    for _ in range(3_000):
        bad = bytearray(good)
        for _ in range(rng.randint(1, 4)):
            bad[rng.randrange(len(bad))] = rng.randrange(256)
        log.add_bytes(bytes(bad[: rng.randint(0, len(bad))]))
    assert log.state.stats.records == 3_000 and log.state.stats.malformed > 1_000


def random_history(seed: int, steps: int) -> SegmentsHistory:
    rng = random.Random(seed)
    log = SegmentsHistory()
    ends: dict[str, int] = {}
    for n in range(steps):
        name = f"u{rng.randint(1, 3)}"
        files, number = log.files(name), max(log.state.next_offset - rng.randint(0, 3), 0)
        match rng.randint(0, 9):
            case 0:
                log.add(SegmentsKind.FORGET, names=(name,), at_ms=n)
            case 1:
                log.add(SegmentsKind.SWEEP, below=max(log.state.next_offset - 5, 0))
            case 2 if log.state.gone:
                log.add(SegmentsKind.COLLECTED, paths=tuple(rng.sample(sorted(log.state.gone), 1)))
            case 3 | 4 | 5 if files:
                some = rng.sample(files, rng.randint(1, len(files)))
                added = [segment(name, number, n)] if rng.random() < 0.8 else []
                log.exchange(name, added=added, removed=some, at_ms=n)
            case 6:
                log.add_bytes(rng.randbytes(20))
            case _:
                lower = max(ends.get(name, 0) - rng.choice((0, 0, 0, 1)), 0)
                ends[name] = lower + rng.randint(1, 9)
                log.exchange(name, [run(name, lower, ends[name])], [segment(name, number, n, 9, rng.randint(-9, 9))],
                             through=n)  # fmt: skip
    return log


@pytest.mark.parametrize("seed", range(5))
def test_an_image_goes_on_as_the_log_does(seed: int) -> None:
    log = random_history(seed, 120)
    state = NO_SEGMENTS
    for n, entry in enumerate(log.entries):
        state, _ = fold_segments(state, entry)
        if n % 20:
            continue
        loaded = load_segments(dump_segments(state, "id"), "id")
        assert loaded == state and dump_segments(loaded, "id") == dump_segments(state, "id")
    assert state == log.state
    half = NO_SEGMENTS
    for entry in log.entries[:60]:
        half, _ = fold_segments(half, entry)
    half = load_segments(dump_segments(half))
    for entry in log.entries[60:]:
        half, _ = fold_segments(half, entry)
    assert half == log.state


@pytest.mark.parametrize("seed", range(20))
def test_every_file_that_was_added_is_somebodys_until_it_was_collected(seed: int) -> None:
    state, added, collected = NO_SEGMENTS, set(), set()
    for entry in random_history(seed, 200).entries:
        state, outcome = fold_segments(state, entry)
        held = [each.path for sealed in state.collections.values() for each in sealed.files]
        assert len(held) == len(set(held)) and not set(held) & set(state.gone.keys())
        if outcome.refused is None and outcome.verdicts[0].reason is None:
            record = decode_segments_record(entry.value)
            if record.exchange is not None:
                added.update(each.path for each in record.exchange.added)
            collected.update(record.paths)
        assert added - collected <= set(held) | set(state.gone.keys())


def test_an_image_of_another_log_is_refused() -> None:
    with pytest.raises(FatalLog):
        load_segments(dump_segments(NO_SEGMENTS, "one"), "other")


def test_a_record_of_before_that_lands_late_counts_for_nothing() -> None:
    log = SegmentsHistory()
    exchange = Exchange("u1", 0, (run("u1", 0, 1),), (segment("u1", 0, 1),))
    late = encode_segments_record(SegmentsRecord(Token("w", 1, 1), SegmentsKind.EXCHANGE, 0, exchange))
    log.seq = 1
    log.add(SegmentsKind.FENCE)
    assert log.add_bytes(late).refused is Reason.FENCED
    assert fold_segments(NO_SEGMENTS, Entry(0, late))[1].refused is None
