"""The portable residual: what is left of a query once an index has found the rows (no Spark, no Kafka).

Promises: for every residual that :func:`compile_residual` accepts, the answer is what Spark gives for the same query
over the same rows: three-valued logic, exact integer and numeric arithmetic with an error on overflow, NULLs where
ORDER BY says.  What it does not accept it refuses with ``InvalidUsage`` at compile time; half-way it says only that
the answer has more rows than fit (:class:`TooManyRows`), and then somebody else is asked.

The form is JSON::

    {"filter": E | null, "project": [E…], "aggregate": null | [A…],
     "order_by": [[output_index, "asc" | "desc", "first" | "last"]…], "limit": n | null, "offset": n}
    E = ["col", i] | ["lit", text | null, sqltype] | ["=" | "<>" | "<" | "<=" | ">" | ">=", E, E]
      | ["and" | "or", E…] | ["not", E] | ["is_null", E] | ["in", E, E…] | ["+" | "-" | "*", E, E]
      | ["case", E, E, E…, E]
    A = ["count_star"] | ["count", E] | ["sum", E] | ["min", E] | ["max", E]

``case`` is of adapters alone, for rows that they have: controllers of before do not know it, so none is sent it.
Where ``aggregate`` is given, the output is one row of aggregates over all rows that pass the filter, and ``project``
is not looked at.
"""

from __future__ import annotations

import decimal
import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress, islice
from operator import itemgetter, mul

import pyarrow as pa

from controllers.arrangements.tuples import INT_BITS, Row, order_key, parse_literal, schema_of, to_batch
from journal.errors import InvalidUsage, TidemarkError
from values.types import SqlType, carried, parse_type

DEPTH_MAX = 64
"""Nesting of an expression: far below Python's recursion limit of 1,000, far above what people write by hand."""

_BOOL = SqlType("bool")
_INT8 = SqlType("int8")
_AS_DECIMAL = {"int2": (5, 0), "int4": (10, 0), "int8": (20, 0)}
_WIDE = decimal.Context(prec=120, rounding=decimal.ROUND_HALF_UP, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)

_FIELDS = frozenset({"filter", "project", "aggregate", "order_by", "limit", "offset"})

Eval = Callable[[Row], object]


@dataclass(frozen=True)
class Expression:
    type: SqlType
    eval: Eval


ROWS_MAX = 1_000_000
"""Of one answer, as tuples, which take some 100 bytes each besides their values.  Spark is as quick with more, and
holds them in less."""


class TooManyRows(Exception):
    """What was found is more than ``ROWS_MAX`` rows, or stands for more."""


@dataclass(frozen=True)
class Residual:
    """A compiled residual."""

    output_types: tuple[SqlType, ...]
    _filter: Eval | None
    _project: tuple[Eval, ...]
    _aggregates: tuple[tuple[str, Expression | None], ...] | None
    _order_by: tuple[tuple[int, bool, bool], ...]
    _limit: int | None
    _offset: int

    def run(self, rows: Iterable[tuple[Row, int]]) -> pa.Table:
        """The answer over ``rows``, each with how many times it occurs (> 0)."""
        return pa.Table.from_batches([self.batch(self.rows(rows))])

    def batch(self, rows: Sequence[Row]) -> pa.RecordBatch:
        """What :meth:`rows` gave, once or several times, as Arrow."""
        return to_batch(rows, self._schema)

    @cached_property
    def _schema(self) -> pa.Schema:
        return schema_of(self.output_types)

    def rows(self, rows: Iterable[tuple[Row, int]]) -> list[Row]:
        """As :meth:`run`, as plain tuples."""
        output = self._rows(rows)
        for index, descending, nulls_first in reversed(self._order_by):
            nulls = [r for r in output if r[index] is None]
            values = [r for r in output if r[index] is not None]
            values.sort(key=lambda r, i=index: order_key(r[i]), reverse=descending)
            output = nulls + values if nulls_first else values + nulls
        end = None if self._limit is None else self._offset + self._limit
        return output[self._offset : end] if self._offset or end is not None else output

    def _rows(self, rows: Iterable[tuple[Row, int]]) -> list[Row]:
        if self._filter is not None:
            passes = self._filter
            rows = ((row, count) for row, count in rows if passes(row) is True)
        if self._aggregates is not None:
            given = list(rows)
            found, counts = list(map(itemgetter(0), given)), list(map(itemgetter(1), given))
            return [tuple(_aggregate(name, arg, found, counts) for name, arg in self._aggregates)]
        wanted = None if self._limit is None else self._offset + self._limit
        project = self._project
        output = (
            tuple(e(row) for e in project)
            for row, count in _bounded(rows, wanted, bool(self._order_by)) for _ in range(count)
        )  # fmt: skip
        if self._order_by or wanted is None:
            return list(output)
        return list(islice(output, wanted))


