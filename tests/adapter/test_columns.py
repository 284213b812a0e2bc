"""Columns of tables: what they keep of a value, their defaults, their numbers, by whatever way they came."""

from __future__ import annotations

import datetime as dt

from tests.adapter.stories import refused, run


def test_a_default_of_a_new_column_is_what_it_is_when_the_column_is_added():
    async def story(world):
        async with world.adapter() as a:
            await a.sql("create table t (a int)")
            await a.sql("insert into t values (1), (2)")
            await a.sql("alter table t add at timestamptz default now() not null, add n int default 3 * 4, add s text")
            await a.sql("insert into t (a) values (3)")
            rows = sorted(await a.sql("select a, at, n, s from t"))
            assert [(row[0], *row[2:]) for row in rows] == [(1, 12, None), (2, 12, None), (3, 12, None)]
            assert rows[0][1] == rows[1][1] < rows[2][1], "once for those that were there, anew for each statement"
            assert (await refused(a.sql("alter table t add x int default 1 / 0"))).sqlstate == "22012"
            assert (await refused(a.sql("alter table t add x float8 default random()"))).sqlstate == "0A000"
            await a.sql("alter table t add x float8, alter x set default random()")

    run(story)


def test_a_column_holds_numbers_to_digits_that_no_engine_has_decimals_for():
    """By whatever way a value comes into it."""
    long = "1" + "0" * 46

    async def story(world):
        async with world.adapter() as a:
            await a.sql("create table t (k int, n numeric(50,3), h numeric(3,-2), s numeric(2,4)[])")
            await a.sql(f"insert into t (k, n, h) values (1, 1.23456, 12345), (2, {long}, -49), (3, 'NaN', null)")
            await a.sql("insert into t (k, n) values ($1, $2)", 4, "0.0005")
            await a.sql("insert into t (k, n) select 5, 2::int8 union all select 6, 0.1::float8 + 0.2")
            await a.sql("insert into t (k, s) values (7, array[0.00994, null])")
            assert sorted(await a.sql("select k, n, h, s from t")) == [
                (1, "1.235", "12300", None), (2, long + ".000", "0", None), (3, "NaN", None, None),
                (4, "0.001", None, None), (5, "2.000", None, None), (6, "0.300", None, None),
                (7, None, None, ["0.0099", None]),
            ]  # fmt: skip
            assert await a.sql("select n + 1, n::numeric(60,1), h::int from t where k = 1") == [("2.235", "1.2", 12300)]
            await a.sql("alter table t add d numeric(40,2) default 1.005")
            assert {d for (d,) in await a.sql("select d from t")} == {"1.01"}, "of rows that were there"
            for wide in (
                f"insert into t (n) values ({long}0)",
                "insert into t (h) values (99950)",
                "insert into t (n) values ('infinity')",
                "insert into t (s) values (array[0.01])",
                "insert into t (h) select 1e6",
                "select 1e50::numeric(45,2)",
            ):
                assert (await refused(a.sql(wide))).sqlstate == "22003", wide
            shown = "select format_type(atttypid, atttypmod) from pg_attribute where attrelid = 't'::regclass"
            types = [t for (t,) in await a.sql(shown + " and attnum > 0 order by attnum")]
            assert types == ["integer", "numeric(50,3)", "numeric(3,-2)", "numeric(2,4)[]", "numeric(40,2)"]
            ((*_, made),) = await a.sql("show create table t")
            assert "numeric(50,3)" in made and "numeric(3,-2)" in made and "numeric(2,4)[]" in made
            scales = "select column_name, numeric_precision, numeric_scale from information_schema.columns"
            assert set(await a.sql(scales + " where table_name = 't' and column_name in ('n', 'h')")) == {
                ("n", 50, 3), ("h", 3, -2)
            }  # fmt: skip
            for wrong, sqlstate in (
                ("select 1::numeric(0)", "22023"), ("select 1::numeric(-3,1)", "22023"),
                ("select 1::numeric(3,-)", "42601"), ("select 1::numeric(3,1001)", "22023"),
                ("select 1::numeric(3,-1001)", "22023"),
            ):  # fmt: skip
                assert (await refused(a.sql(wrong))).sqlstate == sqlstate, wrong

    run(story)


