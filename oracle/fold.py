"""What a record of the oracle topic does: the fold that every process shares (DESIGN §2 I3, I4, I5, I10; §4).  Pure.

Promises: the same records in the same order give the same states and outcomes in every reader, however they are cut
into batches.  A record that cannot be read, breaks its rules or was fenced off changes nothing but a count; it never
stops the fold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import immutables

from collection.binding import INLINE, Binding, BoundRun, Inline, Move, Run
from journal.api import Entry
from journal.timestamps import CATALOG, TABLE, CatalogTs, DataTs
from oracle import conflicts
from oracle.bindings import (
    NOTHING,
    Bound,
    Partition,
    bind,
    carried_for_good,
    carry,
    coalesce,
    cover,
    move,
    refused,
    retire,
)
from oracle.errors import Reason
from oracle.model import CommitPart, Kind, Outcome, Record, Stamp, Verdict
from oracle.one_verdict import opened
from oracle.records import CARRIED_SEALED, RECORD_VERSIONS, decode_record
from oracle.state import HELD_BYTES_MAX, HELD_RUN_BYTES, OracleState, held_bytes, held_for_good
from oracle.timeline import TIMELINES_MAX, Timeline
from oracle.unbound import Claim, claimed, given_up


class _Folded(NamedTuple):
    state: OracleState
    verdicts: tuple[Verdict, ...] = ()


def fold(state: OracleState, entry: Entry) -> tuple[OracleState, Outcome]:
    """The state after ``entry`` and what became of it.  Never raises for anything that a record may hold."""
    state, record, gone = opened(state, entry, lambda value: decode_record(value, state.record_version))
    if gone is not None:
        return state, gone
    if record.catalog_upper > state.catalog_upper:
        state = state._replace(catalog_upper=CatalogTs(record.catalog_upper))
    state, verdicts = _APPLY[record.kind](state, record)
    return state, Outcome(record.token, entry.offset, record.kind, None, verdicts)


def _nothing(state: OracleState, _record: Record) -> _Folded:
    return _Folded(state)


def _commit(state: OracleState, record: Record) -> _Folded:
    """All admitted parts get one timestamp, later than everything read or written on ``table`` before.

    A refused part's proposal counts for the timestamp too.  That costs nothing (time passes), and lets the timestamp
    be known before the parts are judged.
    """
    table = state.timelines.get(TABLE, Timeline())
    timeline = table.write(max((part.proposed_ts for part in record.parts), default=0))
    ts = timeline.write_ts
    verdicts = []
    admitted = state
    for part in record.parts:
        admitted, verdict = _part(admitted, part, ts)
        verdicts.append(verdict)
    count = sum(verdict.reason is None for verdict in verdicts)
    stats = state.stats
    stats = stats._replace(
        parts_admitted=stats.parts_admitted + count, parts_refused=stats.parts_refused + len(verdicts) - count
    )
    if count:
        admitted = admitted._replace(timelines=state.timelines.set(TABLE, timeline.apply(ts)))
    return _Folded(admitted._replace(stats=stats), tuple(verdicts))


def _part(state: OracleState, part: CommitPart, ts: int) -> tuple[OracleState, Verdict]:
    """``state`` with ``part`` visible at ``ts``, or unchanged with the reason why not."""
    if part.catalog_upper_seen is not None and part.catalog_upper_seen < state.catalog_upper:
        return state, Verdict(0, Reason.STALE_CATALOG, f"planned at catalog upper {part.catalog_upper_seen}, "
                              f"in force is {state.catalog_upper}", state.catalog_upper)  # fmt: skip
    if part.read_ts is not None:
        # `state.last_ts` still is the one before this record: what other parts of it write is at `ts`, after any read.
        if part.read_ts > state.last_ts:
            return state, Verdict(0, Reason.AHEAD, f"read at {part.read_ts}, complete is {state.last_ts}",
                                  state.last_ts)  # fmt: skip
        if part.read_ts < state.since:
            return state, Verdict(0, Reason.SNAPSHOT_TOO_OLD, f"read at {part.read_ts}, kept from {state.since}",
                                  state.since)  # fmt: skip
        if found := conflicts.check(state.managers, part.reads, part.read_ts):
            return state, Verdict(0, *found)
    carrying = sum(held_bytes(each.value) for each in part.inline)
    if carrying and state.held_bytes + carrying > HELD_BYTES_MAX:
        return state, Verdict(0, Reason.HELD, f"{state.held_bytes} bytes are held, at most {HELD_BYTES_MAX}",
                              state.held_bytes)  # fmt: skip
    bound = _bind_all(state, part.bindings, ts)
    if isinstance(bound, Verdict):
        return state, bound
    bound = _carry_all(bound, part.inline, ts)
    written = [each.collection for each in (*part.bindings, *part.inline)]
    managers = conflicts.record(state.managers, ts, written, part.writes)
    return bound._replace(managers=managers), Verdict(ts)


def _bind_all(state: OracleState, bindings: Sequence[Binding], ts: int) -> OracleState | Verdict:
    """All of ``bindings`` bound at ``ts``, or why not (then none is)."""
    changed = {}
    for collection, run, contiguous in bindings:
        bound = changed.get(collection) or state.bound.get(collection, NOTHING)
        if found := refused(bound.coverage, run, contiguous):
            return Verdict(0, found[0], f"{collection}: {found[1]}")
        changed[collection] = bind(bound, ts, run, cover(bound.coverage, run))
    all_bound, hot = state.bound, state.hot
    for collection, bound in changed.items():
        all_bound = all_bound.set(collection, bound)
        hot = hot if collection in hot else hot.set(collection, None)
    return state._replace(bound=all_bound, hot=hot)


def _carry_all(state: OracleState, inline: Sequence[Inline], ts: int) -> OracleState:
    """All of ``inline`` visible at ``ts``."""
    if not inline:
        return state
    bound, hot, held, total = state.bound, state.hot, state.held, state.held_bytes
    for each in inline:
        bound = bound.set(each.collection, carry(bound.get(each.collection, NOTHING), ts, each))
        hot = hot if each.collection in hot else hot.set(each.collection, None)
        size = held_bytes(each.value)
        held, total = held.set(each.collection, held.get(each.collection, 0) + size), total + size
    return state._replace(bound=bound, hot=hot, held=held, held_bytes=total)


def _move(state: OracleState, record: Record) -> _Folded:
    """Each move happens as a whole or not at all; none is seen by a reader at any timestamp (I5)."""
    by_collection: dict[str, list[int]] = {}
    for index, each in enumerate(record.moves):
        by_collection.setdefault(each.collection, []).append(index)
    verdicts = [Verdict()] * len(record.moves)
    for collection, indexes in by_collection.items():
        state, verdict = _move_in(state, collection, [record.moves[index] for index in indexes])
        for index in indexes:
            verdicts[index] = verdict
    return _Folded(state, tuple(verdicts))


def _move_in(state: OracleState, collection: str, moves: Sequence[Move]) -> tuple[OracleState, Verdict]:
    """The moves of one collection in one record: all of them, or none."""
    gone = Verdict(0, Reason.NOT_THERE, f"{collection} has no such rows in the log")
    # Before anything is made of them: a record of a few bytes can name any number of rows.
    width = sum(each.run.upper - each.run.lower for each in moves)
    if width * HELD_RUN_BYTES >= state.held.get(collection, 0):
        return state, gone
    bound = state.bound[collection]
    coverage, places = bound.coverage, dict[int, Run]()
    for _, number, run in moves:
        if found := refused(coverage, run, contiguous=False):
            return state, Verdict(0, found[0], f"{collection}: {found[1]}")
        coverage = cover(coverage, run)
        for place in range(run.upper - run.lower):
            if number + place in places:
                return state, Verdict(0, Reason.OVERLAP, f"{collection}: inline rows {number + place} moved twice")
            places[number + place] = run._replace(lower=run.lower + place, upper=run.lower + place + 1)
    moved = move(bound, places, coverage, of_base=state.record_version < CARRIED_SEALED)
    if moved is None:
        return state, gone
    bound, taken, settled = moved
    hot = state.hot if not bound.recent or collection in state.hot else state.hot.set(collection, None)
    state = state._replace(bound=state.bound.set(collection, bound), hot=hot)
    return _let_go(state, collection, taken, settled), Verdict(state.last_ts)


def _let_go(state: OracleState, collection: str, gone: Sequence[BoundRun], settled: int) -> OracleState:
    """``state`` where the log does not carry these of ``collection`` any more, of which the first ``settled`` are at or
    below its ``since``."""
    if not gone:
        return state
    sizes = [held_bytes(each.value) for each in gone]
    left, for_good = state.held[collection] - sum(sizes), state.held_for_good - sum(sizes[:settled])
    held = state.held.set(collection, left) if left else state.held.delete(collection)
    return state._replace(held=held, held_bytes=state.held_bytes - sum(sizes), held_for_good=for_good)


def _claim(state: OracleState, record: Record) -> _Folded:
    """No claim is refused: one of what is bound, or of a collection that is gone, keeps nothing from anybody."""
    return _Folded(state._replace(claims=claimed(state.claims, record.offsets, state.last_ts)))


def _give_up(state: OracleState, record: Record) -> _Folded:
    """Each range as a whole or not at all; no reader sees it at any timestamp, since none of it was visible."""
    by_place: dict[tuple[str, Partition], list[int]] = {}
    for index, (collection, run) in enumerate(record.offsets):
        by_place.setdefault((collection, (run.topic, run.partition)), []).append(index)
    claims: dict[str, list[Claim]] = {}
    for claim in state.claims:
        claims.setdefault(claim.collection, []).append(claim)
    verdicts, now = [Verdict()] * len(record.offsets), state.last_ts
    for (collection, partition), indexes in by_place.items():
        asked = [record.offsets[index].run for index in indexes]
        before = state.bound.get(collection, NOTHING)
        bound, whys = given_up(before, claims.get(collection, ()), partition, asked, now)
        if bound is not before:
            state = state._replace(bound=state.bound.set(collection, bound))
        for index, why in zip(indexes, whys, strict=True):
            if why is not None:
                verdicts[index] = Verdict(0, why[0], f"{collection}: {why[1]}")
    return _Folded(state, tuple(verdicts))


def _retire(state: OracleState, record: Record) -> _Folded:
    """Each range as a whole or not at all; no reader can tell, at any timestamp (I5): the rows are elsewhere, by the
    log of segments."""
    verdicts = []
    for collection, run in record.offsets:
        before = state.bound.get(collection, NOTHING)
        found = retire(before, run)
        if isinstance(found, Bound):
            state = state._replace(bound=state.bound.set(collection, found))
            if run.topic == INLINE:
                gone = [each for each in carried_for_good(before) if run.lower <= each.run.lower < run.upper]
                state = _let_go(state, collection, gone, len(gone))
            verdicts.append(Verdict())
        else:
            verdicts.append(Verdict(0, found[0], f"{collection}: {found[1]}"))
    return _Folded(state, tuple(verdicts))


def _format(state: OracleState, record: Record) -> _Folded:
    """Up to what this code knows: who knows more was told by the catalog's format that this one cannot follow."""
    return _Folded(state._replace(record_version=max(state.record_version, min(record.ts, RECORD_VERSIONS[-1]))))


