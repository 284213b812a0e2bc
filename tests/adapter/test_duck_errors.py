"""What a client is told of errors of the in-process engine: Postgres's sentence, never that engine's."""

from __future__ import annotations

import duckdb
import pytest

from lower.duckdb.errors import explain
from tests.foreign_words import foreign_words

SETUP = "create table t(a int, b varchar); insert into t values (1, 'x'), (2, 'y'); create table u(a int)"

WRONG = [
    ("select zz from t", "42703", 'column "zz" does not exist'),
    ("select x.zz from t x", "42703", "column x.zz does not exist"),
    ("select q.a from t", "42P01", 'missing FROM-clause entry for table "q"'),
    ("select * from nope", "42P01", 'relation "nope" does not exist'),
    ("select tm_nofn(1)", "42883", "function nofn does not exist"),
    ("select length(1::blob, 2)", "42883", "function length(bytea, integer) does not exist"),
    ("select sum(b) from t", "42883", "function sum(text) does not exist"),
    ("select a from t, u", "42702", 'column reference "a" is ambiguous'),
    ("select * from t x, t x", "42712", 'table name "x" specified more than once'),
    ("select a, count(*) from t", "42803",
     'column "a" must appear in the GROUP BY clause or be used in an aggregate function'),
    ("select sum(sum(a)) from t", "42803", "aggregate function calls cannot be nested"),
    ("select a from t where sum(a) > 1", "42803", "aggregate functions are not allowed in WHERE"),
    ("select a from t where row_number() over () = 1", "42P20", "window functions are not allowed in WHERE"),
    ("select 'x'::int", "22P02", 'invalid input syntax for type integer: "x"'),
    ("select 'x'::decimal(4,2)", "22P02", 'invalid input syntax for type numeric: "x"'),
    ("select ' tidemark:57014:gone:'::int", "22P02",
     'invalid input syntax for type integer: " tidemark:57014:gone:"'),
    ("select error('tm:22P02:no: ' || 'tidemark:57014:gone:')", "22P02", "no: tidemark:57014:gone:"),
    ("select 'x'::date", "22007", 'invalid input syntax for type date: "x"'),
    ("select '3000000000'::varchar::int", "22003", 'value "3000000000" is out of range for type integer'),
    ("select '99999999999.5'::varchar::decimal(10, 2)", "22003", "numeric field overflow"),
    ("select '1e400'::varchar::decimal(10, 2)", "22003", "numeric field overflow"),
    ("select 'x1'::varchar::int", "22P02", 'invalid input syntax for type integer: "x1"'),
    ("select date '2024-13-01'", "22008", "date/time field value out of range"),
    ("select 2147483647::int + 1::int", "22003", "integer out of range"),
    ("select 9223372036854775807 + 1", "22003", "bigint out of range"),
    ("select 3000000000::bigint::int", "22003", "integer out of range"),
    ("select 12345::decimal(4,2)", "22003", "numeric field overflow"),
    ("select 1 // 0", "22012", "division by zero"),
    ("select (select a from t)", "21000", "more than one row returned by a subquery used as an expression"),
    ("select (select 1, 2)", "42601", "subquery must return only one column"),
    ("select a from t order by 7", "42P10", "ORDER BY position is not in select list"),
    ("select cast('x' as nosuch)", "42704", 'type "nosuch" does not exist'),
    ("select 1::int[]", "42846", "cannot cast type integer to integer[]"),
    ("select regexp_matches(b, '(') from t", "2201B", "invalid regular expression"),
    ("selec 1", "42601", 'syntax error at or near "selec"'),
    ("select 'abc' like 'a\\' escape '\\'", "22025", "LIKE pattern must not end with escape character"),
]  # fmt: skip

UNKNOWN = ["select array[1] || 'x'", "select struct_extract({'a': 1}, 'b')", "select strftime(date '2024-01-01', 5)",
           "select 'a' + 1", "select ('abc')[1:2:3]"]  # fmt: skip


@pytest.fixture(scope="module")
def engine():
    with duckdb.connect() as connection:
        connection.execute(SETUP)
        yield connection


@pytest.mark.parametrize(("query", "sqlstate", "message"), WRONG)
def test_postgres_sentence_is_told(engine, query, sqlstate, message):
    with pytest.raises(duckdb.Error) as thrown:
        engine.execute(query).fetchall()
    told = explain(thrown.value)
    assert (told.sqlstate, told.message) == (sqlstate, message) and foreign_words(told) is None


def test_what_a_reader_of_arrows_makes_of_a_refusal_is_that_refusal(engine):
    rows = "range(1000000) s(a)"  # more than it looks at before it gives the first of them
    query = f"select case when a = 500000 then error('tm:55000:no: Conversion Error') end from {rows}"
    with pytest.raises(OSError) as thrown:
        engine.sql(query).to_arrow_reader(1000).read_all()
    told = explain(duckdb.Error(str(thrown.value)))  # as the engine tells it
    assert (told.sqlstate, told.message) == ("55000", "no: Conversion Error")


@pytest.mark.parametrize("query", UNKNOWN)
def test_what_is_not_in_the_table_is_told_without_its_words(engine, query):
    with pytest.raises(duckdb.Error) as thrown:
        engine.execute(query).fetchall()
    assert foreign_words(explain(thrown.value)) is None