def _bounded(rows: Iterable[tuple[Row, int]], wanted: int | None, all_of_them: bool) -> Iterator[tuple[Row, int]]:
    """``rows``, each no more often than what is ``wanted``, of ``all_of_them`` or of the first.  Raises
    :class:`TooManyRows`."""
    left = ROWS_MAX
    for row, count in rows:
        often = count if wanted is None else min(count, wanted)
        if (left := left - often) < 0:
            raise TooManyRows
        yield row, often
        if wanted is not None and not all_of_them and ROWS_MAX - left >= wanted:
            return


def compile_residual(text: str, columns: Sequence[SqlType]) -> Residual:
    """The residual in ``text`` over a relation with ``columns``.  Raises ``InvalidUsage`` if it is not one."""
    try:
        raw = json.loads(text)
        if strange := raw.keys() - _FIELDS:
            raise _malformed(f"unknown fields {sorted(strange)}")
        condition = None if raw.get("filter") is None else _expression(raw["filter"], columns, 0)
        if condition is not None and condition.type != _BOOL:
            raise _malformed(f"the filter is {condition.type}, not bool")
        aggregates = project = None
        if raw.get("aggregate") is not None:
            aggregates = tuple(_compile_aggregate(a, columns) for a in raw["aggregate"])
            types = tuple(_aggregate_type(name, arg) for name, arg in aggregates)
        else:
            project = tuple(_expression(e, columns, 0) for e in raw["project"])
            types = tuple(e.type for e in project)
        order_by = tuple(_order(o, len(types)) for o in raw.get("order_by", ()))
        limit, offset = raw.get("limit"), raw.get("offset") or 0
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise _malformed(f"{type(error).__name__}: {error}") from error
    for name, bound in (("limit", limit), ("offset", offset)):
        if bound is not None and (type(bound) is not int or bound < 0):
            raise _malformed(f"{name} is {bound!r}")
    return Residual(
        types, condition and condition.eval, tuple(e.eval for e in project or ()), aggregates, order_by, limit, offset
    )


def _malformed(why: str) -> InvalidUsage:
    return InvalidUsage("malformed lookup", sqlstate="08P01", detail=why)


def _order(raw: Sequence[object], width: int) -> tuple[int, bool, bool]:
    index, direction, nulls = raw
    if type(index) is not int or not 0 <= index < width:
        raise _malformed(f"order_by names output column {index!r} of {width}")
    return index, {"asc": False, "desc": True}[direction], {"first": True, "last": False}[nulls]


