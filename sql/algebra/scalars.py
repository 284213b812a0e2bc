"""A bound tree's expressions as scalars of a plan.

Aggregates and window functions stand in them where they stood; who makes the relation takes them out
(:mod:`sql.algebra.queries`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce

from sqlglot import exp

from plan import scalars as s
from plan.calls import AGGREGATES as AGGREGATE_NAMES
from plan.calls import aggregate, call, function_of, is_known, struct, windowed
from plan.drawn import draws
from plan.relations import Relation
from plan.types import BYTEA, INT8, NOTHING, NUMBER, TEXT, Type, element_of, of_number
from sql.algebra.made_rows import ROW_NUMBER, item
from sql.algebra.scope import NotPlanned, Rows
from trees.budget import OPERATORS, operands
from trees.functions import display_name
from trees.kinds import AGGREGATES, CALLS, IN_SPARKS_TEXT, TRIMS
from trees.nodes import Ordinality, declared_type, makes_items, unnest
from trees.sequence_notes import CALL, CHOOSES, SEQUENCE
from values.types import SqlType, carried


@dataclass(frozen=True)
class Scalars:
    """Translates the expressions of one statement.  ``query`` makes a subquery a relation."""

    query: Callable[[exp.Expression, Rows | None], Relation]
    params: Mapping[int, SqlType]
    variables: Mapping[str, Type] = field(default_factory=dict)
    """What the lambdas around give."""
    lists: dict[s.Scalar, int] = field(default_factory=dict)
    """Those of whose items calls make rows, numbered as they come."""

    def of(self, node: exp.Expression, rows: Rows) -> s.Scalar:
        """``node`` of a row of ``rows``.  Raises ``NotPlanned``."""
        kind = type(node)
        if kind in _RULES:
            return _RULES[kind](self, node, rows)
        if kind in OPERATORS:
            first, *others = operands(node)
            return reduce(lambda left, right: call(CALLS[kind].name, left, self.of(right, rows)), others,
                          self.of(first, rows))  # fmt: skip
        if kind in CALLS or kind in IN_SPARKS_TEXT:
            known = CALLS.get(kind) or IN_SPARKS_TEXT[kind]
            return _chosen(node, call(known.name, *self._arguments(node, known.keys, rows)))
        if kind in AGGREGATES:
            known = AGGREGATES[kind]
            return self._aggregate(known.name, self._given(node, known.keys), rows)
        if isinstance(node, exp.Query):
            return s.scalar_query(self.query(node, rows))
        raise NotPlanned(f"{kind.__name__}: {node.sql()}")

    def sorts(self, order: exp.Expression | None, rows: Rows) -> tuple[s.Sort, ...]:
        return tuple(sort_of(each, self.of(each.this, rows)) for each in order.expressions) if order is not None else ()

    def _given(self, node: exp.Expression, keys: tuple[str, ...]) -> list[exp.Expression]:
        found: list[exp.Expression] = []
        for key in keys:
            value = node.args.get(key)
            found += value if isinstance(value, list) else [value] if value is not None else []
        return found

    def _arguments(self, node: exp.Expression, keys: tuple[str, ...], rows: Rows) -> list[s.Scalar]:
        return [self.of(each, rows) for each in self._given(node, keys)]

    def _aggregate(self, name: str, given: list[exp.Expression], rows: Rows) -> s.Aggregate:
        distinct = False
        arguments: list[s.Scalar] = []
        for each in given:
            if isinstance(each, exp.Order):  # of no consequence for what is left with one
                each = each.this
            if isinstance(each, exp.Distinct):
                distinct = True
                arguments += [self.of(inner, rows) for inner in each.expressions]
            else:
                arguments.append(self.of(each, rows))
        return aggregate(name, tuple(arguments), distinct)

    # -- rules of kinds of nodes --------------------------------------------------------------------------------------

    def _column(self, node: exp.Column, rows: Rows) -> s.Scalar:
        if node.table:
            return rows.column(node.table, node.name)
        if node.name in self.variables:
            return s.Variable(self.variables[node.name], True, node.name)
        return rows.output(node.name)

    def _identifier(self, node: exp.Identifier, rows: Rows) -> s.Scalar:
        if node.name not in self.variables:
            raise NotPlanned(f"the name {node.name}")
        return s.Variable(self.variables[node.name], True, node.name)

    def _literal(self, node: exp.Literal, rows: Rows) -> s.Scalar:
        return s.Literal(TEXT if node.is_string else of_number(node.this), False, node.this)

    def _parameter(self, node: exp.Parameter, rows: Rows) -> s.Scalar:
        number = int(node.this.this)
        kind = self.params[number]
        return s.Parameter(NUMBER if kind.name == "numeric" else carried(kind), True, number)

    def _cast(self, node: exp.Cast, rows: Rows) -> s.Scalar:
        return s.cast(self.of(node.this, rows), carried(declared_type(node.to)))

    def _dot(self, node: exp.Dot, rows: Rows) -> s.Scalar:
        return s.field(self.of(node.this, rows), node.expression.name)

    def _struct(self, node: exp.Struct, rows: Rows) -> s.Scalar:
        names = [each.this.name for each in node.expressions]
        return struct(names, tuple(self.of(each.expression, rows) for each in node.expressions))

    def _case(self, node: exp.Case, rows: Rows) -> s.Scalar:
        operand, default = node.args.get("this"), node.args.get("default")
        branches = tuple((self.of(each.this, rows), self.of(each.args["true"], rows)) for each in node.args["ifs"])
        made = s.case(
            self.of(operand, rows) if operand is not None else None,
            branches,
            self.of(default, rows) if default is not None else None,
        )
        return _chosen(node, made)

    def _is(self, node: exp.Is, rows: Rows) -> s.Scalar:
        right = node.expression
        name = "is_null" if isinstance(right, exp.Null) else "is_true" if right.this else "is_false"
        return _negated(node, call(name, self.of(node.this, rows)))

    def _like(self, node: exp.Binary, rows: Rows, *escape: s.Scalar) -> s.Scalar:
        sides = self._arguments(node, ("this", "expression"), rows)
        return _negated(node, call(CALLS[type(node)].name, *sides, *escape))

    def _escape(self, node: exp.Escape, rows: Rows) -> s.Scalar:
        return self._like(node.this, rows, self.of(node.expression, rows))

    def _between(self, node: exp.Between, rows: Rows) -> s.Scalar:
        value, low, high = self._arguments(node, ("this", "low", "high"), rows)
        made = call("between", value, low, high)
        return call("or", made, call("between", value, high, low)) if node.args.get("symmetric") else made

    def _in(self, node: exp.In, rows: Rows) -> s.Scalar:
        query = node.args.get("query")
        if query is None:
            return _negated(node, call("in", *self._arguments(node, ("this", "expressions"), rows)))
        left = unnest(node.this)
        values = left.expressions if isinstance(left, exp.Tuple) else [left]
        return _negated(node, s.in_rows(tuple(self.of(each, rows) for each in values), self.query(query, rows)))

    def _extract(self, node: exp.Extract, rows: Rows) -> s.Scalar:
        return call("extract", s.Literal(TEXT, False, node.this.name.upper()), self.of(node.expression, rows))

    def _trim(self, node: exp.Trim, rows: Rows) -> s.Scalar:
        side = str(node.args.get("position") or "BOTH").upper()
        given = self._arguments(node, ("this", "expression"), rows)
        return call(f"tm_{TRIMS[side]}{'_text' * len(given)}", *given)

    def _count(self, node: exp.Count, rows: Rows) -> s.Scalar:
        given = [] if node.this is None or isinstance(node.this, exp.Star) else [node.this]
        return self._aggregate("count", given, rows)

    def _filter(self, node: exp.Filter, rows: Rows) -> s.Scalar:
        return replace(self.of(node.this, rows), condition=self.of(node.expression.this, rows))

    def _within_group(self, node: exp.WithinGroup, rows: Rows) -> s.Scalar:
        return replace(self.of(node.this, rows), within=self.sorts(node.expression, rows))

    def _named(self, node: exp.Anonymous, rows: Rows) -> s.Scalar:
        if SEQUENCE in node.meta:
            return self._sequence_call(node, rows)
        name = str(node.this)
        if name == "STRUCT":
            return struct(None, tuple(self.of(each, rows) for each in node.expressions))
        if makes_items(node):
            items = self.of(node.expressions[0], rows)
            return item(items, self.lists.setdefault(items, len(self.lists)))
        if name.lower() in AGGREGATE_NAMES:
            return self._aggregate(name.lower(), node.expressions, rows)
        if not is_known(name.lower()):
            raise NotPlanned(f"the function {name}")
        arguments: list[s.Scalar] = []
        for each in node.expressions:
            made = self._lambda(each, arguments[0].type, rows) if isinstance(each, exp.Lambda) else self.of(each, rows)
            arguments.append(made)
        return call(name.lower(), *arguments)

    def _sequence_call(self, node: exp.Anonymous, rows: Rows) -> s.Scalar:
        arguments = tuple(self.of(each, rows) for each in node.expressions[1:])
        return s.SequenceCall(INT8, True, display_name(node), node.meta[SEQUENCE], node.meta[CALL], arguments)

    def _lambda(self, node: exp.Lambda, over: Type, rows: Rows) -> s.Scalar:
        names = tuple(each.name for each in node.expressions)
        inner = replace(self, variables={**self.variables, names[0]: element_of(over)})
        return function_of(names, inner.of(node.this, rows))

    def _window(self, node: exp.Window, rows: Rows) -> s.Scalar:
        made = self.of(node.this, rows)
        if not isinstance(made, s.Aggregate):
            raise NotPlanned(f"a window over {node.this.sql()}")
        base = self._base(node)
        partition = node.args.get("partition_by") or (base.args.get("partition_by") if base is not None else None)
        order = node.args.get("order") or (base.args.get("order") if base is not None else None)
        spec = node.args.get("spec") or (base.args.get("spec") if base is not None else None)
        return windowed(
            made,
            tuple(self.of(each, rows) for each in partition or ()),
            self.sorts(order, rows),
            self._frame(spec, rows) if spec is not None else None,
        )

    def _base(self, node: exp.Window) -> exp.Expression | None:
        """The window of the WINDOW clause that ``node`` names."""
        name = node.args.get("alias")
        if name is None:
            return None
        for select in _selects_around(node):
            for each in select.args.get("windows") or ():
                if each.name == name.name:
                    return each
        raise NotPlanned(f"the window {name.name}")

    def _frame(self, spec: exp.WindowSpec, rows: Rows) -> s.Frame:
        if spec.args.get("exclude"):
            raise NotPlanned("EXCLUDE of a frame")
        end = self._bound(spec, "end", rows) if spec.args.get("end") is not None else None
        return s.Frame(spec.args["kind"].lower(), self._bound(spec, "start", rows), end)

    def _bound(self, spec: exp.WindowSpec, key: str, rows: Rows) -> s.Bound:
        value, way = spec.args[key], str(spec.args.get(f"{key}_side") or "").lower()
        if isinstance(value, str):
            return s.Bound("current row") if value.upper() == "CURRENT ROW" else s.Bound(way)
        if isinstance(value, exp.Interval):
            return s.Bound(way, self.of(value.this, rows), value.args["unit"].name)
        return s.Bound(way, self.of(value, rows))

    def _exists(self, node: exp.Exists, rows: Rows) -> s.Scalar:
        return s.exists(self.query(node.this, rows))

    def _subquery(self, node: exp.Subquery, rows: Rows) -> s.Scalar:
        return s.scalar_query(self.query(node, rows))


def sort_of(ordered: exp.Ordered, key: s.Scalar) -> s.Sort:
    """``key`` as ORDER BY has it."""
    return s.Sort(key, bool(ordered.args.get("desc")), bool(ordered.args.get("nulls_first")))


def _chosen(node: exp.Expression, made: s.Scalar) -> s.Scalar:
    """``made`` of ``node``, as a choice where calls of sequences are in it that it may not evaluate."""
    noted = node._meta is not None and CHOOSES in node._meta
    return s.Choice(made.type, made.nullable, made) if noted and draws(made) else made


def _negated(node: exp.Expression, made: s.Scalar) -> s.Scalar:
    return call("not", made) if node.args.get("negate") else made


def _selects_around(node: exp.Expression):
    above = node.find_ancestor(exp.Select)
    while above is not None:
        yield above
        above = above.find_ancestor(exp.Select)


_RULES: dict[type[exp.Expression], Callable[[Scalars, exp.Expression, Rows], s.Scalar]] = {
    exp.Column: Scalars._column,
    exp.Identifier: Scalars._identifier,
    exp.Literal: Scalars._literal,
    exp.Null: lambda c, node, rows: s.Literal(NOTHING, True, None),
    exp.Boolean: lambda c, node, rows: s.truth(node.this),
    exp.HexString: lambda c, node, rows: s.Literal(BYTEA, False, node.this or ""),
    exp.Parameter: Scalars._parameter,
    exp.Paren: lambda c, node, rows: c.of(node.this, rows),
    exp.Alias: lambda c, node, rows: c.of(node.this, rows),
    exp.Cast: Scalars._cast,
    exp.Dot: Scalars._dot,
    exp.Struct: Scalars._struct,
    exp.Case: Scalars._case,
    exp.Is: Scalars._is,
    exp.Like: Scalars._like,
    exp.ILike: Scalars._like,
    exp.Escape: Scalars._escape,
    exp.Between: Scalars._between,
    exp.In: Scalars._in,
    exp.Extract: Scalars._extract,
    exp.Trim: Scalars._trim,
    exp.Count: Scalars._count,
    exp.Filter: Scalars._filter,
    exp.WithinGroup: Scalars._within_group,
    exp.Anonymous: Scalars._named,
    exp.Window: Scalars._window,
    exp.Exists: Scalars._exists,
    exp.Subquery: Scalars._subquery,
    Ordinality: lambda c, node, rows: ROW_NUMBER,
}
