"""The slow proxy: late, narrow, at a standstill, and never wrong."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from judge.live.proxy import Proxy, Shape


@pytest.fixture
def echo() -> Iterator[tuple[str, int]]:
    """A server that says back what it hears."""
    server = socket.create_server(("127.0.0.1", 0))

    def talk(connection: socket.socket) -> None:
        with connection:
            while data := connection.recv(65536):
                connection.sendall(data)

    def accept() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            threading.Thread(target=talk, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    yield server.getsockname()
    server.shutdown(socket.SHUT_RDWR)
    server.close()


@pytest.fixture
def proxy(echo: tuple[str, int]) -> Iterator[Proxy]:
    made = Proxy(echo)
    yield made
    made.close()


def ask(connection: socket.socket, said: bytes) -> bytes:
    """What comes back, and that it is whole."""
    sending = threading.Thread(target=connection.sendall, args=(said,))
    sending.start()
    heard = bytearray()
    while len(heard) < len(said):
        heard += connection.recv(65536)
    sending.join()
    return bytes(heard)


def test_bytes_come_out_as_they_went_in_with_jitter(proxy: Proxy) -> None:
    proxy.shape(Shape(delay_s=0.001, jitter_s=0.01))
    said = os.urandom(3_000_000)
    with socket.create_connection(("127.0.0.1", proxy.port)) as connection:
        assert ask(connection, said) == said


def test_delay_is_each_ways_own_and_may_change(proxy: Proxy) -> None:
    with socket.create_connection(("127.0.0.1", proxy.port)) as connection:
        assert ask(connection, b"warm") == b"warm"
        proxy.towards, proxy.back = Shape(delay_s=0.2), Shape(delay_s=0.1)
        began = time.monotonic()
        ask(connection, b"slow")
        assert time.monotonic() - began >= 0.3
        proxy.shape(Shape())
        began = time.monotonic()
        ask(connection, b"fast")
        assert time.monotonic() - began < 0.3


def test_bandwidth_bounds_the_rate(proxy: Proxy) -> None:
    proxy.towards = Shape(bytes_per_s=1_000_000)
    with socket.create_connection(("127.0.0.1", proxy.port)) as connection:
        began = time.monotonic()
        ask(connection, bytes(400_000))
        assert time.monotonic() - began >= 0.3


def test_a_standstill_loses_nothing(proxy: Proxy) -> None:
    with socket.create_connection(("127.0.0.1", proxy.port)) as connection:
        proxy.back = Shape(stalled=True)
        connection.sendall(b"kept")
        connection.settimeout(0.3)
        with pytest.raises(TimeoutError):
            connection.recv(9)
        proxy.back = Shape()
        connection.settimeout(5)
        assert connection.recv(9) == b"kept"


def test_who_is_not_there_refuses_and_closing_ends_connections(proxy: Proxy) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        nobody = Proxy(free.getsockname())
        with socket.create_connection(("127.0.0.1", nobody.port)) as connection:
            connection.settimeout(5)
            with pytest.raises(ConnectionError):
                if connection.recv(9) == b"":
                    raise ConnectionResetError
        nobody.close()
    with socket.create_connection(("127.0.0.1", proxy.port)) as connection:
        ask(connection, b"x")
        closing = Proxy(("127.0.0.1", proxy.port))
        with socket.create_connection(("127.0.0.1", closing.port)) as through:
            through.settimeout(5)
            ask(through, b"y")
            closing.close()
            try:
                assert through.recv(9) == b""
            except ConnectionError:
                pass
