"""Rows of small commits that the oracle's log carries, by key: what an index will have once it has come so far.  Pure.

Promises: :meth:`RecentRows.changes` are exactly the changes that a reader of the table as of ``through`` sees and one
as of ``after`` does not, of one key; ``None`` where not all of them are in the log itself, or they are too much.
Each batch is decoded once for an index, in some 30 µs, while the index is behind it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from adapter.execute.laid_over import Keyed, Row
from catalog_log.objects import Column
from collection.columns import DIFF
from collection.rows import decode_counted
from journal.timestamps import DataTs
from oracle.errors import SnapshotTooOld
from oracle.state import OracleState

BYTES_MAX = 1 << 20
"""Kept of one index, as the log carries them: some 10,000 small rows, which take eight times as much as tuples.  Of 500
commits a second of two rows each an index would be ten seconds behind with them."""

ALL_BYTES_MAX = 8 << 20
"""Kept of all indexes, those that were asked for last: some 64 MB."""

DECODED_BYTES_MAX = 128 << 10
"""At once, on the event loop: some 2,000 small rows, 10 ms.  An index that is further behind is waited for."""

INDEXES_MAX = 256
"""Of which rows are kept, likewise."""


class _Change(NamedTuple):
    ts: int
    row: Row
    diff: int


@dataclass
class _Kept:
    """Of one index of a table with ``columns``: the changes above ``after`` and up to ``through``."""

    columns: tuple[Column, ...]
    after: DataTs
    through: DataTs
    size: int = 0
    """Bytes of its rows, as the log carries them."""
    by_key: dict[Row, list[_Change]] = field(default_factory=dict)


class RecentRows:
    """Those that one adapter has looked at.  Lives on one event loop."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, tuple[int, ...]], _Kept] = {}

    def changes(self, state: OracleState, keyed: Keyed, after: DataTs, through: DataTs) -> list[tuple[Row, int]] | None:
        """What was committed to the rows of ``keyed`` behind ``after`` and up to ``through``, each with what it adds
        to their count.  Raises ``Undecodable`` where the log carries what is no row."""
        if through > state.last_ts:
            return None
        name = keyed.table.id, keyed.places
        kept = self._kept.pop(name, None)
        if kept is None or kept.columns != keyed.table.columns or not kept.after <= after <= kept.through:
            kept = _Kept(keyed.table.columns, after, after)
        if not self._brought(state, keyed, kept, through):
            return None
        if kept.size > BYTES_MAX:
            kept = _Kept(keyed.table.columns, after, after)
            if not self._brought(state, keyed, kept, through):
                return None
        size = kept.size + sum(each.size for each in self._kept.values())
        while self._kept and (len(self._kept) >= INDEXES_MAX or size > ALL_BYTES_MAX):
            size -= self._kept.pop(next(iter(self._kept))).size
        self._kept[name] = kept
        if None in keyed.key:  # which no row equals
            return []
        found = kept.by_key.get(keyed.key, ())
        return [(each.row, each.diff) for each in found if after < each.ts <= through]

    @staticmethod
    def _brought(state: OracleState, keyed: Keyed, kept: _Kept, through: DataTs) -> bool:
        """Whether ``kept`` goes up to ``through`` now."""
        if through <= kept.through:
            return True
        try:
            runs = state.bindings(keyed.table.id).between(kept.through + 1, through + 1)
        except SnapshotTooOld:
            return False
        size = sum(len(each.value) for each in runs)
        if any(not each.value for each in runs) or size > DECODED_BYTES_MAX:
            return False
        if runs:
            values, attempts = [each.value for each in runs], [each.run.attempt for each in runs]
            table, counts = decode_counted(keyed.table.columns, values, attempts)
            stamps = [each.ts for each, count in zip(runs, counts, strict=True) for _ in range(count)]
            columns = {c.stored_as: table.column(at) for at, c in enumerate(keyed.table.columns)}
            for ts, (key, row), diff in zip(stamps, keyed.rows(columns), table.column(DIFF).to_pylist(), strict=True):
                kept.by_key.setdefault(key, []).append(_Change(ts, row, diff))
            kept.size += size
        kept.through = through
        return True
