"""The client's half of the protocol, for tests: builds what a client sends and reads what it gets."""

from __future__ import annotations

import struct

SSL_REQUEST = struct.pack("!ii", 8, 80877103)
GSSENC_REQUEST = struct.pack("!ii", 8, 80877104)
SYNC = b"S\0\0\0\4"
FLUSH = b"H\0\0\0\4"
TERMINATE = b"X\0\0\0\4"


def z(text: str) -> bytes:
    return text.encode() + b"\0"


def message(kind: str, body: bytes = b"") -> bytes:
    return kind.encode() + struct.pack("!i", len(body) + 4) + body


def startup(minor: int = 0, **parameters: str) -> bytes:
    given = {"user": "tester", "database": "tidemark", **parameters}
    body = struct.pack("!i", (3 << 16) | minor) + b"".join(z(k) + z(v) for k, v in given.items()) + b"\0"
    return struct.pack("!i", len(body) + 4) + body


def cancel(process_id: int, secret: bytes) -> bytes:
    return struct.pack("!iii", 12 + len(secret), 80877102, process_id) + secret


def query(sql: str) -> bytes:
    return message("Q", z(sql))


def parse(sql: str, name: str = "", oids: tuple[int, ...] = ()) -> bytes:
    return message("P", z(name) + z(sql) + struct.pack(f"!H{len(oids)}I", len(oids), *oids))


def bind(
    params: tuple[bytes | None, ...] = (),
    statement: str = "",
    portal: str = "",
    formats: tuple[int, ...] = (),
    results: tuple[int, ...] = (),
) -> bytes:
    body = z(portal) + z(statement) + struct.pack(f"!H{len(formats)}h", len(formats), *formats)
    body += struct.pack("!H", len(params))
    for value in params:
        body += struct.pack("!i", -1) if value is None else struct.pack("!i", len(value)) + value
    return message("B", body + struct.pack(f"!H{len(results)}h", len(results), *results))


def describe(kind: str = "P", name: str = "") -> bytes:
    return message("D", kind.encode() + z(name))


def execute(portal: str = "", rows_max: int = 0) -> bytes:
    return message("E", z(portal) + struct.pack("!i", rows_max))


def close(kind: str, name: str) -> bytes:
    return message("C", kind.encode() + z(name))


def password(data: bytes) -> bytes:
    return message("p", data)


def backend_messages(data: bytes) -> list[tuple[str, bytes]]:
    """The server's messages in ``data``, which must end where a message ends."""
    found, at = [], 0
    while at < len(data):
        (length,) = struct.unpack_from("!i", data, at + 1)
        found.append((chr(data[at]), data[at + 5 : at + 1 + length]))
        at += 1 + length
    assert at == len(data), "bytes left over"
    return found


def fields(body: bytes) -> dict[str, str]:
    """ErrorResponse or NoticeResponse."""
    return {part[:1].decode(): part[1:].decode() for part in body.split(b"\0") if part}


def row(body: bytes) -> list[bytes | None]:
    """DataRow."""
    (count,) = struct.unpack_from("!h", body)
    values, at = [], 2
    for _ in range(count):
        (size,) = struct.unpack_from("!i", body, at)
        at += 4
        values.append(None if size < 0 else body[at : at + size])
        at += max(0, size)
    assert at == len(body)
    return values
