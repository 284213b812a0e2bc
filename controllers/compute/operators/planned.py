"""What is decided of a view from its plan: its strategy, and how its query falls apart (:mod:`plan.slices`).  Pure.

The same for the controller that keeps it and for who explains it.
"""

from __future__ import annotations

from collections.abc import Sequence

from controllers.compute.strategy import Recompute, Strategy, analyse
from journal.errors import InvalidUsage
from plan import relations as r
from plan import scalars as s
from plan.slices import Slices, slices
from trees.budget import bounded
from values.types import SqlType


class Planned:
    """Of ``query``, or of one that has no plan, and why."""

    def __init__(self, query: r.Query | str) -> None:
        self._query = query

    def strategy(self, types: Sequence[SqlType] | None = None) -> Strategy:
        """How a view of it is maintained whose columns are of ``types``, or of those that it gives."""
        if isinstance(self._query, str):
            return Recompute(self._query)
        relation = self._query.relation
        try:
            return bounded(analyse)(relation if types is None else _of_types(relation, types))
        except InvalidUsage as error:
            return Recompute(error.message)

    def slices(self) -> Slices | None:
        """How it falls apart; ``None`` where it does not."""
        if isinstance(self._query, str):
            return None
        try:
            return bounded(slices)(self._query.relation)
        except InvalidUsage:  # too deep
            return None


def _of_types(relation: r.Relation, types: Sequence[SqlType]) -> r.Relation:
    """``relation``, its columns cast to ``types``."""
    found = [kind.type for kind in relation.columns]
    if found == list(types):
        return relation
    return r.Project(relation, s.as_types(map(relation.column, range(len(found))), types))
