"""The engine that settles what was sent, as a core: events in, effects out, under both policies (I2, I10)."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from journal import sender
from journal.errors import Indeterminate, Rejected, Unavailable
from journal.fences import Fences
from journal.sender import Failed, Folded, LaneSpec, Renew, Send, Sender, Served
from journal.settling import Fence, Flight, Policy, SameAgain, Token

WRITE, READ = LaneSpec("write", items_max=2), LaneSpec("read", read=True)
PLACE = LaneSpec("place", items_max=1, flights_max=3, about=lambda payload: f"payload {payload}")

FULL = Rejected("the send queue is full", sqlstate="53400")
GONE = Unavailable("the journal is closed")


class Outcome(NamedTuple):
    """Of a record with a number (``refused``: it counted for nothing) or of a place in the log that is taken."""

    token: Token | None = None
    refused: str | None = None
    place: int = 0


def at_place(outcome: Outcome, flights: Iterable[Flight]) -> Iterable[Flight]:
    return [flight for flight in flights if flight.payload <= outcome.place]


def fencing(*lanes: LaneSpec) -> Sender:
    return Sender("w", lanes or (WRITE, READ), Fence(lambda token: b""))


def again() -> Sender:
    return Sender("w", [PLACE], SameAgain(at_place))


def told(effects: Iterable[Any]) -> list[str]:
    """Effects in a word each: what is sent as ``lane/incarnation.seq payloads``."""
    words = []
    for effect in effects:
        match effect:
            case Send(flight):
                payloads = " ".join(str(item.payload) for item in flight.items)
                words.append(f"{flight.lane}/{flight.token.incarnation}.{flight.token.seq} {payloads}".strip())
            case Renew():
                words.append("renew")
            case Folded(flight, _):
                words.append(f"folded {' '.join(str(item.payload) for item in flight.items)}".strip())
            case Served(_, items):
                words.append(f"served {' '.join(str(item.payload) for item in items)}")
            case Failed(waiters, error):
                words += [f"{type(error).__name__} {waiter}" for waiter in waiters]
    return words


def give(core: Sender, lane: LaneSpec, *payloads: Any, now: int = 0) -> list[str]:
    return [word for each in payloads for word in told(core.submit(lane.name, each, each, 1, now))]


def token(seq: int, incarnation: int = 1, writer: str = "w") -> Token:
    return Token(writer, incarnation, seq)


def folded(core: Sender, seq: int, incarnation: int = 1, now: int = 0, **more: Any) -> list[str]:
    return told(core.folded([Outcome(token(seq, incarnation), **more)], now))


def test_what_comes_while_a_record_is_under_way_shares_the_next_ones() -> None:
    core = fencing()
    assert give(core, WRITE, "a", "b", "c", "d") == ["write/1.1 a"]
    assert folded(core, 1) == ["folded a", "write/1.2 b c"]
    assert folded(core, 2) == ["folded b c", "write/1.3 d"]
    assert folded(core, 3) == ["folded d"] and core.backlog == 0


def test_a_fence_tells_what_never_happened_and_that_is_sent_as_something_new() -> None:
    core = fencing()
    assert give(core, WRITE, "a", "b") + give(core, READ, "r") == ["write/1.1 a", "read/1.2 r"]
    assert told(core.unanswered(token(1), 0)) == ["renew"]
    assert give(core, READ, "q") == [], "nothing else is sent until it is known"
    assert told(core.renewed(0)) == ["fence/2.3"]
    assert folded(core, 3, 2) == ["served r", "folded", "write/2.4 a b", "read/2.5 q"]


def test_what_landed_before_the_fence_is_not_sent_again() -> None:
    core = fencing()
    give(core, WRITE, "a")
    core.unanswered(token(1), 0)
    core.renewed(0)
    assert folded(core, 1) == ["folded a"]
    assert folded(core, 2, 2) == ["folded"] and core.backlog == 0


def test_what_lands_after_the_fence_disturbs_nobody() -> None:
    core = fencing()
    give(core, WRITE, "a")
    core.unanswered(token(1), 0)
    core.renewed(0)
    assert folded(core, 2, 2) == ["folded", "write/2.3 a"]
    assert folded(core, 1, refused="fenced") == []
    assert folded(core, 3, 2) == ["folded a"]


def test_any_later_record_of_ours_settles_an_earlier_one() -> None:
    core = fencing()
    give(core, WRITE, "a")
    give(core, READ, "r")
    assert folded(core, 2) == ["folded r", "write/1.3 a"]
    assert told(core.unanswered(token(1), 0)) == [], "that was settled meanwhile"


def test_the_same_is_sent_again_in_order_until_its_place_is_taken() -> None:
    core = again()
    assert give(core, PLACE, 1, 2, 3, 4) == ["place/1.1 1", "place/1.2 2", "place/1.3 3"]
    assert told(core.unanswered(token(2), 0)) == ["renew"]
    assert give(core, PLACE, 5) == [], "it would overtake those before it"
    assert told(core.renewed(0)) == ["place/2.1 1", "place/2.2 2", "place/2.3 3"]
    assert told(core.folded([Outcome(place=2)], 0)) == ["folded 1", "folded 2", "place/2.4 4", "place/2.5 5"]
    assert told(core.folded([Outcome(place=9)], 0)) == ["folded 3", "folded 4", "folded 5"]


def test_what_a_first_copy_was_told_late_is_no_news_of_the_second() -> None:
    core = again()
    give(core, PLACE, 1, 2)
    core.unanswered(token(1), 0)
    core.renewed(0)
    assert told(core.unanswered(token(2), 0)) == []
    assert told(core.refused(token(2), FULL, 0)) == [], "it is refused of a copy only"
    assert told(core.folded([Outcome(place=2)], 0)) == ["folded 1", "folded 2"]


@pytest.mark.parametrize("make, lane", [(fencing, WRITE), (again, PLACE)])
def test_a_refusal_is_certain_of_what_was_sent_once(make: Any, lane: LaneSpec) -> None:
    core = make()
    give(core, lane, 1)
    give(core, lane, 2)
    assert told(core.refused(token(1), FULL, 0))[0] == "Rejected 1"


@pytest.mark.parametrize("make, lane", [(fencing, WRITE), (again, PLACE)])
@pytest.mark.parametrize("how", ["unanswered", "refused"])
def test_settling_is_tried_again_after_a_pause_and_for_ever(make: Any, lane: LaneSpec, how: str) -> None:
    core = make()
    give(core, lane, 1)
    core.unanswered(token(1), 0)
    now = 0
    for _ in range(20):
        [sent] = core.renewed(now)
        sent = sent.flight.token
        found = core.unanswered(sent, now) if how == "unanswered" else core.refused(sent, FULL, now)
        assert told(found) == []
        assert told(core.tick(now + sender.AGAIN_MS - 1)) == []
        now += sender.AGAIN_MS
        assert told(core.tick(now)) == ["renew"]
        assert told(core.unanswered(sent, now)) == [], "once is enough"


@pytest.mark.parametrize("make, lane", [(fencing, WRITE), (again, PLACE)])
def test_a_transport_that_forgets_to_answer_is_not_waited_for(make: Any, lane: LaneSpec) -> None:
    core = make()
    give(core, lane, 1)
    assert told(core.tick(sender.UNANSWERED_MS - 1)) == []
    assert told(core.tick(sender.UNANSWERED_MS)) == ["renew"]
    core.renewed(sender.UNANSWERED_MS)
    assert told(core.tick(2 * sender.UNANSWERED_MS)) == ["renew"], "of the next one neither"


def test_what_is_acknowledged_is_waited_for() -> None:
    core = fencing()
    give(core, WRITE, 1)
    core.acknowledged(token(1))
    assert told(core.tick(3 * sender.UNANSWERED_MS)) == []


def test_a_log_that_moves_on_is_given_time() -> None:
    core = again()
    give(core, PLACE, 1, 2, 3)
    core.folded([Outcome(place=1)], sender.UNANSWERED_MS - 1)
    assert told(core.tick(sender.UNANSWERED_MS)) == []
    assert told(core.tick(2 * sender.UNANSWERED_MS - 1)) == ["renew"]


def test_nothing_of_a_record_is_sent_after_its_caller_was_told_that_nobody_knows() -> None:
    core = again()
    core.submit(PLACE.name, 1, 1, 1, 0)
    core.unanswered(token(1), 0)
    core.renewed(0)
    [failed] = core.tick(sender.DEADLINE_MS)
    assert isinstance(failed.error, Indeterminate) and failed.error.detail == "payload 1"
    assert core.backlog == 0
    assert told(core.unanswered(token(1, 2), sender.DEADLINE_MS)) == []
    assert told(core.tick(10 * sender.DEADLINE_MS)) == []
    assert told(core.folded([Outcome(place=9)], 0)) == []
    assert give(core, PLACE, 7) == ["place/2.2 7"], "and others go on"


def test_late_work_is_answered_by_what_is_known_of_it() -> None:
    core = fencing()
    give(core, WRITE, "sent", "waits")
    give(core, READ, "read")
    core.acknowledged(token(1))
    core.acknowledged(token(2))
    assert told(core.tick(sender.DEADLINE_MS)) == ["Unavailable waits", "Indeterminate sent", "Unavailable read"]


@pytest.mark.parametrize("make, lane", [(fencing, WRITE), (again, PLACE)])
def test_closing_answers_everybody_once_and_ends_everything(make: Any, lane: LaneSpec) -> None:
    core = make()
    for each in range(lane.flights_max + 1):
        give(core, lane, each)
    core.unanswered(token(1), 0)
    assert told(core.close(GONE)) == [f"Unavailable {lane.flights_max}"] + [
        f"Indeterminate {each}" for each in range(lane.flights_max)]  # fmt: skip
    assert [*core.close(GONE), *core.renewed(0), *core.tick(10**6), *core.unanswered(token(1), 0)] == []
    assert core.backlog == 0
    with pytest.raises(Unavailable):
        give(core, lane, 9)


def test_queues_and_records_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender, "QUEUE_LEN_MAX", 2)
    core = fencing()
    give(core, WRITE, "sent", 1, 2)
    with pytest.raises(Rejected) as full:
        give(core, WRITE, 3)
    with pytest.raises(Rejected) as large:
        core.submit(READ.name, "r", "r", sender.RECORD_BYTES_MAX + 1, 0)
    assert (full.value.sqlstate, large.value.sqlstate) == ("53400", "54000")


class World:
    """One engine, a log, and chance: what is sent lands now, later, twice or never, and is answered truly or not."""

    def __init__(self, policy: Policy, lanes: Sequence[LaneSpec], seed: int) -> None:
        self.core = Sender("w", lanes, policy)
        self.lane = lanes[0].name
        self.numbered = isinstance(policy, Fence)
        self.random = random.Random(seed)
        self.now = 0
        self.log: list[tuple[Token, tuple[int, ...]]] = []
        self.read = 0
        self.late: list[tuple[Token, tuple[int, ...]]] = []
        self.fences = Fences()
        self.taken: list[int] = []
        """Payloads that count, by the fold."""
        self.answers: dict[int, str] = {}

    def perform(self, effects: Iterable[Any]) -> None:
        for effect in effects:
            match effect:
                case Send(flight):
                    self.send(flight)
                case Renew():
                    self.perform(self.core.renewed(self.now))
                case Folded(flight, outcome):
                    for item in flight.items:
                        if item.waiter is not None:
                            self.answer(item.payload, "refused" if outcome.refused else "done")
                case Failed(waiters, error):
                    for waiter in waiters:
                        self.answer(waiter, "unknown" if isinstance(error, Indeterminate) else "no")

    def answer(self, payload: int, how: str) -> None:
        assert payload not in self.answers, f"{payload} is answered twice"
        self.answers[payload] = how

    def send(self, flight: Flight) -> None:
        record = flight.token, tuple(item.payload for item in flight.items)
        for payload in record[1]:
            assert self.answers.get(payload) is None, f"{payload} is sent though its caller was answered"
        fate = self.random.choice(["ok", "ok", "ok", "lied", "late", "lost", "refused", "doubled"])
        if fate in ("ok", "lied", "doubled"):
            self.log.append(record)
        if fate in ("late", "doubled"):
            self.late.append(record)
        if fate in ("ok", "doubled"):
            self.core.acknowledged(flight.token)
        elif fate == "refused":
            self.perform(self.core.refused(flight.token, FULL, self.now))
        else:
            self.perform(self.core.unanswered(flight.token, self.now))

    def continues(self, payload: int) -> bool:
        """Payloads say where in the log they belong."""
        return payload == len(self.taken)

    def fold(self, count: int) -> None:
        outcomes = []
        for record, payloads in self.log[self.read : self.read + count]:
            refused = None
            if self.numbered and self.fences.shuts_out(record.writer, record.seq):
                refused = "fenced"
            elif self.numbered:
                self.fences = self.fences.passed(record.writer, record.seq, 0)
                self.taken += payloads
            elif self.continues(payloads[0]):
                self.taken += payloads
            outcomes.append(Outcome(record, refused, len(self.taken) - 1))
        self.read += len(outcomes)
        self.perform(self.core.folded(outcomes, self.now))

    def step(self, number: int) -> None:
        match self.random.randrange(6):
            case 0 | 1:
                self.perform(self.core.submit(self.lane, number, number, 1, self.now))
                return
            case 2:
                self.fold(self.random.randint(1, 3))
            case 3 if self.late:
                self.log.append(self.late.pop(self.random.randrange(len(self.late))))
            case _:
                self.now += self.random.choice([100, 300, 1000, 1000, 5000])
                self.perform(self.core.tick(self.now))
        self.step(number)


def run(kind: str, seed: int, count: int = 12) -> World:
    """``count`` pieces of work in a bad network, which becomes a good one; every answer is looked at."""
    policy, lane = (Fence(lambda token: b""), WRITE) if kind == "fence" else (SameAgain(at_place), PLACE)
    world = World(policy, [lane], seed)
    for number in range(count):
        world.step(number)
    for _ in range(200):
        world.fold(100)
        world.now += 250
        world.perform(world.core.tick(world.now))
    assert sorted(world.answers) == list(range(count)) and world.core.backlog == 0, f"seed {seed}"
    world.log += world.late
    world.fold(10_000)
    assert len(set(world.taken)) == len(world.taken), f"seed {seed}: it happened twice"
    for number, answer in world.answers.items():
        true = answer == "unknown" or (number in world.taken) == (answer == "done")
        assert true, f"seed {seed}: {number} was answered {answer}"
    return world


@pytest.mark.parametrize("kind", ["fence", "same"])
@given(seed=st.integers(0, 2**32))
@settings(max_examples=200, deadline=None)
def test_every_answer_is_true_whatever_the_network_does(kind: str, seed: int) -> None:
    run(kind, seed)


@pytest.mark.parametrize("kind", ["fence", "same"])
def test_every_kind_of_answer_is_reached(kind: str) -> None:
    assert {answer for seed in range(100) for answer in run(kind, seed).answers.values()} == {"done", "no", "unknown"}


@pytest.mark.parametrize("kind", ["fence", "same"])
@pytest.mark.parametrize("mistake", ["nothing is fenced off", "silence is failure", "silence is sent as something new"])
def test_mistakes_are_convicted(kind: str, mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check is checked."""
    if mistake == "nothing is fenced off":
        monkeypatch.setattr(Fences, "shuts_out", lambda *_: False)
        monkeypatch.setattr(World, "continues", lambda *_: True)
    elif mistake == "silence is failure":
        monkeypatch.setattr(Sender, "unanswered", lambda core, token, now: core.refused(token, FULL, now))
    else:
        monkeypatch.setattr(Sender, "unanswered", sent_as_new)
    convicted = 0
    for seed in range(60):
        try:
            run(kind, seed)
        except AssertionError:
            convicted += 1
    assert convicted > 10


def sent_as_new(core: Sender, token: Token, now: int) -> list[Any]:
    """What was not answered is taken not to have happened."""
    flight = core._flights.get(token.seq)
    return [] if flight is None else [*core._undone(flight), *core.flush(now)]
