"""Offsets that nobody binds: given up between what is bound, unless claimed, and never bound afterwards."""

from __future__ import annotations

import random

import pytest

from collection.binding import Binding, Run
from oracle import unbound as module
from oracle.errors import Reason
from oracle.image import dump, load
from oracle.model import OFFSETS_MAX, CommitPart, Kind, Offsets, Record, Stamp, Token
from oracle.records import GIVING_UP, KEEPING, Malformed, decode_record, encode_record
from oracle.unbound import CLAIM_MS, gaps
from schemas.codec import frame_version
from tests.oracle.oracle_logs import Log, fold_all, run


@pytest.fixture
def log() -> Log:
    """`a` is bound at 2 to 4, 6 to 8 and 9."""
    found = Log()
    found.raise_format()
    for n, (lower, upper) in enumerate(((2, 4), (6, 8), (9, 10))):
        found.write("a", lower, upper, ts=100 + n)
    return found


def give_up(log: Log, *ranges: tuple[int, int], collection: str = "a") -> list[Reason | None]:
    asked = tuple(Offsets(collection, run(collection, *each, "")) for each in ranges)
    return [each.reason for each in log.add(Kind.GIVE_UP, offsets=asked).verdicts]


def claim(log: Log, lower: int, upper: int, attempt: str = "r1", collection: str = "a") -> None:
    assert log.add(Kind.CLAIM, offsets=(Offsets(collection, run(collection, lower, upper, attempt)),)).refused is None


def later(log: Log, ms: int) -> None:
    log.add(Kind.ADVANCE, stamps=(Stamp("table", log.state.last_ts + ms),))


def test_what_was_given_up_is_bound_by_nobody_and_seen_by_nobody(log):
    before = {ts: log.contents("a", ts) for ts in range(100, 103)}
    seen = log.state.bindings("a")
    assert list(gaps(log.state.bound["a"], ("t.data.a", 0))) == [(0, 2), (4, 6), (8, 9)]
    assert give_up(log, (0, 2), (4, 6), (8, 9)) == [None, None, None]
    assert {ts: log.contents("a", ts) for ts in before} == before
    now = log.state.bindings("a")
    assert (now.ends(), now.row_count, now.last_change) == (seen.ends(), seen.row_count, seen.last_change)
    assert list(gaps(log.state.bound["a"], ("t.data.a", 0))) == []
    for lower, upper in ((0, 2), (5, 6), (3, 5), (8, 11)):
        assert log.write("a", lower, upper).reason is Reason.OVERLAP
    assert log.write("a", 10, 12).reason is None
    assert give_up(log, (4, 6)) == [Reason.OVERLAP], "once"
    assert load(dump(log.state)) == log.state and fold_all(log.entries)[0] == log.state


def test_nothing_is_given_up_that_is_bound_or_that_nothing_bound_comes_behind(log):
    assert give_up(log, (3, 5), (4, 7), (10, 11), (8, 11)) == [
        Reason.OVERLAP, Reason.OVERLAP, Reason.NOT_THERE, Reason.NOT_THERE,
    ]  # fmt: skip
    assert give_up(log, (0, 1), collection="b") == [Reason.NOT_THERE]
    elsewhere = Offsets("a", Run("t.data.a", 3, 0, 1))
    assert log.add(Kind.GIVE_UP, offsets=(elsewhere,)).verdicts[0].reason is Reason.NOT_THERE
    contiguous = CommitPart("p", (Binding("a", run("a", 10, 12), True),))
    assert give_up(log, (8, 9)) == [None] and log.commit(contiguous)[0].reason is None, "it goes on where it did"


