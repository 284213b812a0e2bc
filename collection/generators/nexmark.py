"""NEXMARK: people, auctions and bids, equal to those of Apache Beam's generator event for event.  Pure.

Of fifty events the first is a person, three are auctions, and the others bids.  Beam's generator
(``sdks/java/testing/nexmark``: ``Generator``, ``GeneratorConfig``, ``NexmarkConfiguration``, and ``PersonGenerator``,
``AuctionGenerator``, ``BidGenerator``, ``PriceGenerator``, ``StringsGenerator``, ``LongGenerator``) makes each event
from a ``java.util.Random`` seeded by the event's id; what is drawn is drawn here in the same order
(:mod:`collection.generators.java_random`), for all events of a batch at once.

What Beam can do and this cannot: rates that change with time (``firstEventRate`` other than ``nextEventRate``), several
generators side by side (``numEventGenerators``), and events that come late (``probDelayedEvent``, which its source
makes of them, not its generator).  A price is 100 · 10^(6d) to the nearest cent, for which Java may be off by the last
bit of a double; here it is always the nearest, so of some 10^9 prices one may differ by a cent from those of some Java.

``SEED`` is ours: ids are xored with what is mixed of it, and with seed 0 they are Beam's.
"""

from __future__ import annotations

from decimal import Context, Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from catalog_log.objects import Column, Generator
from collection.generators.core import LATEST_US, batch_of, changes_of, moments, texts
from collection.generators.java_random import Randoms
from collection.generators.mixed import mix

PERSON, AUCTION, BID = "person", "auction", "bid"

SEED, BASE_TIME, EVENT_RATE, GROUP = "seed", "base time", "event rate", "out of order group size"
ACTIVE_PEOPLE, IN_FLIGHT = "active people", "in flight auctions"
HOT_AUCTIONS, HOT_SELLERS, HOT_BIDDERS = "hot auction ratio", "hot sellers ratio", "hot bidders ratio"
SIZES = {PERSON: "person size", AUCTION: "auction size", BID: "bid size"}

TABLES = {
    PERSON: (
        Column("id", "int8", False), Column("name", "text", False), Column("email_address", "text", False),
        Column("credit_card", "text", False), Column("city", "text", False), Column("state", "text", False),
        Column("date_time", "timestamptz", False), Column("extra", "text", False),
    ),
    AUCTION: (
        Column("id", "int8", False), Column("item_name", "text", False), Column("description", "text", False),
        Column("initial_bid", "int8", False), Column("reserve", "int8", False),
        Column("date_time", "timestamptz", False), Column("expires", "timestamptz", False),
        Column("seller", "int8", False), Column("category", "int8", False), Column("extra", "text", False),
    ),
    BID: (
        Column("auction", "int8", False), Column("bidder", "int8", False), Column("price", "int8", False),
        Column("date_time", "timestamptz", False), Column("extra", "text", False),
    ),
}  # fmt: skip

_PEOPLE, _AUCTIONS, _EVENTS = 1, 3, 50
"""Of each of so many events, how many are people and auctions."""

_FIRST_ID, _FIRST_CATEGORY, _CATEGORIES = 1000, 10, 5
_LEAD = 10
"""Ids that are not there yet and may be meant."""
_HOT = 100
"""One of so many auctions, or people, is hot."""

_STATES = pa.array("AZ CA ID OR WA WY".split())
_CITIES = pa.array(
    ["Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Redmond", "Seattle", "Kent", "Cheyenne"]
)
_FIRST_NAMES = pa.array("Peter Paul Luke John Saul Vicky Kate Julie Sarah Deiter Walter".split())
_LAST_NAMES = pa.array("Shultz Abrams Spencer White Bartels Walton Smith Jones Noris".split())

_ROUNDED_US = 10_000
"""More than what milliseconds of several times are rounded by."""

_EXACT = Context(prec=60)
_NEAR = 1e-6
"""From the middle between two cents: well above the some 10^-7 that a power of this size may be off."""


