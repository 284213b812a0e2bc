"""What is done with numbers that have digits of their own, in a plan over system relations: a pass over it.  Pure.

Promises: after :func:`exact` nothing in a plan reckons with, compares, groups or sorts values that are carried as
:data:`~sql.system.carriers.NUMERIC` but the functions that a user's plan has for free numerics
(:mod:`sql.typing.free_numerics`, :mod:`values.numeric`), so both give the same digits.  A relation has the columns that
it had.  0A000 for what a user's query refuses of such numbers too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from functions.registry import SIGNED
from functions.row import Function
from plan import relations as r
from plan import scalars as s
from plan.nodes import Node, built, walk
from plan.types import BOOL, FLOAT8, INT2, INT4, INT8, TEXT, ListOf, Native, Row, Type, element_of, is_float, list_of
from sql.system.carriers import JSON, NUMERIC, as_carried, call, text
from sql.typing.free_numerics import OPERATORS
from trees.errors import unsupported
from values.numeric import numerics
from values.numeric.numeric_sums import PARTS

_OWN = {
    **OPERATORS, "mod": "tm_numeric_mod", "neg": "tm_numeric_neg", "abs": "tm_numeric_abs", "sign": "tm_numeric_sign",
    "ceil": "tm_numeric_ceil", "ceiling": "tm_numeric_ceil", "floor": "tm_numeric_floor",
    "round": "tm_numeric_round", "trunc": "tm_numeric_trunc",
}  # fmt: skip
"""What the grammar or a rule reads in a user's query, by its name; the rows of :mod:`functions` say all else."""

_COMPARE = frozenset("= <> < <= > >= is_distinct is_not_distinct in between".split())
_RECKON = frozenset("+ - * / % power".split())
_IN_LISTS = {"tm_is_any": (1,), "list_has_all": (0, 1), "list_has_any": (0, 1), "array_position": (0,)}
_OF_ITEMS = {"array_append": (0,), "array_prepend": (1,), "array_cat": (0, 1), "array_remove": (0,)}
"""What compares items, and what makes a list of them; which of its arguments are lists."""

_WRITE_JSON = frozenset(
    "to_json row_to_json array_to_json json_agg jsonb_agg json_build_object jsonb_build_object json_build_array "
    "jsonb_build_array".split()
)
_NUMBERS = ListOf(NUMERIC)
_SPREAD = {
    "variance": "var_samp", "var_samp": "var_samp", "var_pop": "var_pop", "stddev": "stddev_samp",
    "stddev_samp": "stddev_samp", "stddev_pop": "stddev_pop",
}  # fmt: skip
_WIDE = Native("HUGEINT")

Folded = tuple[list[s.Aggregate], Callable[[Sequence[s.Scalar]], s.Scalar]]
"""Aggregates of the engine's, and what is made of their values."""


def exact(relation: r.Relation) -> r.Relation:
    """``relation`` with our own functions of exact numbers."""
    if not any(_is_numeric(node) for node in walk(relation)):
        return relation
    for node in walk(relation):
        if isinstance(node, r.Let) and node.recursive and _different(node.value):
            raise unsupported("UNION of numeric in WITH RECURSIVE over system relations", "say UNION ALL")
    return built(relation, _exact)


def _is_numeric(node: Node) -> bool:
    return isinstance(node, s.Scalar) and node.type in (NUMERIC, _NUMBERS)


def _different(value: r.Relation) -> bool:
    while isinstance(value, r.Project):
        value = value.input
    return isinstance(value, r.SetOp) and not value.all and _numbers(value.columns)


def _numbers(kinds: Sequence[r.Kind]) -> bool:
    return any(kind.type == NUMERIC for kind in kinds)


def _exact(node: Node) -> Node:
    rule = _RULES.get(type(node))
    return node if rule is None else rule(node)


# -- of one row -------------------------------------------------------------------------------------------------------


def _key(value: s.Scalar) -> s.Scalar:
    """What ``value`` is compared, grouped and sorted by."""
    if value.type == NUMERIC:
        if isinstance(value, s.Literal) and value.value is not None:
            return text(numerics.key(value.value))
        return call(TEXT, "tm_numeric_key", value)
    if value.type == _NUMBERS:
        return call(TEXT.array, "tm_numeric_keys", value)
    if isinstance(value, s.Struct):
        return _of_parts(value, map(_key, value.values))
    return value


