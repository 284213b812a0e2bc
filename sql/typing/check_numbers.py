"""Types of what numbers are reckoned with: the signs, absolute values, rounding, bits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from functions.registry import SIGNED
from functions.row import Function
from journal.errors import InvalidUsage
from sql.typing.check_jsonb import lessened
from sql.typing.check_time import time_arithmetic
from sql.typing.float_ranges import RECKONED
from sql.typing.free_numerics import freed, reckoned
from sql.typing.interval_parts import negative
from sql.typing.keys import compared
from sql.typing.scope import Scope
from trees import types as t
from trees.errors import no_function, no_operator
from trees.functions import display_name
from trees.nodes import call, cast, position, unnest
from trees.own import own
from values.types import SqlType

if TYPE_CHECKING:
    from sql.typing.check import Checker

_SIGNS = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%"}


def _arithmetic(c: Checker, node: exp.Binary, scope: Scope) -> SqlType:
    op = _SIGNS[type(node)]
    left, right = c.child(node, "this", scope), c.child(node, "expression", scope)
    if left == t.UNKNOWN and right == t.UNKNOWN:
        raise _not_unique(f"unknown {op} unknown", node)
    if left == t.JSONB and isinstance(node, exp.Sub):
        return lessened(c, node, right)
    if found := time_arithmetic(c, node, op, left, right):
        return found
    for key, got, other in (("this", left, right), ("expression", right, left)):
        if got == t.UNKNOWN:
            c.give(node.args[key], _beside(other))
    left, right = (_beside(right) if left == t.UNKNOWN else left), (_beside(left) if right == t.UNKNOWN else right)
    found = t.arithmetic(op, left, right)
    if found is None:
        raise no_operator(t.shown(left), op, t.shown(right), position(node))
    if found.is_free:
        node.replace(reckoned(op, node.this.pop(), node.expression.pop(), (left, right)))
        return found
    if t.is_float(found):
        node.meta[RECKONED] = True
        compared([node.this, node.expression], [left, right])
    if op == "/" and t.is_int(found):
        node.replace(cast(exp.IntDiv(this=node.this.copy(), expression=node.expression.copy()), found))
    elif op == "/":
        node.set("typed", False)
        node.set("safe", False)
    return found


def _not_unique(what: str, node: exp.Expression) -> InvalidUsage:
    return InvalidUsage(
        f"operator is not unique: {what}",
        sqlstate="42725",
        position=position(node),
        hint="could not choose a best candidate operator; you might need to add explicit type casts",
    )


def _beside(other: SqlType) -> SqlType:
    """What an untyped number becomes that is reckoned with ``other``: of a numeric's digits it has its own."""
    return t.NUMERIC if other.name == "numeric" else other


def _signed(node: exp.Expression) -> tuple[bool, exp.Literal] | None:
    """The number that ``node`` is with signs and parentheses around it, and whether it is negative."""
    inner = unnest(node)
    if isinstance(inner, exp.Neg):
        found = _signed(inner.this)
        return found and (not found[0], found[1])
    return (False, inner) if isinstance(inner, exp.Literal) and not inner.is_string else None


def _negative(c: Checker, node: exp.Neg, scope: Scope) -> SqlType:
    if not isinstance(node.this, exp.Literal) and (number := _signed(node)) is not None:
        # Postgres's grammar puts signs into the number, whose type is found then: ``-(-2147483648)`` is a bigint.
        made = exp.Neg(this=number[1].copy()) if number[0] else number[1].copy()
        holder = exp.Paren(this=made)
        node.replace(holder)
        return c.visit(made, scope)
    if isinstance(node.this, exp.Literal) and not node.this.is_string and "e" not in node.this.this.lower():
        found = t.number_literal("-" + node.this.this)  # the least integer of a type has no positive counterpart
        node.this.meta["sql_type"] = found
        if t.number_literal(node.this.this) != found:
            node.replace(cast(exp.Literal.string("-" + node.this.this), found))
        return found
    got = c.child(node, "this", scope)
    if got == t.UNKNOWN:
        c.give(node.this, t.FLOAT8)
        return t.FLOAT8
    if got == t.INTERVAL:
        node.replace(negative(node.this))
        return got
    if not t.is_number(got):
        raise no_operator("", "-", t.shown(got), position(node))
    if got.is_free:
        node.replace(own("tm_numeric_neg", node.this))
    return got


