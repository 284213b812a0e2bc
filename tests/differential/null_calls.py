"""Calls of functions that are strict, each with one argument that is NULL."""

from __future__ import annotations

from collections.abc import Sequence

from functions.registry import FUNCTIONS, RULED
from functions.row import Function
from tests.differential.ours import Ours
from tests.differential.postgres import Answer

VALUES = {
    "bool": "true", "int2": "1::int2", "float4": "1::float4", "bpchar": "'a'::char(2)",
    "int4": "1", "int8": "1::int8", "float8": "1::float8", "numeric": "1.5", "text": "'a'",
    "bytea": "'a'::bytea", "jsonb": "'{}'::jsonb", "text[]": "'{a}'::text[]", "date": "'2024-02-29'::date",
    "timestamp": "'2024-02-29'::timestamp", "timestamptz": "'2024-02-29'::timestamptz", "interval": "'1 day'::interval",
    "macaddr": "macaddr '08:00:2b:01:02:03'", "macaddr8": "macaddr8 '08:00:2b:01:02:03'",
}  # fmt: skip
EMPTY = VALUES | {
    "int4": "0", "int8": "0::int8", "float8": "0::float8", "numeric": "0.0", "text": "''", "bytea": "''::bytea",
    "text[]": "'{}'::text[]",
}  # fmt: skip
"""What functions make an exception of."""


def calls_with_null(row: Function) -> list[str]:
    """Calls of ``row`` of which one argument is NULL each: any but flags and what may be there any number of times."""
    several = row.variadic or row.pattern is not None and row.pattern.flags
    made = []
    for values in (VALUES,) if row.pattern is not None else (VALUES, EMPTY):
        given = [values[kind.name] for kind in row.arguments]
        if several:
            given[-1] = "'i'"
        for place in range(len(given) - bool(several)):
            null = f"null::{row.arguments[place].name.replace('bpchar', 'char(2)')}"
            made.append(f"{row.name}({', '.join([*given[:place], null, *given[place + 1 :]])})")
    return made


_OF_WORDS = {"extract", "position", "normalize", "date_part", "date_trunc", "timezone"}
"""What has words between its arguments, or a word for one, of which not any text is one."""


def _called(row: Function) -> bool:
    known = all(each.name in VALUES for each in row.arguments) and row.name not in _OF_WORDS
    return row.strict and not row.lacking and not row.many and (known or not row.ruled)


CALLS = [call for row in (*FUNCTIONS, *RULED) if _called(row) for call in calls_with_null(row)]
AT_ONCE = 20


def not_null(ours: Ours, behind: str, calls: Sequence[str] = CALLS) -> list[tuple[str, object]]:
    """Of ``calls`` those that are not NULL, with what they are."""
    wrong = []
    for at in range(0, len(calls), AT_ONCE):
        some = calls[at : at + AT_ONCE]
        found = ours.ask(f"select {', '.join(some)} {behind}")
        values = found.rows[0] if isinstance(found, Answer) else [found] * len(some)
        wrong += [(call, value) for call, value in zip(some, values, strict=True) if value is not None]
    return wrong
