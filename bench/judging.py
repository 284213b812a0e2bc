"""What a source is far behind with, judged by executors elsewhere: one, then two, beside its own thread; one that is
read where it is, and one that is copied.

In a process of its own (``python -m bench.judging DIRECTORY --executors N [--copied]``), since a process has one Spark,
beside a broker, a master and N workers of one core each.  The same source on the same topic, once by its own thread and
once with a cluster to ask; both end when all of it is bound.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import NoReturn

from confluent_kafka.admin import NewTopic

from bench.apart import last_line
from bench.brokers import broker_in
from bench.executors import spark_cluster
from bench.figure import Figure
from catalog_log.bootstrap import create_environment
from catalog_log.objects import Column, Source, numbered
from catalog_log.objects.reading import Format, Reading
from collection.writer import CollectionWriter
from journal import clients
from journal.names import TopicNames
from oracle.client import Oracle

MILLIONS = 8
PARTITIONS = 8
COLUMNS = numbered(
    (Column("id", "int8"), Column("carrier", "text"), Column("delay", "int4"), Column("at", "timestamptz"))
)
READING = Reading(Format("json"), None, ("value",) * len(COLUMNS) + ("offset",))
EXECUTORS = (1, 2)
ENDS_S = 1800
BOUND_S = 600.0


def name_of(executors: int, copied: bool) -> str:
    return f"a {'copied ' if copied else ''}source {MILLIONS} M records behind, judged by executors: {executors}"


def figures(wanted: Callable[[str], bool]) -> list[Figure]:
    """Takes ten minutes."""
    made = []
    for copied, executors in product((False, True), EXECUTORS):
        name = name_of(executors, copied)
        if not wanted(name):
            continue
        more = ["--executors", str(executors), *(["--copied"] if copied else [])]
        with tempfile.TemporaryDirectory(prefix="tidemark-bench-") as directory:
            found = last_line([sys.executable, "-m", "bench.judging", directory, *more], ENDS_S)
        made.append(Figure(name, found["by executors"], found["by itself"], "its own thread", "records/s",
                           "more", 1, f"{found['waves']} waves"))  # fmt: skip
    return made


def main(directory: Path, executors: int, millions: int, copied: bool) -> None:
    from controllers.at_work import open_at_work
    from controllers.commands import STORAGE
    from controllers.compute.judging_desk import JudgingDesk
    from controllers.compute.session import scratch_directory, start_session, stop_session, warm_up
    from controllers.judging import Order, Verdict
    from controllers.storage import waves
    from controllers.storage.backlog import Backlog
    from controllers.storage.brokers import Brokers
    from controllers.storage.copied import Copied
    from controllers.storage.source import Source as Running
    from controllers.storage.taking import InPlace, Taking

    with broker_in(directory) as bootstrap, spark_cluster(directory, executors) as master:
        names = TopicNames("bench")
        create_environment(bootstrap, names, 1)
        _produced(bootstrap, "flights", millions)
        spark = start_session(master, scratch_directory(directory))
        warm_up(spark)
        desk, asked = JudgingDesk(spark, bootstrap), []

        class Judges:
            def judge(self, order: Order) -> list[Verdict]:
                asked.append(order)
                return desk.judge(order)

        oracle, writer = Oracle.open(bootstrap, names, "bench", lambda: 0), CollectionWriter(bootstrap, names)
        at_work = open_at_work(bootstrap, names, STORAGE, "bench").begin()
        brokers, numbers = Brokers(bootstrap), iter(range(1, 1_000))

        def taking(item: Source) -> Taking:
            if item.in_place:
                return InPlace(item, writer)
            return Copied(item, writer, _nothing, _nothing, names.env)

        def seconds(by_executors: bool) -> float:
            number = next(numbers)
            item = Source(f"u{2 * number}", "s1", "flights", "", COLUMNS, topic="flights", format="json",
                          envelope="none", errors_id=f"u{2 * number + 1}")  # fmt: skip
            if copied:
                item = replace(item, columns=numbered((*COLUMNS, Column("offset", "int8"))), reading=READING)
            begun = time.perf_counter()
            backlog = Backlog(Judges(), waves.FIRST_RECORDS if copied else waves.RANGE_RECORDS)
            running = Running(
                item, lambda: brokers, lambda: taking(item), oracle, uuid.uuid4().hex[:12], at_work, None,
                backlog if by_executors else None,
            )  # fmt: skip
            while running.status.good_rows < millions * 1_000_000:
                assert time.perf_counter() - begun < BOUND_S, running.status
                time.sleep(0.02)
            took = time.perf_counter() - begun
            running.stop()
            running.join()
            return took

        seconds(True)  # executors unpack what they are sent, and start their Pythons
        asked.clear()
        ours, here = seconds(True), seconds(False)
        rows = millions * 1_000_000
        print(json.dumps({"by executors": rows / ours, "by itself": rows / here, "waves": len(asked)}), flush=True)
        for each in (at_work, writer, oracle):
            with closing(each):
                pass
        stop_session(spark)


def _nothing(*_: object) -> NoReturn:
    raise AssertionError("it has no connection, and keeps no keys")


def _produced(bootstrap: str, topic: str, millions: int) -> None:
    admin = clients.make_admin(bootstrap)
    for done in admin.create_topics([NewTopic(topic, PARTITIONS, 1)]).values():
        done.result()
    producer = clients.make_producer(bootstrap, **{"linger.ms": 5})
    for number in range(millions * 1_000_000):
        value = b'{"id":%d,"carrier":"C%d","delay":%d,"at":"2026-11-30T12:00:%02dZ"}' % (
            number, number % 20, number % 90 - 20, number % 60,
        )  # fmt: skip
        put = partial(producer.produce, topic, value, partition=number // 1_000 % PARTITIONS)
        while True:
            try:
                put()
                break
            except BufferError:
                producer.poll(0.1)
        if number % 10_000 == 0:
            producer.poll(0)
    assert producer.flush(120) == 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.judging", description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--executors", type=int, default=1)
    parser.add_argument("--millions", type=int, default=MILLIONS)
    parser.add_argument("--copied", action="store_true")
    options = parser.parse_args()
    main(options.directory, options.executors, options.millions, options.copied)
