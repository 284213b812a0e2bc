"""A sink: the changes of a collection as messages on a topic of somebody's, or as snapshots of an Iceberg table."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any

from catalog_log.objects.item import Audience, Column, Item, Record, required

UPSERT, DEBEZIUM, NONE = "upsert", "debezium", "none"
ENVELOPES = (UPSERT, DEBEZIUM, NONE)
"""What a change is as messages: the newest row of its key; what was before it and what is after; a row that came."""

JSON, AVRO = "json", "avro"


@dataclass(frozen=True)
class Registering:
    """How the schemas of a sink that writes Avro are called, and registered."""

    registry_id: str
    """The connection to the registry."""
    key_name: str = ""
    """What the schema of keys is called, with its namespace; empty: as :mod:`collection.messages.avro_written` has it.
    The same of values."""
    value_name: str = ""
    null_defaults: bool = False
    """Whether what may be NULL is so by default."""
    key_compatibility: str = ""
    """The level that the subject of keys gets where it has none; empty: the registry's.  The same of values."""
    value_compatibility: str = ""
    nullable: tuple[int, ...] = ()
    """The ids of the columns that could be NULL when the sink was made: they may be in its schemas for ever, since
    there is no way back that older readers would understand."""
    widened: tuple[int, ...] = ()
    """Those of columns that could be NULL since: for the same reason they may be so in the schema of its values for
    ever, and never in that of its keys."""

    def told(self) -> str:
        """All of it but the connection, which the sink depends on."""
        untold = {"registry_id"} if self.widened else {"registry_id", "widened"}
        return json.dumps({name: value for name, value in vars(self).items() if name not in untold})

    @classmethod
    def of(cls, registry_id: str, told: str) -> Registering:
        """Raises ``ValueError`` and ``LookupError`` for what is none."""
        found = json.loads(told)
        texts = ("key_name", "value_name", "key_compatibility", "value_compatibility")
        if not isinstance(found, dict) or not all(isinstance(found[name], str) for name in texts):
            raise LookupError("such registering")
        nullable, widened = found["nullable"], found.get("widened", [])
        for ids in (nullable, widened):
            if not isinstance(ids, list) or not all(type(each) is int for each in ids):
                raise LookupError("such registering")
        return cls(
            registry_id, **{name: found[name] for name in texts}, null_defaults=found["null_defaults"] is True,
            nullable=tuple(nullable), widened=tuple(widened),
        )  # fmt: skip


KAFKA, ICEBERG = "kafka", "iceberg"
"""What a sink may write into."""

PARQUET = "parquet"
"""The format of one into Iceberg."""


@dataclass(frozen=True, kw_only=True)
class Sink(Item):
    kind = word = "sink"
    plural, listed = "sinks", ("from", "topic", "format", "envelope")
    absent = "42704", "SHOW SINKS lists those that there are"
    unread = "a sink writes elsewhere: read what it is made from"

    relation_id: str
    connection_id: str = ""
    """To the brokers that have its topic, empty: the environment's own; or to the catalog that has its table."""
    into: str = KAFKA
    topic: str = ""
    progress_topic: str = ""
    """Where it says how far the topic is complete; neither of them is one's that writes into Iceberg."""
    namespace: str = ""
    table: str = ""
    """Of one into Iceberg: its table's, the parts of the namespace with dots between them."""
    interval_ms: int = 0
    """Of one into Iceberg: its snapshots are at multiples of it."""
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
    registering: Registering | None = None
    """Of :data:`AVRO`."""
    envelope: str
    """Of one into Iceberg: :data:`UPSERT`, or :data:`NONE` where rows are only ever added."""

    def with_nullable(self, ids: Collection[int]) -> Sink:
        """It once these columns of its relation may be NULL, for as long as it lives."""
        told = self.registering
        if told is None:
            return self
        known = {*told.nullable, *told.widened}
        new = [number for number, _ in self.columns if number in ids and number not in known]
        return replace(self, registering=replace(told, widened=(*told.widened, *new))) if new else self

    @property
    def target(self) -> str:
        """The name of its topic, or of its table."""
        return self.topic if self.into == KAFKA else f"{self.namespace}.{self.table}"

    @property
    def depends_on(self) -> tuple[str, ...]:
        registry = self.registering.registry_id if self.registering is not None else ""
        return (self.relation_id, *filter(None, (self.connection_id, registry)))

    @property
    def audience(self) -> Audience:
        return Audience.STORAGE

    def with_ids(self, now: Callable[[str], str], spark: Callable[[str], str]) -> Sink:
        connection_id = now(self.connection_id) if self.connection_id else ""
        registering = self.registering
        if registering is not None:
            registering = replace(registering, registry_id=now(registering.registry_id))
        return replace(super().with_ids(now, spark), relation_id=now(self.relation_id), connection_id=connection_id,
                       registering=registering)  # fmt: skip

    def fields(self) -> dict[str, Any]:
        options = {
            "progress": self.progress_topic, "partitions": str(self.partitions), "replicas": str(self.replicas),
            "columns": json.dumps(self.columns), "key": json.dumps(self.key), "enforced": str(int(self.enforced)),
            "format": self.format, "envelope": self.envelope,
        }  # fmt: skip
        if self.registering is not None:
            options["registering"] = self.registering.told()
        if self.into == KAFKA:
            return {"topic": self.topic, "options": options}
        its = {"into": self.into, "namespace": self.namespace, "table": self.table, "interval": str(self.interval_ms)}
        return {"options": options | its}

    @classmethod
    def of_record(cls, head: tuple[str, str, str, str], columns: tuple[Column, ...], record: Record) -> Sink:
        options = record["options"]
        on, *through = record["depends_on"]
        registering = None
        if "registering" in options:
            registering = Registering.of(through.pop(), options["registering"])
        if (registering is not None) != (options["format"] == AVRO):
            raise LookupError("such format")
        envelope = options["envelope"]
        if envelope not in ENVELOPES:
            raise LookupError("such envelope")
        into = options.get("into", KAFKA)
        if into not in (KAFKA, ICEBERG):
            raise LookupError("such target")
        its = {"topic": required(record["topic"])} if into == KAFKA else {
            "into": into, "namespace": options["namespace"], "table": options["table"],
            "interval_ms": int(options["interval"]),
        }  # fmt: skip
        return cls(
            *head, relation_id=on, connection_id=through[0] if through else "", **its,
            progress_topic=options["progress"], partitions=int(options["partitions"]),
            replicas=int(options["replicas"]), enforced=options["enforced"] == "1", format=options["format"],
            envelope=envelope, registering=registering, key=tuple(json.loads(options["key"])),
            columns=tuple([(number, name) for number, name in json.loads(options["columns"])]),
        )  # fmt: skip
