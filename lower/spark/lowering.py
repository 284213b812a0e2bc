"""A bound tree as Spark SQL.  From the tree, never from strings; parameters become typed literals in it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal

from sqlglot import exp
from sqlglot.dialects.spark import Spark

from journal.errors import InvalidUsage
from lower.spark.forms import written_out
from lower.spark.window_numbers import NUMBERED, numbered
from trees.budget import bounded
from trees.errors import out_of_range, unsupported
from trees.nodes import cast, data_type, literal, swap
from trees.types import INTERVAL, NUMERIC, numeric_text, parse_literal
from values.numeric.numerics import shown
from values.types import SqlType


class SparkPrinted(Spark):
    """Spark's dialect with every WITH query left where it is: moved up, one could catch another's name."""

    class Generator(Spark.Generator):
        EXPRESSIONS_WITHOUT_NESTED_CTES: set[type[exp.Expression]] = set()

        def lambda_sql(self, expression: exp.Lambda, arrow_sep: str = "->", wrap: bool = True) -> str:
            """A lambda's names in brackets where there are several, and not where a comma is within one: those Spark
            does not read."""
            return super().lambda_sql(expression, arrow_sep, wrap and len(expression.expressions) > 1)


_DIALECT = SparkPrinted()


@bounded
def with_params(tree: exp.Expression, params: Sequence[object | None], types: Mapping[int, SqlType]) -> exp.Expression:
    """A copy of ``tree`` in which every ``$n`` is a literal of its type.  08P01 where one has no value."""
    copy = exp.Paren(this=tree.copy())
    numbered_calls = []
    for node in list(copy.find_all(exp.Parameter, *NUMBERED)):
        if not isinstance(node, exp.Parameter):
            numbered_calls.append(node)
            continue
        number = int(node.this.this)
        if number > len(params):
            raise InvalidUsage(f"no value was given for parameter ${number}", sqlstate="08P01")
        sql_type = types[number]
        value = params[number - 1]
        if sql_type.name == "numeric" and value is not None:
            made = _given_number(Decimal(value), node)
        else:
            made = literal(value, sql_type)
        parent = node.parent
        if isinstance(parent, exp.Cast) and made.args.get("to") == parent.to:
            swap(parent, made)
        else:
            swap(node, made)
    for each in numbered_calls:
        numbered(each)
    plain_limits(copy)
    return copy.this


def plain_limits(tree: exp.Expression) -> None:
    """Make bare numbers of what LIMIT and OFFSET in ``tree`` were given: Spark takes nothing else."""
    for key in ("limit", "offset"):
        for query in tree.find_all(exp.Query):
            _plain_number(query, key)


_TEXT = data_type(NUMERIC)


def _given_number(value: Decimal, node: exp.Parameter) -> exp.Expression:
    """A numeric with the digits that it came with: a decimal, or a text where that is wanted."""
    text = shown(value)
    if isinstance(node.parent, exp.Cast) and node.parent.to == _TEXT:
        return literal(text, NUMERIC)
    found = numeric_text(text)
    if found.is_free:
        raise out_of_range("numeric", text) if value.is_finite() else unsupported(f"{text} as a decimal")
    return literal(value, found)


def _plain_number(query: exp.Expression, key: str) -> None:
    clause = query.args.get(key)
    if clause is None:
        return
    value = clause.expression
    while isinstance(value, (exp.Cast, exp.Paren)):
        value = value.this
    if isinstance(value, exp.Null):
        query.set(key, None)
    elif isinstance(value, exp.Literal):
        number = int(parse_literal(value.this, SqlType("int8")))
        if number < 0:
            raise InvalidUsage(f"{key.upper()} must not be negative", sqlstate="2201W" if key == "limit" else "2201X")
        clause.set("expression", exp.Literal.number(number))


_ROWS_MAX = (1 << 31) - 1
"""LIMIT and OFFSET are of 32 bits in Spark, and so is what they are together.  No relation here has as many rows."""


def _within_its_numbers(query: exp.Expression) -> None:
    """A LIMIT that no relation reaches is none, and behind an OFFSET that none reaches there is nothing."""
    limit, offset = _number(query, "limit"), _number(query, "offset")
    if offset > _ROWS_MAX:
        query.set("offset", None)
        query.set("limit", exp.Limit(expression=exp.Literal.number(0)))
    elif limit + offset > _ROWS_MAX:
        query.set("limit", None)


def _number(query: exp.Expression, key: str) -> int:
    clause = query.args.get(key)
    value = clause.expression if clause is not None else None
    return int(value.this) if isinstance(value, exp.Literal) and value.this.isdigit() else 0


def _with_what_is_escaped(like: exp.Expression) -> None:
    """Spark takes an escape only before ``%``, ``_`` and itself; Postgres takes it before anything, for that itself."""
    outer = like.parent
    sign = outer.expression if isinstance(outer, exp.Escape) and outer.this is like else exp.Literal.string("\\")
    pattern = like.expression
    while isinstance(pattern, exp.Paren) or (isinstance(pattern, exp.Cast) and not pattern.to.expressions):
        pattern = pattern.this
    if all(isinstance(each, exp.Literal) and each.is_string for each in (sign, pattern)) and len(sign.this) == 1:
        escaped = re.escape(sign.this)
        pattern.set("this", re.sub(f"{escaped}(.)", lambda at: _escaped(at, sign.this), pattern.this, flags=re.S))


def _escaped(at: re.Match[str], sign: str) -> str:
    return at[0] if at[1] in ("%", "_", sign) else at[1]


_ORDERED = (exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between)


def _typed_where_large(number: exp.Expression) -> None:
    """A number beyond a bigint as a decimal by a cast.  What is a whole number and compared with one by itself Spark
    replaces by a truth, also where it is NULL (``DecimalPrecision``, 4.1)."""
    while isinstance(number, (exp.Paren, exp.Neg)):
        number = number.this
    if not isinstance(number, exp.Literal) or number.is_string or len(number.this) < len(str(_LONG_MAX)):
        return
    text = format(Decimal(number.this), "f")
    if abs(Decimal(text)) > _LONG_MAX and not (kind := numeric_text(text)).is_free:
        swap(number, cast(number.copy(), kind))


_LONG_MAX = (1 << 63) - 1


@bounded
def spark_tree(tree: exp.Expression) -> exp.Expression:
    """A copy of ``tree`` in Spark's words."""
    made = written_out(tree)
    for query in list(made.find_all(exp.Query)):
        _within_its_numbers(query)
    for compared in list(made.find_all(*_ORDERED)):
        for each in list(compared.iter_expressions()):
            _typed_where_large(each)
    for like in made.find_all(exp.Like, exp.ILike):
        _with_what_is_escaped(like)
    for row in [row for values in made.find_all(exp.Values) for row in values.expressions]:
        # Spark takes a struct that stands alone in a row of VALUES for the row.
        if len(row.expressions) == 1 and isinstance(row.expressions[0], exp.Struct):
            row.expressions[0].replace(cast(row.expressions[0].copy(), INTERVAL))
    return made


@bounded
def printed(tree: exp.Expression) -> str:
    """``tree``, which is in Spark's words and used up, as text with every identifier in backticks."""
    return tree.sql(dialect=_DIALECT, identify=True, comments=False, copy=False)


def spark_sql(tree: exp.Expression) -> str:
    """``tree`` as Spark SQL."""
    return printed(spark_tree(tree))
