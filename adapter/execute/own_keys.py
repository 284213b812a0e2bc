"""Which rows of a transaction block's own have which keys of constraints.  Pure.

A block may write a hundred thousand statements, and each asks for the keys of all before it: so what they have is
gathered as they come, once for each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

import pyarrow as pa

from adapter.execute.rows import Rows
from adapter.state.buffer import OfTable
from collection.columns import sql_type
from values.types import arrow_type


class OwnKeys:
    """Of ``entries``, what was written to one table in the order in which it was; more may be appended to them."""

    def __init__(self, entries: Sequence[Rows] = ()) -> None:
        self._entries = entries
        self._counted = self._placed = 0
        self._counts: Counter[bytes] = Counter()
        self._rows: dict[bytes, tuple[Rows, int] | None] = {}

    def dropped(self, entry: Rows) -> None:
        """The last of them was cut off."""
        if self._counted > len(self._entries):
            count(self._counts, entry, -1)
            self._counted -= 1
        if self._placed > len(self._entries):  # what had its keys before is found anew
            self._placed, self._rows = 0, {}

    @property
    def counts(self) -> Counter[bytes]:
        """How many rows more have each key.  Not to be changed."""
        while self._counted < len(self._entries):
            count(self._counts, self._entries[self._counted])
            self._counted += 1
        return self._counts

    def rows(self, wanted: Collection[bytes]) -> dict[bytes, pa.Table | None]:
        """Of the keys ``wanted`` those that were written: the row that has it now, as an index has rows, or ``None``
        where it was taken away."""
        while self._placed < len(self._entries):
            entry = self._entries[self._placed]
            gone = entry.removed is not None
            for _, keys in entry.keys:
                self._rows.update((key, None if gone else (entry, n)) for n, key in enumerate(keys) if key is not None)
            self._placed += 1
        found = {key: self._rows[key] for key in wanted if key in self._rows}
        return {key: None if place is None else _plain(*place) for key, place in found.items()}


def own_keys(own: OfTable) -> OwnKeys:
    """Of all that a transaction has written to one table, remembered with it."""
    return own.memo(OwnKeys)


def net(entries: Iterable[Rows]) -> Counter[bytes]:
    """How many rows more have each key by ``entries``."""
    found: Counter[bytes] = Counter()
    for each in entries:
        count(found, each)
    return found


def count(found: Counter[bytes], entry: Rows, sign: int = 1) -> None:
    """Put to ``found`` how many rows more have each key by ``entry``, or with ``sign`` -1 take that away."""
    diff = sign if entry.removed is None else -sign
    if entry.more_keys:
        for key in entry.more_keys:
            found[key] += diff
        return
    for _, keys in entry.keys:
        for key in keys:
            if key is not None:
                found[key] += diff


def _plain(entry: Rows, row: int) -> pa.Table:
    found = entry.rows.slice(row, 1)
    kinds = [arrow_type(sql_type(column.type)) for column in entry.columns]
    arrays = [column.cast(kind) for column, kind in zip(found.columns, kinds, strict=True)]
    return pa.Table.from_arrays(arrays, names=[f"c{at}" for at in range(len(arrays))])
