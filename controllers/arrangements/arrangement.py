"""A multi-version index in memory: the rows of one relation by key, at every timestamp still in its window.

Promises: :meth:`Arrangement.rows` at ``as_of`` gives exactly the rows whose updates up to and including ``as_of`` sum
to a positive count, for every ``since <= as_of < upper``, whatever was applied after; it never gives a mixture of two
timestamps.  What a read costs is the rows it finds, and what has changed under its keys after ``as_of``: nothing, for
the newest timestamp, however often they changed before.  Safe for one writer and any number of readers.

Not promised: an order of rows, or a bound on memory below ``rows_max`` distinct rows and ``changes_max`` changes.  A
relation that changes more within its window moves ``since`` by itself.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Sequence

from controllers.arrangements.tuples import Row
from journal.errors import InvalidUsage, Rejected
from journal.timestamps import DataTs

ROWS_MAX = 1_000_000
"""Distinct rows of one arrangement.  A row of five columns takes about 600 bytes as Python values: 600 MB."""

CHANGES_MAX = 200_000
"""Changes that can be taken back: some 200 bytes each beside the rows themselves, so 40 MB; a minute of a view that
changes 3,000 rows a second.  Only who reads again at an older timestamp needs them, and may read from Spark."""


class TooLarge(Rejected):
    """The relation has more rows than an arrangement may hold: its reads go to Spark instead."""

    sqlstate = "53200"


class _Group:
    """The rows of one key."""

    __slots__ = ("changes", "last", "rows")

    def __init__(self) -> None:
        self.rows: dict[Row, int] = {}
        """As of the newest timestamp, with their counts: never 0."""
        self.changes: list[tuple[int, Row, int]] = []
        """``(ts, row, diff)`` above ``since``, as they came."""
        self.last = -1
        """The newest timestamp of any change."""

    def at(self, as_of: int) -> dict[Row, int]:
        """The rows at ``as_of``, with their counts, some of which may not be positive."""
        if self.last <= as_of:
            return self.rows
        counts = dict(self.rows)
        for ts, row, diff in self.changes:
            if ts > as_of:
                counts[row] = counts.get(row, 0) - diff
        return counts

    def forget(self, since: int) -> None:
        """Changes up to ``since`` are not taken back any more."""
        changes, gone = self.changes, 0
        while gone < len(changes) and changes[gone][0] <= since:
            gone += 1
        del changes[:gone]


class Arrangement:
    """An index on ``key_columns`` (positions in the row, in index order)."""

    def __init__(self, key_columns: Sequence[int], rows_max: int = ROWS_MAX, changes_max: int = CHANGES_MAX) -> None:
        self._key_columns = tuple(key_columns)
        self._rows_max = rows_max
        self._changes_max = changes_max
        self._by_key: dict[Row, _Group] = {}
        # A prefix of the key -> the keys that have it.  Made when first asked for, kept from then on.
        self._prefixes: dict[int, dict[Row, dict[Row, None]]] = {}
        self._history: deque[tuple[int, Row]] = deque()
        """The key of each change that a group holds, as they came."""
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
        """Distinct rows at the newest timestamp."""
        return self._rows

    def apply(self, updates: Iterable[tuple[int, Row, int]], upper: DataTs) -> None:
        """Apply ``(ts, row, diff)`` with ``old upper <= ts < upper`` and move the upper.

        Raises ``TooLarge`` when more than ``rows_max`` distinct rows would be held; the arrangement is then unusable.
        """
        with self._lock:
            assert upper >= self._upper, (upper, self._upper)
            for ts, row, diff in updates:
                assert self._upper <= ts < upper, (self._upper, ts, upper)
                if diff:
                    self._add(ts, row, diff)
            self._upper = upper
            while len(self._history) > self._changes_max:
                self._compact(max(self._since, self._history[0][0]))

    def compact(self, since: DataTs) -> None:
        """Give up telling apart the timestamps up to ``since``; what is visible at ``since`` and later stays."""
        with self._lock:
            if since > self._since:
                self._compact(since)

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
            if any(v is None for v in prefix):
                return []
            by_key = self._by_key
            return [
                found for key in self._keys(tuple(prefix)) for found in by_key[key].at(as_of).items() if found[1] > 0
            ]

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
        key = tuple(row[i] for i in self._key_columns)
        group = self._by_key.get(key)
        if group is None:
            group = self._by_key[key] = _Group()
            for length, by_prefix in self._prefixes.items():
                by_prefix.setdefault(key[:length], {})[key] = None
        before = group.rows.get(row, 0)
        count = before + diff
        if not before:
            if self._rows >= self._rows_max:
                raise TooLarge(f"the index would hold more than {self._rows_max} rows")
            self._rows += 1
        if count:
            group.rows[row] = count
        else:
            del group.rows[row]
            self._rows -= 1
        group.changes.append((ts, row, diff))
        group.last = max(group.last, ts)
        self._history.append((ts, key))

    def _compact(self, since: int) -> None:
        self._since = DataTs(since)
        history = self._history
        while history and history[0][0] <= since:
            _, key = history.popleft()
            group = self._by_key.get(key)
            if group is None:
                continue
            group.forget(since)
            if not group.rows and not group.changes:
                self._drop(key)

    def _drop(self, key: Row) -> None:
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
