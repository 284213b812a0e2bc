"""How one view is kept: its strategy, with the operators of it, made of its query alone.

Pure: a controller that keeps a view makes it so, and so does who explains one, in a process that knows no Spark.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from controllers.compute.operators.affected import Affected
from controllers.compute.operators.linear import Linear
from controllers.compute.operators.lowered import Lowered
from controllers.compute.operators.operator import Called, Operator
from controllers.compute.operators.planned import Planned
from controllers.compute.operators.recompute import Recompute
from controllers.compute.operators.reduce import Reduce
from controllers.compute.operators.small import Small
from controllers.compute.operators.whole_query import WholeQuery
from controllers.compute.strategy import Change, Incremental, Strategy
from controllers.compute.strategy import Recompute as Recomputed
from plan import relations as r
from values.types import SqlType


def built(change: Change) -> Linear:
    """The operators of ``change``, each over those that it reads."""
    below = {name: Reduce(grouped, built(grouped.input)) for name, grouped in change.groups.items()}
    return Linear(change.linear, below)


def _check_fits(lowered: Lowered, names: Mapping[str, Sequence[str]]) -> None:
    """Operators find columns by their places, and the diff behind them: in a relation that has got columns since it was
    planned over they would take one of these for it."""
    for get in lowered.gets if isinstance(lowered.query, r.Query) else ():
        assert get.names == tuple(names[get.item_id]), f"planned over {get}, not {names[get.item_id]}"


class Kept:
    """Of a view with columns of ``types``, whose query is ``lowered``, over relations with columns called ``names``."""

    def __init__(self, lowered: Lowered, names: Mapping[str, Sequence[str]], types: Sequence[SqlType]) -> None:
        _check_fits(lowered, names)
        planned, query = Planned(lowered.query), WholeQuery(lowered, types)
        self._wanted = planned.strategy(types)
        self.strategy: Strategy
        self.incremental: Linear | None
        self.hold()
        self.whole = Recompute(query)
        slices = planned.slices() if isinstance(lowered.told.ordinary, Small) else None
        self.affected = None if slices is None else Affected(slices, query, names)

    @property
    def operator(self) -> Operator:
        """What finds a change.  Where it is left, ``whole`` does."""
        return self.incremental or self.affected or self.whole

    def hold(self) -> None:
        """By its own strategy, with nothing held yet."""
        self.strategy = self._wanted
        self.incremental = built(self._wanted.change) if isinstance(self._wanted, Incremental) else None

    def recompute(self, reason: str) -> None:
        """It is worked out again from now on."""
        self.strategy, self.incremental = Recomputed(reason), None

    def explain(self, gear: str, called: Called) -> Iterator[str]:
        """How it is kept in a cluster whose gear is ``gear``."""
        yield self.strategy.name
        if isinstance(self.strategy, Recomputed):
            yield f"  because {self.strategy.reason}"
        found = self.operator.explain(gear, called)
        yield f"gear: {found.gear}"
        yield from (f"  {line}" for line in found.lines)
