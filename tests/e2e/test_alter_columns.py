"""Columns come and go while rows come in and views are kept: every answer is that of a list of rows in this process."""

from __future__ import annotations

import os
import random
import signal
import uuid
from collections import Counter

import psycopg
import pytest

from embedded.stack import Stack
from tests.e2e.conftest import Steps

pytestmark = [pytest.mark.integration, pytest.mark.spark]

STEPS = 24
BACK_S_MAX = 120.0


class Kept:
    """The table as it should be: rows by column ids, of which some have names now."""

    def __init__(self) -> None:
        self.columns = {"k": 1, "n": 2, "extra": 3}
        self.missing: dict[int, object] = {}
        self.rows: list[dict[int, object]] = []

    def value(self, column_id: int, serial: int) -> object:
        """What the row of that number has."""
        if column_id <= 2:
            return (serial % 3, serial)[column_id - 1]
        return serial if isinstance(self.missing.get(column_id), int) else f"r{serial}"

    def all(self) -> Counter:
        return Counter(tuple(self._at(row, i) for i in self.columns.values()) for row in self.rows)

    def _at(self, row: dict[int, object], column_id: int) -> object:
        return row[column_id] if column_id in row else self.missing.get(column_id)

    def sums(self) -> Counter:
        found: dict[object, int] = {}
        for row in self.rows:
            found[row[1]] = found.get(row[1], 0) + row[2]
        return Counter(found.items())

    def first(self) -> Counter:
        """What ``*`` meant when the table was made."""
        return Counter((row[1], row[2], self._at(row, 3)) for row in self.rows)


def test_columns_come_and_go_while_rows_come_in(stack: Stack, steps: Steps) -> None:
    rng = random.Random(14)
    table, kept = f"t_{uuid.uuid4().hex[:8]}", Kept()
    # Nothing is prepared: as in Postgres, a prepared ``SELECT *`` is refused once it would give other columns.
    sessions = [psycopg.connect(stack.dsn(n), autocommit=True, prepare_threshold=None) for n in (0, 1)]
    with sessions[0] as one, sessions[1] as two:
        one.execute(f"CREATE TABLE {table} (k int, n int NOT NULL, extra text DEFAULT 'e')")
        one.execute(f"CREATE VIEW {table}_star AS SELECT * FROM {table}")
        one.execute(f"CREATE MATERIALIZED VIEW {table}_kept AS SELECT * FROM {table}_star WHERE n >= 0")
        one.execute(f"CREATE MATERIALIZED VIEW {table}_sums AS SELECT k, sum(n) AS s FROM {table} GROUP BY k")
        one.execute(f"CREATE MATERIALIZED VIEW {table}_top AS SELECT k, n FROM {table} ORDER BY n DESC, k LIMIT 3")
        one.execute(f"CREATE INDEX {table}_k ON {table} (k)")
        next_id, serial = 4, 0
        for step in range(STEPS):
            session, other = rng.sample((one, two), 2)
            for _ in range(rng.randrange(1, 3)):
                serial += 1
                given = {i: kept.value(i, serial) for i in kept.columns.values()}
                names = ", ".join(f'"{name}"' for name in kept.columns)
                values = ", ".join(["%s"] * len(kept.columns))
                session.execute(f"INSERT INTO {table} ({names}) VALUES ({values})", list(given.values()))
                kept.rows.append(given)
            choice = step % 6
            free = [i for i in kept.columns.values() if i > 3]
            if choice in (0, 1):
                name = f"c{rng.randrange(3)}"
                if name not in kept.columns:
                    # Both where the diff of a row would be for whoever knows of fewer columns.
                    was = next_id if next_id % 2 else f"was {next_id}"
                    kind = "bigint" if next_id % 2 else "text"
                    session.execute(f"ALTER TABLE {table} ADD COLUMN {name} {kind} DEFAULT '{was}' NOT NULL")
                    kept.columns[name], kept.missing[next_id] = next_id, was
                    next_id += 1
            elif choice == 2 and free:
                name = rng.choice([n for n, i in kept.columns.items() if i in free])
                session.execute(f"ALTER TABLE {table} DROP COLUMN {name}")
                del kept.columns[name]
            elif choice == 3:
                name, new = rng.choice(list(kept.columns)), f"x{step}"
                session.execute(f"ALTER TABLE {table} RENAME COLUMN {name} TO {new}")
                kept.columns = {new if n == name else n: i for n, i in kept.columns.items()}
            elif choice == 4 and step == 16:
                seen = steps.count("compute", "serves again")
                os.kill(stack.supervisor.pids()["compute"], signal.SIGKILL)
                assert steps.wait_for_another("compute", "serves again", seen, BACK_S_MAX)
            by = next(n for n, i in kept.columns.items() if i == 1)
            assert Counter(other.execute(f"SELECT * FROM {table}").fetchall()) == kept.all(), step
            looked_up = other.execute(f"SELECT * FROM {table} WHERE {by} = %s", (serial % 3,)).fetchall()
            place = list(kept.columns.values()).index(1)
            assert Counter(looked_up) == Counter({r: c for r, c in kept.all().items() if r[place] == serial % 3}), step
            assert Counter(other.execute(f"SELECT * FROM {table}_star").fetchall()) == kept.first(), step
            assert Counter(other.execute(f"SELECT * FROM {table}_kept").fetchall()) == kept.first(), step
            assert Counter(other.execute(f"SELECT * FROM {table}_sums").fetchall()) == kept.sums(), step
            top = sorted(((row[1], row[2]) for row in kept.rows), key=lambda r: (-r[1], r[0]))[:3]
            assert sorted(other.execute(f"SELECT * FROM {table}_top").fetchall()) == sorted(top), step
        assert {i for i in range(4, next_id)} - set(kept.columns.values()), "some went"
        one.execute(f"DROP TABLE {table} CASCADE")
