"""ADD COLUMN with CHECK, UNIQUE or PRIMARY KEY: the column and what holds of it come together, or not at all."""

from __future__ import annotations

import asyncio

import pytest

from catalog_log.objects import Index, Table
from journal.errors import Indeterminate
from tests.adapter.stories import refused, until
from tests.adapter.test_constraints import run
from tests.adapter.test_not_null import before_half, inserting
from tests.adapter.world import World

KEPT = [
    ("c int check (c > 0)", 0, None),
    ("c int default 5 check (c > 0)", 0, 5),
    ("c int default 5 not null constraint pos check (c > a)", 0, 5),
    ("c int unique", 0, None),
    ("c int default 5 unique", -1, 5),
    ("c int default 5 primary key", -1, 5),
    ("c int default 5 primary key unique check (c < 9)", -1, 5),
    ("c int check (c > d), add d int default 4 check (d > a)", 0, None),
    ("c int, add check (c > d), add unique (d, a), add d int default 4", 0, None),
    ("c int default 3, add constraint pair unique (a, c)", 0, 3),
    ("c int default 3, add primary key (a, c)", 0, 3),
    ("c int default 3, alter b set not null, add check (b < c)", 0, 3),
]
"""What is said, how many rows more or less than two there may be, and what rows have in it."""

BROKEN = [
    ("c int default -5 check (c > 0)", "23514"),
    ("c int default 5 check (c < a)", "23514"),
    ("c int default 5 unique", "23505"),
    ("c int default 5 primary key", "23505"),
    ("c int primary key", "23502"),
    ("c int not null check (c > 0)", "23502"),
    ("c int check (c > d), add d int default 4 check (d > 9)", "23514"),
    ("c int default 3, add unique (c)", "23505"),
]


def table(adapter) -> Table:
    return next(each for each in adapter.catalog.image.objects() if isinstance(each, Table))


def indexes(adapter) -> list[Index]:
    return [each for each in adapter.catalog.image.objects() if isinstance(each, Index)]


async def two_rows(a) -> None:
    await a.sql("create table t (a int, b int)")
    await a.sql("insert into t values (1, 1), (2, 2)")


@pytest.mark.parametrize(("said", "more", "value"), KEPT)
def test_a_column_comes_with_what_holds_of_it(said, more, value):
    async def story(world: World):
        async with world.adapter() as a, world.adapter() as other:
            await two_rows(a)
            if more:
                await a.sql("delete from t where a = 2")
            assert await a.sql(f"alter table t add {said}") == "ALTER TABLE"
            assert set(await other.sql("select c from t")) == {(value,)}
            assert set(await other.sql("select convalidated from pg_constraint")) == {(True,)}
            column = next(each for each in table(a).columns if each.name == "c")
            assert column.nullable is not ("not null" in said.split(",")[0] or "primary" in said)
            assert table(a).mark_of(column) is None

    run(story)


@pytest.mark.parametrize(("said", "told"), BROKEN)
def test_one_that_rows_do_not_keep_leaves_the_table_as_it_was(said, told):
    async def story(world: World):
        async with world.adapter() as a, world.adapter() as other:
            await two_rows(a)
            before, upper = table(a), a.catalog.image.upper
            assert (await refused(a.sql(f"alter table t add {said}"))).sqlstate == told
            assert (table(a), indexes(a), a.catalog.image.upper) == (before, [], upper), "nobody saw anything of it"
            assert await other.sql("select * from t order by a") == [(1, 1), (2, 2)]

    run(story)


@pytest.mark.parametrize(
    "kind, value",
    [
        ("text", "'o''k'"), ("numeric(10, 2)", "1.5"), ("timestamptz", "'2026-01-02 03:04:05+00'"), ("jsonb", "'[1]'"),
        ("date", "'2026-01-02'"), ("uuid", "'6f1ed5b4-8b0c-4b1e-9d0a-0c6c4d3b2a19'"), ("bytea", "'\\x00ff'"),
        ("interval", "'1 day 2 hours'"), ("int[]", "'{1,null}'"), ("time", "'01:02:03'"), ("float8", "'NaN'"),
        ("bool", "true"), ("varchar(3)", "'abc'"), ("numeric", "1.50"), ("char(4)", "'ab'"), ("smallint", "7"),
    ],
)  # fmt: skip
def test_what_rows_have_in_it_is_what_is_looked_at(kind, value):
    async def story(world: World):
        async with world.adapter() as a:
            await two_rows(a)
            wrong = f"alter table t add c {kind} default {value} check (c <> {value}::{kind})"
            upper = a.catalog.image.upper
            assert (await refused(a.sql(wrong))).sqlstate == "23514"
            assert a.catalog.image.upper == upper, "before anything was announced"
            kept = f"alter table t add c {kind} default {value} check (c = {value}::{kind})"
            assert await a.sql(kept) == "ALTER TABLE"

    run(story)


