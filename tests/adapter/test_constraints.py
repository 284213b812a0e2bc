"""CHECK, and constraints that are added to tables with rows: no row breaks one, whoever writes while it is said."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from adapter.state.transaction import Status
from catalog_log.objects import Index, Table
from tests.adapter.stories import HeldTransport, before_commit, refused, until
from tests.adapter.test_copies import client, copied, on_a_loop, rows
from tests.adapter.test_not_null import before_half, inserting
from tests.adapter.world import World
from tests.finishing import finished

HALVES = [
    ("check (b > 0)", "(1, -1)", "23514", "23514"),
    ("constraint u unique (a)", "(7, 1)", "23505", "23505"),
    ("primary key (a)", "(7, 1)", "23505", "23505"),
    ("primary key (a)", "(null, 1)", "23502", "23502"),
]
"""What is added, a row that does not keep it beside (7, 7), what the statement is told of it, and who writes it."""


def run(story) -> None:
    finished(story(World()))


def kept_by(adapter, name: str):
    """What keeps the one table's constraint of that name."""
    of = [each for item in adapter.catalog.image.objects() if isinstance(item, Table) for each in item.checks]
    of += [each for each in adapter.catalog.image.objects() if isinstance(each, Index)]
    return next((each for each in of if each.name == name), None)


async def sqlstate(awaitable) -> str:
    return (await refused(awaitable)).sqlstate


@on_a_loop
async def test_whatever_writes_rows_keeps_checks_and_is_told_of_the_first_that_does_not():
    setup = "create table t (k int primary key, a int constraint pos check (a > 0))", "insert into t values (1, 1)"
    async with client(World(), *setup) as c:
        for text in (
            "insert into t values (2, 2), (3, -3)", "insert into t select k + 1, a - 4 from t",
            "update t set a = a - 4", "insert into t values (1, 1) on conflict (k) do update set a = t.a - 4",
            "insert into t values (1, -3) on conflict do nothing",
        ):  # fmt: skip
            with pytest.raises(psycopg.errors.CheckViolation) as wrong:
                await c.execute(text)
            diag = wrong.value.diag
            assert diag.message_primary == 'new row for relation "t" violates check constraint "pos"'
            assert (diag.table_name, diag.constraint_name) == ("t", "pos") and ", -3)." in diag.message_detail
        with pytest.raises(psycopg.errors.CheckViolation) as wrong:
            await copied(c, "copy t from stdin", b"2\t2\n3\t\\N\n4\t-4\n5\t-5\n")
        assert wrong.value.diag.context == 'COPY t, line 3: "4\t-4"'
        assert wrong.value.diag.message_detail == "Failing row contains (4, -4)."
        assert await rows(c, "select * from t") == [(1, 1)]
        assert await copied(c, "copy t from stdin", b"2\t2\n3\t\\N\n") == "COPY 2"


@on_a_loop
async def test_a_detail_shows_a_row_as_the_session_is_shown_rows():
    setup = ("create table t (at timestamptz, s text, check (length(s) < 3))",)
    async with client(World(), *setup) as c:
        await c.execute("set timezone = 'Asia/Tokyo'")
        with pytest.raises(psycopg.errors.CheckViolation) as wrong:
            await c.execute("insert into t values ('2026-01-01 00:00:00+00', repeat('é', 40))")
        shown = f"(2026-01-01 09:00:00+09, {'é' * 32}...)"
        assert wrong.value.diag.message_detail == f"Failing row contains {shown}."
        with pytest.raises(psycopg.errors.FeatureNotSupported):
            await c.execute("create table u (at timestamptz check (at > '2020-01-01'))")


