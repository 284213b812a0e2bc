"""What operators have in common: their interface, and how they explain themselves.

An operator is made from its part of a strategy and knows no engine, so whoever explains a view makes the same as the
controller that keeps it.  It gives the change of its rows between two timestamps.  What it holds in memory moves only
by :meth:`Operator.accept`, after that change is safely committed; until then it may be asked again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import pyarrow as pa

from controllers.compute.operators.given import Given
from journal.timestamps import DataTs
from values.types import SqlType

NEVER = DataTs(-1)
"""Before every timestamp: everything is a change since then."""

Called = Callable[[str, str], str | None]
"""What users call a column of the relation with that id, by the name that engines know it by; ``None`` where it is
gone."""


class Explained(NamedTuple):
    """Whom an operator asks: Spark because of ``spark``, whatever there is to read; where that is ``None``, engines in
    this process while what ``small`` says is so.  ``lines`` say what is asked of which where one of its inputs changes.
    """

    spark: str | None
    small: str
    lines: Sequence[str]

    @property
    def gear(self) -> str:
        return f"spark because {self.spark}" if self.spark else f"process while {self.small}, otherwise spark"


class Operator(Protocol):
    """See the module.  Used by one thread at a time."""

    def explain(self, gear: str, called: Called) -> Explained:
        """What it asks of which engine, and why, in a cluster whose gear is ``gear``: by what it works by itself."""

    def delta(self, given: Given, t0: DataTs, t1: DataTs) -> pa.Table:
        """The change of ``(t0, t1]``: columns by position, then ``__diff``, not consolidated.

        With ``t0`` :data:`NEVER` of all there is, whatever the operator held.  Raises
        :class:`~controllers.compute.operators.left.Left` where the whole query is to be asked instead.
        """

    def restore(self, given: Given, t1: DataTs) -> None:
        """What is held is to be that of ``t1``, whatever it was, once it is accepted."""

    def accept(self) -> None:
        """What was found last is what is held."""

    @property
    def held(self) -> int:
        """How many values are in memory for it."""


class Contents(Operator, Protocol):
    """An operator whose rows others read, too."""

    types: tuple[SqlType, ...]

    def contents(self) -> pa.Table:
        """Its rows as they are held, in the shape of a delta."""