def test_if_it_is_there_neither_comes():
    async def story(world: World):
        async with world.adapter() as a:
            await two_rows(a)
            before = table(a)
            said = "alter table t add if not exists b int default 0 unique check (b > 9)"
            assert await a.sql(said) == "ALTER TABLE"
            assert table(a) == before and not indexes(a)
            assert await a.sql(f"{said}, add if not exists c int check (c > b), add check (a > 0)") == "ALTER TABLE"
            assert [each.name for each in table(a).checks] == ["t_a_check", "t_check"]
            assert [each.name for each in table(a).columns] == ["a", "b", "c"]
            error = await refused(a.sql("alter table t add c int unique"))
            assert error.sqlstate == "42701" and not indexes(a)

    run(story)


@pytest.mark.parametrize("half", [1, 2])
@pytest.mark.parametrize("said", ["c int default 5 unique", "c int default 5 primary key", "c int primary key"])
def test_rows_that_come_while_it_is_said_are_refused_or_refuse_it(half, said):
    async def story(world: World):
        async with world.adapter() as a, world.adapter() as other:
            await a.sql("create table t (a int, b int)")
            if "default" in said:
                await a.sql("insert into t values (1, 1)")
            before, seen = table(a), []
            before_half(a, half, inserting(other, "insert into t (a, b) values (2, 2)", seen))
            if half == 1:
                assert (await refused(a.sql(f"alter table t add {said}"))).sqlstate == (
                    "23505" if "default" in said else "23502"
                )
                assert seen == ["INSERT 0 1"]
                # Its id is never used again.
                assert (table(a).columns, indexes(a)) == (before.columns, [])
            else:
                assert await a.sql(f"alter table t add {said}") == "ALTER TABLE"
                assert seen == ["23505" if "default" in said else "23502"]

    run(story)


def test_who_adds_the_same_column_at_once_takes_nothing_of_it_away():
    async def story(world: World):
        async with world.adapter() as a, world.adapter() as other:
            await two_rows(a)

            async def act():
                assert await other.sql("alter table t add c int check (c > 0)") == "ALTER TABLE"
                assert await other.sql("insert into t values (3, 3, 3)") == "INSERT 0 1"

            before_half(a, 1, act)
            assert (await refused(a.sql("alter table t add c int check (c > 0)"))).sqlstate == "42701"
            assert await a.sql("select * from t order by a") == [(1, 1, None), (2, 2, None), (3, 3, 3)]
            assert (await refused(other.sql("insert into t values (3, 3, -3)"))).sqlstate == "23514"

    run(story)


def test_other_columns_may_come_before_it():
    """Whose ids are those that were planned for it."""

    async def story(world: World):
        async with world.adapter() as a, world.adapter() as other:
            await two_rows(a)

            async def act():
                await other.sql("alter table t add x int default -1")

            before_half(a, 1, act)
            said = "alter table t add c int default 5 check (c > 0), add check (c + a > 5)"
            assert await a.sql(said) == "ALTER TABLE"
            assert await other.sql("select * from t order by a") == [(1, 1, -1, 5), (2, 2, -1, 5)]
            assert await other.sql("insert into t values (1, 1, -1, 5)") == "INSERT 0 1"
            for row in ("1, 1, 1, -5", "-1, 1, 1, 5"):
                assert (await refused(other.sql(f"insert into t values ({row})"))).sqlstate == "23514"

    run(story)


