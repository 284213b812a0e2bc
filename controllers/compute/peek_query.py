"""A read, as each engine is told it: from its plan, in this process and nowhere before.

Promises: :func:`query_of` gives what a peek is about, or raises ``InvalidUsage`` for what is no plan.  Reads that say
the same share it, so a statement that is asked again and again is lowered once.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection, Mapping
from functools import cached_property
from typing import NamedTuple

from controllers.compute.operators.left import Rest
from controllers.compute.operators.lowered import Lowered
from controllers.compute.operators.small import Small, Told
from controllers.compute.sought import Sought, sought
from controllers.compute.spark_text import diff_name
from controllers.peeks.peek import Peek
from functions.registry import FUNCTIONS
from journal.errors import InvalidUsage
from plan import codec
from plan import relations as r
from plan import scalars as s
from plan.calls import is_definite, unknown
from plan.checked import check
from plan.counts import rows_at_most
from plan.deltas import names_in
from plan.nodes import walk
from plan.weighted import changes_read, weighted
from sql.views.kept_views import TEXT_ALONE
from trees.budget import bounded
from values.types import SqlType

TOLD_CHARS_MAX = 16_000
"""Of a plan, as it travels, that is lowered for this process.  It takes 1 to 3 ms for 1,000 characters, and 14 for
16,000 (measured): half of what Spark takes for any query."""

KEPT_CHARS_MAX = 4 << 20
"""Of plans that are remembered, all together: some 3,000 everyday ones, whose nodes take ten times as much."""

_GROWING = frozenset(each.form.lower() for each in FUNCTIONS if each.grows) | {"tm_regex_replace", "tm_format"}
"""What is called in plans that makes long texts of short ones."""


class ByChanges(NamedTuple):
    """``query`` reads changes with ``diff`` in some places, in groups of which each reads those of some relations."""

    query: Lowered
    diff: str
    groups: tuple[tuple[str, ...], ...]

    @property
    def reads(self) -> dict[str, str]:
        """The relations whose changes it reads, by the names that these have there."""
        return changes_read(self.query.query.relation)

    def gains(self, changed: Collection[str], gone: Collection[str]) -> bool:
        """Whether it is less work, where relations ``changed`` are there as changes, and rows of ``gone`` went.

        Not where one is joined with another, or with itself: what came and went meets what came and went.
        """
        met = [sum(each in gone for each in group) for group in self.groups]
        return max(met) == 1 and all(each in changed for group in self.groups for each in group)


class PeekQuery(Lowered):
    """The query of a peek: of a plan that is ``chars`` long as it travels, or where there is none ``sql``."""

    def __init__(self, query: r.Query | str, chars: int, sql: str | None = None) -> None:
        super().__init__(query, sql)
        self._chars = chars
        self.rest = Rest()
        """What took too much in process."""

    @property
    def types(self) -> list[SqlType]:
        """Of its outputs.  It has a plan."""
        return [kind.type for kind in self.query.relation.columns]

    def here(self, gear: str) -> Small | str:
        """What DuckDB is asked in a cluster that is told ``gear``, or why it is not."""
        return self.told.chosen(gear)

    @cached_property
    def told(self) -> Told:
        """As of any query; what is long or hangs on the clock or on chance is not told."""
        why = None
        if self._chars > TOLD_CHARS_MAX:
            why = "it is long"
        elif isinstance(self.query, r.Query) and not all(map(is_definite, walk(self.query.relation))):
            why = "it is no function of what it reads"
        elif isinstance(self.query, r.Query) and any(unknown(node) is not None for node in walk(self.query.relation)):
            why = "it calls what nobody knows here"  # DuckDB has more functions; Spark's gate says what
        return super().told if why is None else Told(why, why)

    def reads_only(self, inputs: Collection[str]) -> bool:
        """Whether it reads nothing else: of a plan that was made by no adapter that is not certain."""
        return all(node.item_id in inputs for node in self.gets)

    def rows_at_most(self, rows: Mapping[str, int]) -> int:
        """It gives, of so many ``rows`` of each relation that it reads; 0 where nobody knows."""
        return bounded(rows_at_most)(self.query.relation, rows) if isinstance(self.query, r.Query) else 0

    @cached_property
    def makes_long_texts(self) -> bool:
        """Whether it calls what makes them of short ones."""
        found = walk(self.query.relation) if isinstance(self.query, r.Query) else ()
        return any(isinstance(node, s.Call) and node.name in _GROWING for node in found)

    @cached_property
    def by_changes(self) -> ByChanges | None:
        """The same asked of changes where that suffices; ``None`` where it needs the rows."""
        if not isinstance(self.query, r.Query):
            return None
        relation = self.query.relation
        diff = diff_name(names_in(relation))
        try:
            found = bounded(weighted)(relation, diff)
        except InvalidUsage:  # it says some things twice, and so may be too deep
            return None
        if found is None:
            return None
        return ByChanges(Lowered(r.Query(found.relation, self.query.names)), diff, found.groups)

    def sought(self, types: Mapping[str, Mapping[str, SqlType]]) -> dict[str, list[Sought]]:
        """What it seeks in relations whose columns are of ``types``."""
        return sought(self.query.relation, types) if isinstance(self.query, r.Query) else {}


_kept: OrderedDict[str, PeekQuery] = OrderedDict()
_kept_chars = 0
_lock = threading.Lock()


def query_of(peek: Peek) -> PeekQuery:
    """What ``peek`` asks.  Raises ``InvalidUsage`` 08P01 where its plan is none, 54001 for one that is too deep."""
    global _kept_chars
    if peek.plan is None:
        return PeekQuery(TEXT_ALONE, len(peek.sql), peek.sql)
    with _lock:
        if (found := _kept.get(peek.plan)) is not None:
            _kept.move_to_end(peek.plan)
            return found
    try:
        made = PeekQuery(codec.decode(peek.plan), len(peek.plan))
        bounded(check)(made.query)
    except ValueError as error:
        raise InvalidUsage("malformed peek", sqlstate="08P01", detail=str(error)) from error
    with _lock:
        if peek.plan not in _kept:
            _kept[peek.plan] = made
            _kept_chars += len(peek.plan)
        while _kept_chars > KEPT_CHARS_MAX:
            gone, _ = _kept.popitem(last=False)
            _kept_chars -= len(gone)
    return made
