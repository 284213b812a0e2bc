"""What operators are given to work with: relations, the sources of a tick, engines; of each what they ask of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeVar

import pyarrow as pa
from sqlglot import exp

from controllers.compute.operators.small import Small
from journal.timestamps import DataTs
from values.types import SqlType

T = TypeVar("T")

RESIDENT_ROWS_MAX = 100_000
"""Changes of a relation above which it is not held in memory as a whole: some 10 MB, and 5 ms to hash for a join."""


class Relation(Protocol):
    """What a view reads, or what it holds."""

    id: str
    names: Sequence[str]

    @property
    def rows(self) -> int:
        """Changes in it."""

    @property
    def rows_at_most(self) -> int:
        """No timestamp has more rows: a change may be of a row that is there very often."""

    @property
    def upper(self) -> DataTs:
        """Everything below it is there."""

    def resident(self, as_of: DataTs) -> pa.Table | None:
        """Its rows at ``as_of``: columns by position, then ``__diff``; ``None`` where they are too many."""


class Sources(Protocol):
    """Relations at timestamps, as :class:`controllers.compute.sources.Sources` says."""

    @property
    def large(self) -> bool: ...

    @property
    def outlet(self) -> object | None:
        """Where what the view puts out goes that is many, for the engine that finds it."""

    def answer(self, ask: Callable[[Sources], T]) -> T:
        """What ``ask`` gives of these: raises what fails on rows that are there."""

    def rows(self, relation: Relation, as_of: DataTs) -> exp.Expression: ...

    def diffs(self, relation: Relation, as_of: DataTs, diff: str = ...) -> exp.Expression: ...

    def delta(self, relation: Relation, after: DataTs, through: DataTs, diff: str = ...) -> exp.Expression: ...

    def changed(self, relation: Relation, after: DataTs, through: DataTs) -> bool: ...

    def table(self, relation: Relation, after: DataTs, through: DataTs) -> pa.Table: ...

    def resident(self, relation: Relation, as_of: DataTs) -> pa.Table | None: ...

    def present(self, relation: Relation, as_of: DataTs) -> pa.Table | None: ...


class Engines(Protocol):
    """Of one view."""

    view_id: str

    def gear(self) -> str:
        """What the cluster is told of its gears."""

    def left(self, reason: str) -> None:
        """Something of what is under way goes to Spark."""

    def in_process(self, query: Small, types: Sequence[SqlType], tables: Mapping[str, pa.Table]) -> pa.Table:
        """The rows of ``query`` over ``tables``, from DuckDB: columns ``c0``… of ``types``.  Raises
        :class:`~controllers.compute.operators.left.Left`."""

    def on_spark(
        self, query: exp.Expression, large: bool, outlet: object | None = None,
        before: Iterable[Iterable[exp.Expression]] = (),
    ) -> pa.Table:  # fmt: skip
        """The rows of ``query``, which reads much where it is ``large``; those that are many go by ``outlet``.  Raises
        what Spark throws, and 54000 where one of the questions asked ``before`` says that it gathers too much."""

    def show(self, table: pa.Table, types: Sequence[SqlType]) -> str:
        """Have Spark know ``table``, with columns of ``types``; by which name."""

    def take_back(self, view: str) -> None:
        """Nobody reads what was shown as ``view`` any more."""


class Given(NamedTuple):
    """For one view at one tick.  ``inputs`` by their ids; ``output`` is what the view holds."""

    inputs: Mapping[str, Relation]
    output: Relation
    sources: Sources
    engines: Engines
