"""The executor: SQL without sockets, strictly serializable (DESIGN §4, §7; I3, I4, I7, I8).

Promises, for ``strict serializable`` sessions (the default):

* a SELECT begins with a barrier, is planned on a catalog image at least as new as that barrier's, and reads at the
  barrier's newest data timestamp; so it sees everything acknowledged before it began, in any adapter;
* an INSERT is planned on the local image without a barrier and committed on condition that no newer catalog is in
  force (:mod:`adapter.insert`);
* DDL is appended, then applied, then answered (:mod:`adapter.ddl_commit`);
* whatever is said about the catalog without changing it (an error such as 42P01) is said only after a barrier and a
  fresh plan on an image at least that new.

A ``serializable`` session's SELECT takes no barrier: it reads the newest timestamp that is complete at the controller,
on the local image.  Constants need neither.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa

from adapter import show
from adapter.catalog_relations import CatalogRelations
from adapter.catalog_rewrite import SessionFacts
from adapter.ddl_commit import DdlOutcome, DdlQueue
from adapter.explain import explain
from adapter.insert import BUFFER_BYTES_MAX, Inserter, Rows, Writer, check_buffer, rows_of_query, rows_of_values
from adapter.interfaces import Kind, Notice, OutputColumn, Prepared, Result
from adapter.peeks import PeekAnswer, Peeks
from adapter.session_state import SessionState
from adapter.system_schemas import RELATIONS
from adapter.variables import SERVER_VERSION
from catalog_log import model
from catalog_log.image import Image
from catalog_log.log import CatalogLog
from catalog_log.model import Item
from collection.types import OID, SqlType, arrow_type
from controllers.peek import PEEK_TIMEOUT_MS, Lookup, Peek
from journal.aio import Bridge
from journal.errors import Conflict, InvalidUsage, Rejected, TidemarkError
from journal.timestamps import CatalogTs, DataTs
from oracle.client import Oracle, wall_clock_ms
from oracle.state import OracleState
from sql import statements as st
from sql.errors import unsupported
from sql.insert import plan_insert
from sql.names import Names, cluster_named, database_of, full_name
from sql.parse import parse, split
from sql.plans import InsertPlan, SelectPlan, Slot
from sql.select import plan_select
from sql.transpile import with_params

CATALOG_WAIT_S = 15.0
"""How long a catalog upper that the oracle knows may take to arrive here (settling an append is bounded alike)."""

INSERT_TRIES_MAX = 5
"""Times that an INSERT … SELECT is read and committed anew because what it read was written meanwhile."""

DECLARED = {oid: SqlType(name) for name, oid in OID.items() if name != "numeric"} | {
    1700: SqlType("numeric", 38, 9), 1043: SqlType("text"), 1042: SqlType("text"), 19: SqlType("text"),
    18: SqlType("text"), 26: SqlType("int8"),
}  # fmt: skip
"""Parameter types that a client may declare; any other (0, 705 unknown) is inferred."""

_TAGS = {
    st.CreateSchema: "CREATE SCHEMA", st.CreateTable: "CREATE TABLE", st.CreateSource: "CREATE SOURCE",
    st.CreateIndex: "CREATE INDEX",
}  # fmt: skip

T = TypeVar("T")


@dataclass(slots=True)
class _Statement:
    """A prepared statement's own: what was parsed, and the newest plan with what it was planned on."""

    parsed: object
    declared: dict[int, SqlType]
    plan: SelectPlan | InsertPlan | None = None
    upper: int = -1
    names: Names | None = None


