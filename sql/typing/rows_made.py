"""Where functions that make rows may stand: in what a SELECT puts out and sorts by, also within an expression there.

Elsewhere they are refused, in Postgres's words where it refuses them too.  Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from sqlglot import exp

from functions.registry import MAKE_ROWS
from journal.errors import InvalidUsage
from plan.calls import AGGREGATES
from trees.errors import mismatch, unsupported
from trees.nodes import position

Refusal = Callable[[exp.Expression], InvalidUsage]

_KINDS = (exp.GenerateSeries, exp.ExplodingGenerateSeries, exp.Explode, exp.Unnest)


def makes_rows(node: exp.Expression) -> bool:
    """Whether ``node``, as it is written, is a call that makes rows."""
    return isinstance(node, _KINDS) or isinstance(node, exp.Anonymous) and node.name.lower() in MAKE_ROWS


def check_rows_made(select: exp.Select) -> None:
    """Raises 0A000 or 42804 for a call that makes rows where ``select``, as it is written, may have none.

    What is in FROM is a query of its own by now, and every query is looked at by itself.
    """
    todo = [(node, _CLAUSES.get(key)) for key in select.args if key not in _APART for node in _under(select, key)]
    while todo:
        node, refused = todo.pop()
        if isinstance(node, (exp.Query, exp.Subquery)):
            continue
        if makes_rows(node):
            if refused is not None:
                raise refused(node)
            refused = _within_another
        elif isinstance(node, exp.Window):
            todo.append((node.this, refused or partial(_cannot_contain, "window")))
            refused = refused or _in_a_window
            todo += [(part, refused) for part in node.iter_expressions() if part is not node.this]
            continue
        else:
            refused = refused or _refused_within(node)
        todo += [(part, refused) for part in node.iter_expressions()]


def check_none(nodes: Iterable[exp.Expression], what: str) -> None:
    """Raises 0A000 for a call that makes rows in one of ``nodes``, which are ``what``; not for one in a query there."""
    todo = [*nodes]
    while todo:
        node = todo.pop()
        if isinstance(node, (exp.Query, exp.Subquery)):
            continue
        if makes_rows(node):
            raise _not_in(what, node, None)
        todo += node.iter_expressions()


def _under(select: exp.Select, key: str) -> Iterator[exp.Expression]:
    found = select.args[key]
    for each in found if isinstance(found, list) else [found]:
        if isinstance(each, exp.Expression):
            yield each


def _refused_within(node: exp.Expression) -> Refusal | None:
    if isinstance(node, exp.AggFunc) or isinstance(node, exp.Anonymous) and node.name.lower() in AGGREGATES:
        return partial(_cannot_contain, "aggregate")
    return next((refused for kind, refused in _EXPRESSIONS.items() if isinstance(node, kind)), None)


_TO_FROM = "call it in FROM, with LATERAL where it is of other columns there"


def _not_in(what: str, node: exp.Expression, hint: str | None = _TO_FROM) -> InvalidUsage:
    return InvalidUsage(
        f"set-returning functions are not allowed in {what}", sqlstate="0A000", hint=hint, position=position(node)
    )


def _cannot_contain(what: str, node: exp.Expression) -> InvalidUsage:
    return InvalidUsage(f"{what} function calls cannot contain set-returning function calls", sqlstate="0A000",
                        hint=_TO_FROM, position=position(node))  # fmt: skip


def _no_set(word: str, node: exp.Expression) -> InvalidUsage:
    return mismatch(f"argument of {word} must not return a set", position(node))


def _not_here(what: str, node: exp.Expression) -> InvalidUsage:
    return unsupported(f"a set-returning function {what}", hint=_TO_FROM, position=position(node))


_within_another = partial(_not_here, "within another")
_in_a_window = partial(_not_here, "in a window")

_APART = ("from_", "laterals", "with_")
_CLAUSES: dict[str, Refusal] = {
    "where": partial(_not_in, "WHERE"), "having": partial(_not_in, "HAVING"), "limit": partial(_not_in, "LIMIT"),
    "offset": partial(_not_in, "OFFSET"), "joins": partial(_not_in, "JOIN conditions"),
    "group": partial(_not_here, "in GROUP BY"), "windows": _in_a_window,
}  # fmt: skip
_EXPRESSIONS: dict[type[exp.Expression], Refusal] = {
    exp.Filter: partial(_not_in, "FILTER"), exp.Case: partial(_not_in, "CASE"),
    exp.Coalesce: partial(_not_in, "COALESCE"), exp.And: partial(_no_set, "AND"), exp.Or: partial(_no_set, "OR"),
    exp.Not: partial(_no_set, "NOT"), exp.Between: partial(_no_set, "AND"),
}  # fmt: skip
