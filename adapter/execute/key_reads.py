"""Reads by key that an index does not answer by itself: it finds the rows, and what is made of them is made here.

There are three.  In a transaction block that has written to the table, its own rows come over those of the index
(:mod:`adapter.execute.laid_over`): sent to the cluster with the read instead, they would have the whole table read for
each statement.  And a statement may make of the one row that it reads what no index evaluates (CASE, functions of
text): an engine makes it here of that row, instead of there of the whole table.  And a list of keys (``k IN (…)``) is
asked for key by key, where an index would look at all of its rows.

Where it does not fit (a key of many rows, rows of the block's that are not here, values that the engine here refuses)
the answer is ``None``, and the cluster reads as it does without a key.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from adapter.execute.beside import on_thread_if
from adapter.execute.constants import Constants
from adapter.execute.here import Here
from adapter.execute.laid_over import ROWS_MAX, Keyed, OwnRows, Row, answered, laid_over
from adapter.execute.peeks import PeekAnswer, Peeks, misses
from adapter.execute.results import as_promised
from adapter.execute.rows import Rows
from adapter.execute.session_names import names_of
from adapter.state.session_state import SessionState
from catalog_log import model
from catalog_log.image import Image
from catalog_log.objects import Index, Table
from collection.columns import sql_type
from controllers.peeks.peek import Lookup, Peek
from journal.errors import InvalidUsage, TidemarkError
from journal.timestamps import DataTs
from lower.lookup.asked import Lookup as Asked
from lower.lookup.asked import key_value
from lower.lookup.lists import Key, listed
from sql.objects.identifiers import quoted
from sql.objects.names import ImageLike, name_parts
from sql.objects.uniques import indexes_of
from sql.statements.plans import SelectPlan
from sql.statements.select import plan_select
from sql.syntax.parse import parse

CANCELED = "57014"

Otherwise = Callable[..., Awaitable[PeekAnswer]]
"""Reads by a plan as any other is read: :meth:`adapter.execute.reads.Reads.of_cluster`."""


class KeyReads:
    """Those of sessions.  Lives on one event loop."""

    def __init__(self, peeks: Peeks, constants: Constants, otherwise: Otherwise) -> None:
        self._peeks = peeks
        self._constants = constants
        self._otherwise = otherwise

    async def answer(
        self,
        session: SessionState,
        image: Image,
        plan: SelectPlan,
        params: Sequence[object | None],
        as_of: DataTs | None,
        only_at: bool,
        cluster_id: str,
        written: Sequence[Rows],
    ) -> Here | None:
        """The answer to ``plan`` where it is read by key, with what the session's block has ``written`` of what it
        reads.  Raises what reading the index raises, and what the plan's expressions do."""
        keyed = _keyed(image, plan, params, cluster_id, written)
        if keyed is None:
            return await self._of_list(session, image, plan, params, as_of, only_at, cluster_id, written)
        found = await self._found(session, image, plan, keyed, as_of, only_at, cluster_id)
        if found is None:
            return None
        rows, read_ts = found
        own = await on_thread_if(OwnRows.of(written).heavy, keyed.changes, written)
        laid = laid_over(rows, own)
        if plan.by_key is not None and plan.by_key.residual:
            return Here(answered(plan.asked(params)[1], keyed, laid), read_ts)
        try:
            tables = {keyed.table.id: keyed.as_table(laid)}
            return Here(await self._constants.decided_over(plan, params, tables), read_ts)
        except TidemarkError as error:
            if error.sqlstate == CANCELED:
                raise
            return None  # the cluster decides what is an error

    async def _of_list(
        self,
        session: SessionState,
        image: Image,
        plan: SelectPlan,
        params: Sequence[object | None],
        as_of: DataTs | None,
        only_at: bool,
        cluster_id: str,
        written: Sequence[Rows],
    ) -> Here | None:
        """The answer to ``plan`` where it lists the keys of its rows, all as of one timestamp."""
        keys = _listed(image, plan, params, cluster_id, written)
        if not keys:
            return None
        first = await self._at_once(plan, keys[0], as_of, only_at)
        if first is None or misses(first, session.written_ts):
            return None
        read_ts = DataTs(first.as_of)
        rest = await asyncio.gather(*(self._at_once(plan, each, read_ts, True) for each in keys[1:]))
        rows: list[Row] = []
        for keyed, answer in zip(keys, (first, *rest), strict=True):
            if answer is None:
                return None
            async for batch in answer.batches():
                rows += keyed.rows_of(batch)
        if len(rows) > ROWS_MAX:
            return None
        heavy = OwnRows.of(written).heavy
        own = await on_thread_if(heavy, lambda: [change for keyed in keys for change in keyed.changes(written)])
        return Here(answered(plan.asked(params)[1], keys[0], laid_over(rows, own)), read_ts)

    async def _at_once(
        self, plan: SelectPlan, keyed: Keyed, as_of: DataTs | None, only_at: bool
    ) -> PeekAnswer | None:
        """The committed rows of a key, if its index has them."""
        lookup = Lookup(keyed.index.id, keyed.table.id, keyed.values, keyed.whole)
        peek = Peek("", "", (keyed.table.id,), plan.catalog_ts, as_of, lookup, only_at=only_at)
        return await self._peeks.lookup(peek, keyed.index.cluster_id)

    async def _found(
        self,
        session: SessionState,
        image: Image,
        plan: SelectPlan,
        keyed: Keyed,
        as_of: DataTs | None,
        only_at: bool,
        cluster_id: str,
    ) -> tuple[list[Row], int | None] | None:
        """The committed rows, and where they were read; ``None`` where they are too many."""
        answer = await self._at_once(plan, keyed, as_of, only_at)
        if answer is None or misses(answer, session.written_ts):
            answer = await self._by_reading(session, image, keyed, as_of, only_at, cluster_id)
            if answer is None:
                return None
        rows: list[Row] = []
        async for batch in answer.batches():
            rows += keyed.rows_of(batch)
        return None if len(rows) > ROWS_MAX else (rows, answer.as_of)

    async def _by_reading(
        self, session: SessionState, image: Image, keyed: Keyed, as_of: DataTs | None, only_at: bool, cluster_id: str
    ) -> PeekAnswer | None:
        """The same rows where the index does not have them at once, and is waited for."""
        table = keyed.table
        names = replace(names_of(session), cluster=image.get(model.CLUSTERS, cluster_id).name)
        by = {column.stored_as: column for column in table.columns}
        key = [by[name] for name in keyed.index.key[: len(keyed.values)]]
        said = ", ".join(quoted(by[column.name].name) for column in table.stored)
        tests = " and ".join(f"{quoted(column.name)} = ${number}" for number, column in enumerate(key, 1))
        text = f"select {said} from {'.'.join(map(quoted, name_parts(image, table)))} where {tests}"
        try:
            declared = {number: sql_type(column.type) for number, column in enumerate(key, 1)}
            plan = plan_select(parse(f"{text} limit {ROWS_MAX + 1}").ast, image, names, declared)
            answer = await self._otherwise(session, plan, keyed.values, as_of, only_at, cluster_id)
        except InvalidUsage as error:
            if error.sqlstate[:2] == "22":  # a value that its column never has
                return None
            raise
        return _As(answer, plan)


