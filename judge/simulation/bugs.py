"""Faults that are planted on purpose: each is what a tempting shortcut would do, in the simulated processes only.

A bug is a patch of the product's classes (or of the virtual broker's configuration) for the time of one run.  Some are
read by the virtual Kafka itself (``acks_one``, ``retention``), since that is where they live in reality as well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from unittest import mock

import oracle.client
from catalog_log.delta import between
from catalog_log.fold import VerdictKind, admit
from catalog_log.log import CatalogLog
from collection import binding
from controllers.storage import remap
from controllers.waiting import PeekQueue, Ready
from journal.api import Entry
from journal.errors import Conflict, FatalLog, Unavailable
from journal.timestamps import CATALOG, CatalogTs
from judge.planted.registry import BUGS as PLANTED
from judge.simulation import sources
from judge.simulation.clock import MS
from oracle.client import Oracle
from oracle.lanes import Compaction
from oracle.model import Kind
from schemas import codec
from subscribers.stepper import Stepper
from subscribers.translate import translate

if TYPE_CHECKING:
    from judge.simulation.world import World

BARRIER_TIMEOUT_S = 15.0

CHANGES = ("transactions", "accounts", "counters")
RANGES = ("ranges",)


def _nothing(_world: World) -> list[Any]:
    return []


def _retention(world: World) -> list[Any]:
    """Old records vanish, and a reader that asks for them is given what is left (``auto.offset.reset=earliest``).

    As in Kafka it is the oldest that go, whether or not an image holds them; new processes then find no image either,
    since its topic has the same setting.
    """

    def expire() -> None:
        for name in ("env.oracle", "env.views"):
            topic = world.topic(name)
            topic.start = max(topic.start, topic.end - 150)
            world.store(name).newest = None
        if not world.healing:
            world.schedule.after(700 * MS, None, expire)

    world.schedule.after(700 * MS, None, expire)
    return []


def _list_offsets_read(_world: World) -> list[Any]:
    """A linearizable read asks for the end offset and waits until it is folded, instead of sending a barrier."""

    def barrier(self: Oracle) -> Any:
        return self._journal.when_offset(self._journal.transport.bounds()[1], BARRIER_TIMEOUT_S)

    def barrier_async(self: Oracle) -> Any:
        import asyncio

        return asyncio.wrap_future(barrier(self))

    return [mock.patch.object(Oracle, "barrier", barrier), mock.patch.object(Oracle, "barrier_async", barrier_async)]


def _blind_resend(world: World) -> list[Any]:
    """After a conflict the same updates are sent again at the newest upper, without planning them anew."""

    class BlindResender(CatalogLog):
        def compare_and_append(self, expected_upper, new_upper, updates, *, genesis=None):  # noqa: ANN001, ANN202
            asked = super().compare_and_append(expected_upper, new_upper, updates, genesis=genesis)
            done = type(asked)()

            def answered(first: Any) -> None:
                error = first.exception()
                if isinstance(error, Conflict) and self.failed is None:
                    upper = self.upper()
                    again = super(BlindResender, self).compare_and_append(
                        upper, max(upper + 1, new_upper), updates, genesis=genesis
                    )
                    again.add_done_callback(passed)
                else:
                    passed(first)

            def passed(found: Any) -> None:
                error = found.exception()
                if error is None:
                    done.set_result(found.result())
                else:
                    done.set_exception(error)

            asked.add_done_callback(answered)
            return done

    world.catalog_class = BlindResender
    return []


def _wall_clock_oracle(_world: World) -> list[Any]:
    """Timestamps of generic timelines come from the process's own clock, without a record."""
    real_read, real_write = Oracle.read_ts_async, Oracle.write_ts_async

    async def read_ts_async(self: Oracle, timeline: str) -> int:
        return await real_read(self, timeline) if timeline in (CATALOG, "table") else self._now_ms()

    async def write_ts_async(self: Oracle, timeline: str) -> int:
        return await real_write(self, timeline) if timeline in (CATALOG, "table") else self._now_ms()

    return [
        mock.patch.object(Oracle, "read_ts_async", read_ts_async),
        mock.patch.object(Oracle, "write_ts_async", write_ts_async),
    ]


