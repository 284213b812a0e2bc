"""Types of arrays and of what is done with them, of one dimension that counts from 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from journal.errors import InvalidUsage
from sql.typing import check_array_functions
from sql.typing.assign import assign, assignable
from sql.typing.casts import converted, is_made_over, texts_of
from sql.typing.check_array_functions import overlaps, sliced, typed_index
from sql.typing.check_jsonb import put, subscripted
from sql.typing.comparing import blanks_differ, check_comparable
from sql.typing.keys import by_key, key_of, keys_of
from sql.typing.rows_made import makes_rows
from sql.typing.scope import Scope
from sql.typing.written_arrays import rows_of_array
from trees import types as t
from trees.errors import mismatch, no_function, no_operator, not_unique, unsupported, untyped
from trees.nodes import Ordinality, Put, call, cast, position, swap, unnest
from trees.own import own
from values.types import SqlType

if TYPE_CHECKING:
    from sql.typing.check import Checker


def _array(c: Checker, node: exp.Array, scope: Scope) -> SqlType:
    """``ARRAY[…]``."""
    if (rows := rows_of_array(node)) is not None:
        return _of_rows(c, node, rows, scope)
    types = [c.visit(each, scope) for each in list(node.expressions)]
    found = c.give_all(list(node.expressions), types, "ARRAY")
    if not types:
        raise InvalidUsage(
            "cannot determine type of empty array",
            sqlstate="42P18",
            hint="explicitly cast to the desired type, for example ARRAY[]::integer[]",
            position=position(node),
        )
    if found == t.UNKNOWN:
        found = t.TEXT
        for each in list(node.expressions):
            c.give(each, t.TEXT)
    if found.is_array:
        raise unsupported("an array of more than one dimension", position=position(node))
    node.replace(cast(node.copy(), found.array))
    return found.array


def _of_rows(c: Checker, node: exp.Array, query: exp.Expression, scope: Scope) -> SqlType:
    """``ARRAY(SELECT x …)``: ``array_agg`` of the same rows in the same order, and an empty array of none."""
    select = query.unnest() if isinstance(query, exp.Subquery) else query
    if not isinstance(select, exp.Select) or any(select.args.get(key) for key in _SHAPED):
        raise _other_rows("of a query with GROUP BY, LIMIT, WITH or UNION", node)
    if len(select.expressions) != 1:
        raise InvalidUsage("subquery must return only one column", sqlstate="42601", position=position(node))
    output, distinct, order = select.expressions[0], select.args.get("distinct"), select.args.get("order")
    value = output.unalias()
    if value.find(exp.AggFunc, exp.Star):
        raise _other_rows("of an aggregate", node)
    if any(makes_rows(each) for each in value.walk()):
        raise _other_rows("of an expression that makes rows", node)
    keys = [each.copy() for each in order.expressions] if order else []
    for key in keys:
        named = isinstance(key.this, exp.Column) and not key.this.table and key.this.name == output.alias_or_name
        if named or (isinstance(key.this, exp.Literal) and key.this.this == "1"):
            key.set("this", value.copy())
    if distinct is not None and (distinct.args.get("on") or any(key.this != value for key in keys)):
        raise _other_rows("of DISTINCT rows in another order than the value's", node)
    if isinstance(value, exp.Literal) and value.is_string:
        value = cast(value, t.TEXT)
    listed = exp.Distinct(expressions=[value.copy()]) if distinct is not None else value.copy()
    made = select.copy()
    made.set("order", None)
    made.set("distinct", None)
    gathered = exp.ArrayAgg(this=exp.Order(this=listed, expressions=keys) if keys else listed)
    made.set("expressions", [exp.alias_(gathered, "array")])
    made.meta[ORDERED_WITHIN] = bool(keys)
    holder = exp.Coalesce(this=exp.Subquery(this=made), expressions=[])
    node.replace(holder)
    got = c.child(holder, "this", scope)
    holder.set("expressions", [cast(exp.Array(expressions=[]), got)])
    return got


ORDERED_WITHIN = "ordered_within"
"""In the ``meta`` of a query whose ORDER BY stands within its one output now: bare names there are columns of its FROM,
and have no relation yet."""

_SHAPED = ("group", "having", "limit", "offset", "qualify", "windows", "with_")
"""What makes other rows of a query's rows."""


def _other_rows(what: str, node: exp.Expression) -> InvalidUsage:
    return unsupported(f"ARRAY(SELECT …) {what}", hint="use array_agg over it in FROM", position=position(node))


