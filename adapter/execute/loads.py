"""COPY FROM under way: bytes to rows to their table's topic, all of them bound by one commit at the end.

What was sent is read in blocks, one at a time and beside the event loop, while the next one gathers.  Rows of a load
that is more than one block go to the topic as they are read, where nobody sees them; the commit binds the offsets that
they got.  So a load holds the same memory whatever its size, and one that ends before its commit leaves nothing but
garbage on the topic, as any writer that died.
"""

from __future__ import annotations

import asyncio
import os
import uuid
from collections import deque
from collections.abc import Mapping, Sequence
from typing import NoReturn

import pyarrow as pa

from adapter.copying.binary import BinaryRows
from adapter.copying.cells import Cells
from adapter.copying.rows import Chunk, Reader, TextRows
from adapter.copying.told import Places
from adapter.execute.commits import Commits
from adapter.execute.constants import Constants
from adapter.execute.draws import Draws
from adapter.execute.load_keys import LoadKeys
from adapter.execute.rows import Rows, check_buffer, checked, columns_of_query
from adapter.state.copying import Copying, CopyProgress
from adapter.state.session_state import SessionState
from collection.binding import joined
from journal.errors import InvalidUsage, Rejected
from oracle.model import BINDINGS_MAX
from sql.statements.copying import CopyPlan
from sql.statements.plans import Slot
from sql.syntax.copying import BINARY, CopyOptions
from values.types import arrow_type

BLOCK_BYTES = 4 << 20
"""What is read at a time: Arrow's reader takes some 20 ms for it.  A load holds two of them, and their rows."""

WRITES_MAX = 3
"""Writes of blocks that are not answered yet: a broker answers one while the next is encoded."""

KEY_BYTES = 4
"""All of a load goes to one partition, so that its runs are few (see :mod:`collection.writer`)."""

BUSY_TRIES_MAX = 100
BUSY_PAUSE_S = 0.1
"""How often, and after what pause, a block is written again that finds the writer's memory full of others' rows: for
ten seconds, in which a writer that works writes some hundred times as much as it may hold."""


