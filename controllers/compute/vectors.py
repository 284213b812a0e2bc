"""Small changes of simple queries, evaluated in this process: a summand compiled to Arrow kernels, with no Spark job.

Promises: for every summand that :func:`compile_summand` accepts, :meth:`Compiled.run` gives what Spark gives for the
summand over the same tables, as a multiset, or raises :class:`NotHere`; then an engine is asked, and Spark alone
decides what is an error.  Where Spark itself fails there may be rows here: it filters before it joins, and so may
overflow at a row that joins nothing, which no row of the answer depends on.  The accepted language is small:
equi-joins, projections and filters of the expressions in ``expressions.py``.

Why: a Spark job of any size costs some 100 ms (planning, one task, one Arrow stream back), and a tick's rows are few.
The same rows take 1 to 5 ms here.  DuckDB, which is asked where this language ends, takes 1.5 ms for a question of any
size.  Pure: Arrow and the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal

import pyarrow as pa
import pyarrow.compute as pc

from collection.columns import DIFF
from controllers.arrangements.tuples import INT_BITS, Row, to_values
from controllers.changes import FEW_ROWS, grouped_by
from controllers.compute.expressions import Compiler, Frame, NotHere, filtered
from plan import relations as r
from plan import scalars as s
from plan.deltas import Key, key_of
from plan.equal import conjuncts
from trees.budget import bounded
from values.types import SqlType

_JOINED = frozenset({*INT_BITS, "text", "date", "timestamp", "timestamptz"})

_WIDE = Context(prec=120)

PAIRS_MAX = 2_000_000
"""Pairs of rows that a join makes here at once, some 100 bytes each.  DuckDB, which is asked then, has a bound of its
own on what it takes, and Spark makes them a part at a time.  Twenty changes meet any relation that is held here without
a count of their keys."""

Tables = Mapping[Key, pa.Table]

Rows = Callable[[Tables], pa.Table]


@dataclass(frozen=True)
class Compiled:
    """A summand as a function of the tables that it reads.  ``types`` are its columns' but for the last, ``__diff``."""

    types: tuple[SqlType, ...]
    _rows: Rows

    def run(self, tables: Tables) -> pa.Table:
        """Columns ``c0``… and ``__diff``, not consolidated.  Raises ``NotHere`` (an overflow, say)."""
        try:
            table = self._rows(Run(tables))
        except pa.ArrowException as error:
            raise NotHere(str(error)) from error
        return table.rename_columns([*(f"c{i}" for i in range(len(self.types))), DIFF])


@bounded
def compile_summand(plan: r.Relation) -> Compiled:
    """The summand ``plan`` over tables in the physical shape (columns by position, then ``__diff``).  Raises
    ``NotHere``, 54001 for what is too deep."""
    rows = RowsOf().of(plan)
    return Compiled(tuple(kind.type for kind in plan.columns[:-1]), rows)


class Run(dict):
    """The tables of one run, and what parts of the plan gave that stand in it several times."""

    def __init__(self, tables: Tables) -> None:
        super().__init__(tables)
        self.made: dict[int, pa.Table] = {}


