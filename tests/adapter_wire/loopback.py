"""A server over loopback for tests, on an event loop in a thread of its own, so that blocking clients can be used."""

from __future__ import annotations

import asyncio
import socket
import threading
from concurrent.futures import Future

import uvloop

from adapter.server.server import Limits, Server
from tests.adapter_wire import frontend
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


class Raw:
    """A client that speaks bytes."""

    def __init__(self, server: Loopback, *, start: bool = True, **parameters: str) -> None:
        self.socket = socket.create_connection((server.host, server.port), timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # as every driver does
        self._left = b""
        self.key: tuple[int, bytes] = (0, b"")
        self.parameters: dict[str, str] = {}
        if start:
            self.send(frontend.startup(**parameters))
            for kind, body in self.until_ready():
                if kind == "S":
                    name, value, _ = body.split(b"\0")
                    self.parameters[name.decode()] = value.decode()
                elif kind == "K":
                    self.key = (int.from_bytes(body[:4], "big"), body[4:])

    def __enter__(self) -> Raw:
        return self

    def __exit__(self, *_exc) -> None:
        self.socket.close()

    def send(self, *parts: bytes) -> None:
        self.socket.sendall(b"".join(parts))

    def message(self) -> tuple[str, bytes] | None:
        """The next message; ``None`` at the end of the stream."""
        while len(self._left) < 5 or len(self._left) < 1 + int.from_bytes(self._left[1:5], "big"):
            data = self.socket.recv(1 << 16)
            if not data:
                assert not self._left
                return None
            self._left += data
        end = 1 + int.from_bytes(self._left[1:5], "big")
        found, self._left = (chr(self._left[0]), self._left[5:end]), self._left[end:]
        return found

    def until(self, kind: str) -> list[tuple[str, bytes]]:
        found = []
        while not found or found[-1][0] != kind:
            got = self.message()
            assert got is not None, f"the connection ended after {found}"
            found.append(got)
        return found

    def until_ready(self) -> list[tuple[str, bytes]]:
        return self.until("Z")

    def ask(self, *parts: bytes) -> list[tuple[str, bytes]]:
        self.send(*parts)
        return self.until_ready()

    def rest(self) -> list[tuple[str, bytes]]:
        """Everything until the server closes."""
        found = []
        while (got := self.message()) is not None:
            found.append(got)
        return found
