"""The errors of a source: the messages that are no rows of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from catalog_log.objects.item import Column, Record, Relation

ERRORS_COLUMNS = (
    Column("error", "text"),
    Column("value", "text"),
    Column("topic", "text"),
    Column("partition", "int4"),
    Column("offset", "int8"),
)
"""What is kept of a message that is no row of its source."""


@dataclass(frozen=True, kw_only=True)
class Errors(Relation):
    kind = "errors"
    word = "errors collection"
    belongs = True
    named = False

    source_id: str

    @property
    def depends_on(self) -> tuple[str, ...]:
        return (self.source_id,)

    def with_ids(self, now: Callable[[str], str], spark: Callable[[str], str]) -> Errors:
        return replace(super().with_ids(now, spark), source_id=now(self.source_id))

    @classmethod
    def of_record(cls, head: tuple[str, str, str, str], columns: tuple[Column, ...], record: Record) -> Errors:
        return cls(*head, columns, source_id=record["depends_on"][0])
