"""The Spark session of a compute controller: measured settings, warm before anybody is told it serves.

Promises: ANSI arithmetic and UTC, whatever the machine's own defaults; every scratch file under the given directory;
a JVM that ends by itself when this Python process dies, however it dies (its stdin is a pipe we hold).
"""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import Future
from pathlib import Path

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from controllers.class_archive import of_environment
from controllers.compute import travelling
from controllers.compute.file_server import FileServer
from controllers.compute.heartbeat import Spark, last_word
from controllers.compute.registering import register
from controllers.spark_masters import in_this_process
from functions.registry import OWN
from journal.errors import InvalidUsage
from lower.spark.functions import SPARK_TABLE_FUNCTIONS, forbidden, lacking

log = logging.getLogger(__name__)

TICK_POOL = "tick"
PEEK_POOL = "peeks"
BESIDE_POOL = "beside"
BEAT_POOL = "heartbeat"

# Ticks get the next free core four times as often as reads and never less than one: a tick is short and everybody's
# freshness hangs on it, a read is one person's, and what is made beside the ticks takes its time.  A heartbeat is one
# task a few times a minute.
_POOLS = f"""<?xml version="1.0"?>
<allocations>
  <pool name="{TICK_POOL}"><schedulingMode>FIFO</schedulingMode><weight>4</weight><minShare>1</minShare></pool>
  <pool name="{PEEK_POOL}"><schedulingMode>FAIR</schedulingMode><weight>1</weight><minShare>0</minShare></pool>
  <pool name="{BESIDE_POOL}"><schedulingMode>FIFO</schedulingMode><weight>1</weight><minShare>0</minShare></pool>
  <pool name="{BEAT_POOL}"><schedulingMode>FIFO</schedulingMode><weight>1</weight><minShare>1</minShare></pool>
</allocations>
"""

MASTER = "local[16]"
"""Sixteen slots whatever the cores: a slot is a thread, and no pool can keep one free.  Four reads of two tasks each
leave eight for ticks, which then compete for the processor only, as any two programs do."""

PARTITIONS = "2"
"""Tasks that one scan is cut into: more than there are cores would only add overhead on a small machine."""

TASKS_A_CORE = 2
"""Tasks that files are read by at most, for each of this machine's cores, where executors are in this process: there
they compete with ticks, which were four times as slow beside sixteen (22 ms, 89 beside those of 100 M rows, 44 beside
seven)."""

RESULT_BYTES_MAX = "512m"
"""Of one query's collected result.  Four reads at once and a tick stay within a few GB of Python and JVM memory."""

CODE_CACHE = "240m"
"""What a JVM with all its compilers has.  With C1 alone it has 48 MB, which Spark's generated classes filled within
seven minutes of reads and ticks; then nothing is compiled any more, and what took milliseconds takes a minute."""

PARSER_CACHE_PERCENT = "15"
"""Of the heap, for what Spark's parser remembers of the statements it has read: some 6 KB for each new turn that one
takes, for ever unless told otherwise (1,500 different statements took 240 MB).  Spark counts 9.7 KB, so of 1 GB it is
some 15,000 states; what applications ask again and again needs fewer than 5,000.  Above it all is forgotten at once and
learnt again in some seconds of parsing."""

REMEMBERED = "50"
"""Jobs, stages and executions of which Spark remembers plans and figures that nobody can look at here: each holds its
plan as text.  Spark's own default is 1,000 of each."""

PLAN_CHARS_MAX = "16384"
"""Of a plan that Spark writes out for every query it runs; that of a long list of literals has megabytes."""

END_WITHOUT_MEMORY = "-XX:+ExitOnOutOfMemoryError"
"""A JVM in which one thread found no memory goes on without that thread; where it was the scheduler's, every read and
every tick waits for ever.  One that ended is started again (``heartbeat.py``), with nothing lost."""

STACK = "8m"
"""Of each of the JVM's threads; what is not used of it is no memory.  On the megabyte that they have by default 300 of
``||`` beside integers overflowed Spark's analyser, and 600 ``+`` too (measured).  1,000 of each, as many as planning
lets through (``OPERATORS_MAX``), are too much for two and taken on four; the rest is for what is around them."""