def _subscripts(
    c: Checker, node: exp.Bracket, scope: Scope
) -> tuple[exp.Bracket, list[exp.Expression], SqlType]:
    """What is subscripted is ``this`` of the first; the subscripts, and its type: an array's, or ``jsonb``."""
    steps: list[exp.Expression] = []
    base: exp.Expression = node
    while isinstance(base, exp.Bracket):
        if len(base.expressions) != 1:
            raise unsupported("this subscript", position=position(node))
        steps.insert(0, base.expressions[0])
        bottom, base = base, base.this
    got = c.child(bottom, "this", scope)
    if got != t.JSONB and not got.is_array:
        raise mismatch(f"cannot subscript type {t.shown(got)} because it does not support subscripting", position(node))
    return bottom, steps, got


def _put(c: Checker, node: Put, scope: Scope) -> SqlType:
    """``SET a[i] = v``: an array that is too short is as long then, and one that is NULL is there."""
    read = node.this
    bottom, steps, got = _subscripts(c, read, scope)
    if got == t.JSONB:
        wanted = t.JSONB
    elif any(isinstance(step, exp.Slice) for step in steps):
        raise unsupported("assigning to a slice of an array", "assign the whole array", position(read))
    elif len(steps) > 1:
        raise unsupported("arrays of more than one dimension", position=position(read))
    else:
        wanted = got.element
    given = c.child(node, "expression", scope)
    if given == t.UNKNOWN:
        c.give(node.expression, wanted)
    elif not assignable(given, wanted):
        raise mismatch(
            f'subscripted assignment to "{_called(bottom)}" requires type {t.shown(wanted)} '
            f"but expression is of type {t.shown(given)}",
            position(read),
            hint="you will need to rewrite or cast the expression",
        )
    else:
        node.set("expression", assign(node.expression, given, wanted, "", c.zone))
    if got == t.JSONB:
        return put(c, node, bottom.this, steps, scope)
    at = typed_index(c, steps[0], scope)
    assert bottom.args.get("offset") == 1, "subscripts count from 1 (sql.syntax.to_tree)"
    made = (cast(bottom.this.copy(), got), cast(at.copy(), t.INT4), cast(node.expression.copy(), wanted))
    node.replace(cast(call("TM_ARRAY_PUT", *made), got))
    return got


def _called(bottom: exp.Bracket) -> str:
    column = next(bottom.find_all(exp.Column), None)
    return "" if column is None else column.name


def _item(c: Checker, node: exp.Bracket, scope: Scope) -> SqlType:
    """``a[i]``: NULL outside of the array."""
    bottom, steps, got = _subscripts(c, node, scope)
    if got == t.JSONB:
        return subscripted(c, node, bottom.this, steps, scope)
    if any(isinstance(step, exp.Slice) for step in steps):
        return sliced(c, node, bottom.this, got, steps, scope)
    if len(steps) > 1:  # there is nothing in another dimension
        for step in steps:
            typed_index(c, step, scope)
        node.replace(cast(exp.null(), got.element))
        return got.element
    index = c.visit(node.expressions[0], scope)
    if index == t.UNKNOWN:
        c.give(node.expressions[0], t.INT4)
    elif not t.is_number(index):
        raise mismatch("array subscript must have type integer", position(node.expressions[0]))
    elif not t.is_int(index):
        swap(node.expressions[0], converted(node.expressions[0], index, t.INT4))
    assert node.args.get("offset") == 1, "subscripts count from 1 (sql.syntax.to_tree)"
    node.replace(cast(_element_at(node.this, cast(node.expressions[0].copy(), t.INT4)), got.element))
    return got.element


def _element_at(array: exp.Expression, at: exp.Expression) -> exp.Expression:
    """The element at ``at``, counted from 1; a place before the first or behind the last has NULL."""
    inside = exp.GT(this=at.copy(), expression=exp.Literal.number(0))
    return exp.Case(ifs=[exp.If(this=inside, true=call("TRY_ELEMENT_AT", array, at))])


