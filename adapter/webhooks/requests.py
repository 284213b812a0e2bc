"""What a request gives: whether it is let in, its id, and the rows that it is.  Pure.

The body is proved as it came, byte for byte, before anything reads it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Sequence
from dataclasses import dataclass

from catalog_log.objects import PostCheck, Webhook, WebhookSource
from catalog_log.objects.reading import BYTES
from catalog_log.objects.webhook import NDJSON
from journal.errors import InvalidUsage
from values.bad_text import BadText
from values.text.jsonb import parse_jsonb

ID_CHARS_MAX = 255
"""Of a request's id.  Those of senders are UUIDs or hashes: 36 to 64 characters."""

ROWS_MAX = 10_000
"""Of a body: one of 1 MiB has a hundred bytes for each."""

AGAIN_BYTES_MAX = 4 * 1024 * 1024
"""Of a request's id and headers, which each of its rows has: what one row may have (``ROW_BYTES_MAX``)."""

_TOLD_CHARS_MAX = 500
_BLANKS = b" \t\r"

Headers = Sequence[tuple[str, str]]
"""Names in lower case with values, in the order in which they came."""


class Unproved(InvalidUsage):
    """The request has not what the source's CHECK asks for."""

    sqlstate = "28000"


class Unlike(InvalidUsage):
    """The body is of another kind than the source's rows are made of."""

    sqlstate = "22P02"


@dataclass(frozen=True)
class Posted:
    """A row, by the source's columns, each as its parameter comes on the wire: text, or the bytes of a bytea.  Where a
    body may be many rows it is a list in JSON, and the others have what is in each of them."""

    values: tuple[bytes | None, ...]
    request_id: str | None
    rows: int = 1


def check(proof: PostCheck, secret: str, headers: Headers, body: bytes) -> None:
    """Raises :class:`Unproved`.  How long it takes tells nothing of how much of a proof was right."""
    said = [value for name, value in headers if name == proof.header]
    if len(said) != 1:
        raise Unproved("the request was not proved", hint=f"it needs one header {proof.header}")
    if not proof.digest:
        wanted, given = secret.encode(), said[0].encode(errors="surrogateescape")
    else:
        wanted = hmac.new(secret.encode(), body, getattr(hashlib, proof.digest)).digest()
        given = (
            _decoded(said[0].removeprefix(proof.prefix), proof.encoding) if said[0].startswith(proof.prefix) else b""
        )
    if not hmac.compare_digest(wanted, given):
        raise Unproved("the request was not proved", hint=f"header {proof.header} has another proof")


def _decoded(text: str, encoding: str) -> bytes:
    try:
        return bytes.fromhex(text) if encoding == "hex" else base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        return b""


def posted(item: WebhookSource, headers: Headers, body: bytes) -> Posted:
    """The rows that a request is.  Raises ``InvalidUsage`` 22023 for an id that is none, 22021 for text that is not
    UTF-8, 22P02 for what is no rows, 54000 for too many; what is wrong with a value is found where it is written."""
    webhook = item.webhook
    if webhook.format != BYTES:
        _check_text(body, "the body")
    rows = 1
    if webhook.many:
        rows, body = _many(body, webhook.format)
    request_id = _request_id(webhook, headers)
    values: list[bytes | None] = [body, None if request_id is None else request_id.encode()]
    for name in webhook.included:
        value = _joined(headers, name)
        values.append(None if value is None else _of_header(name, value))
    if webhook.all_headers:
        left_out = {*webhook.left_out}
        if webhook.check is not None and not webhook.check.digest:
            left_out.add(webhook.check.header)  # which is the secret itself
        every = {name: _joined(headers, name) for name, _ in headers if name not in left_out}
        for name, value in every.items():
            _of_header(name, value or "")
        values.append(json.dumps(every).encode())
    again = sum(len(each or b"") for each in values[1:])
    if webhook.many and rows * again > AGAIN_BYTES_MAX:
        told = f"{rows} rows with {again} bytes of an id and headers each, at most {AGAIN_BYTES_MAX} bytes are taken"
        raise InvalidUsage(told, sqlstate="54000")
    return Posted(tuple(values), request_id, rows)


def _many(body: bytes, form: str) -> tuple[int, bytes]:
    """How many rows a body is, and the list of them in JSON."""
    if form == NDJSON:
        lines = [(number, line) for number, line in enumerate(body.split(b"\n"), 1) if line.strip(_BLANKS)]
        for number, line in lines:
            _value(line, f"line {number} of the body")
        rows, body = len(lines), b"[" + b",".join([line for _, line in lines]) + b"]"
    else:
        whole = _value(body, "the body")
        if not isinstance(whole, list):
            raise Unlike("the body is no JSON array")
        rows = len(whole)
    if rows > ROWS_MAX:
        raise InvalidUsage(f"the body is {rows} rows, at most {ROWS_MAX} are taken", sqlstate="54000")
    return rows, body


def _value(raw: bytes, what: str) -> object:
    try:
        return parse_jsonb(raw.decode())
    except BadText as error:
        raise InvalidUsage(f"{what}: {error.message}"[:_TOLD_CHARS_MAX], sqlstate=error.sqlstate) from None


def _request_id(webhook: Webhook, headers: Headers) -> str | None:
    said = [value for name, value in headers if name == webhook.id_header]
    if not said:
        return None
    found = said[0].strip()
    plain = found.isascii() and found.isprintable()
    if len(said) > 1 or not plain or not 0 < len(found) <= ID_CHARS_MAX:
        raise InvalidUsage(
            f"header {webhook.id_header} is no request's id",
            hint=f"one header of 1 to {ID_CHARS_MAX} printable ASCII characters",
        )
    return found


def _joined(headers: Headers, name: str) -> str | None:
    """As RFC 9110 reads several of one name."""
    said = [value for each, value in headers if each == name]
    return ", ".join(said) if said else None


def _of_header(name: str, value: str) -> bytes:
    return _check_text(value.encode(errors="surrogateescape"), f"header {name}")


def _check_text(raw: bytes, what: str) -> bytes:
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        raise InvalidUsage(f"{what} is not UTF-8 at byte {error.start}", sqlstate="22021") from None
    if b"\0" in raw:
        raise InvalidUsage(f"{what} has a zero byte, which no text has", sqlstate="22021")
    return raw
