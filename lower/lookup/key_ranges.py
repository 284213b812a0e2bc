"""Which keys of a constraint rows can have that are seen under some conditions.  Pure.

Promises: a row of whose key some value is another than these keys have is seen by nobody who asks the conditions, and
neither is one that has no key, since NULLs are in it.  So what is said is all keys wherever that is not certain: for
what is no comparison with a value, and of values that have no code (:mod:`collection.ordered_keys`) in the order in
which queries compare them (numbers beside floats, times of day, whatever is written in another type).

A condition becomes *boxes*: of each column of the key an interval of codes, any of which a row may be in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import NamedTuple

import pyarrow as pa

from collection.ordered_keys import Bounds, after, bounds_of, codes, integer_code, key_of
from lower.lookup.among import AMONG, as_list
from lower.lookup.asked import PARAMETERS, key_value
from lower.lookup.portable import Form
from values.types import SqlType, arrow_type

BOXES_MAX = 4_000
"""Of one condition: as many single keys as a commit may name (``adapter.execute.inserter.POINTS_MAX``).  Of more it is
from the least to the greatest."""

RANGES_MAX = 64
"""Ranges of more than one key that one statement says of one table.  Everybody's fold compares each with each key that
was written since it was read, some 0.15 µs: with a thousand such writes (a second of the busiest table, and most read
some milliseconds before they commit) 64 are 10 ms."""

DIGITS_MAX = 100
"""Before the point or behind it, of a number that a key is compared with: no column has as many."""

_FLIPPED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


class Interval(NamedTuple):
    """Codes ``[lower, upper)``; ``None`` is unbounded.  ``one``: it is a single value's."""

    lower: bytes | None
    upper: bytes | None
    one: bool = False


Box = Mapping[int, Interval]
"""By the places of columns in the key; a column that is not there may have any value, or none."""

ALL: Box = {}


class Key(NamedTuple):
    """Of a constraint: its id, of its columns in their order the types and the places in the forms of conditions, and
    whether none of them has a NULL in any row."""

    owner: str
    kinds: tuple[SqlType, ...]
    places: tuple[int, ...]
    certain: bool


class Ranges(NamedTuple):
    """Keys, apart and in their order.  ``narrow`` is the more, the less of the keys they are: by how many columns are
    fixed in each, and by how many sides are bounded behind these."""

    bounds: tuple[Bounds, ...]
    narrow: tuple[int, int]


def ranges_of(key: Key, conditions: Sequence[Form], params: Sequence[object | None]) -> Ranges | None:
    """The keys of rows of which all ``conditions`` are true; ``None`` for all rows, those without a key among them."""
    boxes = _Conditions(key, params).all_of(conditions)
    if not key.certain and any(len(box) < len(key.kinds) for box in boxes):
        return None
    found, narrow = [], (len(key.kinds), 2)
    for box in boxes:
        bounds, how = _keys_in(key, box)
        found.append(bounds)
        narrow = min(narrow, how)
    if narrow == (0, 0):
        return None
    return Ranges(apart(found), narrow)


def apart(bounds: Sequence[Bounds]) -> tuple[Bounds, ...]:
    """The same keys, ranges that touch as one: from the least to the greatest where too many are of several keys."""
    found: list[Bounds] = []
    for lower, upper in sorted(bounds):
        if found and lower <= found[-1][1]:
            found[-1] = found[-1][0], max(upper, found[-1][1])
        else:
            found.append((lower, upper))
    if sum(upper != lower + b"\0" for lower, upper in found) > RANGES_MAX:
        return ((found[0][0], found[-1][1]),)
    return tuple(found)


def _keys_in(key: Key, box: Box) -> tuple[Bounds, tuple[int, int]]:
    """The keys of rows in ``box``."""
    prefix = b""
    for place in range(len(key.kinds)):
        found = box.get(place, Interval(None, None))
        if not found.one:
            lower = prefix + (found.lower or b"")
            upper = after(prefix) if found.upper is None else prefix + found.upper
            sides = (found.lower is not None) + (found.upper is not None)
            return bounds_of(key.owner, lower, upper), (place, sides)
        assert found.lower is not None, "a single value has a code"
        prefix += found.lower
    whole = key_of(key.owner, prefix)
    return (whole, whole + b"\0"), (len(key.kinds), 2)


