"""What two types become together is what PostgreSQL makes of them: the value that is kept depends on it."""

from __future__ import annotations

import itertools

import pytest

from journal.errors import TidemarkError
from sql.statements.select import plan_select
from sql.syntax.parse import parse
from tests.differential.postgres import Answer, ask, missing
from tests.differential.worlds import POOLS
from tests.sql.doubles import ddl, empty_image, names
from values.types import OID

FORMS = (
    "nullif({a}, {b})", "coalesce({a}, {b})", "case when true then {a} else {b} end",
    "case when true then {a} when true then {b} end", "greatest({a}, {b})", "array[{a}, {b}]", "{a} || array[{b}]",
    "array[{a}] || {b}", "array[{a}] || array[{b}]", "case {a} when {b} then {a} end", "{a} + {b}", "{a} - {b}",
    "{a} * {b}", "{a} / {b}", "lag({a}, 1, {b}) over ()",
)  # fmt: skip
FAMILIES = (
    ("int2", "int4", "int8", "numeric(6,2)", "numeric", "float4", "float8"),
    ("text", "varchar(6)", "varchar"),
    ("date", "timestamp", "timestamptz"),
    ("macaddr", "macaddr8"),
)
"""Types that become one another.  A ``char`` beside another text is text here, and a ``char`` in Postgres."""

needs_postgres = pytest.mark.skipif(missing() is not None, reason=str(missing()))


def differing(peer, pairs: list[tuple[str, str]]) -> list[str]:
    kinds = sorted({kind for pair in pairs for kind in pair})
    create = "create table of_types (" + ", ".join(f"c{i} {kind}" for i, kind in enumerate(kinds)) + ")"
    peer.execute("drop table if exists of_types")
    peer.execute(create)
    image, found = ddl(empty_image(), create), []
    for form, (a, b) in itertools.product(FORMS, pairs):
        query = f"select {form.format(a=f'c{kinds.index(a)}', b=f'c{kinds.index(b)}')} as x from of_types"
        theirs = ask(peer, query)
        try:
            plan = plan_select(parse(query).ast, image, names())
        except TidemarkError:
            continue  # refused here, whatever it is there: test_differential has those
        if isinstance(theirs, Answer) and theirs.types[0] != OID[plan.columns[0].type.name]:
            found.append(f"{form} of {a} and {b}: {plan.columns[0].type.name} here, OID {theirs.types[0]} there")
    return found


@needs_postgres
def test_what_two_types_become(peer):
    assert not differing(peer, [pair for family in FAMILIES for pair in itertools.product(family, repeat=2)])


@needs_postgres
@pytest.mark.long
def test_what_any_two_types_become(peer):
    kinds = [kind for kind in POOLS if not kind.startswith("char")] + ["numeric[]", "int8[]"]
    assert not differing(peer, list(itertools.product(kinds, repeat=2)))
