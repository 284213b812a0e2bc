"""A view that puts out twenty million rows at its first making, beside plain Spark that writes the same rows to files.

In a process of its own (``python -m bench.large_view DIRECTORY``), since a process has one Spark: both are asked by the
same session, with a broker of their own beside it.  What the view reads are files as a sealer writes them.
"""

from __future__ import annotations

import argparse
import itertools
import json
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.apart import told_by
from bench.figure import Figure
from bench.settled import COLUMNS, FILE_ROWS, SINCE, file

MILLIONS = 20
ENDS_S = 1800
"""Ten times what it takes."""

MADE = "a view of 20 M rows, made"
HERE = "a view of 20 M rows, memory of the controller"
SPARK = "a view of 20 M rows, memory of Spark's driver"

QUERIES = {
    "linear": "SELECT {columns} FROM `u1` AS `u1` WHERE `u1`.`delay` >= -20",
    "grouped": "SELECT {columns} FROM `u1` AS `u1` GROUP BY {columns}",
}
LOOK_S = 0.1


def figures(wanted: Callable[[str], bool]) -> list[Figure]:
    """Takes five minutes."""
    if not any(wanted(name) for name in (MADE, HERE, SPARK)):
        return []
    found = told_by("bench.large_view", ENDS_S)
    told = {
        MADE: Figure(MADE, found["made"], found["plain"], "plain Spark writes the same rows to Parquet", "s", "less", 1,
                     f"{found['rows']} rows, {found['topic'] / 1e6:.0f} MB on the topic, "
                     f"in {found['runs']} pieces there"),
        HERE: Figure(HERE, found["here"], found["here before"], "the same process before it", "MB", "less", 1,
                     "at its most, resident"),
        SPARK: Figure(SPARK, found["jvm"], found["jvm before"], "the same process before it", "MB", "less", 1,
                      "at its most, resident; the heap may have 1 GB"),
    }  # fmt: skip
    return [figure for name, figure in told.items() if wanted(name)]


def main(directory: str, millions: int, query: str, through_driver: bool) -> None:
    from bench.brokers import broker_in
    from catalog_log.bootstrap import create_environment
    from collection.writer import CollectionWriter
    from controllers.compute.maintainer import Maintainer
    from controllers.compute.operators.lowered import Lowered
    from controllers.compute.outlet import Outlet
    from controllers.compute.relation import Relation
    from controllers.compute.session import MASTER, scratch_directory, start_session, stop_session, warm_up
    from controllers.compute.spark_text import parse, text
    from journal.names import TopicNames
    from journal.timestamps import DataTs
    from sql.algebra.queries import plan_over
    from trees.budget import bounded

    scratch = scratch_directory(Path(directory))
    files = [file(scratch / "chunks", n) for n in range(millions)]
    spark = start_session(MASTER, scratch)
    warm_up(spark)
    relation = Relation(spark, "u1", COLUMNS, scratch / "chunks")
    relation.load([], DataTs(SINCE + 1), DataTs(SINCE), files)
    columns = ", ".join(f"`u1`.`{column.name}`" for column in COLUMNS)
    sql = QUERIES[query].format(columns=columns)
    with broker_in(Path(directory)) as bootstrap:
        names = TopicNames("bench")
        create_environment(bootstrap, names, 1)
        writer = CollectionWriter(bootstrap, names)
        attempts = (f"bench-{n}" for n in itertools.count())

        def outlet(of: Relation) -> Outlet | None:
            return None if through_driver else Outlet(of, bootstrap, names.env, writer.order, attempts)

        maintainer = Maintainer(spark, outlet=outlet)
        made = Relation(spark, "u2", COLUMNS, scratch / "chunks")
        lowered = Lowered(bounded(plan_over)(parse(sql), {"u1": COLUMNS}), sql)
        view = maintainer.make(made, lowered, {"u1": relation})
        with most_memory(spark) as most:
            begun = time.perf_counter()
            change = maintainer.evaluate_alone(view, DataTs(SINCE), {})
            taken = time.perf_counter() - begun
        found: dict[str, object] = {"made": taken, **most}
        if change.error is not None:
            print(json.dumps({**found, "error": f"{change.error.sqlstate} {change.error.message}"}))
            return
        found |= {
            "rows": made.count, "runs": len(change.sent.runs), "strategy": view.strategy.name,
            "topic": sum(each.stat().st_size for each in Path(directory).glob("broker/**/bench.data.u2-0/*.log")),
            "files": sum(each.segment.size for each in change.sent.files),
        }  # fmt: skip
        with made.snapshot(DataTs(SINCE)) as snapshot:
            told = f"SELECT COUNT(*), SUM(`id`) FROM ({text(snapshot.rows())})"
            begun = time.perf_counter()
            rows = millions * FILE_ROWS
            assert tuple(spark.sql(told).collect()[0]) == (rows, rows * (rows - 1) // 2)
            found["read"] = time.perf_counter() - begun
        writer.close()
        with relation.snapshot(DataTs(SINCE)) as snapshot:
            begun = time.perf_counter()
            spark.sql(text(snapshot.rows())).write.parquet(f"{directory}/plain")
            found["plain"] = time.perf_counter() - begun
        shutil.rmtree(f"{directory}/plain")
        maintainer.close()
    stop_session(spark)
    print(json.dumps(found))


@contextmanager
def most_memory(spark) -> Iterator[dict[str, float]]:
    """Megabytes that this process, Spark's JVM, and its Pythons together have, before it and at most meanwhile."""
    jvm = spark.sparkContext._gateway.proc.pid
    found = {"here before": _resident("self"), "jvm before": _resident(jvm), "workers": 0.0}
    found |= {"here": found["here before"], "jvm": found["jvm before"]}
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(LOOK_S):
            workers = sum(map(_resident, _below(jvm)))
            now = {"here": _resident("self"), "jvm": _resident(jvm), "workers": workers}
            found.update({name: max(size, found[name]) for name, size in now.items()})

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield found
    finally:
        ended.set()
        thread.join()


def _below(pid: int) -> list[int]:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        every = [*map(int, children)]
        for task in Path(f"/proc/{pid}/task").iterdir():
            every += map(int, (task / "children").read_text().split())
    except OSError:
        return []
    return [each for child in sorted({*every}) for each in (child, *_below(child))]


def _resident(pid: int | str) -> float:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS")), 0.0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.large_view", description=__doc__)
    parser.add_argument("directory")
    parser.add_argument("--millions", type=int, default=MILLIONS, help="rows that the view reads and puts out")
    parser.add_argument("--query", choices=sorted(QUERIES), default="linear")
    parser.add_argument("--through-driver", action="store_true", help="as in a tick: without an outlet")
    asked = parser.parse_args()
    main(asked.directory, asked.millions, asked.query, asked.through_driver)
