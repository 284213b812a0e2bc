"""A line of CSV as its fields, as Postgres's COPY reads them.  Pure."""

from __future__ import annotations

from values.json_values import BadValue


def fields_in(text: str, delimiter: str) -> list[str | None]:
    """The fields of ``text``, which is one record: with or without the end of its line.

    An empty field without quotes is NULL; quotes may begin and end anywhere in a field, and a quote in quotes is
    written twice.  Raises ``BadValue``.
    """
    text = text.removesuffix("\n").removesuffix("\r")
    if '"' not in text:
        if "\n" in text or "\r" in text:
            raise BadValue("more than one line")
        return [field or None for field in text.split(delimiter)]
    found: list[str | None] = []
    field: list[str] = []
    was_quoted = quoted = False
    at, end = 0, len(text)
    while at < end:
        char = text[at]
        at += 1
        if char == '"':
            if quoted and at < end and text[at] == '"':
                field.append('"')
                at += 1
                continue
            quoted, was_quoted = not quoted, True
        elif quoted:
            close = text.find('"', at)
            close = end if close < 0 else close
            field.append(text[at - 1 : close])
            at = close
        elif char == delimiter:
            found.append("".join(field) if field or was_quoted else None)
            field, was_quoted = [], False
        elif char in "\r\n":
            raise BadValue("more than one line")
        else:
            field.append(char)
    if quoted:
        raise BadValue("a quote is not closed")
    found.append("".join(field) if field or was_quoted else None)
    return found
