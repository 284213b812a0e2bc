"""Of sinks."""

from __future__ import annotations

from adapter.system.kinds.kind import NO_ACCESS, KindRows, Place
from catalog_log.objects import Sink, own_columns
from catalog_log.objects.sink import ICEBERG, KAFKA, UPSERT
from sql.objects.identifiers import quoted
from sql.objects.names import ImageLike, name_parts


def _created(item: Sink, name: str, image: ImageLike) -> str:
    """Columns of the key by what they are called today."""
    if item.into == ICEBERG:
        return _created_in_iceberg(item, name, image)
    through = f" CONNECTION {_named(item.connection_id, image)}" if item.connection_id else ""
    options = [f"TOPIC {_text(item.topic)}", f"PROGRESS TOPIC {_text(item.progress_topic)}"]
    options += [f"PARTITION COUNT {item.partitions}"] if item.partitions else []
    options += [f"REPLICATION FACTOR {item.replicas}"] if item.replicas else []
    return (
        f"CREATE SINK {name} FROM {_named(item.relation_id, image)}\n"
        f"INTO KAFKA{through} ({', '.join(options)})\n"
        f"{_its_key(item, image)}FORMAT {item.format.upper()}{_registry(item, image)} ENVELOPE {item.envelope.upper()}"
    )


def _registry(item: Sink, image: ImageLike) -> str:
    found = item.registering
    if found is None:
        return ""
    options = [f"AVRO KEY FULLNAME {_text(found.key_name)}"] if found.key_name else []
    options += [f"AVRO VALUE FULLNAME {_text(found.value_name)}"] if found.value_name else []
    options += ["NULL DEFAULTS TRUE"] if found.null_defaults else []
    options += [f"KEY COMPATIBILITY LEVEL {_text(found.key_compatibility)}"] if found.key_compatibility else []
    options += [f"VALUE COMPATIBILITY LEVEL {_text(found.value_compatibility)}"] if found.value_compatibility else []
    told = f" ({', '.join(options)})" if options else ""
    return f" USING CONFLUENT SCHEMA REGISTRY CONNECTION {_named(found.registry_id, image)}{told}"


def _created_in_iceberg(item: Sink, name: str, image: ImageLike) -> str:
    return (
        f"CREATE SINK {name} FROM {_named(item.relation_id, image)}\n"
        f"INTO ICEBERG CATALOG CONNECTION {_named(item.connection_id, image)} "
        f"(NAMESPACE {_text(item.namespace)}, TABLE {_text(item.table)})\n"
        f"{_its_key(item, image)}MODE {_mode(item).upper()} WITH (COMMIT INTERVAL '{item.interval_ms} ms')"
    )


def _mode(item: Sink) -> str:
    """Its envelope, which in Iceberg has a name of its own."""
    return item.envelope if item.into == KAFKA or item.envelope == UPSERT else "append"


def _its_key(item: Sink, image: ImageLike) -> str:
    key = ", ".join(map(quoted, _key(item, image)))
    return f"KEY ({key}){'' if item.enforced else ' NOT ENFORCED'}\n" if key else ""


def _key(item: Sink, image: ImageLike) -> list[str]:
    found = image.item(item.relation_id)
    now = dict(item.columns) | {column.id: column.name for column in (own_columns(found) if found else ())}
    return [now[each] for each in item.key]


def _named(item_id: str, image: ImageLike) -> str:
    found = image.item(item_id)
    return ".".join(map(quoted, name_parts(image, found))) if found is not None else item_id


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _row(item: Sink, place: Place, image: ImageLike) -> dict[str, object]:
    return {"id": item.id, "schema_name": place.schema, "name": item.name, "relation_id": item.relation_id,
            "connection_id": item.connection_id or None, "topic": item.topic or None,
            "progress_topic": item.progress_topic or None, "namespace": item.namespace or None,
            "table_name": item.table or None, "commit_interval_ms": item.interval_ms or None,
            "key": _key(item, image), "format": item.format, "envelope": _mode(item),
            "registry_id": item.registering.registry_id if item.registering is not None else None}  # fmt: skip


def _listed(item: Sink, image: ImageLike) -> tuple[str | None, ...]:
    found = image.item(item.relation_id)
    return found.name if found else None, item.target, item.format, _mode(item)


ROWS = KindRows(
    "", _created, access=NO_ACCESS, table_type=None, privileges=(), own={"tm_catalog.sinks": _row},
    columns={"sinks": "id schema_name name relation_id connection_id topic progress_topic key:_text format envelope "
                      "registry_id namespace table_name commit_interval_ms:int8"},
    listed=_listed,
)  # fmt: skip
