"""Files of one directory for Spark's executors on other machines: read as WebHDFS, which every Spark knows.

Promises: a path of :meth:`FileServer.uri` is read by executors, a piece at a time, from this machine's disk: nothing of
it is in the memory of this process or of the driver's JVM.  So is a file taken that a task of theirs puts there
(``sending.py``): all of it or nothing, and none that is there is written over.  This one directory, and for whoever was
told the secret in the path, which is Spark alone.

Why not through the driver: a table that is handed to Spark as rows is in the driver's heap, as objects and again in the
messages to its executors, for as long as anybody may read it; 1.2 M rows ended a driver of 1 GB that way.  Why not a
directory that all machines share: then Tidemark would need one.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import BinaryIO
from urllib.parse import parse_qs, urlsplit

PLACES_MAX = 256
"""Files that are read at once: a thread each, which does nothing but wait for its socket.  Executors with a hundred
cores between them read at most as many."""

PUT_BYTES_MAX = 1 << 30
"""Of a file that is put: some ten million bytes, but a single row may be larger than a piece of a task's rows."""

BLOCK_BYTES = 1 << 20
"""Of such a file, in memory at once."""

STALLED_S_MAX = 600.0
"""A reader takes what it has read to work before it reads on, so this is not below what a large task takes; it only
frees the places of those who are gone without a word."""

_PREFIX = "/webhdfs/v1"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


class FileServer:
    """Serves at once.  ``host`` is an address of this machine that the executors reach; 127.0.0.1 if they are on it."""

    def __init__(self, directory: Path, host: str, port: int = 0) -> None:
        self._directory = directory
        self._secret = secrets.token_hex(16)
        self._server = _Server(directory, self._secret, host, port)
        self._host = f"[{host}]" if ":" in host else host
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, name="file-server", daemon=True)
        self._thread.start()

    def uri(self, path: Path) -> str:
        """What executors read ``path`` by, a file of the directory."""
        assert path.parent == self._directory and _NAME.fullmatch(path.name), path
        return f"webhdfs://{self._host}:{self.port}/{self._secret}/{path.name}"

    def close(self) -> None:
        """Answer no more; what is being read goes on until this process ends."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = PLACES_MAX

    def __init__(self, directory: Path, secret: str, host: str, port: int) -> None:
        self.directory = directory
        self.secret = secret
        self._places = threading.BoundedSemaphore(PLACES_MAX)
        self.address_family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        super().__init__((host, port), _Handler)

    def process_request(self, request, client_address) -> None:
        # Who comes when all places are taken waits in the queue of the kernel, which is bounded too.
        self._places.acquire()
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._places.release()
            raise

    def process_request_thread(self, request, client_address) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request, client_address) -> None:
        """A reader that had enough closes its connection; whatever else goes wrong, it tells by its own failure."""


class _Handler(BaseHTTPRequestHandler):
    """One request a connection: readers jump about in a file, and leave a connection for it each time."""

    timeout = STALLED_S_MAX
    server: _Server

    def do_GET(self) -> None:  # noqa: N802 - http.server's name
        asked = urlsplit(self.path)
        options = {key.lower(): values[-1] for key, values in parse_qs(asked.query).items()}
        path = self._file(asked.path)
        try:
            with open(path or "", "rb") as file:
                self._answer(options, file)
        except OSError:
            self._refuse(404, "FileNotFoundException", "java.io.FileNotFoundException", "no such file")

    def do_PUT(self) -> None:  # noqa: N802 - http.server's name
        path, length = self._file(urlsplit(self.path).path), self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()) or int(length) > PUT_BYTES_MAX:
            self._refuse(400, "IllegalArgumentException", "java.lang.IllegalArgumentException", "no such length")
            return
        if path is None:
            self._refuse(404, "FileNotFoundException", "java.io.FileNotFoundException", "no such file")
            return
        part = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
        try:
            try:
                self._take(part, int(length))
                os.link(part, path)  # unlike a rename not over another
            finally:
                part.unlink(missing_ok=True)  # before anybody is told
        except OSError as error:
            self._refuse(400, "IOException", "java.io.IOException", f"it was not taken: {error.strerror or error}")
            return
        self.send_response(201)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _take(self, part: Path, left: int) -> None:
        with open(part, "xb") as file:
            while left:
                block = self.rfile.read(min(left, BLOCK_BYTES))
                if not block:
                    raise ConnectionError("it ended too soon")
                file.write(block)
                left -= len(block)

    def _file(self, path: str) -> Path | None:
        root, _, name = path.removeprefix(_PREFIX).rpartition("/")
        known = secrets.compare_digest(root.encode(), f"/{self.server.secret}".encode())
        return self.server.directory / name if known and _NAME.fullmatch(name) else None

    def _answer(self, options: dict[str, str], file: BinaryIO) -> None:
        size = file.seek(0, 2)
        operation = options.get("op", "").upper()
        status = {
            "accessTime": 0, "blockSize": 128 << 20, "group": "", "length": size, "modificationTime": 0, "owner": "",
            "pathSuffix": "", "permission": "400", "replication": 1, "type": "FILE",
        }  # fmt: skip
        if operation == "OPEN":
            self._send_from(file, size, options)
        elif operation == "GETFILESTATUS":
            self._tell({"FileStatus": status})
        elif operation == "LISTSTATUS":
            self._tell({"FileStatuses": {"FileStatus": [status]}})
        elif operation in ("GETFILEBLOCKLOCATIONS", "GET_BLOCK_LOCATIONS"):
            self._tell({"BlockLocations": {"BlockLocation": []}})
        else:
            self._refuse(400, "UnsupportedOperationException", "java.lang.UnsupportedOperationException", "read only")

    def _send_from(self, file: BinaryIO, size: int, options: dict[str, str]) -> None:
        offset, length = options.get("offset", "0"), options.get("length", str(size))
        if not (offset.isascii() and offset.isdigit() and length.isascii() and length.isdigit()):
            self._refuse(400, "IllegalArgumentException", "java.lang.IllegalArgumentException", "no such part")
            return
        start = min(int(offset), size)
        count = min(int(length), size - start)
        self.send_response(200)
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(count))
        self.end_headers()
        if count:
            try:
                self.connection.sendfile(file, start, count)
            except (ConnectionError, TimeoutError):
                pass  # it has what it wanted

    def _tell(self, what: dict) -> None:
        self._send_json(200, what)

    def _refuse(self, code: int, exception: str, java: str, message: str) -> None:
        self._send_json(code, {"RemoteException": {"exception": exception, "javaClassName": java, "message": message}})

    def _send_json(self, code: int, what: dict) -> None:
        body = json.dumps(what).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Spark asks for every file it reads; the paths are secret besides."""
