"""The rows that a statement writes: made of its values or of what its query gave, and held as their table keeps
them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from types import MappingProxyType
from typing import NamedTuple, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from adapter.state.buffer import Buffer
from catalog_log.objects import Column, Item, Table
from collection.binding import Run
from collection.columns import sql_type, with_diff
from journal.errors import InvalidUsage, Rejected
from journal.timestamps import DataTs
from oracle.model import KeyRange
from plan.scalars import Scalar
from sql.objects.uniques import Unique
from sql.objects.watched import Answers
from sql.statements.assigning import fit_length, stored
from sql.statements.plans import InsertPlan, Slot
from trees.errors import not_null
from values.bad_text import BadText
from values.keeping import kept
from values.time.years import check_years
from values.types import SqlType, arrow_type

VALUE_BYTES = 8
"""Of a value that is no text, and beside one."""

BUFFER_BYTES_MAX = 64 << 20
"""Rows that one transaction may hold back until COMMIT; what does not fit is refused with 54000."""

FEW_ROWS = 16
"""Of one statement that are kept as Python's values until they are written, with those of others: a table of Arrow's
takes as long for one row as for a hundred."""

ON_LOOP_BYTES_MAX = 64 << 10
ON_LOOP_ROWS_MAX = 2_000
"""Rows above this are encoded on a thread: these take some 5 ms, and the event loop serves everybody."""


class Given(NamedTuple):
    """Rows as Python's values, column by column: what a column of its type takes, whatever it is."""

    types: tuple[SqlType, ...]
    columns: tuple[list[object], ...]

    @property
    def count(self) -> int:
        return len(self.columns[0]) if self.columns else 0

    @property
    def size(self) -> int:
        """About the bytes that they take as Arrow's."""
        texts = (
            len(each) if each.isascii() else len(each.encode())
            for column in self.columns for each in column if type(each) is str
        )  # fmt: skip
        return VALUE_BYTES * len(self.columns) * self.count + sum(texts)


@dataclass(frozen=True)
class Rows:
    """Rows for one table, planned on a catalog upper.  ``read_ts`` and ``reads`` are of the query they came from.

    ``held`` are the rows, which whoever needs them as a table has in :attr:`rows`.
    ``planned_on`` is what the catalog said while they were planned, of each statement that they are of.  ``removed``
    are the columns of rows that go, which are all that the table ever had; of rows that come it is ``None``.
    ``ranges`` are of tables that are not in ``reads``, of which rows were read by some of their keys alone.
    ``points`` are keys of ``uniques``, the constraints of the table, that were looked up at ``read_ts``.
    """

    table: Item
    held: pa.Table | Given
    catalog_upper: int
    planned_on: tuple[Answers, ...] = ()
    read_ts: DataTs | None = None
    reads: tuple[str, ...] = ()
    ranges: tuple[KeyRange, ...] = ()
    removed: tuple[Column, ...] | None = None
    uniques: tuple[Unique, ...] = ()
    points: frozenset[bytes] = frozenset()
    runs: tuple[Run, ...] = ()
    """Where more of them are, which were written before."""
    more_keys: frozenset[bytes] = frozenset()
    """The keys of all of them, where there are ``runs``."""

    @cached_property
    def rows(self) -> pa.Table:
        held = self.held
        if isinstance(held, pa.Table):
            return held
        arrays = [pa.array(values, arrow_type(kind)) for values, kind in zip(held.columns, held.types, strict=True)]
        return pa.table(arrays, names=[column.name for column in self.table.columns])

    @property
    def count(self) -> int:
        """How many they are."""
        return self.held.count if isinstance(self.held, Given) else self.held.num_rows

    @cached_property
    def keys(self) -> list[tuple[Unique, list[bytes | None]]]:
        """Of each constraint the keys of the rows, as commits name them."""
        place = {column.stored_as: at for at, column in enumerate(self.columns)}
        return [
            (each, each.keys_of([self.rows.column(place[name]) for name in each.stored_as]))
            for each in self.uniques
        ]

    @cached_property
    def by_key(self) -> dict[tuple[int, ...], dict]:
        """What :mod:`adapter.execute.laid_over` remembers of them: each block's statement looks at all of its rows."""
        return {}

    @property
    def columns(self) -> tuple[Column, ...]:
        """Those that ``rows`` have, by position."""
        return self.table.columns if self.removed is None else self.removed

    @property
    def changes(self) -> pa.Table:
        """``rows`` with their diffs, where that is not +1."""
        return self.rows if self.removed is None else with_diff(self.rows, -1)

    @cached_property
    def size(self) -> int:
        """Bytes, asked for at every bound that the rows pass: Arrow counts them anew each time."""
        return self.held.size if isinstance(self.held, Given) else self.held.nbytes

    @property
    def heavy(self) -> bool:
        """Whether it is to be encoded on a thread."""
        return self.size > ON_LOOP_BYTES_MAX or self.count > ON_LOOP_ROWS_MAX


