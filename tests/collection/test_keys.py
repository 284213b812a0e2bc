"""Keys of rows as commits name them: a format, which other releases compare with theirs."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from collection.keys import row_keys
from values.types import arrow_type, parse_type


def key(kind, *values, owner="u7"):
    return row_keys(owner, [pa.chunked_array([pa.array([v], arrow_type(parse_type(kind)))]) for v in values])[0]


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("int4", 1, "75372fff5af8f73fb03ded2ab6adbf729db231"),
        ("text", "1", "75372fff5af8f73fb03ded2ab6adbf729db231"),
        ("numeric(6,2)", Decimal("1.50"), "75372fea20f2a8d41679251728d1cc44955def"),
        ("date", date(2024, 1, 1), "75372fd70a0223bd1d63d62be42ddc3bf7eb84"),
        ("timestamptz", datetime(2024, 1, 1, tzinfo=UTC), "75372f3723be9d8bb795461442ddef17dc6860"),
        ("bool", True, "75372f0cca81393e4c9b895a40abfb863bc8c1"),
        ("float8", 1.5, "75372fe14a857445e9025b8a27d32c9554bf01"),
        ("bytea", b"\x00", "75372f17bf093fd8028115ec45b142b9853b29"),
        ("uuid", "00000000-0000-0000-0000-00000000000a", "75372fee910fb513d9829762fef94d624be99f"),
    ],
)
def test_the_bytes_of_keys_are_what_they_were(kind, value, expected):
    """Where this fails, a commit of this release and one of another would not see that they name one key."""
    assert key(kind, value).hex() == expected


def test_equal_values_have_equal_keys_and_others_have_others():
    assert key("float8", -0.0) == key("float8", 0.0)
    assert key("float8", float("nan")) == key("float8", -float("nan"))
    assert key("int2", 7) == key("int8", 7)
    assert key("text", "a", "bc") != key("text", "ab", "c"), "where one value ends counts"
    assert key("text", "a") != key("text", "a", owner="u8"), "and whose key it is"
    assert key("text", None) is None and key("text", "a", None) is None, "NULL equals nothing"
    assert key("text", "") is not None
    assert len(key("text", "x" * 100_000)) == len(key("text", "x"))
