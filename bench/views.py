"""Views under load: freshness at a calm pace, throughput at full speed, and a read of a million rows on Spark.

A lean set-up: one source, one GROUP BY view with an index, nobody else asking Spark for anything.  Each run ends with
the whole view compared with what it must be, so a figure is of exact views or there is none.
"""

from __future__ import annotations

import json
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import psycopg
import pyarrow as pa

from bench import flink, orders
from bench.figure import Figure, interleaved_ms, p50
from controllers.node_status import NodeStatus
from demo.topics import ensure_topic
from embedded.frontiers import FrontierReader
from embedded.ports import free_ports
from embedded.stack import CLUSTER, Settings, Stack, running
from journal.errors import FatalLog, Unavailable

CALM_ROWS_PER_S = 200
CALM_WARM_UP_S = 5
CALM_S = 30
CALM_CUSTOMERS = 100
PROBE_EVERY_S = 0.01
"""Adds at most that to what is measured, and costs the adapter some 60 small reads a second."""

BUSY_CUSTOMERS = 1_000
BUSY_WARM_UP_ROWS = 100_000
BUSY_PROBE_EVERY_S = 0.1

STALL_MAX_S = 120.0
"""A run has failed where nothing became visible for so long: more than a restart of everything takes."""

PEEKS = 40


def figures(sample: int, chosen: Callable[[str], bool]) -> list[Figure]:
    """On a stack of its own: a catalog of a hundred thousand objects from other figures is no lean set-up.

    ``sample`` is how many rows the throughput's run sends, and the read on Spark reads.
    """
    fresh = any(chosen(_fresh_name(q)) for q, _aim in FRESH_AIMS_MS)
    busy = any(chosen(name) for name in (THROUGHPUT, PEEK))
    if not fresh and not busy:
        return []
    found: list[Figure] = []
    with tempfile.TemporaryDirectory(prefix="tidemark-bench-") as data:
        port, broker_port = free_ports(2)
        with running(Settings(data=Path(data), env="bench", port=port, broker_port=broker_port)) as stack:
            if fresh:
                found += _freshness(stack)
            if busy:
                with bare_spark() as spark:
                    found += _throughput(stack, sample, spark)
    return [figure for figure in found if chosen(figure.name)]


THROUGHPUT = "view throughput, GROUP BY, one lane"
PEEK = "peek on Spark, filter and GROUP BY, p50"
FRESH_AIMS_MS = ((50, 250), (99, 600))


def _fresh_name(quantile: int) -> str:
    return f"freshness at {CALM_ROWS_PER_S} rows/s, p{quantile}"


# -- one source and its view ------------------------------------------------------------------------------------------


