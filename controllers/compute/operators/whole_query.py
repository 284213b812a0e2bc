"""A view's whole query as the engines are told it, and which of them is asked.

Promises: :meth:`WholeQuery.chosen` is what a tick goes by and what is explained; what DuckDB cannot be asked at all is
found out once, and what took too much in process is not tried there for a while.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import cached_property

import pyarrow as pa

from collection.columns import DIFF
from controllers.changes import as_schema, canonical, change_schema
from controllers.compute.expressions import NotHere
from controllers.compute.operators.given import Engines
from controllers.compute.operators.left import Left, Rest
from controllers.compute.operators.lowered import Lowered
from controllers.compute.operators.small import Small, Told
from controllers.compute.windows import Whole, compile_query
from journal.errors import InvalidUsage
from values.types import SqlType

log = logging.getLogger(__name__)


class WholeQuery:
    """Of ``lowered``, whose columns are of ``types``."""

    def __init__(self, lowered: Lowered, types: Sequence[SqlType]) -> None:
        self.on_spark = lowered.on_spark
        self.asked_before = lowered.asked_before
        self.piles_up = lowered.piles_up
        self.types = types
        self.schema = change_schema(types)
        """Columns by position, then ``__diff``."""
        self._lowered = lowered
        self._told = lowered.told
        self._rest = Rest()

    def chosen(self, gear: str) -> Small | str:
        """What DuckDB is asked in a cluster whose gear is ``gear``, or why Spark is."""
        return self._told.chosen(gear)

    def spark(self, gear: str) -> str | None:
        """Why Spark is asked, whatever there is to read; ``None`` where it is not."""
        found = self.chosen(gear)
        return found if isinstance(found, str) else None

    def small(self, gear: str) -> Small:
        """What DuckDB is asked now.  Raises :class:`Left`."""
        found = self.chosen(gear)
        if isinstance(found, str):
            raise Left(found)
        self._rest.check()
        return found

    def rows(self, small: Small, engines: Engines, tables: Mapping[str, pa.Table], diff: int) -> pa.Table:
        """What the query gives of ``tables``, each row ``diff`` times."""
        rows = self._by_kernels(tables)
        if rows is None:
            rows = canonical(engines.in_process(small, self.types, tables))
        return as_schema(rows.append_column(DIFF, pa.repeat(pa.scalar(diff, pa.int64()), rows.num_rows)), self.schema)

    def _by_kernels(self, tables: Mapping[str, pa.Table]) -> pa.Table | None:
        """Its rows without an engine; ``None`` where that is one's."""
        if isinstance(self._kernels, str):
            return None
        try:
            return self._kernels.run(tables)
        except NotHere as why:
            log.debug("a query is left to an engine", extra={"why": str(why)})
            return None

    @cached_property
    def _kernels(self) -> Whole | str:
        """As kernels, or what they do not know."""
        query = self._lowered.query
        if isinstance(query, str):
            return query
        try:
            found = compile_query(query)
        except NotHere as why:
            return str(why)
        except InvalidUsage as error:
            return error.message
        return found if list(found.types) == list(self.types) else "its columns are carried as other types"

    def over(self) -> None:
        """It was answered in process."""
        self._rest.over()

    def left(self, left: Left) -> None:
        """It was not."""
        if left.lasting:
            self._told = Told(str(left), str(left))
        self._rest.after(left)
