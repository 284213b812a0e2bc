"""Open everything that an adapter's executor stands on, in order, and close it: in a bounded time, whatever hangs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial

from adapter.duck.engine_check import check_engine
from adapter.execute.executor import TidemarkExecutor
from adapter.execute.peeks import FlightPeeks
from catalog_log.log import CatalogLog
from collection.topic_keeper import PARTITIONS
from collection.writer import CollectionWriter
from journal import process
from journal.aio import Bridge
from journal.lasting import Lasting
from journal.names import TopicNames
from journal.topics import topic_exists
from oracle.client import Oracle

CLOSE_TIMEOUT_S = 2.0
"""For the clients of Kafka: a producer's watchdog, which is all that a healthy one waits for.  Nothing is lost with
what is not closed: whoever waited for an answer has been told by then."""


@asynccontextmanager
async def open_executor(
    bootstrap: str, names: TopicNames, writer_id: str, partitions: int = PARTITIONS
) -> AsyncIterator[TidemarkExecutor]:
    """An executor on a real environment, which has topics made with ``partitions``.

    Raises ``Unavailable`` (no broker), ``FatalLog`` (not our topics), or
    ``InvalidUsage`` where the in-process engine lacks what we are written in.

    What cannot be closed within ``CLOSE_TIMEOUT_S`` is left behind, on threads that do not keep the process.
    """
    await asyncio.to_thread(check_engine)
    bridge = Bridge(asyncio.get_running_loop())
    closers: dict[str, Callable[[], None]] = {}
    try:
        catalog = await asyncio.to_thread(CatalogLog.open, bootstrap, names, writer_id)
        closers["catalog"] = catalog.close
        oracle = await asyncio.to_thread(Oracle.open, bootstrap, names, writer_id, catalog.upper)
        closers["oracle"] = oracle.close
        for log in (catalog.journal.transport, oracle):
            log.make_ready()  # or the first CREATE TABLE would take a second
        writer = CollectionWriter(bootstrap, names, partitions=partitions)
        closers["writer"] = writer.close
        peeks = FlightPeeks(catalog, bridge)
        closers["peeks"] = peeks.close
        executor = TidemarkExecutor(
            catalog, oracle, writer, peeks, bridge, topic_exists=partial(topic_exists, Lasting(bootstrap))
        )
        executor.start()
        try:
            yield executor
        finally:
            await executor.close()
    finally:
        # A thread of its own: the loop's few may all be taken by what hangs.
        alone = ThreadPoolExecutor(1, "close")
        await asyncio.get_running_loop().run_in_executor(alone, process.close_all, closers, CLOSE_TIMEOUT_S)
        alone.shutdown(wait=False)
