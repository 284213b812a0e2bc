"""What the wire side of the adapter asks of the side that knows SQL, and the values that pass between them.

The session (:mod:`adapter.session.session`) speaks Postgres's protocol and knows transactions, prepared statements and
portals; the executor knows SQL, the catalog, the oracle and the controllers.  Neither imports the other.

What the session promises to an executor:

* calls for one :class:`~adapter.state.session_state.SessionState` never overlap; calls for different sessions do;
* transaction statements (BEGIN, COMMIT, ROLLBACK, SAVEPOINT, SET TRANSACTION…), PREPARE, EXECUTE, DEALLOCATE, DECLARE,
  FETCH, CLOSE, DISCARD and LISTEN never reach it: the session answers them;
* it is not called in a failed block, for what writes in a READ ONLY block, or for DDL beside other statements of a
  block;
* a cancel request, a statement timeout or a vanished client arrive as ``asyncio.CancelledError`` inside the call.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn, Protocol

import pyarrow as pa

from adapter.state.copying import Copying, CopyProgress
from journal.errors import InvalidUsage
from sql.syntax.copying import CopyOptions
from sql.syntax.statement import Kind
from values.types import OID, SqlType

if TYPE_CHECKING:
    from adapter.state.session_state import SessionState


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """A column of a result: what RowDescription says.

    Values arrive in the Arrow type ``values.types.arrow_type(type)`` (or one that casts to it without loss).
    ``oid`` announces another Postgres type of the same text form, for catalog relations: 18 "char", 19 name, 26 oid,
    24 regproc, 2205 regclass, 1043 varchar.  A column of oid 26, 24 or 2205 sent in binary must hold integers.
    """

    name: str
    type: SqlType
    oid: int | None = None

    @property
    def type_oid(self) -> int:
        return self.oid if self.oid is not None else OID[self.type.name]


@dataclass(frozen=True, slots=True)
class Notice:
    """Something to tell the client that is not an error.  ``severity``: DEBUG, LOG, INFO, NOTICE or WARNING."""

    message: str
    severity: str = "NOTICE"
    sqlstate: str = "00000"
    detail: str | None = None
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class Prepared:
    """One statement, parsed and typed but not run.  It may be run many times, and later than catalog changes.

    ``param_oids`` has one oid per ``$n``, none of them 0: what the client said or what was inferred (25 where nothing
    can be).  ``columns`` is ``None`` for a statement that returns no rows.  ``tag_hint`` is the command tag that a
    successful run will have, without counts (``SELECT``, ``INSERT``, ``CREATE TABLE``).  ``plan`` is its own.
    ``zone`` is the session's when it was prepared, and ``literals`` whether a literal in it was read by that.
    ``told`` is whether its client has been told its columns or its parameters: from then on they stay what they are.
    """

    sql: str
    kind: Kind
    param_oids: tuple[int, ...]
    columns: tuple[OutputColumn, ...] | None
    tag_hint: str
    plan: object = None
    zone: str = "UTC"
    literals: bool = False
    told: bool = False


class Outdated(InvalidUsage):
    """0A000: by the catalog in force the statement has other columns or parameters than when it was prepared.

    Nothing was done.  Where its client was not told of them yet it is prepared again, and nobody hears of this.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message, sqlstate="0A000", hint="prepare it again: what it reads or writes was replaced")


class Part:
    """``count`` rows of a batch from ``at`` on, which other readers have other rows of.  Iterates over its one batch.

    What is made of the whole batch once (:meth:`adapter.encode.values.RowEncoder.part`) serves all of them.
    """

    __slots__ = ("at", "count", "whole")

    def __init__(self, whole: pa.RecordBatch, at: int, count: int) -> None:
        self.whole, self.at, self.count = whole, at, count

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        if self.count:
            yield self.whole.slice(self.at, self.count)


@dataclass(slots=True)
class Result:
    """What running gave.

    ``tag`` is the command tag.  For ``SELECT`` the session appends the number of rows it sent; every other tag is sent
    as it stands (``INSERT 0 3``, ``CREATE TABLE``, ``SHOW``, ``EXPLAIN``).  ``columns`` must equal what the prepared
    statement said (type by type); it is ``None`` for a statement that returns no rows.

    ``batches`` is read once, batch by batch, as fast as the client takes it: for large results give an asynchronous
    iterator, so that nothing piles up.  If it has ``aclose`` (asynchronous generators do), it is called when the
    session is done with it, read to its end or not.  ``notices`` are sent before the rows; those appended while the
    batches are read are sent before the command's completion.
    """

    tag: str
    columns: tuple[OutputColumn, ...] | None = None
    batches: Iterable[pa.RecordBatch] | AsyncIterable[pa.RecordBatch] = ()
    notices: Sequence[Notice] = ()
    copy: Incoming | Outgoing | None = None
    """Of COPY: what is still to be done, in place of ``columns`` and ``batches``; it gives the tag."""


