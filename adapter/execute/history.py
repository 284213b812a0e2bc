"""SELECT … AS OF: a read of what there was at one timestamp, whatever its session reads otherwise.

Such a read takes no part in a transaction block: what was committed then is the same for everybody for ever (I5), so it
neither decides where the block reads, nor sees what that has written and not committed, nor can conflict with anybody.
"""

from __future__ import annotations

from collections.abc import Sequence

from adapter.execute.constants import Constants
from adapter.execute.peeks import PeekAnswer
from adapter.execute.reads import Reads
from adapter.execute.session_names import names_of
from adapter.state.session_state import SessionState
from catalog_log.image import Image
from journal.errors import Conflict, InvalidUsage
from journal.timestamps import DataTs
from oracle.state import OracleState
from sql.statements.as_of import plan_as_of, timestamp_of
from sql.statements.plans import SelectPlan
from sql.syntax.query import AsOf

AHEAD_MS_MAX = 10_000
"""How far ahead of what is complete a read waits: a second is how often time goes on without writes, and clocks of
machines that NTP keeps are not ten apart.  Beyond it somebody has mistyped a year, and would wait for his timeout."""

KEPT = "ALTER TABLE … SET (RETAIN HISTORY = FOR '…') keeps more from then on"


class Histories:
    """Reads of the past, for the sessions of one adapter."""

    def __init__(self, constants: Constants, reads: Reads) -> None:
        self._constants = constants
        self._reads = reads

    async def read(
        self,
        session: SessionState,
        state: OracleState,
        image: Image,
        said: AsOf,
        plan: SelectPlan,
        params: Sequence[object | None],
    ) -> PeekAnswer:
        """The answer exactly at the timestamp that is ``said``; ``state`` is of a barrier.

        Raises what :mod:`sql.statements.as_of` does, and 22023 for a timestamp that is to come, that is no longer
        kept, or at which a materialized view that is read was between two of its ticks.
        """
        ts = await self._when(session, state, image, said)
        try:
            return await self._reads.read_at(session, image, plan, params, ts)
        except Conflict as error:
            raise InvalidUsage(
                f"cannot read as of {ts}", sqlstate="22023", detail=error.detail,
                hint="read the tables that the view reads, by the view's query",
            ) from error  # fmt: skip
        except InvalidUsage as error:
            if error.message != TOO_OLD:
                raise
            raise InvalidUsage(error.message, sqlstate=error.sqlstate, detail=error.detail, hint=KEPT) from error

    async def check(self, session: SessionState, state: OracleState, image: Image, said: AsOf) -> None:
        """Raise what is wrong with it for a query that reads nothing."""
        await self._when(session, state, image, said)

    async def _when(self, session: SessionState, state: OracleState, image: Image, said: AsOf) -> DataTs:
        plan = plan_as_of(said, image, names_of(session))
        table = await self._constants.rows(plan, ())
        ts = timestamp_of(table.column(0))
        if ts > state.last_ts + AHEAD_MS_MAX:
            raise InvalidUsage(
                f"cannot read as of {ts}, which is in the future", sqlstate="22023",
                detail=f"everything is complete up to {state.last_ts}; at most {AHEAD_MS_MAX} ms are waited for",
            )  # fmt: skip
        return ts


TOO_OLD = "snapshot too old"
