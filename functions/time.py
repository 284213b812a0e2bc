"""Functions of dates, times, timestamps and intervals.

Of two signatures that fit equally the first is taken: of dates and of untyped literals Postgres makes a timestamptz.
"""

from __future__ import annotations

from functions.row import IMMUTABLE, STABLE, by_rule, in_python, native
from values.time import intervals, moments, time_templates, zone_words

_ANY = ("timestamptz", "timestamp")
_FINITE = "CASE WHEN NOT (:a) IS NULL THEN TRUE END"
"""There are no infinite dates, timestamps and intervals here."""

_SECONDS = "(CASE WHEN ABS(:a) > 9223372036854 THEN RAISE_ERROR('tm:22008:timestamp out of range') ELSE :a END)"
"""So many that their microseconds are a bigint."""

FUNCTIONS = (
    *(in_python(f"age({kind}, {kind}) -> interval", moments.age) for kind in _ANY),
    *(in_python(f"date_bin(interval, {kind}, {kind}) -> {kind}", moments.binned) for kind in _ANY),
    in_python(
        "make_timestamp(int4, int4, int4, int4, int4, float8) -> timestamp", moments.made_timestamp, "tm_timestamp"
    ),
    in_python(
        "make_timestamptz(int4, int4, int4, int4, int4, float8) -> timestamptz",
        moments.made_timestamp,
        "tm_timestamp",
        volatility=STABLE,
    ),
    in_python(
        "make_timestamptz(int4, int4, int4, int4, int4, float8, text) -> timestamptz",
        zone_words.made_moment,
        "tm_zone_made",
        volatility=STABLE,
    ),
    in_python("make_time(int4, int4, float8) -> time", moments.made_time, "tm_made_time"),
    in_python(
        "make_interval(int4, int4, int4, int4, int4, int4, float8) -> interval",
        moments.made_interval,
        "tm_made_interval",
    ),
    in_python("make_date(int4, int4, int4) -> date", moments.made_date, "tm_made_date"),
    native(
        "to_timestamp(float8) -> timestamptz",
        f"TIMESTAMP_MICROS(CAST(ROUND({_SECONDS} * 1000000) AS BIGINT))",
        "to_timestamp(:a::DOUBLE)",
    ),
    in_python("to_timestamp(text, text) -> timestamptz", time_templates.read_moment, "tm_read_moment", STABLE),
    in_python("to_date(text, text) -> date", time_templates.read_day, "tm_read_day", STABLE),
    in_python("to_char(interval, text) -> text", time_templates.shown_interval, "tm_interval_shown", STABLE),
    *(
        by_rule(f"generate_series({kind}, {kind}, interval) -> {kind}", many=True, volatility=volatility)
        for kind, volatility in (("timestamptz", STABLE), ("timestamp", IMMUTABLE))
    ),
    in_python("justify_hours(interval) -> interval", intervals.justified_hours),
    in_python("justify_days(interval) -> interval", intervals.justified_days),
    in_python("justify_interval(interval) -> interval", intervals.justified),
    *(native(f"isfinite({kind}) -> bool", _FINITE) for kind in ("date", *_ANY, "interval")),
)
