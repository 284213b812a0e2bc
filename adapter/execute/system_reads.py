"""A query over the system's relations: answered here, by DuckDB, of one image and what is known now."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence

import pyarrow as pa

from adapter.duck.catalog_relations import CatalogRelations, Live, reads_live
from adapter.execute.beside import interruptible
from adapter.execute.planning import LONG_CHARS
from adapter.execute.plans import Plans, announced
from adapter.execute.results import check_result
from adapter.execute.session_names import facts_of
from adapter.state.copying import CopyProgress
from adapter.state.interfaces import OutputColumn, Prepared
from adapter.state.session_state import SessionState
from adapter.system.live_rows import OF_SESSIONS, Told, rows_of
from catalog_log.image import Image
from catalog_log.log import CatalogLog
from catalog_log.model import NODES
from controllers.node_status import NodeStatus
from oracle.client import Oracle
from sql.statements.plan_cache import Planned
from sql.statements.plans import SelectPlan
from sql.system.parameters import assignments, filled


class SystemReads:
    """Asks ``nodes`` what controllers say of themselves, and the oracle and our sessions for ``tm_internal``."""

    def __init__(
        self,
        relations: CatalogRelations,
        plans: Plans,
        catalog: CatalogLog,
        oracle: Oracle,
        nodes: NodeStatus,
        now_ms: Callable[[], int],
    ) -> None:
        self._relations = relations
        self._plans = plans
        self._catalog = catalog
        self._oracle = oracle
        self.nodes = nodes
        self._now_ms = now_ms
        self.sessions: Callable[[], Iterable[SessionState]] = lambda: ()
        self.copying: Iterable[CopyProgress] = ()

    def close(self) -> None:
        self.nodes.close()

    async def columns(self, planned: Planned[SelectPlan], session: SessionState) -> tuple[OutputColumn, ...]:
        """What any query's columns are.  Those of what reads no relation and asks for what only the system knows are
        found by asking."""
        if planned.plan.kind != "catalog" or planned.plan.reads_system:
            return announced(planned)
        call = self._relations.describe
        async with self._plans.planner.sharing(planned.large):
            return tuple(await interruptible(call, planned.plan, planned.image, facts_of(session)))

    async def rows(
        self,
        session: SessionState,
        prepared: Prepared,
        planned: Planned[SelectPlan],
        params: Sequence[object | None],
    ) -> list[pa.RecordBatch]:
        """What the query gives.  Variables that it sets by ``set_config`` are set then."""
        image, plan = planned.image, planned.plan
        facts = facts_of(session)
        asked = reads_live(plan)
        live = await self._live(image, asked) if asked else None
        async with self._plans.planner.sharing(planned.large):
            table = await interruptible(self._relations.answer, plan, params, image, facts, live=live)
        check_result(prepared.columns, await self.columns(planned, session))
        if "set_config" in prepared.sql.lower():
            for name, value, local in await self._plans.of_size(planned.large, LONG_CHARS, _assigned, plan, params):
                session.set_variable(name, value, local=local)
        return table.to_batches()

    async def _live(self, image: Image, asked: frozenset[str]) -> Live:
        """What the oracle, the controllers and our own sessions say now, for tm_internal."""
        keys = [key for key, _ in image.all(NODES)] if asked - {"sessions", *OF_SESSIONS} else []
        said = await asyncio.gather(*(asyncio.to_thread(self.nodes.ask, image, key) for key in keys))
        return rows_of(
            Told(image, self._oracle.state, dict(zip(keys, said, strict=True)), tuple(self.sessions()),
                 self._catalog.writer_id, self._now_ms(), tuple(self.copying))
        )  # fmt: skip


def _assigned(plan: SelectPlan, params: Sequence[object | None]) -> list[tuple[str, str | None, bool]]:
    if plan.system is None:  # it is asked by parts, none of which assigns anything (:mod:`adapter.duck.system_parts`)
        return []
    return list(assignments(filled(plan.system, *plan.values(params))))
