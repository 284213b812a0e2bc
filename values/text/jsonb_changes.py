"""What is made of ``jsonb`` values, given and taken as text of Postgres's form (:mod:`values.text.jsonb`).  Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal

from values.bad_text import BadText
from values.limits import check_bytes
from values.text.jsonb import as_string
from values.text.jsonb import load as _load
from values.text.jsonb import show as _show

_CREATE, _REPLACE, _BEFORE, _AFTER, _DELETE = range(5)
_ADDS = (_CREATE, _BEFORE, _AFTER)
_NUMBER = re.compile(r"\s*[+-]?[0-9]+")


def joined(left: str, right: str) -> str:
    """``left || right``: of two objects the keys of both, of all else the items of both."""
    check_bytes(len(left) + len(right))
    a, b = _load(left), _load(right)
    if isinstance(a, dict) and isinstance(b, dict):
        return _show(a | b)
    return _show([*(a if isinstance(a, list) else [a]), *(b if isinstance(b, list) else [b])])


def _container(text: str, told: str = "cannot delete from scalar") -> dict | list:
    value = _load(text)
    if not isinstance(value, (dict, list)):
        raise BadText(told, "22023")
    return value


def without(text: str, key: str) -> str:
    """``text - key``."""
    return without_all(text, [key])


def without_all(text: str, keys: Sequence[str | None]) -> str:
    """``text - keys``."""
    value, gone = _container(text), set(keys) - {None}
    if isinstance(value, dict):
        return _show({key: each for key, each in value.items() if key not in gone})
    return _show([each for each in value if not (type(each) is str and each in gone)])


def without_item(text: str, index: int) -> str:
    """``text - index``; a negative one counts from the end."""
    value = _container(text)
    if isinstance(value, dict):
        raise BadText("cannot delete from object using integer index", "22023")
    if -len(value) <= index < len(value):
        del value[index]
    return _show(value)


def without_path(text: str, path: Sequence[str | None]) -> str:
    """``text #- path``."""
    value = _container(text, "cannot delete path in scalar")
    return _show(_changed(value, path, 0, None, _DELETE)) if value and path else text


def with_set(text: str, path: Sequence[str | None], new: str, create: bool) -> str:
    """``jsonb_set(text, path, new, create)``."""
    check_bytes(len(text) + len(new))
    value = _container(text, "cannot set path in scalar")
    if not path or (not value and not create):
        return text
    return _show(_changed(value, path, 0, _load(new), _CREATE if create else _REPLACE))


def with_inserted(text: str, path: Sequence[str | None], new: str, after: bool) -> str:
    """``jsonb_insert(text, path, new, after)``."""
    check_bytes(len(text) + len(new))
    value = _container(text, "cannot set path in scalar")
    return _show(_changed(value, path, 0, _load(new), _AFTER if after else _BEFORE)) if path else text


def _changed(value: object, path: Sequence[str | None], level: int, new: object, how: int) -> object:
    if not isinstance(value, (dict, list)):
        return value
    step, last = path[level], level == len(path) - 1
    if step is None:
        raise BadText(f"path element at position {level + 1} is null", "22004")
    if isinstance(value, list):
        return _list_changed(value, path, level, new, how)
    made = dict(value)
    if step not in made:
        return made | {step: new} if last and how in _ADDS else made
    if not last:
        made[step] = _changed(made[step], path, level + 1, new, how)
    elif how in (_BEFORE, _AFTER):
        raise BadText("cannot replace existing key", "22023")
    elif how == _DELETE:
        del made[step]
    else:
        made[step] = new
    return made


def _place(step: str, level: int) -> int:
    """What a step of a path counts items by."""
    number = _counts(step)
    if number is None:
        raise BadText(f'path element at position {level + 1} is not an integer: "{step[:100]}"')
    return number


def _counts(step: str) -> int | None:
    """The number that a step is, where it is an int4's."""
    number = int(step[:40]) if _NUMBER.fullmatch(step) else None
    return number if number is not None and -(1 << 31) <= number < 1 << 31 else None


def _list_changed(value: list, path: Sequence[str | None], level: int, new: object, how: int) -> list:
    number, last = _place(path[level], level), level == len(path) - 1
    at = number + len(value) if number < 0 else number
    if not last:
        return [_changed(each, path, level + 1, new, how) if i == at else each for i, each in enumerate(value)]
    if at < 0:
        return [new, *value] if how in _ADDS else value
    if at >= len(value):
        return [*value, new] if how in _ADDS else value
    instead = {_BEFORE: [new, value[at]], _AFTER: [value[at], new], _DELETE: []}.get(how, [new])
    return [*value[:at], *instead, *value[at + 1 :]]


def put(text: str, path: Sequence[str | None], new: str) -> str:
    """``text`` with ``new`` at ``path``, as ``j['a'][0] = new`` sets it: what of the path is not there is made."""
    if None in path:
        raise BadText("jsonb subscript in assignment must not be null", "22004")
    check_bytes(len(text) + len(new))
    return _show(_put(_load(text), path, 0, _load(new)))


