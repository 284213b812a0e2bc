"""Comparisons and order where the form that carries a type compares otherwise than Postgres compares the type."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from sql.typing.casts import trimmed
from sql.typing.interval_parts import length
from sql.typing.keys import by_key, compared, key_of, keys_of
from trees import types as t
from trees.errors import no_function, no_operator, unsupported
from trees.nodes import call, cast, position
from values.datatypes.registry import DATATYPES
from values.types import SqlType

_WITHOUT_EXTREMES = frozenset(name for name, row in DATATYPES.items() if not row.has_extremes)

_EQUALITIES = frozenset({"=", "<>", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"})


def compared_as_postgres(node: exp.Expression, op: str, types: Sequence[SqlType], both: SqlType) -> None:
    """Rewrite the two sides of a comparison whose common type is ``both``.

    Intervals compare by their length, a ``char`` with a ``varchar`` without the blanks at the ends of both.  Raises
    42883 where only equality is defined here.
    """
    check_comparable(both, op, position(node))
    compared([node.args["this"], node.args["expression"]], types)
    for key, got in zip(("this", "expression"), types, strict=True):
        if both == t.INTERVAL:
            node.args[key].replace(length(node.args[key]))
        elif both.is_array and (op not in _EQUALITIES or both == t.JSONB.array):
            side = cast(node.args[key].copy(), both)
            side = keys_of(side, both) if both == t.JSONB.array else side
            node.args[key].replace(side if op in _EQUALITIES else call("TM_ARRAY_KEY", side))
        elif got.name == "varchar" and any(each.name == "bpchar" for each in types):
            node.args[key].replace(trimmed(node.args[key]))


def blanks_differ(types: Sequence[SqlType]) -> bool:
    """Whether ``types`` are of texts of which some count the blanks at their ends and others do not: then each pair
    that is compared decides for itself (a ``char`` beside a ``varchar`` counts none, beside a ``text`` all)."""
    names = {each.name for each in types}
    return "bpchar" in names and "varchar" in names


def check_comparable(sql_type: SqlType, op: str, at: int | None) -> None:
    """42883 where the type has no such comparison here."""
    name = t.shown(sql_type)
    if sql_type == t.INTERVAL.array:
        raise no_operator(name, op, name, at)
    if sql_type.is_array and sql_type.is_free:
        raise unsupported(f"a comparison of {name} without a precision", "cast to numeric(p,s)[]", at)


SORTS = "sorts"
"""Where what stands for something in an ORDER BY notes what that is."""


def order_key(node: exp.Expression, sql_type: SqlType) -> None:
    """Make ``node``, something to be sorted by, sort as Postgres sorts it.  0A000 where that cannot be."""
    if sql_type == t.INTERVAL.array:
        raise unsupported(f"an order by {t.shown(sql_type)}", hint="order by parts of it", position=position(node))
    if sql_type.is_array and sql_type.is_free:
        name = f"an order by {t.shown(sql_type)} without a precision"
        raise unsupported(name, "cast to numeric(p,s)[]", position(node))
    if sql_type == t.INTERVAL or by_key(sql_type):
        made = length(node) if sql_type == t.INTERVAL else key_of(node, sql_type)
        made.meta[SORTS] = node.copy()
        node.replace(made)
    elif sql_type.is_array:
        made = call("TM_ARRAY_KEY", keys_of(node, sql_type) if sql_type == t.JSONB.array else node)
        made.meta[SORTS] = node.copy()
        node.replace(made)


def check_grouped(sql_type: SqlType, what: str, at: int | None) -> None:
    """0A000 for grouping intervals, of which different ones may be equal (``1 mon`` and ``30 days``), and arrays of
    free numerics and jsonb (``{1.0}`` and ``{1.00}``)."""
    if sql_type == t.JSONB.array:
        raise unsupported(f"{what} of jsonb[]", "cast to text, whose numbers differ by their digits", at)
    if sql_type.is_array and sql_type.is_free:
        raise unsupported(f"{what} of {t.shown(sql_type)} without a precision", "cast to numeric(p,s)[]", at)
    if sql_type in (t.INTERVAL, t.INTERVAL.array):
        raise unsupported(f"{what} of {t.shown(sql_type)}", hint="use extract(epoch from …)", position=at)


def check_extreme(sql_type: SqlType, name: str, at: int | None) -> None:
    """For MIN, MAX, GREATEST and their like: 42883 where Postgres has none, 0A000 where ours would not be its."""
    if name in ("min", "max") and sql_type.name in _WITHOUT_EXTREMES:
        raise no_function(f"{name}({t.shown(sql_type)})", position=at)
    if sql_type in (t.INTERVAL, t.JSONB) or sql_type.is_array:
        raise unsupported(f"{name} of {t.shown(sql_type)}", position=at)
