"""What a linear query reads for one change: versions of collections, and of what operators below give.

Promises: what is below is asked for its change once.  Tables of ours that Spark was shown are taken back at the end.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager

import pyarrow as pa
from sqlglot import exp

from controllers.compute import spark_text as sp
from controllers.compute.operators.given import Given
from controllers.compute.operators.operator import NEVER, Contents
from journal.timestamps import DataTs
from plan.deltas import DELTA, OLD, Key
from plan.types import INT8


class Reading(AbstractContextManager):
    """Of the change of ``(t0, t1]``; ``below`` by what they are read by."""

    def __init__(self, below: Mapping[str, Contents], given: Given, t0: DataTs, t1: DataTs) -> None:
        self._below = below
        self._inputs = given.inputs
        self._sources = given.sources
        self._engines = given.engines
        self._t0, self._t1 = t0, t1
        self._deltas = {name: operator.delta(given, t0, t1) for name, operator in below.items()}
        self._shown: list[str] = []

    def changed(self, leaf: str) -> bool:
        """Whether that input changed at all."""
        if leaf in self._below:
            return self._deltas[leaf].num_rows > 0
        return self._sources.changed(self._inputs[leaf], self._t0, self._t1)

    def table(self, key: Key) -> pa.Table | None:
        """One version: columns by position, then ``__diff``; ``None`` where it is too large to be held here."""
        name, version = key
        if name in self._below:
            return self._rows_of(name, version)
        relation = self._inputs[name]
        if version == DELTA:
            return self._sources.table(relation, self._t0, self._t1)
        return self._sources.resident(relation, self._t0 if version == OLD else self._t1)

    def query(self, key: Key, names: tuple[str, ...]) -> exp.Expression:
        """The same for Spark: ``names`` are those of its columns, that of the diffs last."""
        name, version = key
        if name in self._below:
            return self._show(self._rows_of(name, version), name, names)
        relation, diff = self._inputs[name], names[-1]
        if version == DELTA:
            return self._sources.delta(relation, self._t0, self._t1, diff)
        return self._sources.diffs(relation, self._t0 if version == OLD else self._t1, diff)

    def _rows_of(self, name: str, version: str) -> pa.Table:
        delta = self._deltas[name]
        if version == DELTA or self._t0 == NEVER:
            return delta.slice(0, 0) if version == OLD else delta
        held = self._below[name].contents()
        return held if version == OLD else pa.concat_tables([held, delta])

    def _show(self, table: pa.Table, name: str, names: tuple[str, ...]) -> exp.Expression:
        view = self._engines.show(table, [*self._below[name].types, INT8])
        self._shown.append(view)
        pairs = zip(table.column_names, names, strict=True)
        return sp.select([sp.called(sp.column(c), called) for c, called in pairs], sp.table(view))

    def __exit__(self, *exc: object) -> None:
        for view in self._shown:
            self._engines.take_back(view)
