"""COPY in the executor, by the clients that people have: blocks, loads of many writes, sequences, who is refused."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from functools import wraps
from unittest.mock import patch

import psycopg
import pytest

from adapter.execute import loads
from tests.adapter.test_clients import needs_psql, psql, serving
from tests.adapter.world import World
from tests.finishing import finished

DSN = "host=127.0.0.1 port={} user=tidemark dbname=tidemark"


@asynccontextmanager
async def client(world: World, *setup: str, autocommit: bool = True):
    async with serving(world) as port:
        async with await psycopg.AsyncConnection.connect(DSN.format(port), autocommit=True) as connection:
            for each in setup:
                await connection.execute(each)
            await connection.set_autocommit(autocommit)
            yield connection


def on_a_loop(test):
    """``test``, which awaits, for a runner that does not."""

    @wraps(test)
    def run(*args, **named):
        finished(test(*args, **named))

    return run


async def rows(connection, query: str, params: tuple | None = None) -> list[tuple]:
    return await (await connection.execute(query, params)).fetchall()


async def copied(connection, statement: str, *data: bytes) -> str:
    async with connection.cursor() as cursor:
        async with cursor.copy(statement) as copy:
            for each in data:
                await copy.write(each)
        return cursor.statusmessage


@pytest.fixture
def small_blocks():
    """Loads of many blocks without many bytes."""
    with patch.object(loads, "BLOCK_BYTES", 1_000):
        yield


@on_a_loop
async def test_a_load_of_many_blocks_is_one_commit(small_blocks):
    world = World()
    async with client(world, "create table t (a int, b text)") as c:
        before = world.oracle_topic.end
        data = b"".join(b"%d\trow %d\n" % (n, n) for n in range(1_000))
        pieces = [data[at : at + 337] for at in range(0, len(data), 337)]
        assert await copied(c, "copy t from stdin", *pieces) == "COPY 1000"
        assert world.store.writes > 5
        commits = [each for each in world.oracle_topic.read(before) if b"env.data" in each.value]
        assert len(commits) == 1
        assert await rows(c, "select count(*), sum(a), min(b) from t") == [(1000, 499500, "row 0")]


@on_a_loop
async def test_a_load_that_fails_late_leaves_nothing_and_says_where(small_blocks):
    world = World()
    async with client(world, "create table t (a int not null, b text)") as c:
        data = b"".join(b"%d\trow %d\n" % (n, n) for n in range(1_000))
        with pytest.raises(psycopg.errors.InvalidTextRepresentation) as wrong:
            await copied(c, "copy t from stdin", data, b"x\tlast\n")
        assert wrong.value.diag.context == 'COPY t, line 1001, column a: "x"'
        with pytest.raises(psycopg.errors.NotNullViolation) as wrong:
            await copied(c, "copy t from stdin", data, b"\\N\tlast\n")
        assert wrong.value.diag.context == 'COPY t, line 1001: "\\N\tlast"'
        assert wrong.value.diag.message_detail == "Failing row contains (null, last)."
        with pytest.raises(ZeroDivisionError):
            async with c.cursor() as cursor, cursor.copy("copy t from stdin") as copy:
                await copy.write(data)
                raise ZeroDivisionError
        assert world.store.writes >= 3
        assert await rows(c, "select count(*) from t") == [(0,)]


@pytest.mark.parametrize("size", [1_000, 1 << 20])
@on_a_loop
async def test_copy_in_a_block_is_of_the_block(size):
    with patch.object(loads, "BLOCK_BYTES", size):
        setup = "create table t (a int, b text)", "create table u (a int)"
        async with client(World(), *setup, autocommit=False) as c:
            data = b"".join(b"%d\trow %d\n" % (n, n) for n in range(200))
            await copied(c, "copy t from stdin", data)
            await c.execute("insert into u values (1)")
            await c.rollback()
            assert await rows(c, "select (select count(*) from t), (select count(*) from u)") == [(0, 0)]
            await c.rollback()
            await copied(c, "copy t from stdin", data)
            await c.execute("savepoint s")
            await copied(c, "copy u from stdin", b"1\n2\n")
            assert await rows(c, "select count(*) from u") == [(2,)]
            await c.execute("rollback to s")
            await copied(c, "copy u from stdin", b"3\n")
            if size == 1_000:  # what is not here any more cannot be read before it is committed
                with pytest.raises(psycopg.errors.ProgramLimitExceeded):
                    async with c.transaction():
                        await rows(c, "select count(*) from t")
            else:
                assert await rows(c, "select count(*) from t") == [(200,)]
            await c.commit()
            assert await rows(c, "select (select count(*) from t), (select sum(a) from u)") == [(200, 3)]


@on_a_loop
async def test_columns_that_are_left_out_have_their_defaults():
    setup = (
        "create sequence s",
        "create table t "
        "(i bigint generated always as identity, n bigint default nextval('s'), d text default 'x', a int)",
    )
    async with client(World(), *setup) as c:
        assert await copied(c, "copy t (a) from stdin where a <> 2", b"1\n2\n3\n") == "COPY 2"
        assert await copied(c, "copy t (i, a) from stdin", b"70\t4\n") == "COPY 1"
        found = await rows(c, "select a, i, d from t order by a")
        assert [each[0] for each in found] == [1, 3, 4] and found[2][1] == 70 and {each[2] for each in found} == {"x"}
        numbers = [each for (each,) in await rows(c, "select n from t")]
        assert len(set(numbers)) == 3 and None not in numbers


@on_a_loop
async def test_how_far_it_is(small_blocks):
    query = "select pid, relid::regclass::text, command, type, bytes_processed > 1000, tuples_processed, "
    query += "tuples_excluded from pg_stat_progress_copy"
    async with serving(World()) as port:
        async with (
            await psycopg.AsyncConnection.connect(DSN.format(port), autocommit=True) as c,
            await psycopg.AsyncConnection.connect(DSN.format(port), autocommit=True) as other,
        ):
            await c.execute("create table t (a int)")
            async with c.cursor() as cursor, cursor.copy("copy t from stdin where a <> 7") as copy:
                await copy.write(b"1\n7\n" * 20_000)
                while not (found := await rows(other, query))[0][5]:
                    pass
                assert found[0][:5] == (c.info.backend_pid, "t", "COPY FROM", "PIPE", True)
                assert 0 < found[0][5] == found[0][6] <= 20_000
            assert await rows(other, query) == []


@on_a_loop
async def test_who_may_not():
    async with client(World(), "create table t (a int)") as c:
        await c.execute("set default_transaction_read_only = on")
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction, match="cannot execute COPY FROM in a read-only"):
            await copied(c, "copy t from stdin", b"1\n")
        async with c.cursor() as cursor, cursor.copy("copy t to stdout") as copy:
            assert [each async for each in copy] == []
        await c.execute("set default_transaction_read_only = off")
        for statement in ("prepare p as copy t from stdin", "declare c cursor with hold for copy t to stdout"):
            with pytest.raises(psycopg.errors.SyntaxError):
                await c.execute(statement)
        with pytest.raises(psycopg.errors.InsufficientPrivilege) as refused:
            await c.execute("copy t from '/etc/passwd'")
        assert "\\copy" in refused.value.diag.message_hint
        with pytest.raises(psycopg.errors.WrongObjectType):
            await c.execute("explain copy t to stdout")


@on_a_loop
async def test_a_table_that_changes_meanwhile_takes_nothing():
    async with serving(World()) as port:
        async with (
            await psycopg.AsyncConnection.connect(DSN.format(port), autocommit=True) as c,
            await psycopg.AsyncConnection.connect(DSN.format(port), autocommit=True) as other,
        ):
            await c.execute("create table t (a int)")
            with pytest.raises(psycopg.errors.SerializationFailure):
                async with c.cursor() as cursor, cursor.copy("copy t from stdin") as copy:
                    await copy.write(b"1\n")
                    await copy.write(b"2\n" * 100_000)  # so that the server has begun
                    await other.execute("alter table t add column b int")
            with pytest.raises(psycopg.errors.UndefinedTable):
                async with c.cursor() as cursor, cursor.copy("copy t from stdin") as copy:
                    await copy.write(b"1\t2\n" * 100_000)
                    await other.execute("drop table t")


async def keyed(connection) -> None:
    await connection.execute("create table k (a int primary key, b text unique)")
    await connection.execute("insert into k values (7, 'seven'), (8, null)")


@pytest.mark.parametrize("data, line", [
    (b"1\tx\n2\ty\n1\tz\n", 3),  # of two rows of the load
    (b"1\tx\n2\tx\n", 2),
    (b"1\tx\n8\tz\n1\ty\n", 2),  # there before, and told before what comes behind it
    (b"1\tx\n2\tseven\n", 2),
    (b"".join(b"%d\t\\N\n" % n for n in range(100, 1_000)) + b"7\tx\n", 901),
])
@on_a_loop
async def test_a_load_keeps_keys(small_blocks, data, line):
    async with client(World()) as c:
        await keyed(c)
        with pytest.raises(psycopg.errors.UniqueViolation) as refused:
            await copied(c, "copy k from stdin", data)
        assert refused.value.diag.context.startswith(f"COPY k, line {line}")
        assert await rows(c, "select * from k order by a") == [(7, "seven"), (8, None)]
        many = b"".join(b"%d\tt%d\n" % (n, n) for n in range(100, 700))
        assert await copied(c, "copy k from stdin", b"1\t\\N\n2\t\\N\n", many) == "COPY 602"
        with pytest.raises(psycopg.errors.UniqueViolation):
            await c.execute("insert into k values (650, 'new')")
        with pytest.raises(psycopg.errors.UniqueViolation):
            await c.execute("insert into k values (900, 't650')")


@on_a_loop
async def test_keys_of_a_load_are_of_its_block(small_blocks):
    async with client(World()) as c:
        await keyed(c)
        await c.execute("begin")
        await c.execute("insert into k values (1, 'one')")
        with pytest.raises(psycopg.errors.UniqueViolation):
            await copied(c, "copy k from stdin", b"2\ttwo\n1\tx\n")
        await c.execute("rollback")
        await c.execute("begin")
        await c.execute("delete from k where a = 7")
        many = b"".join(b"%d\tt%d\n" % (n, n) for n in range(100, 700))
        await copied(c, "copy k from stdin", b"3\tx\n", many)
        with pytest.raises(psycopg.errors.UniqueViolation):
            await copied(c, "copy k from stdin", b"300\ty\n")
        await c.execute("rollback")
        await c.execute("begin")
        await c.execute("delete from k where a = 7")
        await copied(c, "copy k from stdin", b"7\ttaken away, so free\n")
        with pytest.raises(psycopg.errors.UniqueViolation):
            await copied(c, "copy k from stdin", b"7\tmine\n")
        await c.execute("rollback")
        assert await rows(c, "select a from k order by a") == [(7,), (8,)]
        await c.execute("begin")
        await c.execute("truncate k")
        await copied(c, "copy k from stdin", b"8\tnew\n")
        await c.execute("commit")
        assert await rows(c, "select * from k") == [(8, "new")]


@on_a_loop
async def test_of_a_load_and_who_writes_its_keys_meanwhile_one_wins(small_blocks):
    async with serving(World()) as port:
        async with (
            await psycopg.AsyncConnection.connect(DSN.format(port), autocommit=True) as c,
            await psycopg.AsyncConnection.connect(DSN.format(port), autocommit=True) as other,
        ):
            await keyed(c)
            begun = "select coalesce(max(tuples_processed), 0) >= 2 from pg_stat_progress_copy"
            for count in (100, 5_000):  # of more keys than a commit names, too
                more = b"".join(b"%d\t%s%d\n" % (100 + n, b"t" * 500, n) for n in range(count))  # a client gathers
                with pytest.raises(psycopg.errors.SerializationFailure):
                    async with c.cursor() as cursor, cursor.copy("copy k from stdin") as copy:
                        await copy.write(b"1\tx\n2\ty\n" + more)
                        while not (await rows(other, begun))[0][0]:
                            pass
                        await other.execute("insert into k values (2, 'theirs')")
                assert await rows(c, "select a from k order by a") == [(2,), (7,), (8,)]
                await other.execute("delete from k where a = 2")


@on_a_loop
async def test_psycopg_writes_and_reads_rows():
    setup = ("create table t (a int, b text, c numeric(6,2), d timestamptz, e int[])",)
    async with client(World(), *setup) as c, c.cursor() as cursor:
        async with cursor.copy("copy t from stdin") as copy:
            await copy.write_row((1, "tab\tand\nnewline\\", "1.50", "2024-01-31 10:00:00+02", [1, None]))
            await copy.write_row((2, None, None, None, None))
        async with cursor.copy("copy t from stdin binary") as copy:
            copy.set_types(["int4", "text", "numeric", "timestamptz", "int4[]"])
            await copy.write_row((3, "binary", 7, None, [4]))
        async with cursor.copy("copy (select a, b, c from t order by a) to stdout") as copy:
            copy.set_types(["int4", "text", "numeric"])
            read = [each async for each in copy.rows()]
        async with cursor.copy("copy (select a, e from t order by a) to stdout binary") as copy:
            copy.set_types(["int4", "int4[]"])
            binary = [each async for each in copy.rows()]
        assert [each[:2] for each in read] == [(1, "tab\tand\nnewline\\"), (2, None), (3, "binary")]
        assert binary == [(1, [1, None]), (2, None), (3, [4])]


@needs_psql
@on_a_loop
async def test_psql_copies_files_and_scripts(tmp_path):
    there, back = tmp_path / "rows.csv", tmp_path / "back.csv"
    there.write_text('a,b\n1,one\n2,"two, or ""so"""\n3,\n')
    script = tmp_path / "script.sql"
    script.write_text("copy t (a) from stdin;\n10\n11\n\\.\nselect count(*) from t;\ncopy t (a) to stdout;\n")
    async with serving(World()) as port:
        commands = (
            "create table t (a int, b text)", f"\\copy t from '{there}' csv header",
            f"\\copy (select * from t order by a) to '{back}' csv header", f"\\i {script}",
        )  # fmt: skip
        out, err = await psql(port, *commands)
    assert err == ""
    assert back.read_text() == there.read_text()
    assert out.splitlines()[:3] == ["CREATE TABLE", "COPY 3", "COPY 3"]
    assert sorted(out.splitlines()[-5:]) == ["1", "10", "11", "2", "3"]


