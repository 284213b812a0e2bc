"""CREATE CONNECTION and what is done with one: what goes together, and that no secret is in any of it."""

from __future__ import annotations

import itertools

import pytest

from adapter.execute.explain import explain
from adapter.execute.show import ROWS
from adapter.system import rows as system_rows
from adapter.system.rows import System
from adapter.system.tidemark_rows import ROWS as TIDEMARK
from catalog_log import model
from catalog_log.objects import CONNECTION, Audience, Connection, Secret
from catalog_log.records import CONNECTIONS_FROM
from journal.errors import InvalidUsage
from sql.statements.ddl import plan_ddl
from sql.statements.ddl_connections import BROKERS_MAX, PEM_BYTES_MAX
from sql.statements.select import plan_select
from sql.syntax.connections import OPTIONS
from sql.syntax.parse import parse
from tests.sql.doubles import apply, ddl, empty_image, names

PLAIN = "create connection c to kafka (broker 'localhost:9092', security protocol plaintext)"
SASL = (
    "create connection c to kafka (brokers ('a:1', ' b:2'), sasl mechanisms = 'scram-sha-256', "
    "sasl username = 'o''hara', sasl password = secret env 'TIDEMARK_SECRET_KAFKA')"
)
REGISTRY = (
    "create connection c to confluent schema registry (url 'https://sr:8081/v1', username secret file 'sr/user', "
    "password secret file 'sr/password')"
)


def of(image, name: str = "c") -> Connection:
    item = image.item_by_name("s1", name)
    assert isinstance(item, Connection), item
    return item


def shown(image, text: str) -> list[tuple]:
    statement = parse(text)
    return ROWS[type(statement)](statement, image, names())


def refused(image, text: str) -> InvalidUsage:
    with pytest.raises(InvalidUsage) as error:
        plan_ddl(parse(text), image, names())
    return error.value


@pytest.mark.parametrize(
    ("text", "to", "options"),
    [
        (PLAIN, "kafka", {"broker": "localhost:9092", "security protocol": "PLAINTEXT"}),
        (
            SASL,
            "kafka",
            {
                "broker": "a:1,b:2",
                "security protocol": "SASL_SSL",
                "sasl mechanisms": "SCRAM-SHA-256",
                "sasl username": "o'hara",
                "sasl password": Secret("env", "TIDEMARK_SECRET_KAFKA"),
            },
        ),
        (
            "create connection c to kafka (broker '[::1]:9093')",
            "kafka",
            {"broker": "[::1]:9093", "security protocol": "SSL"},
        ),
        (
            REGISTRY,
            "confluent-schema-registry",
            {
                "url": "https://sr:8081/v1",
                "username": Secret("file", "sr/user"),
                "password": Secret("file", "sr/password"),
            },
        ),
        (
            "create connection c to confluent schema registry (url 'http://sr') with (validate = false)",
            "confluent-schema-registry",
            {"url": "http://sr"},
        ),
    ],
)
def test_what_is_said_is_kept_and_shown_so_that_it_makes_the_same(text, to, options) -> None:
    image = ddl(empty_image(), text)
    assert (of(image).to, dict(of(image).options)) == (to, options)
    [(name, again)] = shown(image, "show create connection c")
    assert name == "tidemark.public.c"
    other = ddl(empty_image(), again)
    assert (of(other).to, of(other).options) == (to, of(image).options)


