"""Transaction blocks as drivers use them: psycopg on the real server, with the executor on logs in memory."""

from __future__ import annotations

from contextlib import AsyncExitStack

import psycopg
import pytest
from psycopg import IsolationLevel, errors

from adapter.execute import reads
from tests.adapter.test_clients import serving
from tests.adapter.world import World
from tests.finishing import finished


def run(story):
    """``story(block, other, world)``: a connection that opens blocks by itself, and one that does not."""

    async def bounded():
        world = World()
        async with AsyncExitStack() as stack:
            port = await stack.enter_async_context(serving(world))
            given = {"host": "127.0.0.1", "port": port, "user": "tidemark", "dbname": "tidemark"}
            block, other = [
                await stack.enter_async_context(await psycopg.AsyncConnection.connect(**given, autocommit=autocommit))
                for autocommit in (False, True)
            ]
            await other.execute("create table t (a int)")
            await other.execute("create table u (a int)")
            await other.execute("create view v as select a from t where a > 0")
            await other.execute("insert into t values (1)")
            await story(block, other, world)

    finished(bounded())


async def one(connection, sql: str):
    return (await (await connection.execute(sql)).fetchone())[0]


@pytest.mark.parametrize("level", [None, *IsolationLevel])
def test_at_which_timestamp_a_block_reads(level):
    async def story(block, other, world):
        await block.set_isolation_level(level)
        seen = await one(block, "select count(*) from t")
        await other.execute("insert into t values (2)")
        await other.execute("insert into u values (3)")
        per_statement = level in (IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED)
        counts = [seen]
        for relation in ("t", "v", "u"):
            counts.append(await one(block, f"select count(*) from {relation}"))
        assert counts == ([1, 2, 2, 1] if per_statement else [1, 1, 1, 0])
        assert await one(other, "select count(*) from t") == 2
        await block.rollback()
        assert await one(block, "select count(*) from u") == 1

    run(story)


def test_a_cursor_and_a_prepared_statement_read_there_too():
    async def story(block, other, world):
        await block.execute("prepare p as select count(*) from t")
        assert await one(block, "execute p") == 1
        await other.execute("insert into t values (2)")
        async with block.cursor(name="c") as cursor:
            await cursor.execute("select a from t")
            assert await cursor.fetchall() == [(1,)]
        assert await one(block, "execute p") == 1
        await block.commit()
        assert await one(block, "execute p") == 2

    run(story)


@pytest.mark.parametrize(
    ("level", "refused"),
    [(None, True), (IsolationLevel.SERIALIZABLE, True), (IsolationLevel.REPEATABLE_READ, False),
     (IsolationLevel.READ_COMMITTED, False)],
)  # fmt: skip
def test_what_a_block_writes_hangs_on_what_it_read(level, refused):
    async def story(block, other, world):
        await block.set_isolation_level(level)
        for table, wanted in (("u", False), ("t", refused)):  # it reads t, also through v, and writes u
            assert await one(block, "select count(*) from v") == 1
            await block.execute("insert into u values (7)")
            await other.execute(f"insert into {table} values (0)")
            if wanted:
                with pytest.raises(errors.SerializationFailure):
                    await block.commit()
            else:
                await block.commit()
        assert await one(other, "select count(*) from u where a = 7") == (1 if refused else 2)

    run(story)