def timed(generator: Generator) -> int:
    """How many events end before times do, of whatever relation: auctions expire last, and a group is out of order."""
    ahead = 2 * (generator.option(IN_FLIGHT) * _EVENTS // _AUCTIONS) + generator.option(GROUP)
    return (LATEST_US - _ROUNDED_US - generator.option(BASE_TIME)) // _delay_us(generator) - ahead


def _delay_us(generator: Generator) -> int:
    rate = generator.option(EVENT_RATE)
    return (1_000_000 + rate // 2) // rate


class Nexmark:
    """One of the three relations; events of the others change nothing in it."""

    def __init__(self, generator: Generator) -> None:
        self._table = generator.table
        self._said = dict(generator.options)
        self._seed = mix(np.array([self._said[SEED]], np.uint64)).view(np.int64)[0]
        self._delay_us = _delay_us(generator)
        size = 6 * self._said[SIZES[self._table]] // 5
        self.batch = batch_of(size + 60 if self._table == BID else size // 10 + 30)  # of ten events at most one is its

    def changes(self, lower: int, upper: int) -> pa.Table:
        numbers = np.arange(lower, upper, dtype=np.int64)
        group = self._said[GROUP]
        ids = numbers // group * group + numbers * 953 % group
        places = ids % _EVENTS
        if self._table == PERSON:
            mine = places < _PEOPLE
        elif self._table == AUCTION:
            mine = (places >= _PEOPLE) & (places < _PEOPLE + _AUCTIONS)
        else:
            mine = places >= _PEOPLE + _AUCTIONS
        ids = ids[mine]
        made = {PERSON: self._people, AUCTION: self._auctions, BID: self._bids}[self._table]
        return changes_of(TABLES[self._table], made(ids, Randoms(ids ^ self._seed)))

    def _people(self, ids: np.ndarray, random: Randoms) -> list[object]:
        first = _FIRST_NAMES.take(pa.array(random.below(len(_FIRST_NAMES))))
        name = pc.binary_join_element_wise(first, _LAST_NAMES.take(pa.array(random.below(len(_LAST_NAMES)))), " ")
        account = _words(random, 7)
        email = pc.binary_join_element_wise(account, "@", _words(random, 5), ".com", "")
        card = _cards(np.stack([random.below(10_000) for _ in range(4)], axis=1))
        city = _CITIES.take(pa.array(random.below(len(_CITIES))))
        state = _STATES.take(pa.array(random.below(len(_STATES))))
        size = 8 + sum(_lengths(each) for each in (name, email, card, city, state))
        extra = self._extra(random, size)
        return [_last_person(ids) + _FIRST_ID, name, email, card, city, state, self._at(ids), extra]

    def _auctions(self, ids: np.ndarray, random: Randoms) -> list[object]:
        seller = self._who(ids, random, HOT_SELLERS, 0)
        category = _FIRST_CATEGORY + random.below(_CATEGORIES)
        initial = _price(random)
        ms = self._ms(ids)
        ahead = self._said[IN_FLIGHT] * _EVENTS // _AUCTIONS
        expires = ms + 1 + _below(random, np.maximum(2 * (self._ms(ids + ahead) - ms), 1))
        name, description = _words(random, 20), _words(random, 100)
        reserve = initial + _price(random)
        extra = self._extra(random, 8 + _lengths(name) + _lengths(description) + 5 * 8)
        return [
            _last_auction(ids) + _FIRST_ID, name, description, initial, reserve, moments(1000 * ms),
            moments(1000 * expires), seller, category, extra,
        ]  # fmt: skip

    def _bids(self, ids: np.ndarray, random: Randoms) -> list[object]:
        last = _last_auction(ids)
        auction = last // _HOT * _HOT
        cold = np.flatnonzero(random.below(self._said[HOT_AUCTIONS]) == 0)
        least = np.maximum(last[cold] - self._said[IN_FLIGHT], 0)
        auction[cold] = least + _below(random, last[cold] - least + 1 + _LEAD, cold)
        bidder = self._who(ids, random, HOT_BIDDERS, 1)
        price = _price(random)
        extra = self._extra(random, np.full(len(ids), 4 * 8))
        return [auction + _FIRST_ID, bidder, price, self._at(ids), extra]

    def _who(self, ids: np.ndarray, random: Randoms, ratio: str, place: int) -> np.ndarray:
        """A person: one of a hundred, by its ``place`` among them, or any that is active or soon will be."""
        last = _last_person(ids)
        found = last // _HOT * _HOT + place
        cold = np.flatnonzero(random.below(self._said[ratio]) == 0)
        people = last[cold] + 1
        active = np.minimum(people, self._said[ACTIVE_PEOPLE])
        found[cold] = people - active + _below(random, active + _LEAD, cold)
        return found + _FIRST_ID

    def _ms(self, numbers: np.ndarray) -> np.ndarray:
        return self._said[BASE_TIME] // 1000 + numbers * self._delay_us // 1000

    def _at(self, ids: np.ndarray) -> pa.Array:
        return moments(1000 * self._ms(ids))

    def _extra(self, random: Randoms, sizes: np.ndarray) -> pa.Array:
        """Letters that bring an event of so many bytes to the size that it should have, give or take a fifth.  What
        comes after is not drawn, so all may draw as many as the longest needs."""
        missing = self._said[SIZES[self._table]] - sizes
        delta = np.floor(np.maximum(missing, 0) * 0.2 + 0.5).astype(np.int64)
        lengths = np.maximum(missing, 0) - delta
        some = np.flatnonzero(delta > 0)
        lengths[some] += random.below(2 * delta[some], some)
        draws = -(-int(lengths.max(initial=0)) // 6)
        chars = np.empty((len(random), 6 * draws), np.uint8)
        for each in range(draws):
            left = random.ints()
            for place in range(6):
                letter = np.fmod(left, 26)  # with the sign of what is divided, as in Java
                chars[:, 6 * each + place] = 97 + letter
                left = (left - letter) // 26
        return texts(chars, lengths)


def _last_person(ids: np.ndarray) -> np.ndarray:
    return ids // _EVENTS


def _last_auction(ids: np.ndarray) -> np.ndarray:
    """Of events that are no people."""
    return ids // _EVENTS * _AUCTIONS + np.minimum(ids % _EVENTS - _PEOPLE, _AUCTIONS - 1)


def _below(random: Randoms, bounds: np.ndarray, at: np.ndarray | None = None) -> np.ndarray:
    """As Beam has it: of bounds from 2^31 - 1 on it is the rest of a long."""
    large = bounds >= (1 << 31) - 1
    if not large.any():
        return random.below(bounds, at)
    places = np.arange(len(random)) if at is None else at
    found = np.empty(len(bounds), np.int64)
    found[~large] = random.below(bounds[~large], places[~large])
    found[large] = np.abs(np.fmod(random.longs(places[large]), bounds[large]))
    return found


def _price(random: Randoms) -> np.ndarray:
    """In cents.  Engines of arithmetic differ in the last bits of a power, so what is near the middle between two cents
    is reckoned exactly."""
    powers = random.doubles() * 6.0
    cents = np.power(10.0, powers) * 100.0
    found = np.floor(cents + 0.5).astype(np.int64)
    for at in np.flatnonzero(np.abs(cents - np.floor(cents) - 0.5) < _NEAR):
        exact = float(_EXACT.power(10, Decimal(powers[at].item()))) * 100.0
        found[at] = int(_EXACT.add(Decimal(exact), Decimal("0.5")) // 1)
    return found


def _words(random: Randoms, longest: int) -> pa.Array:
    """Letters and some spaces, none at the ends."""
    lengths = 3 + random.below(longest - 3)
    chars = np.full((len(random), longest), ord(" "), np.uint8)
    for place in range(int(lengths.max(initial=0))):
        at = np.flatnonzero(lengths > place)
        letters = at[random.below(13, at) != 0]
        chars[letters, place] = 97 + random.below(26, letters)
    return pc.utf8_trim(texts(chars, lengths), " ")


def _cards(numbers: np.ndarray) -> pa.Array:
    """Four numbers of four digits."""
    chars = np.full((len(numbers), 19), ord(" "), np.uint8)
    for each in range(4):
        for place in range(4):
            chars[:, 5 * each + place] = 48 + numbers[:, each] // 10 ** (3 - place) % 10
    return texts(chars, np.full(len(numbers), 19, np.int64))


def _lengths(words: pa.Array) -> np.ndarray:
    return pc.binary_length(words).to_numpy(zero_copy_only=False).astype(np.int64)
