"""Types of functions and operators of arrays, each of one dimension that counts from 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from functions.registry import OF_ARRAYS
from functions.row import ARRAY, ITEM, SAME, Function
from sql.typing.casts import converted, is_made_over, texts_of
from sql.typing.free_numerics import freed
from sql.typing.keys import by_key, check_no_keys, key_of, keys_of
from sql.typing.scope import Scope
from sql.typing.signatures import standing_for
from trees import types as t
from trees.errors import mismatch, no_function, no_operator, unsupported, untyped
from trees.nodes import call, cast, position, unnest
from trees.own import own
from values.types import SqlType

if TYPE_CHECKING:
    from sql.typing.check import Checker

_TOP = exp.Literal.number((1 << 31) - 1)
_ONE = exp.Literal.number(1)


def _visited(c: Checker, node: exp.Anonymous, scope: Scope) -> list[SqlType]:
    return [c.visit(each, scope) for each in list(node.expressions)]


def _no_such(node: exp.Anonymous, got: list[SqlType]) -> Exception:
    return no_function(f"{node.this.lower()}({', '.join(map(t.shown, got))})", position=position(node))


def _compatible(c: Checker, node: exp.Anonymous, got: list[SqlType], kinds: str) -> SqlType:
    """Bring the arguments to one type, which is returned as the type of the array: ``kinds`` says of each whether it
    is an ``a``\\rray, an ``x`` of its items, or an ``i``\\nteger."""
    if len(got) != len(kinds):
        raise _no_such(node, got)
    element = t.UNKNOWN
    for kind, each in zip(kinds, got, strict=True):
        if kind == "i" and not (each == t.UNKNOWN or t.is_int(each)):
            raise _no_such(node, got)
        if kind == "i" or each == t.UNKNOWN:
            continue
        if each.is_array is not (kind == "a"):
            raise _no_such(node, got)
        both = t.alternative(element, each.element if kind == "a" else each)
        if both is None:
            raise _no_such(node, got)
        element = both
    element = t.TEXT if element == t.UNKNOWN else element
    if element == t.INTERVAL:
        raise unsupported(f"{node.this.lower()} of intervals", position=position(node))
    wanted = {"a": element.array, "x": element, "i": t.INT4}
    c.alike([each for each in got if each.is_array or t.is_time(each)], element, node)
    for place, (kind, each) in enumerate(zip(kinds, got, strict=True)):
        if each == t.UNKNOWN:
            c.give(node.expressions[place], wanted[kind])
    for place, kind in enumerate(kinds):
        here = node.expressions[place]
        if element.is_free and kind == "a":
            here.replace(_free_items(here, got[place], element.array))
        elif element.is_free and kind == "x":
            here.replace(freed(here, t.NUMERIC if got[place] == t.UNKNOWN else got[place]))
        elif kind == "x" and is_made_over(got[place], element):
            here.replace(converted(here, got[place], element))
        else:
            here.replace(cast(here.copy(), wanted[kind]))
    return element.array


def _free_items(node: exp.Expression, got: SqlType, wanted: SqlType) -> exp.Expression:
    """An array of exact numbers as one of free numerics."""
    if got == t.UNKNOWN or got.is_free:
        return cast(node.copy(), wanted)
    return cast(texts_of(node, got), wanted)


def _of_rows(rows: tuple[Function, ...]):
    """Calls of a function of arrays of any type (:mod:`functions.arrays`): the arguments are brought to one type."""

    def check(c: Checker, node: exp.Anonymous, scope: Scope) -> SqlType:
        got = _visited(c, node, scope)
        row = next((each for each in rows if len(each.arguments) == len(got)), rows[0])
        if len(got) != len(row.arguments):
            raise _no_such(node, got)
        kinds = "".join(_KINDS[each.name] for each in row.arguments)
        if SAME in row.arguments:
            _check_same(node, [each for each, wanted in zip(got, row.arguments, strict=False) if wanted == SAME])
        alone = kinds.count("a") == 1 and "x" not in kinds
        found = _alone(c, node, got, row) if alone else _compatible(c, node, got, kinds)
        result = found if row.result in (ARRAY, SAME) else row.result
        given = list(node.expressions)
        if by_key(item := found.element) and row.by_key:
            if row.result == ARRAY:
                check_no_keys(item, str(node.this).lower(), node)
            by_kind = {
                "a": lambda each: keys_of(each, found), "x": lambda each: key_of(each, item), "i": exp.Expression.copy,
            }  # fmt: skip
            given = [by_kind[kind](each) for kind, each in zip(kinds, given, strict=True)]
        node.replace(standing_for(call(row.form, *given), result, row.many))
        return result

    return check


def _alone(c: Checker, node: exp.Anonymous, got: list[SqlType], row: Function) -> SqlType:
    """The type of an array that stays what it is, since nothing is put beside it."""
    if not got[0].is_array:
        raise _no_such(node, got)
    for place, wanted in list(enumerate(row.arguments))[1:]:
        if not c.coerce(node.expressions[place], got[place], wanted):
            raise _no_such(node, got)
        node.expressions[place].replace(cast(node.expressions[place].copy(), wanted))
    return got[0]


_KINDS = {ARRAY.name: "a", SAME.name: "a", ITEM.name: "x", "int4": "i", "bool": "b"}


def _check_same(node: exp.Anonymous, got: list[SqlType]) -> None:
    """42883 for arrays of several types, 42804 where none has one."""
    known = {each.name for each in got if each != t.UNKNOWN}
    if len(known) > 1:
        raise _no_such(node, got)
    if got and not known:
        raise untyped(position(node))


_WITHOUT = {t.NUMERIC: "tm_numeric_without", t.JSONB: "tm_jsonb_without"}


def _without(c: Checker, node: exp.Anonymous, scope: Scope) -> SqlType:
    """``array_remove(array, item)``."""
    found = _compatible(c, node, _visited(c, node, scope), "ax")
    array, item = node.expressions
    made: exp.Expression = call("TM_ARRAY_WITHOUT", array, item)
    if by_key(found.element):
        absent = exp.If(this=exp.Is(this=item.copy(), expression=exp.null()), true=made)
        made = exp.Case(ifs=[absent], default=own(_WITHOUT[found.element], array, item))
    node.replace(cast(made, found))
    return found


def _appended(kinds: str):
    """``array_append`` and ``array_prepend``: NULL for an array is no items."""

    def check(c: Checker, node: exp.Anonymous, scope: Scope) -> SqlType:
        found = _compatible(c, node, _visited(c, node, scope), kinds)
        none = cast(exp.Array(expressions=[]), found)
        parts = [
            call("COALESCE", each, none) if kind == "a" else cast(exp.Array(expressions=[each.copy()]), found)
            for kind, each in zip(kinds, node.expressions, strict=True)
        ]
        node.replace(cast(call("CONCAT", *parts), found))
        return found

    return check


def _filled(c: Checker, node: exp.Anonymous, scope: Scope) -> SqlType:
    """``array_fill(value, ARRAY[n])``; other dimensions and lower bounds than 1 are refused."""
    got = _visited(c, node, scope)
    if not 2 <= len(got) <= 3:
        raise _no_such(node, got)
    for place, each in list(enumerate(got))[1:]:
        if each == t.UNKNOWN:
            c.give(node.expressions[place], t.INT4.array)
        elif not (each.is_array and t.is_int(each.element)):
            raise _no_such(node, got)
    if got[0].is_array:
        raise unsupported("an array of more than one dimension", position=position(node))
    if got[0] == t.UNKNOWN:
        raise untyped(position(node))
    found = got[0].array
    value, sizes, *lower = node.expressions
    checked = cast(call("TM_ARRAY_SIZES", cast(sizes.copy(), t.INT4.array)), t.INT4)
    if lower:
        checked = cast(call("TM_ARRAY_BOUNDS", checked, cast(lower[0].copy(), t.INT4.array)), t.INT4)
    node.replace(cast(call("TM_ARRAY_FILLED", cast(value.copy(), found.element), checked), found))
    return found


NAMED = {
    **{each.name: _of_rows(tuple(row for row in OF_ARRAYS if row.name == each.name)) for each in OF_ARRAYS},
    "array_append": _appended("ax"),
    "array_prepend": _appended("xa"),
    "array_remove": _without,
    "array_fill": _filled,
}


def sides_alike(c: Checker, node: exp.Binary, types: list[SqlType], op: str) -> None:
    """Both sides of ``op`` as arrays of one type, or 42883."""
    both = t.common(*types)
    if both is None or not both.is_array:
        raise no_operator(t.shown(types[0]), op, t.shown(types[1]), position(node))
    if both == t.INTERVAL.array:
        raise unsupported(f"{op} of arrays of intervals", position=position(node))
    c.alike(types, both, node)
    for key, got in zip(("this", "expression"), types, strict=True):
        if got == t.UNKNOWN:
            c.give(node.args[key], both)
    for key, got in zip(("this", "expression"), types, strict=True):
        made = _free_items(node.args[key], got, both) if both.is_free else cast(node.args[key].copy(), both)
        node.args[key].replace(keys_of(made, both) if by_key(both.element) else made)


def overlaps(c: Checker, node: exp.ArrayOverlaps, scope: Scope) -> SqlType:
    """``a && b``."""
    sides_alike(c, node, [c.child(node, "this", scope), c.child(node, "expression", scope)], "&&")
    node.replace(cast(call("TM_ARRAY_OVERLAPS", node.this, node.expression), t.BOOL))
    return t.BOOL


def sliced(c: Checker, node: exp.Bracket, array: exp.Expression, got: SqlType, steps: list, scope: Scope) -> SqlType:
    """``a[m:n]``; more than one pair of brackets is another dimension, of which there is nothing."""
    first = None
    for step in steps:
        ends = []
        for key, default in (("this", _ONE), ("expression", _TOP)):
            end = step.args.get(key) if isinstance(step, exp.Slice) else (step if key == "expression" else None)
            ends.append(typed_index(c, end, scope) if end is not None else default.copy())
        first = first or ends
    if len(steps) > 1:
        first = [exp.Literal.number(1), exp.Literal.number(0)]
    node.replace(cast(call("TM_ARRAY_SLICE", cast(array.copy(), got), *(cast(each, t.INT4) for each in first)), got))
    return got


def typed_index(c: Checker, node: exp.Expression, scope: Scope) -> exp.Expression:
    """A copy of a subscript, of which it is known that it is an integer."""
    holder = exp.Paren(this=node.copy())
    got = c.visit(holder.this, scope)
    if got == t.UNKNOWN:
        c.give(holder.this, t.INT4)
    elif not t.is_number(got):
        raise mismatch("array subscript must have type integer", position(unnest(node)))
    elif not t.is_int(got):
        return converted(holder.this, got, t.INT4)
    return holder.this
