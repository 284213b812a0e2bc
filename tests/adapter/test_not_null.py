"""SET NOT NULL: a column that says it has no NULL has none, whoever writes while it is said."""

from __future__ import annotations

import asyncio

import pytest

from adapter.execute.ddl_commit import Asked
from adapter.state.transaction import Status
from catalog_log.objects import Table
from journal.errors import TidemarkError
from sql.objects.names import Names
from sql.syntax.parse import parse
from tests.adapter.stories import HeldTransport, refused, run, until
from tests.adapter.world import World

NULLS = "23502", 'column "b" of relation "t" contains null values'
NO_NULL = "23502", 'null value in column "b" of relation "t" violates not-null constraint'


async def told(awaitable) -> tuple[str, str]:
    error = await refused(awaitable)
    return error.sqlstate, error.message


def table(adapter) -> Table:
    return next(each for each in adapter.catalog.image.objects() if each.name == "t")


async def columns(adapter) -> list[tuple]:
    about = "select attname, attnotnull from pg_attribute where attrelid = 't'::regclass and attnum > 0 order by attnum"
    return await adapter.sql(about)


def before_half(adapter, half: int, act) -> None:
    """``act`` once, just before the ``half``-th half of the next ALTER is put into the catalog."""
    submit, left = adapter.executor.ddl.submit, iter(range(1, half + 1))

    async def slipping(*args, **more):
        if next(left, None) == half:
            await act()
        return await submit(*args, **more)

    adapter.executor.ddl.submit = slipping


def inserting(adapter, text: str, seen: list[str]):
    """Puts ``text`` and has in ``seen`` its tag, or the SQLSTATE with which it was refused."""

    async def act():
        try:
            seen.append(await adapter.sql(text))
        except TidemarkError as error:
            seen.append(error.sqlstate)

    return act


def test_a_column_without_nulls_takes_none_any_more_and_one_with_them_stays_as_it_was():
    async def story(world: World):
        async with world.adapter() as a, world.adapter() as other:
            await a.sql("create table t (a int, b int, c text)")
            await a.sql("insert into t values (1, 2, 'x'), (2, null, 'y')")
            assert await told(a.sql("alter table t alter column b set not null")) == NULLS
            assert table(a).unchecked == () and await columns(a) == [("a", False), ("b", False), ("c", False)]
            assert await a.sql("insert into t values (3, null, 'z')") == "INSERT 0 1"
            assert await a.sql("alter table t alter c set not null, alter a set not null") == "ALTER TABLE"
            assert await columns(other) == [("a", True), ("b", False), ("c", True)]
            for text in ("insert into t (a, b) values (4, 4)", "insert into t select 4, 4, null"):
                assert (await refused(other.sql(text))).sqlstate == "23502"
            assert await a.sql("alter table t alter a set not null") == "ALTER TABLE", "it is"
            await a.sql("alter table t alter a drop not null")
            await a.sql("insert into t (c) values ('w')")
            both = await told(a.sql("alter table t alter a set not null, alter b set not null"))
            assert both in (NULLS, (NULLS[0], NULLS[1].replace('"b"', '"a"'))), "in which row it is seen first"
            assert await columns(a) == [("a", False), ("b", False), ("c", True)]

    run(story)


def test_a_column_comes_not_null_where_there_are_no_rows():
    async def story(world: World):
        async with world.adapter() as a:
            await a.sql("create table t (a int)")
            await a.sql("alter table t add column b int not null, add c text not null")
            assert await columns(a) == [("a", False), ("b", True), ("c", True)]
            assert await told(a.sql("insert into t values (1, null, 'x')")) == NO_NULL
            await a.sql("insert into t values (1, 2, 'x')")
            assert await told(a.sql("alter table t add d int not null")) == (
                "23502", 'column "d" of relation "t" contains null values'
            )  # fmt: skip
            assert await told(a.sql("alter table t add d int default null not null")) == (
                "23502", 'column "d" of relation "t" contains null values'
            )  # fmt: skip
            assert [name for name, _ in await columns(a)] == ["a", "b", "c"]
            await a.sql("alter table t add d int not null default 7")
            assert await a.sql("select * from t") == [(1, 2, "x", 7)]
            await a.sql("create table u (a int)")
            for beside in ("drop a", "alter a set default 1", "add y int"):
                error = await refused(a.sql(f"alter table u add x int not null, {beside}"))
                assert (error.sqlstate, error.hint) == ("0A000", "say it in a statement of its own")

    run(story)


@pytest.mark.parametrize("half", [1, 2])
@pytest.mark.parametrize("altering", ["alter b set not null", "add d int not null"])
def test_rows_that_come_while_it_is_said_are_refused_or_refuse_it(half, altering):
    async def story(world: World):
        async with world.adapter() as a, world.adapter() as other:
            await a.sql("create table t (a int, b int)")
            seen: list[str] = []
            before_half(a, half, inserting(other, "insert into t (a) values (1)", seen))
            name = "d" if "add" in altering else "b"
            if half == 1:
                assert await told(a.sql(f"alter table t {altering}")) == (
                    "23502", f'column "{name}" of relation "t" contains null values'
                )  # fmt: skip
                assert seen == ["INSERT 0 1"] and await columns(other) == [("a", False), ("b", False)]
                assert await other.sql("insert into t values (2, null)") == "INSERT 0 1", "as it was"
            else:
                await a.sql(f"alter table t {altering}")
                assert seen == ["23502"] and dict(await columns(other))[name] is True
                assert await a.sql("select count(*) from t") == [(0,)]

    run(story)


