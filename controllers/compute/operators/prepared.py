"""A linear query's summand in the words of each engine: kernels of Arrow's, DuckDB, Spark.  Pure: none is asked."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from sqlglot import exp

from collection.columns import DIFF
from controllers.compute.expressions import NotHere
from controllers.compute.naming import name_relations
from controllers.compute.operators.small import Small, small
from controllers.compute.vectors import Compiled, compile_summand
from journal.errors import InvalidUsage
from plan import deltas
from plan import relations as r
from plan.deltas import Key
from plan.nodes import walk
from sql.algebra.spelled import NotSpelled, spelled
from sql.forms.transpile import spark_sql
from values.types import SqlType


class Prepared:
    """A plan over versions of what is read, in the words of each engine."""

    def __init__(self, plan: r.Relation, leaf: str | None = None) -> None:
        self.plan = plan
        self.leaf = leaf
        """Whose delta it reads; ``None`` of what reads all."""
        self._gets = {node.item_id: node for node in walk(plan) if isinstance(node, r.Get)}
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
    def _tree(self) -> exp.Expression:
        """Raises ``InvalidUsage`` where no engine can be told it."""
        try:
            return spelled(self.plan, [*(f"c{i}" for i in range(len(self.types) - 1)), DIFF])
        except NotSpelled as why:
            raise InvalidUsage(f"its change cannot be said: {why}", sqlstate="0A000") from why

    @cached_property
    def small(self) -> Small | str:
        """What DuckDB is told, or why not.  Sums of floats are nobody's here, so no gear differs from the ordinary."""
        try:
            tree = self._tree
        except InvalidUsage as error:
            return error.message
        return small(tree, {name: get.names for name, get in self._gets.items()})

    def on_spark(self, given: Mapping[str, exp.Expression]) -> exp.Expression:
        """What Spark is asked, over queries for what it reads."""
        return name_relations(self._spark_sql, given.keys(), given)

    def names_of(self, name: str) -> tuple[str, ...]:
        """What the columns are called of what it reads by ``name``, that of the diffs last."""
        return self._gets[name].names

    @cached_property
    def _spark_sql(self) -> str:
        return spark_sql(self._tree)
