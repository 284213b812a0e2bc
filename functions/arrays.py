"""Functions of arrays of anything, of one dimension that counts from 1.

The arguments are put into one row first, and all is made of that: each is evaluated once, whatever it is, and neither
a function of ours nor a subquery comes to stand inside of a lambda, where Spark has none.
"""

from __future__ import annotations

import re
from dataclasses import replace

from functions.row import ALONE, STABLE, Function, built, by_grammar, by_rule, native

_FIELD = re.compile(r"\br\.(\w+)")


def of_row(parameters: str, spark: str, duckdb: str) -> tuple[str, str]:
    """``spark`` and ``duckdb`` are of a row ``r`` whose fields are called as the parameters are.

    To DuckDB ``r.a`` is first of all of a column ``r``, where there is one; ``r['a']`` is of the lambda's.
    """
    names = parameters.split()
    fields = ", ".join(f"'{name}', :{name}" for name in names)
    row = ", ".join(f"'{name}': :{name}" for name in names)
    here = _FIELD.sub(r"r['\1']", duckdb)
    return (
        f"ELEMENT_AT(TRANSFORM(ARRAY(NAMED_STRUCT({fields})), r -> {spark}), 1)",
        f"list_extract(list_transform([{{{row}}}], lambda r: {here}), 1)",
    )


def here(text: str) -> str:
    """What is said to Spark, of types and refusals, as it is said to DuckDB."""
    return text.replace("RAISE_ERROR(", "error(").replace("AS STRING", "AS VARCHAR")


def _row(
    text: str, parameters: str, spark: str, duckdb: str, by_key: bool = False, strict: bool = False
) -> Function:
    return native(text, *of_row(parameters, spark, duckdb), maybe_null=True, by_key=by_key, strict=strict)


_PLACES = "FILTER(TRANSFORM(r.a, (v, i) -> CASE WHEN v <=> r.b THEN i + 1 END), p -> p IS NOT NULL)"
_PLACES_HERE = (
    "list_filter(list_transform(r.a, lambda v, i: CASE WHEN v IS NOT DISTINCT FROM r.b THEN i::INTEGER END), "
    "lambda p: p IS NOT NULL)"
)
_NO_PLACE = "RAISE_ERROR('tm:22004:initial position must not be null')"
_NO_TRIM = "RAISE_ERROR(CONCAT('tm:2202E:number of elements to trim must be between 0 and ', CAST({} AS STRING)))"

def _counted(text: str, told: str, maybe_null: bool = True) -> Function:
    """Of one array, by how many items it has: ``told`` with ``{n}`` for the number, and ``{s}`` for a type of texts."""
    return native(
        text,
        told.format(n="SIZE(:a)", s="STRING"),
        told.format(n="len(:a)::INTEGER", s="VARCHAR"),
        maybe_null=maybe_null,
    )


_SUBSCRIPTS = (
    "CASE WHEN r.b = 1 AND SIZE(r.a) > 0{there} THEN TRANSFORM(r.a, (v, i) -> {at}) END",
    "CASE WHEN r.b = 1 AND len(r.a) > 0{there} THEN list_transform(r.a, lambda v, i: ({at})::INTEGER) END",
)


def _subscripts(text: str, parameters: str, spark: str, duckdb: str, there: str = "") -> Function:
    told = (each.format(there=there, at=at) for each, at in zip(_SUBSCRIPTS, (spark, duckdb), strict=True))
    return replace(_row(text, parameters, *told, strict=True), many=True)


_IN_FIRST = "CASE WHEN :b = 1 AND {{n}} > 0 THEN {} END"
"""Of another dimension than the first there is nothing, nor of an empty array."""

