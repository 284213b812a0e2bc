"""A source: the rows of the messages of a user's topic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from catalog_log.objects.item import Column, Record, Relation, required
from catalog_log.objects.reading import Reading

PROGRESS = ".progress"


@dataclass(frozen=True, kw_only=True)
class Source(Relation):
    kind = word = "source"
    plural, listed = "sources", ("topic", "format")

    topic: str
    format: str
    envelope: str
    errors_id: str
    """Where messages are kept that are no rows of it."""
    reading: Reading | None = None
    """How its messages become rows; ``None``: they are read where they are, as JSON."""

    @property
    def depends_on(self) -> tuple[str, ...]:
        return () if self.reading is None else self.reading.connections

    @property
    def in_place(self) -> bool:
        """Whether its rows are the user's records; otherwise they are copied into a topic of ours."""
        return self.reading is None

    @property
    def progress_id(self) -> str:
        """The collection whose bindings say how far its topic was read: its own, or one that nobody reads."""
        return self.id if self.in_place else progress_of(self.id)

    def with_ids(self, now: Callable[[str], str], spark: Callable[[str], str]) -> Source:
        reading = None if self.reading is None else self.reading.with_ids(now)
        return replace(super().with_ids(now, spark), errors_id=now(self.errors_id), reading=reading)

    def fields(self) -> dict[str, Any]:
        options = {"format": self.format, "envelope": self.envelope, "errors_id": self.errors_id}
        if self.reading is not None:
            options["reading"] = self.reading.text()
        return {"topic": self.topic, "options": options}

    @classmethod
    def of_record(cls, head: tuple[str, str, str, str], columns: tuple[Column, ...], record: Record) -> Source:
        options = record["options"]
        reading = options.get("reading")
        return cls(
            *head, columns, topic=required(record["topic"]), format=options.get("format", "json"),
            envelope=options.get("envelope", "none"), errors_id=options["errors_id"],
            reading=None if reading is None else Reading.of_text(reading),
        )  # fmt: skip


def progress_of(source_id: str) -> str:
    """What the progress of a copied source is bound under."""
    return source_id + PROGRESS


def whose_progress(collection_id: str) -> str:
    """The object that a collection belongs to: the source whose progress it is, or itself."""
    return collection_id.removesuffix(PROGRESS)
