"""CREATE SINK … INTO ICEBERG and connections to its catalogs: what may be said, and how it is kept and shown."""

from __future__ import annotations

import pytest
from pyiceberg.schema import make_compatible_name

from adapter.execute.show import ROWS
from adapter.system.rows import System
from adapter.system.tidemark_rows import ROWS as TIDEMARK
from catalog_log.objects import Connection, Secret, Sink
from catalog_log.records import ICEBERG_FROM
from journal.errors import InvalidUsage
from sql.statements.ddl import plan_ddl
from sql.statements.ddl_iceberg import NAME_CHARS_MAX, name_in_files
from sql.syntax.parse import parse
from tests.sql.doubles import ddl, empty_image, names

TO = "create connection lake to iceberg catalog ({})"
WHOLE = TO.format("catalog type = 'rest', url = 'http://c:8181/api', warehouse = 'w'")


def world(*more: str):
    return ddl(
        empty_image(), "create table items (id int not null, name text, \"Odd.col$\" numeric(8,2))",
        "create table spans (id int, long interval)", "create materialized view mv as select name from items",
        "create connection far to kafka (broker 'a:1')", WHOLE, "create view v as select id from items",
        *more,
    )  # fmt: skip


def item(image, name: str):
    return image.item_by_name(image.schema_by_name("d1", "public").id, name)


def shown(image, text: str) -> list[tuple]:
    statement = parse(text)
    return ROWS[type(statement)](statement, image, names())


def refused(image, text: str) -> InvalidUsage:
    with pytest.raises(InvalidUsage) as error:
        plan_ddl(parse(text), image, names())
    return error.value


INTO = "create sink s from items into iceberg catalog connection lake (namespace 'ns', table 't') key (id) mode upsert"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (INTO, {"into": "iceberg", "namespace": "ns", "table": "t", "interval_ms": 10_000, "key": (1,), "topic": "",
                "enforced": True, "envelope": "upsert", "format": "parquet", "target": "ns.t",
                "columns": ((1, "id"), (2, "name"), (3, "Odd.col$"))}),
        ("create sink if not exists s from mv into iceberg catalog connection public.lake "
         "(table = 'T-1', namespace = 'a.b_c') mode append with (commit interval = '1.5 s')",
         {"namespace": "a.b_c", "table": "T-1", "interval_ms": 1500, "key": (), "envelope": "none"}),
        (INTO.replace("mode", "not enforced mode") + " with (commit interval '30 minutes')",
         {"enforced": False, "interval_ms": 1_800_000}),
        (INTO.replace("key (id) ", "key (\"Odd.col$\", id) "), {"key": (3, 1)}),
        (INTO.replace("key (id) ", ""), {"key": (), "envelope": "upsert"}),
    ],
)  # fmt: skip
def test_what_is_said_is_kept_and_shown_so_that_it_makes_the_same(text, kept) -> None:
    image = ddl(world(), text)
    found = item(image, "s")
    assert isinstance(found, Sink) and {name: getattr(found, name) for name in kept} == kept
    [(_, again)] = shown(image, "show create sink s")
    other = item(ddl(world(), again), "s")
    assert (other.fields(), other.depends_on) == (found.fields(), found.depends_on)
    [row] = TIDEMARK["sinks"](System(image, "tidemark"))
    assert (row["namespace"], row["table_name"], row["topic"]) == (found.namespace, found.table, None)
    assert row["commit_interval_ms"] == found.interval_ms
    [listed] = shown(image, "show sinks")
    assert found.target in listed


@pytest.mark.parametrize(
    "columns", ["x int[], \"x.element\" int", "\"2020\" int, _2020 int", "\"a b\" int, a_x20b int"]
)
def test_columns_that_a_table_or_its_files_would_take_for_one_are_refused(columns: str) -> None:
    image = ddl(world(), f"create table odd (id int, {columns})")
    error = refused(image, INTO.replace("items", "odd"))
    assert error.sqlstate == "42701" and error.hint is not None, error.message
    ddl(image, f"create table even (id int, {columns.split(', ')[0]}, y int)", INTO.replace("items", "even"))


def test_names_in_files_are_those_of_the_library() -> None:
    for name in ("a", "_", "1", "1a", "a.b", "é", "a b", "$", "\"q\"", "a-1", "²", "🎉x", "A1_"):
        assert name_in_files(name) == make_compatible_name(name)


