"""SQL without Spark: the product's executor, with its real queue of peeks on the real command topic.

What a compute controller does with Spark, DuckDB does here; what decides *when* a peek may run, and whether its inputs
exist, is the product's own (``controllers/waiting.py``, ``controllers/protocol.py``, the oracle's bindings).
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import Future
from contextlib import AsyncExitStack, asynccontextmanager

import duckdb
import pyarrow as pa
import sqlglot

from adapter.execute.executor import TidemarkExecutor
from adapter.state.session_state import SessionState
from catalog_log.log import CatalogLog
from collection.columns import DIFF
from collection.reader import RunReader
from collection.writer import CollectionWriter
from controllers.command_topic import open_command_topic
from controllers.commands import compute
from controllers.commands_log import follow
from controllers.compute.peek_query import query_of
from controllers.peeks.peek import Considered, Peek
from controllers.protocol import ControllerState, Effect
from controllers.waiting import Dropped, Outcome, PeekQueue, Ready
from journal.aio import Bridge
from journal.errors import InvalidUsage, TidemarkError
from journal.names import TopicNames
from journal.timestamps import DataTs
from oracle.client import Oracle

CLUSTER = "default"
PEEK_S_MAX = 10.0
"""How long a peek may wait here: several times what a subscriber needs to be continued or started."""


class Answer:
    def __init__(self, table: pa.Table, as_of: int) -> None:
        self.schema, self.as_of, self._table = table.schema, as_of, table

    async def batches(self) -> AsyncIterator[pa.RecordBatch]:
        for batch in self._table.to_batches():
            yield batch


class Desk:
    """Peeks of tables, by frontiers that arrive on the topics.  Implements ``adapter.execute.peeks.Peeks``."""

    def __init__(self, kafka: str, names: TopicNames, oracle: Oracle, bridge: Bridge) -> None:
        self._oracle, self._bridge = oracle, bridge
        self._queue = PeekQueue()
        self._waiting: dict[str, Future[Outcome]] = {}
        self._lock = threading.Lock()
        self.known = ControllerState()
        """What the controller makes of its commands."""
        self._reader = RunReader(kafka)
        self._commands = open_command_topic(kafka, names, compute(CLUSTER))
        self._subscription = follow(self._commands, self._on_commands, lambda error: None)
        self._unsubscribe = oracle.subscribe(lambda *_: self._on_data())

    def close(self) -> None:
        self._unsubscribe()
        self._subscription.close()
        self._commands.close()
        self._reader.close()

    async def considered(self, peek: Peek, cluster_id: str) -> dict[str, Considered | None]:
        return dict.fromkeys(peek.inputs)

    async def peek(self, peek: Peek, cluster_id: str, deadline_s: float, waits: object = None) -> Answer:
        future: Future[Outcome] = Future()
        with self._lock:
            self._waiting[peek.peek_id] = future
            self._resolve(self._queue.add(peek, 0))
        try:
            outcome = await asyncio.wait_for(self._bridge.wait(future), PEEK_S_MAX)
        except TimeoutError:
            raise TidemarkError("canceling statement due to statement timeout", sqlstate="57014") from None
        if isinstance(outcome, Dropped):
            raise InvalidUsage(f"relation {outcome.object_id} was dropped", sqlstate="42P01")
        assert isinstance(outcome, Ready), outcome
        return Answer(await asyncio.to_thread(self._run, peek, outcome.as_of), outcome.as_of)

    def _run(self, peek: Peek, as_of: DataTs) -> pa.Table:
        assert not peek.own, "its sessions begin no blocks"
        db = duckdb.connect()
        for name in peek.inputs:
            bound = self._oracle.state.bindings(name).at(as_of)
            db.register(name, self._reader.read_bound(bound, self.known.objects[name].columns).drop_columns([DIFF]))
        return db.sql(sqlglot.transpile(query_of(peek).spark_sql, read="spark", write="duckdb")[0]).to_arrow_table()

    def _on_commands(self, state: ControllerState, _effects: Sequence[Effect], _next_offset: int) -> None:
        with self._lock:
            self.known = state
            if state.frontier > self._queue.catalog_frontier:
                self._resolve(self._queue.on_catalog_frontier(state.frontier, state.objects))

    def _on_data(self) -> None:
        last = self._oracle.state.last_ts
        with self._lock:
            self._resolve(self._queue.on_data_frontier(lambda _: (DataTs(0), last)))

    def _resolve(self, outcomes: Sequence[Outcome]) -> None:
        for outcome in outcomes:
            self._waiting.pop(outcome.peek.peek_id).set_result(outcome)


class Session:
    """SQL on one adapter's executor, for one client."""

    def __init__(self, executor: TidemarkExecutor, desk: Desk, catalog: CatalogLog, number: int) -> None:
        self.desk, self.catalog = desk, catalog
        self._executor, self._state = executor, SessionState(number)

    async def sql(self, text: str) -> list[tuple]:
        """The rows of one statement (none where it gives none)."""
        prepared = await self._executor.prepare(self._state, text)
        result = await self._executor.run(self._state, prepared, ())
        if result.columns is None:
            return []
        if hasattr(result.batches, "__aiter__"):
            batches = [batch async for batch in result.batches]
        else:
            batches = list(result.batches)
        return [row for b in batches for row in zip(*(c.to_pylist() for c in b.columns), strict=True)]


@asynccontextmanager
async def session(kafka: str, names: TopicNames, number: int) -> AsyncIterator[Session]:
    """As ``adapter.execute.build.open_executor``, with a :class:`Desk` instead of a cluster's address."""
    bridge = Bridge(asyncio.get_running_loop())
    async with AsyncExitStack() as stack:
        catalog = await asyncio.to_thread(CatalogLog.open, kafka, names, f"adapter-{number}")
        stack.callback(catalog.close)
        oracle = await asyncio.to_thread(Oracle.open, kafka, names, f"adapter-{number}", catalog.upper)
        stack.callback(oracle.close)
        writer = CollectionWriter(kafka, names)
        stack.callback(writer.close)
        desk = await asyncio.to_thread(Desk, kafka, names, oracle, bridge)
        stack.callback(desk.close)
        executor = TidemarkExecutor(catalog, oracle, writer, desk, bridge)
        executor.start()
        stack.push_async_callback(executor.close)
        yield Session(executor, desk, catalog, number)
