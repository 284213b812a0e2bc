"""Ranges of a source's topic that a cluster's executors judge: what the storage controller asks, and what it is told.
Pure.

Promises: what is said of a range is what the storage controller would say itself of the same records, by the same
function; whoever is asked binds nothing, and writes nothing but rows of a source that is copied, which nobody sees that
nobody binds (:class:`Copying`).  So a task that is tried again, or done twice, counts once: by the verdict that is
taken, which says where its rows are.  A cluster that dies in the middle leaves nothing that could count, and the
bindings stay the storage controller's alone.

It is asked of a running controller and is no fact of the catalog, as :mod:`controllers.vacuum` is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from catalog_log.objects.reading import BOTH, KEY, METADATA, VALUE, Reading
from collection.binding import Run
from collection.columns import Columns, PlainColumn, sql_type
from collection.error_rows import ERROR_VALUE_CHARS_MAX, ErrorRow, error_rows
from collection.json_rows import decode_batch
from controllers.peeks.peek_codec import checked
from journal.errors import InvalidUsage, TidemarkError
from journal.names import TopicNames

RANGES_MAX = 1_000
"""Of one order: what is asked has some twenty."""

TIMEOUT_S_MAX = 3_600.0
"""Of an order: whoever asks waits for two minutes."""

BAD_BYTES_MAX = 1 << 20
"""Of what is told of one range's records that are no rows: a range is judged no further then.  As many hundred-byte
values as are a twentieth of a range of 200,000; twenty ranges of them are in memory at once, in both controllers."""

RUNS_MAX = 10_000
"""Of rows that one verdict says, and of those that one commit binds: half of what it may."""

ANSWER_BYTES_MAX = 8 << 20
"""Of what is told of a range: JSON writes a byte as six at most, and one value may be beyond the bound."""

_ROW_BYTES = 64
"""Of one of them beside its value."""


class Range(NamedTuple):
    """Offsets of a partition, ``upper`` not included."""

    partition: int
    lower: int
    upper: int


class Copying(NamedTuple):
    """What else is asked of a source that is copied: the rows, on the topic of ``collection`` in ``env``, which is
    there, as of ``attempt``.  ``schemas`` are those of registries that messages may be written with, as text; ``None``
    where there is none of that number.  A message of another one is not judged."""

    env: str
    collection: str
    attempt: str
    reading: Reading
    schemas: Mapping[str, Mapping[int, str | None]]

    @property
    def topic(self) -> str:
        return TopicNames(self.env).data(self.collection)


class Order(NamedTuple):
    """What is asked.  All that is below ``upper`` of each range can be read when it is; ``timeout_s`` after which
    nobody waits for it any more."""

    topic: str
    columns: tuple[PlainColumn, ...]
    ranges: tuple[Range, ...]
    timeout_s: float
    copying: Copying | None = None


class Verdict(NamedTuple):
    """Of a range's records below ``upper``, how many are no bad ones, and those that are; of the rest nothing is said.
    Of a source that is copied also where its rows are, which may be fewer: headers are none."""

    upper: int
    good: int = 0
    bad: tuple[ErrorRow, ...] = ()
    runs: tuple[Run, ...] = ()


class Bad:
    """What is told of a range's records that are no rows, as much as may be."""

    def __init__(self) -> None:
        self.rows: list[ErrorRow] = []
        self.is_full = False
        self._size = 0

    def take(self, errors: Iterable[ErrorRow]) -> int:
        """How many of ``errors`` were taken; after fewer than all, or with the last, it ``is_full``."""
        taken = 0
        for each in errors:
            self.rows.append(each)
            taken += 1
            self._size += _ROW_BYTES + len(each.error) + len((each.value or "").encode())
            if self._size > BAD_BYTES_MAX:
                self.is_full = True
                break
        return taken


def judged(
    topic: str, columns: Columns, asked: Range, records: Iterable[tuple[Sequence[bytes | None], Sequence[int]]]
) -> Verdict:
    """What is to be said of ``asked``, of which ``records`` are all, values and offsets, in the order of these."""
    good, bad = 0, Bad()
    for values, offsets in records:
        _, found = decode_batch(values, columns)
        taken = bad.take(error_rows(topic, found, values, [(asked.partition, at) for at in offsets]))
        if bad.is_full:
            last = found[taken - 1].index
            return Verdict(offsets[last] + 1, good + last + 1 - taken, tuple(bad.rows))
        good += len(values) - len(found)
    return Verdict(asked.upper, good, tuple(bad.rows))


