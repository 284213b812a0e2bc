"""A query that draws values of sequences over rows: it is read first, then run for each of the rows that it read."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pyarrow as pa

from adapter.execute.constants import Constants
from adapter.execute.draws import Draws
from adapter.execute.reads import Reads
from adapter.execute.results import as_promised, collect
from adapter.state.session_state import SessionState
from catalog_log.image import Image
from journal.timestamps import DataTs
from sql.statements.plans import SelectPlan


class OverRows:
    """What reads, and what works out the rest; see :mod:`sql.statements.sequence_rows`."""

    def __init__(self, reads: Reads, constants: Constants) -> None:
        self._reads = reads
        self._constants = constants

    async def rows(
        self,
        session: SessionState,
        image: Image,
        plan: SelectPlan,
        params: Sequence[object | None],
        as_of: DataTs | None,
        draws: Draws,
    ) -> tuple[list[pa.RecordBatch], DataTs | None]:
        """What ``plan`` gives, and where it has read its rows: all of them, before it draws."""
        reads, read_ts = plan.reads, None
        assert reads is not None
        if reads.kind in ("peek", "given"):
            answer = await self._reads.read(session, image, reads, params, as_of)
            read_ts = session.transaction.read_ts or as_of
            told = "values of sequences beside rows", "draw them in several statements"
            batches = await collect(as_promised(answer, reads.columns), *told)
        else:
            batches = (await self._constants.rows(reads, params)).to_batches()
        rows = [row for batch in batches for row in zip(*(each.to_pylist() for each in batch.columns), strict=True)]
        queries = await asyncio.to_thread(lambda: list(plan.each(params, rows)))
        return await self._constants.for_rows(plan, await draws.for_rows(queries)), read_ts
