"""INSERT: one commit record makes rows visible, which it carries itself or which were written before (DESIGN §1, §5).

No barrier comes first: the commit carries the catalog upper that the statement was planned on, and the fold refuses it
where the catalog has moved on.  Then the *same* rows are committed again if planning would hear the same of it
(nobody has seen them); else the statement is planned again, or its block refused.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from types import MappingProxyType
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from adapter.execute.placing import FormatRaiser, Placed, carried
from adapter.execute.write_groups import WriteGroups
from catalog_log.image import Image
from catalog_log.log import CatalogLog
from catalog_log.objects import Column, Item, Table, view_inputs
from collection.binding import Run
from collection.columns import sql_type
from journal.aio import Bridge, to_its_end
from journal.errors import Conflict, InvalidUsage, Rejected, TidemarkError
from journal.timestamps import DataTs
from oracle.client import Oracle
from oracle.errors import StaleCatalog, TooMuchHeld
from oracle.model import CommitPart, KeyRange
from sql.objects.names import full_name
from sql.objects.watched import Answers, same_answers
from sql.statements.insert import fit_length, stored
from sql.statements.plans import InsertPlan, Slot
from sql.trees.errors import no_relation, not_null
from values.bad_text import BadText
from values.keeping import kept
from values.types import SqlType, arrow_type

CATALOG_WAIT_S = 15.0
"""How long a catalog upper that the oracle knows may take to arrive here."""

RECOMMITS_MAX = 50
"""Commits of one statement that may find a newer catalog: DDL would have to be faster than a commit, 50 times over."""

BUFFER_BYTES_MAX = 64 << 20
"""Rows that one transaction may hold back until COMMIT; what does not fit is refused with 54000."""


ON_LOOP_BYTES_MAX = 64 << 10
ON_LOOP_ROWS_MAX = 2_000
"""Rows above this are encoded on a thread: these take some 5 ms, and the event loop serves everybody."""


class Writer(Protocol):
    """``collection.writer.CollectionWriter``."""

    def write(self, collection_id: str, columns, rows, attempt: str) -> Future[list[Run]]: ...


@dataclass(frozen=True)
class Rows:
    """Rows for one table, planned on a catalog upper.  ``read_ts`` and ``reads`` are of the query they came from.

    ``planned_on`` is what the catalog said while they were planned, of each statement that they are of.
    """

    table: Item
    rows: pa.Table
    catalog_upper: int
    planned_on: tuple[Answers, ...] = ()
    read_ts: DataTs | None = None
    reads: tuple[str, ...] = ()

    @cached_property
    def size(self) -> int:
        """Bytes, asked for at every bound that the rows pass: Arrow counts them anew each time."""
        return self.rows.nbytes

    @property
    def heavy(self) -> bool:
        """Whether it is to be encoded on a thread."""
        return self.size > ON_LOOP_BYTES_MAX or self.rows.num_rows > ON_LOOP_ROWS_MAX


Evaluate = Callable[[Sequence[Slot]], list[object]]
"""The values of slots that are trees, in their order."""


def rows_of_values(plan: InsertPlan, params: Sequence[object | None], evaluate: Evaluate) -> pa.Table:
    """The rows of INSERT … VALUES.  ``evaluate`` computes what is neither a literal nor a parameter.

    Raises 23502, 22003.  A default that is an expression (``now()``) is evaluated once a statement.
    """
    trees = {id(slot): slot for row in plan.rows for slot in row if slot.tree is not None}
    computed = dict(zip(trees, evaluate(list(trees.values())), strict=True)) if trees else {}
    columns = []
    for index, kind in enumerate(plan.types):
        column: list[object] = []
        for row in plan.rows:
            value, param, tree, through = row[index]
            if param is not None:
                value = params[param - 1]
                value = stored(value if through is None else stored(value, through), kind)
            elif tree is not None:
                value = stored(computed[id(row[index])], kind)
            column.append(value)
        columns.append(pa.array(column, arrow_type(kind)))
    return checked(plan.table, columns)


def rows_of_query(
    plan: InsertPlan,
    batches: Sequence[pa.RecordBatch],
    evaluate: Evaluate,
    drawn: Mapping[int, Sequence[Slot]] = MappingProxyType({}),
) -> pa.Table:
    """The rows of INSERT … SELECT from what the query gave.  Raises 23502.

    ``drawn`` are defaults that are another value in every row.
    """
    height = sum(batch.num_rows for batch in batches)
    arrays: list[pa.Array | pa.ChunkedArray | None] = [None] * len(plan.types)
    for position, index in enumerate(plan.query_columns):
        if index is None:
            continue
        kind = arrow_type(plan.types[index])
        given = pa.chunked_array([batch.column(position).cast(kind) for batch in batches], kind)
        arrays[index] = _of_length(given, plan.types[index])
    for index, slot in plan.defaults.items():
        if index in drawn:
            arrays[index] = pa.array(_values(drawn[index], plan.types[index], evaluate), arrow_type(plan.types[index]))
            continue
        value = slot.value if slot.tree is None else stored(evaluate([slot])[0], plan.types[index])
        arrays[index] = pa.array([value] * height, arrow_type(plan.types[index]))
    return checked(plan.table, arrays)


def _values(slots: Sequence[Slot], kind: SqlType, evaluate: Evaluate) -> list[object]:
    trees = [slot for slot in slots if slot.tree is not None]
    computed = iter(evaluate(trees) if trees else ())
    return [slot.value if slot.tree is None else stored(next(computed), kind) for slot in slots]


def _of_length(values: pa.ChunkedArray, wanted: SqlType) -> pa.ChunkedArray:
    """Text as a varchar(n) or char(n) keeps it.  Raises 22001."""
    if wanted.name not in ("varchar", "bpchar"):
        return values
    if wanted.precision is not None and (pc.max(pc.utf8_length(values)).as_py() or 0) > wanted.precision:
        kept = [None if text is None else fit_length(text, wanted) for text in values.to_pylist()]
        values = pa.chunked_array([pa.array(kept, values.type)])
    return pc.utf8_rtrim(values, " ") if wanted.name == "bpchar" else values


def checked(table: Item, arrays: Sequence[pa.Array | pa.ChunkedArray | None]) -> pa.Table:
    """The rows as a table of the relation's columns.  23502 where NOT NULL is violated, with the row as detail."""
    kept_as = [_limited(values, column) for column, values in zip(table.columns, arrays, strict=True)]
    made = pa.table(kept_as, names=[column.name for column in table.columns])
    for column, values in zip(table.columns, made.columns, strict=True):
        if not column.nullable and values.null_count:
            at = values.is_null().to_pylist().index(True)
            row = ", ".join("null" if c[at].as_py() is None else str(c[at].as_py()) for c in made.columns)
            raise not_null(column.name, table.name, f"({row})")
    return made


