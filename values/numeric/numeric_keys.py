"""Free numerics where an engine takes the least, the greatest or the equal ones of texts.  Pure."""

from __future__ import annotations

from values.numeric.numerics import key


def keyed(text: str) -> str:
    """The key with the number behind it: the greatest of such texts is that of the greatest number."""
    return f"{key(text)} {text}"


def of_keyed(found: str) -> str:
    """The number that :func:`keyed` was given."""
    return found[found.index(" ") + 1 :]


def unless(text: str, other: str) -> str | None:
    """The number, where its key is not ``other``."""
    return None if key(text) == other else text


def keys(texts: list[str | None]) -> list[str | None]:
    """The key of each number."""
    return [None if text is None else key(text) for text in texts]


def without(texts: list[str | None], gone: str) -> list[str | None]:
    """The numbers that are not ``gone``."""
    found = key(gone)
    return [text for text in texts if text is None or key(text) != found]