class RowsOf:
    """What gives the rows of a relation: one that stands in a plan several times is made once a run.  ``RULES`` are
    methods by the kind of node."""

    RULES: Mapping[type[r.Relation], Callable[[RowsOf, r.Relation], Rows]]

    def __init__(self) -> None:
        self._known: dict[int, tuple[r.Relation, Rows]] = {}

    def of(self, node: r.Relation) -> Rows:
        if id(node) not in self._known:
            rule = self.RULES.get(type(node))
            if rule is None:
                raise NotHere(type(node).__name__.lower())
            self._known[id(node)] = node, self._once(rule(self, node), len(self._known))
        return self._known[id(node)][1]

    def _once(self, rows: Rows, number: int) -> Rows:
        def made(run: Run) -> pa.Table:
            if number not in run.made:
                run.made[number] = rows(run)
            return run.made[number]

        return made

    def _get(self, node: r.Get) -> Rows:
        key = key_of(node)
        return lambda tables: tables[key]

    def _project(self, node: r.Project) -> Rows:
        below, compiler = self.of(node.input), Compiler()
        outputs = [compiler.compiled(each) for each in node.outputs]

        def rows(tables: Tables) -> pa.Table:
            frame = Frame(below(tables))
            return table_of([each.column(frame) for each in outputs])

        return rows

    def _filter(self, node: r.Filter) -> Rows:
        below, condition = self.of(node.input), Compiler().condition(node.condition)
        return lambda tables: filtered(Frame(below(tables)), condition).table

    def _set(self, node: r.SetOp) -> Rows:
        if node.kind != "union" or not node.all:
            raise NotHere(f"{node.kind} of rows")
        left, right = self.of(node.left), self.of(node.right)
        return lambda tables: pa.concat_tables([table_of(side(tables).columns) for side in (left, right)])

    def _join(self, node: r.Join) -> Rows:
        """An inner equi-join; what else its condition says is a filter over the pairs."""
        if node.kind != "inner" or node.lateral or node.condition is None:
            raise NotHere("a join that is not an inner equi-join")
        left, right, wide = self.of(node.left), self.of(node.right), len(node.left.columns)
        on_left, on_right, rest = [], [], []
        for part in conjuncts(node.condition):
            pair = _equated(part, wide)
            if pair is None:
                rest.append(Compiler().condition(part))
            else:
                on_left.append(pair[0])
                on_right.append(pair[1])
        if not on_left:
            raise NotHere("a join without an equality")
        others = len(node.right.columns)

        def rows(tables: Tables) -> pa.Table:
            a, b = _keyed(left(tables), "l", on_left), _keyed(right(tables), "r", on_right)
            keys = [(f"lk{i}", f"rk{i}") for i in range(len(on_left))]
            _check_pairs(a, b, keys)
            frame = Frame(_joined(a, b, keys).select([f"l{i}" for i in range(wide)] + [f"r{i}" for i in range(others)]))
            for each in rest:
                frame = filtered(frame, each)
            return frame.table

        return rows


RowsOf.RULES = {
    r.Get: RowsOf._get, r.Project: RowsOf._project, r.Filter: RowsOf._filter, r.Join: RowsOf._join,
    r.SetOp: RowsOf._set,
}  # fmt: skip


def _equated(part: s.Scalar, wide: int) -> tuple[int, int] | None:
    """The columns that ``part`` wants equal, one of either side."""
    if not isinstance(part, s.Call) or part.name != "=" or not all(isinstance(e, s.Column) for e in part.arguments):
        return None
    a, b = part.arguments
    if (a.position < wide) == (b.position < wide):
        return None
    if not (a.type == b.type or {a.type.name, b.type.name} <= INT_BITS.keys()) or a.type.name not in _JOINED:
        raise NotHere(f"a join on {a.type} and {b.type}")
    return (a.position, b.position - wide) if a.position < wide else (b.position, a.position - wide)


def _joined(a: pa.Table, b: pa.Table, keys: Sequence[tuple[str, str]]) -> pa.Table:
    """Their inner join.  Arrow puts the second table into a hash table, so that is the smaller one."""
    if a.num_rows < b.num_rows:
        a, b, keys = b, a, [pair[::-1] for pair in keys]
    mine, theirs = zip(*keys, strict=True)
    return a.join(b, keys=list(mine), right_keys=list(theirs), join_type="inner", coalesce_keys=False,
                  use_threads=False)  # fmt: skip


def _check_pairs(a: pa.Table, b: pa.Table, keys: Sequence[tuple[str, str]]) -> None:
    """Raises :class:`NotHere` where ``a`` and ``b`` have more pairs of equal keys than are made here."""
    if a.num_rows * b.num_rows <= PAIRS_MAX:
        return
    one, other = (
        table.group_by(list(names)).aggregate([([], "count_all")]).rename_columns([*names, called])
        for table, names, called in zip((a, b), zip(*keys, strict=True), ("n", "m"), strict=True)
    )
    both = _joined(one, other, keys)
    if (pc.sum(pc.multiply(both.column("n"), both.column("m"))).as_py() or 0) > PAIRS_MAX:
        raise NotHere(f"a join of more than {PAIRS_MAX} pairs")


