"""Trees are freed by counting references, whatever is planned: nothing of them waits for a full collection."""

from __future__ import annotations

import gc

import pytest
from sqlglot import exp, parse_one

from journal.errors import InvalidUsage
from tests.sql.test_budget import DEEP, GROWING, planned

pytestmark = pytest.mark.usefixtures("little_to_collect")

LEFT_MAX = 40
"""Objects in circles that one statement may leave, however long it is: a checker's table of methods is 7."""


def left_by(text: str) -> int:
    """Objects that only a full collection finds after ``text`` was planned or refused."""
    gc.collect()
    gc.disable()
    try:
        try:
            planned(text)
        except InvalidUsage:
            pass
        return gc.collect()
    finally:
        gc.enable()


@pytest.mark.parametrize("kind", GROWING)
def test_no_tree_is_left_in_circles(kind):
    left_by(GROWING[kind](5))  # what is made once is made
    assert left_by(GROWING[kind](100)) <= LEFT_MAX


@pytest.mark.parametrize("kind", DEEP)
def test_no_tree_of_a_refused_statement_is_left_in_circles(kind):
    left_by(DEEP[kind](5))
    assert left_by(DEEP[kind](400)) <= LEFT_MAX


def test_a_node_knows_its_parents_for_as_long_as_somebody_holds_them():
    tree = parse_one("select a + b from t")
    column = tree.find(exp.Column)
    assert column.parent is tree.find(exp.Add) and column.root() is tree and column.parent_select is tree
    assert tree.copy().find(exp.Add).left == column
    cut = tree.find(exp.Add).pop()
    assert cut.parent is None and column.parent is cut
    del tree, cut
    assert column.parent is None and column.root() is column


def test_constants_of_the_library_are_read_as_they_are():
    made = exp.Add(this=exp.Literal.number(1), expression=exp.Literal.number(2))
    from trees.acyclic import _SLOT

    _SLOT.__set__(made.this, made)  # as a node that was made before
    assert made.this.parent is made
