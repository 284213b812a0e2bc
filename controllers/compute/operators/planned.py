"""What is decided of a view from its plan: its strategy, and how its query falls apart (:mod:`plan.slices`).  Pure.

The same for the controller that keeps it and for who explains it.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from controllers.compute.strategy import TEXT_ALONE, Recompute, Strategy, analyse
from journal.errors import InvalidUsage
from plan import relations as r
from plan import scalars as s
from plan.slices import Slices, slices
from sql.algebra.queries import Columns, plan_over
from sql.algebra.scope import NotPlanned
from sql.trees.budget import bounded
from values.types import SqlType


class Planned:
    """Of the query that is bound as ``tree``, over relations with ``columns``."""

    def __init__(self, tree: exp.Expression | None, columns: Columns) -> None:
        self._relation: r.Relation | None = None
        self._why = TEXT_ALONE
        if tree is not None:
            try:
                self._relation = bounded(plan_over)(tree, columns).relation
            except (NotPlanned, InvalidUsage) as why:
                self._why = f"its query has no plan ({why})"

    def strategy(self, types: Sequence[SqlType] | None = None) -> Strategy:
        """How a view of it is maintained whose columns are of ``types``, or of those that it gives."""
        if self._relation is None:
            return Recompute(self._why)
        try:
            return bounded(analyse)(self._relation if types is None else _of_types(self._relation, types))
        except InvalidUsage as error:
            return Recompute(error.message)

    def slices(self) -> Slices | None:
        """How it falls apart; ``None`` where it does not."""
        if self._relation is None:
            return None
        try:
            return bounded(slices)(self._relation)
        except InvalidUsage:  # too deep
            return None


def _of_types(relation: r.Relation, types: Sequence[SqlType]) -> r.Relation:
    """``relation``, its columns cast to ``types``."""
    found = [kind.type for kind in relation.columns]
    if found == list(types):
        return relation
    return r.Project(relation, s.as_types(map(relation.column, range(len(found))), types))
