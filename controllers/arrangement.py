"""A multi-version index in memory: the rows of one relation by key, at every timestamp still in its window.

Promises: :meth:`Arrangement.rows` at ``as_of`` gives exactly the rows whose updates up to and including ``as_of`` sum
to a positive count, for every ``since <= as_of < upper``, whatever was applied after; it never gives a mixture of two
timestamps.  Safe for one writer and any number of readers.

Not promised: an order of rows, or a bound on memory below ``rows_max`` distinct rows.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Sequence

from controllers.values import Row
from journal.errors import InvalidUsage, Rejected
from journal.timestamps import DataTs

ROWS_MAX = 1_000_000
"""Distinct rows of one arrangement.  A row of five columns takes about 600 bytes as Python values: 600 MB."""

Version = tuple[int, int]
"""``(ts, diff)``."""


class TooLarge(Rejected):
    """The relation has more rows than an arrangement may hold: its reads go to Spark instead."""

    sqlstate = "53200"


class Arrangement:
    """An index on ``key_columns`` (positions in the row, in index order)."""

    def __init__(self, key_columns: Sequence[int], rows_max: int = ROWS_MAX) -> None:
        self._key_columns = tuple(key_columns)
        self._rows_max = rows_max
        self._by_key: dict[Row, dict[Row, list[Version]]] = {}
        # A prefix of the key -> the keys that have it.  Made when first asked for, kept from then on.
        self._prefixes: dict[int, dict[Row, dict[Row, None]]] = {}
        self._history: deque[tuple[int, Row, Row]] = deque()
        self._rows = 0
        self._since = DataTs(0)
        self._upper = DataTs(0)
        self._lock = threading.Lock()

    @property
    def since(self) -> DataTs:
        return self._since

    @property
    def upper(self) -> DataTs:
        """Everything below it has been applied."""
        return self._upper

    def __len__(self) -> int:
        """Distinct rows held, in any version."""
        return self._rows

    def apply(self, updates: Iterable[tuple[int, Row, int]], upper: DataTs) -> None:
        """Apply ``(ts, row, diff)`` with ``old upper <= ts < upper`` and move the upper.

        Raises ``TooLarge`` when more than ``rows_max`` distinct rows would be held; the arrangement is then unusable.
        """
        with self._lock:
            assert upper >= self._upper, (upper, self._upper)
            for ts, row, diff in updates:
                assert self._upper <= ts < upper, (self._upper, ts, upper)
                self._add(ts, row, diff)
            self._upper = upper

    def compact(self, since: DataTs) -> None:
        """Give up telling apart the timestamps up to ``since``; what is visible at ``since`` and later stays."""
        with self._lock:
            if since <= self._since:
                return
            self._since = since
            while self._history and self._history[0][0] <= since:
                _, key, row = self._history.popleft()
                self._fold(key, row, since)

    def rows(self, as_of: DataTs, prefix: Sequence[object] = ()) -> list[tuple[Row, int]]:
        """Rows at ``as_of`` whose key starts with ``prefix``, with their counts.  NULL in ``prefix`` matches nothing.

        Raises ``InvalidUsage`` 22023 below ``since``.
        """
        if len(prefix) > len(self._key_columns):
            raise InvalidUsage(f"{len(prefix)} key values for an index of {len(self._key_columns)} columns")
        with self._lock:
            if as_of < self._since:
                raise too_old(as_of, self._since)
            assert as_of < self._upper, (as_of, self._upper)
            found: list[tuple[Row, int]] = []
            if any(v is None for v in prefix):
                return found
            for key in self._keys(tuple(prefix)):
                for row, versions in self._by_key[key].items():
                    count = sum(diff for ts, diff in versions if ts <= as_of)
                    if count > 0:
                        found.append((row, count))
            return found

    def _keys(self, prefix: Row) -> Iterable[Row]:
        if not prefix:
            return self._by_key
        if len(prefix) == len(self._key_columns):
            return (prefix,) if prefix in self._by_key else ()
        by_prefix = self._prefixes.get(len(prefix))
        if by_prefix is None:
            by_prefix = {}
            for key in self._by_key:
                by_prefix.setdefault(key[: len(prefix)], {})[key] = None
            self._prefixes[len(prefix)] = by_prefix
        return by_prefix.get(prefix, ())

    def _add(self, ts: int, row: Row, diff: int) -> None:
        if diff == 0:
            return
        key = tuple(row[i] for i in self._key_columns)
        rows = self._by_key.get(key)
        if rows is None:
            rows = self._by_key[key] = {}
            for length, by_prefix in self._prefixes.items():
                by_prefix.setdefault(key[:length], {})[key] = None
        versions = rows.get(row)
        if versions is None:
            if self._rows >= self._rows_max:
                raise TooLarge(f"the index would hold more than {self._rows_max} rows")
            rows[row] = [(ts, diff)]
            self._rows += 1
            if diff > 0:
                return  # One version only: there is nothing to fold until another joins it.
        elif versions[-1][0] == ts:
            versions[-1] = (ts, versions[-1][1] + diff)
        else:
            versions.append((ts, diff))
        self._history.append((ts, key, row))

    def _fold(self, key: Row, row: Row, since: int) -> None:
        rows = self._by_key.get(key)
        versions = rows.get(row) if rows else None
        if versions is None:
            return
        count = sum(diff for ts, diff in versions if ts <= since)
        rest = [v for v in versions if v[0] > since]
        if count:
            rest.insert(0, (since, count))
        if rest:
            rows[row] = rest
            return
        del rows[row]
        self._rows -= 1
        if rows:
            return
        del self._by_key[key]
        for length, by_prefix in self._prefixes.items():
            keys = by_prefix[key[:length]]
            del keys[key]
            if not keys:
                del by_prefix[key[:length]]


def too_old(as_of: int, since: int) -> InvalidUsage:
    """The refusal of a read below what is still told apart."""
    return InvalidUsage(
        "snapshot too old",
        sqlstate="22023",
        detail=f"as of {as_of} was asked, the oldest readable timestamp is {since}",
    )
