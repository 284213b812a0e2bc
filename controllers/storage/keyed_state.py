"""What each key of a source is now, on this machine's disk: a copy of what the source's rows say, which may go.

Promises: memory is bounded by ``CACHE_KIB`` and ``RECENT_BYTES`` however many keys there are, the disk holds each key's
row once (twice while it is made from the rows).  Nothing of it outlives its process: after a start it is made from
what is bound.

What was put last is in memory, and goes to the disk together, sorted, once it is much: keys that are told again soon go
there once, and the tree is filled from one end to the other.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

from controllers.storage.upserts import Packed

CACHE_KIB = 16 * 1024
"""Pages of it in memory: of rows of 100 bytes some hundred thousand, more than a batch has."""

RECENT_BYTES = 32 << 20
"""Of keys and rows that were put last, with what Python has around them."""

ENTRY_BYTES = 200
"""Around each: two objects of 33 bytes, a place in a dictionary that has room for more."""

ASKED_AT_ONCE = 500
"""Keys in one question: SQLite takes 999 in its older builds."""

LOADED_AT_ONCE = 10_000


class Inconsistent(Exception):
    """The rows are not one of each key: they are not what a source has written."""


class KeyedState:
    """Of one source, used by one thread."""

    def __init__(self) -> None:
        self._directory = TemporaryDirectory(prefix="tidemark-keys-")
        path = Path(self._directory.name) / "keys.sqlite"
        self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        for pragma in ("journal_mode=OFF", "synchronous=OFF", f"cache_size=-{CACHE_KIB}", "locking_mode=EXCLUSIVE"):
            self._db.execute(f"PRAGMA {pragma}")
        self._db.execute("CREATE TABLE state (k BLOB PRIMARY KEY, v BLOB NOT NULL) WITHOUT ROWID")
        self._recent: dict[bytes, Packed | None] = {}
        """What goes to the disk next; ``None``: what is there goes."""
        self._recent_bytes = 0
        self._stored = False
        """Whether anything is on the disk."""

    def load(self, changes: Iterable[Sequence[tuple[bytes, Packed, int]]]) -> None:
        """Be what these changes of rows come to, in any order.  Raises :class:`Inconsistent`."""
        db = self._db
        self._recent, self._recent_bytes, self._stored = {}, 0, True
        db.execute("DELETE FROM state")
        db.execute("DROP TABLE IF EXISTS rows")
        db.execute("CREATE TABLE rows (k BLOB, v BLOB, n INTEGER, PRIMARY KEY (k, v)) WITHOUT ROWID")
        put = "INSERT INTO rows VALUES (?, ?, ?) ON CONFLICT (k, v) DO UPDATE SET n = n + excluded.n"
        for each in changes:
            left = iter(each)
            while some := list(islice(left, LOADED_AT_ONCE)):
                db.execute("BEGIN")
                db.executemany(put, some)
                db.execute("COMMIT")
        wrong = db.execute("SELECT count(*) FROM rows WHERE n NOT IN (0, 1)").fetchone()[0]
        twice = db.execute("SELECT count(*) FROM (SELECT k FROM rows WHERE n = 1 GROUP BY k HAVING count(*) > 1)")
        wrong += twice.fetchone()[0]
        if wrong:
            raise Inconsistent(f"{wrong} keys have more than one row, or less than none")
        db.execute("INSERT INTO state SELECT k, v FROM rows WHERE n = 1")
        db.execute("DROP TABLE rows")

    def get(self, keys: Iterable[bytes]) -> dict[bytes, Packed]:
        """The rows of those of ``keys`` that have one."""
        asked, recent = dict.fromkeys(keys), self._recent
        found = {key: row for key in asked if (row := recent.get(key)) is not None}
        if self._stored:
            unknown = [key for key in asked if key not in recent]
            for start in range(0, len(unknown), ASKED_AT_ONCE):
                some = unknown[start : start + ASKED_AT_ONCE]
                marks = ",".join("?" * len(some))
                found.update(self._db.execute(f"SELECT k, v FROM state WHERE k IN ({marks})", some))
        return found

    def put(self, puts: Mapping[bytes, Packed | None]) -> None:
        """``None``: the key has no row any more."""
        self._recent.update(puts)
        # Also of what is put again: then it goes to the disk somewhat sooner than it would have to.
        self._recent_bytes += sum(map(len, puts)) + sum(map(len, filter(None, puts.values()))) + ENTRY_BYTES * len(puts)
        if self._recent_bytes > RECENT_BYTES:
            self._store()

    def _store(self) -> None:
        puts = self._recent
        self._db.execute("BEGIN")
        self._db.executemany(
            "INSERT OR REPLACE INTO state VALUES (?, ?)", sorted((k, v) for k, v in puts.items() if v is not None)
        )
        if self._stored:
            self._db.executemany("DELETE FROM state WHERE k = ?", sorted((k,) for k, v in puts.items() if v is None))
        self._db.execute("COMMIT")
        self._recent, self._recent_bytes, self._stored = {}, 0, True

    def __len__(self) -> int:
        """How many keys have a row."""
        self._store()
        return self._db.execute("SELECT count(*) FROM state").fetchone()[0]

    def close(self) -> None:
        self._db.close()
        self._directory.cleanup()
