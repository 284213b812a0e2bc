"""A peek, and its refusal, as they travel between adapter and compute controller.

Promises: ``decode_peek(encode_peek(p)) == p`` for every value an index key can have, and an error that crosses the
wire keeps its family (usage, rejected, unavailable, …), SQLSTATE, message, detail and hint.  Pure; JSON, because it is
small, readable in a log, and not on a path where its cost shows.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal

from controllers.peeks.peek import PEEK_TIMEOUT_MS, Considered, Given, Lookup, Own, Peek
from journal.errors import (
    Conflict,
    FatalLog,
    Indeterminate,
    InvalidUsage,
    Rejected,
    TidemarkError,
    Unavailable,
    internal,
)
from journal.timestamps import CatalogTs, DataTs

TICKET_BYTES_MAX = 16 << 20
"""A ticket above this is refused unread.  A statement's text has 1 MiB at most and its tree 100,000 nodes, of which a
plan takes 33 bytes each (measured), besides its texts, of which JSON may make six times as much."""

_FAMILIES: dict[str, type[TidemarkError]] = {
    c.__name__: c for c in (TidemarkError, InvalidUsage, Rejected, Conflict, Indeterminate, Unavailable, FatalLog)
}


def encode_peek(peek: Peek) -> bytes:
    """The Flight ticket for ``peek``."""
    lookup = peek.lookup
    return json.dumps({
        "peek_id": peek.peek_id,
        # A controller of before does not know of own rows.  It must not answer without them: this is no peek to it.
        # (Nor of given ones: their relations are none of its inputs, so it answers nothing that reads them.)
        "sql": None if peek.own or peek.given else peek.sql,
        "plan": peek.plan,
        "inputs": list(peek.inputs),
        "catalog_ts": peek.catalog_ts,
        "as_of": peek.as_of,
        "timeout_ms": peek.timeout_ms,
        "only_at": peek.only_at,
        "own": [[each.collection_id, *map(_text_of, each.values)] for each in peek.own],
        "given": [[each.relation_id, _text_of(each.rows)] for each in peek.given],
        "lookup": None if lookup is None else {
            "index_id": lookup.index_id,
            "relation_id": lookup.relation_id,
            "key": [value_out(v) for v in lookup.key],
            "residual": lookup.residual,
        },
    }).encode()  # fmt: skip


def decode_peek(ticket: bytes) -> Peek:
    """The peek in ``ticket``.  Raises ``InvalidUsage`` 08P01 for anything that is not one."""
    if len(ticket) > TICKET_BYTES_MAX:
        raise InvalidUsage(f"peek of {len(ticket)} bytes is over the limit of {TICKET_BYTES_MAX}", sqlstate="54000")
    try:
        raw = json.loads(ticket)
        lookup = raw.get("lookup")
        peek = Peek(
            peek_id=checked(raw["peek_id"], str),
            sql="" if raw.get("own") or raw.get("given") else checked(raw["sql"], str),
            inputs=tuple(checked(i, str) for i in raw["inputs"]),
            catalog_ts=CatalogTs(checked(raw["catalog_ts"], int)),
            as_of=None if raw.get("as_of") is None else DataTs(checked(raw["as_of"], int)),
            lookup=None if lookup is None else Lookup(
                checked(lookup["index_id"], str),
                checked(lookup["relation_id"], str),
                tuple(value_in(v) for v in lookup["key"]),
                checked(lookup["residual"], str),
            ),
            timeout_ms=checked(raw.get("timeout_ms", PEEK_TIMEOUT_MS), int),
            only_at=checked(raw.get("only_at", False), bool),
            plan=None if raw.get("plan") is None else checked(raw["plan"], str),
            own=tuple(Own(checked(i, str), tuple(map(_bytes_of, values))) for i, *values in raw.get("own") or ()),
            given=tuple(Given(checked(i, str), _bytes_of(rows)) for i, rows in raw.get("given") or ()),
        )  # fmt: skip
    except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        raise InvalidUsage("malformed peek", sqlstate="08P01", detail=f"{type(error).__name__}: {error}") from error
    if (peek.own or peek.given) and (peek.plan is None or lookup is not None):
        raise InvalidUsage("malformed peek", sqlstate="08P01", detail="rows that it brings are read by a plan")
    if not {each.relation_id for each in peek.given}.isdisjoint(peek.inputs):
        raise InvalidUsage("malformed peek", sqlstate="08P01", detail="it brings a relation that it reads")
    if peek.timeout_ms < 0:
        raise InvalidUsage("malformed peek", sqlstate="08P01", detail=f"timeout_ms is {peek.timeout_ms}")
    return peek


def encode_considered(found: Mapping[str, Considered | None]) -> bytes:
    """What a controller says that a peek would read, by relation."""
    return json.dumps({i: None if each is None else each._asdict() for i, each in found.items()}).encode()


def decode_considered(told: bytes) -> dict[str, Considered | None]:
    """The same, read.  Raises ``ValueError`` or ``TypeError`` for anything else."""
    found = json.loads(told)
    if not isinstance(found, dict):
        raise ValueError("no relations")
    return {i: None if each is None else _counts(each) for i, each in found.items()}


def _counts(told: object) -> Considered:
    if not isinstance(told, dict) or told.keys() != set(Considered._fields):
        raise ValueError("no counts of files")
    return Considered(**{name: checked(count, int) for name, count in told.items()})


def _text_of(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _bytes_of(text: str) -> bytes:
    return base64.b64decode(checked(text, str), validate=True)


def encode_error(error: BaseException) -> str:
    """``error`` as text: of a foreign exception only where the log has it (XX000)."""
    if not isinstance(error, TidemarkError):
        error = internal(error, "the cluster's controller")
    family = next(name for name in (c.__name__ for c in type(error).__mro__) if name in _FAMILIES)
    fields = {"family": family, "sqlstate": error.sqlstate, "message": error.message,
              "detail": error.detail, "hint": error.hint}  # fmt: skip
    return json.dumps(fields)


def decode_error(text: str) -> TidemarkError:
    """The error in ``text``, which may be wrapped in what a transport put around it (Flight does)."""
    start, end = text.find('{"family"'), text.rfind("}")
    try:
        fields = json.loads(text[start : end + 1]) if start >= 0 else None
    except RecursionError:
        fields = None
    except ValueError:
        # A transport may append text with a brace of its own: take the longest prefix that is one JSON value.
        try:
            fields, _ = json.JSONDecoder().raw_decode(text[start:])
        except (ValueError, RecursionError):
            fields = None
    if not isinstance(fields, dict):
        return TidemarkError(text)
    family = _FAMILIES.get(str(fields.get("family")), TidemarkError)
    return family(
        str(fields.get("message")),
        sqlstate=sqlstate if isinstance(sqlstate := fields.get("sqlstate"), str) else None,
        detail=fields.get("detail"),
        hint=fields.get("hint"),
    )


def checked(value: object, kind: type):
    """``value`` if it is a ``kind`` (a bool is no int); raises ``TypeError``."""
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise TypeError(f"expected {kind.__name__}, got {type(value).__name__}")
    return value


def value_out(value: object) -> object:
    """A value of an index key as JSON."""
    # JSON has no decimals, dates or bytes, and its readers disagree about NaN: those travel as [type, text].
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return ["float8", repr(value)]
    if isinstance(value, Decimal):
        return ["numeric", str(value)]
    if isinstance(value, datetime):
        return ["timestamp", value.isoformat()]
    if isinstance(value, date):
        return ["date", value.isoformat()]
    if isinstance(value, bytes):
        return ["bytea", value.hex()]
    raise InvalidUsage(f"a {type(value).__name__} cannot be an index key", sqlstate="0A000")


_VALUE_IN = {
    "float8": float,
    "numeric": Decimal,
    "timestamp": datetime.fromisoformat,
    "date": date.fromisoformat,
    "bytea": bytes.fromhex,
}


def value_in(value: object) -> object:
    """The inverse of :func:`value_out`.  Raises ``TypeError``, ``ValueError``, ``KeyError``, ``ArithmeticError``."""
    if isinstance(value, list):
        kind, text = value
        return _VALUE_IN[kind](text)
    if isinstance(value, (float, dict)):
        raise TypeError(f"unexpected {type(value).__name__} in an index key")
    return value
