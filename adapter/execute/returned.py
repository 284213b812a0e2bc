"""RETURNING: what is given of rows that are here."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from adapter.execute.constants import Constants
from adapter.state.interfaces import OutputColumn
from sql.statements.plans import ChangePlan, InsertPlan, Returning, SelectPlan
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
    rows = list(zip(*(column.to_pylist() for column in row), strict=True))
    return await constants.for_rows(returning.query, returning.query.each(params, rows))
