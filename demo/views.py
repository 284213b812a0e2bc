"""The demo's objects in SQL, and the same answers computed by pandas from the input alone.

``expected_*`` take the number of rows of the endless flights sequence (``demo/flights.py``) that are visible.
"""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal
from functools import cache

import numpy as np
import pandas as pd

from demo import corrections
from demo.flights import AIRLINES_COLUMNS, COLUMNS, PLANES_COLUMNS, airlines, flights, planes


def _columns(columns: dict[str, str]) -> str:
    return ", ".join(f"{name} {sql_type}" for name, sql_type in columns.items())


def ddl_statements(flights_topic: str) -> list[str]:
    """What the demo creates, in order.  All of it may exist already."""
    return [
        f"CREATE SOURCE IF NOT EXISTS flights ({_columns(COLUMNS)}) FROM KAFKA TOPIC '{flights_topic}' FORMAT JSON",
        f"CREATE TABLE IF NOT EXISTS airlines ({_columns(AIRLINES_COLUMNS)})",
        f"CREATE TABLE IF NOT EXISTS planes ({_columns(PLANES_COLUMNS)})",
        "CREATE VIEW IF NOT EXISTS legs AS "
        "SELECT carrier, tailnum, origin, dest, year, month, day, arr_delay, distance FROM flights",
        "CREATE MATERIALIZED VIEW IF NOT EXISTS delays_by_carrier AS "
        "SELECT a.carrier, a.name, count(*) AS flights, count(f.arr_delay) AS arrived, sum(f.arr_delay) AS delay_sum, "
        "avg(f.arr_delay) AS mean_delay FROM flights f JOIN airlines a ON a.carrier = f.carrier "
        "GROUP BY a.carrier, a.name",
        "CREATE MATERIALIZED VIEW IF NOT EXISTS delays_by_route_day AS "
        "SELECT origin, dest, year, month, day, count(*) AS flights, count(arr_delay) AS arrived, "
        "sum(arr_delay) AS delay_sum, avg(arr_delay) AS mean_delay FROM legs GROUP BY origin, dest, year, month, day",
        "CREATE INDEX IF NOT EXISTS delays_by_carrier_key ON delays_by_carrier (carrier)",
        "CREATE TABLE IF NOT EXISTS desk (id int4 PRIMARY KEY, done int8 NOT NULL)",
        f"CREATE TABLE IF NOT EXISTS corrections ({corrections.COLUMNS})",
        "CREATE MATERIALIZED VIEW IF NOT EXISTS corrected_by_carrier AS "
        "SELECT d.carrier, d.name, d.flights - coalesce(c.cancelled, 0) AS flights, "
        "d.arrived + coalesce(c.arrived, 0) AS arrived, "
        "coalesce(d.delay_sum, 0) + coalesce(c.late, 0) AS delay_sum FROM delays_by_carrier d LEFT JOIN "
        "(SELECT carrier, count(*) FILTER (WHERE cancelled) AS cancelled, "
        "count(corrected) - count(reported) AS arrived, "
        "sum(coalesce(corrected, 0) - coalesce(reported, 0)) AS late FROM corrections GROUP BY carrier) c "
        "ON c.carrier = d.carrier",
    ]


PROBE = "SELECT sum(flights) FROM delays_by_carrier"
"""How many flights the indexed view shows: answered from memory, so it can be asked many times a second."""

FRAME = (
    "SELECT 'carrier' AS part, carrier AS key, name, flights, arrived, delay_sum, mean_delay FROM delays_by_carrier "
    "UNION ALL SELECT 'routes', NULL, CAST(count(*) AS text), sum(flights), sum(arrived), sum(delay_sum), NULL "
    "FROM delays_by_route_day "
    "UNION ALL SELECT 'source', NULL, NULL, count(*), count(arr_delay), sum(arr_delay), NULL FROM flights "
    "UNION ALL SELECT 'corrected', carrier, name, flights, arrived, delay_sum, NULL FROM corrected_by_carrier "
    "UNION ALL SELECT 'corrections', NULL, NULL, count(*), count(corrected), sum(corrected), NULL FROM corrections "
    "UNION ALL SELECT 'desk', NULL, NULL, done, NULL, NULL, NULL FROM desk"
)
"""All views, what they are made of, and how far the desk is, in one statement, so at one timestamp: the source's count
says which prefix of the flights it is, the desk's which of its transactions."""

ROUTE_DAY = "SELECT origin, dest, year, month, day, flights, arrived, delay_sum, mean_delay FROM delays_by_route_day"
CARRIER = "SELECT carrier, name, flights, arrived, delay_sum, mean_delay FROM delays_by_carrier"

CORRECTIONS = "SELECT place, carrier, reported, corrected, cancelled, revision FROM corrections"
CORRECTED = "SELECT carrier, name, flights, arrived, delay_sum FROM corrected_by_carrier"

MAKERS = (
    "SELECT p.manufacturer, count(*) AS flights, sum(p.seats) AS seats FROM legs l JOIN planes p "
    "ON p.tailnum = l.tailnum GROUP BY p.manufacturer ORDER BY flights DESC, p.manufacturer LIMIT 5"
)
"""A query that nothing maintains, over the plain view and a table."""


