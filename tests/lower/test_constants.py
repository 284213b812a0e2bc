"""A query that reads nothing is told to DuckDB as its plan."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from decimal import Decimal

import pytest
from sqlglot import exp

from adapter.duck.catalog_relations import CatalogRelations
from adapter.execute.constants import VALUES_AT_ONCE_MAX, Constants
from journal.errors import InvalidUsage
from lower.duckdb import constants
from lower.duckdb.lowering import for_duckdb
from lower.spelled import spelled
from plan import relations as r
from plan import scalars as s
from plan.calls import call
from plan.nodes import walk
from plan.types import TEXT
from sql.algebra.queries import plan_values
from sql.algebra.scope import NotPlanned
from sql.statements.plans import SelectPlan, scalars_of
from sql.statements.select import plan_select
from sql.syntax.parse import parse
from tests.sql.doubles import empty_image, names
from trees.nodes import cast
from trees.types import INT4, NUMERIC

RELATIONS = CatalogRelations()


def planned(text: str) -> SelectPlan:
    return plan_select(parse(text).ast, empty_image(), names())


def answer(plan: SelectPlan, *params: object) -> list[tuple]:
    found = RELATIONS.constant(plan.constant(params), [(c.name, c.type) for c in plan.columns])
    return list(zip(*(column.to_pylist() for column in found.columns), strict=True))


def test_what_is_told_is_made_of_the_plan_alone():
    row = (s.number(1), s.Literal(TEXT, False, "x';--"), call("+", s.number(2), s.number(3)))
    query = r.Query(r.Project(r.UNIT, row), ("a", 'b"', "c"))
    assert constants.text_of(query) == (
        """SELECT 1 AS "c0", 'x'';--' AS "c1", CAST(2 AS INT) + CAST(3 AS INT) AS "c2\""""
    )
    assert RELATIONS.values(query) == [1, "x';--", 5]


@pytest.mark.parametrize("text", [
    "select current_date::timestamptz", "select localtimestamp::text", "select current_timestamp::date",
    "select 1 as current_date, current_date - current_date",
])  # fmt: skip
def test_no_output_is_taken_for_a_word_of_the_clock(text):
    assert len(answer(planned(text))) == 1


def test_a_parameter_has_its_value_in_the_plan():
    plan = planned("select $1::numeric * 2, $2::text || 'b', $3::int4 + 1 limit $4")
    assert answer(plan, Decimal("1.50"), "a", None, 1) == [("3.00", "ab", None)]
    assert answer(plan, Decimal("7"), "'", 2, 0) == []
    made = plan.constant([Decimal("1.5"), "a", 1, 1]).relation
    assert not any(isinstance(node, s.Parameter) for node in walk(made))


@pytest.mark.parametrize("text", ["select 1 limit -1", "select 1 limit $1"])
def test_limits_are_refused_as_before(text):
    with pytest.raises(InvalidUsage) as refused:
        planned(text).constant([-1])
    assert refused.value.sqlstate == "2201W"


def test_a_value_that_nobody_gave_is_refused():
    with pytest.raises(InvalidUsage) as refused:
        planned("select $1::int4").constant([])
    assert refused.value.sqlstate == "08P01"


def test_what_cannot_be_said_is_refused():
    with pytest.raises(InvalidUsage) as refused:
        constants.text_of(r.Query(r.UNIT, ()))
    assert refused.value.sqlstate == "0A000"


def test_expressions_are_one_row():
    trees = [exp.Literal.number(1), cast(exp.Parameter(this=exp.Literal.number(2)), NUMERIC), cast(exp.null(), INT4)]
    scalars = scalars_of(trees, [None, Decimal("1.50")], {1: INT4, 2: NUMERIC})
    assert RELATIONS.values(r.row_of(scalars)) == [1, "1.50", None]


def test_an_expression_without_a_plan_is_refused():
    trees = [exp.Anonymous(this="NOBODY_KNOWS")]
    with pytest.raises(NotPlanned):
        plan_values(trees)
    with pytest.raises(InvalidUsage) as refused:
        scalars_of(trees)
    assert refused.value.sqlstate == "0A000"


def test_rows_keep_their_order_beyond_one_query():
    count = 2 * VALUES_AT_ONCE_MAX + 1
    whole = planned("with q as (select $1::int4 as k) select k, case when k > 1 then 'x' || k end from q order by k")
    plan = replace(whole, reads=planned("select 1"), params={})  # as what is given for each row that was read
    made = Constants(RELATIONS).for_rows(plan, plan.each([], [(n,) for n in range(count)]))
    found = [tuple(row.values()) for batch in asyncio.run(made) for row in batch.to_pylist()]
    assert found == [(n, f"x{n}" if n > 1 else None) for n in range(count)]


def test_a_tree_that_is_kept_stays_as_it_is():
    query = planned("select upper('a' || 'b'), 7 % 4, 1 / 10").constant([])
    tree = spelled(query.relation, query.names)
    before = repr(tree)
    kept = for_duckdb(tree)
    assert repr(tree) == before
    assert kept.sql("duckdb") == for_duckdb(tree, used_up=True).sql("duckdb")
