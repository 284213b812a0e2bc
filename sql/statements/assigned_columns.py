"""The columns that SET names, checked, and what they are set to.  Pure."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from catalog_log.objects import ALWAYS, Table
from journal.errors import InvalidUsage
from sql.statements.assigning import no_column_of
from sql.syntax.assigned import Assigned
from trees.errors import mismatch, syntax, unsupported
from trees.nodes import position
from trees.types import shown
from values.types import SqlType


def assigned_columns(
    assigned: Sequence[Assigned], table: Table, types: Sequence[SqlType]
) -> list[tuple[int, Assigned]]:
    """Each with its place in ``table``.  Raises 42703, 42804 for a field, 42601 for one that is set twice, 428C9."""
    position_of = {column.name: at for at, column in enumerate(table.columns)}
    found: dict[int, Assigned] = {}
    for each in assigned:
        if each.column not in position_of:
            raise no_column_of(table, each.column, each.start + 1)
        index = position_of[each.column]
        if each.field is not None:
            raise mismatch(
                f'cannot assign to field "{each.field}" of column "{each.column}" because its type '
                f"{shown(types[index])} is not a composite type",
                each.start + 1,
            )
        if index in found:
            told = f'multiple assignments to same column "{each.column}"'
            raise InvalidUsage(told, sqlstate="42601", position=each.start + 1)
        column = table.columns[index]
        identity = table.identity_of(column)
        if each.place is not None and identity is not None and identity[0] == ALWAYS:
            raise InvalidUsage(
                f'column "{column.name}" can only be updated to DEFAULT',
                sqlstate="428C9",
                detail=f'column "{column.name}" is an identity column defined as GENERATED ALWAYS',
            )
        found[index] = each
    return list(found.items())


def value_of(value: exp.Expression, each: Assigned) -> exp.Expression:
    """What a column is set to: ``value``, or where that is a query of several columns, one of these."""
    if each.part is None:
        return value
    found = value.copy()
    query = found.this if isinstance(found, exp.Subquery) else None
    if not isinstance(query, exp.Select) or query.args.get("distinct") or any(e.is_star for e in query.expressions):
        raise unsupported("setting several columns to this query", "set each to a query of its own", position(value))
    if len(query.expressions) != each.of:
        raise syntax(None, position(value), "number of columns does not match number of values")
    query.set("expressions", [query.expressions[each.part]])
    return found
