"""RETURNING: what is given of rows that are here."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from adapter.execute.constants import Constants
from adapter.state.interfaces import OutputColumn
from sql.statements.plans import ChangePlan, InsertPlan, Returning, SelectPlan
from sql.statements.returning import AT, ROWS, row_column
from sql.statements.writing import WritingPlan
from values.types import arrow_type


def returned(plan: SelectPlan | InsertPlan | ChangePlan | WritingPlan) -> tuple[OutputColumn, ...] | None:
    """The columns of a write's answer; ``None`` where it gives no rows."""
    found = getattr(plan, "returning", None)
    return None if found is None else tuple([OutputColumn(column.name, column.type) for column in found.columns])


async def rows_returned(
    constants: Constants, returning: Returning, params: Sequence[object | None], row: Sequence[pa.ChunkedArray]
) -> list[pa.RecordBatch]:
    """What ``returning`` gives for rows, whose values are the columns ``row``."""
    if returning.query is None:
        kinds = [arrow_type(column.type) for column in returning.columns]
        arrays = [row[place].cast(kind) for place, kind in zip(returning.places, kinds, strict=True)]
        return pa.Table.from_arrays(arrays, names=[f"c{at}" for at in range(len(arrays))]).to_batches()
    numbers = pa.array(range(len(row[0])), pa.int64())
    rows = pa.Table.from_arrays([*row, numbers], names=[*map(row_column, range(len(row))), AT])
    found = await constants.over(returning.query, params, {ROWS: rows})
    assert found.num_rows == rows.num_rows, (found.num_rows, rows.num_rows)
    at = found.num_columns - 1
    return found.take(pc.sort_indices(found.column(at))).remove_column(at).to_batches()
