"""Which record to send next, and what became of those whose answer was lost: a sans-IO core (DESIGN I10).  Pure.

Promises, for everything submitted: exactly one answer, within its deadline (plus a tick).  What is answered as done
is in the log exactly once; what is answered as refused or unavailable is not in the log and never will be; the rest
is answered ``Indeterminate``.

Work waits in *lanes*.  A lane has at most one record in flight; what arrives meanwhile shares the next one (group
commit).  So N callers who arrive while a record is under way cost one more record, however many they are.

A lost answer.  The append got no answer; its record may be in the log, may land later, or never.  Sending it again
could do it twice; reporting a failure could be a lie.  But every fold refuses a record that comes after a later one of
its writer (:mod:`oracle.fences`).  So: open a fresh producer (the next *incarnation*) and append a *fence*.  Having
folded a record of our own we know: what we saw of those before it happened, the rest never will and may be sent again.

The shell (:mod:`oracle.link`) performs the effects and brings back what happened.  Not thread-safe: it holds a lock.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from journal.errors import Indeterminate, Rejected, TidemarkError, Unavailable
from oracle.model import Token

DEADLINE_MS = 15_000
"""How long anything may take: the longest that a hung producer's write was seen to land late (FACTS)."""

UNANSWERED_MS = 4_000
"""A record that was neither acknowledged nor refused for this long is settled, whatever its transport says: twice the
transport's own watchdog, so that this one only serves a transport that forgot to answer."""

FENCE_RETRY_MS_MIN = 100
FENCE_RETRY_MS_MAX = 2_000
"""Pause before another fence where the transport refused the last one at once; doubles up to a watchdog's length."""

QUEUE_LEN_MAX = 100_000
"""Items that may wait in a lane: as many as the producer's queue holds; beyond it callers are refused (53400)."""

QUEUE_BYTES_MAX = 64 * 1024 * 1024
"""Bytes that may wait in a lane: as many as the producer's queue holds."""

RECORD_BYTES_MAX = 4 * 1024 * 1024
"""Largest record that is sent: half of what the topics take."""


class LaneSpec(NamedTuple):
    """``items_max`` is how many share a record; ``read`` says that the lane's records have no effect of their own."""

    name: str
    items_max: int = 10_000
    read: bool = False


class Item:
    """One caller's piece of work.  ``waiter`` is the shell's; ``None`` once an effect took it to be answered."""

    __slots__ = ("payload", "waiter", "weight", "deadline_ms")

    def __init__(self, payload: Any, waiter: Any, weight: int, deadline_ms: int) -> None:
        self.payload = payload
        self.waiter = waiter
        self.weight = weight
        self.deadline_ms = deadline_ms


class Flight:
    """A record under way, with the items that it carries."""

    __slots__ = ("token", "lane", "items", "sent_ms", "acknowledged")

    def __init__(self, token: Token, lane: str, items: list[Item], sent_ms: int) -> None:
        self.token = token
        self.lane = lane
        self.items = items
        self.sent_ms = sent_ms
        self.acknowledged = False


class Send(NamedTuple):
    """Append a record of ``flight.lane`` for the payloads of ``flight.items``."""

    flight: Flight


class SendFence(NamedTuple):
    """Renew the producer, then append a fence."""

    token: Token


class Folded(NamedTuple):
    """The flight's record was folded with ``outcome``: answer each item that still has a waiter."""

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


Effect = Send | SendFence | Folded | Served | Failed


class _Lane:
    __slots__ = ("spec", "queue", "weight", "flight")

    def __init__(self, spec: LaneSpec) -> None:
        self.spec = spec
        self.queue: deque[Item] = deque()
        self.weight = 0
        """Of the whole queue."""
        self.flight: Flight | None = None

    def pop(self) -> Item:
        item = self.queue.popleft()
        self.weight -= item.weight
        return item

    def put_back(self, items: Sequence[Item]) -> None:
        self.queue.extendleft(reversed(items))
        self.weight += sum(item.weight for item in items)


