"""TPCH as a load generator: which rows its events change.  Pure; the rows are made beside it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from catalog_log.objects import Generator
from collection.generators.core import batch_of, changes_of
from collection.generators.tpch import orders, still
from collection.generators.tpch.tables import (
    CUSTOMER,
    LINEITEM,
    NATION,
    OFFERS,
    ORDERS,
    PART,
    PARTSUPP,
    REGION,
    SUPPLIER,
    TABLES,
    counts,
)  # fmt: skip

_STILL = {
    REGION: still.region, NATION: still.nation, SUPPLIER: still.supplier, CUSTOMER: still.customer, PART: still.part,
    PARTSUPP: still.partsupp,
}  # fmt: skip
_MOVING = {ORDERS: orders.orders, LINEITEM: orders.lineitem}

_ROW_BYTES = 160
"""About, of any of them but offers, which have 200."""
_ROWS_EACH = {PARTSUPP: OFFERS + 1, LINEITEM: orders.LINES_MAX // 2 + 1}


class Tpch:
    """One of the eight relations; what an event changes in another changes nothing in it."""

    def __init__(self, generator: Generator) -> None:
        self._table, self._many = generator.table, counts(generator)
        self._lower, self._upper = self._many.events(self._table)
        self.batch = batch_of(_ROW_BYTES * _ROWS_EACH.get(self._table, 1))

    def changes(self, lower: int, upper: int) -> pa.Table:
        first = max(self._lower, min(self._upper, lower)) - self._lower
        last = max(self._lower, min(self._upper, upper)) - self._lower
        if self._table in _STILL:
            return changes_of(TABLES[self._table], _STILL[self._table](first, last, self._many))
        found = [self._moved(first, last, 1)[0]] if first < last or upper <= self._upper else []
        if upper > self._upper:
            ticks = max(lower, self._upper) - self._upper, upper - self._upper
            gone, of_gone = self._moved(*ticks, -1)
            come, of_come = self._moved(*(self._many.orders + each for each in ticks), 1)
            order = np.argsort(np.concatenate([of_gone, of_come]), kind="stable")  # first what goes
            found.append(pa.concat_tables([gone, come]).take(pa.array(order)))
        return pa.concat_tables(found).combine_chunks()

    def _moved(self, lower: int, upper: int, diff: int) -> tuple[pa.Table, np.ndarray]:
        """The rows of the orders ``[lower, upper)``, and which order each is of, from 0."""
        arrays, of = _MOVING[self._table](lower, upper, self._many)
        return changes_of(TABLES[self._table], arrays, np.full(len(of), diff, np.int64)), of
