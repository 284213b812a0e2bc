"""The peeks that wait: events in, outcomes out."""

import random

import pytest

from controllers.peeks.peek import Peek
from controllers.waiting import MOMENTS_MAX, NOTHING, Cancelled, Dropped, Passed, PeekQueue, Ready, TimedOut
from journal.errors import InvalidUsage, Rejected


def peek(name="p1", inputs=("u1",), catalog_ts=10, as_of=100, timeout_ms=1000, only_at=False):
    return Peek(name, "select 1", inputs, catalog_ts, as_of, None, timeout_ms, only_at)


def complete(**frontiers):
    """Collections exact from the beginning (as tables are) through these."""
    return lambda i: (0, frontiers.get(i, NOTHING))


def exact(**stretches):
    """Collections exact from their last tick through just before their inputs' next change (as views are)."""
    return lambda i: stretches.get(i, (0, NOTHING))


def test_waits_for_both_frontiers_in_either_order():
    p = peek()
    queue = PeekQueue()
    assert queue.add(p, 0) == []
    assert queue.on_catalog_frontier(10, {"u1"}) == []  # exclusive: 10 itself is not known yet
    assert queue.on_catalog_frontier(11, {"u1"}) == []
    assert queue.on_data_frontier(complete(u1=99)) == []
    assert queue.on_data_frontier(complete(u1=100)) == [Ready(p, 100)]
    assert len(queue) == 0

    queue = PeekQueue()
    queue.add(p, 0)
    assert queue.on_data_frontier(complete(u1=500)) == []  # I7: never before its catalog frontier
    assert queue.on_catalog_frontier(11, {"u1"}) == [Ready(p, 100)]


def test_ready_at_once_takes_no_place():
    queue = PeekQueue(waiting_max=0)
    queue.on_catalog_frontier(11, {"u1"})
    queue.on_data_frontier(complete(u1=100))
    assert queue.add(peek(), 0) == [Ready(peek(), 100)]


def test_dropped_only_after_the_catalog_frontier_passed():
    queue = PeekQueue()
    queue.on_catalog_frontier(5, set())
    assert queue.add(peek(), 0) == []
    assert queue.on_catalog_frontier(12, set()) == [Dropped(peek(), "u1")]


def test_dropped_while_waiting_for_data():
    queue = PeekQueue()
    queue.on_catalog_frontier(11, {"u1"})
    assert queue.add(peek(), 0) == []
    assert queue.on_catalog_frontier(12, {"u2"}) == [Dropped(peek(), "u1")]


def test_serializable_takes_the_newest_common_timestamp():
    queue = PeekQueue()
    queue.on_catalog_frontier(11, {"u1", "u2"})
    p = peek(inputs=("u1", "u2"), as_of=None)
    assert queue.add(p, 0) == []
    assert queue.on_data_frontier(complete(u1=50)) == []  # u2 has never been computed
    assert queue.on_data_frontier(complete(u1=50, u2=40)) == [Ready(p, 40)]


def test_a_busy_view_is_read_at_its_tick_and_never_between_two():
    """It ticked at 100 and at 200; at 150 its input was further than it, though it is complete through 200 now."""
    queue = PeekQueue()
    queue.on_catalog_frontier(11, {"u1", "u2"})
    p = peek(inputs=("u1", "u2"), as_of=150)
    assert queue.add(p, 0) == []
    assert queue.on_data_frontier(exact(u1=(0, 180), u2=(100, 149))) == []
    assert queue.on_data_frontier(exact(u1=(0, 220), u2=(200, 219))) == [Ready(p, 200)]


def test_an_idle_view_is_read_where_the_peek_asks():
    queue = PeekQueue()
    queue.on_catalog_frontier(11, {"u1", "u2"})
    queue.on_data_frontier(exact(u1=(0, 220), u2=(100, 220)))
    p = peek(inputs=("u1", "u2"), as_of=150)
    assert queue.add(p, 0) == [Ready(p, 150)]


@pytest.mark.parametrize("as_of", [None, 120])
def test_two_views_are_read_only_where_both_are_exact(as_of):
    """Two clusters' views whose stretches do not meet (yet): neither kind of read may mix them."""
    queue = PeekQueue()
    queue.on_catalog_frontier(11, {"u1", "u2"})
    p = peek(inputs=("u1", "u2"), as_of=as_of)
    queue.on_data_frontier(exact(u1=(200, 210), u2=(100, 190)))
    assert queue.add(p, 0) == []
    assert queue.on_data_frontier(exact(u1=(200, 230), u2=(220, 240))) == [Ready(p, 230 if as_of is None else 220)]


def test_no_inputs_needs_only_the_catalog():
    queue = PeekQueue()
    queue.on_catalog_frontier(11, set())
    assert queue.add(peek(inputs=()), 0) == [Ready(peek(inputs=()), 100)]
    assert queue.add(peek(inputs=(), as_of=None), 0) == [Ready(peek(inputs=(), as_of=None), 0)]


def test_times_out_and_says_what_it_waited_for():
    queue = PeekQueue()
    assert queue.next_deadline_ms() is None
    queue.add(peek(), 0)
    assert queue.next_deadline_ms() == 1000
    assert queue.on_time(999) == []
    [outcome] = queue.on_time(1000)
    assert isinstance(outcome, TimedOut) and "catalog frontier 0 to pass 10" in outcome.waiting_for
    queue.on_catalog_frontier(11, {"u1"})
    queue.add(peek(), 0)
    [outcome] = queue.on_time(5000)
    assert "u1 (complete through -1)" in outcome.waiting_for