TEXT_STAYS_TEXT = {
    "spark.sql.variable.substitute": "false",  # ${env:HOME}, anywhere in a statement
    "spark.sql.runSQLOnFiles": "false",  # FROM parquet.`/any/path`
    "spark.sql.caseSensitive": "true",  # names are in their final case, and "a" is not "A"
    "spark.sql.parser.quotedRegexColumnNames": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.scripting.enabled": "false",
}
"""A literal is that literal and a name is that name, whatever is in it.  Some are Spark's defaults, which a file of
settings on the machine could change."""

JVM_STOP_S = 5.0
"""A JVM whose Spark is stopped exits in well under a second."""

_CHECKPOINT_MANAGER = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)


def settings(master: str, scratch: Path) -> dict[str, str]:
    """What the session is started with; the reasons are measurements (docs: Spark facts)."""
    # Executors elsewhere must reach the driver; those in this process never need more than loopback.
    loopback = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    tasks = {"spark.sql.files.maxPartitionNum": str(TASKS_A_CORE * (os.cpu_count() or 1))}
    return {
        **(loopback if master.startswith("local") else {}),
        **(tasks if in_this_process(master) else {}),
        **travelling.settings(master),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": os.environ.get("TIDEMARK_SPARK_MEMORY", "1g"),
        "spark.driver.maxResultSize": RESULT_BYTES_MAX,
        # C1 and the serial collector: 380 MB instead of a gigabyte, and warm within seconds.
        "spark.driver.extraJavaOptions": " ".join(map(_quoted, (
            "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", f"-XX:ReservedCodeCacheSize={CODE_CACHE}", f"-Xss{STACK}",
            END_WITHOUT_MEMORY, f"-Djava.io.tmpdir={scratch}", *of_environment(os.environ),
        ))),  # fmt: skip
        "spark.executor.extraJavaOptions": f"{END_WITHOUT_MEMORY} -Xss{STACK}",
        "spark.local.dir": str(scratch / "local"),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.scheduler.mode": "FAIR",
        # Not as_uri(): Hadoop takes what an URI escapes for names as they are.
        "spark.scheduler.allocation.file": f"file://{scratch / 'pools.xml'}",
        "spark.locality.wait": "0",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.enabled": "true",
        **TEXT_STAYS_TEXT,
        # One shuffle partition, no adaptive planning: a tick moves thousands of rows, and each stage costs more than
        # what it would save.
        "spark.sql.shuffle.partitions": "1",
        "spark.default.parallelism": PARTITIONS,
        "spark.sql.leafNodeDefaultParallelism": PARTITIONS,
        "spark.sql.adaptive.enabled": "false",
        # All files are given by name, and looking for them by tasks takes longer than asking this machine's disk.
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "10000",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # What grows with every statement that is not like one before has a bound.
        "spark.sql.parser.manageParserCaches": "true",
        "spark.sql.parser.parserDfaCacheFlushRatio": PARSER_CACHE_PERCENT,
        "spark.sql.maxPlanStringLength": PLAN_CHARS_MAX,
        "spark.sql.ui.retainedExecutions": REMEMBERED,
        "spark.ui.retainedJobs": REMEMBERED,
        "spark.ui.retainedStages": REMEMBERED,
        "spark.ui.retainedTasks": "1000",
        "spark.ui.dagGraph.retainedRootRDDs": REMEMBERED,
        "spark.sql.streaming.checkpointFileManagerClass": _CHECKPOINT_MANAGER,
        "spark.sql.streaming.pollingDelay": "1ms",
        "spark.sql.streaming.minBatchesToRetain": "2",
        "spark.sql.streaming.stopTimeout": "5s",
        "spark.sql.streaming.metricsEnabled": "false",
        "spark.log.level": "ERROR",
    }


