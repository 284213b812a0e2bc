"""What engines do not find in its place is put below: what limited subqueries compare, what Python's calls ask."""

from __future__ import annotations

import pytest

from functions.registry import OWN
from plan import relations as r
from plan import scalars as s
from plan.asked_apart import asked_apart
from plan.columns import outer_columns
from plan.compared import compared_as_columns
from plan.equal import EQUALITIES
from plan.nodes import Node, walk
from plan.types import Type, common
from sql.algebra.queries import plan_query
from sql.binding.bind import bind_query
from sql.syntax.parse import parse
from tests.differential.ours import catalog
from tests.differential.sides import lines
from tests.plan.test_whole_corpus import DIFFERENTIAL, bound, check_columns
from tests.sql.doubles import ddl, empty_image, names

IMAGE = ddl(
    empty_image(),
    "create table a (k int, j smallint, n numeric(8,2), s text)",
    "create table b (k bigint, v int, s text)",
)


def planned(text: str) -> r.Relation:
    return bind_query(parse(text).ast, IMAGE, names()).plan.relation


def compared(relation: r.Relation) -> list[s.Call]:
    """The equalities in subqueries and lateral joins of which one side is no column, and of the row around alone."""
    found = []
    for node in walk(relation):
        inner = [node.right] if isinstance(node, r.Join) and node.lateral else []
        inner += [each for each in node.parts() if isinstance(node, s.Scalar) and isinstance(each, r.Relation)]
        for each in walk(inner[0]) if inner else ():
            if isinstance(each, s.Call) and each.name in EQUALITIES:
                kind = common(side.type for side in each.arguments)
                found += [each for side in each.arguments if _of_outside(side, kind)]
    return found


def _of_outside(side: s.Scalar, kind: Type) -> bool:
    levels = {each.level for each in walk(side) if isinstance(each, s.Column)}
    plain = isinstance(side, s.Column) and side.type == kind
    return not plain and levels == {1} and not any(isinstance(each, r.Relation) for each in walk(side))


@pytest.mark.parametrize("text, put", [
    ("select (select v from b where b.k = a.k order by v limit 1) from a", 1),
    ("select (select v from b where b.k = a.j + 1 and b.v = a.j + 1 limit 1) from a", 2),
    ("select (select v from b where b.k = a.k + a.j and b.v < a.k + 1 limit 1) from a", 1),
    ("select (select v from b where b.s = lower(a.s) or b.s = lower(a.s) offset 1) from a", 1),
    ("select j from a where exists (select 1 from b where b.k = a.k limit 1 offset 1)", 1),
    ("select j, max((select v from b where b.k = a.k limit 1)) from a group by j", 1),
    ("select j from a order by (select v from b where b.k = a.k limit 1)", 1),
    ("select rank() over (order by (select v from b where b.k = a.k limit 1)) from a", 1),
    ("select v from a left join lateral (select v from b where b.k = a.k limit 1) q on q.v > a.j", 1),
    ("select (select v from b where b.v = a.k limit 1) from a", 0),
    ("select (select max(v) from b where b.k = a.k) from a", 0),
    ("select (select v from b where b.k = a.k + b.v limit 1) from a", 0),
    ("select (select v from b where b.k = a.k + random() limit 1) from a", 0),
])  # fmt: skip
def test_what_a_limited_subquery_is_equal_to_is_a_column(text, put):
    before = planned(text)
    made = compared_as_columns(before)
    assert made.columns == before.columns
    check_columns(made)
    if put:
        assert compared(before) and not compared(made)
        added = {len(node.outputs) - len(node.input.columns) for node in walk(made) if isinstance(node, r.Project)}
        assert put in added
    else:
        assert made == before


@pytest.mark.parametrize("text, asked", [
    ("select k from a where n * 2.5 > (select avg(v) from b)", 1),
    ("select k from a where n * 2.5 > (select avg(v) from b) or n * 2.5 < (select avg(v) from b)", 1),
    ("select count(*) from a having count(*) > (select avg(v) from b)", 1),
    ("select j, sum(n) > (select avg(k) from b), max(n * (select avg(v) from b)) from a group by j", 1),
    ("select case when exists (select 1 from b) then n else 0.5 end / 3 from a", 1),
    ("select a.k from a join b on a.n * (select avg(v) from b) > b.v", 1),
    ("select a.k from a full join b on a.n * (select avg(v) from b) > b.v", 1),
    ("select k from a where k > (select max(v) from b)", 0),
    ("select (select avg(v) from b) from a", 0),
    ("select n * (select avg(v) from b where b.k = a.k) from a", 0),
])  # fmt: skip
def test_what_is_asked_once_stands_in_no_call_of_pythons(text, asked):
    before = planned(text)
    made = asked_apart(before)
    assert made.columns == before.columns
    check_columns(made)
    assert (made != before) == bool(asked)
    assert bool(in_python(before)) == bool(asked) and not in_python(made)


def in_python(relation: r.Relation) -> list[Node]:
    """What is asked once in arguments of Python's calls."""
    calls = [each for each in walk(relation) if isinstance(each, s.Call) and each.name in OWN]
    inside = (each for call in calls for each in walk(call) if isinstance(each, (s.ScalarQuery, s.Exists)))
    return [each for each in inside if not list(outer_columns(each.relation))]


def test_all_queries_of_the_corpora_have_neither_left():
    image, seen = catalog(), [0, 0]
    for text in (each for file in ("queries.txt", "once_wrong.txt") for each in lines(DIFFERENTIAL / file)):
        if (found := bound(text, image)) is None:
            continue
        before = plan_query(found.tree, found.relations, found.params).relation
        made = asked_apart(compared_as_columns(before))
        assert made.columns == before.columns, text
        check_columns(made)
        assert not in_python(made), text
        seen[0] += bool(in_python(before))
        seen[1] += made != before
    assert seen[0] > 5 and seen[1] > 12
