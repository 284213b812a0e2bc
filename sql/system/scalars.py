"""Expressions of a typed tree as scalars of a plan: a rule for each kind of node.  Pure.

Promises: what a rule gives has the carrier of the type that the node was found to have.  Functions keep Postgres's
names (``format_type``); what operators and forms of the grammar mean that the plan has no word for is a call by a name
of ours (``tm_array_out``), or of Postgres's function for it (``regexp_matches``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from sqlglot import exp

from journal.errors import InvalidUsage
from plan import relations as r
from plan import scalars as s
from plan.types import BOOL, FLOAT8, INT4, INT8, NOTHING, TEXT, ListOf, Row, Type, element_of, list_of
from sql.algebra.scalars import Scalars
from sql.algebra.scope import NotPlanned, Rows
from sql.system.calls import AGGREGATES, WINDOWS, arguments, called
from sql.system.carriers import (
    JSON,
    NUMERIC,
    OID,
    SPAN,
    array,
    as_carried,
    call,
    carrier,
    cast,
    number,
    put_out,
    shown,
    text,
)
from sql.system.comparisons import Comparisons, kind_of, row_of
from sql.system.extracted import extracted
from sql.system.formats import formatted
from sql.system.notes import CALLED, MEANS, TAKES, TYPED
from sql.system.operators import applied, negated, signs
from sql.system.rows import makes_rows
from sql.system.scope import Meaning, Merged, Place
from sql.system.types import BOOL as T_BOOL
from sql.system.types import ROWS, VECTORS, PgType
from sql.system.types import element_of as item_of
from trees.errors import no_function
from trees.nodes import position, unnest
from values.numeric import numerics

_WITH_NAMES = frozenset({"row_to_json", "to_json", "json_build_object", "json_build_array"})
"""Functions that write the fields of a row with their names: of a ROW these are ``f1``, ``f2``…"""

_FLOATS, T_UNKNOWN = frozenset({"float4", "float8"}), PgType("unknown")

_AS_TAKEN = frozenset("numeric float4 float8 int2 int4 int8".split())
"""Types of numbers: what stands for one becomes what a function takes."""

_AS_TEXT = {"concat": put_out, "concat_ws": put_out, "quote_literal": shown, "quote_nullable": shown}
"""Functions that take the texts of any values."""


@dataclass(frozen=True)
class SystemScalars(Comparisons):
    made: dict[int, s.Scalar] = field(default_factory=dict)
    """Calls that make rows, by their nodes' ids: what stands for each."""

    def of(self, node: exp.Expression, rows: Rows) -> s.Scalar:
        if id(node) in self.made:
            return self.made[id(node)]
        rule = RULES.get(type(node))
        if rule is not None:
            return rule(self, node, rows)
        if isinstance(node, exp.Query):
            return s.scalar_query(self.query(node, rows))
        if isinstance(node, exp.Func):
            return self._function(node, rows)
        raise NotPlanned("this expression")

    def meaning(self, meaning: Meaning, rows: Rows) -> s.Scalar:
        """A column that a name was found to mean."""
        if isinstance(meaning, Place):
            return rows.column(f"r{meaning.relation}", str(meaning.position))
        if isinstance(meaning, Merged):
            kind = carrier(meaning.kind)
            return call(kind, "coalesce", *(as_carried(self.meaning(each, rows), kind) for each in meaning.sides))
        values = tuple(self.meaning(each.meaning, rows) for each in meaning.columns)
        names = [each.name for each in meaning.columns]
        return s.Struct(Row(tuple(zip(names, (v.type for v in values), strict=True))), False, values)

    def items(self, node: exp.Expression, rows: Rows) -> s.Scalar:
        """The list whose items are the rows of a call."""
        given = self.all(arguments(node), rows)
        name, kind = node.meta[CALLED], node.meta[TYPED]
        if name == "unnest":
            return given[0]
        return call(ListOf(carrier(kind)) if kind.fields else list_of(carrier(kind)), f"{name}_rows", *given)

    # -- rules of kinds of nodes --------------------------------------------------------------------------------------

    def _column(self, node: exp.Column, rows: Rows) -> s.Scalar:
        if MEANS not in node.meta:
            return call(TEXT, "current_user")  # USER, CURRENT_ROLE
        return as_carried(self.meaning(node.meta[MEANS], rows), carrier(node.meta[TYPED]))

    def _text_literal(self, node: exp.Expression, rows: Rows) -> s.Scalar:
        return text(node.this)

    def _literal(self, node: exp.Literal, rows: Rows) -> s.Scalar:
        return text(node.this) if node.is_string else number(node.this)

    def _parameter(self, node: exp.Parameter, rows: Rows) -> s.Scalar:
        number = int(node.this.this)
        return s.Parameter(self.params[number], True, number)

    def _cast(self, node: exp.Cast, rows: Rows) -> s.Scalar:
        if isinstance(unnest(node.this), exp.Array) and not unnest(node.this).expressions:
            return s.cast(s.Call(NOTHING, False, "array", ()), carrier(kind_of(node)))
        inner, kind = unnest(node.this), kind_of(node)
        sign, inner = ("-", unnest(inner.this)) if isinstance(inner, exp.Neg) else ("", inner)
        if isinstance(inner, exp.Literal) and not inner.is_string and kind.name in _FLOATS:
            # It may have more digits than an exact number.  DuckDB refuses a double that is too large for a float4, and
            # makes the text of one Infinity.
            return as_carried(cast(text(sign + inner.this), T_UNKNOWN, PgType("float8")), carrier(kind))
        return cast(self.of(node.this, rows), kind_of(node.this), kind)

    def _negative(self, node: exp.Expression, rows: Rows) -> s.Scalar:
        value = self.of(node.this, rows)
        if isinstance(node, exp.Neg) and isinstance(value, s.Literal) and value.type == NUMERIC:
            return replace(value, value=numerics.neg(value.value))
        if isinstance(node, exp.Neg) and isinstance(value, s.Literal) and not value.value.startswith("-"):
            return replace(value, value=f"-{value.value}")
        return s.Call(value.type, True, "neg" if isinstance(node, exp.Neg) else "~", (value,))

    def _inner(self, node: exp.Expression, rows: Rows) -> s.Scalar:
        return self.of(node.this, rows)

    def _case(self, node: exp.Case, rows: Rows) -> s.Scalar:
        kind = carrier(kind_of(node))
        operand, default = node.args.get("this"), node.args.get("default")
        branches = []
        for each in node.args["ifs"]:
            when = self.of(each.this, rows)
            if operand is not None:
                when = applied("=", self.of(operand, rows), kind_of(operand), when, kind_of(each.this), T_BOOL)
            branches.append((when, as_carried(self.of(each.args["true"], rows), kind)))
        otherwise = as_carried(self.of(default, rows), kind) if default is not None else None
        return s.Case(kind, True, None, tuple(branches), otherwise)

    def _alternatives(self, node: exp.Expression, rows: Rows) -> s.Scalar:
        kind = carrier(kind_of(node))
        name = {exp.Coalesce: "coalesce", exp.Greatest: "greatest", exp.Least: "least"}[type(node)]
        return call(kind, name, *(as_carried(each, kind) for each in self.all(arguments(node), rows)))

    def _nullif(self, node: exp.Nullif, rows: Rows) -> s.Scalar:
        kind = carrier(kind_of(node))
        return call(kind, "nullif", as_carried(self.of(node.this, rows), kind), self.of(node.expression, rows))

    def _array(self, node: exp.Array, rows: Rows) -> s.Scalar:
        kind, items = kind_of(node), node.expressions
        if len(items) == 1 and isinstance(items[0], (exp.Query, exp.Subquery)):
            return self._array_of_rows(items[0], carrier(kind), rows)
        element = PgType(item_of(kind.name))
        if item_of(kind_of(items[0]).name) is not None:
            raise NotPlanned("an array of several dimensions")
        return array(self.all(items, rows), element)

    def _array_of_rows(self, query: exp.Expression, kind: Type, rows: Rows) -> s.Scalar:
        found = self.query(query, rows)
        order: tuple[s.Sort, ...] = ()
        if isinstance(found, r.TopK) or isinstance(found, r.Project) and isinstance(found.input, r.TopK):
            top = found if isinstance(found, r.TopK) else found.input
            number = s.Aggregate(INT8, False, "row_number", ())
            at = r.Window(top, (s.WindowCall(INT8, False, number, (), top.order, None),))
            value = found.outputs[0] if isinstance(found, r.Project) else top.column(0)
            found, order = at, (s.Sort(at.column(len(top.columns)), False, False),)
        else:
            value = found.column(0)
        listed = s.Aggregate(kind, True, "array_agg", (as_carried(value, element_of(kind)),), False, None, order)
        empty = s.cast(s.Call(NOTHING, False, "array", ()), kind)
        return call(kind, "coalesce", s.scalar_query(r.Reduce(found, (), (listed,))), empty)

    def _bracket(self, node: exp.Bracket, rows: Rows) -> s.Scalar:
        value, kind = self.of(node.this, rows), kind_of(node.this)
        result = carrier(kind_of(node))
        if kind.name == "jsonb":
            for each in node.expressions:
                value = call(JSON, "json_extract", value, _json_key(each, self.of(each, rows)))
            return value
        if len(node.expressions) != 1:
            raise NotPlanned("a subscript of several dimensions")
        [each] = node.expressions
        first = 1 if kind.name in VECTORS else 0
        if isinstance(each, exp.Slice):
            low, high = (self._subscript(part, first, rows) for part in (each.this, each.expression))
            made = call(value.type, "list_slice", value, low or s.number(1), high or s.number(1 << 30))
        else:
            made = call(element_of(value.type), "list_extract", value, self._subscript(each, first, rows))
        return as_carried(made, result)

    def _subscript(self, node: exp.Expression | None, first: int, rows: Rows) -> s.Scalar | None:
        """The first of a vector is 0."""
        if not isinstance(node, exp.Expression):
            return None
        made = self.of(node, rows)
        if first and isinstance(made, s.Literal) and made.value is not None:
            return s.number(int(made.value) + first)
        return call(made.type, "+", made, s.number(first)) if first else made

    def _dot(self, node: exp.Dot, rows: Rows) -> s.Scalar:
        inner = node.expression
        if isinstance(node.this, exp.Identifier) and not isinstance(inner, exp.Identifier):
            return self.of(inner, rows)
        row = self.of(node.this, rows)
        name = inner.name if inner.args.get("quoted") else inner.name.lower()
        if isinstance(row, s.Struct):
            return next(v for v, (field_, _) in zip(row.values, row.type.fields, strict=True) if field_ == name)
        return s.field(row, name)

    def _exists(self, node: exp.Exists, rows: Rows) -> s.Scalar:
        return s.exists(self.query(node.this, rows))

    def _tuple(self, node: exp.Expression, rows: Rows) -> s.Scalar:
        return row_of(self.all(arguments(node) if isinstance(node, exp.Func) else node.expressions, rows))

    def _escape(self, node: exp.Escape, rows: Rows) -> s.Scalar:
        inner = node.this
        sides = self.of(inner.this, rows), self.of(inner.expression, rows), self.of(node.expression, rows)
        found = call(BOOL, "ilike" if isinstance(inner, exp.ILike) else "like", *sides)
        return negated(found, bool(inner.args.get("negate")))

    def _similar(self, node: exp.SimilarTo, rows: Rows) -> s.Scalar:
        return call(BOOL, "tm_similar_to", self.of(node.this, rows), self.of(node.expression, rows))

    def _zone(self, node: exp.AtTimeZone, rows: Rows) -> s.Scalar:
        return call(kind_of(node), "timezone", self.of(node.args["zone"], rows), self.of(node.this, rows))

    def _extract(self, node: exp.Extract, rows: Rows) -> s.Scalar:
        return extracted(node.this.name.upper(), self.of(node.expression, rows))

    def _interval(self, node: exp.Interval, rows: Rows) -> s.Scalar:
        unit = node.args.get("unit")
        if not isinstance(node.this, exp.Literal) or unit is not None and not isinstance(unit, exp.Var):
            raise NotPlanned("this interval")
        return s.cast(text(f"{node.this.this} {unit.name}" if unit is not None else node.this.this), SPAN)

    def _json(self, node: exp.Expression, rows: Rows) -> s.Scalar:
        given = self.of(node.this, rows)
        as_text = isinstance(node, (exp.JSONExtractScalar, exp.JSONBExtractScalar))
        if isinstance(node, (exp.JSONBExtract, exp.JSONBExtractScalar)):
            raise NotPlanned("this operator of json")
        key = _json_key(node.expression, None if isinstance(node.expression, exp.JSONPath) else
                        self.of(node.expression, rows))  # fmt: skip
        return call(TEXT if as_text else JSON, "json_extract_string" if as_text else "json_extract", given, key)

    # -- functions ----------------------------------------------------------------------------------------------------

    def _function(self, node: exp.Func, rows: Rows) -> s.Scalar:
        name, given = node.meta.get(CALLED) or called(node), arguments(node)
        if name == "row":
            return self._tuple(node, rows)
        if name in AGGREGATES or name in WINDOWS:
            return self._folded(node, name, rows)
        if makes_rows(node):
            told = "set-returning functions are not allowed here"
            raise InvalidUsage(told, sqlstate="0A000", position=position(node))
        values = self._taken(node, rows)
        if name == "pg_typeof":
            kind = kind_of(given[0]).name
            return s.cast(s.number(ROWS[kind].oid), OID)
        if name == "date_part" and isinstance(values[0], s.Literal) and values[0].value is not None:
            return as_carried(extracted(values[0].value.upper(), values[1]), FLOAT8)
        if name == "round" and kind_of(node).name == "float8":
            name = "tm_round_float"
        if name == "format":
            return formatted([put_out(v, kind_of(n)) for v, n in zip(values, given, strict=True)])
        if name in _WITH_NAMES:
            values = [replace(each, bare=False) if isinstance(each, s.Struct) else each for each in values]
        if name in _AS_TEXT:
            values = [_AS_TEXT[name](v, kind_of(n)) for v, n in zip(values, given, strict=True)]
        return call(kind_of(node), name, *values)

    def _taken(self, node: exp.Func, rows: Rows) -> list[s.Scalar]:
        """The arguments of a call: numbers as the function takes them."""
        given = arguments(node)
        wanted = node.meta.get(TAKES) or [kind_of(each).name for each in given]
        return [
            as_carried(value, carrier(PgType(kind)))
            if "numeric" in (kind, kind_of(each).name) and kind in _AS_TAKEN
            else value
            for value, each, kind in zip(self.all(given, rows), given, wanted, strict=False)
        ]

    def _folded(self, node: exp.Func, name: str, rows: Rows) -> s.Aggregate:
        distinct, order = False, None
        for each in node.expressions if isinstance(node, exp.Anonymous) else node.iter_expressions():
            while isinstance(each, exp.Order) and each.this is not None:
                order, each = each, each.this
            distinct = distinct or isinstance(each, exp.Distinct)
        given = self._taken(node, rows)  # none of count(*)
        kind = carrier(kind_of(node)) if TYPED in node.meta else INT8
        return s.Aggregate(kind, True, name, tuple(given), distinct, None, self.sorts(order, rows))

    def _grouping(self, node: exp.Expression, rows: Rows) -> s.Scalar:
        return s.Aggregate(INT4, False, "grouping", tuple(self.all(arguments(node), rows)))

    def _within_group(self, node: exp.WithinGroup, rows: Rows) -> s.Scalar:
        name = node.this.meta[CALLED]
        sorts = self.sorts(node.expression, rows)
        if name not in ("percentile_cont", "percentile_disc", "mode"):
            raise no_function(f"{name}(…) within group", position=position(node))
        given = tuple(self._taken(node.this, rows))
        wanted = carrier(PgType(node.this.meta[TAKES][-1]))
        if wanted == FLOAT8:
            sorts = tuple(replace(each, key=as_carried(each.key, wanted)) for each in sorts)
        return s.Aggregate(carrier(kind_of(node)), True, name, given, within=sorts)


