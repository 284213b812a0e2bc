"""The calls of :mod:`sql.forms.spark_forms`, written out for the in-process engine: their meaning in DuckDB's words."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from functions.registry import DUCKDB_FORMS
from sql.forms.array_forms import DUCKDB_ARRAYS
from sql.forms.common_forms import COMMON, in_duckdb
from sql.forms.regex import Regex, re2_replacement
from sql.forms.spark_forms import Build, all_groups, behind_all, certain_regex, expand, null_text, regex_of, string
from sql.forms.time_formats import written_format
from sql.trees.errors import unsupported
from sql.trees.nodes import call


def _number_text(form: str, carried: str = ":x") -> str:
    """A text that is to be a number, if it is one for Postgres: DuckDB makes 6 of ``5.5`` and 1000 of ``1_000``."""
    return rf"""CASE WHEN :x IS NULL OR regexp_full_match(:x, '\s*[+-]?{form}\s*') THEN {carried}
      ELSE error('tm:22P02:invalid input syntax for type ' || :kind || ': "' || :x || '"') END"""


def _shifted_left(bits: int) -> str:
    """A number of so many bits, shifted as C does: of the distance low bits count, and what goes over is lost."""
    half = 1 << (bits - 1)
    moved = f"(:x::HUGEINT * (1::HUGEINT << (:n & {bits - 1})) + {half}::HUGEINT)"
    return f"(({moved} & {2 * half - 1}::HUGEINT) - {half}::HUGEINT)"


FORMS: Mapping[str, tuple[str, str]] = {
    **{name: (parameters, in_duckdb(text)) for name, (parameters, text) in COMMON.items()},
    **DUCKDB_ARRAYS,
    **DUCKDB_FORMS,
    "TM_AS_FLOAT4": (
        "x",
        "CASE WHEN :x::FLOAT = 0 AND :x <> 0 THEN error('tm:22003:value out of range: underflow') ELSE :x::FLOAT END",
    ),
    "TM_BYTEA_TEXT": ("x", r"'\x' || lower(hex(:x))"),
    "TM_FRACTION_TEXT": ("x", r"regexp_replace(:x::VARCHAR, '^(-?)\.', '\10.')"),
    "TM_WHOLE_TEXT": ("x kind", _number_text("[0-9]+", ":x::HUGEINT")),
    "TM_NUMBER_TEXT": ("x kind", _number_text(r"([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?")),
    "TM_TIMESTAMPTZ_TEXT": ("x", ":x::VARCHAR"),
    "TM_TO_UTC": ("x zone", "timezone(:zone, :x::TIMESTAMP)"),
    "TM_MOMENT": ("x", "make_timestamp(:x)"),
    "TM_ISOYEAR": ("x", "isoyear(:x)"),
    "TM_DAY_NUMBER": ("x", "(date_diff('day', DATE '1970-01-01', :x) + 2440588)"),
    "TM_REPLACE": ("x a b", "tm_replace(:x, :a, :b)"),
    "TM_HEX": ("x", "lower(hex(:x))"),
    "TM_BYTES_JOIN": ("a b", "(:a || :b)"),
    "TM_TRUNC": ("x", "trunc(:x)"),
    "TM_TRUNC_FLOAT": ("x", "trunc(:x)"),
    "TM_CEIL_FLOAT": ("x", "ceil(:x)"),
    "TM_FLOOR_FLOAT": ("x", "floor(:x)"),
    "TM_ROUND_FLOAT": ("x", "round_even(:x, 0)"),
    "TM_SIGN": ("x", "sign(:x)"),
    "TM_PERCENTILE_DISC": ("p x", "quantile_disc(:x, :p)"),
    "TM_SHIFT_LEFT": ("x n", f"{_shifted_left(32)}::INTEGER"),
    "TM_SHIFT_LEFT_LONG": ("x n", f"{_shifted_left(64)}::BIGINT"),
    "TM_SHIFT_RIGHT": ("x n", "(:x >> (:n & 31))"),
    "TM_SHIFT_RIGHT_LONG": ("x n", "(:x >> (:n & 63))"),
}

_TIME = {
    "YYYY": "lpad(year(:x)::VARCHAR, 4, '0')", "YY": "right(lpad(year(:x)::VARCHAR, 4, '0'), 2)",
    "MM": "strftime(:x, '%m')", "DD": "strftime(:x, '%d')", "DDD": "strftime(:x, '%j')",
    "D": "(dayofweek(:x) + 1)::VARCHAR", "HH24": "strftime(:x, '%H')", "HH12": "strftime(:x, '%I')",
    "MI": "strftime(:x, '%M')", "SS": "strftime(:x, '%S')", "MS": "strftime(:x, '%g')", "US": "strftime(:x, '%f')",
    "AM": "strftime(:x, '%p')", "Q": "quarter(:x)::VARCHAR", "IYYY": "lpad(isoyear(:x)::VARCHAR, 4, '0')",
    "IW": "strftime(:x, '%V')", "MONTH": "strftime(:x, '%B')", "MON": "strftime(:x, '%b')",
    "DAY": "strftime(:x, '%A')", "DY": "strftime(:x, '%a')",
}  # fmt: skip


def _pattern(found: Regex) -> exp.Expression:
    if found.re2 is None:
        raise unsupported(
            "a regular expression with a word boundary, a look-around or a back reference over constants",
            hint="over a table it is answered",
        )
    return exp.Literal.string(found.re2)


def _matches(x: exp.Expression, pattern: exp.Expression, flags: exp.Expression) -> exp.Expression:
    found = regex_of(pattern, flags)
    return exp.cast(exp.null(), "boolean") if found is None else call("regexp_matches", x, _pattern(found))


def _replaced(x: exp.Expression, pattern: exp.Expression, new: exp.Expression, flags: exp.Expression) -> exp.Expression:
    options = string(flags) or ""
    found, to = certain_regex(pattern, exp.Literal.string("i" if "i" in options else "")), string(new)
    if found is None or to is None:
        return null_text()
    if "g" in options and found.length_min == 0:
        raise unsupported("replacing every match of a regular expression that matches the empty text")
    made = call("regexp_replace", x, _pattern(found), exp.Literal.string(re2_replacement(to)))
    if "g" in options:
        made.append("expressions", exp.Literal.string("g"))
    return made


def _taken(x: exp.Expression, pattern: exp.Expression, flags: exp.Expression) -> exp.Expression:
    options = string(flags) or ""
    found = certain_regex(pattern, exp.Literal.string("i" if options.startswith("i") else ""))
    if found is None:
        return null_text()
    group = exp.Literal.number(1 if found.groups and "whole" not in options else 0)
    taken = call("regexp_extract", x, _pattern(found), group)
    return exp.Case(ifs=[exp.If(this=call("regexp_matches", x, _pattern(found)), true=taken)])


def _groups(x: exp.Expression, pattern: exp.Expression, flags: exp.Expression) -> exp.Expression:
    found = all_groups(pattern, flags)
    if found is None:
        return exp.cast(exp.null(), "text[]", dialect="duckdb")
    numbers = range(1, found.groups + 1) if found.groups else [0]
    taken = [call("regexp_extract", x, _pattern(found), exp.Literal.number(n)) for n in numbers]
    return exp.Case(ifs=[exp.If(this=call("regexp_matches", x, _pattern(found)), true=exp.Array(expressions=taken))])


def _place(x: exp.Expression, pattern: exp.Expression, flags: exp.Expression) -> exp.Expression:
    """One more than what is before the first match has characters."""
    found = regex_of(pattern, flags)
    if found is None:
        return exp.cast(exp.null(), "int")
    before = exp.Literal.string(behind_all(_pattern(found).this))
    place = exp.Add(this=call("len", call("regexp_extract", x, before, exp.Literal.number(1))), expression=_ONE.copy())
    zero = exp.If(this=exp.Not(this=call("regexp_matches", x, _pattern(found))), true=exp.Literal.number(0))
    return exp.Case(ifs=[zero], default=place)


_ONE = exp.Literal.number(1)


def _counted(x: exp.Expression, pattern: exp.Expression, flags: exp.Expression) -> exp.Expression:
    found = certain_regex(pattern, flags)
    if found is None:
        return exp.cast(exp.null(), "int")
    if found.length_min == 0:
        raise unsupported("counting the matches of a regular expression that matches the empty text")
    return call("len", call("regexp_extract_all", x, _pattern(found)))


def _shown_time(x: exp.Expression, template: exp.Expression) -> exp.Expression:
    text = string(template)
    return null_text() if text is None else written_format(x, text, _TIME, "duckdb")


BUILT: Mapping[str, Build] = {
    "TM_MATCHES": _matches,
    "TM_REGEX_REPLACE": _replaced,
    "TM_REGEX_TAKE": _taken,
    "TM_REGEX_COUNT": _counted,
    "TM_REGEX_GROUPS": _groups,
    "TM_REGEX_PLACE": _place,
    "TM_TO_CHAR": _shown_time,
}


def written_out(tree: exp.Expression) -> exp.Expression:
    """``tree`` with every form in DuckDB's words."""
    return expand(tree, FORMS, BUILT, "duckdb")
