"""CREATE SOURCE of messages that are copied: which columns they give, what does not go together, and what is shown."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from adapter.execute.show import ROWS as SHOWN
from catalog_log.objects import Source
from catalog_log.objects.reading import Reading
from catalog_log.records import CONNECTIONS_FROM, HEADERS_FROM, PROTOBUF_FROM
from collection.messages.judging import Judge
from journal.errors import InvalidUsage
from schemas.avro_messages import BadSchema
from sql.statements.ddl import plan_ddl
from sql.statements.ddl_sources import to_fetch
from sql.syntax.parse import parse
from sql.syntax.sources import CreateSource, Fetched
from tests.protobuf import file, said_set
from tests.sql.doubles import apply, ddl, empty_image, names

CONNECTIONS = (
    "create connection k to kafka (broker 'localhost:9092', security protocol plaintext)",
    "create connection r to confluent schema registry (url 'http://localhost:8081')",
)
ROW = {"type": "record", "name": "v", "fields": [
    {"name": "id", "type": "long"}, {"name": "n", "type": ["null", "string"]},
    {"name": "x", "type": {"type": "record", "name": "q", "fields": [{"name": "z", "type": "double"}]}},
]}  # fmt: skip
KEY = {"type": "record", "name": "k", "fields": [{"name": "id", "type": "long"}]}
ENVELOPE = {"type": "record", "name": "e", "fields": [
    {"name": "before", "type": ["null", ROW]}, {"name": "after", "type": ["null", "v"]},
    {"name": "op", "type": "string"},
]}  # fmt: skip
PROTO = file({"K": {"id": "int64"}, "V": {"id": "int64", "n": "optional string", "tags": "repeated string",
                                          "big": "uint64", "own": ".p.V"}})  # fmt: skip
AS_V, AS_K = (f"protobuf message '{name}' using schema '\\x{said_set(PROTO).hex()}'" for name in ("p.V", ".p.K"))
NANOS = json.dumps({"type": "record", "name": "r", "fields": [
    {"name": "t", "type": {"type": "long", "logicalType": "timestamp-nanos"}},
    {"name": "u", "type": {"type": "fixed", "name": "f", "size": 16, "logicalType": "uuid"}}]})  # fmt: skip
IN_REGISTRY = "avro using confluent schema registry connection r"


@pytest.fixture(scope="module")
def image():
    return ddl(empty_image(), *CONNECTIONS, "create table t (a int)")


def fetched(text: str, image, key: object = KEY, value: object = ROW) -> CreateSource:
    """The statement, with what a registry of these schemas says."""
    statement = parse(text)
    said = {"key": json.dumps(key), "value": json.dumps(value)}
    wanted = to_fetch(statement, image, names())
    assert {each.subject for each in wanted.values()} <= {"t-key", "t-value"}
    return replace(statement, fetched={part: Fetched(each.connection.id, said[part]) for part, each in wanted.items()})


def made(statement: CreateSource, image) -> tuple[Source, object]:
    image = apply(image, plan_ddl(statement, image, names()).updates)
    source = image.item_by_name("s1", "s")
    assert isinstance(source, Source) and source.columns == image.item(source.id).columns
    return source, image


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("(a int) from kafka connection k (topic 't', start offset (1,2)) format json include partition, offset as o, "
         "timestamp, headers envelope none",
         "a int4, partition int4 !, o int8 !, timestamp timestamptz, headers jsonb !"),
        ("from kafka connection k (topic 't') format text", "text text !"),
        ("(line text) from kafka topic 't' format text", "line text"),
        ("from kafka (topic 't') key format text value format bytes include key as \"K k\"", "K k text, data bytea !"),
        ("from kafka (topic 't') key format text value format bytes", "data bytea !"),
        ("from kafka connection k (topic = 't', start timestamp = 5) format csv with 2 columns delimited by ';'",
         "column1 text, column2 text"),
        ("(a int not null, b date) from kafka topic 't' format csv with 2 columns", "a int4 !, b date"),
        ("from kafka topic 't' format csv with header (id, \"The \"\"Name\"\"\") delimited by ';' include offset",
         'id text, The "Name" text, offset int8 !'),
        ("(a int not null, b date) from kafka topic 't' format csv with header", "a int4 !, b date"),
        ("(a int, b date) from kafka topic 't' format csv with header (x, x)", "a int4, b date"),
        ("(a int) from kafka topic 't' key format text value format csv with header (\"Á\") include key "
         "envelope upsert", "key text !, a int4"),
        (f"from kafka topic 't' format {IN_REGISTRY}", "id int8 !, n text, x jsonb !"),
        (f"(n text, id bigint) from kafka topic 't' format {IN_REGISTRY}", "n text, id int8"),
        (f"from kafka topic 't' format {IN_REGISTRY} envelope upsert", "id int8 !, n text, x jsonb !"),
        (f"(n text) from kafka topic 't' format {IN_REGISTRY} envelope upsert", "id int8 !, n text"),
        (f"from kafka topic 't' format {IN_REGISTRY} include key", None),
        (f"from kafka topic 't' key format text value format {IN_REGISTRY} include key as who envelope upsert",
         "who text !, id int8 !, n text, x jsonb !"),
        ("(a int) from kafka topic 't' key format json value format json include offset envelope debezium",
         "key jsonb !, a int4, offset int8 !"),
        ("from kafka topic 't' key format bytes value format avro using schema '\"string\"' envelope upsert",
         "key bytea !, value text !"),
        (f"from kafka topic 't' format avro using schema '{NANOS}'", "t timestamptz !, u uuid !"),
        (f"(t bigint, u bytea) from kafka topic 't' format avro using schema '{NANOS}'", "t int8, u bytea"),
        ("from kafka topic 't' key format avro using schema '\"long\"' value format text include key as n",
         "n int8, text text !"),
        (f"from kafka topic 't' format {AS_V} include offset",
         "id int8 !, n text, tags jsonb !, big numeric(20,0) !, own jsonb, offset int8 !"),
        (f"(tags jsonb, id bigint not null) from kafka topic 't' format {AS_V}", "tags jsonb, id int8 !"),
        (f"(n text) from kafka topic 't' key format {AS_K} value format {AS_V} envelope upsert", "id int8 !, n text"),
        (f"(id bigint) from kafka topic 't' key format text value format {AS_V} include key as k envelope upsert",
         "k text !, id int8"),
        (f"(a int) from kafka topic 't' key format {AS_K} value format json include key", "id int8, a int4"),
    ],
)  # fmt: skip
def test_messages_give_columns_and_are_shown_as_what_makes_them_again(text, columns, image) -> None:
    if columns is None:  # a key's field is called as a value's
        with pytest.raises(InvalidUsage) as error:
            made(fetched(f"create source s {text}", image), image)
        assert error.value.sqlstate == "42701"
        return
    source, after = made(fetched(f"create source s {text}", image), image)
    assert ", ".join(f"{c.name} {c.type}{'' if c.nullable else ' !'}" for c in source.columns) == columns
    assert not source.in_place
    Judge(source)
    shown = parse("show create source s")
    ((_, again),) = SHOWN[type(shown)](shown, after, names())
    copy, _ = made(fetched(again.replace("tidemark.public.s", "s"), image), image)
    assert replace(copy, create_sql=source.create_sql) == source
    assert set(source.depends_on) == set(source.reading.connections)
    assert Reading.of_text(source.reading.text()) == source.reading


def test_debezium_in_a_registry_gives_the_columns_of_after(image) -> None:
    source, _ = made(fetched(f"create source s from kafka topic 't' format {IN_REGISTRY} envelope debezium", image,
                             value=ENVELOPE), image)  # fmt: skip
    assert [column.name for column in source.columns] == ["id", "n", "x"]
    assert source.reading.roles == ("both", "value", "value")


def test_json_of_our_own_brokers_is_read_in_place(image) -> None:
    source, _ = made(parse("create source s (a int) from kafka topic 't' format json"), image)
    assert source.in_place and source.progress_id == source.id and source.depends_on == ()
    copied, _ = made(parse("create source s (a int) from kafka topic 't' format json include offset"), image)
    assert not copied.in_place and copied.progress_id != copied.id


@pytest.mark.parametrize(
    ("text", "sqlstate", "message"),
    [
        ("from kafka topic 't' format json", "42601", "FORMAT JSON needs a column list"),
        ("() from kafka topic 't' format text", "42601", "a source needs at least one column"),
        ("(a int) from kafka topic 't' format json envelope upsert", "22023",
         "ENVELOPE UPSERT needs the format of keys"),
        ("from kafka topic 't' format text include key", "22023", "INCLUDE KEY needs the format of keys"),
        ("from kafka topic 't' key format text value format text envelope debezium", "0A000",
         "ENVELOPE DEBEZIUM with FORMAT TEXT is not supported"),
        ("from kafka topic 't' key format csv with 1 columns value format text envelope upsert", "0A000",
         "KEY FORMAT CSV is not supported"),
        ("(a int) from kafka topic 't' format csv with 2 columns", "42601",
         "1 columns are declared, and 2 are said of CSV"),
        ("(a int) from kafka topic 't' format text", "42804", "FORMAT TEXT has one column, of type text"),
        ("(a bytea, b bytea) from kafka topic 't' format bytes", "42804", "FORMAT BYTES has one column, of type bytea"),
        ("from kafka topic 't' format csv with header", "42601",
         "CSV WITH HEADER needs the header's names, or a column list"),
        ("from kafka topic 't' format csv with header ()", "42601", 'syntax error at or near ")"'),
        ("from kafka topic 't' format csv with header (a, a)", "42701", 'column "a" specified more than once'),
        ("(a int) from kafka topic 't' format csv with header (a, b)", "42601",
         "1 columns are declared, and 2 are said of CSV"),
        (f"from kafka topic 't' format csv with header ({', '.join(f'c{n}' for n in range(1601))})", "22023",
         "invalid number of columns"),
        ("from kafka topic 't' format csv with 0 columns", "22023", "invalid number of columns"),
        ("from kafka topic 't' format csv with 2 columns delimited by ''", "22023",
         "DELIMITED BY must be a single one-byte character, no quote and no end of a line"),
        ("from kafka topic 't' format protobuf using schema 'x'", "42601", 'syntax error at or near "using"'),
        ("from kafka topic 't' format protobuf message 'p.V' using schema file 'x'", "0A000",
         "USING SCHEMA FILE is not supported"),
        ("from kafka topic 't' format protobuf using confluent schema registry connection r", "0A000",
         "FORMAT PROTOBUF of a schema registry is not supported"),
        ("from kafka topic 't' format protobuf message 'p.V' using schema '\\xq'", "22023",
         'invalid schema: invalid hexadecimal data: "\\xq"'),
        ("from kafka topic 't' format protobuf message 'p.V' using schema '\\x00'", "22023",
         "invalid Protobuf schema"),
        (f"from kafka topic 't' format {AS_V.replace('p.V', 'p.X')}", "22023", "invalid Protobuf schema"),
        (f"(nope text) from kafka topic 't' format {AS_V}", "42703", 'column "nope" is in no field of the schema'),
        (f"(big bigint) from kafka topic 't' format {AS_V}", "42804",
         'column "big" is of type int8 but the schema has numeric(20,0)'),
        (f"from kafka topic 't' key format {AS_K} value format {AS_V} envelope debezium", "0A000",
         "ENVELOPE DEBEZIUM with FORMAT PROTOBUF is not supported"),
        (f"from kafka topic 't' format {AS_V} envelope upsert", "22023", "ENVELOPE UPSERT needs the format of keys"),
        (f"from kafka topic 't' key format {AS_K} value format text include key as k", "0A000",
         "INCLUDE KEY AS … of a key that is a record is not supported"),
        ("from kafka topic 't' format regex 'x'", "0A000", "FORMAT REGEX is not supported"),
        ("from kafka topic 't' format avro using schema '{'", "22023", "invalid Avro schema"),
        (f"(nope text) from kafka topic 't' format {IN_REGISTRY}", "42703",
         'column "nope" is in no field of the schema'),
        (f"(id text) from kafka topic 't' format {IN_REGISTRY}", "42804",
         'column "id" is of type text but the schema has int8'),
        (f"(id int, x jsonb) from kafka topic 't' format {IN_REGISTRY}", "42804",
         'column "id" is of type int4 but the schema has int8'),
        (f"from kafka topic 't' format {IN_REGISTRY} include offset as id", "42701",
         'column "id" specified more than once'),
        (f"from kafka topic 't' format {IN_REGISTRY} include key as other envelope upsert", "0A000",
         "INCLUDE KEY AS … of a key that is a record is not supported"),
        ("from kafka connection nope (topic 't') format text", "42704", 'connection "nope" does not exist'),
        ("from kafka connection t (topic 't') format text", "42809", '"t" is not a connection'),
        ("from kafka connection r (topic 't') format text", "22023", 'connection "r" is not to Kafka'),
        ("from kafka topic 't' format avro using confluent schema registry connection k", "22023",
         'connection "k" is not to a schema registry'),
        *((f"from kafka topic '{each}' format text", "22023", f'"{each}" cannot be the name of a topic')
          for each in ("", ".", "..", "a b", "naïve", "a/b")),
        (f"from kafka topic '{'x' * 250}' format text", "22023", "TOPIC has more than 249 characters"),
        ("from kafka topic 'env.catalog' format text", "42501", 'permission denied for topic "env.catalog"'),
        ("from kafka connection k (topic 't', start offset (-1)) format text", "22023", "invalid START OFFSET"),
        ("from kafka (topic 't', start timestamp 99999999999999999999) format text", "22023",
         "invalid START TIMESTAMP"),
        ("from kafka (topic 't', start offset (1), start timestamp 5) format text", "42601",
         "a source begins at START OFFSET or at START TIMESTAMP, not at both"),
        ("from kafka (topic 't', group id prefix 'x') format text", "0A000",
         "the option GROUP … of a source is not supported"),
        ("from kafka topic 't' format text include offset as ctid", "42701",
         'column name "ctid" conflicts with a system column name'),
        ("from kafka topic 't' format text include offset, offset", "42601", "INCLUDE OFFSET specified more than once"),
        ("from kafka topic 't' format text include header 'a' as a", "0A000", "INCLUDE HEADER is not supported"),
        ("from kafka topic 't' format text with (retain = 1)", "0A000", "WITH … of a source is not supported"),
        ("from kafka broker 'x' topic 't' format text", "0A000", "KAFKA BROKER is not supported"),
        ("from kafka topic 't' format xml", "42601", 'syntax error at or near "xml"'),
        ("from kafka topic 't' key format text", "42601", "syntax error at end of input"),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_refused(text, sqlstate, message, image) -> None:
    with pytest.raises(InvalidUsage) as error:
        made(fetched(f"create source s {text}", image), image)
    assert (error.value.sqlstate, error.value.message) == (sqlstate, message)


def test_a_union_of_several_types_is_left_out_by_a_list(image) -> None:
    schema = {"type": "record", "name": "v", "fields": [{"name": "a", "type": "int"},
                                                        {"name": "u", "type": ["int", "string"]}]}  # fmt: skip
    text = f"create source s %s from kafka topic 't' format {IN_REGISTRY}"
    for listed in ("", "(u text)"):
        with pytest.raises(InvalidUsage, match="a column of field u: a union of several types") as error:
            made(fetched(text % listed, image, value=schema), image)
        assert error.value.sqlstate == "0A000"
    source, _ = made(fetched(text % "(a int)", image, value=schema), image)
    Judge(source)


def test_a_key_of_another_type_than_the_value_has_is_refused(image) -> None:
    key = {"type": "record", "name": "k", "fields": [{"name": "id", "type": "string"}]}
    with pytest.raises(InvalidUsage) as error:
        made(fetched(f"create source s from kafka topic 't' format {IN_REGISTRY} envelope upsert", image, key), image)
    assert (error.value.sqlstate, error.value.message) == (
        "42804", 'column "id" is text in the key and int8 in the value'
    )  # fmt: skip


def test_without_a_registry_that_was_asked_nothing_is_guessed(image) -> None:
    statement = parse(f"create source s from kafka topic 't' format {IN_REGISTRY}")
    with pytest.raises(InvalidUsage, match="a schema registry here is not supported"):
        plan_ddl(statement, image, names())
    other = replace(statement, fetched={"value": Fetched("u99", json.dumps(ROW))})
    with pytest.raises(InvalidUsage, match="was another one when its registry was asked") as error:
        plan_ddl(other, image, names())
    assert error.value.sqlstate == "40001"


def test_a_connection_goes_only_with_its_sources(image) -> None:
    _, after = made(fetched(f"create source s from kafka connection k (topic 't') format {IN_REGISTRY}", image), image)
    for name in ("k", "r"):
        with pytest.raises(InvalidUsage) as error:
            plan_ddl(parse(f"drop connection {name}"), after, names())
        assert error.value.sqlstate == "2BP01" and "source s" in error.value.detail
    gone = ddl(after, "drop connection k cascade")
    assert gone.item_by_name("s1", "s") is None and gone.item_by_name("s1", "s_errors") is None
    renamed = ddl(after, "alter connection k rename to k2")
    shown = parse("show create source s")
    assert "CONNECTION public.k2 " in SHOWN[type(shown)](shown, renamed, names())[0][1]


def test_a_source_that_is_reset_reads_by_the_same_connections(image) -> None:
    text = f"create source s from kafka connection k (topic 't') format {IN_REGISTRY}"
    source, after = made(fetched(text, image), image)
    reset = ddl(after, "alter source s reset").item_by_name("s1", "s")
    assert reset.id != source.id and reset.progress_id != source.progress_id
    assert reset.reading == source.reading and reset.columns == source.columns


def test_older_catalogs_have_no_such_sources() -> None:
    image = empty_image(CONNECTIONS_FROM - 1)
    with pytest.raises(InvalidUsage) as error:
        plan_ddl(parse("create source s from kafka topic 't' format text"), image, names())
    assert error.value.sqlstate == "0A000" and "format 7" in error.value.message
    ddl(image, "create source s (a int) from kafka topic 't' format json")


def test_catalogs_of_before_know_no_header_and_records_say_none_where_there_is_none() -> None:
    text = "create source s from kafka topic 't' format csv with {}"
    older = empty_image(HEADERS_FROM - 1)
    with pytest.raises(InvalidUsage) as error:
        made(parse(text.format("header (a)")), older)
    assert error.value.sqlstate == "0A000" and f"format {HEADERS_FROM}" in error.value.hint
    source, _ = made(parse(text.format("2 columns")), older)
    assert "header" not in source.reading.text()
    assert Reading.of_text(source.reading.text()) == source.reading
    for hostile in ('"a"', "3", "[3]", "{}"):
        with pytest.raises(LookupError):
            Reading.of_text(source.reading.text().replace('"columns":2', f'"columns":2,"header":{hostile}'))


def test_catalogs_of_before_know_no_protobuf_and_records_say_none_where_there_is_none() -> None:
    older = empty_image(PROTOBUF_FROM - 1)
    with pytest.raises(InvalidUsage) as error:
        made(parse(f"create source s from kafka topic 't' format {AS_V}"), older)
    assert error.value.sqlstate == "0A000" and f"format {PROTOBUF_FROM}" in error.value.hint
    source, _ = made(parse("create source s from kafka topic 't' format text"), older)
    assert "message" not in source.reading.text()
    source, _ = made(parse(f"create source s from kafka topic 't' format {AS_V}"), empty_image())
    assert source.reading.value.message == "p.V" and Reading.of_text(source.reading.text()) == source.reading
    with pytest.raises(LookupError):
        Reading.of_text(source.reading.text().replace('"message":"p.V"', '"message":3'))
    with pytest.raises(BadSchema, match="not in hex"):
        Judge(replace(source, reading=replace(source.reading, value=replace(source.reading.value, schema="x"))))
