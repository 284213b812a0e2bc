"""A whole environment in memory for executor tests: one catalog log, one oracle log, any number of adapters on them.

``Store`` plays the data topics and the compute controller: rows that were written stay invisible until the oracle's
state binds their runs, and a peek evaluates the plan's query over what is bound at its ``as_of``, in DuckDB.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re
from concurrent.futures import Future
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cache

import duckdb
import pyarrow as pa
import sqlglot

from adapter.execute.executor import TidemarkExecutor
from adapter.state.session_state import SessionState
from catalog_log.bootstrap import ensure_genesis
from catalog_log.log import CatalogLog
from catalog_log.model import Genesis
from catalog_log.records import FORMAT_VERSION, INLINE_FROM
from collection.binding import Run
from collection.columns import DIFF, table_from_rows
from collection.rows import decode, encode
from controllers.arrangements.arrangement import Arrangement
from controllers.arrangements.residual import compile_residual
from controllers.arrangements.tuples import canonical, to_rows
from controllers.changes import present
from controllers.compute.peek_query import query_of
from controllers.node_status import NodeStatus
from controllers.peeks.given import unpacked
from functions.registry import OWN
from journal.aio import Bridge
from journal.errors import InvalidUsage
from journal.memory import MemoryCheckpointStore, MemoryTopic, MemoryTransport
from oracle.checkpoints import Checkpoints
from oracle.client import Oracle
from trees.nodes import data_type
from values.limits import TIMES_MAX
from values.types import carried, parse_type

GENESIS = Genesis(FORMAT_VERSION, "env", "topic")


class Store:
    """Data topics: records of rows by collection, one write at each offset."""

    def __init__(self) -> None:
        self.written: dict[str, list[list[bytes]]] = {}
        self.writes = 0
        self.before_write = None
        """Called before rows are written, so that a test can slip something in between."""

    def write(self, collection_id, columns, rows, attempt, key=None) -> Future:
        if self.before_write is not None:
            self.before_write()
        self.writes += 1
        table = rows if isinstance(rows, pa.Table) else table_from_rows(columns, rows)
        log = self.written.setdefault(collection_id, [])
        log.append([each.value for each in encode(columns, table, attempt)])
        done: Future = Future()
        done.set_result(
            [Run(f"env.data.{collection_id}", 0, len(log) - 1, len(log), attempt, table.num_rows)]
            if table.num_rows
            else []
        )
        return done

    def rows_at(self, item, state, as_of, own=()) -> pa.Table:
        values = [*own]
        for _, run, value in state.bindings(item.id).at(as_of):
            there = [value] if value else itertools.chain(*self.written[item.id][run.lower : run.upper])
            values.extend(there)
        changes = decode(item.stored, values)
        placed = changes.rename_columns([*(f"c{at}" for at in range(len(item.stored))), DIFF])
        return present(placed, [column.name for column in item.stored], TIMES_MAX)


class Answer:
    def __init__(self, table: pa.Table, as_of: int | None) -> None:
        self.schema, self.as_of, self._table = table.schema, as_of, table

    async def batches(self):
        for batch in self._table.to_batches():
            yield batch


@cache
def _engine() -> duckdb.DuckDBPyConnection:
    """Of all peeks, each of which has a cursor, and what it registers there is no other's."""
    return duckdb.connect()


