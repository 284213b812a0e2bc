"""Names and types of a query over system relations, found from its text alone: no engine is asked.  Pure.

Promises: :func:`typed_query` gives the outputs as Postgres would name and type them, and a tree in which every
expression that has a type carries it (:func:`~sql.system.expressions.typed`) and what was untyped is a cast
to what its place wants; a parameter is of the type that its first place gives it, as in Postgres (``parse_param.c``).
What Postgres would refuse is refused with its SQLSTATE, as far as the types decide: 42703, 42P01, 42702, 42883, 42804,
42601, 42P08, 42P18.  It does not promise that an engine can run the query, nor does it look at GROUP BY.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from journal.errors import InvalidUsage
from sql.objects.names import ImageLike, Names, SystemRelation, find
from sql.syntax.statements import Name
from sql.system import types as t
from sql.system.calls import called, identifier, output_name
from sql.system.expressions import RULES, TYPED, call
from sql.system.scope import HIDDEN, Columns, Scope, joined
from sql.system.types import PgType
from trees.errors import mismatch, no_relation, unsupported
from trees.nodes import copied, position, unnest


@dataclass(frozen=True)
class SystemQuery:
    """A query with its types.  ``tree`` still holds parameters (:mod:`sql.system.parameters` puts values there)."""

    tree: exp.Expression
    columns: Columns
    params: Mapping[int, PgType]
    relations: frozenset[tuple[str, str]]
    """The schemas and names of what it reads."""


def typed_query(
    tree: exp.Expression, image: ImageLike, names: Names, declared: Mapping[int, PgType] | None = None
) -> SystemQuery:
    """``tree``, of which a copy is made, with its types; ``declared``: those of parameters that a client has told."""
    holder = exp.Paren(this=copied(tree))
    typer = Typer(image, names, declared or {})
    columns = typer.query(holder.this, Scope())
    typer.check_parameters(holder.this)
    return SystemQuery(holder.this, columns, typer.params, frozenset(typer.relations))


def system_relation(table: exp.Table, image: ImageLike, names: Names) -> tuple[str, str] | None:
    """Schema and name of the system relation that ``table`` means; ``None`` where it means none."""
    name = identifier(table.this)
    schema = table.db.lower() if table.db else None
    if schema is None:
        found = find(image, names, Name((name,)))
        schema = found.schema if isinstance(found, SystemRelation) else None
    return (schema, name) if schema is not None and name in names.system.get(schema, ()) else None


class Typer:
    def __init__(self, image: ImageLike, names: Names, declared: Mapping[int, PgType]) -> None:
        self._image = image
        self._names = names
        self.params = dict(declared)
        self.relations: set[tuple[str, str]] = set()

    # Expressions

    def visit(self, node: exp.Expression, scope: Scope) -> PgType:
        """The type of ``node``.  0A000 where there is no rule for it."""
        known = node.meta.get(TYPED)
        if known is not None:
            return known
        try:
            found = self._type_of(node, scope)
        except InvalidUsage as error:
            if error.position is None:  # found out here alone: what it costs is a walk
                error.position = position(node)
            raise
        node.meta[TYPED] = found
        return found

    def _type_of(self, node: exp.Expression, scope: Scope) -> PgType:
        rule = RULES.get(type(node))
        if rule is not None:
            return rule(self, node, scope)
        if isinstance(node, exp.Query):
            return RULES[exp.Subquery](self, node, scope)
        if isinstance(node, exp.Func):
            return call(self, node, scope)[0]
        raise unsupported("this expression in a query over system relations")

    def give(self, node: exp.Expression, wanted: str) -> None:
        """A literal that has no type becomes ``wanted``, a cast to which it is from then on; a parameter is of that
        type."""
        inner = unnest(node)
        if isinstance(inner, exp.Parameter):
            self._deduce(inner, wanted)
            return
        if not isinstance(inner, exp.Literal) or not inner.is_string or wanted in _AS_WRITTEN:
            return
        if t.is_textual(wanted) or inner.meta.get(TYPED, t.UNKNOWN) != t.UNKNOWN:
            return
        made = exp.Cast(this=inner.copy(), to=written(wanted))
        made.meta[TYPED] = PgType(wanted)
        inner.replace(made)

    def parameter(self, node: exp.Parameter) -> PgType:
        """What the parameter is known to be by now: of no type, until a place says which."""
        if not isinstance(node.this, exp.Literal):
            raise unsupported("this expression in a query over system relations", position=position(node))
        return self.params.get(_number(node), t.UNKNOWN)

    def _deduce(self, node: exp.Parameter, wanted: str) -> None:
        """42P08 where it was of no type when it was met, and has been given another one since."""
        if node.meta.get(TYPED) != t.UNKNOWN or wanted in _NO_TYPES:
            return
        number = _number(node)
        known = self.params.setdefault(number, PgType(wanted))
        if known.name != wanted:
            raise InvalidUsage(
                f"inconsistent types deduced for parameter ${number}", sqlstate="42P08", position=position(node),
                detail=f"{t.shown(known.name)} versus {t.shown(wanted)}",
            )  # fmt: skip
        node.meta[TYPED] = known

    def check_parameters(self, tree: exp.Expression) -> None:
        """42P18 where no place of a parameter says what it is, 42P08 where it was left open before another did."""
        found = list(tree.find_all(exp.Parameter))
        for number in range(1, max(map(_number, found), default=0) + 1):
            if number not in self.params:
                raise InvalidUsage(f"could not determine data type of parameter ${number}", sqlstate="42P18")
        for each in found:
            if each.meta.get(TYPED) == t.UNKNOWN:
                told = f"could not determine data type of parameter ${_number(each)}"
                raise InvalidUsage(told, sqlstate="42P08", position=position(each))

    def condition(self, node: exp.Expression, key: str, scope: Scope, where: str) -> None:
        """42804 for what is no condition."""
        got = self.visit(node.args[key], scope)
        if got.name not in ("bool", "unknown"):
            told = f"argument of {where} must be type boolean, not type {t.shown(got.name)}"
            raise mismatch(told, position(node.args[key]))
        self.give(node.args[key], "bool")

    def alike(self, nodes: Sequence[exp.Expression], scope: Scope, where: str) -> PgType:
        """Their common type, which those become that have none."""
        found = t.common([self.visit(each, scope) for each in nodes], where)
        for each in nodes:
            self.give(each, found.name)
        return found

    # Queries

    def query(self, node: exp.Expression, above: Scope, branch: bool = False) -> Columns:
        """The outputs of a query, of which none is untyped any more; those of a ``branch`` of a set operation become
        what the other branches say."""
        node = unnest(node)
        if isinstance(node, exp.Subquery):
            if node.args.get("with_") is None and not node.args.get("joins"):
                return self.query(node.this, above, branch)
        scope = Scope(above)
        self._with(node, scope)
        if isinstance(node, exp.Subquery):
            return self.query(node.this, scope, branch)
        if isinstance(node, exp.SetOperation):
            return self._set_operation(node, scope)
        if isinstance(node, exp.Values):
            return self._values(node, scope)
        if isinstance(node, exp.Select):
            return self._select(node, scope, branch)
        raise unsupported("this query over system relations", position=position(node))

    def _with(self, node: exp.Expression, scope: Scope) -> None:
        written = node.args.get("with_")
        for each in written.expressions if written is not None else ():
            name = identifier(each.args["alias"].this)
            named = [identifier(column) for column in each.args["alias"].columns]
            inner = unnest(each.this)
            if written.args.get("recursive") and isinstance(inner, exp.SetOperation):
                first = self.query(inner.this, scope)
                scope.queries[name] = _renamed(first, named, name)
            scope.queries[name] = _renamed(self.query(each.this, scope), named, name)

    def _set_operation(self, node: exp.SetOperation, scope: Scope) -> Columns:
        where = {exp.Union: "UNION", exp.Intersect: "INTERSECT", exp.Except: "EXCEPT"}[type(node)]
        branches, here = [], node
        while True:  # a chain of them is as long as it likes
            branches.append(here.expression)
            if not isinstance(here.this, exp.SetOperation) or here.this.args.get("with_") is not None:
                break
            here = here.this
        branches.append(here.this)
        branches.reverse()
        found = self.query(branches[0], scope, branch=True)
        raw = [_untyped(branches[0], found)]
        for each in branches[1:]:
            columns = self.query(each, scope, branch=True)
            if len(columns) != len(found):
                told = f"each {where} query must have the same number of columns"
                raise InvalidUsage(told, sqlstate="42601", position=position(each))
            raw.append(_untyped(each, columns))
            left, right = raw[-2], raw[-1]
            kinds = [t.common([a, b], where) for a, b in zip(left, right, strict=True)]
            for branch in branches[: len(raw)]:
                self._give_outputs(branch, kinds)
            raw[-1] = kinds
            found = tuple((name, kind) for (name, _), kind in zip(found, kinds, strict=True))
        self._order(node, Scope(scope, seen=found), found, [])
        return found

    def _give_outputs(self, branch: exp.Expression, kinds: Sequence[PgType]) -> None:
        inner = unnest(branch)
        while isinstance(inner, exp.Subquery):
            inner = unnest(inner.this)
        if isinstance(inner, exp.Select) and len(inner.expressions) == len(kinds):
            for each, kind in zip(list(inner.expressions), kinds, strict=True):
                self.give(each.unalias(), kind.name)

    def _values(self, node: exp.Values, scope: Scope) -> Columns:
        rows = [list(row.expressions) for row in node.expressions]
        if len({len(row) for row in rows}) > 1:
            raise InvalidUsage("VALUES lists must all be the same length", sqlstate="42601", position=position(node))
        kinds = [self.alike(column, scope, "VALUES") for column in zip(*rows, strict=True)]
        return tuple((f"column{n}", kind) for n, kind in enumerate(kinds, 1))

    def _select(self, node: exp.Select, scope: Scope, branch: bool) -> Columns:
        self._from(node, scope)
        outputs: list[tuple[str, PgType]] = []
        for each in list(node.expressions):
            outputs += self._output(each, scope)
        for key in ("where", "having"):
            if node.args.get(key) is not None:
                self.condition(node.args[key], "this", scope, key.upper())
        found = tuple((name, kind if kind.name != "unknown" else t.TEXT) for name, kind in outputs)
        self._group(node, scope, found)
        for named in node.args.get("windows") or ():
            for each in named.args.get("partition_by") or ():
                self.visit(each, scope)
            for each in named.args["order"].expressions if named.args.get("order") is not None else ():
                self.visit(each.this, scope)
        distinct = node.args.get("distinct")
        if distinct is not None and distinct.args.get("on") is not None:
            for each in unnest(distinct.args["on"]).expressions or [unnest(distinct.args["on"])]:
                self._by_output(each, scope, found)
        self._order(node, scope, found, node.expressions)
        for each in [] if branch else list(node.expressions):
            if each.unalias().meta.get(TYPED) == t.UNKNOWN:
                self.give(each.unalias(), "text")
        return found

    def _output(self, each: exp.Expression, scope: Scope) -> Columns:
        if isinstance(each, exp.Star):
            if not scope.relations:
                told = "SELECT * with no tables specified is not valid"
                raise InvalidUsage(told, sqlstate="42601", position=position(each))
            return scope.seen
        if isinstance(each, exp.Column) and isinstance(each.this, exp.Star):
            return scope.relation(identifier(each.args["table"]), position(each))
        if isinstance(each, exp.Dot) and isinstance(each.expression, exp.Star):
            return self.visit(each.this, scope).fields
        return ((output_name(each), self.visit(each.unalias(), scope)),)

    def _group(self, node: exp.Select, scope: Scope, found: Columns) -> None:
        group = node.args.get("group")
        for each in group.iter_expressions() if group is not None else ():
            if isinstance(each, (exp.Cube, exp.Rollup, exp.GroupingSets)):
                for part in each.find_all(exp.Column):
                    self._by_output(part, scope, found)
            else:
                self._by_output(each, scope, found)

    def _by_output(self, each: exp.Expression, scope: Scope, found: Columns) -> None:
        """What is a column of the query's inputs, or of its outputs, or a place."""
        if isinstance(each, exp.Literal):
            return
        if isinstance(each, exp.Column) and not each.table and identifier(each.this) in {name for name, _ in found}:
            return
        self.visit(each, scope)
        self.give(each, "text")  # of no type at all, it is a text

    def _order(self, node: exp.Expression, scope: Scope, found: Columns, outputs: Sequence[exp.Expression]) -> None:
        order = node.args.get("order")
        for each in order.expressions if order is not None else ():
            self._by_output(each.this if isinstance(each, exp.Ordered) else each, scope, found)
        for key in ("limit", "offset"):
            part = node.args.get(key)
            value = part.args.get("expression") or part.args.get("count") if part is not None else None
            if isinstance(value, exp.Expression) and not _is_all(value):
                self.visit(value, scope)
                self.give(value, "int8")

    # FROM

    def _from(self, node: exp.Select, scope: Scope) -> None:
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
            there = {name for name, _ in right}
            names = [name for name, _ in left if name in there]
        kinds = {}
        for name in names:
            sides = []
            for which, side in (("left", left), ("right", right)):
                found = [kind for each, kind in side if each == name]
                if len(found) != 1:
                    if found:
                        told = f'common column name "{name}" appears more than once in {which} table'
                        raise InvalidUsage(told, sqlstate="42702")
                    told = f'column "{name}" specified in USING clause does not exist in {which} table'
                    raise InvalidUsage(told, sqlstate="42703")
                sides += found
            kinds[name] = t.common(sides, "JOIN/USING")
        scope.seen = joined(left, right, names, kinds)
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
            columns = self.query(inner, around if node.args.get("lateral") else scope.above or Scope())
            self._named(node, columns, scope)
        elif isinstance(node, exp.Unnest):
            self._unnest(node, scope, around)
        else:
            raise unsupported("this in FROM", position=position(node))
        for each in node.args.get("joins") or ():
            self._join(each, scope)

    def _nested(self, node: exp.Subquery, scope: Scope, around: Scope) -> None:
        """``(a JOIN b ON …)``."""
        self._source(node.this, scope, around)
        for each in node.args.get("joins") or ():
            self._join(each, scope)
        if node.args.get("alias") is not None:
            self._named(node, scope.seen, scope)

    def _named(self, node: exp.Expression, columns: Columns, scope: Scope, otherwise: str = "") -> None:
        alias = node.args.get("alias")
        name = identifier(alias.this) if alias is not None and alias.this is not None else otherwise
        columns = _renamed(columns, [identifier(each) for each in alias.columns] if alias is not None else [], name)
        scope.add(name, columns)
        scope.seen = (*scope.seen, *columns)

    def _table(self, node: exp.Table, scope: Scope, around: Scope) -> None:
        if node.args.get("rows_from"):
            raise unsupported("ROWS FROM over system relations", position=position(node))
        if not isinstance(node.this, exp.Identifier):
            self._function(node.this, node, scope, around)
            return
        name = identifier(node.this)
        within = scope.query(name) if not node.db else None
        if within is not None:
            self._named(node, within, scope, name)
            return
        found = system_relation(node, self._image, self._names)
        if found is None:
            raise no_relation(f"{node.db}.{name}" if node.db else name, position=position(node))
        columns = tuple((column, PgType(kind)) for column, kind in self._names.system[found[0]][found[1]].items())
        self.relations.add(found)
        self._named(node, columns, scope, name)
        if found[0] == "pg_catalog":
            scope.hidden = {HIDDEN: PgType("oid")}
            scope.with_hidden.add(identifier(node.args["alias"].this) if node.alias else name)

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
        else:
            self._function(inner, node, scope, around)

    def _unnest(self, node: exp.Unnest, scope: Scope, around: Scope) -> None:
        columns = []
        for each in list(node.expressions):
            got = self.visit(each, around)
            element = t.element_of(got.name)
            if element is None:
                told = f"function unnest({t.shown(got.name)}) does not exist"
                raise InvalidUsage(told, sqlstate="42883", position=position(node))
            columns.append(("unnest", PgType(element)))
        alias = node.args.get("alias")
        if len(columns) == 1 and alias is not None and alias.this is not None:
            columns = [(identifier(alias.this), columns[0][1])]
        if node.args.get("offset"):
            columns.append(("ordinality", t.INT8))
        self._named(node, tuple(columns), scope, "unnest")


