"""A sink: the changes of a collection as messages on a topic of somebody's."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from catalog_log.objects.item import Audience, Column, Item, Record, required

UPSERT, DEBEZIUM, NONE = "upsert", "debezium", "none"
ENVELOPES = (UPSERT, DEBEZIUM, NONE)
"""What a change is as messages: the newest row of its key; what was before it and what is after; a row that came."""

JSON = "json"


@dataclass(frozen=True, kw_only=True)
class Sink(Item):
    kind = word = "sink"
    plural, listed = "sinks", ("from", "topic", "format", "envelope")
    absent = "42704", "SHOW SINKS lists those that there are"
    unread = "a sink is on its topic: read what it is made from"

    relation_id: str
    connection_id: str = ""
    """To the brokers that have its topic; empty: the environment's own."""
    topic: str
    progress_topic: str
    """Where it says how far the topic is complete."""
    partitions: int = 0
    replicas: int = 0
    """Of the topics, where they have to be made; 0: as the brokers make them."""
    columns: tuple[tuple[int, str], ...]
    """What it writes of each row, in this order: the ids of its relation's columns, each with what messages call it."""
    key: tuple[int, ...] = ()
    """The ids of those that are its key."""
    enforced: bool = True
    """Whether it looks itself whether no two rows have one key."""
    format: str = JSON
    envelope: str

    @property
    def depends_on(self) -> tuple[str, ...]:
        return (self.relation_id, self.connection_id) if self.connection_id else (self.relation_id,)

    @property
    def audience(self) -> Audience:
        return Audience.STORAGE

    def with_ids(self, now: Callable[[str], str], spark: Callable[[str], str]) -> Sink:
        connection_id = now(self.connection_id) if self.connection_id else ""
        return replace(super().with_ids(now, spark), relation_id=now(self.relation_id), connection_id=connection_id)

    def fields(self) -> dict[str, Any]:
        options = {
            "progress": self.progress_topic, "partitions": str(self.partitions), "replicas": str(self.replicas),
            "columns": json.dumps(self.columns), "key": json.dumps(self.key), "enforced": str(int(self.enforced)),
            "format": self.format, "envelope": self.envelope,
        }  # fmt: skip
        return {"topic": self.topic, "options": options}

    @classmethod
    def of_record(cls, head: tuple[str, str, str, str], columns: tuple[Column, ...], record: Record) -> Sink:
        options = record["options"]
        on, *through = record["depends_on"]
        envelope = options["envelope"]
        if envelope not in ENVELOPES:
            raise LookupError("such envelope")
        return cls(
            *head, relation_id=on, connection_id=through[0] if through else "", topic=required(record["topic"]),
            progress_topic=options["progress"], partitions=int(options["partitions"]),
            replicas=int(options["replicas"]), enforced=options["enforced"] == "1", format=options["format"],
            envelope=envelope, key=tuple(json.loads(options["key"])),
            columns=tuple([(number, name) for number, name in json.loads(options["columns"])]),
        )  # fmt: skip
