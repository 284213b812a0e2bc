"""Small changes of simple queries, evaluated in this process: a term compiled to Arrow kernels instead of a Spark job.

Promises: for every term that :func:`compile_term` accepts, :meth:`Compiled.run` gives what Spark gives for the term's
text over the same tables, as a multiset, or raises :class:`NotHere`; then Spark is asked, and it alone decides what is
an error.  Where Spark itself fails there may be rows here: it filters before it joins, and so may overflow at a row
that joins nothing, which no row of the answer depends on.  The accepted language is small: columns, literals,
comparisons, three-valued logic, integer arithmetic, CASE, widening casts, equi-joins.  Everything that rounds,
collates, parses or depends on the session stays with Spark.

Why: a Spark job of any size costs some 100 ms (planning, one task, one Arrow stream back), and a tick's rows are few.
The same rows take 1 to 5 ms here.  Pure: Arrow and sqlglot, no Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from collection.columns import DIFF
from collection.types import SqlType, arrow_type, spark_type
from controllers.compute.linear import sources_of
from controllers.compute.plans import Key, Term, placeholders
from controllers.compute.spark_text import text
from controllers.values import INT_BITS, Row, to_values
from journal.errors import InvalidUsage
from sql.budget import bounded
from sql.nodes import only, says_only

_BOOL = SqlType("bool")
_INT4, _INT8 = SqlType("int4"), SqlType("int8")

_ORDERED = frozenset({"text", "bool", "date", "timestamp", "timestamptz"})
"""Types that compare the same way everywhere (text by its bytes).  Floats do not: NaN."""

_JOINED = frozenset({*INT_BITS, "text", "date", "timestamp", "timestamptz"})

class NotHere(Exception):
    """Spark must be asked: the term, or these values, are beyond what is evaluated here."""


@dataclass(frozen=True)
class _Scope:
    """Columns in sight: ``(source, name) -> (position in the working table, type)``."""

    columns: tuple[tuple[str, str, SqlType], ...]

    def find(self, node: exp.Column) -> tuple[int, SqlType]:
        if node.args.get("db") or node.args.get("catalog"):
            raise NotHere(f"{text(node)} is qualified too far")
        found = [
            (i, kind) for i, (source, name, kind) in enumerate(self.columns)
            if name == node.name and (not node.table or node.table == source)
        ]  # fmt: skip
        if len(found) != 1:
            raise NotHere(f"{text(node)} names {len(found)} columns")
        return found[0]


Vector = pa.ChunkedArray | pa.Scalar
Eval = Callable[[pa.Table], Vector]


@dataclass(frozen=True)
class _Expression:
    type: SqlType
    eval: Eval


Rows = Callable[[Mapping[Key, pa.Table]], pa.Table]


@dataclass(frozen=True)
class _Source:
    """Something that gives a table whose columns are those of ``scope`` in order."""

    scope: _Scope
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
    if last[1:] != (term.diff, _INT8) or any(name == term.diff for _, name, _ in named):
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
    condition = None if where is None else _bool(_expression(where.this, working.scope))
    outputs = [_expression(e.unalias(), working.scope) for e in tree.expressions]
    scope = _Scope(tuple(("", e.alias_or_name, o.type) for e, o in zip(tree.expressions, outputs, strict=True)))

    def rows(tables: Mapping[Key, pa.Table]) -> pa.Table:
        table = working.rows(tables)
        if condition is not None:
            table = table.filter(_column(condition(table), table.num_rows, _BOOL))
        arrays = [_column(o.eval(table), table.num_rows, o.type) for o in outputs]
        return pa.Table.from_arrays(arrays, names=[f"v{i}" for i in range(len(arrays))])

    return _Source(scope, rows)


def _source(node: exp.Expression, columns: Columns, diff: str) -> _Source:
    alias = node.alias_or_name
    if isinstance(node, exp.Subquery):
        if not only(node, {"this", "alias"}) or (node.args["alias"] and node.args["alias"].columns):
            raise NotHere("a modified subquery")
        inner = _select(node.this, columns, diff)
        return _Source(_Scope(tuple((alias, name, kind) for _, name, kind in inner.scope.columns)), inner.rows)
    if not isinstance(node, exp.Table) or not node.db:
        raise NotHere(f"it reads from {node.key}")
    key = (node.name, node.db)
    known = columns[key[0]]
    scope = _Scope((*((alias, name, kind) for name, kind in known), (alias, diff, _INT8)))
    return _Source(scope, lambda tables: tables[key])


def _join(left: _Source, right: _Source, join: exp.Join) -> _Source:
    """An inner equi-join; what else its condition says is a filter over the pairs."""
    if join.side or join.kind not in ("", "INNER") or join.args.get("on") is None:
        raise NotHere("a join that is not an inner equi-join")
    scope = _Scope(left.scope.columns + right.scope.columns)
    width = len(left.scope.columns)
    on_left, on_right, rest = [], [], []
    for part in join.args["on"].flatten() if isinstance(join.args["on"], exp.And) else [join.args["on"]]:
        pair = _equated(part, scope, width)
        if pair is None:
            rest.append(_bool(_expression(part, scope)))
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
        table = joined.select(names)
        for condition in rest:
            table = table.filter(_column(condition(table), table.num_rows, _BOOL))
        return table

    return _Source(scope, rows)


def _equated(part: exp.Expression, scope: _Scope, width: int) -> tuple[int, int] | None:
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


# -- expressions ------------------------------------------------------------------------------------------------------

_COMPARE = {exp.EQ: pc.equal, exp.NEQ: pc.not_equal, exp.LT: pc.less, exp.LTE: pc.less_equal,
            exp.GT: pc.greater, exp.GTE: pc.greater_equal}  # fmt: skip
_ARITHMETIC = {exp.Add: pc.add_checked, exp.Sub: pc.subtract_checked, exp.Mul: pc.multiply_checked}
_LOGIC = {exp.And: pc.and_kleene, exp.Or: pc.or_kleene}
_CASTS = {spark_type(SqlType(name)): SqlType(name) for name in INT_BITS}


_SIDES = frozenset({"this", "expression"})
_KNOWN: dict[type[exp.Expression], frozenset[str]] = {
    exp.Select: frozenset({"expressions", "from_", "joins", "where"}),
    exp.Join: frozenset({"this", "kind", "on"}),
    exp.Literal: frozenset({"this", "is_string"}),
    exp.Column: frozenset({"this", "table"}),
    exp.Cast: frozenset({"this", "to"}),
    exp.TryCast: frozenset({"this", "to"}),
    exp.In: frozenset({"this", "expressions"}),
    exp.Between: frozenset({"this", "low", "high"}),
    exp.Case: frozenset({"ifs", "default"}),
    exp.If: frozenset({"this", "true"}),
    exp.Table: frozenset({"this", "db", "alias"}),
    exp.Is: frozenset({"this", "expression", "negate"}),
    **dict.fromkeys((exp.Alias, exp.Subquery), frozenset({"this", "alias"})),
    **dict.fromkeys((exp.From, exp.Where, exp.TableAlias, exp.Paren, exp.Boolean, exp.Null, exp.Neg, exp.Not),
                    frozenset({"this"})),
    **dict.fromkeys((*_COMPARE, *_ARITHMETIC, *_LOGIC), _SIDES),
}  # fmt: skip
"""What is read of each kind of node here.  A term in which anything else is said is Spark's."""


