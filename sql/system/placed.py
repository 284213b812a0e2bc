"""Where aggregates and window functions may stand in a query over system relations: as Postgres says (``parse_agg.c``).

Pure.  Trees are typed already: calls have their names noted.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from journal.errors import InvalidUsage
from sql.system.calls import AGGREGATES
from sql.system.notes import CALLED
from trees.errors import grouping
from trees.nodes import position


def check_places(select: exp.Select) -> None:
    """42803 for an aggregate where there are no groups yet, or within another one; 42P20 for a window function."""
    for part, where in _parts(select):
        for each in _aggregates(part):
            raise grouping(f"aggregate functions are not allowed in {where}", position(each))
        for each in _windows(part):
            raise _no_window(f"window functions are not allowed in {where}", each)
    having = select.args.get("having")
    for each in _windows(having) if having is not None else ():
        raise _no_window("window functions are not allowed in HAVING", each)
    for part in (*select.expressions, having, select.args.get("order")):
        for each in _aggregates(part) if part is not None else ():
            for inner in each.iter_expressions():
                for nested in _aggregates(inner):
                    raise grouping("aggregate function calls cannot be nested", position(nested))
                for nested in _windows(inner):
                    told = "aggregate function calls cannot contain window function calls"
                    raise grouping(told, position(nested))


def _parts(select: exp.Select) -> Iterator[tuple[exp.Expression, str]]:
    if select.args.get("where") is not None:
        yield select.args["where"], "WHERE"
    if select.args.get("group") is not None:
        yield select.args["group"], "GROUP BY"
    for join in select.args.get("joins") or ():
        if join.args.get("on") is not None:
            yield join.args["on"], "JOIN conditions"


def _no_window(told: str, node: exp.Expression) -> InvalidUsage:
    return InvalidUsage(told, sqlstate="42P20", position=position(node))


def _aggregates(node: exp.Expression) -> Iterator[exp.Expression]:
    """The outermost aggregates in ``node``: not what is over a window, nor what is in a subquery."""
    if isinstance(node, exp.Query):
        return
    if isinstance(node, exp.Window):
        folded = node.this.this if isinstance(node.this, exp.Filter) else node.this
        parts = [*folded.iter_expressions(), *(each for each in node.iter_expressions() if each is not node.this)]
    elif node.meta.get(CALLED) in AGGREGATES:
        yield node
        return
    else:
        parts = list(node.iter_expressions())
    for each in parts:
        yield from _aggregates(each)


def _windows(node: exp.Expression) -> Iterator[exp.Expression]:
    if isinstance(node, exp.Query):
        return
    if isinstance(node, exp.Window):
        yield node
        return
    for each in node.iter_expressions():
        yield from _windows(each)
