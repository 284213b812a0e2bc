"""Real clients on the real server, with the executor on logs in memory: psql and psycopg."""

from __future__ import annotations

import asyncio
import shutil
from contextlib import asynccontextmanager
from datetime import date
from decimal import Decimal
from types import SimpleNamespace

import psycopg
import pytest

from adapter.server.server import Server
from tests.adapter.world import World
from tests.adapter_wire import frontend as f
from tests.adapter_wire.loopback import Raw
from tests.finishing import finished

needs_psql = pytest.mark.skipif(shutil.which("psql") is None, reason="psql is not installed")

SETUP = """
create schema s2;
create table items (id int not null default 5, name text, price numeric(6,2));
create view v as select id, name from items where id > 0;
create materialized view m as select name, count(*) as n from items group by name;
create index i1 on items (id);
create source clicks (at timestamptz, url text) from kafka topic 'clicks' format json;
create table s2.t2 (a int);
create sequence sq as int increment 2 maxvalue 9 cache 3 cycle;
create connection outside to kafka
    (broker 'a:1', sasl mechanisms plain, sasl username 'me', sasl password secret file 'p');
create sink told from items into kafka connection outside (topic 'told') key (id) format json envelope upsert;
insert into items values (1, 'apple', 1.5), (2, null, null);
"""


@asynccontextmanager
async def serving(world):
    async with world.adapter() as a:
        server = Server(a.executor)
        _, port = await server.start("127.0.0.1", 0)
        try:
            yield port
        finally:
            await server.stop()