@pytest.mark.parametrize(
    ("text", "sqlstate"),
    [
        (INTO.replace("key (id)", "key (nix)"), "42703"),
        (INTO.replace("key (id)", "key (id, id)"), "42701"),
        (INTO.replace("key (id)", "key ()"), "42601"),
        (INTO.replace(" mode upsert", ""), "42601"),
        (INTO.replace("upsert", "merge"), "42601"),
        (INTO.replace(", table 't'", ""), "22023"),
        (INTO.replace("namespace 'ns', ", ""), "22023"),
        (INTO.replace("table 't'", "table 't', table 'u'"), "42601"),
        (INTO.replace("table 't'", "table 5"), "42601"),
        *((INTO.replace("'t'", f"'{each}'"), "22023")
          for each in ("", "a b", "a.b", "-a", "ü", "x" * (NAME_CHARS_MAX + 1))),
        *((INTO.replace("'ns'", f"'{each}'"), "22023") for each in ("", "a..b", ".a", "a/b")),
        (INTO + " with (commit interval '999 ms')", "22023"),
        (INTO + " with (commit interval '31 minutes')", "22023"),
        (INTO + " with (commit interval '-10s')", "22023"),
        (INTO + " with (commit interval '1.0005 s')", "22023"),
        (INTO + " with (commit interval 'often')", "22007"),
        (INTO + " with (commit interval 10)", "42601"),
        (INTO + " with ()", "42601"),
        (INTO + " with (snapshot = false)", "42601"),
        (INTO + " more", "42601"),
        (INTO.replace("key", "using aws connection far key"), "0A000"),
        (INTO.replace("mode", "partition by (id) mode"), "0A000"),
        (INTO.replace("sink s", "sink s in cluster default"), "0A000"),
        (INTO.replace("connection lake", "connection far"), "42809"),
        (INTO.replace("connection lake", "connection items"), "42809"),
        (INTO.replace("connection lake", "connection nix"), "42704"),
        (INTO.replace("catalog connection lake", ""), "42601"),
        (INTO.replace("from items", "from v"), "42809"),
        (INTO.replace("from items", "from nix"), "42P01"),
        (INTO.replace("from items", "from spans"), "0A000"),
        ("create sink s from items into kafka connection lake (topic 't') format json envelope none", "42809"),
    ],
)  # fmt: skip
def test_what_is_refused(text, sqlstate) -> None:
    assert refused(world(), text).sqlstate == sqlstate


def test_a_type_that_iceberg_has_not_is_named() -> None:
    error = refused(world(), INTO.replace("from items", "from spans"))
    assert error.message.startswith('a sink INTO ICEBERG with column "long" of type interval')
    assert error.hint == "let a materialized view cast it to text"


@pytest.mark.parametrize(
    ("said", "sqlstate"),
    [
        ("url = 'http://c'", "22023"),
        ("catalog type = 'rest'", "22023"),
        ("catalog type = 'sql', url = 'http://c'", "0A000"),
        ("catalog type = glue, url = 'http://c'", "0A000"),
        ("catalog type = 'files', url = 'http://c'", "22023"),
        ("catalog type = 'rest', url = 'ftp://c'", "22023"),
        ("catalog type = 'rest', url = 'http://me:secret@c'", "22023"),
        ("catalog type = 'rest', url = 'http://c', token = 'secret'", "22023"),
        ("catalog type = 'rest', url = 'http://c', credential = 'a:secret'", "22023"),
        ("catalog type = 'rest', url = 'http://c', token = secret env 'HOME'", "22023"),
        ("catalog type = 'rest', url = 'http://c', token = secret env 'TIDEMARK_SECRET_A', "
         "credential = secret env 'TIDEMARK_SECRET_B'", "22023"),
        ("catalog type = 'rest', url = 'http://c', scope = 'x'", "22023"),
        ("catalog type = 'rest', url = 'http://c', s3 access key id = 'x'", "22023"),
        ("catalog type = 'rest', url = 'http://c', s3 secret access key = secret env 'TIDEMARK_SECRET_A'", "22023"),
        ("catalog type = 'rest', url = 'http://c', s3 secret access key = 'secret'", "22023"),
        ("catalog type = 'rest', url = 'http://c', colour = 'red'", "42601"),
        ("catalog type = 'rest', url = 'http://c', url = 'http://c'", "42601"),
        ("", "42601"),
    ],
)  # fmt: skip
def test_what_a_connection_to_a_catalog_needs(said, sqlstate) -> None:
    error = refused(empty_image(), TO.format(said))
    assert error.sqlstate == sqlstate
    assert "secret" not in f"{error.message}".replace("is a secret", "")


def test_a_connection_is_kept_with_the_places_of_its_secrets_and_shown() -> None:
    text = TO.format("catalog type = REST, url = 'https://c', credential = secret env 'TIDEMARK_SECRET_C', "
                     "scope = 'all', s3 region = 'eu', s3 access key id = secret file 's3/id', "
                     "s3 secret access key = secret file 's3/key', s3 endpoint = 'http://s3:9000'")  # fmt: skip
    image = ddl(empty_image(), text)
    found = item(image, "lake")
    assert isinstance(found, Connection) and found.to == "iceberg-catalog"
    said = dict(found.options)
    assert said["catalog type"] == "rest" and said["credential"] == Secret("env", "TIDEMARK_SECRET_C")
    [(_, again)] = shown(image, "show create connection lake")
    assert item(ddl(empty_image(), again), "lake").options == found.options


def test_older_catalogs_have_neither() -> None:
    old = empty_image(ICEBERG_FROM - 1)
    assert refused(old, WHOLE).sqlstate == "0A000"
    found = ddl(old, "create table items (id int not null)")
    error = refused(found, INTO)
    assert error.sqlstate == "0A000" and f"format {ICEBERG_FROM}" in error.hint


def test_what_stands_on_what() -> None:
    image = ddl(world(), INTO)
    assert refused(image, "drop connection lake").sqlstate == "2BP01"
    assert refused(image, "drop table items").sqlstate == "2BP01"
    image = ddl(image, "alter table items rename column id to number", "alter table items add column more int")
    assert item(image, "s").columns == ((1, "id"), (2, "name"), (3, "Odd.col$")), "what it began with"
    [(_, text)] = shown(image, "show create sink s")
    assert "KEY (number)" in text
    assert item(ddl(image, "drop sink s"), "s") is None
