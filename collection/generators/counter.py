"""COUNTER: event *n* is the number *n* + 1.  Pure.

With MAX CARDINALITY *m* the number of the event *m* before goes as each comes, as in Materialize.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from catalog_log.objects import Column, Generator
from collection.generators.core import BATCH_EVENTS_MAX, changes_of

COLUMNS = (Column("counter", "int8", False),)

CARDINALITY = "max cardinality"


class Counter:
    batch = BATCH_EVENTS_MAX

    def __init__(self, generator: Generator) -> None:
        self._kept = generator.option(CARDINALITY)
        """0: all of them."""

    def changes(self, lower: int, upper: int) -> pa.Table:
        come = np.arange(lower, upper, dtype=np.int64) + 1
        if not self._kept:
            return changes_of(COLUMNS, [come])
        both = np.stack([come - self._kept, come], axis=1).reshape(-1)
        diffs = np.tile(np.array([-1, 1], np.int64), len(come))
        there = both > 0
        return changes_of(COLUMNS, [both[there]], diffs[there])
