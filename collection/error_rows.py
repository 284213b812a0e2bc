"""What is kept of a user's record that is no row: why, and what it was.  Pure.

The columns of an errors collection are these, in this order (``catalog_log.objects.ERRORS_COLUMNS``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from collection.json_rows import BadRow

ERROR_VALUE_CHARS_MAX = 64 * 1024
"""How much of a bad value its error row keeps: enough to see what it is, far below a record's bound."""


class ErrorRow(NamedTuple):
    error: str
    value: str | None
    topic: str
    partition: int
    offset: int


def error_rows(
    topic: str, bad: Iterable[BadRow], values: Sequence[bytes | None], places: Sequence[tuple[int, int]]
) -> list[ErrorRow]:
    """Of each of ``bad``, which are of ``values``, whose partitions and offsets are ``places``."""
    return [ErrorRow(each.reason, readable(values[each.index]), topic, *places[each.index]) for each in bad]


def readable(value: bytes | None) -> str | None:
    """A value as text that any client can show: what is not UTF-8 or is U+0000 becomes the replacement character."""
    if value is None:
        return None
    text = value[: 4 * ERROR_VALUE_CHARS_MAX].decode("utf-8", "replace")[:ERROR_VALUE_CHARS_MAX]
    return text.replace("\x00", "\ufffd")