@pytest.mark.parametrize(
    ("read", "refused"),
    [
        ("select n from k where id = 2", False),
        ("select n from k where id = 1", True),
        ("select n from k where n > 0 and id = 1", True),
        ("select n from k where id = 3", True),  # one that is not there yet
        ("select n from k where name = 'one'", True),
        ("select n from k where name = 'two'", False),
        ("select n from kv where id = 2", False),
        ("select n from kv where id = 1", True),
        ("select sum(n) from k where id = 2", False),
        ("select n from k where id > 1", True),
        ("select a.n from k a, k b where a.id = 2 and b.id = 2", False),
        ("select (select max(n) from k) from k where id = 2", True),
    ],
)
@pytest.mark.parametrize("params", [False, True])
def test_a_serializable_block_that_read_one_key_hangs_on_that_alone(read, refused, params):
    async def story(block, other, world):
        await other.execute("create table k (id int primary key, name text unique, n int)")
        await other.execute("create view kv as select * from k")
        await other.execute("insert into k values (1, 'one', 10), (2, 'two', 20)")
        await block.set_isolation_level(IsolationLevel.SERIALIZABLE)
        text, values = (read.replace("= 2", "= %s"), (2,) * read.count("= 2")) if params else (read, ())
        await block.execute(text, values)
        await block.execute("insert into u values (7)")
        await other.execute("update k set n = 11 where id = 1")
        await other.execute("insert into k values (3, 'three', 30)")
        if refused:
            with pytest.raises(errors.SerializationFailure):
                await block.commit()
        else:
            await block.commit()
        assert await one(other, "select count(*) from u where a = 7") == (not refused)

    run(story)


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize(
    "read",
    [
        "select 1 / n from k where id = 2", "select 1 / n from k", "update k set n = 1 / n",
        "update k set n = 1 / n where id = 2", "insert into u select 1 / n from k", "delete from k where 1 / n > 5",
        "with x as (insert into u select 1 / n from k returning a) select * from x",
        "with x as (update k set n = n returning n) select 1 / n from x",
        "merge into u using k on u.a = k.id when not matched then insert values (1 / k.n)",
        "merge into k using t on k.id = t.a + 1 when matched then update set n = 1 / k.n",
        "insert into k values (2, 5) on conflict (id) do update set n = 1 / k.n",
    ],
)  # fmt: skip
def test_what_a_failed_statement_saw_is_what_the_block_read(read, first):
    """Its error says what a row holds, and behind a savepoint the block goes on."""

    async def story(block, other, world):
        await other.execute("create table k (id int primary key, n int)")
        await other.execute("insert into k values (1, 1), (2, 0)")
        await block.set_isolation_level(IsolationLevel.SERIALIZABLE)
        if not first:
            assert await one(block, "select n from k where id = 1") == 1
        await block.execute("savepoint s")
        with pytest.raises(errors.DivisionByZero):
            await block.execute(read)
        await block.execute("rollback to s")
        await block.execute("insert into u values (7)")
        await other.execute("update k set n = 5 where id = 2")
        with pytest.raises(errors.SerializationFailure):
            await block.commit()
        assert await one(other, "select count(*) from u where a = 7") == 0
        with pytest.raises(errors.SerializationFailure):  # so it does where all of them are read
            await block.execute("select count(*) from k")
            await block.execute("insert into u values (7)")
            await other.execute("update k set n = 6 where id = 2")
            await block.commit()

    run(story)


@pytest.mark.parametrize("isolation", ["serializable", "strict serializable"])
@pytest.mark.parametrize("level", [None, *IsolationLevel])
def test_what_failed_alone_refuses_nothing(level, isolation):
    async def story(block, other, world):
        await other.execute("create table k (id int primary key, n int)")
        await other.execute("insert into k values (1, 1), (2, 0)")
        await block.execute(f"set tidemark.isolation = '{isolation}'")
        await block.commit()
        await block.set_isolation_level(level)
        for read in ("select 1 / n from k", "select 1 / n from k where id = 2"):
            await block.execute("savepoint s")
            with pytest.raises(errors.DivisionByZero):
                await block.execute(read)
            await block.execute("rollback to s")
            await block.execute("insert into u values (7)")
            await block.commit()
        assert await one(other, "select count(*) from u where a = 7") == 2

    run(story)


def test_what_failed_before_it_read_refuses_nothing():
    async def story(block, other, world):
        await other.execute("create materialized view m as select count(*) as n from t")
        await block.set_isolation_level(IsolationLevel.SERIALIZABLE)
        await block.execute("insert into t values (5)")
        await block.execute("savepoint s")
        with pytest.raises(errors.FeatureNotSupported):
            await block.execute("select * from m")  # of what it has written itself
        await block.execute("rollback to s")
        await other.execute("insert into t values (6)")
        await block.commit()

    run(story)


def test_what_was_read_was_written_and_then_dropped():
    async def story(block, other, world):
        assert await one(block, "select count(*) from t") == 1
        await block.execute("insert into u values (7)")
        await other.execute("insert into t values (0)")
        await other.execute("drop table t cascade")
        with pytest.raises(errors.SerializationFailure):
            await block.commit()
        assert await one(other, "select count(*) from u") == 0

    run(story)


@pytest.mark.parametrize("level", [None, IsolationLevel.READ_COMMITTED])
def test_a_block_reads_what_it_wrote_and_nobody_else_does(level):
    async def story(block, other, world):
        await block.set_isolation_level(level)
        await block.execute("insert into t values (5)")
        assert [await one(block, f"select count(*) from {each}") for each in ("t", "v", "u")] == [2, 2, 0]
        assert (await block.execute("update t set a = a + 1 where a > 0")).rowcount == 2
        assert await one(block, "select string_agg(a::text, ',' order by a) from v") == "2,6"
        await block.execute("savepoint s")
        assert (await block.execute("delete from t where a = 2")).rowcount == 1
        assert (await block.execute("insert into u select a from t")).rowcount == 1
        assert await one(block, "select a from u") == 6
        await block.execute("rollback to s")
        assert [await one(block, f"select count(*) from {each}") for each in ("t", "v", "u")] == [2, 2, 0]
        assert await one(other, "select sum(a) from t") == 1
        await block.execute("truncate t")
        assert await one(block, "select count(*) from t") == 0
        await block.execute("insert into t values (7), (7)")
        assert (await block.execute("update t set a = 8")).rowcount == 2
        await block.commit()
        assert await one(other, "select string_agg(a::text, ',') from t") == "8,8"

    run(story)


