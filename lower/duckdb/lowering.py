"""Typed constant expressions for DuckDB: the same tree that Spark would get, with Spark's function names replaced."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

from sqlglot import exp
from sqlglot.errors import SqlglotError

from functions.registry import FUNCTIONS
from lower.duckdb.forms import written_out
from lower.forms.filling import once
from trees.errors import untold
from trees.nodes import Ordinality, call, data_type, loose, unnest
from trees.types import DATE, FLOAT8, INT8, TIMESTAMP
from values.types import SqlType


def _date(value: exp.Expression) -> exp.Expression:
    return exp.Cast(this=value.copy(), to=data_type(DATE))


def _local(value: exp.Expression) -> exp.Expression:
    return exp.Cast(this=value.copy(), to=data_type(TIMESTAMP))


def _seconds(node: exp.Extract) -> exp.Expression:
    """DuckDB's second has no fraction; its microseconds count the whole minute."""
    micros = exp.Extract(this=exp.var("MICROSECONDS"), expression=node.expression.copy())
    return exp.Paren(this=exp.Div(this=micros, expression=exp.Literal.number(1_000_000), typed=False, safe=False))


def _interval(years, months, weeks, days, hours, minutes, seconds) -> exp.Expression:
    """Of months, days and seconds: the only ones that are ever made."""
    exact = exp.Cast(this=seconds.copy(), to=data_type(SqlType("numeric", 38, 6)))  # DuckDB's own would have 18 digits
    micros = exp.Cast(this=exp.Mul(this=exact, expression=exp.Literal.number(1_000_000)), to=data_type(INT8))
    sum_ = exp.Add(this=call("to_months", months), expression=call("to_days", days))
    made = exp.Paren(this=exp.Add(this=sum_, expression=call("to_microseconds", micros)))
    made.meta["interval"] = True
    return made


def _one_by_one(node: exp.Binary) -> None:
    """Add an interval's months, then its days, then its time: to a timestamptz DuckDB adds the time first."""
    parts = node.expression
    if not parts.meta.get("interval"):
        return
    months, days, micros = parts.this.this.this, parts.this.this.expression, parts.this.expression
    kind, moved = type(node), node.this.copy()
    for part in (months, days):
        moved = exp.Paren(this=kind(this=moved, expression=part.copy()))
    node.set("this", moved)
    node.set("expression", micros.copy())


_PRESENT = exp.Lambda(
    this=exp.Not(this=exp.Is(this=exp.to_identifier("x"), expression=exp.Null())), expressions=[exp.to_identifier("x")]
)


_TEN = re.compile("10*")
_SOME = re.compile("^[0-9.]*[1-9]")


def _is_decimal(node: exp.Expression) -> bool:
    return isinstance(node, exp.Cast) and node.to.this == exp.DataType.Type.DECIMAL


def _quotient(node: exp.Div) -> exp.Expression:
    """DuckDB divides by zero without complaint; NULL by zero is NULL.  Of decimals it makes doubles, so one of many
    digits is multiplied by what a power of ten is the reciprocal of."""
    divisor = node.expression
    if isinstance(divisor, exp.Literal) and not divisor.is_string and _TEN.fullmatch(divisor.this):
        if _is_decimal(unnest(node.this)):
            zeros = len(divisor.this) - 1
            part = exp.Literal.number("0." + "0" * (zeros - 1) + "1" if zeros else "1")
            return exp.Paren(this=exp.Mul(this=node.this.copy(), expression=part))
    elif isinstance(divisor, exp.Literal) and not divisor.is_string and _SOME.search(divisor.this):
        return node.copy()

    def looked_at(value: exp.Expression, by: exp.Expression) -> exp.Expression:
        zero = exp.and_(
            exp.EQ(this=by.copy(), expression=exp.Literal.number(0)),
            exp.Not(this=exp.Is(this=value.copy(), expression=exp.Null())),
        )
        refused = call("error", exp.Literal.string("tm:22012:division by zero"))
        quotient = exp.Div(**{**node.args, "this": loose(value), "expression": loose(by)})
        return exp.Case(ifs=[exp.If(this=zero, true=refused)], default=quotient)

    return once([node.this, divisor], looked_at, "duckdb")


def _remainder(node: exp.Mod) -> None:
    """DuckDB divides for it, which overflows for the least number by -1; by 1 the rest is 0 as well."""
    if isinstance(node.expression, exp.Literal):
        return

    def looked_at(divisor: exp.Expression) -> exp.Expression:
        compared = exp.Cast(this=divisor.copy(), to=data_type(FLOAT8))  # a numeric may have no room for a 1
        minus_one = exp.EQ(this=compared, expression=exp.Neg(this=exp.Literal.number(1)))
        one = exp.Neg(this=exp.Paren(this=divisor.copy()))  # of its own type
        return exp.Case(ifs=[exp.If(this=minus_one, true=one)], default=loose(divisor))

    node.set("expression", once([node.expression], looked_at, "duckdb"))


