"""Dates, times, moments and intervals."""

from __future__ import annotations

import pyarrow as pa

from values import json_values, wire
from values.datatypes.row import Datatype
from values.scalars import read_date, read_moment, read_timestamp
from values.time.clock import read_time, show_time
from values.time.interval_words import read_interval
from values.time.intervals import Interval, as_interval, show_interval
from values.time.shown import show_date, show_moment, show_timestamp
from values.wire import packed

PARTS = (("months", pa.int32()), ("days", pa.int32()), ("micros", pa.int64()))
"""An interval's three parts, as Postgres keeps them: they are not worth a fixed number of one another."""


def _in_utc(micros: int) -> str:
    return show_moment(micros, "+00")


def _show_parts(value: Interval | dict[str, int]) -> str:
    return show_interval(as_interval(value))


DATATYPES = (
    Datatype(
        "date", 1082, 1182, "date", read_date, wire.receive_date, wire.send_date, show_date, json_values.date,
        arrow=pa.date32(), spark="DATE", avro={"type": "int", "logicalType": "date"}, duckdb=("DATE",),
        category="D", length=4, iceberg="date",
    ),
    # Microseconds since midnight.
    Datatype(
        "time", 1083, 1183, "time without time zone", read_time, wire.receive_time, packed("q")[1], show_time,
        aliases=("time without time zone",), carries="int8", duckdb=("TIME",), category="D", length=8,
        read_by_us=True, shown_by_us=True, iceberg="time",
    ),
    Datatype(
        "timestamp", 1114, 1115, "timestamp without time zone", read_timestamp, wire.receive_timestamp,
        wire.send_timestamp, show_timestamp, json_values.timestamp, aliases=("timestamp without time zone",),
        arrow=pa.timestamp("us"), spark="TIMESTAMP_NTZ",
        avro={"type": "long", "logicalType": "local-timestamp-micros"}, duckdb=("TIMESTAMP",), category="D", length=8,
        iceberg="timestamp",
    ),
    Datatype(
        "timestamptz", 1184, 1185, "timestamp with time zone", read_moment, wire.receive_timestamptz,
        wire.send_timestamp, _in_utc, json_values.timestamptz, aliases=("timestamp with time zone",),
        arrow=pa.timestamp("us", tz="UTC"), spark="TIMESTAMP",
        avro={"type": "long", "logicalType": "timestamp-micros"}, duckdb=("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ"),
        category="D", preferred=True, length=8, iceberg="timestamptz",
    ),
    Datatype(
        "interval", 1186, 1187, "interval", read_interval, wire.receive_interval, wire.send_interval, _show_parts,
        arrow=pa.struct(PARTS), spark="STRUCT<months: INT, days: INT, micros: BIGINT>",
        avro={"type": "record", "name": "Interval", "fields": [
            {"name": "months", "type": "int"}, {"name": "days", "type": "int"}, {"name": "micros", "type": "long"}]},
        duckdb=("INTERVAL",), category="T", preferred=True, length=16, read_by_us=True, shown_by_us=True,
        alike=False,
    ),
)  # fmt: skip
