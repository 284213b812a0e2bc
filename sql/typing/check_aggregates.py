"""Types of aggregates, and the casts that keep them exact in Spark."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from sqlglot import exp

from functions.aggregates import BY_NAME, Aggregate
from functions.row import ANY
from journal.errors import InvalidUsage
from sql.typing.casts import converted
from sql.typing.comparing import check_extreme, check_grouped, order_key
from sql.typing.float_ranges import RECKONED
from sql.typing.free_numerics import check_no_free, deviation, extreme, reckoned, summed
from sql.typing.gathered import GATHERED, arranged, array_of
from sql.typing.keys import by_key, key_of
from sql.typing.scope import Scope
from trees import types as t
from trees.errors import (
    grouping,
    no_aggregate,
    no_function,
    no_window,
    not_listed,
    not_unique,
    unsupported,
    untyped,
)
from trees.functions import AGGREGATE_NODES, HYPOTHETICAL, WINDOW_ONLY, display_name, folding
from trees.nodes import call, cast, position, swap, unnest
from trees.own import own
from values.types import SqlType

if TYPE_CHECKING:
    from sql.typing.check import Checker


def _argument(node: exp.Expression, key: str = "this") -> exp.Expression:
    """The expression that is aggregated, behind DISTINCT and ORDER BY."""
    inner = node.args[key]
    while isinstance(inner, (exp.Distinct, exp.Order)):
        inner = inner.expressions[0] if isinstance(inner, exp.Distinct) else inner.this
    return inner


def _count(c: Checker, node: exp.Count, scope: Scope) -> SqlType:
    if node.this is None:
        told = "count(*) must be used to call a parameterless aggregate function"
        raise InvalidUsage(told, sqlstate="42809", position=position(node))
    if not isinstance(node.this, exp.Star):
        c.visit(node.this, scope)
    return t.INT8


def _of_an_aggregate(node: exp.Expression, what: str) -> None:
    """42809 where ``what`` is said of the arguments of a function that folds no rows, 0A000 of a window function's.

    Functions that the parser knows by their name alone are checked by whoever knows the names.
    """
    function = node.parent
    while isinstance(function, (exp.Distinct, exp.Order)):
        function = function.parent
    if isinstance(function, WINDOW_ONLY):
        raise no_window(what, position(function))
    if isinstance(function, exp.Func) and not isinstance(function, (exp.AggFunc, exp.Anonymous, exp.AnonymousAggFunc)):
        raise no_aggregate(what, display_name(function), position(function))


def _distinct(c: Checker, node: exp.Distinct, scope: Scope) -> SqlType:
    _of_an_aggregate(node, "DISTINCT")
    first = node.expressions[0]
    if len(node.expressions) == 1 and isinstance(first, exp.Tuple):  # a row counts though fields of it are null
        for index, each in enumerate(list(first.expressions)):
            got = c.visit(each, scope)
            if by_key(got):
                swap(first.expressions[index], key_of(first.expressions[index], got))
        first.replace(exp.Anonymous(this="STRUCT", expressions=[each.copy() for each in first.expressions]))
        return t.UNKNOWN
    types = [c.visit(each, scope) for each in list(node.expressions)]
    for got in types:
        if not isinstance(node.parent, (exp.Count, exp.Min, exp.Max, exp.Sum, exp.Avg, *_SPREAD)):
            check_no_free(got, "DISTINCT", node)
    for index, got in enumerate(types):
        check_grouped(got, "DISTINCT", position(node))
        if by_key(got) and isinstance(node.parent, exp.Count):
            swap(node.expressions[index], key_of(node.expressions[index], got))
    if len(types) > 1:
        name = display_name(node.parent)
        if name in BY_NAME and len(BY_NAME[name][0].arguments) == len(types):
            raise unsupported(f"{name}(DISTINCT …)", "take the distinct pairs in a subquery", position(node.parent))
        raise no_function(f"{name}({', '.join(map(t.shown, types))})", position=position(node.parent))
    return types[0] if types else t.UNKNOWN


def _ordered_by_itself(node: exp.Order) -> None:
    """42P10 where distinct values are ordered by what is none of them: rows that are one would stand in two places."""
    if not isinstance(node.this, exp.Distinct):
        return
    separator = node.parent.args.get("separator") if isinstance(node.parent, exp.GroupConcat) else None
    listed = [unnest(each) for each in (*node.this.expressions, separator) if each is not None]
    for each in node.expressions:
        if unnest(each.this) not in listed:
            raise not_listed(position(each.this))


def _ordered(c: Checker, node: exp.Order, scope: Scope) -> SqlType:
    _of_an_aggregate(node, "ORDER BY")
    _ordered_by_itself(node)
    for each in list(node.expressions):
        got = c.child(each, "this", scope)  # which may put another in its place
        order_key(each.this, got)
    return c.child(node, "this", scope) if node.args.get("this") is not None else t.UNKNOWN


def _summed(c: Checker, node: exp.Sum, scope: Scope) -> SqlType:
    got = _number(c, node, scope)
    if t.is_float(got):
        node.meta[RECKONED] = True
        return got
    if got.is_free:
        _no_distinct(node, got)
    made, found = summed(node.this, got)
    if made != node:
        node.replace(made)
    return found


def _no_distinct(node: exp.AggFunc, got: SqlType) -> None:
    """0A000: what is added up of free numerics are parts of them."""
    if node.find(exp.Distinct):
        check_no_free(t.NUMERIC if got.name == "numeric" else got, f"{node.key}(DISTINCT …)", node)


def _averaged(c: Checker, node: exp.Avg, scope: Scope) -> SqlType:
    """Of exact numbers their sum by how many there are, with as many digits as Postgres divides to."""
    got = _number(c, node, scope)
    if t.is_float(got):
        node.meta[RECKONED] = True
        return t.FLOAT8
    if got.is_free:
        _no_distinct(node, got)
    total, found = summed(node.this, got)
    counted = exp.Count(this=node.this.copy())
    node.replace(reckoned("/", total, counted, (found, t.INT8)))
    return t.NUMERIC


def _deviation(c: Checker, node: exp.AggFunc, scope: Scope) -> SqlType:
    """``variance``, ``stddev`` and their kin: exact of exact numbers."""
    got = _number(c, node, scope, preferred=t.FLOAT8)
    if t.is_float(got):
        return t.FLOAT8
    if node.find(exp.Distinct):
        check_no_free(t.NUMERIC, f"{display_name(node)}(DISTINCT …)", node)
    node.replace(deviation(_SPREAD[type(node)], node.this, got))
    return t.NUMERIC


_SPREAD: dict[type[exp.Expression], str] = {
    node: row.spread for node, (name, _) in AGGREGATE_NODES.items() for row in BY_NAME[name] if row.spread
}
"""What each of them is of exact numbers."""


def _number(c: Checker, node: exp.AggFunc, scope: Scope, preferred: SqlType | None = None) -> SqlType:
    """The type of a number that is folded; ``preferred`` where it has none, 42725 without that."""
    got = c.child(node, "this", scope)
    if got == t.UNKNOWN:
        if preferred is None:
            raise not_unique(f"{display_name(node)}(unknown)", position(node))
        c.give(_argument(node), preferred)
        return preferred
    if not t.is_number(got):
        raise no_function(f"{node.key}({t.shown(got)})", position=position(node))
    return got


def _joined(c: Checker, node: exp.GroupConcat, scope: Scope) -> SqlType:
    got = c.child(node, "this", scope)
    inner = _argument(node)
    if got == t.UNKNOWN:
        c.coerce(inner, got, t.TEXT)
    elif not t.is_text(got):
        raise no_function(f"string_agg({t.shown(got)}, unknown)", position=position(node))
    if node.args.get("separator") is None:
        raise no_function(f"string_agg({t.shown(got)})", position=position(node))
    c.want(node, "separator", t.TEXT, scope, lambda bad: no_function(f"string_agg(text, {t.shown(bad)})"))
    if node.args["separator"].find(exp.Column, exp.Query) is not None:
        hint = "put it before each value: string_agg(separator || value, '')"
        raise unsupported("a separator of string_agg that is no constant", hint, position(node))
    node.set("separator", _between(node.args["separator"]))
    value, order, distinct = of = arranged(node.this)
    separator = node.args["separator"]
    if _is_by_hand(node, order, distinct):
        joined = own("tm_join", array_of(node, of), separator.copy())
        some = exp.Is(this=exp.Max(this=value.copy()), expression=exp.Null())
        node.replace(exp.Case(ifs=[exp.If(this=exp.Not(this=some), true=joined)]))
        return t.TEXT
    given = exp.Distinct(expressions=[value.copy()]) if distinct else value.copy()
    listed: exp.Expression = exp.Anonymous(this="LISTAGG", expressions=[given, separator.copy()])
    if order:
        listed = exp.WithinGroup(this=listed, expression=exp.Order(expressions=[each.copy() for each in order]))
    listed.meta["aggregate"] = True
    node.replace(listed)
    return t.TEXT


def _between(separator: exp.Expression) -> exp.Expression:
    """What ``string_agg`` puts between: NULL is nothing."""
    inner, nothing = separator, exp.Literal.string("")
    while isinstance(inner, (exp.Cast, exp.Paren)):
        inner = inner.this
    if isinstance(inner, exp.Null):
        return nothing
    if isinstance(inner, exp.Literal) and inner.is_string:
        return inner.copy()
    return exp.Coalesce(this=cast(separator.copy(), t.TEXT), expressions=[nothing])


def _is_by_hand(node: exp.GroupConcat, order: list[exp.Ordered], distinct: bool) -> bool:
    """Whether Spark's LISTAGG will not do for ``string_agg``: of DISTINCT values, of ordered ones beside others that
    are, with a separator that Spark may not know as a constant.

    Spark gives distinct values in no order (Postgres sorts them), and cannot plan an ordered LISTAGG where it rewrites
    a query for its distinct aggregates.
    """
    if isinstance(node.parent, exp.Window):
        return False
    return distinct or not isinstance(node.args["separator"], exp.Literal) or bool(order) and _is_rewritten(node)


def _is_rewritten(node: exp.Expression) -> bool:
    """Whether Spark rewrites the query around ``node`` since it has several distinct aggregates, or one with FILTER."""
    select = node.find_ancestor(exp.Select)
    if select is None:
        return False
    around = (exp.GroupConcat, exp.Filter, exp.Select)
    inside = [each for each in select.find_all(exp.Distinct) if each.parent is not select]
    found = [kind for each in inside if (kind := type(each.find_ancestor(*around))) is not exp.GroupConcat]
    return len(found) > 1 or exp.Filter in found


def _filtered(c: Checker, node: exp.Filter, scope: Scope) -> SqlType:
    name = display_name(node.this)
    got = c.child(node, "this", scope)
    c.boolean(node.expression, "this", scope, "FILTER")
    calls = folding(node.this)
    if not calls:
        raise no_aggregate("FILTER", name, position(node))
    if calls[0] is not node.this:  # what is made of the aggregate's result has no rows to choose from
        for each in calls:
            each.replace(exp.Filter(this=each.copy(), expression=node.expression.copy()))
        node.replace(node.this.copy())
    return got


def _within_group(c: Checker, node: exp.WithinGroup, scope: Scope) -> SqlType:
    order = node.expression
    types = [c.child(each, "this", scope) for each in list(order.expressions)]
    called = node.this
    if isinstance(called, exp.AnonymousAggFunc) and display_name(called) not in HYPOTHETICAL:
        given = [c.visit(each, scope) for each in list(called.expressions)]
        shown = ", ".join(map(t.shown, (*given, *types)))
        raise no_function(f"{display_name(called)}({shown})", position=position(node))
    if not isinstance(called, (exp.PercentileCont, exp.PercentileDisc)):
        raise unsupported(f"WITHIN GROUP of {display_name(node.this)}", position=position(node))
    name = display_name(node.this)
    wanted = node.this.this
    several = _listed(wanted)
    given = c.child(node.this, "this", scope)
    continuous = isinstance(node.this, exp.PercentileCont)
    if len(types) != 1 or not (given == t.UNKNOWN or t.is_number(given.element if several else given)):
        raise no_function(f"{name}({', '.join(map(t.shown, (given, *types)))})", position=position(node))
    if not t.is_number(types[0]):
        if continuous and types[0] not in (t.UNKNOWN, t.INTERVAL):
            raise no_function(f"{name}({t.shown(given)}, {t.shown(types[0])})", position=position(node))
        raise unsupported(f"{name} of {t.shown(types[0])}", position=position(node))
    if not continuous:
        check_no_free(types[0], name, node)
    elif types[0].is_free:
        swap(order.expressions[0].this, converted(order.expressions[0].this, types[0], t.FLOAT8))
    if not continuous and (types[0] == t.INT8 or (types[0].name == "numeric" and types[0].precision > 15)):
        raise unsupported("percentile_disc of more than 15 digits", "Spark computes it as a float", position(node))
    kind = t.FLOAT8 if continuous else types[0]
    values = list(_elements(node.this.this)) if several else [node.this.this]
    downwards = bool(order.expressions[0].args.get("desc"))
    found = [_percentile(node, each, order.expressions[0].this, kind, downwards) for each in values]
    if not several:
        node.replace(found[0])
        return kind
    some = exp.Is(this=exp.Max(this=order.expressions[0].this.copy()), expression=exp.Null())
    made = cast(exp.Array(expressions=found), kind.array)
    node.replace(exp.Case(ifs=[exp.If(this=exp.Not(this=some), true=made)]))
    return kind.array


def _listed(node: exp.Expression) -> bool:
    node = unnest(node)
    return isinstance(node, exp.Array) or (isinstance(node, exp.Cast) and _listed(node.this))


def _elements(array: exp.Expression) -> list[exp.Expression]:
    """What an ``ARRAY[…]`` that was typed is made of."""
    while not isinstance(array, exp.Array):
        array = array.this
    return array.expressions


def _percentile(
    node: exp.WithinGroup, fraction: exp.Expression, value: exp.Expression, kind: SqlType, downwards: bool
) -> exp.Expression:
    """One percentile; ``downwards`` it is the negative of that of the negatives.  0A000 where it is no constant, 22003
    where it is none between 0 and 1."""
    inner, sign = unnest(fraction), 1
    while isinstance(inner, (exp.Cast, exp.Neg)):
        sign = -sign if isinstance(inner, exp.Neg) else sign
        inner = unnest(inner.this)
    absent = isinstance(inner, exp.Null)
    if absent:
        inner = exp.Literal.number(0)
    if not isinstance(inner, exp.Literal):
        hint = "write the number itself"
        raise unsupported(f"{display_name(node.this)} of a fraction that is no constant", hint, position(node))
    number = sign * t.parse_literal(inner.this, t.FLOAT8)
    if not 0 <= number <= 1:
        raise InvalidUsage(f"percentile value {number:g} is not between 0 and 1", sqlstate="22003")
    if downwards:  # of wider numbers: the least one has no negative of its own type
        wide = kind if t.is_float(kind) else t.INT8 if t.is_int(kind) else None
        value = exp.Neg(this=exp.Paren(this=cast(value.copy(), wide) if wide else value.copy()))
    given = inner.copy() if not inner.is_string else exp.Literal.number(repr(number))
    if isinstance(node.this, exp.PercentileCont):
        made = call("PERCENTILE", value, given)
    else:
        made = call("TM_PERCENTILE_DISC", given, value)
    made.meta["aggregate"] = True
    found = made if isinstance(node.this, exp.PercentileCont) or downwards else cast(made, kind)
    if downwards:
        found = cast(exp.Neg(this=exp.Paren(this=found)), kind)
    return exp.Nullif(this=found, expression=found.copy()) if absent else found


def _extreme(c: Checker, node: exp.Min, scope: Scope) -> SqlType:
    got = c.child(node, "this", scope)
    check_extreme(got, node.key, position(node))
    if got == t.UNKNOWN:
        c.give(_argument(node), t.TEXT)
        return t.TEXT
    if got.is_free:
        node.replace(extreme(node, _argument(node)))
        return got
    return t.TEXT if got.name == "varchar" else got


def _by_row(c: Checker, node: exp.Expression, scope: Scope) -> SqlType:
    """An aggregate or a function of windows that is a row (:mod:`functions.aggregates`)."""
    check_has_window(node)
    name, keys = AGGREGATE_NODES[type(node)]
    given = [key for key in keys if node.args.get(key) is not None]
    got = [c.child(node, key, scope) for key in given]
    row = _signature(BY_NAME[name], got)
    if row is None and len(BY_NAME[name]) > 1 and got == [t.UNKNOWN]:
        raise not_unique(f"{display_name(node)}(unknown)", position(node))
    if row is not None and row.result == ANY and got[0] == t.UNKNOWN:
        raise untyped(position(node))
    if row is None or not all(
        c.coerce(_argument(node, key), each, t.TEXT if wanted == ANY else wanted)
        for key, each, wanted in zip(given, got, row.arguments, strict=True)
        if wanted != ANY or each == t.UNKNOWN
    ):
        raise no_function(f"{display_name(node)}({', '.join(map(t.shown, got))})", position=position(node))
    if row.result == ANY:
        return got[0]
    if type(node) in _OF_SPREAD:
        _null_without_spread(node)
    if row.makes != row.result and not isinstance(node.parent, exp.Window):
        node.replace(cast(node.copy(), row.result))
    return row.result


_OF_SPREAD = {exp.Corr: (exp.RegrSxx, exp.RegrSyy), exp.RegrSlope: (exp.RegrSxx,)}
"""What is divided by how far the pairs are spread, and by which of their sums of squares."""


def _null_without_spread(node: exp.Expression) -> None:
    """NULL where that is 0; engines divide by it."""
    given = {"this": node.this, "expression": node.expression}
    zero = exp.Literal.number(0)
    none = [
        exp.If(this=exp.EQ(this=kind(**{k: v.copy() for k, v in given.items()}), expression=zero.copy()),
               true=cast(exp.null(), t.FLOAT8))
        for kind in _OF_SPREAD[type(node)]
    ]  # fmt: skip
    node.replace(exp.Case(ifs=none, default=node.copy()))


def check_has_window(node: exp.Expression) -> None:
    """42809 for a function of windows that is called without one."""
    outer = node.parent
    while isinstance(outer, exp.Filter):
        outer = outer.parent
    if isinstance(node, WINDOW_ONLY) and not isinstance(outer, exp.Window):
        told = f"window function {display_name(node)} requires an OVER clause"
        raise InvalidUsage(told, sqlstate="42809", position=position(node))


def _signature(rows: tuple[Aggregate, ...], got: list[SqlType]) -> Aggregate | None:
    """That of ``rows`` which takes as many arguments; of several the one that takes just these."""
    found = [row for row in rows if len(row.arguments) == len(got)]
    return found[0] if len(found) == 1 else next((row for row in found if list(row.arguments) == got), None)


def _grouping(c: Checker, node: exp.Grouping, scope: Scope) -> SqlType:
    """Which of the expressions the row's grouping set leaves out, as bits; the binder has checked that they are
    grouped by."""
    for each in list(node.expressions):
        c.visit(each, scope)
        if any(column.table not in scope.sources for column in each.find_all(exp.Column)):
            raise unsupported("grouping() of an outer query's groups", position=position(node))
    select = node.find_ancestor(exp.Select)
    group = select.args.get("group") if select is not None else None
    if group is None:
        told = "arguments to GROUPING must be grouping expressions of the associated query level"
        raise grouping(told, position(node))
    if not any(group.find(kind) for kind in (exp.Rollup, exp.Cube, exp.GroupingSets)):
        node.replace(cast(exp.Literal.number(0), t.INT4))
    else:
        node.replace(_bits_of(node.expressions))
    return t.INT4


def _bits_of(keys: list[exp.Expression]) -> exp.Expression:
    """GROUPING of each of ``keys``, the last one the lowest bit.  Spark's GROUPING_ID takes nothing but all that is
    grouped by, in that order."""
    bits = [exp.Anonymous(this="GROUPING", expressions=[each.copy()]) for each in keys]
    if len(bits) == 1:
        return bits[0]
    terms = [
        exp.Mul(this=cast(bit, t.INT4), expression=exp.Literal.number(1 << place))
        for place, bit in enumerate(reversed(bits))
    ]
    return exp.Paren(this=reduce(lambda left, right: exp.Add(this=left, expression=right), terms))


AGGREGATES = {
    **dict.fromkeys(AGGREGATE_NODES, _by_row),
    exp.Count: _count,
    exp.Distinct: _distinct,
    exp.Order: _ordered,
    exp.Sum: _summed,
    exp.Avg: _averaged,
    **dict.fromkeys(_SPREAD, _deviation),
    exp.GroupConcat: _joined,
    **GATHERED,
    exp.Filter: _filtered,
    exp.WithinGroup: _within_group,
    exp.Min: _extreme,
    exp.Max: _extreme,
    exp.Grouping: _grouping,
}
