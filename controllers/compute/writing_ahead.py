"""Rows of a task on their way to a collection's topic, a few writes ahead of what is known to be there.

Runs in the tasks' Python, wherever they are.  Promises: what :meth:`WritingAhead.runs` gives are exactly the offsets of
all that was written, durable and bound by nobody; a write that may be tried again is, and what it left is garbage.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager

import pyarrow as pa

from collection.binding import Run, joined
from collection.columns import Columns
from collection.writer import KEY_BYTES, CollectionWriter, to_be_tried_again
from journal.errors import TidemarkError
from journal.names import TopicNames

WRITE_TRIES_MAX = 4
"""A write waits up to 30 s for a broker by itself, so this rides out two minutes."""

WRITE_BYTES_MAX = 8 << 20
"""Of Arrow data written at once; as Avro it is of the same order, an eighth of what may be pending."""

WRITES_AHEAD_MAX = 2
"""Writes of one task without an answer, beside the one that is being encoded: that takes longer than the brokers do."""


class _Nobody:
    """Makes no topics: whoever gave the order had this one made, and it may be dropped by now."""

    def create(self, ids: Iterable[str]) -> None: ...

    def close(self, timeout_s: float | None = None) -> None: ...


NOBODY = _Nobody()


class WritingAhead:
    """Used by one thread; made by :func:`writing_ahead`."""

    def __init__(self, writer: CollectionWriter, collection: str, columns: Columns, attempt: str) -> None:
        self._writer = writer
        self._collection, self._columns, self._attempt = collection, columns, attempt
        self._key = os.urandom(KEY_BYTES)
        """One partition for all of a task's records: those of other tasks would lie between them in each."""
        self._written: deque[tuple[pa.Table, Future[list[Run]]]] = deque()
        self._runs: list[Run] = []

    def write(self, rows: pa.Table) -> None:
        """Returns once few enough writes are without an answer.  Raises as :meth:`CollectionWriter.write` does, for
        this one or one before."""
        at_once = max(1, rows.num_rows * WRITE_BYTES_MAX // max(rows.nbytes, 1))
        for at in range(0, rows.num_rows, at_once):
            part = rows.slice(at, at_once)
            self._written.append((part, self._begun(part)))
            while len(self._written) > WRITES_AHEAD_MAX:
                self._settle()

    def runs(self) -> tuple[Run, ...]:
        """Where all of it is, once it is there."""
        while self._written:
            self._settle()
        return tuple(joined(self._runs))

    def _begun(self, rows: pa.Table) -> Future[list[Run]]:
        return self._writer.write(self._collection, self._columns, rows, self._attempt, self._key)

    def _settle(self) -> None:
        rows, written = self._written.popleft()
        for tries_left in reversed(range(WRITE_TRIES_MAX)):
            try:
                self._runs += written.result()
                return
            except TidemarkError as error:
                if not tries_left or not to_be_tried_again(error):
                    raise
                written = self._begun(rows)


@contextmanager
def writing_ahead(
    bootstrap: str, env: str, collection: str, columns: Columns, attempt: str
) -> Iterator[WritingAhead]:  # fmt: skip
    """To a topic that somebody had made."""
    writer = CollectionWriter(bootstrap, TopicNames(env), NOBODY)
    try:
        yield WritingAhead(writer, collection, columns, attempt)
    finally:
        writer.close()
