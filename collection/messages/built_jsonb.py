"""``jsonb`` that is built of a message's values, and how much of it there may be.  Pure."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

from collection.rows import ROW_BYTES_MAX
from values.bad_text import BadText
from values.json_values import BadValue, Number
from values.text.jsonb import DEPTH_MAX, of_json, too_deep


def jsonb_of(value: object) -> str:
    """A JSON value, whose numbers are :class:`~values.json_values.Number`, as a row keeps it.  Raises ``BadValue``."""
    if _left_of(value, ROW_BYTES_MAX) < 0:
        raise too_long()
    try:
        found = of_json(value)
    except BadText as error:
        raise BadValue(error.message) from None
    if too_deep(found):
        raise BadValue(f"jsonb nested deeper than {DEPTH_MAX}")
    return found


def too_long() -> BadValue:
    return BadValue(f"as jsonb it has more than {ROW_BYTES_MAX} bytes")


def shown(value: object) -> object:
    """Python's of an SQL type as JSON.  Raises ``BadValue`` for what is not JSON."""
    if isinstance(value, bool):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise BadValue(f"{value} is not JSON")
        return Number(repr(value))
    if isinstance(value, (int, Decimal)):
        return Number(format(value, "f") if isinstance(value, Decimal) else str(value))
    if isinstance(value, bytes):
        return "\\x" + value.hex()
    if isinstance(value, (dt.date, dt.datetime)):
        return value.isoformat()
    return value


def _left_of(value: object, left: int) -> int:
    """What is left of ``left`` characters once ``value`` is written; below 0 as soon as it is known to be too long.

    Of a small message it may be gigabytes: the names of a schema's fields stand in each of its records.
    """
    if isinstance(value, str):
        return left - len(value) - 2
    if isinstance(value, list):
        for each in value:
            left = _left_of(each, left - 2)
            if left < 0:
                break
    elif isinstance(value, dict):
        for name, each in value.items():
            left = _left_of(each, left - len(name) - 6)
            if left < 0:
                break
    return left - 4
