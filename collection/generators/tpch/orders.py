"""Orders of TPCH and their lines, by the number of the order: rows of the two relations.  Pure.

Order *n* (from 0) draws what row *n* of dbgen's draws, also behind the snapshot, where dbgen goes on with its refresh
sets.  It takes the place of order *n* - (number of orders), and of the four keys that a place has, the next.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from collection.generators.tpch import words
from collection.generators.tpch.still import Arrays, price, seller
from collection.generators.tpch.streams import Rows, between
from collection.generators.tpch.tables import Counts
from collection.generators.tpch.values import comments, comments_of, days, money, numbered, one_of

LINES_MAX = 7
_FIRST_DAY, _TODAY = 8_035, 9_298
"""1992-01-01, and 1995-06-17: what is behind that is yet to come.  Days since 1970."""
_LAST_DAY = _FIRST_DAY + 2_405
"""Of orders."""
_USED, _GAPS = 8, 4
"""Of keys: so many one after the other, and so many times as many are there for them."""
_MORTALITY = 3
"""One of so many customers has no orders."""
_CLERKS = 1_000


class _Lines:
    """What orders and lines both need to know of the lines of the orders ``[lower, upper)``."""

    def __init__(self, lower: int, upper: int, many: Counts) -> None:
        self.lower, self.upper = lower, upper
        lines = between(Rows(1434868289, 1, lower, upper).each(), 1, LINES_MAX)
        self.firsts = np.cumsum(lines) - lines
        self.order = np.repeat(np.arange(upper - lower), lines)
        self.number = np.arange(len(self.order)) - self.firsts[self.order]
        self.lines = lines
        self.days = between(Rows(1066728069, 1, lower, upper).each(), _FIRST_DAY, _LAST_DAY)
        self.quantity = self.drawn(209208115, 1, 50)
        self.discount = self.drawn(554590007, 0, 10)
        self.tax = self.drawn(721958466, 0, 8)
        self.part = self.drawn(1808217256, 1, many.parts)
        self.price = price(self.part) * self.quantity
        self.shipped = self.days[self.order] + self.drawn(1769349045, 1, 121)

    def drawn(self, seed: int, least: int, most: int) -> np.ndarray:
        return between(self.fractions(seed), least, most)

    def fractions(self, seed: int, at: np.ndarray | None = None) -> np.ndarray:
        """One for each line, the order's next each, or by which ``at`` says."""
        return Rows(seed, LINES_MAX, self.lower, self.upper).at(self.order, self.number if at is None else at)


def keys(lower: int, upper: int, many: Counts) -> np.ndarray:
    generation, place = np.divmod(np.arange(lower, upper), many.orders)
    group, low = np.divmod(place + 1, _USED)
    return (group * _GAPS + generation % _GAPS) * _USED + low


def orders(lower: int, upper: int, many: Counts) -> tuple[Arrays, np.ndarray]:
    """The columns, and which order each row is of, from 0."""
    lines = _Lines(lower, upper, many)
    buyer = between(Rows(851767375, 1, lower, upper).each(), 1, many.customers)
    buyer += np.where(buyer % _MORTALITY == 0, np.where(buyer < many.customers, 1, -1), 0)
    paid = lines.price * (100 - lines.discount) // 100 * (100 + lines.tax) // 100
    shipped = np.add.reduceat((lines.shipped <= _TODAY).astype(np.int64), lines.firsts)
    status = np.where(shipped == lines.lines, 0, np.where(shipped > 0, 1, 2))
    clerks = max(_CLERKS, _CLERKS * many.orders // 1_500_000)
    clerk = between(Rows(1171034773, 1, lower, upper).each(), 1, clerks)
    return [
        keys(lower, upper, many), buyer, pa.array(["F", "P", "O"]).take(pa.array(status)),
        money(np.add.reduceat(paid, lines.firsts)), days(lines.days),
        one_of(Rows(591449447, 1, lower, upper).each(), words.PRIORITIES), numbered("Clerk#", clerk),
        np.zeros(upper - lower, np.int32), comments_of(276090261, 49, lower, upper),
    ], np.arange(upper - lower)  # fmt: skip


def lineitem(lower: int, upper: int, many: Counts) -> tuple[Arrays, np.ndarray]:
    """The columns, and which order each row is of, from 0."""
    lines = _Lines(lower, upper, many)
    ordered = lines.days[lines.order]
    received = lines.shipped + lines.drawn(373135028, 1, 30)
    flags = pa.array([*words.RETURNED, "N"]).take(pa.array(_returned(lines, received <= _TODAY)))
    said = Rows(1095462486, 2 * LINES_MAX, lower, upper)
    return [
        keys(lower, upper, many)[lines.order], lines.part,
        seller(lines.part, lines.drawn(2095021727, 0, 3), many.suppliers), lines.number + 1,
        money(100 * lines.quantity), money(lines.price), money(lines.discount), money(lines.tax), flags,
        pa.array(["O", "F"]).take(pa.array((lines.shipped <= _TODAY).astype(np.int64))), days(lines.shipped),
        days(ordered + lines.drawn(904914315, 30, 90)), days(received),
        one_of(lines.fractions(1371272478), words.INSTRUCTIONS), one_of(lines.fractions(675466456), words.MODES),
        comments(said.at(lines.order, 2 * lines.number), said.at(lines.order, 2 * lines.number + 1), 27),
    ], lines.order  # fmt: skip


def _returned(lines: _Lines, came: np.ndarray) -> np.ndarray:
    """Which flag each line has: only those that ``came`` draw one, so it is the order's next draw."""
    before = np.cumsum(came) - came
    nth = before - before[lines.firsts][lines.order]
    drawn = between(lines.fractions(717419739, nth), 0, len(words.RETURNED) - 1)
    return np.where(came, drawn, len(words.RETURNED))
