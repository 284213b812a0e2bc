"""Which arguments a function takes by its name: its signatures, and the one that a call means."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from trees import types as t
from trees.nodes import call, cast
from values.types import SqlType

Build = Callable[..., exp.Expression]


@dataclass(frozen=True)
class Signature:
    """``build`` makes Spark's expression of the arguments, each of which is of its type by then."""

    args: tuple[SqlType, ...]
    result: SqlType
    build: Build
    variadic: bool = False
    """Whether the last of ``args``, an array, is given item by item."""
    lacking: str = ""
    """Where it is refused: what is here instead."""
    many: bool = False
    """Whether what is built is an array, of which each item is a row."""

    def of(self, count: int) -> Signature:
        """This one for a call of ``count`` arguments; itself where it has no other."""
        before = len(self.args) - 1
        if not self.variadic or count <= before:
            return self
        listed = self.args[-1]

        def build(*args: exp.Expression) -> exp.Expression:
            items = exp.Array(expressions=[each.copy() for each in args[before:]])
            return self.build(*args[:before], cast(items, listed))

        return Signature((*self.args[:before], *[listed.element] * (count - before)), self.result, build)


def standing_for(value: exp.Expression, result: SqlType, many: bool) -> exp.Expression:
    """What stands in the place of a call whose value is ``value``; ``many``: of one that makes rows of its items."""
    return call("EXPLODE", cast(value, result.array)) if many else cast(value, result)


def choose(signatures: tuple[Signature, ...], got: list[SqlType], whole: bool = False) -> Signature | None:
    """Of those that ``got`` can become the one that it fits exactly in most places, and the first of several such.

    Untyped literals fit anything.  ``whole``: the last argument is said to be VARIADIC, the array itself.
    """

    def fits(each: Signature, exact: bool) -> list[bool]:
        return [_fits(a, wanted, exact) for a, wanted in zip(got, each.args, strict=True)]

    called = [each for each in signatures if each.variadic] if whole else [each.of(len(got)) for each in signatures]
    possible = [each for each in called if len(each.args) == len(got) and all(fits(each, exact=False))]
    return max(possible, key=lambda each: sum(fits(each, exact=True)), default=None)


def _fits(got: SqlType, wanted: SqlType, exact: bool) -> bool:
    if got in (t.UNKNOWN, wanted) or (t.is_text(got) and t.is_text(wanted)) or got.name == wanted.name == "numeric":
        return True
    if exact:
        return False
    if t.by_row(got, wanted):
        return True
    if t.is_number(got) and t.is_number(wanted):
        return t.common(got, wanted) == wanted or (wanted.name == "numeric" and not t.is_float(got))
    return t.is_time(got) and t.is_time(wanted) and t.common(got, wanted) == wanted
