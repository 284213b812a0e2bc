"""What is said of a statement: errors and notices as the fields of their responses, and its columns."""

from __future__ import annotations

from functools import lru_cache

from adapter.encode.values import row_fields
from adapter.state.interfaces import Notice, OutputColumn
from adapter.wire import messages
from journal.errors import TidemarkError, internal

_RANK = {"DEBUG": 0, "LOG": 1, "NOTICE": 2, "WARNING": 3, "ERROR": 4, "INFO": 5}
_ABOUT = {"schema": "s", "table": "t", "column": "c", "constraint": "n"}
"""The fields that name what an error is about."""


def error_message(error: BaseException, severity: str = "ERROR", statement_at: int = 0) -> bytes:
    """ErrorResponse for ``error``; ``statement_at`` is where its statement starts in the client's query string.

    Anything that is not a ``TidemarkError`` is our bug: the client learns XX000 and under which reference the adapter's
    log has its class, text and traceback.
    """
    if not isinstance(error, TidemarkError):
        error = internal(error, "the adapter")
    fields = {"S": severity, "V": severity, "C": error.sqlstate, "M": error.message}
    if error.detail:
        fields["D"] = error.detail
    if error.hint:
        fields["H"] = error.hint
    if error.position is not None:
        fields["P"] = str(error.position + statement_at)
    if error.context:
        fields["W"] = error.context
    fields |= {_ABOUT[what]: name for what, name in error.about.items()}
    return messages.error_response(fields)


def notice_message(notice: Notice, least: str) -> bytes:
    """NoticeResponse, or nothing where ``client_min_messages`` (``least``) is above it.  INFO is always sent."""
    floor = "DEBUG" if least.startswith("debug") else least.upper()
    if _RANK.get(notice.severity, 2) < _RANK[floor]:
        return b""
    fields = {"S": notice.severity, "V": notice.severity, "C": notice.sqlstate, "M": notice.message}
    if notice.detail:
        fields["D"] = notice.detail
    if notice.hint:
        fields["H"] = notice.hint
    return messages.notice_response(fields)


@lru_cache(maxsize=512)  # as many as encoders are kept (adapter/encode/values.py): a statement's are the same each time
def row_description(columns: tuple[OutputColumn, ...], formats: tuple[int, ...]) -> bytes:
    """RowDescription."""
    return messages.row_description(row_fields(columns, formats))
