"""When the arrangement of an index can answer a query by itself: no Spark, milliseconds.

That is a query over one indexed relation that only filters, projects, sorts and limits, or aggregates everything into
one row, in the small portable grammar that ``controllers/arrangements/residual.py`` evaluates.  Whatever does not fit
is ``None``, and Spark answers; the two must never differ, so anything doubtful (sums of floats, text functions) does
not fit.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from catalog_log.objects import Index, Item, Relation, View, key_names, places
from sql.objects.names import ImageLike, Names, column_types
from sql.statements.plans import LookupPlan
from sql.trees import types as t
from sql.trees.nodes import constant, declared_type, says_only, unnest
from values.types import SqlType, carried, parse_type

_COMPARE = {exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="}
_SIGN = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*"}

_OPERANDS = frozenset({"this", "expression"})
_KNOWN: dict[type[exp.Expression], frozenset[str]] = {
    exp.Select: frozenset({"expressions", "from_", "where", "order", "limit", "offset"}),
    exp.Table: frozenset({"this", "alias"}),
    exp.Limit: frozenset({"expression"}),
    exp.Offset: frozenset({"expression"}),
    exp.Order: frozenset({"expressions"}),
    exp.Ordered: frozenset({"this", "desc", "nulls_first"}),
    exp.Alias: frozenset({"this", "alias"}),
    exp.Column: frozenset({"this", "table"}),
    exp.Cast: frozenset({"this", "to"}),
    exp.Literal: frozenset({"this", "is_string"}),
    exp.Count: frozenset({"this", "big_int"}),
    exp.Is: _OPERANDS | {"negate"},
    exp.In: frozenset({"this", "expressions"}),
    exp.Between: frozenset({"this", "low", "high"}),
    **dict.fromkeys((exp.From, exp.Where, exp.TableAlias, exp.Paren, exp.Not, exp.Neg, exp.Parameter, exp.Null,
                     exp.Boolean, exp.HexString, exp.Star, exp.Sum, exp.Min, exp.Max), frozenset({"this"})),
    **dict.fromkeys((*_COMPARE, *_SIGN, exp.And, exp.Or), _OPERANDS),
}  # fmt: skip
"""What is read of each kind of node.  A query in which anything else is said, or of another node, is Spark's."""

DEPTH_MAX = 60
"""Under the evaluator's own limit of 64 (controllers/arrangements/residual.py)."""


_GIVEN = SqlType("numeric", 38, 9)
"""A number that a client gives, beside decimals: its digits are its own, which nothing here rounds."""


class _NotPortable(Exception):
    pass


def plan_lookup(
    select: exp.Expression, params: Mapping[int, SqlType], image: ImageLike, names: Names
) -> LookupPlan | None:
    """The lookup that answers ``select``, a query as its plan says it, or ``None``."""
    if not isinstance(select, exp.Select) or select.args.get("from_") is None:
        return None
    source = select.args["from_"].this
    item = image.item(source.name) if isinstance(source, exp.Table) else None
    if not isinstance(item, Relation) or isinstance(item, View):
        return None
    indexes = _indexes(item, image, names)
    if not indexes or not says_only(select, _KNOWN):
        return None
    try:
        residual, conjuncts = _Portable(item, params).residual(select)
    except _NotPortable:
        return None
    index, fixed = max(((each, _fixed(each, conjuncts, item)) for each in indexes), key=lambda pair: len(pair[1]))
    # What the key says holds for every row that it finds.  Said twice it would make another residual for every key,
    # and readers of one statement would have less in common.
    said = [id(conjunct) for _, conjunct in fixed]
    residual["filter"] = _all_of([each for each in conjuncts if id(each) not in said])
    return LookupPlan(index.id, item.id, tuple(value for value, _ in fixed), residual)


def _indexes(item: Item, image: ImageLike, names: Names) -> list[Item]:
    cluster = image.cluster_by_name(names.cluster)
    return [
        each
        for each in image.dependents(item.id)
        if isinstance(each, Index) and cluster is not None and each.cluster_id == cluster.id
    ]


def _fixed(index: Item, conjuncts: list, item: Item) -> list[tuple[tuple[object, ...], list]]:
    """Values for the leading columns of ``index`` that the query fixes by equality, each with what says so."""
    place = places(item)
    types = column_types(item)
    fixed: dict[int, tuple[tuple[object, ...], list]] = {}
    for each in conjuncts:
        if each[0] != "=":
            continue
        for left, right in ((each[1], each[2]), (each[2], each[1])):
            if left[0] == "col" and right[0] in ("lit", "param", "cast") and right[1] is not None:
                fixed.setdefault(left[1], (tuple(right), each))
    found = []
    for name in key_names(index, item):
        value = fixed.get(place[name]) if name in place else None
        if value is None or not _same_family(parse_type(value[0][2]), carried(types[name])):
            break
        found.append(value)
    return found