def any_of_array(c: Checker, node: exp.Expression, right: exp.Expression, scope: Scope) -> SqlType:
    """``x op ANY (array)`` and ``x op ALL (array)``, NULLs and all."""
    if type(node) not in SIGNS:
        raise unsupported("LIKE and its kin with an array that is not written out", position=position(node))
    inner, every = unnest(right.this), isinstance(right, exp.All)
    right.set("this", inner.copy())
    left = c.child(node, "this", scope)
    got = c.child(right, "this", scope)
    if got == t.UNKNOWN:
        # Numbers keep their own digits: made the other side's, 1.004 would equal its 1.00.
        wanted = t.TEXT if left == t.UNKNOWN else t.NUMERIC if left.name == "numeric" else left
        c.give(right.this, wanted.array)
        got = wanted.array
    if not got.is_array:
        raise InvalidUsage(
            "op ANY/ALL (array) requires array on right side", sqlstate="42809", position=position(node)
        )
    both = t.common(left, got.element)
    if both is None:
        raise t.no_comparison(left, SIGNS[type(node)], got.element, position(node))
    check_comparable(both, SIGNS[type(node)], position(node))
    if both == t.FLOAT4 and not {left, got.element} <= {t.FLOAT4, t.UNKNOWN}:
        both = t.FLOAT8  # as which Postgres compares a real with any other number
    c.alike([left, got.element], both, node)
    if left == t.UNKNOWN:
        c.give(node.this, both)
    if both == t.INTERVAL:
        raise unsupported("ANY over an array of intervals", position=position(node))
    if by_key(both):
        array, value = keys_of(right.this, got), key_of(node.this, left if left != t.UNKNOWN else both)
    elif blanks_differ([left, got.element]):
        array, value = converted(right.this, got, BPCHAR.array), converted(node.this, left, BPCHAR)
    else:
        array, value = cast(right.this.copy(), both.array), cast(node.this.copy(), both)
    # Spark's own says of a NULL in the array what SQL does; DuckDB's does not, so the NULLs are counted.
    absent = exp.Paren(this=exp.Or(this=exp.Is(this=value, expression=exp.Null()), expression=_has_null(array)))
    unknown = exp.If(this=absent, true=cast(exp.null(), t.BOOL))
    empty = exp.EQ(this=call("SIZE", array), expression=exp.Literal.number(0))
    none = exp.If(this=exp.Is(this=array.copy(), expression=exp.Null()), true=cast(exp.null(), t.BOOL))
    # Whatever the others say: one that holds decides ANY, one that does not decides ALL.
    decided = _one_fails(type(node), value, array) if every else _one_holds(type(node), value, array)
    decides = exp.If(this=exp.Coalesce(this=decided, expressions=[exp.false()]), true=exp.Boolean(this=not every))
    ends = exp.Boolean(this=every)
    node.replace(exp.Case(ifs=[none, exp.If(this=empty, true=ends.copy()), decides, unknown], default=ends))
    return t.BOOL


BPCHAR = SqlType("bpchar")
"""As which a ``char`` is compared with a ``varchar``."""

SIGNS: dict[type[exp.Expression], str] = {
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
}  # fmt: skip

_FAILS = {exp.EQ: exp.NEQ, exp.NEQ: exp.EQ, exp.LT: exp.GTE, exp.LTE: exp.GT, exp.GT: exp.LTE, exp.GTE: exp.LT}


def _one_holds(kind: type[exp.Expression], value: exp.Expression, array: exp.Expression) -> exp.Expression:
    """Whether ``value op element`` holds of one at least: its least and its greatest are all that must be asked."""
    if kind is exp.EQ:
        return call("ARRAY_CONTAINS", array, value)
    ends = {exp.NEQ: ("ARRAY_MIN", "ARRAY_MAX"), exp.LT: ("ARRAY_MAX",), exp.LTE: ("ARRAY_MAX",)}
    tests = [kind(this=value.copy(), expression=call(end, array)) for end in ends.get(kind, ("ARRAY_MIN",))]
    return exp.Paren(this=exp.or_(*tests))


def _one_fails(kind: type[exp.Expression], value: exp.Expression, array: exp.Expression) -> exp.Expression:
    return _one_holds(_FAILS[kind], value, array)


def _has_null(array: exp.Expression) -> exp.Expression:
    return exp.LT(this=call("SIZE", call("ARRAY_COMPACT", array)), expression=call("SIZE", array))


