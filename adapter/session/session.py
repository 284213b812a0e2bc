"""One client's session: drives the protocol machine and the executor.

Promises: answers come in the order of the requests; an error never ends the session unless the protocol itself is
broken; whatever ends the session, its running statement is cancelled and its buffered writes are let go.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace

from adapter.encode.parameters import decode_params
from adapter.session.blocks import Blocks
from adapter.session.connection import Connection, Ended, Outbox
from adapter.session.copying import copied_in, copied_out
from adapter.session.interruption import Interrupt, Interrupted, Interruption
from adapter.session.named import Portals, Statements
from adapter.session.nested import NestedStatements
from adapter.session.nested import Plan as NestedPlan
from adapter.session.portals import Portal
from adapter.session.replies import error_message, row_description
from adapter.state.interfaces import Executor, Incoming, Kind, Notice, Outdated, Outgoing, Prepared, Result
from adapter.state.session_state import SessionState
from adapter.wire import messages as m
from adapter.wire.machine import Broken, Event, Input, State
from journal.errors import InvalidUsage, Rejected, TidemarkError, Unavailable, logged
from sql.syntax.control import Empty, is_empty
from sql.syntax.control import parse as parse_control
from sql.syntax.nested_words import Nested
from sql.syntax.statement import PLANNED

log = logging.getLogger(__name__)

EVENTS_IN_A_ROW = 64
"""Messages of one client that are handled before the others have their turn: a pipeline never makes us wait either."""


TRIES_MAX = 5
"""Times that a statement is run whose relations are replaced again and again between being prepared and being run."""


class Session:
    """Everything after authentication.  ``serve`` is the session's task."""

    def __init__(self, connection: Connection, executor: Executor, state: SessionState) -> None:
        self.state = state
        self._connection = connection
        self._machine = connection.machine
        self._executor = executor
        self._interruption = Interruption()
        self._blocks = Blocks(executor, state, self._notice, self._interruption.check)
        self._statements = Statements()
        self._portals = Portals()
        self._nested = NestedStatements(executor, state, self._blocks, self._statements, self._portals)
        self._out = Outbox(connection)
        state.notify = self._notice_at_once
        self._undescribed: Portal | None = None
        """A portal whose description was asked for and depends on what comes next."""
        self._stopping = False
        # What need not wait is done when the handler returns, with ``None``.
        self._handlers: dict[type, Callable[..., Awaitable[None] | None]] = {
            m.Query: self._query, m.Parse: self._parse, m.Bind: self._bind, m.Describe: self._describe,
            m.Execute: self._execute, m.Close: self._close, m.Flush: self._flush_asked, m.Sync: self._sync,
            m.FunctionCall: self._function_call,
        }  # fmt: skip

    # --- the loop ----------------------------------------------------------------------------------------------------

    async def serve(self) -> None:
        """Serve until the client leaves.  Returns with everything released; raises nothing that a client did."""
        try:
            handled = 0
            while True:  # mostly the next message is here, and needs no coroutine
                event = None if self._connection.closed else self._machine.next_event()
                if event is None:
                    event = await self._next()
                    if event is None:
                        break
                await self._handle(event)
                handled += 1
                if handled % EVENTS_IN_A_ROW == 0:
                    await asyncio.sleep(0)
        except Ended:
            pass
        finally:
            await self._release()

    async def _next(self) -> Event | None:
        """The client's next message; ``None`` at the end.  Sends what is due before it waits.

        A client that is gone is not served any more, whatever it sent before it went: nobody would be left to cancel.
        """
        while not self._connection.closed:
            event = self._machine.next_event()
            if event is not None:
                return event
            if self._stopping:
                self._fatal(Unavailable(Interrupt.SHUTDOWN.value, sqlstate="57P01"))
            self._out.flush()
            if self._machine.state is State.CLOSED:
                return None
            await self._wait()
        return None

    async def _wait(self) -> None:
        if self._machine.state is not State.READY:
            await self._connection.received()
            return
        settings = self.state.settings
        milliseconds = settings.idle_in_block_ms if self.state.transaction.in_block else settings.idle_ms
        if not await self._connection.received(milliseconds / 1000 or None):
            code = "25P03" if self.state.transaction.in_block else "57P05"
            self._fatal(Rejected("terminating connection due to idle timeout", sqlstate=code))

    async def _some_bytes(self) -> None:
        """Wait until the client has sent anything more, or is gone."""
        while not self._machine.unread_bytes and not self._connection.closed:
            self._out.flush()
            await self._connection.received()

    async def _handle(self, event: Event) -> None:
        if type(event) is Broken:
            if event.fatal:
                self._fatal(InvalidUsage(event.reason, sqlstate=event.sqlstate))
            await self._failed(InvalidUsage(event.reason, sqlstate=event.sqlstate))
        elif type(event) is m.Terminate:
            raise Ended
        else:
            try:
                timeout_s = self.state.settings.statement_timeout_ms / 1000
                if self._undescribed is None:
                    waiting = self._handlers[type(event)](event)
                else:
                    waiting = self._describe_first(event)
                if waiting is not None:
                    with self._interruption.within(timeout_s):
                        await waiting
            except Ended:
                raise
            except Interrupted as e:
                await self._failed(self._interrupted(e.reason))
            except Exception as e:
                await self._failed(e)
        if self._machine.state in (State.SIMPLE, State.SYNCING):
            await self._ready()

    def _interrupted(self, reason: Interrupt) -> TidemarkError:
        """What the client is told.  Ends the session where nobody is left to tell, or it is to end."""
        if reason is Interrupt.GONE:
            raise Ended from None
        if reason is Interrupt.SHUTDOWN:
            self._fatal(Unavailable(reason.value, sqlstate="57P01"))
        return Rejected(reason.value, sqlstate="57014")

    def interrupt(self, reason: Interrupt) -> None:
        """Cancel the running statement, if there is one.  Called on the event loop, from outside of the task."""
        self._interruption.interrupt(reason)

    @property
    def busy(self) -> bool:
        return self._interruption.running

    def stop(self) -> None:
        """End the session when its present statement is done (the owner wakes it up if it is idle)."""
        self._stopping = True

    async def _release(self) -> None:
        """Give up everything that is held outside of this object."""
        await self._portals.close_all()
        await self._blocks.abandon()
        self._statements.deallocate(None)

    # --- answers -----------------------------------------------------------------------------------------------------

    def _notice(self, notice: Notice) -> None:
        self._out.notice(notice, self.state.settings.messages_from)

    def _notice_at_once(self, notice: Notice) -> None:
        """For one that makes sense only while the statement still runs."""
        self._notice(notice)
        self._out.flush()

    def _fatal(self, error: TidemarkError) -> None:
        self._machine.happened(Input.FATAL)
        self._out.send(error_message(error, "FATAL"))
        self._out.flush()
        raise Ended

    async def _failed(self, error: Exception, statement_at: int = 0) -> None:
        """Report an error and bring the session into the state that follows one."""
        if not isinstance(error, TidemarkError):
            extra = {"session": self.state.session_id, "reference": logged(error)}
            log.error("statement failed", exc_info=error, extra=extra)
        self._out.send(error_message(error, statement_at=statement_at or getattr(error, "statement_at", 0)))
        if self._machine.state is State.CLOSED:  # a Terminate that was malformed
            self._out.flush()
            raise Ended
        self._machine.happened(Input.FAILED)
        self._undescribed = None
        await self._blocks.failed()
        if not self.state.transaction.in_block:
            await self._portals.end_transaction(committed=False)

    async def _ready(self) -> None:
        """The end of a query cycle: what was deferred is committed by now."""
        in_block = self.state.transaction.in_block
        if not in_block and not self._portals.forget_finished():
            await self._portals.end_transaction(committed=False)
        changed = self.state.variables.changed
        if changed:
            for name, value in changed.items():
                self._out.send(m.parameter_status(name, value))
            changed.clear()
        self._out.send(m.ready_for_query(self.state.transaction.status.value) if in_block else m.READY_AND_IDLE)
        self._machine.happened(Input.DONE)
        if self._machine.unread_bytes == 0 or self._out.large:
            self._out.flush()
            if self._connection.behind:
                await self._connection.drain()

    # --- simple query ------------------------------------------------------------------------------------------------

    async def _query(self, query: m.Query) -> None:
        await self._portals.close("")
        sqls = await self._split(query.sql)
        if not sqls:
            self._out.send(m.EMPTY_QUERY_RESPONSE)
            return
        at = 0
        for index, sql in enumerate(sqls):
            at = max(0, query.sql.find(sql, at))
            self._interruption.check()
            try:
                await self._one(sql, alone=len(sqls) == 1, last=index == len(sqls) - 1)
            except TidemarkError as e:
                e.statement_at = at  # positions are told in the whole string
                raise
            at += len(sql)

    async def _one(self, sql: str, *, alone: bool, last: bool) -> None:
        """One statement of a simple query.

        INSERTs that stand side by side in one string are committed together, as Postgres does with all of a string.
        """
        prepared = await self._prepare(sql, ())
        if prepared.param_oids:
            raise InvalidUsage("there is no parameter $1", sqlstate="42P02")
        portal = Portal("", prepared, (), self._nested.formats(prepared), self.state.settings.zone)
        try:
            tag = await self._start(portal, defer=not alone)
            if portal.prepared.columns is not None:
                self._send_row_description(portal)
            tag = await self._stream(portal, 0, tag)
            if last:
                await self._blocks.commit_deferred()
        finally:
            await portal.close()
        self._complete(portal, tag)

    async def _split(self, sql: str) -> list[str]:
        if ";" in sql:
            return [s for s in await self._executor.split(sql) if not is_empty(s)]
        return [] if is_empty(sql) else [sql]

    # --- extended query ----------------------------------------------------------------------------------------------

    async def _parse(self, parse: m.Parse) -> None:
        self._statements.check_free(parse.name)
        sqls = await self._split(parse.sql)
        if len(sqls) > 1:
            raise InvalidUsage("cannot insert multiple commands into a prepared statement", sqlstate="42601")
        sql = sqls[0] if sqls else ""
        try:
            prepared = await self._prepare(sql, parse.param_oids)
        except TidemarkError as e:
            e.statement_at = max(0, parse.sql.find(sql))
            raise
        self._statements.put(parse.name, prepared)
        self._out.send(m.PARSE_COMPLETE)

    async def _prepare(self, sql: str, oids: tuple[int, ...]) -> Prepared:
        try:
            control = parse_control(sql)
        except InvalidUsage as error:
            if error.sqlstate != "42601":  # it is understood, and nothing that a failed block takes
                self._blocks.check_alive(None)
            raise
        self._blocks.check_alive(control)
        if control is None:
            try:
                return await self._executor.prepare(self.state, sql, oids)
            except InvalidUsage as error:
                if error.sqlstate != "42601":  # what it names may be what the block is to make
                    self.state.transaction.check_catalog_stays()
                raise
        if isinstance(control, Nested):
            return await self._nested.prepare(sql, control, oids)
        return Prepared(sql, Kind.SESSION, (), None, control.tag, control)

    def _bind(self, bind: m.Bind) -> Awaitable[None] | None:
        prepared = self._statements.get(bind.statement)
        self._portals.check_free(bind.portal)
        try:
            portal = self._bound(bind, prepared)
        except InvalidUsage:
            if prepared.told or not _plans(prepared):
                raise
            return self._bind_again(bind, prepared)
        self._blocks.check_alive(prepared.plan)
        if not self._portals.put_at_once(portal):
            return self._put(portal)
        self._out.send(m.BIND_COMPLETE)
        return None

    def _bound(self, bind: m.Bind, prepared: Prepared) -> Portal:
        zone = self.state.settings.zone
        portal = Portal(bind.portal, prepared, _params(bind, prepared, zone), bind.result_formats, zone)
        portal.bind = bind
        return portal

    async def _bind_again(self, bind: m.Bind, prepared: Prepared) -> None:
        """Its parameters are none of those that it had: perhaps they are of those that it has by now."""
        portal = self._bound(bind, await self._prepared_again(bind.statement, prepared))
        self._blocks.check_alive(prepared.plan)
        await self._put(portal)

    async def _put(self, portal: Portal) -> None:
        await self._portals.put(portal)
        self._out.send(m.BIND_COMPLETE)

    def _describe(self, describe: m.Describe) -> Awaitable[None] | None:
        """What is told of a statement is what it is by the catalog in force.

        A portal's description waits for the next message: where that is Execute (nearly always), it is of what was run
        then, which a client that has not been told anything cannot tell from what it was before.
        """
        if describe.kind == "S":
            return self._describe_statement(describe.name)
        portal = self._portals.get(describe.name)
        if portal.result is None and portal.prepared.kind is Kind.SELECT and not portal.prepared.told:
            self._undescribed = portal
        else:
            self._send_row_description(portal)
        return None

    async def _describe_statement(self, name: str) -> None:
        prepared = self._statements.get(name)
        if not prepared.told:
            prepared = self._told(name, await self._prepared_again(name, prepared))
        self._out.send(m.parameter_description(prepared.param_oids))
        self._send_columns(prepared, (0,) * len(prepared.columns or ()))

    def _describe_first(self, event: Event) -> Awaitable[None]:
        """Describe the portal that waits for it, and handle ``event``."""
        portal, self._undescribed = self._undescribed, None
        if type(event) is m.Execute and event.portal == portal.name:
            return self._execute(event, describe=True)
        return self._describe_anew(portal, event)

    async def _describe_anew(self, portal: Portal, event: Event) -> None:
        await self._anew(portal)
        self._send_row_description(portal)
        waiting = self._handlers[type(event)](event)
        if waiting is not None:
            await waiting

    def _send_row_description(self, portal: Portal) -> None:
        if portal.bind is not None and portal.prepared.columns is not None and not portal.prepared.told:
            portal.prepared = self._told(portal.bind.statement, portal.prepared)
        self._send_columns(portal.prepared, portal.formats)

    def _send_columns(self, prepared: Prepared, formats: tuple[int, ...]) -> None:
        if prepared.columns is None:
            self._out.send(m.NO_DATA)
        else:
            self._out.send(row_description(tuple(prepared.columns), formats))

    # --- what was prepared, and what it is by now

    def _told(self, name: str, prepared: Prepared) -> Prepared:
        """``prepared``, which its client is being told of."""
        told = replace(prepared, told=True)
        self._statements.now(name, prepared, told)
        return told

    async def _prepared_again(self, name: str | None, prepared: Prepared) -> Prepared:
        """``prepared`` by the catalog in force; so is what ``name`` stands for, where that was ``prepared``."""
        if isinstance(prepared.plan, NestedPlan):
            fresh = await self._nested.again(prepared)
        elif _plans(prepared):
            fresh = await self._executor.again(self.state, prepared)
        else:
            fresh = prepared
        if name is not None:
            self._statements.now(name, prepared, fresh)
        return fresh

    async def _anew(self, portal: Portal) -> None:
        """What the portal would run is prepared again, and its parameters read as what they are now."""
        bind = portal.bind
        fresh = await self._prepared_again(None if bind is None else bind.statement, portal.prepared)
        portal.hold(fresh, () if bind is None else _params(bind, fresh, portal.zone))

    async def _execute(self, execute: m.Execute, describe: bool = False) -> None:
        """Run a portal, or go on with it; ``describe``: tell of its columns once it has run.

        An INSERT outside of a block is committed at Sync, as in Postgres, so a pipeline of them is one commit.  Its
        CommandComplete waits for the next message: where that is Sync (nearly always), the commit comes first, and a
        client hears of a failed commit instead of a completed command.
        """
        portal = self._portals.get(execute.portal)
        tag = ""
        self._blocks.check_alive(portal.control)
        if portal.result is None:
            tag = await self._start(portal, defer=not self._machine.next_is(Input.SYNC))
            if describe:
                self._send_row_description(portal)
        elif portal.finished:
            if portal.prepared.columns is None:
                raise InvalidUsage(f'portal "{portal.name}" cannot be run', sqlstate="55000")
            self._out.send(m.command_complete(self._tag(portal, 0)))
            return
        tag = await self._stream(portal, execute.rows_max, tag)
        if portal.suspended:
            self._out.send(m.PORTAL_SUSPENDED)
            return
        if self.state.buffer and not self.state.transaction.in_block:
            await self._some_bytes()
            if self._machine.next_is(Input.SYNC):
                await self._blocks.commit_deferred()
        portal.finished = True
        self._complete(portal, tag)

    async def _close(self, close: m.Close) -> None:
        if close.kind == "S":
            self._statements.discard(close.name)
        else:
            await self._portals.close(close.name)
        self._out.send(m.CLOSE_COMPLETE)

    async def _flush_asked(self, _flush: m.Flush) -> None:
        self._out.flush()
        await self._connection.drain()

    def _sync(self, _sync: m.Sync) -> Awaitable[None] | None:
        return self._blocks.commit_deferred() if self.state.buffer else None

    async def _function_call(self, _call: m.FunctionCall) -> None:
        raise InvalidUsage("function calls by message are not supported", sqlstate="0A000", hint="use SELECT")

    # --- running -----------------------------------------------------------------------------------------------------

    async def _start(self, portal: Portal, *, defer: bool) -> str:
        """Run the portal's statement; its rows are still to be read.  Gives the command tag."""
        control = portal.control
        if control is not None:
            tag = await self._blocks.control(control, self._statements, self._portals)
            portal.start(Result(tag), self.state.settings)
            return tag
        for tries_left in reversed(range(TRIES_MAX)):
            prepared = portal.prepared
            try:
                if isinstance(prepared.plan, NestedPlan):
                    result = await self._nested.run(prepared.plan, portal.params, defer=defer)
                else:
                    result = await self._blocks.run(prepared, portal.params, defer=defer)
                break
            except Outdated:  # the catalog says otherwise by now than when it was prepared
                if prepared.told or not tries_left:
                    raise
                await self._anew(portal)
        try:
            portal.start(result, self.state.settings)
        except TidemarkError:
            await portal.close()
            raise
        for notice in result.notices:
            self._notice(notice)
        return result.tag

    async def _stream(self, portal: Portal, rows_max: int, tag: str) -> str:
        """Send rows, as fast as the client takes them; gives the command tag."""
        if portal.result is not None and portal.result.copy is not None:
            return await self._copy(portal, portal.result.copy)
        if not portal.suspended:
            return tag
        told, rows = len(portal.result.notices), 0
        at_once = portal.few_rows() if not rows_max else None
        if at_once is not None:
            piece, rows = at_once
            self._out.send(piece)
            if self._out.large:
                await self._out.flush_if_large()
            return self._tag(portal, rows)
        async with aclosing(portal.rows(rows_max)) as pieces:
            async for piece, count in pieces:
                self._out.send(piece)
                rows += count
                await self._out.flush_if_large()
        for notice in portal.result.notices[told:]:
            self._notice(notice)
        return self._tag(portal, rows)

    async def _copy(self, portal: Portal, copying: Incoming | Outgoing) -> str:
        if isinstance(copying, Outgoing):
            return await copied_out(self._out, portal.prepared, copying, self.state.settings)
        return await copied_in(self._connection, self._out, copying, self._fatal)

    @staticmethod
    def _tag(portal: Portal, rows: int) -> str:
        tag = portal.result.tag
        return f"{tag} {rows}" if tag in ("SELECT", "FETCH") else tag

    def _complete(self, portal: Portal, tag: str) -> None:
        self._out.send(m.EMPTY_QUERY_RESPONSE if type(portal.control) is Empty else m.command_complete(tag))


def _plans(prepared: Prepared) -> bool:
    """Whether the catalog decides what it is: a query or what writes rows."""
    return prepared.kind in PLANNED


def _params(bind: m.Bind, prepared: Prepared, zone: str) -> tuple[object | None, ...]:
    return decode_params(prepared.param_oids, bind.param_formats, bind.params, zone)