def _stamps(state: OracleState, stamps: Sequence[Stamp], reserved: frozenset[str],
            move: Callable[[Timeline, int], Timeline]) -> _Folded:  # fmt: skip
    """Move each stamp's timeline; each verdict holds the timeline's ``write_ts`` after its move."""
    timelines, verdicts = state.timelines, []
    for name, ts in stamps:
        if name in reserved:
            verdicts.append(Verdict(0, Reason.TIMELINE, f"{name} takes no such record"))
        elif name != TABLE and name not in timelines and len(timelines) >= TIMELINES_MAX:
            verdicts.append(Verdict(0, Reason.TIMELINE, f"there are {TIMELINES_MAX} timelines already"))
        else:
            moved = move(timelines.get(name, Timeline()), ts)
            timelines = timelines.set(name, moved)
            verdicts.append(Verdict(moved.write_ts))
    return _Folded(state._replace(timelines=timelines), tuple(verdicts))


def _write_ts(state: OracleState, record: Record) -> _Folded:
    return _stamps(state, record.stamps, frozenset((CATALOG, TABLE)), Timeline.write)


def _apply_write(state: OracleState, record: Record) -> _Folded:
    return _stamps(state, record.stamps, frozenset((CATALOG, TABLE)), Timeline.apply)


def _advance(state: OracleState, record: Record) -> _Folded:
    return _stamps(state, record.stamps, frozenset((CATALOG,)), Timeline.apply)