class _Conditions:
    """What conditions say of the columns of ``key``."""

    def __init__(self, key: Key, params: Sequence[object | None]) -> None:
        self._key, self._params = key, params
        self._column = {place: at for at, place in enumerate(key.places)}

    def all_of(self, conditions: Sequence[Form]) -> list[Box]:
        boxes: list[Box] = [ALL]
        for each in conditions:
            boxes = _both(boxes, self._boxes(each))
        return boxes

    def _boxes(self, form: Form) -> list[Box]:
        """The boxes in which a row is of which ``form`` is true."""
        word = form[0]
        if word == "and":
            return self.all_of(form[1:])
        if word == "or":
            return _bounded([box for each in form[1:] for box in self._boxes(each)])
        if word == AMONG:
            return self._boxes(as_list(form, self._params))
        if word == "in":
            return _bounded([box for each in form[2:] for box in self._compared("=", form[1], each)])
        if word in _FLIPPED:
            left, right = form[1], form[2]
            if left[0] == "col":
                return self._compared(word, left, right)
            return self._compared(_FLIPPED[word], right, left)
        return [ALL]

    def _compared(self, sign: str, column: Form, value: Form) -> list[Box]:
        at = self._column.get(column[1]) if column[0] == "col" else None
        if at is None or value[0] not in ("lit", *PARAMETERS):
            return [ALL]
        given = key_value(value, self._params)
        if given is None:
            return []  # what is compared with NULL is true of no row
        found = coded(self._key.kinds[at], given)
        if found is None:
            return [ALL]
        least, most = found
        match sign:
            case "=":
                interval = Interval(least, after(most), least == most)
            case ">" if least == most:
                interval = Interval(after(least), None)
            case ">" | ">=":
                interval = Interval(least, None)
            case "<" if least == most:
                interval = Interval(None, least)
            case _:
                interval = Interval(None, after(most))
        return [{at: interval}]


def coded(kind: SqlType, value: object) -> tuple[bytes, bytes] | None:
    """The codes of the values of ``kind`` next to ``value`` on both sides, which are one where it is of that type;
    ``None`` where its place among them is not certain."""
    arrow = arrow_type(kind)
    if pa.types.is_decimal(arrow) or (pa.types.is_integer(arrow) and kind.name in ("int2", "int4", "int8")):
        exact = type(value) is int or (isinstance(value, Decimal) and value.is_finite())
        if not exact or (isinstance(value, Decimal) and max(value.adjusted(), -value.as_tuple().exponent) > DIGITS_MAX):
            return None
        numerator, denominator = value.as_integer_ratio()
        numerator *= 10 ** (arrow.scale if pa.types.is_decimal(arrow) else 0)
        return integer_code(numerator // denominator), integer_code(-(-numerator // denominator))
    if not _is_of(kind, arrow, value):
        return None
    try:
        [code] = codes(kind, pa.chunked_array([pa.array([value], arrow)]))
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, ValueError):
        return None
    return (code, code)


def _is_of(kind: SqlType, arrow: pa.DataType, value: object) -> bool:
    """Whether ``value`` is as rows have those of ``kind``, which queries compare in the order of their codes."""
    if pa.types.is_timestamp(arrow):
        return isinstance(value, datetime) and (value.tzinfo is None) == (arrow.tz is None)
    if pa.types.is_date32(arrow):
        return type(value) is date
    wanted = {"text": str, "varchar": str, "uuid": str, "bytea": bytes, "bool": bool}.get(kind.name)
    return wanted is not None and type(value) is wanted


def _both(some: list[Box], others: list[Box]) -> list[Box]:
    """Where a row is that is in one of ``some`` and in one of ``others``."""
    if len(some) * len(others) > BOXES_MAX:
        if len(some) >= len(others):
            some = [_around(some)]
        if len(some) * len(others) > BOXES_MAX:
            others = [_around(others)]
    return [box for one in some for other in others if (box := _within(one, other)) is not None]


def _within(one: Box, other: Box) -> Box | None:
    found = dict(one)
    for at, interval in other.items():
        before = found.get(at)
        if before is not None:
            lowers = [each for each in (before.lower, interval.lower) if each is not None]
            uppers = [each for each in (before.upper, interval.upper) if each is not None]
            lower, upper = max(lowers, default=None), min(uppers, default=None)
            if lower is not None and upper is not None and lower >= upper:
                return None
            interval = Interval(lower, upper, before.one or interval.one)
        found[at] = interval
    return found


def _bounded(boxes: list[Box]) -> list[Box]:
    if any(not box for box in boxes):
        return [ALL]
    return boxes if len(boxes) <= BOXES_MAX else [_around(boxes)]


def _around(boxes: Sequence[Box]) -> Box:
    """A box with all of ``boxes`` in it."""
    found = {}
    for at in set.intersection(*(set(box) for box in boxes)):
        lowers, uppers = [box[at].lower for box in boxes], [box[at].upper for box in boxes]
        lower = None if None in lowers else min(lowers)
        upper = None if None in uppers else max(uppers)
        found[at] = Interval(lower, upper)
    return found
