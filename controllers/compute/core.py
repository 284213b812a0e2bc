"""The core of a compute controller: what happens goes in, what is to be done comes out.  Pure.

Promises: one life writes for its cluster and ends once another is told to; a tick is asked for exactly while some view
of the cluster is behind what it reads, at the newest timestamp at which all that is not ours to compute is complete;
a tick goes in steps, each of views that may be brought there together; every peek that was admitted leaves by exactly
one answer (:mod:`controllers.waiting`).

Whoever holds it brings one event at a time and carries out what comes of it, in that order, telling it what became of
that by the next events: in production the control loop, the tick's thread and the peeks' (``controller.py``,
``ticking.py``, ``peeks.py``); in the simulation one event loop for all (``judge/simulation/controllers.py``).

What ends a process is found out by the lives after it (:mod:`controllers.quarantine`): suspects are taken one by one,
each in a step of its own, and a view in quarantine is in error without being touched, and so are its readers.

A view that reads much and is not in memory is brought there *beside* the ticks, at the timestamp of its step: one at a
time, while ticks bring all others on but those that read it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple, Protocol

from catalog_log.objects import Item, MaterializedView
from controllers.compute.frontiers import Frontiers
from controllers.compute.ordering import first_of, levels, some_first
from controllers.peeks.peek import Peek
from controllers.peeks.peek_codec import decode_error
from controllers.protocol import ControllerState
from controllers.quarantine import is_refusal
from controllers.waiting import Exact, Outcome, PeekQueue
from journal.errors import TidemarkError
from journal.timestamps import DataTs
from oracle.errors import StaleEpoch

CLAIMS_MAX = 10
"""Tries to become the cluster's writer: two controllers starting at once take turns, a third try is rare."""

INSTALL_MAX = 16
"""Views taken into memory in one step: some five seconds of a machine that has much else to do (0.3 s for each of 1,000
at a load of 15, measured).  What ends the process meanwhile costs that much, since the steps before it are bound, and
those that were in memory already are later by as much."""


class Known(NamedTuple):
    """What a controller knows at one moment."""

    catalog: ControllerState
    ours: Mapping[str, MaterializedView]
    """The views that the cluster maintains: the same object while they are."""
    frontiers: Frontiers


class Held(NamedTuple):
    """What is in memory, by id."""

    views: Collection[str] = ()
    errors: Collection[str] = ()
    """Collections that cannot be, or are in error."""


class Work(Protocol):
    """What is known of the work that ended a life (:class:`controllers.at_work.AtWork`)."""

    def refused(self, name: str) -> TidemarkError | None: ...
    def suspects(self, names: Sequence[str]) -> list[str]: ...
    def prime(self, names: Sequence[str]) -> list[str]: ...


# -- what happens


class Started(NamedTuple):
    """A life begins."""


class Claimed(NamedTuple):
    """The cluster's outputs are ours to write, by this epoch."""

    epoch: int


class Outrun(NamedTuple):
    """Somebody else claimed them first."""

    error: StaleEpoch


class Opened(NamedTuple):
    """All that there was at the start is known."""

    known: Known


class Moved(NamedTuple):
    """Some frontier moved, or the catalog; ``dropped`` are the objects that went since this was said last."""

    known: Known
    dropped: Sequence[Item] = ()


class Asked(NamedTuple):
    """Somebody wants ``peek`` answered."""

    peek: Peek
    now_ms: int


class GivenUp(NamedTuple):
    """Nobody wants it any more."""

    peek_id: str


class Clock(NamedTuple):
    """It is ``now_ms`` by now, by the clock of ``Asked``."""

    now_ms: int


class Released(NamedTuple):
    """Something left quarantine."""


class Returned(NamedTuple):
    """What was begun beside the ticks has come to its end: the view is in memory, or is not to be."""

    view_id: str


class Begun(NamedTuple):
    """A tick begins that was asked for at ``ts``."""

    ts: DataTs
    known: Known
    held: Held


