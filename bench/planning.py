"""What long statements cost: those who send them, and everybody else.

What 5,000 terms and 3,000 rows of literals take to be read and planned is asked by Parse, which does that and nothing
else, and held against a Parse of ``SELECT 1``; likewise a join of ten tables.  The worst of a
session's ``SELECT 1`` while another session has a hostile statement planned is held against its worst while nobody
does; an INSERT of 2,000 rows against a round trip to Kafka; one whose row is written in it against one whose row comes
beside it.
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
ONE = "INSERT of one row of literals, p50"
ONES = 300
PARSES = 5
JOINED = 10
JOIN = "a ten-way join, planned"

TERMS, PAIRS, CONSTANT_ROWS, SIGNS = 5_000, 2_500, 3_000, 1_000


def long(schema: str) -> dict[str, str]:
    """Long statements, by what their figures are called."""
    where = f"SELECT k FROM {schema}.t WHERE "
    return {
        f"{TERMS:,} terms k = n OR, planned": where + " OR ".join(f"k = {n}" for n in range(TERMS)),
        f"{TERMS:,} terms k < n OR, planned": where + " OR ".join(f"k < {n}" for n in range(TERMS)),
        f"{PAIRS:,} pairs (k = n AND a = m) OR, planned": where
        + " OR ".join(f"(k = {n} AND a = {n + 1})" for n in range(PAIRS)),
        f"{PAIRS:,} pairs that have one in common, planned": where
        + " OR ".join(f"(k = {n} AND v = 'x')" for n in range(PAIRS)),
        f"{PAIRS:,} rows in (k, v) IN, planned": where
        + "(k, v) IN (" + ", ".join(f"({n}, 'v{n}')" for n in range(PAIRS)) + ")",
        f"{TERMS:,} items of an IN, planned": where + "k IN (" + ", ".join(map(str, range(TERMS))) + ")",
        f"{TERMS:,} terms NOT (k = n) OR, planned": where + " OR ".join(f"NOT (k = {n})" for n in range(TERMS)),
        f"{TERMS:,} terms k BETWEEN OR, planned": where
        + " OR ".join(f"k BETWEEN {n} AND {n + 5}" for n in range(TERMS)),
        f"{TERMS:,} terms k = $n OR, planned": where + " OR ".join(f"k = ${n + 1}" for n in range(TERMS)),
        f"{PAIRS:,} arms of a CASE, planned": "SELECT CASE "
        + " ".join(f"WHEN k = {n} THEN 'v{n}'" for n in range(PAIRS)) + f" END FROM {schema}.t",
        f"{CONSTANT_ROWS:,} rows of VALUES, planned": "SELECT * FROM (VALUES "
        + ", ".join(f"({n}, 'v{n}')" for n in range(CONSTANT_ROWS)) + ") AS q (a, b)",
        f"a sum of {SIGNS:,}, planned": f"SELECT {' + '.join(['k'] * SIGNS)} FROM {schema}.t",
    }  # fmt: skip


def join(schema: str, n: int) -> str:
    """Of ten tables, with a group and an order; each ``n`` has names of its own, so no other's plan will do."""
    joins = " ".join(f"JOIN {schema}.j{i} ON j{i}.k = j{i - 1}.a" for i in range(1, JOINED))
    return (
        f"SELECT j0.k AS k{n}, j0.v, sum(j{JOINED - 1}.n) AS s{n} FROM {schema}.j0 {joins}"
        f" WHERE j3.v = 'x' AND j5.n > {n} GROUP BY j0.k, j0.v ORDER BY s{n}"
    )


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
    schema = f"bench_{uuid.uuid4().hex[:8]}"
    planned = {name: text for name, text in long(schema).items() if wanted(name)}
    names = [name for name in (BESIDE, LITERALS, PARAMETERS, ONE, JOIN) if wanted(name)]
    if not names and not planned:
        return []
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
                if ONE in names:
                    found.append(_one(schema, connection))
                if JOIN in names:
                    found.append(_joined(schema, connection))
                # A text that was planned before is known: each says something else behind its last word.
                return found + [
                    _parsed(name, [f"{text} LIMIT {n + 1}" for n in range(PARSES)], connection)
                    for name, text in planned.items()
                ]
            finally:
                connection.execute(f"DROP SCHEMA {schema} CASCADE")
    finally:
        raw.close()


def _joined(schema: str, connection: psycopg.Connection) -> Figure:
    for n in range(JOINED):
        connection.execute(f"CREATE TABLE {schema}.j{n} (k int NOT NULL, a int, v text, n numeric(10,2))")
    return _parsed(JOIN, [join(schema, n) for n in range(3 * PARSES)], connection, "≤ 20 ms")


def _parsed(name: str, texts: list[str], connection: psycopg.Connection, aim: str = "≤ 200 ms") -> Figure:
    """The best of several: what it takes, not what else the machine does."""

    def took_ms(statement: str) -> float:
        begun = time.perf_counter()
        result = connection.pgconn.prepare(b"", statement.encode())
        found = (time.perf_counter() - begun) * 1e3
        if result.status != psycopg.pq.ExecStatus.COMMAND_OK:
            raise RuntimeError(f"{name}: {result.get_error_message()}")
        return found

    ours = [took_ms(text) for text in texts]
    limit = [took_ms("SELECT 1") for _ in range(PARSES)]
    note = f"worst {max(ours):.3g} ms"
    return Figure(name, min(ours), min(limit), "a Parse of SELECT 1", "ms", "less", len(texts), note, aim)


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


def _one(schema: str, connection: psycopg.Connection) -> Figure:
    """Both in the extended protocol, unnamed, so that each is parsed and described anew."""
    numbers = iter(range(10**9))
    insert = f"INSERT INTO {schema}.t (k, a, v, n) VALUES "

    def literals() -> float:
        n = next(numbers)
        return took(f"{insert}({n}, {n}, 'v{n}', {n % 100}.25)", [])

    def parameters() -> float:
        n = next(numbers)
        return took(f"{insert}($1, $2, $3, $4)", [b"%d" % n, b"%d" % n, b"v%d" % n, b"%d.25" % (n % 100)])

    def took(text: str, values: list[bytes]) -> float:
        begun = time.perf_counter()
        result = connection.pgconn.exec_params(text.encode(), values)
        found = time.perf_counter() - begun
        if result.status != psycopg.pq.ExecStatus.COMMAND_OK:
            raise RuntimeError(f"{text}: {result.get_error_message()}")
        return found

    ours, limit = interleaved_ms(literals, parameters, ONES, warmup=20)
    note = f"p99 {percentile(ours, 0.99):.3g} ms"
    return Figure(ONE, p50(ours), p50(limit), "the same row as parameters", "ms", "less", ONES, note, "ratio ≤ 1.1")


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
