"""CREATE SOURCE: where messages are, and how they become rows.  Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from catalog_log.objects.reading import (
    AVRO,
    BYTES,
    CSV,
    DEBEZIUM,
    HEADERS,
    JSON,
    KEY,
    NONE,
    OFFSET,
    PARTITION,
    PROTOBUF,
    TEXT,
    TIMESTAMP,
    UPSERT,
)
from journal.errors import InvalidUsage
from sql.syntax.clustering import HowStored, read_how_stored
from sql.syntax.column_defs import ColumnDef, column_list
from sql.syntax.cursor import Cursor
from sql.syntax.generators import CreateGenerator, read_generator
from sql.syntax.statement import DDL, Name
from sql.syntax.webhooks import CreateWebhook, read_webhook
from trees.errors import unsupported
from values.bad_text import BadText
from values.scalars import read_bytea

INCLUDED = (KEY, PARTITION, OFFSET, TIMESTAMP, HEADERS)

CSV_COLUMNS_MAX = 1600
"""As many as a relation may have."""

PARTITIONS_MAX = 10_000
"""Offsets in one START OFFSET: more partitions than brokers like to have in a topic."""


@dataclass(frozen=True)
class FormatSpec:
    """A format as it is written."""

    kind: str
    columns: int = 0
    delimiter: str = ","
    schema: str = ""
    registry: Name | None = None
    position: int = 0
    header: tuple[str, ...] | None = None
    """Of CSV; empty: the names of the source's columns."""
    message: str = ""
    """Of Protocol Buffers, whose ``schema`` is in hex."""


@dataclass(frozen=True)
class Fetched:
    """What a registry said of the topic when it was asked: the connection's id, and the newest schema as JSON."""

    connection_id: str
    schema: str


@dataclass(frozen=True)
class CreateSource(DDL):
    """``columns`` are those of the value; none where they follow from the format."""

    tag = "CREATE SOURCE"

    name: Name
    columns: tuple[ColumnDef, ...]
    topic: str
    value: FormatSpec
    envelope: str
    if_not_exists: bool
    text: str
    key: FormatSpec | None = None
    connection: Name | None = None
    included: tuple[tuple[str, str | None], ...] = ()
    """What of :data:`INCLUDED` is a column, and the name given to it."""
    start_offsets: tuple[int, ...] = ()
    start_ms: int | None = None
    stored: HowStored = HowStored()
    fetched: Mapping[str, Fetched] = field(default_factory=dict)
    """By ``key`` and ``value``, where registries were asked (:func:`sql.statements.ddl_sources.to_fetch`)."""

    @property
    def format(self) -> str:
        return self.value.kind

    @classmethod
    def read(cls, c: Cursor, text: str) -> CreateSource | CreateGenerator | CreateWebhook:
        exists = c.take("if", "not", "exists")
        name = c.name()
        if c.take("from", "load", "generator"):
            return read_generator(c, text, name, exists)
        cluster = c.identifier(("default",)) if c.take("in", "cluster") else None
        if c.take("from", "webhook"):
            return read_webhook(c, text, name, exists, cluster)
        if cluster is not None:
            raise unsupported("IN CLUSTER of a source that is read from Kafka")
        listed = c.word() == "("
        columns = column_list(c, name.last) if listed else ()
        if listed and not columns:
            raise InvalidUsage("a source needs at least one column", sqlstate="42601")
        for column in columns:
            if column.default is not None:
                raise unsupported("DEFAULT in a source's column list")
            if column.serial or column.identity is not None:
                raise unsupported("a column that counts in a source's column list", hint="a source has what is sent")
        if listed and c.word() == "from" and c.word(1) == "load":
            told = "a load generator has columns of its own"
            raise InvalidUsage(told, sqlstate="42601", position=c.position, hint="leave the list of columns out")
        c.expect("from", "kafka")
        if c.word() == "broker":
            raise unsupported("KAFKA BROKER", "CREATE CONNECTION … TO KAFKA (…), then FROM KAFKA CONNECTION …",
                              c.position)  # fmt: skip
        connection = c.name() if c.take("connection") else None
        topic, offsets, start_ms = _topic(c)
        key, value = _formats(c)
        included = _included(c)
        envelope = _envelope(c)
        stored = read_how_stored(c)
        if c.word() in ("with", "expose", "timestamp"):
            raise unsupported(f"{c.word().upper()} … of a source", position=c.position)
        c.end()
        return cls(
            name, columns, topic, value, envelope, exists, text, key, connection, included, offsets, start_ms,
            stored=stored,
        )  # fmt: skip


def _topic(c: Cursor) -> tuple[str, tuple[int, ...], int | None]:
    """``(TOPIC 't', START OFFSET (…), START TIMESTAMP …)``, or the topic alone without parentheses."""
    bracket = c.take("(")
    c.expect("topic")
    c.take("=")
    topic = c.string()
    offsets: tuple[int, ...] = ()
    start_ms = None
    while bracket and c.take(","):
        at = c.position
        if c.take("start", "offset"):
            c.take("=")
            if offsets:
                raise c.error("START OFFSET specified more than once")
            offsets = _offsets(c)
        elif c.take("start", "timestamp"):
            c.take("=")
            if start_ms is not None:
                raise c.error("START TIMESTAMP specified more than once")
            start_ms = _number(c, "START TIMESTAMP", "milliseconds since 1970")
        elif c.word() in ("group", "progress", "topic", "client"):
            raise unsupported(f"the option {c.word().upper()} … of a source", position=at)
        else:
            raise c.error()
    if bracket:
        c.expect(")")
    if offsets and start_ms is not None:
        raise InvalidUsage("a source begins at START OFFSET or at START TIMESTAMP, not at both", sqlstate="42601")
    return topic, offsets, start_ms


