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
from collection.error_rows import ErrorRow, error_rows
from collection.json_rows import decode_batch
from controllers.peeks.peek_codec import checked
from journal.errors import InvalidUsage

RANGES_MAX = 1_000
"""Of one order: what is asked has some twenty."""

TIMEOUT_S_MAX = 3_600.0
"""Of an order: whoever asks waits for two minutes."""

BAD_BYTES_MAX = 1 << 20
"""Of what is told of one range's records that are no rows: a range is judged no further then.  As many hundred-byte
values as are a twentieth of a range of 200,000; twenty ranges of them are in memory at once, in both controllers."""

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
        columns = tuple(
            JudgedColumn(checked(name, str), checked(of, str), checked(null, bool)) for name, of, null in raw["columns"]
        )
        for column in columns:
            sql_type(column.type)
        ranges = tuple(Range(*(checked(each, int) for each in asked)) for asked in raw["ranges"])
        if not 0 < len(ranges) <= RANGES_MAX or not all(0 <= p and 0 <= lower < upper for p, lower, upper in ranges):
            raise ValueError("no ranges")
        timeout_s = float(raw["timeout_s"])
        if not 0 < timeout_s <= TIMEOUT_S_MAX:
            raise ValueError("no time")
        return Order(checked(raw["topic"], str), columns, ranges, timeout_s)
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidUsage("malformed order of judging", sqlstate="08P01", detail=str(error)) from error


def encode_verdict(verdict: Verdict) -> bytes:
    bad = [(each.error, each.value, each.offset) for each in verdict.bad]
    return json.dumps({"upper": verdict.upper, "good": verdict.good, "bad": bad}).encode()


def decode_verdict(topic: str, asked: Range, body: bytes) -> Verdict:
    """What was said of ``asked``.  Raises ``ValueError``, ``KeyError`` or ``TypeError`` for what cannot be that."""
    raw = json.loads(body)
    bad = tuple(
        ErrorRow(checked(why, str), value if value is None else checked(value, str), topic, asked.partition,
                 checked(offset, int))
        for why, value, offset in raw["bad"]
    )  # fmt: skip
    found = Verdict(checked(raw["upper"], int), checked(raw["good"], int), bad)
    offsets = [each.offset for each in bad]
    inside = all(asked.lower <= offset < found.upper for offset in offsets) and offsets == sorted(set(offsets))
    fits = 0 <= found.good <= found.upper - asked.lower - len(bad)
    if not (asked.lower < found.upper <= asked.upper and inside and fits):
        raise ValueError(f"nobody can say so of {asked}")
    return found
