"""Executors elsewhere read the controller's files, a piece at a time, and nobody else does."""

from __future__ import annotations

import json
import random
import socket
from collections import Counter
from decimal import Decimal
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest

from controllers.arrangements.tuples import to_rows
from controllers.changes import stamp
from controllers.compute import handing, relation
from controllers.compute.file_server import FileServer
from controllers.compute.spark_text import text
from values.time.intervals import Interval


@pytest.fixture
def served(tmp_path):
    """A server over a directory with one file of a hundred bytes."""
    (tmp_path / "tm_1.parquet").write_bytes(bytes(range(100)))
    (tmp_path.parent / "secret").write_text("not for anybody")
    server = FileServer(tmp_path, "127.0.0.1")
    yield server
    server.close()


def ask(server: FileServer, path: str, method: str = "GET", body: bytes | None = None) -> tuple[int, bytes]:
    connection = HTTPConnection("127.0.0.1", server.port, timeout=20)
    try:
        connection.request(method, path, body)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def path_of(server: FileServer, name: str = "tm_1.parquet") -> str:
    """Of a file of the directory's as WebHDFS has it."""
    found = urlsplit(server.uri(server._directory / "tm_1.parquet"))
    assert (found.scheme, found.port) == ("webhdfs", server.port)
    return "/webhdfs/v1" + found.path.replace("tm_1.parquet", name)


def test_a_file_is_found_and_read_from_anywhere(served):
    path = path_of(served)
    status, body = ask(served, f"{path}?op=GETFILESTATUS&user.name=x")
    assert status == 200 and json.loads(body)["FileStatus"]["length"] == 100
    [one] = json.loads(ask(served, f"{path}?op=LISTSTATUS")[1])["FileStatuses"]["FileStatus"]
    assert one["type"] == "FILE" and one["length"] == 100
    assert ask(served, f"{path}?op=OPEN") == (200, bytes(range(100)))
    assert ask(served, f"{path}?op=OPEN&offset=95") == (200, bytes(range(95, 100)))
    assert ask(served, f"{path}?op=OPEN&offset=10&length=5") == (200, bytes(range(10, 15)))
    assert ask(served, f"{path}?op=OPEN&offset=1000") == (200, b"")


@pytest.mark.parametrize("name", ["../secret", "%2e%2e/secret", "..%2fsecret", "", ".", "tm_2.parquet", "/etc/passwd"])
def test_nothing_else_is_served(served, name):
    status, body = ask(served, f"{path_of(served, name)}?op=OPEN")
    assert status == 404 and json.loads(body)["RemoteException"]["exception"] == "FileNotFoundException"


def test_who_was_not_told_the_secret_reads_nothing(served):
    for path in ("/webhdfs/v1/tm_1.parquet", "/tm_1.parquet", f"/webhdfs/v1/{'0' * 32}/tm_1.parquet", "/", "/%e9"):
        assert ask(served, f"{path}?op=OPEN")[0] == 404, path


@pytest.mark.parametrize("method, query", [
    ("GET", "op=DELETE"), ("GET", "op=OPEN&offset=-1"), ("GET", "op=OPEN&length=x"), ("GET", ""),
    ("PUT", "op=CREATE"), ("DELETE", "op=DELETE"), ("POST", "op=APPEND"),
])  # fmt: skip
def test_what_is_there_stays_as_it_is(served, method, query):
    assert ask(served, f"{path_of(served)}?{query}", method)[0] in (400, 501)
    assert ask(served, f"{path_of(served)}?op=OPEN") == (200, bytes(range(100)))


def test_a_file_of_a_task_is_taken_as_a_whole_and_once(served, tmp_path):
    path, data = path_of(served, "tm_2_0.parquet"), random.Random(1).randbytes(3 << 20)
    assert ask(served, path, "PUT", data)[0] == 201
    assert ask(served, f"{path}?op=OPEN") == (200, data)
    assert ask(served, path, "PUT", b"another")[0] == 400, "that of an earlier attempt stays"
    nowhere = f"/webhdfs/v1/{'0' * 32}/tm_3.parquet"
    for other in ("/webhdfs/v1/tm_3.parquet", path_of(served, "../tm_3.parquet"), nowhere):
        assert ask(served, other, "PUT", b"x")[0] == 404, other
    with socket.create_connection(("127.0.0.1", served.port)) as begun:
        begun.sendall(f"PUT {path_of(served, 'tm_4.parquet')} HTTP/1.1\r\nContent-Length: 100\r\n\r\nhalf".encode())
        begun.shutdown(socket.SHUT_WR)
        assert b" 400 " in begun.recv(4096)
    assert {each.name for each in tmp_path.iterdir()} == {"tm_1.parquet", "tm_2_0.parquet"}


@pytest.mark.spark
def test_what_is_large_goes_to_spark_as_files_that_it_reads_there(spark, tmp_path, monkeypatch):
    """A tail, what is sealed of it and a delta: each is what was put in, and none is rows of the driver's."""
    from catalog_log.objects import Column
    from controllers.compute.relation import Relation
    from tests.compute.conftest import Bench

    monkeypatch.setattr(handing, "ROWS_BYTES_MAX", 1000)
    monkeypatch.setattr(relation, "TAIL_ROWS_MAX", 600)
    kinds = {"i": "int4", "s": "text", "t": "timestamp", "tz": "timestamptz", "n": "numeric(10,2)", "a": "int4[]",
             "b": "bytea", "v": "interval", "f": "float4"}  # fmt: skip
    server = FileServer(tmp_path, "127.0.0.1")
    bench = Bench(spark, tmp_path)
    try:
        found = Relation(spark, "u1", [Column(n, t) for n, t in kinds.items()], tmp_path, server.uri)
        values = list(_values())
        for ts, rows in enumerate((values[:500], values[500:], values[:7]), start=1):
            found.append([stamp(bench.table(found, [(row, 1) for row in rows]), ts, found.types)], ts + 1)
            want = Counter(values[: 500 * ts] + (values[:7] if ts == 3 else []))
            with found.snapshot(ts) as snapshot:
                query = text(snapshot.rows())
                # What is little goes as rows: the third tail.
                assert ("LocalTableScan" in plan_of(spark, query)) == (ts == 3)
                assert Counter(to_rows(spark.sql(query).toArrow())) == want, ts
            found.maintain()
        delta = found.delta(0, 2)
        query = text(found.local(delta, "tm_delta"))
        assert Counter(row[:-1] for row in to_rows(spark.sql(query).toArrow())) == Counter(values)
        assert (tmp_path / "tm_delta.parquet").exists()
        found.handing.take_back("tm_delta")
        found.close()
        assert list(tmp_path.glob("*.parquet")) == []
    finally:
        server.close()


def plan_of(spark, query: str) -> str:
    return spark.sql(query)._jdf.queryExecution().executedPlan().toString()


def _values():
    for i in range(1000):
        micros = 1_706_706_855_600_000 + i
        yield (i, f"é'{i}", micros, micros, Decimal(i) / 4, (i, None), bytes([i % 256]), Interval(1, 2, i), 0.5)
