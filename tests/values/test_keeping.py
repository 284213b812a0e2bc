"""What a column keeps of a number that it was declared with too few digits for (``values/keeping.py``)."""

from __future__ import annotations

import pyarrow as pa
import pytest

from values.bad_text import BadText
from values.from_json import converter
from values.keeping import fitted, kept
from values.types import modifier, parse_type

KEPT = [
    # As PostgreSQL 15 says.
    ("numeric(50,3)", "1.23456", "1.235"),
    ("numeric(50,3)", "7" * 47, "7" * 47 + ".000"),
    ("numeric(50,3)", "-0.0005", "-0.001"),
    ("numeric(50,3)", "NaN", "NaN"),
    ("numeric(39)", "0.5", "1"),
    ("numeric(3,-2)", "12345", "12300"),
    ("numeric(3,-2)", "49", "0"),
    ("numeric(2,4)", "0.00994", "0.0099"),
    ("numeric(1000,1000)", "0.1", "0.1" + "0" * 999),
]  # fmt: skip

TOO_LARGE = [
    ("numeric(50,3)", "1" + "0" * 47), ("numeric(3,-2)", "99950"), ("numeric(2,4)", "0.00995"),
    ("numeric(39)", "Infinity"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value", "expected"), KEPT)
def test_a_column_keeps_the_digits_that_it_has(name: str, value: str, expected: str) -> None:
    kind = parse_type(name)
    assert str(kind) == name.replace("(39)", "(39,0)") and kind.is_free and str(kind.plain) == "numeric"
    assert fitted(value, kind) == expected
    column = pa.chunked_array([pa.array([value, None]), pa.array([], pa.string())])
    assert kept(column, kind).to_pylist() == [expected, None]
    array = parse_type(name + "[]")
    assert fitted([value, None], array) == [expected, None]
    assert kept(pa.chunked_array([pa.array([[value], None])]), array).to_pylist() == [[expected], None]


@pytest.mark.parametrize(("name", "value"), TOO_LARGE)
def test_what_does_not_fit_is_refused(name: str, value: str) -> None:
    kind = parse_type(name)
    for take in (lambda: fitted(value, kind), lambda: kept(pa.chunked_array([pa.array([value])]), kind)):
        with pytest.raises(BadText) as refused:
            take()
        assert refused.value.sqlstate == "22003"


def test_a_source_keeps_as_much() -> None:
    assert converter(parse_type("numeric(50,3)"))("1.23456") == "1.235"


@pytest.mark.parametrize(("name", "found"), [
    ("numeric(50,3)", (50 << 16 | 3) + 4), ("numeric(3,-2)", (3 << 16 | 2046) + 4), ("numeric(1000,-1000)", 65537052),
    ("numeric(10,2)", (10 << 16 | 2) + 4), ("numeric", -1),
])  # fmt: skip
def test_catalogs_say_it_as_postgres_does(name: str, found: int) -> None:
    assert modifier(parse_type(name)) == found


def test_what_the_engines_have_decimals_for_is_theirs() -> None:
    for name in ("numeric(38,0)", "numeric(38,38)", "numeric(1,0)"):
        assert not parse_type(name).is_free
