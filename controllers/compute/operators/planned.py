"""The plan of a bound query over relations as engines know them: by ids, with the columns that carry theirs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from catalog_log.objects import Column
from plan.relations import Query
from plan.slices import Slices, slices
from sql.algebra.queries import plan_query
from sql.algebra.scope import NotPlanned
from sql.trees.budget import bounded
from values.types import SqlType

Columns = Mapping[str, Sequence[tuple[str, SqlType]]]
"""The names and types of each relation's columns, by its id."""


@dataclass(frozen=True)
class _Read:
    id: str
    columns: tuple[Column, ...]


@bounded
def planned(tree: exp.Expression, columns: Columns) -> Query | None:
    """The plan of ``tree``, a query of which no parameter is left; ``None`` where it has none."""
    reads = {i: _Read(i, tuple(Column(name, str(kind)) for name, kind in each)) for i, each in columns.items()}
    try:
        return plan_query(tree, reads, {})
    except NotPlanned:
        return None


def slices_of(tree: exp.Expression | None, columns: Columns) -> Slices | None:
    """How the query that is bound as ``tree`` falls apart, over relations with ``columns``."""
    query = None if tree is None else planned(tree, columns)
    return None if query is None else slices(query.relation)
