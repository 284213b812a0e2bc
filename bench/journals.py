"""The journals against raw Kafka: compare-and-append, and linearizable reads of the oracle."""

from __future__ import annotations

import asyncio
import time
import uuid

from bench.figure import Figure, interleaved_ms, p50
from bench.raw import RawRoundTrip
from catalog_log.bootstrap import create_environment
from catalog_log.log import CatalogLog
from catalog_log.model import SETTINGS, Setting, Update
from catalog_log.records import encode_value
from journal.names import TopicNames
from journal.timestamps import TABLE
from oracle.client import Oracle

APPENDS = 400
READ_SECONDS = 3.0
CALLERS = (1, 16, 256)


def figures(bootstrap: str) -> list[Figure]:
    """Measured on an environment of its own, which stays empty but for this."""
    names = TopicNames(f"bench-{uuid.uuid4().hex[:8]}")
    create_environment(bootstrap, names, 1)
    raw = RawRoundTrip(bootstrap)
    catalog = CatalogLog.open(bootstrap, names, "bench")
    oracle = Oracle.open(bootstrap, names, "bench", catalog.upper)
    try:
        append = _append_figure(catalog, raw)
        return [append, *(asyncio.run(_read_figure(oracle, callers, append.limit)) for callers in CALLERS)]
    finally:
        oracle.close()
        catalog.close()
        raw.close()


def _append_figure(catalog: CatalogLog, raw: RawRoundTrip) -> Figure:
    value = encode_value(SETTINGS, Setting("x" * 100))

    def append() -> float:
        begun = time.perf_counter()
        upper = catalog.upper()
        catalog.compare_and_append(
            upper, max(upper + 1, int(time.time() * 1000)), [Update(SETTINGS, "bench", value, 1)]
        ).result()
        return time.perf_counter() - begun

    ours, limit = interleaved_ms(append, raw.once, APPENDS)
    return Figure(
        "compare-and-append, one writer, p50",
        p50(ours),
        p50(limit),
        "raw produce→consume of 200 bytes",
        "ms",
        "less",
        APPENDS,
    )


async def _read_figure(oracle: Oracle, callers: int, raw_ms: float) -> Figure:
    """Linearizable reads per second.  Without sharing, each would cost a record: that is the limit to beat."""
    done = 0
    ends = time.perf_counter() + READ_SECONDS

    async def caller() -> None:
        nonlocal done
        while time.perf_counter() < ends:
            await oracle.read_ts_async(TABLE)
            done += 1

    begun = time.perf_counter()
    await asyncio.gather(*(caller() for _ in range(callers)))
    rate = done / (time.perf_counter() - begun)
    return Figure(
        f"read_ts, {callers} callers", rate, 1000 / raw_ms, "one raw round trip after the other", "1/s", "more", done
    )
