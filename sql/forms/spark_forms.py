"""Functions of Postgres that Spark has not, or has with another meaning, written out in Spark's terms.

The checker puts a call of ``TM_…`` into the tree; :func:`written_out` replaces it when the tree is printed, when every
parameter has become a literal.  The in-process engine has the same calls written out in its own terms
(``lower/duckdb/forms.py``), and a differential test holds both to Postgres.  An argument may appear several
times in a form and is then evaluated several times, which is why nothing volatile may be one.

A form refuses a row by ``raise_error('tm:SQLSTATE:message')``, which ``controllers/compute/failures.py`` takes apart.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache

import sqlglot
from sqlglot import exp

from functions.registry import OWN, SPARK_FORMS
from functions.row import within
from sql.forms.array_forms import SPARK_ARRAYS
from sql.forms.common_forms import COMMON
from sql.forms.regex import Regex, java_replacement, read_regex, read_similar
from sql.forms.time_formats import spark_format
from sql.trees.errors import unsupported
from sql.trees.nodes import Ordinality, call, cast, copied
from values.limits import VALUE_BYTES_MAX
from values.types import SqlType

Build = Callable[..., exp.Expression]


_REPLACED_AT_MOST = (
    f":a <> '' AND CAST(OCTET_LENGTH(:x) AS BIGINT) * OCTET_LENGTH(:b) > {VALUE_BYTES_MAX}L * OCTET_LENGTH(:a)"
)
"""As much as if all of the text were what is replaced."""

_TAKEN_OUT = "CAST(OCTET_LENGTH(:x) - OCTET_LENGTH(REPLACE(:x, :a, '')) AS BIGINT)"
_REPLACED = f"OCTET_LENGTH(:x) + {_TAKEN_OUT} * OCTET_LENGTH(:b) / OCTET_LENGTH(:a) - {_TAKEN_OUT} > {VALUE_BYTES_MAX}"
"""What it will be, for texts that may be named several times."""

_REFERENCE = re.compile(r"\\[1-9&]")

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


def string(node: exp.Expression) -> str | None:
    """The text of a constant (a literal, a literal cast to text); ``None`` for NULL.  0A000 for anything else."""
    while isinstance(node, (exp.Cast, exp.Paren)):
        node = node.this
    if isinstance(node, exp.Null):
        return None
    if isinstance(node, exp.Literal) and node.is_string:
        return node.this
    raise unsupported("a pattern or format that is not a constant")


def is_constant(node: exp.Expression) -> bool:
    """Whether :func:`string` will know it once parameters are there."""
    while isinstance(node, (exp.Cast, exp.Paren)):
        node = node.this
    return isinstance(node, (exp.Null, exp.Parameter)) or (isinstance(node, exp.Literal) and node.is_string)


def null_text() -> exp.Expression:
    return exp.cast(exp.null(), "text")


def regex_of(pattern: exp.Expression, flags: exp.Expression, groups_before: int = 0) -> Regex | None:
    """The pattern read, or ``None`` for NULL."""
    text, options = string(pattern), string(flags) or ""
    if text is None:
        return None
    if "similar" in options:
        text = read_similar(text)
    return read_regex(text, options.startswith("i"), groups_before)


def certain_regex(pattern: exp.Expression, flags: exp.Expression, groups_before: int = 0) -> Regex | None:
    """As :func:`regex_of`, where it matters which text is found.  0A000 where that may differ from Postgres's."""
    found = regex_of(pattern, flags, groups_before)
    if found is not None and not found.certain:
        raise unsupported(
            "taking text by a regular expression with alternatives of different lengths, repeated groups or several "
            "quantifiers of which one is not greedy",
            hint="which text it finds would not be sure to be the one that Postgres finds",
        )
    return found


def _matches(x: exp.Expression, pattern: exp.Expression, flags: exp.Expression) -> exp.Expression:
    found = regex_of(pattern, flags)
    if found is None:
        return exp.cast(exp.null(), "boolean")
    return exp.Paren(this=exp.RegexpLike(this=x.copy(), expression=exp.Literal.string(found.java)))


def _replaced(x: exp.Expression, pattern: exp.Expression, new: exp.Expression, flags: exp.Expression) -> exp.Expression:
    options = string(flags) or ""
    case, every = exp.Literal.string("i" if "i" in options else ""), "g" in options
    to = string(new)
    found = certain_regex(pattern, case, 0 if every else 2)
    if found is None or to is None:
        return null_text()
    if every and found.length_min == 0:
        raise unsupported("replacing every match of a regular expression that matches the empty text")
    if every:
        java = exp.Literal.string(found.java)
        kept = _replaced_within(x, java, found.length_min, to)
        return call("REGEXP_REPLACE", kept, java, exp.Literal.string(java_replacement(to)))
    # Spark replaces every match, so the first is taken together with all that is before and after it.
    options_end = found.java.index(")") + 1
    whole = f"{found.java[:options_end]}^(.*?)({found.java[options_end:]})(.*)\\z"
    put = f"$1{java_replacement(to, 2)}${found.groups + 3}"
    return call("REGEXP_REPLACE", x, exp.Literal.string(whole), exp.Literal.string(put))


def _replaced_within(x: exp.Expression, java: exp.Literal, least: int, new: str) -> exp.Expression:
    """``x``, refused where each match of ``java``, of ``least`` characters or more, replaced by ``new`` would make too
    much of it.  What cannot grow needs no look; a text that may be named several times is asked for what matches."""
    references, size = len(_REFERENCE.findall(new)), len(new.encode())
    if size <= least and not references:
        return x
    octets, more = "CAST(OCTET_LENGTH(:x) AS BIGINT)", size + (references - 1) * least
    too_much = f"{octets} * {least + more} > {VALUE_BYTES_MAX * least}L"
    if isinstance(x, (exp.Column, exp.Literal)):
        found = f"({octets} - OCTET_LENGTH(REGEXP_REPLACE(:x, :java, '')))"
        too_much = f"{too_much} AND {octets} * {least} + {found} * {more} > {VALUE_BYTES_MAX * least}L"
    return filled(("x java", within(too_much, ":x")), [x, java], "spark")


