"""A schema registry of the tests': it speaks Confluent's protocol, as far as sources and who registers need it."""

from __future__ import annotations

import io
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

import fastavro


class SchemaRegistry:
    """:meth:`register` schemas, :meth:`encode` values; ``away`` answers 503 to everybody, ``asked`` are the paths.
    A new schema of a subject must be able to read what the one before it wrote, unless its level is NONE."""

    def __init__(self) -> None:
        self.schemas: dict[int, dict] = {}
        self.subjects: dict[str, list[int]] = {}
        self.levels: dict[str, str] = {}
        self.asked: list[str] = []
        self.away = False
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer(registry._answer)

            def do_POST(self) -> None:
                self._answer(registry._posted)

            def do_PUT(self) -> None:
                self._answer(registry._put)

            def _answer(self, answer) -> None:
                registry.asked.append(self.path)
                given = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                args = (self.path, json.loads(given)) if given else (self.path,)
                status, body = (503, {"error_code": 50301}) if registry.away else answer(*args)
                data = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                """Nobody reads it."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def register(self, subject: str, schema: object, **more: object) -> int:
        number = len(self.schemas) + 1
        self.schemas[number] = {"schema": schema if isinstance(schema, str) else json.dumps(schema), **more}
        self.subjects.setdefault(subject, []).append(number)
        return number

    def encode(self, number: int, value: object) -> bytes:
        """``value`` by the schema of that id, as Confluent's serializers have it."""
        out = io.BytesIO()
        schema = fastavro.parse_schema(json.loads(self.schemas[number]["schema"]))
        fastavro.schemaless_writer(out, schema, value)
        return b"\0" + number.to_bytes(4, "big") + out.getvalue()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, path: str) -> tuple[int, object]:
        match [unquote(part) for part in path.partition("?")[0].strip("/").split("/")]:
            case ["subjects"]:
                return 200, sorted(self.subjects)
            case ["subjects", subject, "versions", "latest"]:
                numbers = self.subjects.get(subject)
                if numbers is None:
                    return 404, {"error_code": 40401, "message": f"Subject '{subject}' not found."}
                found = {"subject": subject, "version": len(numbers), "id": numbers[-1], **self.schemas[numbers[-1]]}
                return 200, found
            case ["schemas", "ids", number] if int(number) in self.schemas:
                return 200, self.schemas[int(number)]
            case ["schemas", "ids", _]:
                return 404, {"error_code": 40403, "message": "Schema not found"}
            case ["config", subject]:
                if subject in self.levels:
                    return 200, {"compatibilityLevel": self.levels[subject]}
                return 404, {"error_code": 40408, "message": f"Subject '{subject}' does not have compatibility level"}
        return 404, {"error_code": 404, "message": "HTTP 404 Not Found"}

    def _posted(self, path: str, body: dict) -> tuple[int, object]:
        [_, subject, _] = [unquote(part) for part in path.strip("/").split("/")]
        text = body["schema"]
        try:
            fastavro.parse_schema(json.loads(text))
        except Exception as error:
            return 422, {"error_code": 42201, "message": f"Invalid schema: {error}"}
        numbers = self.subjects.get(subject, [])
        for number in numbers:
            if self.schemas[number]["schema"] == text:
                return 200, {"id": number}
        if numbers and self.levels.get(subject) != "NONE" and not _reads(text, self.schemas[numbers[-1]]["schema"]):
            return 409, {"error_code": 409, "message": "Schema being registered is incompatible with an earlier schema"}
        return 200, {"id": self.register(subject, text)}

    def _put(self, path: str, body: dict) -> tuple[int, object]:
        [_, subject] = [unquote(part) for part in path.strip("/").split("/")]
        self.levels[subject] = body["compatibility"]
        return 200, body


def _reads(newer: str, older: str) -> bool:
    """Whether each field of ``newer`` that may not be null, and has no default, was so before."""
    def certain(text: str) -> set[str]:
        return {each["name"] for each in json.loads(text)["fields"]
                if not isinstance(each["type"], list) and "default" not in each}  # fmt: skip

    return certain(newer) <= certain(older)
