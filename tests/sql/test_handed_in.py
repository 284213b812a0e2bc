"""Names of queries two and more out: which queries hand them in, and which cannot."""

from __future__ import annotations

import re

import pytest
from sqlglot import exp

from journal.errors import InvalidUsage
from lower.spark.lowering import spark_sql
from sql.binding.bind import bind_query
from sql.objects.called import Objects
from sql.statements.plans import SelectPlan
from sql.statements.select import plan_select
from sql.syntax.parse import parse
from sql.views.kept_views import spark_query
from tests.sql.doubles import ddl, empty_image, names

SHOP = ddl(empty_image(), "create table t (id int4, k int4, v text)")


def plan(text: str) -> SelectPlan:
    return plan_select(parse(text).ast, SHOP, names())


def bound(text: str) -> exp.Expression:
    return bind_query(parse(text).ast, SHOP, names()).tree


def printed(text: str) -> str:
    return spark_sql(bound(text)).replace("`", "").replace("u1 AS ", "")


def handed_in(text: str) -> list[str]:
    """The relations of one row that queries got, each with the clause where it stands."""
    tree = bound(text)
    found = [each for each in tree.find_all(exp.Subquery) if each.alias.startswith("_in")]
    return sorted(f"{each.alias} {each.parent.key}: {each.this.sql('postgres')}".replace('"', "") for each in found)


def test_the_query_between_hands_it_in():
    text = "select x.id from t x where exists (select 1 from t y where exists (select 1 from t z where z.k = x.k))"
    assert printed(text) == (
        "SELECT CAST(x.id AS INT) AS id FROM x WHERE EXISTS(SELECT 1 AS ?column? FROM y "
        "CROSS JOIN (SELECT x.k AS c0) AS _in0 WHERE EXISTS(SELECT 1 AS ?column? FROM z WHERE z.k = _in0.c0))"
    )


@pytest.mark.parametrize(
    ("text", "relations"),
    [
        ("select (select id from t y where y.id = x.id) from t x", []),
        ("select (select id from (select y.id from t y where y.k = x.k) q) from t x", []),
        ("select (select 1 from t x where exists (select 1 from t z where z.k = x.k)) from t x", []),
        ("select (select (select (select x.k + x.id))) from t x",
         ["_in0 from: SELECT x.k AS c0, x.id AS c1", "_in1 from: SELECT _in0.c0 AS c0, _in0.c1 AS c1"]),
        ("select (select 1 from t y where exists (select 1 from t z where z.k = x.k or z.id = x.k)) from t x",
         ["_in0 join: SELECT x.k AS c0"]),
        ("select (select 1 from t y, lateral (select y.id + x.id as s) l) from t x", ["_in0 from: SELECT x.id AS c0"]),
        ("select (select 1 from t y join t w on exists (select 1 from t z where z.k = x.k)) from t x",
         ["_in0 join: SELECT x.k AS c0"]),
        ("select (select 1 from t y right join t w on true where exists (select 1 from t z where z.k = x.k)) from t x",
         ["_in0 join: SELECT x.k AS c0"]),
        ("select (select 1 from t _in0, t \"_IN1\" where exists (select 1 from t z where z.k = x.k)) from t x",
         ["_in2 join: SELECT x.k AS c0"]),
        ("select (select 1 from (select 1 from t y where y.id = (select max(k) from t z where z.id = x.k)) q) from t x",
         ["_in0 join: SELECT x.k AS c0"]),
        ("select 1 from t x where exists (select 1 from t y where y.k = (select max(k) from t z where z.id = x.k) "
         "union select 1 from t y where y.k = (select max(k) from t z where z.id = x.k))",
         ["_in0 join: SELECT x.k AS c0", "_in1 join: SELECT x.k AS c0"]),
    ],
)  # fmt: skip
def test_who_hands_in_what(text, relations):
    assert handed_in(text) == relations


def test_beside_aggregates_an_aggregate_folds_the_subquery():
    inner = "(SELECT MAX(z.id) AS max FROM z WHERE z.k = _in0.c0)"
    text = "select (select {} from t y group by y.k) from t x"
    subquery = "(select max(z.id) from t z where z.k = x.k)"
    assert f"COUNT(*) + MAX({inner}) AS" in printed(text.format(f"count(*) + {subquery}"))
    assert f"MIN({inner} + y.id) AS" in printed(text.format(f"min({subquery} + y.id)"))


KEYLESS = "select (select count(*) + (select max(z.id) from t z where z.k = x.k) from t y) from t x"


@pytest.mark.parametrize(
    "text",
    [
        KEYLESS,
        "select (select sum((select count(*) from t z where z.k = x.k and z.id > y.id)) from t y) from t x",
        "select (select (select max(z.id) from t z where z.k = x.k) from t y group by 1) from t x",
        "select (select 1 from t y right join t w on exists (select 1 from t z where z.k = x.k)) from t x",
        "select (select 1 from t y left join t w on exists (select 1 from t z where z.k = x.k)) from t x",
        "select (select 1 from (t y join t w on exists (select 1 from t z where z.k = x.k))) from t x",
        "select (select 1 from t y right join t w on true cross join lateral (select x.k) l) from t x",
    ],
)
def test_where_none_can_is_refused_by_name_with_a_way_to_write_it(text):
    with pytest.raises(InvalidUsage, match="x.k, of a query that is not the next one out") as error:
        plan(text)
    assert error.value.sqlstate == "0A000" and "subquery of FROM" in error.value.hint
    assert error.value.position == text.index("x.k") + 1


def test_the_way_that_is_told_is_one():
    subquery = "(select max(z.id) from t z where z.k = x.k)"
    plan(f"select (select n + {subquery} from (select count(*) as n from t y) q) from t x")
    plan("select (select sum(n) from (select (select count(*) from t z where z.k = x.k) as n from t y) q) from t x")


def test_what_reads_nothing_is_left_to_the_engine_that_takes_it():
    found = plan("select (select count(*) + (select x.i) from (values (1)) y(i)) from (values (1)) x(i)")
    assert found.kind == "constant" and "_in0" not in found.spark_sql([])


def test_a_view_that_hands_in_is_read_within_one_that_does():
    text = "select x.id from {} x where exists (select 1 from t y where exists (select 1 from t z where z.k = x.id))"
    with_view = ddl(SHOP, f"create view v as {text.format('t')}")
    made = plan_select(parse(text.format("v")).ast, with_view, names()).spark_sql([]).replace("`", "")
    handed = re.findall(r"CROSS JOIN \(SELECT (t\d+)\.(?:id|c0) AS c0\) AS (t\d+)", made)
    assert len(handed) == 2 and all(f"AS {outer} " in made and f".k = {inner}.c0" in made for outer, inner in handed)


def test_a_view_of_constants_is_handed_in_as_well():
    text = "select x.i, (select (select (select x.i))) as j from (values (1)) x(i)"
    made = ddl(SHOP, f"create materialized view m as {text}")
    (view,) = [each for each in made.objects() if each.name == "m"]
    inner = "FROM (SELECT `t1`.`c0` AS `c0`) AS `t2`) AS `c0` FROM (SELECT `t0`.`c0`"
    assert inner in spark_query(view, Objects.of(made))
