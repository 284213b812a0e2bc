"""The operators of a strategy, each over those that it reads."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from controllers.compute.operators.linear import Linear, of_collections
from controllers.compute.operators.operator import Engines, Operator
from controllers.compute.operators.reduce import Reduce, of_operator
from controllers.compute.relation import Relation
from controllers.compute.sources import Sources
from controllers.compute.strategy import Change, group_names
from journal.timestamps import DataTs


@dataclass(frozen=True)
class Built:
    """``top`` gives the view's rows, ``below`` holds what is held, ``first`` reads collections."""

    top: Linear
    below: Operator | None
    first: Linear

    def delta(self, sources: Sources, t0: DataTs, t1: DataTs) -> pa.Table:
        """As an operator's."""
        return self.top.delta(sources, t0, t1)

    def rebuilt(self, sources: Sources, t1: DataTs) -> None:
        """What is held will be that of ``t1``, once it is accepted."""
        if self.below is not None:
            self.below.rebuild(sources, t1)

    def accept(self) -> None:
        if self.below is not None:
            self.below.accept()


def built(change: Change, inputs: dict[str, Relation], engines: Engines) -> Built:
    """The operators of ``change`` over ``inputs``."""
    if change.groups is None:
        made = Linear(change.linear, of_collections(inputs), engines)
        return Built(made, None, made)
    under = built(change.groups.input, inputs, engines)
    reduce = Reduce(change.groups, under.top, under.below, engines)
    columns = list(zip(group_names(change.groups), change.groups.types, strict=True))
    return Built(Linear(change.linear, of_operator(reduce, columns, engines), engines), reduce, under.first)
