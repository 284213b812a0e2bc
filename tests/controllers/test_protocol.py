"""The command log's fold: what continues it counts once, everything else not at all."""

from __future__ import annotations

import itertools
import tracemalloc

from hypothesis import given, settings
from hypothesis import strategies as st

from catalog_log.objects import Item, Table
from controllers.commands import Command, Kind
from controllers.protocol import Altered, ControllerState, Created, Dropped, FrontierAdvanced


def item(object_id: str, name: str = "t") -> Item:
    return Table(object_id, "s1", name, f"CREATE TABLE {name} ()")


def step(lower: int, ts: int, *changes: Item | str) -> list[Command]:
    """All commands of one catalog timestamp: an item is created, an id dropped."""
    commands = [
        Command(ts, n, Kind.DROP, c, None, None, lower) if isinstance(c, str)
        else Command(ts, n, Kind.CREATE, c.id, c, None, lower)
        for n, c in enumerate(changes)
    ]  # fmt: skip
    return [*commands, Command(ts, len(changes), Kind.ADVANCE_CATALOG_FRONTIER, frontier=ts + 1, lower=lower)]


def run(commands, state: ControllerState | None = None):
    state = state or ControllerState()
    effects = []
    for command in commands:
        state, done = state.apply(command)
        effects += done
    return state, effects


U1, U2, U3 = item("u1"), item("u2"), item("u3")
HISTORY = [*step(0, 9, U1, U2), *step(10, 19, "u1"), *step(20, 29), *step(30, 39, U3, item("u2", "renamed"))]


def test_commands_take_effect_when_their_timestamp_is_closed() -> None:
    state, effects = run(HISTORY[:2])
    assert effects == []
    assert not state.objects
    state, effects = run(HISTORY[2:3], state)
    assert effects == [Created(9, U1), Created(9, U2), FrontierAdvanced(10)]
    assert state.frontier == 10


def test_the_whole_story() -> None:
    state, effects = run(HISTORY)
    assert effects[3:] == [
        Dropped(19, U1),
        FrontierAdvanced(20),
        FrontierAdvanced(30),
        Created(39, U3),
        Altered(39, U2, item("u2", "renamed")),
        FrontierAdvanced(40),
    ]
    assert dict(state.objects) == {"u2": item("u2", "renamed"), "u3": U3}
    assert state.ignored == 0


def test_of_a_timestamp_with_many_commands_each_costs_the_same() -> None:
    """What a controller of 40,000 objects is told first was collected in 6 s, and of 100,000 in half a minute: each
    command copied those before it.  Kept side by side, states show what each has of its own."""
    commands = step(0, 9, *(item(f"u{n}") for n in range(1, 2_001)))
    states = [ControllerState()]
    tracemalloc.start()
    try:
        for command in commands:
            states.append(states[-1].apply(command)[0])
        held_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(states[-1].objects) == 2_000 and len(states[-2].collecting) == 2_000
    assert held_bytes < 5 << 20, "2,000 states that share nothing have 16 MB"


def test_everything_sent_twice_counts_once() -> None:
    once = run(HISTORY)
    state, effects = run([c for c in HISTORY for _ in range(2)])
    assert (state.objects, state.frontier, effects) == (once[0].objects, once[0].frontier, once[1])
    assert state.ignored == len(HISTORY)
    state, effects = run(HISTORY, once[0])
    assert effects == []
    assert state.objects == once[0].objects


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_any_interleaving_of_retrying_senders_with_lost_records_gives_the_same_effects(data) -> None:
    """Senders begin anywhere the log had reached, lose records and are late; whoever reads back sends the rest."""
    wanted_state, wanted = run(HISTORY)
    state, effects = ControllerState(), []
    for _ in range(data.draw(st.integers(0, 4))):
        start = data.draw(st.integers(0, len(HISTORY)))
        sent = [c for c in HISTORY[start:] if data.draw(st.integers(0, 4))]
        state, more = run(sent, state)
        effects += more
    frontier, opened, ordinal = state.next_id()
    sent_already = {(opened, n) for n in range(ordinal)}
    rest = [c for c in HISTORY if c.lower >= frontier and (c.catalog_ts, c.ordinal) not in sent_already]
    state, more = run(rest, state)
    assert effects + more == wanted
    assert state.objects == wanted_state.objects
    assert state.frontier == wanted_state.frontier


def test_a_gap_is_not_jumped_over() -> None:
    state, effects = run(HISTORY[:3] + step(20, 29, U3))
    assert state.frontier == 10
    assert effects[-1] == FrontierAdvanced(10)
    assert state.ignored == 2


def test_of_two_ways_to_cut_history_the_first_that_closes_wins() -> None:
    stepwise = [*step(0, 9, U1, U2), *step(10, 19, "u1")]
    anew = step(0, 19, U2)
    for picks in _merges(stepwise, anew):
        state, _ = run(picks)
        # Whatever was closed is consistent, and the slower one can always go on from it.
        state, _ = run(step(state.frontier, 19, *_difference(state)) if state.frontier < 20 else [], state)
        assert state.frontier == 20
        assert dict(state.objects) == {"u2": U2}


def _difference(state: ControllerState) -> list[Item | str]:
    return [i for i in state.objects if i != "u2"] + ([] if "u2" in state.objects else [U2])


def _merges(left: list[Command], right: list[Command]):
    """Every interleaving of two senders."""
    total = len(left) + len(right)
    for places in itertools.combinations(range(total), len(left)):
        a, b = iter(left), iter(right)
        yield [next(a) if i in places else next(b) for i in range(total)]


def test_a_hostile_advance_does_not_move_the_frontier() -> None:
    state, effects = run([Command(9, 0, Kind.ADVANCE_CATALOG_FRONTIER, frontier=5, lower=0)])
    assert (state.frontier, effects, state.ignored) == (0, [], 1)


def test_dropping_what_is_not_there_does_nothing() -> None:
    state, effects = run(step(0, 9, "u7"))
    assert effects == [FrontierAdvanced(10)]
