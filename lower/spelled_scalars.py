"""A plan's scalars as expressions of a bound tree: what :mod:`sql.algebra.scalars` reads, the other way round.

Promises: what :meth:`Spelling.of` gives reads back as the scalar that it was given, its nodes of the classes that
lowerings look for, with what they look for noted on them.  Printed for any engine it means the same: what binds looser
than where it stands is in brackets, since nobody who prints adds any.  Raises :class:`NotSpelled`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from plan import scalars as s
from plan.relations import Relation
from plan.types import (
    BOOL,
    BYTEA,
    NOTHING,
    SPAN,
    TEXT,
    ListOf,
    Native,
    Type,
    fields_of,
    is_float,
    is_number,
    of_number,
)
from trees.budget import OPERATORS
from trees.kinds import AGGREGATES, CALLS, CallOf
from trees.nodes import cast, loose
from values.types import SqlType


class NotSpelled(Exception):
    """The plan says what no bound tree says; the message is what that is."""


@dataclass(frozen=True)
class Scope:
    """What the columns of a row are written as where a scalar stands, and the rows around that one."""

    columns: Sequence[exp.Expression]
    outer: Scope | None = None

    def column(self, column: s.Column) -> exp.Expression:
        scope: Scope | None = self
        for _ in range(column.level):
            scope = scope.outer if scope is not None else None
        if scope is None:
            raise NotSpelled("a column of a row that is not in this part of the plan")
        found = scope.columns[column.position]
        # An aggregate or an expression would be the inner query's own there.
        assert column.level == 0 or isinstance(found, exp.Column), found
        return loose(found)


def identifier(name: str) -> exp.Identifier:
    return exp.Identifier(this=name, quoted=True)


_NODES: dict[str, tuple[type[exp.Expression], CallOf]] = {known.name: (kind, known) for kind, known in CALLS.items()}
_FOLDING: dict[str, tuple[type[exp.Expression], CallOf]] = {
    known.name: (kind, known) for kind, known in AGGREGATES.items()
}
_TESTS: dict[str, Callable[[], exp.Expression]] = {"is_null": exp.Null, "is_true": exp.true, "is_false": exp.false}

_LOOSE = (exp.Binary, exp.Unary, exp.Between, exp.In)
"""What is printed as signs and words around its operands."""
_CLOSED = (exp.Paren, exp.Dot)

_CHAINS: dict[type[exp.Expression], tuple[type[exp.Expression], ...]] = {
    exp.DPipe: (exp.DPipe,), exp.Mul: (exp.Mul,),
    exp.Add: (exp.Add, exp.Sub), exp.Sub: (exp.Add, exp.Sub),
}  # fmt: skip
"""What may stand on the left of an operator without brackets.  Chains stay chains: the lowerings look at
``a || b || c`` as one, and with brackets around each operator they would be twice as deep."""


def bracketed(node: exp.Expression) -> exp.Expression:
    """``node`` as an operand."""
    return exp.Paren(this=node) if isinstance(node, _LOOSE) and not isinstance(node, _CLOSED) else node


_LOOSEST = {exp.And, exp.Or}
"""What all else binds closer than, and what means the same wherever its own brackets are: the binder makes long ones as
wide as they are deep."""


@dataclass(frozen=True)
class Spelling:
    """``query`` makes a tree of a relation that a scalar is over, whose rows around are a scope."""

    query: Callable[[Relation, Scope], exp.Expression]

    def of(self, scalar: s.Scalar, scope: Scope) -> exp.Expression:
        rule = _RULES.get(type(scalar))
        if rule is None:
            raise NotSpelled(f"{type(scalar).__name__} where a value is worked out of one row")
        return rule(self, scalar, scope)

    def operand(self, scalar: s.Scalar, scope: Scope) -> exp.Expression:
        return bracketed(self.of(scalar, scope))

    def all(self, scalars: Sequence[s.Scalar], scope: Scope) -> list[exp.Expression]:
        return [self.of(each, scope) for each in scalars]

    # -- what folds rows ----------------------------------------------------------------------------------------------

    def aggregate(self, node: s.Aggregate, scope: Scope) -> exp.Expression:
        made = self._folded(node, scope)
        if node.within:
            made = exp.WithinGroup(this=made, expression=self.order(node.within, scope))
        if node.condition is not None:
            made = exp.Filter(this=made, expression=exp.Where(this=self.of(node.condition, scope)))
        return made

    def _folded(self, node: s.Aggregate, scope: Scope) -> exp.Expression:
        given = self.all(node.arguments, scope)
        if node.distinct:
            if len(given) != 1 and (node.name not in ("listagg", "string_agg") or not given):
                raise NotSpelled(f"{node.name}(DISTINCT …) of {len(given)} arguments")
            given[0] = exp.Distinct(expressions=[given[0]])
        if node.name == "count":
            if len(given) > 1:
                raise NotSpelled("count() of several arguments")
            return exp.Count(this=given[0] if given else exp.Star(), big_int=True)
        if node.name in _FOLDING:
            return _node(*_FOLDING[node.name], given)
        made = exp.Anonymous(this=node.name.upper(), expressions=given)
        if node.name != "grouping":
            made.meta["aggregate"] = True
        return made

    def window(self, node: s.WindowCall, scope: Scope) -> exp.Expression:
        return exp.Window(
            this=self.aggregate(node.function, scope),
            partition_by=self.all(node.partition, scope),
            order=self.order(node.order, scope) if node.order else None,
            spec=self._frame(node.frame, scope) if node.frame is not None else None,
            over="OVER",
        )

    def order(self, sorts: Sequence[s.Sort], scope: Scope) -> exp.Order:
        return exp.Order(expressions=[ordered(self.of(each.key, scope), each) for each in sorts])

    def _frame(self, frame: s.Frame, scope: Scope) -> exp.WindowSpec:
        made = exp.WindowSpec(kind=frame.by)
        for key, bound in (("start", frame.start), ("end", frame.end)):
            if bound is None:
                continue
            if bound.way == "current row":
                made.set(key, "CURRENT ROW")
                continue
            made.set(key, "UNBOUNDED" if bound.amount is None else self._distance(bound, scope))
            made.set(f"{key}_side", bound.way)
        return made

    def _distance(self, bound: s.Bound, scope: Scope) -> exp.Expression:
        amount = self.of(bound.amount, scope)
        return exp.Interval(this=amount, unit=exp.var(bound.unit)) if bound.unit else amount

    # -- rules of kinds of scalars ------------------------------------------------------------------------------------

    def _call(self, node: s.Call, scope: Scope) -> exp.Expression:
        name, given = node.name, node.arguments
        if name in _SPECIAL:
            return _SPECIAL[name](self, node, scope)
        if name not in _NODES:
            return exp.Anonymous(this=name.upper(), expressions=self.all(given, scope))
        kind, known = _NODES[name]
        if kind in OPERATORS:
            return self._chain(kind, known, node, scope)
        made = self.all(given, scope)
        if not issubclass(kind, _LOOSE):
            return _node(kind, known, made)
        if kind in _LOOSEST:
            other = _LOOSEST - {kind}
            return _node(kind, known, [exp.Paren(this=each) if type(each) in other else each for each in made])
        chained = isinstance(made[0], _CHAINS.get(kind, ()))
        return _node(kind, known, [made[0] if chained else bracketed(made[0]), *map(bracketed, made[1:])])

    def _chain(self, kind: type[exp.Expression], known: CallOf, node: s.Call, scope: Scope) -> exp.Expression:
        """A chain of one operator, which takes no stack."""
        behind: list[s.Scalar] = []
        first: s.Scalar = node
        while isinstance(first, s.Call) and first.name == node.name:
            first, right = first.arguments
            behind.append(right)
        made = self.of(first, scope)
        if not isinstance(made, _CHAINS[kind]):
            made = bracketed(made)
        for right in reversed(behind):
            made = _node(kind, known, [made, self.operand(right, scope)])
        return made

    def _test(self, node: s.Call, scope: Scope) -> exp.Expression:
        return exp.Is(this=self.operand(node.arguments[0], scope), expression=_TESTS[node.name]())

    def _like(self, node: s.Call, scope: Scope) -> exp.Expression:
        text, pattern, *escape = (self.operand(each, scope) for each in node.arguments)
        made = _NODES[node.name][0](this=text, expression=pattern)
        return exp.Escape(this=made, expression=escape[0]) if escape else made

    def _in(self, node: s.Call, scope: Scope) -> exp.Expression:
        value, *others = node.arguments
        return exp.In(this=self.operand(value, scope), expressions=self.all(others, scope))

    def _extract(self, node: s.Call, scope: Scope) -> exp.Expression:
        part, value = node.arguments
        return exp.Extract(this=exp.var(part.value), expression=self.operand(value, scope))

    def _column(self, node: s.Column, scope: Scope) -> exp.Expression:
        return scope.column(node)

    def _literal(self, node: s.Literal, scope: Scope) -> exp.Expression:
        kind, value = node.type, node.value
        if value is None:
            return exp.Null() if kind == NOTHING else _cast(exp.Null(), kind)
        if kind == TEXT:
            return exp.Literal.string(value)
        if kind == BOOL:
            return exp.Boolean(this=value == "true")
        if kind == BYTEA:
            return exp.HexString(this=value)
        if not is_number(kind):
            return _cast(exp.Literal.string(value), kind)
        written = exp.Literal(this=value.lstrip("-"), is_string=False)
        found = of_number(value) if not is_float(kind) else None
        written.meta["sql_type"] = found or of_number(written.this)
        made = exp.Neg(this=written) if value.startswith("-") else written
        return made if found == kind else _cast(made, kind)

    def _parameter(self, node: s.Parameter, scope: Scope) -> exp.Expression:
        return exp.Parameter(this=exp.Literal.number(node.number))

    def _variable(self, node: s.Variable, scope: Scope) -> exp.Expression:
        return exp.to_identifier(node.name)

    def _lambda(self, node: s.Lambda, scope: Scope) -> exp.Expression:
        return exp.Lambda(
            this=self.of(node.body, scope), expressions=[exp.to_identifier(each) for each in node.variables]
        )

    def _cast(self, node: s.Cast, scope: Scope) -> exp.Expression:
        return _cast(self.of(node.value, scope), node.type)

    def _case(self, node: s.Case, scope: Scope) -> exp.Expression:
        return exp.Case(
            this=self.operand(node.operand, scope) if node.operand is not None else None,
            ifs=[exp.If(this=self.of(when, scope), true=self.of(then, scope)) for when, then in node.branches],
            default=self.of(node.otherwise, scope) if node.otherwise is not None else None,
        )

    def _struct(self, node: s.Struct, scope: Scope) -> exp.Expression:
        values = self.all(node.values, scope)
        if node.bare:
            return exp.Anonymous(this="STRUCT", expressions=values)
        names = [name for name, _ in fields_of(node.type)]
        pairs = zip(names, values, strict=True)
        return exp.Struct(expressions=[exp.PropertyEQ(this=identifier(n), expression=each) for n, each in pairs])

    def _field(self, node: s.Field, scope: Scope) -> exp.Expression:
        value = self.of(node.value, scope)
        of = value if isinstance(value, exp.Identifier) else exp.Paren(this=value)
        return exp.Dot(this=of, expression=identifier(node.name))

    def _exists(self, node: s.Exists, scope: Scope) -> exp.Expression:
        return exp.Exists(this=self.query(node.relation, scope))

    def _in_rows(self, node: s.InRows, scope: Scope) -> exp.Expression:
        values = [self.operand(each, scope) for each in node.values]
        left = values[0] if len(values) == 1 else exp.Tuple(expressions=values)
        return exp.In(this=left, query=exp.Subquery(this=self.query(node.relation, scope)))

    def _scalar_query(self, node: s.ScalarQuery, scope: Scope) -> exp.Expression:
        return exp.Subquery(this=self.query(node.relation, scope))


def ordered(key: exp.Expression, sort: s.Sort) -> exp.Ordered:
    return exp.Ordered(this=key, desc=sort.descending, nulls_first=sort.nulls_first)


def _node(kind: type[exp.Expression], known: CallOf, given: list[exp.Expression]) -> exp.Expression:
    """The node of ``kind``, whose arguments are under the keys that are known of it."""
    made = kind(**dict(known.said))
    for place, key in enumerate(known.keys):
        if key == "expressions":
            made.set(key, given[place:])
            return made
        if place < len(given):
            made.set(key, given[place])
    if len(given) > len(known.keys) or any(kind.arg_types[each] for each in known.keys[len(given) :]):
        raise NotSpelled(f"{known.name} of {len(given)} arguments")
    return made


def _cast(value: exp.Expression, kind: Type) -> exp.Expression:
    if (word := _native(kind)) is not None:
        return exp.Cast(this=value, to=exp.DataType.build(word, dialect="duckdb"))
    if not isinstance(kind, SqlType) or kind in (NOTHING, SPAN):
        raise NotSpelled(f"a cast to {kind}")
    return cast(value, kind)


def _native(kind: Type) -> str | None:
    """The word of the one engine that has ``kind``; ``None`` of what all have."""
    if isinstance(kind, ListOf):
        element = _native(kind.element)
        return None if element is None else f"{element}[]"
    return kind.word if isinstance(kind, Native) else None


_SPECIAL: dict[str, Callable[[Spelling, s.Call, Scope], exp.Expression]] = {
    **dict.fromkeys(_TESTS, Spelling._test), **dict.fromkeys(("like", "ilike"), Spelling._like), "in": Spelling._in,
    "extract": Spelling._extract,
}  # fmt: skip

_RULES: dict[type[s.Scalar], Callable[[Spelling, s.Scalar, Scope], exp.Expression]] = {
    s.Column: Spelling._column, s.Literal: Spelling._literal, s.Parameter: Spelling._parameter,
    s.Call: Spelling._call, s.Variable: Spelling._variable, s.Lambda: Spelling._lambda, s.Cast: Spelling._cast,
    s.Case: Spelling._case, s.Struct: Spelling._struct, s.Field: Spelling._field, s.Exists: Spelling._exists,
    s.InRows: Spelling._in_rows, s.ScalarQuery: Spelling._scalar_query,
}  # fmt: skip
"""Aggregates and window functions are said by who has rows for them."""
