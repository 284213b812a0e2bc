"""Rows that a sink writes are JSON, and are read back as the rows that they were."""

from __future__ import annotations

import json
import math

import pyarrow as pa
import pytest

from catalog_log.objects import Column
from collection.columns import sql_type, table_from_rows
from collection.json_rows import decode_batch
from collection.json_written import RowWriter
from tests.differential.worlds import POOLS
from values.from_json import converter
from values.types import arrow_type, row_of

MORE = {
    "text": ('"\\', "\x01\n\u2028😀", "é" * 1000), "numeric": ("0", "1e40", "-0." + "0" * 40 + "1"),
    "float8": ("1e15", "1e-5", "123456789012345680", "5e-324"), "float4": ("1e15", "3.4028235e38"),
    "date": ("0001-01-01", "9999-12-31"), "timestamp": ("0001-01-01 00:00:00", "9999-12-31 23:59:59.999999"),
    "interval": ("-1 mon +2 days 00:00:00.5",), "numeric(38,9)": ("-12345678901234567890123456789.123456789",),
}  # fmt: skip
VALUES = {name: (*POOLS.get(name, ()), *MORE.get(name, ())) for name in {**POOLS, **MORE} if not name.endswith("[]")}


def value(name: str, text: str) -> object:
    sql = sql_type(name)
    if sql.name == "numeric":
        return converter(sql)(text)
    read = row_of(sql).read(text)
    return read.rstrip(" ") if sql.name == "bpchar" else read


@pytest.mark.parametrize("name", sorted(VALUES))
def test_a_value_of_each_type_comes_back(name: str) -> None:
    columns = (Column("a", name), Column('o"dd\n', "int4"), Column("many", f"{name}[]"))
    values = [value(name, text) for text in VALUES[name]]
    if name in ("float4", "float8"):
        values = [each for each in values if math.isfinite(each)]
    rows = [(each, 7, [each, None]) for each in values] + [(None, None, None), (None, 1, [])]
    table = table_from_rows(columns, rows)
    written = RowWriter([(c.name, sql_type(c.type)) for c in columns]).rows(table.columns)
    assert all(json.loads(each).keys() == {"a", 'o"dd\n', "many"} for each in written)
    found, bad = decode_batch(written, columns)
    assert not bad
    if name == "jsonb":  # of which null is NULL where it is read
        null = [each == "null" for each in table.column(0).to_pylist()]
        assert [a for a, skip in zip(found.column(0).to_pylist(), null, strict=True) if not skip] == [
            a for a, skip in zip(table.column(0).to_pylist(), null, strict=True) if not skip
        ]
        return
    assert found.column(0).to_pylist() == table.column(0).to_pylist()
    assert found.column(1).to_pylist() == table.column(1).to_pylist()
    assert found.column(2).to_pylist() == table.column(2).to_pylist()


@pytest.mark.parametrize(
    ("name", "text", "written"),
    [
        ("int8", "9007199254740993", "9007199254740993"), ("bool", "true", "true"), ("numeric(6,2)", "1.5", '"1.50"'),
        ("float8", "NaN", '"NaN"'), ("float8", "-Infinity", '"-Infinity"'), ("float8", "0.1", "0.1"),
        ("bytea", "\\x00ff", '"\\\\x00ff"'), ("date", "2024-02-29", '"2024-02-29"'),
        ("timestamp", "2024-02-29 01:02:03.5", '"2024-02-29T01:02:03.5"'),
        ("timestamptz", "2024-02-29 01:02:03+01", '"2024-02-29T00:02:03+00:00"'),
        ("char(4)", "ab", '"ab  "'), ("jsonb", '{"b":1,"a":[]}', '{"a": [], "b": 1}'), ("uuid",
         "FFFFFFFF-ffff-ffff-ffff-ffffffffffff", '"ffffffff-ffff-ffff-ffff-ffffffffffff"'),
    ],
)  # fmt: skip
def test_forms(name: str, text: str, written: str) -> None:
    table = table_from_rows((Column("a", name),), [(value(name, text),)])
    assert RowWriter([("a", sql_type(name))]).rows(table.columns) == [b'{"a":%b}' % written.encode()]


def test_moments_beyond_pythons_calendar_are_written_as_postgres_shows_them() -> None:
    far = pa.chunked_array([pa.array([400_000_000_000_000_000, -70_000_000_000_000_000], pa.int64())])
    column = far.cast(arrow_type(sql_type("timestamp")))
    first, before = RowWriter([("a", sql_type("timestamp"))]).rows([column])
    assert b"T" in first and before.endswith(b' BC"}')
