"""A delayed path keeps bytes and their order, and takes as long as it was told to: else what is counted is nothing."""

from __future__ import annotations

import socket
import socketserver
import threading
import time
from collections.abc import Iterator

import pytest

from bench.delay import DelayedPath
from embedded.ports import HOST, free_ports

ROUND_TRIP_S = 0.05
WAIT_S_MAX = 10.0


class Echo(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        while data := self.request.recv(65_536):
            self.request.sendall(data)


@pytest.fixture
def path() -> Iterator[DelayedPath]:
    with socketserver.ThreadingTCPServer((HOST, 0), Echo) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        with DelayedPath(free_ports(1)[0], server.server_address[1], ROUND_TRIP_S) as path:
            yield path
        server.shutdown()


def connect(path: DelayedPath) -> socket.socket:
    return socket.create_connection((HOST, path.port), WAIT_S_MAX)


def receive(client: socket.socket, count: int) -> bytes:
    received = b""
    while len(received) < count:
        received += client.recv(65_536)
    return received


def test_a_question_and_its_answer_take_one_round_trip(path: DelayedPath) -> None:
    with connect(path) as client:
        begun = time.monotonic()
        client.sendall(b"x")
        assert client.recv(1) == b"x"
        assert time.monotonic() - begun >= ROUND_TRIP_S


def test_what_is_sent_meanwhile_waits_for_nothing_else(path: DelayedPath) -> None:
    """It is a long way and not a slow one: a hundred pieces on their way at once come one round trip later."""
    with connect(path) as client:
        begun = time.monotonic()
        for number in range(100):
            client.sendall(b"%03d" % number)
        assert receive(client, 300) == b"".join(b"%03d" % number for number in range(100))
        assert time.monotonic() - begun < 50 * ROUND_TRIP_S


def test_more_than_is_held_arrives_whole_and_in_order(path: DelayedPath, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.delay.HELD_BYTES_MAX", 100_000)
    path.round_trip_s = 0.002
    sent = b"".join(number.to_bytes(4, "big") for number in range(500_000))
    with connect(path) as client:
        sender = threading.Thread(target=client.sendall, args=(sent,), daemon=True)
        sender.start()
        assert receive(client, len(sent)) == sent
        sender.join(WAIT_S_MAX)


def test_an_end_that_closes_closes_the_other_after_what_was_sent(path: DelayedPath) -> None:
    with connect(path) as client:
        client.sendall(b"last words")
        client.shutdown(socket.SHUT_WR)
        # The path gives a connection up as a whole: nothing of Kafka's closes one of its ways alone.
        while client.recv(65_536):
            pass


def test_where_nobody_listens_a_connection_ends() -> None:
    with DelayedPath(*free_ports(2)) as path, connect(path) as client:
        try:
            assert client.recv(1) == b""
        except ConnectionResetError:
            pass