FUNCTIONS = (
    _counted("cardinality(anyarray) -> int4", "CASE WHEN NOT :a IS NULL THEN {n} END", maybe_null=False),
    _counted("array_length(anyarray, int4) -> int4", _IN_FIRST.format("{n}")),
    _counted("array_upper(anyarray, int4) -> int4", _IN_FIRST.format("{n}")),
    _counted("array_lower(anyarray, int4) -> int4", _IN_FIRST.format("1")),
    _counted("array_ndims(anyarray) -> int4", "CASE WHEN {n} > 0 THEN 1 END"),
    _counted("array_dims(anyarray) -> text", "CASE WHEN {n} > 0 THEN CONCAT('[1:', CAST({n} AS {s}), ']') END"),
    built(
        "array_cat(anycompatiblearray, anycompatiblearray) -> anycompatiblearray",
        "TM_ARRAY_BOTH",
        strict=False,
        maybe_null=True,
    ),
    _row("array_positions(anycompatiblearray, anycompatible) -> int4[]", "a b", _PLACES, _PLACES_HERE, by_key=True),
    _row(
        "array_position(anycompatiblearray, anycompatible) -> int4",
        "a b",
        f"TRY_ELEMENT_AT({_PLACES}, 1)",
        f"list_extract({_PLACES_HERE}, 1)",
        by_key=True,
    ),
    _row(
        "array_position(anycompatiblearray, anycompatible, int4) -> int4",
        "a b c",
        f"CASE WHEN r.a IS NULL THEN NULL WHEN r.c IS NULL THEN {_NO_PLACE} "
        f"ELSE TRY_ELEMENT_AT(FILTER({_PLACES}, q -> q >= r.c), 1) END",
        f"CASE WHEN r.a IS NULL THEN NULL WHEN r.c IS NULL THEN {here(_NO_PLACE)} "
        f"ELSE list_extract(list_filter({_PLACES_HERE}, lambda q: q >= r.c), 1) END",
        by_key=True,
    ),
    _row(
        "array_replace(anycompatiblearray, anycompatible, anycompatible) -> anycompatiblearray",
        "a b c",
        "TRANSFORM(r.a, v -> CASE WHEN v <=> r.b THEN r.c ELSE v END)",
        "list_transform(r.a, lambda v: CASE WHEN v IS NOT DISTINCT FROM r.b THEN r.c ELSE v END)",
        by_key=True,
    ),
    _row(
        "trim_array(anyarray, int4) -> anyarray",
        "a b",
        "CASE WHEN r.a IS NULL OR r.b IS NULL THEN NULL "
        f"WHEN r.b < 0 OR r.b > SIZE(r.a) THEN {_NO_TRIM.format('SIZE(r.a)')} "
        "ELSE SLICE(r.a, 1, SIZE(r.a) - r.b) END",
        "CASE WHEN r.a IS NULL OR r.b IS NULL THEN NULL "
        f"WHEN r.b < 0 OR r.b > len(r.a) THEN {here(_NO_TRIM.format('len(r.a)'))} "
        "ELSE list_slice(r.a, 1, len(r.a) - r.b) END",
        strict=True,
    ),
    _subscripts("generate_subscripts(anyarray, int4) -> int4", "a b", "i + 1", "i"),
    _subscripts(
        "generate_subscripts(anyarray, int4, bool) -> int4",
        "a b c",
        "CASE WHEN r.c THEN SIZE(r.a) - i ELSE i + 1 END",
        "CASE WHEN r.c THEN len(r.a) + 1 - i ELSE i END",
        " AND r.c IS NOT NULL",
    ),
    by_grammar("unnest(anyarray) -> any", many=True),
    *(
        by_rule(f"{text} -> anycompatiblearray", strict=False, zone=ALONE)
        for text in (
            "array_append(anycompatiblearray, anycompatible)",
            "array_prepend(anycompatible, anycompatiblearray)",
            "array_remove(anycompatiblearray, anycompatible)",
        )
    ),
    by_rule("array_fill(any, int4[]) -> anyarray", strict=False),
    by_rule("array_fill(any, int4[], int4[]) -> anyarray", strict=False),
    by_grammar("array_to_string(anyarray, text) -> text", volatility=STABLE),
    by_grammar("array_to_string(anyarray, text, text) -> text", volatility=STABLE, strict=False),
    built("arrayoverlap(anyarray, anyarray) -> bool", "TM_ARRAY_OVERLAPS", by_key=True, maybe_null=True),
    built("arraycontains(anyarray, anyarray) -> bool", "TM_ARRAY_HAS_ALL", by_key=True, maybe_null=True),
)
