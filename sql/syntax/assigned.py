"""What SET assigns to columns, in UPDATE and behind ON CONFLICT.  Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from sqlglot.tokens import Token

from journal.errors import InvalidUsage
from sql.syntax.cursor import Cursor, made_token
from trees.errors import syntax, unsupported

_QUERIES = ("select", "with", "values", "table")


@dataclass(frozen=True)
class Assigned:
    """A column that is set: to the output ``place`` of the rows, of which it is column ``part`` where that is a query
    of several; to its DEFAULT where ``place`` is ``None``."""

    column: str
    start: int
    place: int | None
    part: int | None = None
    of: int = 1
    """How many columns are set to it."""
    field: str | None = None
    """The part of the column that is named: of no type that there is."""
    item: int | None = None
    """Of one item of the column: the output that reads this from it (``a[1]``)."""


def assignments(c: Cursor, values: list[list[Token]]) -> list[Assigned]:
    """One item of SET; what it is set to is appended to ``values``."""
    if c.word() != "(":
        column = _column(c, values)
        c.expect("=")
        return [_assigned(c, column, until(c, ",", "from", "where", "returning"), values)]
    c.at += 1
    columns = [_column(c, values)]
    while c.take(","):
        columns.append(_column(c, values))
    c.expect(")", "=")
    at = c.position
    tokens = until(c, ",", "from", "where", "returning")
    if not tokens:
        raise c.error()
    inner = _items(c, tokens)
    if inner is None:
        told = "source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression"
        raise InvalidUsage(told, sqlstate="0A000", position=at)
    if c.source(inner[0][0]).lower() in _QUERIES:
        values.append(tokens)
        last = len(values) - 1
        return [
            Assigned(each.name, each.start, last, part, len(columns), each.field, each.item)
            for part, each in enumerate(columns)
        ]
    if len(inner) != len(columns):
        raise syntax(None, at, "number of columns does not match number of values")
    return [_assigned(c, column, item, values) for column, item in zip(columns, inner, strict=True)]


class _Column(NamedTuple):
    """What stands before ``=``, as :class:`Assigned` has it."""

    name: str
    start: int
    field: str | None
    item: int | None


def _column(c: Cursor, values: list[list[Token]]) -> _Column:
    start, first = c.position - 1, c.current
    name = c.identifier()
    assert first is not None, "an identifier was read"
    begun = c.at
    while c.take("["):
        if not c.until("]"):
            raise c.error()
        c.expect("]")
    item = None
    if c.at > begun:
        item = len(values)
        values.append([made_token("IDENTIFIER", name, first), *c.tokens[begun : c.at]])
    return _Column(name, start, c.identifier() if c.take(".") else None, item)


def _assigned(c: Cursor, column: _Column, value: list[Token], values: list[list[Token]]) -> Assigned:
    if not value:
        raise c.error()
    name, start, field, item = column
    inner = value
    while len(inner) > 2 and c.source(inner[0]) == "(" and c.source(inner[-1]) == ")":
        inner = inner[1:-1]
    if len(inner) == 1 and c.source(inner[0]).lower() == "default":
        if item is not None:
            raise unsupported("setting an item of an array to DEFAULT", "set the whole column to it", start + 1)
        return Assigned(name, start, None, field=field)
    values.append(value)
    return Assigned(name, start, len(values) - 1, field=field, item=item)


def _items(c: Cursor, tokens: list[Token]) -> list[list[Token]] | None:
    """What stands between the commas of ``(…)`` or ``ROW (…)``; ``None`` where ``tokens`` are neither."""
    row = c.source(tokens[0]).lower() == "row"
    inner = tokens[row:]
    if len(inner) < 3 or c.source(inner[0]) != "(":
        return None
    found: list[list[Token]] = [[]]
    depth = 0
    for place, token in enumerate(inner):
        sign = c.source(token)
        depth += (sign in ("(", "[")) - (sign in (")", "]"))
        if not depth and place < len(inner) - 1:
            return None
        if 0 < place < len(inner) - 1:
            if sign == "," and depth == 1:
                found.append([])
            else:
                found[-1].append(token)
    return found if all(found) and (row or len(found) > 1 or c.source(found[0][0]).lower() in _QUERIES) else None


def until(c: Cursor, *stops: str) -> list[Token]:
    """As :meth:`~sql.syntax.cursor.Cursor.until`, past ``IS DISTINCT FROM``."""
    found = c.until(*stops)
    while found and c.word() == "from" and c.source(found[-1]).lower() == "distinct":
        found += [c.tokens[c.at]]
        c.at += 1
        found += c.until(*stops)
    return found
