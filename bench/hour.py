"""``python -m bench.hour``: an hour of inserts and of updates, and what lies on the disk meanwhile, as table and plot.

Beside each other, in rows a second that two cores have room for: single-row inserts into one table, and updates by key
of a table whose rows stay as many.  A minute is a point.  What the plots show:

- *write amplification*: bytes that all processes wrote to the disk, since the first point, for each byte of a row that
  a client wrote (the row as ``COPY`` has it): broker, files and what merges them, images, scratch;
- *space amplification* of the updated table: changes that its files hold for each row that is there of them;
- *read amplification* of it: changes that a read goes through, beside its files too, for each row that is there;
- the data directory's size, and what of it are files of settled rows.  The inserted rows stay, so that part grows.

In the end every row that was acknowledged is counted.
"""

from __future__ import annotations

import argparse
import csv
import os
import random
import re
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

import psycopg

from bench.plot import plot, svg, top_of
from embedded.ports import free_ports
from embedded.stack import Settings, Stack, running
from journal.errors import FatalLog, Unavailable

TABLE = Path(__file__).with_name("hour.csv")
PLOT = Path(__file__).with_name("hour.svg")

INSERTS, UPDATES = 500, 100
"""A second."""
INSERTING, UPDATING = 8, 4
"""Sessions: each statement takes some 4 and 6 ms, so that they have room for twice as much."""
ITEMS = 20_000
POINT_S = 60.0
READS = 5
"""At each point, of the updated table."""
READ = "SELECT count(*), max(length(note)) FROM items"
"""Of all rows, by what no index answers."""

MIB = 1 << 20

Turn = Callable[[psycopg.Connection, random.Random, int, int], int]
"""A statement of a session's: by its number and how many it has done; the bytes of the row."""

FILES = (
    "SELECT object_name, files, file_bytes, coalesce(amplification, 1), file_changes FROM tm_internal.storage"
    " WHERE object_name IN ('items', 'logged')"
)
TOLD_S = 30.0
LOOK_S = 0.5

BESIDE = re.compile(r"([\d,]+) changes? (?:beside them|in memory)")


class Point(NamedTuple):
    minutes: float
    inserted: int
    updated: int
    given: int
    """Bytes of rows, of clients."""
    written: int
    """Bytes that went to the disk."""
    directory: int
    broker: int
    store: int
    """Bytes there now, of all, of topics and of files."""
    item_files: int
    item_bytes: int
    item_amplification: float
    """Of the updated table's files."""
    item_changes: int
    """What files hold of the updated table, and what is read besides."""
    logged_files: int
    logged_bytes: int
    read_ms: float


class Load:
    """What sessions do until :meth:`stop`; counted are acknowledged rows."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._over = threading.Event()
        self._lock = threading.Lock()
        self.inserted = self.updated = self.given = 0
        self.failed: list[BaseException] = []
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        for count, per_s, turn in ((INSERTING, INSERTS, self._insert), (UPDATING, UPDATES, self._update)):
            for number in range(count):
                thread = threading.Thread(target=self._run, args=(turn, number, per_s / count), daemon=True)
                self._threads.append(thread)
                thread.start()

    def stop(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _run(self, turn: Turn, number: int, per_s: float) -> None:
        try:
            with psycopg.connect(self._dsn, autocommit=True, prepare_threshold=1) as session:
                choice, begun = random.Random(number), time.monotonic()
                for n in range(sys.maxsize):
                    if self._over.wait(max(0.0, begun + n / per_s - time.monotonic())):
                        return
                    size = turn(session, choice, number, n)
                    with self._lock:
                        self.given += size
        except BaseException as error:
            self.failed.append(error)

    def _insert(self, session: psycopg.Connection, choice: random.Random, number: int, n: int) -> int:
        row = (number << 40 | n, n % 1_000, f"what happened, {choice.randrange(1 << 30):x}")
        session.execute("INSERT INTO logged VALUES (%s, %s, %s)", row)
        with self._lock:
            self.inserted += 1
        return _size(row)

    def _update(self, session: psycopg.Connection, choice: random.Random, number: int, n: int) -> int:
        # Each session has rows of its own, so that none waits for another.
        key, note = choice.randrange(ITEMS // UPDATING) * UPDATING + number, f"said {choice.randrange(1 << 30):x}"
        session.execute("UPDATE items SET n = n + 1, note = %s WHERE id = %s", (note, key))
        with self._lock:
            self.updated += 1
        return _size((key, n, note))


def _size(row: tuple) -> int:
    return len("\t".join(map(str, row))) + 1


def measure(stack: Stack, minutes: float) -> list[Point]:
    """A point a minute.  Raises what a session raised, and ``FatalLog`` where a row is missing or there twice."""
    with psycopg.connect(stack.dsn(), autocommit=True) as session:
        session.execute("CREATE TABLE logged (id bigint NOT NULL, kind int4 NOT NULL, what text NOT NULL)")
        session.execute("CREATE TABLE items (id int4 PRIMARY KEY, n int8 NOT NULL, note text NOT NULL)")
        session.execute(f"INSERT INTO items SELECT i, 0, 'new' FROM generate_series(0, {ITEMS - 1}) AS g(i)")
        session.execute("CREATE MATERIALIZED VIEW kinds AS SELECT kind, count(*) AS n FROM logged GROUP BY kind")
    load, found = Load(stack.dsn()), []
    disk = Disk(stack)
    with _running(load):
        begun = time.monotonic()
        while (now := time.monotonic()) < begun + 60 * minutes + POINT_S:
            found.append(point := _point(stack, load, disk, (now - begun) / 60))
            print(*point, sep="\t", file=sys.stderr, flush=True)
            if load.failed:
                raise load.failed[0]
            until = begun + len(found) * POINT_S
            time.sleep(max(0.0, until - time.monotonic()))  # a point is a minute of time
    if load.failed:
        raise load.failed[0]
    _check(stack, load)
    return found


@contextmanager
def _running(load: Load) -> Iterator[None]:
    load.start()
    try:
        yield
    finally:
        load.stop()


class Disk:
    """What processes of a stack wrote, also those that are no more."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack

    def written(self) -> int:
        """What children wrote that ended is with their parents, which have waited for them."""
        found = 0
        for pid in _with_children(set(self._stack.supervisor.pids().values())):
            try:
                told = Path(f"/proc/{pid}/io").read_text()
            except OSError:  # it has ended since
                continue
            found += int(dict(line.split(": ") for line in told.splitlines())["write_bytes"])
        return found


