"""The codec: what each message is in bytes.

Pure.  Decoders take a message's body (without type byte and length) and raise :class:`Malformed`, or ``StructError``
where it is too short (:func:`why`), for anything that is not exactly one message; encoders return whole messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache, wraps
from struct import Struct
from struct import error as StructError
from typing import NamedTuple

PROTOCOL_3_0 = 3 << 16
CANCEL_REQUEST_CODE = 80877102
SSL_REQUEST_CODE = 80877103
GSSENC_REQUEST_CODE = 80877104

_I2 = Struct("!h")
_U2 = Struct("!H")
_I4 = Struct("!i")
_U4 = Struct("!I")
_II = Struct("!ii")
_HEAD = Struct("!ci")
_FIELD = Struct("!IhIhih")


class Malformed(ValueError):
    """The bytes are not the message that their type byte says."""


# --- messages from the client ------------------------------------------------------------------------------------


class SslRequest(NamedTuple):
    pass


class GssEncRequest(NamedTuple):
    pass


class CancelRequest(NamedTuple):
    process_id: int
    secret: bytes


class Startup(NamedTuple):
    """``minor`` is the protocol's minor version; ``unknown_options`` are the ``_pq_.`` names, which we know none of."""

    minor: int
    parameters: dict[str, str]
    unknown_options: tuple[str, ...]


class SaslInitial(NamedTuple):
    mechanism: str
    data: bytes


class SaslResponse(NamedTuple):
    data: bytes


class Query(NamedTuple):
    sql: str


class Parse(NamedTuple):
    name: str
    sql: str
    param_oids: tuple[int, ...]


class Bind(NamedTuple):
    portal: str
    statement: str
    param_formats: tuple[int, ...]
    params: tuple[bytes | None, ...]
    result_formats: tuple[int, ...]


class Describe(NamedTuple):
    """``kind`` is ``S`` (statement) or ``P`` (portal)."""

    kind: str
    name: str


class Execute(NamedTuple):
    """``rows_max`` 0: no limit."""

    portal: str
    rows_max: int


class Close(NamedTuple):
    kind: str
    name: str


class Flush(NamedTuple):
    pass


class Sync(NamedTuple):
    pass


class Terminate(NamedTuple):
    pass


class FunctionCall(NamedTuple):
    pass


class CopyData(NamedTuple):
    """A piece of what is copied, cut wherever the client liked."""

    data: bytes


class CopyDone(NamedTuple):
    pass


class CopyFail(NamedTuple):
    """The client gives up, and says why."""

    reason: str


Message = (
    SslRequest | GssEncRequest | CancelRequest | Startup | SaslInitial | SaslResponse | Query | Parse | Bind | Describe
    | Execute | Close | Flush | Sync | Terminate | FunctionCall | CopyData | CopyDone | CopyFail
)  # fmt: skip


def _text(raw: bytes, what: str) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as e:
        raise Malformed(f"invalid UTF-8 in {what}") from e


def _cstring(body: bytes, at: int, what: str) -> tuple[str, int]:
    end = body.find(b"\0", at)
    if end < 0:
        raise Malformed(f"no terminator in {what}")
    return (_text(body[at:end], what) if end > at else ""), end + 1


def _end(body: bytes, at: int) -> None:
    if at != len(body):
        raise Malformed(f"{len(body) - at} bytes too many")


SHORT_BYTES = 64
"""Messages up to this length are remembered with what they say, some kinds of them."""


def _remembered(decoder):
    """A driver sends the same few Describe and Execute with every statement: most name the unnamed portal."""
    known = lru_cache(maxsize=1024)(decoder)
    return wraps(decoder)(lambda body: (known if len(body) <= SHORT_BYTES else decoder)(body))


def decode_first(body: bytes) -> Message:
    """The message of a connection that has no type byte: startup, cancel, or a request for encryption."""
    if len(body) < 4:
        raise Malformed("startup packet too short")
    (code,) = _I4.unpack_from(body)
    if code == SSL_REQUEST_CODE or code == GSSENC_REQUEST_CODE:
        _end(body, 4)
        return SslRequest() if code == SSL_REQUEST_CODE else GssEncRequest()
    if code == CANCEL_REQUEST_CODE:
        if not 8 < len(body) <= 8 + 256:  # 4 bytes in 3.0, up to 256 in 3.2
            raise Malformed("cancel request of the wrong length")
        return CancelRequest(_I4.unpack_from(body, 4)[0], body[8:])
    major, minor = code >> 16, code & 0xFFFF
    if major != 3:
        raise Malformed(f"unsupported frontend protocol {major}.{minor}: server supports 3.0 to 3.2")
    return _startup(body, minor)


