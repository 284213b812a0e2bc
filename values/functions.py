"""Functions that no engine has as Postgres means them, in Python, so that Spark and DuckDB run the very same ones.

Promises: each is a function of its arguments alone; of NULL it gives NULL.  A value that it refuses is a ``ValueError``
whose text :func:`refusal` reads back out of whatever an engine makes of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, wraps
from inspect import Parameter, Signature

from values import jsonb_keys
from values.bad_text import BadText
from values.datatypes.registry import CASTS, DATATYPES, cast_name
from values.limits import check_bytes
from values.numeric import numeric_casts, numeric_keys, numeric_sums, numerics
from values.scalars import (
    date_micros,
    moment_micros,
    show_float4,
    show_float8,
    timestamp_micros,
)
from values.text import jsonb, jsonb_changes, octets, texts
from values.text.arrays import read_array, show_array
from values.text.text_format import formatted
from values.time import intervals, moments, read_by_template, shown_by_template, zone_words, zones
from values.time.digits import fitted_interval, rounded, rounded_moment
from values.time.intervals import (
    Interval,
    divided,
    times,
)
from values.types import SqlType, carried


def _decimal(text: str, precision: int, scale: int) -> str:
    found = numerics.limited(text, precision, scale)
    if found == numerics.NAN:  # Postgres's may be one, the engines' decimals may not
        raise BadText("numeric field overflow", "22003")
    return found


def _numerics(texts: list[str | None]) -> list[str | None]:
    return [None if text is None else numerics.read(text) for text in texts]


def _numeric_total(sums: list[int | None]) -> str | None:
    return None if sums[0] is None else numeric_sums.total(sums)


_TEXT, _INT4, _INT8, _FLOAT8, _BOOL = (SqlType(name) for name in ("text", "int4", "int8", "float8", "bool"))
_FLOAT4, _BYTEA = SqlType("float4"), SqlType("bytea")
_INTERVAL, _TEXTS, _MOMENTS = SqlType("interval"), SqlType("text[]"), SqlType("int8[]")
_PARTS = SqlType("int8[]")


@dataclass(frozen=True)
class Own:
    """``arguments`` and ``result`` are types that engines have: what carries ours."""

    arguments: tuple[SqlType, ...]
    result: SqlType
    run: Callable


def own(result: SqlType, run: Callable, *arguments: SqlType) -> Own:
    """``run``, of whose arguments none is NULL, as what the engines call.

    An interval is given to it as one, in whatever form an engine has it (a dictionary, a row, a tuple), and taken back
    as the engines want it.
    """
    of_intervals = [place for place, kind in enumerate(arguments) if kind == _INTERVAL]

    @wraps(run)
    def strict(*values: object) -> object:
        if any(value is None for value in values):
            return None
        if of_intervals:
            given = list(values)
            for place in of_intervals:
                given[place] = Interval(values[place]["months"], values[place]["days"], values[place]["micros"])
            values = tuple(given)
        try:
            found = run(*values)
        except BadText as error:
            raise ValueError(f"tidemark:{error.sqlstate}:{error.message}:") from None
        return found._asdict() if result == _INTERVAL and found is not None else found

    # Engines count parameters, and ``run`` may have some more that have defaults.
    strict.__signature__ = Signature([Parameter(f"a{n}", Parameter.POSITIONAL_ONLY) for n in range(len(arguments))])
    return Own(arguments, result, strict)


def _limited(value: Interval, fields: str, digits: int) -> Interval:
    return fitted_interval(value, SqlType("interval", digits, fields=fields or None))


def _join(texts: list[str | None], by: str, null: str | None) -> str:
    """The texts with ``by`` between them, ``null`` in place of a NULL; where that is none, NULLs are left out."""
    shown = [null if text is None else text for text in texts if text is not None or null is not None]
    check_bytes(sum(map(len, shown)) + len(by) * max(0, len(shown) - 1))
    return by.join(shown)


def _split(text: str, separator: str) -> list[str]:
    if not text:
        return []
    return text.split(separator) if separator else [text]


def _letters(text: str) -> list[str]:
    return list(text)


def _each(show: Callable[[float], str], values: list[float | None]) -> list[str | None]:
    return [None if value is None else show(value) for value in values]


def _with_nulls(texts: list[str | None], null: str) -> list[str | None]:
    return [None if text == null else text for text in texts]


def _texts_of_types() -> dict[str, Own]:
    """What reads and shows the types that engines do not, or not as Postgres does."""
    found = {}
    for name, row in DATATYPES.items():
        carrier = carried(SqlType(name))
        if row.read_by_us:
            found[f"tm_{name}"] = own(carrier, row.read, _TEXT)
        if row.shown_by_us:  # engines give Python a single as a double
            given = _FLOAT8 if carrier == _FLOAT4 else carrier
            found[f"tm_{name}_text"] = own(_TEXT, row.show, given)
    for (source, target), run in CASTS.items():
        found[cast_name(source, target)] = own(carried(SqlType(target)), run, carried(SqlType(source)))
    return found


OWN: dict[str, Own] = _texts_of_types() | {
    "tm_float4_texts": own(_TEXTS, partial(_each, show_float4), _FLOAT8.array),
    "tm_float8_texts": own(_TEXTS, partial(_each, show_float8), _FLOAT8.array),
    "tm_date_micros": own(_INT8, date_micros, _TEXT),
    "tm_timestamp_micros": own(_INT8, timestamp_micros, _TEXT),
    "tm_moment_micros": own(_INT8, moment_micros, _TEXT),
    "tm_interval_times": own(_INTERVAL, times, _INTERVAL, _FLOAT8),
    "tm_interval_divided": own(_INTERVAL, divided, _INTERVAL, _FLOAT8),
    "tm_interval_limited": own(_INTERVAL, _limited, _INTERVAL, _TEXT, _INT4),
    "tm_time_limited": own(_INT8, rounded, _INT8, _INT4),
    "tm_moment_limited": own(_INT8, rounded_moment, _INT8, _INT4),
    "tm_series": own(_MOMENTS, moments.stepped, _INT8, _INT8, _INTERVAL),
    "tm_zone_text": own(_TEXT, zones.moment_text, _INT8, _TEXT),
    "tm_zone_plus": own(_INT8, zones.shifted, _INT8, _INTERVAL, _TEXT),
    "tm_zone_age": own(_INTERVAL, zones.age, _INT8, _INT8, _TEXT),
    "tm_zone_series": own(_MOMENTS, zones.stepped, _INT8, _INT8, _INTERVAL, _TEXT),
    "tm_truncated": own(_INT8, moments.truncated, _TEXT, _INT8),
    "tm_interval_truncated": own(_INTERVAL, intervals.truncated, _TEXT, _INTERVAL),
    "tm_zone_truncated": own(_INT8, zones.truncated, _TEXT, _INT8, _TEXT),
    "tm_zone_made": own(_INT8, zone_words.made_moment, _INT4, _INT4, _INT4, _INT4, _INT4, _FLOAT8, _TEXT),
    "tm_at_interval": own(_INT8, zone_words.by_interval, _INT8, _INTERVAL, _INT4),
    "tm_instant_at": own(_INT8, zone_words.instant_at, _INT8, _TEXT),
    "tm_local_at": own(_INT8, zone_words.local_at, _INT8, _TEXT),
    "tm_time_shown": own(_TEXT, shown_by_template.shown_local, _INT8, _TEXT),
    "tm_zone_shown": own(_TEXT, shown_by_template.shown_moment, _INT8, _TEXT, _TEXT),
    "tm_zone_read": own(_INT8, read_by_template.read_moment, _TEXT, _TEXT, _TEXT),
    "tm_format": own(_TEXT, formatted, _TEXT, _TEXTS),
    "tm_array_text": own(_TEXT, show_array, _TEXTS),
    "tm_text_array": own(_TEXTS, read_array, _TEXT),
    "tm_join": own(_TEXT, lambda texts, by: _join(texts, by, None), _TEXTS, _TEXT),
    "tm_join_all": own(_TEXT, _join, _TEXTS, _TEXT, _TEXT),
    "tm_split": own(_TEXTS, _split, _TEXT, _TEXT),
    "tm_letters": own(_TEXTS, _letters, _TEXT),
    "tm_with_nulls": own(_TEXTS, _with_nulls, _TEXTS, _TEXT),
    "tm_numeric": own(_TEXT, numerics.read, _TEXT),
    "tm_numeric_limited": own(_TEXT, _decimal, _TEXT, _INT4, _INT4),
    "tm_numeric_kept": own(_TEXT, numerics.limited, _TEXT, _INT4, _INT4),
    "tm_numeric_array": own(_TEXTS, _numerics, _TEXTS),
    "tm_numeric_key": own(_TEXT, numerics.key, _TEXT),
    "tm_numeric_keys": own(_TEXTS, numeric_keys.keys, _TEXTS),
    "tm_numeric_without": own(_TEXTS, numeric_keys.without, _TEXTS, _TEXT),
    "tm_numeric_nullif": own(_TEXT, numeric_keys.unless, _TEXT, _TEXT),
    "tm_numeric_keyed": own(_TEXT, numeric_keys.keyed, _TEXT),
    "tm_numeric_of_keyed": own(_TEXT, numeric_keys.of_keyed, _TEXT),
    "tm_numeric_add": own(_TEXT, numerics.add, _TEXT, _TEXT),
    "tm_numeric_sub": own(_TEXT, numerics.sub, _TEXT, _TEXT),
    "tm_numeric_mul": own(_TEXT, numerics.mul, _TEXT, _TEXT),
    "tm_numeric_div": own(_TEXT, numerics.div, _TEXT, _TEXT),
    "tm_numeric_mod": own(_TEXT, numerics.mod, _TEXT, _TEXT),
    "tm_numeric_int_div": own(_TEXT, numerics.int_div, _TEXT, _TEXT),
    "tm_numeric_neg": own(_TEXT, numerics.neg, _TEXT),
    "tm_numeric_abs": own(_TEXT, numerics.absolute, _TEXT),
    "tm_numeric_sign": own(_TEXT, numerics.sign, _TEXT),
    "tm_numeric_round": own(_TEXT, numerics.rounded, _TEXT, _INT4),
    "tm_numeric_trunc": own(_TEXT, numerics.truncated, _TEXT, _INT4),
    "tm_numeric_ceil": own(_TEXT, numerics.ceiling, _TEXT),
    "tm_numeric_floor": own(_TEXT, numerics.floor, _TEXT),
    "tm_numeric_int": own(_INT8, numeric_casts.to_int, _TEXT, _TEXT),
    "tm_numeric_of_float8": own(_TEXT, numeric_casts.from_float8, _FLOAT8),
    "tm_numeric_of_float4": own(_TEXT, numeric_casts.from_float4, _FLOAT8),
    "tm_numeric_parts": own(_PARTS, numeric_sums.parts, _TEXT),
    "tm_numeric_total": own(_TEXT, _numeric_total, _PARTS),
    "tm_numeric_deviation": own(_TEXT, numeric_sums.deviation, _TEXT, _INT8, _TEXT, _TEXT),
    "tm_encode": own(_TEXT, octets.encoded, _BYTEA, _TEXT),
    "tm_bytes_from": own(_BYTEA, octets.part_from, _BYTEA, _INT4),
    "tm_bytes_part": own(_BYTEA, octets.part, _BYTEA, _INT4, _INT4),
    "tm_bytes_overlay": own(_BYTEA, octets.overlaid, _BYTEA, _BYTEA, _INT4, _INT4),
    "tm_normalize": own(_TEXT, texts.normalized, _TEXT, _TEXT),
    "tm_is_normalized": own(_BOOL, texts.is_normalized, _TEXT, _TEXT),
    "tm_json_list": own(_TEXT, jsonb_changes.built_list, _TEXTS),
    "tm_json_object": own(_TEXT, jsonb_changes.built_object, _TEXTS),
    "tm_json_of_pairs": own(_TEXT, jsonb_changes.built_of_pairs, _TEXTS),
    "tm_json_list_texts": own(_TEXT, jsonb_changes.built_list_of_texts, _TEXTS),
    "tm_json_object_texts": own(_TEXT, jsonb_changes.built_object_of_texts, _TEXTS),
    "tm_json_number": own(_TEXT, jsonb_changes.of_number, _TEXT),
    "tm_json_string": own(_TEXT, jsonb.as_string, _TEXT),
    "tm_jsonb_nullif": own(_TEXT, jsonb_keys.unless, _TEXT, _TEXT),
    "tm_jsonb_key": own(_TEXT, jsonb_keys.key, _TEXT),
    "tm_jsonb_keys": own(_TEXTS, jsonb_keys.keys, _TEXTS),
    "tm_jsonb_without": own(_TEXTS, jsonb_keys.without, _TEXTS, _TEXT),
    "tm_jsonb_distinct": own(_TEXTS, jsonb_keys.distinct, _TEXTS, _BOOL, _BOOL),
    "tm_jsonb_put": own(_TEXT, jsonb_changes.put, _TEXT, _TEXTS, _TEXT),
    "tm_jsonb_number": own(_TEXT, jsonb.number, _TEXT),
    "tm_jsonb_bool": own(_BOOL, jsonb.boolean, _TEXT),
}
"""By name: what casts and forms are made of.  What a user calls is a row elsewhere (:mod:`functions`).

``array_text`` and ``text_array`` are of an array's elements as texts."""

_REFUSED = (
    re.compile(r"tidemark:([0-9A-Z]{5}):(.*?):(?:\n|$|\\n)", re.DOTALL),
    re.compile(r"(?<!')tm:([0-9A-Z]{5}):(.*?)(?:\.? SQLSTATE|\n|$)"),
)
"""What a function of ours says, and what a form of :mod:`lower.spark.forms` says.  Between quotes it is what a form
would have said: Spark shows the query beside whatever else failed in it."""


def refusal(text: str) -> tuple[str, str] | None:
    """``(SQLSTATE, message)`` of the refusal of a row, wherever an engine put it in ``text``: the first, which may show
    a value that reads like another."""
    found = min(filter(None, (each.search(text) for each in _REFUSED)), key=re.Match.start, default=None)
    return (found[1], found[2]) if found else None