def _all_of(conjuncts: list) -> list | None:
    """The condition that they are together."""
    return ["and", *conjuncts] if len(conjuncts) > 1 else conjuncts[0] if conjuncts else None


def _same_family(left: SqlType, right: SqlType) -> bool:
    if t.is_number(left) and t.is_number(right):
        return t.is_float(left) == t.is_float(right)
    return left.name == right.name


class _Portable:
    def __init__(self, item: Item, params: Mapping[int, SqlType]) -> None:
        place = places(item)
        types = column_types(item)
        self.columns = {each.stored_as: (place[each.name], carried(types[each.name])) for each in item.columns}
        self.found: list[SqlType] = []
        """Types of the outputs that are no aggregates."""
        self.params = {number: _GIVEN if ty.is_free else carried(ty) for number, ty in params.items()}

    def residual(self, select: exp.Select) -> tuple[dict[str, object], list]:
        where = select.args.get("where")
        condition = None
        if where is not None:
            condition, found = self.expression(where.this)
            if found != t.BOOL:
                raise _NotPortable
        outputs = [self._output(each) for each in select.expressions]
        if select.args.get("order") is not None and any(ty.is_array or ty == t.INTERVAL for ty in self.found):
            raise _NotPortable
        aggregates = [e for e, aggregated in outputs if aggregated]
        if aggregates and len(aggregates) != len(outputs):
            raise _NotPortable
        if not outputs:
            raise _NotPortable
        residual: dict[str, object] = {
            "filter": condition,
            "project": [] if aggregates else [e for e, _ in outputs],
            "aggregate": aggregates or None,
            "order_by": [] if aggregates else self._order(select, [e for e, _ in outputs]),
            "limit": self._limit(select, "limit", None),
            "offset": self._limit(select, "offset", 0),
        }
        return residual, _conjuncts(condition)

    def _output(self, node: exp.Expression) -> tuple[list, bool]:
        inner = node.this if isinstance(node, exp.Alias) else node
        target = None
        if isinstance(inner, exp.Cast):
            target, uncast = declared_type(inner.to), inner.this
            if constant(inner) is None and not isinstance(unnest(uncast), exp.Parameter):
                inner = uncast
        if isinstance(inner, exp.AggFunc):
            return self._aggregate(inner), True
        found, actual = self.expression(inner)
        self.found.append(actual)
        if target is not None and actual != target and not (t.is_number(actual) and actual.name == target.name):
            raise _NotPortable
        return found, False

    def _aggregate(self, node: exp.AggFunc) -> list:
        if isinstance(node, exp.Count):
            if node.this is None or isinstance(node.this, exp.Star):
                return ["count_star"]
            if isinstance(node.this, exp.Distinct) or node.expressions:
                raise _NotPortable
            return ["count", self.expression(node.this)[0]]
        if isinstance(node, exp.Sum):
            return ["sum", self._summed(node.this)]
        if isinstance(node, (exp.Min, exp.Max)) and not isinstance(node.this, exp.Distinct):
            found, actual = self.expression(node.this)
            self._comparable(actual, actual)
            return ["min" if isinstance(node, exp.Min) else "max", found]
        raise _NotPortable

    def _summed(self, node: exp.Expression) -> list:
        inner = unnest(node)
        if isinstance(inner, exp.Cast) and declared_type(inner.to).name == "numeric":
            found, actual = self.expression(inner.this)
            if actual != t.INT8:
                raise _NotPortable
            return ["*", found, ["lit", "1", "numeric(1,0)"]]
        found, actual = self.expression(inner)
        if not t.is_number(actual) or t.is_float(actual):
            raise _NotPortable
        return found

    def _order(self, select: exp.Select, outputs: list[list]) -> list:
        """ORDER BY by output position: an output's name, its number, or an expression that is an output."""
        order = select.args.get("order")
        if order is None:
            return []
        names = [each.alias_or_name for each in select.expressions]
        found = []
        for each in order.expressions:
            inner = unnest(each.this)
            if isinstance(inner, exp.Column) and not inner.table and inner.name in names:
                index = names.index(inner.name)
            elif isinstance(inner, exp.Literal) and not inner.is_string and 0 < int(inner.this) <= len(outputs):
                index = int(inner.this) - 1
            elif (wanted := self.expression(inner)[0]) in outputs:
                index = outputs.index(wanted)
            else:
                raise _NotPortable
            descending = bool(each.args.get("desc"))
            nulls_first = each.args.get("nulls_first")
            nulls_first = descending if nulls_first is None else nulls_first
            found.append([index, "desc" if descending else "asc", "first" if nulls_first else "last"])
        return found

    def _limit(self, select: exp.Select, key: str, default: object) -> object:
        clause = select.args.get(key)
        if clause is None:
            return default
        value = clause.expression
        while isinstance(value, (exp.Cast, exp.Paren)):
            value = value.this
        if isinstance(value, exp.Literal):
            return int(value.this)
        if isinstance(value, exp.Parameter) and key == "limit":
            return ["param", int(value.this.this), "integer"]
        raise _NotPortable

    def expression(self, node: exp.Expression, depth: int = 0) -> tuple[list, SqlType]:
        """``(portable form, type)``.  Raises ``_NotPortable``."""
        node = unnest(node)
        if depth > DEPTH_MAX:
            raise _NotPortable
        if isinstance(node, exp.Column):
            if node.name not in self.columns:
                raise _NotPortable
            index, found = self.columns[node.name]
            return ["col", index], found
        if isinstance(node, exp.Parameter):
            number = int(node.this.this)
            return ["param", number, str(self.params[number])], self.params[number]
        while isinstance(node, exp.Cast) and isinstance(node.this, exp.Cast) and node.this.to == node.to:
            node = node.this  # a parameter takes the type that it is cast to, and is cast
        if isinstance(node, exp.Cast) and isinstance(unnest(node.this), exp.Parameter):
            found, actual = self.expression(node.this, depth + 1)
            if actual == _GIVEN and declared_type(node.to).name == "numeric":
                actual = declared_type(node.to)
                found = [found[0], found[1], str(actual)]
            if actual == declared_type(node.to):
                return ["cast" if actual.name == "numeric" else "param", *found[1:]], actual
            raise _NotPortable
        literal = constant(node)
        if literal is not None:
            text, found = literal
            return ["lit", text, str(found)], found
        return self._operator(node, depth)

    def _operator(self, node: exp.Expression, depth: int) -> tuple[list, SqlType]:
        kind = type(node)
        if kind in _COMPARE:
            (a, left), (b, right) = (self.expression(node.args[k], depth + 1) for k in ("this", "expression"))
            self._comparable(left, right)
            return [_COMPARE[kind], a, b], t.BOOL
        if kind in (exp.And, exp.Or):
            word = "and" if kind is exp.And else "or"
            found: list = [word]
            for key in ("this", "expression"):
                part, sql_type = self.expression(node.args[key], depth + 1)
                if sql_type != t.BOOL:
                    raise _NotPortable
                found.extend(part[1:] if part[0] == word else [part])
            return found, t.BOOL
        if kind is exp.Not:
            part, sql_type = self.expression(node.this, depth + 1)
            if sql_type != t.BOOL:
                raise _NotPortable
            return ["not", part], t.BOOL
        if kind is exp.Is and isinstance(node.expression, exp.Null):
            tested = ["is_null", self.expression(node.this, depth + 1)[0]]
            return ["not", tested] if node.args.get("negate") else tested, t.BOOL
        if kind is exp.In and node.expressions:
            needle, left = self.expression(node.this, depth + 1)
            members = []
            for each in node.expressions:
                member, right = self.expression(each, depth + 1)
                self._comparable(left, right)
                members.append(member)
            return ["in", needle, *members], t.BOOL
        if kind is exp.Between:
            parts = [self.expression(node.args[k], depth + 1) for k in ("this", "low", "high")]
            for _, each in parts[1:]:
                self._comparable(parts[0][1], each)
            return ["and", [">=", parts[0][0], parts[1][0]], ["<=", parts[0][0], parts[2][0]]], t.BOOL
        if kind in _SIGN:
            (a, left), (b, right) = (self.expression(node.args[k], depth + 1) for k in ("this", "expression"))
            found = t.arithmetic(_SIGN[kind], left, right)
            if found is None or t.is_float(found):
                raise _NotPortable
            return [_SIGN[kind], a, b], found
        raise _NotPortable

    def _comparable(self, left: SqlType, right: SqlType) -> None:
        if left.is_array or left == t.INTERVAL:
            raise _NotPortable
        if not (t.is_number(left) and t.is_number(right)) and left.name != right.name:
            raise _NotPortable


def _conjuncts(condition: list | None) -> list:
    if condition is None:
        return []
    return list(condition[1:]) if condition[0] == "and" else [condition]
