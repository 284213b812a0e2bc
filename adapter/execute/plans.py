"""From a text to its plan: parsed, taken for a skeleton with values, planned, or kept from before.

What takes long is done beside the loop (:mod:`adapter.execute.planning`); what was made is kept by
:class:`sql.statements.plan_cache.PlanCache`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TypeVar

from adapter.duck.carried import output_column
from adapter.execute.planning import LONG_CHARS, ON_LOOP_CHARS_MAX, Planner
from adapter.execute.results import declared_types, oids_of
from adapter.execute.session_names import names_of
from adapter.state.interfaces import Outdated, OutputColumn, Prepared
from adapter.state.session_state import SessionState
from catalog_log.image import Image
from journal.errors import InvalidUsage
from sql.objects.watched import TooLongHere
from sql.statements.plan_cache import PlanCache, Planned, Statement, plan_afresh
from sql.statements.plans import SelectPlan
from sql.statements.skeletons import filled, fits
from sql.syntax import statements as st
from sql.syntax.parse import parse

T = TypeVar("T")


class Plans:
    """The statements of one adapter and their plans.  Lives on one event loop."""

    def __init__(self) -> None:
        self.cache = PlanCache()
        self.planner = Planner()

    # --- a text to a statement

    async def statement(self, sql: str, param_oids: Sequence[int]) -> Statement:
        """``sql`` parsed, beside the loop if that takes long.  A skeleton with values is not parsed itself."""
        found = self.cache.parsed(sql, param_oids)  # first: what is asked again needs no look at its tokens
        if found is None and not param_oids:
            found = await self._as_skeleton(sql)
        return found if found is not None else await self._as_written(sql, param_oids)

    async def _as_skeleton(self, sql: str) -> Statement | None:
        """``sql`` as a skeleton and its values; ``None`` where it has none, or where the parser refuses it (it is
        parsed as it stands then, which says why).

        Of a text that takes long to plan, or that changes rows, it is the second of its skeleton that is planned both
        ways, not the first: most of what is sent once would otherwise pay twice for nothing."""
        skeleton = self.cache.skeleton_of(sql)
        if skeleton is None:
            return None
        if (skeleton.changes or len(sql) > ON_LOOP_CHARS_MAX) and not self.cache.meets(skeleton):
            return None
        try:
            of = await self._as_written(skeleton.text, skeleton.param_oids)
        except InvalidUsage:
            return None
        whole = isinstance(of.parsed, (st.Query, st.Change))
        return Statement(sql, (), of.parsed, {}, skeleton=skeleton, of=of) if whole else None

    async def _as_written(self, sql: str, param_oids: Sequence[int]) -> Statement:
        if len(sql) <= ON_LOOP_CHARS_MAX:
            return self.cache.statement(sql, param_oids, lambda: declared_types(param_oids))
        found = self.cache.parsed(sql, param_oids)
        if found is None:
            parsed = await self.planner.run(len(sql), parse, sql)
            found = self.cache.keep_parsed(sql, param_oids, parsed, declared_types(param_oids))
        return found

    async def once(self, sql: str, param_oids: Sequence[int]) -> Statement:
        """``sql`` parsed, where nobody will say it again: it holds values that were read."""
        parsed = await self.of_text(sql, parse)
        return Statement(sql, tuple(param_oids), parsed, declared_types(param_oids), once=True)

    async def of_text(self, sql: str, call: Callable[[str], T]) -> T:
        """``call(sql)``, a parser, beside the loop where ``sql`` is long."""
        return await self.of_size(len(sql) > ON_LOOP_CHARS_MAX, len(sql), call, sql)

    async def of_size(self, large: bool, chars: int, call: Callable[..., T], *args: object) -> T:
        """``call(*args)``: beside the loop where it is about something ``large``."""
        return await self.planner.run(chars, call, *args) if large else call(*args)

    # --- a statement to a plan

    async def plan(self, statement: Statement, image: Image, session: SessionState) -> Planned:
        """The statement's plan on ``image`` for the names of ``session``: made beside the loop if that takes long."""
        if statement.skeleton is not None:
            found = await self._plan_by_skeleton(statement, image, session)
            if found is not None:
                return found
            statement = await self._as_written(statement.text, ())
        names = names_of(session)
        held = self.cache.held(statement, image, names)
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
        return self.cache.keep(statement, names, made)

    async def _plan_by_skeleton(self, statement: Statement, image: Image, session: SessionState) -> Planned | None:
        """The plan of the statement's skeleton with its values; ``None`` where its text must be planned as it is.

        The first text that comes so far is planned both ways, which tells whether the skeleton serves."""
        names = names_of(session)
        if not self.cache.may_serve(statement, names, image):
            return None
        try:
            planned = await self.plan(statement.of, image, session)
        except InvalidUsage:  # what is wrong is told of the text that was written
            self.cache.serves_not(statement, names, image)
            return None
        if not planned.serves:
            written = await self.plan(await self._as_written(statement.text, ()), image, session)
            if not fits(planned.plan, written.plan):
                self.cache.serves_not(statement, names, None)
                return written
            planned.serves = True
        plan = filled(planned.plan, statement.skeleton)
        if plan is None:
            return None
        told = announced(planned) if isinstance(plan, SelectPlan) else None
        return replace(planned, plan=plan, announced=told, param_oids=None)

    async def plan_as(self, prepared: Prepared, statement: Statement, image: Image, session: SessionState) -> Planned:
        """:meth:`plan` for parameters of the types that they had when it was prepared, since that is what they are
        read as: where others would be inferred by now, a column has moved, and what was prepared may not fit it.
        Raises :class:`Outdated` where the client was told of no types: then it may be asked as what they are now."""
        planned = await self.plan(statement, image, session)
        if param_oids_of(statement, planned) == prepared.param_oids:
            return planned
        if not prepared.told:
            raise Outdated("the types of the statement's parameters have changed")
        types = declared_types(prepared.param_oids)
        as_then = Statement(statement.text, prepared.param_oids, statement.parsed, types)
        return await self.plan(as_then, image, session)

    def at_hand(
        self, prepared: Prepared, statement: Statement, image: Image, session: SessionState
    ) -> Planned | None:
        """:meth:`plan_as`, where it was made before and of this very image."""
        planned = self.cache.at_hand(statement, image, names_of(session))
        return planned if planned is not None and param_oids_of(statement, planned) == prepared.param_oids else None

    def kept(self, statement: Statement, session: SessionState) -> Planned | None:
        """The plan that was made before, if one is kept; perhaps of another image."""
        return self.cache.kept(statement, names_of(session))

    def kept_constant(self, statement: Statement, session: SessionState) -> Planned | None:
        """:meth:`kept` where it is of constants alone and good for every image."""
        kept = self.kept(statement, session)
        return kept if kept is not None and kept.timeless and kept.plan.kind == "constant" else None


def param_oids_of(statement: Statement, planned: Planned) -> tuple[int, ...]:
    """What is told of a plan's parameters: a plan is of a statement with the oids that were declared."""
    if planned.param_oids is None:
        plan = planned.plan
        planned.param_oids = oids_of(plan.params, statement.param_oids, getattr(plan, "system_oids", None))
    return planned.param_oids


def announced(planned: Planned[SelectPlan]) -> tuple[OutputColumn, ...]:
    """What is said of a plan's columns: the same object for every session."""
    if planned.announced is None:
        plan = planned.plan
        if plan.system is not None:
            columns = tuple([output_column(name, kind) for name, kind in plan.system.columns])
        else:
            columns = tuple([OutputColumn(column.name, column.type) for column in plan.columns])
        planned.announced = _one_of(columns)
    return planned.announced


@lru_cache(maxsize=512)  # as many as encoders are kept (adapter/encode/values.py)
def _one_of(columns: tuple[OutputColumn, ...]) -> tuple[OutputColumn, ...]:
    """The same object for equal ones, also those of plans that were made again: whoever remembers what it made of them
    (an encoder, a RowDescription) finds that without comparing them one by one."""
    return columns
