"""CREATE SINK and what is done with one: what may be written where, and what stands on what."""

from __future__ import annotations

from dataclasses import replace

import pytest

from adapter.execute.show import ROWS
from adapter.system import rows as system_rows
from adapter.system.rows import System
from adapter.system.tidemark_rows import ROWS as TIDEMARK
from catalog_log.delta import from_empty
from catalog_log.objects import SINK, Sink
from catalog_log.objects.sink import Registering
from catalog_log.records import AVRO_SINKS_FROM, SINKS_FROM
from controllers.commands import STORAGE, compute
from journal.errors import InvalidUsage
from journal.names import TOPIC_CHARS_MAX
from sql.statements.ddl import plan_ddl
from sql.statements.ddl_sinks import PARTITIONS_MAX
from sql.statements.select import plan_select
from sql.syntax.parse import parse
from subscribers.translate import translate
from tests.sql.doubles import ddl, empty_image, names


def world():
    return ddl(
        empty_image(),
        "create table items (id int not null, name text, \"Odd col\" int)",
        "create connection far to kafka (broker 'a:1')",
        "create connection sr to confluent schema registry (url 'http://a:1')",
        "create view v as select id from items",
        "create materialized view mv as select name, count(*) as n from items group by name",
        "create source src (id int) from kafka topic 'in' format json",
        "create sequence counted",
        "create schema app",
    )


UPSERT = "create sink s from items into kafka connection far (topic 't') key (id) format json envelope upsert"


def sink(image, name: str = "s") -> Sink:
    item = image.item_by_name(image.schema_by_name("d1", "public").id, name)
    assert isinstance(item, Sink), item
    return item


def shown(image, text: str) -> list[tuple]:
    statement = parse(text)
    return ROWS[type(statement)](statement, image, names())


def refused(image, text: str) -> InvalidUsage:
    with pytest.raises(InvalidUsage) as error:
        plan_ddl(parse(text), image, names())
    return error.value


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (UPSERT, {"topic": "t", "progress_topic": "t-progress", "key": (1,), "enforced": True, "envelope": "upsert",
                  "columns": ((1, "id"), (2, "name"), (3, "Odd col")), "partitions": 0, "replicas": 0}),
        ("create sink s from items into kafka (topic = 't', progress topic 'p', partition count = 3, "
         "replication factor 2) key (\"Odd col\", id) not enforced format json envelope debezium",
         {"progress_topic": "p", "partitions": 3, "replicas": 2, "key": (3, 1), "enforced": False,
          "envelope": "debezium", "connection_id": ""}),
        ("create sink if not exists s from public.mv into kafka connection public.far "
         "(topic partition count 1, topic 'T.a_b-1', topic replication factor = 1) format json envelope none",
         {"topic": "T.a_b-1", "partitions": 1, "replicas": 1, "key": (), "envelope": "none",
          "columns": ((1, "name"), (2, "n"))}),
        ("create sink s from src into kafka (topic 't') format json envelope debezium", {"columns": ((1, "id"),)}),
        ("create sink s from mv into kafka (topic 't') key (name) format avro using confluent schema registry "
         "connection sr envelope upsert",
         {"format": "avro", "depends_on": ("u5", "u3"), "registering": Registering("u3", nullable=(1, 2))}),
        ("create sink s from src into kafka connection far (topic 't') key (id) format avro using confluent schema "
         "registry connection public.sr (avro key fullname = 'com.a.K', avro value fullname 'V', null defaults, "
         "key compatibility level 'none', value compatibility level = 'Full_Transitive') envelope debezium",
         {"depends_on": ("u6", "u2", "u3"),
          "registering": Registering("u3", "com.a.K", "V", True, "NONE", "FULL_TRANSITIVE", (1,))}),
        ("create sink s from mv into kafka (topic 't') format avro using confluent schema registry connection sr "
         "(null defaults = false) envelope none", {"registering": Registering("u3", nullable=(1, 2))}),
    ],
)  # fmt: skip
def test_what_is_said_is_kept_and_shown_so_that_it_makes_the_same(text, kept) -> None:
    image = ddl(world(), text)
    found = sink(image)
    assert {name: getattr(found, name) for name in kept} == kept
    [(name, again)] = shown(image, "show create sink s")
    assert name == "tidemark.public.s"
    other = sink(ddl(world(), again))
    assert (other.fields(), other.topic, other.depends_on) == (found.fields(), found.topic, found.depends_on)


AVRO = ("create sink s from mv into kafka connection far (topic 't') {} format avro using confluent schema registry "
        "connection {} {} envelope none")  # fmt: skip
AVRO_WORDS = "avro using confluent schema registry connection sr "
INTO = "create sink s from items into kafka connection far ({}) {} format json envelope {}"


