"""An S3 service for tests: moto's server, in threads of the test's own process, on a loopback port.

It keeps what it is told in memory and speaks the protocol that pyarrow's S3 file system speaks.  A test may stand
between them (:attr:`S3Server.meddle`), for what a service does on a bad day.
"""

from __future__ import annotations

import threading
import urllib.request
from collections.abc import Callable, Iterable
from typing import NamedTuple

from moto.backends import get_backend
from moto.core import DEFAULT_ACCOUNT_ID
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

HOST = "127.0.0.1"
_STOPPED_S = 0.05  # so often it looks whether it is to stop
_ANSWER_S = 30  # generous: a host that gives others its cores


class Asked(NamedTuple):
    """A request: ``query`` tells the steps of an upload apart (``uploads``, ``partNumber=2&…``, ``uploadId=…``)."""

    method: str
    path: str
    query: str


class _Quiet(WSGIRequestHandler):
    def log(self, type: str, message: str, *args: object) -> None:
        pass


class S3Server:
    """Started at once; :meth:`stop` it."""

    def __init__(self) -> None:
        self._app = DomainDispatcherApplication(create_backend_app)
        self._server = make_server(HOST, 0, self._answer, threaded=True, request_handler=_Quiet)
        self.port: int = self._server.server_port
        self.asked: list[Asked] = []
        self.meddle: Callable[[Asked], str | None] | None = None
        """Called before each request is answered; what it returns is the status to answer with instead."""
        self._thread = threading.Thread(target=self._server.serve_forever, args=(_STOPPED_S,), name="s3", daemon=True)
        self._thread.start()

    def url(self, bucket: str, prefix: str = "", port: int | None = None) -> str:
        """What a store there is called; ``port``: of something else that stands in the server's place."""
        return f"s3://{bucket}{prefix}?region=us-east-1&scheme=http&endpoint_override={HOST}:{port or self.port}"

    def ask(self, method: str, path: str, body: bytes | None = None) -> bytes:
        """A request that nobody signed."""
        asked = urllib.request.Request(f"http://{HOST}:{self.port}{path}", data=body, method=method)
        asked.add_header("Content-Type", "application/octet-stream")  # or a body is taken for a form
        with urllib.request.urlopen(asked, timeout=_ANSWER_S) as answer:
            return answer.read()

    def put(self, bucket: str, keys: Iterable[str]) -> None:
        """Many objects at once, of a byte each."""
        service = get_backend("s3")[DEFAULT_ACCOUNT_ID]["aws"]
        for key in keys:
            service.put_object(bucket, key, b"1")

    def check_credentials(self, on: bool) -> None:
        """Whether keys that it does not know (there are no others) are refused."""
        self.ask("POST", "/moto-api/reset-auth", b"0" if on else b"inf")

    def reset(self) -> None:
        """As it was when it was started."""
        self.meddle = None
        self.check_credentials(False)
        self.ask("POST", "/moto-api/reset")
        self.asked.clear()

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join(timeout=_ANSWER_S)
        self._server.server_close()

    def _answer(self, environ: dict, start_response: Callable) -> object:
        asked = Asked(environ["REQUEST_METHOD"], environ["PATH_INFO"], environ["QUERY_STRING"])
        self.asked.append(asked)
        status = self.meddle(asked) if self.meddle is not None else None
        if status is None:
            return self._app(environ, start_response)
        environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))  # or the client meets a reset
        start_response(status, [("Content-Length", "0")])
        return [b""]
