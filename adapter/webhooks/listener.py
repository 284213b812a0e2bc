"""The listening socket of webhooks, and its limits: the only place that knows HTTP.

``POST /webhook/<database>/<schema>/<source>``.  Limits, all of them bounds on what a client can make this process hold:
connections, bytes of headers and of a body, seconds until a request is there and until it is answered, requests at
once.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

from aiohttp import web

from adapter.webhooks.answers import Answer, done, refused
from adapter.webhooks.posting import Posting
from journal.errors import InvalidUsage, Rejected, TidemarkError, Unavailable, internal, logged

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Limits:
    connections_max: int = 1_000
    """Sockets at once; the next one is closed.  Each costs a descriptor and some 20 KiB."""
    requests_max: int = 256
    """At once, as many as one group of writes takes (``GROUP_ENTRIES_MAX``); the next one is answered 503."""
    body_bytes_max: int = 1 << 20
    """A quarter of what a row may have (``ROW_BYTES_MAX``), since JSON grows when it is kept: so all bodies at once are
    256 MiB at most."""
    header_bytes_max: int = 8190
    headers_max: int = 128
    """Of a line, and of them all: aiohttp's own, as Apache's and nginx's are."""
    first_s: float = 15.0
    """Until a new socket has sent its first request's head: as nginx and Apache wait (20 to 60 s), and less."""
    body_s: float = 30.0
    """Until a body is there: 1 MiB at 35 KB a second."""
    answer_s: float = 30.0
    """Until a row is written; a commit takes some 10 ms, an election of Kafka's some seconds.  Then it is given up,
    where that is still possible."""
    keepalive_s: float = 75.0
    stop_s: float = 4.0
    """What a stop leaves to requests under way, as ``adapter.server.server.Limits.stop_grace_s``."""


class Webhooks:
    """Serves posts on one executor until :meth:`stop`.  Lives on its event loop."""

    def __init__(self, posting: Posting, *, everybody: bool, limits: Limits | None = None) -> None:
        """``everybody``: others than this machine reach it, and nobody has said that they may post unproved."""
        self._posting = posting
        self._everybody = everybody
        self.limits = limits or Limits()
        self._under_way = 0
        self._silent: set[asyncio.BaseProtocol] = set()
        """New sockets that have sent no request yet."""
        self._listener: asyncio.Server | None = None
        self._runner: web.AppRunner | None = None

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Listen; gives the address in fact.  Raises ``InvalidUsage`` if it is taken."""
        limits = self.limits
        app = web.Application(client_max_size=limits.body_bytes_max)
        app.router.add_post("/webhook/{database}/{schema}/{source}", self._posted)
        self._runner = web.AppRunner(
            app, access_log=None, keepalive_timeout=limits.keepalive_s, auto_decompress=False,
            max_line_size=limits.header_bytes_max, max_field_size=limits.header_bytes_max,
            max_headers=limits.headers_max, shutdown_timeout=limits.stop_s,
        )  # fmt: skip
        await self._runner.setup()
        try:
            self._listener = await asyncio.get_running_loop().create_server(self._connection, host, port, backlog=512)
        except OSError as e:
            why = f"cannot listen on {host}:{port}: {e.strerror or e}"
            raise InvalidUsage(why, hint="choose another --webhook-port") from e
        address = self._listener.sockets[0].getsockname()
        return address[0], address[1]

    async def stop(self) -> None:
        """Take nobody new, give requests under way their time, close."""
        if self._listener is not None:
            self._listener.close()
        if self._runner is not None:
            await self._runner.cleanup()

    def _connection(self) -> asyncio.BaseProtocol:
        server = self._runner.server
        if len(server.connections) >= self.limits.connections_max:
            return _Full()
        made = server()
        self._silent.add(made)
        asyncio.get_running_loop().call_later(self.limits.first_s, self._close_if_silent, made)
        return made

    def _close_if_silent(self, connection: web.RequestHandler) -> None:
        if connection in self._silent:
            self._silent.discard(connection)
            connection.force_close()

    async def _posted(self, request: web.Request) -> web.Response:
        self._silent.discard(request.protocol)
        if self._under_way >= self.limits.requests_max:
            told = Rejected("too many requests at once", sqlstate="53300", hint="send it again a little later")
            return _response(refused(told, False))
        self._under_way += 1
        try:
            return _response(await self._answer(request))
        finally:
            self._under_way -= 1

    async def _answer(self, request: web.Request) -> Answer:
        has_id = False
        try:
            coding = request.headers.get("Content-Encoding", "identity").lower()
            charset = (request.charset or "utf-8").lower()
            if coding != "identity" or charset not in ("utf-8", "utf8", "us-ascii"):
                told = {"error": "bodies are taken as they are, in UTF-8", "sqlstate": "0A000",
                        "written": "nothing was written"}  # fmt: skip
                return Answer(415, told)
            try:
                async with asyncio.timeout(self.limits.body_s):
                    body = await request.read()
            except TimeoutError:
                return Answer(408, {"error": "the body did not come in time", "written": "nothing was written"})
            except web.HTTPRequestEntityTooLarge:
                told = f"a body has at most {self.limits.body_bytes_max} bytes"
                return Answer(413, {"error": told, "sqlstate": "54000", "written": "nothing was written"})
            where = request.match_info
            headers = [(name.lower(), value) for name, value in request.headers.items()]
            item = await self._posting.source(where["database"], where["schema"], where["source"])
            has_id = any(name == item.webhook.id_header for name, _ in headers)
            if item.webhook.check is None and self._everybody:
                told = "this source has no CHECK, and others than this machine reach this address"
                hint = "give the source a CHECK, or start the adapter with --insecure"
                return Answer(403, {"error": told, "written": "nothing was written", "hint": hint})
            await self._posting.proved(item, headers, body)
            post = self._posting.post(where["database"], where["schema"], item, headers, body)
            return done(await self._in_time(post))
        except TidemarkError as error:
            return refused(error, has_id)
        except Exception as error:
            log.exception("a post failed", extra={"reference": logged(error)})
            return refused(internal(error, "the adapter"), has_id)

    async def _in_time(self, post) -> int:
        """What became of ``post``.  Where it is cancelled in time nothing was written; what is under way by then is
        waited for, which is bounded (:func:`journal.aio.to_its_end`)."""
        task = asyncio.ensure_future(post)
        # Where nobody waits for it any more (the listener stops) it has its own end, which nobody is told.
        task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        ended, _ = await asyncio.wait((task,), timeout=self.limits.answer_s)
        if not ended:
            task.cancel()
        try:
            return await task
        except asyncio.CancelledError:
            if ended or not task.cancelled():
                raise
            raise Unavailable("the row could not be written in time", sqlstate="57014") from None


class _Full(asyncio.Protocol):
    """A socket above the limit."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.abort()  # type: ignore[attr-defined]


def _response(answer: Answer) -> web.Response:
    headers = {"Retry-After": "1"} if answer.status in (503, 504) else {}
    return web.json_response(answer.body, status=answer.status, headers=headers)