@on_a_loop
async def test_a_client_that_goes_leaves_nothing_visible_and_nobody_waiting(small_blocks):
    async with serving(World()) as port:
        async with await psycopg.AsyncConnection.connect(DSN.format(port), autocommit=True) as c:
            await c.execute("create table t (a int)")
            gone = await psycopg.AsyncConnection.connect(DSN.format(port), autocommit=True)
            cursor = gone.cursor()
            async with asyncio.timeout(10):
                with pytest.raises(psycopg.OperationalError):
                    async with cursor.copy("copy t from stdin") as copy:
                        for _ in range(50):
                            await copy.write(b"1\n" * 1_000)
                        gone.pgconn.finish()
                        await copy.write(b"2\n" * 100_000)
            assert await rows(c, "select count(*) from t") == [(0,)]
            await copied(c, "copy t from stdin", b"7\n")
            assert await rows(c, "select a from t") == [(7,)]


@pytest.mark.parametrize(("alter", "columns"), [("drop column b", ["a"]), ("rename column b to c", ["a", "c"])])
def test_a_table_that_is_altered_while_it_is_copied_out_is_copied_as_it_is_then(alter, columns):
    """It was 42703 for a column that the statement does not name."""

    async def story(world: World):
        async with world.adapter() as a:
            await a.sql("create table t (a int, b int)")
            copies = a.executor.copies
            prepare = copies._prepare

            async def after_the_change(session, text):
                copies._prepare = prepare
                await a.sql(f"alter table t {alter}")
                return await prepare(session, text)

            copies._prepare = after_the_change
            prepared = await a.executor.prepare(a.session, "copy t to stdout")
            result = await a.executor.run(a.session, prepared, ())
            assert [each.name for each in result.copy.result.columns] == columns

    finished(story(World()))
