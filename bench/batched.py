"""A timestamp oracle as it would be on Postgres: a row, read by one query for all callers who wait.

This is the peer of our shared barriers, and it batches as they do: callers that arrive while a query is under way
share the next one.  The query runs on libpq's own calls in a thread, prepared, which is as fast as Python gets.
"""

from __future__ import annotations

import asyncio
import queue
import threading

from psycopg import pq

from bench.peers import Server


class RowInBatches:
    """Lives on one event loop; close it."""

    def __init__(self, server: Server) -> None:
        self._connection = pq.PGconn.connect(server.dsn.encode())
        assert self._connection.status == pq.ConnStatus.OK, self._connection.error_message
        for sql in (b"CREATE TABLE IF NOT EXISTS ts (ts bigint)", b"INSERT INTO ts VALUES (7)"):
            assert self._connection.exec_(sql).status == pq.ExecStatus.COMMAND_OK
        self._connection.prepare(b"read", b"SELECT ts FROM ts LIMIT 1")
        self._loop = asyncio.get_running_loop()
        self._waiting: list[asyncio.Future[int]] = []
        self._under_way = False
        self._orders: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._serve, name="batched-row", daemon=True)
        self._thread.start()

    def read(self) -> asyncio.Future[int]:
        """The row's value as of some moment after this call."""
        answer = self._loop.create_future()
        self._waiting.append(answer)
        if not self._under_way:
            self._next()
        return answer

    def _next(self) -> None:
        self._batch, self._waiting = self._waiting, []
        self._under_way = True
        self._orders.put(True)

    def _answered(self, value: int) -> None:
        batch, self._under_way = self._batch, False
        if self._waiting:
            self._next()
        for answer in batch:
            answer.set_result(value)

    def _serve(self) -> None:
        while self._orders.get():
            found = self._connection.exec_prepared(b"read", None)
            assert found.status == pq.ExecStatus.TUPLES_OK, self._connection.error_message
            self._loop.call_soon_threadsafe(self._answered, int(found.get_value(0, 0)))

    def close(self) -> None:
        self._orders.put(False)
        self._thread.join()
        self._connection.finish()
