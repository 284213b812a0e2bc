"""The same view kept by Flink SQL, exactly once: what our freshness is held against, where Flink is installed.

It is not part of Tidemark's environment (250 MB).  To have it, in the checkout:

    .tidemark/venv/bin/pip install --no-deps --target .tidemark/flink apache-flink-libraries==2.3.0

and beside it, as jars in ``.tidemark/flink``, Maven's ``org.apache.flink:flink-sql-connector-kafka:5.0.0-2.2``,
``org.apache.flink:flink-sql-gateway:2.3.0`` and ``org.apache.flink:flink-sql-gateway-api:2.3.0``.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from confluent_kafka import Consumer, TopicPartition

from bench import orders
from demo.topics import ensure_topic
from embedded.java import find_java
from embedded.layout import STATE

HOME = STATE / "flink"
CUSTOMERS = 100
WARM_UP_S = 20
"""A job of Flink's starts within some 10 s and compiles for a while after that."""
START_S = 120.0
LATE_S = 30.0
"""How long after the last row Flink may take to show it: thirty checkpoints."""

_SETTINGS = """\
SET 'execution.target' = 'local';
SET 'parallelism.default' = '1';
SET 'execution.checkpointing.interval' = '1s';
SET 'execution.checkpointing.mode' = 'EXACTLY_ONCE';
SET 'execution.checkpointing.dir' = '{checkpoints}';
SET 'table.dml-sync' = 'true';
"""

_SCRIPT = """\
CREATE TABLE orders (id BIGINT, customer INT, amount INT, note STRING) WITH (
  'connector' = 'kafka', 'topic' = '{source}', 'properties.bootstrap.servers' = '{kafka}',
  'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE TABLE totals (customer INT, n BIGINT, s BIGINT, PRIMARY KEY (customer) NOT ENFORCED) WITH (
  'connector' = 'upsert-kafka', 'topic' = '{sink}', 'properties.bootstrap.servers' = '{kafka}',
  'properties.transaction.timeout.ms' = '60000', 'key.format' = 'json', 'value.format' = 'json',
  'sink.delivery-guarantee' = 'exactly-once', 'sink.transactional-id-prefix' = '{sink}');
INSERT INTO totals SELECT customer, COUNT(*), SUM(amount) FROM orders GROUP BY customer;
"""


def freshness_ms(kafka: str, rows_per_s: int, seconds: int) -> np.ndarray | str:
    """Milliseconds from a row's sending to its being seen behind a committed transaction; or why there are none."""
    if (reason := missing()) is not None:
        return reason
    source, sink = (f"bench.flink.{kind}.{uuid.uuid4().hex[:8]}" for kind in ("orders", "totals"))
    for topic in (source, sink):
        ensure_topic(kafka, topic)
    with job(_SCRIPT.format(kafka=kafka, source=source, sink=sink)) as (process, log):
        return _measure(process, log, kafka, source, sink, rows_per_s, seconds)


def missing() -> str | None:
    """Why Flink cannot be asked, if it cannot."""
    if not list(HOME.glob("pyflink/lib/flink-dist*.jar")):
        return "not installed (bench/flink.py says how)"
    if not list(HOME.glob("flink-sql-connector-kafka-*.jar")):
        return "its Kafka connector is not installed (bench/flink.py says how)"
    return None


@contextmanager
def job(script: str) -> Iterator[tuple[subprocess.Popen, Path]]:
    """``script`` run exactly once, with a checkpoint a second, in one process that ends with the block; what it says
    goes to a file."""
    with tempfile.TemporaryDirectory(prefix="tidemark-bench-") as data:
        log = Path(data) / "flink.log"
        with log.open("w") as out:
            process = subprocess.Popen(_command(Path(data), script), stdin=subprocess.DEVNULL, stdout=out,
                                       stderr=subprocess.STDOUT, cwd=data, env=_environment(Path(data)))  # fmt: skip
        try:
            yield process, log
        finally:
            process.kill()
            process.wait()


def _command(data: Path, text: str) -> list[str]:
    script = data / "job.sql"
    script.write_text(_SETTINGS.format(checkpoints=(data / "cp").as_uri()) + text)
    # The client asks Flink's Python for its options, though no Python runs.
    parts = ("pyflink/lib/*.jar", "pyflink/opt/flink-sql-client*.jar", "pyflink/opt/flink-python*.jar", "*.jar")
    jars = [jar for part in parts for jar in HOME.glob(part)]
    opens = ("java.base/java.util", "java.base/java.lang", "java.base/java.net", "java.base/java.nio",
             "java.base/sun.nio.ch", "java.base/java.time")  # fmt: skip
    options = ["-Xmx1g", *(f"--add-opens={each}=ALL-UNNAMED" for each in opens), "-cp", os.pathsep.join(map(str, jars))]
    return [find_java(), *options, "org.apache.flink.table.client.SqlClient", "-f", str(script)]


def _environment(data: Path) -> dict[str, str]:
    (data / "config.yaml").write_text("taskmanager.numberOfTaskSlots: 2\n")
    return {**os.environ, "FLINK_CONF_DIR": str(data), "FLINK_LIB_DIR": str(HOME / "pyflink" / "lib")}


def _measure(process, log: Path, kafka: str, source: str, sink: str, rows_per_s: int, seconds: int) -> np.ndarray | str:
    warm_up = WARM_UP_S * rows_per_s
    count = warm_up + seconds * rows_per_s
    values = [orders.value_at(i, CUSTOMERS) for i in range(count)]
    consumer = Consumer({"bootstrap.servers": kafka, "group.id": sink, "isolation.level": "read_committed",
                         "enable.auto.commit": False, "fetch.wait.max.ms": 10, "log_level": 2})  # fmt: skip
    consumer.assign([TopicPartition(sink, 0, 0)])
    fresh = np.zeros(count)
    totals: dict[int, tuple[int, int]] = {}
    seen = 0
    try:
        with orders.Sender(kafka, source, values, rows_per_s) as sender:
            deadline = time.monotonic() + START_S + count / rows_per_s + LATE_S
            while seen < count:
                if process.poll() is not None or time.monotonic() > deadline:
                    return f"it failed: {' '.join(log.read_text().split())[-300:]}"
                for message in consumer.consume(10_000, 0.01):
                    if message.error() is None and message.value() is not None:
                        row = json.loads(message.value())
                        totals[row["customer"]] = (row["n"], row["s"])
                now, visible = time.monotonic(), sum(n for n, _ in totals.values())
                fresh[seen:visible] = now - sender.sent_at[seen:visible]
                seen = max(seen, visible)
    finally:
        consumer.close()
    if totals != orders.expected(count, CUSTOMERS):
        return "its view is wrong"
    return fresh[warm_up:] * 1e3
