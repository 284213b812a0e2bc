"""The lookups' own door: a socket on which requests and responses are frames (``controllers/peeks/lookup_codec.py``).

Not over Flight, as peeks are, since a call of gRPC costs a reader more than its look-up does (docs/performance.md).
Listens where Flight does, without authentication as Flight does, with a thread for each adapter.
"""

from __future__ import annotations

import logging
import socket
import socketserver
import threading
from collections.abc import Sequence

from controllers.compute.peeks import PeekDesk
from controllers.peeks.lookup_codec import (
    ANSWERS_BYTES_MAX,
    Answer,
    Asked,
    Found,
    decode_lookups,
    encode_answers,
    encode_refusal,
    framed,
    read_frame,
)
from controllers.peeks.peek_codec import TICKET_BYTES_MAX, decode_error, encode_error
from journal.errors import TidemarkError, logged

log = logging.getLogger(__name__)

CONNECTIONS_MAX = 256
"""Each adapter has one.  Whoever comes beyond is hung up on, and reads by peeks."""

KEEPALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}
"""An adapter whose machine is gone says no goodbye: its thread is free after a minute (where the system has these)."""

POLL_S = 0.1
"""How soon the accepting thread sees that it shall end."""


class LookupServer(socketserver.ThreadingTCPServer):
    """Serves from when it is made until :meth:`close`.  ``port`` 0 is any free one."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = CONNECTIONS_MAX

    def __init__(self, host: str, port: int, desk: PeekDesk) -> None:
        found = socket.getaddrinfo(host.strip("[]") or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        self.address_family, *_, address = found[0]
        self.desk = desk
        self._connections: set[socket.socket] = set()
        self._lock = threading.Lock()
        super().__init__(address[:2], _Connection)
        self.port: int = self.server_address[1]
        self._thread = threading.Thread(target=self.serve_forever, args=(POLL_S,), name="lookup-door", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Hang up on everybody."""
        self.shutdown()
        self._thread.join()
        self.server_close()
        with self._lock:
            connections = list(self._connections)
        for connection in connections:
            self.shutdown_request(connection)

    def verify_request(self, request: socket.socket, client_address: object) -> bool:
        with self._lock:
            if len(self._connections) < CONNECTIONS_MAX:
                self._connections.add(request)
                return True
        log.warning("too many adapters ask for lookups", extra={"limit": CONNECTIONS_MAX})
        return False

    def shutdown_request(self, request: socket.socket) -> None:
        with self._lock:
            self._connections.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: socket.socket, client_address: object) -> None:
        log.info("a connection for lookups broke", exc_info=True)


class _Connection(socketserver.StreamRequestHandler):
    disable_nagle_algorithm = True
    server: LookupServer

    def setup(self) -> None:
        super().setup()
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in KEEPALIVE.items():
            if hasattr(socket, option):
                self.connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)

    def handle(self) -> None:
        try:
            while (body := read_frame(self.rfile.read, TICKET_BYTES_MAX)) is not None:
                self.wfile.write(framed(answered(self.server.desk, body)))
        except TidemarkError as error:  # a frame that is none: where the next one begins is not known any more
            self.wfile.write(framed(encode_refusal(error)))
        except OSError as error:
            log.debug("an adapter hung up", extra={"why": str(error)})


def answered(desk: PeekDesk, body: bytes) -> bytes:
    """The response to a request: each question answered, refused, or put off to a request of its own."""
    try:
        asked = decode_lookups(body)
    except TidemarkError as error:
        return encode_refusal(error)
    return encode_answers(_within(desk, asked, ANSWERS_BYTES_MAX))


def _within(desk: PeekDesk, asked: Sequence[Asked], room: int) -> list[Answer]:
    answers: list[Answer] = []
    for each in asked:
        answer = _looked_up(desk, each) if room > 0 else None
        if isinstance(answer, Found):
            room -= answer.batch.nbytes
        answers.append(answer if room >= 0 else None)
    return answers


def _looked_up(desk: PeekDesk, asked: Asked) -> Answer:
    try:
        return desk.lookups(*asked)
    except TidemarkError as error:
        return error
    except Exception as error:
        log.exception("a lookup failed", extra={"reference": logged(error)})
        return decode_error(encode_error(error))
