"""Small changes of simple queries, evaluated in this process: a term compiled to Arrow kernels instead of a Spark job.

Promises: for every term that :func:`compile_term` accepts, :meth:`Compiled.run` gives what Spark gives for the term's
text over the same tables, as a multiset, or raises :class:`NotHere`; then Spark is asked, and it alone decides what is
an error.  Where Spark itself fails there may be rows here: it filters before it joins, and so may overflow at a row
that joins nothing, which no row of the answer depends on.  The accepted language is small: equi-joins, projections and
filters of the expressions in ``expressions.py``.

Why: a Spark job of any size costs some 100 ms (planning, one task, one Arrow stream back), and a tick's rows are few.
The same rows take 1 to 5 ms here.  Pure: Arrow and sqlglot, no Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Context, Decimal

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from collection.columns import DIFF
from controllers.arrangements.tuples import INT_BITS, Row, to_values
from controllers.compute.expressions import (
    INT8,
    KNOWN,
    Frame,
    NotHere,
    Scope,
    compiled,
    condition,
    filtered,
)
from controllers.compute.linear import sources_of
from controllers.compute.plans import Key, Term, placeholders
from journal.errors import InvalidUsage
from sql.trees.budget import bounded
from sql.trees.nodes import only, says_only
from values.types import SqlType

_JOINED = frozenset({*INT_BITS, "text", "date", "timestamp", "timestamptz"})

_KNOWN = KNOWN | {
    exp.Select: frozenset({"expressions", "from_", "joins", "where"}),
    exp.Join: frozenset({"this", "kind", "on"}),
    exp.Table: frozenset({"this", "db", "alias"}),
    exp.Subquery: frozenset({"this", "alias"}),
    **dict.fromkeys((exp.From, exp.Where, exp.TableAlias), frozenset({"this"})),
}
"""What is read of each kind of node here.  A term in which anything else is said is Spark's."""

_WIDE = Context(prec=120)

Rows = Callable[[Mapping[Key, pa.Table]], pa.Table]


@dataclass(frozen=True)
class _Source:
    """Something that gives a table whose columns are those of ``scope`` in order."""

    scope: Scope
    rows: Rows


@dataclass(frozen=True)
class Compiled:
    """A term as a function of the tables that it reads.  ``types`` are its columns' but for the last, ``__diff``."""

    types: tuple[SqlType, ...]
    reads: frozenset[Key] = field(default_factory=frozenset)
    _rows: Rows = lambda tables: pa.table({})

    def run(self, tables: Mapping[Key, pa.Table]) -> pa.Table:
        """Columns ``c0``… and ``__diff``, not consolidated.  Raises ``NotHere`` (an overflow, say)."""
        try:
            table = self._rows(tables)
        except pa.ArrowException as error:
            raise NotHere(str(error)) from error
        return table.rename_columns([*(f"c{i}" for i in range(len(self.types))), DIFF])


Columns = Mapping[str, Sequence[tuple[str, SqlType]]]
"""Name and type of each column, by relation."""


def compile_term(term: Term, columns: Columns) -> Compiled:
    """``term`` over tables in the physical shape (columns by position, then ``__diff``).  Raises ``NotHere``."""
    try:
        source = _bounded_select(term, columns)
    except InvalidUsage as error:
        raise NotHere(error.message) from error
    *named, last = source.scope.columns
    if last[1:] != (term.diff, INT8) or any(name == term.diff for _, name, _ in named):
        raise NotHere("its last column is not the diff")
    return Compiled(tuple(kind for _, _, kind in named), frozenset(placeholders(term.tree)), source.rows)


@bounded
def _bounded_select(term: Term, columns: Columns) -> _Source:
    if not says_only(term.tree, _KNOWN):
        raise NotHere("something in it is not known here")
    return _select(term.tree, columns, term.diff)


# -- sources ----------------------------------------------------------------------------------------------------------


