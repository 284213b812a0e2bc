"""A statement by key in a block that has written to its table, beside the same in a block that has not.

    python -m bench.own_rows DSN [--rows 100000] [--rounds 60]

In turns: a block, the statement for one key (the limit: nothing was written yet), the same for the next keys.  Both are
rolled back.  Of an UPDATE it is also what no index evaluates (CASE).
"""

from __future__ import annotations

import argparse
import time
import uuid
from collections.abc import Callable
from contextlib import closing

import psycopg

from bench.figure import Figure, p50, percentile

ROWS, ROUNDS, WARM_UP = 100_000, 60, 5
MORE = 3
"""Statements behind the first write of a block."""

PLAIN = "UPDATE {} SET n = n + 1 WHERE k = %s"
CASE = "UPDATE {} SET n = CASE WHEN n > 9 THEN n - 10 ELSE n + 91 END, s = s + 1 WHERE k = %s RETURNING n"
DELETE = "DELETE FROM {} WHERE k = %s"
SELECT = "SELECT n, s FROM {} WHERE k = %s"

STATEMENTS = {
    "UPDATE by key in a block that has written to the table": PLAIN,
    "UPDATE by key, with CASE, in a block that has written to the table": CASE,
    "DELETE by key in a block that has written to the table": DELETE,
    "SELECT by key in a block that has written to the table": SELECT,
}
NAMES = tuple(STATEMENTS)


def figures(dsn: str, wanted: Callable[[str], bool] = lambda _name: True, rows: int = ROWS, rounds: int = ROUNDS
            ) -> list[Figure]:  # fmt: skip
    """On a running stack; the table that is made is dropped again."""
    chosen = [name for name in NAMES if wanted(name)]
    if not chosen:
        return []
    table = f"bench_own_{uuid.uuid4().hex[:8]}"
    with closing(psycopg.connect(dsn, autocommit=True)) as session:
        session.execute(f"CREATE TABLE {table} (k int PRIMARY KEY, n int, s int, pad text)".encode())
        try:
            fill = f"INSERT INTO {table} SELECT g, g % 100, 0, repeat('x', 50) FROM generate_series(1, {rows}) g"
            session.execute(fill.encode())
            return [_figure(session, name, table, rows, rounds) for name in chosen]
        finally:
            session.execute(f"DROP TABLE {table}".encode())


def _figure(session: psycopg.Connection, name: str, table: str, rows: int, rounds: int) -> Figure:
    text = STATEMENTS[name].format(table).encode()
    first_ms, later_ms = [], []
    for number in range(WARM_UP + rounds):
        keys = [1 + (number * (MORE + 2) + at) * 7919 % rows for at in range(MORE + 2)]
        session.execute("BEGIN")
        session.execute(f"SELECT n FROM {table} WHERE k = %s".encode(), (keys[0],))  # the block has its timestamp
        first = _timed(session, text, keys[0])
        session.execute(f"UPDATE {table} SET s = s + 1 WHERE k = %s".encode(), (keys[1],))
        later = [_timed(session, text, key) for key in keys[2:]]
        session.execute("ROLLBACK")
        if number >= WARM_UP:
            first_ms.append(first)
            later_ms += later
    note = f"p99 {percentile(later_ms, 0.99):.4g} ms, of the limit {percentile(first_ms, 0.99):.4g} ms"
    what = f"the same before the block's first write, of {rows:,} rows"
    return Figure(name, p50(later_ms), p50(first_ms), what, "ms", "less", len(later_ms), note, "≤ 1.5")


def _timed(session: psycopg.Connection, text: bytes, key: int) -> float:
    begin = time.perf_counter()
    session.execute(text, (key,)).statusmessage  # noqa: B018 - it has been answered
    return (time.perf_counter() - begin) * 1e3


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("dsn")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args()
    for each in figures(given.dsn, rows=given.rows, rounds=given.rounds):
        print(f"{each.name}: {each.ours:.3g} ms, {each.ratio:.2f} × {each.limit_is} ({each.limit:.3g} ms); {each.note}")


if __name__ == "__main__":
    main()