def test_a_block_is_not_told_what_does_not_follow_yet_nor_brings_too_much(monkeypatch):
    async def story(block, other, world):
        await other.execute("create materialized view m as select a from t")
        await block.execute("insert into t values (5)")
        await block.execute("savepoint s")
        with pytest.raises(errors.FeatureNotSupported, match='reading materialized view "m"'):
            await block.execute("select * from m, t")
        await block.execute("rollback to s")
        monkeypatch.setattr(reads, "OWN_BYTES_MAX", 10)
        with pytest.raises(errors.ProgramLimitExceeded, match="written too much"):
            await block.execute("update t set a = 1")
        await block.execute("rollback to s")
        await block.commit()
        assert await one(block, "select count(*) from t") == 2

    run(story)


@pytest.mark.parametrize("level", [IsolationLevel.REPEATABLE_READ, IsolationLevel.READ_COMMITTED])
def test_what_a_block_changes_is_what_it_read_at_any_level(level):
    async def story(block, other, world):
        await block.set_isolation_level(level)
        assert (await block.execute("update t set a = a + 1")).rowcount == 1
        await other.execute("insert into t values (1)")
        assert await one(block, "select count(*) from t") == 1, "it stays where it read what it changes"
        with pytest.raises(errors.SerializationFailure):
            await block.commit()
        assert await one(other, "select sum(a) from t") == 2

    run(story)


def test_drivers_change_many_rows():
    async def story(block, other, world):
        await other.execute("create table accounts (id int, balance numeric(10,2))")
        async with block.cursor() as cursor:
            await cursor.executemany("insert into accounts values (%s, %s)", [(n, 100) for n in range(5)])
            await cursor.executemany(
                "update accounts set balance = balance + %s where id = %s", [(n, n) for n in range(5)]
            )
            assert cursor.rowcount == 5
            await cursor.executemany(
                "update accounts set balance = balance * 2 where id = %s returning id", [(1,), (2,)], returning=True
            )
            found = [await cursor.fetchall()]
            while cursor.nextset():
                found.append(await cursor.fetchall())
            assert found == [[(1,)], [(2,)]]
        await block.commit()
        assert await one(other, "select sum(balance) from accounts") == 713
        with pytest.raises(errors.ReadOnlySqlTransaction):
            await block.execute("set transaction read only")
            await block.execute("delete from accounts")
        await block.rollback()
        await other.execute("prepare p as update accounts set balance = $1 where id = $2 returning balance")
        assert await one(other, "execute p(3, 4)") == 3

    run(story)


def test_drivers_insert_many_rows_and_are_given_them_back():
    async def story(block, other, world):
        await other.execute("create table made (id int generated always as identity, name text, price numeric(10,2))")
        async with block.cursor() as cursor:
            insert = "insert into made (name) values (%s) returning id, name"
            await cursor.executemany(insert, [("a",), ("b",), ("c",)], returning=True)
            found = [await cursor.fetchone()]
            while cursor.nextset():
                found.append(await cursor.fetchone())
            assert found == [(1, "a"), (2, "b"), (3, "c")]
            await cursor.execute(  # as SQLAlchemy's insertmanyvalues says it
                "INSERT INTO made (name, price) SELECT p0::VARCHAR, p1::NUMERIC(10, 2) FROM (VALUES "
                "(%s::VARCHAR, %s, 0), (%s::VARCHAR, %s, 1)) AS imp_sen(p0, p1, sen_counter) ORDER BY sen_counter "
                "RETURNING made.id, made.id AS id__1",
                ("d", 1, "e", 2),
            )
            assert await cursor.fetchall() == [(4, 4), (5, 5)]
            await cursor.execute("select count(*) from made")
            assert await cursor.fetchone() == (5,), "its own rows"
        assert await one(other, "select count(*) from made") == 0
        await block.rollback()
        assert await one(other, "select count(*) from made") == 0, "what was returned was never committed"
        async with other.pipeline():
            cursors = [await other.execute("insert into made (name) values (%s) returning id", (n,)) for n in "fg"]
            assert [await each.fetchone() for each in cursors] == [(6,), (7,)]
        assert await one(other, "select count(*) from made") == 2

    run(story)


def test_a_block_that_only_reads_costs_one_barrier():
    async def story(block, other, world):
        before = world.oracle_topic.end
        for _ in range(5):
            await one(block, "select count(*) from t")
        assert world.oracle_topic.end - before == 1

    run(story)


@pytest.mark.parametrize(
    ("change", "then", "refused"),
    [
        ("alter table t add d int", "select d from t", "0A000"),
        ("create table w (a int)", "insert into w values (1)", "0A000"),
        ("alter table t add d int", "select d frm t where", "42601"),
    ],
)
def test_what_a_block_is_to_make_is_named_too_early_and_not_unknown(change, then, refused):
    async def story(block, other, world):
        await block.execute(change)
        with pytest.raises(psycopg.Error) as error:
            await block.execute(then)
        assert error.value.sqlstate == refused

    run(story)