def _select(tree: exp.Expression, columns: Columns, diff: str) -> _Source:
    if not isinstance(tree, exp.Select) or not only(
        tree, {"expressions", "from", "from_", "joins", "where", "kind"}
    ):  # fmt: skip
        raise NotHere(f"a {tree.key}")
    first, *others = sources_of(tree)
    working = _source(first, columns, diff)
    for join, other in zip(tree.args.get("joins") or (), others, strict=True):
        working = _join(working, _source(other, columns, diff), join)
    where = tree.args.get("where")
    chosen = None if where is None else condition(compiled(where.this, working.scope))
    outputs = [compiled(e.unalias(), working.scope) for e in tree.expressions]
    scope = Scope(tuple(("", e.alias_or_name, o.type) for e, o in zip(tree.expressions, outputs, strict=True)))

    def rows(tables: Mapping[Key, pa.Table]) -> pa.Table:
        frame = filtered(Frame(working.rows(tables)), chosen)
        arrays = [o.column(frame) for o in outputs]
        return pa.Table.from_arrays(arrays, names=[f"v{i}" for i in range(len(arrays))])

    return _Source(scope, rows)


def _source(node: exp.Expression, columns: Columns, diff: str) -> _Source:
    alias = node.alias_or_name
    if isinstance(node, exp.Subquery):
        if not only(node, {"this", "alias"}) or (node.args["alias"] and node.args["alias"].columns):
            raise NotHere("a modified subquery")
        inner = _select(node.this, columns, diff)
        return _Source(Scope(tuple((alias, name, kind) for _, name, kind in inner.scope.columns)), inner.rows)
    if not isinstance(node, exp.Table) or not node.db:
        raise NotHere(f"it reads from {node.key}")
    key = (node.name, node.db)
    known = columns[key[0]]
    scope = Scope((*((alias, name, kind) for name, kind in known), (alias, diff, INT8)))
    return _Source(scope, lambda tables: tables[key])


def _join(left: _Source, right: _Source, join: exp.Join) -> _Source:
    """An inner equi-join; what else its condition says is a filter over the pairs."""
    if join.side or join.kind not in ("", "INNER") or join.args.get("on") is None:
        raise NotHere("a join that is not an inner equi-join")
    scope = Scope(left.scope.columns + right.scope.columns)
    width = len(left.scope.columns)
    on_left, on_right, rest = [], [], []
    for part in join.args["on"].flatten() if isinstance(join.args["on"], exp.And) else [join.args["on"]]:
        pair = _equated(part, scope, width)
        if pair is None:
            rest.append(condition(compiled(part, scope)))
        else:
            on_left.append(pair[0])
            on_right.append(pair[1])
    if not on_left:
        raise NotHere("a join without an equality")

    def rows(tables: Mapping[Key, pa.Table]) -> pa.Table:
        a, b = _keyed(left.rows(tables), "l", on_left), _keyed(right.rows(tables), "r", on_right)
        keys = [f"k{i}" for i in range(len(on_left))]
        joined = a.join(b, keys=[f"l{k}" for k in keys], right_keys=[f"r{k}" for k in keys], join_type="inner",
                        coalesce_keys=False, use_threads=False)  # fmt: skip
        names = [f"l{i}" for i in range(width)] + [f"r{i}" for i in range(len(scope.columns) - width)]
        frame = Frame(joined.select(names))
        for each in rest:
            frame = filtered(frame, each)
        return frame.table

    return _Source(scope, rows)


def _equated(part: exp.Expression, scope: Scope, width: int) -> tuple[int, int] | None:
    part = part.unnest()
    if not isinstance(part, exp.EQ) or not all(isinstance(s, exp.Column) for s in (part.left, part.right)):
        return None
    (a, a_type), (b, b_type) = scope.find(part.left), scope.find(part.right)
    if (a < width) == (b < width):
        return None
    if not (a_type == b_type or {a_type.name, b_type.name} <= INT_BITS.keys()) or a_type.name not in _JOINED:
        raise NotHere(f"a join on {a_type} and {b_type}")
    return (a, b - width) if a < width else (b, a - width)


