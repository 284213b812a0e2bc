"""What would be too large is refused in this process before the memory is taken."""

from __future__ import annotations

import resource

import pytest

from adapter.catalog_relations import CatalogRelations
from collection.limits import VALUE_BYTES_MAX
from journal.errors import TidemarkError
from sql.parse import parse
from sql.select import plan_select
from tests.sql.doubles import names
from tests.sql.test_stories import rich_shop

GROWN_MIB_MAX = 300
"""Of the process, while something is refused: several values as large as one may be, and DuckDB's own."""


@pytest.fixture(scope="module")
def relations() -> CatalogRelations:
    return CatalogRelations()


def answer(relations: CatalogRelations, sql: str) -> list[tuple]:
    plan = plan_select(parse(sql).ast, rich_shop(), names())
    found = relations.constant(plan.tree, [(each.name, each.type) for each in plan.columns])
    return list(zip(*(column.to_pylist() for column in found.columns), strict=True))


@pytest.mark.parametrize("sql", [
    "SELECT repeat('a', 1000000000)",
    "SELECT length(repeat('a', 1000000000))",
    "SELECT lpad('x', 1000000000)",
    "SELECT length(rpad('x', 1000000000, 'ab'))",
    "SELECT length(replace(repeat('a', 100000), 'a', repeat('b', 20000)))",
    "SELECT format('%1000000000s', 'a')",
    "SELECT array_to_string(ARRAY['a', 'b', 'c'], repeat('x', 5000000))",
    "SELECT ('[' || rtrim(repeat('1e131000,', 1000), ',') || ']')::jsonb ->> 0",
    "SELECT length(repeat(i::text || 'a', 1000000)) FROM generate_series(1, 3000) AS g(i)",
    "WITH a AS (SELECT repeat('a', 1000) AS x), b AS (SELECT x || x || x || x || x || x || x || x AS x FROM a),"
    " c AS (SELECT x || x || x || x || x || x || x || x AS x FROM b),"
    " d AS (SELECT x || x || x || x || x || x || x || x AS x FROM c),"
    " e AS (SELECT concat(x, x, x, x, x, x, x, x) AS x FROM d),"
    " f AS (SELECT concat(x, x, x, x, x, x, x, x) AS x FROM e),"
    " g AS (SELECT concat(x, x, x, x, x, x, x, x) AS x FROM f) SELECT length(x) FROM g",
    "SELECT count(*) FROM generate_series(1, 500000000)",
    "SELECT count(*) FROM generate_series(500000000, 1, -1)",
    "SELECT count(*) FROM generate_series(-9000000000000000000, 9000000000000000000)",
    "SELECT count(*) FROM generate_series(0.0, 500000.0, 0.001)",
    "SELECT count(*) FROM generate_series(timestamp '2000-01-01', timestamp '2100-01-01', interval '1 second')",
])  # fmt: skip
def test_what_is_too_large_is_refused_before_the_memory_is_taken(relations, sql):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(TidemarkError) as caught:
        answer(relations, sql)
    assert caught.value.sqlstate == "54000", caught.value
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < GROWN_MIB_MAX * 1024


@pytest.mark.parametrize("sql", [
    "SELECT length(string_agg(repeat('a', 1000000), '')) FROM generate_series(1, 3000)",
    "SELECT cardinality(array_agg(repeat('a', 1000000))) FROM generate_series(1, 3000)",
])  # fmt: skip
def test_an_aggregate_that_takes_too_much_memory_is_refused(relations, sql):
    with pytest.raises(TidemarkError) as caught:
        answer(relations, sql)
    assert caught.value.sqlstate in ("53200", "54000"), caught.value
    assert answer(relations, "SELECT 1") == [(1,)]


def test_what_fits_is_answered(relations):
    assert answer(relations, f"SELECT length(repeat('ab', {VALUE_BYTES_MAX // 2}))") == [(VALUE_BYTES_MAX,)]
    assert answer(relations, "SELECT repeat('ab', 2), repeat('a', 0), repeat('a', -1), repeat(NULL, 2)") == [
        ("abab", "", "", None)
    ]
    assert answer(relations, "SELECT lpad('x', 6, 'ab'), rpad('x', 4), lpad('abc', 2), lpad('a', -1), rpad('é', 2, '')"
                  ) == [("ababax", "x   ", "ab", "", "é")]  # fmt: skip
    assert answer(relations, "SELECT replace('aXb', 'X', 'yy'), replace('a', '', 'b'), replace('a', NULL, 'b')") == [
        ("ayyb", "a", None)
    ]
    assert answer(relations, "SELECT concat(x, NULL, x) || x FROM (SELECT repeat('a', 2) AS x) AS t") == [("aaaaaa",)]
    assert answer(relations, "SELECT count(*) FROM generate_series(1, 1000000)") == [(1_000_000,)]
