"""Any text and any name through every way that needs no JVM, sent by a real client: each comes back as it was given.

As constants in every spelling, as parameters in text and in binary, as rows of tables, through an index, as names of
columns, relations, prepared statements and cursors, as comments and in the system catalogs, before and after a restart,
through the records of our topics, users' JSON and a tick in this process.  Everyday the same: ``TIDEMARK_SEED``
says others, and ``TIDEMARK_CHECKS`` says how many batches the long run has.  ``tests/compute/test_text_spark.py`` has
the ways through Spark.
"""

from __future__ import annotations

import json
import os
import random
from collections import Counter

import psycopg
import pyarrow as pa
import pytest
from sqlglot import exp

from catalog_log.objects import Column
from collection import rows as row_batches
from collection.columns import table_from_rows, with_diff
from collection.json_rows import decode_batch
from controllers.arrangements.arrangement import Arrangement
from controllers.arrangements.residual import compile_residual
from controllers.arrangements.tuples import schema_of, to_rows, to_table
from controllers.compute.operators.planned import Planned
from controllers.compute.spark_text import text
from controllers.compute.vectors import compile_summand
from controllers.peeks.peek_codec import value_in, value_out
from plan.codec import decode
from plan.deltas import DELTA
from sql.statements.select import plan_select
from sql.syntax.parse import parse
from tests.adapter.test_clients import serving
from tests.adapter.world import World
from tests.finishing import finished
from tests.seeds import new_seed
from tests.sql.doubles import ddl, empty_image
from tests.sql.doubles import names as resolved
from tests.texts import literal, names, quoted, spelt, texts
from values.types import parse_type

WORDS = 24
"""Of one batch: a statement with all of them costs what one costs."""

BATCHES = 20
"""Of the long run, unless TIDEMARK_CHECKS says otherwise."""

FIXED_SEED = 13


async def connected(port: int) -> psycopg.AsyncConnection:
    return await psycopg.AsyncConnection.connect(
        f"host=127.0.0.1 port={port} user=tidemark dbname=tidemark", autocommit=True
    )


async def ask(connection, asked: str, values=None, binary=False) -> list[tuple]:
    async with connection.cursor(binary=binary) as cursor:
        await cursor.execute(asked.encode() if values is None else asked, values)
        return await cursor.fetchall() if cursor.description else []


async def columns_of(connection, asked: str) -> list[str]:
    async with connection.cursor() as cursor:
        await cursor.execute(asked.encode())
        return [column.name for column in cursor.description]


async def as_constants(c, words, called, draw):
    """In every spelling, under every name, compared and put together."""
    shown = ", ".join(f"{spelt(draw, w)} AS {quoted(n)}" for w, n in zip(words, called, strict=True))
    assert await ask(c, f"SELECT {shown}") == [tuple(words)]
    assert await columns_of(c, f"SELECT {shown}") == called
    listed = ", ".join(f"({i}, {spelt(draw, w)})" for i, w in enumerate(words))
    found = f"SELECT x FROM (VALUES {listed}) AS v(i, x) ORDER BY i"
    assert await ask(c, found) == [(w,) for w in words]
    same = " AND ".join(f"{spelt(draw, w)} || 'x' = {spelt(draw, w + 'x')}" for w in words)
    assert await ask(c, f"SELECT {same}") == [(True,)]
    lengths = ", ".join(f"length({spelt(draw, w)})" for w in words)
    assert await ask(c, f"SELECT {lengths}") == [tuple(map(len, words))]
    arrays = ", ".join(f"array_to_string(ARRAY[{literal(w)}, {literal(w)}], {literal(w)})" for w in words[:10])
    assert await ask(c, f"SELECT {arrays}") == [tuple(w * 3 for w in words[:10])]


async def as_parameters(c, words, called, draw):
    """In text and in binary, there and back, by type or not, one and many."""
    for way in ("%t", "%b"):
        for binary in (False, True):
            typed = ", ".join([f"{way}::text"] * len(words))
            assert await ask(c, f"SELECT {typed}", words, binary) == [tuple(words)]
            assert await ask(c, f"SELECT {way}::text[]", [words], binary) == [(words,)]
            for w in words[:5]:
                found = await ask(c, f"SELECT {way} || {way}, length({way}::text)", [w] * 3, binary)
                assert found == [(w + w, len(w))]
    where = ", ".join("%s::text = " + literal(w).replace("%", "%%") for w in words)
    assert await ask(c, f"SELECT {where}", words) == [(True,) * len(words)]
    assert await ask(c, f"SELECT x FROM (VALUES {', '.join(['(%s)'] * len(words))}) AS v(x)", words) == [
        (w,) for w in words
    ]


