"""What a row says of a function is what PostgreSQL says of it, and what the engines do."""

from __future__ import annotations

import pytest

from functions.aggregates import Aggregate
from functions.registry import FUNCTIONS, SIGNED
from functions.row import Function
from tests.differential.ours import Ours, fill_spark
from tests.differential.postgres import Answer, missing, postgres
from values.types import OID

NAMES = {oid: name for name, oid in OID.items()} | {
    2276: "any", 2283: "any", 2776: "any", 2277: "anyarray", 5077: "any", 5078: "anycompatiblearray",
}  # fmt: skip
"""Types by their oids.  What may be of any type is ``any`` in rows of aggregates, however Postgres says it."""

_ASKED = """
select proname, array(select unnest(proargtypes)), prorettype, prokind, provolatile, proisstrict, proretset,
       provariadic <> 0
from pg_proc where pronamespace = 'pg_catalog'::regnamespace
"""

_NO_FUNCTION = {"current_date", "localtimestamp"}
"""Words of the grammar."""

_OURS = {
    ("approx_count_distinct", ("any",)),
    ("strpos", ("bytea", "bytea")),  # what position(… in …) calls
    ("convert_from", ("bytea", "text")), ("convert_to", ("text", "text")),  # of a name
    ("jsonb_set", ("jsonb", "text[]", "jsonb")), ("jsonb_insert", ("jsonb", "text[]", "jsonb")),  # a default
}  # fmt: skip
"""Signatures that Postgres has not, or not so."""


def _said(row: Function | Aggregate) -> tuple:
    folds = isinstance(row, Aggregate)
    kind = "f" if not folds else "w" if row.of_windows else "a"
    many, variadic = (False, False) if folds else (row.many, row.variadic)
    return _any(row.result.name), kind, row.volatility[0], row.strict, many, variadic


def _any(name: str) -> str:
    return "any" if name == "anycompatible" else name


@pytest.mark.skipif(missing() is not None, reason=str(missing()))
def test_a_row_says_of_its_function_what_postgres_says():
    with postgres() as connection:
        asked = connection.execute(_ASKED).fetchall()
    theirs = {
        (name, tuple(NAMES.get(each) for each in arguments)): (NAMES.get(result), *rest)
        for name, arguments, result, *rest in asked
    }
    ours = {(name, tuple(map(_any, arguments))): row for (name, arguments), row in SIGNED.items()}
    assert {key for key in ours if key not in theirs and key[0] not in _NO_FUNCTION} == _OURS
    wrong = {key: (_said(row), theirs[key]) for key, row in ours.items() if key in theirs and _said(row) != theirs[key]}
    assert wrong == {}


VALUES = {
    "bool": "true", "int4": "1", "int8": "1::int8", "float8": "1::float8", "numeric": "1.5", "text": "'a'",
    "bytea": "'a'::bytea", "jsonb": "'{}'::jsonb", "text[]": "'{a}'::text[]", "date": "'2024-02-29'::date",
    "timestamp": "'2024-02-29'::timestamp", "timestamptz": "'2024-02-29'::timestamptz", "interval": "'1 day'::interval",
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
            null = f"null::{row.arguments[place].name}"
            made.append(f"{row.name}({', '.join([*given[:place], null, *given[place + 1 :]])})")
    return made


CALLS = [call for row in FUNCTIONS if row.strict and not row.lacking for call in calls_with_null(row)]
AT_ONCE = 20


def not_null(ours: Ours, behind: str) -> list[tuple[str, object]]:
    """Of :data:`CALLS` those that are not NULL, with what they are."""
    wrong = []
    for at in range(0, len(CALLS), AT_ONCE):
        some = CALLS[at : at + AT_ONCE]
        found = ours.ask(f"select {', '.join(some)} {behind}")
        values = found.rows[0] if isinstance(found, Answer) else [found] * len(some)
        wrong += [(call, value) for call, value in zip(some, values, strict=True) if value is not None]
    return wrong


def test_what_is_strict_is_null_wherever_an_argument_is():
    assert len(CALLS) > 400
    assert not_null(Ours(), "") == []


@pytest.mark.spark
def test_what_is_strict_is_so_on_spark(spark):
    fill_spark(spark)
    assert not_null(Ours(spark), "from u limit 1") == []
