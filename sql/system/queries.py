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
from plan import relations as r
from sql.objects.names import ImageLike, Names
from sql.system import types as t
from sql.system.algebra import plan_of
from sql.system.calls import identifier, output_name
from sql.system.deduced import Deduced
from sql.system.expressions import RULES, call
from sql.system.notes import COLUMNS, NAMED, OUTPUT, RELATION, STAR, TYPED
from sql.system.placed import check_places
from sql.system.scope import Columns, Named, Scope, columns_of, row_of
from sql.system.sources import Sources, renamed
from sql.system.types import PgType
from trees.errors import mismatch, unsupported
from trees.nodes import named_type, position, unnest


@dataclass(frozen=True)
class SystemQuery:
    """A query with its types.  ``tree`` still holds parameters (:mod:`sql.system.parameters` puts values there)."""

    tree: exp.Expression
    plan: r.Query
    columns: Columns
    params: Mapping[int, PgType]
    relations: frozenset[tuple[str, str]]
    """The schemas and names of what it reads."""


def typed_query(
    tree: exp.Expression, image: ImageLike, names: Names, declared: Mapping[int, PgType] | None = None
) -> SystemQuery:
    """``tree``, of which a copy is made, with its types; ``declared``: those of parameters that a client has told."""
    holder = exp.Paren(this=tree.copy())
    typer = Typer(image, names, declared or {})
    columns = typer.query(holder.this, Scope())
    if not columns:
        raise unsupported("a query without outputs")
    typer.parameters.check(holder.this)
    plan = plan_of(holder.this, columns, typer.parameters.kinds)
    return SystemQuery(holder.this, plan, columns, typer.parameters.kinds, frozenset(typer.relations))


