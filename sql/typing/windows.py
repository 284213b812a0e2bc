"""Types of functions over windows, and of what their windows are said by.

Frames are in :mod:`sql.typing.frames`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from lower.spark.window_numbers import NUMBERED, check_number, numbered
from sql.typing.check_aggregates import check_has_window
from sql.typing.comparing import check_grouped, order_key
from sql.typing.frames import check_frame
from sql.typing.keys import by_key, key_of
from sql.typing.scope import Scope
from trees import types as t
from trees.errors import no_aggregate, no_function, no_window, unsupported, untyped
from trees.functions import AGGREGATE_NODES, WINDOW_ONLY, display_name, folding
from trees.nodes import cast, position, swap
from values.types import SqlType

if TYPE_CHECKING:
    from sql.typing.check import Checker

_PASSED_OVER = (exp.Count, *(node for node in AGGREGATE_NODES if node not in WINDOW_ONLY))
"""Aggregates that pass over NULLs."""


def _unfiltered(node: exp.Filter) -> exp.Expression:
    """Spark has no FILTER in windows: what it leaves out is made NULL instead."""
    made = node.this.copy()
    if not isinstance(made, _PASSED_OVER) or isinstance(made.this, exp.Distinct):
        raise unsupported("FILTER of this function over a window", position=position(node))
    counted = exp.Literal.number(1) if isinstance(made.this, exp.Star) else made.this.copy()
    made.set("this", exp.Case(ifs=[exp.If(this=node.expression.this.copy(), true=counted)]))
    return made


def _window(c: Checker, node: exp.Window, scope: Scope) -> SqlType:
    if isinstance(node.this, exp.Filter):
        node.set("this", _unfiltered(node.this))
    name = display_name(node.this)
    for kind, what in ((exp.Distinct, "DISTINCT"), (exp.Order, "aggregate ORDER BY")):
        if isinstance(node.this, exp.AggFunc) and isinstance(node.this.this, kind):
            raise no_window(what, position(node))
    result = c.child(node, "this", scope)
    called = node.this
    if isinstance(called, NUMBERED):
        check_number(called)
        numbered(called)
    partition(c, node, scope)
    if not node.args.get("order") and not node.args.get("alias") and node.this.find(*WINDOW_ONLY):
        node.set("order", peers())
    sorted_by = []
    if order := node.args.get("order"):
        for each in list(order.expressions):
            sorted_by.append(c.child(each, "this", scope))
            order_key(each.this, sorted_by[-1])
    check_frame(node, sorted_by, c.zone)
    if isinstance(called, WINDOW_ONLY) and not isinstance(called, (exp.FirstValue, exp.LastValue, exp.NthValue)):
        # these look at the partition whatever the frame is, and Spark wants none
        node.set("spec", None)
    calls = folding(node.this, WINDOW_ONLY)
    if not calls:
        raise no_aggregate("OVER", name, position(node), "a window function nor an aggregate function")
    if calls[0] is not node.this:  # what is made of the function's result is made behind the window
        for each in calls:
            each.replace(exp.Window(**{**node.args, "this": each.copy()}).copy())
        node.replace(node.this.copy())
    return result


def partition(c: Checker, window: exp.Window, scope: Scope) -> None:
    """Type the PARTITION BY of ``window``."""
    for index, each in enumerate(list(window.args.get("partition_by") or ())):
        got = c.visit(each, scope)
        check_grouped(got, "PARTITION BY", position(each))
        if by_key(got):
            made = window.args["partition_by"][index]
            swap(made, key_of(made, got))


def peers() -> exp.Order:
    """An order by a constant, where Spark wants one and the query has none: all rows are peers then, as in Postgres."""
    return exp.Order(expressions=[exp.Ordered(this=cast(exp.Literal.number(1), t.INT4), nulls_first=False)])


def _shifted(c: Checker, node: exp.Func, scope: Scope) -> SqlType:
    check_has_window(node)
    got = c.child(node, "this", scope)
    if node.args.get("offset") is not None:
        _check_offset(c, node, got, scope)
    if node.args.get("default") is None and got == t.UNKNOWN:
        raise untyped(position(node))
    if node.args.get("default") is not None:
        other = c.child(node, "default", scope)
        if t.alternative(got, other) is None:
            raise no_function(f"{node.key}({t.shown(got)}, integer, {t.shown(other)})", position=position(node))
        return c.give_all([node.this, node.args["default"]], [got, other], node.key.upper())
    return got


def _check_offset(c: Checker, node: exp.Func, got: SqlType, scope: Scope) -> None:
    """How many rows away: the same for all of them, and an integer, or Spark takes it for another frame."""
    offset = c.child(node, "offset", scope)
    if not c.coerce(node.args["offset"], offset, t.INT4):
        raise no_function(f"{node.key}({t.shown(got)}, {t.shown(offset)})", position=position(node))
    by = node.args["offset"]
    if not isinstance(by, exp.Literal):
        by.replace(cast(by.copy(), t.INT4))


WINDOWS = {
    exp.Window: _window,
    exp.Lag: _shifted,
    exp.Lead: _shifted,
}
