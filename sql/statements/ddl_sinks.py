"""CREATE SINK: whether what it is to write can be written so.  Pure: nobody is asked whether the topic is there."""

from __future__ import annotations

from collections.abc import Mapping

from catalog_log import records
from catalog_log.objects import Connection, MaterializedView, Relation, Sink, Source, Table, View
from catalog_log.objects.sink import ICEBERG, UPSERT, Registering
from catalog_log.objects.sink import KAFKA as INTO_KAFKA
from collection.messages.avro_written import NAME, RESERVED
from journal.errors import InvalidUsage
from journal.names import TOPIC_CHARS_MAX, check_topic_name
from sql.objects.identifiers import check_columns, check_identifier
from sql.objects.item_ids import ItemIds
from sql.objects.names import ImageLike, Names, find, relation, target_schema
from sql.statements.ddl_iceberg import check_columns_of_iceberg, its_table
from sql.statements.ddl_made import created, exists, taken
from sql.statements.plans import DdlPlan
from sql.syntax import sinks as said
from sql.syntax import statements as st
from sql.syntax.connections import ICEBERG as CATALOG
from sql.syntax.connections import KAFKA, REGISTRY
from sql.syntax.sinks import PARTITIONS, PROGRESS, REPLICAS, TOPIC
from trees.errors import no_column, unsupported, wrong_kind

PARTITIONS_MAX = 10_000
"""More than a broker should have of all topics together."""

REPLICAS_MAX = 100

PROGRESS_SUFFIX = "-progress"

LEVELS = (
    "BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE", "NONE",
)  # fmt: skip
"""Of compatibility, as registries have them."""

_TO = {
    KAFKA: "connection to Kafka", REGISTRY: "connection to a schema registry",
    CATALOG: "connection to an Iceberg catalog",
}  # fmt: skip


def plan_create_sink(s: st.CreateSink, image: ImageLike, names: Names) -> DdlPlan:
    """A new sink.  Raises 42P07, 3F000, 42501, 42622; 42P01, 42704 and 42809 for what it names; 42703 for a column of
    its key; 42602 for one that Avro has no name for, 22023 for what does not go together; 0A000 in catalogs of formats
    before 9 (for Avro and into Iceberg before 11), and for a column of a type that Iceberg has not; 42701 for two
    columns that have one name there."""
    schema = target_schema(image, names, s.name)
    name = check_identifier(s.name.last)
    if image.genesis.format_version < records.SINKS_FROM:
        raise unsupported(
            f"CREATE SINK in a catalog of format {image.genesis.format_version}",
            hint=f"sinks are kept by catalogs made with format {records.SINKS_FROM} or later",
        )
    if s.into == ICEBERG and image.genesis.format_version < records.ICEBERG_FROM:
        raise unsupported(
            f"CREATE SINK … INTO ICEBERG in a catalog of format {image.genesis.format_version}",
            hint=f"such sinks are kept by catalogs made with format {records.ICEBERG_FROM} or later",
        )
    if taken(image, schema, name):
        return exists("relation", name, s.if_not_exists, s.tag)
    found = _relation(s, image, names)
    wanted = KAFKA if s.into == INTO_KAFKA else CATALOG
    connection = "" if s.connection is None else _connection(s.connection, image, names, wanted).id
    options = dict(s.options)
    if s.into == ICEBERG:
        check_columns_of_iceberg(found)
        its = its_table(options)
    else:
        its = {**_topics(options), "partitions": _count(options, PARTITIONS, PARTITIONS_MAX),
               "replicas": _count(options, REPLICAS, REPLICAS_MAX)}  # fmt: skip
    key = _key(s, found)
    registering = None if s.registry is None else _registering(s, s.registry, found, image, names)
    ids = ItemIds(image)
    item = Sink(
        ids.item(), schema.id, name, s.text, relation_id=found.id, connection_id=connection, into=s.into, **its,
        columns=tuple([(column.id, column.name) for column in found.columns]), key=key,
        enforced=s.enforced, format=s.format, registering=registering, envelope=s.envelope,
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


def _connection(name: st.Name, image: ImageLike, names: Names, to: str) -> Connection:
    found = find(image, names, name)
    if found is None:
        sqlstate, hint = Connection.absent
        raise InvalidUsage(f'connection "{name}" does not exist', sqlstate=sqlstate, hint=hint)
    if not isinstance(found, Connection):
        raise wrong_kind(name.last, Connection.word)
    if found.to != to:
        raise wrong_kind(name.last, _TO[to])
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
    check_topic_name(found)
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
    if s.into == INTO_KAFKA and s.envelope == UPSERT and not s.key:
        raise InvalidUsage("ENVELOPE UPSERT needs a KEY", sqlstate="22023",
                           hint="KEY (columns) of which no two rows have the same values")  # fmt: skip
    known = {column.name: column.id for column in found.columns}
    for each in s.key:
        if each not in known:
            raise no_column(each, known)
    check_columns(list(s.key))
    return tuple([known[each] for each in s.key])


def _registering(
    s: st.CreateSink, registry: said.SinkRegistry, found: Relation, image: ImageLike, names: Names
) -> Registering:
    if image.genesis.format_version < records.AVRO_SINKS_FROM:
        raise unsupported(
            f"a sink with FORMAT AVRO in a catalog of format {image.genesis.format_version}",
            hint=f"they are kept by catalogs made with format {records.AVRO_SINKS_FROM} or later: use FORMAT JSON",
        )
    connection = _connection(registry.connection, image, names, REGISTRY)
    for column in found.columns:
        if not NAME.fullmatch(column.name):
            raise InvalidUsage(
                f'column "{column.name}" cannot be the name of a field in Avro', sqlstate="42602",
                hint="letters, digits and '_': make a materialized view that calls it otherwise, and a sink from that",
            )  # fmt: skip
    given = dict(registry.options)
    keyed = [option for option in (said.KEY_NAME, said.KEY_COMPATIBILITY) if option in given]
    if keyed and not s.key:
        raise _unsaid(registry, f"{keyed[0].upper()} is of a sink that has a KEY")
    for option in (said.KEY_NAME, said.VALUE_NAME):
        parts = given[option].split(".") if option in given else ["_"]
        if not all(map(NAME.fullmatch, parts)) or parts[-1] in RESERVED:
            raise _unsaid(registry, f'{option.upper()} "{given[option]}" is no name in Avro')
    for option in (said.KEY_COMPATIBILITY, said.VALUE_COMPATIBILITY):
        if option in given and given[option].upper() not in LEVELS:
            raise _unsaid(registry, f'{option.upper()} "{given[option]}" is none', ", ".join(LEVELS))
    return Registering(
        connection.id, given.get(said.KEY_NAME, ""), given.get(said.VALUE_NAME, ""),
        given.get(said.NULL_DEFAULTS) == "true", given.get(said.KEY_COMPATIBILITY, "").upper(),
        given.get(said.VALUE_COMPATIBILITY, "").upper(), tuple([each.id for each in found.columns if each.nullable]),
    )  # fmt: skip


def _unsaid(registry: said.SinkRegistry, told: str, hint: str | None = None) -> InvalidUsage:
    return InvalidUsage(told, sqlstate="22023", hint=hint, position=registry.position)


PLANS = {st.CreateSink: plan_create_sink}
