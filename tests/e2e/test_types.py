"""Every type a column can have, there and back: Bind, Kafka, Spark, a view and an index, in text and in binary."""

from __future__ import annotations

import datetime as dt
import math
import uuid
from decimal import Decimal

import numpy as np
import psycopg
import pytest
from psycopg.types.json import Jsonb

from embedded.stack import Stack

pytestmark = [pytest.mark.integration, pytest.mark.spark]

UTC = dt.UTC
ID = uuid.UUID("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")
COLUMNS = {
    "b": "bool", "i2": "int2", "i4": "int4", "i8": "int8", "f4": "float4", "f8": "float8", "n": "numeric(38,9)",
    "t": "text", "raw": "bytea", "d": "date", "ts": "timestamp", "tz": "timestamptz", "v": "varchar(3)",
    "c": "char(3)", "u": "uuid", "j": "jsonb", "h": "time", "i": "interval", "ints": "int[]", "texts": "text[]",
    "sums": "numeric(5,2)[]", "moments": "timestamptz[]", "locals": "timestamp[]", "spans": "interval[]",
    "floats": "float8[]",
}  # fmt: skip
ROWS = [
    (1, *[None] * len(COLUMNS)),
    (2, True, -(2**15), -(2**31), -(2**63), -math.inf, -math.inf, Decimal("-99999999999999999999999999999.999999999"),
     "", b"", dt.date(1, 1, 1), dt.datetime(1, 1, 1), dt.datetime(1, 1, 1, tzinfo=UTC), "", "   ", uuid.UUID(int=0),
     {}, dt.time(0), dt.timedelta(days=-999999, microseconds=1), [], [], [], [], [], [], []),
    (3, False, 2**15 - 1, 2**31 - 1, 2**63 - 1, math.inf, math.inf, Decimal("99999999999999999999999999999.999999999"),
     "é\n\\'\"😀", bytes(range(256)), dt.date(9999, 12, 31), dt.datetime(9999, 12, 31, 23, 59, 59, 999999),
     dt.datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC), "é😀x", "é  ", uuid.UUID(int=2**128 - 1),
     {"b": [1, None, {"é": "\n"}], "a": 10**30}, dt.time(23, 59, 59, 999999), dt.timedelta(days=999999, hours=23),
     [2**31 - 1, None, -(2**31)], ["", "NULL", None, 'a"b\\{,}', " "], [Decimal("-999.99"), None],
     [dt.datetime(9999, 1, 1, tzinfo=UTC), None], [dt.datetime(1900, 1, 1, 0, 0, 0, 1), None],
     [dt.timedelta(days=1, seconds=2), None], [math.inf, None, -1.5]),
    (4, True, 0, 0, 0, 1.401298464324817e-45, 5e-324, Decimal("0.000000001"), "null", b"\0", dt.date(1582, 10, 10),
     dt.datetime(1582, 10, 10, 0, 0, 0, 1), dt.datetime(1900, 1, 1, tzinfo=UTC), "abc", "abc", ID, [1.5, "x", True],
     dt.time(12, 30), dt.timedelta(0), [0], ["x"], [Decimal("0.01")], [dt.datetime(2024, 2, 29, tzinfo=UTC)],
     [dt.datetime(2024, 2, 29)], [dt.timedelta(0)], [0.5]),
]  # fmt: skip


def plain(rows) -> list[tuple]:
    """A float4 as the single that its text means, and rows in order."""
    return sorted((*r[:5], None if r[5] is None else float(np.float32(r[5])), *r[6:]) for r in rows)


def sent(row: tuple) -> tuple:
    return tuple(Jsonb(v) if name == "j" and v is not None else v for name, v in zip(("k", *COLUMNS), row, strict=True))


def test_every_type_goes_there_and_back_with_nulls_and_extremes(stack: Stack) -> None:
    name = f"types_{uuid.uuid4().hex[:8]}"
    with psycopg.connect(stack.dsn(), autocommit=True) as connection:
        connection.execute(f"CREATE TABLE {name} (k int, {', '.join(f'{c} {kind}' for c, kind in COLUMNS.items())})")
        connection.execute(f"CREATE MATERIALIZED VIEW {name}_v AS SELECT * FROM {name} WHERE k > 0")
        connection.execute(f"CREATE MATERIALIZED VIEW {name}_d AS SELECT DISTINCT k, v, c, u, j, h, ints FROM {name}")
        connection.execute(f"CREATE INDEX {name}_i ON {name}_v (k)")
        connection.execute(f"CREATE INDEX {name}_u ON {name}_v (u, h)")
        for number, row in enumerate(ROWS):
            kinds = ("int", *COLUMNS.values())
            sign = "%t" if number % 2 else "%b"
            signs = ", ".join(f"{sign}::{kind}" if kind.endswith("]") else sign for kind in kinds)
            connection.execute(f"INSERT INTO {name} VALUES ({signs})", sent(row))
        wanted = plain(ROWS)
        for binary in (False, True):
            with connection.cursor(binary=binary) as cursor:
                for source in (name, f"{name}_v"):
                    assert plain(cursor.execute(f"SELECT * FROM {source}").fetchall()) == wanted, source
                for row in ROWS:
                    found = cursor.execute(f"SELECT * FROM {name}_v WHERE k = %s", (row[0],)).fetchall()
                    assert plain(found) == plain([row]), row
                found = cursor.execute(f"SELECT k FROM {name}_v WHERE u = %s AND h = '12:30'", (ID,)).fetchall()
                assert found == [(4,)]
        assert len(connection.execute(f"SELECT * FROM {name}_d").fetchall()) == len(ROWS)
        with pytest.raises(psycopg.errors.StringDataRightTruncation):
            connection.execute(f"INSERT INTO {name} (v) SELECT 'abcd' FROM {name}")
        # What Spark has no word for: the same functions as the adapter's, in its Python workers.
        found = connection.execute(
            f"SELECT k, j -> 'b' -> 2 ->> 'é', j @> '{{\"b\": [null]}}', i::text, (h + interval '1 hour')::text, "
            f"ints::text, array_to_string(texts, '|', '-'), 0 = ANY (ints), spans[1]::text, date '2024-01-31' + i "
            f"FROM {name} WHERE k = 3"
        ).fetchall()
        assert found == [
            (3, "\n", True, "999999 days 23:00:00", "00:59:59.999999", "{2147483647,NULL,-2147483648}",
             '|NULL|-|a"b\\{,}| ', None, "1 day 00:00:02", dt.datetime(4761, 12, 27, 23, 0)),
        ]  # fmt: skip
        found = connection.execute(f"SELECT array_agg(k ORDER BY i DESC), max(h)::text FROM {name}").fetchall()
        assert found == [([1, 3, 4, 2], "23:59:59.999999")]