async def psql(port: int, *commands: str) -> tuple[str, str]:
    arguments = [part for command in commands for part in ("-c", command)]
    process = await asyncio.create_subprocess_exec(
        "psql",
        "-X",
        "-A",
        "-h",
        "127.0.0.1",
        "-p",
        str(port),
        "-U",
        "tidemark",
        "-d",
        "tidemark",
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    return out.decode(), err.decode()


def run(story):
    async def bounded():
        async with serving(World()) as port:
            out, err = await psql(port, *(s for s in SETUP.split(";\n") if s.strip()))
            assert not err, err
            await story(port)

    finished(bounded())


@needs_psql
def test_psql_describes_everything():
    async def story(port):
        for command, wanted in (
            (r"\d", ["public|items|table|tidemark", "public|v|view|", "public|m|materialized view|", "clicks_errors"]),
            (r"\dt", ["public|items|table|tidemark"]),
            (r"\dv", ["public|v|view|tidemark"]),
            (r"\dm", ["public|m|materialized view|tidemark"]),
            (r"\di", ["public|i1|index|tidemark|items"]),
            (r"\ds", ["public|sq|sequence|tidemark"]),
            (r"\d sq", ['Sequence "public.sq"', "integer|1|1|9|2|yes|3"]),
            (r"\d+ sq", ['Sequence "public.sq"']),
            ("show create sequence sq", ["CREATE SEQUENCE tidemark.public.sq AS integer"]),
            ("comment on sequence sq is 'counts'", ["COMMENT"]),
            (r"\dd sq", []),
            (r"\ds+", ["counts"]),
            ("select last_value, cycle from pg_sequences", ["|t"]),
            ("select seqmax, seqrelid::regclass from pg_sequence", ["9|sq"]),
            ("select sequence_name, increment, maximum_value from information_schema.sequences", ["sq|2|9"]),
            ("show create connection outside", ["TO KAFKA (BROKER = 'a:1'", "SASL PASSWORD = SECRET FILE 'p')"]),
            ("comment on connection outside is 'there'", ["COMMENT"]),
            ("show connections", ["outside|kafka"]),
            ("select object_name, comment from tm_catalog.comments", ["public.outside|there"]),
            ("select name, address, options[5] from tm_catalog.connections", ["outside|a:1|sasl password=SECRET"]),
            ("select count(*) from pg_class where relname in ('outside', 'told')", ["0"]),
            ("show sinks", ["told|items|told|json|upsert"]),
            ("show create sink told", ["FROM public.items", "KEY (id)"]),
            ("select name, key, progress_topic from tm_catalog.sinks", ["told|{id}|told-progress"]),
            ("select name, status, messages from tm_internal.sink_status", ["told|unknown|"]),
            (r"\dn", ["public|tidemark", "s2|tidemark"]),
            (r"\l", ["tidemark|tidemark|UTF8"]),
            (r"\d items", ["id|integer||not null|5", "price|numeric(6,2)|||", '"i1" arrangement (id)']),
            (r"\d v", ['View "public.v"', "name|text|||"]),
            (r"\d m", ['Materialized view "public.m"', "n|bigint|||"]),
            (r"\d i1", ['Index "public.i1"', "id|integer|"]),
            (r"\dt s2.*", ["s2|t2|table|tidemark"]),
            (r"\d+ items", ["id|integer||not null|5|plain"]),
            (r"\du", ["tidemark|Superuser"]),
            (r"\dconfig search_path", ["search_path|"]),
            (r"\sv v", ["CREATE OR REPLACE VIEW public.v AS", "SELECT"]),
        ):
            out, err = await psql(port, command)
            assert not err, (command, err)
            for line in wanted:
                assert line in out, (command, line, out)
        out, err = await psql(port, r"\d nothing")
        assert 'Did not find any relation named "nothing".' in err

    run(story)


@needs_psql
def test_psql_shows_rows_errors_and_notices():
    async def story(port):
        out, err = await psql(
            port,
            "select id, name, price from items order by id",
            "select nam from items",
            "create table if not exists items (a int)",
            "drop table items",
            "values (1, 'x')",
        )
        assert "1|apple|1.50\n2||" in out and "(2 rows)" in out and "1|x" in out
        assert 'ERROR:  column "nam" does not exist' in err and 'HINT:  did you mean "name"?' in err
        assert "LINE 1: select nam from items\n               ^" in err
        assert 'NOTICE:  relation "items" already exists, skipping' in err
        assert "cannot drop table items because other objects depend on it" in err
        assert "view v depends on table items" in err

    run(story)


@needs_psql
def test_psycopg_uses_parameters_transactions_and_prepared_statements():
    async def story(port):
        async with await psycopg.AsyncConnection.connect(
            host="127.0.0.1", port=port, user="tidemark", dbname="tidemark", autocommit=True
        ) as c:
            rows = await (await c.execute("select id, price from items where id = %s", (1,))).fetchall()
            assert rows == [(1, Decimal("1.50"))]
            async with c.transaction():
                await c.execute("insert into items (id, name) values (%s, %s)", (3, "cherry"))
                await c.execute("insert into items values (%s, %s, %s)", (4, "date", Decimal("2.345")))
            for _ in range(7):  # psycopg prepares from the fifth time on
                found = await (await c.execute("select count(*) from items where id > %s", (0,))).fetchone()
                assert found == (4,)
            assert await (await c.execute("select price from items where id = 4")).fetchone() == (Decimal("2.35"),)
            typed = await c.execute("select %s::date, %s::int8 + 1, %s::bool, null::text", (date(2024, 1, 2), 5, True))
            assert await typed.fetchone() == (date(2024, 1, 2), 6, True, None)
            with pytest.raises(psycopg.errors.UndefinedTable):
                await c.execute("select * from nope")
            with pytest.raises(psycopg.errors.DuplicateTable):
                await c.execute("create table items (a int)")
            with pytest.raises(psycopg.errors.NotNullViolation):
                await c.execute("insert into items (id) values (null)")

    run(story)


@needs_psql
def test_drivers_read_and_set_isolation_as_they_know_it():
    """pgjdbc and SQLAlchemy set a session's level by its characteristics, psycopg in each BEGIN; all know four."""

    async def story(port):
        given = {"host": "127.0.0.1", "port": port, "user": "tidemark", "dbname": "tidemark"}
        async with await psycopg.AsyncConnection.connect(**given, autocommit=True) as c:

            async def shown(what: str) -> str:
                return (await (await c.execute(f"SHOW {what}")).fetchone())[0]

            first = await shown("TRANSACTION ISOLATION LEVEL")
            assert first == "serializable" and await shown("tidemark.isolation") == "strict serializable"
            for level in ("read committed", "read uncommitted", "repeatable read", first):
                await c.execute(f"SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL {level.upper()}")
                assert await shown("transaction_isolation") == level == await shown("default_transaction_isolation")
            assert await shown("tidemark.isolation") == "strict serializable"
            await c.execute("SET tidemark.isolation TO 'serializable'")
            async with c.transaction():
                await c.execute("SET TRANSACTION ISOLATION LEVEL STRICT SERIALIZABLE")
                assert await shown("tidemark.isolation") == "strict serializable"
                assert await shown("transaction_isolation") == "serializable"
            assert await shown("tidemark.isolation") == "serializable"
        async with await psycopg.AsyncConnection.connect(**given) as c:
            for level in psycopg.IsolationLevel:
                await c.set_isolation_level(level)
                found = await (await c.execute("SHOW transaction_isolation")).fetchone()
                assert found == (level.name.lower().replace("_", " "),)
                await c.rollback()

    run(story)


@needs_psql
def test_what_sqlalchemy_and_friends_ask_at_connect():
    questions = [
        "select pg_catalog.version()",
        "select current_schema()",
        "show transaction isolation level",
        "show standard_conforming_strings",
        "select current_setting('server_version_num')",
        "SELECT pg_catalog.pg_class.relname FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace ON "
        "pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace WHERE pg_catalog.pg_class.relkind = "
        "ANY (ARRAY['r', 'p']) AND pg_catalog.pg_class.relpersistence != 't' AND "
        "pg_catalog.pg_table_is_visible(pg_catalog.pg_class.oid) AND pg_catalog.pg_namespace.nspname != 'pg_catalog'",
        "SELECT pg_catalog.pg_namespace.nspname FROM pg_catalog.pg_namespace WHERE pg_catalog.pg_namespace.nspname "
        "NOT LIKE 'pg\\_%' ORDER BY pg_catalog.pg_namespace.nspname",
        "select table_name from information_schema.tables where table_schema = 'public' order by 1",
        "select column_name, data_type from information_schema.columns where table_name = 'items'",
        "select t.oid, typname from pg_type t join pg_namespace n on n.oid = t.typnamespace where typname = 'hstore'",
        "select n.nspname, c.relname, a.attname, a.atttypid, a.attnotnull or (t.typtype = 'd' and t.typnotnull) from "
        "pg_catalog.pg_namespace n join pg_catalog.pg_class c on c.relnamespace = n.oid join "
        "pg_catalog.pg_attribute a on "
        "a.attrelid = c.oid join pg_catalog.pg_type t on a.atttypid = t.oid where a.attnum > 0",
    ]

    async def story(port):
        async with await psycopg.AsyncConnection.connect(
            host="127.0.0.1", port=port, user="tidemark", dbname="tidemark", autocommit=True
        ) as c:
            for question in questions:
                assert await (await c.execute(question)).fetchall() or "hstore" in question, question

    run(story)


@needs_psql
def test_statements_and_cursors_by_name():
    async def story(port):
        out, err = await psql(
            port,
            "prepare p (int, text, date, timestamptz, bytea) as "
            "select $1 + 1, $2, $3, $4, $5, (select count(*) from items where id > $1)",
            r"execute p(0, 'x', '2024-02-29', '2024-02-29 12:00+02', '\x00ff')",
            "prepare i as insert into items (id, name) values ($1, $2)",
            "execute i(1 + 6, lower('DATE'))",
            "execute p(null, null, null, null, null)",
            "begin; declare c cursor for select id, name from items order by id; fetch 2 c; move 1 in c; fetch c; end",
        )
        assert not err, err
        assert "1|x|2024-02-29|2024-02-29 10:00:00+00|\\x00ff|2" in out, out
        assert "INSERT 0 1" in out and "|||||0" in out
        assert "1|apple\n2|" in out and "MOVE 1" in out and "(0 rows)" in out

        connection = await psycopg.AsyncConnection.connect(
            host="127.0.0.1", port=port, user="tidemark", dbname="tidemark"
        )
        async with connection as c, c.cursor(name="some cursor") as cursor:
            await cursor.execute("select id from items where id > %s order by id", (1,))
            assert [row async for row in cursor] == [(2,), (7,)]

    run(story)


def test_rows_are_written_by_the_zone_that_is_set_when_they_are_given():
    """Of a portal that was bound before: its parameters mean what they meant then."""

    def asked(port: int) -> list[bytes]:
        host = SimpleNamespace(host="127.0.0.1", port=port)
        with Raw(host) as c:
            set_zone = (f.parse("set timezone = 'America/New_York'"), f.bind(), f.execute())
            bound = (f.parse("select $1::timestamptz", "s"), f.bind((b"2020-01-01 00:00:00",), "s", "p"))
            messages = c.ask(b"".join((*bound, *set_zone, f.execute("p"), f.SYNC)))
            return [body for kind, body in messages if kind == "D"]

    async def body():
        async with serving(World()) as port:
            [row] = await asyncio.to_thread(asked, port)
            assert row.endswith(b"2019-12-31 19:00:00-05")

    asyncio.run(body())


def test_a_long_chain_of_parameters_is_of_the_types_that_are_written():
    """Longer than what is planned as it is written; the client says no types."""

    async def body():
        async with serving(World()) as port:
            async with await psycopg.AsyncConnection.connect(
                f"host=127.0.0.1 port={port} user=tidemark dbname=tidemark", cursor_factory=psycopg.AsyncRawCursor
            ) as connection:
                for kind, sign, wanted in (("int", "+", 300), ("bigint", "*", 1), ("float8", "+", 300)):
                    chain = f" {sign} ".join(f"${n}::{kind}" for n in range(1, 301))
                    answer = await connection.execute(f"select {chain} as n", ["1"] * 300)
                    assert await answer.fetchall() == [(wanted,)], kind

    asyncio.run(body())