class Load:
    """One COPY FROM of a session (:class:`adapter.state.interfaces.Incoming`).  Lives on one event loop."""

    def __init__(
        self,
        session: SessionState,
        plan: CopyPlan,
        options: CopyOptions,
        zone: str,
        draws: Draws,
        constants: Constants,
        commits: Commits,
        keys: LoadKeys | None,
        copying: Copying,
    ) -> None:
        self.binary = options.format == BINARY
        self.columns = len(plan.columns)
        self._copying = copying
        self.progress = copying.begin(CopyProgress(session, "COPY FROM", plan.table.id))
        self._session, self._plan, self._draws, self._zone = session, plan, draws, zone
        self._defers = session.defers_writes
        self._constants, self._commits, self._keys = constants, commits, keys
        cells = [Cells(column, zone) for column in plan.columns]
        if self.binary:
            self._reader: Reader = BinaryRows(plan.table.name, cells)
        else:
            self._reader = TextRows(plan.table.name, cells, options)
        self._gathered: list[bytes] = []
        self._bytes = 0
        self._working: asyncio.Task[None] | None = None
        self._held: list[pa.Table] = []
        """Rows that are not written: of the first block alone, until there is a second."""
        self._blocks = 0
        self._attempt, self._key = uuid.uuid4().hex, os.urandom(KEY_BYTES)
        self._writing: deque[asyncio.Future[None]] = deque()

    # --- what the session asks

    async def take(self, data: bytes) -> None:
        self._gathered.append(data)
        self._bytes += len(data)
        if self._bytes >= BLOCK_BYTES:
            await self._worked()
            self._working = asyncio.get_running_loop().create_task(self._work(self._block(), last=False))

    async def done(self) -> str:
        await self._worked()
        await self._work(self._block(), last=True)
        count = self.progress.rows
        entry = await self._entry()
        if entry is not None:
            if self._defers:
                check_buffer(self._session.buffer, [entry])
                self._session.buffer.append(entry)
            else:
                await self._commits.commit(self._session, [entry])
        return f"COPY {count}"

    async def given_up(self, reason: str) -> NoReturn:
        await self._worked()
        await self._work(self._block(), last=False)
        error = Rejected(f"COPY from stdin failed: {reason}", sqlstate="57014")
        error.context = Places(self._plan.table.name).line(self._reader.number + 1)
        raise error

    async def close(self) -> None:
        under_way = [*self._writing, *([] if self._working is None else [self._working])]
        self._working = None
        self._writing.clear()
        for each in under_way:
            each.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)  # what went wrong was told, or nobody waits for it
        self._held.clear()
        self._gathered.clear()
        self._copying.end(self.progress)

    # --- blocks

    def _block(self) -> bytes:
        block = b"".join(self._gathered)
        self._gathered.clear()
        self._bytes = 0
        return block

    async def _worked(self) -> None:
        """The block before is through.  Raises what was wrong with it."""
        working, self._working = self._working, None
        if working is not None:
            try:
                await working
            except asyncio.CancelledError:
                working.cancel()
                raise

    async def _work(self, block: bytes, last: bool) -> None:
        self._blocks += 1
        chunk = await asyncio.to_thread(self._reader.read, block, last)
        if chunk.height:
            rows = await self._rows(chunk)
            self.progress.rows += rows.num_rows
            self.progress.excluded += chunk.height - rows.num_rows
            if rows.num_rows:
                await self._check_keys(chunk, rows)
                self._held.append(rows)
        self.progress.bytes += len(block)
        if chunk.failed is not None:
            raise chunk.failed
        if not last or self._blocks > 1:
            await self._write()

    async def _rows(self, chunk: Chunk) -> pa.Table:
        """The rows of ``chunk`` that are to be written, as their table has them."""
        plan = self._plan
        drawn = await self._draws.defaults(plan.made, chunk.height)
        try:
            return await asyncio.to_thread(self._made, chunk, 0, chunk.height, drawn)
        except InvalidUsage as error:
            if not error.sqlstate.startswith("23"):
                raise
            first = await asyncio.to_thread(self._first_wrong, chunk, drawn)
            raise first from None

    async def _check_keys(self, chunk: Chunk, rows: pa.Table) -> None:
        """23505, for the first of ``rows`` whose key there is already."""
        if self._keys is None:
            return
        twice = await self._keys.check(Rows(self._plan.table, rows, self._plan.made.catalog_ts + 1))
        if twice is not None:
            if self._plan.kept is None:  # else it is not known of which line the row is
                twice.error.context = chunk.place(twice.row)
            raise twice.error

    def _made(self, chunk: Chunk, lower: int, upper: int, drawn: Mapping[int, Sequence[Slot]]) -> pa.Table:
        """Of rows ``[lower, upper)``.  Raises 23502, 23514, and what WHERE says."""
        plan, where = self._plan.made, self._plan.kept
        arrays = [each.slice(lower, upper - lower) for each in chunk.arrays]
        batch = pa.RecordBatch.from_arrays(arrays, names=[f"c{at}" for at in range(len(arrays))])
        given = {at: slots[lower:upper] for at, slots in drawn.items()}
        evaluate = self._constants.working(self._zone)
        columns = columns_of_query(plan, [batch], evaluate, given)
        if where is not None:
            columns = self._constants.kept(where, self._plan.table, columns)
        return checked(plan.table, columns, evaluate)

    def _first_wrong(self, chunk: Chunk, drawn: Mapping[int, Sequence[Slot]]) -> InvalidUsage:
        """What is wrong with the first row that is: with it, and so with everything that ends behind it."""
        lower, upper = 0, chunk.height
        while upper - lower > 1:
            middle = (lower + upper) // 2
            if self._wrong(chunk, lower, middle, drawn) is not None:
                upper = middle
            else:
                lower = middle
        found = self._wrong(chunk, lower, upper, drawn)
        assert found is not None, "one of the rows was refused"
        found.context = found.context or chunk.place(lower)
        return found

    def _wrong(
        self, chunk: Chunk, lower: int, upper: int, drawn: Mapping[int, Sequence[Slot]]
    ) -> InvalidUsage | None:
        try:
            self._made(chunk, lower, upper, drawn)
        except InvalidUsage as error:
            return error
        return None

    # --- rows to where they are bound from

    async def _write(self) -> None:
        """All rows that are held to their topic, once there is room for their write."""
        while len(self._writing) >= WRITES_MAX:
            await self._settle()
        rows, self._held = self._held, []
        self._writing.extend(asyncio.ensure_future(self._begin(each)) for each in rows)

    async def _begin(self, rows: pa.Table) -> None:
        inserter, table = self._commits.inserter, self._plan.table
        for tries_left in reversed(range(BUSY_TRIES_MAX)):
            try:
                runs = await inserter.put(table, rows, self._attempt, self._key)
                self.progress.runs = joined([*self.progress.runs, *runs])
                return
            except Rejected as error:
                if error.sqlstate != "53400" or not tries_left:
                    raise
            await asyncio.sleep(BUSY_PAUSE_S)  # others' writes are answered, which nobody tells us
        raise AssertionError("unreachable: the last try raises or returns")

    async def _settle(self) -> None:
        await self._writing[0]
        self._writing.popleft()
        if len(self.progress.runs) > BINDINGS_MAX:
            told = f"its rows are in more than {BINDINGS_MAX} places, between those of others"
            raise Rejected("COPY of too many rows", sqlstate="54000", detail=told, hint="copy them in several parts")

    async def _entry(self) -> Rows | None:
        """What a commit makes visible; ``None`` where there is nothing."""
        while self._writing:
            await self._settle()
        plan = self._plan
        if not self._held and not self.progress.runs:
            return None
        kinds = zip(plan.table.columns, plan.made.types, strict=True)
        none = pa.schema([(column.name, arrow_type(kind)) for column, kind in kinds]).empty_table()
        rows = pa.concat_tables([none, *self._held])
        upper = plan.made.catalog_ts + 1
        found = Rows(plan.table, rows.combine_chunks(), upper, (plan.answers,), runs=tuple(self.progress.runs))
        return found if self._keys is None else self._keys.committed(found)
