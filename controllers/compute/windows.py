"""Whole queries that number rows, over few of them and in this process: a plan compiled to kernels, with no engine.

Promises: for every query that :func:`compile_query` accepts, :meth:`Whole.run` gives what both engines give for its
decided form (:mod:`lower.duckdb.decided`) over the same tables, as a multiset, or raises :class:`NotHere`; then an
engine is asked.  The accepted language is that of :mod:`controllers.compute.vectors`, with ``row_number()``, ``rank()``
and ``dense_rank()`` over partitions, and groups of what counts, adds and compares.

Why: of the keys that a tick touches some hundred rows are numbered, for which DuckDB takes 4 ms of a processor, most of
them to plan it: more than all of that view's tick takes here (``docs/performance.md``).  What no window is in is kept
by its changes (:mod:`controllers.compute.strategy`), and not asked here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from controllers.arrangements.tuples import INT_BITS
from controllers.changes import grouped_by
from controllers.compute.expressions import Compiler, Expression, Frame, NotHere
from controllers.compute.groups import ORDERED
from controllers.compute.vectors import Rows, RowsOf, Run, summable, table_of
from lower.duckdb.decided import Undecided, decided
from plan import relations as r
from plan import scalars as s
from plan.nodes import walk
from trees.budget import bounded
from values.types import SqlType

ROWS_MAX = 10_000
"""Of all that a query reads.  What planning takes DuckDB is little beside more of them, and it can be interrupted."""

NUMBERS = frozenset({"row_number", "rank", "dense_rank"})

FLOATS = frozenset({"float4", "float8"})

Tables = Mapping[str, pa.Table]
"""Relations by their ids, with their columns by their names."""


@dataclass(frozen=True)
class Whole:
    """A query as a function of the tables that it reads."""

    types: tuple[SqlType, ...]
    _rows: Rows

    def run(self, tables: Tables) -> pa.Table:
        """Its rows, columns by position.  Raises ``NotHere`` (there are many, an overflow)."""
        if sum(table.num_rows for table in tables.values()) > ROWS_MAX:
            raise NotHere(f"more rows than {ROWS_MAX}")
        try:
            return self._rows(Run(tables))
        except pa.ArrowException as error:
            raise NotHere(str(error)) from error


@bounded
def compile_query(query: r.Query) -> Whole:
    """``query`` over tables.  Raises ``NotHere``, 54001 for what is too deep."""
    if not any(isinstance(node, r.Window) for node in walk(query.relation)):
        raise NotHere("there is no window in it")
    try:
        plan = decided(query).relation
    except Undecided as why:
        raise NotHere(str(why)) from why
    rows = _Numbering().of(plan)
    return Whole(tuple(kind.type for kind in plan.columns), rows)


class _Numbering(RowsOf):
    """Of rows that carry no diffs: each stands there as often as it is."""

    def _get(self, node: r.Get) -> Rows:
        return lambda tables: tables[node.item_id].select(list(node.names))

    def _window(self, node: r.Window) -> Rows:
        if len({(e.partition, e.order) for e in node.calls if e.function.name == "row_number"}) > 1:
            # Of equal rows, which has which of the one numbers and which of the others, an engine alone decides.
            raise NotHere("row_number() in several orders")
        below, compiler = self.of(node.input), Compiler()
        numbers = [_numbers(each, compiler) for each in node.calls]

        def rows(tables: Tables) -> pa.Table:
            frame = Frame(below(tables))
            return table_of([*frame.table.columns, *(each(frame) for each in numbers)])

        return rows

    def _reduce(self, node: r.Reduce) -> Rows:
        if node.sets is not None or not node.keys:
            raise NotHere("groups without keys, or by sets of them")
        below, compiler = self.of(node.input), Compiler()
        keys = [_ordered(each, compiler) for each in node.keys]
        folds = [_fold(each, compiler) for each in node.aggregates]

        def rows(tables: Tables) -> pa.Table:
            frame = Frame(below(tables))
            names = [f"k{place}" for place in range(len(keys))]
            columns = [each.column(frame) for each in keys]
            wanted: list[tuple[object, str]] = []
            for place, (name, argument, summed) in enumerate(folds):
                if argument is None:
                    wanted.append(([], "count_all"))
                    continue
                column = argument.column(frame)
                columns.append(summable(column, argument.type) if summed else column)
                names.append(f"a{place}")
                wanted.append((f"a{place}", name))
            found = grouped_by(pa.Table.from_arrays(columns, names=names), names[: len(keys)], wanted)
            results = ["count_all" if of == [] else f"{of}_{name}" for of, name in wanted]
            return table_of([found.column(name) for name in (*names[: len(keys)], *results)])

        return rows


_Numbering.RULES = {
    **RowsOf.RULES, r.Get: _Numbering._get, r.Window: _Numbering._window, r.Reduce: _Numbering._reduce,
}  # fmt: skip


def _ordered(scalar: s.Scalar, compiler: Compiler, also: frozenset[str] = frozenset()) -> Expression:
    """``scalar``, whose values are ordered and equal here as they are in SQL: of those types, or of ``also``."""
    found = compiler.compiled(scalar)
    if found.type.name not in ORDERED | also:
        raise NotHere(f"an order of {found.type}")
    return found


def _fold(call: s.Aggregate, compiler: Compiler) -> tuple[str, Expression | None, bool]:
    """What Arrow calls ``call``, its argument, and whether that is added up."""
    if call.condition is not None or call.within or len(call.arguments) > 1:
        raise NotHere(f"{call.name}() of some rows, or in an order")
    if call.name in ("min", "max"):
        return call.name, _ordered(call.arguments[0], compiler), False
    if call.distinct or call.name not in ("count", "sum"):
        raise NotHere(f"{call.name}()")
    if not call.arguments:
        return "count", None, False
    argument = compiler.compiled(call.arguments[0])
    if call.name == "sum" and not (argument.type.name in INT_BITS and call.type == SqlType("int8")):
        raise NotHere(f"a sum of {argument.type}")
    return call.name, argument, call.name == "sum"


# -- numbers ----------------------------------------------------------------------------------------------------------


def _numbers(call: s.WindowCall, compiler: Compiler) -> Callable[[Frame], pa.ChunkedArray]:
    """What ``call`` gives for each row of a frame."""
    name = call.function.name
    if name not in NUMBERS or call.frame is not None or call.function.arguments or call.function.condition is not None:
        raise NotHere(f"{name}() over a window")
    partition = [(_ordered(each, compiler, FLOATS), "ascending", "at_end") for each in call.partition]
    order = [
        (_ordered(each.key, compiler, FLOATS), "descending" if each.descending else "ascending",
         "at_start" if each.nulls_first else "at_end")
        for each in call.order
    ]  # fmt: skip

    def numbers(frame: Frame) -> pa.ChunkedArray:
        codes = [_places(each.column(frame), way, nulls) for each, way, nulls in (*partition, *order)]
        return pa.chunked_array([_numbered(name, frame.rows, codes, len(partition))])

    return numbers


def _places(column: pa.ChunkedArray, way: str, nulls: str) -> np.ndarray:
    """The place of each value among the different ones, NULL being one of them."""
    if pa.types.is_floating(column.type):
        column = _by_bits(column)
    return pc.rank(column, sort_keys=[("", way, nulls)], tiebreaker="dense").to_numpy()


def _by_bits(column: pa.ChunkedArray) -> pa.Array:
    """Integers in the order of the floats in ``column``: -0.0 as 0.0, and NaN above all."""
    values = column.cast(pa.float64()).to_numpy() + 0.0
    bits = np.where(np.isnan(values), np.nan, values).view(np.int64)
    return pa.array(np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits), mask=column.is_null().to_numpy())


def _numbered(name: str, rows: int, codes: Sequence[np.ndarray], parts: int) -> pa.Array:
    """The number of each of ``rows``: equal in the first ``parts`` of ``codes`` they are of one partition, and in all
    of them they tie."""
    if not rows:
        return pa.array([], pa.int64())
    at = np.lexsort(codes[::-1]) if codes else np.arange(rows)
    sorted_, places = [each[at] for each in codes], np.arange(rows)
    begins = _differs(sorted_[:parts], rows)
    first = np.maximum.accumulate(np.where(begins, places, 0))
    if name == "row_number":
        found = places - first
    else:
        another = begins | _differs(sorted_[parts:], rows)
        if name == "rank":
            found = np.maximum.accumulate(np.where(another, places, 0)) - first
        else:
            count = np.cumsum(another)
            found = count - count[first]
    numbers = np.empty(rows, np.int64)
    numbers[at] = found + 1
    return pa.array(numbers)


def _differs(codes: Sequence[np.ndarray], rows: int) -> np.ndarray:
    """Which of the sorted rows differ from the one before."""
    found = np.zeros(rows, bool)
    found[0] = True
    for each in codes:
        found[1:] |= each[1:] != each[:-1]
    return found
