"""UPDATE, DELETE and TRUNCATE: rows read as a SELECT reads them, then one commit in which they go and others come.

What a statement read is what it changed: its commit says where it read and which tables, its own among them, and the
log refuses it where one of those was written since (:mod:`oracle.conflicts`).  Outside of a transaction block it is
then made anew from what there is now; in a block that is for whoever began the block.

So a statement that changes the row of a key needs no barrier before it reads: the record that commits it is where it
happens, and holds the read against all that came before.  What no commit follows is said behind a barrier: that there
is no such row, or an error of it.  And so reads who stood in line: an adapter knows its own commits before others hear
of them, and whoever came next in it would win again and again (the slowest of 16 sessions over two adapters had 0.19 of
an equal share instead of 0.45).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from adapter.execute.beside import on_thread_if
from adapter.execute.commits import Commits
from adapter.execute.constants import Constants
from adapter.execute.draws import Draws
from adapter.execute.images import Images
from adapter.execute.key_reads import CANCELED
from adapter.execute.lines import Lines, pause
from adapter.execute.own_keys import own_keys
from adapter.execute.plans import Plans
from adapter.execute.reads import Reads
from adapter.execute.results import as_promised, check_result, check_zone, collect
from adapter.execute.returned import returned, rows_returned
from adapter.execute.rows import Rows, asks_engine, check_buffer, rows_of_query
from adapter.execute.seen import Seen, seen_by
from adapter.execute.sequences import Sequences
from adapter.execute.session_names import names_of
from adapter.execute.uniques import Uniques
from adapter.state.interfaces import Prepared, Result
from adapter.state.session_state import SessionState
from collection.columns import sql_type
from journal.errors import Conflict, Indeterminate, TidemarkError
from journal.timestamps import DataTs
from oracle.errors import SnapshotTooOld
from oracle.state import OracleState
from sql.statements.plan_cache import Planned, Statement
from sql.statements.plans import ChangePlan, Point, TableChange
from trees.errors import unsupported
from values.types import arrow_type

TRIES_MAX = 16
"""Times that a statement is made.  One reads and commits in some 15 ms.  Of four adapters that change one table without
a pause the unluckiest wins once in four tries, so one of a hundred statements would need more than 16; and where others
insert into the table 100 times a second, one try in five comes through, and three statements of a hundred are
refused."""


@dataclass
class _Made:
    """What a statement would write, how many rows it is about, and what it answers."""

    entries: list[Rows]
    count: int
    batches: list[pa.RecordBatch] | None
    restarts: tuple[tuple[str, int], ...] = ()
    """Sequences that begin anew once it is committed, and where."""
    confirmed: bool = False
    """Whether its commit holds all that it has read against what was written since."""


class Changes:
    """Those of sessions.  Lives on one event loop."""

    def __init__(
        self,
        images: Images,
        plans: Plans,
        constants: Constants,
        sequences: Sequences,
        reads: Reads,
        commits: Commits,
        uniques: Uniques,
        lines: Lines,
    ) -> None:
        self._images = images
        self._plans = plans
        self._constants = constants
        self._sequences = sequences
        self._reads = reads
        self._commits = commits
        self._uniques = uniques
        self._lines = lines

    async def run(
        self, session: SessionState, prepared: Prepared, statement: Statement, params: Sequence[object | None]
    ) -> Result:
        draws = Draws(self._sequences, session, self._constants.value)
        if session.defers_writes:
            made = await self._made(session, prepared, statement, params, draws)
            check_buffer(session.buffer, made.entries)
            if made.entries:
                session.transaction.changed, session.transaction.read_ts = True, made.entries[0].read_ts
            session.buffer.extend(made.entries)
            return self._result(prepared, made)
        planned = await self._images.certain(
            session, lambda image: self._plans.plan_as(prepared, statement, image, session)
        )
        values = planned.plan.values(params)
        async with self._lines.first_of(_line(each, values) for each in planned.plan.changes) as waited:
            for done in range(TRIES_MAX):
                if done:
                    await pause(done)
                draws.again()
                try:
                    made = None
                    if not done and not waited:
                        made = await self._before_a_barrier(session, prepared, planned, params, draws)
                    if made is None:
                        draws.again()
                        made = await self._made(session, prepared, statement, params, draws)
                    if made.entries:
                        await self._commits.commit(session, made.entries)
                    break
                except (Conflict, SnapshotTooOld):  # known not to have happened: what there is now is another thing
                    if done == TRIES_MAX - 1:
                        raise
            await self._restart(made.restarts)
        return self._result(prepared, made)

    async def _restart(self, restarts: Sequence[tuple[str, int]]) -> None:
        """Let sequences begin anew, of tables whose rows are gone.

        ``Indeterminate`` where that fails: part of the statement was done.
        """
        try:
            for sequence_id, start in restarts:
                await self._sequences.put(sequence_id, start, given=False)
        except TidemarkError as error:
            raise Indeterminate(
                "the rows are gone, but not all sequences are known to begin anew",
                detail=error.message,
                hint="ALTER TABLE … ALTER COLUMN … RESTART, or setval(…), begins one anew",
            ) from error

    @staticmethod
    def _result(prepared: Prepared, made: _Made) -> Result:
        tag = prepared.tag_hint if prepared.tag_hint.startswith("TRUNCATE") else f"{prepared.tag_hint} {made.count}"
        return Result(tag) if made.batches is None else Result(tag, prepared.columns, made.batches)

    async def _made(
        self,
        session: SessionState,
        prepared: Prepared,
        statement: Statement,
        params: Sequence[object | None],
        draws: Draws,
    ) -> _Made:
        """What the statement would do by what there is now (in a block: at its timestamp)."""
        state, planned = await self._planned(session, prepared, statement)
        return await self._made_at(session, prepared, planned, state, params, draws)

    async def _before_a_barrier(
        self,
        session: SessionState,
        prepared: Prepared,
        planned: Planned[ChangePlan],
        params: Sequence[object | None],
        draws: Draws,
    ) -> _Made | None:
        """What the statement would do by what this process knows, where its commit tells whether that is so."""
        plan = planned.plan
        if plan.restarts or not all(each.point is not None for each in plan.changes):
            return None
        try:
            made = await self._made_at(session, prepared, planned, self._images.newest, params, draws)
        except TidemarkError as error:
            if error.sqlstate == CANCELED:
                raise
            return None  # it may be an error of what has passed
        return made if made.confirmed else None

    async def _made_at(
        self,
        session: SessionState,
        prepared: Prepared,
        planned: Planned[ChangePlan],
        state: OracleState | None,
        params: Sequence[object | None],
        draws: Draws,
    ) -> _Made:
        plan = planned.plan
        params = plan.values(params)
        if plan.restarts and session.defers_writes:
            hint = "say it outside of the block, or TRUNCATE in it, and ALTER COLUMN … RESTART behind it"
            raise unsupported("TRUNCATE … RESTART IDENTITY in a transaction block", hint)
        check_zone(prepared, names_of(session).zone, plan)
        check_result(prepared.columns, returned(plan) or ())
        entries: list[Rows] = []
        count, batches, confirmed = 0, None if plan.returning is None else [], True
        for change in plan.changes:
            found, read_ts = await self._read(session, planned, change, params, state, prepared.tag_hint)
            count += found.num_rows
            confirmed = confirmed and change.point is not None and found.num_rows > 0
            if found.num_rows:
                removed, added = await self._rows(session, change, found, planned, params, read_ts, draws)
                both = [removed] if added is None else [removed, added]
                if change.uniques and added is not None:
                    own = own_keys(session.buffer.of(change.table.id))
                    both = await self._uniques.checked(session, planned.image, both, own)
                entries += both
                if plan.returning is not None:
                    row = [*(removed if added is None else added).rows.columns[: len(change.table.columns)]]
                    batches = await rows_returned(
                        self._constants, plan.returning, params, [*row, *found.columns[change.beside :]]
                    )
        return _Made(entries, count, batches, plan.restarts, confirmed)

    async def _planned(
        self, session: SessionState, prepared: Prepared, statement: Statement
    ) -> tuple[OracleState | None, Planned[ChangePlan]]:
        """The plan, and the barrier that it is read at; in a block that has its timestamp none is needed."""
        if session.transaction.read_ts is not None and session.reads_at_one_timestamp:
            planned = await self._images.certain(
                session, lambda image: self._plans.plan_as(prepared, statement, image, session)
            )
            self._images.saw(session, planned.image)
            return None, planned
        state, image = await self._images.not_before(session)
        return state, await self._plans.plan_as(prepared, statement, image, session)

    async def _read(
        self,
        session: SessionState,
        planned: Planned[ChangePlan],
        change: TableChange,
        params: Sequence[object | None],
        state: OracleState | None,
        tag: str,
    ) -> tuple[pa.Table, DataTs]:
        """What the query of ``change`` gives, each row of its table once, and where that was read."""
        as_of = None if state is None else state.last_ts
        point = None if change.point is None else point_key(change.point, params)
        key = None if point is None else (change.table.id, point)
        answer = await self._reads.read(session, planned.image, change.query, params, as_of, key)
        told = f"{tag} of too many rows at once", "change them in several statements, by ranges of a column"
        batches = await collect(as_promised(answer, change.query.columns), *told)
        read_ts = session.transaction.read_ts if as_of is None else answer.as_of or as_of
        assert read_ts is not None, "a read is at a barrier's timestamp, or at its block's"
        kinds = [arrow_type(column.type) for column in change.query.columns]
        schema = pa.schema([pa.field(f"c{at}", kind) for at, kind in enumerate(kinds)])
        renamed = [pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in batches]
        found = pa.Table.from_batches(renamed, schema).combine_chunks()
        return await on_thread_if(change.number is not None, _each_once, found, change.number), DataTs(read_ts)

    async def _rows(
        self,
        session: SessionState,
        change: TableChange,
        found: pa.Table,
        planned: Planned[ChangePlan],
        params: Sequence[object | None],
        read_ts: DataTs,
        draws: Draws,
    ) -> tuple[Rows, Rows | None]:
        """The rows that go, and those that come."""
        plan, table = planned.plan, change.table
        point = None if change.point is None else point_key(change.point, params)
        seen = Seen()
        if point is None:
            seen = seen_by(planned.image, change.query, params, session.transaction.image)
        about = plan.catalog_ts + 1, (planned.answers,), read_ts, *seen
        kinds = [arrow_type(sql_type(column.type)) for column in change.stored]
        old = found.columns[change.old : change.beside]
        arrays = [values.cast(kind) for values, kind in zip(old, kinds, strict=True)]
        gone = pa.Table.from_arrays(arrays, names=[f"c{at}" for at in range(len(arrays))])
        points = frozenset() if point is None else frozenset([point])
        removed = Rows(table, gone, *about, removed=change.stored, uniques=change.uniques, points=points)
        if change.new is None:
            return removed, None
        drawn = await draws.defaults(change.new, found.num_rows)
        rest = found.to_batches(), self._constants.working(names_of(session).zone), drawn
        many = bool(drawn) or removed.heavy or asks_engine(table)
        made = await on_thread_if(many, rows_of_query, change.new, *rest)
        return removed, Rows(table, made, *about, uniques=change.uniques)


def _line(change: TableChange, params: Sequence[object | None]) -> str:
    """Where a change stands in line: at the key or the ranges of keys that it reads, where it reads no more.  Of two
    whose ranges meet and are not the same ones neither waits."""
    point = None if change.point is None else point_key(change.point, params)
    if point is not None:
        return f"{change.table.id}/{point.hex()}"
    values, _ = change.query.values(params)
    own = next((each for each in change.query.keys_seen if each.table_id == change.table.id), None)
    bounds = None if own is None else own.ranges(values, lambda _: True)
    if bounds is None:
        return change.table.id
    return f"{change.table.id}/{','.join(f'{lower.hex()}-{upper.hex()}' for lower, upper in bounds)}"


def point_key(point: Point, params: Sequence[object | None]) -> bytes | None:
    """The one key that a statement reads, as commits name it; ``None`` where no row of the table can have it, which a
    commit then says as if all were read."""
    columns = []
    for column, value in zip(point.unique.columns, point.filled(params), strict=True):
        try:
            columns.append(pa.chunked_array([pa.array([value], arrow_type(sql_type(column.type)))]))
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
            return None
    return point.unique.keys_of(columns)[0]


def _each_once(found: pa.Table, number: int | None) -> pa.Table:
    """One row for each value of the column ``number``: of several the least by what they look like, so that it does not
    hang on an engine which it is."""
    if number is None:
        return found
    numbers = found.column(number).to_pylist()
    if len(set(numbers)) == len(numbers):
        return found
    chosen: dict[int, tuple[str, int]] = {}
    rows = zip(*(column.to_pylist() for column in found.columns), strict=True)
    for place, (key, row) in enumerate(zip(numbers, rows, strict=True)):
        looks = repr(row), place
        chosen[key] = min(chosen.get(key, looks), looks)
    return found.take(pa.array(sorted(place for _, place in chosen.values()), pa.int64()))
