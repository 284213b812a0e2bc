"""``x = ANY ($n)`` in lookups: whether a value is one of a parameter's, which are known once it runs.  Pure.

A plan has it as ``["among", E, ["param", n, "type[]"]]``, or with ``"cast"`` where each element is rounded to the type.
No evaluator is sent that: with the parameter's value it is ``["in", E, …]``, which all of them have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

from plan import scalars as s
from trees.nodes import rounded
from trees.types import format_literal
from values.types import parse_type

AMONG = "among"

MEMBERS_MAX = 64
"""Of a list of values that a lookup has, where each is asked for as a key or compared with each row that a key finds:
a quarter of the keys that one request may have, some ms with the rows."""


def any_of(node: s.Case) -> tuple[s.Scalar, s.Scalar] | None:
    """``x`` and ``array`` where ``node`` is ``x = ANY (array)`` as ``sql/typing/check_arrays.py`` binds it: NULL for no
    array, false for an empty one, true where it contains ``x``, NULL where that or one of its elements is NULL."""
    match node:
        case s.Case(
            operand=None,
            branches=(
                (s.Call(name="is_null", arguments=(first,)), s.Cast(value=s.Literal(value=None))),
                (
                    s.Call(name="=", arguments=(s.Call(name="size", arguments=(second,)), s.Literal(value="0"))),
                    s.Literal(value="false"),
                ),
                (
                    s.Call(
                        name="coalesce",
                        arguments=(s.Call(name="array_contains", arguments=(array, value)), s.Literal(value="false")),
                    ),
                    s.Literal(value="true"),
                ),
                (
                    s.Call(
                        name="or",
                        arguments=(
                            s.Call(name="is_null", arguments=(compared,)),
                            s.Call(
                                name="<",
                                arguments=(
                                    s.Call(
                                        name="size", arguments=(s.Call(name="array_compact", arguments=(third,)),)
                                    ),
                                    s.Call(name="size", arguments=(fourth,)),
                                ),
                            ),
                        ),
                    ),
                    s.Cast(value=s.Literal(value=None)),
                ),
            ),
            otherwise=s.Literal(value="false"),
        ) if first == second == third == fourth == array and compared == value:
            return value, array
    return None


def as_list(form: Sequence, params: Sequence[object | None] | None) -> list:
    """What ``form`` is with ``params``: a list of values, NULL where there is none, false where it is empty.  Where
    nobody knows them yet (``None``), the list's one member is the parameter, as if it were of its elements' type."""
    _, value, (word, number, kind) = form
    element = parse_type(kind).element
    if params is None:
        return ["in", value, [word, number, str(element)]]
    given = params[number - 1]
    if not given:
        return ["lit", None if given is None else "false", "bool"]
    if word == "cast":
        given = [each if each is None else rounded(Decimal(each), element) for each in given]
    texts = [each if each is None else format_literal(each, element) for each in given]
    return ["in", value, *(["lit", text, str(element)] for text in texts)]


def parameters_in(node: object) -> frozenset[int]:
    """The parameters whose values are lists somewhere in ``node``, a form or what holds some."""
    if isinstance(node, (list, tuple)):
        own = frozenset({node[2][1]}) if len(node) == 3 and node[0] == AMONG else frozenset()
        return own.union(*map(parameters_in, node))
    return frozenset().union(*map(parameters_in, node.values())) if isinstance(node, Mapping) else frozenset()
