"""Which record to send next, and what became of those whose answer was lost: a sans-IO core (DESIGN I2, I10).  Pure.

Promises, for everything submitted: exactly one answer, within its deadline (plus a tick).  What is answered as done
is in the log exactly once; what is answered as refused or unavailable is not in the log and never will be; the rest
is answered ``Indeterminate``, and nothing of it is sent from then on.

Work waits in *lanes*.  A lane has at most ``flights_max`` records in flight; what arrives meanwhile shares the next
one (group commit).  So where that is one, N callers who arrive while a record is under way cost one more record,
however many they are.

A lost answer is settled as the journal's policy says (:mod:`journal.settling`): the producer is renewed, which begins
the next *incarnation*, and then a fence is appended, or everything undecided once more.  Where that is lost too it is
done again, until the fold has told.

The shell (:mod:`journal.link`, or one of a user's own) performs the effects in their order and brings back what
happened.  Not thread-safe: it holds a lock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from journal.errors import Indeterminate, Rejected, TidemarkError, Unavailable
from journal.settling import Fence, Flight, Item, Policy, Token

DEADLINE_MS = 15_000
"""How long anything may take: the longest that a hung producer's write was seen to land late (FACTS), and seven
watchdogs."""

UNANSWERED_MS = 4_000
"""A record that was neither acknowledged nor refused for this long is settled, whatever its transport says: twice the
transport's own watchdog, so that this one only serves a transport that forgot to answer."""

AGAIN_MS = 250
"""Pause before settling is tried again: a transport that refuses (its queue is full) does so at once; one that is
silent takes its watchdog's time for each try anyway."""

QUEUE_LEN_MAX = 100_000
"""Items that may wait in a lane: as many as the producer's queue holds; beyond it callers are refused (53400)."""

QUEUE_BYTES_MAX = 64 * 1024 * 1024
"""Bytes that may wait in a lane: as many as the producer's queue holds."""

RECORD_BYTES_MAX = 4 * 1024 * 1024
"""Largest record that is sent: half of what the topics take."""

FENCE = "fence"
"""The lane of what is sent for no other purpose."""


class LaneSpec(NamedTuple):
    """``items_max`` is how many share a record; ``read`` says that the lane's records have no effect of their own."""

    name: str
    items_max: int = 10_000
    read: bool = False
    flights_max: int = 1
    about: Callable[[Any], str] | None = None
    """What is said of a record's first payload where nobody knows what became of it."""


class Send(NamedTuple):
    """Append a record of ``flight.lane`` for the payloads of ``flight.items``, as ``flight.token``."""

    flight: Flight


class Renew(NamedTuple):
    """Renew the producer, then call :meth:`Sender.renewed`."""


class Folded(NamedTuple):
    """``outcome`` decides the flight: answer each item that still has a waiter."""

    flight: Flight
    outcome: Any


class Served(NamedTuple):
    """Items of a ``read`` lane that a later record of ours answers as well as their own would have."""

    lane: str
    items: list[Item]


class Failed(NamedTuple):
    """Answer these waiters with ``error``."""

    waiters: list[Any]
    error: TidemarkError


Effect = Send | Renew | Folded | Served | Failed


class _Lane:
    __slots__ = ("spec", "queue", "weight", "flights")

    def __init__(self, spec: LaneSpec) -> None:
        self.spec = spec
        self.queue: deque[Item] = deque()
        self.weight = 0
        """Of the whole queue."""
        self.flights = 0
        """How many are under way."""

    def pop(self) -> Item:
        item = self.queue.popleft()
        self.weight -= item.weight
        return item

    def put_back(self, items: Sequence[Item]) -> None:
        self.queue.extendleft(reversed(items))
        self.weight += sum(item.weight for item in items)

    def next(self) -> list[Item]:
        """Take what the next record carries."""
        items, weight = [], 0
        while self.queue and len(items) < self.spec.items_max and weight + self.queue[0].weight <= RECORD_BYTES_MAX:
            items.append(self.pop())
            weight += items[-1].weight
        return items