class Evaluate(Protocol):
    """What an engine is asked while rows are made."""

    def __call__(self, scalars: Sequence[Scalar]) -> list[object]:
        """The values of scalars that read nothing, in their order."""

    def hold(self, table: Table, rows: pa.Table) -> None:
        """Raises 23514 where one of ``rows`` does not keep a check of ``table``."""

    def shown(self, table: Item, rows: pa.Table, row: int) -> str:
        """A row as the details of errors show it."""


def are_few(plan: InsertPlan) -> bool:
    """Whether the rows of INSERT … VALUES are few, and nothing has to be worked out for them."""
    return plan.plain and len(plan.rows) <= FEW_ROWS and not asks_engine(plan.table)


def few_values(plan: InsertPlan, params: Sequence[object | None]) -> Given | None:
    """The rows of INSERT … VALUES where they :func:`are_few` and their table takes them as they are; else ``None``, and
    :func:`rows_of_values` makes them or says what is wrong.  Raises 22003."""
    if not are_few(plan):
        return None
    columns = _columns(plan, params, {})
    for column, values in zip(plan.table.columns, columns, strict=True):
        if None in values and not plan.table.takes_null(column):
            return None
    return Given(plan.types, tuple(columns))


def rows_of_values(plan: InsertPlan, params: Sequence[object | None], evaluate: Evaluate) -> pa.Table:
    """The rows of INSERT … VALUES, whose expressions are planned.  ``evaluate`` computes what is neither a literal nor
    a parameter.

    Raises 23502, 23514, 22003.  A default that is an expression (``now()``) is evaluated once a statement.
    """
    scalars = {id(slot): slot.scalar for row in plan.rows for slot in row if slot.scalar is not None}
    computed = dict(zip(scalars, evaluate(list(scalars.values())), strict=True)) if scalars else {}
    arrays = [
        pa.array(values, arrow_type(kind))
        for values, kind in zip(_columns(plan, params, computed), plan.types, strict=True)
    ]
    return checked(plan.table, arrays, evaluate)


def _columns(
    plan: InsertPlan, params: Sequence[object | None], computed: Mapping[int, object]
) -> list[list[object | None]]:
    """The values of VALUES; ``computed`` are those of scalars by the ids of their slots."""
    columns = []
    for index, kind in enumerate(plan.types):
        column: list[object] = []
        for row in plan.rows:
            slot = row[index]
            value = slot.value
            if slot.param is not None:
                value = params[slot.param - 1]
                value = stored(value if slot.through is None else stored(value, slot.through), kind)
            elif slot.scalar is not None:
                value = stored(computed[id(slot)], kind)
            else:
                assert slot.tree is None, "what is not planned is no NULL"
            column.append(value)
        columns.append(column)
    return columns


def rows_of_query(
    plan: InsertPlan,
    batches: Sequence[pa.RecordBatch],
    evaluate: Evaluate,
    drawn: Mapping[int, Sequence[Slot]] = MappingProxyType({}),
) -> pa.Table:
    """The rows of INSERT … SELECT from what the query gave.  Raises 23502, 23514.

    ``drawn`` are defaults that are another value in every row.
    """
    return checked(plan.table, columns_of_query(plan, batches, evaluate, drawn), evaluate)


def columns_of_query(
    plan: InsertPlan,
    batches: Sequence[pa.RecordBatch],
    evaluate: Evaluate,
    drawn: Mapping[int, Sequence[Slot]] = MappingProxyType({}),
) -> list[pa.Array | pa.ChunkedArray | None]:
    """The columns of such rows, before anything is looked at that their table asks of them."""
    height = sum(batch.num_rows for batch in batches)
    arrays: list[pa.Array | pa.ChunkedArray | None] = [None] * len(plan.types)
    for position, index in enumerate(plan.query_columns):
        if index is None:
            continue
        kind = arrow_type(plan.types[index])
        given = pa.chunked_array([batch.column(position).cast(kind) for batch in batches], kind)
        arrays[index] = _of_length(given, plan.types[index])
    for index, slot in plan.defaults.items():
        assert slot.tree is None, "a default is planned with its statement"
        if index in drawn:
            arrays[index] = pa.array(_values(drawn[index], plan.types[index], evaluate), arrow_type(plan.types[index]))
            continue
        value = slot.value if slot.scalar is None else stored(evaluate([slot.scalar])[0], plan.types[index])
        arrays[index] = pa.array([value] * height, arrow_type(plan.types[index]))
    return arrays


def _values(slots: Sequence[Slot], kind: SqlType, evaluate: Evaluate) -> list[object]:
    scalars = [slot.scalar for slot in slots if slot.scalar is not None]
    computed = iter(evaluate(scalars) if scalars else ())
    return [slot.value if slot.scalar is None else stored(next(computed), kind) for slot in slots]


