"""Subscribers and controllers: thin shells around the product's own classes.

A subscriber runs the real stepper, translation and command sender; a compute controller the real fold of its commands,
the real core (``controllers.compute.core``: claims, ticks and their steps, peeks, drops), ``Feed`` and ``ViewsLog``.
What the simulation plays itself is the evaluation of queries (:mod:`judge.simulation.queries`).
"""

from __future__ import annotations

import asyncio
import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from catalog_log.objects import Item, MaterializedView, Source
from collection.binding import BoundRun
from collection.rows import Undecodable
from controllers import commands
from controllers.at_work import AtWork
from controllers.commands_log import CommandFold
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
    Event,
    Follow,
    Held,
    Known,
    Moved,
    Opened,
    Outrun,
    Returned,
    Started,
    Step,
    Stepped,
    Tick,
    inherited,
    to_be_told,
)
from controllers.compute.feed import Feed
from controllers.compute.frontiers import Frontiers
from controllers.compute.ordering import levels
from controllers.peeks.peek import Own, Peek
from controllers.peeks.peek_codec import decode_error, encode_error
from controllers.protocol import Dropped, FrontierAdvanced
from controllers.storage.mover import Mover
from controllers.waiting import Cancelled, Outcome, Passed, Ready, TimedOut
from controllers.waiting import Dropped as PeekDropped
from journal.api import Entry
from journal.errors import Conflict, InvalidUsage, TidemarkError, Unavailable
from journal.timestamps import DataTs
from judge.simulation import data, queries
from judge.simulation.clock import MS, S
from judge.simulation.kafka import Topic
from judge.simulation.process import Process
from judge.simulation.sources import SimSource
from oracle.bindings import BoundRuns
from oracle.errors import SnapshotTooOld, StaleEpoch
from oracle.views_records import ViewCommit
from subscribers.sender import CommandSender
from subscribers.stepper import Stepper

if TYPE_CHECKING:
    from judge.simulation.world import World

CLUSTER = "default"

MOVE_EVERY_S = 0.2
"""As often as the product's controller looks where nothing else happens."""


class Subscriber(Process):
    """Feeds one controller: ``subscribers.worker.Subscriber`` without Faust, whose part the world's reader plays."""

    kind = "subscriber"

    def __init__(self, world: World, name: str, skew_ms: int, controller: str) -> None:
        super().__init__(world, name, skew_ms)
        self.controller = controller

    def boot(self) -> None:
        self.queue: list[Entry] = []
        self.arrived = asyncio.Event()
        self.sender = CommandSender(self.transport(f"env.commands.{self.controller}"), self.loop)
        catalog = self.transport("env.catalog")
        self.begin = catalog.bounds()[1]
        catalog.subscribe(0, self._on_entries, self.stopped)
        self.ready = True
        self.serve(self._work())

    def _on_entries(self, entries: Sequence[Entry]) -> None:
        self.queue.extend(entries)
        self.arrived.set()

    async def _work(self) -> None:
        stepper = None
        try:
            while True:
                await self.arrived.wait()
                self.arrived.clear()
                taken, self.queue = self.queue, []
                for entry in taken:
                    if stepper is None:
                        state = await self.sender.learn()
                        await self.sender.flush()
                        stepper = self.world.stepper(self.controller, state.frontier, self.begin)
                    found = stepper.feed(entry)
                    if found:
                        await self.sender.send(found)
        except TidemarkError as error:
            self.stopped(error)


def new_stepper(controller: str, frontier: int, begin: int) -> Stepper:
    return Stepper(controller, frontier, begin)


