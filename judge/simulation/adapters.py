"""Processes that serve clients: an adapter, and a client of one log alone.

An adapter runs the real ``TidemarkExecutor`` (with its DDL queue, inserter and oracle client) on a loop of the
simulation's.  What the simulation plays itself: sockets, the node registry (a peek goes to the newest controller that
answers) and rows on data topics (tuples instead of Avro).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

from adapter.ddl_topic import topic as ddl_topic
from adapter.execute.executor import TidemarkExecutor
from adapter.session.blocks import Blocks
from adapter.session.named import Portals, Statements
from adapter.state.interfaces import Result
from adapter.state.session_state import SessionState
from controllers.peeks.peek import Peek
from journal.errors import TidemarkError, Unavailable
from judge.simulation.clock import MS, S
from judge.simulation.data import Answer, DataWriter
from judge.simulation.process import Process
from judge.workloads.asking import Asking
from sql.syntax.control import parse as parse_control

if TYPE_CHECKING:
    from judge.simulation.world import World

PEEK_RETRY_NS = 100 * MS


class SimPeeks:
    """``adapter.execute.peeks.Peeks`` over the virtual network: to the newest controller, again where it is gone."""

    def __init__(self, owner: Process) -> None:
        self._owner = owner

    async def peek(self, peek: Peek, cluster_id: str, deadline_s: float, waits: object = None) -> Answer:
        world, owner = self._owner.world, self._owner
        deadline = int(deadline_s * S)
        failed: TidemarkError | None = None
        while True:
            left = deadline - world.schedule.now
            if left <= 0:
                raise failed or TidemarkError("canceling statement due to statement timeout", sqlstate="57014")
            answer = owner.loop.create_future()
            target = world.compute_for(peek)
            if target is not None:
                asked = peek._replace(timeout_ms=left // MS)
                world.schedule.after(world.delay(300_000), target, target.asked, asked, owner, answer)
                # A node that dies closes its connections; the adapter sees that a moment later.
                target.clients.append((owner, answer))
                try:
                    return await answer
                except Unavailable as error:
                    failed = error
            await asyncio.sleep(PEEK_RETRY_NS / S)

    async def lookup(self, peek: Peek, cluster_id: str) -> None:
        """No index answers at once here: every read waits for its frontiers, which is what the simulation is about."""

    def close(self) -> None:
        pass


class Adapter(Process):
    """Sessions, the DDL topic, and checkpoints now and then."""

    kind = "adapter"

    def boot(self) -> None:
        self.catalog = self.open_catalog()
        self.oracle = self.open_oracle(self.catalog.upper)
        self.executor = TidemarkExecutor(
            self.catalog, self.oracle, DataWriter(self), SimPeeks(self), self.bridge, now_ms=self.now_ms
        )
        self.sessions = 0
        self.open_calls: dict[int, Callable[[Any], None]] = {}
        self.serve(self._open())

    async def _open(self) -> None:
        await self.caught_up(self.catalog.journal, self.oracle._journal)
        self.executor.start()
        self.ready = True
        self.world.on_ready(self)

    def session(self) -> Sql:
        self.sessions += 1
        return Sql(self, SessionState(self.sessions))

    def serve_ddl(self) -> None:
        """Take over the DDL topic: what was not committed there is executed (perhaps again)."""
        self.serve(self._serve_ddl())

    async def _serve_ddl(self) -> None:
        world = self.world
        offset = world.ddl_committed
        while self.ready and (world.ddl_owner is self or world.rng.random() < 0.3):
            batch = world.ddl_log[offset : offset + 8]
            if not batch:
                if world.ddl_owner is not self:
                    return
                await asyncio.sleep(world.rng.randrange(5, 40) / 1000)
                continue
            answers = await asyncio.gather(*(ddl_topic.answer(self.executor, value, None) for value in batch))
            for _, reply in answers:
                world.ddl_reply(json.loads(reply))
            offset += len(batch)
            world.ddl_committed = max(world.ddl_committed, offset)


class Sql:
    """A session as a client of it sees it: text and parameters in, rows out."""

    def __init__(self, adapter: Adapter, state: SessionState) -> None:
        self.adapter = adapter
        self.state = state

    async def __call__(self, text: str, *params: Any) -> list[tuple]:
        executor = self.adapter.executor
        prepared = await executor.prepare(self.state, text)
        return await self._rows(await executor.run(self.state, prepared, params))

    async def one(self, asking: Asking, numbered: Callable[[str], str]) -> Any:
        """What ``asking`` returns; each of its statements is by itself."""
        return await self._carried_out(asking, lambda text, params: self(numbered(text), *params))

    async def block(self, asking: Asking, numbered: Callable[[str], str]) -> Any:
        """What ``asking`` returns, as a transaction block of the product's own; undone where anything raises."""
        blocks = Blocks(self.adapter.executor, self.state, lambda _notice: None, lambda: None)
        statements, portals = Statements(), Portals()

        async def run(text: str, params: Sequence[Any] = ()) -> list[tuple]:
            control = parse_control(text)
            if control is not None:
                await blocks.control(control, statements, portals)
                return []
            prepared = await self.adapter.executor.prepare(self.state, numbered(text))
            return await self._rows(await blocks.run(prepared, params, defer=False))

        await run("BEGIN")
        try:
            found = await self._carried_out(asking, run)
            await run("COMMIT")
        except Exception:
            if self.state.transaction.in_block:
                await run("ROLLBACK")
            raise
        return found

    @staticmethod
    async def _carried_out(asking: Asking, run: Callable[..., Awaitable[list[tuple]]]) -> Any:
        try:
            statement = next(asking)
            while True:
                statement = asking.send(await run(*statement))
        except StopIteration as done:
            return done.value

    @staticmethod
    async def _rows(result: Result) -> list[tuple]:
        if result.columns is None:
            return []
        rows: list[tuple] = []
        if hasattr(result.batches, "__aiter__"):
            async for batch in result.batches:
                rows += zip(*(column.to_pylist() for column in batch.columns), strict=True)
        else:
            for batch in result.batches:
                rows += zip(*(column.to_pylist() for column in batch.columns), strict=True)
        return rows

    async def transaction(self, statements: Sequence[tuple[str, Sequence[Any]]]) -> None:
        """``BEGIN; …; COMMIT`` of INSERTs, as ``adapter.session.session`` does it."""
        state = self.state
        state.defers_writes = True
        try:
            for text, params in statements:
                await self(text, *params)
        except BaseException:
            state.buffer.clear()
            raise
        finally:
            state.defers_writes = False
        await self.adapter.executor.commit(state)


class LogClient(Process):
    """A client of the log API: a catalog and an oracle of its own."""

    kind = "client"

    def __init__(self, world: World, name: str, skew_ms: int, env: str) -> None:
        super().__init__(world, name, skew_ms)
        self.env = env

    def boot(self) -> None:
        self.catalog = self.open_catalog(f"{self.env}.catalog")
        self.oracle = self.open_oracle(self.catalog.upper, f"{self.env}.oracle")
        self.open_calls: dict[int, Callable[[Any], None]] = {}
        self.serve(self._open())

    async def _open(self) -> None:
        await self.caught_up(self.catalog.journal, self.oracle._journal)
        self.ready = True
        self.world.on_ready(self)

    def session(self) -> LogClient:
        return self