def _of_length(values: pa.ChunkedArray, wanted: SqlType) -> pa.ChunkedArray:
    """Text as a varchar(n) or char(n) keeps it, and an array's.  Raises 22001."""
    if wanted.is_array and wanted.element.name in ("varchar", "bpchar"):
        items = pa.chunked_array([chunk.flatten() for chunk in values.chunks], values.type.value_type)
        if _of_length(items, wanted.element).equals(items):
            return values
        kept = [None if each is None else stored(each, wanted) for each in values.to_pylist()]
        return pa.chunked_array([pa.array(kept, values.type)])
    if wanted.name not in ("varchar", "bpchar"):
        return values
    if wanted.precision is not None and (pc.max(pc.utf8_length(values)).as_py() or 0) > wanted.precision:
        kept = [None if text is None else fit_length(text, wanted) for text in values.to_pylist()]
        values = pa.chunked_array([pa.array(kept, values.type)])
    return pc.utf8_rtrim(values, " ") if wanted.name == "bpchar" else values


def asks_engine(table: Item) -> bool:
    """Whether an engine is asked whether ``table`` takes rows."""
    return isinstance(table, Table) and bool(table.checks)


def checked(table: Item, arrays: Sequence[pa.Array | pa.ChunkedArray | None], evaluate: Evaluate) -> pa.Table:
    """The rows as a table of the relation's columns.

    Raises for the first row that its table does not take 23502 or 23514, with the row as detail; 22008 for a day or
    moment that nobody could read again.
    """
    for values in arrays:
        if values is not None:
            check_years(values)
    kept_as = [_limited(values, column) for column, values in zip(table.columns, arrays, strict=True)]
    made = pa.table(kept_as, names=[column.name for column in table.columns])
    empty: tuple[int, int] | None = None
    for place, (column, values) in enumerate(zip(table.columns, made.columns, strict=True)):
        if values.null_count and not table.takes_null(column):
            found = pc.index(values.is_null(), True).as_py(), place
            empty = found if empty is None else min(empty, found)
    if asks_engine(table):
        evaluate.hold(table, made if empty is None else made.slice(0, empty[0]))
    if empty is not None:
        row, place = empty
        raise not_null(table.columns[place].name, table.name, evaluate.shown(table, made, row))
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
    """Entries of one table, with its columns and constraints, as one, planned on the oldest of their catalogs."""
    first = entries[0]
    if len(entries) == 1:
        return first
    read_at = [each.read_ts for each in entries if each.read_ts is not None]
    return replace(
        first,
        held=_held_together(entries),
        catalog_upper=min(each.catalog_upper for each in entries),
        planned_on=tuple({id(answers): answers for each in entries for answers in each.planned_on}.values()),
        read_ts=min(read_at, default=None),
        reads=tuple(dict.fromkeys(name for each in entries for name in each.reads)),
        ranges=tuple(dict.fromkeys(each for entry in entries for each in entry.ranges)),
        points=frozenset().union(*(each.points for each in entries)),
    )


def _held_together(entries: Sequence[Rows]) -> pa.Table | Given:
    """The rows of all, one after the other."""
    given = [each.held for each in entries if isinstance(each.held, Given)]
    types = given[0].types if given else ()
    if len(given) == len(entries) and all(each.types == types for each in given):
        by_column = zip(*(each.columns for each in given), strict=True)
        return Given(types, tuple([list(chain.from_iterable(of)) for of in by_column]))
    schema = entries[0].rows.schema
    rows = [
        each.rows if each.rows.schema.equals(schema) else each.rows.rename_columns(schema.names).cast(schema)
        for each in entries
    ]
    return pa.concat_tables(rows).combine_chunks()


def gathered(entries: Sequence[Rows]) -> list[Rows]:
    """The same rows with as few entries as may be: of each table those that come as one, and those that go.  A block
    has an entry or two for each of its statements, and everybody who folds its commit handles each by itself."""
    together: dict[object, list[Rows]] = {}
    for number, each in enumerate(entries):
        single = each.runs or each.heavy
        key = each.table.id, each.columns, each.removed is None, tuple([unique.index.id for unique in each.uniques])
        together.setdefault(number if single else key, []).append(each)
    return [merged(of) for of in together.values()]


def check_buffer(buffer: Buffer, entries: Sequence[Rows] = ()) -> None:
    """54000 where a transaction would hold back more than it may, with ``entries`` too."""
    size = buffer.size + sum(each.size for each in entries)
    if size > BUFFER_BYTES_MAX:
        raise Rejected(
            f"what the transaction writes is too large: {size} bytes",
            sqlstate="54000",
            detail=f"at most {BUFFER_BYTES_MAX} bytes are kept until COMMIT",
            hint="commit more often, or write outside of a transaction block",
        )
