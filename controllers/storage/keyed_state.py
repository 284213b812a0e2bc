"""What each key of a source is now, on this machine's disk: a copy of what the source's rows say, which may go.

Promises: memory is bounded by ``RECENT_BYTES`` and by what one transaction of LMDB's writes (``LOADED_BYTES``)
however many keys there are, the disk holds each key's row once or twice: what a transaction changes is written beside
what it was.  Nothing of it outlives its process: after a start it is made from what is bound.

What was put last is in memory, and goes to the disk together, sorted, once it is much: keys that are told again soon go
there once, and the tree is filled from one end to the other.

LMDB, and not SQLite: both are trees on disk, but this one is asked for many keys in one call, and says three to eight
times as fast what they are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from tempfile import TemporaryDirectory
from typing import Any

import lmdb

from controllers.storage.upserts import Packed
from journal.errors import Unavailable

RECENT_BYTES = 32 << 20
"""Of keys and rows that were put last, with what Python has around them."""

ENTRY_BYTES = 200
"""Around each: two objects of 33 bytes, a place in a dictionary that has room for more."""

LOADED_AT_ONCE = 10_000

LOADED_BYTES = 16 << 20
"""Rows that are loaded in one transaction: so many, or so many bytes of them; at least one."""

MAP_BYTES = 1 << 38
"""Of addresses, not of disk: as much as a tree may grow to.  A process has room for some five hundred such."""

_COUNT_BYTES = 8
"""Of how often a row is there, before it."""

_ROW_BYTES = 20
"""Of a row's hash: as of a key's (:data:`controllers.storage.upserts.KEY_BYTES`)."""


class Inconsistent(Exception):
    """The rows are not one of each key: they are not what a source has written."""


class KeyedState:
    """Of one source, used by one thread.

    Whatever is asked of it raises ``Unavailable`` where its disk does not do what it should; then nothing is known of
    what it holds, and another one is to be made."""

    def __init__(self) -> None:
        # Its files have no name any more once they are open: so they are gone with their process, however that ends.
        with _Disk(OSError), TemporaryDirectory(prefix="tidemark-keys-") as directory:
            # No more is asked of the disk than to be there: what it holds is of no use to another process.
            self._db = lmdb.open(directory, MAP_BYTES, max_dbs=2, sync=False, metasync=False)
            self._state, self._rows = self._db.open_db(b"state"), self._db.open_db(b"rows")
        self._recent: dict[bytes, Packed | None] = {}
        """What goes to the disk next; ``None``: what is there goes."""
        self._recent_bytes = 0
        self._stored = False
        """Whether anything is on the disk."""

    def load(self, changes: Iterable[Sequence[tuple[bytes, Packed, int]]]) -> None:
        """Be what these changes of rows come to, in any order.  Raises :class:`Inconsistent`."""
        self._recent, self._recent_bytes, self._stored = {}, 0, True
        with _Disk():
            self._empty(self._state, self._rows)
            for each in changes:
                for some in _pieces(each):
                    self._add_up(some)
            wrong = sum(self._take(counted) for counted in self._counted())
            self._empty(self._rows)
        if wrong:
            raise Inconsistent(f"{wrong} keys have more than one row, or less than none")

    def _add_up(self, changes: Sequence[tuple[bytes, Packed, int]]) -> None:
        """How often each row is there, by its key and its hash."""
        counts: dict[bytes, int] = {}
        rows: dict[bytes, Packed] = {}
        for key, row, diff in changes:
            at = key + hashlib.blake2b(row, digest_size=_ROW_BYTES).digest()
            counts[at] = counts.get(at, 0) + diff
            rows[at] = row
        with self._db.begin(write=True, db=self._rows) as changing, changing.cursor() as cursor:
            for at, held in cursor.getmulti(sorted(counts)):
                counts[at] += _count(held)
            cursor.putmulti((at, _counted(counts[at], rows[at])) for at in sorted(counts))

    def _counted(self) -> Iterator[list[tuple[bytes, bytes]]]:
        """All rows with how often they are there, some at a time: nothing is held while they are written elsewhere."""
        behind = b""
        while True:
            with self._db.begin(db=self._rows) as reading, reading.cursor() as cursor:
                found = next(_pieces(cursor), []) if cursor.set_range(behind) else []
            if not found:
                return
            yield found
            behind = found[-1][0] + b"\0"

    def _take(self, counted: Sequence[tuple[bytes, bytes]]) -> int:
        """Have those of these rows that are there; how many are wrong."""
        wrong = sum(_count(held) not in (0, 1) for _, held in counted)
        there = [(at[:-_ROW_BYTES], held[_COUNT_BYTES:]) for at, held in counted if _count(held) == 1]
        with self._db.begin(write=True, db=self._state) as changing, changing.cursor() as cursor:
            _, added = cursor.putmulti(there, overwrite=False)
        return wrong + len(there) - added

    def _empty(self, *databases: object) -> None:
        with self._db.begin(write=True) as changing:
            for each in databases:
                changing.drop(each, delete=False)

    def get(self, keys: Iterable[bytes]) -> dict[bytes, Packed]:
        """The rows of those of ``keys`` that have one."""
        asked, recent = dict.fromkeys(keys), self._recent
        found = {key: row for key in asked if (row := recent.get(key)) is not None}
        if self._stored:
            unknown = sorted(key for key in asked if key not in recent)
            with _Disk(), self._db.begin(db=self._state) as reading, reading.cursor() as cursor:
                found.update(cursor.getmulti(unknown))
        return found

    def put(self, puts: Mapping[bytes, Packed | None]) -> None:
        """``None``: the key has no row any more."""
        self._recent.update(puts)
        # Also of what is put again: then it goes to the disk somewhat sooner than it would have to.
        self._recent_bytes += sum(map(len, puts)) + sum(map(len, filter(None, puts.values()))) + ENTRY_BYTES * len(puts)
        if self._recent_bytes > RECENT_BYTES:
            self._store()

    def _store(self) -> None:
        puts = sorted(self._recent.items())
        with _Disk(), self._db.begin(write=True, db=self._state) as changing, changing.cursor() as cursor:
            cursor.putmulti((key, row) for key, row in puts if row is not None)
            if self._stored:
                for key, row in puts:
                    if row is None:
                        changing.delete(key)
        self._recent, self._recent_bytes, self._stored = {}, 0, True

    def __len__(self) -> int:
        """How many keys have a row."""
        self._store()
        with self._db.begin(db=self._state) as reading:
            return reading.stat(self._state)["entries"]

    def close(self) -> None:
        self._db.close()


class _Disk:
    """A block that works on the disk by LMDB, and where ``also`` may be raised, by the file system itself."""

    def __init__(self, *also: type[Exception]) -> None:
        self._errors = (lmdb.Error, *also)

    def __enter__(self) -> None: ...

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, self._errors):
            raise Unavailable("what the keys of a source are cannot be kept on disk", detail=str(error)) from error


def _pieces(rows: Iterable[Any]) -> Iterator[list[Any]]:
    """``rows``, whose second part is their bytes, some at a time."""
    found, size = [], 0
    for row in rows:
        found.append(row)
        size += len(row[1])
        if len(found) >= LOADED_AT_ONCE or size >= LOADED_BYTES:
            yield found
            found, size = [], 0
    if found:
        yield found


def _counted(count: int, row: Packed) -> bytes:
    return count.to_bytes(_COUNT_BYTES, "big", signed=True) + row


def _count(held: bytes) -> int:
    return int.from_bytes(held[:_COUNT_BYTES], "big", signed=True)