class Incoming(Protocol):
    """COPY FROM under way: whoever has it calls :meth:`take` any number of times, :meth:`done` once if nothing went
    wrong before, and :meth:`close` whatever happened."""

    binary: bool
    columns: int

    async def take(self, data: bytes) -> None:
        """More of what the client sends, cut anywhere.  Returns once there is room for more.

        Raises what is wrong with the rows that are whole by now; then nothing of it will be in the table."""
        ...

    async def done(self) -> str:
        """All of it came.  The rows are committed, or in ``session.buffer`` where the session defers writes; gives the
        command tag.  Cancelled as an INSERT is."""
        ...

    async def given_up(self, reason: str) -> NoReturn:
        """The client says that there will be no more: 57014, or what is wrong with the rows that came before."""
        ...

    async def close(self) -> None:
        """Let go of what it holds.  Idempotent."""
        ...


@dataclass(frozen=True, slots=True)
class Outgoing:
    """COPY TO: rows, and how they are to be written."""

    result: Result
    options: CopyOptions
    progress: CopyProgress
    """Whoever sends them says here how far that is, and ends it with ``copying``."""
    copying: Copying


class Executor(Protocol):
    """SQL without sockets.

    Errors that a client may see are :class:`journal.errors.TidemarkError`; anything else is answered as XX000 and
    logged with its traceback, and the session lives on.

    Cancellation: an awaited call that gets ``asyncio.CancelledError`` stops its work (a peek is cancelled at its
    controller) and lets the exception out.  Where an effect is already under way and cannot be taken back (a commit
    record was sent), it finishes, bounded, and returns normally: an acknowledged commit is never reported as cancelled.
    """

    async def open(self, session: SessionState) -> None:
        """Called once, when a session has authenticated.  Raises 3D000 where its database does not exist."""
        ...

    async def split(self, sql: str) -> Sequence[str]:
        """The statements of a simple query, in order, each a substring of ``sql``; none for an empty query.

        Raises 42601 where the text cannot be split.
        """
        ...

    async def prepare(self, session: SessionState, sql: str, param_oids: Sequence[int] = ()) -> Prepared:
        """Parse, bind and type one statement without running it.

        ``param_oids`` are the client's declarations; 0 or missing means "infer".  Error positions count from the start
        of ``sql``.  Raises 42601, 42P01, 42703, 42P18 and so on.
        """
        ...

    async def again(self, session: SessionState, prepared: Prepared) -> Prepared:
        """``prepared``, prepared by the catalog in force: everything acknowledged before this call is in it."""
        ...

    async def run(self, session: SessionState, prepared: Prepared, params: Sequence[object | None] = ()) -> Result:
        """Run a prepared statement.  ``params`` are Python values of the types ``prepared.param_oids`` names:

        bool, int, float, ``Decimal``, str, bytes, ``date``, ``datetime`` (aware, UTC, for timestamptz), or ``None``.

        COPY gives a ``Result`` with ``copy``; its rows are the statement's own.

        INSERT: when ``session.defers_writes`` its rows are appended to ``session.buffer``
        and become visible at :meth:`commit`; otherwise they are committed before this returns.  So do UPDATE, DELETE
        and TRUNCATE, which are deferred in a block alone. Raises :class:`Outdated` where the statement is not what
        ``prepared`` says any more. DDL runs at once, always; the session itself puts off the one DDL statement that a
        block may hold. Reads of a block are at one timestamp where ``session.reads_at_one_timestamp``; the executor
        keeps it in ``session.transaction``. SET, RESET and SHOW go through ``session.set_variable``, ``reset_variable``
        and ``variable``.
        """
        ...

    async def commit(self, session: SessionState) -> Sequence[Notice]:
        """Commit everything in ``session.buffer`` as one commit part, and leave the buffer empty whatever happens.

        Called only where the buffer is not empty.  If it raises, nothing was committed, unless the error is
        ``Indeterminate``.
        """
        ...

    async def rollback(self, session: SessionState, buffered: Sequence[object]) -> None:
        """``buffered`` was taken out of the session's buffer and will never be committed: release what it holds."""
        ...
