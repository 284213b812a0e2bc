"""A cluster's Spark on a master and workers that have nothing of ours: the body of ``test_standalone.py``.

A program of its own, since a process has one Spark, and since what is hidden from the workers is this one's directory.
It ticks, reads files of a store, has a view's rows written by the executors while one of these is killed, and has them
read from its topic by executors.
"""

from __future__ import annotations

import itertools
import os
import queue
import signal
import sys
import time
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from catalog_log.bootstrap import create_environment
from catalog_log.objects import Column
from catalog_log.objects.reading import Format, Reading
from collection.binding import BoundRun
from collection.columns import plain_columns
from collection.reader import ROWS, RunReader
from collection.writer import CollectionWriter
from controllers.compute import heartbeat as heartbeat_module
from controllers.compute import outlet as outlet_module
from controllers.compute import sources as sources_module
from controllers.compute.failures import of_spark
from controllers.compute.heartbeat import Heartbeat, SparkEnded
from controllers.compute.intake import Intake
from controllers.compute.judging_desk import JudgingDesk
from controllers.compute.maintainer import Maintainer
from controllers.compute.operators.lowered import Lowered
from controllers.compute.outlet import Outlet
from controllers.compute.relation import Relation
from controllers.compute.session import scratch_directory, serve_files, start_session, stop_session, watched
from controllers.compute.spark_text import text
from controllers.compute.ticks import BEGIN_S, Ticker
from controllers.judging import Copying, Order, Range
from journal.errors import InvalidUsage
from journal.names import TopicNames
from journal.timestamps import DataTs
from judge.planted.registry import BUGS
from segments.parquet import LocalFile
from segments.store import open_store
from tests.compute.remote_reads import file
from tests.compute.spoken import plan_of

COLUMNS = (Column("k", "int8", id=1), Column("s", "text", id=2))
FILES, PART, WIDTH = 4, 60_000, 400
"""Of each of two tasks more than goes into one file, so that it has written that when its executor is killed."""

COUNT = FILES * PART
RECORDS = 40_000
"""Of a source, for four tasks."""

LATE = COUNT // 2 * 95 // 100
"""Of the rows of one task."""

MASTER_ANEW = "start the master anew"
"""Said to whoever started this, who can."""

MASTER_STAYS = "let it be"

ALL_IS_BOUND = "what the killed task wrote is bound, too"

NOTICED_S = 90.0
"""Workers look for their master anew for some seconds."""

WRITTEN_S = 60.0
"""For a task's rows to be on the topic, which takes two seconds."""


