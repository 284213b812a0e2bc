"""Types of ``nextval`` and its kin: calls whose sequence is known by then (:mod:`sql.statements.sequence_calls`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from functions.registry import SEQUENCES
from sql.typing.scope import Scope
from trees import types as t
from trees.errors import no_function, unsupported
from trees.functions import display_name
from trees.nodes import position
from trees.sequence_notes import SEQUENCE
from values.types import SqlType

if TYPE_CHECKING:
    from sql.typing.check import Checker

WHERE = "nextval() and its kin stand among the outputs of a query, in VALUES and in the DEFAULT of a column"


def _checked(c: Checker, node: exp.Anonymous, scope: Scope) -> SqlType:
    name = display_name(node)
    if SEQUENCE not in node.meta:
        raise unsupported(f"{name}() in this place", hint=WHERE, position=position(node))
    for place, wanted in zip(range(1, len(node.expressions)), (t.INT8, t.BOOL), strict=False):
        got = c.visit(node.expressions[place], scope)
        if not c.coerce(node.expressions[place], got, wanted):
            raise no_function(f"{name}(regclass, {t.shown(got)})", position=position(node))
    return t.INT8


NAMED = dict.fromkeys(SEQUENCES, _checked)
