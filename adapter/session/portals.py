"""A portal: one statement with its parameters, running or finished, read a limited number of rows at a time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import aclosing

import pyarrow as pa

from adapter.encode.values import FEW_ROWS, PIECE_BYTES, RowEncoder, encoder_for, formats_for
from adapter.state.interfaces import Part, Prepared, Result
from adapter.state.settings import Settings
from adapter.wire.messages import Bind
from journal.errors import InvalidUsage
from sql.syntax.control import Control


async def _aiter(batches: Iterable[pa.RecordBatch]) -> AsyncIterator[pa.RecordBatch]:
    for batch in batches:
        yield batch


def _bytes(batch: pa.RecordBatch) -> int:
    """What it takes: the whole that it may be a part of is known at once; only where that is much it is asked."""
    whole = batch.get_total_buffer_size()
    return batch.nbytes if whole > PIECE_BYTES else whole


class Portal:
    """Holds at most one batch of its result."""

    __slots__ = (
        "_encoder", "_failed", "_left", "_source", "asked", "bind", "control", "finished", "formats", "holds", "kept",
        "name", "number", "params", "position", "prepared", "result", "zone",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        prepared: Prepared,
        params: tuple[object | None, ...],
        asked: Sequence[int],
        zone: str,
    ) -> None:
        """``asked``: the format codes of Bind (none: all text; one: it is for all); ``zone``: by which ``params`` were
        read.  Raises 08P01 for another number of them than there are columns."""
        self.name = name
        self.control: Control | None = prepared.plan if isinstance(prepared.plan, Control) else None
        self.asked = asked
        self.zone = zone
        self.bind: Bind | None = None
        """The message that made it: its parameters are read again where the statement is prepared again."""
        self.hold(prepared, params)
        self.result: Result | None = None
        self.finished = False
        self.holds = False
        """A cursor WITH HOLD: it outlives the transaction that declared it, if that commits."""
        self.kept = False
        """It has outlived that transaction."""
        self.number = 0
        """In the order in which the session's portals were opened."""
        self.position = 0
        """Rows taken so far."""
        self._failed = False
        self._source: AsyncIterator[pa.RecordBatch] | None = None
        self._left: pa.RecordBatch | None = None
        self._encoder: RowEncoder | None = None

    def hold(self, prepared: Prepared, params: tuple[object | None, ...]) -> None:
        """It is for ``prepared`` from now on.  Raises 08P01 as above, and then it is what it was."""
        count = len(prepared.columns or ())
        if len(self.asked) > 1 and len(self.asked) != count:
            raise InvalidUsage(
                f"bind message has {len(self.asked)} result formats but query has {count} columns", sqlstate="08P01"
            )
        self.prepared, self.params, self.formats = prepared, params, formats_for(self.asked, count)

    def start(self, result: Result, settings: Settings) -> None:
        """The statement has run, and rows are written as ``settings`` say by now.  Raises 0A000 where its columns are
        no longer those that were described."""
        self.result = result
        described, actual = self.prepared.columns, result.columns
        if described is not actual and (
            described is None
            or actual is None
            or [(c.type, c.type_oid) for c in described] != [(c.type, c.type_oid) for c in actual]
        ):
            raise InvalidUsage("cached plan must not change result type", sqlstate="0A000",
                               hint="prepare the statement again")  # fmt: skip
        if actual is not None:
            self._encoder = encoder_for(tuple(actual), self.formats, settings.zone, settings.extra_float_digits)
            batches = result.batches
            self._source = aiter(batches) if hasattr(batches, "__aiter__") else _aiter(batches)

    async def batches(self, rows_max: int | None) -> AsyncIterator[pa.RecordBatch]:
        """The next rows, up to ``rows_max`` (``None``: all).

        Raises 55000 where reading failed or was cancelled before: what is left then is not what was asked for.
        """
        if self._failed:
            raise InvalidUsage(f'portal "{self.name}" failed and cannot be read on', sqlstate="55000")
        self._failed, wanted = True, rows_max  # until it has ended well
        while self._source is not None and wanted != 0:
            batch = self._left
            self._left = None
            if batch is None:
                batch = await anext(self._source, None)
                if batch is None:
                    await self.close()
                    break
            if wanted is not None and batch.num_rows > wanted:
                self._left = batch.slice(wanted)
                batch = batch.slice(0, wanted)
            if wanted is not None:
                wanted -= batch.num_rows
            self.position += batch.num_rows
            yield batch
        self._failed = False

    def few_rows(self) -> tuple[bytes, int] | None:
        """All rows of a result that is here, small and unread, as DataRow messages, and their number; then it is read.

        ``None`` where it is none of these: :meth:`rows` reads whatever there is.  This way costs a third of that.
        """
        batches = self.result.batches if self.result is not None else None
        if self.position or self._failed or self._left is not None:
            return None
        if type(batches) is Part:
            return self._few_of(batches)
        if type(batches) is not list:
            return None
        count = sum(batch.num_rows for batch in batches)
        if count > FEW_ROWS or any(_bytes(batch) > PIECE_BYTES for batch in batches):
            return None
        data = b"".join([self._encoder.few(batch) for batch in batches])
        self._source, self.position = None, count
        return data, count

    def _few_of(self, part: Part) -> tuple[bytes, int] | None:
        data = self._encoder.part(part) if part.count <= FEW_ROWS else None
        if data is None:
            return None
        self._source, self.position = None, part.count
        return data, part.count

    async def rows(self, rows_max: int) -> AsyncIterator[tuple[bytes | memoryview, int]]:
        """Pieces of DataRow messages with their number of rows, up to ``rows_max`` rows (0: all)."""
        async with aclosing(self.batches(rows_max or None)) as batches:
            async for batch in batches:
                for piece, count in self._encoder.encode(batch):
                    yield piece, count

    async def skip(self, rows_max: int | None) -> int:
        """Step over rows; how many there were."""
        before = self.position
        async with aclosing(self.batches(rows_max)) as batches:
            async for _ in batches:
                pass
        return self.position - before

    @property
    def open(self) -> bool:
        """Whether there is anything to :meth:`close`."""
        return self._source is not None or (self.result is not None and hasattr(self.result.batches, "aclose"))

    @property
    def suspended(self) -> bool:
        return self._source is not None

    async def close(self) -> None:
        """Let go of the result.  Idempotent."""
        source, self._source, self._left = self._source, None, None
        batches = self.result.batches if self.result is not None else None
        for closable in (source, batches if batches is not source else None):
            aclose = getattr(closable, "aclose", None)
            if aclose is not None:
                await aclose()
