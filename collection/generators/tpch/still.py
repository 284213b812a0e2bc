"""The six relations of TPCH that never change: rows ``[lower, upper)`` of each, in dbgen's order.  Pure."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from collection.generators.tpch import words
from collection.generators.tpch.streams import Rows, between
from collection.generators.tpch.tables import OFFERS, Counts
from collection.generators.tpch.values import addresses, comments, comments_of, money, numbered, one_of, phones

Arrays = list[object]


def region(lower: int, upper: int, _: Counts) -> Arrays:
    return [np.arange(lower, upper), pa.array(words.REGIONS[lower:upper], pa.string()),
            comments_of(1500869201, 72, lower, upper)]  # fmt: skip


def nation(lower: int, upper: int, _: Counts) -> Arrays:
    names, regions = zip(*words.NATIONS, strict=True)
    return [np.arange(lower, upper), pa.array(names[lower:upper], pa.string()), np.array(regions)[lower:upper],
            comments_of(606179079, 72, lower, upper)]  # fmt: skip


_BALANCE = (-99_999, 999_999)
"""Cents."""


def _party(name: str, lower: int, upper: int, *, address: int, nation: int, phone: int, balance: int) -> Arrays:
    """What customers and suppliers have alike: each drawn by the seed given for it."""
    keys = np.arange(lower, upper) + 1
    nations = _drawn(nation, lower, upper, 0, len(words.NATIONS) - 1)
    return [keys, numbered(name, keys), addresses(address, lower, upper), nations,
            phones(phone, nations, lower, upper), money(_drawn(balance, lower, upper, *_BALANCE))]  # fmt: skip


def customer(lower: int, upper: int, _: Counts) -> Arrays:
    return [
        *_party("Customer#", lower, upper, address=881155353, nation=1489529863, phone=1521138112, balance=298370230),
        one_of(Rows(1140279430, 1, lower, upper).each(), words.SEGMENTS), comments_of(1335826707, 73, lower, upper),
    ]  # fmt: skip


def supplier(lower: int, upper: int, _: Counts) -> Arrays:
    return [
        *_party("Supplier#", lower, upper, address=706178559, nation=110356601, phone=884434366, balance=962338209),
        _told_of(comments_of(1341315363, 63, lower, upper), lower, upper),
    ]  # fmt: skip


_TOLD_OF, _OUT_OF = 10, 10_000
"""Of so many suppliers so many are complained of or recommended in their comments."""
_WHO, _COMPLAINTS, _RECOMMENDS = "Customer ", "Complaints", "Recommends"
_TOLD = len(_WHO) + len(_COMPLAINTS)


def _told_of(comments: pa.Array, lower: int, upper: int) -> pa.Array:
    some = np.flatnonzero(_drawn(202794285, lower, upper, 1, _OUT_OF) <= _TOLD_OF)
    if not len(some):
        return comments
    noises, offsets = Rows(263032577, 1, lower, upper).each(), Rows(715851524, 1, lower, upper).each()
    kinds = _drawn(753643799, lower, upper, 0, 100)
    found = comments.to_pylist()
    for at in some.tolist():
        text = found[at]
        noise = int(between(noises[at : at + 1], 0, len(text) - _TOLD)[0])
        offset = int(between(offsets[at : at + 1], 0, len(text) - _TOLD - noise)[0])
        text = _over(text, offset, _WHO)
        found[at] = _over(text, offset + len(_WHO) + noise, _COMPLAINTS if kinds[at] < 50 else _RECOMMENDS)
    return pa.array(found, pa.string())


def _over(text: str, at: int, word: str) -> str:
    return text[:at] + word + text[at + len(word) :]


_WORDS = 5
"""Of a part's name: colors, each at most once."""


def part(lower: int, upper: int, _: Counts) -> Arrays:
    keys = np.arange(lower, upper) + 1
    makers = _drawn(1, lower, upper, 1, 5)
    brands = 10 * makers + _drawn(46831694, lower, upper, 1, 5)
    return [
        keys, _names(lower, upper), _and("Manufacturer#", makers), _and("Brand#", brands),
        one_of(Rows(1841581359, 1, lower, upper).each(), words.TYPES), _drawn(1193163244, lower, upper, 1, 50),
        one_of(Rows(727633698, 1, lower, upper).each(), words.CONTAINERS), money(price(keys)),
        comments_of(804159733, 14, lower, upper),
    ]  # fmt: skip


def _names(lower: int, upper: int) -> pa.Array:
    """The first of the colors once they are shuffled so far."""
    drawn = Rows(709314158, len(words.COLORS), lower, upper)
    order = np.tile(np.arange(len(words.COLORS)), (upper - lower, 1))
    rows = np.arange(upper - lower)
    for place in range(_WORDS):
        other = between(drawn.each(place), place, len(words.COLORS) - 1)
        order[rows, place], order[rows, other] = order[rows, other], order[rows, place]
    colors = pa.array(words.COLORS, pa.string())
    return pc.binary_join_element_wise(*(colors.take(pa.array(order[:, place])) for place in range(_WORDS)), " ")


def partsupp(lower: int, upper: int, many: Counts) -> Arrays:
    """Of the parts ``[lower, upper)``."""
    parts = np.repeat(np.arange(upper - lower), OFFERS)
    which = np.tile(np.arange(OFFERS), upper - lower)
    quantities, costs = Rows(1671059989, OFFERS, lower, upper), Rows(1051288424, OFFERS, lower, upper)
    said = Rows(1961692154, 2 * OFFERS, lower, upper)
    keys = lower + parts + 1
    return [
        keys, seller(keys, which, many.suppliers), between(quantities.at(parts, which), 1, 9_999),
        money(between(costs.at(parts, which), 100, 100_000)),
        comments(said.at(parts, 2 * which), said.at(parts, 2 * which + 1), 124),
    ]  # fmt: skip


def seller(parts: np.ndarray, which: np.ndarray, suppliers: int) -> np.ndarray:
    """The key of one of the suppliers of each part, by its key."""
    return (parts + which * (suppliers // OFFERS + (parts - 1) // suppliers)) % suppliers + 1


def price(parts: np.ndarray) -> np.ndarray:
    """Of one of each, in cents, by its key."""
    return 90_000 + parts // 10 % 20_001 + 100 * (parts % 1_000)


def _drawn(seed: int, lower: int, upper: int, least: int, most: int) -> np.ndarray:
    return between(Rows(seed, 1, lower, upper).each(), least, most)


def _and(prefix: str, numbers: np.ndarray) -> pa.Array:
    return pc.binary_join_element_wise(prefix, pa.array(numbers).cast(pa.string()), "")
