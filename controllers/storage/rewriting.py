"""What is written in the place of files: all that they hold, put together or spread over ranges of keys.

Promises: what is given holds exactly what the files held, where changes that cancel out count as nothing.  However many
files there are, memory holds a part of them (:data:`controllers.storage.sealing.FILE_ROWS` rows): what is more goes
through this machine's disk.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from collection.columns import Columns
from collection.rows import has_ids
from controllers.changes import consolidate
from controllers.storage import clustering, sealing
from controllers.storage.clustering import Ranges
from controllers.storage.sealed_files import by_place
from controllers.storage.spread import parts
from segments.model import Segment
from segments.parquet import in_order

GROUP_ROWS = 65_536
"""Of what is spread over parts, rows that are written to a part at once."""

Read = Callable[[Iterable[Segment], Columns], Iterator[pa.Table]]
"""All changes of files, a piece at a time; it may raise, so that who stops waits for a piece only."""

Places = Callable[[pa.Table], np.ndarray]
"""The part of each row of a table, by position, whose last column are the diffs."""


def merged(read: Read, files: Sequence[Segment], columns: Columns, _key: Sequence[int] = ()) -> Iterator[pa.Table]:
    """All changes of ``files``, which are few, at once: what cancels out is merged where they are written."""
    yield pa.concat_tables(read(files, columns))


def rewritten(read: Read, files: Sequence[Segment], columns: Columns, key: Sequence[int]) -> Iterator[pa.Table]:
    """All changes of ``files``, of however many, in parts that each have all that is equal: one range of keys after
    the other, where there is a key."""
    count, place = _parted(read, files, columns, key)
    if count == 1:
        yield from merged(read, files, columns)
        return
    with ExitStack() as opened:
        # They have no names, so they are gone with their process, however that ends.
        places = [opened.enter_context(tempfile.TemporaryFile(prefix="tidemark-sealer-")) for _ in range(count)]
        _spread(read(files, columns), places, place)
        for each in places:
            # Here, and not only where it is written: a part may be more than a file takes, and is cut as it lies.
            part = consolidate(pq.read_table(each))
            each.close()
            yield in_order(columns, part, key) if key else part


def _parted(read: Read, files: Sequence[Segment], columns: Columns, key: Sequence[int]) -> tuple[int, Places]:
    """Into how many parts the rows of ``files`` go, and into which each of them."""
    count = sealing.parts_of(files)
    if count == 1 or not key:
        return count, lambda table: parts(table, range(table.num_columns - 1), count)
    # Those alone are read, where files know their columns by ids.
    keys, at = (columns, key) if not has_ids(columns) else ([columns[n] for n in key], range(len(key)))
    tables = (table.select(list(at)) for table in read(files, tuple(keys)))
    rows = sum(each.changes for each in files)
    ranges = Ranges.of(clustering.sampled(tables, rows, count), count)
    return ranges.count, lambda table: ranges.parts(table, key)


def _spread(tables: Iterable[pa.Table], files: Sequence[IO[bytes]], place: Places) -> None:
    writers: list[pq.ParquetWriter] = []
    try:
        for table in tables:
            table = by_place(table)
            if not writers:
                writers = [pq.ParquetWriter(file, table.schema) for file in files]
            places = place(table)
            for n, writer in enumerate(writers):
                writer.write_table(table.filter(pa.array(places == n)), row_group_size=GROUP_ROWS)
    finally:
        for writer in writers:
            writer.close()
