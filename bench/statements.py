"""Statements through psycopg, held against the round trips to Kafka that each of them cannot do without."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable

import psycopg

from bench.figure import Figure, interleaved_ms, p50
from bench.raw import RawRoundTrip

STATEMENTS = 200
PEEKS_ON_SPARK = 30


def figures(bootstrap: str, dsn: str) -> list[Figure]:
    """On a running stack; what is made is dropped again."""
    name = f"bench_{uuid.uuid4().hex[:8]}"
    raw = RawRoundTrip(bootstrap)
    try:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}")
            try:
                return _figures(connection, name, raw)
            finally:
                connection.execute(f"DROP SCHEMA {name} CASCADE")
    finally:
        raw.close()


def _figures(connection: psycopg.Connection, schema: str, raw: RawRoundTrip) -> list[Figure]:
    cursor = connection.cursor()
    cursor.execute(f"CREATE TABLE {schema}.t (k int NOT NULL, v text)")
    cursor.execute(
        f"CREATE MATERIALIZED VIEW {schema}.v AS SELECT k % 10 AS g, count(*) AS n FROM {schema}.t GROUP BY k % 10"
    )
    cursor.execute(f"CREATE INDEX i ON {schema}.v (g)")
    cursor.execute(f"INSERT INTO {schema}.t SELECT 1, 'a'")
    cursor.execute(f"SELECT n FROM {schema}.v WHERE g = 1")  # waits until the view is hydrated
    numbers = iter(range(10**9))

    def timed(run: Callable[[], object]) -> Callable[[], float]:
        def once() -> float:
            begun = time.perf_counter()
            run()
            return time.perf_counter() - begun

        return once

    def strict(sql: Callable[[], str], params: Callable[[], tuple] = tuple) -> Callable[[], float]:
        return timed(lambda: cursor.execute(sql(), params() or None))

    def measure(name: str, once: Callable[[], float], trips: int, what: str, n: int = STATEMENTS) -> Figure:
        ours, limit = interleaved_ms(once, raw.once, n, warmup=5)
        return Figure(name, p50(ours), trips * p50(limit), what, "ms", "less", n)

    two, one = "2 raw round trips", "1 raw round trip"
    results = [
        measure(
            "CREATE TABLE, p50",
            strict(lambda: f"CREATE TABLE {schema}.c{next(numbers)} (a int)"),
            2,
            f"{two} (append, apply)",
        ),
    ]
    # The reads come before the inserts, so that the view is at rest and only the path itself is measured.
    results += [
        measure("SELECT 1, p50", strict(lambda: "SELECT 1"), 1, f"{one} (it needs none)"),
        measure(
            "indexed peek, strict, p50", strict(lambda: f"SELECT n FROM {schema}.v WHERE g = 1"), 1, f"{one} (barrier)"
        ),
    ]
    cursor.execute("SET transaction_isolation = 'serializable'")
    results.append(
        measure(
            "indexed peek, serializable, p50",
            strict(lambda: f"SELECT n FROM {schema}.v WHERE g = 1"),
            1,
            f"{one} (it needs none)",
        )
    )
    cursor.execute("SET transaction_isolation = 'strict serializable'")
    results.append(
        measure(
            "peek on Spark, strict, p50",
            strict(lambda: f"SELECT k % 10 AS g, count(*) FROM {schema}.t GROUP BY 1"),
            1,
            f"{one} (barrier)",
            PEEKS_ON_SPARK,
        )  # fmt: skip
    )
    results.append(
        measure(
            "INSERT of one row, p50",
            strict(lambda: f"INSERT INTO {schema}.t VALUES (%s, 'x')", lambda: (next(numbers),)),
            2,
            f"{two} (rows, commit)",
        )  # fmt: skip
    )
    return results
