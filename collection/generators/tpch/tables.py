"""The relations of TPCH, how many rows each has, and which event has which of them.

Rows are dbgen's: the snapshot is what ``dbgen -s`` writes, and what comes after is what ``dbgen -U`` writes, as long
as that goes (999 refreshes, in which all orders but a thousandth are replaced).

**Events.**  The rows of the snapshot are events in such an order that no row names one that comes later: regions,
nations, suppliers, customers, parts with their four offers each, orders with their lines.  All relations count the same
events, so an order and its lines are of one event, whichever sources they are in.  Behind the snapshot each event
replaces the oldest order by a new one: refresh functions RF1 and RF2 of the specification (2.5), an order at a time.
The new order takes a key of the gap behind the old one's (of 32 keys only 8 are in use at a time), so keys stay below
four times the number of orders.

**SCALE FACTOR** is in thousandths here.  dbgen takes thousandths below 1 and whole numbers above; what lies between is
what its formulas give.
"""

from __future__ import annotations

from typing import NamedTuple

from catalog_log.objects import Column, Generator
from collection.generators.tpch import words

SCALE = "scale factor"

REGION, NATION, SUPPLIER, CUSTOMER, PART, PARTSUPP, ORDERS, LINEITEM = (
    "region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem"
)  # fmt: skip


def _columns(**types: str) -> tuple[Column, ...]:
    return tuple(Column(name, each, False) for name, each in types.items())


_MONEY = "numeric(15,2)"

TABLES = {
    CUSTOMER: _columns(
        c_custkey="int8", c_name="text", c_address="text", c_nationkey="int8", c_phone="text", c_acctbal=_MONEY,
        c_mktsegment="text", c_comment="text",
    ),
    LINEITEM: _columns(
        l_orderkey="int8", l_partkey="int8", l_suppkey="int8", l_linenumber="int4", l_quantity=_MONEY,
        l_extendedprice=_MONEY, l_discount=_MONEY, l_tax=_MONEY, l_returnflag="text", l_linestatus="text",
        l_shipdate="date", l_commitdate="date", l_receiptdate="date", l_shipinstruct="text", l_shipmode="text",
        l_comment="text",
    ),
    NATION: _columns(n_nationkey="int8", n_name="text", n_regionkey="int8", n_comment="text"),
    ORDERS: _columns(
        o_orderkey="int8", o_custkey="int8", o_orderstatus="text", o_totalprice=_MONEY, o_orderdate="date",
        o_orderpriority="text", o_clerk="text", o_shippriority="int4", o_comment="text",
    ),
    PART: _columns(
        p_partkey="int8", p_name="text", p_mfgr="text", p_brand="text", p_type="text", p_size="int4",
        p_container="text", p_retailprice=_MONEY, p_comment="text",
    ),
    PARTSUPP: _columns(
        ps_partkey="int8", ps_suppkey="int8", ps_availqty="int4", ps_supplycost=_MONEY, ps_comment="text",
    ),
    REGION: _columns(r_regionkey="int8", r_name="text", r_comment="text"),
    SUPPLIER: _columns(
        s_suppkey="int8", s_name="text", s_address="text", s_nationkey="int8", s_phone="text", s_acctbal=_MONEY,
        s_comment="text",
    ),
}  # fmt: skip
"""As Materialize has them, but that keys are int8 there is no uint8 for."""

OFFERS = 4
"""Suppliers of a part."""


class Counts(NamedTuple):
    """How many there are."""

    regions: int
    nations: int
    suppliers: int
    customers: int
    parts: int
    orders: int

    @property
    def snapshot(self) -> int:
        """How many events the snapshot is."""
        return sum(self)

    def events(self, table: str) -> tuple[int, int]:
        """Those of the snapshot that have rows of ``table``, ``[lower, upper)``."""
        place = _PLACES[table]
        return sum(self[:place]), sum(self[: place + 1])


_PLACES = {REGION: 0, NATION: 1, SUPPLIER: 2, CUSTOMER: 3, PART: 4, PARTSUPP: 4, ORDERS: 5, LINEITEM: 5}


def counts(generator: Generator) -> Counts:
    scale = generator.option(SCALE)
    return Counts(len(words.REGIONS), len(words.NATIONS), 10 * scale, 150 * scale, 200 * scale, 1500 * scale)


def snapshot(generator: Generator) -> int:
    """How many events are there from the start, and become visible at one timestamp."""
    return counts(generator).snapshot


def fixed(generator: Generator) -> int | None:
    """How many events a relation has that never changes; ``None`` of orders and their lines, and of all of them."""
    return None if generator.table in (ORDERS, LINEITEM, "") else counts(generator).events(generator.table)[1]
