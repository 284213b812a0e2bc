"""How a WITH query may read itself.  Pure.

Promises: behind :func:`well_formed`, of the queries of a WITH RECURSIVE each stands behind those that it reads; one
that reads itself is ``non-recursive-term UNION [ALL] recursive-term`` without brackets around it, and reads itself
once, in the second term, where each row that the step before made can be taken by itself.  Else 42P19 or 0A000, in
Postgres's words.  The rules are SQL's (ISO 9075-2, 7.17), as Postgres's ``parse_cte.c`` has them.

WITH queries must have names that nothing else has (:mod:`sql.binding.ctes`).
"""

from __future__ import annotations

from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter

from sqlglot import exp

from journal.errors import InvalidUsage
from trees.errors import unsupported
from trees.functions import is_aggregate
from trees.nodes import position, readings, reads

_TAILS = (("order", "ORDER BY"), ("offset", "OFFSET"), ("limit", "LIMIT"))
"""What may not stand behind such a UNION, in the order in which Postgres looks for it."""

_FORM = "does not have the form non-recursive-term UNION [ALL] recursive-term"


def well_formed(tree: exp.Expression) -> None:
    """Check every WITH RECURSIVE in ``tree``, and put its queries in the order in which they are read, in place."""
    for with_ in list(tree.find_all(exp.With)):
        if not with_.args.get("recursive"):
            continue
        with_.set("expressions", _read_first(with_.expressions))
        for cte in with_.expressions:
            if reads(cte.this, cte.alias):
                _check(cte)


def only_of_constants(tree: exp.Expression) -> None:
    """0A000 where a query of ``tree``, which reads relations, reads itself by UNION without ALL: Spark has only the
    other.  Over constants it is answered in the process; a view that exists is left to whoever evaluates it."""
    for with_ in tree.find_all(exp.With):
        for cte in with_.expressions if with_.args.get("recursive") else ():
            union = cte.this.unnest()
            if isinstance(union, exp.Union) and union.args.get("distinct") and reads(union, cte.alias):
                raise unsupported(
                    "WITH RECURSIVE … UNION in a query that reads relations",
                    "write UNION ALL, and say in the second term where it ends (a depth, for one); "
                    "SELECT DISTINCT around it drops rows that are there twice",
                    position(union),
                )


def _read_first(ctes: list[exp.CTE]) -> list[exp.CTE]:
    """What others read before these: WITH RECURSIVE may name what stands behind.  0A000 where two read each other."""
    by_name = {cte.alias: cte for cte in ctes}
    needed = {
        name: [each for each in by_name if each != name and reads(cte.this, each)] for name, cte in by_name.items()
    }
    try:
        return [by_name[name] for name in TopologicalSorter(needed).static_order()]
    except CycleError:
        raise InvalidUsage(
            "mutual recursion between WITH items is not implemented", sqlstate="0A000", position=_at(ctes[0])
        ) from None


def _check(cte: exp.CTE) -> None:
    name = cte.alias
    while isinstance(cte.this, (exp.Subquery, exp.Paren)) and not _tail_of(cte.this) and not cte.this.args.get("with_"):
        cte.set("this", cte.this.this)
    union = cte.this
    if not isinstance(union, exp.Union):
        raise _refused(f'recursive query "{called(cte)}" {_FORM}', cte)
    if union.args.get("with_") is not None:
        for table in readings(union.args["with_"], name):
            raise _misplaced(table, cte, "a subquery")
    for key, word in _TAILS:
        if union.args.get(key) is not None:
            raise InvalidUsage(
                f"{word} in a recursive query is not implemented", sqlstate="0A000", position=position(union.args[key])
            )
    for table in readings(union.this, name):
        raise _misplaced(table, cte, "its non-recursive term")
    found = list(readings(union.expression, name))
    for place, table in enumerate(found):
        where = _hidden(table, union)
        if where is not None:
            raise _misplaced(table, cte, where)
        if place:
            raise _refused(f'recursive reference to query "{called(cte)}" must not appear more than once', table)
    (table,) = found
    select = table.find_ancestor(exp.Select)
    assert select is not None, "a table stands in a FROM"
    for folded in _folded(select):
        raise _refused("aggregate functions are not allowed in a recursive query's recursive term", folded)


def _tail_of(query: exp.Expression) -> bool:
    return any(query.args.get(key) is not None for key, _ in _TAILS)


def _hidden(table: exp.Table, union: exp.Union) -> str | None:
    """What stands around ``table`` within the recursive term that makes it none of a step's rows alone."""
    below: exp.Expression = table
    node = table.parent
    while node is not None and node is not union:
        if isinstance(node, exp.Except) and (below is node.expression or not node.args.get("distinct")):
            return "EXCEPT"
        if isinstance(node, exp.Intersect) and not node.args.get("distinct"):
            return "INTERSECT"
        if isinstance(node, exp.Select) and _outer_joined(node, below):
            return "an outer join"
        if isinstance(node, (exp.Query, exp.Subquery)) and not _is_relation(node, union):
            return "a subquery"
        below, node = node, node.parent
    return None


def _is_relation(query: exp.Expression, union: exp.Union) -> bool:
    """Whether ``query`` is a term, a branch of one, of a WITH, or stands in FROM: not a value."""
    parent = query.parent
    return parent is union or isinstance(
        parent, (exp.SetOperation, exp.Subquery, exp.From, exp.Join, exp.Lateral, exp.CTE)
    )


def _outer_joined(select: exp.Select, below: exp.Expression) -> bool:
    """Whether a join of ``select`` fills in for rows of ``below``, its FROM or one of its joins."""
    joins = select.args.get("joins") or []
    if below is not select.args.get("from_") and not any(below is join for join in joins):
        return False
    reached = below is select.args.get("from_")
    for join in joins:
        if join is below:
            if join.side in ("LEFT", "FULL"):
                return True
            reached = True
        elif reached and join.side in ("RIGHT", "FULL"):
            return True
    return False


def _folded(select: exp.Select) -> Iterator[exp.Expression]:
    """Calls of aggregates at the level of ``select``, those with OVER apart."""
    for part in (*select.expressions, select.args.get("having")):
        stack = [part] if part is not None else []
        while stack:
            here = stack.pop()
            if isinstance(here, (exp.Query, exp.Subquery, exp.Window)):
                continue
            if is_aggregate(here):
                yield here
            stack.extend(here.iter_expressions())


def called(cte: exp.CTE) -> str:
    """As its writer called it."""
    name = cte.args["alias"].this
    return str(name.meta.get("called", name.name))


def _at(cte: exp.CTE) -> int | None:
    return position(cte.args["alias"])


def _misplaced(table: exp.Table, cte: exp.CTE, where: str) -> InvalidUsage:
    return _refused(f'recursive reference to query "{called(cte)}" must not appear within {where}', table)


def _refused(message: str, node: exp.Expression) -> InvalidUsage:
    at = _at(node) if isinstance(node, exp.CTE) else position(node)
    return InvalidUsage(message, sqlstate="42P19", position=at)