class Storage(Process):
    """The storage controller: it folds its commands, moves rows out of the oracle's log, and reads sources where a
    workload has any."""

    kind = "storage"

    def boot(self) -> None:
        self.fold = CommandFold()
        self.sources: dict[str, SimSource] = {}
        self.life = self.world.storage_lives = self.world.storage_lives + 1
        self.catalog = self.open_catalog()
        self.oracle = self.open_oracle(self.catalog.upper)
        self.serve(self._open())

    async def _open(self) -> None:
        try:
            await self.caught_up(self.catalog.journal, self.oracle._journal)
        except TidemarkError as error:
            self.stopped(error)
            return
        self._follow()
        mover = Mover(self.oracle, data.DataWriter(self), lambda: self.world.schedule.now / S)
        while self.alive:
            mover.look()
            await asyncio.sleep(MOVE_EVERY_S)

    def _follow(self) -> None:
        self.ready = True
        self.transport("env.commands.storage").subscribe(0, self._on_entries, self.stopped)

    def _on_entries(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            if any(isinstance(effect, FrontierAdvanced) for effect in self.fold.take(entry)):
                self.world.check_controller("storage", self.fold.state)
                self._reconcile()

    def _reconcile(self) -> None:
        objects = self.fold.state.objects
        for item_id in [each for each in self.sources if each not in objects]:
            self.sources.pop(item_id).stopped = True
        for item in [each for each in objects.values() if isinstance(each, Source)]:
            if item.id not in self.sources:
                self.sources[item.id] = SimSource(self, item)


class Notes:
    """A controller's topic of notes: it answers at once."""

    def __init__(self, topic: Topic) -> None:
        self.topic = topic

    def append(self, value: bytes) -> Future[int]:
        done: Future[int] = Future()
        self.topic.values.append(value)
        done.set_result(self.topic.end - 1)
        return done

    def bounds(self) -> tuple[int, int]:
        return self.topic.start, self.topic.end

    def cut(self, below_offset: int) -> None:
        self.topic.start = max(self.topic.start, below_offset)

    def renew(self) -> None:
        pass

    def close(self) -> None:
        pass


class Compute(Process):
    """The compute controller of the one cluster."""

    kind = "compute"

    def boot(self) -> None:
        self.fold = CommandFold()
        self.catalog = self.open_catalog()
        self.oracle = self.open_oracle(self.catalog.upper)
        self.views = self.open_views()
        self.writer = data.DataWriter(self)
        self.at_work: AtWork | None = None
        self.core: Core | None = None
        self.views_by_id: dict[str, Item] = {}
        self.errors: dict[str, TidemarkError] = {}
        """Views in error, with what they said when last evaluated."""
        self.waiting: dict[str, tuple[Process, asyncio.Future]] = {}
        self.clients: list[tuple[Process, asyncio.Future]] = []
        self.contents = Contents(self)
        self.writes = 0
        self.beside: str | None = None
        self.made: set[str] = set()
        """Views that were made beside the ticks."""
        self._looking = False
        self._next_offset = 0
        self._gone: list[Item] = []
        self._dropped: list[str] = []
        """Views of ours that are gone, of which all are still to be told."""
        self._target = DataTs(0)
        self._asked = self._begun = 0
        self._ticking = False
        self.serve(self._open())

    async def _open(self) -> None:
        try:
            await self.caught_up(self.catalog.journal, self.oracle._journal, self.views._journal)
            self.world.compute_lives = life = self.world.compute_lives + 1
            self.at_work = AtWork(Notes(self.world.notes), f"{self.name}-{life}").begin()
            self.core = Core(CLUSTER, self.at_work, self.world.reads_much)
            event: Event = Started()
            while effects := self.core.handle(event):
                match effects:
                    case [Claim()]:
                        event = await self._claimed()
                    case [End(error)]:
                        raise error
            transport = self.transport(f"env.commands.{commands.compute(CLUSTER)}")
            end = transport.bounds()[1]
            transport.subscribe(0, self._on_entries, self.stopped)
            while self._next_offset < end:
                await asyncio.sleep(0.02)
            self.oracle.subscribe(lambda *_: self.look_soon())
            self.views.subscribe(lambda *_: self.look_soon())
            self.ready = True
            self.world.on_ready(self)
            self._carry_out(self.core.handle(Opened(self.known())))
            self.look_soon()
        except TidemarkError as error:
            self.stopped(error)

    async def _claimed(self) -> Event:
        try:
            return Claimed(await self.bridge.wait(self.views.claim(CLUSTER)))
        except StaleEpoch as error:
            return Outrun(error)

    def known(self) -> Known:
        state = self.fold.state
        return Known(state, self.views_by_id, Frontiers(state.objects, self.oracle.state, self.views.state))

    def idle(self) -> bool:
        """Whether it has nothing more to do."""
        if not (self.alive and self.ready) or self.core.busy or self.beside is not None:
            return False
        return self.core.wanted(self.known()) is None

    def kill(self) -> None:
        super().kill()
        world = self.world
        for owner, answer in self.clients:
            if not answer.done():
                world.schedule.after(world.delay(1_000_000), owner, _refuse, answer)

    def stopped(self, error: Exception) -> None:
        if self.alive and self.at_work is not None:
            self.at_work.ended()
        super().stopped(error)

    async def end(self) -> None:
        """What it evaluates ends it, between two words.  Does not return."""
        world = self.world
        world.note_stop(self, RuntimeError("it was ended by what it evaluated"))
        self.kill()
        world.restart_later(self.name)
        await asyncio.get_running_loop().create_future()

    def _on_entries(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            for effect in self.fold.take(entry):
                if isinstance(effect, Dropped):
                    self._gone.append(effect.item)
                elif isinstance(effect, FrontierAdvanced):
                    self.world.check_controller(commands.compute(CLUSTER), self.fold.state)
        objects = self.fold.state.objects
        self.views_by_id = {i: objects[i] for i in sorted(objects) if isinstance(objects[i], MaterializedView)}
        self._next_offset = entries[-1].offset + 1
        self.look_soon()

    # -- looking, as the real controller's loop does

    def look_soon(self) -> None:
        if not self._looking and self.ready:
            self._looking = True
            self.world.schedule.after(self.world.delay(500_000), self, self._look)

    def _look(self) -> None:
        self._looking = False
        gone, self._gone = self._gone, []
        now_ms = self.world.schedule.now // MS
        self._carry_out(self.core.handle(Moved(self.known(), gone)) + self.core.handle(Clock(now_ms)))
        deadline = self.core.deadline_ms()
        if deadline is not None:
            self.world.schedule.at(max(deadline * MS, self.world.schedule.now + S), self, self.look_soon)

    def _carry_out(self, effects: Sequence[Any]) -> None:
        for effect in effects:
            match effect:
                case End(error):
                    self.stopped(error)
                    return
                case Drop(item, ours):
                    self._drop(item, ours)
                case Answer(outcome):
                    self._resolve(outcome)
                case Tick(ts, _):
                    self._target = max(self._target, ts)
                    self._asked += 1
                    self._tick_soon()
                case Follow():
                    pass  # what indexes hold is looked up in the collections here
                case other:
                    raise AssertionError(other)

    def _drop(self, item: Item, ours: bool) -> None:
        self.errors.pop(item.id, None)
        self.contents.forget(item.id)
        self.at_work.release([item.id])
        if ours:
            self._dropped.append(item.id)
            self._forget_dropped()

    def _forget_dropped(self) -> None:
        """Once nothing is at it, which may be about to commit it."""
        for view_id in [] if self.core.busy else [each for each in self._dropped if each != self.beside]:
            self._dropped.remove(view_id)
            self.made.discard(view_id)
            if view_id in self.views.state.views:
                self.views.drop(view_id)

    def _tick_soon(self) -> None:
        """One at a time; what is asked for meanwhile is joined into the next one."""
        if not self._ticking and self._asked != self._begun:
            self._ticking = True
            self.world.schedule.after(self.world.delay(2_000_000), self, self._tick)

    def _tick(self) -> None:
        self._begun = self._asked
        self.serve(self._run_tick(self._target))

    async def _run_tick(self, target: DataTs) -> None:
        """Step by step: evaluate, write the differences, commit all views of the step together."""
        try:
            known = self.known()
            [told] = self.core.handle(Begun(target, known, self._held()))
            while isinstance(told, Step):
                if told.beside:
                    self.beside = told.views[0]
                    self.serve(self._make_beside(told, known.frontiers))
                else:
                    await self._work_on(told, known.frontiers)
                known = self.known()
                [told] = self.core.handle(Stepped(known, self._held()))
            self._forget_dropped()
            self._ticking = False
            self._tick_soon()
            self.look_soon()
        except TidemarkError as error:
            self.stopped(error)

    async def _work_on(self, step: Step, frontiers: Frontiers) -> None:
        for input_id in step.alone:
            with self.at_work.on([input_id]):
                pass  # loading a table ends nobody here
        names = [*step.views, *sorted({i for v in step.views for i in self._inputs(v)})]
        with self.at_work.on([name for name in names if self.at_work.refused(name) is None]):
            await self._take(step, frontiers)

    async def _make_beside(self, step: Step, frontiers: Frontiers) -> None:
        """One view at its step's timestamp, while ticks go on."""
        try:
            await asyncio.sleep(self.world.delay(200 * MS) / S)
            await self._work_on(step, frontiers)
            self.made.update(step.views)
        except SnapshotTooOld:
            pass  # it is begun anew
        except TidemarkError as error:
            self.stopped(error)
            return
        [view_id], self.beside = step.views, None
        self.core.handle(Returned(view_id))
        self._forget_dropped()
        self.look_soon()

    def _held(self) -> Held:
        return Held([*self.contents.held(), *self.made], self.errors.keys())

    def _inputs(self, view_id: str) -> Sequence[str]:
        item = self.views_by_id.get(view_id)
        return () if item is None else item.inputs

    async def _take(self, step: Step, frontiers: Frontiers) -> None:
        commits = []
        made: dict[str, list[tuple] | TidemarkError] = {}
        for view_id in [v for level in levels({v: self._inputs(v) for v in step.views}) for v in level]:
            item = self.views_by_id.get(view_id)
            if item is None:
                continue
            progress = frontiers.views.view(view_id)
            before = self.contents.put_out(item, progress) if progress.upper else []
            after = made[view_id] = await self._evaluated(item, made, frontiers, step.ts)
            error = after if isinstance(after, TidemarkError) else None
            rows = [] if error is not None else self.world.view_rows(self, view_id, _difference(before, after))
            if not to_be_told(step, view_id, bool(rows), error, view_id in self.errors):
                continue
            runs = []
            if rows:
                self.writes += 1
                attempt = f"{self.name}-{self.core.epoch}-{self.writes}"
                runs = await self.bridge.wait(self.writer.write(view_id, (), rows, attempt))
            commits.append(
                ViewCommit(view_id, progress.upper, tuple(runs), None if error is None else encode_error(error))
            )
        commits = [each for each in commits if each.view_id in self.views_by_id]
        if commits:
            await self.bridge.wait(self.views.commit(CLUSTER, self.core.epoch, step.ts, commits))
        for each in commits:
            found = made[each.view_id]
            if isinstance(found, TidemarkError):
                self.errors[each.view_id] = found
            else:
                self.errors.pop(each.view_id, None)

    async def _evaluated(self, item: Item, made: dict, frontiers: Frontiers, ts: DataTs) -> list[tuple] | TidemarkError:
        """The view's rows, or its error: its own, its quarantine, or that of what it reads."""
        refused = self.at_work.refused(item.id)
        if refused is not None:
            return refused
        found = {i: made[i] if i in made else self.contents.input(i, frontiers, ts) for i in item.inputs}
        error = inherited(item.inputs, {i: rows for i, rows in found.items() if isinstance(rows, TidemarkError)}, {})
        if error is not None:
            return error
        inputs = {self._label(input_id): rows for input_id, rows in found.items()}
        try:
            return queries.VIEWS[item.name][1](inputs)
        except queries.Ending:
            await self.end()
            raise
        except TidemarkError as error:
            return error

    def _label(self, object_id: str) -> str:
        item = self.fold.state.objects[object_id]
        return item.name

    # -- peeks

    def asked(self, peek: Peek, client: Process, answer: asyncio.Future) -> None:
        if not self.ready:
            self._send(client, answer, Unavailable("the controller is starting"))
            return
        self.waiting[peek.peek_id] = client, answer
        try:
            self._carry_out(self.core.handle(Asked(peek, self.world.schedule.now // MS)))
        except TidemarkError as error:
            self._send(client, answer, error)
        self.look_soon()

    def _resolve(self, outcome: Outcome) -> None:
        client, answer = self.waiting.pop(outcome.peek.peek_id, (None, None))
        if client is None or isinstance(outcome, Cancelled):
            return
        match outcome:
            case Ready(peek, as_of):
                self.world.schedule.after(self.world.delay(500_000), self, self._run, peek, as_of, client, answer)
            case PeekDropped(_, object_id):
                self._send(client, answer, InvalidUsage(f"relation {object_id} was dropped", sqlstate="42P01"))
            case Passed(_, object_id):
                self._send(client, answer, Conflict(f"{object_id} cannot be read at that timestamp any more"))
            case TimedOut(_, waiting_for):
                self._send(client, answer, TidemarkError("canceling statement due to statement timeout",
                           sqlstate="57014", detail=waiting_for))  # fmt: skip

    def _run(self, peek: Peek, as_of: int, client: Process, answer: asyncio.Future) -> None:
        self.world.check_peek(self, peek, as_of)
        text, params, named, width = json.loads(peek.plan)
        frontiers = Frontiers(self.fold.state.objects, self.oracle.state, self.views.state)
        try:
            if peek.lookup is not None and peek.lookup.index_id not in self.fold.state.objects:
                raise InvalidUsage(f"index {peek.lookup.index_id} is unknown here", sqlstate="42704")
            for object_id in named.values():
                if object_id not in self.fold.state.objects:
                    raise InvalidUsage(f"relation {object_id} was dropped", sqlstate="42P01")
            inputs = {name: self.contents.at(i, frontiers, as_of) for name, i in named.items()}
            for own in peek.own:
                name = self._label(own.collection_id)
                inputs[name] = _with_own(inputs[name], own, self.fold.state.objects[own.collection_id])
            rows = queries.answer(text, params, inputs)
        except TidemarkError as error:
            self._send(client, answer, error)
            return
        self._send(client, answer, data.Answer(rows, width, as_of))

    def _send(self, client: Process, answer: asyncio.Future, found: Any) -> None:
        self.clients = [pair for pair in self.clients if pair[1] is not answer]
        self.world.schedule.after(self.world.delay(300_000), client, _complete, answer, found)


class Output:
    """What ``controllers.compute.relation.Relation`` is to the feed, of counted rows."""

    def __init__(self, id: str) -> None:
        self.id = id
        self.upper = 0
        self.advancing = nullcontext()
        self.counts: Counter = Counter()

    def check_open(self) -> None:
        pass

    def reset(self) -> None:
        self.upper = 0

    def load(self, changes: Iterable[tuple[int, tuple]], upper: int, _since: int, _files: Any, _fetched: Any) -> None:
        self.counts = Counter()
        self.append(changes, upper)

    def append(self, changes: Iterable[tuple[int, tuple]], upper: int, fetched: Any = ()) -> None:
        for diff, row in changes:
            self.counts[row] += diff
        self.upper = upper

    def advance(self, upper: int) -> None:
        self.upper = upper


class Kept:
    """The changes of a collection, by when they became visible, from ``since`` to ``through``."""

    def __init__(self, since: int) -> None:
        self.since, self.through = since, 0
        self._times: list[int] = []
        self._diffs: list[int] = []
        self._rows: list[tuple] = []
        self._grows = True
        """Whether nothing was taken back so far: then what there is at a time is a beginning of ``_rows``."""
        self._bag: tuple[int, Counter] = 0, Counter()
        """What the first so many changes come to."""

    def add(self, ts: int, diff: int, row: tuple) -> None:
        self._times.append(ts)
        self._diffs.append(diff)
        self._rows.append(row)
        self._grows = self._grows and diff == 1

    def at(self, ts: int) -> list[tuple] | None:
        """The rows at ``ts``; ``None`` where one of them is there less than no times."""
        if self._grows:
            end = bisect_right(self._times, ts)
            return self._rows if end == len(self._rows) else self._rows[:end]
        bag = self.counts(ts)
        return None if any(count < 0 for count in bag.values()) else list(bag.elements())

    def counts(self, ts: int) -> Counter:
        """How often each row is there at ``ts``, which may be less than no times."""
        end = bisect_right(self._times, ts)
        done, bag = self._bag
        if end < done:
            done, bag = 0, Counter()
        for diff, row in zip(self._diffs[done:end], self._rows[done:end], strict=True):
            bag[row] += diff
        self._bag = end, bag
        return bag


class SimFeed(Feed):
    """The product's feed; rows come from the virtual topics."""

    def __init__(self, compute: Compute) -> None:
        super().__init__("", compute.oracle, compute.views)
        self._compute = compute

    def _read(self, _output: Any, _item: Item, runs: Sequence[BoundRun]) -> Iterator:
        for bound in runs:
            yield from self._compute.contents.rows(bound, _item)


class Contents:
    """Collections as lists of rows at a timestamp, read from bound runs: what a controller keeps in memory."""

    def __init__(self, compute: Compute) -> None:
        self._compute = compute
        self._feed = SimFeed(compute)
        self._outputs: dict[str, Output] = {}
        self._kept: dict[str, Kept] = {}

    def held(self) -> list[str]:
        """The views whose output is here."""
        return list(self._outputs)

    def forget(self, object_id: str) -> None:
        self._outputs.pop(object_id, None)
        self._kept.pop(object_id, None)

    def at(self, object_id: str, frontiers: Frontiers, ts: int) -> list[tuple]:
        if frontiers.inputs_of(object_id) is not None:
            return self.of_view(object_id, frontiers.views.view(object_id), ts)
        rows = self._through(object_id, frontiers.oracle.bindings(object_id), ts).at(ts)
        if rows is None:
            self._compute.world.violated("table-negative", f"{object_id} has rows less than no times at {ts}")
            raise TidemarkError("rows were taken back that are not there", sqlstate="XX001")
        return rows

    def _through(self, object_id: str, runs: BoundRuns, ts: int) -> Kept:
        """What ``runs`` bind of an object, read as far as ``ts``: each change once, not again for each question."""
        kept = self._kept.get(object_id) or Kept(runs.since)
        if ts < kept.since:  # what was merged by the time that it was read is not told apart below that
            raise SnapshotTooOld("snapshot too old", detail=f"asked for {ts}, read when {kept.since} was the oldest")
        if ts > kept.through:
            try:
                found = runs.between(kept.through + 1, ts + 1) if kept.through else runs.at(ts)
            except SnapshotTooOld:
                kept, found = Kept(runs.since), runs.at(ts)
            item = self._compute.fold.state.objects.get(object_id)
            changes = [(b.ts, self.rows(b, item)) for b in sorted(found, key=lambda bound: bound.ts)]
            for at, rows in changes:  # all of them could be read
                for diff, row in rows:
                    kept.add(at, diff, row)
            kept.through = ts
            self._kept[object_id] = kept
        return kept

    def input(self, object_id: str, frontiers: Frontiers, ts: int) -> list[tuple] | TidemarkError:
        """As :meth:`at`, and where its rows are lost for good or it is in error that is said, not raised."""
        try:
            return self.at(object_id, frontiers, ts)
        except TidemarkError as error:
            if isinstance(error, SnapshotTooOld):
                raise
            return error

    def put_out(self, item: Item, progress: Any) -> list[tuple]:
        """What a view has put out so far, by the product's own feed: step by step, or anew where history is gone."""
        output = self._outputs.get(item.id)
        if output is None:
            output = self._outputs[item.id] = Output(item.id)
        self._feed.catch_up(output, item, DataTs(progress.upper - 1))
        self._negative(item.id, output.counts, progress.upper - 1)
        return [row for row, count in output.counts.items() for _ in range(count)]

    def _negative(self, view_id: str, counts: Counter, ts: int) -> None:
        if any(count < 0 for count in counts.values()):
            self._compute.world.violated("view-negative", f"view {view_id} has rows less than no times at {ts}")

    def of_view(self, view_id: str, progress: Any, ts: int) -> list[tuple]:
        error = progress.error_at(ts)
        if error is not None:
            raise decode_error(error)
        kept = self._through(view_id, progress.runs, ts)
        rows = kept.at(ts)
        if rows is None:
            self._negative(view_id, counts := kept.counts(ts), ts)
            rows = list(counts.elements())
        return rows

    def rows(self, bound: BoundRun, table: Item | None) -> Sequence[tuple[int, tuple]]:
        """Each with its diff.  ``table`` says which columns rows have that a commit carries, or carried once."""
        world, run = self._compute.world, bound.run
        if bound.value:
            return data.tuples(table.stored, bound.value, run.attempt)
        if not run.topic.startswith("env."):
            return [(1, row) for row in world.user_topics.rows(run)]
        topic = world.topic(data.partition_of(run.topic, run.partition))
        found: list[tuple[int, tuple]] = []
        for offset in range(run.lower, run.upper):
            value = topic.values[offset] if offset < topic.end else ("", ())
            if isinstance(value[1], bytes):
                try:
                    found.extend(data.tuples(table.stored, value[1], run.attempt))
                    continue
                except Undecodable as other:
                    value = (other.detail, ())
            if run.attempt and value[0] != run.attempt:
                self._compute.world.violated(
                    "lost-rows", f"{run.topic} offset {offset} is bound to attempt {run.attempt} and holds {value[0]!r}"
                )
                raise TidemarkError("rows are gone", sqlstate="58P01", detail=f"{run}")
            found.extend(value[1])
        return found


def _with_own(rows: list[tuple], own: Own, table: Item) -> list[tuple]:
    """``rows`` of ``table`` with what the reader's block has written."""
    bag = Counter(rows)
    for value in own.values:
        for diff, row in data.tuples(table.stored, value, "own"):
            bag[row] += diff
    if any(count < 0 for count in bag.values()):
        raise TidemarkError("a block takes back rows that are not there", sqlstate="XX001")
    return list(bag.elements())


def _difference(before: Sequence[tuple], after: Sequence[tuple]) -> list[tuple[int, tuple]]:
    counts = Counter(after)
    counts.subtract(Counter(before))
    return [(count, row) for row, count in counts.items() if count]


def _refuse(answer: asyncio.Future) -> None:
    if not answer.done():
        answer.set_exception(Unavailable("the cluster's controller cannot be reached"))


def _complete(answer: asyncio.Future, found: Any) -> None:
    if answer.done():
        return
    if isinstance(found, BaseException):
        answer.set_exception(found)
    else:
        answer.set_result(found)
