"""What a sink into Iceberg writes: from changes of a collection to snapshots at multiples of an interval.  Pure.

Promises: the table's newest snapshot at or below T has what the collection held at T, for every T that is a multiple of
the interval, from where the sink began through how far the table says that it is complete; whenever the writer dies,
whatever became of its last commit, and however many writers there are.  So tables of one interval, however many sinks
write them, have an answer at the same timestamps: every T through which all of them say that they are complete.

*How:* a snapshot and the timestamp that it is of are one commit, which hangs on the snapshot before it being the
newest still (:class:`Table`).  Whoever commits learnt from the table itself which timestamp that one is of, and has put
what changed since onto what is in it.  After any answer that leaves open whether a commit happened the writer begins
anew from what the table says; a commit that is late lands on the snapshot it was made for or not at all.

*Turned down:* to commit once more on whatever is the newest snapshot now, as libraries of Iceberg do by themselves:
where the first had happened, its rows are in the table twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from collection.columns import DIFF
from controllers.changes import TS
from controllers.storage.sinking import KEYS_MAX, SHOWN_CHARS_MAX, SinkRefused


class Batch(NamedTuple):
    """All changes above where it was asked from, through ``through``."""

    through: int
    changes: pa.Table | None
    """Columns, then ``__ts`` and ``__diff``; ``None``: there are none."""


class Contents(Protocol):
    """A collection."""

    def at(self, ts: int) -> Iterable[pa.Table]:
        """What it holds at ``ts``, which is complete, as changes.  Where nothing changed since ``ts``, this may be of
        later.  Raises :class:`SinkRefused` where ``ts`` is not told apart any more."""

    def between(self, after: int, through: int) -> Batch:
        """The changes with ``after < ts <= through``, or of the first timestamps of these.  Raises likewise."""


class Table(Protocol):
    """An Iceberg table, and what is to become of it."""

    def claim(self) -> int | None:
        """Learn what is in it, forget what was staged, and tell through when it is complete; ``None`` where it has
        nothing of this sink's."""

    def stage(self, changes: pa.Table) -> None:
        """Have these (columns, then ``__diff``) in the next snapshot.  Raises :class:`SinkRefused` for what the table
        cannot take."""

    def commit(self, through: int) -> int:
        """One snapshot with all that is staged, which is of ``through``; by how many rows that changed the table.

        Whatever it raises, it may have been committed: only the next :meth:`claim` tells."""

    def note(self, through: int) -> None:
        """Have it say that it is complete through ``through``.  Raises likewise."""


KeyOf = Callable[[pa.Table], Iterable[bytes]]
"""The key of each row."""


class IcebergSinking:
    """One sink's writing.  :meth:`claim` before anything else, and after anything that raised."""

    def __init__(self, interval_ms: int, contents: Contents, table: Table, key_of: KeyOf | None) -> None:
        """``key_of``: where it is to be looked at here that no two rows have one key."""
        self._interval_ms = interval_ms
        self._contents = contents
        self._table = table
        self._key_of = key_of
        self._keys: UniqueKeys | None = None
        self.through: int | None = None
        """The table is complete through it; ``None``: nothing is there."""
        self.noted: int | None = None
        """The same: the table says all that there is to say."""
        self._first: int | None = None
        """Where it begins."""
        self._staged = 0
        """Through when changes are staged."""
        self._next: int | None = None
        """Of what timestamp the next snapshot is, where any is to come."""

    def claim(self) -> None:
        """Learn from the table how far it goes."""
        found = self._table.claim()
        self._next = None
        keys, self._keys = self._keys, None
        if self._key_of is not None and found is not None:
            if keys is None or found != self.through:
                keys = UniqueKeys(self._key_of)
                for each in self._contents.at(found):
                    keys.put(each)
                keys.settle(found)
            keys.forget()
            self._keys = keys
        self.through = self.noted = found
        self._staged = found or 0

    def behind(self, complete: int) -> bool:
        """Whether there is anything to write once the collection is complete through ``complete``."""
        if self.through is None:
            return self._first is None or complete >= self._first
        return self._last(complete) > self.through

    def advance(self, complete: int, noting: bool = False) -> int:
        """Write what there is through ``complete``, or the first of it; by how many rows the table changed.

        One batch of changes, at most, and the snapshots that end in it."""
        last = self._last(complete)
        if self.through is None:
            # Not before it was asked for: at an earlier multiple the collection may not have been there.
            # Nor long after: where the table could not be made, or is gone again, what there was then may be forgotten.
            asked = self._first or -(-complete // self._interval_ms) * self._interval_ms
            first = self._first = max(asked, last)
            if complete < first:
                return 0
            self._keys = None if self._key_of is None else UniqueKeys(self._key_of)
            for each in self._contents.at(first):
                self._stage(each)
            self._staged = first
            return self._commit(first)
        if last <= self.through:
            return 0
        rows = 0
        found = self._contents.between(self._staged, last)
        for ts, part in () if found.changes is None else self._by_snapshot(found.changes):
            if self._next is not None and self._next < ts:
                rows += self._commit(self._next)
            self._next = ts
            self._stage(part)
        self._staged = found.through
        if self._next is not None and self._next <= self._staged:
            rows += self._commit(self._next)
        if self._next is None and self._last(self._staged) > self.through:
            self._table.note(self._last(self._staged))
            self.through = self.noted = self._last(self._staged)
        return rows

    def _last(self, complete: int) -> int:
        return complete // self._interval_ms * self._interval_ms

    def _by_snapshot(self, changes: pa.Table) -> Iterator[tuple[int, pa.Table]]:
        """``changes`` by the snapshot that they are first in, in the order of these."""
        stamps = changes.column(TS).to_numpy()
        of = -(-stamps // self._interval_ms) * self._interval_ms
        for ts in np.unique(of):
            yield int(ts), changes.filter(pa.array(of == ts))

    def _stage(self, changes: pa.Table) -> None:
        if self._keys is not None:
            self._keys.put(changes)
        self._table.stage(changes.drop_columns([TS]))

    def _commit(self, ts: int) -> int:
        if self._keys is not None:
            self._keys.check(ts)
        rows = self._table.commit(ts)
        if self._keys is not None:
            self._keys.settle(ts)
        self.through = self.noted = ts
        self._next = None
        return rows


class UniqueKeys:
    """The keys that there are, and what the next snapshot makes of them."""

    def __init__(self, key_of: KeyOf) -> None:
        self._key_of = key_of
        self._there: set[bytes] = set()
        self._diffs: dict[bytes, int] = {}

    def put(self, changes: pa.Table) -> None:
        for key, diff in zip(self._key_of(changes), changes.column(DIFF).to_pylist(), strict=True):
            self._diffs[key] = self._diffs.get(key, 0) + diff
        if max(len(self._there), len(self._diffs)) > KEYS_MAX:
            raise SinkRefused(
                f"a sink that looks whether its keys are unique has at most {KEYS_MAX} of them: "
                "say NOT ENFORCED where you know that they are"
            )

    def check(self, ts: int) -> None:
        for key, diff in self._diffs.items():
            if (key in self._there) + diff > 1:
                shown = key.decode(errors="replace")[:SHOWN_CHARS_MAX]
                raise SinkRefused(f"two rows have the key {shown} at {ts}: say NOT ENFORCED or another KEY")

    def settle(self, ts: int) -> None:
        """What was put is there."""
        self.check(ts)
        for key, diff in self._diffs.items():
            left = (key in self._there) + diff
            self._there.add(key) if left else self._there.discard(key)
        self._diffs = {}

    def forget(self) -> None:
        """What was put is not."""
        self._diffs = {}
