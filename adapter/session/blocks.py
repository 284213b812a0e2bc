"""What transaction blocks mean for a session: which statement may run now, when writes are committed, what is undone.

A thin shell over :class:`adapter.state.transaction.Transaction`, which holds the rules; this awaits the executor.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from adapter.session.named import Portals, Statements
from adapter.state.interfaces import Executor, Kind, Notice, Prepared, Result
from adapter.state.session_state import SessionState
from journal.errors import InvalidUsage
from sql.syntax import control as c
from sql.syntax.statement import WRITES, Statement

log = logging.getLogger(__name__)


class Blocks:
    """One session's transaction, with its effects.

    ``notice`` tells the client something.  ``check`` raises where the running request was interrupted: a commit under
    way outlives that, and then what stands behind it must not start.
    """

    def __init__(
        self,
        executor: Executor,
        state: SessionState,
        notice: Callable[[Notice], None],
        check: Callable[[], None],
    ) -> None:
        self._executor = executor
        self._state = state
        self._notice = notice
        self._check = check

    def check_alive(self, plan: object) -> None:
        """In a failed block only its end may come: raises 25P02 for anything else."""
        if self._state.transaction.failed and not (isinstance(plan, Statement) and plan.in_failed_block):
            raise InvalidUsage(
                "current transaction is aborted, commands ignored until end of transaction block", sqlstate="25P02"
            )

    async def run(self, prepared: Prepared, params: Sequence[object | None], *, defer: bool) -> Result:
        """Run a statement of the executor's.  ``defer``: an INSERT may wait for :meth:`commit_deferred`."""
        state, transaction = self._state, self._state.transaction
        if prepared.kind in WRITES and state.read_only:
            raise InvalidUsage(f"cannot execute {prepared.tag_hint} in a read-only transaction", sqlstate="25006")
        transaction.admit(prepared.kind)
        if transaction.in_block:
            if prepared.kind is Kind.DDL:
                transaction.ddl = (prepared, tuple(params))
                return Result(prepared.tag_hint, prepared.columns)
        elif prepared.kind in (Kind.SELECT, Kind.CHANGE, Kind.COPY_TO, Kind.DDL):
            if state.buffer:
                await self.commit_deferred()
            self._check()
        defer = defer and prepared.kind in (Kind.INSERT, Kind.COPY_FROM)
        state.defers_writes = transaction.in_block or defer or bool(state.buffer)
        try:
            return await self._executor.run(state, prepared, params)
        finally:
            state.defers_writes = False

    async def commit_deferred(self) -> None:
        """Outside of a block: commit what was deferred.  Raises what the commit raises."""
        if self._state.buffer and not self._state.transaction.in_block:
            await self._commit_buffer()

    async def _commit_buffer(self) -> None:
        for notice in await self._executor.commit(self._state):
            self._notice(notice)

    async def failed(self) -> None:
        """A statement failed: the block is aborted; outside of one, what was deferred is undone."""
        self._state.transaction.fail()
        if not self._state.transaction.in_block:
            await self._drop_buffer(0)

    async def abandon(self) -> None:
        """The session is over: nothing of its block will be committed."""
        self._state.transaction.end()
        await self._drop_buffer(0)

    async def _drop_buffer(self, keep: int) -> None:
        dropped = self._state.buffer.cut(keep)
        if dropped:
            try:
                await self._executor.rollback(self._state, dropped)
            except Exception:  # they are out of the buffer, so undone; only what they hold was not given back
                log.exception("releasing buffered writes failed", extra={"session": self._state.session_id})

    async def control(self, statement: c.Control, statements: Statements, portals: Portals) -> str:
        """Execute a control statement; gives its command tag."""
        state, transaction = self._state, self._state.transaction
        match statement:
            case c.Begin(isolation, read_only):
                if transaction.in_block:
                    self._notice(Notice("there is already a transaction in progress", "WARNING", "25001"))
                else:
                    transaction.begin(isolation, read_only)
                    state.variables.begin()
            case c.Commit(chain):
                return await self._end(portals, commit=True, chain=chain)
            case c.Rollback(chain):
                return await self._end(portals, commit=False, chain=chain)
            case c.Savepoint(name):
                self._require_block("SAVEPOINT")
                transaction.savepoint(name, len(state.buffer), portals.opened, state.variables.mark())
            case c.Release(name):
                self._require_block("RELEASE SAVEPOINT")
                transaction.release(name)
            case c.RollbackTo(name):
                self._require_block("ROLLBACK TO SAVEPOINT")
                found = transaction.rollback_to(name)
                state.variables.back_to(found.variables)
                await portals.close_all(lambda portal: portal.number > found.opened)
                await self._drop_buffer(found.buffered)
            case c.SetTransaction():
                self._set_transaction(statement)
            case c.Deallocate(name):
                statements.deallocate(name)
            case c.CloseCursors(name):
                await portals.close_cursor(name)
            case c.Discard(what):
                await self._discard(what, statements, portals)
            case c.Unlisten() | c.Empty():
                pass
            case _:
                raise AssertionError(statement)
        return statement.tag

    def _require_block(self, what: str) -> None:
        if not self._state.transaction.in_block:
            raise InvalidUsage(f"{what} can only be used in transaction blocks", sqlstate="25P01")

    async def _discard(self, what: str, statements: Statements, portals: Portals) -> None:
        if what == "all":
            if self._state.transaction.in_block:
                raise InvalidUsage("DISCARD ALL cannot run inside a transaction block", sqlstate="25001")
            await portals.close_cursor(None)
            statements.deallocate(None)
            self._state.reset_variable("all")
        if what in ("all", "sequences"):
            self._state.discard_sequences()

    def _set_transaction(self, statement: c.SetTransaction) -> None:
        state, transaction = self._state, self._state.transaction
        if not statement.session and not transaction.in_block:
            self._notice(Notice("SET TRANSACTION can only be used in transaction blocks", "WARNING", "25P01"))
            return
        if not statement.session and statement.isolation and transaction.statements:
            raise InvalidUsage("SET TRANSACTION ISOLATION LEVEL must be called before any query", sqlstate="25001")
        prefix = "default_" if statement.session else ""
        if statement.isolation:
            state.set_variable(f"{prefix}transaction_isolation", statement.isolation)
        if statement.read_only is not None:
            state.set_variable(f"{prefix}transaction_read_only", "on" if statement.read_only else "off")

    async def _end(self, portals: Portals, *, commit: bool, chain: bool) -> str:
        """COMMIT or ROLLBACK.  Whatever happens on the way, the block is over afterwards."""
        state, transaction = self._state, self._state.transaction
        if not transaction.in_block:
            if chain:
                raise InvalidUsage("AND CHAIN can only be used in transaction blocks", sqlstate="25P01")
            if commit:
                await self.commit_deferred()
            else:
                await self._drop_buffer(0)
            self._notice(Notice("there is no transaction in progress", "WARNING", "25P01"))
            return "COMMIT" if commit else "ROLLBACK"
        commit = commit and not transaction.failed
        modes, done = (transaction.isolation, transaction.read_only), False
        try:
            if commit:
                await self._commit(transaction.ddl)
            done = commit
        finally:
            transaction.end()
            await portals.end_transaction(committed=done)
            if done:
                state.variables.commit()
            else:
                state.variables.rollback()
                await self._drop_buffer(0)
        if chain:
            transaction.begin(*modes)
            state.variables.begin()
        return "COMMIT" if commit else "ROLLBACK"

    async def _commit(self, ddl: tuple[Prepared, tuple] | None) -> None:
        if self._state.buffer:
            await self._commit_buffer()
        if ddl is not None:
            result = await self._executor.run(self._state, *ddl)
            for notice in result.notices:
                self._notice(notice)