def test_a_check_is_of_columns_and_not_of_their_names():
    async def story(world: World):
        async with world.adapter() as a, world.adapter() as other:
            await a.sql('create table t (a int, b int, "C d" int, check (a < b), check ("C d" <> 5 or t.a = 1))')
            await a.sql("alter table t rename a to c")
            await a.sql("alter table t add a int")
            await a.sql("alter table t rename to moved")
            assert await sqlstate(other.sql("insert into moved (c, b, a) values (2, 1, 0)")) == "23514"
            assert await other.sql("insert into moved (c, b, a) values (1, 2, 9)") == "INSERT 0 1"
            shown = "select conname, pg_get_constraintdef(oid) from pg_constraint order by 1"
            assert await other.sql(shown) == [
                ("t_check", "CHECK (c < b)"), ("t_check1", 'CHECK ("C d" <> 5 or c = 1)')
            ]  # fmt: skip
            clauses = "select constraint_name, check_clause from information_schema.check_constraints order by 1"
            assert [clause for _, clause in await other.sql(clauses)] == ["(c < b)", '("C d" <> 5 or c = 1)']
            await a.sql("alter table moved drop b")
            assert [name for name, _ in await other.sql(shown)] == ["t_check1"]
            assert await other.sql("insert into moved (c) values (2)") == "INSERT 0 1"
            assert await sqlstate(other.sql('insert into moved (c, "C d") values (2, 5)')) == "23514"

    run(story)


def test_what_is_shown_makes_the_same_table_and_the_same_constraints():
    async def story(world: World):
        async with world.adapter() as a:
            columns = "a int primary key, b text unique check (b <> 'x')"
            await a.sql(f"create table t ({columns}, check (a > 0 -- so\n and a < 9))")
            [(_, text)] = await a.sql("show create table t")
            [(_, index)] = await a.sql("show create index t_b_key")
            await a.sql("drop table t")
            await a.sql(text)
            assert await a.sql("show create table t") == [("tidemark.public.t", text)]
            await a.sql("alter table t drop constraint t_b_key")
            await a.sql(index)
            assert await a.sql("show create index t_b_key") == [("tidemark.public.t_b_key", index)]
            assert await a.sql("show create table t") == [("tidemark.public.t", text)]

    run(story)


@pytest.mark.parametrize("half", [1, 2])
@pytest.mark.parametrize(("adding", "row", "told", "written"), HALVES)
def test_rows_that_come_while_a_constraint_is_added_are_refused_or_refuse_it(half, adding, row, told, written):
    async def story(world: World):
        async with world.adapter() as a, world.adapter() as other:
            await a.sql("create table t (a int, b int)")
            await a.sql("insert into t values (7, 7)")
            seen: list[str] = []
            before_half(a, half, inserting(other, f"insert into t values {row}", seen))
            before = a.catalog.image.item_by_name("s1", "t")
            if half == 1:
                assert await sqlstate(a.sql(f"alter table t add {adding}")) == told
                assert seen == ["INSERT 0 1"]
                now = a.catalog.image.item_by_name("s1", "t")
                assert now == before and not a.catalog.image.dependents(now.id), "as it was"
                assert await other.sql(f"insert into t values {row}") == "INSERT 0 1"
            else:
                assert await a.sql(f"alter table t add {adding}") == "ALTER TABLE"
                assert seen == [written]
                assert await sqlstate(other.sql(f"insert into t values {row}")) == written
                assert await a.sql("select * from t") == [(7, 7)]

    run(story)


async def half_added(a, adding: str) -> None:
    """A table with a row, to which a constraint is added by ``a``, which dies between the halves."""
    await a.sql("create table t (a int, b int)")
    await a.sql("insert into t values (7, 7)")

    async def die():
        raise MemoryError

    before_half(a, 2, die)
    a.executor._ddl._not_null._undo = lambda *_: asyncio.sleep(0)
    with pytest.raises(MemoryError):
        await a.sql(f"alter table t add {adding}")