def _skipped_apply_write(_world: World) -> list[Any]:
    """DDL is acknowledged as soon as it is admitted."""

    async def apply_catalog_async(self: Oracle, upper: CatalogTs) -> None:
        return None

    def apply_catalog(self: Oracle, upper: CatalogTs) -> Any:
        return oracle.client._given(None)

    return [
        mock.patch.object(Oracle, "apply_catalog_async", apply_catalog_async),
        mock.patch.object(Oracle, "apply_catalog", apply_catalog),
    ]


def _early_catalog(_world: World) -> list[Any]:
    """A peek does not wait for the controller's catalog frontier."""
    real = PeekQueue._judge

    def judge(self: PeekQueue, waiting: Any) -> Any:
        held = self._catalog_frontier
        self._catalog_frontier = CatalogTs(max(held, waiting.peek.catalog_ts + 1))
        try:
            return real(self, waiting)
        finally:
            self._catalog_frontier = held

    return [mock.patch.object(PeekQueue, "_judge", judge)]


class _Forgetful(Stepper):
    """Begins at the newest upper instead of where its controller stands."""

    def feed(self, entry: Entry) -> list:
        if entry.offset != self.next_offset:
            raise FatalLog("the catalog topic has a hole")
        before = self.image
        self.image, verdict = admit(before, entry)
        self.next_offset += 1
        if self._new:
            return self._begin() if self.next_offset >= self._begin_offset else []
        if self.next_offset <= self._begin_offset or verdict.kind is not VerdictKind.ACCEPTED:
            return []
        if self.image.upper <= self.frontier:
            return []
        lower, self.frontier = self.frontier, CatalogTs(self.image.upper)
        return [command._replace(lower=lower) for command in translate(between(before, self.image), self.controller)]


def _lost_commands(world: World) -> list[Any]:
    world.stepper = _Forgetful
    return []


def _double_view_commit(world: World) -> list[Any]:
    """A controller that restarts does not know that its last output was committed, and commits it again."""
    last: dict[str, list] = {}
    lives: dict[str, int] = {}

    def view_rows(compute: Any, view_id: str, rows: list) -> list:
        before, life = last.get(view_id), lives.get(view_id)
        last[view_id], lives[view_id] = rows, compute.epoch
        return [*before, *rows] if before and life is not None and life != compute.epoch else rows

    world.view_rows = view_rows
    return []


def _unknown_version_skipped(world: World) -> list[Any]:
    """During a rolling upgrade, newer code writes proposals that older code cannot read, and the older skips them.

    The newer processes are the adapters with an even number; the version is in the record's frame.  (The product has no
    such record: a newer version needs a newer format, whose genesis stops older code.)
    """
    from catalog_log import fold, log, records

    real_encode, real_decode = records.encode_proposal, fold.decode_proposal
    newer = frozenset({"adapter-2"})

    def encode(proposal: Any) -> bytes:
        value = real_encode(proposal)
        return b"\x7f" + value if proposal.writer in newer else value

    def decode(value: bytes) -> Any:
        return real_decode(value[1:] if value[:1] == b"\x7f" else value)

    class Mixed(CatalogLog):
        def _fold(self, image: Any, entry: Entry) -> Any:
            if entry.value[:1] == b"\x7f" and self.writer_id not in newer:
                return image, log.Step(
                    fold.Verdict(VerdictKind.MALFORMED, entry.offset, "", "", 0, 0, image.upper, 0, "unknown version"),
                    image,
                )
            return super()._fold(image, entry)

        def _fold_all(self, image: Any, entries: Any) -> None:
            return None

    real_version = codec.frame_version
    world.catalog_class = Mixed
    return [
        mock.patch.object(log, "encode_proposal", encode),
        mock.patch.object(fold, "decode_proposal", decode),
        mock.patch.object(codec, "frame_version", lambda v: real_version(v[1:] if v[:1] == b"\x7f" else v)),
    ]


def _as_planted(name: str) -> Callable[[World], list[Any]]:
    """The live judge's own patch: its code runs here too."""
    return lambda _world: [_Planted(name)]


class _Planted:
    """A bug of :mod:`judge.planted` in the words of ``mock.patch``."""

    def __init__(self, name: str) -> None:
        self._name = name

    def start(self) -> None:
        self._applied = PLANTED[self._name].apply()

    def stop(self) -> None:
        self._applied.undo()


