"""The change of a linear query (:mod:`plan.deltas`): one small query for each place where something it reads changed.

Promises: :meth:`Linear.delta` gives the rows of its summands, by kernels of Arrow's where they know all that a summand
says, else by DuckDB while what it reads is small, else by Spark: all of them give the same.  It holds what is below.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import pyarrow as pa
from sqlglot import exp

from controllers.changes import as_schema, canonical, change_schema
from controllers.compute import spark_text as sp
from controllers.compute.expressions import NotHere
from controllers.compute.operators.operator import NEVER, Contents, Engines
from controllers.compute.operators.prepared import Prepared
from controllers.compute.operators.process import Left, Rest
from controllers.compute.operators.reading import Reading
from controllers.compute.relation import RESIDENT_ROWS_MAX, Relation
from controllers.compute.running import answered
from controllers.compute.sources import Sources
from controllers.compute.vectors import Compiled
from journal.timestamps import DataTs
from plan import deltas

log = logging.getLogger(__name__)


class Linear:
    """``inputs`` and ``below`` are what it reads, by what its summands read them by."""

    def __init__(
        self, linear: deltas.Linear, inputs: Mapping[str, Relation], below: Mapping[str, Contents], engines: Engines
    ) -> None:
        self.summands = [Prepared(summand.plan, summand.leaf) for summand in linear.summands]
        self.full = Prepared(linear.full)
        self.schema = change_schema([kind.type for kind in linear.kinds])
        self.below = below
        self._inputs = inputs
        self._engines = engines
        self._rest = Rest()
        self.in_process = 0
        """How many changes were found without Spark."""

    @property
    def held(self) -> int:
        return sum(each.held for each in self.below.values())

    def rebuild(self, sources: Sources, t1: DataTs) -> None:
        for each in self.below.values():
            each.rebuild(sources, t1)

    def accept(self) -> None:
        for each in self.below.values():
            each.accept()

    def delta(self, sources: Sources, t0: DataTs, t1: DataTs) -> pa.Table:
        with self.change(sources, t0, t1) as (parts, reading):
            found = self.here(parts, reading)
            if found is not None:
                return found
            return as_schema(answered(self._engines.spark, self.query(parts, reading), sources.large), self.schema)

    @contextmanager
    def change(self, sources: Sources, t0: DataTs, t1: DataTs) -> Iterator[tuple[list[Prepared], Reading]]:
        """The parts of which the change is put together, and what they read: for who folds it where it is found."""
        with Reading(self._inputs, self.below, self._engines, sources, t0, t1) as reading:
            if t0 == NEVER:
                yield [self.full], reading
            else:
                yield [summand for summand in self.summands if reading.changed(summand.leaf)], reading

    def here(self, parts: Sequence[Prepared], reading: Reading) -> pa.Table | None:
        """The change found in this process; ``None`` where that needs Spark."""
        try:
            found = [self._of(part, reading) for part in parts]
        except Left as left:
            self._rest.after(left)
            self._engines.left(str(left))
            return None
        self._rest.over()
        self.in_process += 1
        return pa.concat_tables([self.schema.empty_table(), *found])

    def query(self, parts: Sequence[Prepared], reading: Reading) -> exp.Expression:
        """The change as a query of Spark's."""
        asked = []
        for part in parts:
            given = {name: reading.query(key, part.names_of(name)) for name, key in part.reads.items()}
            asked.append(part.on_spark(given))
        return sp.union_all(asked)

    def _named(self, part: Prepared, reading: Reading) -> dict[str, pa.Table]:
        """What DuckDB reads, by the names it is told."""
        found = {}
        for name, key in part.reads.items():
            table = reading.table(key)
            if table is None or table.num_rows > RESIDENT_ROWS_MAX:
                raise Left(f"its input {key[0]} has more changes than {RESIDENT_ROWS_MAX}")
            found[name] = table.rename_columns(list(part.names_of(name)))
        return found

    def _of(self, part: Prepared, reading: Reading) -> pa.Table:
        if (why := self._engines.why_spark()) is not None:
            raise Left(why)
        if isinstance(part.compiled, Compiled):
            tables = {key: reading.table(key) for key in part.reads.values()}
            if all(table is not None for table in tables.values()):
                try:
                    return as_schema(part.compiled.run(tables), self.schema)
                except NotHere as why:
                    log.debug("a change is left to an engine", extra={"view": self._engines.view_id, "why": str(why)})
        if isinstance(part.small, str):
            raise Left(part.small)
        self._rest.check()
        found = self._engines.process.rows(part.small, part.types, self._named(part, reading))
        return as_schema(canonical(found), self.schema)