def _startup(body: bytes, minor: int) -> Startup:
    at, found, unknown = 4, {}, []
    while True:
        name, at = _cstring(body, at, "startup packet")
        if not name:
            break
        value, at = _cstring(body, at, "startup packet")
        if name.startswith("_pq_."):
            unknown.append(name)
        else:
            found[name] = value
    _end(body, at)
    return Startup(minor, found, tuple(unknown))


def decode_sasl_initial(body: bytes) -> SaslInitial:
    mechanism, at = _cstring(body, 0, "SASL mechanism")
    (size,) = _I4.unpack_from(body, at)
    at += 4
    if size == -1:
        _end(body, at)
        return SaslInitial(mechanism, b"")
    _end(body, at + size)
    return SaslInitial(mechanism, body[at:])


def decode_sasl_response(body: bytes) -> SaslResponse:
    return SaslResponse(body)


def decode_query(body: bytes) -> Query:
    sql, at = _cstring(body, 0, "query")
    _end(body, at)
    return Query(sql)


def decode_parse(body: bytes) -> Parse:
    name, at = _cstring(body, 0, "statement name")
    sql, at = _cstring(body, at, "query")
    (count,) = _U2.unpack_from(body, at)
    _end(body, at + 2 + 4 * count)
    return Parse(name, sql, Struct(f"!{count}I").unpack_from(body, at + 2) if count else ())


_ONE_CODE = {0: (0,), 1: (1,)}


def _formats(body: bytes, at: int) -> tuple[tuple[int, ...], int]:
    (count,) = _U2.unpack_from(body, at)
    at += 2
    if not count:
        return (), at
    if count == 1:  # one for all, which is nearly always how it is said
        found = _ONE_CODE.get(_I2.unpack_from(body, at)[0])
        if found is not None:
            return found, at + 2
    formats = Struct(f"!{count}h").unpack_from(body, at)
    for code in formats:
        if code not in (0, 1):
            raise Malformed(f"unsupported format code: {code}")
    return formats, at + 2 * count


def decode_bind(body: bytes) -> Bind:
    portal, at = _cstring(body, 0, "portal name")
    statement, at = _cstring(body, at, "statement name")
    param_formats, at = _formats(body, at)
    (count,) = _U2.unpack_from(body, at)
    at += 2
    params: list[bytes | None] = []
    for _ in range(count):
        (size,) = _I4.unpack_from(body, at)
        at += 4
        if size == -1:
            params.append(None)
            continue
        if not 0 <= size <= len(body) - at:
            raise Malformed(f"parameter of {size} bytes in a message that has {len(body) - at} left")
        params.append(body[at : at + size])
        at += size
    result_formats, at = _formats(body, at)
    _end(body, at)
    if len(param_formats) not in (0, 1, count):
        raise Malformed(f"bind message has {len(param_formats)} parameter formats but {count} parameters")
    return Bind(portal, statement, param_formats, tuple(params), result_formats)


def _kind_and_name(body: bytes, what: str) -> tuple[str, str]:
    kind = body[:1]
    if kind not in (b"S", b"P"):
        raise Malformed(f"invalid {what} message subtype {kind!r}")
    name, at = _cstring(body, 1, what)
    _end(body, at)
    return kind.decode(), name


@_remembered
def decode_describe(body: bytes) -> Describe:
    return Describe(*_kind_and_name(body, "describe"))


def decode_close(body: bytes) -> Close:
    return Close(*_kind_and_name(body, "close"))


@_remembered
def decode_execute(body: bytes) -> Execute:
    portal, at = _cstring(body, 0, "portal name")
    (rows_max,) = _I4.unpack_from(body, at)
    _end(body, at + 4)
    return Execute(portal, max(0, rows_max))


def decode_flush(body: bytes) -> Flush:
    _end(body, 0)
    return Flush()


@_remembered
def decode_sync(body: bytes) -> Sync:
    _end(body, 0)
    return Sync()


def decode_terminate(body: bytes) -> Terminate:
    _end(body, 0)
    return Terminate()


def decode_function_call(_body: bytes) -> FunctionCall:
    return FunctionCall()


def decode_copy_data(body: bytes) -> CopyData:
    return CopyData(body)


def decode_copy_done(body: bytes) -> CopyDone:
    _end(body, 0)
    return CopyDone()