class Typer(Sources):
    def __init__(self, image: ImageLike, names: Names, declared: Mapping[int, PgType]) -> None:
        super().__init__(image, names)
        self.parameters = Deduced(declared)

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
            self.parameters.deduce(inner, wanted)
            return
        if not isinstance(inner, exp.Literal) or not inner.is_string or wanted in _AS_WRITTEN:
            return
        if t.is_textual(wanted) or inner.meta.get(TYPED, t.UNKNOWN) != t.UNKNOWN:
            return
        made = exp.Cast(this=inner.copy(), to=named_type(wanted))
        made.meta[TYPED] = PgType(wanted)
        inner.replace(made)

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
        scope = Scope(above)
        self._with(node, scope)
        if isinstance(node, exp.Subquery):
            found = self.query(node.this, scope, branch)
            self._order(node, self._outputs_alone(node, scope, found), found)
        elif isinstance(node, exp.SetOperation):
            found = self._set_operation(node, scope)
        elif isinstance(node, exp.Values):
            found = self._values(node, scope)
            self._order(node, self._outputs_alone(node, scope, found), found)
        elif isinstance(node, exp.Select):
            found = self._select(node, scope, branch)
        else:
            raise unsupported("this query over system relations", position=position(node))
        node.meta[COLUMNS] = found
        return found

    def _outputs_alone(self, node: exp.Expression, above: Scope, found: Columns) -> Scope:
        """The scope of what sorts rows whose outputs are all that is seen."""
        self.number(node)
        return Scope(above, seen=row_of(node.meta[RELATION], found))

    def _with(self, node: exp.Expression, scope: Scope) -> None:
        written = node.args.get("with_")
        for each in written.expressions if written is not None else ():
            name = identifier(each.args["alias"].this)
            named = [identifier(column) for column in each.args["alias"].columns]
            inner = unnest(each.this)
            unique = each.meta.setdefault(NAMED, f"{name}_{next(self._numbers)}")
            if written.args.get("recursive") and isinstance(inner, exp.SetOperation):
                first = self.query(inner.this, scope)
                scope.queries[name] = Named(unique, renamed(first, named, name))
            found = each.meta[COLUMNS] = renamed(self.query(each.this, scope), named, name)
            scope.queries[name] = Named(unique, found)

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
        for each in branches:
            _tell_outputs(each, found)
        self._order(node, self._outputs_alone(node, scope, found), found)
        for each in node.args["order"].expressions if node.args.get("order") is not None else ():
            if OUTPUT not in each.this.meta:
                raise InvalidUsage(
                    "invalid UNION/INTERSECT/EXCEPT ORDER BY clause", sqlstate="0A000", position=position(each),
                    detail="Only result column names can be used, not expressions or functions.",
                    hint="add the expression to every SELECT, or move the UNION into a FROM clause",
                )  # fmt: skip
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
        self.from_(node, scope)
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
        self._order(node, scope, found)
        check_places(node)
        for each in [] if branch else list(node.expressions):
            if each.unalias().meta.get(TYPED) == t.UNKNOWN:
                self.give(each.unalias(), "text")
        return found

    def _output(self, each: exp.Expression, scope: Scope) -> Columns:
        if isinstance(each, exp.Star):
            if not scope.relations:
                told = "SELECT * with no tables specified is not valid"
                raise InvalidUsage(told, sqlstate="42601", position=position(each))
            each.meta[STAR] = scope.seen
            return columns_of(scope.seen)
        if isinstance(each, exp.Column) and isinstance(each.this, exp.Star):
            row = each.meta[STAR] = scope.relation(identifier(each.args["table"]), position(each))
            return columns_of(row)
        if isinstance(each, exp.Dot) and isinstance(each.expression, exp.Star):
            return self.visit(each.this, scope).fields
        return ((output_name(each), self.visit(each.unalias(), scope)),)

    def _group(self, node: exp.Select, scope: Scope, found: Columns) -> None:
        group = node.args.get("group")
        for each in group.iter_expressions() if group is not None else ():
            self._grouped_by(each, scope, found)

    def _grouped_by(self, each: exp.Expression, scope: Scope, found: Columns) -> None:
        inner = unnest(each)
        if isinstance(inner, (exp.Cube, exp.Rollup, exp.GroupingSets, exp.Tuple)):
            for part in list(inner.expressions):
                self._grouped_by(part, scope, found)
        elif _is_name(inner) and scope.own(identifier(inner.this), position(inner)) is not None:
            self.visit(inner, scope)  # a column comes before an output of its name here
        else:
            self._by_output(inner, scope, found)

    def _by_output(self, each: exp.Expression, scope: Scope, found: Columns) -> None:
        """What is a column of the query's inputs, or of its outputs, or a place.  42P10 where there is no such."""
        inner = unnest(each)
        if isinstance(inner, exp.Literal):
            where = _CLAUSES.get(type(each.parent), "ORDER BY")
            if inner.is_string or not inner.this.isdigit():
                raise InvalidUsage(f"non-integer constant in {where}", sqlstate="42601", position=position(each))
            place = int(inner.this) - 1
            if not 0 <= place < len(found):
                told = f"{where} position {inner.this} is not in select list"
                raise InvalidUsage(told, sqlstate="42P10", position=position(each))
            each.meta[OUTPUT] = place
            return
        if _is_name(inner):
            name = identifier(inner.this)
            places = [place for place, (each_name, _) in enumerate(found) if each_name == name]
            if places:
                each.meta[OUTPUT] = places[0]
                return
        self.visit(each, scope)
        self.give(each, "text")  # of no type at all, it is a text

    def _order(self, node: exp.Expression, scope: Scope, found: Columns) -> None:
        order = node.args.get("order")
        for each in order.expressions if order is not None else ():
            self._by_output(each.this if isinstance(each, exp.Ordered) else each, scope, found)
        for key in ("limit", "offset"):
            part = node.args.get(key)
            value = part.args.get("expression") or part.args.get("count") if part is not None else None
            if isinstance(value, exp.Expression) and not is_all(value):
                self.visit(value, scope)
                for named in [value, *value.find_all(exp.Column)]:
                    if not isinstance(named, exp.Column) or named.find_ancestor(exp.Query) is not part.parent:
                        continue
                    if named.table and named.table.lower() not in scope.relations:
                        raise unsupported(f"{key.upper()} of a column from around a subquery", position=position(named))
                    told = f"argument of {key.upper()} must not contain variables"
                    raise InvalidUsage(told, sqlstate="42P10", position=position(named))
                self.give(value, "int8")

_CLAUSES = {exp.Group: "GROUP BY", exp.Rollup: "GROUP BY", exp.Cube: "GROUP BY", exp.GroupingSets: "GROUP BY",
            exp.Distinct: "SELECT DISTINCT ON"}  # fmt: skip


def _is_name(node: exp.Expression) -> bool:
    """Whether it is a name of no relation."""
    return isinstance(node, exp.Column) and not node.table and not isinstance(node.this, exp.Star)


def _tell_outputs(branch: exp.Expression, found: Columns) -> None:
    """Note on a branch of a set operation what its outputs become."""
    inner = unnest(branch)
    inner.meta[COLUMNS] = found


_AS_WRITTEN = frozenset("unknown any record char numeric anyarray cstring json jsonb".split())
"""What a literal need not be cast to: the engine reads it as it is."""


def is_all(limit: exp.Expression) -> bool:
    """``LIMIT ALL``."""
    return isinstance(limit, (exp.Var, exp.Column)) and limit.name.lower() == "all"


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