async def as_rows(c, words, called, draw):
    """Of a table whose columns and itself are called anything, written in every way; read, also by an index."""
    table, view = quoted(called[0]), quoted(called[1])
    columns = called[2:12]
    typed = ", ".join(f"{quoted(n)} text DEFAULT {literal(words[at])}" for at, n in enumerate(columns))
    await ask(c, f"CREATE TABLE {table} (way int, i int, w text, {typed})")
    await ask(c, f"CREATE INDEX ON {table} (w)")
    await ask(c, f"CREATE INDEX ON {table} ({quoted(columns[0])}, w)")
    at = list(enumerate(words))
    listed = ", ".join(f"(0, {i}, {spelt(draw, w)})" for i, w in at)
    await ask(c, f"INSERT INTO {table} (way, i, w) VALUES {listed}")
    plain = ", ".join(f"(1, {i}, {literal(w)})" for i, w in at)
    await ask(c, f"INSERT INTO {table} (way, i, w) VALUES {plain}")
    for way, sign in ((2, "%t"), (3, "%b")):
        signs = ", ".join([f"({way}, {sign}, {sign}::text)"] * len(words))
        into = f"INSERT INTO {table} (way, i, w) VALUES ".replace("%", "%%")
        await ask(c, into + signs, [each for pair in at for each in pair])
    async with c.cursor() as cursor:
        into = f"INSERT INTO {table} (way, i, w) VALUES ".replace("%", "%%")
        await cursor.executemany(into + "(4, %s, %s)", at)
    listed = ", ".join(f"({i}, {literal(w)})" for i, w in at)
    await ask(c, f"INSERT INTO {table} (way, i, w) SELECT 5, i, x FROM (VALUES {listed}) v(i, x)")
    shown = ", ".join(f"{literal(w)} AS {quoted(n)}" for w, n in zip(words[14:], called[12:], strict=False))
    await ask(c, f"CREATE VIEW {view} AS SELECT *, {shown} FROM {table}")
    await rows_are_there(c, words, called, draw)


async def rows_are_there(c, words, called, draw):
    table, view = quoted(called[0]), quoted(called[1])
    columns = called[2:12]
    listed = ", ".join(map(quoted, columns))
    wanted = [(way, i, w, *words[:10]) for way in range(6) for i, w in enumerate(words)]
    for binary in (False, True):
        assert sorted(await ask(c, f"SELECT way, i, w, {listed} FROM {table}", binary=binary)) == wanted
    constants = called[12 : 12 + len(words[14:])]
    assert (await columns_of(c, f"SELECT * FROM {view} LIMIT 1"))[13:] == constants
    found = await ask(c, f"SELECT DISTINCT {', '.join(map(quoted, constants))} FROM {view}")
    assert found == [tuple(words[14 : 14 + len(constants)])]
    for i, w in enumerate(words):
        if i % 4 == 0:
            assert await ask(c, f"SELECT way, i FROM {table} WHERE w = {spelt(draw, w)} ORDER BY way") == [
                (way, i) for way in range(6)
            ]
        for sign in ("%t", "%b"):
            escaped = f"SELECT i, w FROM {table} WHERE w = ".replace("%", "%%")
            assert await ask(c, escaped + sign, [w], binary=sign == "%b") == [(i, w)] * 6, w
        both = f"SELECT i FROM {table} WHERE {quoted(columns[0])} = {literal(words[0])} AND w = ".replace("%", "%%")
        assert await ask(c, both + "%s", [w]) == [(i,)] * 6
    where = f"SELECT i FROM {view} WHERE w = ANY(".replace("%", "%%")
    assert Counter(await ask(c, where + "%s)", [words[:7]])) == {(i,): 6 for i in range(7)}


