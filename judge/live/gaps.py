"""How long nobody can write after a leader is lost: ``python -m judge.live.gaps [--rounds N] [--ways kill,…]``.

Three brokers on made hosts, and three writers on the client's host, each in a tight loop: the catalog's
compare-and-append, the oracle's commit, and rows to a collection's topic.  A fault takes the leader of a journal; a
writer's gap is the longest time between two acknowledgements around it.  ``cut-off`` takes the leader from the other
brokers and leaves it to its clients: it goes on believing, and answers them.  ``slow`` leaves it all, late.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from catalog_log import model, records
from catalog_log.bootstrap import create_environment
from catalog_log.log import CatalogLog
from catalog_log.model import Setting
from catalog_log.objects import Column
from collection.writer import CollectionWriter
from embedded.jars import ensure_jars
from embedded.layout import JARS
from fleet.member import PORT
from journal.errors import Conflict, TidemarkError
from journal.names import TopicNames
from journal.topics import data_spec, ensure_topics
from judge.live.brokers import HEAL_TIMEOUT_S, REPLICATION, KafkaCluster
from judge.live.network import BROKERS, CLIENT, Network
from judge.live.proxy import Shape
from judge.live.slowness import slow_down
from oracle.client import Oracle
from oracle.model import CommitPart

WAYS = ("kill", "pause", "isolate", "cut-off", "slow")
SLOW = Shape(0.15, 0.1, 200_000.0)
"""The worst that a run's ``slow-network`` draws."""
ROWS = "u1"
HOLD_S = 8.0
"""How long the leader stays lost: longer than any gap that is allowed."""

SETTLED_S = 1.0
"""Quiet writing before each fault."""


@dataclass
class Writer:
    """One loop of writes: when each acknowledgement came, and what failed."""

    name: str
    topic: str
    write: Callable[[], object]
    acks: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def run(self, stopped: threading.Event) -> None:
        while not stopped.is_set():
            try:
                self.write()
                self.acks.append(time.monotonic())
            except Conflict:
                continue
            except TidemarkError as error:
                self.errors.append(f"{type(error).__name__}: {error.message}")

    def gap(self, lower: float, upper: float) -> float:
        """The longest silence that overlaps ``[lower, upper)``."""
        before = max((t for t in self.acks if t < lower), default=lower)
        times = [before, *(t for t in self.acks if lower <= t < upper)]
        after = min((t for t in self.acks if t >= upper), default=upper)
        times.append(after)
        return max(b - a for a, b in zip(times, times[1:], strict=False))


@contextlib.contextmanager
def writers(bootstrap: str, names: TopicNames) -> Iterator[list[Writer]]:
    """The three loops, running until the block is left."""
    create_environment(bootstrap, names, REPLICATION)
    ensure_topics(bootstrap, [data_spec(names.data(ROWS), REPLICATION)])
    catalog = CatalogLog.open(bootstrap, names, "gaps")
    oracle = Oracle.open(bootstrap, names, "gaps", catalog.upper)
    rows = CollectionWriter(bootstrap, names)
    counter = iter(range(1 << 60))
    columns = (Column("a", "int8"),)

    def append() -> object:
        upper = catalog.upper()
        put = records.put(model.SETTINGS, "gaps", Setting(str(next(counter))))
        return catalog.compare_and_append(upper, upper + 1, [put]).result(60)

    found = [
        Writer("catalog", names.catalog, append),
        Writer("oracle", names.oracle, lambda: oracle.commit(CommitPart(f"gaps-{next(counter)}")).result(60)),
        Writer("rows", names.data(ROWS), lambda: rows.write(ROWS, columns, [(1,)], f"gaps-{next(counter)}").result(60)),
    ]
    stopped = threading.Event()
    threads = [threading.Thread(target=writer.run, args=(stopped,), daemon=True) for writer in found]
    for thread in threads:
        thread.start()
    try:
        yield found
    finally:
        stopped.set()
        for thread in threads:
            thread.join(70)
        rows.close()
        oracle.close()
        catalog.close()


def lose(cluster: KafkaCluster, way: str, host: str) -> Callable[[], None]:
    """Take ``host`` away; what brings it back."""
    if way == "kill":
        cluster.kill(host)
        return lambda: cluster.start(host)
    if way == "pause":
        cluster.signal(host, signal.SIGSTOP)
        return lambda: cluster.signal(host, signal.SIGCONT)
    if way == "isolate":
        return cluster.network.isolate(host).heal
    if way == "slow":
        return slow_down(cluster.network, host, PORT, SLOW, seed=1)
    return cluster.network.cut([host], [other for other in BROKERS if other != host]).heal


def measure(cluster: KafkaCluster, found: list[Writer], way: str, target: Writer, hold_s: float = HOLD_S) -> dict:
    """One loss of the leader of ``target``'s topic: each writer's gap, and whose leader it was."""
    cluster.wait_in_sync(HEAL_TIMEOUT_S)
    time.sleep(SETTLED_S)
    host = cluster.leader(target.topic)
    led = cluster.led_by(host, [writer.topic for writer in found])
    start = time.monotonic()
    heal = lose(cluster, way, host)
    time.sleep(hold_s)
    heal()
    cluster.wait_in_sync(HEAL_TIMEOUT_S)
    end = time.monotonic()
    time.sleep(SETTLED_S)
    return {
        "way": way, "host": host, "led": [w.name for w in found if w.topic in led],
        "gaps": {w.name: round(w.gap(start, end), 2) for w in found},
    }  # fmt: skip


@contextlib.contextmanager
def brokers(scratch: Path) -> Iterator[KafkaCluster]:
    """Three brokers, with this thread on the client's host."""
    with Network((*BROKERS, CLIENT)) as network, network.inside(CLIENT):
        cluster = KafkaCluster(network, scratch, ensure_jars(JARS, print))
        try:
            cluster.start_all()
            yield cluster
        finally:
            cluster.stop()


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def main() -> int:
    logging.basicConfig(level=logging.INFO, format="%(relativeCreated)d %(name)s %(message)s")
    parser = argparse.ArgumentParser(description="measure the write gap after losing a leader")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ways", default=",".join(WAYS))
    arguments = parser.parse_args()
    ensure_jars(JARS, print)
    gaps: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="gaps-") as scratch, brokers(Path(scratch)) as cluster:
        with writers(cluster.bootstrap, TopicNames(f"gaps{os.getpid()}")) as found:
            for round_number in range(arguments.rounds):
                for way in arguments.ways.split(","):
                    target = found[round_number % len(found)]
                    result = measure(cluster, found, way, target)
                    print(json.dumps(result | {"writes": {w.name: len(w.acks) for w in found}}), flush=True)
                    for name in result["led"]:
                        gaps.setdefault(way, []).append(result["gaps"][name])
            for writer in found:
                for error in sorted(set(writer.errors)):
                    print(f"{writer.name}: {writer.errors.count(error)} x {error}")
    for way, values in gaps.items():
        p50, p95 = (percentile(values, share) for share in (0.5, 0.95))
        print(f"{way}: {len(values)} losses, p50 {p50:.2f} s, p95 {p95:.2f} s, max {max(values):.2f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
