"""Where the name of an output means that output: importing this module puts it into sqlglot's qualifier.

In Postgres that is a whole key of GROUP BY which is no column's name of the FROM, and what
:mod:`sql.binding.bind_order` says of ORDER BY and DISTINCT ON.  WHERE, HAVING, other outputs and a part of a key see
columns alone.  sqlglot's own expansion takes an output's name in all of these.
"""

from __future__ import annotations

from sqlglot import exp
from sqlglot.optimizer import qualify_columns
from sqlglot.optimizer.resolver import Resolver
from sqlglot.optimizer.scope import Scope, walk_in_scope

from journal.errors import InvalidUsage
from sql.binding.apart import group_keys
from trees.nodes import position, swap


def expand(scope: Scope, resolver: Resolver, dialect: object, expand_only_groupby: bool = False) -> None:
    """Replace the names of outputs in the GROUP BY of ``scope``, whose columns have their relations by now.

    42702 for a name of two outputs that are not the same.  HAVING's columns get their relation.
    """
    select = scope.expression
    if not isinstance(select, exp.Select):
        return
    if (having := select.args.get("having")) is not None:
        for column in walk_in_scope(having, prune=lambda node: node.is_star):
            if isinstance(column, exp.Column) and not column.table and (table := resolver.get_table(column)):
                column.set("table", table)
    keys = list(group_keys(select.args["group"])) if select.args.get("group") is not None else []
    named = [
        key for key in keys
        if (isinstance(key, exp.Column) and not key.table) or isinstance(key, exp.TableColumn)  # after an output's name
    ]  # fmt: skip
    for key in named:
        meant = [place for place, each in enumerate(select.selects, 1) if each.alias_or_name == key.name]
        values = [select.selects[place - 1].unalias() for place in meant]
        if any(value != values[0] for value in values):
            raise ambiguous_output("GROUP BY", key)
        if values and (isinstance(values[0], exp.Literal) or values[0].is_number):
            swap(key, exp.Literal.number(meant[0]))  # what is written as a number would mean another output
        elif values:
            swap(key, values[0].copy())
    if named:
        scope.clear_cache()


def ambiguous_output(where: str, node: exp.Expression) -> InvalidUsage:
    """42702: two outputs of this name are not the same."""
    return InvalidUsage(f'{where} "{node.name}" is ambiguous', sqlstate="42702", position=position(node))


qualify_columns._expand_alias_refs = expand