_BIT_SIGNS = {
    exp.BitwiseAnd: "&", exp.BitwiseOr: "|", exp.BitwiseXor: "#",
    exp.BitwiseLeftShift: "<<", exp.BitwiseRightShift: ">>",
}  # fmt: skip


def _bits(c: Checker, node: exp.Binary, scope: Scope) -> SqlType:
    op = _BIT_SIGNS[type(node)]
    left, right = c.child(node, "this", scope), c.child(node, "expression", scope)
    both = t.common(left, right)
    if both == t.UNKNOWN:
        raise _not_unique(f"unknown {op} unknown", node)
    if both is None:
        raise t.no_comparison(left, op, right, position(node))
    called = _of_bits(_BIT_WORDS.get(op, ""), both, both)
    if not t.is_int(both) and called is None:
        raise no_operator(t.shown(left), op, t.shown(right), position(node))
    for key, got in (("this", left), ("expression", right)):
        if got == t.UNKNOWN:
            c.give(node.args[key], both)
    if called is not None:
        node.replace(cast(own(called, node.this, node.expression), both))
    return both


_BIT_WORDS = {"&": "and", "|": "or"}


def _of_bits(word: str, *kinds: SqlType) -> str | None:
    """What engines call the function that Postgres has for an operator of bits, where a row is of it."""
    row = SIGNED.get((f"{kinds[0].name}_{word}", tuple(each.name for each in kinds)))
    return row.called if isinstance(row, Function) else None


def _sign(c: Checker, node: exp.Sign, scope: Scope) -> SqlType:
    """Numeric of a numeric, a float of anything else."""
    got = c.child(node, "this", scope)
    if got == t.UNKNOWN:
        c.give(node.this, t.FLOAT8)
    elif not t.is_number(got):
        raise no_function(f"sign({t.shown(got)})", position=position(node))
    if got.is_free:
        node.replace(own("tm_numeric_sign", node.this))
        return got
    if got.name == "numeric":
        result = t.numeric(1, 0)
        node.replace(cast(exp.Anonymous(this="SIGN", expressions=[node.this.copy()]), result))
        return result
    node.replace(cast(call("TM_SIGN", cast(node.this.copy(), t.FLOAT8)), t.FLOAT8))
    return t.FLOAT8


def _inverted(c: Checker, node: exp.BitwiseNot, scope: Scope) -> SqlType:
    got = c.child(node, "this", scope)
    if got == t.UNKNOWN:
        raise _not_unique("~ unknown", node)
    called = _of_bits("not", got)
    if not t.is_int(got) and called is None:
        raise no_operator("", "~", t.shown(got), position(node))
    if called is not None:
        node.replace(cast(own(called, node.this), got))
    return got


def _shifted_bits(c: Checker, node: exp.Binary, scope: Scope) -> SqlType:
    left, right = c.child(node, "this", scope), c.child(node, "expression", scope)
    sign = _BIT_SIGNS[type(node)]
    if left == t.UNKNOWN and right == t.UNKNOWN:
        raise _not_unique(f"unknown {sign} unknown", node)
    if right == t.UNKNOWN and t.is_int(left):  # it moves by an int4, whatever is moved
        c.give(node.expression, t.INT4)
        right = t.INT4
    if left == t.UNKNOWN and right == t.INT4:
        c.give(node.this, t.INT4)
        left = t.INT4
    if not (t.is_int(left) and right in (t.INT2, t.INT4)):
        raise no_operator(t.shown(left), sign, t.shown(right), position(node))
    form = "TM_SHIFT_LEFT" if sign == "<<" else "TM_SHIFT_RIGHT"
    if left == t.INT8:
        node.replace(call(f"{form}_LONG", node.this, node.expression))
        return left
    made = call(form, cast(node.this.copy(), t.INT4), node.expression)
    if left == t.INT2 and sign == "<<":  # bits that go over the edge are lost, as in Postgres's cast of C
        low = exp.BitwiseAnd(this=made, expression=exp.Literal.number(0xFFFF))
        flipped = exp.BitwiseXor(this=exp.Paren(this=low), expression=exp.Literal.number(0x8000))
        made = exp.Paren(this=exp.Sub(this=exp.Paren(this=flipped), expression=exp.Literal.number(0x8000)))
    node.replace(made if left == t.INT4 else exp.Paren(this=cast(made, left)))
    return left


