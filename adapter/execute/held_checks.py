"""CHECK: that the rows that a statement would write keep the conditions of their table, all rows at once.

What is told is what PostgreSQL would find first, which looks at a row after the other, and at the conditions of each in
the order of their names.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from adapter.encode.shown_rows import row_text
from catalog_log.objects import Table
from journal.errors import InvalidUsage
from plan.relations import Query
from sql.views.kept_checks import checks_query

Ask = Callable[[Query, int, Table, pa.Table], pa.Table]
"""The values, as many booleans as is said, that a query over a table gives for each of these rows of it."""


def hold(table: Table, rows: pa.Table, zone: str, ask: Ask) -> None:
    """Raises 23514 for the first of ``rows`` that does not keep a check of ``table``, and what evaluating one does."""
    names = tuple([each.name for each in table.checks])
    if not names or not rows.num_rows:
        return
    try:
        _told(table, rows, zone, names, ask(checks_query(table, names), len(names), table, rows))
    except InvalidUsage as error:
        if error.sqlstate == "23514" or (rows.num_rows == 1 and len(names) == 1):
            raise
        # Something cannot be evaluated: the first row of which that is so, or that does not keep one, is told.
        first = _first(table, rows, zone, ask)
        for name in names:
            _told(table, first, zone, (name,), ask(checks_query(table, (name,)), 1, table, first))
        raise AssertionError("a row that is refused is refused again") from error


def _first(table: Table, rows: pa.Table, zone: str, ask: Ask) -> pa.Table:
    """The first row that is refused, of ``rows`` of which one is."""
    names = tuple([each.name for each in table.checks])
    lower, upper = 0, rows.num_rows
    while upper - lower > 1:
        middle = (lower + upper) // 2
        part = rows.slice(lower, middle - lower)
        try:
            _told(table, part, zone, names, ask(checks_query(table, names), len(names), table, part))
            lower = middle
        except InvalidUsage:
            upper = middle
    return rows.slice(lower, 1)


def _told(table: Table, rows: pa.Table, zone: str, names: tuple[str, ...], found: pa.Table) -> None:
    worst: tuple[int, int] | None = None
    for at, values in enumerate(found.columns):
        place = values.index(pa.scalar(False)).as_py()
        if place >= 0 and (worst is None or (place, at) < worst):
            worst = place, at
    if worst is not None:
        row, at = worst
        error = InvalidUsage(
            f'new row for relation "{table.name}" violates check constraint "{names[at]}"',
            sqlstate="23514",
            detail=f"Failing row contains {row_text(table.columns, rows, row, zone)}.",
        )
        error.about = {"table": table.name, "constraint": names[at]}
        raise error
