"""What of a record of a user's topic is needed to judge it, as Kafka's client has it and as :class:`Message`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE
from confluent_kafka import Message as KafkaMessage

from catalog_log.objects.reading import HEADERS, TIMESTAMP, Reading
from collection.messages.judging import Message

_made = tuple.__new__


def taker(reading: Reading | None) -> Callable[[KafkaMessage], Message]:
    """What takes from a record what a source with ``reading`` asks for; of headers and times only where it does."""
    has_headers = reading is not None and HEADERS in reading.roles
    has_times = reading is not None and TIMESTAMP in reading.roles

    def take(message: KafkaMessage) -> Message:
        ms = -1
        if has_times:  # a microsecond of ten is much, and few sources ask
            kind, ms = message.timestamp()
            ms = -1 if kind == TIMESTAMP_NOT_AVAILABLE else ms
        headers = _headers(message) if has_headers else ()
        # As ``Message(…)`` makes it, in half of the time.
        return _made(Message, (message.partition(), message.offset(), message.key(), message.value(), ms, headers))

    return take


def bytes_of(message: Message) -> int:
    """About what it takes in memory beside its fields."""
    key, value, headers = message.key, message.value, message.headers
    size = (0 if key is None else len(key)) + (0 if value is None else len(value))
    return size + sum(len(name) + len(each or b"") for name, each in headers) if headers else size


def _headers(message: KafkaMessage) -> Sequence[tuple[str, bytes | None]] | None:
    """``None`` where one has a name that is no UTF-8."""
    try:
        return message.headers() or ()
    except (UnicodeDecodeError, SystemError):  # by how the library was built
        return None
