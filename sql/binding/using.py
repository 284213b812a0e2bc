"""JOIN … USING and NATURAL JOIN as Postgres has them; importing this module puts it into sqlglot's qualifier.

A merged column is what its join says: the first of its sides that is not NULL, the right one's value first in a RIGHT
JOIN, and the next join compares with that.  sqlglot's own expansion compares with the first relation's column, loses
columns of other relations that are called like a merged one, and takes names that mean two of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlglot import exp
from sqlglot.optimizer import qualify_columns
from sqlglot.optimizer.resolver import Resolver
from sqlglot.optimizer.scope import Scope

from journal.errors import InvalidUsage
from trees.errors import ambiguous
from trees.nodes import position

MERGED = "merged"
"""Where a SELECT notes the columns that its joins merge, and of which relations."""

Column = tuple[str, tuple[str, ...]]
"""A column of a joined table: its name and the relations whose columns of that name it is made of."""


def expand(scope: Scope, resolver: Resolver) -> tuple[dict[str, object], list[str]]:
    """Write USING and NATURAL of ``scope`` as ON, and what they merge as COALESCE, in ``*`` too.  Nothing is left to
    the qualifier, so nothing is returned.  42701, 42702 and 42703 as Postgres has them."""
    select = scope.expression
    if not isinstance(select, exp.Select) or select.args.get("from_") is None:
        return {}, []
    if not any(join.args.get("using") or join.method == "NATURAL" for join in scope.find_all(exp.Join)):
        return {}, []
    reach: dict[int, tuple[list[Column], list[Column]]] = {}
    columns = _joined(select.args["from_"].this, select.args.get("joins") or (), resolver, reach)
    select.meta[MERGED] = {name: sides for name, sides in columns if len(sides) > 1}
    for column in [each for each in scope.columns if not each.table and not isinstance(each.this, exp.Star)]:
        found = [sides for name, sides in _visible(column, columns, reach) if name == column.name]
        if any(len(sides) > 1 for sides in found):
            if len(found) > 1:
                raise ambiguous(column.name, position(column))
            value = merged(column.name, found[0])
            if isinstance(column.parent, exp.Select):
                value = exp.alias_(value, column.name, quoted=True)
            scope.replace(column, value)
    names = {source: resolver.get_source_columns(source) for source in scope.selected_sources}
    if all(each and "*" not in each and len(set(each)) == len(each) for each in names.values()):
        _write_stars(select, columns)
        scope.clear_cache()
    return {}, []


def merged(name: str, sides: Sequence[str]) -> exp.Expression:
    """The column ``name`` of ``sides``."""
    found = [exp.column(exp.to_identifier(name, quoted=True), exp.to_identifier(each, quoted=True)) for each in sides]
    return exp.Coalesce(this=found[0], expressions=found[1:]) if found[1:] else found[0]


def _joined(
    source: exp.Expression, joins: Iterable[exp.Join], resolver: Resolver, reach: dict[int, tuple[list, list]]
) -> list[Column]:
    """The columns of ``source`` and ``joins`` in their order.  ``reach`` gets what each join's relation and ON see."""
    before: list[Column] = []  # a comma binds less than JOIN does
    left = _columns(source, resolver, reach)
    for join in joins:
        right = _columns(join.this, resolver, reach)
        around = [*before, *left]
        if not (join.side or join.kind or join.method or join.args.get("on") or join.args.get("using")):
            before, left = around, right
        else:
            left = _join(join, left, right)
        reach[id(join)] = (around, [*around, *right])
    return [*before, *left]


def _columns(source: exp.Expression, resolver: Resolver, reach: dict[int, tuple[list, list]]) -> list[Column]:
    inner = source
    while isinstance(inner, (exp.Subquery, exp.Paren)):
        inner = inner.this
    if inner is not source and not source.alias and not isinstance(inner, exp.Query):  # ``(a JOIN b USING (i))``
        return _joined(source.this, source.args.get("joins") or (), resolver, reach)
    name = source.alias_or_name
    own: list[Column] = [(column, (name,)) for column in resolver.get_source_columns(name)]
    joins = source.args.get("joins") or ()
    if not joins:
        return own
    for join in joins:
        right = _columns(join.this, resolver, reach)
        around, own = own, _join(join, own, right)
        reach[id(join)] = (around, [*around, *right])
    return own


def _join(join: exp.Join, left: list[Column], right: list[Column]) -> list[Column]:
    """The columns of ``join``, whose USING or NATURAL becomes an ON."""
    names = [each.name for each in join.args.get("using") or ()]
    if join.method == "NATURAL":
        common = {name for name, _ in right}
        names = list(dict.fromkeys(name for name, _ in left if name in common))
        join.set("method", None)
        if not names:
            join.set("kind", None if join.side else "CROSS")
            join.set("on", exp.true() if join.side else None)
    if not names:
        return [*left, *right]
    made: list[Column] = []
    conditions = []
    for name in names:
        if any(name == each for each, _ in made):
            raise InvalidUsage(f'column name "{name}" appears more than once in USING clause', sqlstate="42701")
        one, other = _only(name, left, "left"), _only(name, right, "right")
        conditions.append(exp.EQ(this=merged(name, one), expression=merged(name, other)))
        made.append((name, other + one if join.side == "RIGHT" else one + other))
    join.set("using", None)
    join.set("on", exp.and_(*conditions, copy=False))
    return [*made, *(each for each in [*left, *right] if each[0] not in names)]


def _only(name: str, columns: list[Column], side: str) -> tuple[str, ...]:
    found = [sides for each, sides in columns if each == name]
    if not found:
        told = f'column "{name}" specified in USING clause does not exist in {side} table'
        raise InvalidUsage(told, sqlstate="42703")
    if len(found) > 1:
        raise InvalidUsage(f'common column name "{name}" appears more than once in {side} table', sqlstate="42702")
    return found[0]


def _visible(
    column: exp.Column, columns: list[Column], reach: dict[int, tuple[list[Column], list[Column]]]
) -> list[Column]:
    """What ``column`` may name where it stands: a join's relation sees what is before it, its ON both sides."""
    below: exp.Expression = column
    while below.parent is not None:
        if isinstance(below.parent, exp.Join) and id(below.parent) in reach:
            return reach[id(below.parent)][below.arg_key == "on"]
        below = below.parent
    return columns


def _write_stars(select: exp.Select, columns: list[Column]) -> None:
    found: list[exp.Expression] = []
    for each in select.expressions:
        if not isinstance(each, exp.Star):
            found.append(each)
            continue
        for name, sides in columns:
            value = merged(name, sides)
            found.append(exp.alias_(value, name, quoted=True) if len(sides) > 1 else value)
    select.set("expressions", found)


qualify_columns._expand_using = expand
