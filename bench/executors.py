"""A backlog of settled rows into a GROUP BY and into a join with a GROUP BY, by executors elsewhere: one, then two.

In a process of its own (``python -m bench.executors DIRECTORY --executors N``), since a process has one Spark, beside a
master and N workers of one core each, which read the controller's files over its file server.  Plain Spark is asked the
same of the same files, which its executors open as they are, in the same session.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa

from bench.apart import last_line
from bench.figure import Figure, p50
from bench.large_view import most_memory
from bench.settled import COLUMNS, FILE_ROWS, SINCE, file, written
from catalog_log.objects import Column, numbered
from collection.columns import DIFF
from segments.parquet import LocalFile

MILLIONS = 20
ENDS_S = 1800
"""Ten times what it takes."""

QUERIES = {
    "GROUP BY": "SELECT {0}.carrier AS carrier, COUNT(*) AS n, SUM({0}.delay) AS late FROM {0} AS {0} "
                "GROUP BY {0}.carrier",
    "join and GROUP BY": "SELECT {1}.region AS region, COUNT(*) AS n, SUM({0}.delay) AS late FROM {0} AS {0} "
                         "JOIN {1} AS {1} ON {0}.dest = {1}.dest GROUP BY {1}.region",
}  # fmt: skip
EXECUTORS = (1, 2)
ROUNDS = 3
READY_S = 120.0
"""For a master and its workers, which take some seconds each."""

REGION_COLUMNS = numbered((Column("dest", "text"), Column("region", "int4")))
RESULT_COLUMNS = {
    "GROUP BY": numbered((Column("carrier", "text"), Column("n", "int8"), Column("late", "int8"))),
    "join and GROUP BY": numbered((Column("region", "int4"), Column("n", "int8"), Column("late", "int8"))),
}
DESTINATIONS, REGIONS = 300, 12


def rate(query: str, executors: int) -> str:
    return f"a backlog of {MILLIONS} M rows, {query}, executors: {executors}"


def gain(query: str) -> str:
    return f"a backlog of {MILLIONS} M rows, {query}, two executors beside one"


def share(query: str) -> str:
    return f"a backlog of {MILLIONS} M rows, {query}, processor of the driver"


def memory(query: str) -> str:
    return f"a backlog of {MILLIONS} M rows, {query}, memory of the driver"


def figures(wanted: Callable[[str], bool]) -> list[Figure]:
    """Takes six minutes."""
    asked = [name for q in QUERIES for name in (*(rate(q, n) for n in EXECUTORS), gain(q), share(q), memory(q))]
    if not any(map(wanted, asked)):
        return []
    found = {n: _told(n, MILLIONS) for n in EXECUTORS}
    made = []
    for query in QUERIES:
        by = {n: each[query] for n, each in found.items()}
        made += [
            Figure(rate(query, n), each["rows/s"], each["plain rows/s"], "plain Spark, the same executors and files",
                   "rows/s", "more", 1, f"{each['seconds']:.1f} s")
            for n, each in by.items()
        ]  # fmt: skip
        one, two = by[1], by[2]
        made += [
            Figure(gain(query), two["rows/s"], one["rows/s"], "one executor", "rows/s", "more", 1,
                   f"plain Spark: {two['plain rows/s'] / one['plain rows/s']:.2f}", "ratio ≥ 1.6"),
            Figure(share(query), two["driver cpu s"], two["seconds"], "the time that it took", "s", "less", 1,
                   "of the controller and its JVM together, two executors"),
            Figure(memory(query), two["here"] + two["jvm"], two["here before"] + two["jvm before"],
                   "the same processes before it", "MB", "less", 1, "at its most, resident; the heap may have 1 GB",
                   "≤ 1 GB"),
        ]  # fmt: skip
    return [figure for figure in made if wanted(figure.name)]


def _told(executors: int, millions: int) -> dict:
    with tempfile.TemporaryDirectory(prefix="tidemark-bench-") as directory:
        return last_line([sys.executable, "-m", "bench.executors", directory, "--executors", str(executors),
                          "--millions", str(millions)], ENDS_S)  # fmt: skip


def main(directory: Path, executors: int, millions: int) -> None:
    from controllers.compute.maintainer import Maintainer
    from controllers.compute.operators.lowered import Lowered
    from controllers.compute.relation import Relation
    from controllers.compute.session import scratch_directory, serve_files, start_session, stop_session, warm_up
    from controllers.compute.spark_text import parse
    from journal.timestamps import DataTs
    from sql.algebra.queries import plan_over
    from trees.budget import bounded

    scratch = scratch_directory(directory)
    files = [file(scratch / "chunks", n) for n in range(millions)]
    regions = _regions(scratch / "chunks")
    with spark_cluster(directory, executors) as master:
        spark = start_session(master, scratch)
        warm_up(spark)
        served = serve_files(spark, scratch / "chunks")
        flights = Relation(spark, "u1", COLUMNS, scratch / "chunks", served.uri)
        flights.load([], DataTs(SINCE + 1), DataTs(SINCE), files)
        places = Relation(spark, "u2", REGION_COLUMNS, scratch / "chunks", served.uri)
        places.load([], DataTs(SINCE + 1), DataTs(SINCE), [regions])
        inputs = {"u1": flights, "u2": places}
        columns = {"u1": COLUMNS, "u2": REGION_COLUMNS}
        for item, of in (("u1", files), ("u2", [regions])):
            plain = spark.read.parquet(*(f"file://{each.path}" for each in of))
            named = plain.selectExpr(*(f"c{c.id} AS {c.name}" for c in columns[item]))
            named.createOrReplaceTempView(f"plain_{item}")
        maintainer = Maintainer(spark)
        names = (f"v{n}" for n in itertools.count(1))
        found: dict[str, object] = {}
        for query, text in QUERIES.items():
            sql = text.format("u1", "u2")
            read = {item: relation for item, relation in inputs.items() if item in sql}
            lowered = Lowered(bounded(plan_over)(parse(sql), {item: columns[item] for item in read}), sql)
            ours, theirs, cpus = [], [], []
            for _ in range(1 + ROUNDS):
                made = Relation(spark, next(names), RESULT_COLUMNS[query], scratch / "chunks", served.uri)
                view = maintainer.make(made, lowered, read)
                with most_memory(spark) as most:
                    cpu, begun = _cpu(spark), time.perf_counter()
                    change = maintainer.evaluate_alone(view, DataTs(SINCE), {})
                    ours.append(time.perf_counter() - begun)
                    cpus.append(_cpu(spark) - cpu)
                assert change.error is None, change.error
                begun = time.perf_counter()
                plain = spark.sql(text.format("plain_u1", "plain_u2")).toArrow()
                theirs.append(time.perf_counter() - begun)
                found_rows = zip(*(change.rows.column(n).to_pylist() for n in range(plain.num_columns)), strict=True)
                assert set(found_rows) == {tuple(row.values()) for row in plain.to_pylist()}
            # The first of each is warming up: executors unpack what they are sent, and compile.
            rows, seconds = millions * FILE_ROWS, p50(ours[1:])
            found[query] = {"seconds": seconds, "rows/s": rows / seconds, "plain rows/s": rows / p50(theirs[1:]),
                            "driver cpu s": p50(cpus[1:]), "first": [ours[0], theirs[0]],
                            "strategy": view.strategy.name, **most}  # fmt: skip
        served.close()
        maintainer.close()
        stop_session(spark)
    print(json.dumps(found))


def _regions(directory: Path) -> LocalFile:
    places = np.arange(DESTINATIONS)
    table = pa.table({
        "dest": pa.array([f"D{n}" for n in places]), "region": pa.array((places % REGIONS).astype(np.int32)),
        DIFF: pa.repeat(pa.scalar(1, pa.int64()), DESTINATIONS),
    })  # fmt: skip
    return written(directory / "regions.parquet", REGION_COLUMNS, table)


@contextmanager
def spark_cluster(directory: Path, workers: int) -> Iterator[str]:
    """The URL of a master with so many workers of one core, on this machine."""
    from embedded.ports import HOST, free_ports

    port, web_port = free_ports(2)
    url = f"spark://{HOST}:{port}"
    started: list[subprocess.Popen] = []
    environment = {**os.environ, "SPARK_LOCAL_IP": HOST}

    def start(name: str, *arguments: str) -> None:
        command = [sys.executable, "-m", "fleet.spark", *arguments, "--host", HOST, "--data", str(directory / name)]
        with open(directory / f"{name}.log", "wb") as log:
            started.append(subprocess.Popen(command, stdout=log, stderr=log, env=environment))

    try:
        start("master", "master", "--port", str(port), "--web-port", str(web_port))
        for number in range(workers):
            start(f"worker-{number}", "worker", "--master", url, "--web-port", str(free_ports(1)[0]))
        until = time.monotonic() + READY_S
        while _there(f"{HOST}:{web_port}") < workers:
            if time.monotonic() > until or any(each.poll() is not None for each in started):
                raise RuntimeError(f"the cluster of {workers} workers did not come up: see {directory}")
            time.sleep(0.2)
        yield url
    finally:
        for each in started:
            each.terminate()
        for each in started:
            each.wait()


def _there(address: str) -> int:
    try:
        with urllib.request.urlopen(f"http://{address}/json/", timeout=5) as answer:
            return sum(each["state"] == "ALIVE" for each in json.load(answer)["workers"])
    except OSError:
        return 0


def _cpu(spark) -> float:
    """Seconds of processor that this process and its Spark's JVM have had."""
    fields = Path(f"/proc/{spark.sparkContext._gateway.proc.pid}/stat").read_text().rpartition(")")[2].split()
    ticks = int(fields[11]) + int(fields[12])
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.executors", description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--executors", type=int, default=1)
    parser.add_argument("--millions", type=int, default=MILLIONS)
    asked = parser.parse_args()
    main(asked.directory, asked.executors, asked.millions)