def _expression(node: exp.Expression, scope: _Scope) -> _Expression:
    kind = type(node)
    if kind is exp.Paren:
        return _expression(node.this, scope)
    if kind is exp.Column:
        position, sql_type = scope.find(node)
        return _Expression(sql_type, lambda table: table.column(position))
    if kind in (exp.Literal, exp.Boolean, exp.Neg):
        return _literal(node)
    if kind in _COMPARE:
        return _compared(_COMPARE[kind], _expression(node.left, scope), _expression(node.right, scope))
    if kind in _LOGIC:
        left, right = (_bool(_expression(side, scope)) for side in (node.left, node.right))
        combine = _LOGIC[kind]
        return _Expression(_BOOL, lambda table: combine(left(table), right(table)))
    if kind is exp.Not:
        inverted = _bool(_expression(node.this, scope))
        return _Expression(_BOOL, lambda table: pc.invert(inverted(table)))
    if kind is exp.Is and isinstance(node.expression, exp.Null):
        tested = _expression(node.this, scope)
        test = pc.is_valid if node.args.get("negate") else pc.is_null
        return _Expression(_BOOL, lambda table: test(tested.eval(table)))
    if kind is exp.In and only(node, {"this", "expressions"}):
        needle = _expression(node.this, scope)
        return _any([_compared(pc.equal, needle, _expression(e, scope)) for e in node.expressions])
    if kind is exp.Between and only(node, {"this", "low", "high"}):
        value = _expression(node.this, scope)
        low = _compared(pc.greater_equal, value, _expression(node.args["low"], scope)).eval
        high = _compared(pc.less_equal, value, _expression(node.args["high"], scope)).eval
        return _Expression(_BOOL, lambda table: pc.and_kleene(low(table), high(table)))
    if kind in _ARITHMETIC:
        return _calculated(_ARITHMETIC[kind], _expression(node.left, scope), _expression(node.right, scope))
    # sqlglot reads Spark's CAST as one that may fail softly; how it writes it tells which it was.
    if isinstance(node, exp.Cast) and text(node).startswith("CAST("):
        return _widened(_expression(node.this, scope), text(node.to).upper())
    if kind is exp.Case and node.args.get("this") is None:
        return _case(node, scope)
    raise NotHere(f"{node.key}")