class Orders:
    """A topic of orders, a source over it, and an indexed view of each customer's orders."""

    def __init__(self, stack: Stack, customers: int) -> None:
        self.kafka, self.customers = stack.kafka, customers
        self.schema = f"bench_{uuid.uuid4().hex[:8]}"
        self.topic = f"{stack.settings.env}-{self.schema}"
        ensure_topic(stack.kafka, self.topic, {"retention.ms": "-1"})
        self.connection = psycopg.connect(stack.dsn(), autocommit=True)
        self.sent = 0
        for sql in (
            f"CREATE SCHEMA {self.schema}",
            f"CREATE SOURCE {self.schema}.orders ({orders.COLUMNS}) FROM KAFKA TOPIC '{self.topic}' FORMAT JSON",
            f"CREATE MATERIALIZED VIEW {self.schema}.totals AS SELECT customer, count(*) AS n, sum(amount) AS s "
            f"FROM {self.schema}.orders GROUP BY customer",
            f"CREATE INDEX totals_customer ON {self.schema}.totals (customer)",
            f"SELECT count(*) FROM {self.schema}.totals",  # waits until the view is there
            # The newest timestamp that the view has reached is what freshness is about.
            "SET tidemark.isolation = 'serializable'",
        ):
            self.connection.execute(sql)

    def visible(self) -> int:
        """How many orders the view shows now, from its index."""
        return int(self.connection.execute(f"SELECT sum(n) FROM {self.schema}.totals").fetchone()[0] or 0)

    def values(self, count: int) -> list[bytes]:
        """The next orders."""
        return [orders.value_at(i, self.customers) for i in range(self.sent, self.sent + count)]

    def send(
        self,
        values: list[bytes],
        rows_per_s: float | None,
        probe_every_s: float,
        visible: Callable[[], int] | None = None,
    ) -> tuple[np.ndarray, float]:
        """Send them and wait until all are visible: seconds from sending to being seen by row, and until all were.

        ``visible`` says how many are; if it is not given, those in the totals.
        """
        start, seen = self.sent, self.sent
        visible = visible or self.visible
        fresh = np.zeros(len(values))
        progress_at = time.monotonic()
        with orders.Sender(self.kafka, self.topic, values, rows_per_s) as sender:
            self.sent += len(values)
            while seen < self.sent:
                asked_at = time.monotonic()
                count = visible()
                now = time.monotonic()
                if count < seen:
                    raise FatalLog(f"the view went back from {seen} to {count} orders")
                if count > seen:
                    fresh[seen - start : count - start] = now - sender.sent_at[seen - start : count - start]
                    seen, progress_at = count, now
                elif now - progress_at > STALL_MAX_S:
                    raise Unavailable(f"nothing became visible for {STALL_MAX_S:.0f} s", detail=f"{seen} orders are")
                time.sleep(max(0.0, probe_every_s - (now - asked_at)))
            return fresh, now - sender.began_s

    def check(self) -> None:
        """Raise unless the whole view is what it must be."""
        rows = self.connection.execute(f"SELECT customer, n, s FROM {self.schema}.totals").fetchall()
        found = {customer: (int(n), int(s)) for customer, n, s in rows}
        if len(found) != len(rows) or found != orders.expected(self.sent, self.customers):
            raise FatalLog("the view is wrong", detail=f"{len(rows)} rows after {self.sent} orders: {rows[:3]}…")

    def close(self) -> None:
        self.connection.execute(f"DROP SCHEMA {self.schema} CASCADE")
        self.connection.close()


@contextmanager
def _orders(stack: Stack, customers: int) -> Iterator[Orders]:
    found = Orders(stack, customers)
    try:
        yield found
    finally:
        found.close()


def ticks(stack: Stack) -> str:
    """Where the recent ticks' time went, as the compute controller tells it: medians, ms."""
    reader, nodes = FrontierReader(stack.kafka, stack.names, "bench"), NodeStatus()
    try:
        ticks = nodes.ask(reader.after_barrier().image, f"compute/{CLUSTER}").get("ticks", {})
    finally:
        nodes.close()
        reader.close()
    parts = [f"{name} {ticks[key]:g}" for name, key in _PARTS.items() if ticks.get(key) is not None]
    return f"ms a tick: {', '.join(parts)}" if parts else "the controller tells nothing of its ticks"


_PARTS = {"all": "tick_ms_p50", **{name: f"{name}_ms_p50" for name in ("load", "evaluate", "write", "commit")}}


# -- the figures ------------------------------------------------------------------------------------------------------


def _freshness(stack: Stack) -> list[Figure]:
    with _orders(stack, CALM_CUSTOMERS) as each:
        # By one sender, as at the peer's: a new one's first rows wait half a second for its connection.
        warm_up = CALM_WARM_UP_S * CALM_ROWS_PER_S
        fresh, _ = each.send(each.values(warm_up + CALM_S * CALM_ROWS_PER_S), CALM_ROWS_PER_S, PROBE_EVERY_S)
        fresh = fresh[warm_up:]
        note = f"exact; {ticks(stack)}"
        each.check()
    peer = flink.freshness_ms(stack.kafka, CALM_ROWS_PER_S, CALM_S)
    ms = fresh * 1e3
    found = []
    for q, aim in FRESH_AIMS_MS:
        if isinstance(peer, str):
            limit, limit_is = None, f"no Flink: {peer}"
        else:
            limit, limit_is = float(np.percentile(peer, q)), "Flink SQL, exactly once, checkpoints a second"
        ours = float(np.percentile(ms, q))
        found.append(Figure(_fresh_name(q), ours, limit, limit_is, "ms", "less", len(ms), note, f"≤ {aim} ms"))
    return found


