"""Whatever the binder gives has a plan, and the plan's types are those that the binder found."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from plan.columns import own_columns
from plan.nodes import walk
from plan.relations import Filter, Project, Query, Reduce, Relation
from plan.text import lines
from sql.binding.bind import Bound
from tests.differential.ours import catalog
from tests.differential.routes import image_of
from tests.differential.sides import lines as asked
from tests.differential.worlds import Queries, world
from tests.plan.bound import bound, plan_of
from tests.seeds import seed_of_commit
from trees.budget import bounded
from values.types import carried

DIFFERENTIAL = Path(__file__).parents[1] / "differential"


def check(made: Bound, query: Query) -> None:
    assert [kind.type for kind in query.relation.columns] == [carried(column.type) for column in made.columns]
    assert len(query.names) == len(query.relation.columns)
    check_columns(query.relation)
    assert bounded(lines)(query)


def check_columns(relation: Relation) -> None:
    for node in walk(relation):
        if isinstance(node, Relation):
            _columns_are_there(node)


def _columns_are_there(node: Relation) -> None:
    """What an operator names of its input is there."""
    if isinstance(node, (Filter, Project, Reduce)):
        width = len(node.input.columns)
        scalars = [part for part in node.parts() if not isinstance(part, Relation)]
        assert all(place < width for scalar in scalars for place in own_columns(scalar))


def _listed() -> Iterator[str]:
    for name in ("queries.txt", "once_wrong.txt"):
        yield from asked(DIFFERENTIAL / name)


def test_queries_that_are_compared_with_postgres_have_plans():
    image = catalog()
    found = [(made, text) for text in _listed() if (made := bound(text, image)) is not None]
    assert len(found) > 500
    for made, text in found:
        check(made, plan_of(text))


@pytest.mark.parametrize("part", range(4))
def test_expressions_that_are_compared_with_postgres_have_plans(part):
    image = catalog()
    for each in asked(DIFFERENTIAL / "expressions.txt")[part::4]:
        text = f"select {each} as v from t where ({each}) is not null order by id"
        if (made := bound(text, image)) is not None:
            check(made, plan_of(text))


def test_queries_at_random_have_plans():
    seed = seed_of_commit()
    draw = random.Random(seed)
    made = world(draw)
    image, queries = image_of(made), Queries(draw, made)
    for _ in range(150):
        if (found := bound(queries.query().asked, image)) is not None:
            check(found, bounded(lambda made=found: made.plan)())