def test_what_is_claimed_is_given_up_once_the_claim_has_lapsed(log):
    claim(log, 4, 6)
    claim(log, 8, 9, attempt="r2")
    assert give_up(log, (0, 2), (4, 6), (8, 9)) == [None, Reason.CLAIMED, Reason.CLAIMED]
    later(log, CLAIM_MS)
    claim(log, 4, 9)
    assert [each.run.attempt for each in log.state.claims] == ["r2", "r1"]
    later(log, 1)
    assert give_up(log, (4, 6), (8, 9)) == [Reason.CLAIMED, Reason.CLAIMED], "renewed, up to another offset"
    assert load(dump(log.state)) == log.state
    later(log, CLAIM_MS)
    assert give_up(log, (4, 6)) == [None]
    claim(log, 8, 9, attempt="r3")
    assert [each.run.attempt for each in log.state.claims] == ["r3"], "what has lapsed is forgotten"
    assert fold_all(log.entries)[0] == log.state


def test_a_claim_keeps_nothing_else_from_anybody(log):
    claim(log, 4, 6)
    claim(log, 0, 9, collection="b")
    log.add(Kind.CLAIM, offsets=(Offsets("a", Run("t.data.a", 1, 0, 9, "r1")),))
    assert log.write("a", 4, 5).reason is None, "whoever it is: an offset is bound once"
    assert give_up(log, (0, 2), (8, 9)) == [None, None]
    log.add(Kind.FORGET, names=("a",))
    assert [each.collection for each in log.state.claims] == ["b"]


def test_many_are_given_up_at_once_as_one_after_the_other():
    rng = random.Random(3)
    for _ in range(200):
        many, single = Log(), Log()
        for log in (many, single):
            log.raise_format()
        at = 0
        for _ in range(rng.randint(0, 6)):
            lower = at + rng.randint(0, 4)
            at = lower + rng.randint(1, 3)
            for log in (many, single):
                log.write("a", lower, at)
        for _ in range(rng.randint(0, 2)):
            lower = rng.randint(0, 20)
            attempt, upper = rng.choice("xy"), lower + rng.randint(1, 4)
            for log in (many, single):
                claim(log, lower, upper, attempt)
        lowers = [rng.randint(0, 20) for _ in range(rng.randint(1, 8))]
        asked = [(lower, lower + rng.randint(1, 3)) for lower in lowers]
        assert give_up(many, *asked) == [each for one in asked for each in give_up(single, one)]
        assert many.state.bound == single.state.bound


def test_claims_are_bounded(log, monkeypatch):
    monkeypatch.setattr(module, "CLAIMS_MAX", 3)
    for n in range(5):
        claim(log, 4, 6, attempt=f"r{n}")
    assert [each.run.attempt for each in log.state.claims] == ["r2", "r3", "r4"]


def test_older_code_beside_us_is_told_nothing_of_it():
    unbound = Offsets("a", run("a", 3, 4))
    log = Log()
    log.raise_format(KEEPING)
    log.write("a", 0, 3, ts=1)
    log.write("a", 4, 5, ts=2)
    state = log.state
    for kind in (Kind.CLAIM, Kind.GIVE_UP, Kind.RETIRE):
        record = Record(Token("w", 1, 99), 0, kind, offsets=(unbound,))
        with pytest.raises(ValueError, match="version 4"):
            encode_record(record, KEEPING)
        assert decode_record(encode_record(record, GIVING_UP)) == record
        assert log.add_bytes(encode_record(record, GIVING_UP)).refused is Reason.MALFORMED
        assert log.add(kind).refused is Reason.MALFORMED, "what has no words says nothing"
        for bad in (Offsets("", run("a", 3, 4)), Offsets("a", run("a", 4, 4)), Offsets("a", Run("x" * 300, 0, 0, 1))):
            with pytest.raises(Malformed):
                decode_record(encode_record(record._replace(offsets=(bad,)), GIVING_UP))
        with pytest.raises(Malformed, match="too many"):
            decode_record(encode_record(record._replace(offsets=(unbound,) * (OFFSETS_MAX + 1)), GIVING_UP))
    assert log.state.bound == state.bound and frame_version(dump(log.state)) == KEEPING
