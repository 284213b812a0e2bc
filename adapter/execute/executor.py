"""The executor: SQL without sockets, strictly serializable (DESIGN §4, §7; I3, I4, I7, I8).

Promises, for ``strict serializable`` sessions (the default):

* a SELECT begins with a barrier, is planned on a catalog image at least as new as that barrier's, and reads at the
  barrier's newest data timestamp; so it sees everything acknowledged before it began, in any adapter;
* an INSERT is planned on the local image without a barrier and committed on condition that no newer catalog is in
  force (:mod:`adapter.execute.insert`);
* DDL is appended, then applied, then answered (:mod:`adapter.execute.ddl_commit`);
* whatever is said about the catalog without changing it (an error such as 42P01) is said only after a barrier and a
  fresh plan on an image at least that new.

A SELECT of a session with ``tidemark.isolation = 'serializable'`` takes no barrier: it reads the newest timestamp that
is complete at the controller, on the local image; where that is older than its own last write it waits for that.
Constants need neither.

A transaction block reads where its first read of data did (:mod:`adapter.state.transaction`); its later ones take no
barrier.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import TypeVar

import pyarrow as pa
from sqlglot import exp

from adapter.duck.catalog_relations import CatalogRelations, Live, reads_live
from adapter.duck.catalog_rewrite import SessionFacts, assignments
from adapter.execute import show
from adapter.execute.ddl_commit import Asked, DdlOutcome, DdlQueue, image_in_force
from adapter.execute.draws import Draws
from adapter.execute.draws import Evaluate as Argument
from adapter.execute.explain import explain
from adapter.execute.insert import (
    Evaluate,
    Inserter,
    Rows,
    TableChanged,
    Writer,
    check_buffer,
    check_unchanged,
    rows_of_query,
    rows_of_values,
    tables_below,
)
from adapter.execute.peeks import PeekAnswer, Peeks, give_up
from adapter.execute.planning import LONG_CHARS, ON_LOOP_CHARS_MAX, Planner
from adapter.execute.results import (
    as_promised,
    check_result,
    check_zone,
    collect,
    ddl_result,
    declared_types,
    oids_of,
    promised_rows,
)
from adapter.execute.sequences import Sequences
from adapter.state.interfaces import Kind, Notice, Outdated, OutputColumn, Prepared, Result
from adapter.state.session_state import SessionState
from adapter.state.variables import SERVER_VERSION
from adapter.system.live_rows import ACTIVITY, Told, rows_of
from adapter.system.schemas import RELATIONS
from catalog_log.image import Image
from catalog_log.log import CatalogLog
from catalog_log.model import NODES
from controllers.node_status import NodeStatus
from controllers.peeks.peek import PEEK_TIMEOUT_MS, Lookup, Peek
from journal.aio import Bridge, to_its_end
from journal.errors import Conflict, InvalidUsage, Unavailable
from journal.timestamps import CatalogTs, DataTs
from lower.duckdb.engine import Running
from oracle.client import Oracle, wall_clock_ms
from oracle.state import OracleState
from sql.forms.transpile import with_params
from sql.objects.names import Names, SystemRelation, cluster_named, database_of, find, relation
from sql.objects.watched import TooLongHere, same_answers
from sql.statements.ddl_columns import to_evaluate, with_values
from sql.statements.ddl_identity import counted_on
from sql.statements.plan_cache import PlanCache, Planned, Statement, plan_afresh
from sql.statements.plans import InsertPlan, SelectPlan, Slot
from sql.statements.skeletons import filled, fits
from sql.syntax import statements as st
from sql.syntax.parse import parse, split
from sql.trees.errors import no_column, unsupported, wrong_kind
from sql.trees.nodes import union_all
from values.types import arrow_type

CATALOG_WAIT_S = 15.0
"""How long a catalog upper that the oracle knows may take to arrive here (settling an append is bounded alike)."""

INSERT_TRIES_MAX = 5
"""Times that an INSERT is made and committed anew because what it read was written meanwhile, or its table altered."""

FOLDED_BYTES_MAX = 4096
"""A constant's answer is kept with its plan up to this size: well below what the plan itself takes."""

_OF_THE_TEXT = ("54000", "54001")
"""What a newer catalog would not mend: a statement that is too large is planned once."""

VALUES_AT_ONCE_MAX = 100
"""Expressions of an INSERT that DuckDB is asked in one query: a query costs it as much as some dozens of them."""

T = TypeVar("T")

Handler = Callable[[SessionState, Prepared, Statement, Sequence[object | None]], Awaitable[Result]]
"""Runs one statement that was prepared, with its parameters."""


