"""What a Confluent Schema Registry says of schemas.  Each call blocks for up to ``ASK_S_MAX``.

Promises: a schema that it does not know is told apart from a registry that does not answer: the one is a verdict on
messages, the other none.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

from catalog_log.objects import Connection
from collection.outside import ANSWER_BYTES_MAX, from_registry, no_registry, to_registry
from journal.errors import InvalidUsage, Rejected
from schemas.avro_messages import BadSchema, Schema, read_schema

NO_SUBJECT, NO_VERSION, NO_SCHEMA, NO_LEVEL = 40401, 40402, 40403, 40408
"""Its codes for what there is not; a 404 without one is of somebody else."""

SAID_CHARS_MAX = 500
"""Of what a registry says against a schema, which is as long as that."""

NUMBER_MAX = (1 << 31) - 1
"""Of a schema.  Asked for a greater one it says that there is no such page, as somebody does who is no registry: one
message would hold up its source for ever."""


def newest(connection: Connection, subject: str) -> str:
    """The newest schema of ``subject``, as JSON.

    Raises 22023 where there is none, 0A000 for one that is not Avro or needs others, and as
    :func:`collection.outside.ask` does.
    """
    try:
        found = _asked(connection, f"/subjects/{quote(subject, safe='')}/versions/latest")
    except _TooLong:
        told = f'the schema of subject "{subject}" is longer than what is read of one, which is not supported'
        raise InvalidUsage(told, sqlstate="0A000") from None
    if found is None:
        raise InvalidUsage(
            f'the registry of "{connection.name}" has no subject "{subject}"', sqlstate="22023",
            hint="a topic's schemas are found by its name with -key and -value; or write AVRO USING SCHEMA '…'",
        )  # fmt: skip
    if (other := _other(found)) is not None:
        raise InvalidUsage(f'the schema of subject "{subject}" is {other}, which is not supported', sqlstate="0A000")
    return found["schema"]


def schema(connection: Connection, number: int) -> Schema | None:
    """The schema of that id; ``None`` where there is none that messages are read by here.  Raises as :func:`newest`
    does where nobody says."""
    if number > NUMBER_MAX:
        return None
    try:
        found = _asked(connection, f"/schemas/ids/{number}")
    except _TooLong:  # a verdict, too: asked again it is as long
        return None
    if found is None or _other(found) is not None:
        return None
    try:
        return read_schema(found["schema"])
    except BadSchema:
        return None


def register(connection: Connection, subject: str, text: str, level: str = "") -> int:
    """The id of the schema ``text`` among those of ``subject``, whose newest it is then; the same id whenever it is
    there already.  ``level``: of compatibility, that the subject gets where it has none of its own.

    Raises ``Rejected`` 55000 where the registry does not take it, in its own words, and as
    :func:`collection.outside.ask` does.
    """
    if level:
        _level(connection, subject, level)
    path = f"/subjects/{quote(subject, safe='')}/versions"
    status, found = _given(connection, "POST", path, {"schema": text})
    if status == 200 and type(found.get("id")) is int and 0 <= found["id"] <= NUMBER_MAX:
        return found["id"]
    raise _refused(connection, f'the schema of subject "{subject}"', status, found)


def _level(connection: Connection, subject: str, level: str) -> None:
    path = f"/config/{quote(subject, safe='')}"
    status, found = _given(connection, "GET", path, None)
    if status == 200:
        return  # somebody has said, and it is theirs
    if status == 404 and found.get("error_code") in (NO_SUBJECT, NO_LEVEL):
        status, found = _given(connection, "PUT", path, {"compatibility": level})
    if status != 200:
        raise _refused(connection, f'compatibility {level} of subject "{subject}"', status, found)


def _given(connection: Connection, method: str, path: str, said: dict[str, Any] | None) -> tuple[int, dict[str, Any]]:
    if said is None:
        status, body = from_registry(connection, path)
    else:
        status, body = to_registry(connection, method, path, json.dumps(said).encode())
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise no_registry(connection.name)
    return status, found


def _refused(connection: Connection, what: str, status: int, found: dict[str, Any]) -> Exception:
    code = found.get("error_code")
    if type(code) is not int:
        return no_registry(connection.name)
    said = str(found.get("message") or f"status {status}")[:SAID_CHARS_MAX]
    return Rejected(f'the registry of "{connection.name}" does not take {what}', sqlstate="55000",
                    detail=f"{code}: {said}", hint="look at the subject's compatibility level")  # fmt: skip


class _TooLong(Exception):
    """Only the beginning of the answer is read."""


def _asked(connection: Connection, path: str) -> dict[str, Any] | None:
    status, body = from_registry(connection, path)
    if status == 200 and len(body) >= ANSWER_BYTES_MAX and body.lstrip()[:1] == b"{":
        raise _TooLong
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise no_registry(connection.name) from None
    if isinstance(found, dict):
        if status == 404 and found.get("error_code") in (NO_SUBJECT, NO_VERSION, NO_SCHEMA):
            return None
        if status == 200 and isinstance(found.get("schema"), str):
            return found
    raise no_registry(connection.name)


def _other(found: dict[str, Any]) -> str | None:
    """What a schema is where it is not one that stands for itself."""
    kind = found.get("schemaType") or "AVRO"
    if kind != "AVRO":
        return f"of type {str(kind)[:40]}"
    return "one with references" if found.get("references") else None
