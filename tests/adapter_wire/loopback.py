"""A server over loopback for tests, on an event loop in a thread of its own, so that blocking clients can be used."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future

import uvloop

from adapter.server import Limits, Server
from tests.adapter_wire.memory_executor import MemoryExecutor


class Loopback:
    """``with Loopback() as server``: listens on a free port of 127.0.0.1 until the end of the block."""

    def __init__(self, password: str | None = None, limits: Limits | None = None) -> None:
        self._arguments = (password, limits)
        self._ready: Future[None] = Future()
        self._thread = threading.Thread(target=self._main, name="server", daemon=True)

    def __enter__(self) -> Loopback:
        self._thread.start()
        self._ready.result(timeout=20)
        return self

    def __exit__(self, *_exc) -> None:
        self.loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(timeout=20)
        assert not self._thread.is_alive(), "the server did not stop"

    def dsn(self, **more: object) -> str:
        given = {"host": self.host, "port": self.port, "user": "tester", "dbname": "tidemark", "sslmode": "disable"}
        return " ".join(f"{k}='{v}'" for k, v in {**given, **more}.items())

    def call(self, coroutine, timeout_s: float = 20):
        """Await something on the server's loop."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(timeout=timeout_s)

    def _main(self) -> None:
        uvloop.run(self._serve())

    async def _serve(self) -> None:
        password, limits = self._arguments
        self.loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self.executor = MemoryExecutor()
        self.server = Server(self.executor, password=password, limits=limits)
        self.host, self.port = await self.server.start("127.0.0.1", 0)
        self._ready.set_result(None)
        await self._stop.wait()
        await self.server.stop()