class Stepped(NamedTuple):
    """The step that was told is done: its outputs are bound.  One beside the ticks has begun, and no more."""

    known: Known
    held: Held


Event = Started | Claimed | Outrun | Opened | Moved | Asked | GivenUp | Clock | Released | Returned | Begun | Stepped

# -- what is to be done


class Claim(NamedTuple):
    """Claim the cluster's outputs; say ``Claimed`` or ``Outrun``."""


class End(NamedTuple):
    """This life is over."""

    error: TidemarkError


class Drop(NamedTuple):
    """Let go of an object; where it was ``ours`` to maintain all are to forget how far it came."""

    item: Item
    ours: bool


class Follow(NamedTuple):
    """Indexes may be brought further: what they read moved, or they are others."""


class Answer(NamedTuple):
    """A peek waits no more."""

    outcome: Outcome


class Tick(NamedTuple):
    """Begin a tick at ``ts`` soon, or at what is asked for after it; ``again`` also where there was one at ``ts``."""

    ts: DataTs
    again: bool


class Step(NamedTuple):
    """Bring ``views`` to ``ts``, and bind what that changes by one record."""

    ts: DataTs
    views: tuple[str, ...]
    """Those that are behind, and all that read them."""
    needing: frozenset[str]
    """Those that are behind: of the others nothing need be said unless they change."""
    alone: tuple[str, ...]
    """Collections to be read before that, one by one: one of them may have ended a life."""
    more: bool
    """Whether others are left for a step after this one."""
    beside: bool = False
    """Whether it is one view that is to be brought into memory and to ``ts`` beside the ticks: by ``Returned``."""


class Rest(NamedTuple):
    """The tick is over; ``worked`` unless it found nothing to do."""

    worked: bool


Effect = Claim | End | Drop | Follow | Answer | Tick | Step | Rest