def _absolute(c: Checker, node: exp.Abs, scope: Scope) -> SqlType:
    got = c.child(node, "this", scope)
    if got == t.UNKNOWN:
        c.give(node.this, t.FLOAT8)
        return t.FLOAT8
    if not t.is_number(got):
        raise no_function(f"abs({t.shown(got)})", position=position(node))
    if got.is_free:
        node.replace(own("tm_numeric_abs", node.this))
    return got


_ROUNDED = {exp.Round: "tm_numeric_round", exp.Ceil: "tm_numeric_ceil", exp.Floor: "tm_numeric_floor"}


def _rounded(c: Checker, node: exp.Func, scope: Scope) -> SqlType:
    got = c.child(node, "this", scope)
    if got == t.UNKNOWN:
        c.give(node.this, t.FLOAT8)
        got = t.FLOAT8
    if not t.is_number(got):
        raise no_function(f"{display_name(node)}({t.shown(got)})", position=position(node))
    decimals = node.args.get("decimals")
    if decimals is not None:
        counted = c.child(node, "decimals", scope)
        if counted == t.UNKNOWN:
            c.give(node.args["decimals"], t.INT4)
        elif not t.is_int(counted):
            raise no_function(
                f"{display_name(node)}({t.shown(got)}, {t.shown(counted)})",
                position=position(node),
                hint="cast the second argument to integer",
            )
        if t.is_float(got):
            raise no_function(
                f"{display_name(node)}({t.shown(got)}, integer)",
                position=position(node),
                hint="cast the first argument to numeric",
            )
        digits = node.args["decimals"]
        result = t.NUMERIC
        if isinstance(digits, exp.Literal) and not digits.is_string and not got.is_free:
            source = t.as_numeric(got)
            result = t.numeric(source.precision - source.scale + int(digits.this) + 1, int(digits.this))
        if result.is_free:
            node.replace(own(_ROUNDED[type(node)], freed(node.this, got), digits))
            return result
        if t.is_int(got):  # round(15, 1) is numeric
            node.this.replace(cast(node.this.copy(), source))
    elif got.is_free:
        zero = (exp.Literal.number(0),) if isinstance(node, exp.Round) else ()
        node.replace(own(_ROUNDED[type(node)], node.this, *zero))
        return got
    elif t.is_float(got) or t.is_int(got):
        result = t.FLOAT8 if t.is_int(got) or got == t.FLOAT8 else got
    else:
        result = t.numeric(got.precision - got.scale + 1, 0)
    if t.is_float(got) and not isinstance(node, exp.Round):
        form = "TM_CEIL_FLOAT" if isinstance(node, exp.Ceil) else "TM_FLOOR_FLOAT"
        node.replace(cast(call(form, node.this), result))
    elif isinstance(node, exp.Round) and t.is_float(got):
        node.replace(cast(exp.Anonymous(this="BROUND", expressions=[node.this.copy(), exp.Literal.number(0)]), result))
    else:
        node.replace(cast(node.copy(), result))
    return result


NUMBERS = {
    exp.Add: _arithmetic,
    exp.Sub: _arithmetic,
    exp.Mul: _arithmetic,
    exp.Div: _arithmetic,
    exp.Mod: _arithmetic,
    exp.Neg: _negative,
    exp.BitwiseAnd: _bits,
    exp.BitwiseOr: _bits,
    exp.BitwiseXor: _bits,
    exp.BitwiseNot: _inverted,
    exp.Abs: _absolute,
    exp.Sign: _sign,
    exp.BitwiseLeftShift: _shifted_bits,
    exp.BitwiseRightShift: _shifted_bits,
    exp.Round: _rounded,
    exp.Ceil: _rounded,
    exp.Floor: _rounded,
}