def _typed_literals(node: exp.Binary) -> None:
    """DuckDB takes a whole number for as small as the other side is, and overflows where int4 would not."""
    for each in (node.this, node.expression):
        noted = each.meta.get("sql_type") if isinstance(each, exp.Literal) else None
        if noted is not None and noted.name in ("int4", "int8"):
            each.replace(exp.Cast(this=each.copy(), to=data_type(noted)))


_SPARK: dict[str, Callable[..., exp.Expression]] = {
    "DATE_ADD": lambda d, n: exp.Paren(this=exp.Add(this=_date(d), expression=n.copy())),
    "DATE_SUB": lambda d, n: exp.Paren(this=exp.Sub(this=_date(d), expression=n.copy())),
    "DATEDIFF": lambda a, b: exp.Paren(this=exp.Sub(this=_date(a), expression=_date(b))),
    "UNIX_MICROS": lambda x: call("epoch_us", x),
    "BROUND": lambda x, n: call("round_even", x, n),
    "DAYOFWEEK": lambda x: exp.Paren(this=exp.Add(this=call("dayofweek", x), expression=exp.Literal.number(1))),
    "WEEKDAY": lambda x: exp.Paren(this=exp.Sub(this=call("isodow", x), expression=exp.Literal.number(1))),
    "FROM_UTC_TIMESTAMP": lambda x, zone: call("timezone", zone, x),
    "TO_UTC_TIMESTAMP": lambda x, zone: call("timezone", zone, _local(x)),
    "SEQUENCE": lambda a, b, step: call("generate_series", a, b, step),
    "EXPLODE": lambda x: call("unnest", x),
    "PERCENTILE": lambda x, p: call("quantile_cont", exp.Cast(this=x.copy(), to=data_type(FLOAT8)), p),
    "MAKE_INTERVAL": _interval,
    "ELEMENT_AT": lambda a, n: call("list_extract", a, n),
    "TRY_ELEMENT_AT": lambda a, n: call("list_extract", a, n),
    "ARRAY_CONTAINS": lambda a, x: call("list_contains", a, x),
    "ARRAY_MIN": lambda a: call("list_min", a),
    "ARRAY_MAX": lambda a: call("list_max", a),
    "SIZE": lambda a: call("len", a),
    "ARRAY_COMPACT": lambda a: call("list_filter", a, _PRESENT),
    "COLLECT_LIST": lambda x: call("list", x),
    "COLLECT_SET": lambda x: call("list_distinct", call("list", x)),
    "SORT_ARRAY": lambda a, up: call("list_sort", a, exp.Literal.string("ASC" if up.this else "DESC")),
    "TRANSFORM": lambda a, pick: call("list_transform", a, pick),
    "STRUCT": lambda *items: call("row", *items),
    "ARRAY": lambda *items: exp.Array(expressions=[i.copy() for i in items]),
}


_LONG = frozenset(
    ["TM_FORMAT", "TM_JOIN", "TM_JOIN_ALL"]
    + [each.form for each in FUNCTIONS if each.grows]
)


def _may_grow(tree: exp.Expression) -> bool:
    """Whether texts that are put together may be long: literals are not, unless it is done again and again."""
    if tree.find(exp.Subquery, exp.CTE) is not None:
        return True
    return any(str(node.this).upper() in _LONG for node in tree.find_all(exp.Anonymous))


def text_of(tree: exp.Expression, identify: bool = False) -> str:
    """``tree`` as DuckDB reads it.  0A000 where it has no words for it."""
    return _text_of(tree, identify, copy=True)


def printed(tree: exp.Expression) -> str:
    """``tree``, which :func:`for_duckdb` made and nobody needs any more, with every identifier in quotes."""
    return _text_of(tree, True, copy=False)


def _text_of(tree: exp.Expression, identify: bool, copy: bool) -> str:
    try:
        return tree.sql("duckdb", identify=identify, comments=False, copy=copy)
    except (SqlglotError, ValueError) as error:
        raise untold("this query", error) from error


def _together(parts: list[exp.Expression]) -> exp.Expression:
    """Texts put together, looking at how long that will be; one by one, since functions here take two."""
    made = parts[0].copy()
    for part in parts[1:]:
        made = call("tm_concat", made, part)
    return made


