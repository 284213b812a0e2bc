"""Ask running controllers what they are doing: their own words, by the Flight action ``status``.

A controller is found in the catalog (``nodes``), as an adapter finds it.  One that does not answer is told as such.
"""

from __future__ import annotations

import json
import threading

import pyarrow as pa
import pyarrow.flight as flight

from catalog_log.image import Image
from catalog_log.model import NODES
from controllers.commands import STORAGE
from controllers.nodes import location
from controllers.peeks.peek_codec import decode_error
from controllers.vacuum import Asked, Won, decode_won, encode_asked
from journal.errors import Unavailable

TIMEOUT_S = 3.0
"""A status is answered from memory: one that takes longer is as good as away."""


STORAGE_NODE = f"{STORAGE}/"
"""Where the catalog has the storage controller's node: of its kind there is one."""

FINISHING_S = 60.0
"""For what a vacuum has begun when its time is over: an exchange of four million rows takes some ten seconds."""

CLIENTS_MAX = 64
"""Connections kept: an environment has a few controllers, and a restarted one has a new address."""


class NodeStatus:
    """Asks nodes and keeps the connections.  Any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._clients: dict[str, flight.FlightClient] = {}

    def ask(self, image: Image, key: str) -> dict:
        """What the node at ``key`` (``compute/default``) says; ``{"error": …}`` where it does not answer."""
        node = image.get(NODES, key)
        if node is None:
            return {"error": "not registered"}
        try:
            return {"address": node.address, **json.loads(act(self._client(node.address), "status", TIMEOUT_S))}
        except (pa.ArrowException, flight.FlightError, ValueError, OSError) as error:
            with self._lock:
                self._clients.pop(node.address, None)
            return {"address": node.address, "error": f"does not answer: {in_words(error)}"}

    def retry(self, image: Image, key: str, object_id: str) -> bool | str:
        """Have the node at ``key`` release an object from quarantine; whether it was there, or why nobody knows."""
        node = image.get(NODES, key)
        if node is None:
            return "not registered"
        try:
            return json.loads(act(self._client(node.address), "retry", TIMEOUT_S, object_id.encode()))
        except (pa.ArrowException, flight.FlightError, ValueError, OSError) as error:
            return f"does not answer: {first_line(error)}"

    def vacuum(self, image: Image, asked: Asked) -> Won:
        """Have the storage controller do that; blocks until it is done.  Raises what it raises, and ``Unavailable``."""
        node = image.get(NODES, STORAGE_NODE)
        if node is None:
            raise Unavailable("the storage controller is away", hint="start it, and VACUUM again")
        try:
            # Somewhat longer than it may take: who is at a file when the time is over comes to its end.
            timeout_s = asked.timeout_s + FINISHING_S
            return decode_won(act(self._client(node.address), "vacuum", timeout_s, encode_asked(asked)))
        except (pa.ArrowException, flight.FlightError, ValueError, TypeError, OSError) as error:
            with self._lock:
                self._clients.pop(node.address, None)
            if '{"family"' in str(error):
                raise decode_error(str(error)) from error
            raise Unavailable("the storage controller does not answer", detail=in_words(error),
                              hint="what it has done so far stays; VACUUM again") from error  # fmt: skip

    def _client(self, address: str) -> flight.FlightClient:
        with self._lock:
            if address not in self._clients:
                while len(self._clients) >= CLIENTS_MAX:
                    del self._clients[next(iter(self._clients))]  # closes itself once nobody uses it
                self._clients[address] = flight.FlightClient(location(address))
            return self._clients[address]

    def close(self) -> None:
        with self._lock:
            for client in self._clients.values():
                client.close()
            self._clients.clear()


def act(client: flight.FlightClient, action: str, timeout_s: float, body: bytes = b"") -> bytes:
    """What a node answers to a Flight action.  Raises what Flight does."""
    options = flight.FlightCallOptions(timeout=timeout_s)
    return b"".join(part.body.to_pybytes() for part in client.do_action(flight.Action(action, body), options))


def in_words(error: Exception) -> str:
    """Why a node did not answer, as a person would say it and not as gRPC does."""
    if isinstance(error, flight.FlightUnavailableError):
        return "nothing is there at its address; it was stopped, or is being started again"
    if isinstance(error, flight.FlightTimedOutError):
        return "it is there and says nothing"
    return first_line(error)


def first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:200]
