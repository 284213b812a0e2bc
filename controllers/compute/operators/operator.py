"""What operators have in common: the interface, what they ask engines by, and what they read.

An operator gives the change of its rows between two timestamps.  What it holds in memory moves only by
:meth:`Operator.accept`, after that change is safely committed; until then it may be asked again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
from pyspark.sql import SparkSession

from catalog_log.settings import SPARK
from controllers.compute.handing import Handing
from controllers.compute.operators.process import Process
from controllers.compute.operators.small import TOLD_SPARK
from controllers.compute.sources import Sources
from journal.timestamps import DataTs
from values.types import SqlType

NEVER = DataTs(-1)
"""Before every timestamp: everything is a change since then."""


class Operator(Protocol):
    """See the module.  Used by one thread at a time."""

    def delta(self, sources: Sources, t0: DataTs, t1: DataTs) -> pa.Table:
        """The change of ``(t0, t1]``: columns by position, then ``__diff``, not consolidated.

        With ``t0`` :data:`NEVER` of all there is, whatever the operator held.
        """

    def rebuild(self, sources: Sources, t1: DataTs) -> None:
        """What is held is to be that of ``t1``, whatever it was."""

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


@dataclass(frozen=True)
class Engines:
    """What the operators of one view ask.  ``left`` is told why something goes to Spark."""

    view_id: str
    spark: SparkSession
    handing: Handing
    process: Process
    gear: Callable[[], str]
    left: Callable[[str], None]

    def why_spark(self) -> str | None:
        """Why Spark is asked whatever it is; ``None`` where it is not."""
        return TOLD_SPARK if self.gear() == SPARK else None
