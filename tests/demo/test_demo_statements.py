"""The demo's statements plan on an empty catalog, and its probe is answered by the index without Spark."""

from __future__ import annotations

from demo.views import CARRIER, FRAME, MAKERS, PROBE, ROUTE_DAY, ddl_statements
from sql.statements.select import plan_select
from sql.syntax.parse import parse
from tests.sql.doubles import ddl, empty_image, names


def test_the_demos_statements_plan() -> None:
    image = ddl(empty_image(), *ddl_statements("env-flights"))
    plans = {sql: plan_select(parse(sql).ast, image, names(), {}) for sql in (PROBE, FRAME, ROUTE_DAY, CARRIER, MAKERS)}
    assert {plan.kind for plan in plans.values()} == {"peek"}
    assert plans[PROBE].lookup is not None
    assert plans[CARRIER].lookup is not None
    assert len(plans[FRAME].inputs) == 6
