"""Many lookups in one request: how they travel between adapter and compute controller.

Readers who ask at once mostly ask the same thing of other keys (a prepared statement), so a request is made of
questions, each with its keys, and the rows found for one question travel as one Arrow batch: what a reader adds is its
key and its rows.

A request is JSON, ``[[question…, [key…], behind?]…]``: the last is there where it is true (releases before it know
none, and say so).  A response is JSON, its length in four bytes before it, and then for each answer the Arrow messages
of its schema and its batch, laid end to end::

    [null | {"error": E} | {"as_of": T, "bytes": [S, B], "counts": [rows | E…]}…]

one element per question, in order.  ``null`` is "not now": no index has it, or it would have to wait, or it is too
large; each such lookup is asked again by itself, with its SQL.  ``counts`` says how many of the batch's next rows are
for each key, or what is wrong with that one.  ``{"error": E}`` in place of the list: the request was none.

Both travel as frames, a frame being its length in four bytes and then so many; a connection has one request under way
at a time.  Pure.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

import pyarrow as pa

from controllers.peeks.peek import Question
from controllers.peeks.peek_codec import checked, decode_error, encode_error, value_in, value_out
from journal.errors import InvalidUsage, TidemarkError
from journal.timestamps import CatalogTs, DataTs

LOOKUPS_MAX = 256
"""Keys in one request.  The controller answers them one after the other at some 0.01 ms each, and the last one's answer
holds up the first's: with more the wait would show."""

ANSWERS_BYTES_MAX = 8 << 20
"""Of Arrow in one response, which both sides have in memory as a whole: what is larger is streamed to a peek."""

RESPONSE_BYTES_MAX = 64 << 20
"""Of a response: those, and at most ``LOOKUPS_MAX`` schemas, of which the widest takes some 100 KiB."""

LENGTH = struct.Struct("!I")

Key = tuple[object, ...]


class Asked(NamedTuple):
    """A question, and the keys that it is asked of."""

    question: Question
    keys: Sequence[Key]


class Found(NamedTuple):
    """The rows of all keys, in the order of the keys, as of one timestamp: for each key how many, or its error."""

    batch: pa.RecordBatch
    as_of: DataTs
    counts: Sequence[int | TidemarkError]


Answer = Found | TidemarkError | None
"""To one question.  ``None``: not now."""


def framed(body: bytes) -> bytes:
    """``body`` as it travels."""
    return LENGTH.pack(len(body)) + body


def read_frame(read: Callable[[int], bytes], bytes_max: int) -> bytes | None:
    """The next body; ``None`` where the other side hung up.  ``read(n)`` gives ``n`` bytes, or fewer at the end.

    Raises ``InvalidUsage`` 54000 for one of more than ``bytes_max``, unread.
    """
    head = read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (size,) = LENGTH.unpack(head)
    if size > bytes_max:
        raise InvalidUsage(f"lookups of {size} bytes", sqlstate="54000", detail=f"at most {bytes_max}")
    body = read(size)
    return body if len(body) == size else None


def encode_lookups(asked: Iterable[Asked]) -> bytes:
    """The body of the request."""
    return json.dumps([_told(*each) for each in asked]).encode()


def _told(question: Question, keys: Sequence[Key]) -> list[object]:
    *common, behind = question
    told = [*common, [[value_out(v) for v in key] for key in keys]]
    return [*told, True] if behind else told


def decode_lookups(body: bytes) -> list[Asked]:
    """What is asked in ``body``.  Raises ``InvalidUsage`` for anything else, 54000 for too much."""
    try:
        asked = [_asked(*each) for each in checked(json.loads(body), list)]
    except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        raise InvalidUsage("malformed lookups", sqlstate="08P01", detail=f"{type(error).__name__}: {error}") from error
    count = sum(len(each.keys) for each in asked)
    if count > LOOKUPS_MAX:
        raise InvalidUsage(f"{count} lookups in one request", sqlstate="54000", detail=f"at most {LOOKUPS_MAX}")
    return asked


def _asked(inputs, catalog_ts, as_of, only_at, index_id, relation_id, residual, keys, behind=False) -> Asked:
    question = Question(
        tuple(checked(each, str) for each in inputs),
        CatalogTs(checked(catalog_ts, int)),
        None if as_of is None else DataTs(checked(as_of, int)),
        checked(only_at, bool),
        checked(index_id, str),
        checked(relation_id, str),
        checked(residual, str),
        checked(behind, bool),
    )
    return Asked(question, [tuple([value_in(v) for v in key]) for key in keys])


def encode_answers(answers: Iterable[Answer]) -> bytes:
    """The response."""
    heads: list[object] = []
    parts: list[pa.Buffer] = []
    for answer in answers:
        if answer is None:
            heads.append(None)
        elif isinstance(answer, TidemarkError):
            heads.append({"error": encode_error(answer)})
        else:
            schema, batch = answer.batch.schema.serialize(), answer.batch.serialize()
            parts += (schema, batch)
            counts = [each if isinstance(each, int) else encode_error(each) for each in answer.counts]
            heads.append({"as_of": answer.as_of, "bytes": [schema.size, batch.size], "counts": counts})
    head = json.dumps(heads).encode()
    return b"".join((framed(head), *parts))


def encode_refusal(error: TidemarkError) -> bytes:
    """The response to what is no request."""
    return framed(json.dumps({"error": encode_error(error)}).encode())


def decode_answers(body: bytes | memoryview, asked: Sequence[Asked]) -> list[Answer]:
    """The answers to ``asked``.  Raises what the other side refused it with, ``TidemarkError`` for anything else."""
    raw = memoryview(body)
    try:
        at = LENGTH.size + LENGTH.unpack_from(raw)[0]
        heads = json.loads(bytes(raw[LENGTH.size : at]))
        if isinstance(heads, dict):
            raise decode_error(heads["error"])
        answers: list[Answer] = []
        for head, (_, keys) in zip(heads, asked, strict=True):
            if head is None:
                answers.append(None)
            elif "error" in head:
                answers.append(decode_error(head["error"]))
            else:
                schema, batch = head["bytes"]
                answers.append(_found(head, raw[at : at + schema], raw[at + schema : at + schema + batch], len(keys)))
                at += schema + batch
    except (struct.error, ValueError, KeyError, TypeError, AttributeError, OSError, pa.ArrowException) as error:
        raise TidemarkError("the controller sent something that is no answer to lookups", detail=str(error)) from error
    return answers


@lru_cache(maxsize=256)  # a statement's answers have the same each time
def _schema(message: bytes) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(message))


def _found(head: dict, schema: memoryview, payload: memoryview, keys: int) -> Found:
    batch = pa.ipc.read_record_batch(pa.py_buffer(payload), _schema(bytes(schema)))
    counts = [each if type(each) is int else decode_error(each) for each in head["counts"]]
    rows = sum(each for each in counts if type(each) is int)
    if len(counts) != keys or rows != batch.num_rows:
        raise ValueError(f"{len(counts)} counts of {rows} rows for {keys} keys and {batch.num_rows} rows")
    return Found(batch, DataTs(head["as_of"]), counts)
