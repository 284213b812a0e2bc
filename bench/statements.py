"""Statements through psycopg, one at a time, held against a round trip to Kafka."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from typing import NamedTuple

import psycopg

from bench.figure import Figure, interleaved_ms, p50, percentile
from bench.raw import RawRoundTrip

STATEMENTS = 200
PEEKS_ON_SPARK = 30
KEYS = 1_000


SMALL = "SELECT without an index, strict, p50"
"""Of what is small: the cluster's process answers it by itself."""
SPARK = "the same by Spark (gear = 'spark'), p50"
UPDATED = "UPDATE by key, p50"
"""The row is looked up by its PRIMARY KEY, then one commit takes it back and puts the new one."""
LITERALS = "UPDATE by key of literals, p50"
"""Each is another text, and planned anew."""
READ = "INSERT of one row that a view reads, p50"
"""The view ticks after each of them, on the same cores as the next."""


class Row(NamedTuple):
    """``trips``: what the limit is, in raw round trips."""

    name: str
    sql: str
    aim: str
    trips: str = "a raw produce→consume"
    serializable: bool = False
    numbered: bool = False
    """Whether each has a number of its own in its text."""
    parameter: bool = False
    """Whether it has a number of its own as its parameter."""
    samples: int = STATEMENTS
    gear: str = "auto"


def rows(schema: str) -> list[Row]:
    """The reads come before the INSERTs, so that the view is at rest and only the path itself is measured."""
    indexed = f"SELECT n FROM {schema}.v WHERE g = 1"
    grouped = f"SELECT k % 10 AS g, count(*) FROM {schema}.t GROUP BY 1"
    return [
        Row("CREATE TABLE, p50", f"CREATE TABLE {schema}.c{{}} (a int)", "≤ 3", numbered=True),
        Row("SELECT 1, p50", "SELECT 1", "≤ 1.5 ms"),
        Row("indexed SELECT, strict, p50", indexed, "≤ 1.5 ms"),
        Row("indexed SELECT, serializable, p50", indexed, "≤ 1.5 ms", serializable=True),
        Row(SMALL, grouped, ""),
        Row(SPARK, grouped, "", samples=PEEKS_ON_SPARK, gear="spark"),
        Row("INSERT of one row, p50", f"INSERT INTO {schema}.alone VALUES ({{}}, 'x')", "≤ 3", numbered=True),
        Row(UPDATED, f"UPDATE {schema}.keyed SET v = %s WHERE k = 7", "≤ 3", parameter=True),
        Row(LITERALS, f"UPDATE {schema}.keyed SET v = 'x{{}}' WHERE k = 7", "", numbered=True),
        Row(READ, f"INSERT INTO {schema}.t VALUES ({{}}, 'x')", "≤ 3", numbered=True),
    ]


def figures(bootstrap: str, dsn: str, wanted: Callable[[str], bool] = lambda _name: True) -> list[Figure]:
    """On a running stack; what is made is dropped again."""
    schema = f"bench_{uuid.uuid4().hex[:8]}"
    chosen = [row for row in rows(schema) if wanted(row.name)]
    if not chosen:
        return []
    raw = RawRoundTrip(bootstrap)
    try:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {schema}")
            try:
                _prepare(connection.cursor(), schema)
                return [_figure(row, connection.cursor(), raw) for row in chosen]
            finally:
                connection.execute(f"DROP SCHEMA {schema} CASCADE")
    finally:
        raw.close()


def _prepare(cursor: psycopg.Cursor, schema: str) -> None:
    for table in ("t", "alone"):
        cursor.execute(f"CREATE TABLE {schema}.{table} (k int NOT NULL, v text)")
    query = f"SELECT k % 10 AS g, count(*) AS n FROM {schema}.t GROUP BY k % 10"
    cursor.execute(f"CREATE MATERIALIZED VIEW {schema}.v AS {query}")
    cursor.execute(f"CREATE INDEX i ON {schema}.v (g)")
    cursor.execute(f"CREATE TABLE {schema}.keyed (k int PRIMARY KEY, v text)")
    cursor.execute(f"INSERT INTO {schema}.keyed SELECT k, 'a' FROM generate_series(1, {KEYS}) AS s(k)")
    for table in ("t", "alone"):
        cursor.execute(f"INSERT INTO {schema}.{table} SELECT 1, 'a'")
    cursor.execute(f"SELECT n FROM {schema}.v WHERE g = 1")  # waits until the view is hydrated


def _figure(row: Row, cursor: psycopg.Cursor, raw: RawRoundTrip) -> Figure:
    numbers = iter(range(10**9))

    def once() -> float:
        number = next(numbers)
        sql = row.sql.format(number) if row.numbered else row.sql
        given = (f"x{number}",) if row.parameter else None
        begun = time.perf_counter()
        cursor.execute(sql, given)
        return time.perf_counter() - begun

    isolation = "serializable" if row.serializable else "strict serializable"
    cursor.execute(f"SET tidemark.isolation = '{isolation}'")
    cursor.execute(f"ALTER CLUSTER default SET (gear = '{row.gear}')")
    try:
        ours, limit = interleaved_ms(once, raw.once, row.samples, warmup=5)
    finally:
        cursor.execute("ALTER CLUSTER default RESET (gear)")
    note = f"p99 {percentile(ours, 0.99):.3g} ms"
    return Figure(row.name, p50(ours), p50(limit), row.trips, "ms", "less", row.samples, note, row.aim)
