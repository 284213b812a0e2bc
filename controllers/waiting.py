"""The peeks that wait: which may run now, at which timestamp, and which never will (DESIGN I7).

A peek waits for two frontiers: the controller's catalog frontier must pass its ``catalog_ts`` (only then does the
controller know every object that the peek's plan knew), and there must be a timestamp, at or after its ``as_of``, at
which *all* its inputs are exact (I9).  A serializable peek (``as_of=None``) takes the newest such timestamp there is.

A table is exact at every timestamp; a view only from its last tick until just before its inputs' next change.  Between
two ticks its inputs moved on and it did not, though it is complete beyond: a read there would show a join of a view
and its own input at two times.  So a strict read of a busy view runs at the tick that passed its ``as_of``, which is
later than its beginning and earlier than its answer: just where a strict read may be.

A transaction block reads at one timestamp, that of its first read; its later peeks are ``only_at`` it.  By then a busy
view has ticked on, but its contents at an old timestamp are still there, and whether they were exact is known as long
as the frontiers of that moment are: so the last frontiers before each tick are kept.

Pure: no clock, no thread.  The shell brings events in and acts on the outcomes; every peek that was admitted leaves
by exactly one outcome (or by :meth:`PeekQueue.cancel`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Collection
from itertools import islice
from typing import NamedTuple

from controllers.peeks.peek import Peek
from journal.errors import InvalidUsage, Rejected
from journal.timestamps import CatalogTs, DataTs

PEEKS_WAITING_MAX = 1024
"""Peeks in the queue at once.  Each holds a server thread of the transport, at about 100 kB of stack touched:
1,024 are some 100 MB.  Postgres's usual ``max_connections`` is 100; ten adapters' worth."""

MOMENTS_MAX = 512
"""Ticks whose frontiers are kept: two minutes of a busy cluster at four a second.  Frontiers are immutable states that
share most with the next ones: 16 KiB each with 200 tables and 20 commits a tick, so 8 MiB."""

NOTHING = DataTs(-1)
"""Complete through nothing: the input has not been computed yet."""


Exact = tuple[DataTs, DataTs]
"""The first and the last timestamp (both inclusive) of the newest stretch at which a collection is exact."""


class Ready(NamedTuple):
    """Run it now at ``as_of``, the earliest that the peek asked for or a later one."""

    peek: Peek
    as_of: DataTs


class Dropped(NamedTuple):
    """An input is gone: its catalog timestamp has passed and the controller has no such object."""

    peek: Peek
    object_id: str


class Passed(NamedTuple):
    """It may only run at its ``as_of``, and there an input was not exact (or nobody remembers that it was)."""

    peek: Peek
    object_id: str


class TimedOut(NamedTuple):
    """It waited ``timeout_ms``; ``waiting_for`` says for what, for the error's detail."""

    peek: Peek
    waiting_for: str


class Cancelled(NamedTuple):
    peek: Peek


Outcome = Ready | Dropped | Passed | TimedOut | Cancelled


class _Moment(NamedTuple):
    """The last frontiers before a tick: ``exact`` as it was, when everything was known ``through`` there."""

    through: DataTs
    exact: Callable[[str], Exact]


class _Waiting(NamedTuple):
    peek: Peek
    deadline_ms: int