async def as_names(c, words, called, draw):
    """Of what a session keeps: prepared statements, cursors, savepoints, labels, variables."""
    for name, word in zip(called[:12], words, strict=False):
        n = quoted(name)
        await ask(c, f"PREPARE {n} AS SELECT {literal(word)}, $1::text")
        assert await ask(c, f"EXECUTE {n}({spelt(draw, word)})") == [(word, word)]
        await ask(c, f"DEALLOCATE {n}")
        async with c.transaction():
            await ask(c, f"DECLARE {n} CURSOR FOR SELECT {literal(word)} AS {n}")
            await ask(c, f"SAVEPOINT {n}")
            assert await ask(c, f"FETCH ALL FROM {n}") == [(word,)]
            await ask(c, f"RELEASE SAVEPOINT {n}")
        assert await ask(c, f"WITH {n}({n}) AS (SELECT {literal(word)}) SELECT {n}.{n} FROM {n} AS {n}") == [(word,)]
        assert await ask(c, f"SELECT s.{n} FROM (SELECT {literal(word)} AS {n}) s ORDER BY s.{n}") == [(word,)]
        with pytest.raises(psycopg.Error) as refused:
            await ask(c, f"SELECT {n} FROM (SELECT 1 AS other) s")
        assert refused.value.sqlstate == "42703", name
        with pytest.raises(psycopg.Error) as refused:
            await ask(c, f"SELECT 1 FROM {quoted((name + ' no')[-60:])}")
        assert refused.value.sqlstate == "42P01", name
        with pytest.raises(psycopg.Error) as refused:
            await ask(c, f"SELECT {n}(1)")
        assert refused.value.sqlstate in ("42883", "42601"), name
    for word in words[:10]:
        if len(word) < 60 and word.isascii() and word.isprintable():
            await ask(c, f"SET application_name TO {literal(word)}")
            assert await ask(c, "SHOW application_name") == [(word,)]


async def in_catalogs(c, words, called, draw):
    """Names of schemas, tables, columns and indexes, texts of comments and defaults, as the catalogs have them."""
    schema, table, index, view = (quoted(f"{n}"[:20]) for n in called[12:16])
    columns = list(dict.fromkeys(called[16:24]))
    await ask(c, f"CREATE SCHEMA {schema}")
    await ask(c, f"CREATE TABLE {schema}.{table} ({', '.join(f'{quoted(n)} text' for n in columns)})")
    await ask(c, f"CREATE INDEX {index} ON {schema}.{table} ({quoted(columns[0])})")
    shown = f"{literal(words[3])} AS {quoted(columns[1])}, {quoted(columns[0])}"
    await ask(c, f"CREATE VIEW {schema}.{view} AS SELECT {shown} FROM {schema}.{table}")
    comments = [w or "x" for w in words[: len(columns)]]
    for n, w in zip(columns, comments, strict=True):
        await ask(c, f"COMMENT ON COLUMN {schema}.{table}.{quoted(n)} IS {spelt(draw, w)}")
    await ask(c, f"COMMENT ON TABLE {schema}.{table} IS {spelt(draw, comments[0])}")
    await catalogs_tell(c, words, called, draw)


async def catalogs_tell(c, words, called, draw):
    schema, table, index, view = (n[:20] for n in called[12:16])
    columns = list(dict.fromkeys(called[16:24]))
    comments = [w or "x" for w in words[: len(columns)]]
    for binary in (False, True):
        found = await ask(c, "SELECT c.relname, n.nspname, obj_description(c.oid, 'pg_class') FROM pg_class c "
                          "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s AND c.relname = %b",
                          [schema, table], binary)  # fmt: skip
        assert found == [(table, schema, comments[0])]
    relation = literal(f"{quoted(schema)}.{quoted(table)}")
    found = await ask(c, "SELECT a.attname, col_description(a.attrelid, a.attnum) FROM pg_attribute a "
                      f"WHERE a.attrelid = {relation}::regclass AND a.attnum > 0 ORDER BY a.attnum")  # fmt: skip
    assert found == list(zip(columns, comments, strict=True))
    shown = await ask(c, "SELECT column_name FROM information_schema.columns "
                      "WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position",
                      [schema, table])  # fmt: skip
    assert shown == [(n,) for n in columns]
    [(oid, shown)] = await ask(c, "SELECT c.oid, c.oid::regclass::text FROM pg_class c JOIN pg_namespace n ON n.oid = "
                               "c.relnamespace WHERE n.nspname = %s AND c.relname = %s", [schema, view])  # fmt: skip
    assert await ask(c, "SELECT %s::regclass::oid::int8", [shown]) == [(oid,)]
    [(definition,)] = await ask(c, f"SELECT pg_get_viewdef({oid})")
    assert await columns_of(c, definition.rstrip(";")) == [columns[1], columns[0]]
    asked = "SELECT pg_get_indexdef(c.oid) FROM pg_class c WHERE c.relname = %s AND c.relkind = 'i'"
    [(definition,)] = await ask(c, asked, [index])
    assert quoted(columns[0]) in definition or columns[0] in definition
    found = await ask(c, "SELECT %s, %b, n.nspname FROM pg_namespace n WHERE n.nspname = %s", [*words[:2], schema])
    assert found == [(*words[:2], schema)]
    asked = f"SELECT {literal(words[0])}, n.nspname FROM pg_namespace n WHERE n.nspname = {literal(schema)}"
    found = await ask(c, asked)
    assert found == [(words[0], schema)]


