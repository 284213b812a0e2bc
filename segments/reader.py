"""Rows of segments, for whoever reads a collection at or above what its files speak for.

Promises: the changes of exactly the files that hold them by one state of the log, in pieces of some 10 MB; a file that
was taken away meanwhile is :class:`~segments.store.Gone`, and then there are others (:meth:`SegmentReader.renewed`).
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from collection.columns import Columns
from journal.errors import Unavailable
from segments.fold import Sealed
from segments.log import SegmentsLog
from segments.parquet import chunks
from segments.store import Store, directory_of

RENEWED_TIMEOUT_S = 10.0
"""For the log to tell where the rows of a file went that is gone: a broker that is there answers in milliseconds."""


def of_environment(store: Store | None, log: SegmentsLog) -> Store | None:
    """The part of ``store`` that has the files of which ``log`` tells."""
    return None if store is None else store.below(directory_of(log.topic_id))


class SegmentReader:
    """Of one environment; any thread."""

    def __init__(self, log: SegmentsLog, store: Store | None) -> None:
        self._log = log
        self._store = store

    def sealed(self, collection: str) -> Sealed:
        """What is in files of ``collection``, as far as this process knows."""
        return self._log.state.sealed(collection)

    def chunks(self, sealed: Sealed, columns: Columns) -> Iterator[pa.Table]:
        """The changes in the files: ``columns``, then the diffs.

        Raises :class:`~segments.store.Gone`, :class:`~segments.store.Unreadable`, ``Unavailable``, ``FatalLog``
        (:class:`~segments.parquet.Damaged`).
        """
        for each in sealed.files:
            if self._store is None:
                raise Unavailable("rows are in files of a store that this process was not told of",
                                  hint="start it with --store, as the storage controller is")  # fmt: skip
            yield from chunks(each, self._store.read(each.path), columns)

    def renewed(self, collection: str, sealed: Sealed) -> bool:
        """Whether the log has something else of ``collection`` than ``sealed``, once all is folded that is in it.

        Nothing that is not in it yet is waited for: rows are in the log under their new place long before they leave
        the old one.  So a file that is gone for good does not hold up whoever waits for other collections.
        """
        try:
            self._log.caught_up(RENEWED_TIMEOUT_S).result()
        except Unavailable:
            return False
        return self.sealed(collection) is not sealed

    def close(self) -> None:
        self._log.close()
