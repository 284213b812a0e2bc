"""AS OF as it is written: where it is the clause and where a name, and which values it takes."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from journal.errors import InvalidUsage
from sql.statements.as_of import plan_as_of, timestamp_of
from sql.statements.select import plan_query
from sql.syntax.parse import parse
from tests.sql.doubles import ddl, empty_image, names


@pytest.mark.parametrize("query", [
    "select * from t as of 5", "table t as of 5", "values (1) as of 5", "(select 1) as of 5", "select a as of 5",
    "with x as (select 1) select * from x as of 5;", "select a as of from t as of 5",
    "select * from t order by 1 limit 1 as of 5", "select * from t where a in (1, 2, 3) AS OF 5",
    "select * from t where a = 1 as of 5", "select * from t as of /* then */ 5",
])  # fmt: skip
def test_it_stands_behind_the_whole_query(query):
    found = parse(query)
    assert found.as_of.text == "5" and "5" not in found.ast.sql()


@pytest.mark.parametrize("query", [
    "select * from t as of", "select a as of, b from t", "select a as of from t", "select * from t as of (x, y)",
    "select * from t as of (x)", "select * from t as of join u on true", "select a as of union (select 2)",
    "select a as of union select b as of", "select * from t as of where a = 1", 'select 1 as "of"',
    "select * from t as of inner join u using (a)",
])  # fmt: skip
def test_of_is_a_name_as_well(query):
    assert parse(query).as_of is None


@pytest.mark.parametrize(("query", "sqlstate", "position"), [
    ("select 1 as of 5 6", "42601", 18), ("select * from t as of 'x' limit 1", "42601", 27),
    ("select 1 as of 5 union select 2", "42601", 16), ("select 1 as of at least 5", "0A000", 16),
    ("select * from (select 1 as of 5) x", "42601", 31), ("insert into t select 1 as of 5", "42601", 30),
    ("create view v as select * from t as of 5", "42601", 40), ("explain select 1 as of 5 6", "42601", 26),
])  # fmt: skip
def test_it_is_nowhere_else(query, sqlstate, position):
    with pytest.raises(InvalidUsage) as caught:
        parse(query)
    assert (caught.value.sqlstate, caught.value.position) == (sqlstate, position)


@pytest.mark.parametrize(("said", "kind"), [
    ("5", "int4"), ("1764252000000", "int8"), ("'1764252000000'", "int8"), ("'2026-01-01'", "timestamptz"),
    ("now() - interval '5 minutes'", "timestamptz"), ("current_timestamp", "timestamptz"),
    ("timestamp '2026-01-01'", "timestamptz"), ("date '2026-01-01'", "timestamptz"), ("(select 5)", "int4"),
    ("(extract(epoch from now()) * 1000)::int8", "int8"),
])  # fmt: skip
def test_what_it_takes(said, kind):
    plan = plan_as_of(parse(f"select 1 as of {said}").as_of, empty_image(), names())
    assert plan.kind == "constant" and plan.columns[0].type.name == kind


@pytest.mark.parametrize(("said", "sqlstate"), [
    ("1.5", "42804"), ("'x'::text", "42804"), ("null", "42804"), ("$1", "0A000"),
    ("(select max(a) from t)", "0A000"), ("nextval('q')", "0A000"), ("'yesterday evening'", "22007"),
])  # fmt: skip
def test_what_it_does_not_take(said, sqlstate):
    image = ddl(empty_image(), "create table t (a int)", "create sequence q")
    with pytest.raises(InvalidUsage) as caught:
        plan_as_of(parse(f"select 1 as of {said}").as_of, image, names())
    assert caught.value.sqlstate == sqlstate


MOMENT = pa.timestamp("us", "UTC")


@pytest.mark.parametrize(("values", "kind", "ts"), [
    ([1764252000123], pa.int64(), 1764252000123), ([5], pa.int16(), 5),
    ([datetime(2026, 1, 1, 0, 0, 0, 1999, tzinfo=UTC)], MOMENT, 1767225600001),
])  # fmt: skip
def test_its_value_is_a_timestamp_of_data(values, kind, ts):
    assert timestamp_of(pa.chunked_array([pa.array(values, kind)])) == ts


@pytest.mark.parametrize(("values", "kind", "sqlstate"), [
    ([None], MOMENT, "22004"), ([-1], pa.int32(), "22023"), ([datetime(1960, 1, 1, tzinfo=UTC)], MOMENT, "22023"),
    ([-9_000_000_000_000_000_000], MOMENT, "22023"),  # 283,000 years before: Python has none such
    ([], pa.int64(), "21000"), ([1, 2], pa.int64(), "21000"),
])  # fmt: skip
def test_what_is_no_timestamp_of_data(values, kind, sqlstate):
    with pytest.raises(InvalidUsage) as caught:
        timestamp_of(pa.chunked_array([pa.array(values, kind)]))
    assert caught.value.sqlstate == sqlstate


def test_no_index_is_asked_and_nothing_that_has_no_history():
    image = ddl(empty_image(), "create table t (a int)", "create index on t (a)", "create sequence q")
    assert plan_query(parse("select * from t where a = 1"), image, names()).lookup is not None
    assert plan_query(parse("select * from t where a = 1 as of 5"), image, names()).lookup is None
    for query in ("select relname from pg_class", "select nextval('q')", "select a, nextval('q') from t"):
        with pytest.raises(InvalidUsage) as caught:
            plan_query(parse(f"{query} as of 5"), image, names())
        assert caught.value.sqlstate == "0A000"
