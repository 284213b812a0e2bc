"""The engines that operators are given (:mod:`controllers.compute.operators.given`): DuckDB in this process, Spark."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import SparkSession
from sqlglot import exp

from controllers.compute.handing import Handing, schema_sql
from controllers.compute.operators.process import Process
from controllers.compute.operators.small import Small
from controllers.compute.outlet import Outlet
from controllers.compute.relation import own_name
from controllers.compute.running import answered
from values.types import SqlType

_serial = itertools.count()


@dataclass(frozen=True)
class Engines:
    """What the operators of one view ask.  ``left`` is told why something goes to Spark."""

    view_id: str
    spark: SparkSession
    handing: Handing
    process: Process
    gear: Callable[[], str]
    left: Callable[[str], None]

    def in_process(self, query: Small, types: Sequence[SqlType], tables: Mapping[str, pa.Table]) -> pa.Table:
        return self.process.rows(query, types, tables)

    def on_spark(
        self, query: exp.Expression, much: int, outlet: Outlet | None = None,
        before: Iterable[Iterable[exp.Expression]] = (),
    ) -> pa.Table:  # fmt: skip
        return answered(self.spark, query, much, outlet, before)

    def show(self, table: pa.Table, types: Sequence[SqlType]) -> str:
        view = own_name(f"rows_{next(_serial)}")
        self.handing.show(table, view, schema_sql(zip(table.column_names, types, strict=True)))
        return view

    def take_back(self, view: str) -> None:
        self.handing.take_back(view)
