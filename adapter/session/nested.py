"""Statements that hold or name another one: SQL's own prepared statements and its cursors.

Both share their names with the protocol: ``PREPARE`` makes what a Parse message makes, ``DECLARE`` a portal, so either
side may use what the other one named.  A cursor goes forward only, one batch of its rows in memory at a time; all of it
is read at the one timestamp at which it was declared.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

import pyarrow as pa

from adapter.session.blocks import Blocks
from adapter.session.named import Portals, Statements
from adapter.session.portals import Portal
from adapter.state.interfaces import Executor, Kind, Prepared, Result
from adapter.state.session_state import SessionState
from journal.errors import InvalidUsage, TidemarkError
from sql.syntax.control import Control
from sql.syntax.nested_words import Declare, ExecuteNamed, Fetch, Nested, PrepareAs, forward_only
from sql.syntax.statement import PLANNED
from values.types import OID, parse_type

_CAST = {oid: name for name, oid in OID.items()}


class Executing(NamedTuple):
    """EXECUTE: ``values`` is a query whose one row are the arguments; ``None`` where there are none."""

    inner: Prepared
    values: Prepared | None


class Declaring(NamedTuple):
    statement: Declare
    inner: Prepared


Plan = PrepareAs | Executing | Declaring | Fetch


class NestedStatements:
    """One session's."""

    def __init__(
        self, executor: Executor, state: SessionState, blocks: Blocks, statements: Statements, portals: Portals
    ) -> None:
        self._executor = executor
        self._state = state
        self._blocks = blocks
        self._statements = statements
        self._portals = portals

    async def prepare(self, sql: str, statement: Nested, oids: Sequence[int]) -> Prepared:
        """What :meth:`adapter.state.interfaces.Executor.prepare` is for other statements.

        Raises 26000, 34000 and 42601 for a name or a number of arguments that does not fit.
        """
        match statement:
            case PrepareAs():
                return Prepared(sql, Kind.SESSION, (), None, "PREPARE", statement)
            case ExecuteNamed():
                return await self._prepare_execute(sql, statement, oids)
            case Declare():
                with _placed(statement.at):
                    inner = await self._executor.prepare(self._state, statement.sql, oids)
                if inner.kind is not Kind.SELECT:
                    raise InvalidUsage("a cursor is for a query", sqlstate="42601", position=statement.at + 1)
                tag = "DECLARE CURSOR"
                return Prepared(sql, Kind.SESSION, inner.param_oids, None, tag, Declaring(statement, inner))
            case Fetch():
                cursor = self._portals.cursor(statement.name)
                columns = None if statement.move else cursor.prepared.columns
                return Prepared(sql, Kind.SESSION, (), columns, "MOVE" if statement.move else "FETCH", statement)
        raise AssertionError(statement)

    def formats(self, prepared: Prepared) -> Sequence[int]:
        """The format codes of ``prepared`` as a simple query: a cursor that was declared BINARY gives its rows so, and
        everything else is text.  (In the extended protocol Bind says it.)"""
        if isinstance(prepared.plan, Fetch) and not prepared.plan.move:
            cursor = self._portals.cursor(prepared.plan.name)
            return () if cursor.bind is not None else cursor.asked
        return ()

    async def again(self, prepared: Prepared) -> Prepared:
        """What :meth:`adapter.state.interfaces.Executor.again` is for other statements."""
        if not isinstance(prepared.plan, Declaring):
            return prepared
        statement, inner = prepared.plan
        with _placed(statement.at):
            inner = await self._executor.again(self._state, inner)
        return replace(prepared, param_oids=inner.param_oids, plan=Declaring(statement, inner))

    async def run(self, plan: Plan, params: Sequence[object | None], *, defer: bool) -> Result:
        """What :meth:`adapter.session.blocks.Blocks.run` is for other statements."""
        match plan:
            case PrepareAs(name, types, sql, at):
                self._statements.check_free(name)
                declared = [OID[parse_type(each).name] for each in types]
                with _placed(at):
                    inner = await self._executor.prepare(self._state, sql, declared)
                    inner = replace(await self._executor.again(self._state, inner), told=True)
                if inner.kind not in PLANNED:
                    raise InvalidUsage(f"{inner.tag_hint} cannot be prepared", sqlstate="42601", position=at + 1)
                self._statements.put(name, inner)
                return Result("PREPARE")
            case Executing(inner, values):
                arguments = () if values is None else await self._values(values, params)
                return await self._blocks.run(inner, arguments, defer=defer)
            case Declaring(statement, inner):
                return await self._declare(statement, inner, params)
            case Fetch():
                return await self._fetch(plan)
        raise AssertionError(plan)

    async def _prepare_execute(self, sql: str, statement: ExecuteNamed, oids: Sequence[int]) -> Prepared:
        inner = self._statements.get(statement.name)
        if isinstance(inner.plan, (Control, Plan)):
            raise InvalidUsage(
                f'prepared statement "{statement.name}" cannot be executed by name', sqlstate="0A000",
                detail="It is about the session, or names another statement itself.",
            )  # fmt: skip
        wanted, given = len(inner.param_oids), len(statement.arguments)
        if wanted != given:
            raise InvalidUsage(
                f'wrong number of parameters for prepared statement "{statement.name}"', sqlstate="42601",
                detail=f"Expected {wanted} parameters but got {given}.",
            )  # fmt: skip
        values, param_oids = None, ()
        if given:
            items = (f"({text})" + (f"::{_CAST[oid]}" if oid in _CAST else "")
                     for text, oid in zip(statement.arguments, inner.param_oids, strict=True))  # fmt: skip
            try:
                values = await self._executor.prepare(self._state, f"SELECT {', '.join(items)}", oids)
            except TidemarkError as error:
                error.position = None  # it counts in a text that the client never wrote
                raise
            param_oids = values.param_oids
        executing = Executing(inner, values)
        return Prepared(sql, inner.kind, param_oids, inner.columns, inner.tag_hint, executing, told=inner.told)

    async def _values(self, values: Prepared, params: Sequence[object | None]) -> tuple[object | None, ...]:
        result = await self._executor.run(self._state, values, params)
        batches = result.batches
        if hasattr(batches, "__aiter__"):
            found = [batch async for batch in batches]
        else:
            found = list(batches)
        rows = [row for batch in found for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)]
        assert len(rows) == 1, len(rows)
        return rows[0]

    async def _declare(self, statement: Declare, inner: Prepared, params: Sequence[object | None]) -> Result:
        if not statement.hold and not self._state.transaction.in_block:
            raise InvalidUsage(
                "DECLARE CURSOR can only be used in transaction blocks", sqlstate="25P01",
                hint="BEGIN first, or declare it WITH HOLD",
            )  # fmt: skip
        self._portals.check_cursor_free(statement.name)
        zone = self._state.settings.zone
        cursor = Portal(statement.name, inner, tuple(params), (int(statement.binary),), zone)
        result = await self._blocks.run(inner, params, defer=False)
        try:
            cursor.start(result, self._state.settings)
        except TidemarkError:
            await cursor.close()
            raise
        cursor.holds = statement.hold
        cursor.kept = statement.hold and not self._state.transaction.in_block
        await self._portals.put(cursor)
        return Result("DECLARE CURSOR", notices=result.notices)

    async def _fetch(self, fetch: Fetch) -> Result:
        cursor = self._portals.cursor(fetch.name)
        over, count = _steps(fetch, cursor.position)
        stepped = [await cursor.skip(over)] if over else []
        if fetch.move:
            if count is None or count:
                stepped.append(await cursor.skip(count))
            moved = stepped[-1] if stepped else 0
            return Result(f"MOVE {moved}")
        rows = cursor.batches(count) if count is None or count else _nothing()
        return Result("FETCH", cursor.prepared.columns, rows)


async def _nothing() -> AsyncIterator[pa.RecordBatch]:
    for batch in ():
        yield batch


def _steps(fetch: Fetch, position: int) -> tuple[int, int | None]:
    """How many rows to step over, and how many then to take (``None``: all).  ``position``: rows taken so far."""
    if fetch.how == "forward":
        if fetch.count == 0:
            raise forward_only()
        return 0, fetch.count
    ahead = fetch.count if fetch.how == "relative" else fetch.count - position
    if ahead < 0 or (ahead == 0 and not fetch.move):
        raise forward_only()
    return (ahead - 1, 1) if ahead else (0, 0)


@contextmanager
def _placed(at: int) -> Iterator[None]:
    """Errors inside tell their position in the whole statement, in which the inner one begins at ``at``."""
    try:
        yield
    except TidemarkError as error:
        if error.position is not None:
            error.position += at
        raise
