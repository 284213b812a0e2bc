"""The types of a query's parameters: what a client has told, else what the first place of each gives it.  Pure.

As in Postgres (``parse_param.c``): 42P08 where another place wants another type, 42P18 where none says which.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from journal.errors import InvalidUsage
from sql.system import types as t
from sql.system.notes import TYPED
from sql.system.types import PgType
from trees.errors import unsupported
from trees.nodes import position


class Deduced:
    def __init__(self, declared: Mapping[int, PgType]) -> None:
        self.kinds = dict(declared)

    def kind(self, node: exp.Parameter) -> PgType:
        """What the parameter is known to be by now: of no type, until a place says which."""
        if not isinstance(node.this, exp.Literal):
            raise unsupported("this expression in a query over system relations", position=position(node))
        return self.kinds.get(_number(node), t.UNKNOWN)

    def deduce(self, node: exp.Parameter, wanted: str) -> None:
        """42P08 where it was of no type when it was met, and has been given another one since."""
        if node.meta.get(TYPED) != t.UNKNOWN or wanted in _NO_TYPES:
            return
        number = _number(node)
        known = self.kinds.setdefault(number, PgType(wanted))
        if known.name != wanted:
            raise InvalidUsage(
                f"inconsistent types deduced for parameter ${number}", sqlstate="42P08", position=position(node),
                detail=f"{t.shown(known.name)} versus {t.shown(wanted)}",
            )  # fmt: skip
        node.meta[TYPED] = known

    def check(self, tree: exp.Expression) -> None:
        """42P18 where no place of a parameter says what it is, 42P08 where it was left open before another did."""
        found = list(tree.find_all(exp.Parameter))
        for number in range(1, max(map(_number, found), default=0) + 1):
            if number not in self.kinds:
                raise InvalidUsage(f"could not determine data type of parameter ${number}", sqlstate="42P18")
        for each in found:
            if each.meta.get(TYPED) == t.UNKNOWN:
                told = f"could not determine data type of parameter ${_number(each)}"
                raise InvalidUsage(told, sqlstate="42P08", position=position(each))


def _number(node: exp.Parameter) -> int:
    return int(node.this.this)


_NO_TYPES = frozenset("unknown any anyelement anycompatible anynonarray anyarray anycompatiblearray record".split())
"""What says nothing of a parameter's type."""
