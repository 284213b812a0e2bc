"""The operators of a strategy, each over those that it reads."""

from __future__ import annotations

from collections.abc import Mapping

from controllers.compute.operators.linear import Linear
from controllers.compute.operators.operator import Engines
from controllers.compute.operators.reduce import Reduce
from controllers.compute.relation import Relation
from controllers.compute.strategy import Change


def built(change: Change, inputs: Mapping[str, Relation], engines: Engines) -> Linear:
    """The operators of ``change`` over ``inputs``."""
    below = {
        name: Reduce(grouped, built(grouped.input, inputs, engines), engines)
        for name, grouped in change.groups.items()
    }  # fmt: skip
    return Linear(change.linear, inputs, below, engines)
