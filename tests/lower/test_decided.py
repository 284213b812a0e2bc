"""A query over relations answers by what they hold, or says why one engine must be asked alone."""

from __future__ import annotations

import re

import pytest

from lower.duckdb.decided import Undecided, decided
from lower.duckdb.lowering import for_duckdb, text_of
from lower.spelled import spelled
from plan import relations as r
from plan import scalars as s
from plan.calls import aggregate, call
from plan.types import INT4, TEXT
from sql.algebra.queries import plan_over
from sql.binding.bind import bind_query
from sql.syntax.parse import parse
from tests.sql.doubles import ddl, empty_image, names

IMAGE = ddl(
    empty_image(),
    "create table t (k int4, x int8, f float8, s text)",
    "create table u (k int4, v text)",
    'create table c ("V" int4)',
)
COLUMNS = {item.id: item.stored for item in IMAGE.objects()}


def column(place: int, kind=TEXT) -> s.Column:
    return s.Column(kind, True, place)


def planned(query: str) -> r.Query:
    return plan_over(bind_query(parse(query).ast, IMAGE, names()).tree, COLUMNS)


def text(query: r.Query) -> str:
    return text_of(spelled(query.relation, query.names), identify=True)


def told(query: str, inexact: bool = False) -> str:
    return text(decided(planned(query), inexact))


@pytest.mark.parametrize("query, order", [
    ("select row_number() over (partition by k order by x) from t", 'ORDER BY "t0"."x", "t0"."k", "t0"."f", "t0"."s")'),
    ("select lag(s) over (order by k) from t join u using (k)",
     'ORDER BY COALESCE("t0"."k", "t1"."k"), "t0"."k", "t0"."x", "t0"."f", "t0"."s", "t1"."k", "t1"."v")'),
    ("select k, row_number() over (order by count(*)) from t group by 1", 'ORDER BY COUNT(*), "t0"."k")'),
    ("select k, row_number() over (order by max(x)) from t group by k having count(*) > 1",
     'ORDER BY MAX("t0"."x"), "t0"."k")'),
    ("select rank() over (order by x) from t", 'ORDER BY "t0"."x")'),
    ("select count(*) over (order by x) from t", 'ORDER BY "t0"."x")'),
    ("select count(*) over (order by x rows 1 preceding) from t",
     'ORDER BY "t0"."x", "t0"."k", "t0"."f", "t0"."s" rows'),
    ("select first_value(s) over (order by x) from t", 'ORDER BY "t0"."x", "t0"."k", "t0"."f", "t0"."s")'),
    ("select last_value(s) over (order by x range between unbounded preceding and unbounded following) from t",
     'ORDER BY "t0"."x", "t0"."k", "t0"."f", "t0"."s" range'),
    ("select row_number() over w from t window w as (order by s)", 'ORDER BY "t0"."s", "t0"."k", "t0"."x", "t0"."f")'),
    ("with q as (select x as y, s from t) select row_number() over (order by y) from q",
     'ORDER BY "t1"."c0", "t1"."c1")'),
    ("select row_number() over (order by v) from (select k, v from u union select k, s from t) q",
     'ORDER BY "t2"."c1", "t2"."c0")'),
    ("select * from (values (1, 2)) v(a, b), lateral (select u.v from u where u.k = a) l order by a limit 1",
     'ORDER BY "t0"."c0", 1, 2, 3 LIMIT 1'),
    ("select s from t order by x desc offset 2", 'ORDER BY "t0"."x" DESC NULLS FIRST, 1 OFFSET 2'),
    ("select k from t where x in (select x from t limit 3)", 'ORDER BY 1 LIMIT 3'),
    ("select string_agg(s, ',' order by x) from t", 'ORDER BY "t0"."x", "t0"."s")'),
])  # fmt: skip
def test_of_rows_that_tie_all_of_their_columns_decide(query, order):
    assert order in told(query).replace(" ASC", "")


@pytest.mark.parametrize("query, called", [
    ("select upper(s) from t", 'UPPER(TM_SAME_LETTERS("t0"."s"))'),
    ("select initcap(s) from t", 'TM_SAME_WORDS("t0"."s")'),
    ("select s ilike v escape '#' from t, u",
     """"t0"."s") ILIKE TM_SAME_LETTERS("t1"."v") ESCAPE '#'"""),
])  # fmt: skip
def test_letters_are_looked_at_where_engines_differ_in_them(query, called):
    made = decided(planned(query))
    assert called in text_of(for_duckdb(spelled(made.relation, made.names)), identify=True)


@pytest.mark.parametrize("query, why", [
    ("select last_value(s) over (order by x) from t", "last_value() chooses among rows that tie"),
    ("select nth_value(s, 2) over (order by x) from t", "nth_value() chooses among rows that tie"),
    ("select string_agg(s, ',') from t", "string_agg() joins values"),
    ("select (select string_agg(s, ',') from t where t.k = u.k) from u", "string_agg() joins values"),
    ("select string_agg(s, ',') over (order by x) from t", "string_agg() joins values"),
    ("select array_agg(s) over (order by x) from t", "array_agg() joins values"),
    ("select k from t group by k having cardinality(array_agg(s) filter (where x > 1)) > 1 and string_agg(s, '') > ''",
     "string_agg() joins values"),
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
    assert decided(planned(query)) == planned(query)


LIST = r.Reduce(
    r.Get("u2", ("k", "v"), (r.Kind(INT4, True), r.Kind(TEXT, True))), (), (aggregate("collect_list", (column(1),)),)
)
SORTED = call("sort_array", column(0, TEXT.array), s.truth(True))


@pytest.mark.parametrize("relation", [
    r.Project(LIST, (SORTED,)),
    r.Project(r.Project(LIST, (s.number(1), LIST.column(0))),
              (call("sort_array", column(1, TEXT.array), s.truth(True)),)),
    r.Project(r.Filter(LIST, call("is_null", SORTED)), (call("array_compact", SORTED),)),
    r.Project(LIST, (call("sort_array", call("array_compact", LIST.column(0)), s.truth(True)),)),
])  # fmt: skip
def test_a_list_that_is_sorted_wherever_it_is_named_has_one_order(relation):
    assert decided(r.Query(relation, ("o",)))


@pytest.mark.parametrize("relation", [
    LIST, r.Project(LIST, (LIST.column(0),)), r.Project(LIST, (call("size", LIST.column(0)),)),
    r.Project(r.TopK(LIST, (), s.number(1)), (SORTED,)), r.Project(r.Distinct(LIST), (SORTED,)),
    r.Project(LIST, (SORTED, call("is_null", LIST.column(0)))),
    r.Project(LIST, (s.scalar_query(r.Project(r.UNIT, (call("size", LIST.column(0, 1)),))),)),
    r.Project(r.Join("cross", LIST, r.UNIT), (SORTED,)),
    r.Let("q", LIST, r.Project(r.Named("q", LIST.columns), (SORTED,))),
    r.SetOp("union", True, LIST, LIST), r.Filter(r.UNIT, s.exists(r.Filter(LIST, call("is_null", LIST.column(0))))),
])  # fmt: skip
def test_a_list_that_is_named_as_it_is_has_the_order_of_an_engine(relation):
    with pytest.raises(Undecided, match=r"array_agg\(\) joins values"):
        decided(r.Query(relation, tuple(f"o{place}" for place in range(len(relation.columns)))))
