"""WITH queries that are read once are read in their place."""

from __future__ import annotations

import pytest

from plan.inlining import inlined
from plan.nodes import walk
from plan.relations import Let, Named, Relation
from sql.binding.bind import bind_query
from sql.syntax.parse import parse
from tests.sql.doubles import ddl, empty_image, names

IMAGE = ddl(empty_image(), "create table t (id int, a int)")


def planned(text: str) -> Relation:
    return bind_query(parse(text).ast, IMAGE, names()).plan.relation


@pytest.mark.parametrize("text, left", [
    ("with q as (select a from t) select a from q", 0),
    ("with p as (select a from t), q as (select a + 1 as b from p) select b from q where b > 1", 0),
    ("with q as (select a from t) select x.a from q x join q y using (a)", 1),
    ("with p as (select a from t), q as (select a from p) select x.a from q x join q y using (a)", 1),
    ("with q as (select a from t) select id from t where a in (select a from q)", 0),
    ("with q as (select a, random() as r from t) select a, r, r from q", 1),
    ("with recursive q as (select 1 as n union all select n + 1 from q where n < 3) select n from q", 1),
    ("select (with q as (select x.a) select a from q) from t x", 1),
    ("with q as (select a from t) select 1", 1),
])  # fmt: skip
def test_what_is_read_once_is_read_there(text, left):
    made = inlined(planned(text))
    lets = [each for each in walk(made) if isinstance(each, Let)]
    assert len(lets) == left
    assert {each.name for each in walk(made) if isinstance(each, Named)} <= {each.name for each in lets}


def test_it_is_as_if_it_had_been_written_there():
    over = "select a + 1 as c from {} where a > 1 order by 1 limit 3"
    made = inlined(planned("with q as (select a from t where id = 2) " + over.format("q")))
    assert made == planned(over.format("(select a from t where id = 2) q"))
