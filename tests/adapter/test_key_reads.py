"""Reads by key in a block that has written: by the index with the block's rows over it, as the cluster would."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from unittest.mock import patch

import psycopg
import pytest

from adapter.execute import laid_over
from adapter.execute.constants import Constants
from adapter.execute.key_reads import KeyReads
from sql.statements.select import plan_select
from sql.syntax.parse import parse
from tests.adapter.blocks_by_key import SETUP, Block, blocks, run_block
from tests.adapter.test_copies import client, on_a_loop, rows
from tests.adapter.test_uniques import Indexed
from tests.adapter.world import World
from tests.seeds import seed_of_commit
from tests.sql.doubles import ddl, empty_image, names

TABLE = "create table t (k int primary key, n int, x text)"
ROWS = "insert into t select g, g * 10, 'x' || g from generate_series(1, 50) g"


async def by_cluster(*_, **__):
    """Nothing is read by key: the way it was before."""
    return None


@asynccontextmanager
async def opened(*setup: str, world: type[World] = Indexed, autocommit: bool = False):
    """A connection to an adapter of a ``world``, and what its cluster has been asked for since ``setup``."""
    found = []

    class Noted(world.answers):
        def __init__(self, *given) -> None:
            super().__init__(*given)
            found.append(self)

    class Here(world):
        answers = Noted

    async with client(Here(), *setup, autocommit=autocommit) as connection:
        found[0].asked.clear()
        yield connection, found[0].asked


BY_KEY = (
    ("update t set n = n + 1 where k = 7", "select n, x from t where k = 7", [(72, "x7")]),
    ("update t set n = case when n > 5 then n + 1 end where k = 7", "select n from t where k = 7", [(72,)]),
    ("update t set x = x || '!' where k = 7", "select upper(x), n from t where k = 7", [("X7!!", 70)]),
    ("delete from t where k = 7", "select * from t where k = 7", []),
    ("update t set k = 57 where k = 7", "select * from t where k = 57 and n = 70", [(57, 70, "x7")]),
    ("update t set n = 0 where k = 7 and x like '%7'", "select count(*), sum(n) from t where k = 7", [(1, 0)]),
)


@pytest.mark.parametrize(("change", "read", "left"), BY_KEY)
@on_a_loop
async def test_a_block_that_has_written_reads_by_key_without_its_cluster(change, read, left):
    async with opened(TABLE, ROWS) as (c, asked):
        await c.execute("insert into t values (51, 1, 'new')")
        await c.execute("update t set n = n + 1 where k = 3")
        for _ in range(2):
            await c.execute(change)
        assert await rows(c, read) == left
        assert asked == []
        await c.commit()
        assert await rows(c, read) == left


@on_a_loop
async def test_rows_of_its_own_are_written_over_and_over_and_taken_back():
    async with opened(TABLE, ROWS) as (c, asked):
        n = "select n from t where k = 51"
        await c.execute("insert into t values (51, 0, 'new')")
        for _ in range(5):
            await c.execute("update t set n = n + 1 where k = 51")
        await c.execute("savepoint s")
        await c.execute("update t set n = n * 100 where k = 51")
        await c.execute("delete from t where k = 5")
        assert await rows(c, n) == [(500,)] and await rows(c, "select n from t where k = 5") == []
        await c.execute("rollback to s")
        assert await rows(c, n) == [(5,)] and await rows(c, "select n from t where k = 5") == [(50,)]
        await c.execute("delete from t where k = 51")
        assert await rows(c, n) == []
        await c.execute("insert into t values (51, 9, 'again')")
        await c.execute("insert into t values (51, 1, 'x') on conflict (k) do update set n = t.n + excluded.n")
        assert await rows(c, n) == [(10,)]
        assert asked == []
        await c.commit()
        assert await rows(c, "select n, x from t where k = 51") == [(10, "again")]


@on_a_loop
async def test_equal_rows_are_counted():
    """Of a table without a constraint: each UPDATE by a key that several rows have changes all of them."""
    some = "insert into t values (1, 5), (1, 5), (1, 6), (2, 5)"
    setup = "create table t (k int, n int)", "create index on t (k)", some
    async with opened(*setup) as (c, asked):
        await c.execute("insert into t values (1, 5), (null, 5)")
        assert (await c.execute("update t set n = n + 1 where k = 1")).rowcount == 4
        assert sorted(await rows(c, "select n from t where k = 1")) == [(6,), (6,), (6,), (7,)]
        assert (await c.execute("delete from t where k = 1 and n = 6")).rowcount == 3
        assert await rows(c, "select n from t where k = 1") == [(7,)]
        assert asked == []
        assert await rows(c, "select n from t where k = null") == []
        await c.commit()
        assert sorted(await rows(c, "select n from t")) == [(5,), (5,), (7,)]


LISTS = (
    ("select k, n from t where k in (3, 7, 7, 60) order by k", [(3, 30), (7, 70)]),
    ("select sum(n), count(*) from t where k in (3, 7) and n > 30", [(70, 1)]),
    ("select n from t where k = 3 or k = 7 or 9 = k order by n desc limit 2", [(90,), (70,)]),
    ("select n from t where k in (3, null, 7.0, 7.5) order by n", [(30,), (70,)]),
    ("select n from t where k in (null, 60)", []),
)


@pytest.mark.parametrize(("read", "found"), LISTS)
@on_a_loop
async def test_a_list_of_keys_is_asked_for_key_by_key(read, found):
    async with opened(TABLE, ROWS, autocommit=True) as (c, asked):
        with patch.object(KeyReads, "_of_list", autospec=True, side_effect=KeyReads._of_list) as by_list:
            assert await rows(c, read) == found
            async with c.transaction():
                await c.execute("update t set n = n + 0 where k in (%s, %s)", (3, 9))
                assert await rows(c, read) == found
                await c.execute("delete from t where k in (3, 7)")
                await c.execute("insert into t values (3, 30, 'new')")
                assert await rows(c, "select n from t where k in (3, 7)") == [(30,)]
            assert await rows(c, "select k, x from t where k in (7, 3, 8) order by k") == [(3, "new"), (8, "x8")]
            assert by_list.call_count == 6 and asked == []


ANY = (
    ("select k, n from t where k = any(%s) order by k", [3, 7, 7, 60], [(3, 30), (7, 70)]),
    ("select k from t where k = any(%s::bigint[]) and n > 30", [3, 7, 1 << 40], [(7,)]),
    ("select k from t where k = any(%s) and n = any(%s) order by k", ([3, 7, 9], [70, 90, None]), [(7,), (9,)]),
    ("select sum(n), count(*) from t where k = any(%s)", [None, 7, 8], [(150, 2)]),
    ("select x from t where k = 7 and n = any(%s)", [70, 71], [("x7",)]),
)  # fmt: skip


@pytest.mark.parametrize(("read", "given", "found"), ANY)
@on_a_loop
async def test_values_of_an_array_are_keys_that_are_asked_for_one_by_one(read, given, found):
    given = given if isinstance(given, tuple) else (given,)
    async with opened(TABLE, ROWS, autocommit=True) as (c, asked):
        assert await rows(c, read, given) == found
        async with c.transaction():
            assert (await c.execute("update t set n = n + 0 where k = any(%s)", ([3, 9, None],))).rowcount == 2
            assert await rows(c, read, given) == found
            assert (await c.execute("delete from t where k = any(%s)", ([3, 60],))).rowcount == 1
            await c.execute("insert into t values (3, 30, 'new')")
            assert await rows(c, "select n from t where k = any(%s) order by n", ([3, 4],)) == [(30,), (40,)]
        assert asked == []


KINDS = {
    "smallint": ["1", "-2", "32767"], "bigint": ["1", "9007199254740993"], "numeric(8, 2)": ["1.50", "1.5", "7"],
    "text": ["", "a", "A", "it's", "NULL", "a,b"], "varchar(3)": ["a", "abc"], "boolean": ["true", "false"],
    "uuid": ["00000000-0000-0000-0000-000000000001"], "date": ["2024-02-29"], "bytea": ["\\x00ff", "\\x"],
    "timestamp": ["2024-02-29 01:02:03.000004"], "timestamptz": ["2024-02-29 01:02:03+02"], "char(3)": ["a", "a  "],
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@on_a_loop
async def test_values_of_arrays_of_each_type_find_what_is_found_without_an_index(kind):
    table = f"create table t (k {kind}, n int)"
    values = ", ".join(f"({quoted(text)}, {n})" for n, text in enumerate([*KINDS[kind], None]))
    async with opened(table, "create index on t (k)", f"insert into t values {values}", autocommit=True) as (c, _):
        for given in ([*KINDS[kind], None], KINDS[kind][:1], KINDS[kind][-1:], [None], []):
            for array in (f"%s::{kind}[]", "%s"):
                text, found = f"select n from t where k = any({array}) order by n", []
                for way in (KeyReads.answer, by_cluster):
                    with patch.object(KeyReads, "answer", way):
                        found.append(await told(c, text, given))
                assert found[0] == found[1], (text, given)


NUMBERS = (
    ("k = any(%s)", ["1.004", "2.5"], [2]),
    ("k = any(%s)", ["123456.7", "NaN", "1e0"], [1]),
    ("k = any(%s) or n = 3", ["1e40", "1.00"], [1, 3]),
    ("k <> all(%s)", ["1.004", "2.50"], [1, 3]),
    ("k = any(%s::numeric[])", ["3.140", "3.1400000000000000001"], [3]),
    ("k = any(%s::numeric(4, 1)[])", ["1.04", "2.46"], [1, 2]),
    ("k = any(%s::numeric(6, 2)[]::numeric(6, 1)[])", ["3.14", "1.04"], [1]),
    ("k = any(%s::int[])", ["1", "3"], [1]),
    ("w = any(%s)", ["1234567890123456789012345678901", "0.5"], [1]),
)


@pytest.mark.parametrize(("condition", "given", "found"), NUMBERS)
@on_a_loop
async def test_numbers_of_an_array_keep_their_own_digits_unless_a_cast_takes_them(condition, given, found):
    table = "create table t (k numeric(6, 2), w numeric(38, 0), n int)"
    values = "(1, 1234567890123456789012345678901, 1), (2.5, 2, 2), (3.14, 3, 3)"
    indexes = "create index on t (k)", "create index on t (w)"
    async with opened(table, *indexes, f"insert into t values {values}", autocommit=True) as (c, _):
        for way in (KeyReads.answer, by_cluster):
            with patch.object(KeyReads, "answer", way):
                assert await told(c, f"select n from t where {condition} order by n", given) == [(n,) for n in found]


async def told(connection, text: str, given: list) -> object:
    """Rows, or the error; the array is sent as a text of no type, as drivers do that leave it to the server."""
    items = ["NULL" if each is None else '"' + each.replace("\\", "\\\\") + '"' for each in given]
    try:
        return await rows(connection, text, ("{" + ", ".join(items) + "}",))
    except psycopg.Error as error:
        return error.sqlstate


def quoted(text: str | None) -> str:
    return "null" if text is None else "'" + text.replace("'", "''") + "'"


@on_a_loop
async def test_arrays_that_are_no_lists_of_keys_are_read_as_before():
    async with opened(TABLE, ROWS, "create index on t (x)", autocommit=True) as (c, asked):
        counted = "select count(*) from t where k = any(%s)"
        assert await rows(c, "select k from t where x = any(%s) order by k", (["x3", "x4", "X3"],)) == [(3,), (4,)]
        assert asked == []
        with patch.object(KeyReads, "_at_once", side_effect=AssertionError("a key is asked for")):
            assert await rows(c, counted, ([],)) == [(0,)]
            assert await rows(c, counted, (None,)) == [(0,)]
            assert await rows(c, counted, ([None],)) == [(0,)]
            assert await rows(c, counted, (list(range(2, 80)),)) == [(49,)]
            assert await rows(c, "select k from t where n = any(%s) order by k", ([30, 40],)) == [(3,), (4,)]
            assert await rows(c, "select count(*) from t where not k = any(%s)", ([3, 4],)) == [(48,)]
            assert await rows(c, "select count(*) from t where k <> all(%s)", ([3, 4],)) == [(48,)]
            told = "select k, k = any(%s) from t where k = 3 or n = 40 order by k"
            assert await rows(c, told, ([3, None],)) == [(3, True), (4, None)]
        asked.clear()
        assert await rows(c, "select n, n = any(%s) from t where k = 3", ([3, None],)) == [(30, None)]
        assert asked == []
        assert await rows(c, "select n from t where k = 3 and n = any(%s)", (list(range(90)),)) == [(30,)]
        assert len(asked) == 1, "an engine compares with many values better"


@on_a_loop
async def test_long_lists_and_columns_of_no_index_are_read_as_before():
    async with opened(TABLE, ROWS, autocommit=True) as (c, _):
        many = ", ".join(map(str, range(2, 80)))
        with patch.object(KeyReads, "_at_once", side_effect=AssertionError("a key is asked for")):
            assert await rows(c, f"select count(*), min(k) from t where k in ({many})") == [(49, 2)]
            assert await rows(c, "select k from t where n in (30, 40) order by k") == [(3,), (4,)]
            assert await rows(c, "select count(*) from t where k not in (3, 4)") == [(48,)]
            assert await rows(c, "select count(*) from t where k in (3, n)") == [(1,)]


@on_a_loop
async def test_after_truncate_nothing_of_the_index_counts():
    async with opened(TABLE, ROWS) as (c, _):
        await c.execute("update t set n = 1 where k = 7")
        await c.execute("truncate t")
        assert await rows(c, "select n from t where k = 7") == []
        await c.execute("insert into t values (7, 0, 'new')")
        await c.execute("update t set n = n + 1 where k = 7")
        assert await rows(c, "select * from t where k = 7") == [(7, 1, "new")]
        await c.commit()
        assert await rows(c, "select * from t") == [(7, 1, "new")]


@on_a_loop
async def test_a_key_of_many_rows_and_a_block_of_many_are_read_by_the_cluster():
    some = "insert into t select 1, g from generate_series(1, 30) g"
    setup = "create table t (k int, n int)", "create index on t (k)", some
    total = "select sum(n) from t where k = 1"
    with patch.object(laid_over, "ROWS_MAX", 10), patch("adapter.execute.key_reads.ROWS_MAX", 10):
        laid_over._whole.cache_clear()
        async with opened(*setup) as (c, asked):
            await c.execute("insert into t values (1, 1000)")
            assert await rows(c, total) == [(1465,)] and len(asked) == 1
    laid_over._whole.cache_clear()
    with patch.object(laid_over, "OVER_BYTES_MAX", 100):
        async with opened(*setup) as (c, asked):
            await c.execute("insert into t select 2, g from generate_series(1, 30) g")
            assert await rows(c, "select sum(n) from t where k = 2") == [(465,)] and len(asked) == 1


@on_a_loop
async def test_a_block_reads_the_rows_of_its_key_alone_whatever_it_has_written():
    """What a commit hangs on is the key, as before the block's first write."""
    for change in ("update t set n = n + 1 where k = 7", "update t set n = case when n > 0 then 1 end where k = 7"):
        async with AsyncExitStack() as stack:
            world = Indexed()
            c = await stack.enter_async_context(client(world, TABLE, ROWS, autocommit=False))
            other = await stack.enter_async_context(client(world))
            await c.set_isolation_level(psycopg.IsolationLevel.SERIALIZABLE)
            await c.execute("update t set n = 0 where k = 1")
            await c.execute(change)
            await c.execute("select upper(x) from t where k = 9")
            await other.execute("update t set n = 5 where k = 8")
            await c.commit()
            await c.execute("update t set n = 0 where k = 1")
            await c.execute(change)
            await other.execute("update t set n = 5 where k = 7")
            with pytest.raises(psycopg.errors.SerializationFailure):
                await c.commit()
            await c.rollback()
            await c.execute("update t set n = 0 where k = 1")
            await c.execute("select upper(x) from t where k = 60")
            await other.execute("insert into t values (60, 1, 'phantom')")
            with pytest.raises(psycopg.errors.SerializationFailure):
                await c.commit()