def _put(value: object, path: Sequence[str], level: int, new: object) -> object:
    if level == len(path):
        return new
    if not isinstance(value, (dict, list)):
        raise BadText("cannot replace existing key", "22023")  # the path assumes that it is none of one value
    step = path[level]
    if isinstance(value, dict):
        inner = _put(value[step], path, level + 1, new) if step in value else _made(path, level + 1, new)
        return value | {step: inner}
    number = _place(step, level)
    at = number + len(value) if number < 0 else number
    if at < 0:
        raise BadText(f"path element at position {level + 1} is out of range: {number}", "22023")
    inner = _put(value[at], path, level + 1, new) if at < len(value) else _made(path, level + 1, new)
    return [*value[:at], *_nulls(at - len(value)), inner, *value[at + 1 :]]


def _made(path: Sequence[str], level: int, new: object) -> object:
    """``new`` in as many containers as there are steps from ``level`` on: a list where one is a number."""
    for step in reversed(path[level:]):
        number = _counts(step)
        new = {step: new} if number is None else [*_nulls(number), new]
    return new


def _nulls(count: int) -> list[None]:
    check_bytes(4 * count)
    return [None] * count


def without_nulls(text: str) -> str:
    """``jsonb_strip_nulls``: objects lose their fields that are null."""

    def stripped(value: object) -> object:
        if isinstance(value, dict):
            return {key: stripped(each) for key, each in value.items() if each is not None}
        return [stripped(each) for each in value] if isinstance(value, list) else value

    return _show(stripped(_load(text)))


def pretty(text: str) -> str:
    """``jsonb_pretty``."""
    made: list[str] = []
    size = 0

    def put(piece: str) -> None:
        nonlocal size
        size += len(piece)
        check_bytes(size)
        made.append(piece)

    def show(value: object, depth: int) -> None:
        if not isinstance(value, (dict, list)):
            put(_show(value))
            return
        put("{" if isinstance(value, dict) else "[")
        items = value.items() if isinstance(value, dict) else ((None, each) for each in value)
        for n, (key, each) in enumerate(items):
            put(("," if n else "") + "\n" + "    " * (depth + 1) + ("" if key is None else f"{as_string(key)}: "))
            show(each, depth + 1)
        put("\n" + "    " * depth + ("}" if isinstance(value, dict) else "]"))

    show(_load(text), 0)
    return "".join(made)


def of_pairs(items: Sequence[str | None]) -> str:
    """``jsonb_object('{key, value, …}')``."""
    if len(items) % 2:
        raise BadText("array must have even number of elements", "2202E")
    return of_keys(items[::2], items[1::2])


def of_keys(keys: Sequence[str | None], values: Sequence[str | None]) -> str:
    """``jsonb_object(keys, values)``."""
    if len(keys) != len(values):
        raise BadText("mismatched array dimensions", "2202E")
    if None in keys:
        raise BadText("null value not allowed for object key", "22004")
    return _show(dict(zip(keys, values, strict=True)))


def built_list(items: Sequence[str | None]) -> str:
    """Of JSON texts, of which NULL is JSON's null."""
    check_bytes(sum(len(each or "null") + 2 for each in items))
    return f"[{', '.join('null' if each is None else each for each in items)}]"


def built_object(items: Sequence[str | None]) -> str:
    """Of keys as they are and values that are JSON texts, in turn."""
    if len(items) % 2:
        raise BadText("argument list must have even number of elements", "22023")
    check_bytes(sum(len(each or "null") + 4 for each in items))
    for place, key in enumerate(items[::2]):
        if key is None:
            raise BadText(f"argument {2 * place + 1}: key must not be null", "22023")
    return _show({key: None if each is None else _load(each) for key, each in zip(*[iter(items)] * 2, strict=True)})


def built_of_pairs(pairs: Sequence[str]) -> str:
    """The object of JSON lists of a key and its value each; of a key that comes again the last counts."""
    check_bytes(sum(map(len, pairs)))
    found = dict(_load(each) for each in pairs)
    if None in found:
        raise BadText("field name must not be null", "22023")
    return _show(found)


def built_list_of_texts(items: Sequence[str | None]) -> str:
    """Of texts, which become strings."""
    return built_list([None if each is None else as_string(each) for each in items])


def built_object_of_texts(items: Sequence[str | None]) -> str:
    """Of keys and texts in turn."""
    quoted = [each if n % 2 == 0 or each is None else as_string(each) for n, each in enumerate(items)]
    return built_object(quoted)


def of_number(text: str) -> str:
    """A number's JSON: a string where JSON has no such number, and no negative zero as numerics have none."""
    if text == "-0":
        return "0"
    return text if text[-1:].isdigit() and "e" not in text else as_string(text) if text[-1:].isalpha() else _plain(text)


def _plain(text: str) -> str:
    shown = format(Decimal(text), "f")
    return shown.lstrip("-") if not Decimal(text) else shown


def items(text: str) -> list[str]:
    """``jsonb_array_elements``."""
    return [_show(each) for each in _items(text)]


def items_text(text: str) -> list[str | None]:
    """``jsonb_array_elements_text``."""
    return [None if each is None else each if type(each) is str else _show(each) for each in _items(text)]


def _items(text: str) -> list:
    value = _load(text)
    if not isinstance(value, list):
        raise BadText(f"cannot extract elements from {'an object' if isinstance(value, dict) else 'a scalar'}", "22023")
    return value


def keys(text: str) -> list[str]:
    """``jsonb_object_keys``."""
    value = _load(text)
    if not isinstance(value, dict):
        raise BadText(
            f"cannot call jsonb_object_keys on {'an array' if isinstance(value, list) else 'a scalar'}", "22023"
        )
    return list(value)