def encode_order(order: Order) -> bytes:
    columns = [(*each[:4], None if each.missing is None else each.missing.hex()) for each in order.columns]
    copying = order.copying
    if copying is not None:
        copying = {**copying._asdict(), "reading": copying.reading.text()}
    return json.dumps({**order._asdict(), "columns": columns, "copying": copying}).encode()


def decode_order(body: bytes) -> Order:
    """Raises ``InvalidUsage`` 08P01 for what is none."""
    try:
        raw = json.loads(body)
        topic, timeout_s = _text(raw["topic"]), raw["timeout_s"]
        columns = tuple(
            PlainColumn(_text(name), checked(of, str), checked(null, bool), checked(number, int), _bytes(missing))
            for name, of, null, number, missing in raw["columns"]
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
        copying = None if raw["copying"] is None else _copying(raw["copying"], len(columns))
        return Order(topic, columns, ranges, float(timeout_s), copying)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, TidemarkError) as error:
        raise InvalidUsage("malformed order of judging", sqlstate="08P01", detail=str(error)) from error


def _is_possible(asked: Range) -> bool:
    return 0 <= asked.partition < 1 << 31 and 0 <= asked.lower < asked.upper < 1 << 63


def _bytes(said: str | None) -> bytes | None:
    return None if said is None else bytes.fromhex(said)


def _copying(raw: Mapping[str, Any], columns: int) -> Copying:
    """Raises as :func:`decode_order` catches it."""
    schemas = {
        _text(registry_id): {int(number): None if of is None else _text(of) for number, of in known.items()}
        for registry_id, known in raw["schemas"].items()
    }
    reading = Reading.of_text(checked(raw["reading"], str))
    if len(reading.roles) != columns or not {KEY, VALUE, BOTH, *METADATA}.issuperset(reading.roles):
        raise ValueError("a role for each column")
    found = Copying(_text(raw["env"]), _text(raw["collection"]), _text(raw["attempt"]), reading, schemas)
    if not found.topic:
        raise ValueError("no topic")
    return found


def encode_verdict(verdict: Verdict) -> bytes:
    bad = [(each.error, each.value, each.offset) for each in verdict.bad]
    runs = [(each.partition, each.lower, each.upper, each.rows) for each in verdict.runs]
    return json.dumps({"upper": verdict.upper, "good": verdict.good, "bad": bad, "runs": runs}).encode()


def decode_verdict(order: Order, asked: Range, body: bytes) -> Verdict:
    """What was said of ``asked``, one of the ranges of ``order``.  Raises ``ValueError`` for what cannot be that."""
    try:
        raw = json.loads(body)
        bad = tuple(
            ErrorRow(
                _text(why), None if value is None else _value(value), order.topic, asked.partition, checked(at, int)
            )
            for why, value, at in raw["bad"]
        )
        found = Verdict(checked(raw["upper"], int), checked(raw["good"], int), bad, _runs(order, raw["runs"]))
    except (KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"no verdict: {error!r}") from error
    offsets = [each.offset for each in bad]
    inside = all(asked.lower <= offset < found.upper for offset in offsets) and offsets == sorted(set(offsets))
    fits = 0 <= found.good <= found.upper - asked.lower - len(bad)
    rows = sum(run.rows for run in found.runs)
    # Of a source that is copied the first message may be of a schema that nobody was told of.
    least = asked.lower + 1 if order.copying is None else asked.lower
    if not (least <= found.upper <= asked.upper and inside and fits and rows <= found.good and are_apart(found.runs)):
        raise ValueError(f"nobody can say so of {asked}")
    return found


def _runs(order: Order, raw: Sequence[Sequence[int]]) -> tuple[Run, ...]:
    if not raw:
        return ()
    if order.copying is None or len(raw) > RUNS_MAX:
        raise ValueError("runs that nobody asked for")
    topic, attempt = order.copying.topic, order.copying.attempt
    found = tuple(
        Run(topic, *(checked(each, int) for each in (partition, lower, upper)), attempt, checked(rows, int))
        for partition, lower, upper, rows in raw
    )
    if not all(_is_possible(Range(*run[1:4])) and run.rows > 0 for run in found):
        raise ValueError("no runs")
    return found


def are_apart(runs: Iterable[Run]) -> bool:
    """Whether no offset is in two of ``runs``, which are all of one topic: of such no row could be read."""
    upto: dict[int, int] = {}
    for run in sorted(runs):
        if run.lower < upto.get(run.partition, 0):
            return False
        upto[run.partition] = run.upper
    return True


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