def _of_parts(row: s.Struct, parts: Iterable[s.Scalar]) -> s.Struct:
    """``row`` with other values."""
    parts = tuple(parts)
    names = [name for name, _ in row.type.fields]
    return replace(row, type=Row(tuple(zip(names, (each.type for each in parts), strict=True))), values=parts)


def _alike(values: Sequence[s.Scalar]) -> tuple[s.Scalar, ...]:
    """What the engine compares in the place of ``values``: beside a double all are doubles; of rows, place by place."""
    if all(isinstance(each, s.Struct) for each in values) and len({len(each.values) for each in values}) == 1:
        places = [_alike(place) for place in zip(*(each.values for each in values), strict=True)]
        return tuple(map(_of_parts, values, zip(*places, strict=True)))
    if not any(each.type == NUMERIC for each in values):
        return tuple(map(_key, values))
    if any(is_float(each.type) for each in values):
        return tuple(as_carried(each, FLOAT8) for each in values)
    return tuple(_key(as_carried(each, NUMERIC)) for each in values)


def _call(node: s.Call) -> s.Scalar:
    name, given = node.name, node.arguments
    types = [each.type for each in given]
    if node.type != NUMERIC and not any(_has_numbers(each) for each in given):
        return node
    if name in _COMPARE:
        return replace(node, arguments=_alike(given))
    if name == "nullif":
        return s.Case(node.type, True, None, ((call(BOOL, "=", *_alike(given)), s.Literal(node.type, True, None)),),
                      given[0])  # fmt: skip
    if name in ("greatest", "least") and node.type == NUMERIC:
        keyed = [call(TEXT, "tm_numeric_keyed", each) for each in given]
        return call(NUMERIC, "tm_numeric_of_keyed", call(TEXT, name, *keyed))
    if name in _IN_LISTS:
        item = FLOAT8 if any(is_float(each) or is_float(element_of(each)) for each in types[:2]) else NUMERIC
        return replace(node, arguments=(*map(_key, _items(item, given[:2], _IN_LISTS[name])), *given[2:]))
    if name in _OF_ITEMS:
        renamed = "tm_numeric_without" if name == "array_remove" and node.type == _NUMBERS else name
        return replace(node, name=renamed, arguments=_items(element_of(node.type), given, _OF_ITEMS[name]))
    if name in _WRITE_JSON:
        return replace(node, arguments=tuple(map(_in_json, given)))
    if name == "generate_series_rows":
        raise unsupported("generate_series of numeric without a precision")
    if name in _RECKON and node.type != NUMERIC:  # with an interval, or a double
        return replace(node, arguments=tuple(as_carried(e, FLOAT8) if e.type == NUMERIC else e for e in given))
    if name in ("round", "trunc") and node.type == NUMERIC:
        return replace(node, name=_OWN[name], arguments=(given[0], *(given[1:] or (s.number(0),))))
    row = SIGNED.get((name, tuple("numeric" if each == NUMERIC else str(each) for each in types)))
    if name in _OWN and node.type == NUMERIC:
        return replace(node, name=_OWN[name], arguments=tuple(as_carried(each, NUMERIC) for each in given))
    if name in _RECKON:
        given, row = tuple(as_carried(each, NUMERIC) for each in given), SIGNED.get((name, ("numeric",) * len(given)))
    if isinstance(row, Function) and row.called:
        return replace(node, name=row.called, arguments=given)
    return node


def _items(item: Type, values: Sequence[s.Scalar], lists: Sequence[int]) -> tuple[s.Scalar, ...]:
    """``values`` as items of the type ``item``, and in the places ``lists`` as lists of them."""
    return tuple(as_carried(each, list_of(item) if at in lists else item) for at, each in enumerate(values))


def _has_numbers(value: s.Scalar) -> bool:
    if isinstance(value, s.Struct):
        return any(map(_has_numbers, value.values))
    return value.type in (NUMERIC, _NUMBERS)


def _in_json(value: s.Scalar) -> s.Scalar:
    """A number, and what is none as its text."""
    if isinstance(value, s.Struct):
        return _of_parts(value, map(_in_json, value.values))
    if value.type == _NUMBERS:
        each = s.Variable(NUMERIC, True, "x")
        return call(ListOf(JSON), "transform", value, s.Lambda(JSON, True, ("x",), _in_json(each)))
    if value.type != NUMERIC:
        return value
    none = call(BOOL, "in", value, *map(text, (numerics.NAN, numerics.INFINITY, numerics.NEGATIVE_INFINITY)))
    return s.Case(JSON, True, None, ((none, call(JSON, "to_json", value)),), s.cast(value, JSON))


