"""What only the system knows, among what a user says about it: ``SELECT current_setting('TimeZone'), 1.0 / 3``.  Pure.

The in-process database knows the first; the second it would reckon by its own rules, and a third is no float8 in
Postgres.  So where a query reads no relation, each such part is asked for by itself, its value put in its place, and
what is then no more than constants means what it means everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlglot import exp

from adapter.state.interfaces import OutputColumn
from journal.errors import InvalidUsage
from sql.statements.select import is_system_part, names_system_type
from sql.syntax.parse import parse
from trees.types import format_literal
from values.text.text_format import quoted_literal

_EACH_TIME = re.compile(r"gen_random_uuid|set_config|(clock|statement|transaction)_timestamp|timeofday")
"""Another value for each row, or something that is done."""

PARTS_MAX = 100
"""More are asked as a whole: each costs a column, and no client asks for so many."""

_TEXTS = frozenset({1003, 1009})
"""``name[]`` and ``text[]``, which the in-process database gives as their text: both are a ``text[]`` to a user."""

_FAILS = {
    "division by zero": "1 / 0",
    "integer out of range": "2147483647 + 1",
    "bigint out of range": "9223372036854775807 + 1",
}
"""What fails with these words when it is worked out."""


class Failed:
    """Instead of the value of a part: it could not be worked out, which matters only where it is (not in a branch of a
    CASE that is not taken)."""

    def __init__(self, error: InvalidUsage) -> None:
        self.says = error.message

    @staticmethod
    def can_be(error: InvalidUsage) -> bool:
        return error.message in _FAILS


def parts_of(query: exp.Expression) -> list[exp.Expression]:
    """The parts that only the system knows of ``query``, which reads no relation, in their places; none where it has to
    be asked as a whole, or is nothing else."""
    if names_system_type(query):
        return []
    found: list[exp.Expression] = []
    within: set[int] = set()
    for node in query.walk():
        if is_system_part(node) and id(node) not in within:
            found.append(_whole(node))
            within.update(map(id, found[-1].walk()))
    if len(found) > PARTS_MAX or any(map(_is_bound_to_rows, found)) or _is_nothing_else(query, found):
        return []
    return found


def _whole(node: exp.Expression) -> exp.Expression:
    """With its schema: ``pg_catalog.version()``."""
    return node.parent if isinstance(node.parent, exp.Dot) and node.arg_key == "expression" else node


def _is_bound_to_rows(part: exp.Expression) -> bool:
    if isinstance(part.parent, exp.Table) or part.find(exp.Query) is not None or _EACH_TIME.search(part.sql().lower()):
        return True
    columns = part.find_all(exp.Column)
    return any(not is_system_part(each) for each in columns)


def _is_nothing_else(query: exp.Expression, parts: Sequence[exp.Expression]) -> bool:
    return (
        isinstance(query, exp.Select)
        and all(any(each.unalias() is part for part in parts) for each in query.expressions)
        and not any(query.args.get(key) for key in ("from_", "where", "order", "group", "having"))
    )


def with_values(
    query: exp.Expression, parts: Sequence[exp.Expression], columns: Sequence[OutputColumn], values: Sequence[object]
) -> bool:
    """Put the ``values`` of ``parts`` into ``query``, in place, and what fails for a :class:`Failed`.

    Whether each has a type of ours to be put in as.
    """
    types = [column.type.array if column.oid in _TEXTS else column.type for column in columns]
    if any(column.oid not in (None, 19, 25, 26, *_TEXTS) for column in columns):
        return False
    for part, column, sql_type, value in zip(parts, columns, types, values, strict=True):
        if isinstance(value, Failed):
            part.replace(_typed(f"({_FAILS[value.says]})::text::{sql_type}"))
            continue
        text = value if value is None or column.oid in _TEXTS else format_literal(value, column.type)
        written = "null" if text is None else quoted_literal(str(text))
        part.replace(_typed(f"{written}::{sql_type}"))
    return True


def _typed(text: str) -> exp.Paren:
    return exp.Paren(this=parse(f"select {text}").ast.expressions[0].unalias().copy())


def outputs(
    query: exp.Expression, parts: Sequence[exp.Expression], columns: Sequence[OutputColumn]
) -> dict[int, OutputColumn]:
    """The outputs of ``query`` that are one of ``parts`` and no more, by their places: their types are the system's."""
    if not isinstance(query, exp.Select):
        return {}
    return {
        place: column
        for place, each in enumerate(query.expressions)
        for part, column in zip(parts, columns, strict=True)
        if each.unalias() is part and column.oid not in _TEXTS
    }