def test_bounded_and_cancelled():
    queue = PeekQueue(waiting_max=1)
    queue.add(peek("a"), 0)
    with pytest.raises(InvalidUsage):
        queue.add(peek("a"), 0)
    with pytest.raises(Rejected) as refused:
        queue.add(peek("b"), 0)
    assert refused.value.sqlstate == "53300"
    assert queue.awaited() == set(peek("a").inputs) != set()
    assert queue.cancel("b") == []
    assert queue.cancel("a") == [Cancelled(peek("a"))]
    assert queue.awaited() == set()
    assert queue.add(peek("b"), 0) == []


@pytest.mark.parametrize("seed", range(20))
def test_every_admitted_peek_leaves_exactly_once_and_never_too_early(seed):
    rng = random.Random(seed)
    queue, waiting, left = PeekQueue(waiting_max=8), {}, set()
    frontier, data, now, live = 0, {"u1": (0, NOTHING), "u2": (0, NOTHING)}, 0, {"u1", "u2"}

    def resolve(outcomes):
        for outcome in outcomes:
            assert outcome.peek.peek_id not in left, f"seed {seed}"
            left.add(outcome.peek.peek_id)
            waiting.pop(outcome.peek.peek_id, None)
            if isinstance(outcome, Ready):
                assert frontier > outcome.peek.catalog_ts
                assert all(data[i][0] <= outcome.as_of <= data[i][1] and i in live for i in outcome.peek.inputs)
                assert outcome.as_of >= (outcome.peek.as_of or 0)

    for n in range(200):
        match rng.randrange(5):
            case 0:
                inputs = tuple(rng.sample(["u1", "u2"], rng.randrange(3)))
                p = peek(f"p{n}", inputs, rng.randrange(40), rng.choice([None, rng.randrange(60)]), rng.randrange(30))
                if len(waiting) < 8:
                    waiting[p.peek_id] = p
                    resolve(queue.add(p, now))
            case 1:
                frontier += rng.randrange(4)
                if rng.random() < 0.05:
                    live = live - {"u2"}
                resolve(queue.on_catalog_frontier(frontier, live))
            case 2:
                name = rng.choice(["u1", "u2"])
                first, last = data[name]
                moved = last + rng.randrange(6)
                data = {**data, name: (rng.randint(first, max(first, moved)), moved)}
                resolve(queue.on_data_frontier(data.__getitem__))
            case 3:
                now += rng.randrange(5)
                resolve(queue.on_time(now))
            case 4 if waiting:
                resolve(queue.cancel(rng.choice(sorted(waiting))))
        assert len(queue) == len(waiting)
    resolve(queue.on_time(now + 1000))
    assert not waiting


def test_a_blocks_later_reads_are_where_its_first_was():
    """t is a table, v and w are views over it that tick together, idle is a view whose input never changes."""
    queue = PeekQueue()
    queue.on_catalog_frontier(11, {"t", "v", "w", "idle"})
    queue.on_data_frontier(exact(t=(0, 100), v=(90, 94), w=(90, 94), idle=(5, 100)), 100, 1)
    (ready,) = queue.add(peek("a", ("v",), as_of=None), 0)
    assert ready.as_of == 94
    # Ticks at 120 and 140: what was exact at 94 is known from the last frontiers before the first of them.
    queue.on_data_frontier(exact(t=(0, 120), v=(90, 94), w=(90, 94), idle=(5, 120)), 120, 1)
    queue.on_data_frontier(exact(t=(0, 120), v=(120, 120), w=(120, 120), idle=(5, 120)), 120, 2)
    queue.on_data_frontier(exact(t=(0, 150), v=(140, 150), w=(140, 150), idle=(5, 150)), 150, 3)
    for inputs in (("t",), ("w",), ("v", "w", "t", "idle")):
        p = peek("b", inputs, as_of=94, only_at=True)
        assert queue.add(p, 0) == [Ready(p, 94)]
    # The table was read at 100 first: between two ticks of v, which can never be read there.
    for as_of, inputs, outcome in ((100, ("t", "idle"), None), (100, ("t", "v"), "v"), (95, ("w",), "w")):
        p = peek("c", inputs, as_of=as_of, only_at=True)
        assert queue.add(p, 0) == [Ready(p, as_of) if outcome is None else Passed(p, outcome)]


def test_a_blocks_read_waits_for_a_view_that_may_still_come_there():
    for next_tick, passed in ((160, False), (161, True)):
        queue = PeekQueue()
        queue.on_catalog_frontier(11, {"t", "v"})
        queue.on_data_frontier(exact(t=(0, 160), v=(90, 149)), 160, 1)
        p = peek("p", ("t", "v"), as_of=160, only_at=True)
        assert queue.add(p, 0) == []
        outcome = Passed(p, "v") if passed else Ready(p, 160)
        assert queue.on_data_frontier(exact(t=(0, 170), v=(next_tick, 170)), 170, 2) == [outcome]


def test_what_was_long_ago_is_passed_and_not_guessed():
    queue = PeekQueue()
    queue.on_catalog_frontier(11, {"v"})
    for tick in range(1, MOMENTS_MAX + 10):
        queue.on_data_frontier(exact(v=(tick * 10, tick * 10 + 9)), tick * 10 + 9, tick)
    for as_of, remembered in ((15, False), ((MOMENTS_MAX - 1) * 10, True)):
        p = peek("p", ("v",), as_of=as_of, only_at=True)
        assert queue.add(p, 0) == [Ready(p, as_of) if remembered else Passed(p, "v")]
