"""Peeks over Arrow Flight: find the cluster's node in the catalog, ask it, pass its batches on; and its lookups' line.

Promises: a peek is retried where the node could not be reached or was replaced, until its timeout; a peek whose first
batch has arrived is never repeated.  A cancelled peek is cancelled at its node.  At most ``BATCHES_AHEAD_MAX`` batches
wait for a slow client.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import Future
from contextlib import asynccontextmanager
from functools import partial
from typing import NamedTuple, Protocol
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.flight as flight

from adapter.execute.lookup_line import LookupLine
from adapter.execute.lookups import Lookups, TableAnswer
from catalog_log import model
from catalog_log.log import CatalogLog
from catalog_log.model import Node
from controllers.node_status import act, in_words
from controllers.nodes import location
from controllers.peeks.peek import Considered, Peek
from controllers.peeks.peek_codec import decode_considered, decode_error, encode_peek
from controllers.workers import Workers
from journal.aio import Bridge
from journal.errors import Rejected, TidemarkError, Unavailable
from journal.timestamps import DataTs

log = logging.getLogger(__name__)

BATCHES_AHEAD_MAX = 4
"""Record batches read from Flight ahead of the client: enough to hide a round trip, at most some tens of MB."""

RETRY_S = 0.1
"""Pause before a node that refused a connection is asked again; a new node in the catalog ends it at once."""

THREADS_MAX = 64
"""Peeks under way in one adapter; each holds a thread while it waits for the controller.  As many again for those that
an index answers once it knows enough: they never queue behind those that Spark answers."""

LEFT_MAX = 256
"""Peeks that nobody waits for any more and whose controller does not answer: each holds a thread, until its timeout."""

SLOT_WAIT_S = 30.0
"""How long a read waits for others to end before it is told that they are too many (53300): half of what the longest of
those may take."""

ACTIONS_MAX = 16
"""Cancels, and questions for a port, at once: on threads of their own, since they are what ends a peek that hangs."""

ACTION_TIMEOUT_S = 5.0
"""For what a controller answers from memory, and for a cancel: it hangs or is gone."""

CLIENTS_MAX = 16
"""Flight connections kept: one per node, and there are few."""


class PeekAnswer(Protocol):
    """``as_of`` (``None`` where the controller did not say) of the answer, and its batches."""

    as_of: int | None

    def batches(self) -> AsyncIterator[pa.RecordBatch]: ...


class Peeks(Protocol):
    """Where reads are sent."""

    async def peek(
        self, peek: Peek, cluster_id: str, deadline_s: float, waits: Callable[[str], None] = lambda _: None
    ) -> PeekAnswer:
        """Send ``peek`` to the compute controller of a cluster; ``waits`` is called, once and in words for a person,
        where that is away and has to be waited for.  Raises ``Unavailable``, what the controller raised, or
        57014 after ``deadline_s`` (``time.monotonic``)."""
        ...

    def lookup(self, peek: Peek, cluster_id: str) -> Awaitable[PeekAnswer | None]:
        """The answer that an index has at once to ``peek``, which has a lookup and needs no SQL; ``None``: ask
        :meth:`peek`, which waits, retries and reads without an index.  Raises what the controller raised."""
        ...

    async def considered(self, peek: Peek, cluster_id: str) -> dict[str, Considered | None]:
        """By relation the files that ``peek`` would read, and pass over, as a cluster holds them now; ``None`` of what
        nobody has read there.  Waits for nobody: raises ``Unavailable`` where the cluster is away."""
        ...

    def close(self) -> None: ...


async def give_up(answer: PeekAnswer) -> None:
    """Nobody reads ``answer`` any further: its controller is told, and what it holds goes."""
    stream = answer.batches()
    await anext(stream, None)
    await stream.aclose()


def misses(answer: PeekAnswer, written_ts: DataTs) -> bool:
    """Whether ``answer`` is of a time before ``written_ts``."""
    return answer.as_of is not None and answer.as_of < written_ts


class FlightAnswer:
    """The stream of one peek; a thread reads it into a short queue."""

    def __init__(self, reader, loop: asyncio.AbstractEventLoop, cancel: Callable[[], None]) -> None:
        self.schema: pa.Schema = reader.schema
        metadata = self.schema.metadata or {}
        self.as_of = int(metadata[b"as_of"]) if metadata.get(b"as_of", b"").isdigit() else None
        self._reader = reader
        self._loop = loop
        self._cancel = cancel
        self._ready: asyncio.Queue = asyncio.Queue()
        self._room = threading.Semaphore(BATCHES_AHEAD_MAX)
        self._stopped = threading.Event()

    async def batches(self) -> AsyncIterator[pa.RecordBatch]:
        thread = threading.Thread(target=self._read, name="peek-reader", daemon=True)
        thread.start()
        finished = False
        try:
            while True:
                kind, value = await self._ready.get()
                if kind == "batch":
                    self._room.release()
                    yield value
                elif kind == "end":
                    finished = True
                    return
                else:
                    finished = True
                    raise value
        finally:
            self._stopped.set()
            self._room.release()
            if not finished:
                self._cancel()

    def _read(self) -> None:
        try:
            while not self._stopped.is_set():
                self._room.acquire()
                if self._stopped.is_set():
                    break
                try:
                    chunk = self._reader.read_chunk()
                except StopIteration:
                    self._hand("end", None)
                    return
                if chunk.data is not None:
                    self._hand("batch", chunk.data)
            self._reader.cancel()
        except Exception as error:
            self._hand("error", translate(error))

    def _hand(self, kind: str, value: object) -> None:
        try:
            self._loop.call_soon_threadsafe(self._ready.put_nowait, (kind, value))
        except RuntimeError:
            log.debug("the loop was closed while a peek was read")


def translate(error: Exception) -> TidemarkError:
    """A Flight error as ours: what the controller said, or that it could not be reached."""
    if isinstance(error, TidemarkError):
        return error
    text = str(error)
    if '{"family"' in text:
        return decode_error(text)
    if isinstance(error, (flight.FlightUnavailableError, flight.FlightTimedOutError)):
        return Unavailable("the cluster's controller cannot be reached", detail=in_words(error),
                           hint="see its log, and tm_internal.controllers")  # fmt: skip
    if isinstance(error, flight.FlightCancelledError):
        return TidemarkError("canceling statement due to user request", sqlstate="57014")
    return TidemarkError("the cluster's controller failed", detail=text.split("\n")[0][:500])


class FlightPeeks:
    """Peeks for one adapter.  Lives on one event loop."""

    def __init__(self, catalog: CatalogLog, bridge: Bridge) -> None:
        self._catalog = catalog
        self._bridge = bridge
        self._clients: dict[str, flight.FlightClient] = {}
        self._lookups: dict[str, tuple[Lookups, LookupLine]] = {}
        self._of_spark, self._of_indexes = (
            _Room(asyncio.Semaphore(THREADS_MAX), Workers(THREADS_MAX, LEFT_MAX, name))
            for name in ("peek", "peek-index")
        )
        self._actions = Workers(ACTIONS_MAX, LEFT_MAX, "peek-action")

    def close(self) -> None:
        for workers in (self._of_spark.workers, self._of_indexes.workers, self._actions):
            workers.close(0)
        for client in self._clients.values():
            client.close()
        for _, line in self._lookups.values():
            line.close()

    async def peek(
        self, peek: Peek, cluster_id: str, deadline_s: float, waits: Callable[[str], None] = lambda _: None
    ) -> FlightAnswer:
        key = f"compute/{cluster_id}"
        failed: tuple[Node, TidemarkError] | None = None
        told = False
        while True:
            known = self._catalog.image.get(model.NODES, key)
            if not told and (known is None or (failed is not None and known.incarnation == failed[0].incarnation)):
                told = True
                waits(f'cluster "{cluster_id}" is away: the statement waits for its controller to come back')
            node = await self._node(key, failed, deadline_s)
            left_ms = int((deadline_s - time.monotonic()) * 1000)
            if left_ms <= 0:
                raise (
                    failed[1]
                    if failed
                    else TidemarkError("canceling statement due to statement timeout", sqlstate="57014")
                )
            try:
                return await self._ask(node, peek._replace(timeout_ms=left_ms))
            except Unavailable as error:
                failed = node, error
                self._forget(node.address)

    def lookup(self, peek: Peek, cluster_id: str) -> Awaitable[TableAnswer | None]:
        node = self._catalog.image.get(model.NODES, f"compute/{cluster_id}")
        if node is None:
            return _not_now()
        found = self._lookups.get(node.address)
        if found is None:
            while len(self._lookups) >= CLIENTS_MAX:
                _, line = self._lookups.pop(next(iter(self._lookups)))
                line.close()
            line = LookupLine(partial(self._place_of_lookups, node.address))
            found = self._lookups[node.address] = Lookups(line.ask, asyncio.get_running_loop()), line
        return found[0].lookup(peek)

    async def considered(self, peek: Peek, cluster_id: str) -> dict[str, Considered | None]:
        node = self._catalog.image.get(model.NODES, f"compute/{cluster_id}")
        if node is None:
            raise Unavailable(f'cluster "{cluster_id}" is away')
        client, ticket = self._client(node.address), encode_peek(peek)
        try:
            return decode_considered(
                await self._bridge.wait(self._act(lambda: act(client, "considered", ACTION_TIMEOUT_S, ticket)))
            )
        except flight.FlightError as error:
            self._forget(node.address)
            raise translate(error) from error
        except (pa.ArrowException, ValueError, TypeError) as error:
            raise TidemarkError("the cluster's controller says what nobody here knows", detail=str(error)) from error

    async def _place_of_lookups(self, address: str) -> tuple[str, int]:
        """Where the node at ``address`` answers lookups, by its own word."""
        client = self._client(address)
        try:
            port = int(await self._bridge.wait(self._act(lambda: act(client, "lookups", ACTION_TIMEOUT_S))))
        except (flight.FlightError, pa.ArrowException, ValueError) as error:
            self._forget(address)
            raise translate(error) from error
        return urlsplit(location(address)).hostname, port

    async def _node(self, key: str, failed: tuple[Node, TidemarkError] | None, deadline_s: float) -> Node:
        """The node to ask: a new incarnation at once, the one that failed again after a pause."""
        before = failed[0].incarnation if failed else None
        node = self._catalog.image.get(model.NODES, key)
        if node is not None and node.incarnation != before:
            return node
        left = deadline_s - time.monotonic()
        wait_s = max(0.0, min(left, RETRY_S if node is not None else left))

        def changed(image) -> bool:
            found = image.get(model.NODES, key)
            return found is not None and found.incarnation != before

        try:
            image = await self._bridge.wait(self._catalog.journal.when(changed, wait_s))
            return image.get(model.NODES, key)
        except Unavailable:
            if node is not None:
                return node
            raise Unavailable(
                f"cluster {key.split('/', 1)[1]} has no running controller", hint="start its compute controller"
            ) from None

    async def _ask(self, node: Node, peek: Peek) -> FlightAnswer:
        loop = asyncio.get_running_loop()
        client = self._client(node.address)

        def cancel() -> None:
            self._act(lambda: _cancel(client, peek.peek_id))

        room = self._of_spark if peek.lookup is None else self._of_indexes
        async with room.place(peek.timeout_ms / 1000):
            asked = room.workers.submit(lambda: _open(client, peek))
            try:
                reader = await self._bridge.wait(asked)
            except asyncio.CancelledError:
                # Its place is free from now on, whether the controller answers or not.
                room.workers.leave(asked)
                cancel()
                raise
            except Exception as error:
                raise translate(error) from error
        return FlightAnswer(reader, loop, cancel)

    def _client(self, address: str) -> flight.FlightClient:
        found = self._clients.get(address)
        if found is None:
            while len(self._clients) >= CLIENTS_MAX:
                self._clients.pop(next(iter(self._clients))).close()
            found = self._clients[address] = flight.FlightClient(location(address))
        return found

    def _forget(self, address: str) -> None:
        self._clients.pop(address, None)  # closed when its last reader lets go

    def _act(self, call: Callable[[], object]) -> Future:
        try:
            return self._actions.submit(call)
        except RuntimeError:  # closed: the adapter stops, and nobody waits
            refused: Future = Future()
            refused.set_exception(Unavailable("the adapter is stopping"))
            return refused


async def _not_now() -> None:
    """Of a lookup that there is nobody to ask."""


class _Room(NamedTuple):
    """Places for peeks of one kind, and the threads that they hold."""

    places: asyncio.Semaphore
    workers: Workers

    @asynccontextmanager
    async def place(self, left_s: float) -> AsyncIterator[None]:
        """``async with``: one of the places.  53300 where none is free for ``SLOT_WAIT_S``, 57014 after ``left_s``."""
        try:
            async with asyncio.timeout(min(SLOT_WAIT_S, left_s)):
                await self.places.acquire()
        except TimeoutError:
            if left_s <= SLOT_WAIT_S:
                raise TidemarkError("canceling statement due to statement timeout", sqlstate="57014") from None
            raise Rejected(
                "too many reads at once", sqlstate="53300", detail=f"{THREADS_MAX} are under way in this adapter",
                hint="read through an index, ask another adapter, or try again",
            ) from None  # fmt: skip
        try:
            yield
        finally:
            self.places.release()


def _open(client: flight.FlightClient, peek: Peek):
    options = flight.FlightCallOptions(timeout=peek.timeout_ms / 1000 + 5)
    reader = client.do_get(flight.Ticket(encode_peek(peek)), options)
    reader.schema  # noqa: B018 - waits for the answer to begin, and raises what the controller raised
    return reader


def _cancel(client: flight.FlightClient, peek_id: str) -> None:
    try:
        act(client, "cancel", ACTION_TIMEOUT_S, peek_id.encode())
    except flight.FlightError as error:
        log.info(
            "a peek could not be cancelled at its controller", extra={"peek_id": peek_id, "error": str(error)[:200]}
        )