KAFKA = "create connection c to kafka ({})"
SR = "create connection c to confluent schema registry ({})"
WRONG = [
    (KAFKA.format(""), "42601"),
    (KAFKA.format("broker 'a:1',"), "42601"),
    (KAFKA.format("broker 'a:1' broker 'b:1'"), "42601"),
    (KAFKA.format("broker 'a:1', broker 'b:1'"), "42601"),
    (KAFKA.format("broker 'a:1', url 'http://x'"), "42601"),
    (KAFKA.format("broker 'a:1', colour 'red'"), "42601"),
    (KAFKA.format("broker 'a:1', ssh tunnel t"), "0A000"),
    (KAFKA.format("broker 'a:1'") + " with (validate = true)", "0A000"),
    (KAFKA.format("broker 'a:1'") + " with (other = 1)", "42601"),
    (KAFKA.format("broker 'a:1'") + " more", "42601"),
    (KAFKA.format("security protocol ssl"), "22023"),
    (KAFKA.format("broker 'a:1', brokers ('b:1')"), "22023"),
    (KAFKA.format("brokers ('a:1,b:1')"), "22023"),
    *((KAFKA.format(f"broker '{each}'"), "22023") for each in
      ("", ",", "a", "a:", ":1", "a:0", "a:65536", "a:1,", "naïve:1", "a b:1", "a:1\n", "u:hunter2@a:1", "http://a:1",
       ",".join(["a:1"] * (BROKERS_MAX + 1)))),
    (KAFKA.format("broker secret env 'TIDEMARK_SECRET_A'"), "22023"),
    (KAFKA.format("broker 'a:1', security protocol tls"), "22023"),
    (KAFKA.format("broker 'a:1', security protocol plaintext, ssl certificate authority 'x'"), "22023"),
    (KAFKA.format("broker 'a:1', security protocol ssl, sasl username 'x'"), "22023"),
    (KAFKA.format("broker 'a:1', sasl username 'x', sasl mechanisms plain"), "22023"),
    (KAFKA.format("broker 'a:1', sasl username 'x', sasl mechanisms md5, sasl password secret file 'a'"), "22023"),
    (KAFKA.format("broker 'a:1', ssl key secret file 'a'"), "22023"),
    (KAFKA.format("broker 'a:1', ssl certificate 'a'"), "22023"),
    (KAFKA.format("broker 'a:1', ssl certificate authority '-----BEGIN PRIVATE KEY-----'"), "22023"),
    (SR.format("username 'x'"), "22023"),
    (SR.format("url 'https://x', password secret file 'x'"), "22023"),
    (SR.format("url 'http://x', ssl certificate authority 'x'"), "22023"),
    *((SR.format(f"url '{each}'"), "22023") for each in
      ("", "sr", "sr:8081", "ftp://sr", "http://", "http://sr:x", "http://sr:70000", "http://u:hunter2@sr", "http://sr?a",
       "http://sr#a", "http://s r", "http://naïve", "http://[::1", "http://s\nr")),
    ("create connection c to postgres (host 'x')", "0A000"),
    ("create connection c to nothing (host 'x')", "42601"),
    ("create connection c", "42601"),
    ("create connection nowhere.c to kafka (broker 'a:1')", "3F000"),
    ("create connection pg_catalog.c to kafka (broker 'a:1')", "42501"),
    (f"create connection {'c' * 4000} to kafka (broker 'a:1')", "42622"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "sqlstate"), WRONG, ids=range(len(WRONG)))
def test_what_does_not_go_together_is_refused(text, sqlstate) -> None:
    if sqlstate == "42622":  # Postgres's lexer cuts such a name, and so does ours
        assert len(of(ddl(empty_image(), text), "c" * 63).name) == 63
        return
    error = refused(empty_image(), text)
    assert error.sqlstate == sqlstate, (error.sqlstate, error.message)
    assert "hunter2" not in f"{error.message} {error.detail} {error.hint}" and len(error.message) < 200


FORMS = ("'hunter2'", "= 'hunter2'", "hunter2", "= hunter2", "secret 'hunter2'", "secret hunter2", "secret env hunter2",
         "secret env 'hunter2'", "secret file '/hunter2'", "secret file '../hunter2'", "secret file 'hunter2/'",
         "secret file ''", "('hunter2')", "secret vault 'hunter2'", 'secret env "hunter2"', "= = 'hunter2'",
         "secret env 'TIDEMARK_SECRET_A' hunter2", "secret env 'PATH', 'hunter2'", "$$hunter2$$",
         "E'hunter2'")  # fmt: skip


def test_what_stands_in_a_secrets_place_is_refused_and_never_repeated() -> None:
    for form, name in itertools.product(FORMS, ("sasl password", "ssl key")):
        error = refused(empty_image(), KAFKA.format(f"broker 'a:1', {name} {form}"))
        assert error.sqlstate in ("22023", "42601"), form
        assert "hunter2" not in f"{error.message} {error.detail} {error.hint} {error.args}", form
    plain = refused(empty_image(), KAFKA.format("broker 'a:1', sasl password 'hunter2'"))
    assert plain.sqlstate == "22023" and plain.hint.startswith("say SECRET ENV")


