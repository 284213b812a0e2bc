"""Sessions that change ranges of one table which do not meet: how many changes a second, and how many are refused.

    python -m bench.ranges DSN [DSN…] --kafka HOST:PORT [--sessions 16] [--seconds 20] [--rows 100]

Two tables with the same rows: of one the ranges are of its primary key, so commits name them; of the other they are of
a column that is no key, and each commit hangs on the whole table, as all commits of ranges did before.
"""

from __future__ import annotations

import argparse
import threading
import time
from contextlib import closing

import psycopg

from catalog_log.log import CatalogLog
from journal.names import TopicNames
from oracle.client import Oracle


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("dsn", nargs="+")
    parser.add_argument("--kafka", required=True)
    parser.add_argument("--env", default="tidemark")
    parser.add_argument("--sessions", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--rows", type=int, default=100)
    given = parser.parse_args()
    with psycopg.connect(given.dsn[0], autocommit=True) as session:
        for table, key in (("ranges_keyed", "id"), ("ranges_plain", "other")):
            session.execute(f"drop table if exists {table}".encode())
            session.execute(f"create table {table} (id int, other int, n int, primary key ({key}))".encode())
            rows = given.sessions * given.rows
            session.execute(f"insert into {table} select x, x, 0 from generate_series(0, {rows - 1}) x".encode())
    for table in ("ranges_plain", "ranges_keyed"):
        before = refused_by_the_log(given)
        done, refused = run(given, table)
        tries, per_s = refused_by_the_log(given) - before, done / given.seconds
        what = f"{per_s:.1f} changes a second of {given.rows // 10} rows"
        print(f"{table}: {what}; {tries} tries lost, {refused} refused")


def refused_by_the_log(given: argparse.Namespace) -> int:
    """Parts of commits that were refused since the environment began."""
    names = TopicNames(given.env)
    with closing(CatalogLog.open(given.kafka, names, "bench-ranges")) as catalog:
        with closing(Oracle.open(given.kafka, names, "bench-ranges", catalog.upper)) as oracle:
            return oracle.barrier().result(30).stats.parts_refused


def run(given: argparse.Namespace, table: str) -> tuple[int, int]:
    """How many statements were acknowledged, and how many refused, each after all of its tries."""
    counts = [[0, 0] for _ in range(given.sessions)]
    text = f"update {table} set n = n + 1 where id between %s and %s".encode()
    ends = time.monotonic() + given.seconds

    def client(number: int) -> None:
        first = number * given.rows
        with psycopg.connect(given.dsn[number % len(given.dsn)], autocommit=True) as session:
            while time.monotonic() < ends:
                try:
                    session.execute(text, (first, first + given.rows // 10 - 1))
                    counts[number][0] += 1
                except psycopg.errors.SerializationFailure:
                    counts[number][1] += 1

    threads = [threading.Thread(target=client, args=(number,)) for number in range(given.sessions)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return sum(done for done, _ in counts), sum(refused for _, refused in counts)


if __name__ == "__main__":
    main()
