"""How many round trips to the broker a statement waits for, with 100 ms put between every process and its broker.

Where a round trip takes 100 ms nothing else counts, so a statement's time by that of one raw append is the number of
those that it waits for one after the other.  The whole stack goes that way, controllers and subscribers too, since
what they append stands in a client's way as well.  A statement and the next follow at once, ``BLOCK`` of them, then as
many raw appends: by turns, each would find every reader at rest, as it is for no client that has something to do.
"""

from __future__ import annotations

import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import psycopg

from bench.delay import DelayedPath
from bench.figure import Figure, p50, percentile
from bench.raw import RawAppend
from embedded.broker import Broker
from embedded.child import Child
from embedded.jars import ensure_jars
from embedded.layout import JARS
from embedded.ports import free_ports
from embedded.stack import Settings, running

ROUND_TRIP_S = 0.1
BLOCK = 10
BLOCKS = 4
WARMUP = 5


class Row(NamedTuple):
    """``aim``: in round trips."""

    name: str
    sql: str
    aim: str


def rows(schema: str) -> list[Row]:
    """The read comes first: by then the view is at rest."""
    return [
        Row("indexed SELECT, strict, 100 ms away", f"SELECT n FROM {schema}.v WHERE g = 1", "≤ 1.2"),
        Row("CREATE TABLE, 100 ms away", f"CREATE TABLE {schema}.c{{}} (a int)", "≤ 2.2"),
        Row("INSERT of one row, 100 ms away", f"INSERT INTO {schema}.alone VALUES ({{}}, 'x')", "≤ 1.2"),
    ]


def figures(wanted: Callable[[str], bool] = lambda _name: True) -> list[Figure]:
    """Starts a broker and a stack of its own."""
    schema = f"bench_{uuid.uuid4().hex[:8]}"
    chosen = [row for row in rows(schema) if wanted(row.name)]
    if not chosen:
        return []
    with tempfile.TemporaryDirectory(prefix="tidemark-bench-") as data, far_broker(Path(data)) as path:
        store = (Path(data) / "store").as_uri()
        settings = Settings(
            data=Path(data) / "stack", env="bench", port=free_ports(1)[0], kafka=path.address, store=store
        )
        with running(settings) as stack, psycopg.connect(stack.dsn(), autocommit=True) as connection:
            cursor = connection.cursor()
            _prepare(cursor, schema)
            raw = RawAppend(path.address)
            try:
                path.round_trip_s = ROUND_TRIP_S
                return [_figure(row, cursor, raw) for row in chosen]
            finally:
                path.round_trip_s = 0.0  # nobody measures how long it takes to stop
                raw.close()


@contextmanager
def far_broker(data: Path) -> Iterator[DelayedPath]:
    """A broker whose clients hear of a path to it alone, which takes no time until it is told to."""
    port, controller_port, path_port = free_ports(3)
    jars = ensure_jars(JARS)
    broker = Broker(data / "broker", jars, port, controller_port, data / "broker.log")
    with DelayedPath(path_port, port) as path:
        broker.advertised = path.address
        child = Child(broker.prepare())
        try:
            child.wait_ready()
            yield path
        finally:
            child.stop()


def _prepare(cursor: psycopg.Cursor, schema: str) -> None:
    cursor.execute(f"CREATE SCHEMA {schema}")
    for table in ("t", "alone"):
        cursor.execute(f"CREATE TABLE {schema}.{table} (k int NOT NULL, v text)")
        cursor.execute(f"INSERT INTO {schema}.{table} SELECT 1, 'a'")
    query = f"SELECT k % 10 AS g, count(*) AS n FROM {schema}.t GROUP BY k % 10"
    cursor.execute(f"CREATE MATERIALIZED VIEW {schema}.v AS {query}")
    cursor.execute(f"CREATE INDEX i ON {schema}.v (g)")
    cursor.execute(f"SELECT n FROM {schema}.v WHERE g = 1")  # waits until the view is hydrated


def _figure(row: Row, cursor: psycopg.Cursor, raw: RawAppend) -> Figure:
    numbers = iter(range(10**9))

    def once() -> float:
        sql = row.sql.format(next(numbers))
        begun = time.perf_counter()
        cursor.execute(sql)
        return time.perf_counter() - begun

    ours, limit = [], []
    for _ in range(WARMUP):
        once(), raw.once()
    for _ in range(BLOCKS):
        ours += [once() * 1e3 for _ in range(BLOCK)]
        limit += [raw.once() * 1e3 for _ in range(BLOCK)]
    note = f"ratio: round trips; least {min(ours):.4g} ms, p90 {percentile(ours, 0.9):.4g} ms"
    limit_is = "a raw acks=all append, as far away"
    return Figure(row.name, p50(ours), p50(limit), limit_is, "ms", "less", len(ours), note, row.aim)
