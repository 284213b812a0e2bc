"""TPC-C's rows are what its specification asks, and its conditions find what breaks them: else they check nothing."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

import pytest

from bench.tpcc.consistency import Contents, District, New, Orders, broken, contents, lost
from bench.tpcc.data import (
    DISTRICTS,
    LINES,
    TABLES,
    UNUSED_ITEM,
    Draw,
    NewOrder,
    Payment,
    Row,
    Scale,
    asked,
    last_name,
    rows,
)

SCALE = Scale(warehouses=2, customers=20, items=50)
SEED = 7


def columns(table: str) -> list[str]:
    text = TABLES[table].split(", PRIMARY KEY")[0]
    return [each.split()[0] for each in re.split(r", (?=[a-z])", text)]


def key(table: str) -> list[int]:
    found = re.search(r"PRIMARY KEY \(([^)]*)\)", TABLES[table])
    return [] if found is None else [columns(table).index(each) for each in found[1].split(", ")]


def made(seed: int = SEED) -> dict[str, list[Row]]:
    return {table: list(of_table) for table, of_table in rows(SCALE, seed).items()}


def told(tables: dict[str, list[Row]]) -> Contents:
    """As the queries say it."""

    def values(table: str, *names: str) -> list[tuple]:
        at = [columns(table).index(name) for name in names]
        return [tuple(row[i] for i in at) for row in tables[table]]

    def grouped(table: str, *names: str) -> dict[tuple, list[tuple]]:
        found: dict[tuple, list[tuple]] = defaultdict(list)
        for w, d, *rest in values(table, *names):
            found[w, d].append(tuple(rest))
        return found

    orders = grouped("orders", "o_w_id", "o_d_id", "o_id", "o_ol_cnt")
    new = grouped("new_order", "no_w_id", "no_d_id", "no_o_id")
    lines = grouped("order_line", "ol_w_id", "ol_d_id", "ol_number")
    paid: Counter[int] = Counter()
    for w, amount in values("history", "h_w_id", "h_amount"):
        paid[w] += amount
    return contents({
        "warehouses": values("warehouse", "w_id", "w_ytd"),
        "districts": values("district", "d_w_id", "d_id", "d_ytd", "d_next_o_id"),
        "orders": [(*at, len(of), max(o for o, _ in of), sum(n for _, n in of)) for at, of in orders.items()],
        "new": [(*at, len(of), min(of)[0], max(of)[0]) for at, of in new.items()],
        "lines": [(*at, len(of)) for at, of in lines.items()],
        "paid": paid.items(),
    })  # fmt: skip


def test_rows_have_the_columns_and_keys_of_their_tables() -> None:
    tables = made()
    assert tables.keys() == TABLES.keys()
    for table, of_table in tables.items():
        assert {len(row) for row in of_table} == {len(columns(table))}, table
        if at := key(table):
            assert len({tuple(row[i] for i in at) for row in of_table}) == len(of_table), table
    districts = SCALE.warehouses * DISTRICTS
    assert {table: len(of) for table, of in tables.items() if table != "order_line"} == {
        "warehouse": 2, "district": districts, "customer": 20 * districts, "history": 20 * districts,
        "orders": 20 * districts, "new_order": 6 * districts, "item": 50, "stock": 100,
    }  # fmt: skip


def test_a_seed_gives_the_same_rows_and_another_gives_others() -> None:
    assert made() == made() != made(SEED + 1)


def test_what_there_is_at_first_keeps_the_conditions() -> None:
    found = told(made())
    assert broken(found) == [] == lost(found, found, {}, {})
    assert found.districts[1, 1] == District(Decimal("200.00"), 21)
    assert found.new[2, 10] == New(6, 15, 20)


def test_names_are_of_syllables() -> None:
    assert (last_name(0), last_name(371), last_name(999)) == ("BARBARBAR", "PRICALLYOUGHT", "EINGEINGEING")


def test_what_terminals_ask_is_within_the_tables() -> None:
    draw = Draw(SEED)
    drawn = [asked(SCALE, draw, 2) for _ in range(4_000)]
    orders = [each for each in drawn if isinstance(each, NewOrder)]
    payments = [each for each in drawn if isinstance(each, Payment)]
    assert 0.45 < len(orders) / len(drawn) < 0.55
    names = {last_name(number) for number in range(SCALE.customers)}
    for each in payments:
        assert each.customer in names if isinstance(each.customer, str) else 1 <= each.customer <= SCALE.customers
        assert Decimal("1.00") <= each.amount <= Decimal("5000.00")
    away = sum(each.customer_warehouse != 2 for each in payments)
    assert 0.1 < away / len(payments) < 0.2
    assert 0.55 < sum(isinstance(each.customer, str) for each in payments) / len(payments) < 0.65
    assert all(LINES[0] <= len(each.lines) <= LINES[1] for each in orders)
    items = [line.item for each in orders for line in each.lines]
    assert set(items) == {UNUSED_ITEM, *range(1, SCALE.items + 1)}
    assert 0 < items.count(UNUSED_ITEM) / len(orders) < 0.03
    assert 0 < sum(line.supplier == 1 for each in orders for line in each.lines) / len(items) < 0.03
    alone = [asked(Scale(warehouses=1), draw, 1) for _ in range(500)]
    assert {each.customer_warehouse for each in alone if isinstance(each, Payment)} == {1}


def _district(found: Contents, **changes: object) -> Contents:
    return replace(found, districts={**found.districts, (1, 3): replace(found.districts[1, 3], **changes)})


BREAKS: dict[str, tuple[str, Callable[[Contents], Contents]]] = {
    "a warehouse was paid twice": ("1", lambda f: replace(f, warehouses={**f.warehouses, 1: f.warehouses[1] + 5})),
    "a district's payment is lost": ("1", lambda f: _district(f, paid=f.districts[1, 3].paid - 5)),
    "a number was given twice": ("2", lambda f: _district(f, next_order=f.districts[1, 3].next_order - 1)),
    "an order is not there": ("2", lambda f: replace(f, orders={**f.orders, (1, 3): Orders(19, 19, 200)})),
    "a district has no orders": (
        "2", lambda f: replace(f, orders={at: each for at, each in f.orders.items() if at != (1, 3)}),
    ),
    "a new order is not there": ("3", lambda f: replace(f, new={**f.new, (1, 3): New(5, 15, 20)})),
    "the last new order is not there": ("2", lambda f: replace(f, new={**f.new, (1, 3): New(5, 15, 19)})),
    "a line is not there": ("4", lambda f: replace(f, lines={**f.lines, (1, 3): f.lines[1, 3] - 1})),
    "lines are of no district": ("2", lambda f: replace(f, lines={**f.lines, (9, 9): 1})),
}  # fmt: skip


@pytest.mark.parametrize("what", BREAKS)
def test_a_condition_that_is_broken_is_found(what: str) -> None:
    number, change = BREAKS[what]
    wrong = broken(change(told(made())))
    assert wrong and number in {each.split(":")[0] for each in wrong}


def test_what_was_acknowledged_is_what_came() -> None:
    before = told(made())
    grown = replace(before.orders[1, 3], count=21, newest=21)
    after = _district(replace(before, orders={**before.orders, (1, 3): grown}), next_order=22)
    after = replace(
        after, warehouses={**after.warehouses, 2: after.warehouses[2] + 7}, paid={**after.paid, 2: after.paid[2] + 7}
    )
    assert lost(before, after, {(1, 3): 1}, {2: Decimal(7)}) == []
    assert lost(before, after, {(1, 3): 2}, {2: Decimal(7)})
    assert lost(before, after, {}, {2: Decimal(7)})
    assert lost(before, after, {(1, 3): 1}, {2: Decimal(8)})
    assert lost(before, after, {(1, 3): 1}, {1: Decimal(1), 2: Decimal(7)})
    assert lost(before, replace(after, paid=before.paid), {(1, 3): 1}, {2: Decimal(7)})
