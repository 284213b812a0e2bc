"""What engines do not find in its place is put below: what limited subqueries compare, what Python's calls ask, what
folds name of the row around them, what joins ask of a side."""

from __future__ import annotations

import pytest

from functions.registry import OWN
from plan import relations as r
from plan import scalars as s
from plan.asked_apart import asked_apart
from plan.columns import names_outside, outer_columns
from plan.compared import compared_as_columns
from plan.equal import EQUALITIES
from plan.joined_by import joined_by
from plan.named_below import named_below
from plan.nodes import Node, walk
from plan.types import Type, common
from sql.binding.bind import bind_query
from sql.syntax.parse import parse
from tests.differential.sides import lines
from tests.plan.bound import plan_of
from tests.plan.test_whole_corpus import DIFFERENTIAL, check_columns
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


@pytest.mark.parametrize("text, moved", [
    ("select a.k from a, b where n::numeric <= (select max(v) from b c where c.k = a.k)", 1),
    ("select a.k from a, b where n::numeric * (select max(v) from b c where c.k = a.k) > 2.5", 1),
    ("select a.k from a, b where n::numeric = (select v from b c where c.k = a.k order by v limit 1)", 1),
    ("select a.k from a, b where 2.5 * (select avg(v) from b c where c.k = a.k) > (select v from b d where d.k = b.k)",
     1),
    ("select k from (select k, n * (select avg(v) from b where b.k = a.k) q from a) q where q is null", 1),
    ("select k from (select a.k, n * (select avg(v) from b c where c.k = a.k) q from a, b) q where q > 2.5", 1),
    ("select k from (select a.k, (select avg(v) from b c where c.k = a.k) q from a, b) q where q * 2 > 2.5", 1),
    ("select k from a where exists (select 1 from b where b.k = a.k and n * 2.5 > b.v)", 0),
    ("select n * (select avg(v) from b where b.k = a.k) from a", 0),
    ("select k from a where k > (select max(v) from b where b.k = a.k)", 0),
])  # fmt: skip
def test_what_is_asked_for_each_row_is_asked_around_calls_of_pythons(text, moved):
    before = planned(text)
    made = asked_apart(joined_by(before))
    assert made.columns == before.columns
    check_columns(made)
    assert bool(for_each_row(made)) == (not moved and bool(for_each_row(before)))
    assert bool(moved) == (made != joined_by(before))


def for_each_row(relation: r.Relation) -> list[Node]:
    """What is asked for each row in arguments of Python's calls, which are around it alone."""
    found = []

    def look(node: Node, inside: bool) -> None:
        if isinstance(node, s.ScalarQuery) and inside and list(outer_columns(node.relation)):
            found.append(node)
        inside = not isinstance(node, r.Relation) and (inside or isinstance(node, s.Call) and node.name in OWN)
        for each in node.parts():
            look(each, inside)

    look(relation, False)
    return found


def in_python(relation: r.Relation) -> list[Node]:
    """What is asked once in arguments of Python's calls."""
    calls = [each for each in walk(relation) if isinstance(each, s.Call) and each.name in OWN]
    inside = (each for call in calls for each in walk(call) if isinstance(each, (s.ScalarQuery, s.Exists)))
    return [each for each in inside if not list(outer_columns(each.relation))]


@pytest.mark.parametrize("text, put", [
    ("select (select sum(v + a.k) from b) from a", 1),
    ("select (select sum(v + a.k) from b where b.k > a.k group by v + a.j order by min(v * a.k)) from a", 2),
    ("select (select count(*) filter (where v > a.k) from b) from a", 1),
    ("select (select v from b order by v - a.k, a.k limit 1) from a", 1),
    ("select (select max(q) from (select rank() over (partition by a.k order by v - a.j) q from b) b) from a", 2),
    ("select (select array_agg(v order by v - a.k) from b) from a", 1),
    ("select q.s from a, lateral (select sum(v + a.k) s from b) q", 1),
    ("select (select sum(v) + a.k from b where b.k = a.k having count(*) > a.j) from a", 0),
    ("select sum(k), rank() over (order by count(*)) from a group by j order by 1 limit 1", 0),
])  # fmt: skip
def test_what_is_folded_numbered_and_sorted_names_no_row_around(text, put):
    before = planned(text)
    made = named_below(before)
    assert made.columns == before.columns
    check_columns(made)
    assert bool(around_folds(before)) == bool(put) and not around_folds(made)
    added = [len(n.outputs) - len(n.input.columns) for n in walk(made) if isinstance(n, r.Project)]
    assert (put in added) if put else made == before


def around_folds(relation: r.Relation) -> list[Node]:
    """What groups, numbers or sorts by something of a row around."""
    folds = [node for node in walk(relation) if isinstance(node, (r.Reduce, r.TopK, r.Window))]
    return [node for node in folds if any(names_outside(each) for each in node.parts() if each is not node.input)]


@pytest.mark.parametrize("text, kinds", [
    ("select a.k from a join b on a.k = b.k and exists (select 1 from b c where c.v = a.k + b.v)", {"inner"}),
    ("select a.k from a join b on exists (select 1 from b c where c.v = a.k + b.v)", {"inner"}),
    ("select a.k from a left join b on b.k = (select max(c.k) from b c where c.v = a.k)", {"left"}),
    ("select a.k from a full join b on a.k = b.k and (select max(c.k) from b c where c.v = a.k) > 1"
     " and (select max(c.k) from b c where c.v = b.v) > 1", {"full"}),
])  # fmt: skip
def test_joins_ask_nothing_that_may_be_asked_elsewhere(text, kinds):
    before = planned(text)
    made = joined_by(before)
    assert made.columns == before.columns
    check_columns(made)
    assert in_conditions(before) and not in_conditions(made)
    assert {node.kind for node in walk(made) if isinstance(node, r.Join)} == kinds


@pytest.mark.parametrize("text", [
    "select a.k from a left join b on exists (select 1 from b c where c.v = a.k + b.v)",
    "select a.k from a left join b on b.v = (select max(c.v) from b c where c.v = a.k + b.v)",
    "select a.k from a left join b on b.v = (select max(c.v) from b c)",
    "select a.k from a join b on a.k = b.k where exists (select 1 from b c where c.v = a.k + b.v)",
])
def test_outer_joins_keep_what_they_ask_of_both_sides(text):
    before = planned(text)
    assert joined_by(before) == before


def in_conditions(relation: r.Relation) -> list[r.Join]:
    joins = [node for node in walk(relation) if isinstance(node, r.Join) and node.condition is not None]
    return [node for node in joins if any(isinstance(each, r.Relation) for each in walk(node.condition))]


def test_all_queries_of_the_corpora_have_neither_left():
    seen = [0, 0, 0, 0]
    for text in (each for file in ("queries.txt", "once_wrong.txt") for each in lines(DIFFERENTIAL / file)):
        if (query := plan_of(text)) is None:
            continue
        before = query.relation
        made = asked_apart(compared_as_columns(before))
        assert made.columns == before.columns, text
        check_columns(made)
        assert not in_python(made), text
        seen[0] += bool(in_python(before))
        seen[1] += made != before
        below = named_below(joined_by(made))
        assert below.columns == before.columns, text
        check_columns(below)
        assert not around_folds(below), text
        seen[2] += bool(around_folds(before))
        seen[3] += bool(in_conditions(before)) and not in_conditions(below)
    assert seen[0] > 5 and seen[1] > 12 and seen[2] > 10 and seen[3] > 4
