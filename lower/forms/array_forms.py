"""What is done with arrays, item by item, in the words of both engines, where no function is called for it alone."""

from __future__ import annotations

from functions.arrays import here as _here
from functions.arrays import of_row
from values.limits import SERIES_MAX, TOO_MANY


def _of_row(parameters: str, spark: str, duckdb: str) -> tuple[str, str, str]:
    """``spark`` and ``duckdb`` are of a row ``r`` whose fields are called as the parameters are."""
    return parameters, *of_row(parameters, spark, duckdb)


_NO_SIZE = "RAISE_ERROR('tm:22004:dimension array or low bound array cannot be null')"
_MORE = "RAISE_ERROR('tm:0A000:arrays of more than one dimension are not supported')"
_LOWER = "RAISE_ERROR('tm:0A000:arrays with a lower bound of their own are not supported')"
_OTHER_SIZES = "RAISE_ERROR('tm:2202E:wrong number of array subscripts')"
_BAD_FILL = (
    "WHEN r.n IS NULL THEN RAISE_ERROR('tm:22004:dimension values cannot be null') "
    f"WHEN r.n > {SERIES_MAX} OR r.n < 0 THEN RAISE_ERROR('tm:54000:{TOO_MANY}')"
)

_BAD_PLACE = (
    "WHEN r.i IS NULL THEN RAISE_ERROR('tm:22004:array subscript in assignment must not be null') "
    "WHEN r.i < 1 OR r.i > 1 AND COALESCE({n}, 0) < 1 THEN "  # Postgres's begins there then
    "RAISE_ERROR('tm:2202E:array subscript out of range, arrays begin at 1') "
    f"WHEN r.i > {SERIES_MAX} THEN RAISE_ERROR('tm:54000:{TOO_MANY}')"
)

_FORMS = {
    "TM_ARRAY_WITHOUT": _of_row(
        "a x", "FILTER(r.a, v -> NOT (v <=> r.x))", "list_filter(r.a, lambda v: v IS DISTINCT FROM r.x)"
    ),
    "TM_ARRAY_FILLED": _of_row(
        "x n",
        f"CASE {_BAD_FILL} WHEN r.n = 0 THEN FILTER(ARRAY(r.x), v -> FALSE) "
        "ELSE TRANSFORM(SEQUENCE(1, r.n), v -> r.x) END",
        f"CASE {_here(_BAD_FILL)} ELSE list_transform(generate_series(1, r.n), lambda v: r.x) END",
    ),
    "TM_ARRAY_SLICE": _of_row(
        "a m n",
        "CASE WHEN r.a IS NULL OR r.m IS NULL OR r.n IS NULL THEN NULL "
        "WHEN LEAST(r.n, SIZE(r.a)) < GREATEST(r.m, 1) THEN FILTER(r.a, v -> FALSE) "
        "ELSE SLICE(r.a, GREATEST(r.m, 1), LEAST(r.n, SIZE(r.a)) - GREATEST(r.m, 1) + 1) END",
        "CASE WHEN r.a IS NULL OR r.m IS NULL OR r.n IS NULL THEN NULL "
        "WHEN least(r.n, len(r.a)) < greatest(r.m, 1) THEN list_filter(r.a, lambda v: FALSE) "
        "ELSE list_slice(r.a, greatest(r.m, 1), least(r.n, len(r.a))) END",
    ),
    "TM_ARRAY_PUT": _of_row(
        "a i v",
        f"CASE {_BAD_PLACE.format(n='SIZE(r.a)')} ELSE TRANSFORM(SEQUENCE(1, GREATEST(r.i, SIZE(r.a))), "
        "k -> CASE WHEN k = r.i THEN r.v ELSE TRY_ELEMENT_AT(r.a, k) END) END",
        f"CASE {_here(_BAD_PLACE).format(n='len(r.a)')} "
        "ELSE list_transform(generate_series(1, greatest(r.i, len(r.a))), "
        "lambda k: CASE WHEN k = r.i THEN r.v ELSE list_extract(r.a, k) END) END",
    ),
    "TM_ARRAY_HAS_ALL": _of_row(
        "a b",
        "CASE WHEN r.a IS NULL OR r.b IS NULL THEN NULL "
        "ELSE SIZE(FILTER(r.b, v -> NOT COALESCE(ARRAY_CONTAINS(r.a, v), FALSE))) = 0 END",
        "CASE WHEN r.a IS NULL OR r.b IS NULL THEN NULL "
        "ELSE len(list_filter(r.b, lambda v: v IS NULL OR NOT list_contains(r.a, v))) = 0 END",
    ),
    "TM_ARRAY_OVERLAPS": _of_row(
        "a b",
        "CASE WHEN r.a IS NULL OR r.b IS NULL THEN NULL "
        "ELSE SIZE(FILTER(r.b, v -> COALESCE(ARRAY_CONTAINS(r.a, v), FALSE))) > 0 END",
        "CASE WHEN r.a IS NULL OR r.b IS NULL THEN NULL "
        "ELSE len(list_filter(r.b, lambda v: v IS NOT NULL AND list_contains(r.a, v))) > 0 END",
    ),
    "TM_ARRAY_SIZES": _of_row(
        "n",
        f"CASE WHEN r.n IS NULL THEN {_NO_SIZE} WHEN SIZE(r.n) = 0 THEN 0 WHEN SIZE(r.n) > 1 THEN {_MORE} "
        "ELSE TRY_ELEMENT_AT(r.n, 1) END",
        f"CASE WHEN r.n IS NULL THEN {_here(_NO_SIZE)} WHEN len(r.n) = 0 THEN 0 WHEN len(r.n) > 1 THEN {_here(_MORE)} "
        "ELSE list_extract(r.n, 1) END",
    ),
    "TM_ARRAY_BOUNDS": _of_row(
        "n b",
        f"CASE WHEN r.b IS NULL THEN {_NO_SIZE} WHEN SIZE(r.b) <> 1 THEN {_OTHER_SIZES} "
        f"WHEN TRY_ELEMENT_AT(r.b, 1) = 1 THEN r.n ELSE {_LOWER} END",
        f"CASE WHEN r.b IS NULL THEN {_here(_NO_SIZE)} WHEN len(r.b) <> 1 THEN {_here(_OTHER_SIZES)} "
        f"WHEN list_extract(r.b, 1) = 1 THEN r.n ELSE {_here(_LOWER)} END",
    ),
    "TM_ARRAY_BOTH": _of_row(
        "a b",
        "CASE WHEN r.a IS NULL THEN r.b WHEN r.b IS NULL THEN r.a ELSE CONCAT(r.a, r.b) END",
        "CASE WHEN r.a IS NULL THEN r.b WHEN r.b IS NULL THEN r.a ELSE list_concat(r.a, r.b) END",
    ),
    # NULLs are the greatest of items in Postgres and in DuckDB, and the least in Spark.
    "TM_ARRAY_KEY": ("a", "TRANSFORM(:a, v -> STRUCT(v IS NULL AS n, v AS v))", "(:a)"),
}

SPARK_ARRAYS = {name: (parameters, spark) for name, (parameters, spark, _) in _FORMS.items()}
DUCKDB_ARRAYS = {name: (parameters, duckdb) for name, (parameters, _, duckdb) in _FORMS.items()}
