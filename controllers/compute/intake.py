"""Much of a topic into a relation without passing through this process: Spark's tasks read it, and say where it is.

Promises: :meth:`Intake.fetch` gives files with exactly the rows of what is bound, as a
:class:`~collection.reader.RunReader` here would have read them; of each range one task's answer counts, as Spark has
it, and what another wrote that was tried again, or was done twice, goes.  Raises what tasks raised.  What passes
through this process are the ranges, and some hundred bytes a file.

A range is of one partition of a topic, as a data source would have it (:mod:`controllers.compute.tasks`).
"""

from __future__ import annotations

import itertools
import logging
import pickle
from collections.abc import Sequence

from collection.binding import BoundRun
from collection.columns import Columns, plain_columns
from collection.reader import JSON, check_all_there
from controllers.compute.chunks import Adopted
from controllers.compute.fetching import Fetch, packed, ranges, rows_of
from controllers.compute.handing import Handing
from controllers.compute.tasks import Lacking, answers

log = logging.getLogger(__name__)

MUCH_ROWS = 1_000_000
"""Rows of a topic from which tasks read them.  On two cores this process takes 1.3 s for a million of ours of three
columns, and tasks 1.1, or 3.7 where their Pythons have to begin (four million: 5.9, 3.2 and 5.0); of a source's JSON
this one takes thrice as long.  What it does itself, ticks wait for."""

RANGE_ROWS = 500_000
"""Of one task at most, so that as many as there are cores get some of a million, and one that is lost is little."""

TASK_MODULE = "controllers.compute.fetching"
"""What tasks run."""


class Intake:
    """For any number of threads."""

    def __init__(self, bootstrap: str, much_rows: int = MUCH_ROWS, range_rows: int = RANGE_ROWS) -> None:
        self._bootstrap = bootstrap
        self._much_rows = much_rows
        self._range_rows = range_rows
        self._able = True

    def takes(self, bound: Sequence[BoundRun]) -> bool:
        """Whether these are so many that tasks should read them."""
        return self._able and sum(rows_of(each.run) for each in bound) >= self._much_rows

    def fetch(
        self, handing: Handing, prefix: str, bound: Sequence[BoundRun], columns: Columns, format_: str
    ) -> list[Adopted] | None:
        """Files of ``handing``'s directory whose names begin with ``prefix``, which are the caller's; ``None`` where
        the executors lack what it takes."""
        pieces = [packed(each) for each in ranges(bound, self._range_rows)]
        fetch = Fetch(self._bootstrap, plain_columns(columns), format_, handing.place(prefix))
        plain = fetch._replace(columns=tuple(map(tuple, fetch.columns)))[:]
        kept: set[str] = set()
        try:
            said = [pickle.loads(each) for each in answers(handing.spark, TASK_MODULE, plain, pieces)]  # noqa: S301 - our own tasks'
            for each in said:
                each.check()
            found = [
                Adopted(handing.directory / (prefix + file.name), file)
                for file in itertools.chain.from_iterable(each.files for each in said)
            ]
            if format_ == JSON:
                check_all_there(bound, sum(each.of.net for each in found))
            kept = {each.path.name for each in found}
        except Lacking as lacking:
            self._able = False
            log.warning("executors cannot read topics, so this process does", extra={"detail": lacking.why.detail})
            return None
        finally:
            for path in handing.directory.glob(f"{prefix}_*"):
                if path.name not in kept:
                    path.unlink(missing_ok=True)
        counts = {"rows": sum(each.of.rows for each in found), "files": len(found), "ranges": len(pieces)}
        log.info("tasks read what a relation needs", extra=counts)
        return found