def test_texts_are_bounded_and_what_nobody_sees_is_refused() -> None:
    image = empty_image()
    long = "x" * 100_000
    for text in (
        KAFKA.format(f"broker '{long}:1'"), SR.format(f"url 'http://{long}'"),
        SR.format(f"url 'http://a', username '{long}'"),
        KAFKA.format(f"broker 'a:1', ssl certificate authority '{long}'"),
        KAFKA.format(f"broker 'a:1', sasl password secret file '{long}'"),
        KAFKA.format(f"broker 'a:1', sasl password secret env 'TIDEMARK_SECRET_{long.upper()}'"),
        KAFKA.format(f"broker 'a:1', security protocol '{long}'"),
        SR.format("url 'http://a', username 'a\nb'"), SR.format("url 'http://a', username ''"),
    ):  # fmt: skip
        error = refused(image, text)
        assert error.sqlstate == "22023" and len(f"{error.message}{error.hint}") < 400
    whole = "é" * (PEM_BYTES_MAX // 2)
    said = dict(of(ddl(image, KAFKA.format(f"broker 'a:1', ssl certificate authority '{whole}'"))).options)
    assert said["ssl certificate authority"] == whole
    odd = ddl(image, 'create connection "O\'d ""d"" é\n" to kafka (broker \'a:1\', sasl mechanisms plain, '
              "sasl username '\"''\\', sasl password secret file 'a')")  # fmt: skip
    [(_, again)] = shown(odd, 'show create connection "O\'d ""d"" é\n"')
    assert dict(of(ddl(image, again), "O'd \"d\" é\n").options)["sasl username"] == "\"'\\"


def test_it_has_a_name_among_all_others_and_what_they_have() -> None:
    image = ddl(empty_image(), PLAIN, "create schema app")
    assert refused(image, "create table c (a int)").sqlstate == "42P07"
    assert refused(image, PLAIN).sqlstate == "42P07"
    again = plan_ddl(parse(PLAIN.replace("connection c", "connection if not exists c")), image, names())
    assert again.updates == () and again.notices[0].message == 'relation "c" already exists, skipping'
    assert refused(image, "drop table c").hint == "use DROP CONNECTION to remove it"
    assert refused(image, "drop connection d").sqlstate == "42704"
    assert plan_ddl(parse("drop connection if exists d"), image, names()).updates == ()
    assert refused(image, "drop schema public").sqlstate == "2BP01"
    with pytest.raises(InvalidUsage) as error:
        plan_select(parse("select * from c").ast, image, names())
    assert (error.value.sqlstate, error.value.hint) == ("42809", "SHOW CREATE CONNECTION says what one is")
    for text in ("alter connection c owner to x", "alter connection c set (broker 'a:1')"):
        assert refused(image, text).sqlstate == "0A000"
    moved = ddl(image, "alter connection c rename to d", "alter connection d set schema app")
    assert moved.item("u1").name == "d" and moved.item("u1").options == of(image).options
    said = ddl(image, "comment on connection c is 'outside'")
    assert said.get(model.COMMENTS, "u1").text == "outside"
    gone = ddl(said, "drop connection c restrict")
    assert gone.item("u1") is None and gone.get(model.COMMENTS, "u1") is None
    assert explain(parse(f"explain {PLAIN}"), empty_image(), names(), None).lines == [
        "CREATE CONNECTION", "  put items u1", "  put settings next_item_id",
    ]  # fmt: skip


def test_it_is_listed_where_one_looks_and_is_no_relation() -> None:
    image = ddl(empty_image(), SASL, REGISTRY.replace("connection c", "connection d"), "create table t (a int)")
    assert shown(image, "show connections") == [("c", "kafka"), ("d", "confluent-schema-registry")]
    assert shown(image, "show connections like 'd%'") == [("d", "confluent-schema-registry")]
    assert ("c", "connection") in shown(image, "show objects")
    system = System(image, "tidemark")
    assert list(TIDEMARK["connections"](system)) == [
        {"id": "u1", "schema_name": "public", "name": "c", "type": "kafka", "address": "a:1,b:2", "options": [
            "broker='a:1,b:2'", "security protocol='SASL_SSL'", "sasl mechanisms='SCRAM-SHA-256'",
            "sasl username='o''hara'", "sasl password=SECRET ENV 'TIDEMARK_SECRET_KAFKA'"]},
        {"id": "u2", "schema_name": "public", "name": "d", "type": "confluent-schema-registry",
         "address": "https://sr:8081/v1", "options": [
            "url='https://sr:8081/v1'", "username=SECRET FILE 'sr/user'", "password=SECRET FILE 'sr/password'"]},
    ]  # fmt: skip
    named = {row["relname"] for row in system_rows.ROWS["pg_class"](system)}
    assert "t" in named and not {"c", "d"} & named
    assert {kind: set(options) for kind, options in OPTIONS.items()}.keys() == {
        "kafka", "confluent-schema-registry", "iceberg-catalog"}  # fmt: skip


def test_no_controller_is_told_and_older_catalogs_have_none() -> None:
    assert of(ddl(empty_image(), PLAIN)).audience is Audience.NOBODY
    error = refused(empty_image(CONNECTIONS_FROM - 1), PLAIN)
    assert error.sqlstate == "0A000" and f"format {CONNECTIONS_FROM}" in error.hint
    assert CONNECTION == "connection" and apply(empty_image(), ()).item("u1") is None