def _forget(state: OracleState, record: Record) -> _Folded:
    bound, hot, managers, held, total = state.bound, state.hot, state.managers, state.held, state.held_bytes
    kept, for_good = state.kept, state.held_for_good
    gone = frozenset(record.names)
    claims = tuple(each for each in state.claims if each.collection not in gone)
    for name in record.names:
        if name in kept:
            kept = kept.delete(name)
        if name in held:
            held, total = held.delete(name), total - held[name]
            for_good -= held_for_good(bound[name])
        if name in bound:
            bound = bound.delete(name)
        if name in hot:
            hot = hot.delete(name)
        if name in managers:
            managers = managers.delete(name)
    state = state._replace(bound=bound, kept=kept, claims=claims, hot=hot, managers=managers)
    return _Folded(state._replace(held=held, held_bytes=total, held_for_good=for_good))


def _compact(state: OracleState, record: Record) -> _Folded:
    """``since`` moves to the record's ``ts``, never beyond what is complete and never back.

    It is a record, and not something a checkpoint does by itself, because verdicts depend on it ("snapshot too old"):
    whoever folds the whole log must move it at the same place as whoever starts from the checkpoint.

    Of what is ``kept`` it moves by its own timestamp, never back either: what was merged once is told apart no more.
    No verdict hangs on that: transactions may read no older than everybody's ``since``.
    """
    since = DataTs(max(state.since, min(record.ts, state.last_ts)))
    kept: immutables.Map[str, int] = immutables.Map()
    for name, ts in record.kept:
        own = max(state.since_of(name), ts)
        if own < since and name in state.bound:
            kept = kept.set(name, own)
    bound, hot, for_good = state.bound, state.hot, state.held_for_good
    for collection in state.hot:
        before = bound[collection]
        merged = coalesce(before, kept.get(collection, since))
        bound = bound.set(collection, merged)
        if collection in state.held:
            old = before.recent.slice(0, len(before.recent) - len(merged.recent))
            for_good += sum(held_bytes(each.value) for each in old)
        if not merged.recent:
            hot = hot.delete(collection)
    managers = conflicts.forget_through(state.managers, since)
    state = state._replace(since=since, kept=kept, bound=bound, hot=hot, held_for_good=for_good, managers=managers)
    return _Folded(state)


_APPLY: dict[Kind, Callable[[OracleState, Record], _Folded]] = {
    Kind.BARRIER: _nothing,
    Kind.APPLY: _nothing,
    Kind.COMMIT: _commit,
    Kind.ADVANCE: _advance,
    Kind.WRITE_TS: _write_ts,
    Kind.APPLY_WRITE: _apply_write,
    Kind.FORGET: _forget,
    Kind.COMPACT: _compact,
    Kind.FORMAT: _format,
    Kind.MOVE: _move,
    Kind.CLAIM: _claim,
    Kind.GIVE_UP: _give_up,
    Kind.RETIRE: _retire,
    Kind.FENCE: _nothing,
}
