"""The executor: SQL without sockets, strictly serializable (DESIGN §4, §7; I3, I4, I7, I8).

Which statement is whose, and what the session asks of each.  The promises are kept by those who run them:

* a SELECT sees everything acknowledged before it began, in any adapter, or what its session asked for instead
  (:mod:`adapter.execute.selects`; in a transaction block :mod:`adapter.execute.reads`);
* an INSERT is planned on the local image without a barrier and committed on condition that no newer catalog is in
  force (:mod:`adapter.execute.inserts`);
* UPDATE, DELETE and TRUNCATE read as a SELECT does and are committed only if nothing that they read was written since
  (:mod:`adapter.execute.changes`);
* DDL is appended, then applied, then answered (:mod:`adapter.execute.ddl_statements`);
* whatever is said about the catalog without changing it (an error such as 42P01) is said only after a barrier and a
  fresh plan on an image at least that new (:mod:`adapter.execute.images`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import TypeVar

from adapter.duck.catalog_relations import CatalogRelations
from adapter.execute import show
from adapter.execute.changes import Changes
from adapter.execute.claims import Claims
from adapter.execute.commits import Commits
from adapter.execute.conflicting import Conflicting
from adapter.execute.constants import Constants
from adapter.execute.copies import Copies
from adapter.execute.ddl_commit import Asked, DdlOutcome, DdlQueue
from adapter.execute.ddl_statements import DdlStatements
from adapter.execute.fresh_lookups import FreshLookups
from adapter.execute.images import Images
from adapter.execute.inserter import Inserter, Writer
from adapter.execute.inserts import Inserts
from adapter.execute.key_looks import KeyLooks
from adapter.execute.lines import Lines
from adapter.execute.looks import Looks
from adapter.execute.merging import Merging
from adapter.execute.not_null import NotNull
from adapter.execute.peeks import Peeks
from adapter.execute.planning import Planner
from adapter.execute.plans import Plans, param_oids_of
from adapter.execute.reads import Reads
from adapter.execute.registries import Registries
from adapter.execute.returned import returned
from adapter.execute.rows import gathered
from adapter.execute.selects import Selects
from adapter.execute.sequences import Sequences
from adapter.execute.session_names import names_of
from adapter.execute.system_reads import SystemReads
from adapter.execute.uniques import Uniques
from adapter.execute.vacuums import Vacuums
from adapter.execute.validations import Validations
from adapter.execute.variable_statements import VariableStatements
from adapter.execute.writings import Writings
from adapter.state.interfaces import Kind, Notice, OutputColumn, Prepared, Result
from adapter.state.session_state import SessionState
from catalog_log.image import Image
from catalog_log.log import CatalogLog
from controllers.node_status import NodeStatus
from journal.aio import Bridge
from oracle.client import Oracle, wall_clock_ms
from sql.objects.names import Names, database_of
from sql.statements.plan_cache import Planned, Statement
from sql.syntax import statements as st
from sql.syntax.parse import split
from sql.syntax.statement import PLANNED
from trees.errors import unsupported

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
        peeks = FreshLookups(peeks, catalog, oracle)
        self._catalog = catalog
        self._oracle = oracle
        self.images = Images(catalog, oracle, bridge)
        self.plans = Plans()
        self.sequences = Sequences(catalog, oracle, bridge, now_ms)
        self.ddl = DdlQueue(catalog, oracle, bridge, now_ms, self.planner)
        relations, nodes = CatalogRelations(), nodes or NodeStatus()
        constants = Constants(relations)
        self.system = SystemReads(relations, self.plans, catalog, oracle, nodes, now_ms)
        self.reads = Reads(peeks, self.plans, constants)
        self.commits = Commits(Inserter(catalog, oracle, writer, bridge), self.images)
        not_null = NotNull(self.images, self.plans, self.reads)
        self._ddl = DdlStatements(
            self.ddl, catalog, self.plans, constants, self.sequences, not_null, topic_exists,
            Registries(self.images, bridge), now_ms,
        )  # fmt: skip
        selects = Selects(self.images, self.plans, constants, self.sequences, self.system, self.reads)
        key_looks, lines = KeyLooks(peeks, self.reads), Lines()
        merging = Merging(self.images, constants, self.reads, key_looks)
        uniques = Uniques(self.images, key_looks)
        conflicting = Conflicting(self.images, constants, key_looks, uniques)
        inserts = Inserts(
            self.images, self.plans, constants, self.sequences, self.reads, self.commits, uniques, conflicting, lines
        )
        changes = Changes(self.images, self.plans, constants, self.sequences, self.reads, self.commits, uniques, lines)
        self.copies = Copies(
            self.images, self.plans, constants, self.sequences, self.commits, uniques, self.prepare, self.run
        )
        self.system.copying = self.copies.copying
        self._claims = Claims(oracle, self.copies.copying, lambda: self.system.sessions())
        variables, looks = VariableStatements(self.plans), Looks(self.images, self.plans, peeks)
        self._handlers: dict[type[st.Statement], Handler] = {
            st.Query: selects.run,
            st.Insert: inserts.run,
            st.Change: changes.run,
            st.Truncate: changes.run,
            st.Writing: Writings(
                self.images, self.plans, self.commits, merging, self.prepare_statement, self.run
            ).run,
            st.CopyFrom: self.copies.into,
            st.CopyTo: self.copies.out,
            st.DDL: self._ddl.run,
            st.SetVariable: variables.set,
            st.ResetAll: variables.reset_all,
            st.ShowVariable: variables.show,
            st.ShowObjects: looks.show,
            st.ShowCreate: looks.show,
            st.Explain: looks.explain,
            st.Upkeep: looks.upkeep,
            st.Vacuum: Vacuums(self.images, nodes, bridge).run,
            st.ValidateConnection: Validations(self.images, bridge).run,
        }

    def start(self) -> None:
        """Begin to take DDL, and to claim what is to be bound; on the event loop."""
        self.ddl.start()
        self._claims.start()

    async def close(self) -> None:
        """Stop taking DDL and settle what was sent."""
        await self._claims.close()
        await self.ddl.close()
        await self.sequences.close()
        self.planner.close()
        self.system.close()

    @property
    def planner(self) -> Planner:
        return self.plans.planner

    @property
    def failures(self) -> tuple[Future[Exception], ...]:
        """Given what stops the catalog's or the oracle's log for good, should one."""
        return self._catalog.failure, self._oracle.failure

    def serves(self, sessions: Callable[[], Iterable[SessionState]]) -> None:
        """Says which sessions this process serves; called by whoever serves them."""
        self.system.sessions = sessions

    # --- what the session asks

    async def open(self, session: SessionState) -> None:
        """3D000 where the session's database does not exist."""
        async def known(image: Image) -> None:
            database_of(image, names_of(session))

        await self.images.certain(session, known)

    async def split(self, sql: str) -> list[str]:
        return await self.beside(sql, split)

    async def prepare(self, session: SessionState, sql: str, param_oids: Sequence[int] = ()) -> Prepared:
        return await self.prepare_statement(session, await self.plans.statement(sql, param_oids))

    async def prepare_statement(self, session: SessionState, statement: Statement) -> Prepared:
        """What a parsed statement is on the catalog of now."""
        parsed = statement.parsed
        if statement.planned:
            planned = await self.images.certain(session, lambda image: self.plans.plan(statement, image, session))
            return await self._prepared(session, statement, planned)
        self._handler(parsed)
        if isinstance(parsed, st.ShowVariable):
            show.check_variable(parsed, session)
        columns = parsed.returns
        told = None if columns is None else tuple([OutputColumn(name, kind) for name, kind in columns])
        return Prepared(statement.text, parsed.sort, (), told, parsed.tag, statement)

    async def _prepared(self, session: SessionState, statement: Statement, planned: Planned) -> Prepared:
        """What a query or a write is by its plan."""
        plan, zone = planned.plan, names_of(session).zone
        parsed, oids = statement.parsed, param_oids_of(statement, planned)
        columns = await self.system.columns(planned, session) if parsed.sort is Kind.SELECT else returned(plan)
        return Prepared(statement.text, parsed.sort, oids, columns, parsed.tag, statement, zone, plan.literals)

    async def again(self, session: SessionState, prepared: Prepared) -> Prepared:
        statement = prepared.plan
        if prepared.kind not in PLANNED:
            return prepared
        assert isinstance(statement, Statement), type(statement)
        if self.plans.kept_constant(statement, session) is not None:
            return prepared
        if session.strict:
            await self.images.in_force(session)
        planned = await self.images.certain(session, lambda image: self.plans.plan(statement, image, session))
        fresh = await self._prepared(session, statement, planned)
        return replace(fresh, zone=prepared.zone)  # what a literal meant when the statement was written, it means

    def run(
        self, session: SessionState, prepared: Prepared, params: Sequence[object | None] = ()
    ) -> Awaitable[Result]:
        statement = prepared.plan
        assert isinstance(statement, Statement), type(statement)
        return self._handler(statement.parsed)(session, prepared, statement, params)

    def _handler(self, parsed: st.Statement) -> Handler:
        """Who runs statements of its class.  0A000 where that is the session's to do, or nobody's."""
        found = self._handlers.get(type(parsed))
        if found is None:
            found = next((self._handlers[each] for each in type(parsed).__mro__ if each in self._handlers), None)
            if found is None:
                raise unsupported(f"{parsed.tag} here")
            self._handlers[type(parsed)] = found
        return found

    async def commit(self, session: SessionState) -> Sequence[Notice]:
        entries = session.buffer.cut(0)
        await self.commits.commit(session, gathered(entries))
        return ()

    async def rollback(self, session: SessionState, buffered: Sequence[object]) -> None:
        """Buffered rows are only in this process's memory: there is nothing to release."""

    # --- what the DDL topic asks

    async def execute_ddl(
        self, statement: object, names: Names, asked: Asked, request_id: str | None = None
    ) -> DdlOutcome:
        """One DDL statement that no session has prepared."""
        return await self._ddl.execute(statement, names, asked, request_id)

    async def beside(self, sql: str, call: Callable[[str], T]) -> T:
        """``call(sql)``, a parser, beside the loop where ``sql`` is long."""
        return await self.plans.of_text(sql, call)
