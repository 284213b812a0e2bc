"""What ``jsonb`` is told apart and sorted by: numbers by their value, so that ``1`` and ``1.0`` are one.  Pure."""

from __future__ import annotations

from values.numeric import numerics
from values.text.jsonb import is_number, load, show

_NULL, _STRING, _NUMBER, _BOOL, _ARRAY, _OBJECT = "123456"
_END = "!"
"""Behind what is of no known length: less than all that may go on."""


def key(text: str) -> str:
    """ASCII whose order by bytes is that of Postgres's btree of jsonb (in collation C); equal values have equal keys.

    An array of fewer elements is less than one of more, and so of objects; a value that is neither stands among the
    arrays of one element, before them.
    """
    value = load(text)
    return _key(value) if isinstance(value, list | dict) else f"{_ARRAY}{1:08}0{_key(value)}"


def shortest(text: str) -> str:
    """The shortest of all texts of that value: the same for all that are equal."""
    return show(_shortened(load(text))) if "." in text else text


def shortest_number(text: str) -> str:
    """The same of a numeric's."""
    return text.rstrip("0").removesuffix(".") if "." in text else text


def _shortened(value: object) -> object:
    if isinstance(value, list):
        return list(map(_shortened, value))
    if isinstance(value, dict):
        return {name: _shortened(each) for name, each in value.items()}
    return type(value)(shortest_number(value)) if is_number(value) else value


def unless(text: str, other: str) -> str | None:
    """What was given, where its key is not ``other``."""
    return None if key(text) == other else text


def _key(value: object) -> str:
    if value is None:
        return _NULL
    if isinstance(value, bool):
        return _BOOL + ("1" if value else "0")
    if isinstance(value, list):
        return f"{_ARRAY}{len(value):08}1" + "".join(map(_key, value))
    if isinstance(value, dict):  # in the order in which they are shown
        return f"{_OBJECT}{len(value):08}" + "".join(f"{_string(name)}{_key(each)}" for name, each in value.items())
    return f"{_NUMBER}{numerics.key(str(value))}{_END}" if is_number(value) else _STRING + _string(value)


def _string(value: str) -> str:
    return value.encode().hex() + _END


def keys(texts: list[str | None]) -> list[str | None]:
    """The key of each."""
    return [None if text is None else key(text) for text in texts]


def without(texts: list[str | None], gone: str) -> list[str | None]:
    """Those that are not equal to ``gone``."""
    found = key(gone)
    return [text for text in texts if text is None or key(text) != found]


def distinct(texts: list[str | None], downwards: bool, nulls_first: bool) -> list[str | None]:
    """One of each of those that are equal, sorted.  Of those that are written differently the longest is kept, and of
    these the greatest text, so that it does not matter in which order they come."""
    kept: dict[str, str] = {}
    for text in texts:
        if text is not None:
            found = key(text)
            kept[found] = max(kept.get(found, text), text, key=lambda each: (len(each), each))
    made: list[str | None] = [kept[found] for found in sorted(kept, reverse=downwards)]
    none: list[str | None] = [None] if None in texts else []
    return none + made if nulls_first else made + none