@pytest.mark.parametrize(("adding", "row", "told", "written"), HALVES)
def test_one_that_was_not_ended_is_kept_by_writers_and_is_ended_by_who_says_it_again(adding, row, told, written):
    async def story(world: World):
        async with world.adapter() as a, world.adapter() as other:
            await half_added(a, adding)
            valid = "select conname, convalidated from pg_constraint"
            [(name, is_valid)] = await other.sql(valid)
            assert not is_valid and kept_by(other, name).since is not None
            assert await sqlstate(other.sql(f"insert into t values {row}")) == written
            assert await sqlstate(other.sql("insert into t values (7, 7) on conflict (a) do nothing")) == "42P10"
            assert await other.sql(f"alter table t add {adding}") == "ALTER TABLE"
            assert await a.sql(valid) == [(name, True)]
            await a.sql(f"alter table t drop constraint {name}")
            assert await other.sql(valid) == []

    run(story)


@pytest.mark.parametrize("adding", ["constraint x check (b > 0)", "constraint x unique (b)"])
def test_one_that_was_not_ended_may_be_dropped(adding):
    async def story(world: World):
        async with world.adapter() as a, world.adapter() as other:
            await half_added(a, adding)
            assert await sqlstate(other.sql("alter table t add constraint x check (b > 1)")) == "42710"
            assert await other.sql("alter table t drop constraint x") == "ALTER TABLE"
            assert await a.sql("insert into t values (7, 7), (8, -1)") == "INSERT 0 2"

    run(story)


@pytest.mark.parametrize("between", ["drop constraint x", "rename constraint x to y", "drop b", "rename to u"])
@pytest.mark.parametrize("adding", ["constraint x check (b > 0)", "constraint x unique (b)"])
def test_somebody_else_alters_the_table_between_the_halves(adding, between):
    async def story(world: World):
        async with world.adapter() as a, world.adapter() as other:
            await a.sql("create table t (a int, b int)")
            await a.sql("insert into t values (7, 7)")

            async def act():
                await other.sql(f"alter table t {between}")
                if between == "drop constraint x":
                    await other.sql("insert into t values (7, 7), (8, -1)")

            before_half(a, 2, act)
            said = a.sql(f"alter table t add {adding}")
            if between == "drop constraint x":
                assert await sqlstate(said) in ("23505", "23514")
                assert kept_by(a, "x") is None
            elif between.startswith("rename constraint"):
                assert await said == "ALTER TABLE"
                assert kept_by(a, "x").since is None and kept_by(a, "y").since is not None, "which may be dropped"
            else:
                assert await sqlstate(said) == ("42703" if between == "drop b" else "42P01")
                assert kept_by(a, "x") is None

    run(story)


@pytest.mark.parametrize(("adding", "row", "told", "written"), HALVES)
def test_a_row_that_was_planned_before_is_not_committed_afterwards(adding, row, told, written):
    """The adapter has not heard of the first half when it commits."""

    async def story(world: World):
        slow = HeldTransport(world.catalog_topic)
        async with world.adapter("slow", slow) as a, world.adapter("b") as b:
            await a.sql("create table t (a int, b int)")
            await b.sql("insert into t values (7, 7)")
            await a.sql("select * from t")
            slow.held = True
            altering = asyncio.create_task(b.sql(f"alter table t add {adding}"))
            upper = b.catalog.image.upper
            await until(lambda: b.catalog.image.upper > upper)
            inserting = asyncio.create_task(a.sql(f"insert into t values {row}"))
            assert await altering == "ALTER TABLE"
            slow.release()
            assert await sqlstate(inserting) == written
            assert await b.sql("select * from t") == [(7, 7)]

    run(story)


def test_a_block_hears_at_commit_of_a_check_that_came_meanwhile():
    async def story(world: World):
        async with world.adapter() as a, world.adapter() as other:
            await a.sql("create table t (a int)")
            a.session.transaction.status, a.session.defers_writes = Status.IN_BLOCK, True
            await a.sql("insert into t values (-1)")
            await other.sql("alter table t add check (a > 0)")
            assert await sqlstate(a.executor.commit(a.session)) == "40001"
            assert await other.sql("select * from t") == []

    run(story)


