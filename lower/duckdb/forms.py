"""The calls of :mod:`lower.spark.forms`, written out for the in-process engine: their meaning in DuckDB's words."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sqlglot import exp

from functions.registry import DUCKDB_FORMS
from lower.forms.array_forms import DUCKDB_ARRAYS
from lower.forms.common_forms import COMMON, in_duckdb
from lower.forms.filling import Build, expand, null_text, string
from lower.forms.regex_forms import DUCKDB_REGEXES
from lower.forms.time_formats import written_format


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
    "TM_SAME_LETTERS": ("x", "tm_same_letters(:x)"),
    "TM_SAME_WORDS": ("x", "tm_same_words(:x)"),
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


def _shown_time(x: exp.Expression, template: exp.Expression) -> exp.Expression:
    text = string(template)
    return null_text() if text is None else written_format(x, text, _TIME, "duckdb")


BUILT: Mapping[str, Build] = {
    **DUCKDB_REGEXES,
    "TM_TO_CHAR": _shown_time,
}


def written_out(tree: exp.Expression, stay: Collection[str] = ()) -> exp.Expression:
    """``tree``, which is used up, with every form in DuckDB's words; calls of the names in ``stay`` are its own."""
    return expand(tree, FORMS, BUILT, "duckdb", stay)
