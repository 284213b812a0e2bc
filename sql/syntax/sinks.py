"""CREATE SINK: what is written where, before any name in it is looked up.  Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from catalog_log.objects.sink import AVRO, ENVELOPES, ICEBERG, JSON, KAFKA, PARQUET
from sql.syntax.cursor import Cursor
from sql.syntax.iceberg_sinks import read_into_iceberg
from sql.syntax.statement import DDL, Name
from trees.errors import syntax, unsupported

TOPIC, PROGRESS, PARTITIONS, REPLICAS = "topic", "progress topic", "partition count", "replication factor"

_OPTIONS = {
    "topic partition count": PARTITIONS, "topic replication factor": REPLICAS, "partition count": PARTITIONS,
    "replication factor": REPLICAS, "progress topic": PROGRESS, "topic": TOPIC,
}  # fmt: skip
"""Options of the topics by their words, longer ones first."""

_TEXTS = (TOPIC, PROGRESS)

_OPTIONS_ELSEWHERE = ("compression", "group", "legacy", "partition", "progress", "topic", "transactional")
"""First words of options that Materialize has and we do not."""

KEY_NAME, VALUE_NAME, NULL_DEFAULTS = "avro key fullname", "avro value fullname", "null defaults"
KEY_COMPATIBILITY, VALUE_COMPATIBILITY = "key compatibility level", "value compatibility level"

_SCHEMA_OPTIONS = (KEY_NAME, VALUE_NAME, NULL_DEFAULTS, KEY_COMPATIBILITY, VALUE_COMPATIBILITY)
"""What is said of a sink's schemas."""

_SCHEMA_OPTIONS_ELSEWHERE = ("doc", "key", "value")
"""First words of those that Materialize has and we do not."""


@dataclass(frozen=True)
class SinkRegistry:
    """Where the schemas of a sink go, and what is said of them."""

    connection: Name
    options: tuple[tuple[str, str], ...]
    """A truth as ``true`` or ``false``."""
    position: int


@dataclass(frozen=True)
class CreateSink(DDL):
    """``options`` in the order in which they stand; ``key`` is empty where none was said; ``registry`` is of AVRO."""

    tag = "CREATE SINK"

    name: Name
    relation: Name
    connection: Name | None
    options: tuple[tuple[str, str | int], ...]
    key: tuple[str, ...]
    enforced: bool
    format: str
    registry: SinkRegistry | None
    envelope: str
    if_not_exists: bool
    text: str
    into: str = KAFKA

    @classmethod
    def read(cls, c: Cursor, text: str) -> CreateSink:
        exists = c.take("if", "not", "exists")
        name = c.name()
        if c.word() == "in":
            hint = "leave IN CLUSTER out: the storage controller writes all sinks"
            raise unsupported("a sink of a cluster", hint=hint, position=c.position)
        c.expect("from")
        relation = c.name()
        c.expect("into")
        if c.take("iceberg"):
            its = read_into_iceberg(c)
            return cls(name, relation, its.connection, its.options, its.key, its.enforced, PARQUET, None,
                       its.envelope, exists, text, ICEBERG)  # fmt: skip
        c.expect("kafka")
        connection = c.name() if c.take("connection") else None
        options = _options(c)
        key = c.names() if c.word(1) != "format" and c.take("key") else ()
        enforced = not (key and c.take("not", "enforced"))
        if c.word() == "headers":
            raise unsupported("HEADERS of a sink", hint="each message says its timestamp in one", position=c.position)
        format_, registry = _format(c)
        c.expect("envelope")
        envelope = next((each for each in ENVELOPES if c.take(each)), None)
        if envelope is None:
            raise c.error()
        if c.word() == "with":
            raise unsupported("WITH (…) of a sink", hint="it begins with all rows that there are", position=c.position)
        c.end()
        return cls(name, relation, connection, options, key, enforced, format_, registry, envelope, exists, text)


def _options(c: Cursor) -> tuple[tuple[str, str | int], ...]:
    found: list[tuple[str, str | int]] = []
    for name in _names(c, _OPTIONS, _OPTIONS_ELSEWHERE, "TOPIC, PARTITION COUNT, REPLICATION FACTOR, PROGRESS TOPIC"):
        found.append((name, c.string() if name in _TEXTS else _number(c)))
    return tuple(found)


def _names(c: Cursor, options: Mapping[str, str], elsewhere: tuple[str, ...], known: str) -> Iterator[str]:
    """Of options in brackets each name, for whoever reads the value behind it."""
    c.expect("(")
    found: set[str] = set()
    while not found or c.take(","):
        at = c.position
        name = next((kind for words, kind in options.items() if c.take(*words.split())), None)
        if name is None:
            if c.word() in elsewhere:
                raise unsupported(f"the option {c.word().upper()} … of a sink", known, at)
            raise c.error()
        if name in found:
            raise syntax(None, at, f"{name.upper()} specified more than once")
        found.add(name)
        c.take("=")
        yield name
    c.expect(")")


def _number(c: Cursor) -> int:
    word = c.word()
    if word is None or not word.isascii() or not word.isdigit():
        raise c.error()
    c.at += 1
    return int(word[:10])


def _format(c: Cursor) -> tuple[str, SinkRegistry | None]:
    if c.word() in ("key", "value"):
        hint = "use one FORMAT, JSON or AVRO, for both"
        raise unsupported("KEY FORMAT and VALUE FORMAT of a sink", hint=hint, position=c.position)
    c.expect("format")
    at = c.position
    if c.take(JSON):
        return JSON, None
    if c.take(AVRO):
        c.expect("using")
        if c.word() == "schema":
            hint = "USING CONFLUENT SCHEMA REGISTRY CONNECTION name: a sink's schemas follow from its columns"
            raise unsupported("a sink with AVRO USING SCHEMA", hint=hint, position=c.position)
        c.expect("confluent", "schema", "registry", "connection")
        return AVRO, SinkRegistry(c.name(), _schema_options(c) if c.word() == "(" else (), at)
    if c.word() in ("csv", "protobuf", "text", "bytes"):
        hint = "use FORMAT JSON or AVRO"
        raise unsupported(f"a sink with FORMAT {c.word().upper()}", hint=hint, position=c.position)
    raise c.error()


def _schema_options(c: Cursor) -> tuple[tuple[str, str], ...]:
    known = ", ".join(_SCHEMA_OPTIONS).upper()
    found: list[tuple[str, str]] = []
    for name in _names(c, {each: each for each in _SCHEMA_OPTIONS}, _SCHEMA_OPTIONS_ELSEWHERE, known):
        found.append((name, _truth(c) if name == NULL_DEFAULTS else c.string()))
    return tuple(found)


def _truth(c: Cursor) -> str:
    """True where nothing is said behind the option."""
    for each in ("true", "false"):
        if c.take(each):
            return each
    if c.word() in (",", ")"):
        return "true"
    raise c.error()
