"""What is in FROM: its relations, their columns, and what joins make of them, into a scope.  Pure.

What a relation is, and which number it has, is noted on its node (:mod:`sql.system.notes`); so is what USING says.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from sqlglot import exp

from journal.errors import InvalidUsage
from plan import relations as r
from sql.objects.names import ImageLike, Names, SystemRelation, find
from sql.syntax.statements import Name
from sql.system import types as t
from sql.system.calls import called, identifier, output_name
from sql.system.carriers import carrier
from sql.system.expressions import RULES, call
from sql.system.notes import COLUMNS, NAMED, READS, RELATION, TYPED, USING
from sql.system.scope import HIDDEN, Columns, Merged, Scope, Seen, columns_of, joined, row_of
from sql.system.types import PgType
from trees.errors import no_relation, unsupported
from trees.nodes import position


def system_relation(table: exp.Table, image: ImageLike, names: Names) -> tuple[str, str] | None:
    """Schema and name of the system relation that ``table`` means; ``None`` where it means none."""
    name = identifier(table.this)
    schema = table.db.lower() if table.db else None
    if schema is None:
        found = find(image, names, Name((name,)))
        schema = found.schema if isinstance(found, SystemRelation) else None
    return (schema, name) if schema is not None and name in names.system.get(schema, ()) else None


class Sources:
    """``visit`` types an expression, ``condition`` one that is a condition, ``query`` a query."""

    def __init__(self, image: ImageLike, names: Names) -> None:
        self._image = image
        self._names = names
        self.relations: set[tuple[str, str]] = set()
        self._numbers = count()

    def visit(self, node: exp.Expression, scope: Scope) -> PgType:
        raise NotImplementedError

    def condition(self, node: exp.Expression, key: str, scope: Scope, where: str) -> None:
        raise NotImplementedError

    def query(self, node: exp.Expression, above: Scope, branch: bool = False) -> Columns:
        raise NotImplementedError

    def number(self, node: exp.Expression) -> None:
        """Once: the first part of a recursive query is looked at twice."""
        node.meta.setdefault(RELATION, next(self._numbers))

    def from_(self, node: exp.Select, scope: Scope) -> None:
        first = node.args.get("from_")
        if first is not None:
            self._source(first.this, scope)
        for each in node.args.get("joins") or ():
            self._join(each, scope)
        for each in node.args.get("laterals") or ():
            self._source(each, scope)

    def _join(self, node: exp.Join, scope: Scope) -> None:
        left = scope.seen
        scope.seen = ()
        outer = Scope(scope, seen=left) if left else scope
        self._source(node.this, scope, outer)
        right = scope.seen
        using = node.args.get("using") or ()
        names = [identifier(each if isinstance(each, exp.Identifier) else each.this) for each in using]
        if str(node.args.get("method") or "").upper() == "NATURAL":
            there = {each.name for each in right}
            names = [each.name for each in left if each.name in there]
        merged: list[Seen] = []
        for name in names:
            sides: list[Seen] = []
            for which, side in (("left", left), ("right", right)):
                found = [each for each in side if each.name == name]
                if len(found) != 1:
                    if found:
                        told = f'common column name "{name}" appears more than once in {which} table'
                        raise InvalidUsage(told, sqlstate="42702")
                    told = f'column "{name}" specified in USING clause does not exist in {which} table'
                    raise InvalidUsage(told, sqlstate="42703")
                sides += found
            merged.append(_merged(*sides))
        if merged:
            node.meta[USING] = tuple(merged)
        scope.seen = joined(left, right, [_shown_once(each, node) for each in merged])
        if node.args.get("on") is not None:
            self.condition(node, "on", scope, "JOIN/ON")

    def _source(self, node: exp.Expression, scope: Scope, around: Scope | None = None) -> None:
        """One relation of FROM into ``scope``; ``around``: what it may see if it is LATERAL."""
        around = around or scope
        if isinstance(node, exp.Paren):
            self._source(node.this, scope, around)
        elif isinstance(node, exp.Table):
            self._table(node, scope, around)
        elif isinstance(node, exp.Lateral):
            self._lateral(node, scope, around)
        elif isinstance(node, exp.Subquery) and not isinstance(node.this, (exp.Query, exp.Values)):
            self._nested(node, scope, around)
            return
        elif isinstance(node, (exp.Subquery, exp.Values)):
            inner = node.this if isinstance(node, exp.Subquery) else node
            alone = Scope(scope.above, scope.queries)  # it sees the queries of WITH, and nothing beside it in FROM
            columns = self.query(inner, around if node.args.get("lateral") else alone)
            self._named(node, columns, scope)
        elif isinstance(node, exp.Unnest):
            self._unnest(node, node, scope, around)
        else:
            raise unsupported("this in FROM", position=position(node))
        for each in node.args.get("joins") or ():
            self._join(each, scope)

    def _nested(self, node: exp.Subquery, scope: Scope, around: Scope) -> None:
        """``(a JOIN b ON …)``."""
        before = scope.seen
        self._source(node.this, scope, around)
        for each in node.args.get("joins") or ():
            self._join(each, scope)
        alias = node.args.get("alias")
        if alias is not None:
            row = scope.seen[len(before) :]
            names = [identifier(each) for each in alias.columns]
            columns = renamed(columns_of(row), names, identifier(alias.this))
            called_so = tuple(each._replace(name=name) for each, (name, _) in zip(row, columns, strict=True))
            scope.add(identifier(alias.this), called_so)
            scope.seen = (*before, *called_so)

    def _named(self, node: exp.Expression, columns: Columns, scope: Scope, otherwise: str = "") -> None:
        alias = node.args.get("alias")
        name = identifier(alias.this) if alias is not None and alias.this is not None else otherwise
        columns = renamed(columns, [identifier(each) for each in alias.columns] if alias is not None else [], name)
        self.number(node)
        node.meta[COLUMNS] = columns
        row = row_of(node.meta[RELATION], columns)
        scope.add(name, row)
        scope.seen = (*scope.seen, *row)

    def _table(self, node: exp.Table, scope: Scope, around: Scope) -> None:
        if node.args.get("rows_from"):
            raise unsupported("ROWS FROM over system relations", position=position(node))
        if not isinstance(node.this, exp.Identifier):
            self._function(node.this, node, scope, around)
            return
        name = identifier(node.this)
        within = scope.query(name) if not node.db else None
        if within is not None:
            node.meta[NAMED] = within.name
            self._named(node, within.columns, scope, name)
            return
        found = system_relation(node, self._image, self._names)
        if found is None:
            raise no_relation(f"{node.db}.{name}" if node.db else name, position=position(node))
        columns = tuple((column, PgType(kind)) for column, kind in self._names.system[found[0]][found[1]].items())
        self.relations.add(found)
        node.meta[READS] = _get(*found, columns)
        self._named(node, columns, scope, name)
        if found[0] == "pg_catalog":
            hidden = row_of(node.meta[RELATION], (*columns, (HIDDEN, PgType("oid"))))[-1]
            scope.hidden[identifier(node.args["alias"].this) if node.alias else name] = hidden

    def _function(self, node: exp.Expression, table: exp.Expression, scope: Scope, around: Scope) -> None:
        while isinstance(node, exp.Dot):
            node = node.expression
        alias = table.args.get("alias")
        named = identifier(alias.this) if alias is not None and alias.this is not None else ""
        if isinstance(node, exp.Func) and type(node) not in RULES:
            found, _ = call(self, node, around)
            node.meta[TYPED] = found
            name = called(node)
        else:
            found, name = self.visit(node, around), output_name(node)
        columns = found.fields if found.name == "record" and found.fields else ((named or name, found),)
        if table.args.get("ordinality"):
            columns = (*columns, ("ordinality", t.INT8))
        self._named(table, columns, scope, name)

    def _lateral(self, node: exp.Lateral, scope: Scope, around: Scope) -> None:
        inner = node.this
        if isinstance(inner, (exp.Subquery, exp.Query, exp.Values)):
            self._named(node, self.query(inner, around), scope)
        elif isinstance(inner, exp.Table):
            self._table(inner, scope, around)
        elif isinstance(inner, exp.Unnest):
            self._unnest(inner, node, scope, around)
        else:
            self._function(inner, node, scope, around)

    def _unnest(self, node: exp.Unnest, table: exp.Expression, scope: Scope, around: Scope) -> None:
        columns = []
        for each in list(node.expressions):
            got = self.visit(each, around)
            element = t.element_of(got.name)
            if element is None:
                told = f"function unnest({t.shown(got.name)}) does not exist"
                raise InvalidUsage(told, sqlstate="42883", position=position(node))
            columns.append(("unnest", PgType(element)))
        alias = table.args.get("alias")
        if len(columns) == 1 and alias is not None and alias.this is not None:
            columns = [(identifier(alias.this), columns[0][1])]
        if number := node.args.get("offset"):  # the parser has the alias's last column there
            columns.append((identifier(number) if isinstance(number, exp.Identifier) else "ordinality", t.INT8))
        self._named(table, tuple(columns), scope, "unnest")


def renamed(columns: Columns, names: Sequence[str], of: str) -> Columns:
    """42P10 where more names are given than there are columns."""
    if len(names) > len(columns):
        told = f'table "{of}" has {len(columns)} columns available but {len(names)} columns specified'
        raise InvalidUsage(told, sqlstate="42P10")
    given = (*names, *(name for name, _ in columns[len(names) :]))
    return tuple((name, kind) for name, (_, kind) in zip(given, columns, strict=True))


def _merged(left: Seen, right: Seen) -> Seen:
    """The column that a join has of both sides'."""
    kind = t.common([left.kind, right.kind], "JOIN/USING")
    return Seen(left.name, kind, Merged((left.meaning, right.meaning), kind))


def _shown_once(merged: Seen, join: exp.Join) -> Seen:
    """What ``*`` shows of it: of an outer join the side that has all rows."""
    side = str(join.args.get("side") or "").upper()
    if side == "FULL":
        return merged
    return merged._replace(meaning=merged.meaning.sides[side == "RIGHT"])


def _get(schema: str, name: str, columns: Columns) -> r.Get:
    """A system relation, with the column that ``*`` does not show behind the others."""
    every = (*columns, (HIDDEN, PgType("oid"))) if schema == "pg_catalog" else columns
    kinds = tuple(r.Kind(carrier(kind), True) for _, kind in every)
    return r.Get(f"{schema}.{name}", tuple(column for column, _ in every), kinds)
