"""A read, as each engine is told it: from its plan, in this process and nowhere before.

Promises: :func:`query_of` gives what a peek is about, or raises ``InvalidUsage`` for what is no plan.  Reads that say
the same share it, so a statement that is asked again and again is lowered once.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from functools import cached_property

from sqlglot import exp
from sqlglot.errors import SqlglotError

from catalog_log.settings import PROCESS, SPARK
from controllers.compute.naming import name_relations
from controllers.compute.operators.left import Rest
from controllers.compute.operators.small import TOLD_SPARK, Small, Told, told
from controllers.compute.sought import Sought, sought
from controllers.compute.spark_text import parse
from controllers.compute.strategy import TEXT_ALONE
from controllers.peeks.peek import Peek
from journal.errors import InvalidUsage
from plan import codec
from plan import relations as r
from plan.nodes import walk
from sql.algebra.spelled import NotSpelled, spelled
from sql.binding.bind import volatile_part
from sql.forms.transpile import spark_sql
from sql.trees.budget import bounded
from values.types import SqlType

TOLD_CHARS_MAX = 8_000
"""Of a plan, as it travels, that is lowered for this process.  It takes 2 to 7 ms for 1,000 characters, and 14 for
8,000 (measured): half of what Spark takes for any query."""

KEPT_CHARS_MAX = 4 << 20
"""Of plans that are remembered, all together: some 3,000 everyday ones, whose trees take ten times as much."""


class PeekQuery:
    """The query of a peek.  Any thread may call; nobody changes what it gives."""

    def __init__(self, query: r.Query | None, chars: int, sql: str = "") -> None:
        """``query``, which is ``chars`` long as it travels; or where there is none ``sql``, as Spark is told it."""
        self._query = query
        self._chars = chars
        self._sql = sql
        self.rest = Rest()
        """What took too much in process."""

    @property
    def types(self) -> list[SqlType]:
        """Of its outputs.  It has a plan."""
        return [kind.type for kind in self._query.relation.columns]

    @property
    def names(self) -> list[str]:
        """Of its outputs.  It has a plan."""
        return list(self._query.names)

    def here(self, gear: str) -> Small | str:
        """What DuckDB is asked in a cluster that is told ``gear``, or why it is not."""
        if gear == SPARK:
            return TOLD_SPARK
        return self._told.whatever if gear == PROCESS else self._told.ordinary

    @cached_property
    def _told(self) -> Told:
        why = None
        if self._tree is None:
            why = TEXT_ALONE
        elif self._chars > TOLD_CHARS_MAX:
            why = "it is long"
        elif (name := volatile_part(self._tree)) is not None:
            why = f"{name} is no function of what it reads"
        if why is not None:
            return Told(why, why)
        read = (node for node in walk(self._query.relation) if isinstance(node, r.Get))
        return told(self._tree, {node.item_id: node.names for node in read})

    def on_spark(self, rows: Mapping[str, exp.Expression]) -> exp.Expression:
        """What Spark is asked, over queries for what it reads.  Raises ``InvalidUsage``."""
        return name_relations(self.spark_sql, rows.keys(), rows)

    def sought(self, types: Mapping[str, Mapping[str, SqlType]]) -> dict[str, list[Sought]]:
        """What it seeks in relations whose columns are of ``types``."""
        try:
            return sought(parse(self.spark_sql), types)
        except SqlglotError:
            return {}  # whoever is told it says what is wrong

    @cached_property
    def _tree(self) -> exp.Expression | None:
        if self._query is None:
            return None
        try:
            return bounded(spelled)(self._query.relation, self._query.names)
        except NotSpelled as why:
            raise InvalidUsage(f"the query cannot be said: {why}", sqlstate="0A000") from why

    @cached_property
    def spark_sql(self) -> str:
        """It in Spark's words, over relations by their ids."""
        return self._sql if self._tree is None else spark_sql(self._tree)


_kept: OrderedDict[str, PeekQuery] = OrderedDict()
_kept_chars = 0
_lock = threading.Lock()


def query_of(peek: Peek) -> PeekQuery:
    """What ``peek`` asks.  Raises ``InvalidUsage`` 08P01 where its plan is none."""
    global _kept_chars
    if peek.plan is None:
        return PeekQuery(None, len(peek.sql), peek.sql)
    with _lock:
        if (found := _kept.get(peek.plan)) is not None:
            _kept.move_to_end(peek.plan)
            return found
    try:
        made = PeekQuery(codec.decode(peek.plan), len(peek.plan))
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
