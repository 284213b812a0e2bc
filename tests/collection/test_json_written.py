"""Rows that a sink writes are JSON, and are read back as the rows that they were."""

from __future__ import annotations

import json
import math
import random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog_log.objects import Column
from collection import json_columns, json_written
from collection.columns import one_array, sql_type, table_from_rows
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


def many(name: str, nulls: bool) -> pa.Table:
    """Hundreds of rows of a column of that type, of a list of it and of a number, none of them as one array."""
    draw = random.Random(name)
    values = [value(name, text) for text in VALUES[name]]
    pick = lambda: None if nulls and draw.random() < 0.2 else draw.choice(values)  # noqa: E731
    rows = [(pick(), [pick() for _ in range(draw.randint(0, 2))], n) for n in range(400)]
    table = table_from_rows((Column("a", name), Column("many", f"{name}[]"), Column("n", "int8")), rows)
    return pa.concat_tables([table.slice(3, 150), table.slice(160, 0), table.slice(170)])


@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize("name", sorted(VALUES))
def test_all_at_once_is_the_same_as_one_by_one(name: str, nulls: bool) -> None:
    table = many(name, nulls)
    writer = RowWriter([("a", sql_type(name)), ('o"dd\n', sql_type(f"{name}[]")), ("n", sql_type("int8"))])
    assert writer.rows(table.columns) == writer.one_by_one(table.columns)
    alone = RowWriter([("a", sql_type(name))])
    assert alone.rows([table.column(0)]) == alone.one_by_one([table.column(0)])
    assert alone.rows([table.column(0).slice(0, 0)]) == []


@given(st.lists(st.none() | st.floats(), min_size=64, max_size=99), st.lists(st.none() | st.floats(width=32)))
@settings(max_examples=60, deadline=None)
def test_any_floats_all_at_once(wide: list[float | None], narrow: list[float | None]) -> None:
    near = [math.nextafter(10.0**n, math.inf * way) for n in range(-7, 18) for way in (-1, 1)]
    for name, values in (("float8", wide + near), ("float4", narrow + near + [0.0] * 64)):
        column = pa.chunked_array([pa.array(values, pa.float64()).cast(arrow_type(sql_type(name)), safe=False)])
        writer = RowWriter([("a", sql_type(name))])
        assert writer.rows([column]) == writer.one_by_one([column])


@given(st.lists(st.none() | st.text(), min_size=64, max_size=80), st.booleans())
@settings(max_examples=60, deadline=None)
def test_any_texts_all_at_once(values: list[str | None], plain: bool) -> None:
    if plain:
        values = [each and "".join(c for c in each if c >= " " and c not in '"\\') for each in values]
    column = pa.chunked_array([pa.array(values, pa.string())])
    assert json_columns.escapes(one_array(column)) == any(json.dumps(each, ensure_ascii=False)[1:-1] != each
                                                          for each in values if each)  # fmt: skip
    writer = RowWriter([("a", sql_type("text"))])
    assert writer.rows([column]) == writer.one_by_one([column])


def test_rows_that_would_be_too_long_together_are_written_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    writer, table = RowWriter([("a", sql_type("text"))]), many("text", True)
    monkeypatch.setattr(json_written, "AT_ONCE_BYTES_MAX", 1000)
    monkeypatch.setattr(writer, "_at_once", None)
    assert writer.rows(table.columns[:1]) == writer.one_by_one(table.columns[:1])


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
