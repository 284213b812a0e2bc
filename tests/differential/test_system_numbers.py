"""Exact numbers in queries over system relations, beside PostgreSQL: equal to the digit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from adapter.duck.catalog_relations import CatalogRelations
from journal.errors import TidemarkError
from sql.statements.select import plan_select
from sql.syntax.parse import parse
from tests.adapter.test_catalog_relations import FACTS, NAMES
from tests.differential.postgres import Refusal, ask, missing, postgres
from tests.differential.sides import lines
from tests.sql.doubles import shop

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))

HERE = Path(__file__).parent

ROWS = """(values
  (1, 10::int8, 1::int2, 1.5, 1.50, 0.5::float8, 2.25::numeric(6,2), ' 12.340', timestamp '2024-02-29 23:59:59.987654'),
  (2, 9007199254740993, -7, 2.00, 0.3, -3.25, -1234.5, '-0.00', timestamp '1969-12-31 12:00:00.5'),
  (3, -3, 30000, -12.34567890123, 7, 1e15, 0, '1e3', timestamp '2000-01-01 00:00:00.05'),
  (4, 0, 0, 0.000, -2.50, 0.1, 99.99, '99.95', timestamp '2024-06-30 08:09:10'),
  (5, null, null, null, 3, null, null, null, null)
) v(i, l, s, n, m, f, d, t, at), (select relname from pg_catalog.pg_class where relname = 'pg_class') c"""

WHOLE = [
    "select n, count(*) from {} group by n order by n",
    "select x, count(*) from (values (1.0), (1.00), (2)) w(x), {} group by x order by x desc",
    "select distinct x from (values (2.5), (1), (2.5)) w(x), {} order by x",
    "select i from {} order by n desc nulls last, i",
    "select i from {} where n in (select m from (values (1.500), (2)) w(m)) order by i",
    "select i, x from {}, (values (1.500), (2)) w(x) where n = x order by i",
    "select count(*) from (values (1.500), (2)) w(n) join (values (1.5), (7)) x(n) using (n), pg_catalog.pg_class c "
    "where relname = 'pg_class'",
    "select n from {} where i < 3 union select 1.500 order by 1",
    "select n from {} where i < 3 union all select 7 order by 1",
    "select count(*), n, i > 2 from {} where i < 5 group by grouping sets ((n), (i > 2)) order by n, 3",
    "select i > 2, sum(n), avg(d) from {} group by 1 order by avg(d) desc",
    "select i > 2, avg(n) from {} group by 1 having avg(n) > 0.5",
    "select distinct on (i > 2) i, n from {} where i < 5 order by i > 2, n desc",
    "select n from {} order by n limit 2.4",
]


@pytest.fixture(scope="module")
def peer() -> Iterator[psycopg.Connection]:
    with postgres() as connection:
        yield connection


@pytest.fixture(scope="module")
def answered() -> Callable[[str], list[tuple] | str]:
    """The rows of a query over system relations, all values as texts; the SQLSTATE of an error."""
    relations, image = CatalogRelations(), shop()

    def run(text: str) -> list[tuple] | str:
        try:
            plan = plan_select(parse(text).ast, image, NAMES)
            assert plan.kind == "catalog"
            return [tuple(row.values()) for row in relations.answer(plan, [], image, FACTS).to_pylist()]
        except TidemarkError as error:
            return error.sqlstate

    return run


def differs(peer: psycopg.Connection, answered: Callable, text: str) -> str | None:
    theirs, ours = ask(peer, text), answered(text)
    wanted = theirs.sqlstate if isinstance(theirs, Refusal) else list(theirs.rows)
    return None if ours == wanted else f"{text}: {ours} instead of {wanted}"


@pytest.mark.parametrize("text", lines(HERE / "system_numbers.txt"))
def test_an_expression_of_numbers(peer, answered, text):
    def query(row: str) -> str:
        return f"select ({text})::text from {ROWS} where {row} order by i"

    whole = ask(peer, query("true"))
    for row in ("i = 1", "i = 2", "i = 3", "i = 4", "i = 5") if isinstance(whole, Refusal) else ("true",):
        assert differs(peer, answered, query(row)) is None


@pytest.mark.parametrize("text", lines(HERE / "system_aggregates.txt"))
def test_what_folds_numbers(peer, answered, text):
    assert differs(peer, answered, f"select ({text})::text from {ROWS}") is None


@pytest.mark.parametrize("text", WHOLE)
def test_what_compares_and_sorts_numbers(peer, answered, text):
    theirs, ours = ask(peer, text.format(ROWS)), answered(text.format(ROWS))
    assert [list(map(str, row)) for row in ours] == [list(map(str, row)) for row in theirs.rows]
