"""TPCH: rows are those of dbgen, events agree between relations, and what comes behind the snapshot.

``dbgen_tpch.json`` says what TPC's own program wrote: digests of its lines, and how many there are.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pytest

from catalog_log.objects import Generator
from collection.columns import DIFF
from collection.generators.kinds import core_of
from collection.generators.tpch import tables, text
from collection.generators.tpch.streams import Rows, fractions, numbers

DBGEN = json.loads((Path(__file__).parent / "dbgen_tpch.json").read_text())


def generator(table: str, thousandths: int) -> Generator:
    return Generator("tpch", table, ((tables.SCALE, thousandths),))


def lines(made: Generator, lower: int, upper: int, diff: int | None = 1) -> list[str]:
    """As dbgen writes them, of rows of this diff alone."""
    found = core_of(made).changes(lower, upper)
    found = found.filter(pc.equal(found.column(DIFF), diff)).drop_columns(DIFF)
    if "l_quantity" in found.column_names:  # which dbgen writes without decimals
        at = found.column_names.index("l_quantity")
        found = found.set_column(at, "l_quantity", found.column(at).cast("int64"))
    rows = zip(*(each.to_pylist() for each in found.columns), strict=True)
    return ["".join(f"{value}|" for value in row) + "\n" for row in rows]


def digest(told: list[str]) -> list:
    return [len(told), hashlib.md5("".join(told).encode(), usedforsecurity=False).hexdigest()]


@pytest.mark.parametrize("table", tables.TABLES)
def test_a_whole_relation_is_what_dbgen_wrote(table) -> None:
    made = generator(table, 10)
    assert digest(lines(made, 0, tables.snapshot(made))) == DBGEN["whole"][table]


def test_pieces_of_large_ones_are_what_dbgen_wrote() -> None:
    """The first, the last, and some within, of 1 to 10,000 times the size that the specification begins with."""
    assert len(DBGEN["pieces"]) > 40
    for table, scale, lower, upper, count, wanted in DBGEN["pieces"]:
        made = generator(table, 1000 * scale)
        begin, _ = tables.counts(made).events(table)
        assert digest(lines(made, begin + lower, begin + upper)) == [count, wanted], f"{table} {scale} {lower}"


def test_what_comes_behind_the_snapshot_is_what_dbgen_wrote_as_refresh_sets() -> None:
    """Three of them: of the ten orders of each, and those that go."""
    made = generator("orders", 10)
    begin = tables.snapshot(made)
    assert digest(lines(made, begin, begin + 30)) == DBGEN["refreshed"]["orders"]
    assert digest(lines(generator("lineitem", 10), begin, begin + 30)) == DBGEN["refreshed"]["lineitem"]
    gone = [each.split("|")[0] + "|\n" for each in lines(made, begin, begin + 30, -1)]
    assert digest(gone) == DBGEN["refreshed"]["deleted"]


def test_a_digest_of_other_rows_is_another() -> None:
    made = generator("region", 10)
    told = lines(made, 0, 5)
    assert digest(told) == DBGEN["whole"]["region"] != digest(told[::-1])


def contents(table: str, thousandths: int, upper: int) -> dict[tuple, int]:
    """The rows after the events below ``upper``, and how often each is there."""
    found = core_of(generator(table, thousandths)).changes(0, upper)
    there: dict[tuple, int] = {}
    for *row, diff in zip(*(each.to_pylist() for each in found.columns), strict=True):
        left = there.get(tuple(row), 0) + diff
        assert left in (0, 1), f"{table}: {row} is there {left} times"
        there[tuple(row)] = left
        if not left:
            del there[tuple(row)]
    return there


@pytest.mark.parametrize("ticks", [0, 1, 7, 1_499, 1_500, 1_501, 6_005, 7_600])
def test_orders_and_lines_agree_whatever_was_replaced(ticks) -> None:
    """Also when each place has had all of its keys: each key is there once, each order has its lines and no other."""
    upper = tables.snapshot(generator("orders", 1)) + ticks
    orders, items = contents("orders", 1, upper), contents("lineitem", 1, upper)
    keys = [row[0] for row in orders]
    assert len(keys) == len(set(keys)) == 1500 and max(keys) <= 4 * 1500 + 32
    assert {row[0] for row in items} == set(keys)
    numbers_of: dict[int, set[int]] = {}
    for row in items:
        numbers_of.setdefault(row[0], set()).add(row[3])
    assert all(found == set(range(1, len(found) + 1)) for found in numbers_of.values())
    assert len(items) == sum(map(len, numbers_of.values()))


def test_no_row_names_one_that_comes_later() -> None:
    """Whatever number of events there are."""
    made = {table: generator(table, 1) for table in tables.TABLES}
    whole = tables.snapshot(made["region"])
    names = {"nation": ["region"], "supplier": ["nation"], "customer": ["nation"], "partsupp": ["part", "supplier"],
             "orders": ["customer"], "lineitem": ["orders", "partsupp"]}  # fmt: skip
    many = tables.counts(made["region"])
    for table, others in names.items():
        for other in others:
            assert many.events(other)[0] <= many.events(table)[0] <= whole
            assert many.events(other)[1] <= many.events(table)[0] or many.events(other) == many.events(table)
    upper = 5 + 25 + 10 + 150 + 200 + 40
    offers = {row[:2] for row in contents("partsupp", 1, upper)}
    assert len(contents("orders", 1, upper)) == 40
    assert {row[1:3] for row in contents("lineitem", 1, upper)} <= offers
    assert {row[1] for row in contents("orders", 1, upper)} <= {row[0] for row in contents("customer", 1, upper)}


def test_a_stream_goes_on_from_any_row() -> None:
    """As one after the other: seven draws a row, as dbgen counts them."""
    drawn = numbers(721958466, 0, 7 * 40).tolist()
    seed, wanted = 721958466, []
    for _ in range(7 * 40):
        seed = seed * 16807 % (2**31 - 1)
        wanted.append(seed)
    assert drawn == wanted
    many = Rows(721958466, 7, 3, 40)
    for draw in (0, 6):
        assert many.each(draw).tolist() == fractions(np.array(wanted[3 * 7 + draw :: 7])).tolist()


def test_the_text_is_the_same_however_much_of_it_is_made(monkeypatch) -> None:
    whole = text.made(200_000)
    monkeypatch.setattr(text, "_AT_ONCE", 700)
    assert bytes(text.made(60_000)) == bytes(whole[:60_000])
    assert bytes(text.pool()[:200_000]) == bytes(whole)