def table_of(arrays: Sequence[pa.ChunkedArray]) -> pa.Table:
    """Of columns by position."""
    return pa.Table.from_arrays(list(arrays), names=[f"v{i}" for i in range(len(arrays))])


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
    if table.num_rows <= FEW_ROWS:
        return _few_groups(table, types, keys, summed)
    key_names = [f"c{i}" for i in range(keys)]
    wanted: list[tuple[object, str]] = [([], "count_all")]
    names = ["count_all"]
    for argument in range(len(types) - keys):
        name = f"c{keys + argument}"
        wanted.append((name, "count"))
        names.append(f"{name}_count")
        if argument in summed:
            position = table.column_names.index(name)
            table = table.set_column(position, name, summable(table.column(name), types[keys + argument]))
            wanted.append((name, "sum"))
            names.append(f"{name}_sum")
    try:
        grouped = grouped_by(table, [*key_names, DIFF], wanted)
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


def _few_groups(
    table: pa.Table, types: Sequence[SqlType], keys: int, summed: frozenset[int]
) -> list[tuple[Row, int, Row]]:
    """As :func:`partial_groups`, row by row: Python's numbers hold any sum."""
    for argument in summed:
        _check_summed(types[keys + argument])
    arguments = [to_values(column) for column in table.columns[keys : len(types)]]  # there may be more, of no use here
    found: dict[tuple[Row, int], list] = {}
    zero = [0, *(nothing for argument in range(len(arguments)) for nothing in (0, None if argument in summed else 0))]
    for key, diff, *values in zip(_keys(table, keys), table.column(DIFF).to_pylist(), *arguments, strict=True):
        measures = found.get((key, diff))
        if measures is None:
            measures = found[key, diff] = list(zero)
        measures[0] += 1
        for argument, value in enumerate(values):
            if value is not None:
                measures[1 + 2 * argument] += 1
                if argument in summed:
                    total = measures[2 + 2 * argument]
                    # Decimal's own "+" would round to the context's 28 digits.
                    measures[2 + 2 * argument] = (
                        value if total is None
                        else _WIDE.add(total, value) if isinstance(value, Decimal)
                        else total + value
                    )  # fmt: skip
    return [(key, diff, tuple(measures)) for (key, diff), measures in found.items()]


def _keys(table: pa.Table, keys: int) -> list[Row]:
    """The first ``keys`` columns as rows."""
    if not keys:
        return [()] * table.num_rows
    return list(zip(*(to_values(column) for column in table.columns[:keys]), strict=True))


def partial_values(table: pa.Table, keys: int, argument: int) -> list[tuple[Row, object, int]]:
    """Per group of ``table`` (as :func:`partial_groups` has it) the values of one argument, and how many times more
    each is there."""
    if table.num_rows <= FEW_ROWS:
        counts: dict[tuple[Row, object], int] = {}
        values = to_values(table.columns[keys + argument])
        for key, value, diff in zip(_keys(table, keys), values, table.column(DIFF).to_pylist(), strict=True):
            counts[key, value] = counts.get((key, value), 0) + diff
        return [(key, value, n) for (key, value), n in counts.items() if n]
    names = [*(f"c{i}" for i in range(keys)), f"c{keys + argument}"]
    grouped = grouped_by(table, names, [(DIFF, "sum")])
    rows = list(zip(*(to_values(grouped.column(name)) for name in names), strict=True))
    times = to_values(grouped.column(f"{DIFF}_sum"))
    return [(row[:keys], row[keys], n) for row, n in zip(rows, times, strict=True) if n]


def _check_summed(sql_type: SqlType) -> None:
    """Raises ``NotHere`` where a sum of that type is nobody's here."""
    if sql_type.name not in INT_BITS and sql_type.name != "numeric":
        raise NotHere(f"a sum of {sql_type}")


def summable(column: pa.ChunkedArray, sql_type: SqlType) -> pa.ChunkedArray:
    """``column`` as a type in which its sum cannot overflow.  Arrow's own sum would wrap around silently."""
    _check_summed(sql_type)
    if sql_type.name in INT_BITS:
        extremes = pc.min_max(column).as_py()
        largest = max(abs(extremes["min"] or 0), abs(extremes["max"] or 0))
        if largest * len(column) >= 1 << 63:
            raise NotHere("a sum that may not fit into a bigint")
        return column.cast(pa.int64())
    if sql_type.precision + len(str(len(column))) > 38:
        extremes = pc.min_max(column).as_py()
        largest = max(abs(int((each or Decimal(0)).scaleb(sql_type.scale, _WIDE))) for each in extremes.values())
        if largest * len(column) >= 10**38:
            raise NotHere(f"a sum of {sql_type} that may not fit")
    return column.cast(pa.decimal128(38, sql_type.scale))