def test_a_change_that_was_planned_before_the_check_is_made_anew():
    async def story(world: World):
        async with world.adapter() as a, world.adapter() as other:
            await a.sql("create table t (a int)")
            await a.sql("insert into t values (1)")
            before_commit(a, lambda: other.sql("alter table t add check (a > 0)"))
            assert await sqlstate(a.sql("update t set a = -1")) == "23514"
            assert await a.sql("select * from t") == [(1,)]

    run(story)


# -- NOT VALID


@pytest.mark.parametrize("half", [1, 2])
def test_what_is_not_valid_is_kept_by_writers_and_holds_once_no_row_breaks_it(half):
    """Whoever writes while its rows are looked at; and where one is found the constraint stays as it was."""

    async def story(world: World):
        async with world.adapter() as a, world.adapter() as other:
            await a.sql("create table t (a int, b int)")
            await a.sql("insert into t values (1, -1), (2, 2)")
            assert await a.sql("alter table t add constraint pos check (b > 0) not valid") == "ALTER TABLE"
            begun = kept_by(a, "pos")
            assert begun.since is not None
            assert await sqlstate(other.sql("insert into t values (3, -3)")) == "23514"
            assert await sqlstate(other.sql("alter table t validate constraint pos")) == "23514"
            assert await sqlstate(other.sql("alter table t add constraint pos check (b > 0)")) == "42710"
            await a.sql("select * from t")
            assert kept_by(a, "pos") == begun, "as it was"
            assert await other.sql("delete from t where a = 1") == "DELETE 1"
            seen = []

            async def act():
                seen.append(await sqlstate(other.sql("insert into t values (3, -3)")))

            before_half(a, half, act)
            assert await a.sql("alter table t validate constraint pos") == "ALTER TABLE"
            assert seen == ["23514"]
            assert await other.sql("select conname, convalidated from pg_constraint") == [("pos", True)]
            assert await other.sql("alter table t validate constraint pos") == "ALTER TABLE"

    run(story)


def test_what_is_validated_while_somebody_puts_another_one_there_is_looked_at_again():
    async def story(world: World):
        async with world.adapter() as a, world.adapter() as other:
            await a.sql("create table t (a int, b int)")
            await a.sql("insert into t values (1, 1)")
            await a.sql("alter table t add constraint pos check (b > 0) not valid")

            async def act():
                await other.sql("alter table t drop constraint pos")
                await other.sql("alter table t add constraint pos check (b > 5) not valid")

            before_half(a, 2, act)
            assert await sqlstate(a.sql("alter table t validate constraint pos")) == "23514", "of the one that is there"
            assert await other.sql("select conname, convalidated from pg_constraint") == [("pos", False)]

    run(story)


def test_what_fails_beside_it_leaves_it_as_it_was():
    async def story(world: World):
        async with world.adapter() as a:
            await a.sql("create table t (a int, b int)")
            await a.sql("insert into t values (1, 1), (1, 1)")
            await a.sql("alter table t add constraint pos check (b > 0) not valid")
            begun = kept_by(a, "pos")
            both = "alter table t validate constraint pos, add constraint u unique (a)"
            assert await sqlstate(a.sql(both)) == "23505"
            assert kept_by(a, "pos") == begun and kept_by(a, "u") is None
            assert await sqlstate(a.sql("alter table t validate constraint pos, validate constraint nope")) == "42704"
            assert kept_by(a, "pos") == begun

    run(story)


def test_one_is_validated_beside_others_that_are_added():
    async def story(world: World):
        async with world.adapter() as a:
            await a.sql("create table t (a int, b int)")
            await a.sql("insert into t values (1, 1)")
            await a.sql("alter table t add constraint pos check (b > 0) not valid")
            many = "add check (a < 9), validate constraint pos, add constraint late check (a > 5) not valid"
            assert await a.sql(f"alter table t {many}, add unique (b)") == "ALTER TABLE"
            found = await a.sql("select conname, convalidated from pg_constraint order by 1")
            assert found == [("late", False), ("pos", True), ("t_a_check", True), ("t_b_key", True)]

    run(story)
