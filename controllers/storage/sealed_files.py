"""A sealer's files: read, written so that each is durable before anybody is told of it, and removed.

Promises: on failure none of the files that were begun is left, as far as the store can be reached; what it cannot
remove it says, and it is swept later (:mod:`controllers.storage.sealer`).  In memory is one file at a time.
"""

from __future__ import annotations

import logging
import uuid
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from collection.columns import DIFF, Columns
from controllers.changes import canonical, consolidate, only_insertions
from controllers.storage.sealing import FILE_BYTES, FILE_ROWS
from journal.errors import TidemarkError
from segments.model import Segment, new_path, new_shared_path, part_path, place_of
from segments.parquet import chunks, encode, in_order
from segments.statistics import bounded, measured, packed
from segments.store import Store

log = logging.getLogger(__name__)


class Made(NamedTuple):
    """The bytes of a file, and what is to be said of it once it has a path."""

    data: bytes
    segment: Segment


class SealedFiles:
    """Of one store.  Reads from any thread, all else from one."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.written = 0
        """Files, by this process; so are their bytes."""
        self.written_bytes = 0

    def read(self, files: Iterable[Segment], columns: Columns) -> Iterator[pa.Table]:
        """All changes of ``files``, a piece at a time.  Raises ``Gone`` where one was removed since."""
        for each in files:
            yield from chunks(each, self.store.read(each.path), columns)

    def write(
        self, name: str, number: int, columns: Columns, tables: Iterable[pa.Table], key: Sequence[int], measures: bool,
        begun: bool = False,
    ) -> list[Segment]:  # fmt: skip
        """Files of all changes of collection ``name``, each sorted by ``key`` and durable.

        ``number``: the offset in the log that nobody adds them below; ``measures``: whether the log may say which
        values they hold; ``begun``: whether the log names files, as :meth:`segments.store.Store.write` has it.
        """
        added: list[Segment] = []
        pieces: list[pa.Table] = []
        try:
            for table in tables:
                for start in range(0, table.num_rows, FILE_ROWS):
                    pieces.append(table.slice(start, FILE_ROWS))
                    if sum(p.num_rows for p in pieces) >= FILE_ROWS or sum(p.nbytes for p in pieces) >= FILE_BYTES:
                        added += self._write_one(name, number, columns, key, pieces, measures, begun)
                        pieces = []
            added += self._write_one(name, number, columns, key, pieces, measures, begun)
        except BaseException:
            self.delete(added)
            raise
        return bounded(added)

    def _write_one(
        self, name: str, number: int, columns: Columns, key: Sequence[int], pieces: Sequence[pa.Table], measures: bool,
        begun: bool,
    ) -> Iterator[Segment]:  # fmt: skip
        """A file of ``pieces``, or none where they cancel out."""
        if (found := made(columns, pieces, key, measures)) is not None:
            path = new_path(name, number, uuid.uuid4().hex)
            self._put(path, found.data, begun)
            yield found.segment._replace(path=path)

    def write_shared(self, number: int, parts: Sequence[Made], begun: bool) -> list[Segment]:
        """One file of ``parts``, if there are any, each of which is a file to whoever reads it.  ``number`` and
        ``begun`` as in :meth:`write`."""
        if not parts:
            return []
        path = new_shared_path(number, uuid.uuid4().hex, sum(len(each.data) for each in parts))
        self._put(path, b"".join(each.data for each in parts), begun)
        found, offset = [], 0
        for each in parts:
            found.append(each.segment._replace(path=part_path(path, offset, len(each.data))))
            offset += len(each.data)
        return found

    def _put(self, path: str, data: bytes, begun: bool) -> None:
        self.store.write(path, data, begun)
        self.written += 1
        self.written_bytes += len(data)

    def delete(self, files: Iterable[Segment]) -> None:
        """Files that nobody has and nobody will have; what cannot be removed now is swept."""
        for each in files:
            self.remove(each.path)

    def remove(self, path: str) -> bool:
        """Remove a file; whether it is gone.  One that cannot be removed keeps no other there.

        A part of a shared one goes with that, which is swept once none of its parts is named any more: before that
        somebody who is late may still name one."""
        if place_of(path).part is not None:
            return True
        try:
            self.store.delete(path)
        except TidemarkError as error:
            log.warning("a file was left behind", extra={"reason": error.message, "detail": error.detail})
            return False
        return True


def made(columns: Columns, pieces: Sequence[pa.Table], key: Sequence[int], measures: bool) -> Made | None:
    """The file of ``pieces`` (of columns by their places, then diffs), or ``None`` where they cancel out."""
    if not pieces:
        return None
    changes = canonical(pa.concat_tables([by_place(each) for each in pieces]))
    if not (plain := only_insertions(changes)):
        changes = consolidate(changes)
        plain = only_insertions(changes)
    if not changes.num_rows:
        return None
    changes = in_order(columns, changes, key)
    statistics = packed(measured(columns, changes)) if measures else b""
    data = encode(columns, changes)
    net, crc32 = pc.sum(changes.column(DIFF)).as_py(), zlib.crc32(data)
    return Made(data, Segment("", len(data), changes.nbytes, changes.num_rows, net, plain, crc32, statistics))


def by_place(table: pa.Table) -> pa.Table:
    """With columns called by their places, and the diffs: two columns may be called alike."""
    names = [f"c{n}" for n in range(table.num_columns - 1)]
    return table.rename_columns([*names, DIFF])
