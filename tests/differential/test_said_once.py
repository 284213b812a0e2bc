"""What names an operand several times, said once of a row of it, and put to PostgreSQL."""

from __future__ import annotations

import duckdb
import psycopg
import pytest

from lower.duckdb.lowering import for_duckdb, text_of
from tests.differential.ours import Ours
from tests.differential.postgres import missing, postgres
from trees import said_once

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))

CASES = """
a::numeric | nullif({}, 1.50)
a::numeric | nullif(1.500, {})
a::numeric | nullif({}, b)
a::numeric | nullif({}, null)
a::numeric | nullif({}, c)
a | nullif({}, 2.5::numeric)
b | nullif({}, 2.5::numeric)
c | nullif({}, b)
c | nullif({}, a)
c | nullif({}, f)
f | nullif({}, c)
f::real | nullif({}, 2.5::numeric)
f::real | nullif({}, a)
f::real | nullif({}, b)
x::char(5) | nullif({}, x)
x::char(5) | nullif({}, y)
y | nullif({}, x::char(5))
j | nullif({}, '1')
j | nullif({}, k)
j | nullif(k, {})
c | greatest({}, a, 1.25)
c | least({}, a, 1.25)
c | greatest({}, null)
b | trunc({}, 1)
b | trunc({}, 0)
b | div({}, 1.5)
b | div({}, nullif(b, 2.5))
f | {} / 3
f | {} / nullif(a, 0)
a | {} / nullif(a, 7)
a | {} % nullif(a, 7)
f | power({}, 2)
f | trunc({})
f | ceil({})
f | ({})::int
y | left({}, 2)
y | substr({}, a, 2)
y | replace({}, 'b', x)
y | overlay({} placing 'ZZ' from 2 for 1)
y | overlay({} placing x from 1)
y | overlay({} placing 'Z' from 1 for a)
y | substring({} from '[a-z]+')
y | split_part({}, 'b', 1)
y | lpad({}, 4, x)
t | {} - timestamp '2020-01-01'
t | {} + interval '1 month 1 day'
t | date '2020-01-31' + ({} - timestamp '2020-01-01')
t | ({} at time zone 'Europe/Berlin') at time zone 'Europe/Rome'
t | date_trunc('century', {})
t | to_char({}, 'YYYY-MM-DD HH24:MI')
"""

ROWS = """(values
 (1, 2.50::numeric(9,2), 2.5::numeric, 2.5::float8, 'ab ', 'abc', '1'::jsonb, '1.0'::jsonb,
  timestamp '2020-03-29 02:30'),
 (7, -1.55, '1.500', -2.5, '', 'b', '{"a": 1}', '{"a": 1.00}', '1999-12-31 23:59:59.5'),
 (0, 0.00, 'NaN', 'NaN', 'é', 'ébé', 'null', '[1]', '2020-10-25 02:30'),
 (2, 1.50, 'Infinity', 'Infinity', 'ab', 'ab  ', '[1, 2]', '[1.0, 2]', '0001-03-01'),
 (null, null, null, null, null, null, null, null, null)
) as v (a, b, c, f, x, y, j, k, t)"""


def _cases() -> list[tuple[str, str]]:
    return [tuple(line.split(" | ", 1)) for line in CASES.strip().splitlines()]


@pytest.fixture(scope="module")
def connection():
    with postgres() as found:
        yield found


@pytest.fixture(scope="module")
def ours():
    return Ours()


@pytest.mark.parametrize(("operand", "around"), _cases())
def test_an_operand_that_is_said_once_gives_what_postgres_gives(connection, ours, operand, around, monkeypatch):
    """Row by row, since one that is refused is no answer for the others."""
    one = around.format(f"({operand})")
    for place in range(5):
        query = f"SELECT ({one})::text AS c FROM (SELECT * FROM {ROWS} OFFSET {place} LIMIT 1) AS v"
        try:
            wanted = connection.execute(query).fetchall()
        except psycopg.Error as error:
            connection.rollback()
            wanted = error.sqlstate
        monkeypatch.setattr(said_once, "LARGE_MIN", 0)  # as it is, all of them are small and written as ever
        answer = ours.ask(query)
        found = getattr(answer, "sqlstate", None) or list(answer.rows)
        assert found == wanted, (query, answer)


def test_what_is_grouped_by_is_known_again_in_having(connection, ours, monkeypatch):
    monkeypatch.setattr(said_once, "LARGE_MIN", 0)
    query = (
        f"SELECT left(y, 2) AS c, count(*) AS n, max(power(a, 2)) AS p FROM {ROWS} GROUP BY left(y, 2) "
        "HAVING left(y, 2) >= 'ab' AND max(power(a, 2)) < 5 ORDER BY left(y, 2)"
    )
    assert list(ours.ask(query).rows) == connection.execute(query).fetchall()


def test_it_is_said_once_in_both_engines(ours, monkeypatch):
    monkeypatch.setattr(said_once, "LARGE_MIN", 0)
    plan = ours.plan("SELECT left(x || y, 2) AS c, overlay(x placing y from 2) AS d FROM t")
    told = (plan.spark_sql([]), text_of(for_duckdb(plan.tree)))
    assert "TRANSFORM(ARRAY(" in told[0] and "LIST_TRANSFORM([" in told[1].upper()


def test_a_column_that_is_called_like_the_row_is_not_taken_for_it(ours, monkeypatch):
    monkeypatch.setattr(said_once, "LARGE_MIN", 0)
    plan = ours.plan("SELECT power(given, 2) AS c FROM (VALUES (3.0::float8), (4.0)) AS v (given)")
    told = text_of(for_duckdb(plan.tree))
    assert "LAMBDA given" in told
    assert duckdb.sql(told).fetchall() == [(9.0,), (16.0,)]