class Sender:
    """``writer`` must never have been used before by anybody: incarnations start at 1."""

    def __init__(
        self,
        writer: str,
        lanes: Iterable[LaneSpec],
        policy: Policy,
        *,
        deadline_ms: int = DEADLINE_MS,
        unanswered_ms: int = UNANSWERED_MS,
    ) -> None:
        self.writer = writer
        self.incarnation = 1
        self._policy = policy
        self._fences = isinstance(policy, Fence)
        self._lanes = {spec.name: _Lane(spec) for spec in (*lanes, LaneSpec(FENCE, read=True))}
        self._deadline_ms = deadline_ms
        self._unanswered_ms = unanswered_ms
        self._flights: dict[int, Flight] = {}
        """By ``seq``, hence in the order of sending."""
        self._seq = 0
        self._tries = 0
        """How often the producer was renewed for the present lost answer; 0: none is lost."""
        self._renewing = False
        self._again_at_ms: int | None = None
        """When to try once more."""
        self._told_ms = 0
        """When the fold last said something about us."""
        self._closed: TidemarkError | None = None

    @property
    def backlog(self) -> int:
        """Records under way and items that wait to be sent; 0: nobody waits for an answer, nothing for the clock."""
        return len(self._flights) + sum(len(lane.queue) for lane in self._lanes.values())

    def submit(
        self, lane_name: str, payload: Any, waiter: Any, weight: int, now_ms: int, *, hold: bool = False
    ) -> Sequence[Effect]:
        """Take one piece of work of about ``weight`` bytes, or raise ``Rejected`` (54000 too large, 53400 too many).

        ``hold``: more is about to come, so send nothing yet; :meth:`flush` follows soon.
        """
        if self._closed is not None:
            raise self._closed
        lane = self._lanes[lane_name]
        if weight > RECORD_BYTES_MAX:
            raise Rejected(f"{lane_name} of about {weight} bytes is too large", sqlstate="54000",
                           detail=f"the limit is {RECORD_BYTES_MAX} bytes")  # fmt: skip
        if len(lane.queue) >= QUEUE_LEN_MAX or lane.weight + weight > QUEUE_BYTES_MAX:
            raise Rejected(f"too many wait for {lane_name}", sqlstate="53400", hint="retry after a moment",
                           detail=f"the limits are {QUEUE_LEN_MAX} and {QUEUE_BYTES_MAX} bytes")  # fmt: skip
        lane.queue.append(Item(payload, waiter, weight, now_ms + self._deadline_ms))
        lane.weight += weight
        return () if hold else self._next(lane, now_ms)

    def flush(self, now_ms: int) -> list[Effect]:
        """Send the next records of every lane that has work and may have more in flight."""
        return [effect for lane in self._lanes.values() if lane.queue for effect in self._next(lane, now_ms)]

    def folded(self, outcomes: Iterable[Any], now_ms: int) -> list[Effect]:
        """These outcomes were folded, in this order."""
        effects: list[Effect] = []
        ours = False
        for outcome in outcomes:
            told = self._policy.told(outcome, self._flights, self.writer, self.incarnation)
            if told is None:
                continue
            ours = True
            for flight in told.undone:
                effects += self._undone(flight)
            for flight in told.decided:
                self._land(flight)
                effects.append(Folded(flight, outcome))
            if told.settled:
                self._settled()
        if not ours:
            return effects
        self._told_ms = now_ms
        return effects + self.flush(now_ms)

    def acknowledged(self, token: Token) -> None:
        """The record is durable; its outcome will come with the fold."""
        flight = self._flights.get(token.seq)
        if flight is not None:
            flight.acknowledged = True

    def unanswered(self, token: Token, now_ms: int) -> list[Effect]:
        """Nobody said whether the record is in the log: settle it."""
        if token.incarnation < self.incarnation or token.seq not in self._flights:
            return []  # being settled already by what was sent later, or decided
        if not self._tries:
            return self._settle()
        if self._again_at_ms is None:
            self._again_at_ms = now_ms + AGAIN_MS  # it may be folded meanwhile: then all is well
        return []

    def refused(self, token: Token, error: TidemarkError, now_ms: int) -> list[Effect]:
        """The transport knows that what was appended as ``token`` is not in the log and never will be."""
        flight = self._flights.get(token.seq)
        if flight is None:
            return []
        if flight.settles:
            return self.unanswered(token, now_ms)
        self._land(flight)
        return [Failed(_take(flight.items), error), *self._next(self._lanes[flight.lane], now_ms)]

    def renewed(self, now_ms: int) -> list[Effect]:
        """The producer was renewed: send what settles the lost answer, then whatever waits."""
        if not self._renewing:
            return []  # closed
        self._renewing = False
        flights = [self._fly(self._lanes[FENCE], [], now_ms)] if self._fences else list(self._flights.values())
        for flight in flights:
            flight.token = flight.token._replace(incarnation=self.incarnation)
            flight.sent_ms, flight.acknowledged, flight.settles = now_ms, False, True
        return [*map(Send, flights), *self.flush(now_ms)]

    def tick(self, now_ms: int) -> list[Effect]:
        """Time passed: answer what is late, settle what nobody answered, try again what settles."""
        effects: list[Effect] = []
        for lane in self._lanes.values():
            effects += _late(lane, now_ms)
        for flight in list(self._flights.values()):
            if late := _take(item for item in flight.items if item.deadline_ms <= now_ms):
                effects.append(Failed(late, self._unknown(flight)))
                if all(item.waiter is None for item in flight.items):
                    self._land(flight)
        return effects + (self._settle() if self._overdue(now_ms) else self.flush(now_ms))

    def close(self, error: TidemarkError) -> list[Effect]:
        """Send and fold nothing more.  What may be in the log is ``Indeterminate``; the rest fails with ``error``."""
        if self._closed is not None:
            return []
        self._closed = error
        effects: list[Effect] = []
        for lane in self._lanes.values():
            effects.append(Failed(_take(lane.queue), error))
            lane.queue.clear()
            lane.weight = 0
        for flight in list(self._flights.values()):
            effects.append(Failed(_take(flight.items), self._unknown(flight, error)))
            self._land(flight)
        self._renewing = False
        return effects

    @property
    def _held(self) -> bool:
        """Whether nothing may be sent now but what settles a lost answer."""
        return self._closed is not None or self._renewing or (self._fences and self._tries > 0)

    def _next(self, lane: _Lane, now_ms: int) -> list[Effect]:
        """Send the next records of ``lane``, if there is anything to send and it may be sent."""
        effects: list[Effect] = []
        while lane.queue and lane.flights < lane.spec.flights_max and not self._held:
            effects.append(Send(self._fly(lane, lane.next(), now_ms)))
        return effects

    def _fly(self, lane: _Lane, items: list[Item], now_ms: int) -> Flight:
        self._seq += 1
        flight = self._flights[self._seq] = Flight(
            Token(self.writer, self.incarnation, self._seq), lane.spec.name, items, now_ms
        )
        lane.flights += 1
        return flight

    def _land(self, flight: Flight) -> None:
        """Nothing more is to be learned of ``flight``, or nobody waits for it any more."""
        del self._flights[flight.token.seq]
        self._lanes[flight.lane].flights -= 1
        if not self._flights:
            self._settled()

    def _undone(self, flight: Flight) -> list[Effect]:
        """What ``flight`` carries waits again, before all that came later; reads have been served."""
        self._land(flight)
        lane = self._lanes[flight.lane]
        wanted = [item for item in flight.items if item.waiter is not None]
        if lane.spec.read:
            return [Served(flight.lane, wanted)] if wanted else []
        lane.put_back(wanted)
        return []

    def _unknown(self, flight: Flight, closed: TidemarkError | None = None) -> TidemarkError:
        """What its callers are told who get no answer, because of ``closed`` or for too long."""
        spec = self._lanes[flight.lane].spec
        if spec.read:
            return closed or _impossible(spec)
        return Indeterminate(
            f"no answer to {spec.name} in time" if closed is None else f"{closed.message} before the answer came",
            detail=spec.about(flight.payload) if spec.about is not None else closed and closed.detail,
            hint="it may have happened and may still: look before trying again",
        )

    def _overdue(self, now_ms: int) -> bool:
        """Whether it is time to settle (once more)."""
        if self._again_at_ms is not None:
            return self._again_at_ms <= now_ms
        sent = [f.sent_ms for f in self._flights.values()
                if not f.acknowledged and f.token.incarnation == self.incarnation]  # fmt: skip
        return bool(sent) and max(min(sent), self._told_ms) + self._unanswered_ms <= now_ms

    def _settle(self) -> list[Effect]:
        self.incarnation += 1
        self._tries += 1
        self._renewing = True
        self._again_at_ms = None
        return [Renew()]

    def _settled(self) -> None:
        self._tries = 0
        self._again_at_ms = None


def _take(items: Iterable[Item]) -> list[Any]:
    """The waiters of ``items`` that were not answered yet, taken out so that nobody answers them again."""
    waiters = []
    for item in items:
        if item.waiter is not None:
            waiters.append(item.waiter)
            item.waiter = None
    return waiters


def _late(lane: _Lane, now_ms: int) -> list[Effect]:
    """Answer the items of a lane's queue whose time is up (the oldest are first): they are not in the log."""
    late = []
    while lane.queue and lane.queue[0].deadline_ms <= now_ms:
        late.append(lane.pop())
    return [Failed(_take(late), _impossible(lane.spec))] if late else []


def _impossible(spec: LaneSpec) -> Unavailable:
    return Unavailable(f"{spec.name} was not possible in time", detail="nothing happened",
                       hint="is the broker running?")  # fmt: skip
