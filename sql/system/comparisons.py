"""Operators and conditions of a typed tree as scalars: also of rows, of IN, and of ANY and ALL.  Pure."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from plan import relations as r
from plan import scalars as s
from plan.columns import moved
from plan.types import BOOL, Row, element_of
from sql.algebra.scalars import Scalars
from sql.algebra.scope import NotPlanned, Rows
from sql.system.carriers import call
from sql.system.notes import COLUMNS, TYPED
from sql.system.operators import applied, compared, negated, quantified, sign_of
from sql.system.types import BOOL as T_BOOL
from sql.system.types import PgType
from sql.system.types import element_of as item_of
from trees.nodes import unnest

_ORDERS = frozenset({"<", "<=", ">", ">="})


class Comparisons(Scalars):
    def all(self, nodes: Sequence[exp.Expression], rows: Rows) -> list[s.Scalar]:
        return [self.of(each, rows) for each in nodes]

    def _operator(self, node: exp.Expression, rows: Rows) -> s.Scalar:
        sign, right = sign_of(node), node.args["expression"]
        if node.args.get("negate"):
            sign = f"!{sign}"
        each = _each_of(right)
        if each is not None:
            return self._quantified(node, sign, *each, rows)
        left, right = unnest(node.this), unnest(right)
        if isinstance(left, exp.Tuple) and isinstance(right, exp.Tuple):
            pairs = self.all(left.expressions, rows), self.all(right.expressions, rows)
            if sign in _ORDERS:
                return _in_order(sign, *pairs)
            return compared(sign, *(row_of(each) for each in pairs)) if sign not in ("=", "<>") else _same(sign, *pairs)
        if isinstance(left, exp.Tuple) and isinstance(right, exp.Query):
            if sign not in ("=", "<>"):
                raise NotPlanned("this comparison with a row")
            return negated(s.in_rows(tuple(self.all(left.expressions, rows)), self.query(right, rows)), sign == "<>")
        return applied(sign, self.of(left, rows), kind_of(left), self.of(right, rows), kind_of(right), kind_of(node))

    def _quantified(
        self, node: exp.Expression, sign: str, inner: exp.Expression, every: bool, rows: Rows
    ) -> s.Scalar:
        left, kind = self.of(node.this, rows), kind_of(node.this)
        if isinstance(inner, (exp.Query, exp.Subquery)):
            found = self.query(inner, rows)
            if sign == "=" and not every:
                return s.in_rows((left,), found)
            if sign == "<>" and every:
                return negated(s.in_rows((left,), found), True)
            item = found.column(0)
            return quantified(found, every, applied(sign, moved(left, 1), kind, item, _output_kind(inner), T_BOOL))
        items, of_items = self.of(inner, rows), kind_of(inner)
        if sign == "=" and not every:
            return call(BOOL, "tm_is_any", left, items)
        if sign == "<>" and every:
            return negated(call(BOOL, "tm_is_any", left, items), True)
        found = r.TableFunction(r.UNIT, moved(items, 1), r.Kind(element_of(items.type), True))
        item = PgType(item_of(of_items.name) or "text")
        return quantified(found, every, applied(sign, moved(left, 1), kind, found.column(0), item, T_BOOL))

    def _connector(self, node: exp.Connector, rows: Rows) -> s.Scalar:
        """A chain of one sign is a loop: it may be as long as it likes."""
        chain = [node]
        while isinstance(chain[-1].this, type(node)):
            chain.append(chain[-1].this)
        name = "and" if isinstance(node, exp.And) else "or"
        found = self.of(chain[-1].this, rows)
        for each in reversed(chain):
            found = compared(name, found, self.of(each.expression, rows))
        return found

    def _not(self, node: exp.Not, rows: Rows) -> s.Scalar:
        return negated(self.of(node.this, rows), True)

    def _is(self, node: exp.Is, rows: Rows) -> s.Scalar:
        right = node.expression
        name = "is_null" if isinstance(right, exp.Null) else "is_true" if right.this else "is_false"
        value = self.of(node.this, rows)
        if isinstance(value, s.Struct) and name == "is_null":
            parts = [s.Call(BOOL, False, name, (each,)) for each in value.values]
            found = parts[0]
            for each in parts[1:]:
                found = compared("and", found, each)
            return negated(found, bool(node.args.get("negate")))
        return negated(s.Call(BOOL, False, name, (value,)), bool(node.args.get("negate")))

    def _in(self, node: exp.In, rows: Rows) -> s.Scalar:
        return negated(self._is_in(node, rows), bool(node.args.get("negate")))

    def _is_in(self, node: exp.In, rows: Rows) -> s.Scalar:
        query = node.args.get("query")
        left = unnest(node.this)
        if query is not None:
            sides = left.expressions if isinstance(left, exp.Tuple) else [left]
            return s.in_rows(tuple(self.all(sides, rows)), self.query(query, rows))
        if isinstance(left, exp.Tuple):
            values = self.all(left.expressions, rows)
            tuples = [self.all(unnest(each).expressions, rows) for each in node.expressions]
            found = _same("=", values, tuples[0])
            for each in tuples[1:]:
                found = compared("or", found, _same("=", values, each))
            return found
        value, kind = self.of(left, rows), kind_of(left)
        if kind.name == "regproc" or any(kind_of(each).name == "regproc" for each in node.expressions):
            parts = [applied("=", value, kind, self.of(e, rows), kind_of(e), T_BOOL) for e in node.expressions]
            found = parts[0]
            for each in parts[1:]:
                found = compared("or", found, each)
            return found
        return call(BOOL, "in", value, *self.all(node.expressions, rows))

    def _between(self, node: exp.Between, rows: Rows) -> s.Scalar:
        value, low, high = (self.of(node.args[key], rows) for key in ("this", "low", "high"))
        if all(isinstance(each, s.Struct) for each in (value, low, high)):
            made, turned = (
                compared("and", _in_order(">=", value.values, one.values), _in_order("<=", value.values, other.values))
                for one, other in ((low, high), (high, low))
            )
            return compared("or", made, turned) if node.args.get("symmetric") else made
        made = call(BOOL, "between", value, low, high)
        return compared("or", made, call(BOOL, "between", value, high, low)) if node.args.get("symmetric") else made


def kind_of(node: exp.Expression) -> PgType:
    found = node.meta.get(TYPED)
    if found is None and isinstance(node, (exp.Query, exp.Subquery)):
        return _output_kind(node)
    return found if found is not None else PgType("unknown")


def _output_kind(query: exp.Expression) -> PgType:
    """The type of a query's one output."""
    while COLUMNS not in query.meta:
        query = query.this
    return query.meta[COLUMNS][0][1]


