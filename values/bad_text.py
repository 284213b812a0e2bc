"""What the readers of text forms in this package raise: the text is not a value of the type.  Pure."""

from __future__ import annotations


class BadText(ValueError):
    """``sqlstate`` is Postgres's for it: 22P02 (not of the form), 22003, 22008 and 22015 (out of range), 0A000…"""

    def __init__(self, message: str, sqlstate: str = "22P02") -> None:
        super().__init__(message)
        self.message = message
        self.sqlstate = sqlstate


SHOWN_CHARS_MAX = 200
"""Of a value in a message: enough to find it."""


def cut_short(text: str) -> str:
    """``text`` as a message has it."""
    return text if len(text) <= SHOWN_CHARS_MAX else text[:SHOWN_CHARS_MAX] + "…"


def bad_text(type_name: str, text: str) -> BadText:
    shown = text[:SHOWN_CHARS_MAX].replace("\0", "\\0")  # which no text of ours may hold
    return BadText(f'invalid input syntax for type {type_name}: "{shown}"')