def _limited(values: pa.Array | pa.ChunkedArray | None, column: Column) -> pa.Array | pa.ChunkedArray | None:
    """Values with the digits and fields that the column has.  Raises 22003, 22008."""
    kind = sql_type(column.type)
    if values is None or kind == kind.plain:
        return values
    try:
        return kept(values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values]), kind)
    except BadText as error:
        raise InvalidUsage(error.message, sqlstate=error.sqlstate) from None


def merged(entries: Sequence[Rows]) -> Rows:
    """Entries of one table as one, planned on the oldest of their catalogs."""
    if len(entries) == 1:
        return entries[0]
    rows = pa.concat_tables([each.rows for each in entries]).combine_chunks()
    planned_on = tuple(answers for each in entries for answers in each.planned_on)
    return Rows(entries[0].table, rows, min(each.catalog_upper for each in entries), planned_on)


class TableChanged(Conflict):
    """The catalog says something else than what rows were planned on (their table's name or columns, a default): they
    are in no table, and may be made again."""


class Inserter:
    """Writes rows and commits them.  Lives on one event loop."""

    def __init__(self, catalog: CatalogLog, oracle: Oracle, writer: Writer, bridge: Bridge) -> None:
        self._catalog = catalog
        self._oracle = oracle
        self._writer = writer
        self._bridge = bridge
        self._format = FormatRaiser(oracle)
        self._groups: WriteGroups[Rows, list[Placed]] = WriteGroups(
            merged, lambda rows: self._place([rows]), lambda rows, placed: self._bind([rows], placed)
        )

    async def commit(
        self,
        entries: Sequence[Rows],
        block_read_ts: DataTs | None = None,
        block_reads: Iterable[str] = (),
    ) -> DataTs | None:
        """Make ``entries`` visible at one timestamp (the answer; ``None`` where there are no rows).

        ``block_reads`` are the tables that their transaction block read at ``block_read_ts`` and hangs on.  A single
        entry that hangs on nothing is committed together with others of its kind.

        Cancelled while a commit is under way it answers what became of that; else nothing happened.

        Raises 42P01 where a table was dropped meanwhile, ``TableChanged`` where other rows, or those of another table,
        would come of the statements by now, 40001 for a conflict of what was read, ``Rejected`` or
        ``Unavailable`` (it did not happen), ``Indeterminate``.
        """
        reads = {*block_reads, *(name for each in entries for name in each.reads)}
        read_at = [ts for ts in (block_read_ts, *(each.read_ts for each in entries)) if ts is not None]
        if len(entries) == 1 and not reads and not read_at and self._groups.takes(entries[0]):
            return await to_its_end(self._groups.commit(entries[0]))
        return await self._bind(entries, await self._place(entries), min(read_at, default=None), reads)

    async def _bind(
        self,
        entries: Sequence[Rows],
        placed: Sequence[Placed],
        read_ts: DataTs | None = None,
        read: Iterable[str] = (),
    ) -> DataTs | None:
        """Commit what has its place; see :meth:`commit`."""
        upper = min((each.catalog_upper for each in entries), default=0)
        reads = tuple(map(KeyRange, sorted(read)))
        for _ in range(RECOMMITS_MAX):
            bindings = tuple(chain(*(where.bindings(of.table) for of, where in zip(entries, placed, strict=True))))
            part = CommitPart(
                uuid.uuid4().hex,
                bindings,
                catalog_upper_seen=upper,
                read_ts=read_ts,
                reads=reads,
                inline=tuple(chain(*(where.inline for where in placed))),
            )
            try:
                return await to_its_end(self._oracle.commit_async(part, partial(self._upper_now, entries, upper)))
            except TooMuchHeld:
                placed = await self._write(entries)
            except StaleCatalog as stale:
                image = await self._bridge.wait(self._catalog.when_upper(stale.catalog_upper, CATALOG_WAIT_S))
                for each in entries:
                    check_unchanged(each, image, self.label)
                upper = image.upper
        raise Conflict("the catalog changes faster than rows can be committed", hint="try again")

    def _upper_now(self, entries: Sequence[Rows], upper: int) -> int:
        """The newest catalog upper known here on which ``entries`` would be planned as they were on ``upper``."""
        image = self._catalog.image
        return image.upper if image.upper > upper and all(unchanged(each, image) for each in entries) else upper

    def label(self, table: Item) -> str:
        """What a message calls ``table``."""
        return full_name(self._catalog.image, table)

    async def _place(self, entries: Sequence[Rows]) -> list[Placed]:
        """Small rows into the record that will commit them, others to their topics."""
        self._format.look(self._catalog.image)
        return carried(entries, self._oracle.state, uuid.uuid4().hex) or await self._write(entries)

    async def _write(self, entries: Sequence[Rows]) -> list[Placed]:
        """All of them to their topics."""
        attempt = uuid.uuid4().hex
        asked = []
        for n, each in enumerate(entries):
            write = partial(self._writer.write, each.table.id, each.table.columns, each.rows, f"{attempt}-{n}")
            asked.append(await asyncio.to_thread(write) if each.heavy else write())
        runs, failed = [], None
        for future in asked:
            try:
                runs.append(Placed(await self._bridge.wait(future)))
            except TidemarkError as error:
                failed = failed or error
        if failed is not None:
            raise failed
        return runs


