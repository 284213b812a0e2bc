"""TPC-C's consistency conditions 1 to 4 (clause 3.3.2), and that each transaction that was acknowledged is there once.

Pure: told what the tables say, it says what is wrong with it, in words; nothing is wrong with an empty list.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

Place = tuple[int, int]
"""A warehouse and the number of one of its districts."""

NOTHING = Decimal(0)


@dataclass(frozen=True)
class District:
    paid: Decimal
    next_order: int


@dataclass(frozen=True)
class Orders:
    """Of a district: of its rows in ``orders``."""

    count: int
    newest: int
    lines: int
    """The sum of what each order says that it has."""


@dataclass(frozen=True)
class New:
    """Of a district: of its rows in ``new_order``."""

    count: int
    oldest: int
    newest: int


@dataclass(frozen=True)
class Contents:
    """What the tables say, where something is there at all."""

    warehouses: Mapping[int, Decimal]
    """What each was paid."""
    districts: Mapping[Place, District]
    orders: Mapping[Place, Orders]
    new: Mapping[Place, New]
    lines: Mapping[Place, int]
    """Rows in ``order_line``."""
    paid: Mapping[int, Decimal]
    """The sum of ``history`` of each warehouse where it was paid."""


QUERIES = {
    "warehouses": "SELECT w_id, w_ytd FROM warehouse",
    "districts": "SELECT d_w_id, d_id, d_ytd, d_next_o_id FROM district",
    "orders": "SELECT o_w_id, o_d_id, count(*), max(o_id), sum(o_ol_cnt) FROM orders GROUP BY o_w_id, o_d_id",
    "new": "SELECT no_w_id, no_d_id, count(*), min(no_o_id), max(no_o_id) FROM new_order GROUP BY no_w_id, no_d_id",
    "lines": "SELECT ol_w_id, ol_d_id, count(*) FROM order_line GROUP BY ol_w_id, ol_d_id",
    "paid": "SELECT h_w_id, sum(h_amount) FROM history GROUP BY h_w_id",
}
"""What to ask, in one transaction that sees one moment, to make :func:`contents` of the rows."""


def contents(rows: Mapping[str, Iterable[Sequence]]) -> Contents:
    """What the rows of :data:`QUERIES` say."""
    return Contents(
        {w: paid for w, paid in rows["warehouses"]},
        {(w, d): District(paid, following) for w, d, paid, following in rows["districts"]},
        {(w, d): Orders(count, newest, lines) for w, d, count, newest, lines in rows["orders"]},
        {(w, d): New(count, oldest, newest) for w, d, count, oldest, newest in rows["new"]},
        {(w, d): count for w, d, count in rows["lines"]},
        {w: paid for w, paid in rows["paid"]},
    )


def broken(found: Contents) -> list[str]:
    """What breaks conditions 1 to 4, by their numbers."""
    wrong: list[str] = []
    for w, paid in found.warehouses.items():
        below = sum((each.paid for (at, _), each in found.districts.items() if at == w), NOTHING)
        if paid != below:
            wrong.append(f"1: warehouse {w} was paid {paid}, its districts {below}")
    for place, district in found.districts.items():
        orders, new = found.orders.get(place, Orders(0, 0, 0)), found.new.get(place)
        last, lines = district.next_order - 1, found.lines.get(place, 0)
        if orders.newest != last or (new is not None and new.newest != last):
            told = "none" if new is None else new.newest
            wrong.append(f"2: district {place} gave {last} last, its newest order is {orders.newest}, new {told}")
        if new is not None and new.newest - new.oldest + 1 != new.count:
            wrong.append(f"3: district {place} has {new.count} new orders, from {new.oldest} to {new.newest}")
        if orders.lines != lines:
            wrong.append(f"4: orders of district {place} have {orders.lines} lines, {lines} are there")
    strange = (found.orders.keys() | found.new.keys() | found.lines.keys()) - found.districts.keys()
    return wrong + [f"2: there are orders of district {place}, which is not there" for place in sorted(strange)]


def lost(before: Contents, after: Contents, orders: Mapping[Place, int], payments: Mapping[int, Decimal]) -> list[str]:
    """Where what was acknowledged since ``before`` is not just what came.

    ``orders`` were entered in each district, ``payments`` made at each warehouse.
    """
    wrong: list[str] = []
    entered, paid = Counter(orders), dict(payments)
    for place, district in after.districts.items():
        came = district.next_order - before.districts[place].next_order
        rows = after.orders.get(place, Orders(0, 0, 0)).count - before.orders.get(place, Orders(0, 0, 0)).count
        if not came == rows == (wanted := entered[place]):
            wrong.append(f"district {place} gave {came} numbers and has {rows} more orders, of {wanted} entered")
    for w, total in after.warehouses.items():
        came, wanted = total - before.warehouses[w], paid.get(w, NOTHING)
        told = after.paid.get(w, NOTHING) - before.paid.get(w, NOTHING)
        if not came == told == wanted:
            wrong.append(f"warehouse {w} was paid {came} and its history says {told}, of {wanted} paid")
    return wrong
