"""Real clients against the server: psycopg 3, psql and pgbench."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import shutil
import subprocess
from datetime import UTC, date, datetime
from decimal import Decimal

import psycopg
import pytest
from psycopg import errors
from psycopg.pq import TransactionStatus

from adapter.server.authentication import Exchange, Scram, WrongPassword
from tests.adapter_wire.loopback import Loopback

VALUES = {
    "bool": True, "int2": -7, "int4": 2**31 - 1, "int8": -(2**63), "float4": 1.5, "float8": 0.1,
    "numeric(20,4)": Decimal("12.3400"),
    "text": "héllo 'x'", "bytea": b"\0\xff", "date": date(2024, 2, 29),
    "timestamp": datetime(2024, 2, 29, 1, 2, 3, 456),
    "timestamptz": datetime(2024, 2, 29, 1, 2, 3, tzinfo=UTC),
}  # fmt: skip


@pytest.fixture
def connection(server):
    with psycopg.connect(server.dsn(), autocommit=True) as c:
        yield c


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("name", VALUES)
def test_values_there_and_back(connection, name, binary):
    placeholder = "%b" if binary else "%t"
    cursor = connection.cursor(binary=binary)
    row = cursor.execute(f"select {placeholder}::{name}, {placeholder}::{name}", (VALUES[name], None)).fetchone()
    assert row == (VALUES[name], None)


def test_thousands_of_rows_in_both_formats(connection):
    for binary in (False, True):
        rows = connection.cursor(binary=binary).execute("select * from series(12345)").fetchall()
        assert rows == [(i, f"row {i}") for i in range(12345)]


def test_streaming_stops_early(server, connection):
    cursor = connection.cursor()
    for index, row in enumerate(cursor.stream("select * from series(1000000)")):
        assert row[0] == index
        if index == 10:
            break
    assert connection.execute("select 1").fetchone() == (1,)
    assert server.executor.batches_closed == 1


def test_prepared_automatically(connection):
    for n in range(20):
        assert connection.execute("select %s::int4", (n,)).fetchone() == (n,)
    assert connection.execute("select %s::int4", (1,), prepare=True).fetchone() == (1,)


def test_prepared_statements_are_evicted(connection):
    connection.prepare_threshold, connection.prepared_max = 0, 3
    for n in range(20):
        assert connection.execute(f"select {n}, %s::int4", (n,)).fetchone() == (n, n)


def test_pipeline(connection):
    with connection.pipeline():
        cursors = [connection.execute("select %s::int4", (n,)) for n in range(300)]
    assert [c.fetchone()[0] for c in cursors] == list(range(300))


def test_an_error_in_a_pipeline(connection):
    with pytest.raises(errors.UndefinedColumn), connection.pipeline():
        connection.execute("select 1")
        connection.execute("select oops")
        connection.execute("select 2")
    assert connection.execute("select 1").fetchone() == (1,)


def test_executemany_is_one_commit(server, connection):
    connection.cursor().executemany("insert into t values (%s, %s)", [(n, str(n)) for n in range(500)])
    assert server.executor.commits == [500]
    assert len(connection.execute("select * from t").fetchall()) == 500


def test_transactions(server, connection):
    with pytest.raises(ZeroDivisionError), connection.transaction():
        connection.execute("insert into t values (1, 'a')")
        raise ZeroDivisionError
    with connection.transaction():
        connection.execute("insert into t values (2, 'b')")
        with pytest.raises(errors.UndefinedColumn), connection.transaction():  # a savepoint
            connection.execute("insert into t values (3, 'c')")
            connection.execute("select oops")
    assert server.executor.table == [(2, "b")]
    assert connection.info.transaction_status is TransactionStatus.IDLE


def test_errors_have_their_classes(connection):
    with pytest.raises(errors.DivisionByZero) as e:
        connection.execute("fail 22012")
    assert (e.value.diag.message_detail, e.value.diag.message_hint) == ("the detail", "the hint")
    with pytest.raises(errors.InFailedSqlTransaction):
        connection.execute("begin")
        with pytest.raises(errors.UndefinedColumn):
            connection.execute("select oops")
        connection.execute("select 1")


def test_notices(connection):
    heard = []
    connection.add_notice_handler(lambda diag: heard.append((diag.severity, diag.message_primary, diag.message_hint)))
    connection.execute("notice")
    assert heard == [("NOTICE", "mind the gap", "look down")]


def test_cancel(server, connection):
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        running = pool.submit(connection.execute, "hang")
        server.call(server.executor.hanging.wait())
        connection.cancel_safe(timeout=10)
        with pytest.raises(errors.QueryCanceled):
            running.result(timeout=10)
    assert connection.execute("select 1").fetchone() == (1,)


def test_many_sessions_at_once(server):
    async def one(number: int) -> None:
        async with await psycopg.AsyncConnection.connect(server.dsn(), autocommit=True) as c:
            for n in range(20):
                cursor = await c.execute("select %s::int4, %s::int4", (number, n))
                assert await cursor.fetchone() == (number, n)

    async def main() -> None:
        await asyncio.gather(*(one(n) for n in range(50)))

    asyncio.run(main())


# --- passwords ---------------------------------------------------------------------------------------------------


def test_scram():
    with Loopback(password="s3cret") as server:
        with psycopg.connect(server.dsn(password="s3cret"), autocommit=True) as c:
            assert c.execute("select 1").fetchone() == (1,)
        for given in ({"password": "wrong"}, {}):
            with pytest.raises(psycopg.OperationalError, match="password"):
                psycopg.connect(server.dsn(**given))
        with psycopg.connect(server.dsn(password="s3cret")) as c:
            assert c.execute("select 1").fetchone() == (1,)


@pytest.mark.parametrize(
    "data",
    [b"", b"\xff", b"n,,", b"n,,n=,r=", b"n,,n=,r=abc\xff", b"p=tls-unique,,n=,r=abc", b"y,,n=,r=abc,m=x", b"garbage"],
)
def test_hostile_scram(data):
    exchange: Exchange = Scram("x").exchange()
    with pytest.raises(WrongPassword):
        exchange.first(data)
        exchange.final(b"c=biws,r=abc,p=AAAA")


# --- Postgres's own programs -------------------------------------------------------------------------------------


def run(program: str, server: Loopback, *arguments: str, **environment: str) -> subprocess.CompletedProcess:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    return subprocess.run(
        [program, "-h", server.host, "-p", str(server.port), "-U", "tester", *arguments],
        capture_output=True, text=True, timeout=60, env={**os.environ, "PGCONNECT_TIMEOUT": "10", **environment},
    )  # fmt: skip


def test_psql(server):
    done = run("psql", server, "-X", "-At", "-c", "select 1, 'a'; select null", "-c", "begin", "-c", "rollback")
    assert (done.returncode, done.stdout, done.stderr) == (0, "1|a\n\nBEGIN\nROLLBACK\n", "")


def test_psql_errors(server):
    done = run("psql", server, "-X", "-c", "select oops")
    assert done.returncode == 1
    assert 'ERROR:  column "oops" does not exist\nLINE 1: select oops\n               ^' in done.stderr


def test_psql_fetches_in_pieces(server):
    done = run("psql", server, "-X", "-At", "-c", "select * from series(3000)")
    assert len(done.stdout.splitlines()) == 3000


def test_psql_with_a_password():
    with Loopback(password="s3cret") as server:
        assert run("psql", server, "-X", "-At", "-c", "select 1", PGPASSWORD="s3cret").stdout == "1\n"
        assert run("psql", server, "-X", "-At", "-w", "-c", "select 1").returncode == 2


@pytest.mark.parametrize("mode", ["simple", "extended", "prepared"])
def test_pgbench(server, tmp_path, mode):
    script = tmp_path / "one.sql"
    script.write_text("select 1;\n")
    done = run("pgbench", server, "-n", "-M", mode, "-f", str(script), "-c", "4", "-t", "100", "tidemark")
    assert done.returncode == 0, done.stderr
    assert "actually processed: 400/400" in done.stdout
