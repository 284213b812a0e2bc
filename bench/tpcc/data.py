"""TPC-C's tables and what is in them at first, and what its terminals ask.  Pure: a seed gives the same each time.

As the specification (revision 5.11, clauses 1.3, 2.1, 4.3) has them, but smaller, without foreign keys, and with
``text`` for every ``char`` and ``varchar``.  Warehouses, districts and customers begin at 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from random import Random

DISTRICTS = 10
"""Of a warehouse."""

LINES = (5, 15)
"""Order lines of an order, least and most."""

UNUSED_ITEM = 0
"""An item that is not there, for which a new order is rolled back."""

BEGAN = datetime(2026, 1, 1)
"""When the orders that there are at first were entered."""

_SYLLABLES = ("BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_DISTS = tuple(f"s_dist_{number:02d}" for number in range(1, DISTRICTS + 1))

Row = tuple[object, ...]

TABLES = {
    "warehouse": "w_id int, w_name text, w_street_1 text, w_street_2 text, w_city text, w_state text, w_zip text, "
    "w_tax numeric(4,4), w_ytd numeric(12,2), PRIMARY KEY (w_id)",
    "district": "d_id int, d_w_id int, d_name text, d_street_1 text, d_street_2 text, d_city text, d_state text, "
    "d_zip text, d_tax numeric(4,4), d_ytd numeric(12,2), d_next_o_id int, PRIMARY KEY (d_w_id, d_id)",
    "customer": "c_id int, c_d_id int, c_w_id int, c_first text, c_middle text, c_last text, c_street_1 text, "
    "c_street_2 text, c_city text, c_state text, c_zip text, c_phone text, c_since timestamp, c_credit text, "
    "c_credit_lim numeric(12,2), c_discount numeric(4,4), c_balance numeric(12,2), c_ytd_payment numeric(12,2), "
    "c_payment_cnt int, c_delivery_cnt int, c_data text, PRIMARY KEY (c_w_id, c_d_id, c_id)",
    "history": "h_c_id int, h_c_d_id int, h_c_w_id int, h_d_id int, h_w_id int, h_date timestamp, "
    "h_amount numeric(6,2), h_data text",
    "new_order": "no_o_id int, no_d_id int, no_w_id int, PRIMARY KEY (no_w_id, no_d_id, no_o_id)",
    "orders": "o_id int, o_d_id int, o_w_id int, o_c_id int, o_entry_d timestamp, o_carrier_id int, o_ol_cnt int, "
    "o_all_local int, PRIMARY KEY (o_w_id, o_d_id, o_id)",
    "order_line": "ol_o_id int, ol_d_id int, ol_w_id int, ol_number int, ol_i_id int, ol_supply_w_id int, "
    "ol_delivery_d timestamp, ol_quantity int, ol_amount numeric(6,2), ol_dist_info text, "
    "PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number)",
    "item": "i_id int, i_im_id int, i_name text, i_price numeric(5,2), i_data text, PRIMARY KEY (i_id)",
    "stock": f"s_i_id int, s_w_id int, s_quantity int, {', '.join(f'{each} text' for each in _DISTS)}, s_ytd int, "
    "s_order_cnt int, s_remote_cnt int, s_data text, PRIMARY KEY (s_w_id, s_i_id)",
}
"""Columns and keys, by table."""


@dataclass(frozen=True)
class Scale:
    """How much there is.  The specification has 3,000 customers and orders a district and 100,000 items."""

    warehouses: int = 2
    customers: int = 300
    """Of a district, and as many orders, one a customer."""
    items: int = 10_000

    @property
    def delivered(self) -> int:
        """Orders of a district that are not new: the others, the newest three of ten, are in ``new_order``."""
        return self.customers * 7 // 10


def last_name(number: int) -> str:
    """Of ``number``, 0 to 999 (clause 4.3.2.3)."""
    return "".join(_SYLLABLES[int(digit)] for digit in f"{number:03d}")


class Draw:
    """What the specification draws, from one seed."""

    def __init__(self, seed: int | str) -> None:
        self.random = Random(seed)

    def uneven(self, a: int, lower: int, upper: int) -> int:
        """NURand(``a``, ``lower``, ``upper``) of clause 2.1.6, whose constant C is a third of ``a`` here."""
        drawn = self.random.randint(0, a) | self.random.randint(lower, upper)
        return (drawn + a // 3) % (upper - lower + 1) + lower

    def text(self, least: int, most: int) -> str:
        return "".join(self.random.choices(_LETTERS, k=self.random.randint(least, most)))

    def original(self) -> str:
        """Data of an item or a stock: ``original`` is somewhere in one of ten."""
        text = self.text(26, 50)
        if self.random.random() >= 0.1:
            return text
        at = self.random.randint(0, len(text) - 8)
        return f"{text[:at]}original{text[at + 8 :]}"

    def address(self) -> Row:
        """Two streets, a city, a state, a zip."""
        zip_code = f"{self.random.randint(0, 9999):04d}11111"
        return self.text(10, 20), self.text(10, 20), self.text(10, 20), self.text(2, 2).upper(), zip_code

    def tenthousandths(self, most: int) -> Decimal:
        return Decimal(self.random.randint(0, most)).scaleb(-4)

    def cents(self, least: int, most: int) -> Decimal:
        return Decimal(self.random.randint(least, most)).scaleb(-2)

    def customer(self, scale: Scale) -> int:
        return self.uneven(1023, 1, scale.customers)

    def item(self, scale: Scale) -> int:
        return self.uneven(8191, 1, scale.items)

    def name(self, scale: Scale) -> str:
        """Of a customer: names go round with customers, so a smaller district has fewer of them."""
        return last_name(self.uneven(255, 0, min(999, scale.customers - 1)))


def rows(scale: Scale, seed: int) -> dict[str, Iterator[Row]]:
    """What is there at first, by table; each is drawn apart, so they may be read in any order."""

    def draw(what: str) -> Draw:
        return Draw(f"{seed} {what}")

    return {
        "item": _items(scale, draw("item")),
        "warehouse": _warehouses(scale, draw("warehouse")),
        "stock": _stock(scale, draw("stock")),
        "district": _districts(scale, draw("district")),
        "customer": _customers(scale, draw("customer")),
        "history": _history(scale, draw("history")),
        "orders": (order for order, _ in _orders(scale, draw("orders"))),
        "order_line": (line for _, lines in _orders(scale, draw("orders")) for line in lines),
        "new_order": ((o, d, w) for w, d in places(scale) for o in range(scale.delivered + 1, scale.customers + 1)),
    }


def places(scale: Scale) -> Iterator[tuple[int, int]]:
    """Warehouse and number of every district."""
    return ((w, d) for w in range(1, scale.warehouses + 1) for d in range(1, DISTRICTS + 1))


def _items(scale: Scale, draw: Draw) -> Iterator[Row]:
    for i in range(1, scale.items + 1):
        yield i, draw.random.randint(1, 10_000), draw.text(14, 24), draw.cents(100, 10_000), draw.original()


def _warehouses(scale: Scale, draw: Draw) -> Iterator[Row]:
    for w in range(1, scale.warehouses + 1):
        paid = 10 * DISTRICTS * scale.customers  # what its districts have; 300,000 where there are 3,000 customers
        yield w, draw.text(6, 10), *draw.address(), draw.tenthousandths(2000), Decimal(paid).quantize(Decimal("0.01"))


def _stock(scale: Scale, draw: Draw) -> Iterator[Row]:
    for w in range(1, scale.warehouses + 1):
        for i in range(1, scale.items + 1):
            dists = [draw.text(24, 24) for _ in _DISTS]
            yield i, w, draw.random.randint(10, 100), *dists, 0, 0, 0, draw.original()


def _districts(scale: Scale, draw: Draw) -> Iterator[Row]:
    for w, d in places(scale):
        paid = Decimal(10 * scale.customers).quantize(Decimal("0.01"))
        tax = draw.tenthousandths(2000)
        yield d, w, draw.text(6, 10), *draw.address(), tax, paid, scale.customers + 1


def _customers(scale: Scale, draw: Draw) -> Iterator[Row]:
    for w, d in places(scale):
        for c in range(1, scale.customers + 1):
            last = last_name(c - 1) if c <= 1000 else draw.name(scale)
            phone = "".join(draw.random.choices("0123456789", k=16))
            credit = "BC" if draw.random.random() < 0.1 else "GC"
            yield (
                c, d, w, draw.text(8, 16), "OE", last, *draw.address(), phone, BEGAN, credit, Decimal("50000.00"),
                draw.tenthousandths(5000), Decimal("-10.00"), Decimal("10.00"), 1, 0, draw.text(300, 500),
            )  # fmt: skip


def _history(scale: Scale, draw: Draw) -> Iterator[Row]:
    for w, d in places(scale):
        for c in range(1, scale.customers + 1):
            yield c, d, w, d, w, BEGAN, Decimal("10.00"), draw.text(12, 24)


def _orders(scale: Scale, draw: Draw) -> Iterator[tuple[Row, list[Row]]]:
    """Each order with its lines."""
    for w, d in places(scale):
        customers = list(range(1, scale.customers + 1))
        draw.random.shuffle(customers)
        for o, c in enumerate(customers, 1):
            new, entered, count = o > scale.delivered, BEGAN + timedelta(seconds=o), draw.random.randint(*LINES)
            carrier = None if new else draw.random.randint(1, 10)
            lines: list[Row] = []
            for number in range(1, count + 1):
                amount = draw.cents(1, 999_999) if new else Decimal("0.00")
                item, delivered = draw.random.randint(1, scale.items), None if new else entered
                lines.append((o, d, w, number, item, w, delivered, 5, amount, draw.text(24, 24)))
            yield (o, d, w, c, entered, carrier, count, 1), lines


# --- what terminals ask


@dataclass(frozen=True)
class Line:
    item: int
    supplier: int
    quantity: int


@dataclass(frozen=True)
class NewOrder:
    """Clause 2.4.1."""

    warehouse: int
    district: int
    customer: int
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Payment:
    """Clause 2.5.1.  The customer is said by number or by last name."""

    warehouse: int
    district: int
    customer_warehouse: int
    customer_district: int
    customer: int | str
    amount: Decimal


def asked(scale: Scale, draw: Draw, warehouse: int) -> NewOrder | Payment:
    """The next transaction of a terminal of ``warehouse``: as many new orders as payments, as the specification's 45
    and 43 of a hundred are nearly."""
    return drawn_order(scale, draw, warehouse) if draw.random.random() < 0.5 else drawn_payment(scale, draw, warehouse)


def drawn_order(scale: Scale, draw: Draw, warehouse: int) -> NewOrder:
    """One line of a hundred is supplied by another warehouse, and one order of a hundred asks for what is not there."""
    lines = []
    for _ in range(draw.random.randint(*LINES)):
        supplier = warehouse if draw.random.random() >= 0.01 else _another(scale, draw, warehouse)
        lines.append(Line(draw.item(scale), supplier, draw.random.randint(1, 10)))
    if draw.random.random() < 0.01:
        lines[-1] = Line(UNUSED_ITEM, warehouse, 1)
    return NewOrder(warehouse, draw.random.randint(1, DISTRICTS), draw.customer(scale), tuple(lines))


def drawn_payment(scale: Scale, draw: Draw, warehouse: int) -> Payment:
    """Of a hundred customers 15 pay at another warehouse, and 60 say their last name."""
    district = draw.random.randint(1, DISTRICTS)
    home, home_district = warehouse, district
    if draw.random.random() < 0.15:
        home, home_district = _another(scale, draw, warehouse), draw.random.randint(1, DISTRICTS)
    customer = draw.name(scale) if draw.random.random() < 0.6 else draw.customer(scale)
    return Payment(warehouse, district, home, home_district, customer, draw.cents(100, 500_000))


def _another(scale: Scale, draw: Draw, warehouse: int) -> int:
    others = [w for w in range(1, scale.warehouses + 1) if w != warehouse]
    return draw.random.choice(others) if others else warehouse