class TidemarkExecutor:
    """Implements :class:`adapter.interfaces.Executor`.  Lives on one event loop; made by :func:`adapter.build.build`."""

    def __init__(
        self,
        catalog: CatalogLog,
        oracle: Oracle,
        writer: Writer,
        peeks: Peeks,
        bridge: Bridge,
        *,
        now_ms: Callable[[], int] = wall_clock_ms,
    ) -> None:
        self._catalog = catalog
        self._oracle = oracle
        self._bridge = bridge
        self._peeks = peeks
        self._relations = CatalogRelations()
        self._inserter = Inserter(catalog, oracle, writer, bridge)
        self.ddl = DdlQueue(catalog, oracle, bridge, now_ms)

    def start(self) -> None:
        """Begin to take DDL; on the event loop."""
        self.ddl.start()

    async def close(self) -> None:
        """Stop taking DDL and settle what was sent."""
        await self.ddl.close()

    # --- what the session asks

    async def open(self, session: SessionState) -> None:
        """3D000 where the session's database does not exist."""
        await self._certain(session, lambda image: database_of(image, self._names(session)))

    def split(self, sql: str) -> list[str]:
        return split(sql)

    async def prepare(self, session: SessionState, sql: str, param_oids: Sequence[int] = ()) -> Prepared:
        parsed = parse(sql)
        declared = {n: DECLARED[oid] for n, oid in enumerate(param_oids, 1) if oid in DECLARED}
        statement = _Statement(parsed, declared)
        if isinstance(parsed, st.Query):
            plan = await self._certain(session, lambda image: self._plan(statement, image, session))
            columns = await self._columns(plan, session)
            return Prepared(sql, Kind.SELECT, _oids(plan.params, param_oids), columns, "SELECT", statement)
        if isinstance(parsed, st.Insert):
            plan = await self._certain(session, lambda image: self._plan(statement, image, session))
            return Prepared(sql, Kind.INSERT, _oids(plan.params, param_oids), None, "INSERT", statement)
        if isinstance(parsed, st.DDL):
            return Prepared(sql, Kind.DDL, (), None, _ddl_tag(parsed), statement)
        if isinstance(parsed, st.Explain):
            return Prepared(sql, Kind.SESSION, (), (OutputColumn("QUERY PLAN", SqlType("text")),), "EXPLAIN", statement)
        if isinstance(parsed, (st.ShowObjects, st.ShowCreate, st.ShowVariable)):
            if isinstance(parsed, st.ShowVariable) and parsed.name != "all":
                session.variable(parsed.name)
            return Prepared(sql, Kind.SESSION, (), show.columns_of(parsed, session), "SHOW", statement)
        if isinstance(parsed, (st.SetVariable, st.ResetAll)):
            reset = isinstance(parsed, st.ResetAll) or parsed.value is None
            return Prepared(sql, Kind.SESSION, (), None, "RESET" if reset else "SET", statement)
        if isinstance(parsed, st.Harmless):
            return Prepared(sql, Kind.SESSION, (), None, parsed.tag, statement)
        raise unsupported(f"{type(parsed).__name__} here")

    async def run(self, session: SessionState, prepared: Prepared, params: Sequence[object | None] = ()) -> Result:
        statement = prepared.plan
        assert isinstance(statement, _Statement), type(statement)
        parsed = statement.parsed
        if isinstance(parsed, st.Query):
            return await self._select(session, prepared, statement, params)
        if isinstance(parsed, st.Insert):
            return await self._insert(session, statement, params)
        if isinstance(parsed, st.DDL):
            return _ddl_result(await self.execute_ddl(parsed, self._names(session), session=session))
        if isinstance(parsed, st.SetVariable):
            if parsed.value is None:
                session.reset_variable(parsed.name)
                return Result("RESET")
            session.set_variable(parsed.name, parsed.value, local=parsed.local)
            return Result("SET")
        if isinstance(parsed, st.ResetAll):
            session.reset_variable("all")
            return Result("RESET")
        if isinstance(parsed, st.Harmless):
            return Result(parsed.tag)
        return await self._show(session, prepared, parsed)

    async def commit(self, session: SessionState) -> Sequence[Notice]:
        entries = list(session.buffer)
        session.buffer.clear()
        await self._finish(self._commit(session, entries))
        return ()

    async def rollback(self, session: SessionState, buffered: Sequence[object]) -> None:
        """Buffered rows are only in this process's memory: there is nothing to release."""

    async def execute_ddl(self, statement: object, names: Names, request_id: str | None = None,
                          session: SessionState | None = None) -> DdlOutcome:  # fmt: skip
        """One DDL statement, for a session or for the DDL topic."""
        outcome = await self._finish(self.ddl.submit(statement, names, request_id))
        if session is not None:
            session.catalog_ts_seen = max(session.catalog_ts_seen, outcome.catalog_ts)
        return outcome

    # --- images, barriers, plans

    def _names(self, session: SessionState) -> Names:
        return Names(session.database, session.search_path, session.variable("cluster"), RELATIONS)

    async def _image(self, upper: int) -> Image:
        image = self._catalog.image
        if image.upper >= upper:
            return image
        return await self._bridge.wait(self._catalog.when_upper(upper, CATALOG_WAIT_S))

    async def _barrier(self) -> tuple[OracleState, Image]:
        """The oracle's state at a barrier and an image that holds every DDL acknowledged before it."""
        state = await self._oracle.barrier_async()
        return state, await self._image(state.catalog_upper)

    async def _certain(self, session: SessionState, plan: Callable[[Image], T]) -> T:
        """``plan`` on the local image; where it fails, after a barrier and on an image at least that new."""
        image = await self._image(session.catalog_ts_seen + 1)
        try:
            return plan(image)
        except InvalidUsage:
            _, newer = await self._barrier()
            self._saw(session, newer)
            return plan(newer)

    def _saw(self, session: SessionState, image: Image) -> None:
        session.catalog_ts_seen = CatalogTs(max(session.catalog_ts_seen, image.upper - 1))

    def _plan(self, statement: _Statement, image: Image, session: SessionState) -> SelectPlan | InsertPlan:
        """The statement's plan on ``image``, kept until the catalog or the session's names change."""
        names = self._names(session)
        if statement.plan is None or statement.upper != image.upper or statement.names != names:
            if isinstance(statement.parsed, st.Query):
                statement.plan = plan_select(statement.parsed.ast, image, names, statement.declared)
            else:
                statement.plan = plan_insert(statement.parsed, image, names, statement.declared)
            statement.upper, statement.names = image.upper, names
        return statement.plan

    def _facts(self, session: SessionState) -> SessionFacts:
        return SessionFacts(self._names(session), session.user, f"PostgreSQL {SERVER_VERSION}", session.session_id,
                            session.variable)  # fmt: skip

    async def _columns(self, plan: SelectPlan, session: SessionState) -> tuple[OutputColumn, ...]:
        if plan.kind != "catalog":
            return tuple(OutputColumn(column.name, column.type) for column in plan.columns)
        image = await self._image(plan.catalog_ts + 1)
        found = await asyncio.to_thread(self._relations.describe, plan, image, self._facts(session))
        return tuple(OutputColumn(name, kind) for name, kind in found)

    # --- reads

    async def _select(self, session: SessionState, prepared: Prepared, statement: _Statement,
                      params: Sequence[object | None]) -> Result:  # fmt: skip
        plan = statement.plan
        if plan is not None and plan.kind == "constant":
            table = await asyncio.to_thread(self._constant, plan, params)
            return Result("SELECT", prepared.columns, table.to_batches())
        state, plan = await self._planned(session, statement)
        columns = prepared.columns
        if plan.kind == "catalog":
            image = await self._image(plan.catalog_ts + 1)
            facts = self._facts(session)
            table = await asyncio.to_thread(self._relations.answer, plan, params, image, facts)
            _check_result(columns, await self._columns(plan, session))
            return Result("SELECT", columns, table.to_batches())
        _check_result(columns, tuple(OutputColumn(c.name, c.type) for c in plan.columns))
        answer = await self._peek(session, plan, params, state.last_ts if state is not None else None)
        return Result("SELECT", columns, _cast(answer, [c.type for c in plan.columns]))

    async def _planned(self, session: SessionState, statement: _Statement) -> tuple[OracleState | None, SelectPlan]:
        """The plan on an image that is new enough for this session's isolation, and the barrier it rests on."""
        if session.strict:
            state, image = await self._barrier()
            image = await self._image(max(image.upper, session.catalog_ts_seen + 1))
            self._saw(session, image)
            return state, self._plan(statement, image, session)
        plan = await self._certain(session, lambda image: self._plan(statement, image, session))
        session.catalog_ts_seen = CatalogTs(max(session.catalog_ts_seen, plan.catalog_ts))
        return None, plan

    def _constant(self, plan: SelectPlan, params: Sequence[object | None]) -> pa.Table:
        tree = with_params(plan.tree, params, plan.params)
        return self._relations.constant(tree, [(c.name, c.type) for c in plan.columns])

    async def _peek(self, session: SessionState, plan: SelectPlan, params: Sequence[object | None],
                    as_of: DataTs | None) -> PeekAnswer:  # fmt: skip
        image = await self._image(plan.catalog_ts + 1)
        cluster = cluster_named(image, session.variable("cluster"))
        timeout_ms = min(session.statement_timeout_ms or PEEK_TIMEOUT_MS, PEEK_TIMEOUT_MS)
        lookup = None
        if plan.lookup is not None:
            key, residual = plan.lookup.filled(params, plan.params)
            lookup = Lookup(plan.lookup.index_id, plan.lookup.relation_id, key, residual)
        peek = Peek(uuid.uuid4().hex, plan.spark_sql(params), plan.inputs, plan.catalog_ts, as_of, lookup, timeout_ms)
        return await self._peeks.peek(peek, cluster.id, time.monotonic() + timeout_ms / 1000)

    # --- writes

    async def _insert(self, session: SessionState, statement: _Statement, params: Sequence[object | None]) -> Result:
        for tries_left in reversed(range(INSERT_TRIES_MAX)):
            entry = await self._rows(session, statement, params)
            tag = f"INSERT 0 {entry.rows.num_rows}"
            if session.defers_writes:
                check_buffer([*session.buffer, entry])
                session.buffer.append(entry)
                return Result(tag)
            try:
                await self._finish(self._commit(session, [entry]))
                return Result(tag)
            except Conflict:
                if entry.read_ts is None or not tries_left:
                    raise
        raise AssertionError("unreachable: the last try raises or returns")

    async def _rows(self, session: SessionState, statement: _Statement, params: Sequence[object | None]) -> Rows:
        """The rows that an INSERT would add, planned and (for a query) read."""
        state = None
        if getattr(statement.plan, "query", None) is not None and statement.plan.query.kind == "peek":
            state, image = await self._barrier()
            self._saw(session, image)
            plan = self._plan(statement, image, session)
        else:
            plan = await self._certain(session, lambda image: self._plan(statement, image, session))
        upper = plan.catalog_ts + 1
        evaluate = self._evaluator(plan, params)
        if plan.query is None:
            try:
                return Rows(plan.table, rows_of_values(plan, params, evaluate), upper)
            except InvalidUsage as error:
                await self._still_so(session, statement, error)
                raise
        if plan.query.kind == "constant":
            table = await asyncio.to_thread(self._constant, plan.query, params)
            return Rows(plan.table, rows_of_query(plan, table.to_batches(), evaluate), upper)
        if state is None:  # it became a query over relations only now, on a newer image
            state, _ = await self._barrier()
        answer = await self._peek(session, plan.query, params, state.last_ts)
        batches = await _collect(_cast(answer, [c.type for c in plan.query.columns]))
        tables = self._tables_below(plan.query.inputs)
        return Rows(plan.table, rows_of_query(plan, batches, evaluate), upper, state.last_ts, tables)

    async def _still_so(self, session: SessionState, statement: _Statement, error: InvalidUsage) -> None:
        """A value was refused because of what the table is (NOT NULL, a range): that must hold on the newest catalog."""
        before = statement.plan
        _, image = await self._barrier()
        self._saw(session, image)
        after = self._plan(statement, image, session)
        if after.table.columns != before.table.columns:
            raise Conflict("the table changed while the statement ran", hint="try again") from error

    def _evaluator(self, plan: InsertPlan, params: Sequence[object | None]) -> Callable[[Slot], object]:
        from sqlglot import exp

        def evaluate(slot: Slot) -> object:
            tree = with_params(exp.select(exp.alias_(slot.tree.copy(), "v")), params, plan.params)
            value = self._relations.value(tree)
            return value

        return evaluate

    def _tables_below(self, inputs: Sequence[str]) -> tuple[str, ...]:
        """The tables that a query reads, also through materialized views: what first-committer-wins looks at.

        Sources are left out: they grow all the time, and nobody's transaction writes them.
        """
        image = self._catalog.image
        found, queue, seen = set(), list(inputs), set()
        while queue:
            each = queue.pop()
            if each in seen:
                continue
            seen.add(each)
            item = image.item(each)
            if item is not None and item.kind == model.TABLE:
                found.add(each)
            elif item is not None:
                queue.extend(item.inputs)
        return tuple(sorted(found))

    async def _commit(self, session: SessionState, entries: Sequence[Rows]) -> None:
        def label(table: Item) -> str:
            return full_name(self._catalog.image, table)

        await self._inserter.commit(entries, label)

    async def _finish(self, work) -> T:
        """Await ``work`` to its end even if we are cancelled: what was sent cannot be taken back, so the answer must be
        what became of it.  ``work`` bounds itself."""
        task = asyncio.ensure_future(work)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled():
                raise
            return await task

    # --- looking

    async def _show(self, session: SessionState, prepared: Prepared, parsed: object) -> Result:
        columns = prepared.columns
        names = self._names(session)
        if isinstance(parsed, st.ShowVariable):
            return Result("SHOW", columns, [show.batch(columns, show.show_variable(parsed, session))])
        state, image = await self._barrier()
        self._saw(session, image)
        if isinstance(parsed, st.ShowObjects):
            rows = show.show_objects(parsed, image, names)
        elif isinstance(parsed, st.ShowCreate):
            rows = show.show_create(parsed, image, names)
        else:
            rows = [(line,) for line in explain(parsed, image, names, state)]
        return Result("EXPLAIN" if isinstance(parsed, st.Explain) else "SHOW", columns, [show.batch(columns, rows)])


