"""A portal: one statement with its parameters, running or finished, read a limited number of rows at a time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable

import pyarrow as pa

from adapter.control import CONTROLS, Control
from adapter.interfaces import Prepared, Result
from adapter.values import RowEncoder
from journal.errors import InvalidUsage


async def _aiter(batches: Iterable[pa.RecordBatch]) -> AsyncIterator[pa.RecordBatch]:
    for batch in batches:
        yield batch


class Portal:
    """Holds at most one batch of its result."""

    __slots__ = ("_encoder", "_left", "_source", "finished", "formats", "name", "params", "prepared", "result", "zone")

    def __init__(
        self, name: str, prepared: Prepared, params: tuple[object | None, ...], formats: tuple[int, ...], zone: str
    ) -> None:
        self.name = name
        self.prepared = prepared
        self.params = params
        self.formats = formats
        self.zone = zone
        self.result: Result | None = None
        self.finished = False
        self._source: AsyncIterator[pa.RecordBatch] | None = None
        self._left: pa.RecordBatch | None = None
        self._encoder: RowEncoder | None = None

    @property
    def control(self) -> Control | None:
        return self.prepared.plan if isinstance(self.prepared.plan, CONTROLS) else None

    def start(self, result: Result) -> None:
        """The statement has run.  Raises 0A000 where its columns are no longer those that were described."""
        self.result = result
        described, actual = self.prepared.columns, result.columns
        if (described is None) != (actual is None) or (
            actual is not None and [(c.type, c.type_oid) for c in described] != [(c.type, c.type_oid) for c in actual]
        ):
            raise InvalidUsage("cached plan must not change result type", sqlstate="0A000",
                               hint="prepare the statement again")  # fmt: skip
        if actual is not None:
            self._encoder = RowEncoder(actual, self.formats, self.zone)
            batches = result.batches
            self._source = aiter(batches) if hasattr(batches, "__aiter__") else _aiter(batches)

    async def rows(self, rows_max: int) -> AsyncIterator[tuple[bytes | memoryview, int]]:
        """Pieces of DataRow messages with their number of rows, up to ``rows_max`` rows (0: all)."""
        wanted = rows_max or None
        while self._source is not None and wanted != 0:
            batch = self._left
            self._left = None
            if batch is None:
                batch = await anext(self._source, None)
                if batch is None:
                    await self.close()
                    return
            if wanted is not None and batch.num_rows > wanted:
                self._left = batch.slice(wanted)
                batch = batch.slice(0, wanted)
            if wanted is not None:
                wanted -= batch.num_rows
            for piece, count in self._encoder.encode(batch):
                yield piece, count

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
