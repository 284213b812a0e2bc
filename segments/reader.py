"""Files of segments, for whoever reads a collection at or above what they speak for.

Promises: exactly the files that hold its settled rows by one state of the log, as files of this machine that stay until
their reader is done with them; one that was taken away before is :class:`~segments.store.Gone`, and then there are
others (:meth:`SegmentReader.renewed`).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from journal.errors import Unavailable
from segments.fold import Sealed
from segments.log import SegmentsLog
from segments.parquet import LocalFile
from segments.store import Store, Unreadable, directory_of

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

    def fetched(self, sealed: Sealed, directory: Path, name: str) -> Iterator[LocalFile]:
        """The files as ``name`` and a number in ``directory``, each found to be what was sealed.

        They are whoever's who exhausts this; otherwise none is left.  Raises :class:`~segments.store.Gone`,
        :class:`~segments.store.Unreadable`, ``Unavailable``, ``FatalLog`` (:class:`~segments.parquet.Damaged`).
        """
        made: list[Path] = []
        try:
            for number, each in enumerate(sealed.files):
                if self._store is None:
                    raise Unavailable("rows are in files of a store that this process was not told of",
                                      hint="start it with --store, as the storage controller is")  # fmt: skip
                path = directory / f"{name}_{number}.parquet"
                self._store.fetch(each.path, path)
                made.append(path)
                found = LocalFile(each, path)
                try:
                    found.check()
                except OSError as error:
                    raise Unreadable(f"file {each.path} cannot be read", detail=str(error)) from error
                yield found
        except BaseException:
            for path in made:
                path.unlink(missing_ok=True)
            raise

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
