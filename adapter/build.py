"""Open everything that an adapter's executor stands on, in order, and close it in reverse."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from adapter.executor import TidemarkExecutor
from adapter.peeks import FlightPeeks
from catalog_log.log import CatalogLog
from collection.writer import CollectionWriter
from journal.aio import Bridge
from journal.names import TopicNames
from oracle.client import Oracle


@asynccontextmanager
async def open_executor(bootstrap: str, names: TopicNames, writer_id: str) -> AsyncIterator[TidemarkExecutor]:
    """An executor on a real environment.  Raises ``Unavailable`` (no broker) or ``FatalLog`` (not our topics)."""
    bridge = Bridge(asyncio.get_running_loop())
    async with AsyncExitStack() as stack:
        catalog = await asyncio.to_thread(CatalogLog.open, bootstrap, names, writer_id)
        stack.callback(catalog.close)
        oracle = await asyncio.to_thread(Oracle.open, bootstrap, names, writer_id, catalog.upper)
        stack.callback(oracle.close)
        writer = CollectionWriter(bootstrap, names)
        stack.callback(writer.close)
        peeks = FlightPeeks(catalog, bridge)
        stack.callback(peeks.close)
        executor = TidemarkExecutor(catalog, oracle, writer, peeks, bridge)
        executor.start()
        stack.push_async_callback(executor.close)
        yield executor
