"""TPC-C's new-order and payment as a client of psycopg sends them: statement by statement, in one block each.

The same text goes to both systems.  A row that is read to be changed is read by the change itself (``RETURNING``).
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

import psycopg

from bench.tpcc.data import NewOrder, Payment

WAREHOUSE_TAX = "SELECT w_tax FROM warehouse WHERE w_id = %s"
NEXT_ORDER = (
    "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = %s AND d_id = %s RETURNING d_next_o_id - 1, d_tax"
)
DISCOUNT = "SELECT c_discount, c_last, c_credit FROM customer WHERE c_w_id = %s AND c_d_id = %s AND c_id = %s"
ORDER = "INSERT INTO orders VALUES (%s, %s, %s, %s, %s, NULL, %s, %s)"
NEW = "INSERT INTO new_order VALUES (%s, %s, %s)"
ITEM = "SELECT i_price, i_name, i_data FROM item WHERE i_id = %s"
STOCK = (
    "UPDATE stock SET s_quantity = CASE WHEN s_quantity >= %s + 10 THEN s_quantity - %s ELSE s_quantity - %s + 91 END, "
    "s_ytd = s_ytd + %s, s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + %s "
    "WHERE s_w_id = %s AND s_i_id = %s RETURNING s_quantity, s_dist_{:02d}, s_data"
)
LINE = "INSERT INTO order_line VALUES (%s, %s, %s, %s, %s, %s, NULL, %s, %s, %s)"

PAY_WAREHOUSE = "UPDATE warehouse SET w_ytd = w_ytd + %s WHERE w_id = %s RETURNING w_name"
PAY_DISTRICT = "UPDATE district SET d_ytd = d_ytd + %s WHERE d_w_id = %s AND d_id = %s RETURNING d_name"
NAMED = "SELECT c_id FROM customer WHERE c_w_id = %s AND c_d_id = %s AND c_last = %s ORDER BY c_first"
PAY_CUSTOMER = (
    "UPDATE customer SET c_balance = c_balance - %s, c_ytd_payment = c_ytd_payment + %s, "
    "c_payment_cnt = c_payment_cnt + 1, "
    "c_data = CASE WHEN c_credit = 'BC' THEN left(%s || c_data, 500) ELSE c_data END "
    "WHERE c_w_id = %s AND c_d_id = %s AND c_id = %s RETURNING c_balance, c_credit, c_discount"
)
HISTORY = "INSERT INTO history VALUES (%s, %s, %s, %s, %s, %s, %s, %s)"


def new_order(cursor: psycopg.Cursor, asked: NewOrder, now: datetime) -> Decimal | None:
    """Enter an order, within a block that the caller commits: its total, or ``None`` where an item is not there and the
    block is to be rolled back."""
    w, d = asked.warehouse, asked.district
    (w_tax,) = _one(cursor, WAREHOUSE_TAX, w)
    number, d_tax = _one(cursor, NEXT_ORDER, w, d)
    discount, _last, _credit = _one(cursor, DISCOUNT, w, d, asked.customer)
    all_local = int(all(line.supplier == w for line in asked.lines))
    cursor.execute(ORDER, (number, d, w, asked.customer, now, len(asked.lines), all_local))
    cursor.execute(NEW, (number, d, w))
    total = Decimal(0)
    for at, line in enumerate(asked.lines, 1):
        found = cursor.execute(ITEM, (line.item,)).fetchone()
        if found is None:
            return None
        amount, many, remote = found[0] * line.quantity, line.quantity, int(line.supplier != w)
        said = STOCK.format(d), many, many, many, many, remote, line.supplier, line.item
        _left, dist, _data = _one(cursor, *said)
        cursor.execute(LINE, (number, d, w, at, line.item, line.supplier, many, amount, dist))
        total += amount
    return total * (1 - discount) * (1 + w_tax + d_tax)


def payment(cursor: psycopg.Cursor, asked: Payment, now: datetime) -> None:
    """Take a payment, within a block that the caller commits."""
    w, d, amount = asked.warehouse, asked.district, asked.amount
    home = asked.customer_warehouse, asked.customer_district
    (w_name,) = _one(cursor, PAY_WAREHOUSE, amount, w)
    (d_name,) = _one(cursor, PAY_DISTRICT, amount, w, d)
    customer = asked.customer
    if isinstance(customer, str):
        named = cursor.execute(NAMED, (*home, customer)).fetchall()
        customer = named[(len(named) + 1) // 2 - 1][0]  # the one in the middle, rounded up
    noted = f"{customer} {home[1]} {home[0]} {d} {w} {amount}|"
    _one(cursor, PAY_CUSTOMER, amount, amount, noted, *home, customer)
    cursor.execute(HISTORY, (customer, home[1], home[0], d, w, now, amount, f"{w_name}    {d_name}"))


def _one(cursor: psycopg.Cursor, text: str, *params: object) -> tuple:
    found = cursor.execute(text.encode(), params).fetchall()
    if len(found) != 1:
        raise RuntimeError(f"{len(found)} rows instead of one: {text} {params}")
    return found[0]