def main(
    master: str, directory: str, shared: str, bootstrap: str, env: str, without: str, then: str, bug: str
) -> None:  # fmt: skip
    """``without``: a program of the workers, their Python with nothing of what is sent to it; ``then``: what comes of
    the master in the end, ``MASTER_ANEW`` or ``MASTER_STAYS``; ``bug``: one to be planted, or nothing."""
    if bug:
        BUGS[bug].apply()  # never undone: the process ends with it
    names = TopicNames(env)
    create_environment(bootstrap, names, 1)
    writer = CollectionWriter(bootstrap, names)
    scratch = scratch_directory(Path(directory))
    started = time.perf_counter()
    spark = start_session(master, scratch)
    print(f"started in {time.perf_counter() - started:.1f} s", flush=True)
    ticks: queue.Queue = queue.Queue()
    ticker = Ticker(spark, scratch / "ticks", ticks.put)
    ticker.move_to(7)
    served = serve_files(spark, scratch / "chunks")
    assert served is not None, "its executors are not elsewhere"
    store = open_store(f"file://{shared}/store", env)
    held = []
    for number in range(FILES):
        made = file(scratch, COLUMNS, number * PART, PART, WIDTH)
        store.write(made.segment.path, made.path.read_bytes())
        local = scratch / "chunks" / f"settled_{number}.parquet"
        store.fetch(made.segment.path, local)
        held.append(LocalFile(made.segment, local))
    base = Relation(spark, "u1", COLUMNS, scratch / "chunks", served.uri)
    base.load([], DataTs(11), DataTs(10), held)

    # Files of the store, and a function of ours on each row of them.
    with base.snapshot(DataTs(10)) as snapshot:
        started = time.perf_counter()
        few = f"SELECT s FROM ({text(snapshot.rows())}) WHERE k < 1000"
        assert spark.sql(f"SELECT COUNT(DISTINCT tm_quoted_identifier(s)) FROM ({few})").collect()[0][0] == 1000
        print(f"first rows through executors after {time.perf_counter() - started:.1f} s", flush=True)

    # The tick's reader is a process beside the driver, with the driver's Python.
    assert ticks.get(timeout=BEGIN_S).ts == 7
    ticker.stop()

    # With nothing sent their Python is as empty as it looks, and with none at all that is said.
    assert "No module named 'pyarrow'" in str(failing(spark, without))
    lacking = of_spark(failing(spark, "python0.1"))
    assert isinstance(lacking, InvalidUsage) and lacking.detail == "they have no program python0.1", lacking

    # A view's rows, by two tasks; the executor of one is killed when there are rows of this task on the topic.
    marker, topic = f"{shared}/killed", names.data("u2")
    late, written_s, seen = LATE, WRITTEN_S, []

    def once(word: str) -> str:
        import confluent_kafka as kafka  # theirs: a class of C's does not travel by value

        seen.append(word)
        if len(seen) == late:
            try:
                os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return word
            until = time.time() + written_s
            consumer = kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": "nobody"})
            consumer.assign([kafka.TopicPartition(topic, 0, 0)])
            ours = False
            while not ours:
                message = consumer.poll(max(0.0, until - time.time()))
                assert message is not None, "it wrote nothing"
                ours = message.error() is None and seen[0].encode() in message.value()
            with open(f"/proc/{os.getppid()}/status") as status:  # of the worker's parent, whose parent is the executor
                [executor] = [int(line.split()[1]) for line in status if line.startswith("PPid:")]
            os.kill(executor, signal.SIGKILL)
            time.sleep(60)
        return word

    spark.udf.register("tm_quoted_identifier", once, "string")  # in place of one of ours: no other may be called
    outlet_module.TASKS_A_CORE, outlet_module.STAYS_BYTES_MAX = 1, 1 << 20
    sources_module.MUCH_ROWS = COUNT
    relations, attempts = itertools.count(2), (f"a-{n}" for n in itertools.count())
    maintainer = Maintainer(spark, outlet=lambda of: Outlet(of, bootstrap, names.env, writer.order, attempts))
    query = "SELECT `u1`.`k` AS `k`, TM_QUOTED_IDENTIFIER(`u1`.`s`) AS `s` FROM `u1` AS `u1`"
    planned = plan_of(query, {"u1": {c.name: c.type for c in COLUMNS}})

    def view():
        relation = Relation(spark, f"u{next(relations)}", COLUMNS, scratch / "chunks", served.uri)
        return relation, maintainer.make(relation, Lowered(planned, query), {"u1": base})

    made, kept = view()
    started = time.perf_counter()
    change = maintainer.evaluate_alone(kept, DataTs(10), {})
    assert change.error is None, change.error
    print(f"{COUNT} rows written in {time.perf_counter() - started:.1f} s", flush=True)
    assert Path(marker).exists() and change.rows.num_rows < COUNT, "nobody was killed, or nothing written by executors"
    # On the topic, where rows of the killed task are too, and in the files: each row once.
    bound = sum(run.upper - run.lower for run in change.sent.runs)
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "nobody"})
    end = consumer.get_watermark_offsets(TopicPartition(names.data(made.id), 0), timeout=10)[1]
    consumer.close()
    assert bound < end, f"{ALL_IS_BOUND}: {bound} of {end}"
    found = [change.rows.column(0)]
    runs = [BoundRun(10, run) for run in change.sent.runs]
    fetched = Intake(bootstrap, 1, COUNT // 4).fetch(made.handing, made.own_name("fetched"), runs, COLUMNS, ROWS)
    assert fetched is not None and len(fetched) >= 4, "executors cannot read topics"
    found += [pq.read_table(each.path).column(0) for each in fetched]
    keys = pa.chunked_array([chunk for each in found for chunk in each.chunks])
    assert len(keys) == COUNT == pc.count_distinct(keys).as_py() and pc.max(keys).as_py() == COUNT - 1
    assert made.count == COUNT
    with made.snapshot(DataTs(10)) as snapshot:
        sql = f"SELECT COUNT(*), COUNT(DISTINCT k), MIN(LENGTH(s)) FROM ({text(snapshot.rows())})"
        rows, distinct, width = spark.sql(sql).collect()[0]
    assert (rows, distinct) == (COUNT, COUNT) and width > WIDTH
    judges_a_source(spark, bootstrap, env, writer)
    names_left = {path.name for path in (scratch / "chunks").iterdir() if "_sent" in path.name}
    assert names_left == {each.path.name for each in change.sent.files}, "those of the killed task are there"

    for each in (made, base):
        each.close()
    writer.close()
    maintainer.close()
    served.close()

    if then == MASTER_ANEW:
        loses_its_executors(spark)
    stop_session(spark)
    print("done", flush=True)


def judges_a_source(spark: SparkSession, bootstrap: str, env: str, writer: CollectionWriter) -> None:
    """Executors say which records of a topic are rows, and write those of a source that is copied."""
    topic, columns = f"{env}-clicks", plain_columns((Column("k", "int8", id=1), Column("at", "int8", id=2)))
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for made in admin.create_topics([NewTopic(topic, 1, 1)]).values():
        made.result()
    producer = Producer({"bootstrap.servers": bootstrap})
    for n in range(RECORDS):
        producer.produce(topic, b"bad" if n % 1000 == 7 else b'{"k":%d}' % n, partition=0)
        producer.poll(0)
    assert producer.flush(60) == 0
    ranges = tuple(Range(0, at, at + RECORDS // 4) for at in range(0, RECORDS, RECORDS // 4))
    started = time.perf_counter()
    order = Order(topic, columns[:1], ranges, 120.0)
    reading = Reading(Format("json"), None, ("value", "offset"))
    writer.order("u9")
    copy = order._replace(columns=columns, copying=Copying(env, "u9", "a/1", reading, {}))
    said, copied = (JudgingDesk(spark, bootstrap).judge(each) for each in (order, copy))
    print(f"{RECORDS} records judged twice in {time.perf_counter() - started:.1f} s", flush=True)
    assert [each.upper for each in said] == [each.upper for each in ranges]
    bad = [each.offset for verdict in said for each in verdict.bad]
    assert bad == list(range(7, RECORDS, 1000)) and sum(each.good for each in said) == RECORDS - len(bad)
    assert [each._replace(runs=()) for each in copied] == said
    with closing(RunReader(bootstrap)) as reader:
        rows = reader.read([run for verdict in copied for run in verdict.runs], columns)
    assert rows.column(0).equals(rows.column(1)), "a row that is of another record"
    assert sorted(rows.column(1).to_pylist()) == sorted({*range(RECORDS)} - {*bad})


def loses_its_executors(spark: SparkSession) -> None:
    """A master that was started anew has its workers end the executors of those that it does not know."""
    heartbeat_module.BEAT_S, heartbeat_module.ALONE_S_MAX = 0.5, 3.0
    dead: queue.Queue = queue.Queue()
    heart = Heartbeat(watched(spark), dead.put, end=print)
    print(MASTER_ANEW, flush=True)
    error = dead.get(timeout=NOTICED_S)
    heart.close()
    assert isinstance(error, SparkEnded), error
    print(f"{error.message}: {error.detail}", flush=True)


def failing(spark: SparkSession, python: str) -> Exception:
    """What Spark throws of a task whose Python is the workers' program ``python``."""

    def same(batches):
        yield from batches

    context = spark.sparkContext
    ours, context.pythonExec = context.pythonExec, python
    try:
        spark.range(1).mapInArrow(same, "id bigint").collect()
    except (PySparkException, Py4JError) as error:
        return error
    finally:
        context.pythonExec = ours
    raise AssertionError(f"{python} worked")


if __name__ == "__main__":
    main(*sys.argv[1:])
