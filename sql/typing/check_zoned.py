"""Types in a session whose zone is not UTC: what :mod:`sql.typing.check` does, as :mod:`sql.typing.zones` means it.

A session in UTC, and a definition that is made in one, never comes here.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from sql.typing import own_signatures
from sql.typing.check import Checker
from sql.typing.scope import CHECKED, Scope
from sql.typing.zones import CLOCK, Zone, has_moments
from trees import types as t
from trees.functions import display_name
from trees.nodes import branches, cast, position, swap, text_literal, unnest
from values.types import SqlType

Query = Callable[[exp.Expression, Scope], list[tuple[str, SqlType]]]


def checker_for(zone: str, query: Query, declared: dict[int, SqlType] | None = None, defines: bool = False) -> Checker:
    """What types a statement of a session in ``zone``.  ``defines``: what it types is kept, and read by others."""
    return Checker(query, declared) if zone == "UTC" else ZonedChecker(Zone(zone, defines), query, declared)


class ZonedChecker(Checker):
    """See the module.  Whatever it is asked about a timestamptz it says by ``zone``, or refuses."""

    def __init__(self, zone: Zone, query: Query, declared: dict[int, SqlType] | None = None) -> None:
        super().__init__(query, declared)
        self.zone: Zone = zone
        self._seen: list[list[SqlType]] = []
        """Of each node that is being typed, the types that were found below it."""

    def visit(self, node: exp.Expression, scope: Scope) -> SqlType:
        if CHECKED in node.meta:
            found = node.meta[CHECKED]
        else:
            self._seen.append([])
            try:
                found = super().visit(node, scope)
            finally:
                below = self._seen.pop()
            self.zone.check(_key(node), lambda: _shown(node), [*below, found], lambda: position(node))
        if self._seen:
            self._seen[-1].append(found)
        return found

    def subquery(self, node: exp.Expression, scope: Scope) -> list[tuple[str, SqlType]]:
        self._seen.append([])
        try:
            return super().subquery(node, scope)
        finally:
            self._seen.pop()

    def _typed(self, node: exp.Expression, scope: Scope) -> SqlType:
        if isinstance(node, CLOCK):
            now = self.zone.local(exp.CurrentTimestamp())
            swap(node, cast(now, t.DATE) if isinstance(node, exp.CurrentDate) else now)
            return t.DATE if isinstance(node, exp.CurrentDate) else t.TIMESTAMP
        return super()._typed(node, scope)

    def read(self, text: str, wanted: SqlType) -> object:
        return self.zone.read(text, wanted)

    def coerce(self, node: exp.Expression, got: SqlType, wanted: SqlType) -> bool:
        fits = super().coerce(node, got, wanted)
        if has_moments(wanted):
            self._note(wanted)
        if fits and wanted == t.TIMESTAMPTZ and got in (t.DATE, t.TIMESTAMP):
            swap(node, self.zone.moment(node, got))
        return fits

    def _give(self, inner: exp.Expression, wanted: SqlType) -> None:
        if has_moments(wanted) and not isinstance(inner, (exp.Parameter, exp.Null)):
            if not (isinstance(inner, exp.Literal) and inner.is_string):
                raise self.zone.refused("text as timestamptz", position(inner))
        if has_moments(wanted):
            self._note(wanted)
        super()._give(inner, wanted)

    def _note(self, found: SqlType) -> None:
        """What is made a moment is one to whatever it is an argument of."""
        if self._seen:
            self._seen[-1].append(found)

    def recast(self, node: exp.Expression, got: SqlType, wanted: SqlType) -> exp.Expression:
        made = self.zone.converted(node, got, wanted, position(node))
        return super().recast(node, got, wanted) if made is None else made

    def local(self, node: exp.Expression, got: SqlType) -> SqlType:
        if got != t.TIMESTAMPTZ:
            return got
        swap(node, self.zone.local(node))
        return t.TIMESTAMP

    def meet(self, nodes: list[exp.Expression], types: list[SqlType], both: SqlType) -> None:
        for node, got in zip(nodes, types, strict=True):
            if both == t.TIMESTAMPTZ and got in (t.DATE, t.TIMESTAMP):
                swap(node, self.zone.moment(node, got))
        self.alike([got for got in types if got.is_array], both)

    def alike(self, types: list[SqlType], both: SqlType, at: exp.Expression | None = None) -> None:
        if has_moments(both) and any(got not in (both, t.UNKNOWN) for got in types):
            where = position(at) if at is not None else None
            raise self.zone.refused("timestamptz beside timestamp or date here", where, "cast to timestamptz first")

    def align(self, query: exp.Expression, given: list[SqlType], wanted: list[SqlType]) -> None:
        super().align(query, given, wanted)
        changes = [(n, a, b) for n, (a, b) in enumerate(zip(given, wanted, strict=False)) if a != b and has_moments(b)]
        for branch in branches(query) if changes else ():
            for number, got, found in changes:
                self._align_one(branch.expressions[number], got, found)

    def _align_one(self, output: exp.Expression, got: SqlType, wanted: SqlType) -> None:
        inner = unnest(output.this if isinstance(output, exp.Alias) else output)
        if got != t.UNKNOWN:
            self.alike([got], wanted, inner)
        elif isinstance(inner, exp.Literal) and inner.is_string:
            inner.replace(text_literal(inner.this, wanted, position(inner), self.read))
        elif not isinstance(inner, (exp.Null, exp.Parameter)) and not (
            isinstance(inner, exp.Cast) and isinstance(inner.this, (exp.Null, exp.Parameter))
        ):
            raise self.zone.refused("text as timestamptz", position(inner))


def _key(node: exp.Expression) -> object:
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower()
    return own_signatures.name_of(node) if type(node) in own_signatures.CALLS else type(node)


def _shown(node: exp.Expression) -> str:
    return f"{display_name(node)}()" if isinstance(node, exp.Func) else node.key.upper()
