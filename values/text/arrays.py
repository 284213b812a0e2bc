"""Arrays of one dimension in Postgres's text form, ``{1,NULL,"a b"}``, element by element.  Pure."""

from __future__ import annotations

from collections.abc import Iterable

from values.bad_text import BadText

_SPACE = " \t\n\r\v\f"
_QUOTED = frozenset('"\\{},' + _SPACE)


def read_array(text: str) -> list[str | None]:
    """The texts of the elements, ``None`` for NULL.

    Raises ``BadText`` 22P02 where it is no array, 0A000 where it has more dimensions or its own lower bound.
    """
    value = text.strip(_SPACE)
    if value.startswith("["):
        raise BadText("arrays with a lower bound of their own are not supported", "0A000")
    if not value.startswith("{") or not value.endswith("}") or len(value) < 2:
        raise _malformed(text)
    body = value[1:-1]
    if not body.strip(_SPACE):
        return []
    found: list[str | None] = []
    at = 0
    while True:
        element, at = _element(body, at, text)
        found.append(element)
        if at == len(body):
            return found
        if body[at] != ",":
            raise _malformed(text)
        at += 1


def _element(body: str, at: int, whole: str) -> tuple[str | None, int]:
    while at < len(body) and body[at] in _SPACE:
        at += 1
    if body[at : at + 1] == '"':
        return _quoted(body, at + 1, whole)
    found, kept = [], 0
    while at < len(body) and body[at] != ",":
        char = body[at]
        if char in "{}":
            if char == "{" and not found:
                raise BadText("arrays of more than one dimension are not supported", "0A000")
            raise _malformed(whole)
        if char == '"':
            raise _malformed(whole)
        if char == "\\":
            at += 1
            if at == len(body):
                raise _malformed(whole)
            char = body[at]
            kept = len(found) + 1
        elif char not in _SPACE:
            kept = len(found) + 1
        found.append(char)
        at += 1
    element = "".join(found[:kept])
    if not element:
        raise _malformed(whole)
    return (None if element.upper() == "NULL" else element), at


def _quoted(body: str, at: int, whole: str) -> tuple[str, int]:
    found = []
    while True:
        if at >= len(body):
            raise _malformed(whole)
        char = body[at]
        if char == '"':
            break
        if char == "\\":
            at += 1
            if at >= len(body):
                raise _malformed(whole)
            char = body[at]
        found.append(char)
        at += 1
    at += 1
    while at < len(body) and body[at] in _SPACE:
        at += 1
    return "".join(found), at


def _malformed(text: str) -> BadText:
    return BadText(f'malformed array literal: "{text[:200]}"')


def show_array(elements: Iterable[str | None]) -> str:
    """The array of these texts."""
    return "{" + ",".join("NULL" if each is None else _show(each) for each in elements) + "}"


def _show(text: str) -> str:
    if text and text.upper() != "NULL" and not _QUOTED.intersection(text):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
