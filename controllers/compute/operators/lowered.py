"""A query in the words of each engine: of DuckDB and of Spark, from one plan.  Pure: none is asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from sqlglot import exp

from controllers.compute.gathering import Question, questions
from controllers.compute.operators.given import Relation
from controllers.compute.operators.small import Told, told
from journal.errors import InvalidUsage
from lower.spark.lowering import spark_sql, spark_tree
from lower.spelled import NotSpelled, spelled
from plan import relations as r
from plan.counts import PILE_MAX, piles_up
from plan.nodes import walk
from sql.views.spark_gate import name_relations, over_plan
from trees.budget import bounded
from trees.nodes import parse_spark

Asked = Iterator[Iterator[exp.Expression]]
"""Of each question what it is at most, and what exactly: made when it is asked."""


class Lowered:
    """Of ``query``; where that is the reason why there is no plan, it is known as ``sql`` alone, in Spark's words.

    ``sql`` may be given too where it is known already.  Any thread may call; nobody changes what it gives.
    """

    def __init__(self, query: r.Query | str, sql: str | None = None) -> None:
        assert sql is not None or isinstance(query, r.Query)
        self.query = query
        self._sql = sql

    @cached_property
    def spark_sql(self) -> str:
        """It in Spark's words, over relations by their ids.  Raises ``InvalidUsage`` where there are none."""
        return self._sql if self._sql is not None else spark_sql(_tree(self.query))

    def shown(self) -> str:
        """The same, over several lines.  Raises ``InvalidUsage``."""
        tree = parse_spark(self.spark_sql) if isinstance(self.query, str) else spark_tree(_tree(self.query))
        return tree.sql("spark", pretty=True, identify=True)

    def on_spark(self, rows: Mapping[str, exp.Expression]) -> exp.Expression:
        """What Spark is asked, over queries for what it reads.  Raises ``InvalidUsage``."""
        if isinstance(self.query, str):
            return name_relations(self.spark_sql, rows.keys(), rows)
        return over_plan(self.query, spark_tree(_tree(self.query)), rows)

    def asked_before(self, rows: Mapping[str, exp.Expression]) -> Asked:
        """What Spark is asked before that (``gathering.py``), over the same.  Nothing of what has no plan."""
        return ((over_plan(each, spark_tree(_tree(each)), rows) for each in question) for question in self._gathers)

    @cached_property
    def _gathers(self) -> list[Question]:
        return [] if isinstance(self.query, str) else questions(self.query)

    @cached_property
    def told(self) -> Told:
        """What DuckDB is told of it, or why it is not."""
        return Told(self.query, self.query) if isinstance(self.query, str) else told(self.query)

    def piles_up(self, relations: Mapping[str, Relation]) -> bool:
        """Whether Spark may have too many rows of it in memory at once, over ``relations`` by their ids."""
        if isinstance(self.query, str):
            return False
        rows = {i: each.rows_at_most for i, each in relations.items()}
        often = [i for i, each in relations.items() if each.rows_at_most > each.rows + PILE_MAX]
        return bounded(piles_up)(self.query.relation, rows, often)

    @property
    def gets(self) -> list[r.Get]:
        """The relations that it reads, as often as it does."""
        return [node for node in walk(self.query.relation) if isinstance(node, r.Get)]


def _tree(query: r.Query) -> exp.Expression:
    """What each engine's text is printed of.  Raises ``InvalidUsage`` where its plan cannot be said."""
    # It is not kept: it takes ten times the room of the texts, and each of them is made once.
    try:
        return bounded(spelled)(query.relation, query.names)
    except NotSpelled as why:
        raise InvalidUsage(f"the query cannot be said: {why}", sqlstate="0A000") from why