def _quoted(option: str) -> str:
    """As one word for Spark, which cuts the options apart at spaces; a path may have some."""
    escaped = option.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def scratch_directory(data: Path) -> Path:
    """A fresh directory for this run under ``data``, what earlier runs left there removed.

    Nothing in it outlives the process: what is durable is in topics.
    """
    base = data.absolute() / "spark"
    base.mkdir(parents=True, exist_ok=True)
    for stale in base.iterdir():
        if _owner_is_gone(stale):
            shutil.rmtree(stale, ignore_errors=True)
    scratch = Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=base))
    for name in ("local", "warehouse", "chunks", "checkpoint"):
        (scratch / name).mkdir()
    (scratch / "pools.xml").write_text(_POOLS)
    return scratch


def _owner_is_gone(directory: Path) -> bool:
    pid = directory.name.partition("-")[0]
    if not pid.isdigit():
        return True
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return int(pid) == os.getpid()


def start_session(master: str, scratch: Path) -> SparkSession:
    """Start Spark (6 to 12 s)."""
    # Python workers in this process (the ticks' reader is one) must be this very Python, with what is installed for it.
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["PYSPARK_PYTHON"] = travelling.python(master)
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master(master).appName("tidemark-compute")
    for key, value in settings(master, scratch).items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    # Of each file that it makes Hadoop sets the mode by running chmod, and a tick's query makes two: without checksum
    # files beside them that is twice a tick instead of four times, each 4 ms, on a busy machine 12.
    jvm, hadoop = spark.sparkContext._jvm, spark.sparkContext._jsc.hadoopConfiguration()
    jvm.org.apache.hadoop.fs.FileSystem.get(jvm.java.net.URI("file:///"), hadoop).setWriteChecksum(False)
    # Before the functions: each notes what its executors have.
    travelling.give(spark, scratch, scratch.parent.parent)
    register(spark, OWN)
    close_functions(spark)
    return spark


def close_functions(spark: SparkSession) -> None:
    """Take every function that is not on our list out of Spark, whatever name it may be called by (0.1 s).

    A call that got past the planner is then one of a function that does not exist (42883), not of any method of Java's.
    Raises ``InvalidUsage`` where Spark lacks what we are written in."""
    jvm, state = spark.sparkContext._jvm, spark._jsparkSession.sessionState()
    catalyst = jvm.org.apache.spark.sql.catalyst
    analysis, identifier = catalyst.analysis, catalyst.FunctionIdentifier
    offered = frozenset(state.functionRegistry().listFunction().mkString("\n").split("\n"))
    if missing := lacking(offered):
        raise InvalidUsage(
            f"Spark {spark.version} lacks functions that Tidemark is written in: {', '.join(missing)}",
            sqlstate="0A000",
            hint="install the version that requirements.lock names",
        )
    for registry in (state.functionRegistry(), analysis.FunctionRegistry.builtin()):
        for name in forbidden(offered):
            registry.dropFunction(identifier(name))
    for registry in (state.tableFunctionRegistry(), analysis.TableFunctionRegistry.builtin()):
        for name in frozenset(registry.listFunction().mkString("\n").split("\n")) - SPARK_TABLE_FUNCTIONS:
            registry.dropFunction(identifier(name))


class StartingSession:
    """Spark on its way, in a thread of its own: who needs it opens the logs meanwhile (on two cores a start takes 10 s,
    of which it waits for the disk and for itself a good part).  It stops with the process."""

    def __init__(self, master: str, data: Path) -> None:
        self.scratch = scratch_directory(data)
        self._session: Future[SparkSession] = Future()
        threading.Thread(target=self._start, args=(master,), name="spark-start", daemon=True).start()

    def result(self) -> SparkSession:
        """The warm session, when it is there; raises what made it impossible, ``SparkEnded`` where the JVM ended under
        it (a machine without memory kills processes): that may be tried again."""
        return self._session.result()

    def _start(self, master: str) -> None:
        started = time.monotonic()
        try:
            spark = start_session(master, self.scratch)
            warm_up(spark)
        except BaseException as error:  # raised where the session is asked for
            jvm = getattr(SparkContext._gateway, "proc", None)
            self._session.set_exception((jvm and last_word(jvm.poll)) or error)
            return
        log.info("spark is warm", extra={"seconds": round(time.monotonic() - started, 1)})
        self._session.set_result(spark)