class Sender:
    """``writer`` must never have been used before by anybody: incarnations start at 1."""

    def __init__(self, writer: str, lanes: Iterable[LaneSpec], *, deadline_ms: int = DEADLINE_MS) -> None:
        self.writer = writer
        self.incarnation = 1
        self._lanes = {spec.name: _Lane(spec) for spec in lanes}
        self._deadline_ms = deadline_ms
        self._flights: dict[Token, Flight] = {}
        self._seq = 0
        self._fence: Token | None = None
        """The fence whose folding ends the present settling; ``None`` outside one."""
        self._fence_sent_ms: float = math.inf
        """When it was sent; infinity once it is known to be in the log."""
        self._fence_at_ms: int | None = None
        """When to try another fence, after the transport refused the last one."""
        self._fence_pause_ms = FENCE_RETRY_MS_MIN
        self._closed: TidemarkError | None = None

    @property
    def settling(self) -> bool:
        """Whether a lost answer is being settled: nothing else is sent meanwhile."""
        return self._fence is not None or self._fence_at_ms is not None

    @property
    def busy(self) -> bool:
        """Whether anything waits for an answer or for the clock."""
        return bool(self._flights) or self.settling or any(lane.queue for lane in self._lanes.values())

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
        if hold or lane.flight is not None or self.settling:
            return ()
        return self._next(lane, now_ms)

    def flush(self, now_ms: int) -> list[Effect]:
        """Send the next record of every lane that has work and no record in flight."""
        effects: list[Effect] = []
        if not self.settling and self._closed is None:
            for lane in self._lanes.values():
                if lane.flight is None and lane.queue:
                    effects += self._next(lane, now_ms)
        return effects

    def folded(self, outcomes: Iterable[Any], now_ms: int) -> list[Effect]:
        """These outcomes were folded, in this order."""
        effects: list[Effect] = []
        ours = False
        for outcome in outcomes:
            token = outcome.token
            if token is None or token.writer != self.writer:
                continue
            ours = True
            # A fenced record of ours was settled when we folded the one that fenced it, so it has no flight any more
            # (unless somebody else writes in our name: then it is answered as refused, which is true).
            flight = self._flights.pop(token, None)
            if outcome.refused is None:
                effects += self._settled(token)
            if flight is not None:
                effects.append(Folded(flight, outcome))
                self._lanes[flight.lane].flight = None
        return effects + self.flush(now_ms) if ours else effects

    def acknowledged(self, token: Token) -> None:
        """The record is durable; its outcome will come with the fold."""
        flight = self._flights.get(token)
        if flight is not None:
            flight.acknowledged = True
        elif token == self._fence:
            self._fence_sent_ms = math.inf

    def unanswered(self, token: Token, now_ms: int) -> list[Effect]:
        """Nobody said whether the record is in the log: settle it."""
        if token.incarnation < self.incarnation or self._closed is not None:
            return []  # being settled already, by a later fence
        if token == self._fence:
            self._pause(now_ms)  # it may be folded meanwhile: then all is well
        elif token in self._flights:
            return self._settle(now_ms)
        return []

    def refused(self, token: Token, error: TidemarkError, now_ms: int) -> list[Effect]:
        """The transport knows that the record is not in the log and never will be."""
        if token == self._fence and self._closed is None:
            self._fence = None
            self._pause(now_ms)
            return []
        flight = self._flights.pop(token, None)
        if flight is None:
            return []
        return [Failed(_take(flight.items), error), *self._free(flight, now_ms)]

    def tick(self, now_ms: int) -> list[Effect]:
        """Time passed: answer what is late, settle what nobody answered, try the fence again."""
        effects: list[Effect] = []
        for lane in self._lanes.values():
            effects += _late(lane, now_ms)
        for flight in self._flights.values():
            if late := _take(item for item in flight.items if item.deadline_ms <= now_ms):
                effects.append(Failed(late, _timed_out(self._lanes[flight.lane].spec, sent=True)))
        if self._fence_at_ms is not None and self._fence_at_ms <= now_ms:
            return effects + self._settle(now_ms)
        if self._fence_at_ms is not None:
            return effects
        sent = [f.sent_ms for f in self._flights.values()
                if not f.acknowledged and f.token.incarnation == self.incarnation]  # fmt: skip
        if self._fence is not None:
            sent.append(self._fence_sent_ms)
        if sent and min(sent) + UNANSWERED_MS <= now_ms:
            return effects + self._settle(now_ms)
        return effects + self.flush(now_ms)

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
        for flight in self._flights.values():
            read = self._lanes[flight.lane].spec.read
            unknown = error if read else Indeterminate(f"{error.message} before the answer came", detail=error.detail)
            effects.append(Failed(_take(flight.items), unknown))
        self._flights.clear()
        return effects

    def _next(self, lane: _Lane, now_ms: int) -> list[Effect]:
        """Send the next record of ``lane``, which has none in flight, if there is anything to send."""
        queue, items, weight = lane.queue, [], 0
        while queue and len(items) < lane.spec.items_max and weight + queue[0].weight <= RECORD_BYTES_MAX:
            item = lane.pop()
            weight += item.weight
            items.append(item)
        if not items:
            return []
        flight = lane.flight = Flight(self._token(), lane.spec.name, items, now_ms)
        self._flights[flight.token] = flight
        return [Send(flight)]

    def _free(self, flight: Flight, now_ms: int) -> list[Effect]:
        lane = self._lanes[flight.lane]
        if lane.flight is not flight:
            return []
        lane.flight = None
        return [] if self.settling or self._closed else self._next(lane, now_ms)

    def _settle(self, now_ms: int) -> list[Effect]:
        self.incarnation += 1
        token = self._fence = self._token()
        self._fence_sent_ms = now_ms
        self._fence_at_ms = None
        return [SendFence(token)]

    def _pause(self, now_ms: int) -> None:
        self._fence_at_ms = now_ms + self._fence_pause_ms
        self._fence_pause_ms = min(2 * self._fence_pause_ms, FENCE_RETRY_MS_MAX)

    def _settled(self, token: Token) -> list[Effect]:
        """A record of ours was folded: of those before it nothing more will happen."""
        effects: list[Effect] = []
        if self._flights:
            for flight in [f for f in self._flights.values() if f.token.seq < token.seq]:
                del self._flights[flight.token]
                lane = self._lanes[flight.lane]
                lane.flight = None
                wanted = [item for item in flight.items if item.waiter is not None]
                if lane.spec.read:
                    effects.append(Served(flight.lane, wanted))
                else:
                    lane.put_back(wanted)
        if token == self._fence:
            self._fence = self._fence_at_ms = None
            self._fence_pause_ms = FENCE_RETRY_MS_MIN
        return effects

    def _token(self) -> Token:
        self._seq += 1
        return Token(self.writer, self.incarnation, self._seq)


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
    return [Failed(_take(late), _timed_out(lane.spec, sent=False))] if late else []


def _timed_out(spec: LaneSpec, *, sent: bool) -> TidemarkError:
    if sent and not spec.read:
        return Indeterminate(f"no answer to {spec.name} in time", detail="it may or may not have happened")
    return Unavailable(f"{spec.name} was not possible in time", detail="nothing happened",
                       hint="is the broker running?")  # fmt: skip