def _offsets(c: Cursor) -> tuple[int, ...]:
    close = ")" if c.take("(") else "]" if c.take("[") else None
    found = [_number(c, "START OFFSET", "an offset")]
    while close and c.take(","):
        found.append(_number(c, "START OFFSET", "an offset"))
        if len(found) > PARTITIONS_MAX:
            raise InvalidUsage(f"START OFFSET names more than {PARTITIONS_MAX} partitions", sqlstate="54000")
    if close:
        c.expect(close)
    return tuple(found)


def _number(c: Cursor, option: str, what: str) -> int:
    """A whole number that is no less than 0."""
    at, word = c.position, c.word()
    if word is None or not word.isascii() or not word.isdigit() or int(word) >= 1 << 63 or len(word) > 19:
        raise InvalidUsage(f"invalid {option}", sqlstate="22023", position=at, hint=f"{what}, from 0 on")
    c.at += 1
    return int(word)


def _formats(c: Cursor) -> tuple[FormatSpec | None, FormatSpec]:
    if c.take("key", "format"):
        key = _format(c)
        c.expect("value", "format")
        return key, _format(c)
    c.expect("format")
    return None, _format(c)


def _format(c: Cursor) -> FormatSpec:
    at = c.position
    for kind in (JSON, TEXT, BYTES):
        if c.take(kind):
            return FormatSpec(kind, position=at)
    if c.take(CSV):
        return _csv(c, at)
    if c.take(AVRO):
        c.expect("using")
        if c.take("schema"):
            return FormatSpec(AVRO, schema=c.string(), position=at)
        c.expect("confluent", "schema", "registry", "connection")
        registry = c.name()
        if c.word() in ("(", "with", "key", "value") and c.word(1) != "format":
            raise unsupported("options of a schema registry", position=c.position)
        return FormatSpec(AVRO, registry=registry, position=at)
    if c.take(PROTOBUF):
        return _protobuf(c, at)
    if c.word() == "regex":
        told = "AVRO, BYTES, CSV, JSON, PROTOBUF and TEXT are there"
        raise unsupported("FORMAT REGEX", hint=told, position=at)
    raise c.error()


def _protobuf(c: Cursor, at: int) -> FormatSpec:
    if c.word() == "using" and c.word(1) == "confluent":
        raise unsupported(
            "FORMAT PROTOBUF of a schema registry", position=at,
            hint="write PROTOBUF MESSAGE 'package.Name' USING SCHEMA '…', which protoc --descriptor_set_out makes",
        )  # fmt: skip
    c.expect("message")
    name = c.string()
    c.expect("using", "schema")
    if c.word() == "file":
        raise unsupported("USING SCHEMA FILE", hint="USING SCHEMA '\\x…' has it in the statement", position=c.position)
    where = c.position
    try:
        found = read_bytea(c.string())
    except BadText as error:
        raise InvalidUsage(f"invalid schema: {error.message}", sqlstate="22023", position=where) from None
    return FormatSpec(PROTOBUF, schema=found.hex(), position=at, message=name)


def _csv(c: Cursor, at: int) -> FormatSpec:
    c.expect("with")
    header: tuple[str, ...] | None = None
    if c.take("header"):
        header = c.names() if c.word() == "(" else ()
        count = len(header)
    else:
        count = _number(c, "number of columns", "a number")
    if not (header == () or 0 < count <= CSV_COLUMNS_MAX):
        raise InvalidUsage("invalid number of columns", sqlstate="22023", position=at, hint=f"1 to {CSV_COLUMNS_MAX}")
    if header is None and not c.take("columns"):
        c.expect("column")
    delimiter = ","
    if c.take("delimited", "by"):
        at = c.position
        delimiter = c.string()
        if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n\0':
            told = "DELIMITED BY must be a single one-byte character, no quote and no end of a line"
            raise InvalidUsage(told, sqlstate="22023", position=at)
    return FormatSpec(CSV, count, delimiter, position=at, header=header)


def _included(c: Cursor) -> tuple[tuple[str, str | None], ...]:
    found: list[tuple[str, str | None]] = []
    if not c.take("include"):
        return ()
    while True:
        at = c.position
        what = next((each for each in INCLUDED if c.take(each)), None)
        if what is None:
            if c.word() == "header":
                raise unsupported("INCLUDE HEADER", hint="INCLUDE HEADERS has all of them", position=at)
            raise c.error()
        if what in (each for each, _ in found):
            raise c.error(f"INCLUDE {what.upper()} specified more than once")
        found.append((what, c.identifier() if c.take("as") else None))
        if not c.take(","):
            return tuple(found)


def _envelope(c: Cursor) -> str:
    if not c.take("envelope"):
        return NONE
    for each in (NONE, UPSERT, DEBEZIUM):
        if c.take(each):
            if c.word() in ("upsert", "("):
                raise unsupported(f"options of ENVELOPE {each.upper()}", position=c.position)
            return each
    raise c.error()
