"""Views under load: the demo's freshness and throughput, held against the bare work in one plain process."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa

from bench.figure import Figure, percentile
from embedded.ports import free_ports
from journal.errors import Unavailable

ROOT = Path(__file__).resolve().parent.parent
DEMO_TIMEOUT_S = 900
JOBS = 40
WARM_UP_JOBS = 10
JOB_ROWS = 1_000


def figures(sample: int) -> list[Figure]:
    """Runs ``tidemark demo`` twice on data of its own: as fast as it goes, and at 200 rows/s."""
    fast = _demo(sample, 0)
    calm = _demo(4_000, 200)
    job_ms = _bare_job_ms()
    rate = _bare_rows_per_s(min(sample, 100_000))
    note = f"exact: {fast['exact']} and {calm['exact']}"
    limit = f"one Spark job: {JOB_ROWS} Arrow rows in, group by, Arrow out"
    return [
        Figure(
            "freshness at 200 rows/s, p50",
            calm["freshness_ms"]["p50"],
            percentile(job_ms, 0.5),
            limit,
            "ms",
            "less",
            calm["rows"],
            note,
        ),
        Figure(
            "freshness at 200 rows/s, p95",
            calm["freshness_ms"]["p95"],
            percentile(job_ms, 0.95),
            limit,
            "ms",
            "less",
            calm["rows"],
            note,
        ),
        Figure(
            "view throughput of the demo",
            fast["rows_per_s"],
            rate,
            "json.loads and two dict group-bys in one process",
            "rows/s",
            "more",
            fast["rows"],
            note,
        ),  # fmt: skip
    ]


def _demo(rows: int, speed: int) -> dict:
    """What ``tidemark demo --json`` reports; 0 rows/s is as fast as it goes."""
    with tempfile.TemporaryDirectory(prefix="tidemark-bench-") as data:
        command = [sys.executable, "-m", "cli", "demo", "--json", "--sample", str(rows), "--speed", str(speed)]
        place = ["--data", str(Path(data) / "demo"), "--port", str(free_ports(1)[0])]
        done = subprocess.run(command + place, cwd=ROOT, capture_output=True, text=True, timeout=DEMO_TIMEOUT_S)
    if done.returncode != 0:
        raise Unavailable("the demo failed", detail=done.stderr[-2000:])
    return json.loads(done.stdout.strip().splitlines()[-1])


def _bare_job_ms() -> list[float]:
    """What Spark itself needs for a tick's worth of work, in a session with the compute controller's settings."""
    from controllers.compute.session import scratch_directory, start_session, stop_session

    with tempfile.TemporaryDirectory(prefix="tidemark-bench-") as data:
        spark = start_session("local[2]", scratch_directory(Path(data)))
        try:
            return _job_times(spark)
        finally:
            stop_session(spark)


def _job_times(spark) -> list[float]:
    table = pa.table({"k": pa.array(i % 100 for i in range(JOB_ROWS)), "x": pa.array(range(JOB_ROWS))})
    times = []
    for _ in range(JOBS + WARM_UP_JOBS):
        begun = time.perf_counter()
        spark.createDataFrame(table).groupBy("k").sum("x").toArrow()
        times.append((time.perf_counter() - begun) * 1e3)
    return times[WARM_UP_JOBS:]


def _bare_rows_per_s(rows: int) -> float:
    from demo.flights import value_at

    values = [value_at(i) for i in range(rows)]
    by_carrier: dict[str, list[int]] = {}
    by_route: dict[tuple, list[int]] = {}
    begun = time.perf_counter()
    for value in values:
        row = json.loads(value)
        delay = row["arr_delay"]
        for groups, key in (
            (by_carrier, row["carrier"]),
            (by_route, (row["origin"], row["dest"], row["month"], row["day"])),
        ):
            group = groups.setdefault(key, [0, 0])
            group[0] += 1
            group[1] += delay or 0
    return rows / (time.perf_counter() - begun)