def _oids(params: dict[int, SqlType], given: Sequence[int]) -> tuple[int, ...]:
    """One oid per parameter: what the client declared where we know it, what was inferred otherwise."""
    count = max(max(params, default=0), len(given))
    found = []
    for number in range(1, count + 1):
        declared = given[number - 1] if number <= len(given) else 0
        inferred = params.get(number)
        found.append(declared if declared in DECLARED else OID[inferred.name] if inferred is not None else OID["text"])
    return tuple(found)


def _ddl_tag(parsed: object) -> str:
    if isinstance(parsed, st.CreateView):
        return "CREATE MATERIALIZED VIEW" if parsed.materialized else "CREATE VIEW"
    if isinstance(parsed, st.Drop):
        return f"DROP {parsed.kind.replace('_', ' ').upper()}"
    return _TAGS[type(parsed)]


def _ddl_result(outcome: DdlOutcome) -> Result:
    return Result(outcome.tag, notices=[Notice(n.message, sqlstate=n.sqlstate, detail=n.detail) for n in outcome.notices])


def _check_result(before: Sequence[OutputColumn] | None, now: Sequence[OutputColumn]) -> None:
    """A prepared statement whose relations were replaced may not change what Describe said."""
    if [c.type_oid for c in before or ()] != [c.type_oid for c in now] or [c.type for c in before] != [c.type for c in now]:
        raise InvalidUsage("cached plan must not change result type", sqlstate="0A000",
                           hint="prepare the statement again: a relation that it reads was replaced")  # fmt: skip


