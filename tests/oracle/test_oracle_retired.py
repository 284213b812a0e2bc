"""Runs whose rows are in files alone become one, whatever was given up in between; nobody can tell."""

from __future__ import annotations

import pytest

from collection.binding import RETIRED, Run, pin
from oracle.errors import Reason
from oracle.image import dump, load
from oracle.model import Kind, Offsets
from tests.oracle.oracle_logs import Log, fold_all, part_of, run


@pytest.fixture
def log() -> Log:
    """`a` is bound at 0, 2, 4 … 18, each at a timestamp of its own; the first six may not be told apart."""
    found = Log()
    found.raise_format()
    for n in range(10):
        found.write("a", 2 * n, 2 * n + 1, ts=100 + n, attempt=f"r{n}")
    found.add(Kind.COMPACT, ts=105)
    return found


def give_up(log: Log, *offsets: int) -> None:
    asked = tuple(Offsets("a", run("a", offset, offset + 1, "")) for offset in offsets)
    assert not any(each.reason for each in log.add(Kind.GIVE_UP, offsets=asked).verdicts)


def base(log: Log) -> list[Run]:
    return [each.run for each in log.state.bound["a"].base]


def test_runs_with_what_was_given_up_between_them_become_one(log):
    give_up(log, 1, 3, 5, 7, 9)
    assert len(base(log)) == 6, "a gap that was given up joins none by itself"
    before = {ts: log.contents("a", ts) for ts in range(105, 110)}
    seen = log.state.bindings("a")
    assert log.retire("a", 0, 9).reason is None
    assert base(log) == [Run("t.data.a", 0, 0, 9, RETIRED, 5), run("a", 10, 11, "r5")]
    assert {ts: log.contents("a", ts) for ts in before} == before
    now = log.state.bindings("a")
    assert (now.ends(), now.row_count, now.last_change) == (seen.ends(), seen.row_count, seen.last_change)
    assert (now.first_change(105), now.first_change(100)) == (105, 100)
    log.add(Kind.COMPACT, ts=107)
    assert len(base(log)) == 4, "what is retired joins nothing that may still be read from its topic"
    give_up(log, 11, 13)
    assert log.retire("a", 0, 15).reason is None
    assert base(log) == [Run("t.data.a", 0, 0, 15, RETIRED, 8)]
    assert log.write("a", 3, 4).reason is Reason.OVERLAP
    assert load(dump(log.state)) == log.state and fold_all(log.entries)[0] == log.state


def test_nothing_is_retired_that_may_be_told_apart_or_bound(log):
    give_up(log, 1, 3, 5, 7, 9, 11)
    state = log.state
    for lower, upper in ((0, 13), (0, 15), (12, 13), (1, 2), (20, 22)):
        assert log.retire("a", lower, upper).reason is Reason.NOT_THERE, (lower, upper)
    assert log.retire("b", 0, 1).reason is Reason.NOT_THERE
    assert log.retire("a", 0, 9, partition=1).reason is Reason.NOT_THERE
    log.write("a", 0, 4, ts=200, partition=3)
    log.write("a", 4, 9, ts=200, partition=3)
    log.write("a", 0, 4, ts=300, partition=4)
    log.write("a", 5, 9, ts=300, partition=4)
    log.add(Kind.COMPACT, ts=301)
    for lower, upper, partition in ((0, 4, 3), (1, 9, 3), (0, 8, 3), (0, 9, 4)):
        assert log.retire("a", lower, upper, partition).reason is Reason.NOT_THERE
    assert log.state.bound["a"].base[:6] == state.bound["a"].base[:6]
    log.commit(part_of("u", 0, 4, attempt=pin("x"), proposed_ts=400))
    log.add(Kind.COMPACT, ts=401)
    assert log.retire("u", 0, 4).reason is Reason.NOT_THERE, "users' topics are not cut by us"


def test_rows_that_are_not_counted_stay_so(log):
    give_up(log, 1)
    log.commit(part_of("c", 0, 1, proposed_ts=500))
    asked = Offsets("a", run("a", 0, 3))
    log.add(Kind.RETIRE, offsets=(asked, Offsets("c", run("c", 0, 1)), asked))
    assert base(log)[0] == Run("t.data.a", 0, 0, 3, RETIRED, 2)
    assert base(log)[1:] == [run("a", 2 * n, 2 * n + 1, f"r{n}") for n in (2, 3, 4, 5)]