def _literal(node: exp.Expression) -> _Expression:
    negative = isinstance(node, exp.Neg)
    inner = node.this if negative else node
    if isinstance(inner, exp.Boolean) and not negative:
        return _constant(bool(inner.this), _BOOL)
    if not isinstance(inner, exp.Literal):
        raise NotHere("the negative of an expression")
    if inner.is_string and not negative:
        return _constant(inner.this, SqlType("text"))
    if not inner.is_int or inner.is_string:
        raise NotHere("a literal that is neither whole nor text")
    value = -int(inner.this) if negative else int(inner.this)
    if not -(1 << 63) < value < 1 << 63:
        raise NotHere("a literal that is no bigint")
    # A negative literal is the negation of a positive one, as Spark types it.
    return _constant(value, _INT4 if int(inner.this) < 1 << 31 else _INT8)


def _constant(value: object, sql_type: SqlType) -> _Expression:
    scalar = pa.scalar(value, arrow_type(sql_type))
    return _Expression(sql_type, lambda _table: scalar)


def _bool(expression: _Expression) -> Eval:
    if expression.type != _BOOL:
        raise NotHere(f"{expression.type} as a condition")
    return expression.eval


def _compared(compare: Callable, left: _Expression, right: _Expression) -> _Expression:
    ints = {left.type.name, right.type.name} <= INT_BITS.keys()
    if not ints and (left.type != right.type or left.type.name not in _ORDERED):
        raise NotHere(f"a comparison of {left.type} with {right.type}")
    return _Expression(_BOOL, lambda table: compare(left.eval(table), right.eval(table)))


def _any(tests: Sequence[_Expression]) -> _Expression:
    if not tests:
        raise NotHere("IN a query")

    def evaluate(table: pa.Table) -> Vector:
        found = tests[0].eval(table)
        for test in tests[1:]:
            found = pc.or_kleene(found, test.eval(table))
        return found

    return _Expression(_BOOL, evaluate)


def _calculated(compute: Callable, left: _Expression, right: _Expression) -> _Expression:
    if not {left.type.name, right.type.name} <= INT_BITS.keys():
        raise NotHere(f"arithmetic of {left.type} and {right.type}")
    result = max(left.type, right.type, key=lambda t: INT_BITS[t.name])
    kind = arrow_type(result)
    return _Expression(result, lambda table: compute(left.eval(table).cast(kind), right.eval(table).cast(kind)))


def _widened(inner: _Expression, target: str) -> _Expression:
    wanted = _CASTS.get(target)
    if wanted is None or inner.type.name not in INT_BITS or INT_BITS[inner.type.name] > INT_BITS[wanted.name]:
        raise NotHere(f"a cast of {inner.type} to {target}")
    kind = arrow_type(wanted)
    return _Expression(wanted, lambda table: inner.eval(table).cast(kind))


def _case(node: exp.Case, scope: _Scope) -> _Expression:
    """Every branch is evaluated on every row: one that fails where it is not taken only sends us to Spark."""
    conditions = [_bool(_expression(branch.this, scope)) for branch in node.args["ifs"]]
    values = [_expression(branch.args["true"], scope) for branch in node.args["ifs"]]
    default = node.args.get("default")
    if default is not None and not isinstance(default, exp.Null):
        values.append(_expression(default, scope))
    if len({v.type for v in values}) != 1:
        raise NotHere("a CASE of several types")
    kind = arrow_type(values[0].type)

    def evaluate(table: pa.Table) -> Vector:
        found: Vector = pa.scalar(None, kind)
        if len(values) > len(conditions):
            found = values[-1].eval(table)
        for condition, value in reversed(list(zip(conditions, values, strict=False))):
            chosen = _column(pc.fill_null(condition(table), False), table.num_rows, _BOOL)
            found = pc.if_else(chosen, value.eval(table), found)
        return found

    return _Expression(values[0].type, evaluate)


def _column(vector: Vector, rows: int, sql_type: SqlType) -> pa.ChunkedArray:
    if isinstance(vector, pa.Scalar):
        return pa.chunked_array([pa.repeat(vector, rows)], arrow_type(sql_type))
    return vector if isinstance(vector, pa.ChunkedArray) else pa.chunked_array([vector])


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


def _summable(column: pa.ChunkedArray, sql_type: SqlType) -> pa.ChunkedArray:
    """``column`` as a type in which its sum cannot overflow.  Arrow's own sum would wrap around silently."""
    if sql_type.name in INT_BITS:
        extremes = pc.min_max(column).as_py()
        largest = max(abs(extremes["min"] or 0), abs(extremes["max"] or 0))
        if largest * len(column) >= 1 << 63:
            raise NotHere("a sum that may not fit into a bigint")
        return column.cast(pa.int64())
    if sql_type.name != "numeric" or sql_type.precision + len(str(len(column))) > 38:
        raise NotHere(f"a sum of {len(column)} {sql_type}")
    return column.cast(pa.decimal128(38, sql_type.scale))
