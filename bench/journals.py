"""The journals against raw Kafka and Postgres: compare-and-append, and linearizable reads of the oracle."""

from __future__ import annotations

import asyncio
import os
import time
import uuid
from collections.abc import Awaitable, Callable
from contextlib import ExitStack

import uvloop

from bench import objects, writers
from bench.batched import RowInBatches
from bench.figure import Figure, in_turn, interleaved_ms, p50
from bench.peers import Absent, Server, postgres
from bench.raw import RawRoundTrip
from catalog_log.bootstrap import create_environment
from catalog_log.log import CatalogLog
from catalog_log.model import SETTINGS, Setting, Update
from catalog_log.records import encode_value
from collection.binding import Inline
from journal.names import TopicNames
from journal.timestamps import TABLE
from oracle.client import Oracle
from oracle.model import CommitPart

APPENDS = 400
READ_SECONDS = 2.0
CALLERS = (16, 256)
APPEND = "compare-and-append, one writer, p50"
CARRIED = (1 << 10, 4 << 10, 16 << 10, 64 << 10)
"""Bytes of rows in a commit record."""

CARRYING_COMMITS = 300


def figures(bootstrap: str, wanted: Callable[[str], bool] = lambda _name: True) -> list[Figure]:
    """Measured on environments of their own, which stay empty but for this."""
    found = []
    reads = [callers for callers in CALLERS if wanted(_read_name(callers))]
    carried = [size for size in CARRIED if wanted(_carry_name(size))]
    if wanted(APPEND) or reads or carried:
        names = TopicNames(f"bench-{uuid.uuid4().hex[:8]}")
        create_environment(bootstrap, names, 1)
        with ExitStack() as stack:
            catalog = CatalogLog.open(bootstrap, names, "bench")
            stack.callback(catalog.close)
            oracle = Oracle.open(bootstrap, names, "bench", catalog.upper)
            stack.callback(oracle.close)
            if wanted(APPEND):
                raw = RawRoundTrip(bootstrap)
                stack.callback(raw.close)
                found.append(_append_figure(catalog, raw))
            if reads:
                found += _read_figures(oracle, reads)
            if carried:
                oracle.raise_format().result()
                found += [_carry_figure(oracle, size) for size in carried]
    if wanted(writers.NAME):
        found.append(writers.figure(bootstrap))
    if wanted(objects.NAME):
        found.append(objects.figure(bootstrap))
    return found


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
    what = "raw produce→consume of 200 bytes"
    return Figure(APPEND, p50(ours), p50(limit), what, "ms", "less", APPENDS, aim="≤ 1.25")


def _carry_name(size: int) -> str:
    return f"a commit that carries {size >> 10} KiB, p50"


def _carry_figure(oracle: Oracle, size: int) -> Figure:
    """What bounds the rows that travel in a record: where it begins to take longer than one without."""
    rows = os.urandom(size)

    def carrying() -> float:
        begun = time.perf_counter()
        oracle.commit(CommitPart("bench", inline=(Inline("u1", rows, "", 1),))).result()
        took = time.perf_counter() - begun
        return took

    def empty() -> float:
        begun = time.perf_counter()
        oracle.commit(CommitPart("bench")).result()
        return time.perf_counter() - begun

    ours, limit = interleaved_ms(carrying, empty, CARRYING_COMMITS)
    return Figure(_carry_name(size), p50(ours), p50(limit), "a commit without rows", "ms", "less", CARRYING_COMMITS)


def _read_name(callers: int) -> str:
    return f"read_ts, {callers} callers"


def _read_figures(oracle: Oracle, reads: list[int]) -> list[Figure]:
    try:
        with postgres() as peer:
            return [_read_figure(oracle, callers, peer, "") for callers in reads]
    except Absent as error:
        return [_read_figure(oracle, callers, None, str(error)) for callers in reads]


def _read_figure(oracle: Oracle, callers: int, peer: Server | None, why: str) -> Figure:
    """Linearizable reads per second, each caller one at a time; on Postgres a row, read in batches as ours are."""

    def ours() -> float:
        return _on_a_loop(lambda: _reads_per_s(lambda: oracle.read_ts_async(TABLE), callers))

    def theirs() -> float:
        return 0.0 if peer is None else _on_a_loop(lambda: _rows_per_s(peer, callers))

    rate, limit = in_turn(ours, theirs, 3)
    what = "a Postgres row in batches, same callers" if peer is not None else ""
    count = int(rate * READ_SECONDS * 3)
    return Figure(_read_name(callers), rate, limit or None, what, "1/s", "more", count, why, "≥ 1")


def _on_a_loop(work: Callable[[], Awaitable[float]]) -> float:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work())


async def _rows_per_s(peer: Server, callers: int) -> float:
    row = RowInBatches(peer)
    try:
        return await _reads_per_s(row.read, callers)
    finally:
        row.close()


async def _reads_per_s(read: Callable[[], Awaitable[int]], callers: int) -> float:
    done = 0
    begun = time.perf_counter()
    ends = begun + READ_SECONDS

    async def caller() -> None:
        nonlocal done
        while time.perf_counter() < ends:
            await read()
            done += 1

    await asyncio.gather(*(caller() for _ in range(callers)))
    return done / (time.perf_counter() - begun)
