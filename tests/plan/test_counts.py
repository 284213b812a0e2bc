"""How many rows a relation has at most is never fewer than it has, and which of them pile up."""

from __future__ import annotations

import pytest

from plan.counts import piles_up, rows_at_most
from sql.statements.select import plan_select
from sql.syntax.parse import parse
from tests.sql.doubles import ddl, empty_image, names
from values.limits import SERIES_MAX


@pytest.mark.parametrize(("query", "most"), [
    ("select a from t where a > 1", 10),
    ("select count(*) from t, u", 1),
    ("select a, count(*) from t, u group by a", 2000),
    ("select a, b, count(*) from t group by rollup (a, b)", 30),
    ("select * from t, u", 2000),
    ("select * from t left join u on t.a = u.c", 2000),
    ("select * from e full join t on t.a = e.x", 10),
    ("select * from e left join t on true", 0),
    ("select a from t union all select c from u", 210),
    ("select a from t union select c from u", 210),
    ("select c from u except select a from t", 200),
    ("select c from u order by c limit 7", 7),
    ("select * from (select c from u limit 3) as q, t", 30),
    ("with q as (select * from t, u) select x.a from q as x, q as y", 2000 * 2000),
    ("select a, i from t, generate_series(1, a) as g(i)", 10 * SERIES_MAX),
    ("select t.a, s.n from t, lateral (select count(*) as n from u where u.c = t.a) as s", 10),
    ("select distinct a, sum(b) over () from t", 10),
])  # fmt: skip
def test_the_rows_that_there_may_be(query, most):
    image = ddl(empty_image(), "create table t (a int, b int)", "create table u (c int)", "create table e (x int)")
    counts = {item.id: {"t": 10, "u": 200, "e": 0}[item.name] for item in image.objects()}
    found = rows_at_most(plan_select(parse(query).ast, image, names()).query(()).relation, counts)
    assert most <= found <= 10 * max(most, 1)


@pytest.mark.parametrize(("query", "piles"), [
    ("select a, c from t, u", True),
    ("select a, c from t, u limit 5", True),
    ("select a, c from t, u where a = c", False),
    ("select a, c from t join u on a = c", False),
    ("select a, c from t, u where a < c", True),
    ("select t.a from t, u, t as v where t.a = u.c", True),
    ("select t.a from t, u, t as v where t.a = u.c and u.c = v.a", False),
    ("select a, x from t, e", False),
    ("select count(*) from t, u", False),
    ("select a, count(*) from t, u where a < c group by a", False),
    ("select count(*) from t as x, (select a, c from t, u) as q where x.a = q.a", True),
    ("select distinct a from t, u", True),
    ("select a from t order by a", False),
    ("select a from t union all select t.a from t, u", True),
    ("with q as (select t.a from t, u) select x.a from q as x, q as y where x.a = y.a", True),
    ("select o.a from o", True),
    ("select o.a + 1 from o where a > 2", True),
    ("select count(*), sum(a) from o", False),
    ("select max(o.a) from o, t where o.a = t.a", True),
])  # fmt: skip
def test_rows_pile_up_where_nobody_takes_them_as_they_are_made(query, piles):
    """Of ``o`` a few rows are there very often."""
    tables = "t (a int, b int)", "u (c int)", "e (x int)", "o (a int)"
    image = ddl(empty_image(), *(f"create table {each}" for each in tables))
    ids = {item.name: item.id for item in image.objects()}
    counts = {ids["t"]: 3000, ids["u"]: 3000, ids["e"]: 0, ids["o"]: 10_000_000}
    found = plan_select(parse(query).ast, image, names()).query(()).relation
    assert piles_up(found, counts, [ids["o"]]) == piles
