"""CREATE SINK: what is written where, before any name in it is looked up.  Pure."""

from __future__ import annotations

from dataclasses import dataclass

from catalog_log.objects.sink import ENVELOPES, JSON
from sql.syntax.cursor import Cursor
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


@dataclass(frozen=True)
class CreateSink(DDL):
    """``options`` in the order in which they stand; ``key`` is empty where none was said."""

    tag = "CREATE SINK"

    name: Name
    relation: Name
    connection: Name | None
    options: tuple[tuple[str, str | int], ...]
    key: tuple[str, ...]
    enforced: bool
    format: str
    envelope: str
    if_not_exists: bool
    text: str

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
        if not c.take("kafka"):
            if c.word() == "iceberg":
                raise unsupported("a sink INTO ICEBERG", hint="use INTO KAFKA", position=c.position)
            raise c.error()
        connection = c.name() if c.take("connection") else None
        options = _options(c)
        key = c.names() if c.word(1) != "format" and c.take("key") else ()
        enforced = not (key and c.take("not", "enforced"))
        if c.word() == "headers":
            raise unsupported("HEADERS of a sink", hint="each message says its timestamp in one", position=c.position)
        format_ = _format(c)
        c.expect("envelope")
        envelope = next((each for each in ENVELOPES if c.take(each)), None)
        if envelope is None:
            raise c.error()
        if c.word() == "with":
            raise unsupported("WITH (…) of a sink", hint="it begins with all rows that there are", position=c.position)
        c.end()
        return cls(name, relation, connection, options, key, enforced, format_, envelope, exists, text)


def _options(c: Cursor) -> tuple[tuple[str, str | int], ...]:
    c.expect("(")
    found: list[tuple[str, str | int]] = []
    while not found or c.take(","):
        at = c.position
        name = next((kind for words, kind in _OPTIONS.items() if c.take(*words.split())), None)
        if name is None:
            if c.word() in _OPTIONS_ELSEWHERE:
                known = "TOPIC, PARTITION COUNT, REPLICATION FACTOR, PROGRESS TOPIC"
                raise unsupported(f"the option {c.word().upper()} … of a sink", known, at)
            raise c.error()
        if any(name == before for before, _ in found):
            raise syntax(None, at, f"{name.upper()} specified more than once")
        c.take("=")
        found.append((name, c.string() if name in _TEXTS else _number(c)))
    c.expect(")")
    return tuple(found)


def _number(c: Cursor) -> int:
    word = c.word()
    if word is None or not word.isascii() or not word.isdigit():
        raise c.error()
    c.at += 1
    return int(word[:10])


def _format(c: Cursor) -> str:
    if c.word() in ("key", "value"):
        raise unsupported("KEY FORMAT and VALUE FORMAT of a sink", hint="use FORMAT JSON for both", position=c.position)
    c.expect("format")
    if c.take(JSON):
        return JSON
    if c.word() in ("avro", "csv", "protobuf", "text", "bytes"):
        raise unsupported(f"a sink with FORMAT {c.word().upper()}", hint="use FORMAT JSON", position=c.position)
    raise c.error()