def _aggregate(keys: list[str], visible: int) -> pd.DataFrame:
    """Flights, arrivals and the sum of their delays by ``keys`` over the first ``visible`` rows of the sequence."""
    frame = flights()
    passes, rest = divmod(visible, len(frame))
    parts = [(frame, passes)] if passes else []
    parts += [(frame.iloc[:rest], 1)] if rest else []
    totals = None
    for part, times in parts:
        grouped = part.groupby(keys, sort=False)["arr_delay"].agg(["size", "count", "sum"]) * times
        totals = grouped if totals is None else totals.add(grouped, fill_value=0)
    return totals if totals is not None else pd.DataFrame(columns=["size", "count", "sum"])


def _rows(aggregated: pd.DataFrame) -> dict[tuple, tuple[int, int, int | None]]:
    """By key: flights, arrived, delay sum (unknown where nobody arrived, as SQL's sum has it)."""
    return {
        key if isinstance(key, tuple) else (key,): (int(size), int(count), int(total) if count else None)
        for key, size, count, total in zip(
            aggregated.index, aggregated["size"], aggregated["count"], aggregated["sum"], strict=True
        )
    }


def expected_carriers(visible: int) -> dict[tuple, tuple[int, int, int | None]]:
    """By (carrier, name)."""
    names = dict(zip(airlines()["carrier"], airlines()["name"], strict=True))
    return {(key[0], names[key[0]]): row for key, row in _rows(_aggregate(["carrier"], visible)).items()}


def expected_corrected(
    carriers: dict[tuple, tuple[int, int, int | None]], done: int
) -> dict[tuple, tuple[int, int, int]]:
    """By (carrier, name), where ``carriers`` are :func:`expected_carriers`, once ``done`` transactions of the desk have
    been: flights, arrived, delay sum."""
    found = {key: [count, arrived, late or 0] for key, (count, arrived, late) in carriers.items()}
    by_carrier = {key[0]: row for key, row in found.items()}
    for each in corrections.after(done).values():
        row = by_carrier.setdefault(each.carrier, [0, 0, 0])
        row[0] -= each.cancelled
        row[1] += (each.corrected is not None) - (each.reported is not None)
        row[2] += (each.corrected or 0) - (each.reported or 0)
    return {key: tuple(row) for key, row in found.items()}


def expected_route_days(visible: int) -> dict[tuple, tuple[int, int, int | None]]:
    """By (origin, dest, year, month, day)."""
    rows = _rows(_aggregate(["origin", "dest", "year", "month", "day"], visible))
    return {(*key[:2], *map(int, key[2:])): row for key, row in rows.items()}


def expected_makers(visible: int) -> list[tuple[str, int, int]]:
    """The answer to ``MAKERS``."""
    frame = flights()
    passes, rest = divmod(visible, len(frame))
    known = planes().dropna(subset=["tailnum"])
    totals = None
    for part, times in ((frame, passes), (frame.iloc[:rest], 1)):
        joined = part.merge(known, on="tailnum")
        grouped = joined.groupby("manufacturer")["seats"].agg(["size", "sum"]) * times
        totals = grouped if totals is None else totals.add(grouped, fill_value=0)
    ordered = sorted(((m, int(n), int(s)) for m, n, s in totals.itertuples() if n), key=lambda row: (-row[1], row[0]))
    return ordered[:5]


@cache
def _first_of_each_route_day() -> np.ndarray:
    """Positions of the flights that are the first of their route and day, in order."""
    return np.flatnonzero(~flights().duplicated(["origin", "dest", "year", "month", "day"]).to_numpy())


def expected_groups(visible: int) -> int:
    """How many rows ``delays_by_route_day`` has."""
    return int(np.searchsorted(_first_of_each_route_day(), visible))


def mean_is_exact(mean: object, arrived: int, delay_sum: int | None) -> bool:
    """Whether ``mean`` is ``delay_sum / arrived`` as its type has it: a double's own quotient, or a numeric rounded."""
    if mean is None or arrived == 0 or delay_sum is None:
        return mean is None and delay_sum is None
    if isinstance(mean, Decimal):
        step = Decimal(1).scaleb(mean.as_tuple().exponent)
        return (Decimal(delay_sum) / Decimal(arrived)).quantize(step, rounding=ROUND_HALF_UP) == mean
    return float(mean) == delay_sum / arrived


def unlike(found: dict, expected: dict) -> list[str]:
    """What is wrong in ``found``, a line each; empty if it is exact."""
    keys = sorted(found.keys() | expected.keys())
    each = ((key, found.get(key), expected.get(key)) for key in keys)
    return [f"{key} is {there}, expected {right}" for key, there, right in each if there != right]


def differences(found: dict[tuple, tuple], expected: dict[tuple, tuple[int, int, int | None]]) -> list[str]:
    """What is wrong in ``found`` (by key: flights, arrived, delay sum, mean), a line each; empty if it is exact."""
    wrong = [f"{key} is missing" for key in expected.keys() - found.keys()]
    wrong += [f"{key} should not be there" for key in found.keys() - expected.keys()]
    for key in expected.keys() & found.keys():
        flights_count, arrived, delay_sum, mean = found[key]
        actual = (int(flights_count), int(arrived), None if delay_sum is None else int(delay_sum))
        if actual != expected[key]:
            wrong.append(f"{key} is {actual}, expected {expected[key]}")
        elif not mean_is_exact(mean, actual[1], actual[2]):
            wrong.append(f"{key} has the mean {mean}, expected {actual[2]}/{actual[1]}")
    return sorted(wrong)
