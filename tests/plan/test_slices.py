"""By which keys queries fall apart, and by which they do not."""

from __future__ import annotations

import pytest

from plan.slices import STEPS_MAX, Slices, Way, slices
from sql.binding.bind import bind_query
from sql.syntax.parse import parse
from tests.sql.doubles import ddl, empty_image, names

IMAGE = ddl(
    empty_image(),
    "create table t (a int, b text, f float8)",
    "create table u (a bigint, c int)",
    "create table wide (" + ", ".join(f"c{n} int" for n in range(500)) + ")",
)
IDS = {item.id: item.name for item in IMAGE.objects()}


def sliced(text: str) -> Slices | None:
    return slices(bind_query(parse(text).ast, IMAGE, names()).plan.relation)


def told(way: Way, ways: tuple[Way, ...]) -> str:
    mine = f"{IDS[way.item_id]} {' '.join(way.columns)}"
    if way.parent is None:
        return mine
    return f"{mine} of {IDS[ways[way.parent].item_id]} {' '.join(way.parent_columns)}"


@pytest.mark.parametrize("text, ways, whole", [
    ("select a, max(b) from t group by a", ["t a"], ""),
    ("select a, b, max(f) from t group by b, a", ["t b a"], ""),
    ("select a + 1, b, max(f) from t group by a + 1, b", ["t b"], ""),
    ("select a, rank() over (partition by a order by b), count(*) over (partition by a, b) from t", ["t a"], ""),
    ("select t.b, u.c from t left join u using (a)", ["t a b", "u a of t a"], ""),
    ("select t.b, max(c) from t left join u on u.a = t.a and c > 3 group by t.b", ["t b", "u a of t a"], ""),
    ("select t.b, u.c from t full join u on u.a = t.a", ["t a", "u a"], ""),
    ("select t.b, max(u.c) from t, u, t x where t.a = u.a and x.a = u.a group by t.b",
     ["t b", "u a of t a", "t a of t a"], ""),
    ("select a from t union select c from u", ["t a", "u c"], ""),
    ("select a, b from t union all select a, max(c)::text from u group by a", ["t a b", "u a"], ""),
    ("select a from t where exists (select from u where u.a = t.a)", ["t a b", "u a of t a"], ""),
    ("select a from t where a not in (select c from u)", ["t a b"], "u"),
    ("select t.a, s.m from t, (select max(c) m from u) s", ["t a b"], "u"),
    ("with w as (select a, count(*) n from t group by a) select x.n + y.n from w x join w y using (a)",
     ["t a", "t a of t a"], ""),
])  # fmt: skip
def test_it_falls_apart_by_what_it_joins_and_groups_by(text, ways, whole):
    found = sliced(text)
    assert [told(way, found.ways) for way in found.ways] == ways
    assert {IDS[i] for i in found.whole} == set(whole.split())


@pytest.mark.parametrize("text", [
    "select max(a) from t", "select a, rank() over (order by b) from t", "select a from t order by a limit 3",
    "select f, count(*) from t group by f", "select distinct a + 1 from t",
    "select u.c, count(*) from t left join u on u.a = t.a group by u.c",
    "select a, b, count(*) from t group by rollup (a, b)",
    "with recursive r as (select a from t union select c from r join u on u.a = r.a) select * from r",
])  # fmt: skip
def test_of_others_anything_may_be_touched(text):
    assert sliced(text) is None


def test_a_search_ends():
    assert sliced("select distinct * from wide").ways[0].columns == tuple(f"c{n}" for n in range(8))
    joined = " ".join(f"left join u as u{n} on u{n}.a > t.a" for n in range(60))
    assert sliced(f"select t.b, max(t.f) from t {joined} group by t.b") is not None
    deep = "select a, b, f from t"
    for _ in range(12):
        deep = f"select x.a, y.b, x.f from ({deep}) x cross join t y"
    assert STEPS_MAX > 0 and sliced(f"select f, count(*) from ({deep}) q group by f") is None
