"""Senders of webhooks as they are: several of them with the same ids, impatient, and sure of nothing but a 200."""

from __future__ import annotations

import http.client
import json
import random
import threading
import time
from collections.abc import Callable, Sequence

SENT_S = 60.0
"""How long a sender tries; adapters that are killed are back sooner."""


def post(port: int, path: str, body: bytes, timeout_s: float = 30.0, **headers: str) -> tuple[int, dict]:
    """Status and body of one request.  Raises ``OSError`` or ``HTTPException`` where there was no answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout_s)
    try:
        connection.request("POST", path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


class Senders:
    """``count`` ids, each sent by ``twice`` senders over any of ``ports`` until it was answered 200."""

    def __init__(self, ports: Sequence[int], path: str, count: int, twice: int, seed: int) -> None:
        self._ports, self._path = ports, path
        self._left = [n for n in range(count) for _ in range(twice)]
        self._rng = random.Random(seed)
        self._rng.shuffle(self._left)
        self._lock = threading.Lock()
        self.statuses: list[int] = []
        """Of all answers."""
        self.added: list[int] = []
        """Ids, once for each answer that says that its request added a row."""
        self.unanswered = 0
        self.raised: list[BaseException] = []

    def run(self, threads: int, then: Callable[[], None]) -> None:
        """Send all of them, and meanwhile do what is to happen; raises what went wrong."""
        running = [threading.Thread(target=self._work) for _ in range(threads)]
        for each in running:
            each.start()
        try:
            then()
        finally:
            for each in running:
                each.join(timeout=4 * SENT_S)
        assert not any(each.is_alive() for each in running)
        if self.raised:
            raise self.raised[0]

    def answered(self) -> int:
        with self._lock:
            return len(self.statuses)

    def _work(self) -> None:
        try:
            while True:
                with self._lock:
                    if not self._left:
                        return
                    number = self._left.pop()
                self._send(number)
        except BaseException as error:  # raised again by run
            self.raised.append(error)

    def _send(self, number: int) -> None:
        until = time.monotonic() + SENT_S
        while True:
            with self._lock:
                port, hasty = self._rng.choice(self._ports), self._rng.random() < 0.1
            try:
                body = json.dumps({"n": number}).encode()
                patience = 0.005 if hasty else 30.0  # gone before most answers come
                status, told = post(port, self._path, body, patience, Idempotency_Key=f"id-{number}")
            except (OSError, http.client.HTTPException):
                with self._lock:
                    self.unanswered += 1
            else:
                with self._lock:
                    self.statuses.append(status)
                    if told.get("added"):
                        self.added.append(number)
                if status == 200:
                    return
                assert status in (409, 500, 503, 504), (status, told)
            assert time.monotonic() < until, f"id {number} was never answered"
