"""What a macro for one of Postgres's functions gives is what :mod:`sql.system.signatures` says it gives."""

from __future__ import annotations

import pytest

from adapter.duck.catalog_relations import CatalogRelations
from adapter.duck.macros import MACROS, helpers_of
from sql.system.resolve import BY_NAME, Signature
from sql.system.types import ROWS, element_of
from tests.sql.doubles import ddl, shop

INTERNAL = {"class_name", "class_oid", "is_visible", "namespace_name", "namespace_oid", "proc_oid", "serial_of",
            "vector_out", "is_any", "similar_to", "json_path"}
"""Macros that no client calls by these names."""

_INTEGERS = {"TINYINT", "UTINYINT", "SMALLINT", "INTEGER", "BIGINT", "UINTEGER", "HUGEINT", "UBIGINT"}
_NUMBERS = _INTEGERS | {"DOUBLE", "FLOAT"}


def given(name: str) -> str:
    """What the engine holds a value of a type as."""
    if (element := element_of(name)) is not None:
        return f"{given(element)}[]"
    if name in ("int2", "int4", "int8", "float4", "float8", "bool", "oid"):
        return {"int2": "SMALLINT", "int4": "INTEGER", "int8": "BIGINT", "float4": "FLOAT", "float8": "DOUBLE",
                "bool": "BOOLEAN", "oid": "UINTEGER"}[name]  # fmt: skip
    if ROWS[name].category in "DT":
        return {"timestamp": "TIMESTAMP", "timestamptz": "TIMESTAMPTZ", "date": "DATE", "time": "TIME"}.get(
            name, "INTERVAL"
        )
    if name.startswith("reg"):
        return "UINTEGER"
    return "DOUBLE" if name == "numeric" else "VARCHAR"


def fits(made: str, name: str) -> bool:
    """Whether a value that the engine calls ``made`` becomes one of Postgres's type ``name`` without a loss."""
    if made == '"NULL"':
        return True
    if name in ("anyarray", "anycompatiblearray", "record") or element_of(name) is not None:
        return made.endswith("[]") or made.startswith("STRUCT")
    if name == "bool":
        return made == "BOOLEAN"
    if name in ("int2", "int4", "int8", "oid", "xid", "numeric", "float4", "float8") or name.startswith("reg"):
        return made in _NUMBERS or made.startswith("DECIMAL")
    if name in ("interval", "date", "timestamp", "timestamptz"):
        return made == {"timestamptz": "TIMESTAMP WITH TIME ZONE"}.get(name, name.upper())
    return made in ("VARCHAR", "JSON", "BLOB")


OTHER_FORMS = (
    "Invalid LIST argument", "does not support the supplied arguments", "No function matches", "needs to be List",
)  # fmt: skip
"""What the engine says of a form of a macro that it has not."""


def signatures() -> list[tuple[str, Signature]]:
    return [(name, each) for name in sorted(MACROS.keys() - INTERNAL) for each in BY_NAME[name]]


def test_every_macro_that_a_client_can_call_is_declared():
    assert MACROS.keys() - INTERNAL == MACROS.keys() & BY_NAME.keys()


@pytest.fixture(scope="module")
def cursor():
    database = CatalogRelations()._database(ddl(shop()), "tidemark")
    for name in MACROS:
        database._macro(name)
    return database._engine.cursor()


def test_a_macro_gives_what_it_is_declared_to_give(cursor):
    wrong, asked = [], 0
    for name, each in signatures():
        arguments = ", ".join(f"CAST(NULL AS {given(one)})" for one in each.arguments)
        try:
            ((_, made, *_),) = cursor.execute(f"DESCRIBE SELECT tm_{name}({arguments})").fetchall()
        except Exception as error:
            if any(words in str(error) for words in OTHER_FORMS):
                continue  # the engine knows fewer forms: it says so when it is asked
            raise
        asked += 1
        if each.rows:  # a list of what the rows are
            assert made.endswith("[]"), (name, made)
            made = made[:-2]
        if not fits(made, each.result):
            wrong.append((name, each.arguments, made, each.result))
    assert not wrong
    assert asked > 100


def test_what_macros_look_things_up_in_is_there(cursor):
    tables = {row[0] for row in cursor.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
    assert {f"tm.{helper}" for name in MACROS for helper in helpers_of(name)} <= tables