def _number(node: exp.Parameter) -> int:
    return int(node.this.this)


_NO_TYPES = frozenset("unknown any anyelement anycompatible anynonarray anyarray anycompatiblearray record".split())
"""What says nothing of a parameter's type."""

_AS_WRITTEN = frozenset("unknown any record char numeric anyarray cstring json jsonb".split())
"""What a literal need not be cast to: the engine reads it as it is."""


def written(name: str) -> exp.DataType:
    """A type as a cast names it."""
    if name.startswith("_"):
        return exp.DataType(this=exp.DataType.Type.ARRAY, expressions=[written(name[1:])], nested=True)
    return exp.DataType(this=exp.DataType.Type.USERDEFINED, kind=exp.to_identifier(name))


def _is_all(limit: exp.Expression) -> bool:
    """``LIMIT ALL``."""
    return isinstance(limit, (exp.Var, exp.Column)) and limit.name.lower() == "all"


def _renamed(columns: Columns, names: Sequence[str], of: str) -> Columns:
    """42P10 where more names are given than there are columns."""
    if len(names) > len(columns):
        told = f'table "{of}" has {len(columns)} columns available but {len(names)} columns specified'
        raise InvalidUsage(told, sqlstate="42P10")
    given = (*names, *(name for name, _ in columns[len(names) :]))
    return tuple((name, kind) for name, (_, kind) in zip(given, columns, strict=True))


def _untyped(branch: exp.Expression, columns: Columns) -> list[PgType]:
    """The types of a branch of a set operation, of which untyped literals may become another one."""
    inner = unnest(branch)
    while isinstance(inner, exp.Subquery):
        inner = unnest(inner.this)
    kinds = [kind for _, kind in columns]
    if isinstance(inner, exp.Select) and len(inner.expressions) == len(kinds):
        for at, each in enumerate(inner.expressions):
            if each.unalias().meta.get(TYPED) == t.UNKNOWN:
                kinds[at] = t.UNKNOWN
    return kinds