def test_a_column_has_the_digits_and_fields_that_it_was_declared_with():
    """By whatever way a value comes into it."""
    at, rounded = dt.datetime(2024, 1, 1, 0, 0, 0, 999_600), dt.datetime(2024, 1, 1, 0, 0, 1)

    async def story(world):
        async with world.adapter() as a:
            await a.sql("create table t (a timestamp(3), b time(0), c interval minute, d timestamptz(0)[])")
            await a.sql("insert into t (a) values ('2024-01-01 00:00:00.9996')")
            await a.sql("insert into t (a) values ($1)", at)
            await a.sql("insert into t (a) select timestamp '2024-01-01 00:00:00.9996'")
            await a.sql("insert into t (a) values (timestamp '2024-01-01' + interval '0.9996 s')")
            assert await a.sql("select a from t") == [(rounded,)] * 4
            await a.sql("insert into t (b, c) values ('23:59:59.5', '10'), ('0:0:0.4', '1:2:3')")
            await a.sql("insert into t (b, c) values ('1:00', interval '90 s')")
            found = await a.sql("select b, c from t where b is not null")
            minute, hour = 60 * 10**6, 3600 * 10**6
            assert [(b, c["micros"]) for b, c in found] == [(24 * hour, 10 * minute), (0, 62 * minute), (hour, minute)]
            await a.sql("insert into t (d) values (array['2024-01-01 00:00:00.5+00'::timestamptz, null])")
            ((moments,),) = await a.sql("select d from t where d is not null")
            assert moments == [rounded.replace(tzinfo=dt.UTC), None]
            await a.sql("alter table t add e timestamp(0) default '2024-01-01 00:00:00.9996'")
            await a.sql("alter table t add f interval day default '10'")
            ((e, f),) = {(e, tuple(f.values())) for e, f in await a.sql("select e, f from t")}
            assert (e, f) == (rounded, (0, 10, 0)), "of rows that were there"
            await a.sql("create table u (k int, i interval minute default '10', y interval year default '3')")
            await a.sql("insert into u (k) values (1)")
            await a.sql("insert into u select 2")
            await a.sql("insert into u values (3, default, default)")
            for i, y in await a.sql("select i, y from u"):
                assert (i["micros"], y["months"]) == (10 * minute, 36), "a number is of the last field in a default too"
            await a.sql("insert into t (c) values (null)")
            assert {e for (e,) in await a.sql("select e from t")} == {rounded}, "and of those that come"
            for late in (
                "insert into t (a) values ('9999-12-31 23:59:59.9999')",
                "alter table t add g timestamp(0) default '9999-12-31 23:59:59.5'",
                "select '9999-12-31 23:59:59.5'::timestamp(0)",
            ):
                assert (await refused(a.sql(late))).sqlstate == "22008", late
            shown = "select format_type(atttypid, atttypmod) from pg_attribute where attrelid = 't'::regclass"
            names = [name for (name,) in await a.sql(f"{shown} and attndims = 0 order by attnum")]
            assert names[:3] == ["timestamp(3) without time zone", "time(0) without time zone", "interval minute"]
            assert names[-2:] == ["timestamp(0) without time zone", "interval day"]
            assert (await a.sql("show columns from t"))[0][2] == "timestamp(3) without time zone"
            digits = "select datetime_precision, interval_type from information_schema.columns where table_name = 't'"
            assert (await a.sql(digits))[:3] == [(3, None), (0, None), (6, "MINUTE")]
            await a.sql("create view v as select a, a::timestamp(1) as b from t")
            assert (await a.sql("show columns from v"))[0][2] == "timestamp without time zone", "as expressions are"

    run(story)


def test_columns_that_come_and_go_have_numbers_as_in_postgres():
    async def story(world):
        async with world.adapter() as a:
            await a.sql("create table t (a int, b text, c text)")
            await a.sql("create index i on t (c, a)")
            await a.sql("alter table t drop b, add column d int default 7 not null")
            await a.sql("alter table t rename c to cc")
            own = "select attname, attnum, attnotnull from pg_attribute where attrelid = 't'::regclass order by attnum"
            assert await a.sql(own) == [("a", 1, False), ("cc", 3, False), ("d", 4, True)]
            assert await a.sql("select indkey from pg_index") == [("3 1",)]
            assert await a.sql("select adnum, adbin from pg_attrdef") == [(4, "7")]
            assert await a.sql("select relnatts from pg_class where relname = 't'") == [(4,)]
            columns = "select column_name, ordinal_position from information_schema.columns where table_name = 't'"
            assert await a.sql(columns) == [("a", 1), ("cc", 3), ("d", 4)]
            shown = [("a", True, "integer"), ("cc", True, "text"), ("d", False, "integer")]
            assert await a.sql("show columns from t") == shown
            assert (await a.sql("show create index i"))[0][1].endswith("(cc, a)")
            await a.sql("insert into t values (1, 'x', 2), (3, 'y', default)")
            assert sorted(await a.sql("select * from t")) == [(1, "x", 2), (3, "y", 7)]

    run(story)
