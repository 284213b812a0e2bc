"""A query over relations answers by what they hold, or says why one engine must be asked alone."""

from __future__ import annotations

import re

import pytest
from sqlglot import exp

from lower.duckdb.decided import Undecided, decided
from lower.duckdb.lowering import text_of
from sql.binding.bind import bind_query
from sql.syntax.parse import parse
from tests.sql.doubles import ddl, empty_image, names

IMAGE = ddl(
    empty_image(),
    "create table t (k int4, x int8, f float8, s text)",
    "create table u (k int4, v text)",
    'create table c ("V" int4)',
)
COLUMNS = {item.id: [c.name for c in item.stored] for item in IMAGE.objects()}


def bound(query: str) -> exp.Expression:
    return bind_query(parse(query).ast, IMAGE, names()).tree


def told(query: str, inexact: bool = False) -> str:
    return text_of(decided(bound(query), COLUMNS, inexact), identify=True)


@pytest.mark.parametrize("query, order", [
    ("select row_number() over (partition by k order by x) from t",
     'ORDER BY "t"."x", "t"."k", "t"."x", "t"."f", "t"."s")'),
    ("select lag(s) over (order by k) from t join u using (k)",
     'ORDER BY COALESCE("t"."k", "u"."k"), "t"."k", "t"."x", "t"."f", "t"."s", "u"."k", "u"."v")'),
    ("select k, row_number() over (order by count(*)) from t group by 1", 'ORDER BY COUNT(*), "t"."k")'),
    ("select rank() over (order by x) from t", 'ORDER BY "t"."x")'),
    ("select count(*) over (order by x) from t", 'ORDER BY "t"."x")'),
    ("select count(*) over (order by x rows 1 preceding) from t",
     'ORDER BY "t"."x", "t"."k", "t"."x", "t"."f", "t"."s" rows'),
    ("select first_value(s) over (order by x) from t", 'ORDER BY "t"."x", "t"."k", "t"."x", "t"."f", "t"."s")'),
    ("select row_number() over w from t window w as (order by s)",
     'ORDER BY "t"."s", "t"."k", "t"."x", "t"."f", "t"."s")'),
    ("with q as (select x as y from t) select row_number() over (order by y) from q", 'ORDER BY "q"."y", "q"."y")'),
    ("select * from (values (1, 2)) v(a, b), lateral (select u.v from u where u.k = a) l order by a limit 1",
     'ORDER BY "v"."a", 1, 2, 3 LIMIT 1'),
    ("select string_agg(s, ',' order by x) from t", 'ORDER BY "t"."x", "t"."s")'),
])  # fmt: skip
def test_of_rows_that_tie_all_of_their_columns_decide(query, order):
    assert order in told(query)


@pytest.mark.parametrize("query, why", [
    ("select last_value(s) over (order by x) from t", "last_value() chooses among rows that tie"),
    ("select nth_value(s, 2) over (order by x) from t", "nth_value() chooses among rows that tie"),
    ("select string_agg(s, ',') from t", "string_agg() joins values"),
    ("select row_number() over (order by k) from t group by rollup (k)", "grouping sets"),
    ('select u.v, c."V" from u, c', "names in it differ in case alone"),
    ("select f from t where sin(f) > 0", "the last digits of sin() are an engine's own"),
    ("select avg(f) from t", "the last digits of avg() are an engine's own"),
    ("select sum(f) over (order by k) from t", "the last digits of sum() of floats are an engine's own"),
])  # fmt: skip
def test_what_cannot_be_decided_says_why(query, why):
    with pytest.raises(Undecided, match=re.escape(why)):
        told(query)


@pytest.mark.parametrize("query", ["select sum(f) from t", "select avg(f), stddev(f) from t", "select exp(f) from t"])
def test_last_digits_alone_may_be_let_be(query):
    assert told(query, inexact=True)


@pytest.mark.parametrize("query", [
    "select sum(x), avg(x), stddev(x), min(f), max(f) from t", "select f * 2 + 1, f::text, sqrt(f) from t",
    "select array_agg(s order by x), string_agg(distinct s, ',') from t",
])  # fmt: skip
def test_what_is_the_same_in_any_order_stays_as_it_is(query):
    assert told(query) == text_of(bound(query), identify=True)