def decode_copy_fail(body: bytes) -> CopyFail:
    reason, at = _cstring(body, 0, "reason")
    _end(body, at)
    return CopyFail(reason)


DECODERS = {
    ord("Q"): decode_query, ord("P"): decode_parse, ord("B"): decode_bind, ord("D"): decode_describe,
    ord("E"): decode_execute, ord("C"): decode_close, ord("H"): decode_flush, ord("S"): decode_sync,
    ord("X"): decode_terminate, ord("F"): decode_function_call, ord("d"): decode_copy_data,
    ord("c"): decode_copy_done, ord("f"): decode_copy_fail,
}  # fmt: skip
"""By type byte.  ``p`` is not here: what it holds depends on the state."""


def why(error: Malformed | StructError) -> str:
    """What is wrong with a message of which a decoder raised ``error``."""
    return "message too short" if isinstance(error, StructError) else str(error)


# --- messages to the client --------------------------------------------------------------------------------------


def message(kind: bytes, body: bytes) -> bytes:
    return _HEAD.pack(kind, len(body) + 4) + body


def _z(text: str) -> bytes:
    """A C string.  A NUL inside would end it early and shift everything behind it, so it is dropped."""
    return text.encode("utf-8", "replace").replace(b"\0", b"") + b"\0"


REFUSE_ENCRYPTION = b"N"
AUTHENTICATION_OK = message(b"R", _I4.pack(0))
PARSE_COMPLETE = message(b"1", b"")
BIND_COMPLETE = message(b"2", b"")
CLOSE_COMPLETE = message(b"3", b"")
NO_DATA = message(b"n", b"")
PORTAL_SUSPENDED = message(b"s", b"")
EMPTY_QUERY_RESPONSE = message(b"I", b"")


def authentication_sasl(mechanisms: Iterable[str]) -> bytes:
    return message(b"R", _I4.pack(10) + b"".join(map(_z, mechanisms)) + b"\0")


def authentication_sasl_continue(data: bytes) -> bytes:
    return message(b"R", _I4.pack(11) + data)


def authentication_sasl_final(data: bytes) -> bytes:
    return message(b"R", _I4.pack(12) + data)


def negotiate_protocol_version(minor: int, unknown_options: Sequence[str]) -> bytes:
    """The minor version that will be spoken (within major 3), and the options we do not know."""
    body = _II.pack(PROTOCOL_3_0 | minor, len(unknown_options)) + b"".join(map(_z, unknown_options))
    return message(b"v", body)


def parameter_status(name: str, value: str) -> bytes:
    return message(b"S", _z(name) + _z(value))


def backend_key_data(process_id: int, secret: bytes) -> bytes:
    return message(b"K", _I4.pack(process_id) + secret)


def ready_for_query(status: bytes) -> bytes:
    return message(b"Z", status)


def copy_response(kind: bytes, binary: bool, columns: int) -> bytes:
    """CopyInResponse (``kind`` ``G``) or CopyOutResponse (``H``): the format of all, and of each column."""
    return message(kind, bytes([binary]) + _U2.pack(columns) + _U2.pack(binary) * columns)


def copy_data(data: bytes) -> bytes:
    return message(b"d", data)


COPY_DONE = message(b"c", b"")
READY_AND_IDLE = ready_for_query(b"I")


@lru_cache(maxsize=1024)  # "SELECT 1" mostly: who reads many rows at once says other tags, each once
def command_complete(tag: str) -> bytes:
    return message(b"C", _z(tag))


def parameter_description(oids: Sequence[int]) -> bytes:
    return message(b"t", _U2.pack(len(oids)) + b"".join(map(_U4.pack, oids)))


def row_description(fields: Sequence[tuple[str, int, int, int, int]]) -> bytes:
    """``fields``: name, type oid, type length (-1: variable), type modifier (-1: none), format code."""
    parts = [_U2.pack(len(fields))]
    for name, oid, size, modifier, code in fields:
        parts.append(_z(name))
        parts.append(_FIELD.pack(0, 0, oid, size, modifier, code))
    return message(b"T", b"".join(parts))


def response_fields(fields: Mapping[str, str]) -> bytes:
    return b"".join(code.encode() + _z(value) for code, value in fields.items()) + b"\0"


def error_response(fields: Mapping[str, str]) -> bytes:
    """``fields``: one-letter code to text (S severity, C SQLSTATE, M message, D detail, H hint, P position…)."""
    return message(b"E", response_fields(fields))


def notice_response(fields: Mapping[str, str]) -> bytes:
    return message(b"N", response_fields(fields))
