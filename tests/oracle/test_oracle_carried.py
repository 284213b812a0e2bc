"""Rows that the log carries are sealed where they are: retired by their numbers, and by no other name before."""

from __future__ import annotations

import pytest

from collection.binding import INLINE, RETIRED, Run
from oracle.errors import Reason
from oracle.image import dump, load
from oracle.model import Kind, Offsets, Record, Token
from oracle.records import CARRIED_SEALED, GIVING_UP, Malformed, decode_record, encode_record
from oracle.state import held_bytes, held_for_good
from tests.oracle.oracle_logs import Log, fold_all, random_log


@pytest.fixture
def log() -> Log:
    """Of `a` batches 0 to 9 are carried, each at a timestamp of its own, and 2 and 3 were moved; the first six may not
    be told apart.  `b` has one."""
    found = Log()
    found.raise_format()
    for n in range(10):
        found.carry("a", b"row %d" % n, ts=100 + n)
    found.carry("b", b"other", ts=200)
    assert found.move("a", 2, 40, 42).reason is None
    found.add(Kind.COMPACT, ts=105)
    return found


def numbers(upper: int, lower: int = 0) -> Run:
    return Run(INLINE, 0, lower, upper)


def retire(log: Log, upper: int, lower: int = 0, name: str = "a"):
    return log.retire_numbers(name, lower, upper)


def carried(log: Log, name: str = "a") -> list[bytes]:
    return [each.value for each in log.state.bindings(name).at(log.state.last_ts) if each.value]


def test_what_is_retired_is_carried_no_more(log):
    before = log.state
    contents = {ts: log.contents("a", ts) for ts in range(105, 110)}
    assert before.held_for_good == sum(held_bytes(b"row %d" % n) for n in (0, 1, 4, 5))
    assert retire(log, 6).reason is None
    assert log.state.bound["a"].base[0].run == Run(INLINE, 0, 0, 6, RETIRED, 4 * len(b"row 0"))
    assert carried(log) == [b"row %d" % n for n in range(6, 10)]
    assert log.state.held_for_good == 0
    assert log.state.held["a"] == sum(held_bytes(b"row %d" % n) for n in range(6, 10))
    assert log.state.held_bytes == sum(log.state.held.values())
    now, seen = log.state.bindings("a"), before.bindings("a")
    assert (now.ends(), now.row_count, now.last_change) == (seen.ends(), seen.row_count, seen.last_change)
    assert {ts: log.contents("a", ts) for ts in contents} == contents
    assert load(dump(log.state)) == log.state and fold_all(log.entries)[0] == log.state


def test_what_comes_later_is_retired_with_it(log):
    assert retire(log, 6).reason is None
    log.carry("a", b"more", ts=300)
    log.add(Kind.COMPACT, ts=300)
    assert [each.run[2:4] for each in log.state.bound["a"].base if each.run.topic == INLINE] == [
        (0, 6), (6, 7), (7, 8), (8, 9), (9, 10), (10, 11)
    ]  # fmt: skip
    assert retire(log, 11).reason is None
    assert not carried(log) and "a" not in log.state.held
    assert [each.run[2:4] for each in log.state.bound["a"].base if each.run.topic == INLINE] == [(0, 11)]
    log.carry("a", b"again", ts=400)
    assert log.state.bound["a"].recent[0].run.lower == 11, "no number is given out twice"
    assert load(dump(log.state)) == log.state and fold_all(log.entries)[0] == log.state


def test_nothing_is_retired_that_may_be_told_apart_or_is_not_there(log):
    before = log.state
    for lower, upper, name in ((0, 7, "a"), (6, 7, "a"), (2, 4, "a"), (0, 11, "a"), (0, 1, "b"), (0, 1, "c")):
        assert retire(log, upper, lower, name).reason is Reason.NOT_THERE, (lower, upper, name)
    assert log.state.bound == before.bound and log.state.held == before.held


def test_what_is_told_apart_no_more_is_moved_by_nobody(log):
    """Who has put it into a file by its number would see it twice, once it has another name, too."""
    for number in (0, 4, 5):
        assert log.move("a", number, 50, 51).reason is Reason.NOT_THERE
    assert log.move("a", 5, 50, 52).reason is Reason.NOT_THERE, "all of a move or nothing"
    assert log.move("a", 6, 50, 52).reason is None
    older = Log()
    older.raise_format(GIVING_UP)
    older.carry("a", b"x", ts=100)
    older.add(Kind.COMPACT, ts=100)
    assert older.move("a", 0, 0, 1).reason is None, "as ever, where nobody seals it where it is"


def test_what_was_dropped_is_counted_no_more(log):
    log.add(Kind.FORGET, names=("a",))
    assert (log.state.held_for_good, log.state.held_bytes) == (0, held_bytes(b"other"))


def test_older_logs_have_no_such_record():
    record = Record(Token("w", 1, 1), 0, Kind.RETIRE, offsets=(Offsets("a", numbers(1)),))
    assert decode_record(encode_record(record, CARRIED_SEALED)) == record
    with pytest.raises(ValueError, match="version 5"):
        encode_record(record, GIVING_UP)
    by_older_code = encode_record(record._replace(offsets=(Offsets("a", Run("t", 0, 0, 1)),)), GIVING_UP)
    assert decode_record(by_older_code, CARRIED_SEALED).offsets[0].run.topic == "t"
    for kind in (Kind.CLAIM, Kind.GIVE_UP):
        with pytest.raises(Malformed):
            decode_record(encode_record(record._replace(kind=kind), CARRIED_SEALED))
    for run in (numbers(1)._replace(partition=1), numbers(0), numbers(2, lower=2), numbers(1, lower=-1)):
        with pytest.raises(Malformed):
            decode_record(encode_record(record._replace(offsets=(Offsets("a", run),)), CARRIED_SEALED))
    log = Log()
    log.raise_format(GIVING_UP)
    assert log.add_bytes(encode_record(record, CARRIED_SEALED)).refused is Reason.MALFORMED


@pytest.mark.parametrize("seed", range(30))
def test_what_is_held_for_good_is_counted_right(seed):
    state = random_log(seed, 200).state
    assert state.held_for_good == sum(held_for_good(state.bound[name]) for name in state.held)
    assert state.held_bytes == sum(state.held.values())
