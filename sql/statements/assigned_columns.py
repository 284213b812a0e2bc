"""The columns that SET names, checked, and what they are set to.  Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlglot import exp

from catalog_log.objects import ALWAYS, Table
from journal.errors import InvalidUsage
from sql.statements.assigning import no_column_of
from sql.syntax.assigned import Assigned
from trees.errors import mismatch, syntax, unsupported
from trees.nodes import Put, position
from trees.types import shown
from values.types import SqlType


class Set(NamedTuple):
    """A column at ``index`` of its table that is set to ``value``; ``None``: to its DEFAULT."""

    index: int
    value: exp.Expression | None


def assigned_columns(
    assigned: Sequence[Assigned], values: Sequence[exp.Expression], table: Table, called: str, types: Sequence[SqlType]
) -> list[Set]:
    """The columns of ``table``, which is ``called`` so where ``values`` are read, each with what it is set to: with
    all of its items that are set.  Raises 42703, 42804 for a field, 42601 for one that is set twice, 428C9."""
    position_of = {column.name: at for at, column in enumerate(table.columns)}
    found: dict[int, list[Assigned]] = {}
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
        if index in found and (each.item is None or found[index][-1].item is None):
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
        found.setdefault(index, []).append(each)
    return [Set(index, _value(each, values, called)) for index, each in found.items()]


def _value(items: list[Assigned], values: Sequence[exp.Expression], called: str) -> exp.Expression | None:
    """What a column is set to by ``items``, one after the other."""
    made: exp.Expression | None = None
    for each in items:
        if each.place is None:
            return None
        value = _part(values[each.place], each)
        if each.item is None:
            return value
        read = values[each.item].copy()
        base: exp.Expression = read
        while isinstance(base, (exp.Bracket, exp.Paren)):
            base = base.this
        assert isinstance(base, exp.Column), "its tokens are made (sql.syntax.assigned)"
        if made is None:
            base.set("table", exp.to_identifier(called, quoted=True))
        else:
            base.replace(made)
        made = Put(this=read, expression=value.copy())
    return made


def _part(value: exp.Expression, each: Assigned) -> exp.Expression:
    """``value``, or where that is a query of several columns, one of these."""
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
