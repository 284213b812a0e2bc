"""Where the rows of a write go before they are visible: into the commit record itself, or first to a topic.

A small write that travels in the record costs one flushed round trip instead of two, and needs no topic.  Everybody who
folds the oracle's log receives it, so what a record may carry is bounded, and so is what is held until the storage
controller moves it out (:mod:`controllers.storage.mover`): above half of what the log may hold, rows go to topics, as
large ones always do.  So a mover that is away makes writes dearer and refuses none.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from concurrent.futures import Future
from typing import NamedTuple, Protocol

import pyarrow as pa

from catalog_log.image import Image
from catalog_log.objects import Item
from catalog_log.records import INLINE_FROM
from collection.binding import Binding, Inline, Run
from collection.columns import Columns
from collection.rows import encode
from oracle.client import Oracle
from oracle.state import HELD_BYTES_MAX, OracleState

log = logging.getLogger(__name__)

INLINE_BYTES_MAX = 16 << 10
"""Of rows in one commit.  Up to here a record with its rows takes no longer to be confirmed than one without, within
what can be measured (1.05 times as long); at 64 KiB it takes 1.16 times as long, which everybody waits for who has a
record behind it (``bench/``, "a commit that carries …")."""

INLINE_ROWS_MAX = 2_000
"""Likewise, for the sake of rows that take next to no bytes (booleans, or no columns at all): they are encoded on the
event loop, at some 3 microseconds a row."""

HELD_BYTES_GOAL = HELD_BYTES_MAX // 2


class ToWrite(Protocol):
    """``adapter.execute.rows.Rows``."""

    table: Item
    rows: pa.Table
    size: int

    @property
    def columns(self) -> Columns: ...

    @property
    def changes(self) -> pa.Table: ...


class Placed(NamedTuple):
    """Where the rows of one entry are: on a topic, or to be carried."""

    runs: tuple[Run, ...] = ()
    inline: tuple[Inline, ...] = ()

    def bindings(self, table: Item) -> tuple[Binding, ...]:
        return tuple(Binding(table.id, run) for run in self.runs)


def carried(entries: Sequence[ToWrite], state: OracleState, attempt: str) -> list[Placed] | None:
    """All of ``entries`` as rows that one commit record carries, or ``None`` where they have to go to topics.

    Raises ``InvalidUsage`` where rows do not fit their columns, ``Rejected`` 54000 for a row that is too large.
    """
    if state.record_version < 2 or state.held_bytes > HELD_BYTES_GOAL:
        return None
    # Avro is at most some bytes a value more than Arrow, so this spares encoding what will not fit.
    if sum(each.size for each in entries) > 2 * INLINE_BYTES_MAX:
        return None
    if sum(each.rows.num_rows for each in entries) > INLINE_ROWS_MAX:
        return None
    placed = []
    size = 0
    for n, each in enumerate(entries):
        batches = encode(each.columns, each.changes, f"{attempt}-{n}")
        inline = tuple(Inline(each.table.id, batch.value, f"{attempt}-{n}", batch.rows) for batch in batches)
        size += sum(len(batch.value) for batch in inline)
        if size > INLINE_BYTES_MAX:
            return None
        placed.append(Placed(inline=inline))
    return placed


class FormatRaiser:
    """Lets the oracle's records carry rows, once, where the catalog's format says that everybody can read such."""

    def __init__(self, oracle: Oracle) -> None:
        self._oracle = oracle
        self._asked: Future[None] | None = None

    def look(self, image: Image) -> None:
        """Ask for it where that is still to be done.  Returns at once; who comes meanwhile writes as before."""
        if self._asked is not None or self._oracle.state.record_version >= 2 or image.genesis is None:
            return
        if image.genesis.format_version >= INLINE_FROM:
            self._asked = self._oracle.raise_format()
            self._asked.add_done_callback(self._done)

    def _done(self, asked: Future[None]) -> None:
        error = asked.exception()
        if error is not None:
            self._asked = None  # whoever comes next asks again
            log.warning("the oracle's records cannot carry rows yet", extra={"reason": str(error)})
