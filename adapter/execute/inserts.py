"""INSERT as a statement: its rows planned, read, drawn for and committed, and all of that anew where the world changed.

It is planned on the local image without a barrier; the commit, on condition that no newer catalog is in force, and
the rows themselves are of :mod:`adapter.execute.inserter` and :mod:`adapter.execute.rows`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from adapter.execute.beside import on_thread_if
from adapter.execute.commits import Commits
from adapter.execute.conflicting import Conflicting, Resolved
from adapter.execute.constants import Constants
from adapter.execute.draws import Draws
from adapter.execute.images import Images
from adapter.execute.inserter import TableChanged
from adapter.execute.lines import Lines, pause
from adapter.execute.over_rows import OverRows
from adapter.execute.own_keys import own_keys
from adapter.execute.plans import Plans
from adapter.execute.reads import Reads
from adapter.execute.results import as_promised, check_result, check_zone, collect
from adapter.execute.returned import returned, rows_returned
from adapter.execute.rows import Rows, are_few, asks_engine, check_buffer, few_values, rows_of_query, rows_of_values
from adapter.execute.seen import seen_by
from adapter.execute.sequences import Sequences
from adapter.execute.session_names import names_of
from adapter.execute.uniques import Uniques
from adapter.state.interfaces import Prepared, Result
from adapter.state.session_state import SessionState
from journal.errors import Conflict, InvalidUsage
from oracle.errors import SnapshotTooOld
from oracle.state import OracleState
from sql.objects.watched import same_answers
from sql.statements.plan_cache import Planned, Statement
from sql.statements.plans import InsertPlan, Returning

INSERT_TRIES_MAX = 5
"""Times that an INSERT is made and committed anew because what it read was written meanwhile, or its table altered."""

KEYED_TRIES_MAX = 16
"""The same where all that it read are keys: it loses only to who writes the same keys, or all of the table at once."""

CONFLICT_TRIES_MAX = 64
"""Of ON CONFLICT.  Within an adapter those who meet one row stand in line; of eight adapters without a pause the one
that has waited longest wins one time in eight, so one statement of a thousand needs more than 52."""

LINES_MAX = 8
"""Keys of one statement that it stands in line for; with more it takes its chance."""


class Inserts:
    """INSERTs of sessions.  Lives on one event loop."""

    def __init__(
        self,
        images: Images,
        plans: Plans,
        constants: Constants,
        sequences: Sequences,
        reads: Reads,
        commits: Commits,
        uniques: Uniques,
        conflicting: Conflicting,
        lines: Lines,
    ) -> None:
        self._images = images
        self._plans = plans
        self._constants = constants
        self._sequences = sequences
        self._reads = reads
        self._over_rows = OverRows(reads, constants)
        self._commits = commits
        self._uniques = uniques
        self._conflicting = conflicting
        self._lines = lines

    async def run(
        self, session: SessionState, prepared: Prepared, statement: Statement, params: Sequence[object | None]
    ) -> Result:
        few = self._few(session, prepared, statement, params)
        if few is not None:
            try:
                await self._write(session, [few])
                return Result(f"INSERT 0 {few.count}")
            except TableChanged:
                pass  # then it is planned anew, below
        draws = Draws(self._sequences, session, self._constants.value)
        for done in range(1, KEYED_TRIES_MAX + 1):
            entry = None
            draws.again()
            try:
                entry, planned = await self._rows(session, prepared, statement, params, draws)
                if planned.plan.conflict is not None:
                    return await self._without_conflicts(session, prepared, planned, entry, params, draws)
                result = await self._result(entry, planned.plan.returning, prepared, params)
                await self._write(session, [entry])
                return result
            except (Conflict, SnapshotTooOld) as error:
                again = isinstance(error, TableChanged) or (entry is not None and entry.read_ts is not None)
                keyed = entry is not None and entry.points and not (entry.reads or entry.ranges)
                if not again or done >= (KEYED_TRIES_MAX if keyed else INSERT_TRIES_MAX):
                    raise
        raise AssertionError("unreachable: the last try raises or returns")

    def _few(
        self, session: SessionState, prepared: Prepared, statement: Statement, params: Sequence[object | None]
    ) -> Rows | None:
        """The rows of a statement that only adds some values, and whose plan is at hand: most of what many small
        INSERTs cost is the way to them.  ``None`` of any other, and where something is wrong with a value, of which
        more must be known before it is said."""
        image = self._images.at_hand(session)
        planned = None if image is None else self._plans.at_hand(prepared, statement, image, session)
        if planned is None or planned.large or prepared.columns:
            return None
        plan = planned.plan
        if not (plan.only_adds and are_few(plan)):
            return None
        check_zone(prepared, names_of(session).zone, plan)
        try:
            return _as_values(planned, params)
        except InvalidUsage:
            return None

    async def _write(self, session: SessionState, entries: Sequence[Rows]) -> None:
        """Commit, or hold back what is committed later."""
        if session.defers_writes:
            check_buffer(session.buffer, entries)
            session.buffer.extend(entries)
        elif entries:
            await self._commits.commit(session, entries)

    async def _without_conflicts(
        self,
        session: SessionState,
        prepared: Prepared,
        planned: Planned[InsertPlan],
        entry: Rows,
        params: Sequence[object | None],
        draws: Draws,
    ) -> Result:
        """ON CONFLICT, made anew where a row that it met was written meanwhile.

        Who changes one row stands in line with others of this adapter who do (:mod:`adapter.execute.lines`).
        """
        plan = planned.plan
        own = own_keys(session.buffer.of(entry.table.id))
        keys = {key for _, of in entry.keys for key in of if key is not None}
        lines = [] if session.defers_writes or len(keys) > LINES_MAX else [f"{entry.table.id}/{k.hex()}" for k in keys]
        async with self._lines.first_of(lines):
            for done in range(CONFLICT_TRIES_MAX):
                if done:
                    await pause(done)
                try:
                    found = await self._conflicting.resolved(session, planned.image, plan, entry, own, params, draws)
                except InvalidUsage as error:
                    await self._still_so(session, planned, error)
                    raise
                result = await self._result(found, plan.returning, prepared, params)
                if session.transaction.in_block and any(each.removed is not None for each in found.entries):
                    session.transaction.changed, session.transaction.read_ts = True, found.as_of
                try:
                    await self._write(session, found.entries)
                    return result
                except TableChanged:
                    raise
                except (Conflict, SnapshotTooOld):
                    if done == CONFLICT_TRIES_MAX - 1 or entry.reads or entry.ranges:
                        raise
        raise AssertionError("unreachable: the last try raises or returns")

    async def _result(
        self, made: Rows | Resolved, returning: Returning | None, prepared: Prepared, params: Sequence[object | None]
    ) -> Result:
        """What the statement answers once its rows are written: those of RETURNING in the order of the rows."""
        tag = f"INSERT 0 {made.count}"
        if returning is None:
            return Result(tag)
        batches = await rows_returned(self._constants, returning, params, made.rows.columns)
        return Result(tag, prepared.columns, batches)

    async def _rows(
        self,
        session: SessionState,
        prepared: Prepared,
        statement: Statement,
        params: Sequence[object | None],
        draws: Draws,
    ) -> tuple[Rows, Planned[InsertPlan]]:
        """The rows that an INSERT would add, planned and (for a query) read; and by which plan."""
        planned = await self._images.certain(
            session, lambda image: self._plans.plan_as(prepared, statement, image, session)
        )
        check_zone(prepared, names_of(session).zone, planned.plan)
        state = None
        if planned.plan.query is not None and planned.plan.query.peeked:
            state, image = await self._images.in_force(session)
            planned = await self._plans.plan_as(prepared, statement, image, session)
        check_result(prepared.columns, returned(planned.plan) or ())
        rows = await self._of_plan(session, statement, planned, params, draws, state)
        if planned.plan.uniques:
            rows = replace(rows, uniques=planned.plan.uniques)
        if planned.plan.uniques and planned.plan.conflict is None:
            try:
                own = own_keys(session.buffer.of(rows.table.id))
                [rows] = await self._uniques.checked(session, planned.image, [rows], own)
            except InvalidUsage as error:
                await self._still_so(session, planned, error)
                raise
        return rows, planned

    async def _of_plan(
        self,
        session: SessionState,
        statement: Statement,
        planned: Planned[InsertPlan],
        params: Sequence[object | None],
        draws: Draws,
        state: OracleState | None,
    ) -> Rows:
        image, plan, on = planned.image, planned.plan, (planned.answers,)
        upper, query = plan.catalog_ts + 1, plan.query
        if query is None:
            return await self._of_values(session, statement, planned, params, draws)
        if query.kind == "constant" and query.reads is None:
            drawn = await self._constants.drawn(query, params, draws)
            async with self._plans.planner.sharing(planned.large):
                table = await self._constants.rows(query, params, drawn)
            return Rows(plan.table, await self._of_query(session, plan, table.to_batches(), draws), upper, on)
        if state is None and query.peeked:  # it became a query over relations only now, on a newer image
            state, _ = await self._images.barrier()
        as_of = state.last_ts if state is not None else None
        if query.reads is not None:
            batches, read_ts = await self._over_rows.rows(session, image, query, params, as_of, draws)
        else:
            answer = await self._reads.read(session, image, query, params, as_of)
            read_ts = session.transaction.read_ts or as_of
            batches = await collect(as_promised(answer, query.columns))
        rows = await self._of_query(session, plan, batches, draws)
        seen = seen_by(image, query.reads or query, params, session.transaction.image)
        return Rows(plan.table, rows, upper, on, read_ts, *seen)

    async def _of_values(
        self,
        session: SessionState,
        statement: Statement,
        planned: Planned[InsertPlan],
        params: Sequence[object | None],
        draws: Draws,
    ) -> Rows:
        plan, large, chars = planned.plan, planned.large, len(statement.text)
        try:
            few = None if large else _as_values(planned, params)
            if few is not None:
                return few
            evaluate = self._constants.working(names_of(session).zone)
            plan = await self._plans.of_size(large and bool(plan.to_plan), chars, plan.given, params)
            plan = await draws.rows(plan)
            if asks_engine(plan.table) and not large:  # which others need not wait for
                rows = await on_thread_if(True, rows_of_values, plan, params, evaluate)
            else:
                rows = await self._plans.of_size(large, chars, rows_of_values, plan, params, evaluate)
            return Rows(plan.table, rows, plan.catalog_ts + 1, (planned.answers,))
        except InvalidUsage as error:
            await self._still_so(session, planned, error)
            raise

    async def _of_query(
        self, session: SessionState, plan: InsertPlan, batches: Sequence[pa.RecordBatch], draws: Draws
    ) -> pa.Table:
        """The rows that are made of what the query gave."""
        drawn = await draws.defaults(plan, sum(batch.num_rows for batch in batches))
        evaluate = self._constants.working(names_of(session).zone)
        many = bool(drawn) or asks_engine(plan.table)
        return await on_thread_if(many, rows_of_query, plan, batches, evaluate, drawn)

    async def _still_so(self, session: SessionState, planned: Planned, error: InvalidUsage) -> None:
        """A value was refused for what the table is (NOT NULL, a range): that must hold on the catalog in force."""
        _, image = await self._images.in_force(session)
        if not same_answers(planned.answers, image):
            raise TableChanged("the table changed while the statement ran", hint="try again") from error


def _as_values(planned: Planned[InsertPlan], params: Sequence[object | None]) -> Rows | None:
    """The rows of VALUES as :func:`few_values` has them, where it does.  Raises 22003."""
    plan = planned.plan
    few = few_values(plan, params)
    return None if few is None else Rows(plan.table, few, plan.catalog_ts + 1, (planned.answers,))