class TidemarkExecutor:
    """A :class:`adapter.state.interfaces.Executor`.  Lives on one event loop; see :mod:`adapter.execute.build`."""

    def __init__(
        self,
        catalog: CatalogLog,
        oracle: Oracle,
        writer: Writer,
        peeks: Peeks,
        bridge: Bridge,
        *,
        nodes: NodeStatus | None = None,
        topic_exists: Callable[[str], bool | None] = lambda _: None,
        now_ms: Callable[[], int] = wall_clock_ms,
    ) -> None:
        self._catalog = catalog
        self._oracle = oracle
        self._bridge = bridge
        self._peeks = peeks
        self._relations = CatalogRelations()
        self._nodes = nodes or NodeStatus()
        self._topic_exists = topic_exists
        """Whether Kafka has a topic, asked on a thread; ``None`` where it does not say so soon."""
        self._now_ms = now_ms
        self.sessions: Callable[[], Iterable[SessionState]] = lambda: ()
        """The sessions that this process serves; set by whoever serves them."""
        self.plans = PlanCache()
        self.planner = Planner()
        self._handlers: dict[type[st.Statement], Handler] = {
            st.Query: self._select, st.Insert: self._insert, st.DDL: self._ddl, st.SetVariable: self._set,
            st.ResetAll: self._reset_all, st.ShowVariable: self._show_variable, st.ShowObjects: self._show,
            st.ShowCreate: self._show, st.Explain: self._explain, st.Upkeep: self._upkeep,
        }  # fmt: skip
        self._inserter = Inserter(catalog, oracle, writer, bridge)
        self._sequences = Sequences(catalog, oracle, bridge, now_ms)
        self.ddl = DdlQueue(catalog, oracle, bridge, now_ms, self.planner)

    def start(self) -> None:
        """Begin to take DDL; on the event loop."""
        self.ddl.start()

    async def close(self) -> None:
        """Stop taking DDL and settle what was sent."""
        await self.ddl.close()
        await self._sequences.close()
        self.planner.close()
        self._nodes.close()

    @property
    def failures(self) -> tuple[Future[Exception], ...]:
        """Given what stops the catalog's or the oracle's log for good, should one."""
        return self._catalog.failure, self._oracle.failure

    # --- what the session asks

    async def open(self, session: SessionState) -> None:
        """3D000 where the session's database does not exist."""
        async def known(image: Image) -> None:
            database_of(image, self._names(session))

        await self._certain(session, known)

    async def split(self, sql: str) -> list[str]:
        return await self.beside(sql, split)

    async def prepare(self, session: SessionState, sql: str, param_oids: Sequence[int] = ()) -> Prepared:
        statement = await self._statement(sql, param_oids)
        parsed = statement.parsed
        if statement.planned:
            planned = await self._certain(session, lambda image: self._plan(statement, image, session))
            return await self._prepared(session, statement, planned)
        self._handler(parsed)
        if isinstance(parsed, st.ShowVariable):
            show.check_variable(parsed, session)
        columns = parsed.returns
        told = None if columns is None else tuple([OutputColumn(name, kind) for name, kind in columns])
        return Prepared(sql, parsed.sort, (), told, parsed.tag, statement)

    async def _prepared(self, session: SessionState, statement: Statement, planned: Planned) -> Prepared:
        """What a query or an INSERT is by its plan."""
        plan, zone = planned.plan, self._names(session).zone
        parsed, oids = statement.parsed, _param_oids(statement, planned)
        columns = await self._columns(planned, session) if parsed.sort is Kind.SELECT else None
        return Prepared(statement.text, parsed.sort, oids, columns, parsed.tag, statement, zone, plan.literals)

    async def again(self, session: SessionState, prepared: Prepared) -> Prepared:
        statement = prepared.plan
        if prepared.kind not in (Kind.SELECT, Kind.INSERT):
            return prepared
        assert isinstance(statement, Statement), type(statement)
        kept = self.plans.kept(statement, self._names(session))
        if kept is not None and kept.timeless and kept.plan.kind == "constant":
            return prepared
        if session.strict:
            _, image = await self._barrier()
            self._saw(session, image)
        planned = await self._certain(session, lambda image: self._plan(statement, image, session))
        fresh = await self._prepared(session, statement, planned)
        return replace(fresh, zone=prepared.zone)  # what a literal meant when the statement was written, it means

    async def run(self, session: SessionState, prepared: Prepared, params: Sequence[object | None] = ()) -> Result:
        statement = prepared.plan
        assert isinstance(statement, Statement), type(statement)
        return await self._handler(statement.parsed)(session, prepared, statement, params)

    def _handler(self, parsed: st.Statement) -> Handler:
        """Who runs statements of its class.  0A000 where that is the session's to do, or nobody's."""
        found = next((self._handlers[each] for each in type(parsed).__mro__ if each in self._handlers), None)
        if found is None:
            raise unsupported(f"{parsed.tag} here")
        return found

    async def commit(self, session: SessionState) -> Sequence[Notice]:
        entries = list(session.buffer)
        session.buffer.clear()
        await self._commit(session, entries)
        return ()

    async def rollback(self, session: SessionState, buffered: Sequence[object]) -> None:
        """Buffered rows are only in this process's memory: there is nothing to release."""

    async def execute_ddl(
        self, statement: object, names: Names, asked: Asked, request_id: str | None = None
    ) -> DdlOutcome:
        """One DDL statement, for a session or for the DDL topic."""
        if isinstance(statement, st.AlterColumns):
            large = len(asked.text) > ON_LOOP_CHARS_MAX
            trees = await self._beside(large, len(asked.text), to_evaluate, statement, names)
            if trees:
                columns = [exp.alias_(tree, f"v{n}") for n, tree in enumerate(trees.values())]
                given = await asyncio.to_thread(self._relations.values, with_params(exp.select(*columns), [], {}))
                statement = with_values(statement, dict(zip(trees, given, strict=True)))
        for sequence_id in counted_on(statement, self._catalog.image, names):  # behind the last value given out
            await self._sequences.give_back(sequence_id)
        return await to_its_end(self.ddl.submit(statement, names, asked, request_id))

    async def _ddl(
        self, session: SessionState, prepared: Prepared, planned: Statement, params: Sequence[object | None]
    ) -> Result:
        statement, asked = planned.parsed, None
        if isinstance(statement, st.CreateSource):  # beside the statement, which waits for nobody's opinion (I8)
            asked = asyncio.ensure_future(asyncio.to_thread(self._topic_exists, statement.topic))
        try:
            outcome = await self.execute_ddl(statement, self._names(session), Asked(prepared.sql, session.user))
            session.catalog_ts_seen = max(session.catalog_ts_seen, outcome.catalog_ts)
            if asked is not None and await asked is False:
                session.notify(Notice(f'topic "{statement.topic}" does not exist yet',
                                      detail="the source waits for it, and reads it from its beginning"))  # fmt: skip
            return ddl_result(outcome)
        finally:
            if asked is not None:
                asked.cancel()

    # --- images, barriers, plans

    def _names(self, session: SessionState) -> Names:
        version, names = session.names
        if version != session.variables.version:
            names = Names(
                session.database, session.search_path, session.variable("cluster"), session.variable("TimeZone"),
                RELATIONS,
            )  # fmt: skip
            session.names = session.variables.version, names
        return names

    async def _image(self, upper: int) -> Image:
        image = self._catalog.image
        if image.upper >= upper:
            return image
        return await self._bridge.wait(self._catalog.when_upper(upper, CATALOG_WAIT_S))

    async def _barrier(self) -> tuple[OracleState, Image]:
        """The oracle's state at a barrier and the image in force there.

        It holds every DDL acknowledged before, and none that is admitted but not in force yet: an answer that showed
        such a DDL could be followed, through another adapter, by one that does not.
        """
        state = await self._oracle.barrier_async()
        return state, await image_in_force(self._catalog, self._bridge, state.catalog_upper)

    async def _certain(self, session: SessionState, plan: Callable[[Image], Awaitable[T]]) -> T:
        """``plan`` on the local image; where it fails, after a barrier and on an image at least that new."""
        image = await self._image(session.catalog_ts_seen + 1)
        try:
            return await plan(image)
        except InvalidUsage as error:
            if error.sqlstate in _OF_THE_TEXT:
                raise
            _, newer = await self._barrier()
            self._saw(session, newer)
            return await plan(newer)

    def _saw(self, session: SessionState, image: Image) -> None:
        session.catalog_ts_seen = CatalogTs(max(session.catalog_ts_seen, image.upper - 1))

    async def _plan(self, statement: Statement, image: Image, session: SessionState) -> Planned:
        """The statement's plan on ``image`` for the names of ``session``: made beside the loop if that takes long."""
        if statement.skeleton is not None:
            found = await self._plan_by_skeleton(statement, image, session)
            if found is not None:
                return found
            statement = await self._as_written(statement.text, ())
        names = self._names(session)
        held = self.plans.held(statement, image, names)
        if held is not None:
            return held
        made, chars = None, len(statement.text)
        if chars <= ON_LOOP_CHARS_MAX:
            try:
                made = plan_afresh(statement, image, names, ON_LOOP_CHARS_MAX)
            except TooLongHere:
                chars = LONG_CHARS
        if made is None:
            made = await self.planner.run(chars, plan_afresh, statement, image, names)
            made.large = True
        return self.plans.keep(statement, names, made)

    async def _plan_by_skeleton(self, statement: Statement, image: Image, session: SessionState) -> Planned | None:
        """The plan of the statement's skeleton with its values; ``None`` where its text must be planned as it is.

        The first text of a skeleton is planned both ways, which tells whether the skeleton serves."""
        names = self._names(session)
        if not self.plans.may_serve(statement, names, image):
            return None
        try:
            planned = await self._plan(statement.of, image, session)
        except InvalidUsage:  # what is wrong is told of the text that was written
            self.plans.serves_not(statement, names, image)
            return None
        if not planned.serves:
            written = await self._plan(await self._as_written(statement.text, ()), image, session)
            if not fits(planned.plan, written.plan):
                self.plans.serves_not(statement, names, None)
                return written
            planned.serves = True
        plan = filled(planned.plan, statement.skeleton)
        return None if plan is None else replace(planned, plan=plan, announced=self._announced(planned))

    async def _plan_as(
        self, prepared: Prepared, statement: Statement, image: Image, session: SessionState
    ) -> Planned:
        """:meth:`_plan` for parameters of the types that they had when it was prepared, since that is what they are
        read as: where others would be inferred by now, a column has moved, and what was prepared may not fit it.
        Raises :class:`Outdated` where the client was told of no types: then it may be asked as what they are now."""
        planned = await self._plan(statement, image, session)
        if _param_oids(statement, planned) == prepared.param_oids:
            return planned
        if not prepared.told:
            raise Outdated("the types of the statement's parameters have changed")
        types = declared_types(prepared.param_oids)
        as_then = Statement(statement.text, prepared.param_oids, statement.parsed, types)
        return await self._plan(as_then, image, session)

    async def _statement(self, sql: str, param_oids: Sequence[int]) -> Statement:
        """``sql`` parsed, beside the loop if that takes long.  A skeleton with values is not parsed itself."""
        found = self.plans.parsed(sql, param_oids)  # first: what is asked again needs no look at its tokens
        if found is None and not param_oids:
            found = await self._as_skeleton(sql)
        return found if found is not None else await self._as_written(sql, param_oids)

    async def _as_skeleton(self, sql: str) -> Statement | None:
        """``sql`` as a skeleton and its values; ``None`` where it has none, or where the parser refuses it (it is
        parsed as it stands then, which says why)."""
        skeleton = self.plans.skeleton_of(sql)
        if skeleton is None:
            return None
        try:
            of = await self._as_written(skeleton.text, skeleton.param_oids)
        except InvalidUsage:
            return None
        return Statement(sql, (), of.parsed, {}, skeleton=skeleton, of=of) if isinstance(of.parsed, st.Query) else None

    async def _as_written(self, sql: str, param_oids: Sequence[int]) -> Statement:
        if len(sql) <= ON_LOOP_CHARS_MAX:
            return self.plans.statement(sql, param_oids, lambda: declared_types(param_oids))
        found = self.plans.parsed(sql, param_oids)
        if found is None:
            parsed = await self.planner.run(len(sql), parse, sql)
            found = self.plans.keep_parsed(sql, param_oids, parsed, declared_types(param_oids))
        return found

    async def beside(self, sql: str, call: Callable[[str], T]) -> T:
        """``call(sql)``, a parser, beside the loop where ``sql`` is long."""
        return await self._beside(len(sql) > ON_LOOP_CHARS_MAX, len(sql), call, sql)

    async def _beside(self, large: bool, chars: int, call: Callable[..., T], *args: object) -> T:
        """``call(*args)``: beside the loop where it is about something ``large``."""
        return await self.planner.run(chars, call, *args) if large else call(*args)

    def _facts(self, session: SessionState) -> SessionFacts:
        return SessionFacts(
            self._names(session), session.user, f"PostgreSQL {SERVER_VERSION}", session.session_id, session.variable
        )

    async def _columns(self, planned: Planned[SelectPlan], session: SessionState) -> tuple[OutputColumn, ...]:
        if planned.plan.kind != "catalog":
            return self._announced(planned)
        call = self._relations.describe
        async with self.planner.sharing(planned.large):
            return tuple(await _in_thread(call, planned.plan, planned.image, self._facts(session)))

    @staticmethod
    def _announced(planned: Planned[SelectPlan]) -> tuple[OutputColumn, ...]:
        """What is said of a plan's columns, of the system's relations apart: the same object for every session."""
        if planned.announced is None:
            planned.announced = tuple([OutputColumn(column.name, column.type) for column in planned.plan.columns])
        return planned.announced

    # --- reads

    async def _select(
        self, session: SessionState, prepared: Prepared, statement: Statement, params: Sequence[object | None]
    ) -> Result:
        names = self._names(session)
        kept = self.plans.kept(statement, names)
        if kept is not None and kept.timeless and kept.plan.kind == "constant":  # it needs neither barrier nor image
            check_zone(prepared, names.zone, kept.plan)
            return Result("SELECT", prepared.columns, await self._constant_batches(session, kept, params))
        state, planned = await self._planned(session, prepared, statement)
        image, plan, columns = planned.image, planned.plan, prepared.columns
        check_zone(prepared, names.zone, plan)
        if plan.kind == "catalog":
            facts = self._facts(session)
            asked = reads_live(plan)
            live = await self._live(image, asked) if asked else None
            async with self.planner.sharing(planned.large):
                table = await _in_thread(self._relations.answer, plan, params, image, facts, live=live)
            check_result(columns, await self._columns(planned, session))
            if "set_config" in prepared.sql.lower():
                for name, value, local in await self._beside(planned.large, LONG_CHARS, _assigned, plan, params):
                    session.set_variable(name, value, local=local)
            return Result("SELECT", columns, table.to_batches())
        check_result(columns, self._announced(planned))
        as_of = state.last_ts if state is not None else None
        if plan.reads is not None:
            draws = Draws(self._sequences, session)
            return Result("SELECT", columns, (await self._over_rows(session, image, plan, params, as_of, draws))[0])
        if plan.kind == "constant":
            return Result("SELECT", columns, await self._constant_batches(session, planned, params))
        answer = await self._read(session, image, plan, params, as_of)
        return Result("SELECT", columns, promised_rows(answer, plan.columns))

    async def _planned(
        self, session: SessionState, prepared: Prepared, statement: Statement
    ) -> tuple[OracleState | None, Planned]:
        """The barrier that this session's isolation asks for, and the plan on the image that goes with it."""
        if session.strict and not self._reads_again(session, statement):
            state, image = await self._barrier()
            if image.upper <= session.catalog_ts_seen:  # it was serializable before, and had seen further
                image = await image_in_force(self._catalog, self._bridge, session.catalog_ts_seen + 1)
            self._saw(session, image)
            return state, await self._plan_as(prepared, statement, image, session)
        planned = await self._certain(session, lambda image: self._plan_as(prepared, statement, image, session))
        self._saw(session, planned.image)
        return None, planned

    def _reads_again(self, session: SessionState, statement: Statement) -> bool:
        """Whether this reads data in a block that has its timestamp: a barrier would tell nothing that may be used."""
        if session.transaction.read_ts is None:
            return False
        names = self._names(session)
        kept = [self.plans.kept(each, names) for each in (statement, statement.of) if each is not None]
        return any(each is not None and each.plan.peeked for each in kept)

    async def _constant_batches(
        self, session: SessionState, planned: Planned, params: Sequence[object | None]
    ) -> list[pa.RecordBatch]:
        """The rows of a query that reads nothing: where they can only ever be the same, they are computed once."""
        if planned.answer is None:
            drawn = await Draws(self._sequences, session).query(planned.plan, self._argument(planned.plan, params))
            async with self.planner.sharing(planned.large):
                table = await _in_thread(self._constant, drawn, params)
            if planned.plan.volatile or planned.plan.params or table.nbytes > FOLDED_BYTES_MAX:
                return table.to_batches()
            planned.answer = table.to_batches()
        return planned.answer

    async def _over_rows(
        self,
        session: SessionState,
        image: Image,
        plan: SelectPlan,
        params: Sequence[object | None],
        as_of: DataTs | None,
        draws: Draws,
    ) -> tuple[list[pa.RecordBatch], DataTs | None]:
        """What a query gives that draws values for rows, and where it has read those: all of them, before it draws."""
        reads, read_ts = plan.reads, None
        assert reads is not None
        if reads.kind == "peek":
            answer = await self._read(session, image, reads, params, as_of)
            read_ts = session.transaction.read_ts or as_of
            told = "values of sequences beside rows", "draw them in several statements"
            batches = await collect(as_promised(answer, reads.columns), *told)
        else:
            batches = (await _in_thread(self._constant, reads, params)).to_batches()
        rows = [row for batch in batches for row in zip(*(each.to_pylist() for each in batch.columns), strict=True)]
        trees = await draws.for_rows(plan, rows, lambda row: self._argument(plan, params, row))
        return await asyncio.to_thread(self._each_row, plan, params, trees, rows), read_ts

    def _each_row(
        self, plan: SelectPlan, params: Sequence[object | None], trees: Sequence[exp.Expression], rows: Sequence[tuple]
    ) -> list[pa.RecordBatch]:
        types = [(column.name, column.type) for column in plan.columns]
        whole = [with_params(tree, *plan.for_row(params, row)) for tree, row in zip(trees, rows, strict=True)]
        if not whole:
            return pa.schema([(name, arrow_type(kind)) for name, kind in types]).empty_table().to_batches()
        found = []
        for lower in range(0, len(whole), VALUES_AT_ONCE_MAX):
            query = union_all(whole[lower : lower + VALUES_AT_ONCE_MAX])
            found += self._relations.constant(query, types).to_batches()
        return found

    def _constant(self, plan: SelectPlan, params: Sequence[object | None], running: Running) -> pa.Table:
        tree = with_params(plan.tree, params, plan.params)
        return self._relations.constant(tree, [(c.name, c.type) for c in plan.columns], running)

    def _argument(
        self, plan: SelectPlan | InsertPlan, params: Sequence[object | None], row: Sequence[object] = ()
    ) -> Argument:
        values, types = params, plan.params
        if isinstance(plan, SelectPlan):
            values, types = plan.for_row(params, row)

        async def evaluate(tree: exp.Expression) -> object:
            query = with_params(exp.select(exp.alias_(tree.copy(), "v")), values, types)
            return (await asyncio.to_thread(self._relations.values, query))[0]

        return evaluate

    async def _read(
        self,
        session: SessionState,
        image: Image,
        plan: SelectPlan,
        params: Sequence[object | None],
        as_of: DataTs | None,
    ) -> PeekAnswer:
        """A peek, at the block's timestamp where there is one; the first read of a block decides it.

        0A000 for a table into which the block has inserted: those rows are nowhere yet, and an answer without them
        would be wrong.
        """
        if not session.transaction.in_block:
            return await self._peek(session, image, plan, params, as_of)
        transaction, tables = session.transaction, tables_below(image, plan.inputs)
        written = next((each.table for each in session.buffer if each.table.id in tables), None)
        if written is not None:
            raise unsupported(
                f'reading "{written.name}" in the transaction block that inserted into it',
                hint="COMMIT first: a block's rows become visible then",
            )
        if not session.reads_at_one_timestamp:
            return await self._peek(session, image, plan, params, as_of)
        again = transaction.read_ts is not None
        answer = await self._peek(session, image, plan, params, transaction.read_ts if again else as_of, again)
        if not again:
            assert answer.as_of is not None, "a controller says where it read"
            transaction.read_ts = DataTs(answer.as_of)
        transaction.tables_read.update(tables)
        return answer

    async def _peek(
        self,
        session: SessionState,
        image: Image,
        plan: SelectPlan,
        params: Sequence[object | None],
        as_of: DataTs | None,
        only_at: bool = False,
    ) -> PeekAnswer:
        cluster = cluster_named(image, session.variable("cluster"))
        timeout_ms = min(session.statement_timeout_ms or PEEK_TIMEOUT_MS, PEEK_TIMEOUT_MS)
        lookup = None
        if plan.lookup is not None:
            key, residual = plan.asked(params)
            lookup = Lookup(plan.lookup.index_id, plan.lookup.relation_id, key, residual)
        deadline = time.monotonic() + timeout_ms / 1000
        peek = Peek("", "", plan.inputs, plan.catalog_ts, as_of, lookup, timeout_ms, only_at)
        if lookup is not None:
            answer = await self._peeks.lookup(peek, cluster.id)
            if answer is not None and not _misses(answer, session.written_ts):
                return answer
        peek = peek._replace(peek_id=uuid.uuid4().hex, sql=await self._text(plan, params))

        def waits(why: str) -> None:
            session.notify(Notice(why, hint="tm_internal.controllers tells who answers"))

        answer = await self._peeks.peek(peek, cluster.id, deadline, waits)
        if not _misses(answer, session.written_ts):
            return answer
        # The newest timestamp of a serializable read is older than this session's own write, which is rare: the
        # controller is behind the oracle.  So it is asked again rather than every request made longer for it.
        await give_up(answer)
        again = peek._replace(peek_id=uuid.uuid4().hex, as_of=session.written_ts)
        return await self._peeks.peek(again, cluster.id, deadline, waits)

    async def _text(self, plan: SelectPlan, params: Sequence[object | None]) -> str:
        return await self._beside(plan.large, LONG_CHARS, plan.spark_sql, params)

    async def _live(self, image: Image, asked: frozenset[str]) -> Live:
        """What the oracle, the controllers and our own sessions say now, for tm_internal."""
        keys = [key for key, _ in image.all(NODES)] if asked - {"sessions", ACTIVITY} else []
        said = await asyncio.gather(*(asyncio.to_thread(self._nodes.ask, image, key) for key in keys))
        return rows_of(
            Told(image, self._oracle.state, dict(zip(keys, said, strict=True)), tuple(self.sessions()),
                 self._catalog.writer_id, self._now_ms())
        )  # fmt: skip

    # --- writes

    async def _insert(
        self, session: SessionState, prepared: Prepared, statement: Statement, params: Sequence[object | None]
    ) -> Result:
        draws = Draws(self._sequences, session)
        for tries_left in reversed(range(INSERT_TRIES_MAX)):
            entry = None
            draws.again()
            try:
                entry = await self._rows(session, prepared, statement, params, draws)
                tag = f"INSERT 0 {entry.rows.num_rows}"
                if session.defers_writes:
                    check_buffer([*session.buffer, entry])
                    session.buffer.append(entry)
                    return Result(tag)
                await self._commit(session, [entry])
                return Result(tag)
            except Conflict as error:
                again = isinstance(error, TableChanged) or (entry is not None and entry.read_ts is not None)
                if not again or not tries_left:
                    raise
        raise AssertionError("unreachable: the last try raises or returns")

    async def _rows(
        self,
        session: SessionState,
        prepared: Prepared,
        statement: Statement,
        params: Sequence[object | None],
        draws: Draws,
    ) -> Rows:
        """The rows that an INSERT would add, planned and (for a query) read."""
        planned = await self._certain(session, lambda image: self._plan_as(prepared, statement, image, session))
        check_zone(prepared, self._names(session).zone, planned.plan)
        state = None
        if planned.plan.query is not None and planned.plan.query.peeked:
            state, image = await self._barrier()
            self._saw(session, image)
            planned = await self._plan_as(prepared, statement, image, session)
        image, plan, on = planned.image, planned.plan, (planned.answers,)
        upper = plan.catalog_ts + 1
        evaluate, argument = self._evaluator(plan, params), self._argument(plan, params)
        if plan.query is None:
            try:
                plan = await draws.rows(plan, argument)
                rows = await self._beside(planned.large, len(statement.text), rows_of_values, plan, params, evaluate)
                return Rows(plan.table, rows, upper, on)
            except InvalidUsage as error:
                await self._still_so(session, planned, error)
                raise
        if plan.query.reads is not None:
            if state is None and plan.query.peeked:
                state, _ = await self._barrier()
            as_of = state.last_ts if state is not None else None
            batches, read_ts = await self._over_rows(session, image, plan.query, params, as_of, draws)
            drawn = await draws.defaults(plan, sum(batch.num_rows for batch in batches), argument)
            rows = await _beside_rows(bool(drawn), rows_of_query, plan, batches, evaluate, drawn)
            return Rows(plan.table, rows, upper, on, read_ts, tables_below(image, plan.query.inputs))
        if plan.query.kind == "constant":
            query = await draws.query(plan.query, argument)
            async with self.planner.sharing(planned.large):
                table = await _in_thread(self._constant, query, params)
            drawn = await draws.defaults(plan, table.num_rows, argument)
            rows = await _beside_rows(bool(drawn), rows_of_query, plan, table.to_batches(), evaluate, drawn)
            return Rows(plan.table, rows, upper, on)
        if state is None:  # it became a query over relations only now, on a newer image
            state, _ = await self._barrier()
        answer = await self._read(session, image, plan.query, params, state.last_ts)
        read_ts = session.transaction.read_ts or state.last_ts
        batches = await collect(as_promised(answer, plan.query.columns))
        tables = tables_below(image, plan.query.inputs)
        drawn = await draws.defaults(plan, sum(batch.num_rows for batch in batches), argument)
        rows = await _beside_rows(bool(drawn), rows_of_query, plan, batches, evaluate, drawn)
        return Rows(plan.table, rows, upper, on, read_ts, tables)

    async def _still_so(self, session: SessionState, planned: Planned, error: InvalidUsage) -> None:
        """A value was refused for what the table is (NOT NULL, a range): that must hold on the catalog in force."""
        _, image = await self._barrier()
        self._saw(session, image)
        if not same_answers(planned.answers, image):
            raise TableChanged("the table changed while the statement ran", hint="try again") from error

    def _evaluator(self, plan: InsertPlan, params: Sequence[object | None]) -> Evaluate:
        def evaluate(slots: Sequence[Slot]) -> list[object]:
            found: list[object] = []
            for lower in range(0, len(slots), VALUES_AT_ONCE_MAX):
                some = slots[lower : lower + VALUES_AT_ONCE_MAX]
                named = [exp.alias_(slot.tree.copy(), f"v{n}") for n, slot in enumerate(some)]
                found += self._relations.values(with_params(exp.select(*named), params, plan.params))
            return found

        return evaluate

    async def _commit(self, session: SessionState, entries: Sequence[Rows]) -> None:
        block = session.transaction
        reads = block.tables_read if session.serializable else ()
        try:
            ts = await self._inserter.commit(entries, block.read_ts if reads else None, reads)
            session.written_ts = max(session.written_ts, ts or session.written_ts)
        except Unavailable as error:
            # A dropped table's topic is gone: then the user should hear that, not that Kafka is unwell.
            _, image = await self._barrier()
            self._saw(session, image)
            for each in entries:
                check_unchanged(each, image, self._inserter.label)
            raise error

    # --- the session's own variables, and looking

    async def _set(
        self, session: SessionState, prepared: Prepared, statement: Statement, params: Sequence[object | None]
    ) -> Result:
        said = statement.parsed
        if said.value is None:
            session.reset_variable(said.name)
        else:
            session.set_variable(said.name, said.value, local=said.local)
        return Result(said.tag)

    async def _reset_all(
        self, session: SessionState, prepared: Prepared, statement: Statement, params: Sequence[object | None]
    ) -> Result:
        session.reset_variable("all")
        return Result(statement.parsed.tag)

    async def _show_variable(
        self, session: SessionState, prepared: Prepared, statement: Statement, params: Sequence[object | None]
    ) -> Result:
        if statement.parsed.name == show.PLAN_CACHE:
            return _shown(prepared, [(self.plans.status(),)])
        return _shown(prepared, show.show_variable(statement.parsed, session))

    async def _show(
        self, session: SessionState, prepared: Prepared, statement: Statement, params: Sequence[object | None]
    ) -> Result:
        _, image = await self._barrier()
        self._saw(session, image)
        return _shown(prepared, show.ROWS[type(statement.parsed)](statement.parsed, image, self._names(session)))

    async def _upkeep(
        self, session: SessionState, prepared: Prepared, statement: Statement, params: Sequence[object | None]
    ) -> Result:
        """There is nothing to do: what is named is looked up."""
        upkeep = statement.parsed
        if upkeep.outside_blocks and session.transaction.in_block:
            raise InvalidUsage(f"{upkeep.tag} cannot run inside a transaction block", sqlstate="25001")
        _, image = await self._barrier()
        self._saw(session, image)
        for name, columns in upkeep.named:
            item = find(image, self._names(session), name) or relation(image, self._names(session), name)
            if isinstance(item, SystemRelation):
                continue
            if item.kind not in upkeep.kinds:
                raise wrong_kind(name.last, " or ".join(st.KIND_WORDS[each] for each in upkeep.kinds))
            known = [column.name for column in item.columns] if columns else []
            if unknown := [each for each in columns if each not in known]:
                raise no_column(unknown[0], known)
        return Result(upkeep.tag)

    async def _explain(
        self, session: SessionState, prepared: Prepared, statement: Statement, params: Sequence[object | None]
    ) -> Result:
        state, image = await self._barrier()
        self._saw(session, image)
        told = statement.parsed, image, self._names(session), state
        return _shown(prepared, [(line,) for line in await self.planner.run(len(prepared.sql), explain, *told)])


