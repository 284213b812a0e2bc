"""COPY FROM of a million rows, beside PostgreSQL's of the same data in the same run.

A broker and an adapter, and nothing beside them: what a load costs is theirs alone.  The client sends what it has in
memory, in pieces of 64 KiB as drivers do.  A load counts until its commit is acknowledged; ours is confirmed by the
broker, Postgres's by fsync.  ``python -m bench.copying`` prints the figures.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import psycopg

from bench.figure import Figure, table
from bench.peers import Absent, postgres
from catalog_log.bootstrap import create_environment
from embedded.broker import Broker
from embedded.child import Child, ChildSpec
from embedded.jars import ensure_jars
from embedded.layout import JARS
from embedded.ports import HOST, free_ports
from journal.names import TopicNames

ROOT = Path(__file__).resolve().parents[1]

ROWS, PIECE = 1_000_000, 64 << 10
ROUNDS = 3
CREATE = "CREATE TABLE {} (id bigint, name text, price numeric(10,2), at timestamp, ok boolean)"
NAMES = {"text": "COPY FROM, text", "csv": "COPY FROM, CSV with quotes"}
AIM = "≥ 200,000 rows/s"


def data(form: str) -> list[bytes]:
    """The rows in pieces."""
    made = bytearray()
    for n in range(ROWS):
        at = f"2024-01-{n % 28 + 1:02d} 10:{n % 60:02d}:{n % 59:02d}"
        price, ok = f"{n % 1000}.{n % 100:02d}", "t" if n % 2 else "f"
        if form == "csv":
            made += f'{n},"name, number {n}",{price},{at},{ok}\n'.encode()
        else:
            made += f"{n}\tname number {n}\t{price}\t{at}\t{ok}\n".encode()
    return [bytes(made[at : at + PIECE]) for at in range(0, len(made), PIECE)]


def figures(chosen: Callable[[str], bool] = lambda _name: True) -> list[Figure]:
    found: list[Figure] = []
    with adapter() as dsn:
        for form, name in NAMES.items():
            if not chosen(name):
                continue
            rows = data(form)
            load = partial(_load_s, pieces=rows, form=form)
            try:
                with postgres() as peer:
                    ours, theirs = _in_turn(partial(load, dsn), partial(load, peer.dsn))
                limit, what, note = ROWS / theirs, "PostgreSQL's COPY, the same rows", ""
            except Absent as error:
                ours, limit, what, note = min(load(dsn) for _ in range(ROUNDS)), None, "PostgreSQL", str(error)
            found.append(Figure(name, ROWS / ours, limit, what, "rows/s", "more", ROUNDS, note, AIM))
    return found


def _in_turn(ours: Callable[[], float], theirs: Callable[[], float]) -> tuple[float, float]:
    """The best of each: whatever else the machine does only makes a round slower."""
    rounds = [(ours(), theirs()) for _ in range(ROUNDS)]
    return min(mine for mine, _ in rounds), min(other for _, other in rounds)


def _load_s(dsn: str, pieces: list[bytes], form: str) -> float:
    with psycopg.connect(dsn, autocommit=True) as connection:
        name = f"loaded_{time.monotonic_ns()}"
        connection.execute(CREATE.format(name))
        with connection.cursor() as cursor:
            begun = time.monotonic()
            with cursor.copy(f"COPY {name} FROM STDIN (FORMAT {form})") as copy:
                for piece in pieces:
                    copy.write(piece)
            took = time.monotonic() - begun
        if cursor.rowcount not in (-1, ROWS):
            raise RuntimeError(f"{cursor.rowcount} rows instead of {ROWS}")
        connection.execute(f"DROP TABLE {name}")
    return took


@contextmanager
def adapter() -> Iterator[str]:
    """The address of an adapter that has a broker."""
    with tempfile.TemporaryDirectory(prefix="tidemark-bench-") as directory, ExitStack() as stack:
        place = Path(directory)
        broker = Broker(place / "broker", ensure_jars(JARS), *free_ports(2), place / "broker.log")
        _started(stack, broker.prepare())
        create_environment(broker.bootstrap, TopicNames("bench"), 1)
        port = free_ports(1)[0]
        argv = [
            sys.executable, "-P", "-m", "adapter", "--kafka", broker.bootstrap, "--env", "bench",
            "--host", HOST, "--port", str(port),
        ]  # fmt: skip
        _started(stack, ChildSpec("adapter", argv, place / "adapter.log", {"PYTHONPATH": str(ROOT)}))
        yield f"postgresql://tidemark@{HOST}:{port}/tidemark"


def _started(stack: ExitStack, spec: ChildSpec) -> None:
    child = Child(spec)
    stack.callback(child.stop)
    child.wait_ready()


if __name__ == "__main__":
    print(table(figures()))
