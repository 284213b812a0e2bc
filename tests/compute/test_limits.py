"""What would be too large is refused on Spark before the memory is taken, and what fits is answered."""

from __future__ import annotations

import pytest

from controllers.compute import spark_text
from controllers.compute.failures import QueryFailed, of_spark
from controllers.compute.operators.lowered import Lowered
from controllers.compute.running import answered
from sql.statements.select import plan_select
from sql.syntax.parse import parse
from tests.sql.doubles import names
from tests.sql.test_stories import rich_shop
from values.limits import VALUE_BYTES_MAX

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def ask(spark):
    """The rows of a query over a row of ``nn`` with ``a`` = 1 and ``d`` = ``ab``."""
    image = rich_shop()
    [nn] = [item for item in image.objects() if item.name == "nn"]
    row = "CAST(1 AS INT) AS a", "CAST(1.5 AS DECIMAL(5, 2)) AS b", "current_timestamp() AS c", "'ab' AS d"
    spark.range(1).selectExpr(*row).createOrReplaceTempView(nn.id)

    def asked(sql: str) -> list[tuple]:
        plan = plan_select(parse(sql).ast, image, names())
        assert plan.kind != "constant", "it is not Spark's"
        lowered = Lowered(plan.query([]))
        rows = {nn.id: spark_text.parse(f"SELECT * FROM {nn.id}")}
        found = answered(spark, lowered.on_spark(rows), before=lowered.asked_before(rows))
        return list(zip(*(column.to_pylist() for column in found.columns), strict=True))

    yield asked
    spark.catalog.dropTempView(nn.id)


@pytest.mark.parametrize("value", [
    "repeat(d, a * 1000000000)",
    "repeat('a', 1000000000) || d",
    "length(repeat(d, 100000000 + a))",
    "lpad(d, 1000000000)",
    "length(rpad(d, 100000000 * a, 'xyz'))",
    "length(regexp_replace(repeat(d, 2000000 * a), '[ab]', '" + "x" * 100 + "', 'g'))",
    r"length(regexp_replace(repeat(d, 2000000 * a), '(ab)', '\1\1\1', 'g'))",
    "length(" + " || ".join(["repeat(d, 1000000 * a)"] * 9) + ")",
    "length(" + " || ".join(["repeat(d, 1000000 * a)", "'x'"] * 9) + ")",
    "length(concat(" + ", ".join(["repeat(d, 1000000 * a)"] * 9) + "))",
    "length(concat_ws(repeat(d, 1000000 * a), NULL, " + ", ".join(["d"] * 9) + "))",
    "length(replace(repeat(d, 100000), 'a', repeat('b', 2000 * a)))",
    "format('%1000000000s', d)",
    "array_to_string(ARRAY[d, d, d], repeat('x', 5000000 * a))",
])  # fmt: skip
def test_a_value_that_is_too_large_is_refused(ask, value):
    with pytest.raises(Exception) as caught:  # noqa: B017 - which one is what is asked
        ask(f"SELECT {value} FROM nn")
    assert of_spark(caught.value).sqlstate == "54000", caught.value


@pytest.mark.parametrize("series", [
    "generate_series(1, 500000000)", "generate_series(500000000, 1, -1)",
    "generate_series(timestamp '2000-01-01', timestamp '2100-01-01', interval '1 second')",
])  # fmt: skip
def test_a_series_that_is_too_long_is_refused(ask, series):
    with pytest.raises(Exception) as caught:  # noqa: B017
        ask(f"SELECT count(*) FROM nn, {series} AS g(i)")
    assert of_spark(caught.value).sqlstate == "54000", caught.value


def test_what_fits_is_answered(ask):
    half = VALUE_BYTES_MAX // 2
    assert ask(f"SELECT length(repeat(d, {half} * a)), repeat(d, 2), repeat(d, -a), repeat(d, NULL) FROM nn") == [
        (VALUE_BYTES_MAX, "abab", "", None)
    ]
    assert ask("SELECT lpad(d, 6, 'xyz'), rpad(d, 4), lpad(d, a), lpad(d, -1), rpad(d, 3, '') FROM nn") == [
        ("xyzxab", "ab  ", "a", "", "ab")
    ]
    assert ask("SELECT replace(d, 'a', 'yy'), replace(d, '', 'z'), replace(d, d, ''), replace(d, 'a', NULL), "
               "replace(replace(d, 'a', 'xx'), 'x', d) FROM nn") == [("yyb", "ab", "", None, "ababb")]  # fmt: skip
    assert ask(r"SELECT regexp_replace(d, '[ab]', 'xyz', 'g'), regexp_replace(d, '(a)', '\1\1\&', 'g'), "
               r"length(regexp_replace(repeat(d, 2000000), 'a', 'z', 'g')), regexp_replace(NULL || d, 'a', 'xyz', 'g') "
               "FROM nn") == [("xyzxyz", "aaab", 4_000_000, None)]  # fmt: skip
    assert ask(f"SELECT {' || '.join(['d'] * 12)}, {' || '.join(['d', 'NULL'] * 12)} FROM nn") == [("ab" * 12, None)]
    nine = ", ".join(["d"] * 9)
    assert ask(f"SELECT concat(NULL, {nine}), concat_ws(d, NULL, {nine}) FROM nn") == [("ab" * 9, "ab" * 17)]
    assert ask("SELECT count(*) FROM nn, generate_series(a, 100000) AS g(i)") == [(100_000,)]


def _of_many(count: int) -> str:
    return f"nn, generate_series(1, a * {count}) AS g(i)"


NARROW, WIDE = _of_many(1_500_000), _of_many(20_000)
LONG = "repeat(d, 5000)"


@pytest.mark.parametrize("query", [
    f"SELECT array_agg(i) FROM {NARROW}",
    f"SELECT length(string_agg({LONG}, ',')) FROM {WIDE}",
    f"SELECT string_agg(DISTINCT i::text || {LONG}, ',') FROM {WIDE}",
    f"SELECT i % 100, cardinality(array_agg(i ORDER BY i DESC)) FROM {NARROW} GROUP BY 1",
    f"SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY i) FROM {NARROW}",
    f"SELECT ARRAY(SELECT {LONG} FROM {WIDE})",
    f"SELECT (SELECT length(string_agg({LONG}, ',')) FROM nn AS x, generate_series(1, 20000) WHERE x.a = nn.a) FROM nn",
    f"SELECT max(cardinality(l)) FROM (SELECT array_agg(i) OVER (PARTITION BY a) AS l FROM {NARROW}) AS q",
    f"WITH q AS (SELECT array_agg({LONG}) AS l FROM {WIDE} HAVING count(*) > 1) SELECT cardinality(l) FROM q",
])  # fmt: skip
def test_lists_that_would_not_fit_are_refused_before_they_are_gathered(ask, query):
    with pytest.raises(QueryFailed) as caught:
        ask(query)
    assert caught.value.sqlstate == "54000"


def test_lists_that_fit_are_answered(ask):
    assert ask(f"SELECT array_agg(DISTINCT i % 3) FROM {NARROW}") == [([0, 1, 2],)]
    assert ask(f"SELECT cardinality(array_agg(i) FILTER (WHERE i <= 1000)) FROM {NARROW}") == [(1000,)]
    groups = f"SELECT i % 100000 AS k, cardinality(array_agg(i)) AS m FROM {NARROW} GROUP BY 1"
    assert ask(f"SELECT count(*), max(m) FROM ({groups}) AS q") == [(100_000, 15)]
