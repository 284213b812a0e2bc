"""What executors say of ranges is what the storage controller would say, however the records come."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog_log.objects import Column, Source
from collection.binding import pin
from collection.columns import plain_columns
from collection.error_rows import ERROR_VALUE_CHARS_MAX
from controllers import judging
from controllers.compute import judged_ranges
from controllers.judging import (
    Order,
    Range,
    Verdict,
    decode_order,
    decode_verdict,
    encode_order,
    encode_verdict,
    judged,
)
from controllers.storage.remap import prepare
from controllers.storage.waves import behind, is_poor, taken, wave
from journal.errors import InvalidUsage

COLUMNS = (Column("a", "int4", False, id=1), Column("b", "text", id=2))
SOURCE = Source("u1", "s1", "clicks", "", COLUMNS, topic="clicks", format="json", envelope="none", errors_id="u2")
VALUES = st.sampled_from([
    b'{"a":1}', b'{"a":2,"b":"x"}', b'{"a":null}', b"bad", None, b"", b'{"a":3,"b":"\\u0000"}', b'{"a":1e0}',
    b"\xff\xfe",
])  # fmt: skip


def spread(records: list[tuple[int, bytes | None]], rng: random.Random):
    """The same records in pieces, as a reader gives them."""
    at = 0
    while at < len(records):
        upto = at + rng.randint(1, 7)
        part = records[at:upto]
        yield [value for _, value in part], [offset for offset, _ in part]
        at = upto


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 3), VALUES), max_size=60), st.integers(1, 9),
       st.integers(1, 40), st.integers(0, 1 << 30), st.sampled_from((1 << 20, 200, 1)))  # fmt: skip
def test_waves_bind_what_this_process_would_have_bound(steps, at_once, records, seed, bad_bytes) -> None:
    """Gaps between offsets, ranges of any size, bounds on what is told: wave after wave it comes to the same."""
    rng = random.Random(seed)
    there: dict[int, list[tuple[int, bytes | None]]] = {0: [], 1: [], 2: []}
    ends = {partition: rng.randint(0, 5) for partition in there}
    positions = dict(ends)
    begun = dict(positions)
    for partition, gap, value in steps:
        ends[partition] += gap
        there[partition].append((ends[partition] - 1, value))
    good, bad, runs = 0, [], {partition: [] for partition in there}
    kept, judging.BAD_BYTES_MAX = judging.BAD_BYTES_MAX, bad_bytes
    try:
        while behind(positions, ends):
            ranges = wave(positions, ends, records, at_once)
            told = []
            for asked in ranges:
                inside = [each for each in there[asked.partition] if asked.lower <= each[0] < asked.upper]
                verdict = judged("clicks", plain_columns(COLUMNS), asked, spread(inside, rng))
                told.append(decode_verdict(ORDER, asked, encode_verdict(verdict)))
            found = taken("clicks", positions, ranges, told, pin("t1"))
            assert found.runs, "nothing comes of it"
            for run in found.runs:
                assert (run.lower, run.attempt) == (positions[run.partition], pin("t1")) and run.upper > run.lower
                runs[run.partition].append(run)
            good += found.good_count
            bad += found.bad
            positions = found.positions
    finally:
        judging.BAD_BYTES_MAX = kept
    assert positions == ends
    whole = prepare(SOURCE, {p: found for p, found in there.items() if found}, begun, pin("t1"))
    assert good == whole.good_count and sorted(bad, key=lambda e: e[3:]) == sorted(whole.bad, key=lambda e: e[3:])
    rows = {run.partition: run.rows for run in whole.runs}
    assert {p: sum(run.rows for run in found) for p, found in runs.items()} == {p: rows.get(p, 0) for p in there}


def test_a_wave_takes_of_the_partition_that_is_furthest_behind_and_no_more_than_it_may() -> None:
    assert wave({0: 5, 1: 0, 2: 9}, {0: 38, 1: 13, 2: 9}, records=40, at_once=10) == [
        Range(0, 5, 15), Range(0, 15, 25), Range(0, 25, 35), Range(1, 0, 10),
    ]  # fmt: skip
    assert wave({0: 5, 1: 0, 2: 9}, {0: 38, 1: 13, 2: 9}, records=1000, at_once=10)[4:] == [
        Range(0, 35, 38), Range(1, 10, 13),
    ]  # fmt: skip
    assert wave({0: 5}, {0: 5}, 9, 9) == wave({0: 5}, {}, 9, 9) == wave({}, {0: 5}, 9, 9) == []
    assert behind({0: 5, 1: 7, 2: 9}, {0: 6, 1: 5}) == 1
    many = dict.fromkeys(range(1500), 0)
    assert wave(many, dict.fromkeys(many, 2000), 4_000_000, 200_000) == [], "what is little of each is read sooner here"
    assert wave(many, dict.fromkeys(many, 10) | {7: 250_000}, 4_000_000, 200_000) == [
        Range(7, 0, 200_000), Range(7, 200_000, 250_000),
    ]  # fmt: skip


def test_what_is_behind_a_range_that_was_not_judged_to_its_end_is_not_bound() -> None:
    ranges = [Range(0, 0, 10), Range(1, 0, 10), Range(0, 10, 20), Range(0, 20, 30)]
    verdicts = [Verdict(10, 10), Verdict(4, 3), Verdict(12, 2), Verdict(30, 10)]
    found = taken("clicks", {0: 0, 1: 0}, ranges, verdicts, "pin")
    assert found.positions == {0: 12, 1: 4} and found.good_count == 15
    assert [(run.partition, run.lower, run.upper, run.rows) for run in found.runs] == [(0, 0, 12, 12), (1, 0, 4, 3)]
    assert not is_poor(ranges, found)
    assert is_poor(ranges, taken("clicks", {0: 0, 1: 0}, ranges, [Verdict(5, 5), *verdicts[1:]], "pin"))


ORDER = Order("clicks", plain_columns(COLUMNS), (Range(0, 3, 9), Range(1, 0, 1)), 12.5)


def test_an_order_comes_as_it_was_sent() -> None:
    assert decode_order(encode_order(ORDER)) == ORDER


@pytest.mark.parametrize(
    "change",
    [
        {"topic": 7}, {"topic": None}, {"ranges": []}, {"ranges": [[0, 9, 3]]}, {"ranges": [[0, 3, 3]]},
        {"ranges": [[-1, 0, 3]]},
        {"ranges": [[0, -1, 3]]}, {"ranges": [[0, 0, True]]}, {"ranges": [[0, 0]]}, {"ranges": [[0, 0, 1, 2]]},
        {"ranges": [[0, 0, 1]] * (judging.RANGES_MAX + 1)}, {"columns": [["a", "int4"]]},
        {"columns": [["a", 4, True]]},
        {"columns": [["a", "int4", 1]]}, {"timeout_s": "soon"}, {"timeout_s": float("nan")}, {"timeout_s": 0},
        {"timeout_s": 1e9}, {"timeout_s": True}, {"timeout_s": "12"}, {"timeout_s": 10**400}, {"topic": ""},
        {"topic": "a\x00"}, {"topic": "\ud800"}, {"columns": [["\ud800", "int4", True]]},
        {"columns": [["a", "int4", True], ["a", "text", True]]}, {"columns": [["a", "nothing", True]]},
        {"columns": [["a", "", True]]}, {"columns": [["a", "numeric(99999,3)", True]]},
        {"columns": [["a", "int4" + "[]" * 5000, True]]}, {"ranges": [[1 << 31, 0, 3]]}, {"ranges": [[0, 0, 1 << 63]]},
        {"ranges": {"0": 1}},
    ],
)  # fmt: skip
def test_what_is_no_order_is_said(change) -> None:
    with pytest.raises(InvalidUsage) as refused:
        decode_order(json.dumps({**json.loads(encode_order(ORDER)), **change}).encode())
    assert refused.value.sqlstate == "08P01"
    for body in (b"", b"null", b"[]", b"{}", b"\xff", b"[" * 100_000):
        with pytest.raises(InvalidUsage) as refused:
            decode_order(body)
        assert refused.value.sqlstate == "08P01"


@pytest.mark.parametrize(
    "raw",
    [
        {"upper": 3}, {"upper": 10}, {"upper": 9, "good": 7}, {"upper": 9, "good": -1}, {"upper": 9, "good": True},
        {"upper": 9, "bad": [["why", None, 2]]}, {"upper": 5, "bad": [["why", None, 5]]},
        {"upper": 9, "bad": [["why", 1, 5]]}, {"upper": 9, "bad": [["why", None, 5], ["why", None, 5]]},
        {"upper": 9, "bad": [["why", None, 6], ["why", None, 5]]},
        {"upper": 9, "good": 6, "bad": [["why", None, 5]]}, {"bad": []}, {"upper": 9, "bad": 5},
        {"upper": float("nan")}, {"upper": 9, "bad": [["", None, 5]]}, {"upper": 9, "bad": [["\ud800", None, 5]]},
        {"upper": 9, "bad": [[7, "", 5]]},
        {"upper": 9, "bad": [["why", "\ud800", 5]]}, {"upper": 9, "bad": [["why", "\x00", 5]]},
        {"upper": 9, "bad": [["why", "x" * (ERROR_VALUE_CHARS_MAX + 1), 5]]},
    ],
)  # fmt: skip
def test_nobody_can_say_so_of_a_range(raw) -> None:
    with pytest.raises(ValueError):
        decode_verdict(ORDER, Range(0, 3, 9), json.dumps({"good": 0, "bad": [], "runs": [], **raw}).encode())


@pytest.mark.parametrize("body", [b"", b"null", b"[]", b"7", b"\xff", b"[" * 100_000])
def test_what_is_no_verdict_at_all_is_said(body) -> None:
    with pytest.raises(ValueError):
        decode_verdict(ORDER, Range(0, 3, 9), body)


def test_whatever_a_task_raises_its_reader_is_closed(monkeypatch) -> None:
    """A reader in the middle of records is one that cannot be closed: an executor's place would be gone for as long as
    the order lasts."""
    closed = []

    class Reader:
        def __init__(self, _bootstrap: str) -> None:
            self.reading = False

        def values(self, _run):
            self.reading = True
            try:
                yield [b"{}"], [0]
            finally:
                self.reading = False

        def close(self) -> None:
            closed.append(self.reading)

    def failing(*_given):
        raise MemoryError

    monkeypatch.setattr(judged_ranges, "RunReader", Reader)
    monkeypatch.setattr(judging, "decode_batch", failing)
    with pytest.raises(MemoryError):
        judged_ranges.answer(("", encode_order(ORDER)), judged_ranges.packed(Range(0, 0, 1)), "t")
    assert closed == [False]