def _sort(node: s.Sort) -> s.Sort:
    return replace(node, key=_key(node.key))


def _in_rows(node: s.InRows) -> s.Scalar:
    columns = [node.relation.column(at) for at in range(len(node.values))]
    pairs = [_alike(pair) for pair in zip(node.values, columns, strict=True)]
    if pairs == list(zip(node.values, columns, strict=True)):
        return node
    made = r.Project(node.relation, tuple(right for _, right in pairs))
    return replace(node, values=tuple(left for left, _ in pairs), relation=made)


# -- of many ----------------------------------------------------------------------------------------------------------


def _sum(of: s.Aggregate, value: s.Scalar) -> Folded:
    """Of a number with digits of its own the sum of its parts, which are integers."""
    if value.type != NUMERIC:
        return [replace(of, type=_WIDE, name="sum", arguments=(value,))], lambda found: s.cast(found[0], NUMERIC)
    if of.distinct:
        raise _refused(f"{of.name}(DISTINCT …)")
    parts = call(INT8.array, "tm_numeric_parts", value)
    sums = [
        replace(of, type=_WIDE, name="sum", arguments=(call(INT8, "element_at", parts, s.number(at)),))
        for at in range(1, PARTS + 1)
    ]

    def total(found: Sequence[s.Scalar]) -> s.Scalar:
        listed = s.Call(INT8.array, False, "array", tuple(s.cast(each, INT8) for each in found))
        return call(NUMERIC, "tm_numeric_total", listed)

    return sums, total


def _count(of: s.Aggregate) -> s.Aggregate:
    return replace(of, type=INT8, name="count")


def _average(of: s.Aggregate) -> Folded:
    sums, total = _sum(of, of.arguments[0])

    def made(found: Sequence[s.Scalar]) -> s.Scalar:
        return call(NUMERIC, "tm_numeric_div", total(found[:-1]), as_carried(found[-1], NUMERIC))

    return [*sums, _count(of)], made


def _deviation(of: s.Aggregate) -> Folded:
    """Of the count, the sum and the sum of squares."""
    [value] = of.arguments
    if of.distinct and value.type not in (INT2, INT4):
        raise _refused(f"{of.name}(DISTINCT …)")
    sums, total = _sum(of, value)
    if value.type in (INT2, INT4):
        squared: s.Scalar = call(_WIDE, "*", s.cast(value, _WIDE), s.cast(value, _WIDE))
    else:
        number = as_carried(value, NUMERIC)
        squared = call(NUMERIC, "tm_numeric_mul", number, number)
    squares, of_squares = _sum(replace(of, arguments=(squared,)), squared)
    kind, width = text(_SPREAD[of.name]), len(sums)

    def made(found: Sequence[s.Scalar]) -> s.Scalar:
        given = found[-1], total(found[:width]), of_squares(found[width:-1])
        return call(NUMERIC, "tm_numeric_deviation", kind, *given)

    return [*sums, *squares, _count(of)], made


def _folded(of: s.Aggregate) -> Folded:
    """What the engine folds in the place of an aggregate, and what is made of that."""
    value = of.arguments[0] if of.arguments else None
    if of.type == NUMERIC and of.name == "sum":
        return _sum(of, value)
    if of.type == NUMERIC and of.name == "avg":
        return _average(of)
    if of.type == NUMERIC and of.name in _SPREAD:
        return _deviation(of)
    if of.name == "percentile_disc" and of.type == NUMERIC:
        [sort] = of.within
        keyed = replace(sort, key=replace(sort.key, name="tm_numeric_keyed"))
        return [replace(of, type=TEXT, within=(keyed,))], _of_keyed
    if of.name == "mode" and of.type == NUMERIC:
        raise _refused("mode()")
    if value is None or not _has_numbers(value):
        return _as_it_is(of)
    if of.name in ("min", "max") and of.type == NUMERIC:
        keyed_value = call(TEXT, "tm_numeric_keyed", value)
        return [replace(of, type=TEXT, arguments=(keyed_value,))], _of_keyed
    if of.name in ("count", "grouping"):
        return _as_it_is(replace(of, arguments=tuple(map(_key, of.arguments))))
    if of.distinct:
        raise _refused(f"{of.name}(DISTINCT …)")
    if of.name in _WRITE_JSON:
        return _as_it_is(replace(of, arguments=tuple(map(_in_json, of.arguments))))
    return _as_it_is(of)


