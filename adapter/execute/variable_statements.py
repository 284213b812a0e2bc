"""SET, RESET and SHOW of a session's variables."""

from __future__ import annotations

from collections.abc import Sequence

from adapter.execute import show
from adapter.execute.plans import Plans
from adapter.state.interfaces import Prepared, Result
from adapter.state.session_state import SessionState
from sql.statements.plan_cache import Statement


class VariableStatements:
    """``plans`` is asked for what ``SHOW plan_cache`` tells."""

    def __init__(self, plans: Plans) -> None:
        self._plans = plans

    async def set(
        self, session: SessionState, prepared: Prepared, statement: Statement, params: Sequence[object | None]
    ) -> Result:
        said = statement.parsed
        if said.value is None:
            session.reset_variable(said.name)
        else:
            session.set_variable(said.name, said.value, local=said.local)
        return Result(said.tag)

    async def reset_all(
        self, session: SessionState, prepared: Prepared, statement: Statement, params: Sequence[object | None]
    ) -> Result:
        session.reset_variable("all")
        return Result(statement.parsed.tag)

    async def show(
        self, session: SessionState, prepared: Prepared, statement: Statement, params: Sequence[object | None]
    ) -> Result:
        if statement.parsed.name == show.PLAN_CACHE:
            return show.shown(prepared, [(self._plans.cache.status(),)])
        return show.shown(prepared, show.show_variable(statement.parsed, session))