def _expression(raw: Sequence, columns: Sequence[SqlType], depth: int) -> Expression:
    if depth > DEPTH_MAX:
        raise _malformed(f"nested deeper than {DEPTH_MAX}")
    op, *rest = raw
    if op == "col":
        (index,) = rest
        if type(index) is not int or not 0 <= index < len(columns):
            raise _malformed(f"column {index!r} of {len(columns)}")
        return Expression(columns[index], itemgetter(index))
    if op == "lit":
        text, type_name = rest
        sql_type = carried(parse_type(type_name))
        value = None if text is None else parse_literal(str(text), sql_type)
        return Expression(sql_type, lambda _row: value)
    args = [_expression(e, columns, depth + 1) for e in rest]
    if op in _COMPARE:
        left, right = args
        _comparable(left.type, right.type)
        return Expression(_BOOL, _comparison(op, left, right))
    if op in ("and", "or") and args:
        _all_bool(op, args)
        return Expression(_BOOL, _logic([a.eval for a in args], decisive=op == "or"))
    if op == "not":
        (arg,) = args
        _all_bool(op, args)
        return Expression(_BOOL, lambda row: None if (v := arg.eval(row)) is None else not v)
    if op == "is_null":
        (arg,) = args
        return Expression(_BOOL, lambda row: arg.eval(row) is None)
    if op == "in":
        needle, *members = args
        for member in members:
            _comparable(needle.type, member.type)
        tests = [_comparison("=", needle, member) for member in members]
        return Expression(_BOOL, _logic(tests, decisive=True))
    if op in _ARITHMETIC:
        left, right = args
        return _arithmetic(op, left, right)
    if op == "case" and len(args) >= 3 and len(args) % 2:
        return _case(args)
    raise _malformed(f"unknown operator {op!r}")


def _family(sql_type: SqlType) -> str:
    name = sql_type.name
    return "number" if name in INT_BITS or name in ("numeric", "float4", "float8") else name


def _comparable(left: SqlType, right: SqlType) -> None:
    if _family(left) != _family(right):
        raise InvalidUsage(f"cannot compare {left} with {right}", sqlstate="42883")


def _all_bool(op: str, args: Sequence[Expression]) -> None:
    if any(a.type != _BOOL for a in args):
        raise InvalidUsage(f"argument of {op} must be bool", sqlstate="42804")


_COMPARE: dict[str, Callable[[object, object], bool]] = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def _comparison(op: str, left: Expression, right: Expression) -> Eval:
    compare = _COMPARE[op]
    floats = any(e.type.name in ("float4", "float8") for e in (left, right))
    a_of, b_of = left.eval, right.eval

    def plain(row: Row) -> object:
        a, b = a_of(row), b_of(row)
        return None if a is None or b is None else compare(a, b)

    def with_floats(row: Row) -> object:
        # Spark widens both sides to double; NaN equals itself and is above everything.
        a, b = a_of(row), b_of(row)
        return None if a is None or b is None else compare(order_key(float(a)), order_key(float(b)))

    return with_floats if floats else plain


def _logic(args: Sequence[Eval], decisive: bool) -> Eval:
    """Three-valued AND (``decisive`` False) or OR (True): a decisive operand wins over an unknown one."""

    def evaluate(row: Row) -> object:
        unknown = False
        for arg in args:
            value = arg(row)
            if value is None:
                unknown = True
            elif value is decisive:
                return decisive
        return None if unknown else not decisive

    return evaluate


def _case(args: Sequence[Expression]) -> Expression:
    """Conditions, each with a value behind it, and at last the value where none of them holds."""
    conditions, values = args[0:-1:2], (*args[1:-1:2], args[-1])
    _all_bool("CASE", conditions)
    if any(value.type != args[-1].type for value in values):
        raise InvalidUsage("CASE of values of several types is not portable", sqlstate="0A000")
    tests, results = [each.eval for each in conditions], [each.eval for each in values]

    def evaluate(row: Row) -> object:
        # Nothing behind the condition that holds is looked at, which may be an error.
        at = next((place for place, test in enumerate(tests) if test(row) is True), -1)
        return results[at](row)

    return Expression(args[-1].type, evaluate)


_ARITHMETIC: dict[str, Callable] = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b}


def _arithmetic(op: str, left: Expression, right: Expression) -> Expression:
    a_of, b_of = left.eval, right.eval
    if left.type.name in INT_BITS and right.type.name in INT_BITS:
        result = max(left.type, right.type, key=lambda t: INT_BITS[t.name])
        compute, limit = _ARITHMETIC[op], 1 << (INT_BITS[result.name] - 1)

        def ints(row: Row) -> object:
            a, b = a_of(row), b_of(row)
            if a is None or b is None:
                return None
            value = compute(a, b)
            if not -limit <= value < limit:
                raise out_of_range(result)
            return value

        return Expression(result, ints)
    sides = [_AS_DECIMAL.get(t.name) or (t.precision, t.scale) for t in (left.type, right.type)]
    if any(t.name not in INT_BITS and t.name != "numeric" for t in (left.type, right.type)):
        raise InvalidUsage(f"operator {op} is not portable for {left.type} and {right.type}", sqlstate="0A000")
    result = decimal_result(op, *sides)
    exact = {"+": _WIDE.add, "-": _WIDE.subtract, "*": _WIDE.multiply}[op]

    def decimals(row: Row) -> object:
        a, b = a_of(row), b_of(row)
        if a is None or b is None:
            return None
        return fit_decimal(exact(decimal.Decimal(a), decimal.Decimal(b)), result)

    return Expression(result, decimals)


