"""What long statements cost: those who send them, and everybody else.

The worst of a session's ``SELECT 1`` while another session has a hostile statement planned is held against its worst
while nobody does; an INSERT of 2,000 rows against a round trip to Kafka.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from decimal import Decimal

import psycopg

from bench.figure import Figure, interleaved_ms, p50, percentile
from bench.raw import RawRoundTrip

ROWS = 2_000
INSERTS = 15
READ_S = 8.0
"""Seconds of SELECT 1 with a hostile session, and as long without."""

BESIDE = "SELECT 1 beside a hostile planner, worst"
LITERALS = "INSERT of 2,000 rows of literals, p50"
PARAMETERS = "INSERT of 2,000 rows of cast parameters, p50"


def hostile(schema: str) -> list[str]:
    """Statements that take long to plan or to refuse, none of which is run by Spark: their tables are nowhere."""
    return [
        "EXPLAIN SELECT " + "+".join(["k"] * 5_000) + f" FROM {schema}.t",
        f"EXPLAIN SELECT k FROM {schema}.t WHERE k IN (" + ",".join(map(str, range(20_000))) + ")",
        f"EXPLAIN SELECT k FROM {schema}.t WHERE " + " OR ".join(f"k = {n}" for n in range(2_000)),
        "EXPLAIN " + " UNION ALL ".join([f"SELECT k FROM {schema}.t"] * 200),
        "SELECT " + "(" * 5_000 + "1" + ")" * 5_000,
    ]


def figures(bootstrap: str, dsn: str, wanted: Callable[[str], bool] = lambda _name: True) -> list[Figure]:
    """On a running stack; what is made is dropped again."""
    names = [name for name in (BESIDE, LITERALS, PARAMETERS) if wanted(name)]
    if not names:
        return []
    schema = f"bench_{uuid.uuid4().hex[:8]}"
    raw = RawRoundTrip(bootstrap)
    try:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {schema}")
            try:
                connection.execute(f"CREATE TABLE {schema}.t (k int NOT NULL, a bigint, v text, n numeric(10,2))")
                found = []
                if BESIDE in names:
                    found.append(_beside(dsn, schema, connection))
                for name, insert in ((LITERALS, _literals), (PARAMETERS, _parameters)):
                    if name in names:
                        found.append(_inserted(name, insert(schema), connection, raw))
                return found
            finally:
                connection.execute(f"DROP SCHEMA {schema} CASCADE")
    finally:
        raw.close()


def _beside(dsn: str, schema: str, connection: psycopg.Connection) -> Figure:
    alone = _reads_ms(connection)
    with _asking(dsn, hostile(schema)):
        beside = _reads_ms(connection)
    note = f"p50 {p50(beside):.3g} ms, p99 {percentile(beside, 0.99):.3g} ms"
    limit_is = "its worst with nobody beside"
    return Figure(BESIDE, max(beside), max(alone), limit_is, "ms", "less", len(beside), note, "≤ 50 ms")


def _reads_ms(connection: psycopg.Connection) -> list[float]:
    connection.execute("SELECT 1")
    found, end = [], time.perf_counter() + READ_S
    while (begun := time.perf_counter()) < end:
        connection.execute("SELECT 1")
        found.append((time.perf_counter() - begun) * 1e3)
    return found


@contextmanager
def _asking(dsn: str, statements: list[str]) -> Iterator[None]:
    """One session that asks ``statements`` in turn for as long as the block takes, whatever it is told."""
    over = threading.Event()

    def ask() -> None:
        with psycopg.connect(dsn, autocommit=True) as session:
            while not over.is_set():
                for each in statements:
                    with suppress(psycopg.errors.StatementTooComplex, psycopg.errors.ProgramLimitExceeded):
                        session.execute(each)
                    if over.is_set():
                        return

    thread = threading.Thread(target=ask, name="hostile")
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _literals(schema: str) -> Callable[[psycopg.Connection, int], None]:
    def insert(connection: psycopg.Connection, n: int) -> None:
        rows = ",".join(f"({n * ROWS + k}, {k}, 'v{k}', 1.25)" for k in range(ROWS))
        connection.execute(f"INSERT INTO {schema}.t (k, a, v, n) VALUES {rows}")

    return insert


def _parameters(schema: str) -> Callable[[psycopg.Connection, int], None]:
    """As SQLAlchemy with psycopg sends it."""
    row = "(%s::INTEGER, %s::BIGINT, %s::VARCHAR, %s::NUMERIC(10, 2))"
    text = f"INSERT INTO {schema}.t (k, a, v, n) VALUES {', '.join([row] * ROWS)}"

    def insert(connection: psycopg.Connection, n: int) -> None:
        values = [each for k in range(ROWS) for each in (n * ROWS + k, k, f"v{k}", Decimal("1.25"))]
        connection.execute(text, values)

    return insert


def _inserted(
    name: str, insert: Callable[[psycopg.Connection, int], None], connection: psycopg.Connection, raw: RawRoundTrip
) -> Figure:
    numbers = iter(range(10**9))

    def once() -> float:
        begun = time.perf_counter()
        insert(connection, next(numbers))
        return time.perf_counter() - begun

    ours, limit = interleaved_ms(once, raw.once, INSERTS, warmup=2)
    note = f"p99 {percentile(ours, 0.99):.3g} ms; the client's own time counts"
    return Figure(name, p50(ours), p50(limit), "a raw produce→consume", "ms", "less", INSERTS, note, "≤ 150 ms")
