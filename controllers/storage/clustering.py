"""Which files of a collection hold which of its keys, so that who looks for some reads few files.  Pure.

A collection's *key* here are the columns that CLUSTER BY names, else those of its PRIMARY KEY.  Each file is sorted by
it; what was written at different times lies in files that all span the same keys.  Where too many do (a *crowd*), they
are written anew as ranges of keys, one file after the other.  So each row is written again once in
:data:`CROWD` times as many, as in a log-structured merge tree (O'Neil et al. 1996), and a look-up by key reads at most
some :data:`CROWD` files of any number.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from catalog_log.image import Image
from catalog_log.objects import PRIMARY, Index, Relation
from catalog_log.settings import clustered_by
from collection.columns import Columns, sql_type
from controllers.storage.spread import parts
from segments.model import Segment
from segments.statistics import column_keys, form_of, unpacked

CROWD = 8
"""So many files may hold one key before they are written anew: of a million rows each, some 20 MB that a look-up reads
eight of at most; with half as many each row would be written half as often again."""

LOOSE = 2
"""Likewise, where somebody asks for all that can be done: files that follow each other share the key between them."""

TOGETHER_MAX = 64
"""Files that are written anew at once: twice as many times 16 MB on this machine's disk for a while."""

SAMPLED = 256
"""Keys a part, by which its limits are guessed: a part is then within a fifth of its share (four standard errors)."""

_BOUNDS_REMEMBERED = 1 << 16
"""Of files: 10 MB."""

_HASHED = 1 << 31

_OWN, _BEHIND = 1, 2
"""A limit stands before rows of its key; one with :data:`_BEHIND` after them."""


def key_of(item: Relation, image: Image) -> tuple[int, ...]:
    """Where the columns of its key are in its rows as they are stored; none where it has none.

    Those behind one whose values have no order in files do not count, nor do columns that were dropped.
    """
    names = clustered_by(image, item.id)
    if not names:
        keys = (each for each in image.dependents(item.id) if isinstance(each, Index) and each.constraint == PRIMARY)
        names = next((each.key for each in keys), ())
    there = {column.stored_as for column in item.columns}
    places = {column.stored_as: place for place, column in enumerate(item.stored)}
    found = []
    for name in (each for each in names if each in there):
        form = form_of(sql_type(item.stored[places[name]].type))
        if form is None or not form.exact:
            break
        found.append(places[name])
    return tuple(found)


def crowd(files: Sequence[Segment], columns: Columns, key: Sequence[int], most: int = CROWD) -> tuple[Segment, ...]:
    """The files that hold one key, where they are more than ``most``; of several such keys one that most files hold.

    Files of which nothing is known do not count, nor do those that hold one value alone, which cannot be kept apart
    better.
    """
    if not key or len(files) <= most:
        return ()
    name = column_keys(columns)[key[0]]
    known = [(each, found) for each in files if (found := _bounds(each, name)) is not None and found[0] < found[1]]
    if len(known) <= most:
        return ()
    lowers = np.array(sorted(lower for _, (lower, _) in known), dtype=object)
    uppers = np.array(sorted(upper for _, (_, upper) in known), dtype=object)
    # Most files hold a value that is the least of one of them: those that begin at or before it, less those that end.
    held = np.searchsorted(lowers, lowers, "right") - np.searchsorted(uppers, lowers, "left")
    at = int(held.argmax())
    if held[at] <= most:
        return ()
    return tuple(each for each, (lower, upper) in known if lower <= lowers[at] <= upper)


@lru_cache(maxsize=_BOUNDS_REMEMBERED)
def _bounds(file: Segment, name: str) -> tuple[bytes, bytes] | None:
    found = unpacked(file).get(name)
    return None if found is None or found.lower is None or found.upper is None else (found.lower, found.upper)


class Ranges(NamedTuple):
    """The parts that rows are spread over: ranges of keys, ascending, and equal rows are in one.

    A key of which there is more than a part holds is a range of its own, spread over several parts by whole rows.
    """

    limits: pa.Table
    """Ascending: the key columns of each limit, and on which side of its key it stands."""
    starts: np.ndarray
    """The first part of each range; there is one range more than there are limits."""
    shares: np.ndarray
    """How many parts each has."""

    @property
    def count(self) -> int:
        return int(self.starts[-1] + self.shares[-1])

    @classmethod
    def of(cls, sample: pa.Table, count: int) -> Ranges:
        """Some ``count`` ranges of about as many rows each, where ``sample``, the key columns alone, is of all rows
        alike."""
        sample = _named(sample)
        ordered = sample.take(_order(sample))
        wanted = [n * ordered.num_rows // count for n in range(1, count)] if ordered.num_rows else []
        places, sides, shares = list[int](), list[int](), [1]
        for place, times in _distinct(ordered, wanted):
            places.append(place)
            sides.append(0)
            shares.append(1)
            if times > 1:  # more than a part of it alone
                shares[-1] = times
                places.append(place)
                sides.append(_BEHIND)
                shares.append(1)
        limits = ordered.take(pa.array(places, pa.int64())).append_column("side", pa.array(sides, pa.int8()))
        each = np.array(shares, np.int64)
        return cls(limits, np.concatenate([[0], np.cumsum(each)[:-1]]), each)

    def parts(self, table: pa.Table, key: Sequence[int]) -> np.ndarray:
        """For each row of ``table``, whose last column are the diffs, its part."""
        keys = _named(table.select(list(key))).append_column("side", _filled(_OWN, table.num_rows))
        order = _order(pa.concat_tables([self.limits, keys]))
        is_limit = order < self.limits.num_rows
        found = np.empty(table.num_rows, np.int64)
        found[order[~is_limit] - self.limits.num_rows] = np.cumsum(is_limit)[~is_limit]
        spread = self.shares[found]
        if (spread > 1).any():
            spread = parts(table, range(table.num_columns - 1), _HASHED) % spread
        else:
            spread = np.zeros(len(found), np.int64)
        return self.starts[found] + spread


def sampled(tables: Iterable[pa.Table], rows: int, count: int) -> pa.Table:
    """Some :data:`SAMPLED` rows for each of ``count`` parts, at even distances, of the ``rows`` in ``tables``."""
    step = max(1, rows // (SAMPLED * count))
    found, skip = list[pa.Table](), 0
    for table in tables:
        taken = np.arange(skip, table.num_rows, step)
        found.append(table.take(pa.array(taken, pa.int64())))
        skip = (skip - table.num_rows) % step
    return pa.concat_tables(found)


def _distinct(ordered: pa.Table, places: Iterable[int]) -> list[tuple[int, int]]:
    """Of rows at ``places``, ascending, those that differ, and how often each is among them."""
    found: list[tuple[int, int]] = []
    before: tuple[object, ...] | None = None
    for place in places:
        row = tuple(column[place].as_py() for column in ordered.columns)
        if row == before:
            found[-1] = found[-1][0], found[-1][1] + 1
        else:
            found.append((place, 1))
        before = row
    return found


def _named(table: pa.Table) -> pa.Table:
    return table.rename_columns([str(n) for n in range(table.num_columns)])


def _order(table: pa.Table) -> np.ndarray:
    keys = [(name, "ascending") for name in table.column_names]
    return pc.sort_indices(table, sort_keys=keys).to_numpy()


def _filled(value: int, rows: int) -> pa.Array:
    return pa.array(np.full(rows, value, np.int8))
