"""What travels on the DDL topic: requests in, answers out.  Pure; anything may arrive, nothing may raise."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from journal.errors import InvalidUsage, TidemarkError
from schemas import codec
from sql.syntax import statements as st
from sql.syntax.parse import parse

REQUEST_ID_CHARS_MAX = 256
"""A request id is a catalog key and lives in every adapter's memory."""

REPLY_TO = "reply-to"
CORRELATION = ("correlation-id", "kafka_correlationId", "correlation_id")
"""Headers that are echoed as they came: ours, Spring's and the snake-case spelling."""

Headers = Sequence[tuple[str, bytes | None]]


@dataclass(frozen=True)
class DdlRequest:
    request_id: str
    sql: str
    database: str | None = None
    schema: str | None = None


@dataclass(frozen=True)
class Garbage:
    """A record that is no request.  ``request_id`` is what could be made out of it, for the answer's key."""

    reason: str
    request_id: str = ""


def decode_request(value: bytes | None, key: bytes | None = None) -> DdlRequest | Garbage:
    """JSON ``{"request_id", "sql"[, "database", "schema"]}``, or framed Avro of ``schemas/ddl_request.avsc``.

    A request without an id takes the record's key as one.
    """
    if not value:
        return Garbage("the record is empty")
    if value[0] == codec.MARKER:
        try:
            found = codec.decode("ddl_request", value)
        except codec.Undecodable as error:
            return Garbage(str(error))
    else:
        try:
            found = json.loads(value)
        except (ValueError, RecursionError) as error:
            return Garbage(f"neither JSON nor framed Avro: {str(error)[:200]}")
        if not isinstance(found, dict):
            return Garbage(f"a JSON object is expected, got {type(found).__name__}")
    request_id = found.get("request_id")
    if request_id is None and key:
        request_id = key.decode("utf-8", "replace")
    known = request_id if isinstance(request_id, str) else ""
    if not known or len(known) > REQUEST_ID_CHARS_MAX:
        return Garbage(
            f"request_id must be a string of 1 to {REQUEST_ID_CHARS_MAX} characters", known[:REQUEST_ID_CHARS_MAX]
        )
    if not isinstance(found.get("sql"), str) or not found["sql"].strip():
        return Garbage("sql must be a string with one statement", known)
    for name in ("database", "schema"):
        if found.get(name) is not None and not isinstance(found[name], str):
            return Garbage(f"{name} must be a string", known)
    return DdlRequest(known, found["sql"], found.get("database"), found.get("schema"))


def parse_ddl(sql: str) -> object:
    """The DDL statement in ``sql``.  Raises 42601, or 0A000 for any other kind of statement."""
    statement = parse(sql)
    if not isinstance(statement, st.DDL):
        raise InvalidUsage(
            "only DDL is executed from the DDL topic",
            sqlstate="0A000",
            hint="send queries and inserts through a Postgres client",
        )
    return statement


def ok_reply(request_id: str, catalog_ts: int, message: str) -> bytes:
    return _reply(request_id, "ok", catalog_ts, None, message)


def error_reply(request_id: str, error: TidemarkError) -> bytes:
    more = {name: getattr(error, name) for name in ("detail", "hint", "position") if getattr(error, name) is not None}
    return _reply(request_id, "error", None, error.sqlstate, error.message, **more)


def garbage_reply(garbage: Garbage) -> bytes:
    return _reply(garbage.request_id, "error", None, "08P01", garbage.reason)


def _reply(
    request_id: str, status: str, catalog_ts: int | None, sqlstate: str | None, message: str, **more: object
) -> bytes:
    return json.dumps(
        {
            "request_id": request_id,
            "status": status,
            "catalog_ts": catalog_ts,
            "sqlstate": sqlstate,
            "message": message,
            **more,
        }
    ).encode()


def reply_topic(headers: Headers | None) -> str | None:
    """Where the sender wants the answer, or ``None``."""
    for name, value in headers or ():
        if name.lower() == REPLY_TO and value:
            return value.decode("utf-8", "replace")
    return None


def reply_headers(headers: Headers | None) -> list[tuple[str, bytes | None]]:
    """The headers that go back with the answer."""
    return [(name, value) for name, value in headers or () if name in CORRELATION]
