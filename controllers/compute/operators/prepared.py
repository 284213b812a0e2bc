"""A linear query's summand in the words of each engine: kernels of Arrow's, DuckDB, Spark.  Pure: none is asked."""

from __future__ import annotations

from functools import cached_property

from collection.columns import DIFF
from controllers.compute.expressions import NotHere
from controllers.compute.operators.lowered import Lowered
from controllers.compute.operators.small import Small
from controllers.compute.vectors import Compiled, compile_summand
from journal.errors import InvalidUsage
from plan import deltas
from plan import relations as r
from plan.deltas import Key
from values.types import SqlType


class Prepared(Lowered):
    """A plan over versions of what is read, in the words of each engine."""

    def __init__(self, plan: r.Relation, leaf: str | None = None) -> None:
        super().__init__(r.Query(plan, (*(f"c{place}" for place in range(len(plan.columns) - 1)), DIFF)))
        self.plan = plan
        self.leaf = leaf
        """Whose delta it reads; ``None`` of what reads all."""
        self._gets = {node.item_id: node for node in self.gets}
        self.reads: dict[str, Key] = deltas.reads(plan)
        """By the names that the engines are told."""

    @property
    def types(self) -> list[SqlType]:
        """Of its columns, the diff last."""
        return [kind.type for kind in self.plan.columns]

    @cached_property
    def compiled(self) -> Compiled | str:
        """As kernels, or what they do not know."""
        try:
            return compile_summand(self.plan)
        except NotHere as why:
            return str(why)
        except InvalidUsage as error:
            return error.message

    @cached_property
    def small(self) -> Small | str:
        """What DuckDB is told, or why not.  Sums of floats are nobody's here, so no gear differs from the ordinary."""
        return self.told.ordinary

    def names_of(self, name: str) -> tuple[str, ...]:
        """What the columns are called of what it reads by ``name``, that of the diffs last."""
        return self._gets[name].names
