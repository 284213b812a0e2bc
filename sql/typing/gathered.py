"""A list of what a group's rows hold: ``array_agg``, and what others put together of such a list."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sqlglot import exp

from sql.typing.casts import micros_of
from sql.typing.keys import by_key, key_of
from sql.typing.scope import CHECKED, Scope
from trees import types as t
from trees.errors import not_unique, unsupported
from trees.functions import display_name
from trees.nodes import call, cast, position
from trees.own import own
from values.types import SqlType

if TYPE_CHECKING:
    from sql.typing.check import Checker


class Arranged(NamedTuple):
    """What an aggregate gathers, in which order, and whether equal ones are once."""

    value: exp.Expression
    order: list[exp.Ordered]
    distinct: bool


def arranged(argument: exp.Expression) -> Arranged:
    """What stands in the brackets of an aggregate: ``[DISTINCT] value [ORDER BY …]``."""
    order: list[exp.Ordered] = []
    if isinstance(argument, exp.Order):
        argument, order = argument.this, list(argument.expressions)
    distinct = isinstance(argument, exp.Distinct)
    return Arranged(argument.expressions[0] if distinct else argument, order, distinct)


def array_agg(c: Checker, node: exp.ArrayAgg, scope: Scope) -> SqlType:
    """``array_agg(x)``, NULLs and all, in its ORDER BY; without one in the order of the values: it is definite."""
    got = c.child(node, "this", scope)
    if got == t.UNKNOWN:
        raise not_unique("array_agg(unknown)", position(node))
    if got.is_array:
        raise unsupported("an array of more than one dimension", position=position(node))
    of = arranged(node.this)
    if got == t.JSONB and of.distinct:
        node.replace(distinct_jsonb(node, of))
        return got.array
    if by_key(got) and not of.order:
        of = of._replace(order=[exp.Ordered(this=key_of(of.value, got))])
    node.replace(gathered(node, of, got))
    return got.array


def gathered(node: exp.Expression, of: Arranged, kind: SqlType) -> exp.Expression:
    """An array of what the aggregate ``node`` gathers, each of ``kind``; NULL of no rows."""
    made = cast(array_of(node, of, as_they_come=_is_over_ordered(node)), kind.array)
    return cast(exp.Nullif(this=made, expression=cast(exp.Array(expressions=[]), kind.array)), kind.array)


def distinct_jsonb(node: exp.Expression, of: Arranged) -> exp.Expression:
    """All different ones of what ``node`` gathers, jsonb, as an array; NULL of no rows.

    Their order is that of the values, upwards or downwards (42P10 for another, before this).
    """
    downwards, first = (bool(of.order and of.order[0].args.get(key)) for key in ("desc", "nulls_first"))
    all_of_them = gathered(node, of._replace(order=[], distinct=False), t.JSONB)
    made = own("tm_jsonb_distinct", all_of_them, exp.Boolean(this=downwards), exp.Boolean(this=first))
    return cast(made, t.JSONB.array)


def array_of(node: exp.Expression, of: Arranged, as_they_come: bool = False) -> exp.Expression:
    """All values as an array, empty of no rows: in the order that is said, then of the values.

    A key goes with whether it is NULL before it (sorted upwards NULLs come last, downwards first, as in Postgres), or
    with whether it is not, where NULLS FIRST or LAST says otherwise.  Engines sort an array in one direction: of keys
    in both, those of the other are turned round.  0A000 where the type of such a key cannot be.
    """
    downwards = _direction(node, of.order)
    keys = []
    for each in of.order:
        key, against = each.this, bool(each.args.get("desc")) != downwards
        if against:
            key = _turned(key)
        keys.append((key, bool(each.args.get("nulls_first")) != downwards))
    fields: list[exp.Expression] = []
    for key, otherwise in (*keys, (of.value, False)):
        absent = exp.Is(this=key.copy(), expression=exp.Null())
        fields += [exp.Not(this=absent) if otherwise else absent, key.copy()]
    row = exp.Struct(
        expressions=[
            exp.PropertyEQ(this=exp.to_identifier(f"k{i}", quoted=True), expression=each)
            for i, each in enumerate(fields)
        ]
    )
    listed = call("COLLECT_SET" if of.distinct else "COLLECT_LIST", row)
    listed.meta["aggregate"] = True
    upwards = exp.Boolean(this=not downwards)
    last = exp.Dot(this=exp.to_identifier("r"), expression=exp.to_identifier(f"k{len(fields) - 1}", quoted=True))
    picked = exp.Lambda(this=last, expressions=[exp.to_identifier("r")])
    in_order = listed if as_they_come else call("SORT_ARRAY", listed, upwards)
    return exp.Anonymous(this="TRANSFORM", expressions=[in_order, picked])


def _direction(node: exp.Expression, order: list[exp.Ordered]) -> bool:
    """Whether all is sorted downwards: as most keys are that cannot be turned round."""
    fixed = {bool(each.args.get("desc")) for each in order if _turned(each.this) is None}
    if len(fixed) > 1:
        raise unsupported(f"{display_name(node)} with keys in both directions", position=position(node))
    return fixed.pop() if fixed else bool(order and order[0].args.get("desc"))


def _turned(key: exp.Expression) -> exp.Expression | None:
    """A key that sorts the other way round, ``None`` where the type of ``key`` has no such."""
    got = key.meta.get(CHECKED)
    if got == t.BOOL:
        return exp.Not(this=exp.Paren(this=key.copy()))
    if got in (t.DATE, t.TIMESTAMP, t.TIMESTAMPTZ):
        return exp.BitwiseNot(this=exp.Paren(this=micros_of(key)))
    if got is not None and t.is_int(got):
        return exp.BitwiseNot(this=exp.Paren(this=key.copy()))
    return None


def _is_over_ordered(node: exp.Expression) -> bool:
    """Whether ``node`` is over a window whose rows have an order: they come in it."""
    window = node.parent
    if not isinstance(window, exp.Window):
        return False
    return window.args.get("order") is not None or window.args.get("alias") is not None


GATHERED = {exp.ArrayAgg: array_agg}
