"""SELECT: planned on the image that its session's isolation asks for, and answered by whoever has the rows.

* strict serializable: a SELECT begins with a barrier, is planned on a catalog image at least as new as that barrier's,
  and reads at the barrier's newest data timestamp; so it sees everything acknowledged before it began, in any adapter;
* serializable: no barrier.  It reads the newest timestamp that is complete at the controller, on the local image; where
  that is older than its own last write it waits for that.

Constants need neither.  ``AS OF`` is read where it says, behind a barrier (:mod:`adapter.execute.history`).
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from adapter.execute.constants import Constants
from adapter.execute.draws import Draws
from adapter.execute.history import Histories
from adapter.execute.images import Images
from adapter.execute.over_rows import OverRows
from adapter.execute.plans import Plans, announced
from adapter.execute.reads import Reads
from adapter.execute.results import check_result, check_zone, promised_rows
from adapter.execute.sequences import Sequences
from adapter.execute.session_names import names_of
from adapter.execute.system_reads import SystemReads
from adapter.state.interfaces import Prepared, Result
from adapter.state.session_state import SessionState
from oracle.state import OracleState
from sql.statements.plan_cache import Planned, Statement

FOLDED_BYTES_MAX = 4096
"""A constant's answer is kept with its plan up to this size: well below what the plan itself takes."""


class Selects:
    """Queries of sessions.  Lives on one event loop."""

    def __init__(
        self,
        images: Images,
        plans: Plans,
        constants: Constants,
        sequences: Sequences,
        system: SystemReads,
        reads: Reads,
    ) -> None:
        self._images = images
        self._plans = plans
        self._constants = constants
        self._sequences = sequences
        self._system = system
        self._reads = reads
        self._over_rows = OverRows(reads, constants)
        self._histories = Histories(constants, reads)

    async def run(
        self, session: SessionState, prepared: Prepared, statement: Statement, params: Sequence[object | None]
    ) -> Result:
        if statement.parsed.as_of is not None:
            return await self._as_of(session, prepared, statement, params)
        zone = names_of(session).zone
        kept = self._plans.kept_constant(statement, session)
        if kept is not None:  # it needs neither barrier nor image
            check_zone(prepared, zone, kept.plan)
            return Result("SELECT", prepared.columns, await self._constant_batches(session, kept, params))
        state, planned = await self._planned(session, prepared, statement)
        image, plan, columns = planned.image, planned.plan, prepared.columns
        check_zone(prepared, zone, plan)
        if plan.kind == "catalog":
            return Result("SELECT", columns, await self._system.rows(session, prepared, planned, params))
        check_result(columns, announced(planned))
        as_of = state.last_ts if state is not None else None
        if plan.reads is not None:
            draws = Draws(self._sequences, session, self._constants.value)
            batches, _ = await self._over_rows.rows(session, image, plan, params, as_of, draws)
            return Result("SELECT", columns, batches)
        if plan.kind == "constant":
            return Result("SELECT", columns, await self._constant_batches(session, planned, params))
        answer = await self._reads.read(session, image, plan, params, as_of)
        return Result("SELECT", columns, promised_rows(answer, plan.columns))

    async def _as_of(
        self, session: SessionState, prepared: Prepared, statement: Statement, params: Sequence[object | None]
    ) -> Result:
        said = statement.parsed.as_of
        state, image = await self._images.not_before(session)
        planned = await self._plans.plan_as(prepared, statement, image, session)
        check_zone(prepared, names_of(session).zone, planned.plan)
        check_result(prepared.columns, announced(planned))
        if planned.plan.kind == "constant":
            await self._histories.check(session, state, image, said)
            return Result("SELECT", prepared.columns, await self._constant_batches(session, planned, params))
        answer = await self._histories.read(session, state, image, said, planned.plan, params)
        return Result("SELECT", prepared.columns, promised_rows(answer, planned.plan.columns))

    async def _planned(
        self, session: SessionState, prepared: Prepared, statement: Statement
    ) -> tuple[OracleState | None, Planned]:
        """The barrier that this session's isolation asks for, and the plan on the image that goes with it."""
        if session.strict and not self._reads_again(session, statement):
            state, image = await self._images.not_before(session)
            planned = self._plans.at_hand(prepared, statement, image, session)
            return state, planned or await self._plans.plan_as(prepared, statement, image, session)
        image = self._images.at_hand(session)
        planned = None if image is None else self._plans.at_hand(prepared, statement, image, session)
        if planned is None:
            planned = await self._images.certain(
                session, lambda image: self._plans.plan_as(prepared, statement, image, session)
            )
        self._images.saw(session, planned.image)
        return None, planned

    def _reads_again(self, session: SessionState, statement: Statement) -> bool:
        """Whether this reads data in a block that has its timestamp: a barrier would tell nothing that may be used."""
        if session.transaction.read_ts is None:
            return False
        kept = [self._plans.kept(each, session) for each in (statement, statement.of) if each is not None]
        return any(each is not None and each.plan.peeked for each in kept)

    async def _constant_batches(
        self, session: SessionState, planned: Planned, params: Sequence[object | None]
    ) -> list[pa.RecordBatch]:
        """The rows of a query that reads nothing: where they can only ever be the same, they are computed once."""
        if planned.answer is None:
            draws = Draws(self._sequences, session, self._constants.value)
            drawn = await self._constants.drawn(planned.plan, params, draws)
            async with self._plans.planner.sharing(planned.large):
                table = await self._constants.rows(planned.plan, params, drawn)
            if planned.plan.volatile or planned.plan.params or table.nbytes > FOLDED_BYTES_MAX:
                return table.to_batches()
            planned.answer = table.to_batches()
        return planned.answer
