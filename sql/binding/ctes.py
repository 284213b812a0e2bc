"""Which WITH query a name means, and names for WITH queries that nothing else can have.  Pure.

A name means the nearest WITH query of that name that is in reach: of the query it stands in or of one around it, and of
those beside it only the earlier ones (all of them, itself included, where it says RECURSIVE).  Anything else is a
relation, also where a WITH query of the same name is about to begin: ``WITH t AS (SELECT * FROM t)`` reads the table.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from journal.errors import InvalidUsage
from trees.nodes import position


def cte_of(table: exp.Table, name_of: Callable[[exp.Expression], str]) -> exp.CTE | None:
    """The WITH query that ``table`` names, ``None`` where it names a relation.  ``name_of`` folds an identifier."""
    if table.db or not isinstance(table.this, exp.Identifier):
        return None
    wanted = name_of(table.this)
    below: exp.Expression = table
    node = table.parent
    while node is not None:
        if isinstance(node, exp.With):  # ``below`` is one of its queries
            reach = node.expressions
            if not node.args.get("recursive"):
                reach = reach[: next(i for i, each in enumerate(reach) if each is below)]
        elif node.args.get("with_") is not None and below is not node.args["with_"]:
            reach = node.args["with_"].expressions
        else:
            reach = []
        for each in reversed(reach):
            if name_of(each.args["alias"].this) == wanted:
                return each
        below, node = node, node.parent
    return None


def rename_ctes(
    root: exp.Expression, name_of: Callable[[exp.Expression], str], new: Callable[[int], str]
) -> list[exp.Table]:
    """Call the n-th WITH query ``new(n)`` wherever it is read (its old name stays as the alias there); gives the tables
    that name relations."""
    for with_ in root.find_all(exp.With):
        _check_names(with_, name_of)
    tables = [t for t in root.find_all(exp.Table) if isinstance(t.this, (exp.Identifier, exp.Dot))]
    found = [(table, cte_of(table, name_of)) for table in tables]
    names: dict[int, exp.Identifier] = {}
    for cte in [x for x in root.find_all(exp.CTE)]:
        cte.set("materialized", None)  # asks an engine for a plan, and says nothing of the rows
        alias = cte.args["alias"]
        names[id(cte)] = exp.to_identifier(new(len(names)), quoted=True)
        old = alias.this
        alias.set("this", names[id(cte)])
        names[id(cte)].meta.update(old.meta)
        names[id(cte)].meta["called"] = name_of(old)
    for table, cte in found:
        if cte is None:
            continue
        made = names[id(cte)].copy()
        old = table.this
        made.meta.clear()
        made.meta.update(old.meta)
        alias = table.args.get("alias")
        if alias is None:
            table.set("alias", exp.TableAlias(this=exp.to_identifier(name_of(old), quoted=True)))
        elif alias.this is None:
            alias.set("this", exp.to_identifier(name_of(old), quoted=True))
        table.set("this", made)
    return [table for table, cte in found if cte is None]


def _check_names(with_: exp.With, name_of: Callable[[exp.Expression], str]) -> None:
    """42712 where two of its queries are called the same."""
    seen = set()
    for cte in with_.expressions:
        identifier = cte.args["alias"].this
        name = name_of(identifier)
        if name in seen:
            told = f'WITH query name "{name}" specified more than once'
            raise InvalidUsage(told, sqlstate="42712", position=position(identifier))
        seen.add(name)
