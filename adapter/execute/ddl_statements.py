"""DDL as a statement: what must be worked out or given back before it goes into the queue, and what is told of it.

The queue itself, where DDL is appended, then applied, then answered, is :mod:`adapter.execute.ddl_commit`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from adapter.execute.constants import Constants
from adapter.execute.ddl_commit import Asked, DdlOutcome, DdlQueue
from adapter.execute.not_null import NotNull
from adapter.execute.planning import ON_LOOP_CHARS_MAX
from adapter.execute.plans import Plans
from adapter.execute.registries import Registries
from adapter.execute.results import ddl_result
from adapter.execute.sequences import Sequences
from adapter.execute.session_names import names_of
from adapter.state.interfaces import Notice, Prepared, Result
from adapter.state.session_state import SessionState
from catalog_log.log import CatalogLog
from journal.aio import to_its_end
from sql.objects.names import Names
from sql.statements.ddl_columns import to_evaluate, with_values
from sql.statements.ddl_identity import counted_on
from sql.statements.ddl_not_null import may_need_rows
from sql.statements.plan_cache import Statement
from sql.syntax import statements as st


class DdlStatements:
    """DDL of sessions and of the DDL topic.  Lives on one event loop.

    ``topic_exists``: whether Kafka has a topic, asked on a thread; ``None`` where it does not say so soon.
    """

    def __init__(
        self,
        queue: DdlQueue,
        catalog: CatalogLog,
        plans: Plans,
        constants: Constants,
        sequences: Sequences,
        not_null: NotNull,
        topic_exists: Callable[[str], bool | None],
        registries: Registries,
        now_ms: Callable[[], int],
    ) -> None:
        self._queue = queue
        self._catalog = catalog
        self._plans = plans
        self._constants = constants
        self._sequences = sequences
        self._not_null = not_null
        self._topic_exists = topic_exists
        self._registries = registries
        self._now_ms = now_ms

    async def run(
        self, session: SessionState, prepared: Prepared, planned: Statement, params: Sequence[object | None]
    ) -> Result:
        statement, asked = planned.parsed, None
        if isinstance(statement, st.CreateSource) and statement.connection is None:
            # Beside the statement, which waits for nobody's opinion (I8).
            asked = asyncio.ensure_future(asyncio.to_thread(self._topic_exists, statement.topic))
        try:
            asked_by = Asked(prepared.sql, session.user)
            outcome = await self.execute(statement, names_of(session), asked_by, session=session)
            session.catalog_ts_seen = max(session.catalog_ts_seen, outcome.catalog_ts)
            if asked is not None and await asked is False:
                session.notify(Notice(f'topic "{statement.topic}" does not exist yet',
                                      detail="the source waits for it, and reads it from its beginning"))  # fmt: skip
            return ddl_result(outcome)
        finally:
            if asked is not None:
                asked.cancel()

    async def execute(
        self,
        statement: object,
        names: Names,
        asked: Asked,
        request_id: str | None = None,
        session: SessionState | None = None,
    ) -> DdlOutcome:
        """Raises as :meth:`adapter.execute.ddl_commit.DdlQueue.submit` and :meth:`NotNull.execute` do.  ``session`` is
        whose statement it is; nobody's where it came on the DDL topic."""
        if isinstance(statement, st.AlterColumns):
            large = len(asked.text) > ON_LOOP_CHARS_MAX
            scalars = await self._plans.of_size(large, len(asked.text), to_evaluate, statement, names)
            if scalars:
                given = await asyncio.to_thread(self._constants.evaluate, list(scalars.values()))
                statement = with_values(statement, dict(zip(scalars, given, strict=True)))
        if isinstance(statement, st.CreateSource):
            statement = await self._registries.told(statement, names, session)
        if isinstance(statement, st.CreateGenerator):  # which starts now, however often it has to be planned
            statement = replace(statement, now_ms=self._now_ms())
        for sequence_id in counted_on(statement, self._catalog.image, names):  # behind the last value given out
            await self._sequences.give_back(sequence_id)

        def submit(said: object, its_id: str | None) -> Awaitable[DdlOutcome]:
            return to_its_end(self._queue.submit(said, names, asked, its_id))

        if isinstance(statement, st.AlterColumns) and any(map(may_need_rows, statement.actions)):
            return await self._not_null.execute(statement, names, asked, session, submit, request_id)
        return await submit(statement, request_id)