def _as_it_is(of: s.Aggregate) -> Folded:
    return [of], lambda found: found[0]


def _of_keyed(found: Sequence[s.Scalar]) -> s.Scalar:
    return call(NUMERIC, "tm_numeric_of_keyed", found[0])


def _refused(what: str) -> Exception:
    return unsupported(
        f"{what} of numeric over system relations", "cast to a type whose equal values have all the same digits"
    )


def _reduce(node: r.Reduce) -> r.Relation:
    """Groups are by keys; of a group's equal numbers the one that is shown is the one with the fewest digits."""
    folded = [_folded(each) for each in node.aggregates]
    shown: list[Folded | None] = [None] * len(node.keys)
    for at, each in enumerate(node.keys):
        if each.type == NUMERIC:
            least = s.Aggregate(TEXT, True, "min", (call(TEXT, "tm_numeric_keyed", each),))
            shown[at] = [least], _of_keyed
    if not any(shown) and [each for each, _ in folded] == [[each] for each in node.aggregates]:
        return node
    keys = tuple(_key(each) if each.type == NUMERIC else each for each in node.keys)
    every = [each for each in (*shown, *folded) if each is not None]
    made = r.Reduce(node.input, keys, tuple(each for some, _ in every for each in some), node.sets)
    found = iter(_found(made, len(keys), every))
    outputs = [
        made.column(at) if each is None else _grouped(made.column(at), next(found), node.sets is not None)
        for at, each in enumerate(shown)
    ]
    return r.Project(made, (*outputs, *found))


def _grouped(key: s.Scalar, shown: s.Scalar, of_sets: bool) -> s.Scalar:
    """NULL where rows are not grouped by it."""
    if not of_sets:
        return shown
    missing = s.Call(BOOL, False, "is_null", (key,))
    return s.Case(NUMERIC, True, None, ((missing, s.Literal(NUMERIC, True, None)),), shown)


def _found(made: r.Relation, first: int, folded: Sequence[Folded]) -> list[s.Scalar]:
    """What is made of the aggregates that stand from the column ``first`` on."""
    outputs = []
    for some, make in folded:
        outputs.append(make([made.column(at) for at in range(first, first + len(some))]))
        first += len(some)
    return outputs


def _window(node: r.Window) -> r.Relation:
    folded = [_folded(each.function) for each in node.calls]
    partitions = [tuple(map(_key, each.partition)) for each in node.calls]
    for each in node.calls:
        frame = each.frame
        bounds = (frame.start, frame.end) if frame is not None and frame.by == "range" else ()
        by_number = any(_has_numbers(sort.key) or sort.key.type == TEXT for sort in each.order)
        if by_number and any(bound is not None and bound.amount is not None for bound in bounds):
            raise _refused("RANGE with an offset")
    calls = tuple(
        replace(each, type=one.type, function=one, partition=partition)
        for each, (some, _), partition in zip(node.calls, folded, partitions, strict=True)
        for one in some
    )
    if calls == node.calls:
        return node
    made, width = r.Window(node.input, calls), len(node.input.columns)
    return r.Project(made, (*(made.column(at) for at in range(width)), *_found(made, width, folded)))


def _distinct(node: r.Distinct) -> r.Relation:
    if not _numbers(node.columns):
        return node
    return _reduce(r.Reduce(node.input, tuple(node.input.column(at) for at in range(len(node.columns))), ()))


def _set_op(node: r.SetOp) -> r.Relation:
    if not _numbers(node.columns) or node.kind == "union" and node.all:
        return node
    if node.kind == "union":
        return _distinct(r.Distinct(replace(node, all=True)))
    raise _refused(node.kind.upper())


_RULES: dict[type[Node], Callable[[Node], Node]] = {
    s.Call: _call, s.Sort: _sort, s.InRows: _in_rows, r.Reduce: _reduce, r.Window: _window, r.Distinct: _distinct,
    r.SetOp: _set_op,
}  # fmt: skip
