"""AUCTION: an auction house in five relations, as Materialize's is made up.  Pure.

Organizations, users and accounts are there from the start: each of their rows is an event of its own.  Of auctions and
bids there is one a tick: eight auctions with two to nine bids each, in an order drawn for each group of them, so 52
ticks are a group and any tick is found without those before it.  Event times begin at BASE TIME; a bid comes before the
tenth tick after its auction, which ends then.

It is not Materialize's generator row for row: that one's rows hang on its clock and on its library's random numbers.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from catalog_log.objects import Column, Generator
from collection.generators.core import BATCH_EVENTS_MAX, LATEST_US, changes_of, moments
from collection.generators.mixed import below, drawn

ORGANIZATIONS, USERS, ACCOUNTS, AUCTIONS, BIDS = "organizations", "users", "accounts", "auctions", "bids"

SEED, BASE_TIME, INTERVAL = "seed", "base time", "event interval"

TABLES = {
    ORGANIZATIONS: (Column("id", "int8", False), Column("name", "text", False)),
    USERS: (Column("id", "int8", False), Column("org_id", "int8", False), Column("name", "text", False)),
    ACCOUNTS: (Column("id", "int8", False), Column("org_id", "int8", False), Column("balance", "int8", False)),
    AUCTIONS: (
        Column("id", "int8", False), Column("seller", "int8", False), Column("item", "text", False),
        Column("end_time", "timestamptz", False),
    ),
    BIDS: (
        Column("id", "int8", False), Column("buyer", "int8", False), Column("auction_id", "int8", False),
        Column("amount", "int4", False), Column("bid_time", "timestamptz", False),
    ),
}  # fmt: skip

_ORGANIZATIONS, _USERS, _BALANCE = 20, 4_000, 10_000
FIXED = {ORGANIZATIONS: _ORGANIZATIONS, USERS: _USERS, ACCOUNTS: _ORGANIZATIONS}
"""How many events the relations have that are there from the start."""

_ITEMS = pa.array(["Signed Memorabilia", "City Bar Crawl", "Best Pizza in Town", "Gift Basket", "Custom Art"])
_BIDS = np.arange(2, 10)
"""Of the auctions of a group."""
_GROUP = int(len(_BIDS) + _BIDS.sum())
_BIDS_MAX = 10
"""Ids of bids are these times the auction's, and the bid's place."""

_ORDER, _SELLER, _ITEM, _BUYER, _AMOUNT = range(1, 6)
"""What is drawn."""


def fixed(generator: Generator) -> int | None:
    """How many events a relation has that is there from the start."""
    return FIXED.get(generator.table)


def timed(generator: Generator) -> int:
    """How many events end before times do."""
    return (LATEST_US - generator.option(BASE_TIME)) // generator.option(INTERVAL) - _BIDS_MAX + 1


class AuctionHouse:
    batch = BATCH_EVENTS_MAX

    def __init__(self, generator: Generator) -> None:
        self._table = generator.table
        self._seed = generator.option(SEED)
        self._base_us, self._interval_us = generator.option(BASE_TIME), generator.option(INTERVAL)

    def changes(self, lower: int, upper: int) -> pa.Table:
        numbers = np.arange(lower, upper, dtype=np.int64)
        made = self._fixed if self._table in FIXED else self._ticks
        return changes_of(TABLES[self._table], made(numbers))

    def _fixed(self, numbers: np.ndarray) -> list[object]:
        ids = numbers + 1
        if self._table == ORGANIZATIONS:
            return [ids, _called("Organization", ids)]
        if self._table == USERS:
            return [ids, numbers % _ORGANIZATIONS + 1, _called("User", ids)]
        return [ids + 42, ids, np.full(len(ids), _BALANCE)]

    def _ticks(self, numbers: np.ndarray) -> list[object]:
        groups, places = np.divmod(numbers, _GROUP)
        ends = np.cumsum(1 + self._bids_in(groups), axis=1)
        which = (places[:, None] >= ends).sum(axis=1)
        begin = np.where(which > 0, np.take_along_axis(ends, np.maximum(which - 1, 0)[:, None], 1)[:, 0], 0)
        bid = places - begin - 1
        auction = groups * len(_BIDS) + which + 1
        if self._table == AUCTIONS:
            at = bid < 0
            ids, ended = auction[at], numbers[at] + _BIDS_MAX
            items = _ITEMS.take(pa.array(below(drawn(self._seed, _ITEM, ids), len(_ITEMS))))
            return [ids, 1 + below(drawn(self._seed, _SELLER, ids), _USERS), items, self._at(ended)]
        at = bid >= 0
        ids = auction[at] * _BIDS_MAX + bid[at]
        return [
            ids, 1 + below(drawn(self._seed, _BUYER, ids), _USERS), auction[at],
            1 + below(drawn(self._seed, _AMOUNT, ids), 99), self._at(numbers[at]),
        ]  # fmt: skip

    def _bids_in(self, groups: np.ndarray) -> np.ndarray:
        """How many bids each auction of each group has."""
        different, back = np.unique(groups, return_inverse=True)
        places = different[:, None] * len(_BIDS) + np.arange(len(_BIDS))
        order = np.argsort(drawn(self._seed, _ORDER, places.reshape(-1)).reshape(places.shape), axis=1, kind="stable")
        return _BIDS[order][back.reshape(-1)]

    def _at(self, numbers: np.ndarray) -> pa.Array:
        return moments(self._base_us + numbers * self._interval_us)


def _called(word: str, ids: np.ndarray) -> pa.Array:
    return pa.array([f"{word} {each}" for each in ids.tolist()], pa.string())
