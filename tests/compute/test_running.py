"""What Spark's optimizer stumbles over is answered all the same."""

from __future__ import annotations

from collections import Counter

import pytest

from sql.statements.select import plan_select
from sql.syntax.parse import parse
from tests.sql.doubles import ddl, empty_image, names

pytestmark = pytest.mark.spark

QUERY = (
    "(select case when x.a > all (select y.b from t as y where y.s in ('a', '')) then -3::int8 else z.b end as o "
    "from t as x cross join t as z where z.a is not null or (x.a < any (array[x.a, z.a])) is unknown) "
    "union all (select nullif(v.b, v.b) as o from t as v where (v.a <= 7) is false)"
)


def test_a_union_of_a_branch_with_a_subquery_in_a_value(bench):
    """``key not found: _v0#90``, of tables without rows."""
    base = bench.relation({"a": "int4", "s": "text", "b": "int8"})
    image = ddl(empty_image(), "create table t (a int4, s text, b int8)")
    [item] = image.objects()
    sql = plan_select(parse(QUERY).ast, image, names()).spark_sql([]).replace(f"`{item.id}`", "{0}")
    view, again = (bench.view(sql, {"o": "int8"}, base, recompute=each) for each in (False, True))
    for change, held in (([], []), ([((9, "a", 1), 1)], [-3, None]), ([((9, "a", 1), -1)], [])):
        bench.change({base: change})
        bench.tick()
        assert not bench.maintainer.errors
        assert bench.held(view) == bench.held(again) == Counter((each,) for each in held)
    from controllers.compute.running import INFERS

    assert bench.spark.conf.get(INFERS) == "true"
