"""Functions of dates, times, timestamps and intervals.

Of two signatures that fit equally the first is taken: of dates and of untyped literals Postgres makes a timestamptz.
"""

from __future__ import annotations

from dataclasses import replace

from functions.row import ALONE, BY_ZONE, IMMUTABLE, STABLE, Function, by_grammar, by_rule, in_python, native
from values.time import intervals, moments, read_by_template, shown_by_template, zone_words

_ANY = ("timestamptz", "timestamp")
_ALONE = {"zone": ALONE, "beside": True}
_FINITE = "CASE WHEN NOT (:a) IS NULL THEN TRUE END"
"""There are no infinite dates, timestamps and intervals here."""

_SECONDS = "(CASE WHEN ABS(:a) > 9223372036854 THEN RAISE_ERROR('tm:22008:timestamp out of range') ELSE :a END)"
"""So many that their microseconds are a bigint."""

_SHOWN = {"volatility": STABLE, "zone": BY_ZONE, "beside": True}


def _parts(name: str, result: str) -> tuple[Function, ...]:
    """A field of a time, which is a word or a literal: what is given hangs on which."""
    return (
        *(by_grammar(f"{name}(text, {kind}) -> {result}") for kind in ("date", "time", "timestamp", "interval")),
        by_grammar(f"{name}(text, timestamptz) -> {result}", volatility=STABLE),
    )


FUNCTIONS = (
    by_rule("to_char(timestamp, text) -> text", volatility=STABLE),
    by_rule("to_char(timestamptz, text) -> text", **_SHOWN),
    in_python("age(timestamptz, timestamptz) -> interval", moments.age, zone=BY_ZONE, beside=True),
    in_python("age(timestamp, timestamp) -> interval", moments.age),
    by_rule("age(timestamptz) -> interval", **_SHOWN),
    by_rule("age(timestamp) -> interval", volatility=STABLE),
    *(in_python(f"date_bin(interval, {kind}, {kind}) -> {kind}", moments.binned, **_ALONE) for kind in _ANY),
    by_rule("timezone(text, timestamptz) -> timestamp", zone=BY_ZONE, beside=True),
    by_rule("timezone(text, timestamp) -> timestamptz", zone=BY_ZONE, beside=True),
    by_rule("timezone(interval, timestamptz) -> timestamp", zone=BY_ZONE, beside=True),
    by_rule("timezone(interval, timestamp) -> timestamptz", zone=BY_ZONE, beside=True),
    by_rule("date_trunc(text, timestamptz) -> timestamptz", **_SHOWN),
    by_rule("date_trunc(text, timestamptz, text) -> timestamptz", **_SHOWN),
    by_rule("date_trunc(text, timestamp) -> timestamp"),
    by_rule("date_trunc(text, interval) -> interval"),
    *_parts("extract", "numeric"),
    *(replace(each, parsed=False) for each in _parts("date_part", "float8")),
    in_python(
        "make_timestamp(int4, int4, int4, int4, int4, float8) -> timestamp", moments.made_timestamp, "tm_timestamp"
    ),
    in_python(
        "make_timestamptz(int4, int4, int4, int4, int4, float8) -> timestamptz",
        moments.made_timestamp,
        "tm_timestamp",
        volatility=STABLE,
        zone=BY_ZONE,
    ),
    in_python(
        "make_timestamptz(int4, int4, int4, int4, int4, float8, text) -> timestamptz",
        zone_words.made_moment,
        "tm_zone_made",
        volatility=STABLE,
        zone=BY_ZONE,
    ),
    in_python("make_time(int4, int4, float8) -> time", moments.made_time, "tm_made_time"),
    in_python(
        "make_interval(int4, int4, int4, int4, int4, int4, float8) -> interval",
        moments.made_interval,
        "tm_made_interval",
        parsed=True,
    ),
    in_python("make_date(int4, int4, int4) -> date", moments.made_date, "tm_made_date"),
    native(
        "to_timestamp(float8) -> timestamptz",
        f"TIMESTAMP_MICROS(CAST(ROUND({_SECONDS} * 1000000) AS BIGINT))",
        "to_timestamp(:a::DOUBLE)",
        zone=BY_ZONE,
    ),
    in_python(
        "to_timestamp(text, text) -> timestamptz", read_by_template.read_moment, "tm_read_moment", STABLE, zone=BY_ZONE
    ),
    in_python("to_date(text, text) -> date", read_by_template.read_day, "tm_read_day", STABLE),
    in_python("to_char(interval, text) -> text", shown_by_template.shown_interval, "tm_interval_shown", STABLE),
    *(
        by_grammar(f"generate_series({kind}, {kind}, interval) -> {kind}", many=True, volatility=volatility)
        for kind, volatility in (("timestamptz", STABLE), ("timestamp", IMMUTABLE))
    ),
    in_python("justify_hours(interval) -> interval", intervals.justified_hours),
    in_python("justify_days(interval) -> interval", intervals.justified_days),
    in_python("justify_interval(interval) -> interval", intervals.justified),
    *(native(f"isfinite({kind}) -> bool", _FINITE, **_ALONE) for kind in ("date", *_ANY, "interval")),
)
