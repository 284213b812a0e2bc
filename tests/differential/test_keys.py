"""Every type through an index: a look-up finds what the comparison finds in PostgreSQL, however values are written."""

from __future__ import annotations

import pytest

from tests.differential.compare import difference
from tests.differential.postgres import Refusal, ask, missing, postgres
from tests.differential.routes import Lookups, make_in_postgres
from tests.differential.worlds import FAMILIES, POOLS, Query, World

needs_postgres = pytest.mark.skipif(missing() is not None, reason=str(missing()))

MORE = {
    "float4": ("1e-5", "16777217", "-NaN"), "float8": ("1e300", "0.30000000000000004"), "int8": ("9007199254740992",),
    "numeric(6,2)": ("0.105", "0.1"), "text": ("a  ", "é"), "char(4)": ("ab  ", "ä"),
    "uuid": ("{00000000000000000000000000000001}",), "macaddr": ("08002b:010203", "8:0:2b:1:2:3", "8:0:2b:1:2:4"),
    "macaddr8": ("0800.2b01.0203", " 08-00-2b-ff-fe-01-02-03:", "08:00:2b:ff:ff:01:02:03"),
    "time": ("12:34:56.789000",), "timestamptz": ("1970-01-01 01:00:00+01",), "bytea": ("a",),
    "numeric(12,4)": ("0.10001",),
}  # fmt: skip
"""Further ways to write a value, and values near to others."""


def literals(kind: str) -> tuple[str, ...]:
    return (*POOLS[kind], *MORE.get(kind, ()))


def beside(kind: str) -> tuple[str, ...]:
    return next((family for family in FAMILIES if kind in family), (kind,))


@pytest.fixture(scope="module")
def peer():
    with postgres() as connection:
        yield connection


KINDS = sorted(kind for kind in POOLS if kind not in ("interval", "jsonb") and not kind.endswith("]"))


@needs_postgres
def test_every_type_of_key_is_found_as_postgres_finds_it(peer):
    tables = {f"r{i}": {"k": kind, "n": "int4"} for i, kind in enumerate(KINDS)}
    rows = {
        name: [*((text, str(n)) for n, text in enumerate(POOLS[columns["k"]])), (None, "-1")]
        for name, columns in tables.items()
    }
    world = World(tables, rows)
    make_in_postgres(peer, world)
    lookups = Lookups(world, [(name, ("k",)) for name in tables])
    wrong, keyed = [], set()
    for name, columns in tables.items():
        for kind in beside(columns["k"]):
            for text in literals(kind):
                query = Query(f"select n, k from {name} where k = \x000\x00", ((text, kind),), False, True)
                theirs = ask(peer, query.written)
                for ours in (lookups(query), lookups.with_parameters(query)):
                    if ours is None:
                        continue
                    if kind == columns["k"]:
                        keyed.add(kind)
                    assert not isinstance(ours, Refusal) or isinstance(theirs, Refusal), (query.written, ours)
                    if differs := difference(theirs, ours, False):
                        wrong.append(f"{columns['k']} = {query.written}\n    {differs}")
    assert not wrong, "\n".join(wrong)
    assert keyed == set(KINDS)
