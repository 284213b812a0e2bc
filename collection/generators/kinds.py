"""The load generators there are: their relations, their options, and what makes their events.  Pure tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from catalog_log.objects import Column, Generator, numbered
from catalog_log.objects.generator import EVENTS_MAX
from collection.generators import auction, counter, key_value, nexmark
from collection.generators.auction import AuctionHouse
from collection.generators.core import AtFirst, Core, changes_of
from collection.generators.counter import Counter
from collection.generators.key_value import KeyValue
from collection.generators.nexmark import Nexmark
from collection.generators.tpch import tables as tpch
from collection.generators.tpch.generator import Tpch
from collection.generators.tpch.text import pool

SECOND_US = 1_000_000

BASE_TIME_US = 1_436_918_400 * SECOND_US
"""2015-07-15 00:00:00 UTC: where Beam's events begin, and so those of every run of it."""

NUMBER, MOMENT, THOUSANDTHS = "number", "moment", "thousandths"


@dataclass(frozen=True)
class Option:
    """``default``: ``None`` where it must be said.  Numbers are from ``least`` to ``most``."""

    default: int | None
    least: int = 0
    most: int = 2**31 - 1
    kind: str = NUMBER


SEED = Option(0, 0, 2**63 - 1)
BASE_TIME = Option(BASE_TIME_US, kind=MOMENT)
_SIZE_MAX = 100_000
"""Of an event of Nexmark: some 160 of them are made at once then."""


@dataclass(frozen=True)
class Kind:
    """``tables``: columns by relation; one of no name where there is one alone.  ``events`` in ``micros`` are its pace
    where none is said."""

    tables: Mapping[str, tuple[Column, ...]]
    options: Mapping[str, Option]
    made: Callable[[Generator], Core]
    events: int = 1
    micros: int = SECOND_US
    fixed: Callable[[Generator], int | None] = lambda _: None
    """Of a relation that is there from the start: how many events it has."""
    first: Mapping[str, int] = field(default_factory=dict)
    """Relations whose events have numbers of their own, and how many: where several are generated together, all of them
    come with event 0."""
    snapshot: Callable[[Generator], int] = lambda _: 0
    """How many events are due at the start, and become visible together."""
    timed: Callable[[Generator], int] = lambda _: EVENTS_MAX
    """How many events have times that a timestamptz can hold; below 1 where none has."""
    ready: Callable[[], object] = lambda: None
    """Makes what events of all sources are made of, once a process; it may take long, and hangs on no option."""


KINDS: Mapping[str, Kind] = {
    "counter": Kind(
        {"": counter.COLUMNS}, {counter.CARDINALITY: Option(0, 1, 2**63 - 1)}, Counter,
    ),
    "key value": Kind(
        {"": key_value.COLUMNS},
        {
            key_value.KEYS: Option(None, 1, 10**9), key_value.PARTITIONS: Option(1, 1, 10**9),
            key_value.VALUE_SIZE: Option(16, 0, 1 << 20), key_value.SEED: SEED,
        },
        KeyValue, snapshot=key_value.snapshot,
    ),
    "auction": Kind(
        auction.TABLES, {auction.SEED: SEED, auction.BASE_TIME: BASE_TIME}, AuctionHouse, fixed=auction.fixed,
        first=auction.FIXED, timed=auction.timed,
    ),
    "nexmark": Kind(
        nexmark.TABLES,
        {
            nexmark.SEED: SEED, nexmark.BASE_TIME: BASE_TIME, nexmark.EVENT_RATE: Option(10_000, 1, SECOND_US),
            nexmark.ACTIVE_PEOPLE: Option(1_000, 1, 10**9), nexmark.IN_FLIGHT: Option(100, 1, 10**6),
            nexmark.HOT_AUCTIONS: Option(2, 1), nexmark.HOT_SELLERS: Option(4, 1), nexmark.HOT_BIDDERS: Option(4, 1),
            nexmark.SIZES[nexmark.PERSON]: Option(200, 0, _SIZE_MAX),
            nexmark.SIZES[nexmark.AUCTION]: Option(500, 0, _SIZE_MAX),
            nexmark.SIZES[nexmark.BID]: Option(100, 0, _SIZE_MAX), nexmark.GROUP: Option(1, 1, 10**6),
        },
        Nexmark, events=10_000, timed=nexmark.timed,
    ),
    "tpch": Kind(
        tpch.TABLES, {tpch.SCALE: Option(10, 1, 10_000_000, kind=THOUSANDTHS)}, Tpch, fixed=tpch.fixed,
        snapshot=tpch.snapshot, ready=pool,
    ),
}  # fmt: skip


OFFSET_COLUMNS = numbered([Column("offset", "int8", False)])
"""Of a source with parts: one row, how many events they have the rows of."""


def offsets(lower: int, upper: int) -> pa.Table:
    """What the events ``[lower, upper)`` change in it."""
    there = [lower, upper] if lower else [upper]
    return changes_of(OFFSET_COLUMNS, [np.array(there, np.int64)], np.array([-1, 1][-len(there) :], np.int64))


def core_of(generator: Generator) -> Core:
    """What makes the events of ``generator``.  Raises ``LookupError`` for one that this code does not know."""
    return KINDS[generator.kind].made(generator)


def parts_of(generator: Generator) -> list[tuple[str, tuple[Column, ...], Core]]:
    """Of a source with parts: the id of each part's source, its columns as they are stored, and what makes its events,
    by the numbers that all of them count.  Raises ``LookupError`` as :func:`core_of`."""
    kind = KINDS[generator.kind]
    found = []
    for table, source_id in generator.members:
        core = core_of(replace(generator, table=table, members=(), group=""))
        if table in kind.first:
            core = AtFirst(core, kind.first[table])
        found.append((source_id, numbered(kind.tables[table]), core))
    return found