def _throughput(stack: Stack, sample: int, spark) -> list[Figure]:
    with _orders(stack, BUSY_CUSTOMERS) as each:
        each.send(each.values(BUSY_WARM_UP_ROWS), None, BUSY_PROBE_EVERY_S)
        values = each.values(sample)
        _, seconds = each.send(values, None, BUSY_PROBE_EVERY_S)
        note = f"exact; {seconds:.1f} s; {ticks(stack)}"
        each.check()
        bare = _bare_rows_per_s(values[:100_000])
        limit = "json.loads and a dict group-by in one process"
        peek = _peek(each, spark)
        figure = Figure(THROUGHPUT, sample / seconds, bare, limit, "rows/s", "more", sample, note, "≥ 75,000 rows/s")
        return [figure, peek]


def _peek(each: Orders, spark) -> Figure:
    """A filter and a GROUP BY over the source, against the same rows cached in a Spark that does nothing else."""
    from controllers.compute.session import PARTITIONS

    sql = "SELECT customer, count(*) AS n, sum(amount) AS s FROM {} WHERE amount < 5000 GROUP BY customer"
    # Arrow comes in batches of 10,000 rows, each a partition: as many tasks would cost four times what the query does.
    frame = spark.createDataFrame(_as_arrow(each.sent, each.customers)).repartition(int(PARTITIONS)).persist()
    frame.createOrReplaceTempView("orders")
    frame.count()
    bare_sql, our_sql = sql.format("orders"), sql.format(f"{each.schema}.orders")
    theirs = {tuple(map(int, row.values())) for row in spark.sql(bare_sql).toArrow().to_pylist()}
    found = {tuple(map(int, row)) for row in each.connection.execute(our_sql).fetchall()}
    if found != theirs:
        raise FatalLog("a read on Spark is wrong", detail=f"{len(found)} rows, expected {len(theirs)}")
    ours, bare = interleaved_ms(
        _timed(lambda: each.connection.execute(our_sql).fetchall()),
        _timed(lambda: spark.sql(bare_sql).toArrow()), PEEKS, warmup=5,
    )  # fmt: skip
    frame.unpersist()
    return Figure(PEEK, p50(ours), p50(bare), "the same DataFrame cached in a bare Spark session", "ms", "less", PEEKS,
                  f"{each.sent:,} rows", "ratio ≤ 2")  # fmt: skip


def _as_arrow(count: int, customers: int) -> pa.Table:
    values = [json.loads(orders.value_at(i, customers)) for i in range(count)]
    schema = pa.schema([("id", pa.int64()), ("customer", pa.int32()), ("amount", pa.int32()), ("note", pa.string())])
    return pa.Table.from_pylist(values, schema=schema)


def _timed(run: Callable[[], object]) -> Callable[[], float]:
    def once() -> float:
        begun = time.perf_counter()
        run()
        return time.perf_counter() - begun

    return once


# -- what it is held against ------------------------------------------------------------------------------------------


@contextmanager
def bare_spark() -> Iterator:
    """A session with the compute controller's settings that does nothing else."""
    from controllers.compute.session import MASTER, scratch_directory, start_session, stop_session

    with tempfile.TemporaryDirectory(prefix="tidemark-bench-") as data:
        spark = start_session(MASTER, scratch_directory(Path(data)))
        try:
            yield spark
        finally:
            stop_session(spark)


def _bare_rows_per_s(values: list[bytes]) -> float:
    groups: dict[int, list[int]] = {}
    begun = time.perf_counter()
    for value in values:
        row = json.loads(value)
        group = groups.setdefault(row["customer"], [0, 0])
        group[0] += 1
        group[1] += row["amount"]
    return len(values) / (time.perf_counter() - begun)
