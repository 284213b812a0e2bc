"""WITH queries that write: each part run as the statement that it is, all at one snapshot, in one commit.

Promises: all parts read what there was before any of them; each is run once, whoever reads it; what they write becomes
visible together, or not at all.  So they run as a block of their own, whose reads do not see what it has written; what
RETURNING gives of one is a relation of the statement to those that read it (:mod:`sql.objects.given`).  By itself the
statement is made anew where something that it read was written meanwhile, as other statements are; in a block its
writes are the block's.

As in PostgreSQL what nobody reads is run at last.  A row that two parts would take away is refused: PostgreSQL does one
of the two, and does not say which.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from adapter.execute.commits import Commits
from adapter.execute.images import Images
from adapter.execute.inserter import TableChanged
from adapter.execute.lines import pause
from adapter.execute.merging import Looked, Merging
from adapter.execute.plans import Plans
from adapter.execute.results import check_result, check_zone, collect, oids_of
from adapter.execute.returned import returned
from adapter.execute.rows import BUFFER_BYTES_MAX, Rows, check_buffer
from adapter.execute.session_names import names_of
from adapter.state.interfaces import Prepared, Result
from adapter.state.session_state import SessionState
from adapter.state.transaction import Transaction
from adapter.state.variables import SERIALIZABLE
from collection.columns import sql_type
from journal.errors import Conflict, InvalidUsage, Rejected, TidemarkError
from oracle.errors import SnapshotTooOld
from sql.objects.given import Given
from sql.objects.watched import same_answers
from sql.statements.plan_cache import Planned, Statement, part_of
from sql.statements.writing import PlannedPart, WritingPlan
from sql.syntax.merge import Merge
from sql.syntax.writing import Writing
from values.types import arrow_type

TRIES_MAX = 16
"""Times that a statement is made, as of UPDATE (:mod:`adapter.execute.changes`)."""

Prepare = Callable[[SessionState, Statement], Awaitable[Prepared]]
Run = Callable[[SessionState, Prepared, Sequence[object | None]], Awaitable[Result]]


class Writings:
    """``prepare`` and ``run`` are the executor's, for the parts.  Lives on one event loop."""

    def __init__(
        self, images: Images, plans: Plans, commits: Commits, merging: Merging, prepare: Prepare, run: Run
    ) -> None:
        self._images, self._plans, self._commits, self._merging = images, plans, commits, merging
        self._prepare, self._run = prepare, run

    async def run(
        self, session: SessionState, prepared: Prepared, statement: Statement, params: Sequence[object | None]
    ) -> Result:
        for done in range(TRIES_MAX):
            if done:
                await pause(done)
            block = _block(session)
            before = len(block.buffer)
            try:
                result = await self._made(block, prepared, statement, params)
                session.last_sequence = block.last_sequence
                session.catalog_ts_seen = max(session.catalog_ts_seen, block.catalog_ts_seen)
                if session.defers_writes:
                    _taken_over(session, block, before)
                else:
                    await self._commits.commit(block, block.buffer.since(0))
                    session.written_ts = max(session.written_ts, block.written_ts)
                return result
            except TidemarkError as error:
                lost = isinstance(error, Conflict | SnapshotTooOld)
                if session.defers_writes or done == TRIES_MAX - 1 or not lost:
                    _seen_too(session, block)
                    raise
        raise AssertionError("unreachable: the last try raises or returns")

    async def _made(
        self, block: SessionState, prepared: Prepared, statement: Statement, params: Sequence[object | None]
    ) -> Result:
        """What the statement answers; what it writes is in the buffer of ``block``."""
        parsed = statement.parsed
        assert isinstance(parsed, Writing), parsed
        planned = await self._images.certain(
            block, lambda image: self._plans.plan_as(prepared, statement, image, block)
        )
        if planned.plan.keyed is not None and block.transaction.read_ts is None:
            _, image = await self._images.not_before(block)  # no part of it reads before its keys are
            planned = await self._plans.plan_as(prepared, statement, image, block)
        plan: WritingPlan = planned.plan
        check_zone(prepared, names_of(block).zone, plan)
        check_result(prepared.columns, returned(plan) or ())
        oids = oids_of(plan.params, prepared.param_oids, None)
        whole = replace(statement, param_oids=oids)
        own = parsed.own if isinstance(parsed, Merge) else frozenset()
        handed: dict[str, pa.Table] = {}
        looked: Looked | None = None
        seeks = plan.keyed is not None
        counts: dict[str, int] = {}
        written: list[list[Rows]] = []
        answer: Result | None = None
        for each in _in_order(plan.parts):
            at, name = len(block.buffer), each.part.name
            block.given = handed
            if name is None or name in own:
                if seeks:
                    assert plan.keyed is not None
                    looked, seeks = await self._merging.looked(block, planned.image, plan.keyed, params), False
                if looked is not None:
                    block.given = {**handed, looked.table_id: looked.rows}
            try:
                sub = await self._prepare(block, part_of(each, whole, planned, names_of(block)))
                result = await self._run(block, replace(sub, zone=prepared.zone), params)
            except InvalidUsage as error:
                await self._check_holds(planned, block, error)
                raise
            await self._check_holds(planned, block)
            if looked is not None and name in own:
                block.buffer.extend(_hanging_on(entry, looked) for entry in block.buffer.cut(at))
            written.append(block.buffer.since(at))
            batches = await _collected(result)
            if name is None:
                answer = replace(result, batches=batches)
                continue
            counts[name] = int(result.tag.rsplit(" ", 1)[-1])
            if each.gives is not None:
                handed = {**handed, each.gives.id: _given(each.gives, batches)}
        assert answer is not None, "the statement itself is a part"
        if isinstance(parsed, Merge):
            _check_pairs(parsed, answer, counts)
            answer = Result(f"MERGE {sum(count for name, count in counts.items() if name in parsed.own)}")
        _check_once(written, _twice_merged() if isinstance(parsed, Merge) else _twice_changed())
        check_buffer(block.buffer)
        return answer

    async def _check_holds(self, planned: Planned, block: SessionState, error: InvalidUsage | None = None) -> None:
        """Each part is planned once more as it is run, perhaps on a newer image.  Where what the whole was planned by
        is not so any more, rows that were looked up, or that parts give, are not of the columns that another part reads
        them by: then nothing that came of it counts, ``error`` included, and the statement is made anew."""
        image = await self._images.known(block.catalog_ts_seen + 1)  # no part was planned on a newer one
        if not same_answers(planned.answers, image):
            told = "what the statement reads or writes was changed while its parts were run"
            raise TableChanged(told, hint="try again") from error


