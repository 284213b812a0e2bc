"""Where floats are looked at for their range, and where not: what they become is in the differential tests."""

from __future__ import annotations

import pytest

from sql.statements.select import plan_select
from sql.syntax.parse import parse
from tests.sql.doubles import ddl, empty_image, names

IMAGE = ddl(empty_image(), "create table t (a float8, b float4, n numeric, k int)")


def looks(text: str) -> tuple[int, int]:
    """How many looks for what is too large and for what is too small are in what an engine is told."""
    said = plan_select(parse(text).ast, IMAGE, names()).spark_sql([])
    return said.count("22003:value out of range: overflow"), said.count("22003:value out of range: underflow")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("select sum(a), avg(b) from t", (2, 0)),
        ("select k, sum(a) filter (where k > 1) from t group by k", (1, 0)),
        ("select sum(distinct a) from t", (1, 0)),
        ("select sum(k), sum(n), avg(n) from t", (0, 0)),
        ("select sum(a) over (order by k) from t", (0, 0)),
        ("select a * 2, b + b, a / b from t", (0, 0)),
        ("select a + 1e308::float8 * k, 1e308::float8 * 10 from t", (1, 1)),
        ("select 1e308::float8 + 1 - 2", (1, 0)),
        ("select 1.5 * 2, 3 + 4", (0, 0)),
        ("select 1e308::float8 * 2 / 3 * 4", (1, 1)),
        ("select 1e308::float8 * 2 + 3", (2, 1)),
        ("select $1::float8 * 2", (1, 1)),
        ("select x * 2 from (values (1e300::float8)) v (x)", (1, 1)),
        ("select x * 2, x * 2 + 1 from (values (1e300::float8)) v (x) group by x * 2", (0, 0)),
        ("select random() * 10", (0, 0)),
        ("select (select 1e308::float8) * 10", (0, 0)),
    ],
)
def test_what_looks(text: str, expected: tuple[int, int]) -> None:
    if "$1" in text:
        tree = plan_select(parse(text).ast, IMAGE, names()).tree.sql()
        assert (tree.count("TM_FLOAT_OVERFLOW"), tree.count("TM_FLOAT_UNDERFLOW")) == expected
    else:
        assert looks(text) == expected


def test_a_long_chain_is_told_as_it_is_written() -> None:
    assert looks("select " + " + ".join(["1e300::float8"] * 20)) == (1, 0)
    assert looks("select " + " + ".join(["1e300::float8"] * 200)) == (0, 0)


def test_a_look_at_chains_in_chains_is_not_a_power_of_them() -> None:
    text = "1e30::float8"
    sizes = []
    for _ in range(6):
        text = f"({text} * 2 + 1)"
        sizes.append(len(plan_select(parse(f"select {text}").ast, IMAGE, names()).tree.sql()))
    grown = [more - less for less, more in zip(sizes, sizes[1:], strict=False)]
    assert grown[-1] < 3 * grown[0], sizes
