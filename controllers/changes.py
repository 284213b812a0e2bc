"""Changes of a collection as Arrow tables in one physical shape: columns ``c0``…``cN``, then ``__ts`` and ``__diff``.

The names are positional because a column's own name may be anything (Parquet and Spark disagree about some), and two
may differ in case only.  Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from collection.columns import DIFF
from controllers.arrangements.tuples import to_column, to_values
from values.types import SqlType, arrow_type

TS = "__ts"

FEW_ROWS = 128
"""Rows that are put together one by one: of a table of any size Arrow's groups take 150 µs, and Python 1 µs a row."""


def physical_schema(types: Sequence[SqlType]) -> pa.Schema:
    """The schema of changes of a relation with columns of ``types``."""
    fields = [pa.field(f"c{i}", arrow_type(t)) for i, t in enumerate(types)]
    return pa.schema([*fields, pa.field(TS, pa.int64()), pa.field(DIFF, pa.int64())])


def change_schema(types: Sequence[SqlType]) -> pa.Schema:
    """The schema of a change, whose timestamp goes without saying."""
    schema = physical_schema(types)
    return schema.remove(schema.get_field_index(TS))


def as_schema(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """``table``, by position, in exactly that schema: engines' Arrow types differ in field names and nullability."""
    arrays = [_of_type(c, f.type) for c, f in zip(table.columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def stamp(table: pa.Table, ts: int | pa.Array, types: Sequence[SqlType]) -> pa.Table:
    """``table`` (columns by position, then ``__diff`` or none) in the physical shape, at ``ts``: one for all or each.

    Floats are made canonical (one NaN, no -0.0), so that a retraction meets its row whatever the bits were.
    """
    schema = physical_schema(types)
    # By position: a column of the collection may be called as the diffs are.
    diff = table.columns[len(types)] if table.num_columns > len(types) else None
    if diff is None:
        diff = pa.repeat(pa.scalar(1, pa.int64()), table.num_rows)
    values = table.columns[: len(types)]
    assert len(types) <= table.num_columns <= len(types) + 1, (table.column_names, types)
    arrays = [_canonical(_of_type(v, f.type)) for v, f in zip(values, schema, strict=False)]
    stamps = pa.repeat(pa.scalar(ts, pa.int64()), table.num_rows) if isinstance(ts, int) else ts
    return pa.Table.from_arrays([*arrays, stamps, diff], schema=schema)


def _of_type(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    # A cast to what it is already takes 10 µs, and a tick of eight views has ninety of them.
    return column if column.type == kind else column.cast(kind)


def canonical(table: pa.Table) -> pa.Table:
    """``table`` with its floats as :func:`stamp` makes them."""
    return pa.Table.from_arrays([_canonical(column) for column in table.columns], names=table.column_names)


def present(table: pa.Table, names: Sequence[str], most: int) -> pa.Table | None:
    """The rows that are there by ``table``, changes with ``__diff`` as the last column, each as often as it is; called
    ``names``.  ``None`` where they are more than ``most``, however few changes say so."""
    if not only_insertions(table):
        table = consolidate(table)
        if not only_insertions(table):
            if insertions(table) > most:
                return None
            places = np.repeat(np.arange(table.num_rows), np.maximum(table.column(DIFF).to_numpy(), 0))
            table = table.take(pa.array(places, pa.int64()))
    return table.drop_columns([DIFF]).rename_columns(list(names)) if table.num_rows <= most else None


def insertions(table: pa.Table) -> int:
    """The rows that came by ``table``: no timestamp has more of them."""
    came = np.maximum(table.column(DIFF).to_numpy(), 0)
    # Diffs are below 2**63 each, and together perhaps not.
    return int(came.sum()) if len(came) * float(came.max(initial=0)) < 2**62 else sum(came.tolist())


def negated(changes: pa.Table) -> pa.Table:
    """What takes ``changes`` back: their last column is ``__diff``."""
    arrays = [*changes.columns[:-1], pc.negate(changes.columns[-1])]
    return pa.Table.from_arrays(arrays, names=changes.column_names)


def _canonical(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_list(column.type) and pa.types.is_floating(column.type.value_type):
        return pa.chunked_array([to_column(to_values(column), column.type)])
    if not pa.types.is_floating(column.type):
        return column
    positive = pc.add(column, pa.scalar(0.0, column.type))
    return pc.if_else(pc.is_nan(positive), pa.scalar(float("nan"), column.type), positive)


def consolidate(table: pa.Table, with_ts: bool = False) -> pa.Table:
    """Equal rows (at equal ``__ts`` if ``with_ts``) become one with the sum of their diffs; those with none go.

    All NaN are equal, and so are 0.0 and -0.0, whatever their bits and however many rows there are."""
    if table.num_rows == 0:
        return table
    keys = [n for n in table.column_names if n != DIFF and (with_ts or n != TS)]
    order = table.column_names if with_ts else [n for n in table.column_names if n != TS]
    if not keys:
        total = pc.sum(table.column(DIFF)).as_py()
        return pa.table({DIFF: pa.array([total] if total else [], pa.int64())})
    if table.num_rows <= FEW_ROWS:
        return _few_consolidated(table if order == table.column_names else table.select(order), keys)
    grouped = grouped_by(table, keys, [(DIFF, "sum")])
    grouped = grouped.rename_columns([DIFF if n == f"{DIFF}_sum" else n for n in grouped.column_names])
    return grouped.select(order).filter(pc.not_equal(grouped.column(DIFF), 0))


def _few_consolidated(table: pa.Table, keys: Sequence[str]) -> pa.Table:
    """As :func:`consolidate`, of few rows; where there is nothing to merge, as of most changes, the same table."""
    diffs = table.column(DIFF).to_pylist()
    totals: dict[tuple, int] = {}
    places: list[int] = []
    for place, (diff, *row) in enumerate(zip(diffs, *(to_values(table.column(name)) for name in keys), strict=True)):
        key = tuple(row)
        if key in totals:
            totals[key] += diff
        else:
            totals[key] = diff
            places.append(place)
    if len(places) == len(diffs) and all(diffs):
        return table
    left = [(place, total) for place, total in zip(places, totals.values(), strict=True) if total]
    kept = table.take(pa.array([place for place, _ in left], pa.int64()))
    at = table.column_names.index(DIFF)
    return kept.set_column(at, table.schema.field(at), pa.array([total for _, total in left], pa.int64()))


def grouped_by(table: pa.Table, keys: Sequence[str], wanted: Sequence[tuple[object, str]]) -> pa.Table:
    """Arrow's ``group_by`` and ``aggregate`` of keys of any type, where equal values are one key."""
    table, nested = _comparable(table, keys)
    grouped = table.group_by(list(keys), use_threads=False).aggregate(list(wanted))
    for name, values in nested.items():
        position = grouped.column_names.index(name)
        grouped = grouped.set_column(position, name, values.take(grouped.column(name)))
    return grouped


def _comparable(table: pa.Table, names: Sequence[str]) -> tuple[pa.Table, dict[str, pa.ChunkedArray]]:
    """``table`` with numbers for the values of arrays and intervals, by which Arrow cannot group; and these values.
    Floats, which Arrow groups by their bits, are canonical.

    A number is the place in the column of the first value that is equal to it.
    """
    nested = {}
    for name in names:
        column = table.column(name)
        if pa.types.is_nested(column.type):
            first: dict[object, int] = {}
            numbers = [first.setdefault(value, place) for place, value in enumerate(to_values(column))]
            table = table.set_column(table.column_names.index(name), name, pa.array(numbers, pa.int64()))
            nested[name] = column
        elif pa.types.is_floating(column.type):
            table = table.set_column(table.column_names.index(name), name, _canonical(column))
    return table, nested


def only_insertions(table: pa.Table) -> bool:
    """Whether every diff is +1."""
    return table.num_rows == 0 or bool(pc.all(pc.equal(table.column(DIFF), 1)).as_py())


def between(table: pa.Table, after_ts: int, through_ts: int) -> pa.Table:
    """The changes with ``after_ts < __ts <= through_ts``."""
    stamps = table.column(TS)
    return table.filter(pc.and_(pc.greater(stamps, after_ts), pc.less_equal(stamps, through_ts)))