def _with_children(pids: set[int]) -> set[int]:
    """Also Spark's JVM and its Pythons."""
    parents = {}
    for each in Path("/proc").iterdir():
        if each.name.isdigit():
            try:
                parents[int(each.name)] = int((each / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    found = set(pids)
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def _point(stack: Stack, load: Load, disk: Disk, minutes: float) -> Point:
    with psycopg.connect(stack.dsn(), autocommit=True) as session:
        files = _files(session)
        taken = []
        for _ in range(READS):
            begun = time.perf_counter()
            session.execute(READ)
            taken.append(1000 * (time.perf_counter() - begun))
        said = "\n".join(row[0] for row in session.execute(f"EXPLAIN {READ}"))
    beside = BESIDE.search(said)
    if beside is None:
        raise FatalLog(f"EXPLAIN does not say what is read: {said}")
    data = stack.settings.data
    items, logged = files["items"], files["logged"]
    return Point(
        round(minutes, 2), load.inserted, load.updated, load.given, disk.written(), _bytes(data),
        _bytes(data / "broker"), _bytes(data / "store"), items[0], items[1],
        round(items[2], 3), items[3] + int(beside[1].replace(",", "")), logged[0], logged[1], round(median(taken), 1),
    )  # fmt: skip


def _files(session: psycopg.Connection) -> dict[str, list]:
    """Of both tables how many files they have, their bytes, amplification and changes."""
    until = time.monotonic() + TOLD_S
    while True:
        found = {name: counts for name, *counts in session.execute(FILES)}
        if all(counts[0] is not None for counts in found.values()):
            return found
        if time.monotonic() > until:
            raise Unavailable(f"the storage controller said nothing of files in {TOLD_S:.0f} s")
        time.sleep(LOOK_S)  # it does not answer while it is busy


def _bytes(directory: Path) -> int:
    """On the disk, as ``du`` counts them: an index that Kafka has made room for has none."""
    found = 0
    for base, _, names in os.walk(directory):
        for name in names:
            try:
                found += os.lstat(os.path.join(base, name)).st_blocks * 512
            except OSError:  # it has gone since
                continue
    return found


def _check(stack: Stack, load: Load) -> None:
    with psycopg.connect(stack.dsn(), autocommit=True) as session:
        [logged] = session.execute("SELECT count(*), count(DISTINCT id) FROM logged")
        [items] = session.execute("SELECT count(*), sum(n)::int8 FROM items")
        [kinds] = session.execute("SELECT sum(n)::int8 FROM kinds")
    due = ((load.inserted,) * 2, (ITEMS, load.updated), (load.inserted,))
    if (logged, items, kinds) != due:
        raise FatalLog(f"{(logged, items, kinds)} are there, and should be {due}")


def drawn(points: list[Point]) -> str:
    """From the second point on, since what is written is counted from the first."""
    first, *points = points
    at = [point.minutes for point in points]
    given = [point.given - first.given for point in points]
    written = {"write": [(p.written - first.written) / size for p, size in zip(points, given, strict=True)]}
    amplified = {
        "space: changes in the updated table's files for each row of them": [p.item_amplification for p in points],
        "read: changes for each row of the updated table": [p.item_changes / ITEMS for p in points],
    }
    sizes = {
        "all": [p.directory / MIB for p in points], "topics": [p.broker / MIB for p in points],
        "files of settled rows": [p.store / MIB for p in points],
    }  # fmt: skip
    rate = f"{INSERTS} inserts and {UPDATES} updates a second, over minutes"
    return svg(
        plot(f"bytes that went to the disk for each byte of a row, {rate}", at, written, top_of(0)),
        plot(f"amplification, {rate}", at, amplified, top_of(1)),
        plot(f"the data directory, MiB, {rate}", at, sizes, top_of(2)),
        plot(f"a read of the updated table, ms by p50, {rate}", at, {"read": [p.read_ms for p in points]}, top_of(3)),
    )


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.hour", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60, help="how long (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=TABLE.parent, help="where table and plot go (default: beside it)")
    arguments = parser.parse_args(argv)
    if arguments.minutes < 2:
        parser.error("a plot takes two minutes at least")
    arguments.out.mkdir(parents=True, exist_ok=True)  # now, and not after the hour
    with tempfile.TemporaryDirectory(prefix="tidemark-bench-") as data:
        port, broker_port = free_ports(2)
        with running(Settings(data=Path(data), env="bench", port=port, broker_port=broker_port)) as stack:
            points = measure(stack, arguments.minutes)
    with (arguments.out / TABLE.name).open("w", newline="") as file:
        csv.writer(file).writerows([Point._fields, *points])
    (arguments.out / PLOT.name).write_text(drawn(points))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
