"""ALTER TABLE that rows have a say in (SET NOT NULL, ADD CONSTRAINT): two halves in the catalog, and rows looked at
between them.

Promises: a column that is NOT NULL has no NULL, and no row breaks a constraint that is valid, of all that were or will
be committed by any adapter (:mod:`sql.statements.ddl_not_null` says why).  A statement that is refused, given up or
fails leaves the table as it was; one whose process ends between the halves leaves columns marked and constraints
announced, which refuses rows that do not keep them, and is gone on with where it is said again.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from adapter.encode.shown_rows import texts_of
from adapter.execute.ddl_commit import Asked, DdlOutcome
from adapter.execute.images import Images
from adapter.execute.plans import Plans
from adapter.execute.reads import Reads
from adapter.execute.results import as_promised, collect
from adapter.state.session_state import SessionState
from catalog_log.image import Image
from catalog_log.objects import Table
from collection.columns import sql_type
from collection.rows import missing_values
from journal.aio import to_its_end
from journal.errors import Conflict, InvalidUsage, Rejected, TidemarkError
from oracle.state import OracleState
from sql.objects.names import Names
from sql.statements.ddl_columns import unchecked
from sql.statements.ddl_not_null import Marks, Unchecked, first_half, second_half, undone
from sql.statements.select import plan_select
from sql.syntax import statements as st
from sql.syntax.parse import parse

log = logging.getLogger(__name__)

TRIES_MAX = 5
"""Times that somebody else may alter the columns between the halves: each is a statement about the same ones."""

Submit = Callable[[st.AlterColumns, str | None], Awaitable[DdlOutcome]]
"""Has a statement done by the queue, under a request's id."""


class NotNull:
    """Lives on one event loop."""

    def __init__(self, images: Images, plans: Plans, reads: Reads) -> None:
        self._images = images
        self._plans = plans
        self._reads = reads

    async def execute(
        self,
        statement: st.AlterColumns,
        names: Names,
        asked: Asked,
        session: SessionState | None,
        submit: Submit,
        request_id: str | None,
    ) -> DdlOutcome:
        """``statement`` done; as ``submit`` does it where no rows have a say in it.

        Raises 23502, 23505 and 23514 where rows do not keep what is to hold, 40001 where others alter the columns all
        the time, what reading raises, and what ``submit`` does.  Of a ``request_id`` the second half is what was
        executed.
        """
        session = _reader(session) if session is not None else SessionState(0, asked.role or "tidemark", names.database)
        begun: _Begun | None = None
        try:
            for _ in range(TRIES_MAX):
                state, image = await self._images.barrier()
                of = await self._plans.of_size(False, len(asked.text), unchecked, statement, image, names)
                if of is None:
                    return await submit(statement, request_id)
                await self._look(session, of, state, image, names)  # what is refused at once changes nothing for others
                before, begun = begun, _Begun(of)
                try:
                    await submit(first_half(statement, of), None)
                except (InvalidUsage, Rejected):  # it was not begun, and what is called so is another's
                    begun = before
                    raise
                state, image = await self._images.barrier()
                begun = _Begun(of, done=True).found(image)
                if begun.marks is not None:
                    await self._look(session, of, state, image, names)
                    begun = replace(begun, may_have_ended=True)
                    try:
                        return await submit(second_half(statement, of, begun.marks), request_id)
                    except (InvalidUsage, Rejected) as error:
                        begun = replace(begun, may_have_ended=False)
                        if not isinstance(error, Conflict):
                            raise
                if of.coming:  # it is begun anew, with columns that are not there
                    await self._undo(statement, begun, submit)
                    begun = None
            what = f'columns of "{statement.name}" are altered faster than its rows can be looked at'
            raise Conflict(what, hint="try again")
        except BaseException:
            if begun is not None:
                await to_its_end(self._undo(statement, begun, submit))
            raise

    async def _look(self, session: SessionState, of: Unchecked, state: OracleState, image: Image, names: Names) -> None:
        """Raises what is wrong with the first row that is found, of all that are committed at ``state``."""
        for look in of.looks(image):
            # What a condition means hangs on nobody's session.
            declared = {number: sql_type(column.type) for number, column in enumerate(look.filled, 1)}
            plan = plan_select(parse(look.query).ast, image, replace(names, zone="UTC"), declared)
            params = [missing_values(column, 1)[0].as_py() for column in look.filled]
            answer = await self._reads.read(session, image, plan, params, state.last_ts)
            for batch in await collect(as_promised(answer, plan.columns), "ALTER TABLE"):
                for row in batch.slice(0, 1).to_pylist():
                    texts = texts_of([column.type for column in plan.columns], batch.columns, names.zone)
                    raise look.told(list(row.values()), texts)

    async def _undo(self, statement: st.AlterColumns, begun: _Begun, submit: Submit) -> None:
        """Take the first half back, as far as it is still there.  Where nobody knows whether it was done, a mark that
        is another statement's by now goes as well, which then begins anew."""
        try:
            _, image = await self._images.barrier()
            begun = begun if begun.done else begun.found(image)
            back = undone(statement, begun.of, begun.marks, image, begun.came, begun.may_have_ended)
            if back is not None:
                await submit(back, None)
        except TidemarkError as error:
            what = {"table": begun.of.table.id, "error": str(error)}
            log.warning("a column stays marked, or a constraint announced", extra=what)


def _reader(session: SessionState) -> SessionState:
    """Who reads for ``session``, on its cluster and as long as it may: in no block, all of whose reads would be where
    the first was."""
    return SessionState(
        session.session_id, session.user, session.database, session.variables, written_ts=session.written_ts,
        notify=session.notify,
    )  # fmt: skip


@dataclass(frozen=True)
class _Begun:
    """A first half that was ``done``, or may have been; and what was found of it since."""

    of: Unchecked
    done: bool = False
    marks: Marks | None = None
    came: tuple[int, ...] = ()
    may_have_ended: bool = False

    def found(self, image: Image) -> _Begun:
        table = image.item(self.of.table.id)
        if not isinstance(table, Table):
            return self
        marks = self.of.marks(table, image)
        # Where it may not have been done, columns without its marks are another's.
        came = self.of.came(table) if self.done or marks is not None else ()
        return replace(self, marks=marks, came=came)