def joined_arrays(c: Checker, node: exp.DPipe, types: Sequence[SqlType]) -> SqlType:
    """``array || array``, ``array || element`` and ``element || array``."""
    sides = [node.this, node.expression]
    known = next(got for got in types if got.is_array)
    elements = [got.element if got.is_array else got for got in types if got != t.UNKNOWN]
    if (both := t.alternative(elements[0], elements[-1])) is not None:
        known = both.array  # 1.5 keeps its half before an array of integers
        c.alike(elements, both, node)
    made: list[exp.Expression] = []
    of_two = all(got.is_array or got == t.UNKNOWN for got in types)
    for each, got in zip(sides, types, strict=True):
        if got == t.UNKNOWN:
            c.give(each, known)
            got = known
        each = node.this if each is sides[0] else node.expression
        if got.is_array and t.common(got.element, known.element) is not None:
            # NULL for an array is no elements beside an element.
            empty = cast(exp.Array(expressions=[]), known)
            whole = cast(each, known)  # taken, not copied: nobody looks at what it was in any more
            made.append(whole if of_two else exp.Anonymous(this="COALESCE", expressions=[whole, empty]))
        elif not got.is_array and t.common(got, known.element) is not None:
            item = converted(each, got, known.element) if is_made_over(got, known.element) else each
            made.append(cast(exp.Array(expressions=[cast(item.copy(), known.element)]), known))
        else:
            raise no_operator(t.shown(types[0]), "||", t.shown(types[1]), position(node))
    node.replace(cast(exp.Anonymous(this="TM_ARRAY_BOTH" if of_two else "CONCAT", expressions=made), known))
    return known


def _unnested(c: Checker, node: exp.Explode, scope: Scope) -> SqlType:
    """``unnest(array)``: one row for each element."""
    got = c.child(node, "this", scope)
    if got == t.UNKNOWN:
        raise not_unique("unnest(unknown)", position(node))
    if not got.is_array:
        raise no_function(f"unnest({t.shown(got)})", position=position(node))
    node.replace(call("EXPLODE", node.this))
    return got.element


def _to_text(c: Checker, node: exp.ArrayToString, scope: Scope) -> SqlType:
    """``array_to_string(a, separator[, instead of NULL])``."""
    got = c.child(node, "this", scope)
    if got == t.UNKNOWN:
        raise untyped(position(node))
    if not got.is_array:
        raise no_function(f"array_to_string({t.shown(got)}, unknown)", position=position(node))
    arguments = [texts_of(node.this, got, c.zone)]
    for key in ("expression", "null"):
        if node.args.get(key) is not None:
            c.want(node, key, t.TEXT, scope, lambda bad: no_function(f"array_to_string(…, {t.shown(bad)})"))
            arguments.append(node.args[key])
    *plain, null = arguments if len(arguments) == 3 else (*arguments, None)
    joined = own("tm_join", *plain)
    node.replace(joined if null is None else _where_null(null, joined, own("tm_join_all", *_copies(plain), null)))
    return t.TEXT


def _where_null(known: exp.Expression, then: exp.Expression, otherwise: exp.Expression) -> exp.Expression:
    """``then`` where ``known`` is NULL: an argument of a function that is not NULL for it."""
    if isinstance(known.this if isinstance(known, exp.Cast) else known, exp.Literal):
        return otherwise
    null = exp.Is(this=known.copy(), expression=exp.Null())
    return exp.Case(ifs=[exp.If(this=null, true=then)], default=otherwise)


def _copies(nodes: list[exp.Expression]) -> list[exp.Expression]:
    return [each.copy() for each in nodes]


def _of_text(c: Checker, node: exp.StringToArray, scope: Scope) -> SqlType:
    """``string_to_array(text, separator[, what is NULL])``: of its letters where the separator is NULL."""
    for key in ("this", "expression", "null"):
        if key != "null" or node.args.get(key) is not None:
            c.want(node, key, t.TEXT, scope, lambda bad: no_function(f"string_to_array({t.shown(bad)})"))
    text, separator, null = node.this, node.expression, node.args.get("null")
    parts = _where_null(separator, own("tm_letters", text.copy()), own("tm_split", text, separator))
    if null is not None:
        parts = _where_null(null, parts, own("tm_with_nulls", parts.copy(), null))
    node.replace(exp.Paren(this=parts) if isinstance(parts, exp.Case) else parts)
    return t.TEXT.array


ARRAYS = {
    exp.Array: _array,
    exp.Bracket: _item,
    exp.Explode: _unnested,
    exp.ArrayToString: _to_text,
    exp.StringToArray: _of_text,
    exp.ArrayOverlaps: overlaps,
    Ordinality: lambda c, node, scope: t.INT8,
    Put: _put,
}

def _parts(c: Checker, node: exp.Anonymous, scope: Scope) -> SqlType:
    """``string_to_table``: a row for each of what ``string_to_array`` gives."""
    if not 2 <= len(node.expressions) <= 3:
        raise no_function("string_to_table", position=position(node))
    keys = ("this", "expression", "null")
    listed = exp.StringToArray(**dict(zip(keys, [each.copy() for each in node.expressions], strict=False)))
    holder = exp.Explode(this=listed)
    node.replace(holder)
    return _unnested(c, holder, scope)


NAMED = {
    "string_to_table": _parts,
    **check_array_functions.NAMED,
}
