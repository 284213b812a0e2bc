"""Eight views of different shapes over one source: how fresh each is while all of them are kept.

One after the other is looked at, so that looking costs what it costs beside a single view; all of them are kept all
the time.  Each counts the orders in its own way, and is compared with what it must be in the end.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from bench.figure import Figure
from bench.views import CALM_CUSTOMERS, CALM_ROWS_PER_S, PROBE_EVERY_S, Orders, ticks
from embedded.ports import free_ports
from embedded.stack import Settings, Stack, running
from journal.errors import FatalLog, Unavailable

EIGHT = "freshness with eight views, p50"
AIM_MS = 80

WARM_UP_S, LOOK_S = 2, 6
"""A sender's first rows wait half a second for its connection, so those of the first seconds are not counted."""

CAUGHT_UP_MAX_S = 60.0

REGIONS = 10

VIEWS = {
    "linear": "SELECT id, 1 AS n FROM orders WHERE amount >= 0 AND note LIKE 'order%'",
    "join": "SELECT r.region, count(*) AS n FROM orders o JOIN regions r ON r.customer = o.customer GROUP BY r.region",
    "outer join": "SELECT r.region, count(o.id) AS n FROM regions r LEFT JOIN orders o ON r.customer = o.customer "
                  "GROUP BY r.region",
    "union": "SELECT customer, count(*) AS n FROM (SELECT customer FROM orders WHERE amount < 5000 "
             "UNION ALL SELECT customer FROM orders WHERE amount >= 5000) u GROUP BY customer",
    "distinct": "SELECT customer, count(DISTINCT id) AS n FROM orders GROUP BY customer",
    "extremes": "SELECT customer, min(amount) AS least, max(amount) AS most, count(*) AS n FROM orders "
                "GROUP BY customer",
    "ranks": "SELECT customer, max(place) AS n FROM (SELECT customer, row_number() OVER "
             "(PARTITION BY customer ORDER BY amount DESC, id) AS place FROM orders) o GROUP BY customer",
}  # fmt: skip
"""Beside the totals by customer that :class:`bench.views.Orders` has.  The sum of ``n`` is the orders seen."""


def figures(chosen: Callable[[str], bool]) -> list[Figure]:
    """On a stack of its own, one view alone before the eight."""
    if not chosen(EIGHT):
        return []
    with tempfile.TemporaryDirectory(prefix="tidemark-bench-") as data:
        port, broker_port = free_ports(2)
        with running(Settings(data=Path(data), env="bench", port=port, broker_port=broker_port)) as stack:
            return [_figure(stack)]


def _figure(stack: Stack) -> Figure:
    each = Orders(stack, CALM_CUSTOMERS)
    try:
        alone = _fresh(each, "totals")
        _make(each)
        by_shape = {"sums": _fresh(each, "totals")}
        by_shape |= {shape: _fresh(each, f"v{n}") for n, shape in enumerate(VIEWS)}
        note = _note(each, by_shape, stack)
        _check(each)
    finally:
        each.close()
    ours = float(np.median(np.concatenate(list(by_shape.values()))))
    limit = float(np.median(alone))
    samples = sum(map(len, by_shape.values()))
    return Figure(EIGHT, ours, limit, "one view alone", "ms", "less", samples, note, f"≤ {AIM_MS} ms")


def _make(each: Orders) -> None:
    run = each.connection.execute
    run(f"SET search_path = {each.schema}")
    run("CREATE TABLE regions (customer int4 NOT NULL, region int4 NOT NULL)")
    run("INSERT INTO regions VALUES " + ", ".join(f"({n}, {n % REGIONS})" for n in range(each.customers)))
    for n, query in enumerate(VIEWS.values()):
        run(f"CREATE MATERIALIZED VIEW v{n} AS {query}")
        run(f"CREATE INDEX v{n}_by ON v{n} (n)")
        _await(each, f"v{n}")


def _seen(each: Orders, view: str) -> int:
    return int(each.connection.execute(f"SELECT sum(n) FROM {each.schema}.{view}").fetchone()[0] or 0)


def _await(each: Orders, view: str) -> None:
    """Until ``view`` shows all that was sent."""
    until = time.monotonic() + CAUGHT_UP_MAX_S
    while (seen := _seen(each, view)) < each.sent:
        if time.monotonic() > until:
            raise Unavailable(f"{view} is behind after {CAUGHT_UP_MAX_S:.0f} s", detail=f"{seen} of {each.sent}")
        time.sleep(PROBE_EVERY_S)


def _fresh(each: Orders, view: str) -> np.ndarray:
    """Milliseconds from sending to being seen in ``view``, by row."""
    _await(each, view)
    values = each.values((WARM_UP_S + LOOK_S) * CALM_ROWS_PER_S)
    fresh, _ = each.send(values, CALM_ROWS_PER_S, PROBE_EVERY_S, partial(_seen, each, view))
    return fresh[WARM_UP_S * CALM_ROWS_PER_S :] * 1e3


def _note(each: Orders, by_shape: dict[str, np.ndarray], stack: Stack) -> str:
    shapes = ", ".join(f"{shape} {np.median(ms):.0f}" for shape, ms in by_shape.items())
    rows = each.connection.execute(
        "SELECT sum(process_ticks), sum(spark_ticks) FROM tm_internal.view_status WHERE name LIKE 'v_'"
    ).fetchone()
    by_process, by_spark = (int(count or 0) for count in rows)
    return (
        f"exact; p50 by shape: {shapes}; evaluated {by_process} times in the process, {by_spark} by Spark; "
        + ticks(stack)
    )


def _check(each: Orders) -> None:
    """Raise unless every view is what its query gives."""
    each.check()
    each.connection.execute("SET tidemark.isolation = 'strict serializable'")
    for n, query in enumerate(VIEWS.values()):
        differ = f"(({query}) EXCEPT ALL TABLE v{n}) UNION ALL (TABLE v{n} EXCEPT ALL ({query}))"
        rows = each.connection.execute(f"SELECT count(*) FROM ({differ}) d").fetchone()
        if rows[0]:
            raise FatalLog(f"view v{n} is wrong", detail=f"{rows[0]} rows differ")