class StorePeeks:
    """Plays the compute controller of one adapter's cluster."""

    def __init__(self, store: Store, catalog: CatalogLog, oracle: Oracle) -> None:
        self.store, self.catalog, self.oracle = store, catalog, oracle
        self.asked = []
        self.complete: int | None = None
        """How far this controller has come, where it is behind the oracle."""

    async def lookup(self, peek, cluster_id):
        return None  # "not now": then it is asked by itself

    async def considered(self, peek, cluster_id):
        return {each: None for each in peek.inputs}

    async def peek(self, peek, cluster_id, deadline_s, waits=None):
        self.asked.append(peek)
        state = self.oracle.state
        newest = state.last_ts if self.complete is None else self.complete
        as_of = peek.as_of if peek.as_of is not None else newest
        assert state.last_ts >= as_of and self.catalog.upper() > peek.catalog_ts
        own = {each.collection_id: each.values for each in peek.own}
        tables = {each: self._relation(each, state, as_of, own.get(each, ())) for each in peek.inputs} | unpacked(peek)
        index = None if peek.lookup is None else self.catalog.image.item(peek.lookup.index_id)
        if index is not None:  # it may have gone meanwhile
            return Answer(self._lookup(peek.lookup, tables[peek.lookup.relation_id]), as_of)
        text = sqlglot.transpile(query_of(peek).spark_sql, read="spark", write="duckdb")[0]
        own_functions = {each.lower() for each in re.findall(r"TM_\w+", text)} & set(OWN)
        # An engine of its own takes 40 ms of a processor to begin and end.  Functions are of all that there is in one.
        with duckdb.connect() if own_functions else _engine().cursor() as db:
            db.execute("SET TimeZone = 'UTC'")
            for name, table in tables.items():
                db.register(name, table)
            for name in own_functions:
                types = [db.dtype(data_type(each).sql("duckdb")) for each in (*OWN[name].arguments, OWN[name].result)]
                db.create_function(name, OWN[name].run, types[:-1], types[-1], null_handling="special")
            try:
                return Answer(db.sql(text).to_arrow_table(), as_of)
            except duckdb.Error as error:
                if not str(error).startswith("Invalid Input Error: Division by zero"):
                    raise
                raise InvalidUsage("division by zero", sqlstate="22012") from None

    def _relation(self, item_id, state, as_of, own=()) -> pa.Table:
        return self.store.rows_at(self.catalog.image.item(item_id), state, as_of, own)

    def _lookup(self, lookup, table) -> pa.Table:
        item = self.catalog.image.item(lookup.relation_id)
        types = [carried(parse_type(c.type)) for c in item.stored]
        names = [c.name for c in item.stored]
        positions = [names.index(n) for n in self.catalog.image.item(lookup.index_id).key[: len(lookup.key)]]
        arrangement = Arrangement(positions)
        arrangement.apply(((0, row, 1) for row in to_rows(table)), 1)
        key = [canonical(value, types[at]) for value, at in zip(lookup.key, positions, strict=True)]
        return compile_residual(lookup.residual, types).run(arrangement.rows(0, key))

    def close(self) -> None:
        pass


class World:
    """Logs that adapters share.  ``now_ms`` is a clock that a test moves.

    ``carries``: whether small writes travel in commit records, as they do in an environment of today's format, or go
    to the store first, as they did in those before it and large ones do.
    """

    answers = StorePeeks
    """What plays the compute controllers."""

    def __init__(self, carries: bool = True) -> None:
        self.carries = carries
        self.genesis = GENESIS if carries else replace(GENESIS, format_version=INLINE_FROM - 1)
        self.catalog_topic, self.oracle_topic = MemoryTopic(), MemoryTopic()
        self.checkpoints = MemoryCheckpointStore()
        self.store = Store()
        self.now_ms = 1_000_000
        self.topics: dict[str, bool] = {}
        self.nodes: NodeStatus | None = None
        """What asks controllers; as it is in production where none is given."""
        """Users' topics: whether there is one.  Of others nobody says anything."""
        ensure_genesis(MemoryTransport(self.catalog_topic), self.genesis, "bootstrap")

    @asynccontextmanager
    async def adapter(self, name="adapter", catalog_transport=None):
        catalog = CatalogLog(catalog_transport or MemoryTransport(self.catalog_topic), name, expected=self.genesis)
        oracle = Oracle.over(
            lambda: MemoryTransport(self.oracle_topic),
            Checkpoints(self.checkpoints, "id"),
            name,
            catalog.upper,
            now_ms=lambda: self.now_ms,
        )
        bridge = Bridge(asyncio.get_running_loop())
        await bridge.wait(catalog.when_upper(1, 10))
        if self.carries and oracle.state.record_version == 1:
            await bridge.wait(oracle.raise_format())
        peeks = self.answers(self.store, catalog, oracle)
        executor = TidemarkExecutor(
            catalog, oracle, self.store, peeks, bridge, now_ms=lambda: self.now_ms, topic_exists=self.topics.get,
            nodes=self.nodes,
        )
        executor.start()
        try:
            yield Adapter(executor, catalog, oracle, peeks)
        finally:
            await executor.close()
            oracle.close()
            catalog.close()


_sessions = itertools.count(1)


class Adapter:
    def __init__(self, executor, catalog, oracle, peeks) -> None:
        self.executor, self.catalog, self.oracle, self.peeks = executor, catalog, oracle, peeks
        self.session = SessionState(next(_sessions))

    async def sql(self, text, *params, session=None):
        """Prepare and run one statement: its rows as tuples where it has columns, else its tag."""
        session = session or self.session
        prepared = await self.executor.prepare(session, text)
        result = await self.executor.run(session, prepared, params)
        return await rows_of(result)


async def rows_of(result):
    if result.columns is None:
        return result.tag
    rows = []
    if hasattr(result.batches, "__aiter__"):
        batches = [b async for b in result.batches]
    else:
        batches = list(result.batches)
    for batch in batches:
        rows += list(zip(*(column.to_pylist() for column in batch.columns), strict=True))
    return rows


def as_json(value) -> str:
    return json.dumps(value, default=str)
