"""``python -m bench.takeover DIR``: how long readers of a cluster wait where its compute controller goes.

Two stacks one after the other, without and with a second controller that stands by (``Settings.stand_by``): the one
that serves is ended in three ways, in turns, while a client reads a view again and again.  Seconds of the longest of
these reads until whoever was ended is back; each must have every row.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from statistics import median

import psycopg

from embedded.ports import consecutive_ports, free_ports
from embedded.stack import BACK, COMPUTE, STAND_BY, Settings, Stack, running

WAYS = ("killed", "its JVM killed", "told to stop")
READ = "SELECT sum(n)::int8 FROM counted"
ROWS = 10_000


def main() -> int:
    made = argparse.ArgumentParser(prog="python -m bench.takeover", description=__doc__)
    made.add_argument("directory", type=Path)
    made.add_argument("--rounds", type=int, default=3)
    options = made.parse_args()
    options.directory.mkdir(parents=True, exist_ok=True)
    for stand_by in (False, True):
        waited = _waited(options.directory / ("two" if stand_by else "one"), stand_by, options.rounds)
        for way, seconds in waited.items():
            told = ", ".join(f"{each:.1f}" for each in seconds)
            print(f"{'another stands by' if stand_by else 'alone':18} {way:15} {median(seconds):5.1f} s  ({told})")
    return 0


def _waited(data: Path, stand_by: bool, rounds: int) -> dict[str, list[float]]:
    port, broker_port = consecutive_ports(1), free_ports(1)[0]
    settings = Settings(data=data, env="takeover", port=port, broker_port=broker_port, stand_by=stand_by)
    found: dict[str, list[float]] = {way: [] for way in WAYS}
    back: Counter[str] = Counter()
    with running(settings, lambda step: back.update([step.name] if step.detail in BACK else [])) as stack:
        stack.await_stand_by()
        with psycopg.connect(stack.dsn(), autocommit=True) as session:
            session.execute("CREATE TABLE rows (k int)")
            session.execute(f"INSERT INTO rows SELECT * FROM generate_series(1, {ROWS})")
            session.execute("CREATE MATERIALIZED VIEW counted AS SELECT k % 9 AS m, count(*) AS n FROM rows GROUP BY 1")
            assert session.execute(READ).fetchall() == [(ROWS,)]
            serves, other = COMPUTE, STAND_BY
            for _ in range(rounds):
                for way in WAYS:
                    found[way].append(_waits(stack, session, back, serves, way))
                    if stand_by:
                        serves, other = other, serves
    return found


def _waits(stack: Stack, session: psycopg.Connection, back: Counter[str], serves: str, way: str) -> float:
    seen, target = back[serves], stack.supervisor.pids()[serves]
    if way == WAYS[1]:
        target = int(subprocess.check_output(["pgrep", "-P", str(target), "java"]))
    os.kill(target, signal.SIGTERM if way == WAYS[2] else signal.SIGKILL)
    longest = 0.0
    while back[serves] == seen:
        began = time.monotonic()
        found = session.execute(READ).fetchall()
        longest = max(longest, time.monotonic() - began)
        assert found == [(ROWS,)], found
    return longest


if __name__ == "__main__":
    sys.exit(main())
