"""Rows of bound runs, read once."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from collection.binding import Run
from collection.columns import Columns
from collection.reader import ROWS, RunReader


def read_runs(bootstrap: str, runs: Iterable[Run], columns: Columns, format: str = ROWS) -> pa.Table:
    """One read with a consumer of its own."""
    reader = RunReader(bootstrap)
    try:
        return reader.read(runs, columns, format)
    finally:
        reader.close()
