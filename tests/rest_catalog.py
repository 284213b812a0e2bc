"""A catalog of Iceberg tables that speaks the REST protocol, for tests: pyiceberg's own rules for metadata, in memory.

:attr:`Catalog.fault` decides, for each commit, what becomes of it: ``"lost"`` it happens and nobody is told, ``"away"``
it does not happen and 503 says nothing of that, ``"late"`` it happens after the next one was decided.
"""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema
from pyiceberg.serializers import ToOutputFile
from pyiceberg.table import CommitTableRequest
from pyiceberg.table.metadata import TableMetadata, new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.table.update import update_table_metadata

TOKEN, CREDENTIAL = "a-token", "me:a-secret"


class Catalog:
    """Serves until it is closed."""

    def __init__(self, directory: Path, token: str | None = None) -> None:
        """``token``: who has another one is not taken in."""
        self.warehouse = f"file://{directory}"
        self.tables: dict[tuple[str, ...], tuple[TableMetadata, str]] = {}
        self.namespaces: set[str] = set()
        self.fault: Callable[[], str | None] = lambda: None
        self.commits = 0
        self.token = token
        self.config: dict[str, str] = {}
        """Told with each table."""
        self._late: list[tuple[tuple[str, ...], CommitTableRequest]] = []
        self._lock = threading.RLock()
        self._io = PyArrowFileIO()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # or each answer waits 40 ms for an acknowledgement

            def log_message(self, *_: object) -> None:
                pass

            def _serve(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                status, answer = outer.answer(self.command, self.path, body, self.headers.get("Authorization"))
                sent = json.dumps(answer).encode() if isinstance(answer, dict) else answer
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(sent)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(sent)

            do_GET = do_POST = do_HEAD = do_DELETE = _serve

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def client(self, **more: str) -> RestCatalog:
        """A reader's."""
        return RestCatalog("reader", uri=self.url, **({"token": self.token} if self.token else {}), **more)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, method: str, path: str, body: bytes, authorization: str | None) -> tuple[int, dict | bytes]:
        parts = urlsplit(path)
        where = [unquote(each) for each in parts.path.strip("/").split("/")]
        if where == ["v1", "oauth", "tokens"]:
            said = {name: value[0] for name, value in parse_qs(body.decode()).items()}
            if f"{said.get('client_id')}:{said.get('client_secret')}" != CREDENTIAL:
                return 400, {"error": "invalid_client"}
            return 200, {"access_token": TOKEN, "token_type": "bearer", "expires_in": 3600}
        if self.token is not None and authorization != f"Bearer {self.token}":
            return 401, _error("who are you", "NotAuthorizedException", 401)
        with self._lock:
            match method, where:
                case "GET", ["v1", "config"]:
                    return 200, {"defaults": {}, "overrides": {}}
                case "POST", ["v1", "namespaces"]:
                    name = "\x1f".join(json.loads(body)["namespace"])
                    if name in self.namespaces:
                        return 409, _error("there", "AlreadyExistsException", 409)
                    self.namespaces.add(name)
                    return 200, {"namespace": name.split("\x1f"), "properties": {}}
                case ("GET" | "HEAD"), ["v1", "namespaces", name]:
                    return (200, {"namespace": [name]}) if name in self.namespaces else (404, _error("no"))
                case "POST", ["v1", "namespaces", name, "tables"]:
                    return self._create(name, json.loads(body))
                case "GET", ["v1", "namespaces", name, "tables", table]:
                    found = self.tables.get((name, table))
                    return (404, _error("no")) if found is None else (200, self._told(*found))
                case "POST", ["v1", "namespaces", name, "tables", table]:
                    return self._commit((name, table), CommitTableRequest.model_validate_json(body))
        return 404, _error("no such thing")

    def _create(self, namespace: str, said: dict) -> tuple[int, dict | bytes]:
        name = namespace, said["name"]
        if namespace not in self.namespaces:
            return 404, _error("no namespace")
        if name in self.tables:
            return 409, _error("there", "AlreadyExistsException", 409)
        metadata = new_table_metadata(
            Schema.model_validate(said["schema"]), UNPARTITIONED_PARTITION_SPEC, UNSORTED_SORT_ORDER,
            "/".join((self.warehouse, *namespace.split("\x1f"), said["name"])), said.get("properties") or {},
        )  # fmt: skip
        return 200, self._told(*self._put(name, metadata))

    def _commit(self, name: tuple[str, ...], request: CommitTableRequest) -> tuple[int, dict | bytes]:
        fault = self.fault()
        if name not in self.tables:
            return 404, _error("no")
        if fault == "away":
            return 503, _error("away", "ServiceUnavailableException", 503)
        if fault == "late":
            self._late.append((name, request))
            return 504, _error("timed out", "CommitStateUnknownException", 504)
        if name not in self.tables:
            return 404, _error("no")
        try:
            answer = self._apply(name, request)
        except CommitFailedException as error:
            return 409, _error(str(error), "CommitFailedException", 409)
        finally:
            late, self._late = self._late, []
            for each in late:
                try:
                    self._apply(*each)
                except CommitFailedException:
                    pass
        if fault == "lost":
            return 500, _error("unknown", "CommitStateUnknownException", 500)
        return 200, answer

    def _apply(self, name: tuple[str, ...], request: CommitTableRequest) -> dict | bytes:
        metadata, _ = self.tables[name]
        for each in request.requirements:
            each.validate(metadata)
        self.commits += 1
        return self._told(*self._put(name, update_table_metadata(metadata, request.updates)))

    def _put(self, name: tuple[str, ...], metadata: TableMetadata) -> tuple[TableMetadata, str]:
        path = f"{metadata.location}/metadata/{len(metadata.metadata_log):05}-{uuid.uuid4()}.metadata.json"
        ToOutputFile.table_metadata(metadata, self._io.new_output(path), overwrite=True)
        self.tables[name] = metadata, path
        return self.tables[name]

    def _told(self, metadata: TableMetadata, path: str) -> bytes:
        return b'{"metadata-location":%b,"metadata":%b,"config":%b}' % (
            json.dumps(path).encode(), metadata.model_dump_json().encode(), json.dumps(self.config).encode()
        )  # fmt: skip


def _error(message: str, kind: str = "NoSuchTableException", code: int = 404) -> dict:
    return {"error": {"message": message, "type": kind, "code": code}}