def test_in_a_block_rows_are_read_as_they_are_and_not_where_the_block_reads():
    """A block's one DDL is done at COMMIT; what it looks at twice is no read of the block's."""

    async def story(world: World):
        async with world.adapter() as a, world.adapter() as other:
            await a.sql("create table t (a int, b int)")
            before_half(a, 1, lambda: other.sql("insert into t (a) values (1)"))
            a.session.transaction.status = Status.IN_BLOCK
            assert await told(a.sql("alter table t alter b set not null")) == NULLS
            assert a.session.transaction.read_ts is None and not a.session.transaction.tables_read
            assert await columns(other) == [("a", False), ("b", False)]

    run(story)


def test_a_row_that_was_planned_before_is_not_committed_afterwards():
    """The adapter has not heard of the first half when it commits."""

    async def story(world: World):
        slow = HeldTransport(world.catalog_topic)
        async with world.adapter("slow", slow) as a, world.adapter("b") as b:
            await a.sql("create table t (a int, b int)")
            slow.held = True
            altering = asyncio.create_task(b.sql("alter table t alter b set not null"))
            await until(lambda: any(each.name == "t" and (each.unchecked or not each.columns[1].nullable)
                                    for each in b.catalog.image.objects()))  # fmt: skip
            inserting = asyncio.create_task(a.sql("insert into t values (1, null)"))
            assert await altering == "ALTER TABLE"
            slow.release()
            assert await told(inserting) == NO_NULL
            assert await b.sql("select count(*) from t") == [(0,)]

    run(story)


@pytest.mark.parametrize("between", ["alter b drop not null", "drop b", "alter b set not null", "rename to u"])
def test_somebody_else_alters_the_column_between_the_halves(between):
    async def story(world: World):
        async with world.adapter() as a, world.adapter() as other:
            await a.sql("create table t (a int, b int)")

            async def act():
                await other.sql(f"alter table t {between}")
                if between.endswith("drop not null"):
                    await other.sql("insert into t values (1, null)")

            before_half(a, 2, act)
            said = a.sql("alter table t alter b set not null")
            if between.endswith("drop not null"):
                assert await told(said) == NULLS
                assert table(a).unchecked == () and await a.sql("select * from t") == [(1, None)]
            elif between == "drop b":
                assert (await refused(said)).sqlstate == "42703"
            elif between.startswith("rename"):
                assert (await refused(said)).sqlstate == "42P01"
                [renamed] = [each for each in a.catalog.image.objects() if each.name == "u"]
                assert renamed.unchecked == ()
            else:
                assert await said == "ALTER TABLE" and dict(await columns(other))["b"] is True

    run(story)


def test_two_adapters_say_it_at_once_while_others_write():
    async def story(world: World):
        async with world.adapter() as a, world.adapter() as b, world.adapter() as c:
            await a.sql("create table t (a int, b int)")
            for n in range(6):
                said = [x.sql("alter table t alter b set not null") for x in (a, b)]
                wrote = [c.sql(f"insert into t values ({n}, {n})"), c.sql(f"insert into t values ({n}, null)")]
                *_, written = done = await asyncio.gather(*said, *wrote, return_exceptions=True)
                left = await b.sql("select count(*) from t where b is null")
                if dict(await columns(a))["b"]:
                    assert left == [(0,)], done
                    await a.sql("alter table t alter b drop not null")
                else:
                    assert left != [(0,)] and {each.sqlstate for each in done[:2]} <= {"23502", "40001"}, done
                    return

    run(story)


def test_one_that_was_not_ended_refuses_nulls_and_is_ended_by_who_says_it_again():
    async def story(world: World):
        async with world.adapter() as a, world.adapter() as other:
            await a.sql("create table t (a int)")

            async def die():
                raise MemoryError

            before_half(a, 2, die)
            a.executor._ddl._not_null._undo = lambda *_: asyncio.sleep(0)
            with pytest.raises(MemoryError):
                await a.sql("alter table t add b int not null")
            assert await columns(other) == [("a", False), ("b", False)]
            assert await told(other.sql("insert into t values (1, null)")) == NO_NULL
            await other.sql("insert into t values (1, 1)")
            assert await other.sql("alter table t add b int not null") == "ALTER TABLE"
            assert await columns(other) == [("a", False), ("b", True)]

    run(story)


def test_it_may_be_said_on_the_topic_too():
    async def story(world: World):
        async with world.adapter() as a:
            await a.sql("create table t (a int, b int)")
            text = "alter table t alter b set not null"
            outcome = await a.executor.execute_ddl(parse(text), Names(), Asked(text), "request")
            assert outcome.tag == "ALTER TABLE" and dict(await columns(a))["b"] is True
            again = await a.executor.execute_ddl(parse(text), Names(), Asked(text), "request")
            assert again.already is not None

    run(story)


def test_all_columns_of_a_table_are_replaced_by_others():
    async def story(world: World):
        async with world.adapter() as a:
            await a.sql("create table t (a int)")
            await a.sql("insert into t values (1)")
            await a.sql("alter table t add b int default 7, drop a")
            assert await a.sql("select * from t") == [(7,)]
            await a.sql("alter table t drop b, add b text")
            assert await a.sql("select b from t") == [(None,)]
            error = await refused(a.sql("alter table t drop b"))
            assert (error.sqlstate, error.hint) == ("0A000", "drop the table")

    run(story)
