"""Lookups in tables that do not wait for their index: what was committed since it got where it is comes over its rows.

An index follows the log in its own process, some milliseconds behind; whoever reads by key right behind a write (an
UPDATE behind another one, at its own or its barrier's timestamp) would wait for it each time.  But the rows of small
commits are in the oracle's log, which every adapter has folded up to the timestamp that it reads at.  So the index
answers as of where it is, and what was committed of this key since is laid over that
(:mod:`adapter.execute.recent_rows`, :mod:`adapter.execute.laid_over`).

Mostly nothing was, and the index's answer is the answer.  Else its rows are asked for as wholes, and what the statement
makes of them is made here.  Where commits are too large to be in the log, or too many, the index is waited for.
"""

from __future__ import annotations

from collections.abc import Callable

from adapter.execute.here import Here
from adapter.execute.laid_over import ROWS_MAX, Keyed, answered, laid_over
from adapter.execute.peeks import PeekAnswer, Peeks
from adapter.execute.recent_rows import RecentRows
from catalog_log.log import CatalogLog
from catalog_log.objects import Index, Table
from controllers.peeks.peek import Considered, Peek
from journal.errors import TidemarkError
from journal.timestamps import DataTs
from oracle.client import Oracle


class FreshLookups:
    """:class:`adapter.execute.peeks.Peeks` whose lookups in tables are as of what they ask for.  Lives on one event
    loop."""

    def __init__(self, peeks: Peeks, catalog: CatalogLog, oracle: Oracle) -> None:
        self._peeks = peeks
        self._catalog = catalog
        self._oracle = oracle
        self._recent = RecentRows()

    async def peek(
        self, peek: Peek, cluster_id: str, deadline_s: float, waits: Callable[[str], None] = lambda _: None
    ) -> PeekAnswer:
        return await self._peeks.peek(peek, cluster_id, deadline_s, waits)

    async def considered(self, peek: Peek, cluster_id: str) -> dict[str, Considered | None]:
        return await self._peeks.considered(peek, cluster_id)

    def close(self) -> None:
        self._peeks.close()

    async def lookup(self, peek: Peek, cluster_id: str) -> PeekAnswer | None:
        table = self._catalog.image.item(peek.lookup.relation_id)
        if not isinstance(table, Table) or table.dropped:
            return await self._peeks.lookup(peek, cluster_id)
        try:
            answer = await self._peeks.lookup(peek._replace(behind=True), cluster_id)
            if answer is None:
                return None
            through = self._oracle.state.last_ts if peek.as_of is None else peek.as_of
            return answer if answer.as_of >= through else await self._over(answer, peek, table, through, cluster_id)
        except TidemarkError:
            return None  # it may be that of a row which is another one by now: asked by itself, it says so again

    async def _over(
        self, answer: PeekAnswer, peek: Peek, table: Table, through: DataTs, cluster_id: str
    ) -> PeekAnswer | None:
        """``answer``, which is of an earlier time, as of ``through``."""
        state = self._oracle.state
        if through <= state.last_ts and (state.last_change(table.id) or 0) <= answer.as_of:
            return AsOf(answer, through)
        index = self._catalog.image.item(peek.lookup.index_id)
        if not isinstance(index, Index):
            return None
        keyed = Keyed(table, index, peek.lookup.key)
        changes = self._recent.changes(state, keyed, DataTs(answer.as_of), through)
        if changes is None:
            return None
        if not changes:
            return AsOf(answer, through)
        whole = peek._replace(lookup=peek.lookup._replace(residual=keyed.whole), behind=True)
        answer = await self._peeks.lookup(whole, cluster_id)
        if answer is None:
            return None
        rows = [row async for batch in answer.batches() for row in keyed.rows_of(batch)]
        as_of = DataTs(answer.as_of)
        if len(rows) > ROWS_MAX:
            return None
        if as_of >= through:
            changes, through = [], as_of
        else:
            changes = self._recent.changes(state, keyed, as_of, through)
            if changes is None:
                return None
        return Here(answered(peek.lookup.residual, keyed, laid_over(rows, changes)), through)


class AsOf:
    """``answer``, which is as of another time too."""

    def __init__(self, answer: PeekAnswer, as_of: DataTs) -> None:
        self.as_of, self.batches = as_of, answer.batches
