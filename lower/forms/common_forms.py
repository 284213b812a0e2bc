"""Forms that both engines understand word for word; see :mod:`lower.spark.forms`, whose terms these are.

The in-process engine says ``error`` where Spark says ``RAISE_ERROR``, and nothing else differs.
"""

from __future__ import annotations

from collections.abc import Mapping

from values.limits import SERIES_MAX, TOO_MANY

COMMON: Mapping[str, tuple[str, str]] = {
    "TM_NOT_NAN": ("x", "CASE WHEN ISNAN(:x) THEN RAISE_ERROR('tm:22003:numeric has no NaN here') ELSE :x END"),
    "TM_BOOL_OUT": ("x", "CASE WHEN :x THEN 't' WHEN NOT :x THEN 'f' END"),
    "TM_SUBSTR": (
        "x s n",
        "CASE WHEN :n < 0 AND :x IS NOT NULL AND :s IS NOT NULL "
        "THEN RAISE_ERROR('tm:22011:negative substring length not allowed') "
        "WHEN :s >= 1 THEN SUBSTRING(:x, :s, :n) WHEN CAST(:s AS BIGINT) + :n <= 1 THEN LEFT(:x, 0) "
        "ELSE SUBSTRING(:x, 1, CAST(CAST(:s AS BIGINT) + :n - 1 AS INT)) END",
    ),
    "TM_SUBSTR_FROM": ("x s", "CASE WHEN :s < 1 THEN :x ELSE SUBSTRING(:x, :s) END"),
    "TM_SERIES_END": (  # an argument of what makes the list, not a CASE around it: see `lower.spark.forms`
        "a b s",
        "CASE WHEN (CAST(:b AS DOUBLE) - CAST(:a AS DOUBLE)) / NULLIF(CAST(:s AS DOUBLE), 0) "
        f">= {SERIES_MAX} THEN RAISE_ERROR('tm:54000:{TOO_MANY}') ELSE :b END",
    ),
    "TM_DECADE": (
        "x",
        "CASE WHEN YEAR(:x) < 10 THEN RAISE_ERROR('tm:22008:timestamp out of range') "
        "ELSE MAKE_DATE(YEAR(:x) - YEAR(:x) % 10, 1, 1) END",
    ),
    "TM_CENTURY": ("x", "MAKE_DATE(YEAR(:x) - (YEAR(:x) - 1) % 100, 1, 1)"),
    "TM_MILLENNIUM": ("x", "MAKE_DATE(YEAR(:x) - (YEAR(:x) - 1) % 1000, 1, 1)"),
    "TM_FLOAT_OVERFLOW": ("", "RAISE_ERROR('tm:22003:value out of range: overflow')"),
    "TM_FLOAT_UNDERFLOW": ("", "RAISE_ERROR('tm:22003:value out of range: underflow')"),
    "TM_NO_STEP": ("", "RAISE_ERROR('tm:22023:step size cannot equal zero')"),
}
"""Parameters by name, and the text in which ``:name`` stands for one."""


def in_duckdb(text: str) -> str:
    """A form's text as the in-process engine has it."""
    return text.replace("RAISE_ERROR(", "error(")
