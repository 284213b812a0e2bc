"""A view's rows written by executors that are processes of their own: the body of a test in ``test_remote.py``.

A program of its own, since a process has one Spark.  Its executors find nothing of ours but what is sent to them, and a
task of theirs fails once, when it has written most of its rows.
"""

from __future__ import annotations

import itertools
import resource
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import Consumer, TopicPartition

from catalog_log.bootstrap import create_environment
from catalog_log.objects import Column
from collection.binding import BoundRun
from collection.reader import ROWS, RunReader
from collection.writer import CollectionWriter
from controllers.compute import outlet as outlet_module
from controllers.compute.maintainer import Maintainer
from controllers.compute.operators.lowered import Lowered
from controllers.compute.outlet import STAYS_BYTES_MAX, Outlet
from controllers.compute.relation import Relation
from controllers.compute.session import scratch_directory, serve_files, start_session, stop_session
from controllers.compute.spark_text import text
from journal.names import TopicNames
from journal.timestamps import DataTs
from tests.compute.remote_reads import MASTER, PART, file
from tests.compute.spoken import plan_of

COLUMNS = (Column("k", "int8", id=1), Column("s", "text", id=2))


def main(directory: str, wanted: str, bootstrap: str, env: str) -> None:
    count = int(wanted)
    names = TopicNames(env)
    create_environment(bootstrap, names, 1)
    writer = CollectionWriter(bootstrap, names)
    scratch = scratch_directory(Path(directory))
    spark = start_session(MASTER, scratch)
    served = serve_files(spark, scratch / "chunks")
    assert served is not None, "its executors are not elsewhere"
    marker = Path(directory) / "failed once"
    late, calls = 22 * count // 45, [0]  # of each of two tasks nearly the last

    def once(word: str) -> str:
        calls[0] += 1
        if calls[0] == late:
            try:
                marker.touch(exist_ok=False)
            except FileExistsError:
                return word
            raise RuntimeError("this task fails once")
        return word

    # In place of one of ours, since no other may be called.
    spark.udf.register("tm_quoted_identifier", once, "string")
    base = Relation(spark, "u1", COLUMNS, scratch / "chunks", served.uri)
    held = [file(scratch / "chunks", COLUMNS, first) for first in range(0, count, PART)]
    assert sum(each.segment.loaded for each in held) > STAYS_BYTES_MAX
    base.load([], DataTs(11), DataTs(10), held)
    outlet_module.TASKS_A_CORE = 1  # so that each has more than goes into one file, and wrote that before it fails
    made = Relation(spark, "u2", COLUMNS, scratch / "chunks", served.uri)
    attempts = (f"a-{n}" for n in itertools.count())
    maintainer = Maintainer(spark, outlet=lambda of: Outlet(of, bootstrap, names.env, writer.order, attempts))
    query = "SELECT `u1`.`k` AS `k`, TM_QUOTED_IDENTIFIER(`u1`.`s`) AS `s` FROM `u1` AS `u1`"
    planned = plan_of(query, {"u1": {c.name: c.type for c in COLUMNS}})
    view = maintainer.make(made, Lowered(planned, query), {"u1": base})
    started = time.perf_counter()
    change = maintainer.evaluate_alone(view, DataTs(10), {})
    assert change.error is None and view.strategy.name == "incremental: linear", change.error
    print(f"{count} rows written in {time.perf_counter() - started:.1f} s", flush=True)
    assert marker.exists() and change.rows.num_rows < count, "nobody failed, or nothing was written by executors"
    # On the topic, where the failed task's rows are too, and in the files: each row once.
    bound = sum(run.upper - run.lower for run in change.sent.runs)
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "nobody"})
    end = consumer.get_watermark_offsets(TopicPartition(names.data("u2"), 0), timeout=10)[1]
    consumer.close()
    assert bound < end, (bound, end)
    found = [change.rows.column(0)]
    reader = RunReader(bootstrap)
    for table, _ in reader.bound_chunks([BoundRun(10, run) for run in change.sent.runs], COLUMNS, ROWS):
        found.append(table.column(0))
    reader.close()
    keys = pa.chunked_array([chunk for each in found for chunk in each.chunks])
    assert len(keys) == count == pc.count_distinct(keys).as_py() and pc.max(keys).as_py() == count - 1
    assert made.count == count
    with made.snapshot(DataTs(10)) as snapshot:
        sql = f"SELECT COUNT(*), COUNT(DISTINCT k), MAX(LENGTH(s)) FROM ({text(snapshot.rows())})"
        assert tuple(spark.sql(sql).collect()[0])[:2] == (count, count)
    names_left = {path.name for path in (scratch / "chunks").iterdir() if "_sent" in path.name}
    assert names_left == {each.path.name for each in change.sent.files}, "those of the failed task are there"
    print(f"at most {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10} MB here", flush=True)
    for each in (made, base):
        each.close()
    writer.close()
    maintainer.close()
    served.close()
    stop_session(spark)
    print("done", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