def _block(session: SessionState) -> SessionState:
    """A block of its own for one statement, within that of ``session``, if that is in one."""
    block = Transaction()
    block.begin(SERIALIZABLE, session.transaction.read_only)
    if session.reads_at_one_timestamp:
        outer = session.transaction
        block.read_ts, block.changed, block.image = outer.read_ts, outer.changed, outer.image
    block.visible = len(session.buffer)
    return SessionState(
        session.session_id, session.user, session.database, session.variables, block, session.buffer.copy(), True,
        session.catalog_ts_seen, session.written_ts, session.sequences, session.last_sequence, session.notify,
    )  # fmt: skip


def _taken_over(session: SessionState, block: SessionState, before: int) -> None:
    """What ``block`` has written and read, as what ``session`` has."""
    session.buffer.extend(block.buffer.since(before))
    outer, inner = session.transaction, block.transaction
    if not outer.in_block:
        return
    if session.reads_at_one_timestamp or inner.changed:
        if not session.reads_at_one_timestamp or not outer.read_ts:
            outer.read_ts, outer.image = inner.read_ts, inner.image
        outer.changed = outer.changed or inner.changed
        outer.saw_with(inner)


def _seen_too(session: SessionState, block: SessionState) -> None:
    """What ``block`` has read counts as read by ``session``, though its statement failed: its error is of these rows,
    and behind a savepoint the session's block goes on."""
    outer, inner = session.transaction, block.transaction
    if not outer.in_block or inner.hangs_from is None:
        return
    outer.saw_with(inner)
    outer.failed_at(inner.hangs_from)