@on_a_loop
async def test_merge_by_key_sees_the_rows_of_its_block():
    merge = (
        "merge into t using (values (7, 1), (51, 2), (52, 3), (8, 4)) s (k, m) on t.k = s.k "
        "when matched and n < 0 then delete when matched then update set n = t.n + m "
        "when not matched then insert values (k, m, 'merged')"
    )
    async with opened(TABLE, ROWS) as (c, asked):
        await c.execute("update t set n = 0 where k = 7")
        await c.execute("insert into t values (51, 100, 'own')")
        await c.execute("delete from t where k = 8")
        assert (await c.execute(merge.encode())).statusmessage == "MERGE 4"
        await c.execute("update t set n = -1 where k = 52")
        assert (await c.execute(merge.encode())).statusmessage == "MERGE 4"
        assert asked == []
        await c.commit()
        left = await rows(c, "select k, n from t where k in (7, 8, 51, 52) order by k")
        assert left == [(7, 2), (8, 8), (51, 104)]


@on_a_loop
async def test_case_asks_no_engine():
    """As no controller of before knows it, no lookup that is sent has it in it."""
    change = "update t set n = case when n > 50 then n - 50 when x = 'x3' then 0 else n + 1 end where k = "
    with patch.object(Constants, "decided_over", side_effect=AssertionError("an engine is asked")):
        async with opened(TABLE, ROWS) as (c, asked):
            for key in (3, 4, 7, 7):
                await c.execute(f"{change}{key} returning n".encode())
            assert await rows(c, "select case when k > 4 then n end, case k when 3 then 0 end from t where n < 0") == []
            for key, n in ((3, 0), (4, 41), (7, 21)):
                assert await rows(c, f"select case when k > 2 then n else -1 end from t where k = {key}") == [(n,)]
            assert len(asked) == 1, "which is by no key"
    image = ddl(empty_image(), TABLE)
    plan = plan_select(parse("select case when n > 1 then n else 0 end from t where k = 1").ast, image, names())
    assert plan.lookup is None and "case" in str(plan.one_row.residual)


@on_a_loop
async def test_an_error_is_the_clusters_to_find():
    async with opened(TABLE, ROWS) as (c, asked):
        await c.execute("update t set n = 0 where k = 7")
        with pytest.raises(psycopg.Error):
            await c.execute("update t set n = 1 / n where k = 7")
        assert len(asked) == 1
        await c.rollback()
        await c.execute("update t set n = 2147483647 where k = 7")
        with pytest.raises(psycopg.errors.NumericValueOutOfRange):
            await c.execute("update t set n = n + 1 where k = 7")


async def played(world: type[World], block: Block, slow: bool = False) -> list:
    with patch.object(KeyReads, "answer", by_cluster) if slow else nullcontext():
        async with client(world(), *SETUP, autocommit=True) as connection:
            return await run_block(connection, block)


@on_a_loop
async def test_random_blocks_have_the_same_answers_by_key_and_by_reading_whole_tables():
    for number, block in enumerate(blocks(seed_of_commit(), 2)):
        fast = await played(Indexed, block)
        assert await played(World, block) == fast, f"by waiting for the index: {number}"
        assert await played(Indexed, block, slow=True) == fast, f"by the cluster: {number}"
