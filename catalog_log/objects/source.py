"""A source: the rows of the messages of a user's topic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from catalog_log.objects.item import Column, Record, Relation, required


@dataclass(frozen=True, kw_only=True)
class Source(Relation):
    kind = word = "source"
    plural, listed = "sources", ("topic", "format")

    topic: str
    format: str
    envelope: str
    errors_id: str
    """Where messages are kept that are no rows of it."""

    def with_ids(self, now: Callable[[str], str], spark: Callable[[str], str]) -> Source:
        return replace(super().with_ids(now, spark), errors_id=now(self.errors_id))

    def fields(self) -> dict[str, Any]:
        options = {"format": self.format, "envelope": self.envelope, "errors_id": self.errors_id}
        return {"topic": self.topic, "options": options}

    @classmethod
    def of_record(cls, head: tuple[str, str, str, str], columns: tuple[Column, ...], record: Record) -> Source:
        options = record["options"]
        return cls(
            *head, columns, topic=required(record["topic"]), format=options.get("format", "json"),
            envelope=options.get("envelope", "none"), errors_id=options["errors_id"],
        )  # fmt: skip