def _shown(prepared: Prepared, rows: Sequence[tuple]) -> Result:
    return Result(prepared.tag_hint, prepared.columns, [show.batch(prepared.columns, rows)])


def _misses(answer: PeekAnswer, written_ts: DataTs) -> bool:
    """Whether ``answer`` is of a time before ``written_ts``."""
    return answer.as_of is not None and answer.as_of < written_ts


def _param_oids(statement: Statement, planned: Planned) -> tuple[int, ...]:
    plan = planned.plan
    return oids_of(plan.params, statement.param_oids, getattr(plan, "array_params", None))


def _assigned(plan: SelectPlan, params: Sequence[object | None]) -> list[tuple[str, str | None, bool]]:
    return list(assignments(with_params(plan.tree, params, plan.params)))


async def _beside_rows(many: bool, call: Callable[..., T], *args: object) -> T:
    """``call(*args)``, on a thread where each row has values to be worked out."""
    return await asyncio.to_thread(call, *args) if many else call(*args)


async def _in_thread(call: Callable[..., T], *args: object, **named: object) -> T:
    """``call(*args, running)`` off the event loop; it is interrupted if we are cancelled."""
    running = Running()
    try:
        return await asyncio.to_thread(call, *args, running, **named)
    except asyncio.CancelledError:
        running.interrupt()
        raise
