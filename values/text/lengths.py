"""``varchar(n)`` and ``char(n)``: what fits into them, and how.  Pure.

A ``char(n)`` is kept without the blanks at its end; whoever shows it puts them back.
"""

from __future__ import annotations

from values.bad_text import BadText
from values.sql_type import SqlType


def fitted(text: str, sql_type: SqlType) -> str:
    """``text`` as a column of ``sql_type`` keeps it.  Raises ``BadText`` 22001 where more than blanks is too much."""
    length = sql_type.precision
    if length is not None and len(text) > length:
        if text[length:].strip(" "):
            shown = "character" if sql_type.name == "bpchar" else "character varying"
            raise BadText(f"value too long for type {shown}({length})", "22001")
        text = text[:length]
    return text.rstrip(" ") if sql_type.name == "bpchar" else text


def cut(text: str, sql_type: SqlType) -> str:
    """``text`` cast to ``sql_type``: what is too long is cut off without a word, as SQL wants it."""
    text = text[: sql_type.precision]
    return text.rstrip(" ") if sql_type.name == "bpchar" else text
