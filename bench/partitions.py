"""What partitions of collections' topics cost and give on one broker: ``python -m bench.partitions``.

A broker of its own for each number: how long a hundred topics take to be made, the files and the space that they
have, what a single row costs (p50 of some hundred, one after the other), how many rows a second large writes have, and
how long the broker takes to start again on them.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from pathlib import Path

from catalog_log.bootstrap import create_environment
from catalog_log.objects import Column
from collection.columns import table_from_rows
from collection.writer import CollectionWriter
from embedded.broker import Broker
from embedded.jars import ensure_jars
from embedded.layout import JARS
from embedded.ports import free_ports
from embedded.supervisor import Supervisor
from journal.names import TopicNames

TOPICS = 100
ROWS = 300
LARGE, LARGE_ROWS = 8, 200_000
COLUMNS = (Column("id", "int8"), Column("t", "text"))


def measured(partitions: int) -> dict[str, float]:
    """Of topics of so many."""
    with tempfile.TemporaryDirectory(prefix="tidemark-bench-") as directory:
        broker = Broker(Path(directory), ensure_jars(JARS), *free_ports(2))
        supervisor = Supervisor(lambda _event: None)
        try:
            supervisor.start("broker", broker.prepare).result()
            return _on(broker, supervisor, TopicNames("bench"), partitions)
        finally:
            supervisor.stop()


def _on(broker: Broker, supervisor: Supervisor, names: TopicNames, partitions: int) -> dict[str, float]:
    create_environment(broker.bootstrap, names, 1)
    writer = CollectionWriter(broker.bootstrap, names, partitions=partitions)
    try:
        begun = time.monotonic()
        for done in [writer.write(f"u{n}", COLUMNS, [(n, "x")], "a") for n in range(TOPICS)]:
            done.result()
        made_s = time.monotonic() - begun
        times = []
        for n in range(ROWS):
            begun = time.monotonic()
            writer.write("u1", COLUMNS, [(n, "x")], "a").result()
            times.append(1000 * (time.monotonic() - begun))
        large = table_from_rows(COLUMNS, [(n, "x" * 100) for n in range(LARGE_ROWS)])
        begun = time.monotonic()
        for _ in range(LARGE):
            writer.write("u1", COLUMNS, large, "a").result()
        large_s = time.monotonic() - begun
    finally:
        writer.close()
    found = [path for path in broker.directory.rglob("*") if path.is_file() and ".data." in path.parent.name]
    pid = supervisor.pids()["broker"]
    handles = len(os.listdir(f"/proc/{pid}/fd"))
    supervisor.stop()
    begun = time.monotonic()
    again = Supervisor(lambda _event: None)
    try:
        again.start("broker", broker.prepare).result()
        start_s = time.monotonic() - begun
    finally:
        again.stop()
    return {
        "partitions": partitions, "made_s": made_s, "files": len(found),
        "disk_mb": sum(path.stat().st_blocks * 512 for path in found) / 1e6, "handles": handles,
        "row_p50_ms": statistics.median(times), "large_rows_s": LARGE * LARGE_ROWS / large_s, "start_s": start_s,
    }  # fmt: skip


if __name__ == "__main__":
    for count in (1, 3, 6):
        print({key: round(value, 2) for key, value in measured(count).items()}, flush=True)
