"""What is said of a row that COPY FROM refuses: Postgres's words, and where it stands (CONTEXT).  Pure."""

from __future__ import annotations

from journal.errors import InvalidUsage

SHOWN_BYTES_MAX = 100
"""Of a value or a line in CONTEXT, as Postgres has it (``MAX_COPY_DATA_DISPLAY``)."""


def bad_format(message: str, hint: str | None = None) -> InvalidUsage:
    """22P04."""
    return InvalidUsage(message, sqlstate="22P04", hint=hint)


def shown(data: bytes) -> str:
    if len(data) <= SHOWN_BYTES_MAX:
        return data.decode("utf-8", "replace")
    return data[:SHOWN_BYTES_MAX].decode("utf-8", "ignore") + "..."


class Places:
    """Says where in ``table``'s rows something is wrong."""

    def __init__(self, table: str) -> None:
        self._table = table

    def line(self, number: int, line: bytes | None = None) -> str:
        found = f"COPY {self._table}, line {number}"
        return found if line is None else f'{found}: "{shown(line)}"'

    def column(self, number: int, name: str) -> str:
        return f"{self.line(number)}, column {name}"

    def value(self, number: int, name: str, value: str | None) -> str:
        told = "null input" if value is None else f'"{shown(value.encode())}"'
        return f"{self.column(number, name)}: {told}"


def placed(error: InvalidUsage, context: str) -> InvalidUsage:
    error.context = error.context or context
    return error
