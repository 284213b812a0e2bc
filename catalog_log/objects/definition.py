"""What a view's query is in the catalog: what its user meant, or, in old catalogs, what Spark is told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Reference:
    """What a name in a definition means, whatever is called so later."""

    name: tuple[str, ...]
    """As it stands there, folded to lower case where it was not quoted: ``("public", "t")``."""
    relation_id: str
    schema: str
    """What the relation's schema was called: columns may be qualified by it."""
    columns: tuple[str, ...]
    """The columns that the relation had, in order: what ``*`` and NATURAL mean."""
    column_ids: tuple[int, ...] = ()
    """Which ones they are; empty in catalogs of format 3, in which a column is what it is called."""


@dataclass(frozen=True)
class Definition:
    """A query as its user meant it: the one in ``create_sql``, with every name of a relation in it resolved.

    It says nothing of how an engine is told it: every process works that out (``sql/views/kept_views.py``).
    """

    references: tuple[Reference, ...]
    inputs: tuple[str, ...]
    """Ids of the collections that it reads, itself and through plain views."""

    @property
    def depends_on(self) -> tuple[str, ...]:
        """Ids of the relations that are named in it, plain views among them."""
        return tuple(dict.fromkeys(each.relation_id for each in self.references))

    def with_ids(self, now: Callable[[str], str], spark: Callable[[str], str]) -> Definition:
        references = (replace(each, relation_id=now(each.relation_id)) for each in self.references)
        return Definition(tuple(references), tuple(map(now, self.inputs)))

    def fields(self) -> dict[str, Any]:
        return {"references": [vars(each) for each in self.references], "inputs": self.inputs}


@dataclass(frozen=True)
class SparkText:
    """A query as catalogs of formats 1 and 2 keep it, and as Spark is told it: plain views inlined, relations named by
    item id."""

    sql: str
    depends_on: tuple[str, ...]
    """Ids of the relations that were named in it, plain views among them."""
    inputs: tuple[str, ...]
    """Ids of the collections that ``sql`` reads (tables, sources, materialized views)."""

    def with_ids(self, now: Callable[[str], str], spark: Callable[[str], str]) -> SparkText:
        return SparkText(spark(self.sql), tuple(map(now, self.depends_on)), tuple(map(now, self.inputs)))

    def fields(self) -> dict[str, Any]:
        return {"query_sql": self.sql, "inputs": self.inputs}


def query_of(record: Mapping[str, Any]) -> Definition | SparkText:
    """The query that a view's record has."""
    if record["query_sql"] is not None:
        return SparkText(record["query_sql"], tuple(record["depends_on"]), tuple(record["inputs"]))
    references = (
        Reference(tuple(r["name"]), r["relation_id"], r["schema"], tuple(r["columns"]), tuple(r["column_ids"]))
        for r in record["references"]
    )
    return Definition(tuple(references), tuple(record["inputs"]))
