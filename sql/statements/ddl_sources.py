"""CREATE SOURCE: which columns a topic's messages give, and whether what is said goes together.  Pure.

What registries say of a topic is asked before a statement is planned (:func:`to_fetch`), by whoever may wait, and is a
part of the statement then: so planning it again means the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from catalog_log import records
from catalog_log.objects import ERRORS_COLUMNS, Column, Connection, Errors, Source
from catalog_log.objects.reading import (
    AVRO,
    BOTH,
    BYTES,
    CSV,
    DEBEZIUM,
    HEADERS,
    JSON,
    KEY,
    METADATA,
    NONE,
    OFFSET,
    PARTITION,
    PROTOBUF,
    TEXT,
    TIMESTAMP,
    VALUE,
    Format,
    Reading,
)
from collection.messages import avro_types, protobuf_types
from collection.messages.avro_types import WHOLE, Field
from collection.messages.formats import is_record, member_of, type_of
from collection.messages.judging import AFTER
from journal.errors import InvalidUsage
from journal.names import TOPIC_CHARS_MAX, TopicNames, check_topic_name
from schemas.avro_messages import BadSchema, read_schema
from sql.objects.identifiers import check_columns, check_identifier, errors_name
from sql.objects.item_ids import ItemIds
from sql.objects.names import ImageLike, Names, find, target_schema
from sql.statements.ddl_clustering import how_stored
from sql.statements.ddl_made import created, exists, new_columns, taken
from sql.statements.plans import DdlPlan
from sql.syntax import statements as st
from sql.syntax.column_defs import COLUMNS_MAX, SYSTEM_COLUMNS
from sql.syntax.connections import KAFKA, REGISTRY
from sql.syntax.sources import FormatSpec
from trees.errors import already_exists, unsupported, wrong_kind
from values.types import parse_type

_METADATA = {
    PARTITION: ("int4", False), OFFSET: ("int8", False), TIMESTAMP: ("timestamptz", True), HEADERS: ("jsonb", False),
}  # fmt: skip


_LIST = "list the columns that there are to be"


class Wanted(NamedTuple):
    """What a registry is to be asked: the newest schema of ``subject``."""

    connection: Connection
    subject: str


def to_fetch(s: st.CreateSource, image: ImageLike, names: Names) -> dict[str, Wanted]:
    """What is to be known of registries before ``s`` is planned, by ``key`` and ``value``; nothing of most.

    Raises 42704, 42809, 22023 for what is no connection to one.
    """
    found = {}
    for part, spec in ((KEY, key_spec(s)), (VALUE, s.value)):
        if spec is not None and spec.registry is not None:
            registry = _connection(image, names, spec.registry, REGISTRY)
            found[part] = Wanted(registry, f"{s.topic}-{part}")
    return found


def key_spec(s: st.CreateSource) -> FormatSpec | None:
    """How keys are read, where anything asks for them."""
    if s.envelope == NONE and not any(what == KEY for what, _ in s.included):
        return None
    # A registry has a schema of a topic's keys, too.
    return s.value if s.key is None and s.value.registry is not None else s.key


def plan_create_source(s: st.CreateSource, image: ImageLike, names: Names) -> DdlPlan:
    """A new source and its errors.

    Raises 42P07, 3F000, 42501, 42622, 42701; 42704, 42809 and 22023 of its connections; 42804 for a column of another
    type than its format gives; 22023 and 0A000 for what does not go together, 0A000 in catalogs of formats before 8.
    """
    schema = target_schema(image, names, s.name)
    name = check_identifier(s.name.last)
    columns, reading = _plain(s), None
    if columns is None:
        columns, reading = _read(s, image, names)
    check_columns([each.name for each in columns])
    if len(columns) > COLUMNS_MAX:
        raise InvalidUsage(f"relations can have at most {COLUMNS_MAX} columns", sqlstate="54011")
    check_topic_name(s.topic)
    if len(s.topic) > TOPIC_CHARS_MAX:
        raise InvalidUsage(f"TOPIC has more than {TOPIC_CHARS_MAX} characters", sqlstate="22023")
    environment = TopicNames(image.genesis.environment_id)
    if environment.reserved(s.topic):
        raise InvalidUsage(
            f'permission denied for topic "{s.topic}"',
            sqlstate="42501",
            detail=f"topics {environment.env}.* are Tidemark's own",
            hint="copy what is to be read to a topic with another prefix",
        )
    if taken(image, schema, name):
        return exists("relation", name, s.if_not_exists, s.tag)
    of_errors = check_identifier(errors_name(name))
    if taken(image, schema, of_errors):
        raise already_exists("relation", of_errors)
    ids = ItemIds(image)
    source_id, errors_id = ids.item(), ids.item()
    source = Source(
        source_id, schema.id, name, s.text, new_columns(image, columns), topic=s.topic, format=s.format,
        envelope=s.envelope, errors_id=errors_id, reading=reading,
    )  # fmt: skip
    errors = Errors(errors_id, schema.id, of_errors, s.text, new_columns(image, ERRORS_COLUMNS), source_id=source_id)
    return created(ids, s.tag, source, errors, also=how_stored(source, s.stored, image))


def _plain(s: st.CreateSource) -> list[Column] | None:
    """The columns of a source that is read where its messages are; ``None`` where it has to be copied."""
    more = s.connection or s.key or s.included or s.start_offsets or s.start_ms is not None
    if s.format != JSON or s.envelope != NONE or more:
        return None
    return _declared(s)


def _declared(s: st.CreateSource) -> list[Column]:
    if not s.columns:
        told = "FORMAT JSON needs a column list" if s.format == JSON else "a source needs at least one column"
        raise InvalidUsage(told, sqlstate="42601", position=s.value.position or None)
    return [Column(each.name, str(each.type), each.nullable) for each in s.columns]


def _read(s: st.CreateSource, image: ImageLike, names: Names) -> tuple[list[Column], Reading]:
    if image.genesis.format_version < records.CONNECTIONS_FROM:
        raise unsupported(
            f"such a source in a catalog of format {image.genesis.format_version}",
            hint=f"FROM KAFKA TOPIC '…' FORMAT JSON is there, all else from format {records.CONNECTIONS_FROM} on",
        )
    connection = None if s.connection is None else _connection(image, names, s.connection, KAFKA)
    spec = key_spec(s)
    _check_together(s, spec)
    value = _format(s, VALUE, s.value, image, names)
    values = _value_columns(s, value)
    key = None if spec is None else _format(s, KEY, spec, image, names)
    keys = [] if key is None else _key_columns(s, key)
    shared = {each.name: each for each in keys if s.envelope != NONE and key is not None and is_record(key)}
    columns: list[Column] = []
    roles: list[str] = []
    by_name = {each.name: each for each in values}
    for each in keys:
        other = by_name.get(each.name)
        if other is None or each.name not in shared:
            columns.append(each)
            roles.append(KEY)
        elif other.type != each.type:
            told = f'column "{each.name}" is {each.type} in the key and {other.type} in the value'
            raise InvalidUsage(told, sqlstate="42804", position=s.value.position)
    for each in values:
        columns.append(each)
        roles.append(BOTH if each.name in shared else VALUE)
    for what, alias in s.included:
        if what in METADATA:
            kind, nullable = _METADATA[what]
            columns.append(Column(_named(alias or what), kind, nullable))
            roles.append(what)
    return columns, Reading(
        value, key, tuple(roles), "" if connection is None else connection.id, s.start_offsets, s.start_ms
    )


def _check_together(s: st.CreateSource, key: FormatSpec | None) -> None:
    word = f"ENVELOPE {s.envelope.upper()}"
    at = s.value.position
    if key is None and (s.envelope != NONE or any(what == KEY for what, _ in s.included)):
        what = word if s.envelope != NONE else "INCLUDE KEY"
        raise InvalidUsage(f"{what} needs the format of keys", sqlstate="22023", position=at,
                           hint="KEY FORMAT … VALUE FORMAT …")  # fmt: skip
    if key is not None and key.kind == CSV:
        raise unsupported("KEY FORMAT CSV", hint="AVRO, BYTES, JSON and TEXT are there", position=key.position)
    if s.envelope == DEBEZIUM and s.format not in (JSON, AVRO):
        raise unsupported(f"{word} with FORMAT {s.format.upper()}", hint="JSON and AVRO are there", position=at)


def _format(s: st.CreateSource, part: str, spec: FormatSpec, image: ImageLike, names: Names) -> Format:
    if spec.kind == CSV and spec.header is not None:
        return _with_header(s, spec, image)
    if spec.kind == PROTOBUF:
        _check_format(image, records.PROTOBUF_FROM, "FORMAT PROTOBUF", spec.position, "")
        return Format(PROTOBUF, schema=spec.schema, message=spec.message)
    if spec.kind != AVRO:
        return Format(spec.kind, spec.columns, spec.delimiter)
    if spec.registry is None:
        return Format(AVRO, schema=spec.schema)
    registry = _connection(image, names, spec.registry, REGISTRY)
    fetched = s.fetched.get(part)
    if fetched is None:
        raise unsupported("a schema registry here", hint="no registry was asked: write AVRO USING SCHEMA '…'",
                          position=spec.position)  # fmt: skip
    if fetched.connection_id != registry.id:
        told = f'connection "{spec.registry}" was another one when its registry was asked'
        raise InvalidUsage(told, sqlstate="40001", hint="try again")
    return Format(AVRO, schema=fetched.schema, registry_id=registry.id)


def _with_header(s: st.CreateSource, spec: FormatSpec, image: ImageLike) -> Format:
    _check_format(image, records.HEADERS_FROM, "CSV WITH HEADER", spec.position, ": say CSV WITH n COLUMNS")
    if not spec.header and not s.columns:
        raise InvalidUsage("CSV WITH HEADER needs the header's names, or a column list", sqlstate="42601",
                           position=spec.position, hint="CSV WITH HEADER (name, …)")  # fmt: skip
    names = spec.header or tuple([column.name for column in s.columns])
    return Format(CSV, len(names), spec.delimiter, header=names)


def _check_format(image: ImageLike, least: int, what: str, position: int, instead: str) -> None:
    there = image.genesis.format_version
    if there < least:
        told = f"catalogs made with format {least} or later keep it{instead}"
        raise unsupported(f"{what} in a catalog of format {there}", position=position, hint=told)


def _fields(format: Format, position: int, member: str = "") -> list[Field | str]:
    if format.kind == PROTOBUF:
        try:
            return [part.field for part in protobuf_types.parts_of(type_of(format))]
        except BadSchema as error:
            raise InvalidUsage(
                "invalid Protobuf schema", sqlstate="22023", position=position, detail=str(error)
            ) from None
    try:
        tree = read_schema(format.schema).tree
        return avro_types.fields_of(member_of(tree, member) if member else tree)
    except BadSchema as error:
        raise InvalidUsage("invalid Avro schema", sqlstate="22023", position=position, detail=str(error)) from None


def _value_columns(s: st.CreateSource, format: Format) -> list[Column]:
    if format.kind == JSON:
        return _declared(s)
    if format.kind in (AVRO, PROTOBUF):
        return _schema_columns(s, _fields(format, s.value.position, AFTER if s.envelope == DEBEZIUM else ""))
    if format.kind == CSV:
        if not s.columns:
            names = format.header or [f"column{n}" for n in range(1, format.columns + 1)]
            return [Column(_named(name), "text") for name in names]
        if len(s.columns) != format.columns:
            told = f"{len(s.columns)} columns are declared, and {format.columns} are said of CSV"
            raise InvalidUsage(told, sqlstate="42601", position=s.value.position)
        return _declared(s)
    name, kind = ("text", "text") if format.kind == TEXT else ("data", "bytea")
    if not s.columns:
        return [Column(name, kind, False)]
    if len(s.columns) != 1 or str(s.columns[0].type) != kind:
        told = f"FORMAT {format.kind.upper()} has one column, of type {kind}"
        raise InvalidUsage(told, sqlstate="42804", position=s.value.position)
    return _declared(s)


def _schema_columns(s: st.CreateSource, fields: Sequence[Field | str]) -> list[Column]:
    at = s.value.position
    if not s.columns:
        for each in fields:
            if not isinstance(each, Field):
                raise unsupported(f"a column of field {each}", position=at, hint=_LIST)
        return [Column(_named(each.name or "value"), each.type, each.nullable) for each in fields]
    whole = isinstance(fields[0], Field) and fields[0].name == WHOLE
    if whole and len(s.columns) != 1:
        raise InvalidUsage("the schema is of one value, and has one column", sqlstate="42804", position=at)
    for column in s.columns:
        field = fields[0] if whole else avro_types.named(fields, column.name)
        if field is None:
            told = f'column "{column.name}" is in no field of the schema'
            raise InvalidUsage(told, sqlstate="42703", position=at,
                               hint=f"fields are {', '.join(map(_called, fields))[:500]}")  # fmt: skip
        if not isinstance(field, Field):
            raise unsupported(f"a column of field {field}", position=at)
        bare = field.bare is not None and parse_type(field.bare.type) == column.type
        if parse_type(field.type) != column.type and not bare:
            told = f'column "{column.name}" is of type {column.type} but the schema has {field.type}'
            raise InvalidUsage(told, sqlstate="42804", position=at)
    return _declared(s)


def _key_columns(s: st.CreateSource, format: Format) -> list[Column]:
    alias = next((alias for what, alias in s.included if what == KEY), None)
    nullable = s.envelope == NONE
    if format.kind not in (AVRO, PROTOBUF):
        kind = {TEXT: "text", BYTES: "bytea", JSON: "jsonb"}[format.kind]
        return [Column(_named(alias or KEY), kind, nullable)]
    at = (s.key or s.value).position
    fields = _fields(format, at)
    for each in fields:
        if not isinstance(each, Field):
            raise unsupported(f"a key with field {each}", position=at)
    if fields[0].name == WHOLE:
        return [Column(_named(alias or KEY), fields[0].type, nullable)]
    if alias is not None:
        raise unsupported("INCLUDE KEY AS … of a key that is a record", hint="its fields are columns", position=at)
    return [Column(_named(each.name), each.type, nullable or each.nullable) for each in fields]


def _called(field: Field | str) -> str:
    return field.name if isinstance(field, Field) else field.partition(": ")[0]


def _named(name: str) -> str:
    """A name that nobody wrote as a column's; 42701 for what columns are not called."""
    if name in SYSTEM_COLUMNS:
        told = f'column name "{name}" conflicts with a system column name'
        raise InvalidUsage(told, sqlstate="42701", hint=_LIST)
    return check_identifier(name)


def _connection(image: ImageLike, names: Names, name: st.Name, to: str) -> Connection:
    found = find(image, names, name)
    if found is None:
        sqlstate, hint = Connection.absent
        raise InvalidUsage(f'connection "{name}" does not exist', sqlstate=sqlstate, hint=hint, position=name.start + 1)
    if not isinstance(found, Connection):
        raise wrong_kind(name.last, Connection.word)
    if found.to != to:
        system = "Kafka" if to == KAFKA else "a schema registry"
        raise InvalidUsage(f'connection "{name}" is not to {system}', sqlstate="22023", position=name.start + 1)
    return found


PLANS = {st.CreateSource: plan_create_source}
