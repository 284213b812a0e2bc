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

from catalog_log.settings import SPARK
from controllers.changes import as_schema, canonical, change_schema
from controllers.compute import spark_text as sp
from controllers.compute.expressions import NotHere
from controllers.compute.operators.given import RESIDENT_ROWS_MAX, Engines, Given
from controllers.compute.operators.left import Left, Rest
from controllers.compute.operators.operator import NEVER, Called, Contents, Explained
from controllers.compute.operators.prepared import Prepared
from controllers.compute.operators.reading import Reading
from controllers.compute.operators.small import TOLD_SPARK
from controllers.compute.vectors import Compiled
from journal.timestamps import DataTs
from plan import deltas

log = logging.getLogger(__name__)


class Linear:
    """``below`` are the operators that it reads, by what its summands read them by; relations go by their ids."""

    def __init__(self, linear: deltas.Linear, below: Mapping[str, Contents]) -> None:
        self.summands = [Prepared(summand.plan, summand.leaf) for summand in linear.summands]
        self.full = Prepared(linear.full)
        self.schema = change_schema([kind.type for kind in linear.kinds])
        self.below = below
        self._rest = Rest()
        self.in_process = 0
        """How many changes were found without Spark."""

    @property
    def held(self) -> int:
        return sum(each.held for each in self.below.values())

    def explain(self, gear: str, called: Called) -> Explained:
        below = [each.explain(gear, called) for each in self.below.values()]
        reasons = [each.spark for each in below] + [_spark(each, gear) for each in self.summands]
        lines = [f"  {line}" for each in below for line in each.lines]
        for each in self.summands:
            what = "changed groups" if each.leaf in self.below else f"change of {each.leaf}"
            lines.append(f"{what}: {_asked(each, gear)}")
        spark = next((reason for reason in reasons if reason is not None), None)
        return Explained(spark, "what it reads is small", list(dict.fromkeys(lines)))

    def restore(self, given: Given, t1: DataTs) -> None:
        for each in self.below.values():
            each.restore(given, t1)

    def accept(self) -> None:
        for each in self.below.values():
            each.accept()

    def delta(self, given: Given, t0: DataTs, t1: DataTs) -> pa.Table:
        with self.change(given, t0, t1) as (parts, reading):
            found = self.here(parts, reading, given.engines)
            if found is not None:
                return found
            query = self.query(parts, reading)
            return as_schema(given.engines.on_spark(query, given.sources.much, given.sources.outlet), self.schema)

    @contextmanager
    def change(self, given: Given, t0: DataTs, t1: DataTs) -> Iterator[tuple[list[Prepared], Reading]]:
        """The parts of which the change is put together, and what they read: for who folds it where it is found."""
        with Reading(self.below, given, t0, t1) as reading:
            if t0 == NEVER:
                yield [self.full], reading
            else:
                yield [summand for summand in self.summands if reading.changed(summand.leaf)], reading

    def here(self, parts: Sequence[Prepared], reading: Reading, engines: Engines) -> pa.Table | None:
        """The change found in this process; ``None`` where that needs Spark."""
        try:
            found = [self._of(part, reading, engines) for part in parts]
        except Left as left:
            self._rest.after(left)
            engines.left(str(left))
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

    def _of(self, part: Prepared, reading: Reading, engines: Engines) -> pa.Table:
        if (why := _spark(part, engines.gear())) is not None:
            raise Left(why)
        if isinstance(part.compiled, Compiled):
            tables = {key: reading.table(key) for key in part.reads.values()}
            if all(table is not None for table in tables.values()):
                try:
                    return as_schema(part.compiled.run(tables), self.schema)
                except NotHere as why:
                    log.debug("a change is left to an engine", extra={"view": engines.view_id, "why": str(why)})
        if isinstance(part.small, str):
            raise Left(part.small)
        self._rest.check()
        found = engines.in_process(part.small, part.types, self._named(part, reading))
        return as_schema(canonical(found), self.schema)


def _spark(part: Prepared, gear: str) -> str | None:
    """Why Spark is asked of ``part``, whatever there is to read; ``None`` where it is not."""
    if gear == SPARK:
        return TOLD_SPARK
    return part.small if isinstance(part.compiled, str) and isinstance(part.small, str) else None


def _asked(part: Prepared, gear: str) -> str:
    """Who is asked of ``part`` first, and why."""
    if (why := _spark(part, gear)) is not None:
        return "by spark" if gear == SPARK else f"by spark because {why}"
    if isinstance(part.compiled, str):
        return f"in process while it is small, by duckdb because of {part.compiled}"
    return "in process, by kernels"