def _of_arrays(node: exp.Anonymous) -> bool:
    return isinstance(node.parent, exp.Cast) and node.parent.to.this == exp.DataType.Type.ARRAY


def _ordinality(node: Ordinality) -> exp.Expression:
    """Lists that are taken apart side by side go on together."""
    rows = node.parent_select.expressions[0].this.expressions[0]
    behind = exp.Add(this=call("len", rows), expression=exp.Literal.number(1))
    return call("unnest", call("range", exp.Literal.number(1), behind))


def _spread(node: exp.AggFunc) -> None:
    """``var_pop`` and ``stddev_pop`` by the covariance: of one infinity or NaN DuckDB takes the variance for 0."""
    if isinstance(node.this, exp.Distinct):  # of two arguments there are no distinct ones in a tree
        return
    made = exp.CovarPop(this=node.this.copy(), expression=node.this.copy())
    whole: exp.Expression = made
    node.replace(made)
    if isinstance(node, exp.VariancePop):
        return
    while isinstance(whole.parent, (exp.Filter, exp.Window)) and whole.arg_key == "this":
        whole = whole.parent
    root = exp.Sqrt()
    whole.replace(root)
    root.set("this", whole)


_SUMS, _PRODUCTS = (exp.Add, exp.Sub), (exp.Mul, exp.Div, exp.IntDiv, exp.Mod)


def _in_brackets(node: exp.Binary) -> None:
    """Sums within a product are in brackets.  A user wrote them; who makes a product of arguments may not have, and a
    tree is printed as it stands."""
    for each in (node.this, node.expression):
        if isinstance(each, _SUMS):
            each.replace(exp.Paren(this=each.copy()))


def _fields_of_items(tree: exp.Expression) -> None:
    """In HAVING DuckDB takes ``r.k`` of a lambda's ``r`` for a column that is not grouped by, but not ``(r).k``: said
    so wherever there is a HAVING, since what is grouped by is known by what it says."""
    for each in list(tree.find_all(exp.Lambda)):
        names = {parameter.name for parameter in each.expressions}
        for field in list(each.this.find_all(exp.Column, exp.Dot)):
            if isinstance(field, exp.Column) and field.table in names:
                row = exp.Paren(this=field.args["table"].copy())
                field.replace(exp.Dot(this=row, expression=field.this.copy()))
            elif isinstance(field, exp.Dot) and isinstance(field.this, exp.Identifier) and field.this.name in names:
                field.set("this", exp.Paren(this=field.this.copy()))


def for_duckdb(
    tree: exp.Expression, grows: bool | None = None, used_up: bool = False, macros: Collection[str] = ()
) -> exp.Expression:
    """A copy of ``tree`` that DuckDB runs with the same result; no copy of one that nobody needs any more.

    ``grows``: whether texts that are put together are looked at for how long they become; ``None``: as ``tree``, which
    reads no relation, asks for.  ``macros``: what the engine that is asked has beside what every one of ours has.
    """
    grows = _may_grow(tree) if grows is None else grows
    holder = exp.Paren(this=tree if used_up else tree.copy())
    nodes = list(holder.walk())
    for node in reversed(nodes):
        if isinstance(node, _PRODUCTS):
            _in_brackets(node)
        if isinstance(node, Ordinality):
            node.replace(_ordinality(node))
        elif isinstance(node, exp.Anonymous) and (made := _SPARK.get(str(node.this).upper())):
            node.replace(made(*node.expressions))
        elif grows and isinstance(node, exp.DPipe):
            node.replace(_together([node.this, node.expression]))
        elif grows and isinstance(node, exp.Anonymous) and str(node.this).upper() == "CONCAT" and not _of_arrays(node):
            node.replace(_together(node.expressions))
        elif isinstance(node, exp.Div):
            node.replace(_quotient(node))
        elif isinstance(node, exp.Mod):
            _remainder(node)
        elif isinstance(node, (exp.Add, exp.Sub, exp.Mul)):
            _typed_literals(node)
            _one_by_one(node)
        elif isinstance(node, (exp.VariancePop, exp.StddevPop)):
            _spread(node)
        elif isinstance(node, exp.Array):
            node.set("value_constructor", True)  # a query alone in it is one value: printed ``ARRAY(…)`` it is all rows
        elif isinstance(node, exp.Extract) and node.name.upper() == "SECOND":
            node.replace(_seconds(node))
        elif isinstance(node, (exp.Like, exp.ILike)) and not isinstance(node.parent, exp.Escape):
            node.replace(exp.Escape(this=node.copy(), expression=exp.Literal.string("\\")))
    made = written_out(holder.this, macros)
    if any(isinstance(node, exp.Having) for node in nodes):
        _fields_of_items(made)
    return made