def _json_key(node: exp.Expression, made: s.Scalar | None) -> s.Scalar:
    """What the engine's json functions take: a path, or a number."""
    if isinstance(node, exp.JSONPath):
        parts = [each for each in node.expressions if not isinstance(each, exp.JSONPathRoot)]
        if len(parts) == 1 and isinstance(parts[0], exp.JSONPathSubscript) and isinstance(parts[0].this, int):
            return s.number(parts[0].this)
        if len(parts) == 1 and isinstance(parts[0], exp.JSONPathKey) and isinstance(parts[0].this, str):
            return text(_json_path(parts[0].this))
        raise NotPlanned("this path into json")
    if isinstance(made, s.Literal) and made.type == TEXT and made.value is not None:
        return text(_json_path(made.value))
    return made if made.type != TEXT else call(TEXT, "tm_json_path", made)


def _json_path(key: str) -> str:
    return '$."' + key.replace('"', '\\"') + '"'


def _now(kind: str, name: str) -> Callable[[SystemScalars, exp.Expression, Rows], s.Scalar]:
    return lambda c, node, rows: s.Call(carrier(PgType(kind)), False, name, ())


RULES: dict[type[exp.Expression], Callable[[SystemScalars, exp.Expression, Rows], s.Scalar]] = {
    exp.Column: SystemScalars._column, exp.Literal: SystemScalars._literal, exp.Cast: SystemScalars._cast,
    exp.ByteString: SystemScalars._text_literal, exp.Parameter: SystemScalars._parameter,
    exp.Null: lambda c, node, rows: s.Literal(NOTHING, True, None),
    exp.Boolean: lambda c, node, rows: s.truth(node.this),
    **dict.fromkeys((exp.Paren, exp.Collate, exp.Alias), SystemScalars._inner),
    **dict.fromkeys((*signs(), exp.Operator), SystemScalars._operator),
    exp.And: SystemScalars._connector, exp.Or: SystemScalars._connector, exp.Not: SystemScalars._not,
    exp.Is: SystemScalars._is, exp.In: SystemScalars._in, exp.Between: SystemScalars._between,
    exp.Neg: SystemScalars._negative, exp.BitwiseNot: SystemScalars._negative, exp.Case: SystemScalars._case,
    **dict.fromkeys((exp.Coalesce, exp.Greatest, exp.Least), SystemScalars._alternatives),
    exp.Nullif: SystemScalars._nullif, exp.Array: SystemScalars._array, exp.Bracket: SystemScalars._bracket,
    exp.Dot: SystemScalars._dot, exp.Exists: SystemScalars._exists, exp.Subquery: Scalars._subquery,
    exp.Tuple: SystemScalars._tuple, exp.Escape: SystemScalars._escape, exp.SimilarTo: SystemScalars._similar,
    exp.AtTimeZone: SystemScalars._zone, exp.Extract: SystemScalars._extract, exp.Interval: SystemScalars._interval,
    **dict.fromkeys(
        (exp.JSONExtract, exp.JSONExtractScalar, exp.JSONBExtract, exp.JSONBExtractScalar), SystemScalars._json
    ),
    exp.Window: Scalars._window, exp.Filter: Scalars._filter, exp.WithinGroup: SystemScalars._within_group,
    exp.Grouping: SystemScalars._grouping,
    exp.CurrentTimestamp: _now("timestamptz", "now"), exp.CurrentDate: _now("date", "current_date"),
    exp.Localtimestamp: _now("timestamp", "localtimestamp"),
}  # fmt: skip