def cancel_group(spark: SparkSession, group: str) -> None:
    """Cancel the jobs of ``group``, those to come included; the group's name is not used again.

    A query is several jobs, with moments between them (and before the first) at which none runs: PySpark's own
    ``cancelJobGroup`` cancels nothing then, and the query goes on.
    """
    spark.sparkContext._jsc.sc().cancelJobGroupAndFutureJobs(group)


def watched(spark: SparkSession) -> Spark:
    """What a :class:`~controllers.compute.heartbeat.Heartbeat` asks of ``spark``."""
    context = spark.sparkContext
    process = getattr(context._gateway, "proc", None)
    one = context._jvm.java.util.ArrayList()
    one.add(1)

    def beat() -> None:
        context.setLocalProperty("spark.scheduler.pool", BEAT_POOL)
        context._jsc.parallelize(one, 1).count()  # in the JVM alone: no worker of Python's

    def executors() -> list:
        found = context._jsc.sc().statusStore().executorList(True)
        return [found.apply(i) for i in range(found.size())]

    def idle() -> bool:
        # On a cluster the driver is among them, with no slot.
        return any(each.activeTasks() < each.maxTasks() for each in executors())

    def alone() -> bool:
        return all(each.maxTasks() == 0 for each in executors())

    def stopped() -> bool:
        return context._jsc.sc().isStopped()

    return Spark(beat, idle, (lambda: None) if process is None else process.poll, stopped, alone)


ENDED_WITHIN_S = 2.0
"""From what a call hears when the JVM's sockets close until its process is gone: milliseconds, more where its memory
is written down."""


def has_ended(spark: SparkSession, error: BaseException) -> bool:
    """Whether ``error``, of a call to Spark, is that of one whose JVM is gone, which the heartbeat tells soon."""
    if isinstance(error, Py4JJavaError) or not isinstance(error, Py4JError | OSError | EOFError):
        return False
    process = getattr(spark.sparkContext._gateway, "proc", None)
    if process is None:
        return False
    try:
        process.wait(ENDED_WITHIN_S)
    except subprocess.TimeoutExpired:
        return False
    return True


def serve_files(spark: SparkSession, directory: Path) -> FileServer | None:
    """What executors elsewhere read the files of ``directory`` by, at the address by which they know the driver;
    ``None`` where they are in this process."""
    if in_this_process(spark.sparkContext.master):
        return None
    return FileServer(directory, spark.sparkContext.getConf().get("spark.driver.host"))


def stop_session(spark: SparkSession, timeout_s: float = JVM_STOP_S) -> None:
    """Stop Spark and its JVM; returns when the JVM is gone (at most ``timeout_s``, then it is killed)."""
    gateway = spark.sparkContext._gateway
    spark.stop()
    process = getattr(gateway, "proc", None)
    gateway.shutdown()
    if process is None:
        return
    process.stdin.close()  # The JVM takes the end of its input as the order to exit.
    try:
        process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def warm_up(spark: SparkSession) -> None:
    """Run the shapes of query that ticks and reads run, so that the first real one does not pay for class loading."""
    import pyarrow as pa

    table = pa.table({"k": [1, 2, 2], "x": [1, 2, 3], "__diff": [1, 1, -1]})
    spark.createDataFrame(table).createOrReplaceTempView("tidemark_warm_up")
    for sql in (
        "SELECT k, SUM(__diff) AS n, SUM(__diff * x) AS s FROM tidemark_warm_up GROUP BY k",
        "SELECT a.k, a.__diff * b.__diff AS d FROM tidemark_warm_up a JOIN tidemark_warm_up b ON a.k = b.k",
        "SELECT k, explode(sequence(1, 2)) FROM tidemark_warm_up WHERE __diff > 0 ORDER BY k LIMIT 1",
    ):
        spark.sql(sql).toArrow()
    spark.catalog.dropTempView("tidemark_warm_up")