def _taken(x: exp.Expression, pattern: exp.Expression, flags: exp.Expression) -> exp.Expression:
    """``substring(x from pattern)``: the first group where there is one.  ``whole`` in the flags: the whole match."""
    options = string(flags) or ""
    found = certain_regex(pattern, exp.Literal.string("i" if options.startswith("i") else ""))
    if found is None:
        return null_text()
    java = exp.Literal.string(found.java)
    group = exp.Literal.number(1 if found.groups and "whole" not in options else 0)
    taken = call("REGEXP_EXTRACT", x, java, group)
    return exp.Case(ifs=[exp.If(this=exp.RegexpLike(this=x.copy(), expression=java.copy()), true=taken)])


def all_groups(pattern: exp.Expression, flags: exp.Expression) -> Regex | None:
    """As :func:`certain_regex`, where all of its groups are taken.  0A000 where one may be NULL."""
    options = string(flags) or ""
    found = certain_regex(pattern, exp.Literal.string("i" if "i" in options else ""))
    if found is not None and not found.every:
        raise unsupported(
            "a regular expression with a group that does not take part in every match",
            hint="take each group by substring(… from …)",
        )
    return found


def _groups(x: exp.Expression, pattern: exp.Expression, flags: exp.Expression) -> exp.Expression:
    found = all_groups(pattern, flags)
    if found is None:
        return exp.cast(exp.null(), "array<string>", dialect="spark")
    java = exp.Literal.string(found.java)
    numbers = range(1, found.groups + 1) if found.groups else [0]
    taken = call("ARRAY", *(call("REGEXP_EXTRACT", x, java, exp.Literal.number(n)) for n in numbers))
    return exp.Case(ifs=[exp.If(this=exp.RegexpLike(this=x.copy(), expression=java.copy()), true=taken)])


def _place(x: exp.Expression, pattern: exp.Expression, flags: exp.Expression) -> exp.Expression:
    """One more than what is before the first match has characters (REGEXP_INSTR counts some of them twice)."""
    found = regex_of(pattern, flags, 1)
    if found is None:
        return exp.cast(exp.null(), "int")
    java = exp.Literal.string(found.java)
    before = call("REGEXP_EXTRACT", x, exp.Literal.string(behind_all(found.java)), exp.Literal.number(1))
    place = exp.Add(this=call("LENGTH", before), expression=exp.Literal.number(1))
    none = exp.If(this=exp.Not(this=exp.RegexpLike(this=x.copy(), expression=java)), true=exp.Literal.number(0))
    return exp.Case(ifs=[none], default=place)


def behind_all(pattern: str) -> str:
    """``pattern``, an engine's, behind as little as can be before it, which is the first group."""
    options_end = pattern.index(")") + 1
    return f"{pattern[:options_end]}^(.*?)(?:{pattern[options_end:]})"


def _counted(x: exp.Expression, pattern: exp.Expression, flags: exp.Expression) -> exp.Expression:
    found = certain_regex(pattern, flags)
    if found is None:
        return exp.cast(exp.null(), "int")
    if found.length_min == 0:
        raise unsupported("counting the matches of a regular expression that matches the empty text")
    return call("REGEXP_COUNT", x, exp.Literal.string(found.java))


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
    "TM_MATCHES": _matches,
    "TM_REGEX_REPLACE": _replaced,
    "TM_REGEX_TAKE": _taken,
    "TM_REGEX_COUNT": _counted,
    "TM_REGEX_GROUPS": _groups,
    "TM_REGEX_PLACE": _place,
    "TM_TO_CHAR": _shown_time,
    "TM_PERCENTILE_DISC": _percentile,
}
"""Forms that depend on the text of a constant argument."""


@lru_cache(maxsize=512)
def _template(text: str, dialect: str) -> exp.Expression:
    return sqlglot.parse_one(text, read=dialect)


def filled(form: tuple[str, str], args: list[exp.Expression], dialect: str) -> exp.Expression:
    """A form's text as a tree, with ``args`` in the places of its parameters."""
    values = dict(zip(form[0].split(), args, strict=True))
    holder = exp.Paren(this=_template(form[1], dialect).copy())
    for place in list(holder.find_all(exp.Placeholder)):
        value = values[place.name]
        plain = isinstance(value, (exp.Column, exp.Literal, exp.Cast, exp.Func, exp.Paren, exp.Null))
        place.replace(value.copy() if plain else exp.Paren(this=value.copy()))
    return holder if not isinstance(holder.this, (exp.Func, exp.Paren)) else holder.this


def expand(
    tree: exp.Expression, forms: Mapping[str, tuple[str, str]], built: Mapping[str, Build], dialect: str
) -> exp.Expression:
    """A copy of ``tree`` with every form written out, innermost first.  What the engines run in Python stays a call."""
    holder = exp.Paren(this=copied(tree))
    calls = [n for n in holder.walk() if isinstance(n, exp.Anonymous) and str(n.this).startswith("TM_")]
    for node in reversed([n for n in calls if str(n.this).lower() not in OWN]):
        name = str(node.this)
        node.replace(
            built[name](*node.expressions) if name in built else filled(forms[name], node.expressions, dialect)
        )
    return holder.this


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
    """``tree`` in Spark's own terms.  2201B and 0A000 for patterns and formats that cannot be."""
    holder = exp.Paren(this=expand(tree, SPARK, BUILT, "spark"))
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
