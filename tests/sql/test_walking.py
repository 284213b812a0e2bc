"""Walks through trees give what the library's own give (``trees/walking.py``)."""

from __future__ import annotations

from collections import deque

import pytest
from sqlglot import exp, parse_one

TEXTS = [
    "select 1",
    "with a as (select x, y from t where x in (1, 2, 3)) select count(*) filter (where x > 1), y from a group by y",
    "select a.b, c::numeric(3, 1)[], case when x then y end from a join lateral (select 1) s on true order by 1",
    "values (1, 'a'), (2, null)",
]


def by_the_library(root: exp.Expression, prune=None):
    """As the library says it: children are asked for when their parent was looked at."""
    queue = deque([root])
    while queue:
        node = queue.popleft()
        yield node
        if prune is None or not prune(node):
            queue.extend(node.iter_expressions())


def ids(nodes) -> list[int]:
    return [id(node) for node in nodes]


@pytest.mark.parametrize("text", TEXTS)
def test_the_same_nodes_in_the_same_order(text: str) -> None:
    tree = parse_one(text, dialect="postgres")

    def prune(node: exp.Expression) -> bool:
        return isinstance(node, exp.Query) and node is not tree

    assert ids(tree.walk()) == ids(tree.bfs()) == ids(by_the_library(tree))
    assert ids(tree.walk(prune=prune)) == ids(by_the_library(tree, prune))
    assert set(ids(tree.walk(bfs=False))) == set(ids(by_the_library(tree)))
    kinds = (exp.Column, exp.Literal)
    assert ids(tree.find_all(*kinds)) == [id(n) for n in by_the_library(tree) if isinstance(n, kinds)]
    assert ids(tree.find_all(*kinds, bfs=False)) == [id(n) for n in tree.dfs() if isinstance(n, kinds)]
    assert tree.find(exp.Select) is next((n for n in by_the_library(tree) if isinstance(n, exp.Select)), None)


@pytest.mark.parametrize("walk", [exp.Expression.walk, lambda tree: tree.find_all(exp.Expression), by_the_library])
def test_what_is_changed_below_a_node_that_is_looked_at_is_seen(walk) -> None:
    tree = parse_one("select a + 1 as x, b")
    seen = []
    for node in walk(tree):
        seen.append(type(node).__name__)
        if isinstance(node, exp.Alias):
            node.set("this", exp.column("c"))
    assert "Add" not in seen and seen.count("Column") == 2
