"""Calls that make rows: a relation with the items of lists.  Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from plan import relations as r
from plan import scalars as s
from plan.types import ListOf, Row, element_of
from sql.system.carriers import call
from sql.system.notes import CALLED
from sql.system.resolve import BY_NAME

_ROWS = {name for name, all_ in BY_NAME.items() if any(each.rows for each in all_)} | {"pg_sequence_parameters"}
"""Functions that make rows: of lists, here."""


def makes_rows(node: exp.Expression) -> bool:
    """Whether a call, without its schema, gives several rows."""
    return isinstance(node, exp.Unnest) or node.meta.get(CALLED) in _ROWS


@dataclass(frozen=True)
class Made:
    """A relation with the rows of functions behind its own columns, and what each function has in it."""

    relation: r.Relation
    values: list[s.Scalar]


def rows_of(relation: r.Relation, items: Sequence[s.Scalar], numbered: bool) -> Made:
    """``relation`` with the items of lists: of several, as many rows as the longest has."""
    width = len(relation.columns)
    if len(items) == 1:
        made = r.TableFunction(relation, items[0], r.Kind(element_of(items[0].type), True), numbered)
        return Made(made, [made.column(width)])
    fields = Row(tuple((f"v{at}", element_of(each.type)) for at, each in enumerate(items)))
    made = r.TableFunction(relation, call(ListOf(fields), "list_zip", *items), r.Kind(fields, True), numbered)
    row, kinds = made.column(width), [kind for _, kind in fields.fields]
    return Made(made, [call(kind, "struct_extract", row, s.number(at)) for at, kind in enumerate(kinds, 1)])