class Core:
    """Of one life of the controller of ``cluster``."""

    def __init__(self, cluster: str, work: Work, large: Callable[[str], bool] = lambda _: False) -> None:
        """``large``: whether a view that is not in memory reads so much that nobody is to wait for it."""
        self.epoch = 0
        self.busy = False
        """Whether a tick is under way."""
        self._cluster = cluster
        self._work = work
        self._large = large
        self._beside: str | None = None
        """The view that is being brought into memory beside the ticks."""
        self._behind: frozenset[str] = frozenset()
        """Large views that wait for it to be there."""
        self._queue = PeekQueue()
        self._outrun = 0
        self._opened = False
        self._asked_at = DataTs(0)
        """What the newest tick was asked for."""
        self._due = False
        """Whether it has still to begin."""
        self._ours: object = None
        self._base_inputs: list[str] = []
        self._idle_at: object = None
        self._ts = DataTs(0)
        """Of the tick that is under way."""
        self._step: Step | None = None
        self._worked = False
        self._suspect_next = False
        """Whether all others were just brought to a timestamp at which a suspect is to have its turn."""
        self._together = False
        """Whether all steps of the tick go to one timestamp: they are few."""

    def handle(self, event: Event) -> list[Effect]:
        """What is to be done because of ``event``.  Raises ``InvalidUsage`` and ``Rejected`` for a peek that is not
        taken, which changes nothing."""
        match event:
            case Started():
                return [Claim()]
            case Claimed(epoch):
                self.epoch = epoch
                return []
            case Outrun(error):
                self._outrun += 1
                return [Claim()] if self._outrun < CLAIMS_MAX else [End(error)]
            case Opened(known):
                self._opened = True
                self._asked_at, self._due = known.frontiers.oracle.last_ts, True
                return [Tick(self._asked_at, True)]
            case Moved(known, dropped):
                return self._moved(known, dropped)
            case Asked(peek, now_ms):
                return _answers(self._queue.add(peek, now_ms))
            case GivenUp(peek_id):
                return _answers(self._queue.cancel(peek_id))
            case Clock(now_ms):
                return _answers(self._queue.on_time(now_ms))
            case Released():
                self._idle_at = None
                return []
            case Returned(view_id):
                assert view_id == self._beside, (view_id, self._beside)
                self._beside, self._behind, self._idle_at = None, frozenset(), None
                return []
            case Begun(ts, known, held):
                self._due, self.busy = False, True
                self._worked = self._suspect_next = self._together = False
                self._ts = DataTs(min(ts, self._reachable(known)))
                return [self._next(known, held)]
            case Stepped(known, held):
                return [self._after(known, held)]

    # -- what may be asked without an event

    def at_once(self, peek: Peek) -> DataTs | None:
        """When ``peek`` would run if it came now; ``None`` if it would wait, or never could."""
        return self._queue.at_once(peek)

    def waiting(self) -> int:
        """Peeks that wait."""
        return len(self._queue)

    def deadline_ms(self) -> int | None:
        """When ``Clock`` has something to do at the earliest."""
        return self._queue.next_deadline_ms()

    def wanted(self, known: Known) -> DataTs | None:
        """The timestamp at which some view needs a tick now; ``None`` if none does.

        Asked for every record of the oracle: where no input of any view changed, it looks at the inputs only.
        """
        frontiers = known.frontiers
        if known.ours is not self._ours:
            self._ours = known.ours
            self._base_inputs = sorted({i for item in known.ours.values() for i in item.inputs
                                        if frontiers.inputs_of(i) is None})  # fmt: skip
            self._idle_at = None
        seen = (frontiers.views.next_offset, [frontiers.oracle.last_change(i) for i in self._base_inputs])
        if seen == self._idle_at:
            return None
        ts = self._reachable(known)
        if self._needing(known, ts):
            return ts
        self._idle_at = seen
        return None

    # -- when something moved

    def _moved(self, known: Known, dropped: Sequence[Item]) -> list[Effect]:
        frontiers, catalog = known.frontiers, known.catalog
        newest = frontiers.views.epoch(self._cluster)
        if newest > self.epoch:
            return [End(StaleEpoch(self.epoch, newest))]
        effects: list[Effect] = [Drop(item, self._maintained(item)) for item in dropped]
        effects.append(Follow())
        if catalog.frontier > self._queue.catalog_frontier:
            effects += _answers(self._queue.on_catalog_frontier(catalog.frontier, catalog.objects))
        effects += _answers(
            self._queue.on_data_frontier(frontiers.exact, frontiers.oracle.last_ts, frontiers.views.next_offset)
        )
        target = self.wanted(known) if self._opened else None
        if target is not None:
            # A view may be new at a timestamp at which there was a tick already.
            again = target <= self._asked_at and not self.busy and not self._due
            if again or target > self._asked_at:
                self._asked_at, self._due = max(self._asked_at, target), True
                effects.append(Tick(target, again))
        return effects

    def _maintained(self, item: Item) -> bool:
        return isinstance(item, MaterializedView) and item.cluster_id == self._cluster

    # -- which views need a tick

    def _foreign(self, known: Known, item: Item) -> list[Exact]:
        """Where the views that ``item`` reads and other clusters maintain may be read."""
        objects, frontiers = known.catalog.objects, known.frontiers
        return [
            frontiers.exact(i) for i in item.inputs
            if frontiers.inputs_of(i) is not None and i in objects and objects[i].cluster_id != self._cluster
        ]  # fmt: skip

    def _reachable(self, known: Known) -> DataTs:
        """The newest timestamp at which everything that is not ours to compute is complete, if it is one that inputs
        can still be read at: of what another cluster left behind for longer, only the readers wait."""
        oracle = known.frontiers.oracle
        ts = oracle.last_ts
        for item in known.ours.values():
            ts = min([ts, *(last for _, last in self._foreign(known, item) if last >= oracle.since)])
        return DataTs(ts)

    def _needing(self, known: Known, ts: int) -> list[str]:
        """Views that are new, or whose inputs changed at or before ``ts`` since they were evaluated."""
        frontiers = known.frontiers
        found = []
        left = self._left(known)
        for view_id, item in known.ours.items():
            if view_id in left:
                continue
            progress = frontiers.views.view(view_id)
            if progress.upper > ts or not all(first <= ts <= last for first, last in self._foreign(known, item)):
                continue
            changed = progress.upper == 0 or any(frontiers.changed_since(i, progress.upper) for i in item.inputs)
            if changed or self._let_out(progress.error):
                found.append(view_id)
        return found

    def _newest(self, known: Known, needing: Sequence[str], readers: Sequence[str]) -> DataTs:
        """The timestamp to bring ``needing`` and their ``readers`` to: that of the newest change of what they read, not
        a later one of the tick.  Nothing else is there then, and views that read the same change at the same
        timestamps, whenever each of them comes to it.

        It is the tick's where a view is new, where the newest change is later than that, and where somebody could not
        go back so far.
        """
        frontiers, ts = known.frontiers, self._ts
        newest = max(frontiers.oracle.since, frontiers.views.since)
        for view_id in needing:
            changes = [frontiers.last_change(i) or 0 for i in known.ours[view_id].inputs]
            if not frontiers.views.view(view_id).upper or not changes or max(changes) > ts:
                return ts
            newest = max(newest, *changes)
        for view_id in readers:
            newest = max(newest, frontiers.views.view(view_id).upper)
            firsts = [frontiers.exact(i)[0] for i in known.ours[view_id].inputs if frontiers.inputs_of(i) is not None]
            newest = max([newest, *(first for first in firsts if first <= ts)])
        return DataTs(min(ts, newest))

    def _left(self, known: Known) -> Collection[str]:
        """Views that ticks leave alone: what is at work beside them, what waits for that, and all that read them."""
        if self._beside is None:
            return ()
        return frozenset(_with_readers(known, sorted({self._beside, *self._behind})))

    def _let_out(self, error: str | None) -> bool:
        """Whether a view is in error only because of something in quarantine that is there no more."""
        if error is None:
            return False
        found = decode_error(error)
        return is_refusal(found) and self._work.refused(found.message.split()[0]) is None

    # -- the steps of a tick

    def _after(self, known: Known, held: Held) -> Step | Rest:
        """What comes after the step that was told last."""
        if not self._step.more:
            return self._rest()
        if not (self._suspect_next or self._together):
            # What was written meanwhile does not wait for all that is still to come; only for one suspect, who would
            # wait for ever otherwise, since what it reads must be where it goes to itself; and for a few views, which
            # then say the same of what they read at every timestamp, also to who reads them one by one.
            self._ts = DataTs(max(self._ts, self._reachable(known)))
        return self._next(known, held)

    def _rest(self) -> Rest:
        self.busy, self._step = False, None
        return Rest(self._worked)

    def _next(self, known: Known, held: Held) -> Step | Rest:
        """The views that can be taken together, or one that may end the process; ``Rest`` if there are none."""
        objects = known.catalog.objects
        needing = self._needing(known, self._ts)
        readers = _with_readers(known, needing)
        if not (self._suspect_next or self._together):
            self._ts = self._newest(known, needing, readers)
        ts = self._ts
        left = self._left(known)
        todo = [v for v in self._ready(known, readers) if v not in left]
        if not todo:
            return self._rest()
        inputs = {v: objects[v].inputs for v in todo}
        awaited = self._queue.awaited()
        there = {*held.views, *held.errors}
        self._together = self._together or sum(v not in there for v in todo) <= INSTALL_MAX
        self._suspect_next = False
        large = [
            v for v in todo
            if v not in held.views and self._large(v) and not any(map(self._work.refused, (v, *inputs[v])))
        ]  # fmt: skip
        if large:
            # One that may end the process is taken alone, with nothing beside it.
            suspects = set(self._work.suspects([*large, *sorted({i for v in large for i in inputs[v]})]))
            large = [v for v in large if v not in suspects and suspects.isdisjoint(inputs[v])]
        if large:
            later = set(_with_readers(known, large))
            calm = [v for v in todo if v not in later]
            if not calm:
                return self._begin_beside(inputs, large, awaited)
            todo, inputs = calm, {v: inputs[v] for v in calm}
        rest = sum(v not in there for v in todo) > INSTALL_MAX
        if rest:  # at a start
            todo = some_first(inputs, there, INSTALL_MAX, awaited)
        suspects = set(self._work.suspects([*todo, *sorted({i for v in todo for i in inputs[v]})]))
        wary = {v for v in todo if v in suspects or not suspects.isdisjoint(inputs[v])}
        alone: tuple[str, ...] = ()
        if wary:
            # What reads a suspect waits for it.  The first of those waits for nobody, but that what it reads be there.
            later = set(_with_readers(known, sorted(wary)))
            calm = [v for v in todo if v not in later]
            prime = {v for v in wary if self._work.prime([v, *inputs[v]])}
            todo = calm or [first_of(inputs, wary, prime, awaited)]
            self._suspect_next = bool(calm)
            if todo[0] in wary:
                alone = tuple(i for i in inputs[todo[0]] if i in suspects and i not in held.views)
        self._worked = True
        self._step = Step(ts, tuple(todo), frozenset(needing), alone, bool(wary) or rest or bool(large))
        return self._step

    def _begin_beside(
        self, inputs: Mapping[str, Collection[str]], large: Sequence[str], awaited: Collection[str]
    ) -> Step | Rest:
        """One of ``large``, where nothing else is left to do; the others after it."""
        if self._beside is not None:
            self._behind |= {*large}
            return self._rest()
        view_id = self._beside = first_of(inputs, large, (), awaited)
        self._worked = True
        self._step = Step(self._ts, (view_id,), frozenset([view_id]), (), True, True)
        return self._step

    def _ready(self, known: Known, view_ids: Sequence[str]) -> list[str]:
        """Those of ``view_ids`` that can be brought to the tick's timestamp, since what they read is there or goes
        along: exact there, not only complete beyond, for a view says nothing true between two of its own ticks.

        That holds of our own views too.  One that waits for another cluster may come there later: whoever went before
        it without it would not be told, since it had been there.
        """
        objects, frontiers, ts = known.catalog.objects, known.frontiers, self._ts
        ready: dict[str, None] = {}
        inputs = {v: objects[v].inputs for v in view_ids if v in objects}
        for view_id in (v for level in levels(inputs) for v in level):
            if frontiers.views.view(view_id).upper > ts:
                continue
            stretches = [
                frontiers.exact(i) for i in inputs[view_id]
                if i not in ready and i in objects and frontiers.inputs_of(i) is not None
            ]  # fmt: skip
            if all(first <= ts <= last for first, last in stretches):
                ready[view_id] = None
        return list(ready)


