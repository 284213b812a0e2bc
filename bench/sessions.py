"""Many sessions at once: statements a second through pgbench, the same script on Postgres in turn with it.

pgbench is the client because it is a small program in C: on a machine of two cores a client in Python would be the
larger half of what is measured.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import NamedTuple
from urllib.parse import urlsplit

import psycopg

from bench.figure import Figure, in_turn
from bench.peers import Absent, Server, pgbench, postgres

SESSIONS = 64
SECONDS = 4
GROUPS = 1_000
SERIALIZABLE = "-c tidemark.isolation=serializable"


class Row(NamedTuple):
    """A line of the results: ``per_s_min`` is an aim in statements a second, ``None`` for "as Postgres"."""

    name: str
    script: str
    settings: str = ""
    per_s_min: int | None = None
    mode: str = "prepared"


def rows(schema: str) -> list[Row]:
    indexed = f"\\set g random(0, {GROUPS - 1})\nSELECT n FROM {schema}.v WHERE g = :g"
    number = "\\set n :n + 1\n\\set id :client_id * 1000000 + :n\n"
    return [
        Row("SELECT 1, 64 sessions, strict", "SELECT 1", per_s_min=5_000),
        Row("SELECT 1, 64 sessions, serializable", "SELECT 1", SERIALIZABLE, 10_000),
        Row("indexed SELECT, 64 sessions, strict", indexed, per_s_min=5_000),
        Row("indexed SELECT, 64 sessions, serializable", indexed, SERIALIZABLE, 10_000),
        Row("INSERT of one row, 64 sessions", f"{number}INSERT INTO {schema}.inserted VALUES (:id, 'x')"),
        Row("CREATE TABLE, 64 sessions", f"{number}CREATE TABLE {schema}.c_:id (a int)", mode="simple"),
    ]


def figures(dsn: str, wanted: Callable[[str], bool] = lambda _name: True) -> list[Figure]:
    """On a running stack; what is made is dropped again."""
    schema = f"bench_{uuid.uuid4().hex[:8]}"
    parts = urlsplit(dsn)
    ours = Server(parts.port, parts.username, parts.path[1:])
    chosen = [row for row in rows(schema) if wanted(row.name)]
    if not chosen:
        return []
    with prepared(ours, schema, "MATERIALIZED VIEW"), _peer(schema) as (peer, why):
        return [_figure(row, ours, peer, why) for row in chosen]


@contextmanager
def _peer(schema: str) -> Iterator[tuple[Server | None, str]]:
    """Postgres with the same tables, or why there is none."""
    with ExitStack() as stack:
        try:
            peer = stack.enter_context(postgres())
        except Absent as error:
            yield None, str(error)
            return
        stack.enter_context(prepared(peer, schema, "TABLE"))  # left before its server stops
        yield peer, ""


@contextmanager
def prepared(server: Server, schema: str, kind: str) -> Iterator[None]:
    """The tables, and a view at rest of ``GROUPS`` rows with an index: in Postgres an indexed table (``kind``)."""
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        cursor = connection.cursor()
        cursor.execute(f"CREATE SCHEMA {schema}")
        cursor.execute(f"CREATE TABLE {schema}.inserted (k bigint NOT NULL, v text)")
        cursor.execute(f"CREATE TABLE {schema}.t (k int NOT NULL)")
        cursor.execute(f"INSERT INTO {schema}.t SELECT g FROM generate_series(1, {2 * GROUPS}) AS s(g)")
        query = f"SELECT k % {GROUPS} AS g, count(*) AS n FROM {schema}.t GROUP BY k % {GROUPS}"
        cursor.execute(f"CREATE {kind} {schema}.v AS {query}")
        cursor.execute(f"CREATE INDEX i ON {schema}.v (g)")
        found = cursor.execute(f"SELECT n FROM {schema}.v WHERE g = 1").fetchone()  # waits until it is hydrated
        assert found == (2,), found
        try:
            yield
        finally:
            if kind != "TABLE":  # Postgres has no locks for so many at once; its whole directory goes
                cursor.execute(f"DROP SCHEMA {schema} CASCADE")


def _figure(row: Row, ours: Server, peer: Server | None, why: str) -> Figure:
    def rate(server: Server, settings: str) -> Callable[[], float]:
        rounds = iter(range(1000))

        def once() -> float:
            # Numbers begin where no earlier round of this row has been.
            first = {"n": next(rounds) * 100_000}
            given = {"variables": first, "settings": settings, "mode": row.mode}
            return pgbench(server, row.script, clients=SESSIONS, seconds=SECONDS, **given)

        return once

    mine = rate(ours, row.settings)
    mine()  # warms both sides up
    found, limit = in_turn(mine, rate(peer, "") if peer is not None else lambda: 0.0)
    aim = "as Postgres" if row.per_s_min is None else f"≥ {row.per_s_min:,}/s"
    what = "the same script on Postgres" if peer is not None else ""
    note = "" if peer is not None else why
    return Figure(row.name, found, limit or None, what, "1/s", "more", int(found * SECONDS * 2), note, aim)