NUMBERS = ["1.50", "1.5", "-0.00", "NaN", "0.1", "123456789012345678901234567890.123456789012345678901234567890",
"7", "1.500",
           "Infinity", "1e-30"]  # fmt: skip


def digits(rows) -> list[tuple]:
    """Rows in order, with every digit of their numbers; what is grouped by may be shown by any of equal numbers."""
    return sorted(tuple(str(v) if isinstance(v, Decimal) else v for v in row) for row in rows)


def test_numbers_keep_their_digits_wherever_they_go(stack: Stack) -> None:
    """By Bind in both formats, through Kafka, Spark, ticks in the process, an index and groups: what a query of the
    table gives, its views give, after rows have come that change how many digits a sum has."""
    name = f"numbers_{uuid.uuid4().hex[:8]}"
    queries = {
        "all": f"SELECT k, x, x * 2 AS twice, x / 3 AS third FROM {name}",
        "sums": f"SELECT k % 3 AS part, sum(x) AS s, count(x), avg(k) AS mean, avg(x) AS a FROM {name} GROUP BY k % 3",
        "total": f"SELECT sum(x) AS s, avg(x), max(x) AS top, min(x) AS low, stddev(k) FROM {name} WHERE k < 8",
        "groups": f"SELECT x, count(*) AS n FROM {name} GROUP BY x",
        "kinds": f"SELECT DISTINCT x FROM {name}",
        "pairs": f"SELECT a.k AS one, b.k AS other FROM {name} a JOIN {name} b ON a.x = b.x",
        "more": f"SELECT k FROM {name} WHERE x > 1.50 OR x = 0",
    }
    with psycopg.connect(stack.dsn(), autocommit=True) as connection:
        connection.execute(f"CREATE TABLE {name} (k int, x numeric, xs numeric[])")
        for view, query in queries.items():
            connection.execute(f"CREATE MATERIALIZED VIEW {name}_{view} AS {query}")
        connection.execute(f"CREATE INDEX {name}_i ON {name}_all (k)")
        for number, text in enumerate(NUMBERS):
            sign = "%t" if number % 2 else "%b"
            connection.execute(
                f"INSERT INTO {name} VALUES (%s, {sign}, {sign}::numeric[])",
                (number, Decimal(text), [Decimal(text), None])
            )
            if number in (4, len(NUMBERS) - 1):
                for view, query in queries.items():
                    found = digits(connection.execute(f"SELECT * FROM {name}_{view}"))
                    assert found == digits(connection.execute(query)), view
        connection.execute(f"INSERT INTO {name} VALUES (20, NULL, NULL)")
        wanted = {n: format(Decimal(text),
        "f") if Decimal(text).is_finite() else text for n, text in enumerate(NUMBERS)}
        wanted[2] = "0.00"  # there is no -0
        for binary in (False, True):
            with connection.cursor(binary=binary) as cursor:
                rows = cursor.execute(f"SELECT k, x, xs FROM {name} WHERE k < 20").fetchall()
                assert {k: format(x, "f") if x.is_finite() else str(x) for k, x, _ in rows} == wanted
                assert all(str(xs) == str([x, None]) for _, x, xs in rows)
                for k, text in wanted.items():
                    (found,) = cursor.execute(f"SELECT x FROM {name}_all WHERE k = %s", (k,)).fetchone()
                    assert (format(found, "f") if found.is_finite() else str(found)) == text
        found = connection.execute(f"SELECT s::text, a::text FROM {name}_sums ORDER BY part").fetchall()
        assert ("NaN", "NaN") in found and ("Infinity", "Infinity") in found
        assert connection.execute(f"SELECT n FROM {name}_groups WHERE x = 1.5").fetchall() == [(3,)]
        assert connection.execute(f"SELECT count(*) FROM {name}_kinds").fetchone() == (9,)  # 1.5 is one of three
        added = "ADD COLUMN y numeric DEFAULT 1 / 3.0, ADD COLUMN z numeric(4,1) DEFAULT 2.5"
        connection.execute(f"ALTER TABLE {name} {added}")
        found = connection.execute(f"SELECT DISTINCT y::text, z::text FROM {name}").fetchall()
        assert found == [("0.33333333333333333333", "2.5")]
