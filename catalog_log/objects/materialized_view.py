"""A materialized view: its cluster keeps its rows."""

from __future__ import annotations

from dataclasses import dataclass

from catalog_log.objects.definition import query_of
from catalog_log.objects.item import Column, Maintained, Queried, Record, required


@dataclass(frozen=True, kw_only=True)
class MaterializedView(Queried, Maintained):
    kind = "materialized_view"
    word = "materialized view"
    plural, listed = "materialized views", ("cluster",)

    @classmethod
    def of_record(
        cls, head: tuple[str, str, str, str], columns: tuple[Column, ...], record: Record
    ) -> MaterializedView:
        return cls(*head, columns, query=query_of(record), cluster_id=required(record["cluster_id"]))