class _As:
    """An answer in the types that its plan promises."""

    def __init__(self, answer: PeekAnswer, plan: SelectPlan) -> None:
        self.as_of, self._answer, self._plan = answer.as_of, answer, plan

    def batches(self):
        return as_promised(self._answer, self._plan.columns)


def _keyed(
    image: Image, plan: SelectPlan, params: Sequence[object | None], cluster_id: str, written: Sequence[Rows]
) -> Keyed | None:
    """The rows that ``plan`` sees, where it is read by key here."""
    by_key = plan.by_key
    if by_key is None or (plan.lookup is not None and not written):
        return None  # an index answers it by itself, or none does
    table, index = image.item(by_key.relation_id), image.item(by_key.index_id)
    if not isinstance(table, Table) or table.dropped or not isinstance(index, Index) or index.cluster_id != cluster_id:
        return None
    values, _ = plan.values(params)
    keyed = Keyed(table, index, by_key.values(values))
    return keyed if keyed.takes(written) else None


def may_be_by_keys(plan: SelectPlan, written: Sequence[Rows]) -> bool:
    """Whether :meth:`KeyReads.answer` may have an answer to ``plan``, by a look at it alone: most that an index answers
    are none of its."""
    if plan.lookup is None:
        return plan.by_key is not None
    return bool(plan.lookup.residual.get("filter")) or (plan.by_key is not None and bool(written))


def listed_keys(
    image: ImageLike, lookup: Asked, cluster_id: str, params: Sequence[object | None] | None
) -> tuple[Table, Index, list[Key]] | None:
    """The keys that ``lookup`` lists with ``params`` in an index of that cluster, as of :mod:`lower.lookup.lists`."""
    table = image.item(lookup.relation_id)
    found = None if table is None else listed(lookup, table, indexes_of(table.id, cluster_id, image), params)
    return None if found is None else (table, *found)


def _listed(
    image: Image, plan: SelectPlan, params: Sequence[object | None], cluster_id: str, written: Sequence[Rows]
) -> list[Keyed] | None:
    """The keys, each once, whose rows ``plan`` sees, where it lists them."""
    values, _ = plan.values(params)
    found = None if plan.lookup is None else listed_keys(image, plan.lookup, cluster_id, values)
    if found is None:
        return None
    table, index, keys = found
    known = [Keyed(table, index, tuple([key_value(part, values) for part in key])) for key in keys]
    distinct = list({each.key: each for each in known if None not in each.key}.values())
    return distinct if distinct and distinct[0].takes(written) else None
