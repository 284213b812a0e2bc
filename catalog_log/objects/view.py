"""A plain view: nothing is kept of it, who reads it reads its query."""

from __future__ import annotations

from dataclasses import dataclass

from catalog_log.objects.definition import Definition, query_of
from catalog_log.objects.item import Audience, Column, Queried, Record


@dataclass(frozen=True, kw_only=True)
class View(Queried):
    kind = word = "view"
    plural = "views"

    @property
    def audience(self) -> Audience:
        """Of those that the catalog keeps as Spark text nobody is told, as ever: they stand in what reads them."""
        return Audience.CLUSTERS if isinstance(self.query, Definition) else Audience.NOBODY

    @classmethod
    def of_record(cls, head: tuple[str, str, str, str], columns: tuple[Column, ...], record: Record) -> View:
        return cls(*head, columns, query=query_of(record))