def _each_of(right: exp.Expression) -> tuple[exp.Expression, bool] | None:
    """What ``ANY (…)`` and ``ALL (…)`` are of, and whether it is ALL."""
    if isinstance(right, (exp.Any, exp.All)):
        return unnest(right.this), isinstance(right, exp.All)
    if isinstance(right, exp.Anonymous) and str(right.this).lower() in ("all", "some") and len(right.expressions) == 1:
        return unnest(right.expressions[0]), str(right.this).lower() == "all"
    return None


def row_of(values: Sequence[s.Scalar]) -> s.Struct:
    return s.Struct(Row(tuple((f"f{at}", each.type) for at, each in enumerate(values, 1))), False, tuple(values), True)


def _in_order(sign: str, left: Sequence[s.Scalar], right: Sequence[s.Scalar]) -> s.Scalar:
    """Rows compared by the first values that differ: NULL where one of these is missing, as in Postgres, while the
    engine takes a NULL in a row for the greatest value."""
    *before, last = zip(left, right, strict=True)
    found = compared(sign, *last)
    for one, other in reversed(before):
        found = s.Case(BOOL, True, None, ((compared("=", one, other), found),), compared(sign[0], one, other))
    return found


def _same(sign: str, left: Sequence[s.Scalar], right: Sequence[s.Scalar]) -> s.Scalar:
    """Rows compared value by value."""
    pairs = [compared("=", one, other) for one, other in zip(left, right, strict=True)]
    found = pairs[0]
    for each in pairs[1:]:
        found = compared("and", found, each)
    return negated(found, sign == "<>")
