"""COPY as a statement: what is refused of it at once, and what of it is left to be done with the client's socket."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from adapter.execute.commits import Commits
from adapter.execute.constants import Constants
from adapter.execute.draws import Draws
from adapter.execute.images import Images
from adapter.execute.load_keys import LoadKeys
from adapter.execute.loads import Load
from adapter.execute.plans import Plans
from adapter.execute.sequences import Sequences
from adapter.execute.session_names import names_of
from adapter.execute.uniques import Uniques
from adapter.state.copying import Copying, CopyProgress
from adapter.state.interfaces import Outgoing, Prepared, Result
from adapter.state.session_state import SessionState
from catalog_log.image import Image
from journal.errors import InvalidUsage
from sql.statements.copying import CopyPlan, check_forced, plan_copy, query_of
from sql.statements.plan_cache import Statement
from sql.syntax import statements as st
from sql.syntax.statement import PLANNED, WRITES
from trees.errors import unsupported

TRIES_MAX = 16
"""Times that a table is asked for its columns, as of UPDATE (:mod:`adapter.execute.changes`)."""

Prepare = Callable[[SessionState, str], Awaitable[Prepared]]
Run = Callable[[SessionState, Prepared], Awaitable[Result]]


class Copies:
    """COPY statements of sessions.  ``prepare`` and ``run`` are the executor's, for the queries in them.  Lives on one
    event loop."""

    def __init__(
        self,
        images: Images,
        plans: Plans,
        constants: Constants,
        sequences: Sequences,
        commits: Commits,
        uniques: Uniques,
        prepare: Prepare,
        run: Run,
    ) -> None:
        self._uniques = uniques
        self._images, self._plans, self._constants = images, plans, constants
        self._sequences, self._commits = sequences, commits
        self._prepare, self._run = prepare, run
        self.copying = Copying()

    async def into(
        self, session: SessionState, prepared: Prepared, statement: Statement, params: Sequence[object | None]
    ) -> Result:
        """COPY FROM: what is planned takes the client's rows."""
        parsed = statement.parsed
        assert isinstance(parsed, st.CopyFrom)
        _check_place(parsed)
        names = names_of(session)

        async def planned(image: Image) -> tuple[CopyPlan, Image]:
            chars = len(statement.text)
            return await self._plans.of_size(False, chars, plan_copy, parsed, image, names), image

        plan, image = await self._images.certain(session, planned)
        draws, keys = Draws(self._sequences, session, self._constants.value), None
        if plan.uniques:
            keys = LoadKeys(session, image, plan.uniques, self._uniques, self._images)
        rest = draws, self._constants, self._commits, keys, self.copying
        return Result("COPY", copy=Load(session, plan, parsed.options, names.zone, *rest))

    async def out(
        self, session: SessionState, prepared: Prepared, statement: Statement, params: Sequence[object | None]
    ) -> Result:
        """COPY TO: a query is run, whose rows are written as the options say."""
        parsed = statement.parsed
        assert isinstance(parsed, st.CopyTo)
        _check_place(parsed)
        names = names_of(session)

        async def asked(image: Image) -> tuple[str, str | None]:
            return (parsed.query, None) if parsed.table is None else query_of(parsed, image, names)

        text, relation_id = await self._images.certain(session, asked)
        for done in range(TRIES_MAX):
            try:
                result = await self._asked(session, text)
                break
            except InvalidUsage as error:
                if error.position is not None:
                    error.position = error.position + parsed.at if parsed.table is None else None
                before, (text, relation_id) = text, await self._images.certain(session, asked)
                if text == before or done == TRIES_MAX - 1:  # else the table has other columns by now
                    raise
        check_forced(parsed.options, [column.name for column in result.columns or ()])
        progress = self.copying.begin(CopyProgress(session, "COPY TO", relation_id))
        return Result("COPY", copy=Outgoing(result, parsed.options, progress, self.copying))

    async def _asked(self, session: SessionState, text: str) -> Result:
        inner = await self._prepare(session, text)
        if inner.param_oids:
            raise InvalidUsage("there is no parameter $1", sqlstate="42P02")
        _check_query(session, inner)
        return await self._run(session, inner)


def _check_query(session: SessionState, inner: Prepared) -> None:
    """What is copied has rows; where it writes them, it may."""
    if inner.kind not in PLANNED:
        raise unsupported(f"COPY of {inner.tag_hint}")
    if inner.columns is None:
        raise InvalidUsage("COPY query must have a RETURNING clause", sqlstate="0A000", hint="run it by itself")
    if inner.kind in WRITES and session.read_only:
        raise InvalidUsage(f"cannot execute {inner.tag_hint} in a read-only transaction", sqlstate="25006")


def _check_place(parsed: st.Copy) -> None:
    """42501: nobody here may reach the adapter's files and programs."""
    if parsed.place is None:
        return
    hint = "COPY from stdin or to stdout; psql's \\copy reads and writes files where it runs"
    told = "must be superuser or a member of the {} role to COPY {}"
    if parsed.program:
        told = told.format("pg_execute_server_program", "to or from an external program")
    elif isinstance(parsed, st.CopyFrom):
        told = told.format("pg_read_server_files", "from a file")
    else:
        told = told.format("pg_write_server_files", "to a file")
    raise InvalidUsage(told, sqlstate="42501", hint=hint)
