"""Functions of Postgres that Spark has not, or has with another meaning, written out in Spark's terms.

The checker puts a call of ``TM_…`` into the tree; :func:`written_out` replaces it when the tree is printed, when every
parameter has become a literal.  The in-process engine has the same calls written out in its own terms
(``lower/duckdb/forms.py``), and a differential test holds both to Postgres.  An argument may appear several
times in a form and is then evaluated several times, which is why nothing volatile may be one.

A form refuses a row by ``raise_error('tm:SQLSTATE:message')``, which ``controllers/compute/failures.py`` takes apart.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from functions.registry import SPARK_FORMS
from functions.row import within
from lower.forms.array_forms import SPARK_ARRAYS
from lower.forms.common_forms import COMMON
from lower.forms.filling import Build, expand, filled, null_text, string
from lower.forms.regex_forms import SPARK_REGEXES
from lower.forms.time_formats import spark_format
from trees.nodes import Ordinality, call, cast
from values.limits import VALUE_BYTES_MAX
from values.types import SqlType

_REPLACED_AT_MOST = (
    f":a <> '' AND CAST(OCTET_LENGTH(:x) AS BIGINT) * OCTET_LENGTH(:b) > {VALUE_BYTES_MAX}L * OCTET_LENGTH(:a)"
)
"""As much as if all of the text were what is replaced."""

_TAKEN_OUT = "CAST(OCTET_LENGTH(:x) - OCTET_LENGTH(REPLACE(:x, :a, '')) AS BIGINT)"
_REPLACED = f"OCTET_LENGTH(:x) + {_TAKEN_OUT} * OCTET_LENGTH(:b) / OCTET_LENGTH(:a) - {_TAKEN_OUT} > {VALUE_BYTES_MAX}"
"""What it will be, for texts that may be named several times."""

JOINED_MAX = 8
"""Texts that ``||`` joins without a look at what they make together: each is bounded by itself."""

SPARK: Mapping[str, tuple[str, str]] = {
    **COMMON,
    **SPARK_ARRAYS,
    **SPARK_FORMS,
    "TM_AS_FLOAT4": (
        "x",
        "CASE WHEN ABS(CAST(:x AS FLOAT)) = FLOAT('Infinity') AND ABS(:x) <> DOUBLE('Infinity') "
        "THEN RAISE_ERROR('tm:22003:value out of range: overflow') WHEN CAST(:x AS FLOAT) = 0 AND :x <> 0 "
        "THEN RAISE_ERROR('tm:22003:value out of range: underflow') ELSE CAST(:x AS FLOAT) END",
    ),
    "TM_BYTEA_TEXT": ("x", r"CONCAT('\\x', LOWER(HEX(:x)))"),
    "TM_FRACTION_TEXT": ("x", "CAST(:x AS STRING)"),
    "TM_WHOLE_TEXT": ("x kind", ":x"),
    "TM_NUMBER_TEXT": ("x kind", ":x"),
    "TM_TIMESTAMPTZ_TEXT": ("x", "CONCAT(CAST(:x AS STRING), '+00')"),
    # Of a time that the clocks repeat Java takes the first, Postgres the second: the one that the offset of the day
    # after gives, if it is that time then.  No offset is changed by more than a day.
    "TM_TO_UTC": (
        "x zone",
        "CASE WHEN FROM_UTC_TIMESTAMP(TO_UTC_TIMESTAMP(:x + INTERVAL '1' DAY, :zone) - INTERVAL '1' DAY, :zone) = :x "
        "THEN TO_UTC_TIMESTAMP(:x + INTERVAL '1' DAY, :zone) - INTERVAL '1' DAY ELSE TO_UTC_TIMESTAMP(:x, :zone) END",
    ),
    "TM_MOMENT": ("x", "TIMESTAMP_MICROS(:x)"),
    "TM_DAY_NUMBER": ("x", "(DATEDIFF(:x, DATE '1970-01-01') + 2440588)"),
    "TM_ISOYEAR": ("x", "EXTRACT(YEAROFWEEK FROM :x)"),
    "TM_HEX": ("x", "LOWER(HEX(:x))"),
    "TM_BYTES_JOIN": ("a b", "CONCAT(:a, :b)"),
    "TM_TRUNC": ("x", "CASE WHEN :x < 0 THEN CEIL(:x) ELSE FLOOR(:x) END"),
    "TM_TRUNC_FLOAT": (
        "x",
        "CASE WHEN ISNAN(:x) OR ABS(:x) >= 4503599627370496 THEN :x WHEN :x < 0 THEN CAST(CEIL(:x) AS DOUBLE) "
        "ELSE CAST(FLOOR(:x) AS DOUBLE) END",
    ),
    "TM_CEIL_FLOAT": (
        "x",
        "CASE WHEN ISNAN(:x) OR ABS(:x) >= 4503599627370496 THEN :x ELSE CAST(CEIL(:x) AS DOUBLE) END",
    ),
    "TM_FLOOR_FLOAT": (
        "x",
        "CASE WHEN ISNAN(:x) OR ABS(:x) >= 4503599627370496 THEN :x ELSE CAST(FLOOR(:x) AS DOUBLE) END",
    ),
    "TM_ROUND_FLOAT": ("x", "RINT(:x)"),
    "TM_SIGN": ("x", "CASE WHEN ISNAN(:x) THEN 0 ELSE SIGN(:x) END"),
    "TM_SHIFT_LEFT": ("x n", "SHIFTLEFT(:x, :n)"),
    "TM_SHIFT_LEFT_LONG": ("x n", "SHIFTLEFT(:x, :n)"),
    "TM_SHIFT_RIGHT": ("x n", "SHIFTRIGHT(:x, :n)"),
    "TM_SHIFT_RIGHT_LONG": ("x n", "SHIFTRIGHT(:x, :n)"),
    "TM_TRUNC_TIME": ("unit x", "DATE_TRUNC(:unit, :x)"),
}  # fmt: skip
"""Parameters by name, and the text in which ``:name`` stands for one."""


def _shown_time(x: exp.Expression, template: exp.Expression) -> exp.Expression:
    text = string(template)
    return null_text() if text is None else spark_format(x, text)


def _percentile(fraction: exp.Expression, x: exp.Expression) -> exp.Expression:
    """Built by hand: sqlglot would print it as an approximation."""
    order = exp.Order(expressions=[exp.Ordered(this=x.copy(), nulls_first=True)])
    return exp.WithinGroup(this=call("PERCENTILE_DISC", fraction), expression=order)


def _texts_replaced(x: exp.Expression, a: exp.Expression, b: exp.Expression) -> exp.Expression:
    """``replace(x, a, b)``; of an empty ``a`` there is none in Spark either.  What cannot grow needs no look."""
    old, new = (each.this if isinstance(each, exp.Literal) and each.is_string else None for each in (a, b))
    if old is not None and new is not None and len(new.encode()) <= len(old.encode()):
        return call("REPLACE", x, a, b)
    too_much = f"{_REPLACED_AT_MOST} AND {_REPLACED}" if isinstance(x, (exp.Column, exp.Literal)) else _REPLACED_AT_MOST
    return filled(("x a b", f"REPLACE(:x, :a, {within(too_much, ':b')})"), [x, a, b], "spark")


BUILT: Mapping[str, Build] = {
    "TM_REPLACE": _texts_replaced,
    **SPARK_REGEXES,
    "TM_TO_CHAR": _shown_time,
    "TM_PERCENTILE_DISC": _percentile,
}
"""Forms that depend on the text of a constant argument."""


def _numbered(select: exp.Select) -> None:
    """Rows with their numbers, for which Spark has a function that gives both at once."""
    rows, number = select.expressions
    at = exp.to_identifier("_at" if rows.alias.lower() != "_at" else "_n", quoted=True)
    made = call("POSEXPLODE", *rows.this.expressions)
    both = exp.Aliases(this=made, expressions=[at, exp.to_identifier(rows.alias, quoted=True)])
    inner = exp.Subquery(this=exp.Select(expressions=[both]), alias=exp.TableAlias(this=exp.to_identifier("_rows")))
    since_one = cast(exp.Add(this=exp.column(at.copy()), expression=exp.Literal.number(1)), SqlType("int8"))
    outputs = [(rows, exp.column(exp.to_identifier(rows.alias, quoted=True))), (number, since_one)]
    select.set("expressions", [exp.alias_(made, each.args["alias"].copy()) for each, made in outputs])
    select.set("from_", exp.From(this=inner))


def written_out(tree: exp.Expression) -> exp.Expression:
    """A copy of ``tree`` in Spark's own terms.  2201B and 0A000 for patterns and formats that cannot be."""
    holder = exp.Paren(this=expand(tree.copy(), SPARK, BUILT, "spark"))
    for node in list(holder.find_all(Ordinality)):
        _numbered(node.parent_select)
    for node in reversed(list(holder.find_all(exp.DPipe, exp.Anonymous))):
        if isinstance(node, exp.DPipe):
            if not isinstance(node.parent, exp.DPipe) or node.arg_key != "this":
                _join_within(*_chain(node))
        elif str(node.this) == "CONCAT" and len(node.expressions) > JOINED_MAX:
            _join_within(node.expressions[0], node.expressions)
        elif str(node.this) == "CONCAT_WS" and len(node.expressions) > JOINED_MAX:
            between, *texts = node.expressions
            _join_within(between, [*texts, *[between] * len(texts)])
    return holder.this


def _chain(node: exp.DPipe) -> tuple[exp.Expression, list[exp.Expression]]:
    """The first text of ``a || b || …``, and all of them."""
    texts: list[exp.Expression] = []
    found: exp.Expression = node
    while isinstance(found, exp.DPipe):
        texts.append(found.expression)
        found = found.this
    return found, [*texts, found]


def _join_within(first: exp.Expression, texts: list[exp.Expression]) -> None:
    """Have ``first`` refuse what ``texts``, if they are many, are too much together: before any of them is joined."""
    unknown = [text for text in texts if not isinstance(text, exp.Literal)]
    if len(unknown) <= JOINED_MAX:
        return
    names = [f"x{i}" for i in range(len(unknown))]
    total = " + ".join(f"COALESCE(CAST(OCTET_LENGTH(:{name}) AS BIGINT), 0)" for name in names)
    form = " ".join([*names, "x"]), within(f"{total} > {VALUE_BYTES_MAX}", ":x")
    first.replace(filled(form, [*unknown, first], "spark"))
