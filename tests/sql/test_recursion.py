"""Queries that read themselves: what PostgreSQL says of each, word for word, is kept in ``recursion.txt``."""

from __future__ import annotations

from pathlib import Path

import pytest

from journal.errors import InvalidUsage
from sql.statements.ddl import plan_ddl
from sql.statements.insert import plan_insert
from sql.statements.select import plan_select
from sql.syntax import statements as st
from sql.syntax.parse import parse
from tests.sql.doubles import names, shop
from tests.sql.test_budget import IMAGE

CASES = [
    tuple(case.strip().split("\n"))
    for case in Path(__file__).with_name("recursion.txt").read_text().split("\n\n")[1:]
]  # fmt: skip


def planned(text):
    return plan_select(parse(text).ast, IMAGE, names())


def refused(text):
    with pytest.raises(InvalidUsage) as found:
        planned(text)
    return f"{found.value.sqlstate} {found.value}"


@pytest.mark.parametrize("text,answer", CASES)
def test_it_is_taken_or_refused_in_postgres_words(text, answer):
    if answer == "taken":
        assert planned(text).spark_sql([])
    else:
        assert refused(text) == answer


def test_numbers_of_a_step_keep_their_own_digits():
    """The digits of 1.5 were those of every row: 2.325 became 2.3, and nobody was told."""
    text = "with recursive x(n) as (select {} union all select {} from x where n < 4) select * from x"
    (free,) = planned(text.format("1.5", "n * 1.55")).columns
    (kept,) = planned(text.format("1::numeric(9, 2)", "(n + 1)::numeric(9, 2)")).columns
    assert free.type.is_free and (kept.type.name, kept.type.is_free) == ("numeric", False)


@pytest.mark.parametrize("text,what", [
    ("with x (a, b) as (select 1) select 1 from x", 'WITH query "x"'),
    ("with recursive x (a, b) as (select 1 union all select a from x) select 1 from x", 'WITH query "x"'),
    ("with x as (select 1) select 1 from x as z (a, b)", 'table "z"'),
    ("select 1 from (select 1) as z (a, b)", 'table "z"'),
])  # fmt: skip
def test_more_aliases_than_columns_are_told_by_what_they_are_of(text, what):
    assert refused(text) == f"42P10 {what} has 1 columns available but 2 columns specified"


@pytest.mark.parametrize("text", [
    "with recursive x(n) as (select id from items union select n + 1 from x where n < 4) select * from x",
    "select * from (with recursive x(n) as (select 1 union select n + 1 from x where n < 4) select * from x) q, items",
    "create view v as with recursive x(n) as (select id from items union select n + 1 from x) select * from x",
    "insert into items (id) with recursive x(n) as (select id from items union select n + 1 from x) select n from x",
])  # fmt: skip
def test_steps_that_drop_what_is_there_are_only_for_constants(text):
    """Spark has no such thing, and a view would fail where its controller had to ask it."""
    with pytest.raises(InvalidUsage) as found:
        said = parse(text)
        if isinstance(said, st.Insert):
            plan_insert(said, shop(), names())
        elif isinstance(said, st.CreateView):
            plan_ddl(said, shop(), names())
        else:
            plan_select(said.ast, shop(), names())
    assert (found.value.sqlstate, "UNION ALL" in found.value.hint) == ("0A000", True)
    constant = "with recursive x(n) as (select 1 union select n + 1 from x where n < 4) select * from x"
    assert planned(constant).kind == "constant"