def _window_as_free(world: World) -> list[Any]:
    """And history goes all the time, so that there is much which nobody remembers."""

    def forget() -> None:
        adapters = [p for p in world.live.values() if p.kind == "adapter" and p.ready and p.alive]
        if adapters:
            since = max(adapters[0].oracle.state.last_ts, 0)
            asked = adapters[0].oracle._link.call(Kind.COMPACT, Compaction(since))
            asked.add_done_callback(lambda done: done.exception())
        if not world.healing:
            world.schedule.after(50 * MS, None, forget)

    world.schedule.after(500 * MS, None, forget)
    return [_Planted("window_as_free")]


def _topic_by_name(_world: World) -> list[Any]:
    """A topic is known by its name: nobody asks whether it is still the one that was read."""
    return [
        mock.patch.object(remap, "made_anew", lambda *_: None),
        mock.patch.object(sources.SimSource, "_check_id", lambda self, topic_id: None),
        mock.patch.object(binding, "pinned", lambda run: None),
    ]


class Bug:
    """What is planted, what it does in words, and which workloads are run to find it."""

    def __init__(self, plant: Callable[[World], list[Any]], text: str, workloads: tuple[str, ...]) -> None:
        self.plant = plant
        self.text = text
        self.workloads = workloads


BUGS: dict[str, Bug] = {
    "acks_one": Bug(_nothing, "a leader answers before it has replicated", ("once", "append", "bank")),
    "list_offsets_read": Bug(
        _list_offsets_read, "ListOffsets taken for a linearizable read", ("once", "append", "register", "set")
    ),
    "blind_resend": Bug(_blind_resend, "an old proposal sent again after a conflict", ("set", "register", "anomalies")),
    "wall_clock_oracle": Bug(_wall_clock_oracle, "timestamps from a process's own clock", ("oracle",)),
    "skipped_apply_write": Bug(
        _skipped_apply_write, "DDL answered before it is applied", ("anomalies", "set", "register")
    ),
    "early_catalog": Bug(_early_catalog, "a peek that does not wait for the catalog", ("anomalies", "bank")),
    "lost_commands": Bug(_lost_commands, "a subscriber begins at the newest upper", ("anomalies", "set")),
    "double_view_commit": Bug(_double_view_commit, "a view's output committed twice", ("bank", "views", "once")),
    "retention": Bug(_retention, "old records of the logs vanish", ("once", "append", "bank")),
    "unknown_version_skipped": Bug(
        _unknown_version_skipped, "records of an unknown version are skipped", ("anomalies", "set")
    ),
    "history_for_ever": Bug(
        _as_planted("history_for_ever"), "a view is brought back as of its upper, however long ago", ("idle", "views")
    ),
    "restarted_into": Bug(
        _as_planted("restarted_into"), "what ended a controller is worked on again at every start", ("poison",)
    ),
    "topic_by_name": Bug(_topic_by_name, "a topic made anew is taken for the one that was read", ("sources",)),
    "moved_early": Bug(
        _as_planted("moved_early"),
        "rows taken out of the log before they are anywhere else",
        ("once", "append", "bank"),
    ),
    "reads_unchecked": Bug(
        _as_planted("reads_unchecked"), "a commit whose reads nobody holds against what was written since", CHANGES
    ),
    "range_skipped": Bug(
        _as_planted("range_skipped"), "a commit that says one of the ranges of keys that its block has read", RANGES
    ),
    "phantoms_unnamed": Bug(
        _as_planted("phantoms_unnamed"), "a commit that does not say the keys of the rows that come by it", RANGES
    ),
    "window_as_free": Bug(_window_as_free, "writes that are forgotten are taken for writes that never were", CHANGES),
    "unanswered_again": Bug(
        _as_planted("unanswered_again"), "a commit that nobody answered is taken for one that did not happen", CHANGES
    ),
}


def patches(bugs: frozenset[str], world: World) -> list[Any]:
    """Plant ``bugs`` in ``world``; what is to be patched while it runs.  Raises ``KeyError`` for an unknown name."""
    return [patch for name in sorted(bugs) for patch in BUGS[name].plant(world)]


__all__ = ["BUGS", "Bug", "Ready", "Unavailable", "patches"]
