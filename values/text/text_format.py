"""``format(template, values…)`` of Postgres, over values that are texts already.  Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from values.bad_text import BadText
from values.limits import check_bytes
from values.text.keywords import quoted_identifier

_SPECIFIER = re.compile(r"%(?:(%)|(?:(\d+)\$)?(-*)(?:(\*)(?:(\d+)\$)?|(\d+))?(.)?)", re.DOTALL)


def quoted_literal(text: str) -> str:
    """``quote_literal``: with an ``E`` before it where there is a backslash."""
    head = "E" if "\\" in text else ""
    return f"{head}'" + text.replace("'", "''").replace("\\", "\\\\") + "'"


def formatted(template: str, values: Sequence[str | None]) -> str:
    """``%s``, ``%I`` and ``%L`` with widths and positions.  Raises ``BadText`` 22023 and 22004, 54000 for too much."""
    used = size = 0

    def value(position: str | None) -> str | None:
        nonlocal used
        used = int(position) if position is not None else used + 1
        if used == 0:
            raise BadText("format specifies argument 0, but arguments are numbered from 1", "22023")
        if used > len(values):
            raise BadText("too few arguments for format()", "22023")
        return values[used - 1]

    def shown(match: re.Match) -> str:
        percent, position, minus, star, star_position, width_text, kind = match.groups()
        if percent:
            return "%"
        width = int(width_text or 0)
        if star:
            text = value(star_position)
            try:
                width = int(text) if text is not None else 0
            except ValueError:
                raise BadText(f'invalid input syntax for type integer: "{text}"') from None
        if kind is None:
            raise BadText("unterminated format() type specifier", "22023")
        if kind not in "sIL":
            raise BadText(f'unrecognized format() type specifier "{kind}"', "22023")
        given = value(position)
        if kind == "I" and given is None:
            raise BadText("null values cannot be formatted as an SQL identifier", "22004")
        if kind == "s":
            text = given or ""
        elif kind == "I":
            text = quoted_identifier(given)
        else:
            text = "NULL" if given is None else quoted_literal(given)
        left = bool(minus) or width < 0
        nonlocal size
        size += max(len(text), abs(width))
        check_bytes(size)
        return text.ljust(abs(width)) if left else text.rjust(width)

    return _SPECIFIER.sub(shown, template)
