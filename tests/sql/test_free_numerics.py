"""Which results are decimals of the engines and which are free, and what is written for the free ones.

That the values are Postgres's is said by ``tests/differential``.
"""

from __future__ import annotations

from decimal import Decimal

import pytest

from journal.errors import InvalidUsage
from sql.statements.assigning import stored
from sql.statements.select import plan_select
from sql.syntax.parse import parse
from tests.sql.doubles import ddl, empty_image, names, shop
from trees.types import NUMERIC, alternative, arithmetic, common


def numbers():
    return ddl(
        empty_image(),
        "create table f (id int, free numeric, price numeric(10,2), exact numeric(12,3), n bigint, x float8)",
        "create index prices on f (price)",
    )


def plan(text: str, image=None):
    return plan_select(parse(text).ast, image or numbers(), names())


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("free", "numeric"), ("price", "numeric(10,2)"), ("price + exact", "numeric(13,3)"),
        ("price * exact", "numeric(23,5)"), ("price / 2", "numeric"), ("price + free", "numeric"),
        ("n * 1.5", "numeric(23,1)"),
        ("avg(n)", "numeric"), ("avg(price)", "numeric"), ("sum(price)", "numeric(20,2)"), ("sum(free)", "numeric"),
        ("avg(x)", "float8"), ("free + x", "float8"), ("stddev(n)", "numeric"), ("stddev(x)", "float8"),
        ("coalesce(price, 0)", "numeric"), ("coalesce(price, 0.25)", "numeric(10,2)"),
        ("coalesce(price, '0')", "numeric"),
        ("case when id > 1 then price end", "numeric(10,2)"),
        ("case when id > 1 then price else null end", "numeric(10,2)"),
        ("greatest(price, exact)", "numeric"), ("nullif(price, exact)", "numeric(10,2)"), ("price || 'x'", "text"),
        ("round(price, 1)", "numeric(10,1)"), ("round(price, 3)", "numeric(12,3)"), ("round(price, -1)", "numeric"),
        ("round(free, 1)", "numeric"), ("free::numeric(6,2)", "numeric(6,2)"), ("free::int", "int4"),
        ("price::numeric", "numeric"),
        ("sqrt(price)", "numeric"), ("sqrt(n)", "float8"), ("power(price, 2)", "numeric"), ("power(n, 2)", "float8"),
        ("1e300", "numeric"), ("123456789012345678901234567890123456789", "numeric"), ("1.50", "numeric(3,2)"),
        ("array[1.5, 2.25]", "numeric[]"), ("array[1.5, 2.5]", "numeric(2,1)[]"), ("'NaN'::numeric", "numeric"),
        ("extract(second from now()) / 2", "numeric"),
        ("extract(year from now()) * 100 + extract(month from now())", "numeric(24,0)"),
    ],
)  # fmt: skip
def test_what_type_it_is(expression, found):
    assert str(plan(f"select {expression} from f").columns[0].type) == found


def test_types_of_two():
    decimal, other, wide = (plan(f"select null::{ty} from f").columns[0].type for ty in (
        "numeric(10,2)", "numeric(12,3)", "numeric(38,2)"))
    assert str(common(decimal, other)) == "numeric(12,3)"  # as they are compared
    assert alternative(decimal, other) == NUMERIC  # but each keeps its digits
    assert common(wide, other) == NUMERIC and arithmetic("+", wide, wide) == NUMERIC
    assert arithmetic("/", decimal, decimal) == NUMERIC


@pytest.mark.parametrize("condition", [
    "free = 1.5", "1.5 = free", "free = price", "free in (1, 2.50)", "free between 1 and 2", "free = any (array[1.5])",
    "free is distinct from 1.5", "(free, id) = (1, 2)", "free in (select price from f)",
    "case free when 1.5 then true end",
])  # fmt: skip
def test_free_numerics_are_compared_by_keys(condition):
    written = plan(f"select id from f where {condition}").spark_sql([])
    assert "TM_NUMERIC_KEY" in written and "`free` = " not in written


def test_a_constants_key_is_known_before_anything_runs():
    one, other = (plan(f"select id from f where free = {value}").spark_sql([]) for value in ("1.5", "'1.500'"))
    assert one == other and one.count("TM_NUMERIC_KEY") == 1


def test_an_index_finds_a_decimal_by_a_parameter_that_is_numeric():
    image = numbers()
    for text in ("select id from f where price = $1", "select id from f where price = $1::numeric(10,2)"):
        found = plan_select(parse(text).ast, image, names(), {1: NUMERIC})
        assert found.lookup is not None and found.lookup.filled([Decimal("1.5")], found.params)[0] == (Decimal("1.5"),)
        assert "TM_NUMERIC" not in found.spark_sql([Decimal("1.5")])
    assert plan("select id from f where free = 1.5", image).lookup is None  # nothing is found by its text


def test_a_parameter_has_its_own_digits():
    found = plan_select(parse("select $1 * 2.5, $1::numeric from f").ast, numbers(), names(), {1: NUMERIC})
    written = found.spark_sql([Decimal("1.50")])
    assert "TM_NUMERIC_MUL(CAST(CAST('1.50' AS STRING) AS STRING), CAST('2.5' AS STRING))" in written
    assert "'NaN'" in found.spark_sql([Decimal("NaN")])


@pytest.mark.parametrize("text", [
    "select free from f intersect select free from f", "select free, count(*) from f group by rollup (free)",
    "select sum(distinct free) from f", "select percentile_disc(0.5) within group (order by free) from f",
    "select generate_series(free, 2) from f", "select sum(id) over (order by free range 1 preceding) from f",
    "select id from f where array[free] = array[1.5]", "select array_agg(distinct free) from f",
    "with recursive r(a) as (select free from f union select a from r) select a from r",
    "select count(*) from f group by array[free]",
])  # fmt: skip
def test_what_would_tell_equal_numbers_apart_is_refused(text):
    with pytest.raises(InvalidUsage) as caught:
        plan(text)
    assert caught.value.sqlstate == "0A000"


def test_rows_are_grouped_by_keys_and_show_a_number():
    written = plan("select free, count(*) from f group by free order by free").spark_sql([])
    assert "GROUP BY CAST(TM_NUMERIC_KEY(" in written and "MAX(`t0`.`free`)" in written
    assert "DISTINCT" not in plan("select distinct free from f").spark_sql([])
    assert "UNION ALL" in plan("select free from f union select price from f").spark_sql([])


def test_what_a_column_keeps():
    for value, kept in ((Decimal("1.50"), "1.50"), ("1.50", "1.50"), (7, "7"), (0.1, "0.1"), ("nan", "NaN"),
    ("1e3", "1000")):
        assert stored(value, NUMERIC) == kept
    with pytest.raises(InvalidUsage) as caught:
        stored("1e200000", NUMERIC)
    assert caught.value.sqlstate == "22003"


def test_what_reads_decimals_only_calls_no_python():
    for text in ("select price + exact, price * 2, -price from items2", ):
        image = ddl(shop(), "create table items2 (price numeric(10,2), exact numeric(12,3))")
        assert "TM_NUMERIC" not in plan(text, image).spark_sql([])