def _keyed(table: pa.Table, side: str, positions: Sequence[int]) -> pa.Table:
    """``table`` with its columns named by position and copies of the join's keys, integers widened, beside them."""
    arrays = list(table.columns)
    names = [f"{side}{i}" for i in range(len(arrays))]
    for i, position in enumerate(positions):
        key = table.column(position)
        arrays.append(key.cast(pa.int64()) if pa.types.is_integer(key.type) else key)
        names.append(f"{side}k{i}")
    return pa.Table.from_arrays(arrays, names=names)


# -- groups -----------------------------------------------------------------------------------------------------------


def partial_groups(
    table: pa.Table, types: Sequence[SqlType], keys: int, summed: frozenset[int]
) -> list[tuple[Row, int, Row]]:
    """Per group and diff of ``table`` (keys, then arguments, then ``__diff``): rows, then count and sum per argument.

    ``summed`` are the arguments whose sum is wanted; of others it is 0.  Raises ``NotHere`` where a sum might not fit.
    """
    key_names = [f"c{i}" for i in range(keys)]
    wanted: list[tuple[object, str]] = [([], "count_all")]
    names = ["count_all"]
    for argument in range(len(types) - keys):
        name = f"c{keys + argument}"
        wanted.append((name, "count"))
        names.append(f"{name}_count")
        if argument in summed:
            position = table.column_names.index(name)
            table = table.set_column(position, name, _summable(table.column(name), types[keys + argument]))
            wanted.append((name, "sum"))
            names.append(f"{name}_sum")
    try:
        grouped = table.group_by([*key_names, DIFF], use_threads=False).aggregate(wanted)
    except pa.ArrowException as error:
        raise NotHere(str(error)) from error
    by_name = {name: to_values(grouped.column(name)) for name in (*key_names, DIFF, *names)}
    nothing = [0] * grouped.num_rows
    measures = [by_name["count_all"]]
    for argument in range(len(types) - keys):
        name = f"c{keys + argument}"
        measures += [by_name[f"{name}_count"], by_name.get(f"{name}_sum", nothing)]
    found_keys = list(zip(*(by_name[n] for n in key_names), strict=True)) if keys else [()] * grouped.num_rows
    return list(zip(found_keys, by_name[DIFF], zip(*measures, strict=True), strict=True))


def partial_values(table: pa.Table, keys: int, argument: int) -> list[tuple[Row, object, int]]:
    """Per group of ``table`` (as :func:`partial_groups` has it) the values of one argument, and how many times more
    each is there."""
    names = [*(f"c{i}" for i in range(keys)), f"c{keys + argument}"]
    grouped = table.group_by(names, use_threads=False).aggregate([(DIFF, "sum")])
    rows = list(zip(*(to_values(grouped.column(name)) for name in names), strict=True))
    times = to_values(grouped.column(f"{DIFF}_sum"))
    return [(row[:keys], row[keys], n) for row, n in zip(rows, times, strict=True) if n]


def _summable(column: pa.ChunkedArray, sql_type: SqlType) -> pa.ChunkedArray:
    """``column`` as a type in which its sum cannot overflow.  Arrow's own sum would wrap around silently."""
    if sql_type.name in INT_BITS:
        extremes = pc.min_max(column).as_py()
        largest = max(abs(extremes["min"] or 0), abs(extremes["max"] or 0))
        if largest * len(column) >= 1 << 63:
            raise NotHere("a sum that may not fit into a bigint")
        return column.cast(pa.int64())
    if sql_type.name != "numeric":
        raise NotHere(f"a sum of {sql_type}")
    if sql_type.precision + len(str(len(column))) > 38:
        extremes = pc.min_max(column).as_py()
        largest = max(abs(int((each or Decimal(0)).scaleb(sql_type.scale, _WIDE))) for each in extremes.values())
        if largest * len(column) >= 10**38:
            raise NotHere(f"a sum of {sql_type} that may not fit")
    return column.cast(pa.decimal128(38, sql_type.scale))
