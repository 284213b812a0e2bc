"""Comparisons and order where the form that carries a type compares otherwise than Postgres compares the type."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from collection.types import SqlType
from sql import types as t
from sql.casts import trimmed
from sql.errors import no_function, no_operator, unsupported
from sql.interval_parts import length
from sql.nodes import call, cast, position, swap

_EQUALITIES = frozenset({"=", "<>", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"})


def compared_as_postgres(node: exp.Expression, op: str, types: Sequence[SqlType], both: SqlType) -> None:
    """Rewrite the two sides of a comparison whose common type is ``both``.

    Intervals compare by their length, a ``char`` with a ``varchar`` without the blanks at the ends of both.  Raises
    42883 where only equality is defined here.
    """
    check_comparable(both, op, position(node))
    keep_digits([node.args["this"], node.args["expression"]], types)
    for key, got in zip(("this", "expression"), types, strict=True):
        if both == t.INTERVAL:
            node.args[key].replace(length(node.args[key]))
        elif both.is_array and op not in _EQUALITIES:
            node.args[key].replace(call("TM_ARRAY_KEY", cast(node.args[key].copy(), both)))
        elif got.name == "varchar" and any(each.name == "bpchar" for each in types):
            node.args[key].replace(trimmed(node.args[key]))


def keep_digits(sides: Sequence[exp.Expression], types: Sequence[SqlType]) -> None:
    """Cast numerics that are compared to one scale, where Spark would not keep their digits behind the point.

    Digits before and behind the point may be more than 38 together: Spark then rounds those behind it, so that
    ``0.5 > sum(x)`` would hold for a sum of 0 and for none of 1 alike.  A number that needs those before it is a 22003.
    """
    known = [t.as_numeric(got) for got in types if got != t.UNKNOWN and not t.is_float(got) and t.is_number(got)]
    scale = max((got.scale for got in known), default=0)
    if len(known) < 2 or max(got.precision - got.scale for got in known) + scale <= t.NUMERIC_PRECISION_MAX:
        return
    wanted = SqlType("numeric", t.NUMERIC_PRECISION_MAX, scale)
    for side, got in zip(sides, types, strict=True):
        if t.is_number(got) and not t.is_float(got) and got != wanted:
            swap(side, cast(side.copy(), wanted))


def check_comparable(sql_type: SqlType, op: str, at: int | None) -> None:
    """42883 where the type has no such order here: that of jsonb and arrays is not the one of what carries them."""
    name = t.shown(sql_type)
    if op not in _EQUALITIES and sql_type in (t.JSONB, t.JSONB.array):
        raise no_operator(name, op, name, at)
    if sql_type == t.INTERVAL.array:
        raise no_operator(name, op, name, at)


def order_key(node: exp.Expression, sql_type: SqlType) -> None:
    """Make ``node``, something to be sorted by, sort as Postgres sorts it.  0A000 where that cannot be."""
    if sql_type in (t.JSONB, t.JSONB.array, t.INTERVAL.array):
        raise unsupported(f"an order by {t.shown(sql_type)}", hint="order by parts of it", position=position(node))
    if sql_type == t.INTERVAL:
        node.replace(length(node))
    elif sql_type.is_array:
        node.replace(call("TM_ARRAY_KEY", node))


def check_grouped(sql_type: SqlType, what: str, at: int | None) -> None:
    """0A000 for grouping intervals, of which different ones may be equal (``1 mon`` and ``30 days``)."""
    if sql_type in (t.INTERVAL, t.INTERVAL.array):
        raise unsupported(f"{what} of {t.shown(sql_type)}", hint="use extract(epoch from …)", position=at)


def check_extreme(sql_type: SqlType, name: str, at: int | None) -> None:
    """For MIN, MAX, GREATEST and their like: 42883 where Postgres has none, 0A000 where ours would not be its."""
    if sql_type in (t.UUID, t.JSONB) and name in ("min", "max"):
        raise no_function(f"{name}({t.shown(sql_type)})", position=at)
    if sql_type in (t.INTERVAL, t.JSONB) or sql_type.is_array:
        raise unsupported(f"{name} of {t.shown(sql_type)}", position=at)