class PeekQueue:
    """Peeks in order of arrival, with the newest frontiers known.

    ``catalog_frontier`` is exclusive: everything below it is known.  Data frontiers are inclusive: ``exact(id)`` is the
    stretch at which the collection ``id`` may be read now; its end is ``NOTHING`` where there is none.
    """

    def __init__(self, waiting_max: int = PEEKS_WAITING_MAX) -> None:
        self._waiting_max = waiting_max
        self._waiting: dict[str, _Waiting] = {}
        self._catalog_frontier = CatalogTs(0)
        self._live: Collection[str] = ()
        self._now = _Moment(NOTHING, lambda _: (DataTs(0), NOTHING))
        self._ticks = 0
        self._past: deque[_Moment] = deque(maxlen=MOMENTS_MAX)

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def catalog_frontier(self) -> CatalogTs:
        return self._catalog_frontier

    def awaited(self) -> set[str]:
        """The collections that peeks in the queue read: whatever makes one of them exact sooner is not wasted."""
        return {object_id for waiting in self._waiting.values() for object_id in waiting.peek.inputs}

    def add(self, peek: Peek, now_ms: int) -> list[Outcome]:
        """Admit ``peek``; its outcome may come at once.  Raises ``Rejected`` 53300 when the queue is full."""
        if peek.peek_id in self._waiting:
            raise InvalidUsage(f"peek {peek.peek_id} is waiting already", sqlstate="08P01")
        waiting = _Waiting(peek, now_ms + peek.timeout_ms)
        outcome = self._judge(waiting)
        if outcome is not None:
            return [outcome]
        if len(self._waiting) >= self._waiting_max:
            raise Rejected(f"too many reads are waiting ({self._waiting_max})", sqlstate="53300",
                           hint="wait for running reads to finish, or add a replica")  # fmt: skip
        self._waiting[peek.peek_id] = waiting
        return []

    def at_once(self, peek: Peek) -> DataTs | None:
        """When ``peek`` would run if it came now; ``None`` if it would wait, or never could.  Admits nothing."""
        outcome = self._judge(_Waiting(peek, 0))
        return outcome.as_of if isinstance(outcome, Ready) else None

    def on_catalog_frontier(self, frontier: CatalogTs, live: Collection[str]) -> list[Outcome]:
        """The controller now knows every command below ``frontier``; ``live`` are the objects it has."""
        assert frontier >= self._catalog_frontier, (frontier, self._catalog_frontier)
        self._catalog_frontier, self._live = frontier, live
        return self._judge_all()

    def on_data_frontier(
        self, exact: Callable[[str], Exact], through: DataTs = NOTHING, ticks: int = 0
    ) -> list[Outcome]:
        """Some collection became complete further on; ``exact`` tells where each one may be read.

        Everything at or below ``through`` is known by now; ``ticks`` changes with every tick of any view.
        """
        if ticks != self._ticks:
            self._past.append(self._now)
            self._ticks = ticks
        self._now = _Moment(through, exact)
        return self._judge_all()

    def on_time(self, now_ms: int) -> list[Outcome]:
        """Time has come to ``now_ms``: those whose deadline is at or before it have timed out."""
        late = [w for w in self._waiting.values() if w.deadline_ms <= now_ms]
        for waiting in late:
            del self._waiting[waiting.peek.peek_id]
        return [TimedOut(w.peek, self._waits_for(w.peek)) for w in late]

    def next_deadline_ms(self) -> int | None:
        """When :meth:`on_time` has something to do at the earliest; ``None`` if nothing waits."""
        return min((w.deadline_ms for w in self._waiting.values()), default=None)

    def cancel(self, peek_id: str) -> list[Outcome]:
        """The client gave up.  Nothing happens if the peek is not waiting (any more)."""
        waiting = self._waiting.pop(peek_id, None)
        return [] if waiting is None else [Cancelled(waiting.peek)]

    def _judge_all(self) -> list[Outcome]:
        outcomes: list[Outcome] = []
        for peek_id, waiting in list(self._waiting.items()):
            outcome = self._judge(waiting)
            if outcome is not None:
                del self._waiting[peek_id]
                outcomes.append(outcome)
        return outcomes

    def _judge(self, waiting: _Waiting) -> Outcome | None:
        peek = waiting.peek
        if self._catalog_frontier <= peek.catalog_ts:
            return None
        for object_id in peek.inputs:
            if object_id not in self._live:
                return Dropped(peek, object_id)
        if peek.only_at:
            return self._judge_at(peek, peek.as_of)
        stretches = [self._now.exact(object_id) for object_id in peek.inputs]
        oldest = max((first for first, _ in stretches), default=DataTs(0))
        newest = min((last for _, last in stretches), default=peek.as_of or DataTs(0))
        if peek.as_of is not None:
            oldest = max(oldest, peek.as_of)
        if newest == NOTHING or newest < oldest:
            return None
        return Ready(peek, newest if peek.as_of is None else oldest)

    def _judge_at(self, peek: Peek, as_of: DataTs) -> Outcome | None:
        """Whether all inputs are exact at ``as_of``, by what is known now or was before one of the last ticks."""
        # Before ``as_of`` was reached no view can have been exact there; from then on, a view's stretch only moves up.
        moments = [m for m in islice(self._past, self._first_through(as_of), None)] + [self._now]
        waits = False
        for object_id in peek.inputs:
            for moment in moments:
                first, last = moment.exact(object_id)
                if first <= as_of <= last:
                    break
                if first > as_of:
                    return Passed(peek, object_id)
            else:
                waits = True  # it may still come there
        return None if waits else Ready(peek, as_of)

    def _first_through(self, ts: DataTs) -> int:
        return bisect_left(self._past, ts, key=lambda moment: moment.through)

    def _waits_for(self, peek: Peek) -> str:
        if self._catalog_frontier <= peek.catalog_ts:
            return f"catalog frontier {self._catalog_frontier} to pass {peek.catalog_ts}"
        stretches = {object_id: self._now.exact(object_id) for object_id in peek.inputs}
        wanted = max([peek.as_of or 0, *(first for first, _ in stretches.values())])
        behind = [f"{i} (complete through {last})" for i, (_, last) in stretches.items() if last < wanted]
        return f"{', '.join(behind)} to be complete at {wanted}"
