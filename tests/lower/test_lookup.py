"""Lookups are made of plans, and only of plans of which everything is understood."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from catalog_log.objects import Index
from lower.lookup.among import MEMBERS_MAX
from lower.lookup.lowering import lookup, read_by
from plan import relations as r
from plan import scalars as s
from plan.calls import call
from plan.nodes import Node, rewritten, walk
from plan.types import FLOAT8, INT4, TEXT
from sql.binding.bind import Bound
from sql.objects.called import Objects
from sql.statements.select import bind_select, plan_select
from sql.syntax.parse import parse
from sql.typing.written_arrays import FEW
from sql.views.kept_views import inline_views, planned_as
from tests.sql.doubles import ddl, empty_image, names

IMAGE = ddl(
    empty_image(),
    "create table t (id int4, a int4, b int8, x text, d date, n numeric(12,3), f float8, i interval)",
    "create index on t (id, x)",
    "create view v as select id as k, a * 2 as twice, x from t where a > 0",
    "create view w as select k + 1 as k1, twice, x from v where twice < 100",
)
TABLE = IMAGE.item("u1")
INDEXES = [each for each in IMAGE.dependents("u1") if isinstance(each, Index)]

ROWS = (
    "select id, a + 1 as b, -3 as c, x from t as q where (id = 1 or not x is null) and a in (1, 2) "
    "and b between 1 and 2 and d < '2020-01-01'::date order by 1 desc limit 3 offset 1"
)
FOLDED = "select count(*), count(a), min(a), max(b), sum(a) from t where x is not null and id = $1"


def planned(text: str) -> tuple[r.Relation, Bound]:
    bound = bind_select(parse(text).ast, IMAGE, names())
    objects = Objects.of(IMAGE)
    _, query = planned_as(inline_views(bound.tree, bound.relations, objects), bound.params, objects)
    return query.relation, bound


def found(text: str):
    plan, bound = planned(text)
    return lookup(plan, TABLE, INDEXES, bound.params) if read_by(plan) == "u1" else None


def changed(node: Node) -> Iterator[Node]:
    """What says more, or something else, than ``node``."""
    one = s.number(1)
    if isinstance(node, s.Column):
        yield replace(node, level=1)
    if isinstance(node, s.Call):
        yield replace(node, name="is_distinct" if node.name in ("=", "<") else "unheard_of")
    if isinstance(node, s.Aggregate):
        yield replace(node, distinct=True)
        yield replace(node, condition=s.truth(True))
        yield replace(node, within=(s.Sort(one, False, False),))
        yield replace(node, name="avg")
        yield replace(node, arguments=(*node.arguments, one, one))
    elif isinstance(node, s.Scalar):
        yield s.case(None, ((s.truth(True), node),), None)
        if any(isinstance(each, (s.Column, s.Parameter)) for each in walk(node)):  # else it is a constant as well
            yield s.cast(node, FLOAT8 if node.type == TEXT else TEXT)
        yield s.scalar_query(r.Project(r.UNIT, (node,)))
        yield s.exists(r.UNIT)
    if isinstance(node, r.Reduce):
        yield replace(node, keys=(one,))
        yield replace(node, sets=((),))
    if isinstance(node, r.Relation):
        yield r.Distinct(node)
        yield r.Join("cross", node, r.UNIT)
        yield r.SetOp("union", True, node, node)
        yield r.Let("q", node, r.Named("q", node.columns))
        yield r.Constant(((one,) * len(node.columns),))


@pytest.mark.parametrize("text", [ROWS, FOLDED])
def test_a_lookup_is_made_only_of_what_is_known(text):
    plan, bound = planned(text)
    assert lookup(plan, TABLE, INDEXES, bound.params) is not None
    nodes = list(walk(plan))
    asked = 0
    for place, node in enumerate(nodes):
        # Limits and what is sorted by are looked at by their own rules, below.
        if isinstance(node, s.Sort) or any(node is part for top in nodes if isinstance(top, r.TopK) for part in
                                           (top.limit, top.offset, *(each.key for each in top.order))):  # fmt: skip
            continue
        for other in changed(node):
            seen = iter(range(len(nodes)))
            made = rewritten(plan, lambda each, other=other, seen=seen, at=place: other if next(seen) == at else None)
            if made != plan:
                asked += 1
                assert lookup(made, TABLE, INDEXES, bound.params) is None, (node, other)
    assert asked > 60


@pytest.mark.parametrize("change", [
    {"limit": s.scalar_query(r.Constant(((s.number(1),),)))},
    {"limit": s.Literal(INT4, True, None)},
    {"limit": call("+", s.number(1), s.number(1))},
    {"offset": s.Parameter(INT4, True, 1)},
    {"order": (s.Sort(call("neg", s.Column(INT4, True, 0)), False, False),)},
    {"order": (s.Sort(s.Column(INT4, True, 0, 1), False, False),)},
])  # fmt: skip
def test_and_so_are_its_limits_and_its_order(change):
    plan, bound = planned(ROWS)
    assert lookup(replace(plan, **change), TABLE, INDEXES, bound.params) is None


@pytest.mark.parametrize("text, key, residual", [
    ("select x from t where id = 3 and a > 1", (("lit", "3", "int4"),),
     {"filter": [">", ["col", 1], ["lit", "1", "int4"]], "project": [["col", 3]]}),
    # An equality that the key does not say stays: of two values one column cannot have both.
    ("select a from t where id = 1 and id = 2", (("lit", "1", "int4"),),
     {"filter": ["=", ["col", 0], ["lit", "2", "int4"]]}),
    ("select a from t where x = 'b' and 5 = id", (("lit", "5", "int4"), ("lit", "b", "text")), {"filter": None}),
    ("select a from t where id = $1::int8", (("param", 1, "int8"),), {"filter": None}),
    # A float's digits are no key of an integer's.
    ("select a from t where id = 1.5::float8", (), {}),
    ("select i from t where id = 1", (("lit", "1", "int4"),), {"project": [["col", 7]]}),
    ("select a from t order by a * 1, a limit $1", None, None),
    ("select a from t order by a desc nulls last limit $1", (),
     {"order_by": [[0, "desc", "last"]], "limit": ["param", 1, "integer"]}),
    ("select a + 1 from t where id = 1 order by a + 1", (("lit", "1", "int4"),), {"order_by": [[0, "asc", "last"]]}),
    ("select i from t order by 1", None, None),
    ("select sum(f) from t", None, None),
    ("select sum(b) from t", (), {"aggregate": [["sum", ["*", ["col", 2], ["lit", "1", "numeric(1,0)"]]]]}),
    ("select sum(a) + 1 from t", None, None),
    ("select count(*), 1 from t", None, None),
    ("select n::numeric(5,2) from t where id = 1", None, None),
    ("select n * 2 from t where id = 1", (("lit", "1", "int4"),),
     {"project": [["*", ["col", 5], ["lit", "2", "int4"]]]}),
    ("select id from t where id in (select a from t)", None, None),
    # Through plain views, and queries in FROM.
    ("select x from v where k = 4", (("lit", "4", "int4"),),
     {"filter": [">", ["col", 1], ["lit", "0", "int4"]], "project": [["col", 3]]}),
    ("select k1 from w where x = 'y'", (),
     {"filter": ["and", [">", ["col", 1], ["lit", "0", "int4"]],
                 ["<", ["*", ["col", 1], ["lit", "2", "int4"]], ["lit", "100", "int4"]],
                 ["=", ["col", 3], ["lit", "y", "text"]]],
      "project": [["+", ["col", 0], ["lit", "1", "int4"]]]}),
    ("select max from (select max(twice) from v) q", (),
     {"aggregate": [["max", ["*", ["col", 1], ["lit", "2", "int4"]]]]}),
    ("select count(*) from (select distinct x from v) q", None, None),
    ("select x from v where exists (select 1 from t where id = k)", None, None),
])  # fmt: skip
def test_what_lookups_are_made_of(text, key, residual):
    made = found(text)
    if key is None:
        assert made is None
        return
    assert made.key == key
    assert {name: made.residual[name] for name in residual} == residual


def test_a_few_values_of_a_written_array_are_a_list_and_of_more_the_array_stays_one_value():
    assert FEW == MEMBERS_MAX
    members = found("select id from t where id in (1, null, 3)").residual["filter"]
    assert found("select id from t where id = any ('{1,NULL,3}')").residual["filter"] == members
    written = lambda count: f"select id from t where id = any ('{{{','.join(map(str, range(count)))}}}')"  # noqa: E731
    assert len(found(written(FEW)).residual["filter"]) == FEW + 2
    assert found(written(FEW + 1)) is None
    assert found("select id from t where id = any ('{}')") is None
    for cast in ("'{1,NULL,3}'::int8[]", "array[1, null, '3']::int8[]", "'{1,NULL,3}'::int2[]", "int8[] '{1,NULL,3}'"):
        shape = found(f"select id from t where id = any ({cast})").residual["filter"]
        assert [shape[0], *([each[1]] for each in shape[1:])] == ["in", [0], ["1"], [None], ["3"]], cast
    assert found("select id from t where id = any ('{7}'::bigint[]) and x = 'a'").key


def test_what_views_share_is_not_written_out_for_ever():
    image = ddl(IMAGE, "create view s0 as select id as c from t")
    for n in range(1, 28):  # written out it would read the first one 100 million times
        image = ddl(image, f"create view s{n} as select c + c as c from s{n - 1} where c <> 0")
    plan = plan_select(parse("select c from s27").ast, image, names())
    assert plan.lookup is None


def test_an_index_of_another_cluster_answers_nothing():
    text = parse("select a from t where id = 1").ast
    assert plan_select(text, IMAGE, names()).lookup is not None
    assert plan_select(text, IMAGE, names(cluster="elsewhere")).lookup is None
