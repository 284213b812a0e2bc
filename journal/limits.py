"""How large a record of a journal may be, on whatever transport.  Pure."""

from __future__ import annotations

from journal.errors import Rejected

RECORD_BYTES_MAX = 8 * 1024 * 1024
"""``max.message.bytes`` of our topics; a client must allow at least as much."""

VALUE_BYTES_MAX = RECORD_BYTES_MAX - 64 * 1024
"""Less room for the header of a batch."""


def too_large(size: int, size_max: int) -> Rejected:
    """The refusal of a record that no topic of ours would take."""
    return Rejected(
        f"record of {size} bytes is too large",
        sqlstate="54000",
        detail=f"the limit is {size_max} bytes",
        hint="split it into smaller statements",
    )
