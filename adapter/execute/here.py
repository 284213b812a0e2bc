"""An answer that is all here."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pyarrow as pa


class Here:
    """A :class:`adapter.execute.peeks.PeekAnswer` that no controller has given.  ``as_of``: where it was read, ``None``
    where that hangs on no time."""

    def __init__(self, table: pa.Table, as_of: int | None = None) -> None:
        self.as_of = as_of
        self._table = table

    async def batches(self) -> AsyncIterator[pa.RecordBatch]:
        for batch in self._table.to_batches():
            yield batch