@pytest.mark.parametrize("between", ["drop constraint x", "drop c", "rename constraint x to y", "rename c to d"])
@pytest.mark.parametrize("said", ["constraint x check (c > 0)", "constraint x unique"])
def test_somebody_else_alters_the_table_between_the_halves(said, between):
    """Then it is begun anew, and in the end is there once with its constraint, or is not."""

    async def story(world: World):
        async with world.adapter() as a, world.adapter() as other:
            await two_rows(a)

            async def act():
                await other.sql(f"alter table t {between}")

            before_half(a, 2, act)
            try:
                assert await a.sql(f"alter table t add c int {said}") == "ALTER TABLE"
            except Exception as error:
                assert error.sqlstate in ("40001", "42701", "42703", "42710"), error
            names = [each.name for each in table(a).columns]
            valid = await other.sql("select conname, convalidated from pg_constraint")
            assert (names, valid) in (
                (["a", "b", "c"], [("x", True)]), (["a", "b"], []), (["a", "b", "d"], [("x", True)])
            )  # fmt: skip

    run(story)


@pytest.mark.parametrize("said", [
    "alter b set not null", "add check (b > 0)", "add constraint x unique (b), alter a set not null",
    "add primary key (a, b)",
])  # fmt: skip
def test_what_is_called_otherwise_right_behind_the_first_half_is_taken_back(said):
    """Before it is read under which marks rows are looked at."""

    async def story(world: World):
        async with world.adapter() as a, world.adapter() as other:
            await a.sql("create table t (a int, b int)")
            submit, left = a.executor.ddl.submit, iter([True])

            async def slipping(*args, **more):
                found = await submit(*args, **more)
                if next(left, False):
                    await other.sql("alter table t rename b to d")
                return found

            a.executor.ddl.submit = slipping
            if "(b" in said:  # it goes on by what it reads
                assert await a.sql(f"alter table t {said}") == "ALTER TABLE"
                assert await other.sql("select convalidated from pg_constraint") == [(True,)]
                return
            assert (await refused(a.sql(f"alter table t {said}"))).sqlstate == "42703"
            assert table(a).unchecked == ()
            assert await other.sql("select conname from pg_constraint") == []
            assert await other.sql("insert into t values (null, null), (1, -1), (1, -1)") == "INSERT 0 3"

    run(story)


def test_one_that_was_not_ended_is_ended_by_who_adds_its_constraint():
    async def story(world: World):
        async with world.adapter() as a, world.adapter() as other:
            await two_rows(a)

            async def die():
                raise MemoryError

            before_half(a, 2, die)
            a.executor._ddl._not_null._undo = lambda *_: asyncio.sleep(0)
            with pytest.raises(MemoryError):
                await a.sql("alter table t add c int check (c > 0)")
            await until(lambda: len(table(other).columns) == 3)
            assert (await refused(other.sql("insert into t values (3, 3, -3)"))).sqlstate == "23514"
            assert (await refused(other.sql("alter table t add c int check (c > 0)"))).sqlstate == "42701"
            assert await other.sql("alter table t add check (c > 0)") == "ALTER TABLE"
            assert await other.sql("select conname, convalidated from pg_constraint") == [("t_c_check", True)]

    run(story)


@pytest.mark.parametrize("said", ["c int default 5 check (c > 0)", "c int check (c > 0) unique", "c int unique"])
@pytest.mark.parametrize("done", [True, False])
def test_where_nobody_knows_whether_it_ended_nothing_of_what_ended_goes(said, done):
    async def story(world: World):
        async with world.adapter() as a, world.adapter() as other:
            await two_rows(a)
            submit, half = a.executor.ddl.submit, iter(range(1, 3))

            async def lost(*args, **more):
                if next(half, None) != 2:
                    return await submit(*args, **more)
                if done:
                    await submit(*args, **more)
                raise Indeterminate("nobody answered")

            a.executor.ddl.submit = lost
            assert (await refused(a.sql(f"alter table t add {said}"))).sqlstate == "08007"
            assert [each.name for each in table(a).columns] == (["a", "b", "c"] if done else ["a", "b"])
            assert set(await other.sql("select convalidated from pg_constraint")) == ({(True,)} if done else set())

    run(story)


@pytest.mark.parametrize(
    "said", ["c int unique, drop b", "c int check (c > 0), rename b to d", "c int unique, alter b set default 4"]
)
def test_what_else_could_not_be_undone_is_said_apart(said):
    async def story(world: World):
        async with world.adapter() as a:
            await two_rows(a)
            before = table(a)
            assert (await refused(a.sql(f"alter table t add {said}"))).sqlstate in ("0A000", "42601")
            assert table(a) == before

    run(story)