@pytest.mark.parametrize(
    ("text", "sqlstate"),
    [
        (INTO.format("topic 't'", "", "upsert"), "22023"),
        (INTO.format("topic 't'", "key (nix)", "upsert"), "42703"),
        (INTO.format("topic 't'", "key (id, id)", "upsert"), "42701"),
        (INTO.format("topic 't'", "key ()", "upsert"), "42601"),
        (INTO.format("topic 't'", "not enforced", "none"), "42601"),
        (INTO.format("topic 't'", "", "other"), "42601"),
        (INTO.format("", "", "none"), "42601"),
        (INTO.format("partition count 2", "", "none"), "22023"),
        (INTO.format("topic 't', topic 'u'", "", "none"), "42601"),
        (INTO.format("topic 't', progress topic 't'", "", "none"), "22023"),
        (INTO.format("topic 't', partition count 0", "", "none"), "22023"),
        (INTO.format(f"topic 't', partition count {PARTITIONS_MAX + 1}", "", "none"), "22023"),
        (INTO.format("topic 't', partition count -1", "", "none"), "42601"),
        (INTO.format("topic 't', partition count '2'", "", "none"), "42601"),
        (INTO.format("topic 't', replication factor 101", "", "none"), "22023"),
        (INTO.format("topic 't', compression type 'lz4'", "", "none"), "0A000"),
        (INTO.format("topic 't', colour 'red'", "", "none"), "42601"),
        *((INTO.format(f"topic '{each}'", "", "none"), "22023") for each in
          ("", ".", "..", "a b", "naïve", "a/b", "x" * (TOPIC_CHARS_MAX + 1), "x" * (TOPIC_CHARS_MAX - 3))),
        (INTO.format("topic 't'", "", "none").replace("json", "avro using schema '\"int\"'"), "0A000"),
        (INTO.format("topic 't'", "", "none").replace("json", "csv"), "0A000"),
        (AVRO.format("", "sr", "").replace("mv", "items"), "42602"),
        (AVRO.format("", "far", ""), "42809"),
        (AVRO.format("", "items", ""), "42809"),
        (AVRO.format("", "nix", ""), "42704"),
        (AVRO.format("", "sr", "()"), "42601"),
        (AVRO.format("", "sr", "(null defaults, null defaults)"), "42601"),
        (AVRO.format("", "sr", "(null defaults = 3)"), "42601"),
        (AVRO.format("", "sr", "(colour 'red')"), "42601"),
        (AVRO.format("", "sr", "(doc on type mv = 'x')"), "0A000"),
        (AVRO.format("", "sr", "(avro key fullname 'k')"), "22023"),
        (AVRO.format("", "sr", "(key compatibility level 'NONE')"), "22023"),
        (AVRO.format("", "sr", "(value compatibility level 'ANY')"), "22023"),
        *((AVRO.format("", "sr", f"(avro value fullname '{each}')"), "22023") for each in
          ("", ".", "a.", ".a", "int", "a.string", "a..b", "1a", "a-b", "a b", "naïve", "a.\"b\"")),
        (INTO.format("topic 't'", "", "none").replace("json", "nothing"), "42601"),
        (INTO.format("topic 't'", "", "none").replace("format json", "key format json value format json"), "0A000"),
        (INTO.format("topic 't'", "", "none") + " with (snapshot = false)", "0A000"),
        (INTO.format("topic 't'", "", "none") + " more", "42601"),
        (INTO.format("topic 't'", "", "none").replace("sink s", "sink s in cluster default"), "0A000"),
        (INTO.format("topic 't'", "", "none").replace("kafka connection far", "iceberg catalog"), "42601"),
        (INTO.format("topic 't'", "", "none").replace("far", "sr"), "42809"),
        (INTO.format("topic 't'", "", "none").replace("far", "items"), "42809"),
        (INTO.format("topic 't'", "", "none").replace("far", "nix"), "42704"),
        (INTO.format("topic 't'", "", "none").replace("from items", "from v"), "42809"),
        (INTO.format("topic 't'", "", "none").replace("from items", "from counted"), "42809"),
        (INTO.format("topic 't'", "", "none").replace("from items", "from src_errors"), "42809"),
        (INTO.format("topic 't'", "", "none").replace("from items", "from nix"), "42P01"),
        (INTO.format("topic 't'", "", "none").replace("from items", "from pg_catalog.pg_class"), "42809"),
        (INTO.format("topic 't'", "", "none").replace("sink s", "sink nowhere.s"), "3F000"),
        (INTO.format("topic 't'", "", "none").replace("sink s", "sink items"), "42P07"),
        ("create sink s", "42601"),
        ("create sink s from items", "42601"),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_refused(text, sqlstate) -> None:
    error = refused(world(), text)
    assert error.sqlstate == sqlstate, (error.sqlstate, error.message)
    assert len(error.message) < 400 and (sqlstate != "0A000" or error.hint)


def test_it_stands_on_what_it_is_made_from_and_has_a_name_among_all_others() -> None:
    image = ddl(world(), UPSERT)
    for text in ("drop table items", "drop connection far", "alter table items drop column name"):
        error = refused(image, text)
        assert error.sqlstate == "2BP01" and "sink s depends on" in error.detail, text
    assert refused(image, "drop table s").hint == "use DROP SINK to remove it"
    assert refused(image, "drop sink other").sqlstate == "42704"
    with pytest.raises(InvalidUsage) as error:
        plan_select(parse("select * from s").ast, image, names())
    assert (error.value.sqlstate, error.value.hint) == ("42809", "a sink writes elsewhere: read what it is made from")
    assert refused(image, "alter sink s set (size = 3)").sqlstate == "0A000"
    more = ddl(image, "alter table items add column later int")
    assert sink(more) == sink(image), "which it does not write"
    assert sink(ddl(more, "alter table items drop column later")) == sink(image)
    renamed = ddl(image, "alter table items rename column id to number", "alter sink s rename to z")
    assert sink(renamed, "z").columns == sink(image).columns, "messages call it as before"
    assert 'KEY ("number")' in shown(renamed, "show create sink z")[0][1].replace("KEY (number)", 'KEY ("number")')
    moved = ddl(image, "alter sink s set schema app")
    assert moved.item(sink(image).id).topic == "t"
    assert ddl(image, "drop sink s").item(sink(image).id) is None
    assert ddl(image, "drop table items cascade").item(sink(image).id) is None
    again = plan_ddl(parse(UPSERT.replace("sink s", "sink if not exists s")), image, names())
    assert again.updates == () and again.notices[0].message == 'relation "s" already exists, skipping'


def test_it_is_listed_where_one_looks_and_is_no_relation() -> None:
    image = ddl(world(), UPSERT, "create sink z from mv into kafka (topic 'u') format json envelope debezium")
    assert shown(image, "show sinks") == [("s", "items", "t", "json", "upsert"), ("z", "mv", "u", "json", "debezium")]
    assert shown(image, "show sinks like 'z%'") == [("z", "mv", "u", "json", "debezium")]
    system = System(image, "tidemark")
    first, second = TIDEMARK["sinks"](system)
    assert first == {
        "id": sink(image).id, "schema_name": "public", "name": "s", "relation_id": sink(image).relation_id,
        "connection_id": sink(image).connection_id, "topic": "t", "progress_topic": "t-progress", "key": ["id"],
        "format": "json", "envelope": "upsert", "registry_id": None, "namespace": None,
        "table_name": None, "commit_interval_ms": None,
    }  # fmt: skip
    assert (second["connection_id"], second["key"]) == (None, [])
    assert not {"s", "z"} & {row["relname"] for row in system_rows.ROWS["pg_class"](system)}
    said = ddl(image, "comment on sink s is 'outside'")
    assert [row["comment"] for row in TIDEMARK["comments"](System(said, "tidemark"))] == ["outside"]


def test_the_storage_controller_alone_is_told_and_older_catalogs_have_none() -> None:
    image = ddl(world(), UPSERT)
    told = [c.item.kind for c in translate(from_empty(image), STORAGE) if c.item is not None]
    assert told[-1] == SINK and told.count(SINK) == 1
    assert SINK not in {c.item.kind for c in translate(from_empty(image), compute("default")) if c.item is not None}
    error = refused(empty_image(SINKS_FROM - 1), UPSERT)
    assert error.sqlstate == "0A000" and f"format {SINKS_FROM}" in error.hint
    older = ddl(
        empty_image(AVRO_SINKS_FROM - 1), "create table mv (a int)", "create connection far to kafka (broker 'a:1')",
        "create connection sr to confluent schema registry (url 'http://a:1')",
    )  # fmt: skip
    error = refused(older, AVRO.format("", "sr", ""))
    assert error.sqlstate == "0A000" and f"format {AVRO_SINKS_FROM}" in error.hint
    assert sink(ddl(older, AVRO.format("", "sr", "").replace(AVRO_WORDS, "json")))


def test_a_registry_is_not_dropped_below_a_sink_and_its_name_follows() -> None:
    image = ddl(world(), AVRO.format("", "sr", ""))
    error = refused(image, "drop connection sr")
    assert error.sqlstate == "2BP01" and "sink s depends on" in error.detail
    image = ddl(image, 'alter connection sr rename to "The registry"')
    assert 'CONNECTION public."The registry"' in shown(image, "show create sink s")[0][1]
    [listed] = TIDEMARK["sinks"](System(image, "tidemark"))
    assert listed["registry_id"] == "u3"


def test_a_sink_keeps_that_a_column_could_be_null() -> None:
    """A schema of its values that had NULL was one without again in the process that began next."""
    image = ddl(world(), "create table t (a int primary key, b text not null, c int)",
                AVRO.format("key (a)", "sr", "").replace("mv", "t"))  # fmt: skip
    a, b, c = (column.id for column in image.item(sink(image).relation_id).columns)
    before = sink(image).registering
    assert before.nullable == (c,) and before.widened == () and "widened" not in before.told()
    image = ddl(image, "alter table t alter b drop not null, alter c drop not null")
    assert sink(image).registering == replace(before, widened=(b,))
    assert Registering.of(before.registry_id, sink(image).registering.told()) == sink(image).registering
    image = ddl(image, "alter table t drop column b cascade")
    assert image.item_by_name(image.schema_by_name("d1", "public").id, "s") is None