def decimal_result(op: str, left: tuple[int, int], right: tuple[int, int]) -> SqlType:
    """Spark's result type of decimal arithmetic (DecimalPrecision, allowPrecisionLoss=true)."""
    (p1, s1), (p2, s2) = left, right
    if op == "*":
        precision, scale = p1 + p2 + 1, s1 + s2
    else:
        scale = max(s1, s2)
        precision = max(p1 - s1, p2 - s2) + scale + 1
    if precision > 38:
        scale = max(38 - (precision - scale), min(scale, 6))
        precision = 38
    return SqlType("numeric", precision, scale)


def fit_decimal(value: decimal.Decimal, sql_type: SqlType) -> decimal.Decimal:
    """``value`` rounded half up to the type's scale.  Raises 22003 if it does not fit its precision."""
    rounded = value.quantize(decimal.Decimal(1).scaleb(-sql_type.scale), context=_WIDE)
    if rounded and rounded.adjusted() + 1 > sql_type.precision - sql_type.scale:
        raise out_of_range(sql_type)
    return rounded


def out_of_range(sql_type: SqlType) -> TidemarkError:
    return InvalidUsage(f"{sql_type} out of range", sqlstate="22003")


def _compile_aggregate(raw: Sequence, columns: Sequence[SqlType]) -> tuple[str, Expression | None]:
    name, *rest = raw
    if name == "count_star" and not rest:
        return name, None
    if name not in ("count", "sum", "min", "max"):
        raise _malformed(f"unknown aggregate {name!r}")
    (arg,) = rest
    expression = _expression(arg, columns, 0)
    if name == "sum" and _family(expression.type) != "number":
        raise InvalidUsage(f"function sum({expression.type}) does not exist", sqlstate="42883")
    return name, expression


def _aggregate_type(name: str, arg: Expression | None) -> SqlType:
    if arg is None or name == "count":
        return _INT8
    return sum_type(arg.type) if name == "sum" else arg.type


def sum_type(sql_type: SqlType) -> SqlType:
    """What Spark's sum() gives for ``sql_type``."""
    if sql_type.name in INT_BITS:
        return _INT8
    if sql_type.name == "numeric":
        return SqlType("numeric", min(38, sql_type.precision + 10), sql_type.scale)
    return SqlType("float8")


def _aggregate(name: str, arg: Expression | None, rows: Sequence[Row], counts: Sequence[int]) -> object:
    """Of ``rows``, of which each is there ``counts`` times.  What can be is left to loops of the interpreter's own: a
    sum over all rows of an index may be asked for many times a second."""
    if arg is None:
        return sum(counts)
    values = list(map(arg.eval, rows))
    if None in values:
        there = [value is not None for value in values]
        values, counts = list(compress(values, there)), list(compress(counts, there))
    if name == "count":
        return sum(counts)
    if not values:
        return None
    if name != "sum":
        return (min if name == "min" else max)(values, key=order_key)
    result = sum_type(arg.type)
    if result.name == "numeric":
        total = decimal.Decimal(0)
        for value, count in zip(values, counts, strict=True):
            total = _WIDE.add(total, _WIDE.multiply(value, decimal.Decimal(count)))
        return fit_decimal(total, result)
    terms = values if counts.count(1) == len(counts) else map(mul, values, counts)
    if result.name == "float8":
        return math.fsum(terms)
    total = sum(terms)
    if not -(1 << 63) <= total < 1 << 63:
        raise out_of_range(result)
    return total
