"""A bound tree as Spark SQL.  From the tree, never from strings; parameters become typed literals in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

from sqlglot import exp
from sqlglot.dialects.spark import Spark

from collection.types import SqlType
from journal.errors import InvalidUsage
from sql.budget import bounded
from sql.forms import written_out
from sql.nodes import cast, copied, literal, swap
from sql.types import INTERVAL, numeric_text, parse_literal
from sql.window_numbers import NUMBERED, numbered


class SparkPrinted(Spark):
    """Spark's dialect with every WITH query left where it is: moved up, one could catch another's name."""

    class Generator(Spark.Generator):
        EXPRESSIONS_WITHOUT_NESTED_CTES: set[type[exp.Expression]] = set()


_DIALECT = SparkPrinted()


@bounded
def with_params(tree: exp.Expression, params: Sequence[object | None], types: Mapping[int, SqlType]) -> exp.Expression:
    """A copy of ``tree`` in which every ``$n`` is a literal of its type.  08P01 where one has no value."""
    copy = exp.Paren(this=copied(tree))
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
            value = Decimal(value)
            own = numeric_text(format(value, "f")) if value.is_finite() else sql_type
            made = literal(value, own)
        else:
            made = literal(value, sql_type)
        parent = node.parent
        if isinstance(parent, exp.Cast) and made.args.get("to") == parent.to:
            swap(parent, made)
        else:
            swap(node, made)
    for each in numbered_calls:
        numbered(each)
    for key in ("limit", "offset"):
        for query in copy.find_all(exp.Query):
            _plain_number(query, key)
    return copy.this


def _plain_number(query: exp.Expression, key: str) -> None:
    """LIMIT and OFFSET take bare numbers in Spark."""
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


@bounded
def spark_sql(tree: exp.Expression) -> str:
    """``tree`` as Spark SQL with every identifier in backticks."""
    made = written_out(tree)
    for row in [row for values in made.find_all(exp.Values) for row in values.expressions]:
        # Spark takes a struct that stands alone in a row of VALUES for the row.
        if len(row.expressions) == 1 and isinstance(row.expressions[0], exp.Struct):
            row.expressions[0].replace(cast(row.expressions[0].copy(), INTERVAL))
    return made.sql(dialect=_DIALECT, identify=True, comments=False, copy=False)