STORIES = (as_constants, as_parameters, as_rows, as_names, in_catalogs)


def batch(seed: int) -> None:
    words, called, draw = texts(seed, WORDS), names(seed, WORDS), random.Random(seed)
    called = list({n[:20]: n for n in called}.values())
    while len(called) < WORDS:
        called.append(f"name {len(called)}")

    async def story():
        world = World()
        async with serving(world) as port:
            c = await connected(port)
            for way in STORIES:
                await way(c, words, called, draw)
            await c.close()
        async with serving(world) as port:  # everything anew, from the logs
            c = await connected(port)
            await rows_are_there(c, words, called, draw)
            await catalogs_tell(c, words, called, draw)
            await c.close()

    print(f"TIDEMARK_SEED={seed}")
    finished(story())


def test_any_text_and_any_name_come_back_from_a_client():
    batch(int(os.environ.get("TIDEMARK_SEED") or 500))


@pytest.mark.long
@pytest.mark.timeout(0)
def test_many_texts_and_names_come_back_from_a_client():
    seed = new_seed()
    for number in range(int(os.environ.get("TIDEMARK_CHECKS") or BATCHES)):
        batch(seed + number)
        outside(seed + number)


def in_spark(name: str) -> str:
    return text(exp.to_identifier(name, quoted=True))


def outside(seed: int) -> None:
    """Through the records of our topics, users' JSON, look-ups and a tick, without a client."""
    words, called = texts(seed, WORDS), names(seed, WORDS)
    columns = tuple(Column(n, "text") for n in called)
    rows = [tuple(words), tuple(reversed(words)), (None,) * WORDS]
    table = table_from_rows(columns, rows)
    kept = row_batches.decode(columns, [b.value for b in row_batches.encode(columns, with_diff(table), "w/1")])
    assert [tuple(r.values())[:WORDS] for r in kept.to_pylist()] == rows

    for escaped in (False, True):
        values = [json.dumps(dict(zip(called, row, strict=True)), ensure_ascii=escaped).encode() for row in rows]
        found, bad = decode_batch(values, columns)
        assert not bad and [tuple(r.values()) for r in found.to_pylist()] == rows

    assert [value_in(json.loads(json.dumps(value_out(w)))) for w in words] == words

    image = ddl(empty_image(), f"create table t ({', '.join(f'{quoted(n)} text' for n in called)})")
    (relation,) = (item.id for item in image.objects())
    shown = ", ".join(quoted(n) for n in called)
    where = " and ".join(f"{quoted(n)} = {literal(w)}" for n, w in zip(called, words, strict=True))
    plan = plan_select(parse(f"select {shown} from t where {where}").ast, image, resolved())
    (item,) = image.objects()
    [summand] = Planned(decode(plan.plan_text(()))).strategy().change.linear.summands
    types = [parse_type("text")] * WORDS
    schema = schema_of(types, [f"c{i}" for i in range(WORDS)]).append(pa.field("__diff", pa.int64()))
    change = to_table([(*row, 1) for row in rows], schema)
    assert to_rows(compile_summand(summand.plan).run({(relation, DELTA): change})) == [(*words, 1)]

    arrangement = Arrangement([0])
    arrangement.apply([(0, tuple(words), 1)], 1)
    indexed = ddl(image, f"create index on t ({quoted(called[0])})")
    for w in words:
        asked = f"select {quoted(called[1])}, {literal(w)} from t where {quoted(called[0])} = {literal(w)}"
        lookup = plan_select(parse(asked).ast, indexed, resolved()).lookup
        assert lookup is not None
        key, residual = lookup.filled((), {})
        assert [value_in(json.loads(json.dumps(value_out(v)))) for v in key] == [w]
        answer = compile_residual(residual, types).run(arrangement.rows(0, list(key)))
        assert to_rows(answer) == ([(words[1], w)] if w == words[0] else [])


def test_any_text_and_any_name_come_back_from_records_json_lookups_and_a_tick():
    outside(FIXED_SEED)
    outside(500)


def test_a_seed_alone_decides():
    assert texts(7, 50) == texts(7, 50) != texts(8, 50)
    assert names(7, 50) == names(7, 50) != names(8, 50)


def test_what_no_text_can_hold_is_refused():
    async def story():
        async with serving(World()) as port:
            c = await connected(port)
            for asked in ("select 'a\0b'", 'select 1 as "a\0b"'):
                with pytest.raises((psycopg.DataError, psycopg.errors.SyntaxError, ValueError)):
                    await ask(c, asked)
            assert await ask(c, "select 1") == [(1,)]
            await c.close()

    finished(story())
