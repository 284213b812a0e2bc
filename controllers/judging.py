"""Ranges of a source's topic that a cluster's executors judge: what the storage controller asks, and what it is told.
Pure.

Promises: what is said of a range is what the storage controller would say itself of the same records, by the same
function; whoever is asked writes nothing and binds nothing.  So a task that is tried again, or done twice, counts once,
a cluster that dies in the middle leaves nothing behind, and the bindings stay the storage controller's alone.

It is asked of a running controller and is no fact of the catalog, as :mod:`controllers.vacuum` is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from collection.columns import Columns, sql_type
from collection.error_rows import ERROR_VALUE_CHARS_MAX, ErrorRow, error_rows
from collection.json_rows import decode_batch
from controllers.peeks.peek_codec import checked
from journal.errors import InvalidUsage, TidemarkError

RANGES_MAX = 1_000
"""Of one order: what is asked has some twenty."""

TIMEOUT_S_MAX = 3_600.0
"""Of an order: whoever asks waits for two minutes."""

BAD_BYTES_MAX = 1 << 20
"""Of what is told of one range's records that are no rows: a range is judged no further then.  As many hundred-byte
values as are a twentieth of a range of 200,000; twenty ranges of them are in memory at once, in both controllers."""

ANSWER_BYTES_MAX = 8 << 20
"""Of what is told of a range: JSON writes a byte as six at most, and one value may be beyond the bound."""

_ROW_BYTES = 64
"""Of one of them beside its value."""


class JudgedColumn(NamedTuple):
    """A column as verdicts hang on it; the other two are none of theirs."""

    name: str
    type: str
    nullable: bool
    id: int = 0
    missing: bytes | None = None


class Range(NamedTuple):
    """Offsets of a partition, ``upper`` not included."""

    partition: int
    lower: int
    upper: int


class Order(NamedTuple):
    """What is asked.  All that is below ``upper`` of each range can be read when it is; ``timeout_s`` after which
    nobody waits for it any more."""

    topic: str
    columns: tuple[JudgedColumn, ...]
    ranges: tuple[Range, ...]
    timeout_s: float


class Verdict(NamedTuple):
    """Of a range's records below ``upper``, how many are rows, and those that are none; of the rest nothing is said."""

    upper: int
    good: int = 0
    bad: tuple[ErrorRow, ...] = ()


def judged_columns(columns: Columns) -> tuple[JudgedColumn, ...]:
    """``columns`` for an :class:`Order`."""
    return tuple(JudgedColumn(each.name, each.type, each.nullable) for each in columns)


def judged(
    topic: str, columns: Columns, asked: Range, records: Iterable[tuple[Sequence[bytes | None], Sequence[int]]]
) -> Verdict:
    """What is to be said of ``asked``, of which ``records`` are all, values and offsets, in the order of these."""
    good, size, bad = 0, 0, []
    for values, offsets in records:
        _, found = decode_batch(values, columns)
        for before, each in enumerate(error_rows(topic, found, values, [(asked.partition, at) for at in offsets])):
            bad.append(each)
            size += _ROW_BYTES + len(each.error) + len((each.value or "").encode())
            if size > BAD_BYTES_MAX:
                return Verdict(each.offset + 1, good + found[before].index - before, tuple(bad))
        good += len(values) - len(found)
    return Verdict(asked.upper, good, tuple(bad))


def encode_order(order: Order) -> bytes:
    return json.dumps(order._replace(columns=tuple(each[:3] for each in order.columns))._asdict()).encode()


def decode_order(body: bytes) -> Order:
    """Raises ``InvalidUsage`` 08P01 for what is none."""
    try:
        raw = json.loads(body)
        topic, timeout_s = _text(raw["topic"]), raw["timeout_s"]
        columns = tuple(
            JudgedColumn(_text(name), checked(of, str), checked(null, bool)) for name, of, null in raw["columns"]
        )
        if len({each.name for each in columns}) < len(columns):
            raise ValueError("two columns of one name")
        for column in columns:
            sql_type(column.type)
        ranges = tuple(Range(*(checked(each, int) for each in asked)) for asked in raw["ranges"])
        if not 0 < len(ranges) <= RANGES_MAX or not all(map(_is_possible, ranges)):
            raise ValueError("no ranges")
        if isinstance(timeout_s, (bool, str)) or not 0 < timeout_s <= TIMEOUT_S_MAX:
            raise ValueError("no time")
        return Order(topic, columns, ranges, float(timeout_s))
    except (ValueError, KeyError, TypeError, RecursionError, TidemarkError) as error:
        raise InvalidUsage("malformed order of judging", sqlstate="08P01", detail=str(error)) from error


def _is_possible(asked: Range) -> bool:
    return 0 <= asked.partition < 1 << 31 and 0 <= asked.lower < asked.upper < 1 << 63


def encode_verdict(verdict: Verdict) -> bytes:
    bad = [(each.error, each.value, each.offset) for each in verdict.bad]
    return json.dumps({"upper": verdict.upper, "good": verdict.good, "bad": bad}).encode()


def decode_verdict(topic: str, asked: Range, body: bytes) -> Verdict:
    """What was said of ``asked``.  Raises ``ValueError`` for what cannot be that."""
    try:
        raw = json.loads(body)
        bad = tuple(
            ErrorRow(_text(why), None if value is None else _value(value), topic, asked.partition, checked(at, int))
            for why, value, at in raw["bad"]
        )
        found = Verdict(checked(raw["upper"], int), checked(raw["good"], int), bad)
    except (KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"no verdict: {error!r}") from error
    offsets = [each.offset for each in bad]
    inside = all(asked.lower <= offset < found.upper for offset in offsets) and offsets == sorted(set(offsets))
    fits = 0 <= found.good <= found.upper - asked.lower - len(bad)
    if not (asked.lower < found.upper <= asked.upper and inside and fits):
        raise ValueError(f"nobody can say so of {asked}")
    return found


def _text(value: object) -> str:
    """``value`` if it is text that a row can have, and some.  Raises ``ValueError``, ``TypeError``."""
    text: str = checked(value, str)
    if not text or "\x00" in text:
        raise ValueError("no text")
    text.encode()  # a lone surrogate is none
    return text


def _value(value: object) -> str:
    """The same of what :func:`~collection.error_rows.readable` gives, which may be empty."""
    text = _text(value) if value else checked(value, str)
    if len(text) > ERROR_VALUE_CHARS_MAX:
        raise ValueError("too long")
    return text