def check_unchanged(entry: Rows, image: Image, names: Callable[[Item], str]) -> None:
    """42P01 where the table of ``entry`` is gone from ``image``, ``TableChanged`` where its statements might mean
    something else there.

    By its statement's words: an adapter may have lagged behind, and whoever writes into a table by a name that it had
    before somebody was told that it has another one, or with its default of then, would write into the past.
    """
    table = entry.table
    if image.item(table.id) is None:
        raise no_relation(names(table))
    if not unchanged(entry, image):
        raise TableChanged(f'table "{table.name}" was changed while rows were inserted', hint="try again")


def unchanged(entry: Rows, image: Image) -> bool:
    """Whether the statements of ``entry`` would be planned as they were, on ``image``."""
    return image.item(entry.table.id) is not None and all(same_answers(each, image) for each in entry.planned_on)


def check_buffer(entries: Sequence[Rows]) -> None:
    """54000 where a transaction holds back more than it may."""
    size = sum(each.size for each in entries)
    if size > BUFFER_BYTES_MAX:
        raise Rejected(
            f"the transaction's inserts of {size} bytes are too large",
            sqlstate="54000",
            detail=f"at most {BUFFER_BYTES_MAX} bytes are kept until COMMIT",
            hint="commit more often, or insert outside of a transaction block",
        )


def tables_below(image: Image, inputs: Sequence[str]) -> tuple[str, ...]:
    """The tables that a query reads, also through materialized views: what first-committer-wins looks at.

    Sources are left out: they grow all the time, and nobody's transaction writes them.
    """
    found, queue, seen = set(), list(inputs), set()
    while queue:
        each = queue.pop()
        if each in seen:
            continue
        seen.add(each)
        item = image.item(each)
        if item is not None and isinstance(item, Table):
            found.add(each)
        elif item is not None:
            queue.extend(view_inputs(item))
    return tuple(sorted(found))
