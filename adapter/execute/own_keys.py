"""Which rows of a transaction block's own have which keys of constraints.  Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pyarrow as pa

from adapter.execute.rows import Rows
from collection.columns import sql_type
from values.types import arrow_type


def own_by_key(own: Sequence[Rows], wanted: Collection[bytes]) -> dict[bytes, pa.Table | None]:
    """Of the keys ``wanted`` those that a block has written: the row that has it now, as an index has rows, or ``None``
    where it took that away.  ``own`` is what it has written of one table, in the order in which it did."""
    found: dict[bytes, pa.Table | None] = {}
    for entry in own:
        gone = entry.removed is not None
        for _, keys in entry.keys:
            found |= {key: None if gone else _plain(entry, n) for n, key in enumerate(keys) if key in wanted}
    return found


def _plain(entry: Rows, row: int) -> pa.Table:
    found = entry.rows.slice(row, 1)
    kinds = [arrow_type(sql_type(column.type)) for column in entry.columns]
    arrays = [column.cast(kind) for column, kind in zip(found.columns, kinds, strict=True)]
    return pa.Table.from_arrays(arrays, names=[f"c{at}" for at in range(len(arrays))])
