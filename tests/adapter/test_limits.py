"""What would be too large is refused in this process before the memory is taken."""

from __future__ import annotations

import resource

import pytest

from adapter.duck.calls import ESCAPED, SAME, WORDS, of_the_engine
from adapter.duck.catalog_relations import CatalogRelations
from journal.errors import TidemarkError
from sql.statements.select import plan_select
from sql.syntax.parse import parse
from tests.adapter.test_duck_gate import Asked
from tests.sql.doubles import names
from tests.sql.test_stories import rich_shop
from values.limits import VALUE_BYTES_MAX

GROWN_MIB_MAX = 300
"""Of the process, while something is refused: several values as large as one may be, and DuckDB's own."""


@pytest.fixture(scope="module")
def relations() -> CatalogRelations:
    return CatalogRelations()


def answer(relations: CatalogRelations, sql: str) -> list[tuple]:
    plan = plan_select(parse(sql).ast, rich_shop(), names())
    found = relations.constant(plan.constant([]), [(each.name, each.type) for each in plan.columns])
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


LONG = "repeat('a', 4000000)"
QUOTES = "repeat('\"', 1000000)"


def nested(name: str, times: int, text: str) -> str:
    return f"{name}(" * times + text + ")" * times


@pytest.mark.parametrize("asked", [
    "length(repeat('a', 1000000000))",
    "length(\"repeat\"('a', 1000000000))",
    "length(pg_catalog.\"repeat\"('a', 1000000000))",
    "length(\"lpad\"('a', 1000000000))",
    "length(printf('%1000000000s', 'a'))",
    "length(\"printf\"('%1000000000d', 1))",
    "length(space(1000000000))",
    f"length(regexp_replace({LONG}, 'a', repeat('b', 1000), 'g'))",
    f"length(\"regexp_replace\"({LONG}, 'a', repeat('b', 1000), 'g'))",
    f"length(regexp_replace({LONG}, '(a*)', repeat('\\1', 1000)))",
    f"length(stuff({LONG}, 1, 1, {LONG}))",
    f"(select length(y || y) from (select x || x || x || x || x || x || x || x as y from (select {LONG} as x) s) t)",
    f"(select length(concat(y, y)) from (select concat(x, x, x, x, x, x, x, x) as y from (select {LONG} as x) s) t)",
    f"length(concat_ws({LONG}, 'a', 'b', 'c', 'd'))",
    f"length(format('%s%s%s', {LONG}, {LONG}, {LONG}))",
    "array_length(range(1, 200000000), 1)",
    "generate_series(1, 200000000)",
    "generate_series(now(), now() + interval '1 year', interval '1 second')",
    "generate_series(timestamp '2000-01-01', timestamp '2100-01-01', interval '1 second')",
    f"length({nested('quote_literal', 12, QUOTES)})",
    f"length({nested('quote_ident', 12, QUOTES)})",
    f"length(to_json({nested('to_json', 12, QUOTES)}::text)::text)",
    f"length(json_build_object('a', {LONG} || {LONG})::text)",
    f"(select length(array_to_string(array_cat(x, x), ',')) from (select array[{LONG}, {LONG}] as x) s)",
])  # fmt: skip
def test_what_is_too_large_is_refused_where_system_relations_are_read(asked):
    """However the function is spelt: what makes long values of short ones is ours there, or nothing."""
    question = Asked()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(TidemarkError) as caught:
        question.ask(f"select {asked}, n.oid from pg_namespace n")
    assert caught.value.sqlstate in ("54000", "53200", "42883", "42804"), caught.value
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < GROWN_MIB_MAX * 1024


GROWING = frozenset(
    "repeat lpad rpad replace regexp_replace concat concat_ws || printf range generate_series list_concat array_concat "
    "array_cat list_resize list_transform hex to_json json_object json_array row_to_json array_to_json "
    "json_group_array json_group_object quote_literal quote_nullable quote_ident".split()
)
"""The engine's own that make long values of short ones, or write their arguments with escapes."""

BOUNDED = {"to_json", "json_object", "json_array", "row_to_json", "array_to_json"}
"""Those of them that are called, each of what was looked at (``tm_fits``)."""


def test_what_makes_long_values_is_called_by_no_name_of_the_engines():
    assert GROWING & (of_the_engine() | SAME | WORDS) == BOUNDED
    assert set(ESCAPED.values()) >= BOUNDED


@pytest.mark.parametrize("asked, wanted", [
    ("n.nspname || 1", "public1"), ("null || n.nspname", None), ("array_cat(array[1], array[2])", "{1,2}"),
    ("array[1] || array[2]", "{1,2}"), ("concat(n.nspname, null, 1)", "public1"),
    ("concat_ws('-', n.nspname, null, 1)", "public-1"), ("regexp_replace(n.nspname, '(b)', '\\1x', 'g')", "pubxlic"),
    ("regexp_replace(n.nspname, 'u', repeat('y', 2))", "pyyblic"), ("format('%I-%s', 'A', n.nspname)", '"A"-public'),
    ("array_to_string(array(select generate_series(3, 1, -1)), ',')", "3,2,1"), ("to_json(n.nspname)", '"public"'),
    ("array_to_string(array(select generate_series(timestamp '2024-01-01', timestamp '2024-01-02', interval '1 day')), "
     "',')",
     "2024-01-01 00:00:00,2024-01-02 00:00:00"),
    ("json_build_object('a', n.nspname)", '{"a":"public"}'), ("quote_literal('a''b')", "'a''b'"),
    ("(select max(g) from lateral generate_series(1, length(n.nspname)) g)", 6),
    ("\"regexp_replace\"(n.nspname, 'u', 'x')", "pxblic"), ("'\\x00'::bytea || '\\x01'::bytea", b"\x00\x01"),
])  # fmt: skip
def test_what_fits_is_answered_where_system_relations_are_read(asked, wanted):
    assert Asked().ask(f"select {asked} from pg_namespace n where n.nspname = 'public'") == [(wanted,)]