def _hanging_on(entry: Rows, looked: Looked) -> Rows:
    """``entry``, which hangs on the keys that were looked up instead of on all of their table."""
    reads = tuple([each for each in entry.reads if each != looked.table_id])
    ranges = tuple([each for each in entry.ranges if each.collection != looked.table_id])
    return replace(entry, reads=reads, ranges=ranges, points=entry.points | looked.keys)


def _in_order(parts: Sequence[PlannedPart]) -> list[PlannedPart]:
    """What is run, in its order: the statement itself before what nobody reads."""
    *others, main = parts
    by_id = {each.gives.id: each for each in others if each.gives is not None}
    read: set[str] = set()
    queue = [main]
    while queue:
        for each in queue.pop().reads:
            if each not in read:
                read.add(each)
                queue.append(by_id[each])

    def is_read(each: PlannedPart) -> bool:
        return each.gives is not None and each.gives.id in read

    return [*filter(is_read, others), main, *(each for each in others if not is_read(each))]


async def _collected(result: Result) -> list[pa.RecordBatch]:
    if result.columns is None:
        return []
    if hasattr(result.batches, "__aiter__"):
        return await collect(result.batches, "WITH", "read fewer rows")
    return list(result.batches)


def _given(relation: Given, batches: Sequence[pa.RecordBatch]) -> pa.Table:
    """The rows of ``batches`` as those of ``relation``.  54000 where they are more than a statement may hold."""
    size = sum(batch.nbytes for batch in batches)
    if size > BUFFER_BYTES_MAX:
        raise Rejected(
            f'WITH query "{relation.name}" gives too many rows to others',
            sqlstate="54000",
            detail=f"{size} bytes, at most {BUFFER_BYTES_MAX} are held by one statement",
            hint="write in several statements, in one transaction block",
        )
    schema = pa.schema([(column.name, arrow_type(sql_type(column.type))) for column in relation.columns])
    tables = [
        pa.Table.from_arrays([a.cast(f.type) for a, f in zip(batch.columns, schema, strict=True)], schema=schema)
        for batch in batches
    ]
    return pa.concat_tables(tables).combine_chunks() if tables else schema.empty_table()


def _twice_changed() -> InvalidUsage:
    told = "WITH queries cannot affect row a second time"
    return InvalidUsage(told, sqlstate="21000", hint="let one part of the statement change it")


def _twice_merged() -> InvalidUsage:
    return InvalidUsage(
        "MERGE command cannot affect row a second time",
        sqlstate="21000",
        hint="Ensure that not more than one source row matches any one target row.",
    )


def _check_pairs(parsed: Merge, answer: Result, counts: Mapping[str, int]) -> None:
    """21000 where a row was matched twice: ``answer`` says how often rows matched each of what was counted."""
    for batch in answer.batches:
        for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            if any(pairs > counts[name] for name, pairs in zip(parsed.counted, row, strict=False)):
                raise _twice_merged()


def _check_once(written: Sequence[Sequence[Rows]], error: InvalidUsage) -> None:
    """``error`` where two parts take away equal rows of one table."""
    takers = Counter(
        table for part in written for table in {each.table.id for each in part if each.removed is not None}
    )
    seen: set[tuple[str, str]] = set()
    for part in written:
        own = {
            (each.table.id, repr(row))
            for each in part
            if each.removed is not None and takers[each.table.id] > 1
            for row in zip(*(column.to_pylist() for column in each.rows.columns), strict=True)
        }
        if not seen.isdisjoint(own):
            raise error
        seen |= own
