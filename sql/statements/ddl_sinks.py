"""CREATE SINK: whether what it is to write can be written so.  Pure: nobody is asked whether the topic is there."""

from __future__ import annotations

import re
from collections.abc import Mapping

from catalog_log import records
from catalog_log.objects import Connection, MaterializedView, Relation, Sink, Source, Table, View
from catalog_log.objects.sink import UPSERT
from journal.errors import InvalidUsage
from sql.objects.identifiers import check_columns, check_identifier
from sql.objects.item_ids import ItemIds
from sql.objects.names import ImageLike, Names, find, relation, target_schema
from sql.statements.ddl_made import created, exists, taken
from sql.statements.plans import DdlPlan
from sql.syntax import statements as st
from sql.syntax.connections import KAFKA
from sql.syntax.sinks import PARTITIONS, PROGRESS, REPLICAS, TOPIC
from trees.errors import no_column, unsupported, wrong_kind

TOPIC_CHARS_MAX = 249
"""Kafka's own bound (``Topic.MAX_NAME_LENGTH``)."""

PARTITIONS_MAX = 10_000
"""More than a broker should have of all topics together."""

REPLICAS_MAX = 100

PROGRESS_SUFFIX = "-progress"

_TOPIC = re.compile(r"[A-Za-z0-9._-]+")


def plan_create_sink(s: st.CreateSink, image: ImageLike, names: Names) -> DdlPlan:
    """A new sink.  Raises 42P07, 3F000, 42501, 42622; 42P01, 42704 and 42809 for what it names; 42703 for a column of
    its key; 22023 for what does not go together; 0A000 in catalogs of formats before 9."""
    schema = target_schema(image, names, s.name)
    name = check_identifier(s.name.last)
    if image.genesis.format_version < records.SINKS_FROM:
        raise unsupported(
            f"CREATE SINK in a catalog of format {image.genesis.format_version}",
            hint=f"sinks are kept by catalogs made with format {records.SINKS_FROM} or later",
        )
    if taken(image, schema, name):
        return exists("relation", name, s.if_not_exists, s.tag)
    found = _relation(s, image, names)
    connection = "" if s.connection is None else _connection(s.connection, image, names).id
    options = dict(s.options)
    ids = ItemIds(image)
    item = Sink(
        ids.item(), schema.id, name, s.text, relation_id=found.id, connection_id=connection, **_topics(options),
        partitions=_count(options, PARTITIONS, PARTITIONS_MAX), replicas=_count(options, REPLICAS, REPLICAS_MAX),
        columns=tuple([(column.id, column.name) for column in found.columns]), key=_key(s, found),
        enforced=s.enforced, format=s.format, envelope=s.envelope,
    )  # fmt: skip
    return created(ids, s.tag, item)


def _relation(s: st.CreateSink, image: ImageLike, names: Names) -> Relation:
    found = relation(image, names, s.relation)
    if isinstance(found, View):
        raise wrong_kind(found.name, "relation that a sink can be made from",
                         "create a materialized view, whose changes are known, and a sink from that")  # fmt: skip
    if not isinstance(found, (Table, Source, MaterializedView)):
        raise wrong_kind(s.relation.last, "relation that a sink can be made from")
    if not all(column.id for column in found.columns):
        raise unsupported(f"a sink from {found.name}, which was made in an older format", hint="make it anew")
    return found


def _connection(name: st.Name, image: ImageLike, names: Names) -> Connection:
    found = find(image, names, name)
    if found is None:
        sqlstate, hint = Connection.absent
        raise InvalidUsage(f'connection "{name}" does not exist', sqlstate=sqlstate, hint=hint)
    if not isinstance(found, Connection):
        raise wrong_kind(name.last, Connection.word)
    if found.to != KAFKA:
        raise wrong_kind(name.last, "connection to Kafka")
    return found


def _topics(options: Mapping[str, str | int]) -> dict[str, str]:
    topic = _topic(options, TOPIC, None)
    progress = _topic(options, PROGRESS, f"{topic}{PROGRESS_SUFFIX}")
    if topic == progress:
        raise InvalidUsage("TOPIC and PROGRESS TOPIC are one", sqlstate="22023", hint="messages need a topic alone")
    return {"topic": topic, "progress_topic": progress}


def _topic(options: Mapping[str, str | int], option: str, otherwise: str | None) -> str:
    found = options.get(option, otherwise)
    if found is None:
        raise InvalidUsage(f"a sink into Kafka needs a {option.upper()}", sqlstate="22023", hint="(TOPIC 'name')")
    found = str(found)
    if not _TOPIC.fullmatch(found) or found in (".", ".."):
        hint = "letters, digits, '.', '_' and '-'"
        raise InvalidUsage(f'"{found}" cannot be the name of a topic', sqlstate="22023", hint=hint)
    if len(found) > TOPIC_CHARS_MAX:
        said = option.upper() if option in options else f"{option.upper()}, which is called after TOPIC,"
        raise InvalidUsage(f"{said} has more than {TOPIC_CHARS_MAX} characters", sqlstate="22023")
    return found


def _count(options: Mapping[str, str | int], option: str, most: int) -> int:
    found = int(options.get(option, 0))
    if option in options and not 0 < found <= most:
        raise InvalidUsage(f"{option.upper()} {found} is not from 1 to {most}", sqlstate="22023")
    return found


def _key(s: st.CreateSink, found: Relation) -> tuple[int, ...]:
    if s.envelope == UPSERT and not s.key:
        raise InvalidUsage("ENVELOPE UPSERT needs a KEY", sqlstate="22023",
                           hint="KEY (columns) of which no two rows have the same values")  # fmt: skip
    known = {column.name: column.id for column in found.columns}
    for each in s.key:
        if each not in known:
            raise no_column(each, known)
    check_columns(list(s.key))
    return tuple([known[each] for each in s.key])


PLANS = {st.CreateSink: plan_create_sink}