def inherited(
    inputs: Collection[str], changed: Mapping[str, TidemarkError | None], errors: Mapping[str, TidemarkError]
) -> TidemarkError | None:
    """The error of a view because of what it reads: in this tick (``changed``: how those came out), or since before."""
    for input_id in inputs:
        error = changed[input_id] if input_id in changed else errors.get(input_id)
        if error is not None:
            return error
    return None


def to_be_told(step: Step, view_id: str, changed: bool, error: TidemarkError | None, was_in_error: bool) -> bool:
    """Whether a view's part in a step is to be bound: a reader of what did not change after all is complete without a
    word."""
    return view_id in step.needing or changed or error is not None or was_in_error


def _with_readers(known: Known, view_ids: Sequence[str]) -> list[str]:
    """These views and, transitively, the views of ours that read them."""
    readers: dict[str, list[str]] = {}
    for view_id, item in known.ours.items():
        for input_id in item.inputs:
            readers.setdefault(input_id, []).append(view_id)
    found = dict.fromkeys(view_ids)
    todo = list(view_ids)
    while todo:
        for reader in readers.get(todo.pop(), ()):
            if reader not in found:
                found[reader] = None
                todo.append(reader)
    return list(found)


def _answers(outcomes: Sequence[Outcome]) -> list[Effect]:
    return [Answer(outcome) for outcome in outcomes]
