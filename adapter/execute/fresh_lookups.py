"""Lookups in tables that do not wait for their index: what was committed since it got where it is comes over its rows.

An index follows the log in its own process, some milliseconds behind; whoever reads by key right behind a write (an
UPDATE behind another one, at its own or its barrier's timestamp) would wait for it each time.  But the rows of small
commits are in the oracle's log, which every adapter has folded up to the timestamp that it reads at.  So the index
answers as of where it is, and what was committed of this key since is laid over that
(:mod:`adapter.execute.recent_rows`, :mod:`adapter.execute.laid_over`).

Mostly nothing was, and the index's answer is the answer.  Else its rows are asked for as wholes (at once, where they
are known to have changed since the index answered last), and what the statement makes of them is made here.  Where
commits are too large to be in the log, or too many, the index is waited for.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from adapter.execute.here import Here
from adapter.execute.laid_over import ROWS_MAX, Keyed, Row, answered, laid_over
from adapter.execute.peeks import PeekAnswer, Peeks
from adapter.execute.recent_rows import INDEXES_MAX, RecentRows
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
        self._where: dict[str, DataTs] = {}
        """Where indexes were when they answered last.  Of a key that was changed since, rows are asked for at once."""

    async def peek(
        self, peek: Peek, cluster_id: str, deadline_s: float, waits: Callable[[str], None] = lambda _: None
    ) -> PeekAnswer:
        return await self._peeks.peek(peek, cluster_id, deadline_s, waits)

    async def considered(self, peek: Peek, cluster_id: str) -> dict[str, Considered | None]:
        return await self._peeks.considered(peek, cluster_id)

    def close(self) -> None:
        self._peeks.close()

    def lookup(self, peek: Peek, cluster_id: str) -> Awaitable[PeekAnswer | None]:
        keyed = self._keyed(peek)
        if keyed is None:
            return self._peeks.lookup(peek, cluster_id)
        return self._in_table(peek, keyed, cluster_id)

    async def _in_table(self, peek: Peek, keyed: Keyed, cluster_id: str) -> PeekAnswer | None:
        try:
            return await self._fresh(peek._replace(behind=True), keyed, cluster_id)
        except TidemarkError:
            return None  # it may be that of a row which is another one by now: asked by itself, it says so again

    def _keyed(self, peek: Peek) -> Keyed | None:
        """What is looked up, where that is in a table that has all the columns it ever had."""
        image, lookup = self._catalog.image, peek.lookup
        table = image.item(lookup.relation_id)
        if not isinstance(table, Table) or table.dropped:
            return None
        index = image.item(lookup.index_id)
        if not isinstance(index, Index):
            return None
        return Keyed(table, index, lookup.key)

    async def _fresh(self, peek: Peek, keyed: Keyed, cluster_id: str) -> PeekAnswer | None:
        before = self._where.get(keyed.index.id)
        if before is None or not self._changes(keyed, before, self._through(peek)):
            answer = await self._peeks.lookup(peek, cluster_id)
            if answer is None:
                return None
            self._note(keyed.index.id, DataTs(answer.as_of))
            through = self._through(peek)
            if answer.as_of >= through:
                return answer
            changes = self._changes(keyed, DataTs(answer.as_of), through)
            if changes is None:
                return None
            if not changes:
                return AsOf(answer, through)
        return await self._laid(peek, keyed, cluster_id)

    async def _laid(self, peek: Peek, keyed: Keyed, cluster_id: str) -> PeekAnswer | None:
        """The answer made here, of the rows of the key as wholes."""
        whole = peek._replace(lookup=peek.lookup._replace(residual=keyed.whole))
        answer = await self._peeks.lookup(whole, cluster_id)
        if answer is None:
            return None
        rows = [row async for batch in answer.batches() for row in keyed.rows_of(batch)]
        if len(rows) > ROWS_MAX:
            return None
        as_of, through = DataTs(answer.as_of), self._through(peek)
        self._note(keyed.index.id, as_of)
        changes = self._changes(keyed, as_of, through)
        if changes is None:
            return None
        return Here(answered(peek.lookup.residual, keyed, laid_over(rows, changes)), max(as_of, through))

    def _through(self, peek: Peek) -> DataTs:
        """What is answered as of, at least."""
        return self._oracle.state.last_ts if peek.as_of is None else peek.as_of

    def _changes(self, keyed: Keyed, after: DataTs, through: DataTs) -> Sequence[tuple[Row, int]] | None:
        """What was committed of the key in between; ``None`` where that is not known here."""
        state = self._oracle.state
        if after >= through or (through <= state.last_ts and (state.last_change(keyed.table.id) or 0) <= after):
            return ()
        return self._recent.changes(state, keyed, after, through)

    def _note(self, index_id: str, where: DataTs) -> None:
        if len(self._where) >= INDEXES_MAX:
            self._where.clear()
        self._where[index_id] = max(where, self._where.get(index_id, where))


class AsOf:
    """``answer``, which is as of another time too."""

    def __init__(self, answer: PeekAnswer, as_of: DataTs) -> None:
        self.as_of, self.batches = as_of, answer.batches
