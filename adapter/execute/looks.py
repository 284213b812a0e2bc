"""Statements that look at the catalog in force and change nothing: SHOW of objects, EXPLAIN, upkeep."""

from __future__ import annotations

from collections.abc import Sequence

from adapter.execute import show
from adapter.execute.explain import explain, files
from adapter.execute.images import Images
from adapter.execute.peeks import Peeks
from adapter.execute.plans import Plans
from adapter.execute.session_names import names_of
from adapter.state.interfaces import Prepared, Result
from adapter.state.session_state import SessionState
from catalog_log.image import Image
from catalog_log.objects import Item
from controllers.peeks.peek import Peek
from journal.errors import InvalidUsage, TidemarkError
from sql.objects.names import SystemRelation, cluster_named, find, relation
from sql.statements.plan_cache import Statement
from sql.syntax import statements as st
from trees.errors import no_column, wrong_kind


async def named(images: Images, session: SessionState, upkeep: st.Upkeep) -> tuple[Image, list[Item]]:
    """The catalog in force and what ``upkeep`` names in it, but for the system's.  Raises as Postgres does."""
    if upkeep.outside_blocks and session.transaction.in_block:
        raise InvalidUsage(f"{upkeep.tag} cannot run inside a transaction block", sqlstate="25001")
    _, image = await images.in_force(session)
    found: list[Item] = []
    for name, columns in upkeep.named:
        item = find(image, names_of(session), name) or relation(image, names_of(session), name)
        if isinstance(item, SystemRelation):
            continue
        if item.kind not in upkeep.kinds:
            raise wrong_kind(name.last, " or ".join(st.KIND_WORDS[each] for each in upkeep.kinds))
        known = [column.name for column in item.columns] if columns else []
        if unknown := [each for each in columns if each not in known]:
            raise no_column(unknown[0], known)
        found.append(item)
    return image, found


class Looks:
    """Each after a barrier.  EXPLAIN asks the session's cluster, too, what it would read."""

    def __init__(self, images: Images, plans: Plans, peeks: Peeks) -> None:
        self._images = images
        self._plans = plans
        self._peeks = peeks

    async def show(
        self, session: SessionState, prepared: Prepared, statement: Statement, params: Sequence[object | None]
    ) -> Result:
        _, image = await self._images.in_force(session)
        return show.shown(prepared, show.ROWS[type(statement.parsed)](statement.parsed, image, names_of(session)))

    async def upkeep(
        self, session: SessionState, prepared: Prepared, statement: Statement, params: Sequence[object | None]
    ) -> Result:
        """There is nothing to do: what is named is looked up."""
        await named(self._images, session, statement.parsed)
        return Result(statement.parsed.tag)

    async def explain(
        self, session: SessionState, prepared: Prepared, statement: Statement, params: Sequence[object | None]
    ) -> Result:
        state, image = await self._images.in_force(session)
        told = statement.parsed, image, names_of(session), state
        lines, peek = await self._plans.planner.run(len(prepared.sql), explain, *told)
        if peek is not None:
            lines += await self._files(session, image, peek)
        return show.shown(prepared, [(line,) for line in lines])

    async def _files(self, session: SessionState, image: Image, peek: Peek) -> list[str]:
        try:
            found = await self._peeks.considered(peek, cluster_named(image, session.variable("cluster")).id)
        except TidemarkError as error:
            return [f"Files: {error.message}"]
        return files(found, image)