async def _cast(answer: PeekAnswer, types: Sequence[SqlType]) -> AsyncIterator[pa.RecordBatch]:
    """The answer's batches in exactly the promised types: by position, whatever the controller called its columns."""
    kinds = [arrow_type(kind) for kind in types]
    async for batch in answer.batches():
        if batch.num_columns != len(kinds):
            raise TidemarkError("the controller answered with other columns than were asked for",
                                detail=f"{batch.num_columns} instead of {len(kinds)}")  # fmt: skip
        arrays = [a if a.type == kind else _cast_array(a, kind) for a, kind in zip(batch.columns, kinds, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, [f"c{i}" for i in range(len(arrays))])


def _cast_array(array: pa.Array, kind: pa.DataType) -> pa.Array:
    try:
        return array.cast(kind)
    except pa.ArrowInvalid as error:
        raise InvalidUsage("value out of range", sqlstate="22003", detail=str(error)[:200]) from error


async def _collect(batches: AsyncIterator[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Everything, bounded by what one INSERT may hold in memory (54000)."""
    found, size = [], 0
    async for batch in batches:
        size += batch.nbytes
        if size > BUFFER_BYTES_MAX:
            raise Rejected("INSERT … SELECT of too many rows", sqlstate="54000",
                           detail=f"at most {BUFFER_BYTES_MAX} bytes are written by one statement",
                           hint="insert in several statements")  # fmt: skip
        found.append(batch)
    return found
