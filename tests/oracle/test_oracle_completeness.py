"""Completeness against a model that knows everything: never too far, and as far as can be told."""

import random

import pytest

from journal.errors import InvalidUsage
from oracle.completeness import complete_through, complete_through_all
from oracle.model import Kind, Stamp
from tests.oracle.oracle_logs import Log
from tests.oracle.test_oracle_views import ViewsHistory, ViewsKind, moved, rows

INPUTS = {"v": ("a",), "w": ("a", "b"), "x": ("v", "b"), "y": ("x", "w"), "z": ("y", "c", "v")}
ORDER = "vwxyz"


def fresh(views=("v",), ts=5):
    log, views_log = Log(), ViewsHistory()
    views_log.claim()
    views_log.tick(ts, *(moved(each, 0) for each in views))
    return log, views_log


def advance(log, ts):
    log.add(Kind.ADVANCE, stamps=(Stamp("table", ts),))


def through(view, log, views):
    return complete_through(view, INPUTS.get, log.state, views.state)


def test_an_idle_view_is_complete_without_ticks():
    log, views = fresh()
    advance(log, 1000)
    assert through("v", log, views) == 1000
    log.write("b", 0, 1)
    assert through("v", log, views) == 1001, "a change of what it does not read is none of its business"
    log.write("a", 0, 1)
    assert through("v", log, views) == 1001
    advance(log, 5000)
    assert through("v", log, views) == 1001
    views.tick(1002, moved("v", 6))
    assert through("v", log, views) == 5000


def test_a_new_view_is_complete_at_nothing():
    log, views = fresh(("v",))
    advance(log, 100)
    assert through("w", log, views) == -1
    with pytest.raises(InvalidUsage):
        through("a", log, views)


def test_a_fold_of_the_views_that_is_ahead_of_the_oracles_promises_nothing_beyond_it():
    log, views = fresh(ts=500)
    advance(log, 100)
    assert through("v", log, views) == 100


def test_a_view_over_a_view_waits_for_it():
    log, views = fresh(("v", "x"))
    log.write("a", 0, 1, ts=10)
    advance(log, 50)
    assert through("v", log, views) == 9 and through("x", log, views) == 9
    views.tick(10, moved("v", 6))
    assert through("x", log, views) == 50, "v did not change when it was brought up to date"
    log.write("a", 1, 2, ts=60)
    views.tick(60, moved("v", 11, rows("v", 0, 1)))
    assert through("v", log, views) == 60 and through("x", log, views) == 59
    views.tick(60, moved("x", 6))
    assert through("x", log, views) == 60
    advance(log, 70)
    views.tick(65, moved("v", 61, error="bad"))
    assert through("x", log, views) == 64, "an error is a change"


def test_deep_stacks_and_circles():
    inputs = {f"v{i}": (f"v{i - 1}",) if i else ("a",) for i in range(5000)}
    log, views = fresh(tuple(inputs))
    advance(log, 77)
    assert complete_through("v4999", inputs.get, log.state, views.state) == 77
    with pytest.raises(InvalidUsage):
        complete_through("p", {"p": ("q",), "q": ("p",)}.get, log.state, views.state)


@pytest.mark.parametrize("seed", range(40))
def test_against_a_model_that_knows_every_change(seed):
    """Complete at t iff for every ts in (upper, t] nothing happened to anything it reads, all the way down."""
    rng = random.Random(seed)
    log, views = Log(), ViewsHistory()
    views.claim()
    changes = {name: set() for name in (*"abc", *ORDER)}
    end = {}
    for _ in range(60):
        match rng.randrange(5):
            case 0 | 1:
                name = rng.choice("abc")
                lower = end.get(name, 0)
                end[name] = lower + 1
                changes[name].add(log.write(name, lower, lower + 1).ts)
            case 2:
                advance(log, log.state.last_ts + rng.randint(1, 5))
            case 3:
                ts, moves = log.state.last_ts, []
                for name in ORDER:
                    view = views.state.view(name)
                    if view.upper > ts or rng.random() < 0.5:
                        continue
                    change = rng.random() < 0.3
                    lower = end.get(name, 0)
                    end[name] = lower + change
                    moves.append(moved(name, view.upper, *([rows(name, lower, lower + 1)] if change else [])))
                    if change or view.upper == 0:
                        changes[name].add(ts)
                if moves:
                    assert views.tick(ts, *moves).reason is None
            case 4 if rng.random() < 0.3:
                since = max(0, log.state.last_ts - rng.randint(0, 10))
                log.add(Kind.COMPACT, ts=since)
                views.add(ViewsKind.COMPACT, ts=since)
        expected = {}
        for name in ORDER:
            upper = views.state.view(name).upper
            complete = -1
            for ts in range(log.state.last_ts + 1):
                inputs = INPUTS[name]
                good = upper > 0 and (
                    ts < upper
                    or all(expected.get(i, ts) >= ts and not any(upper <= c <= ts for c in changes[i]) for i in inputs)
                )
                if not good:
                    break
                complete = ts
            expected[name] = complete
        actual = complete_through_all(ORDER, INPUTS.get, log.state, views.state)
        assert all(actual[name] <= expected[name] for name in ORDER), f"seed {seed}: promised too much"
        if not log.state.since:
            assert actual == expected, f"seed {seed}"
