"""How a source takes what comes: where it is, or copied.  What a source's thread asks of either."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from confluent_kafka import Message

from catalog_log.objects import ERRORS_COLUMNS, Source
from collection.binding import Run
from collection.columns import plain_columns
from collection.error_rows import ErrorRow
from collection.writer import CollectionWriter
from controllers.judging import Order, Range
from controllers.storage.remap import Prepared, bindings, prepare
from oracle.model import CommitPart
from oracle.state import OracleState

ANSWER_TIMEOUT_S = 60.0
"""The oracle and the writer answer or give up by themselves within 30 s; this only bounds a mistake of ours."""

Polled = dict[int, list[tuple[int, Any]]]
"""Records with their offsets, by partition."""


class Taking(Protocol):
    """Used by one thread.  Whatever fails here has bound nothing."""

    def record(self, message: Message) -> object:
        """What of a record is needed."""

    def begin(self, state: OracleState) -> None:
        """Make ready to go on where the bindings in ``state`` end.  It may take long."""

    def part(
        self, polled: Polled, positions: dict[int, int], pin: str, attempt: str
    ) -> tuple[Prepared, CommitPart]:
        """Judge a batch, write what has to be written, and say what to bind.  Rows never bound are never seen."""

    def order(self, ranges: Sequence[Range], timeout_s: float, attempt: str) -> Order | None:
        """What executors are told that are to judge ``ranges``; ``None`` where they could not."""

    def to_bind(self, prepared: Prepared, attempt: str) -> CommitPart:
        """What is to be bound of a batch that was judged elsewhere."""

    def bound(self) -> None:
        """The oldest part that was not known to be bound is."""

    def close(self) -> None: ...


class InPlace:
    """The user's records are the rows, and their offsets are bound."""

    def __init__(self, item: Source, writer: CollectionWriter) -> None:
        self._item = item
        self._writer = writer

    def record(self, message: Message) -> bytes | None:
        return message.value()

    def begin(self, state: OracleState) -> None:
        """There is nothing to be made ready."""

    def part(
        self, polled: Polled, positions: dict[int, int], pin: str, attempt: str
    ) -> tuple[Prepared, CommitPart]:
        prepared = prepare(self._item, polled, positions, pin)
        return prepared, self.to_bind(prepared, attempt)

    def order(self, ranges: Sequence[Range], timeout_s: float, attempt: str) -> Order | None:
        return Order(self._item.topic, plain_columns(self._item.stored), tuple(ranges), timeout_s)

    def to_bind(self, prepared: Prepared, attempt: str) -> CommitPart:
        runs = errors_written(self._writer, self._item, prepared.bad, attempt)
        return CommitPart(attempt, bindings(self._item, prepared, runs))

    def bound(self) -> None:
        """It keeps no account of that."""

    def close(self) -> None:
        """It holds nothing."""


def errors_written(
    writer: CollectionWriter, item: Source, bad: Sequence[ErrorRow], attempt: str
) -> Sequence[Run]:
    """Where ``bad`` were written, if there are any."""
    if not bad:
        return []
    return writer.write(item.errors_id, ERRORS_COLUMNS, bad, attempt).result(ANSWER_TIMEOUT_S)
