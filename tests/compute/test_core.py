"""What a compute controller decides: event by event, and over random histories in which all that it says is done."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from immutables import Map

from catalog_log.objects import MATERIALIZED_VIEW, TABLE, Item
from controllers.compute import core as core_module
from controllers.compute.core import (
    Answer,
    Asked,
    Begun,
    Claim,
    Claimed,
    Clock,
    Core,
    Drop,
    End,
    Follow,
    GivenUp,
    Held,
    Known,
    Moved,
    Opened,
    Outrun,
    Released,
    Rest,
    Returned,
    Started,
    Step,
    Stepped,
    Tick,
    inherited,
    to_be_told,
)
from controllers.compute.frontiers import Frontiers
from controllers.peeks.peek import Peek
from controllers.peeks.peek_codec import encode_error
from controllers.protocol import ControllerState
from controllers.quarantine import refusal
from controllers.waiting import Dropped, Ready, TimedOut
from journal.errors import TidemarkError
from journal.timestamps import CatalogTs, DataTs
from oracle.errors import StaleEpoch
from oracle.model import Kind, Stamp
from oracle.views_records import ViewsKind
from tests.objects import made
from tests.oracle.oracle_logs import Log
from tests.oracle.test_oracle_views import ViewsHistory, moved, rows

CLUSTER = "c"
INPUTS = {"v": ("a",), "w": ("a", "b"), "x": ("v", "b"), "y": ("x",)}


def item(item_id: str) -> Item:
    inputs = INPUTS.get(item_id, ())
    return made(MATERIALIZED_VIEW if inputs else TABLE, item_id, on=inputs, cluster=CLUSTER)


class Suspicions:
    """Who is suspected, and who is in quarantine."""

    def __init__(self) -> None:
        self.suspected: set[str] = set()
        self.quarantined: set[str] = set()

    def refused(self, name: str) -> TidemarkError | None:
        return refusal(name) if name in self.quarantined else None

    def suspects(self, names: list[str]) -> list[str]:
        return [n for n in names if n in self.suspected and n not in self.quarantined]

    def prime(self, names: list[str]) -> list[str]:
        return [n for n in names if n in self.suspected]


class World:
    """Two tables, the views that read them, and a core that was opened."""

    def __init__(self, *there: str) -> None:
        self.log, self.views, self.work = Log(), ViewsHistory(), Suspicions()
        self.objects = Map({each: item(each) for each in there or "abvwxy"})
        self.ends = {"a": 0, "b": 0}
        self.held: set[str] = set()
        self.errors: dict[str, str] = {}
        self.large: set[str] = set()
        self.beside: Step | None = None
        """What was begun beside the ticks."""
        self.core = Core(CLUSTER, self.work, lambda view_id: view_id in self.large)
        assert self.core.handle(Started()) == [Claim()]
        self.core.handle(Claimed(self.views.claim().ts))
        self._catalog_frontier = 1
        self._list()
        self.write("a")
        assert self.core.handle(Opened(self.known)) == [Tick(self.log.state.last_ts, True)]

    def _list(self) -> None:
        self.ours = Map({i: each for i, each in self.objects.items() if each.kind == MATERIALIZED_VIEW})

    @property
    def known(self) -> Known:
        catalog = ControllerState(frontier=CatalogTs(self._catalog_frontier), objects=self.objects)
        return Known(catalog, self.ours, Frontiers(self.objects, self.log.state, self.views.state))

    def write(self, table: str) -> None:
        end = self.ends[table]
        self.ends[table] += 1
        self.log.write(table, end, end + 1, ts=self.log.state.last_ts + 1)

    def wait(self, ts: int) -> None:
        self.log.add(Kind.ADVANCE, stamps=(Stamp("table", self.log.state.last_ts + ts),))

    def change(self, *there: str) -> list[Item]:
        """These objects there are from now on; what went."""
        gone = [each for i, each in self.objects.items() if i not in there]
        self.objects = Map({each: item(each) for each in there})
        self._catalog_frontier += 1
        self._list()
        self.held -= {each.id for each in gone}
        return gone

    def look(self, *dropped: Item) -> list[object]:
        return self.core.handle(Moved(self.known, dropped))

    def ticks(self, *dropped: Item) -> list[Tick]:
        return [each for each in self.look(*dropped) if isinstance(each, Tick)]

    def begin(self, ts: int | None = None) -> Step | Rest:
        at = DataTs(self.log.state.last_ts if ts is None else ts)
        [told] = self.core.handle(Begun(at, self.known, self._held()))
        return told

    def done(self, step: Step, changed: Callable[[str], bool] = lambda _: True) -> Step | Rest:
        """``step`` was carried out; what is told after it."""
        if step.beside:
            assert self.beside is None and len(step.views) == 1, "one at a time"
            self.beside = step
        else:
            assert self.beside is None or self.beside.views[0] not in step.views, "it is at work"
            self._bind(step, changed)
        [told] = self.core.handle(Stepped(self.known, self._held()))
        return told

    def returned(self) -> None:
        """What was begun beside the ticks is done."""
        step, self.beside = self.beside, None
        [view_id] = step.views
        if view_id in self.ours:
            self._bind(step, lambda _: True)
        assert self.core.handle(Returned(view_id)) == []

    def _bind(self, step: Step, changed: Callable[[str], bool]) -> None:
        commits = []
        for view_id in step.views:
            self.held.add(view_id)
            upper = self.views.state.view(view_id).upper
            fresh = changed(view_id)
            if not to_be_told(step, view_id, fresh, None, view_id in self.errors):
                continue
            end = self.ends.setdefault(view_id, 0)
            self.ends[view_id] += fresh
            commits.append(moved(view_id, upper, *([rows(view_id, end, end + 1)] if fresh else [])))
        verdict = self.views.tick(step.ts, *commits, epoch=self.core.epoch)
        assert verdict.reason is None, verdict

    def tick(self, ts: int | None = None, changed: Callable[[str], bool] = lambda _: True) -> list[Step]:
        """A whole one."""
        steps, told = [], self.begin(ts)
        while isinstance(told, Step):
            steps.append(told)
            assert len(steps) < 30, "it never rests"
            told = self.done(told, changed)
        assert told == Rest(bool(steps))
        return steps

    def _held(self) -> Held:
        return Held(tuple(self.held), tuple(self.errors))


def peek(name: str, *inputs: str, as_of: int | None = None, catalog_ts: int = 0) -> Peek:
    return Peek(name, "", inputs, CatalogTs(catalog_ts), None if as_of is None else DataTs(as_of), None, 1_000)


def test_a_life_claims_a_few_times_and_ends_where_it_is_outrun_each_time() -> None:
    core, error = Core(CLUSTER, Suspicions()), StaleEpoch(1, 2)
    assert core.handle(Started()) == [Claim()]
    for _ in range(core_module.CLAIMS_MAX - 1):
        assert core.handle(Outrun(error)) == [Claim()]
    assert core.handle(Outrun(error)) == [End(error)]


def test_a_life_ends_when_another_has_the_cluster_and_does_nothing_else_then() -> None:
    world = World()
    world.views.claim(expected=1)
    [end] = world.look(item("v"))
    assert isinstance(end, End) and isinstance(end.error, StaleEpoch)


def test_a_tick_is_asked_for_once_until_it_begins_and_again_where_a_view_is_new() -> None:
    world = World("a", "b", "v")
    assert world.ticks() == [], "the first one is still to begin"
    assert [s.views for s in world.tick()] == [("v",)]
    assert world.ticks() == []
    world.write("b")
    assert world.ticks() == [], "nothing reads that"
    world.write("a")
    now = world.log.state.last_ts
    assert world.ticks() == [Tick(now, False)]
    assert world.ticks() == [], "it is asked for"
    world.tick()
    world.change(*"abvw")
    assert world.ticks() == [Tick(now, True)], "there was one at that timestamp"
    assert [s.views for s in world.tick()] == [("w",)]


def test_what_came_while_a_tick_was_under_way_is_asked_for() -> None:
    world = World("a", "v")
    step = world.begin()
    world.write("a")
    now = world.log.state.last_ts
    assert world.ticks() == [Tick(now, False)]
    world.done(step)
    assert world.ticks() == [], "it is asked for"
    assert world.tick(now)[0].ts == now


def test_what_is_dropped_is_let_go_of_and_peeks_of_it_are_told() -> None:
    world = World()
    assert world.core.handle(Asked(peek("p", "x"), 0)) == []
    gone = world.change(*"abvwy")
    effects = world.look(*gone)
    assert effects[:2] == [Drop(item("x"), True), Follow()]
    assert Answer(Dropped(peek("p", "x"), "x")) in effects
    assert world.look(item("a"))[0] == Drop(item("a"), False)


def test_peeks_are_answered_once_whatever_comes_first() -> None:
    world = World("a", "v")
    reads = [peek(f"p{n}", "v") for n in range(3)]
    for each in reads:
        assert world.core.handle(Asked(each, 0)) == []
    assert world.core.waiting() == 3 and world.core.deadline_ms() == 1_000
    [given_up] = world.core.handle(GivenUp("p0"))
    assert given_up.outcome.peek == reads[0]
    world.tick()
    ready = [e for e in world.look() if isinstance(e, Answer)]
    assert [e.outcome for e in ready] == [Ready(each, world.log.state.last_ts) for each in reads[1:]]
    assert world.core.handle(Clock(5_000)) == world.core.handle(GivenUp("p1")) == []
    world.core.handle(Asked(peek("late", "v", as_of=1 << 40), 0))
    [late] = world.core.handle(Clock(1_000))
    assert isinstance(late.outcome, TimedOut)


def test_a_view_of_another_cluster_holds_back_who_reads_it_and_nobody_else() -> None:
    world = World()
    theirs = made(MATERIALIZED_VIEW, "v", on=("a",), cluster="theirs")
    world.objects = world.objects.set("v", theirs)
    world.ours = world.ours.delete("v")
    world.write("b")
    steps = world.tick()
    assert [s.views for s in steps] == [("w",)], "what reads it waits for it, and what reads that"
    world.views.claim("theirs")
    world.views.tick(world.log.state.last_ts, moved("v", 0), cluster="theirs")
    assert [set(s.views) for s in world.tick()] == [{"x", "y"}], "at the same timestamp as the others"


def test_a_start_takes_a_few_views_at_a_time_those_first_that_somebody_waits_for(monkeypatch) -> None:
    monkeypatch.setattr(core_module, "INSTALL_MAX", 1)
    world = World()
    world.core.handle(Asked(peek("p", "x", as_of=1 << 40), 0))
    # What is in memory goes along where what it reads moves.
    assert [(s.views, s.more) for s in world.tick(changed=lambda _: False)] == [
        (("v",), True), (("x",), True), (("w",), True), (("y",), False),
    ]  # fmt: skip


def test_suspects_go_one_by_one_after_the_others_and_what_they_read_is_read_alone() -> None:
    world = World()
    world.work.suspected = {"b"}
    first, *more = world.tick(changed=lambda _: False)
    assert (first.views, first.alone) == (("v",), ())
    assert all(len(step.views) == 1 for step in more)
    assert [step.views[0] for step in more[:2]] in (["w", "x"], ["x", "w"]) and more[0].alone == ("b",)
    assert {v for step in more for v in step.views} == {"w", "x", "y"}


def test_a_suspect_has_its_turn_though_rows_never_stop_coming() -> None:
    world = World()
    world.work.suspected = {"w"}
    told, steps = world.begin(), []
    while isinstance(told, Step) and len(steps) < 9:
        steps.append(told)
        world.write("a")
        if told.views == ("w",):
            world.work.suspected = set()  # it came through
        told = world.done(told)
    assert set(steps[0].views) == {"v", "x", "y"} and steps[1].views == ("w",)
    assert steps[1].ts == steps[0].ts, "it goes where all others are"


def test_views_go_to_the_newest_change_of_what_they_read_and_not_to_the_end_of_time() -> None:
    world = World()
    world.tick()
    world.write("a")
    changed = world.log.state.last_ts
    world.wait(5)
    assert [step.ts for step in world.tick()] == [changed]
    assert world.known.frontiers.exact("v") == (changed, changed + 5)
    world.write("b")
    world.write("a")
    assert [step.ts for step in world.tick(world.log.state.last_ts - 1)] == [world.log.state.last_ts - 1], (
        "nobody knows what changed last before the newest change"
    )
    world.wait(3)
    assert [step.ts for step in world.tick()] == [world.log.state.last_ts - 3]
    assert world.ticks() == []


def test_a_view_that_could_not_go_back_so_far_keeps_the_others_where_it_is() -> None:
    world = World("a", "b", "v", "x")
    world.tick()
    world.write("a")
    world.wait(4)
    world.change("a", "b", "v", "w", "x")  # a new one
    assert [step.ts for step in world.tick()] == [world.log.state.last_ts]
    world.wait(2)
    world.write("b")
    world.wait(2)
    assert [step.ts for step in world.tick()] == [world.log.state.last_ts - 2]


def test_a_few_suspects_come_to_one_timestamp_with_all_others_though_rows_never_stop_coming() -> None:
    """Who reads views one by one, as a sink does, compares what they say at a timestamp."""
    world = World()
    world.work.suspected = {"v", "w", "x"}
    told, steps = world.begin(), []
    while isinstance(told, Step):
        steps.append(told)
        world.write("a")
        world.work.suspected -= {*told.views}
        told = world.done(told)
    assert len(steps) > 2 and len({step.ts for step in steps}) == 1
    assert {v for step in steps for v in step.views} == {"v", "w", "x", "y"}


def test_a_large_view_is_made_beside_the_ticks_which_go_on_without_it_and_its_readers() -> None:
    world = World()
    world.large = {"v"}
    at = world.log.state.last_ts
    assert [(s.views, s.beside) for s in world.tick(changed=lambda _: False)] == [(("w",), False), (("v",), True)]
    assert world.ticks() == [], "nothing is to be done until it is there"
    world.write("b")
    assert [e.ts for e in world.ticks()] == [at + 1]
    assert [(s.views, s.beside) for s in world.tick()] == [(("w",), False)]
    assert world.ticks() == []
    world.returned()
    assert world.views.state.view("v").upper == at + 1, "it was made at the timestamp at which it was begun"
    assert world.ticks() == [Tick(at + 1, True)]
    assert [set(s.views) for s in world.tick()] == [{"x", "y"}]


def test_large_views_are_made_one_after_the_other_each_after_what_it_reads() -> None:
    world = World()
    world.large = {"v", "w", "x"}
    made_first = [s.views for s in world.tick()]
    assert made_first in ([("v",)], [("w",)])
    assert world.ticks() == [], "the others wait"
    order = [*made_first]
    for _ in range(2):
        world.returned()
        assert world.ticks() != []
        order += [s.views for s in world.tick() if s.beside]
    world.returned()
    assert [("v",), ("x",)] == [each for each in order if each != ("w",)] and ("w",) in order
    assert world.ticks() != [] and [s.views for s in world.tick()] == [("y",)]


def test_what_was_dropped_while_it_was_made_is_no_more_in_the_way() -> None:
    world = World()
    world.large = {"v"}
    world.tick()
    gone = world.change(*"abw")
    world.look(*gone)
    world.returned()
    world.write("b")
    assert world.ticks() != [] and [s.views for s in world.tick()] == [("w",)]


def test_a_large_suspect_is_taken_alone_and_not_beside_anything() -> None:
    world = World("a", "b", "v", "w")
    world.large, world.work.suspected = {"v", "w"}, {"v"}
    assert [(s.views, s.beside) for s in world.tick()] == [(("v",), False), (("w",), True)]


def test_a_view_in_quarantine_is_tried_again_once_it_is_released() -> None:
    world = World("a", "v")
    world.work.quarantined = {"v"}
    step = world.begin()
    world.views.tick(step.ts, moved("v", 0, error=encode_error(refusal("v"))))
    assert world.core.handle(Stepped(world.known, Held(errors=("v",)))) == [Rest(True)]
    assert world.ticks() == [] == world.ticks()
    world.work.quarantined = set()
    assert world.ticks() == [], "nobody said so, and nobody asks for each record of the oracle"
    world.wait(1)
    assert world.core.handle(Released()) == []
    assert world.ticks() == [Tick(step.ts + 1, False)]
    assert [s.views for s in world.tick()] == [("v",)]


def test_the_error_of_what_is_read_now_counts_before_what_it_was() -> None:
    one, other = TidemarkError("one", sqlstate="22012"), TidemarkError("other", sqlstate="22012")
    assert inherited(("a", "b"), {}, {}) is None
    assert inherited(("a", "b"), {}, {"b": other}) is other
    assert inherited(("a", "b"), {"b": None}, {"b": other}) is None
    assert inherited(("a", "b"), {"b": one}, {"b": other}) is one


def taken_along(world: World, told: Step | Rest) -> str | None:
    """Whether more goes with a suspect in one step."""
    if isinstance(told, Step) and len(told.views) > 1 and {*told.views} & world.work.suspected:
        return f"{told} takes a suspect along"
    return None


def random_history(seed: int) -> str | None:
    """What is wrong after random events, each effect carried out sooner or later; ``None`` if nothing is."""
    rng = random.Random(seed)
    world = World(*rng.sample("ab", 2), "v")
    due, told, wrong, waits, answered = True, None, None, {}, {}
    for n in range(120):
        kind = rng.random()
        if kind < 0.3:
            world.write(rng.choice("ab"))
        elif kind < 0.4:
            world.wait(rng.randint(1, 3))
        elif kind < 0.5 and told is None:
            views = [v for v in "vwxy" if rng.random() < 0.6]
            there = "ab" + "".join(v for v in views if set(INPUTS[v]) <= {"a", "b", *views})
            beside = world.beside.views[0] if world.beside is not None else None
            for each in world.change(*there, *(beside or "")):  # whoever is at work is dropped once it is done
                world.views.add(ViewsKind.DROP, names=(each.id,))
                world.ends.pop(each.id, None)
        elif kind < 0.55:
            world.work.suspected ^= {rng.choice("abvwxy")}
        elif kind < 0.57:
            world.large ^= {rng.choice("vwxy")}
        elif kind < 0.6 and world.beside is not None:
            world.returned()
        elif kind < 0.65:
            ours = sorted(world.ours)
            if ours:
                read = peek(f"p{n}", rng.choice(ours), as_of=rng.choice((None, int(world.log.state.last_ts))))
                waits[read.peek_id] = read
                for answer in world.core.handle(Asked(read, n)):
                    answered[answer.outcome.peek.peek_id] = answer.outcome
        elif kind < 0.9 and due and told is None:
            due, told = False, world.begin()
            wrong = taken_along(world, told)
        elif isinstance(told, Step):
            step = told
            told = world.done(step, lambda _: rng.random() < 0.5)
            wrong = wrong or taken_along(world, told)
            world.work.suspected -= {*step.views, *step.alone}
        if wrong:
            return wrong
        told = None if isinstance(told, Rest) else told
        for effect in world.look():
            if isinstance(effect, Tick):
                due = True
            elif isinstance(effect, Answer):
                if effect.outcome.peek.peek_id in answered:
                    return f"{effect} is told twice"
                answered[effect.outcome.peek.peek_id] = effect.outcome
    for _ in range(40):  # until nothing is to be done
        if world.beside is not None:
            world.returned()
        if told is None and due:
            due, told = False, world.begin()
        while isinstance(told, Step):
            step = told
            told = world.done(step)
            world.work.suspected -= {*step.views, *step.alone}
        told = None
        for effect in world.look():
            due = due or isinstance(effect, Tick)
            if isinstance(effect, Answer):
                answered[effect.outcome.peek.peek_id] = effect.outcome
    frontiers = world.known.frontiers
    for view_id, each in world.ours.items():
        upper = world.views.state.view(view_id).upper
        if upper == 0 or any(frontiers.changed_since(i, upper) for i in each.inputs):
            return f"{view_id} stays behind at {upper}"
    left = waits.keys() - answered.keys()
    return f"{left} were never answered" if left else None


@pytest.mark.parametrize("seed", range(60))
def test_all_that_is_behind_comes_along_and_all_that_waits_is_answered(seed: int) -> None:
    assert random_history(seed) is None


@pytest.mark.parametrize("mistake", ["idle", "again", "with readers", "suspects", "left"])
def test_a_mistake_is_found(monkeypatch, mistake: str) -> None:
    if mistake == "idle":
        monkeypatch.setattr(Core, "_needing", lambda self, known, ts: [])
    elif mistake == "again":
        original = Core._moved
        monkeypatch.setattr(Core, "_moved", lambda self, *args: [
            e for e in original(self, *args) if not (isinstance(e, Tick) and e.again)
        ])  # fmt: skip
    elif mistake == "with readers":
        monkeypatch.setattr(core_module, "_with_readers", lambda known, views: [v for v in views if v != "y"])
    elif mistake == "left":
        monkeypatch.setattr(Core, "_left", lambda self, known: ())
    else:
        monkeypatch.setattr(Suspicions, "suspects", lambda self, names: [])
    assert any(_history_fails(seed) for seed in range(60))


def _history_fails(seed: int) -> bool:
    try:
        return random_history(seed) is not None
    except AssertionError:
        return True
