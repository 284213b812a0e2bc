"""What views put out, on its way to their topics.

Promises: :meth:`Outputs.write` gives the runs of each view's rows, durable and bound by nobody yet; a view that is
dropped meanwhile keeps nobody waiting.  Unbound rows are invisible, so any write may be tried again.  Any thread.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait

import pyarrow as pa

from collection.binding import Run
from collection.columns import Columns
from collection.writer import CollectionWriter, to_be_tried_again
from controllers.compute.view import Change
from controllers.compute.writing_ahead import WRITE_BYTES_MAX, WRITE_TRIES_MAX
from journal.errors import TidemarkError

log = logging.getLogger(__name__)

WRITES_MAX = 8
"""Views written at once, so that all of them together stay below what may be pending (64 MiB)."""


class Outputs:
    """``there()`` are the objects that there are; ``life`` a name that no other writer has."""

    def __init__(self, writer: CollectionWriter, there: Callable[[], Collection[str]], life: str) -> None:
        self._writer = writer
        self._there = there
        self._life = life
        self._numbers = itertools.count(1)
        self._a_drop: Future[None] = Future()
        """Done when the next view of ours is dropped."""

    def dropped(self) -> None:
        """There are fewer objects: whoever waits for a write looks whether its view is one of those that went."""
        told, self._a_drop = self._a_drop, Future()
        told.set_result(None)

    def unwritable(self, view_ids: Sequence[str]) -> dict[str, TidemarkError | None]:
        """Of each view why its topic would lose rows, ``None`` where it would not."""
        return {view_id: asked.result() for view_id, asked in [(v, self._writer.check(v)) for v in view_ids]}

    def write(
        self, changes: Sequence[Change], columns: Mapping[str, Columns], failed: Callable[[tuple[str, ...]], None]
    ) -> dict[str, list[Run]]:
        """Write all of ``changes``, of views that put out ``columns``; their runs by view, of those that were not
        dropped meanwhile.  Raises what the writer does, once ``failed`` was told of whom."""
        small = [c for c in changes if c.rows.num_rows and c.rows.nbytes <= WRITE_BYTES_MAX]
        found: dict[str, list[Run]] = {}
        for start in range(0, len(small), WRITES_MAX):
            part = small[start : start + WRITES_MAX]
            found |= self._write_together({c.view_id: c.rows for c in part}, columns, failed)
        for change in changes:
            if change.rows.nbytes > WRITE_BYTES_MAX:
                # A new view over much data: in pieces, one after the other, to fit into what may be pending.
                view_id, rows = change.view_id, max(1, change.rows.num_rows * WRITE_BYTES_MAX // change.rows.nbytes)
                found[view_id] = [
                    run
                    for at in range(0, change.rows.num_rows, rows)
                    for run in self._write_together(
                        {view_id: change.rows.slice(at, rows)}, columns, failed
                    ).get(view_id, ())
                ]  # fmt: skip
        return found

    def _write_together(
        self, todo: dict[str, pa.Table], columns: Mapping[str, Columns], failed: Callable[[tuple[str, ...]], None]
    ) -> dict[str, list[Run]]:
        found: dict[str, list[Run]] = {}
        for attempt in range(WRITE_TRIES_MAX):
            futures = {
                view_id: self._writer.write(view_id, columns[view_id], rows, f"{self._life}-{next(self._numbers)}")
                for view_id, rows in todo.items()
            }
            ended = {view_id: f for view_id, f in futures.items() if self._await_write(view_id, f)}
            errors = {view_id: error for view_id, f in ended.items() if (error := f.exception()) is not None}
            found |= {view_id: f.result() for view_id, f in ended.items() if view_id not in errors}
            if not errors:
                return found
            for error in errors.values():
                if not to_be_tried_again(error) or attempt == WRITE_TRIES_MAX - 1:
                    failed(tuple(errors))
                    raise error
            log.warning("outputs are written again", extra={"views": sorted(errors), "attempt": attempt + 1})
            todo = {view_id: todo[view_id] for view_id in errors}
        return found

    def _await_write(self, view_id: str, written: Future) -> bool:
        """Wait until a write has ended, which takes a bounded time; ``False`` as soon as its view is dropped.

        Its topic goes with it, and a write to a topic that is not there waits for as long as it may: all other views
        of the cluster waited with it, for two minutes, and then the process ended and began anew.
        """
        while not written.done():
            dropped = self._a_drop
            if view_id not in self._there():
                log.info("a view was dropped while it was written", extra={"view": view_id})
                return False
            wait([written, dropped], return_when=FIRST_COMPLETED)
        return True
