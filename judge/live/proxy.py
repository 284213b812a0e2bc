"""A small TCP proxy that is slow on purpose: delay, jitter, bandwidth and standstill, each way by itself.

Promises: bytes come out as they went in and in order, however slow; settings may change while connections are open;
``close`` ends all of them.  ``netem`` would do this in the kernel, and is not in every kernel.

One thread with an event loop for each proxy.  A thread that is on a made host when it starts a proxy puts the proxy
there (see :mod:`judge.live.network`).
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass

CHUNK_BYTES = 64 * 1024
AHEAD_MAX = 64
"""Chunks under way in one direction of a connection: beyond it the sender is made to wait, as by a full window."""

STALL_LOOK_S = 0.02


@dataclass(frozen=True)
class Shape:
    """What happens to the bytes of one direction."""

    delay_s: float = 0.0
    jitter_s: float = 0.0
    """Up to this much more, anew for each chunk; order is kept."""
    bytes_per_s: float | None = None
    stalled: bool = False
    """Nothing moves until this is taken back."""


class Proxy:
    """Listens on ``host:port`` (0: any free one, see :attr:`port`) and connects to ``target``."""

    def __init__(self, target: tuple[str, int], host: str = "127.0.0.1", port: int = 0, seed: int = 0) -> None:
        self.towards = Shape()
        """Client to target."""
        self.back = Shape()
        self.port = port
        self._target = target
        self._host = host
        self._random = random.Random(seed)
        self._ready: Future[int] = Future()
        self._tasks: set[asyncio.Task] = set()
        self._thread = threading.Thread(target=self._run, name=f"proxy-{target[1]}", daemon=True)
        self._thread.start()
        self.port = self._ready.result(10)

    def shape(self, both: Shape) -> None:
        """The same for both directions."""
        self.towards = self.back = both

    def close(self) -> None:
        """End all connections and the proxy."""
        self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join()

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except OSError as error:
            if not self._ready.done():
                self._ready.set_exception(error)

    async def _serve(self) -> None:
        self._loop, self._stopped = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._accepted, self._host, self.port, limit=CHUNK_BYTES)
        self._ready.set_result(server.sockets[0].getsockname()[1])
        await self._stopped.wait()
        server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        self._tasks.add(task)
        try:
            await self._carry(reader, writer)
        except asyncio.CancelledError:
            pass  # closing: a server's task that ends cancelled is reported as an error
        finally:
            self._tasks.discard(task)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection(*self._target, limit=CHUNK_BYTES)
        except OSError:
            writer.transport.abort()  # as the target would have: refused
            return
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(self._pump(reader, far_writer, "towards"))
                both.create_task(self._pump(far_reader, writer, "back"))
        except* OSError:
            pass  # one side went away; so does the other
        finally:
            writer.transport.abort()
            far_writer.transport.abort()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, way: str) -> None:
        """Read at once and write when it is time: a delay must not lower the bandwidth."""
        under_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(AHEAD_MAX)

        async def take() -> None:
            due = 0.0
            while True:
                data = await reader.read(CHUNK_BYTES)
                shape: Shape = getattr(self, way)
                due = max(due, time.monotonic() + shape.delay_s + self._random.uniform(0, shape.jitter_s))
                await under_way.put((due, data))
                if not data:
                    return

        async def give() -> None:
            while True:
                due, data = await under_way.get()
                await asyncio.sleep(max(0.0, due - time.monotonic()))
                while (shape := getattr(self, way)).stalled:
                    await asyncio.sleep(STALL_LOOK_S)
                if not data:
                    if writer.can_write_eof():
                        writer.write_eof()
                    return
                writer.write(data)
                await writer.drain()
                if shape.bytes_per_s:
                    await asyncio.sleep(len(data) / shape.bytes_per_s)

        async with asyncio.TaskGroup() as both:
            both.create_task(take())
            both.create_task(give())
