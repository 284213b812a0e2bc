"""Functions that no engine has as Postgres means them, in Python, so that Spark and DuckDB run the very same ones.

Promises: each is a function of its arguments alone; of NULL it gives NULL.  A value that it refuses is a ``ValueError``
whose text :func:`refusal` reads back out of whatever an engine makes of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps

from collection import jsonb, moments, numbers, zones
from collection.arrays import read_array, show_array
from collection.bad_text import BadText
from collection.clock import read_time, show_time
from collection.intervals import (
    Interval,
    divided,
    justified,
    justified_days,
    justified_hours,
    read_interval,
    show_interval,
    times,
)
from collection.keywords import quoted_identifier
from collection.limits import check_bytes
from collection.number_format import shown_float4, shown_float8, shown_int4, shown_number
from collection.scalars import (
    date_micros,
    moment_micros,
    read_bool,
    read_bytea,
    read_float4,
    read_float8,
    timestamp_micros,
)
from collection.text_format import formatted
from collection.types import SqlType
from collection.uuids import read_uuid

_TEXT, _INT4, _INT8, _FLOAT8, _BOOL = (SqlType(name) for name in ("text", "int4", "int8", "float8", "bool"))
_FLOAT4, _BYTEA = SqlType("float4"), SqlType("bytea")
_INTERVAL, _TEXTS, _MOMENTS = SqlType("interval"), SqlType("text[]"), SqlType("int8[]")


@dataclass(frozen=True)
class Own:
    """``arguments`` and ``result`` are types that engines have: what carries ours."""

    arguments: tuple[SqlType, ...]
    result: SqlType
    run: Callable


def _interval(value: object) -> Interval:
    """An interval from any of the forms that engines give one in: a dictionary, a row, a tuple."""
    return Interval(value["months"], value["days"], value["micros"])


def _own(result: SqlType, run: Callable, *arguments: SqlType) -> Own:
    @wraps(run)
    def strict(*values: object) -> object:
        if any(value is None for value in values):
            return None
        try:
            return run(*values)
        except BadText as error:
            raise ValueError(f"tidemark:{error.sqlstate}:{error.message}:") from None

    return Own(arguments, result, strict)


def _as_dict(value: Interval) -> dict[str, int]:
    return value._asdict()


def _join(texts: list[str | None], by: str, null: str | None) -> str:
    """The texts with ``by`` between them, ``null`` in place of a NULL; where that is none, NULLs are left out."""
    shown = [null if text is None else text for text in texts if text is not None or null is not None]
    check_bytes(sum(map(len, shown)) + len(by) * max(0, len(shown) - 1))
    return by.join(shown)


def _split(text: str, separator: str) -> list[str]:
    if not text:
        return []
    return text.split(separator) if separator else [text]


OWN: dict[str, Own] = {
    "tm_bool": _own(_BOOL, read_bool, _TEXT),
    "tm_float4": _own(_FLOAT4, read_float4, _TEXT),
    "tm_float8": _own(_FLOAT8, read_float8, _TEXT),
    "tm_bytea": _own(_BYTEA, read_bytea, _TEXT),
    "tm_date_micros": _own(_INT8, date_micros, _TEXT),
    "tm_timestamp_micros": _own(_INT8, timestamp_micros, _TEXT),
    "tm_moment_micros": _own(_INT8, moment_micros, _TEXT),
    "tm_uuid": _own(_TEXT, read_uuid, _TEXT),
    "tm_time": _own(_INT8, read_time, _TEXT),
    "tm_time_text": _own(_TEXT, show_time, _INT8),
    "tm_interval": _own(_INTERVAL, lambda text: _as_dict(read_interval(text)), _TEXT),
    "tm_interval_text": _own(_TEXT, lambda value: show_interval(_interval(value)), _INTERVAL),
    "tm_interval_times": _own(_INTERVAL, lambda value, n: _as_dict(times(_interval(value), n)), _INTERVAL, _FLOAT8),
    "tm_interval_divided": _own(_INTERVAL, lambda value, n: _as_dict(divided(_interval(value), n)), _INTERVAL, _FLOAT8),
    "tm_age": _own(_INTERVAL, lambda a, b: _as_dict(moments.age(a, b)), _INT8, _INT8),
    "tm_date_bin": _own(_INT8, lambda by, a, b: moments.binned(_interval(by), a, b), _INTERVAL, _INT8, _INT8),
    "tm_timestamp": _own(_INT8, moments.made_timestamp, *[_INT4] * 5, _FLOAT8),
    "tm_made_time": _own(_INT8, moments.made_time, _INT4, _INT4, _FLOAT8),
    "tm_made_interval": _own(
        _INTERVAL,
        lambda y, mo, w, d, h, mi, s: _as_dict(moments.made_interval(y, mo, w, d, h, mi, s)),
        *[_INT4] * 6,
        _FLOAT8,
    ),
    "tm_series": _own(_MOMENTS, lambda a, b, by: moments.stepped(a, b, _interval(by)), _INT8, _INT8, _INTERVAL),
    "tm_zone_text": _own(_TEXT, zones.moment_text, _INT8, _TEXT),
    "tm_zone_plus": _own(_INT8, lambda at, by, zone: zones.shifted(at, _interval(by), zone), _INT8, _INTERVAL, _TEXT),
    "tm_zone_age": _own(_INTERVAL, lambda a, b, zone: _as_dict(zones.age(a, b, zone)), _INT8, _INT8, _TEXT),
    "tm_zone_series": _own(
        _MOMENTS, lambda a, b, by, zone: zones.stepped(a, b, _interval(by), zone), _INT8, _INT8, _INTERVAL, _TEXT
    ),
    "tm_justify_hours": _own(_INTERVAL, lambda value: _as_dict(justified_hours(_interval(value))), _INTERVAL),
    "tm_justify_days": _own(_INTERVAL, lambda value: _as_dict(justified_days(_interval(value))), _INTERVAL),
    "tm_justify_interval": _own(_INTERVAL, lambda value: _as_dict(justified(_interval(value))), _INTERVAL),
    "tm_gcd4": _own(_INT4, lambda a, b: numbers.gcd(a, b, 4), _INT4, _INT4),
    "tm_gcd8": _own(_INT8, lambda a, b: numbers.gcd(a, b, 8), _INT8, _INT8),
    "tm_lcm4": _own(_INT4, lambda a, b: numbers.lcm(a, b, 4), _INT4, _INT4),
    "tm_lcm8": _own(_INT8, lambda a, b: numbers.lcm(a, b, 8), _INT8, _INT8),
    "tm_width_bucket": _own(_INT4, numbers.width_bucket, _FLOAT8, _FLOAT8, _FLOAT8, _INT4),
    "tm_width_bucket_exact": _own(_INT4, numbers.width_bucket_exact, _TEXT, _TEXT, _TEXT, _INT4),
    "tm_int4_shown": _own(_TEXT, shown_int4, _INT4, _TEXT),
    "tm_number_shown": _own(_TEXT, shown_number, _TEXT, _TEXT),
    "tm_float8_shown": _own(_TEXT, shown_float8, _FLOAT8, _TEXT),
    "tm_float4_shown": _own(_TEXT, shown_float4, _FLOAT8, _TEXT),
    "tm_quoted_identifier": _own(_TEXT, quoted_identifier, _TEXT),
    "tm_format": _own(_TEXT, formatted, _TEXT, _TEXTS),
    "tm_array_text": _own(_TEXT, show_array, _TEXTS),
    "tm_text_array": _own(_TEXTS, read_array, _TEXT),
    "tm_join": _own(_TEXT, lambda texts, by: _join(texts, by, None), _TEXTS, _TEXT),
    "tm_join_all": _own(_TEXT, _join, _TEXTS, _TEXT, _TEXT),
    "tm_split": _own(_TEXTS, _split, _TEXT, _TEXT),
    "tm_jsonb": _own(_TEXT, jsonb.read_jsonb, _TEXT),
    "tm_jsonb_field": _own(_TEXT, jsonb.field, _TEXT, _TEXT),
    "tm_jsonb_field_text": _own(_TEXT, jsonb.field_text, _TEXT, _TEXT),
    "tm_jsonb_item": _own(_TEXT, jsonb.item, _TEXT, _INT4),
    "tm_jsonb_item_text": _own(_TEXT, jsonb.item_text, _TEXT, _INT4),
    "tm_jsonb_path": _own(_TEXT, jsonb.path, _TEXT, _TEXTS),
    "tm_jsonb_path_text": _own(_TEXT, jsonb.path_text, _TEXT, _TEXTS),
    "tm_jsonb_contains": _own(_BOOL, jsonb.contains, _TEXT, _TEXT),
    "tm_jsonb_has_key": _own(_BOOL, jsonb.has_key, _TEXT, _TEXT),
    "tm_jsonb_has_any_key": _own(_BOOL, jsonb.has_any_key, _TEXT, _TEXTS),
    "tm_jsonb_has_all_keys": _own(_BOOL, jsonb.has_all_keys, _TEXT, _TEXTS),
    "tm_jsonb_typeof": _own(_TEXT, jsonb.kind, _TEXT),
    "tm_jsonb_length": _own(_INT4, jsonb.length, _TEXT),
    "tm_jsonb_number": _own(_TEXT, jsonb.number, _TEXT),
    "tm_jsonb_bool": _own(_BOOL, jsonb.boolean, _TEXT),
}
"""By name.  ``array_text`` and ``text_array`` are of an array's elements as texts."""

_REFUSED = (
    re.compile(r"tidemark:([0-9A-Z]{5}):(.*?):(?:\n|$|\\n)", re.DOTALL),
    re.compile(r"tm:([0-9A-Z]{5}):(.*?)(?:\.? SQLSTATE|\n|$)"),
)
"""What a function of ours says, and what a form of :mod:`sql.forms` says."""


def refusal(text: str) -> tuple[str, str] | None:
    """``(SQLSTATE, message)`` of the refusal of a row, wherever an engine put it in ``text``."""
    found = next((found for each in _REFUSED if (found := each.search(text))), None)
    return (found[1], found[2]) if found else None
