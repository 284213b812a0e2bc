"""Subqueries by equalities are joins, and what is asked is the same."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controllers.compute.operators.small import small
from plan import relations as r
from plan import scalars as s
from plan.columns import outer_columns
from plan.decorrelated import decorrelated
from plan.nodes import walk
from tests.differential.ours import catalog
from tests.differential.sides import lines
from tests.plan.bound import bound, plan_of
from tests.plan.test_below import planned
from tests.plan.test_whole_corpus import DIFFERENTIAL, check_columns
from tests.sql.test_spelled import answer, tables


def queries_in(relation: r.Relation) -> int:
    return sum(isinstance(each, (s.ScalarQuery, s.Exists, s.InRows)) for each in walk(relation))


@pytest.mark.parametrize("text, left", [
    ("select k from a where exists (select 1 from b where b.k = a.k)", 0),
    ("select k from a where exists (select v from b where b.k = a.k + 1 and b.s = a.s and v > 1) and j > 1", 0),
    ("select k from a where not exists (select 1 from b where a.k = b.k)", 0),
    ("select k from a where k in (select v from b) and not exists (select 1 from b where b.k = a.k)", 0),
    ("select k from a where (k, j) in (select v, v + 1 from b where b.k = a.k)", 0),
    ("select k, (select count(*) from b where b.k = a.k) from a", 0),
    ("select (select max(v) + count(*) from b where b.k = a.k) from a where (select min(v) from b where v = a.k) > 1",
     0),
    ("select k from a where exists (select 1 from b where k = a.k and v in (select c.v from b c where c.s = b.s))", 0),
    ("select (select max(v) + a.j from b where b.k = a.k) from a where n * (select avg(v) from b where b.k = a.k) > 1",
     0),
    ("select k from a where n * 2.5 > (select avg(v) * a.n from b where b.k = a.k)", 0),
    ("select k from a where k not in (select v from b)", 1),
    ("select k from a where exists (select 1 from b where b.k > a.k)", 1),
    ("select k from a where exists (select 1 from b)", 1),
    ("select k from a where exists (select 1 from b where b.k = a.k) or j > 1", 1),
    ("select k, (select v from b where b.k = a.k) from a", 1),
    ("select k, (select count(*) from b) from a", 1),
    ("select k, (select max(v) from b where b.k = a.k having count(*) > 1) from a", 1),
    ("select k, (select sum(v + a.j) from b where b.k = a.k) from a", 1),
    ("select k, (select max(v) from b where b.k = a.k and b.v > a.j) from a", 1),
])  # fmt: skip
def test_what_names_the_row_around_by_equalities_is_joined(text, left):
    before = planned(text)
    made = decorrelated(before)
    assert [kind.type for kind in made.columns] == [kind.type for kind in before.columns]
    check_columns(made)
    assert not list(outer_columns(made))
    assert queries_in(made) == left and (made == before) == bool(left)


def test_queries_of_the_corpora_are_answered_alike():
    image, compared = catalog(), 0
    for text in (each for file in ("queries.txt", "once_wrong.txt") for each in lines(DIFFERENTIAL / file)):
        found = bound(text, image) if "(select" in text else None
        if found is None:
            continue
        query = plan_of(text)
        made = decorrelated(query.relation)
        if made == query.relation:
            continue
        both = [small(replace(query, relation=each)) for each in (query.relation, made)]
        if any(isinstance(each, str) for each in both):
            continue
        one, other = (answer(each, found, tables()) for each in both)
        assert one == other or isinstance(one, str), text
        compared += 1
    assert compared > 15
