"""Many lookups in one request: how they travel between adapter and compute controller.

A request is a JSON list of peeks (``controllers/peek_codec.py``), each with a lookup and no SQL.  The response has one
frame per peek, in order: a kind of one byte, the payload's length in four, the payload.  ``A`` is an answer (an Arrow
stream whose schema says ``as_of``), ``E`` an error, ``N`` "not now": no index has it, or it would have to wait.  Such
a peek is asked again by itself, with its SQL.  Pure.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence

import pyarrow as pa

from controllers.peek import Peek
from controllers.peek_codec import decode_error, decode_peek, encode_error, encode_peek
from journal.errors import InvalidUsage, TidemarkError
from journal.timestamps import DataTs

LOOKUPS_MAX = 64
"""Peeks in one request.  The controller answers them one after the other at some 0.1 ms each, and the last one's answer
holds up the first's: with more the wait would show."""

_SEPARATOR = b"\n"  # JSON has no line breaks of its own
_HEAD = struct.Struct("!cI")

LookedUp = tuple[pa.Table, DataTs] | TidemarkError | None
"""The rows and the timestamp that they are as of; an error; ``None``: not now."""


def encode_lookups(peeks: Iterable[Peek]) -> bytes:
    """The body of the request."""
    return _SEPARATOR.join(encode_peek(peek) for peek in peeks)


def decode_lookups(body: bytes) -> list[Peek]:
    """The peeks in ``body``.  Raises ``InvalidUsage`` for anything else, 54000 for too many."""
    parts = body.split(_SEPARATOR)
    if len(parts) > LOOKUPS_MAX:
        raise InvalidUsage(f"{len(parts)} lookups in one request", sqlstate="54000", detail=f"at most {LOOKUPS_MAX}")
    peeks = [decode_peek(part) for part in parts]
    if any(peek.lookup is None for peek in peeks):
        raise InvalidUsage("malformed lookups", sqlstate="08P01", detail="a peek without a lookup")
    return peeks


def encode_answers(answers: Iterable[LookedUp]) -> bytes:
    """The response."""
    parts: list[bytes | pa.Buffer] = []
    for answer in answers:
        kind, payload = _frame(answer)
        parts += (_HEAD.pack(kind, len(payload)), payload)
    return b"".join(parts)


def decode_answers(body: bytes | memoryview) -> Sequence[LookedUp]:
    """What :func:`encode_answers` was given.  Raises ``TidemarkError`` for anything else."""
    view, at, found = memoryview(body), 0, []
    try:
        while at < len(view):
            kind, length = _HEAD.unpack_from(view, at)
            at += _HEAD.size
            payload = view[at : at + length]
            if len(payload) != length:
                raise ValueError(f"{length} bytes promised, {len(payload)} there")
            found.append(_answer(kind, payload))
            at += length
    except (struct.error, ValueError, KeyError, pa.ArrowException) as error:
        raise TidemarkError("the controller sent something that is no answer to lookups", detail=str(error)) from error
    return found


def _frame(answer: LookedUp) -> tuple[bytes, bytes | pa.Buffer]:
    if answer is None:
        return b"N", b""
    if isinstance(answer, TidemarkError):
        return b"E", encode_error(answer).encode()
    table, as_of = answer
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema.with_metadata({"as_of": str(as_of)})) as writer:
        writer.write_table(table)
    return b"A", sink.getvalue()


def _answer(kind: bytes, payload: memoryview) -> LookedUp:
    if kind == b"N":
        return None
    if kind == b"E":
        return decode_error(bytes(payload).decode())
    if kind != b"A":
        raise ValueError(f"a frame of kind {kind!r}")
    table = pa.ipc.open_stream(payload).read_all()
    return table, DataTs(int(table.schema.metadata[b"as_of"]))
