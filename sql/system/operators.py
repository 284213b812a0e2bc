"""What an operator between values of Postgres's types is in a plan.  Pure."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from plan import relations as r
from plan import scalars as s
from plan.types import BOOL, FLOAT4, FLOAT8, TEXT
from sql.algebra.scope import NotPlanned
from sql.system.carriers import INTEGERS, OID, array, as_carried, call, carrier, shown
from sql.system.expressions import SIGNS
from sql.system.types import PgType, element_of, is_textual

_PLAIN = frozenset("= <> < <= > >= + - * % & | #".split())
"""What the plan calls by the same sign."""

_REGEXES = {"~": (), "~*": ("i",)}
_LIKES = {"~~": "like", "~~*": "ilike"}
_SHIFTS = {"<<": "tm_shift_left", ">>": "tm_shift_right"}


def signs() -> Iterable[type[exp.Expression]]:
    return SIGNS.keys()


def sign_of(node: exp.Expression) -> str:
    """The sign of an operator; of IS DISTINCT FROM and its opposite the plan's words."""
    if isinstance(node, exp.NullSafeEQ):
        return "is_not_distinct"
    if isinstance(node, exp.NullSafeNEQ):
        return "is_distinct"
    if isinstance(node, exp.Operator):
        sign = str(node.args["operator"]).rsplit(".", 1)[-1]
        return {"!=": "<>"}.get(sign, sign)
    return SIGNS[type(node)]


def compared(name: str, left: s.Scalar, right: s.Scalar) -> s.Scalar:
    return call(BOOL, name, left, right)


def negated(value: s.Scalar, said: bool) -> s.Scalar:
    return call(BOOL, "not", value) if said else value


def applied(sign: str, left: s.Scalar, a: PgType, right: s.Scalar, b: PgType, result: PgType) -> s.Scalar:
    """``left sign right`` of values of the types ``a`` and ``b``."""
    if sign.startswith("!"):
        return negated(applied(sign[1:], left, a, right, b, result), True)
    if sign in ("is_not_distinct", "is_distinct"):
        return s.Call(BOOL, False, sign, (left, right))
    if sign in _REGEXES:
        return call(BOOL, "regexp_matches", left, right, *(s.Literal(TEXT, False, each) for each in _REGEXES[sign]))
    if sign in _LIKES:
        return call(BOOL, _LIKES[sign], left, right)
    if result.name == "float8":  # of two float4 it is a float4
        left, right = (as_carried(each, FLOAT8) if each.type == FLOAT4 else each for each in (left, right))
    if sign in _PLAIN:
        if result.name == "bool":
            left, right = _of_functions(left, a, right, b)
        elif {a.name, b.name} & {"jsonb", "inet", "pg_lsn", "aclitem", "_aclitem"}:
            raise NotPlanned(f"the operator {sign} of these types")
        return call(result, sign, left, right)
    if sign == "/":
        return call(result, "div" if {a.name, b.name} <= INTEGERS else "/", left, right)
    if sign == "^":
        return call(result, "power", left, right)
    if sign in _SHIFTS and result.name in INTEGERS:
        return call(result, _SHIFTS[sign] + ("_long" if result.name == "int8" else ""), left, right)
    if sign == "||":
        return _joined(left, a, right, b, result)
    if sign == "^@":
        return call(BOOL, "starts_with", left, right)
    if sign in ("@>", "<@", "&&") and element_of(a.name) is not None and element_of(b.name) is not None:
        first, second = (right, left) if sign == "<@" else (left, right)
        return call(BOOL, "list_has_any" if sign == "&&" else "list_has_all", first, second)
    raise NotPlanned(f"the operator {sign} of these types")


def _of_functions(left: s.Scalar, a: PgType, right: s.Scalar, b: PgType) -> tuple[s.Scalar, s.Scalar]:
    """A regproc is the name of a function here: beside a number it is the function's oid."""
    if a.name == "regproc" and not _is_text(b):
        return call(OID, "tm_proc_oid", left), right
    if b.name == "regproc" and not _is_text(a):
        return left, call(OID, "tm_proc_oid", right)
    return left, right


def _is_text(kind: PgType) -> bool:
    return kind.name in ("unknown", "regproc") or is_textual(kind.name)


def _joined(left: s.Scalar, a: PgType, right: s.Scalar, b: PgType, result: PgType) -> s.Scalar:
    if result.name == "jsonb":
        raise NotPlanned("the operator || of jsonb")
    if (element := element_of(result.name)) is None:
        if result.name == "text":
            left, right = shown(left, a), shown(right, b)
        return call(result, "||", left, right)
    kind = carrier(result)
    sides = [
        as_carried(each, kind) if of.name == "unknown" or element_of(of.name) else array([each], PgType(element))
        for each, of in ((left, a), (right, b))
    ]
    return call(kind, "||", *sides)


def quantified(found: r.Relation, every: bool, holds: s.Scalar) -> s.Scalar:
    """Whether ``holds`` of one of the rows of ``found``, or of ``every`` one: NULL where a NULL decides it."""
    asked = r.Project(found, (holds,))
    fold = s.Aggregate(BOOL, True, "bool_and" if every else "bool_or", (asked.column(0),))
    some = s.Aggregate(BOOL, True, "bool_or", (s.Call(BOOL, False, "is_null", (asked.column(0),)),))
    folded = r.Reduce(asked, (), (fold, some))
    decided = s.Call(BOOL, False, "is_false" if every else "is_true", (folded.column(0),))
    unknown = s.Call(BOOL, False, "is_true", (folded.column(1),))
    branches = (decided, s.truth(not every)), (unknown, s.Literal(BOOL, True, None))
    value = s.Case(BOOL, True, None, branches, s.truth(every))
    return s.scalar_query(r.Project(folded, (value,)))
