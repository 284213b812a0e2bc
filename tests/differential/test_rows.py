"""What a row says of a function is what PostgreSQL says of it, and what the engines do."""

from __future__ import annotations

import pytest

from functions.aggregates import Aggregate
from functions.registry import SIGNED
from functions.row import Function
from tests.differential.null_calls import CALLS, not_null
from tests.differential.ours import Ours
from tests.differential.postgres import missing, postgres
from values.types import OID

NAMES = {oid: name for name, oid in OID.items()} | {
    2276: "any", 2283: "any", 2776: "any", 2277: "anyarray", 2205: "regclass", 5077: "any", 5078: "anycompatiblearray",
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


def test_what_is_strict_is_null_wherever_an_argument_is():
    assert len(CALLS) > 400
    assert not_null(Ours(), "") == []
