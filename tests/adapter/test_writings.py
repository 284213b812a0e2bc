"""WITH queries that write: one snapshot, one commit, once each, whoever writes at the same time."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from sql.statements import writing
from sql.statements.plan_cache import plan_afresh
from sql.syntax import statements as st
from tests.adapter.stories import before_commit, refused
from tests.adapter.test_copies import client, on_a_loop, rows
from tests.adapter.test_uniques import parts_of
from tests.adapter.world import World
from tests.finishing import finished

MOVE = "with x as (delete from a where k <= 2 returning k) insert into b select k from x"


def run(story) -> None:
    finished(story(World()))


async def tables(a) -> None:
    for text in ("create table a (k int)", "create table b (k int)", "insert into a values (1), (2), (3)"):
        await a.sql(text)


def test_all_parts_are_in_one_commit():
    async def story(world: World):
        async with world.adapter() as a:
            await tables(a)
            parts = parts_of(a)
            assert await a.sql(MOVE) == "INSERT 0 2"
            assert len(parts) == 1
            assert (await a.sql("select * from a"), await a.sql("select * from b order by k")) == ([(3,)], [(1,), (2,)])

    run(story)


def before_part(adapter, number: int, change):
    """Have ``change`` happen, and be known to ``adapter``, before the part ``number`` of its next statement is planned
    for being run."""
    writings = adapter.executor._handlers[st.Writing].__self__
    prepare, seen = writings._prepare, iter(range(1, 100))

    async def after_the_change(block, part):
        if next(seen) == number:
            writings._prepare = prepare
            await change()
        return await prepare(block, part)

    writings._prepare = after_the_change


MERGED = """merge into t using (values (1, 5), (2, 6)) s (k, n) on t.k = s.k
    when matched then update set n = s.n when not matched then insert (k, n) values (s.k, s.n)"""


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize(
    ("said", "answer"),
    [
        (MERGED, "MERGE 2"),
        (MERGED.replace("t.k = s.k", "t.k + 0 = s.k", 1), "MERGE 2"),
        ("with x as (update t set n = 5 where k = 1 returning *), y as (insert into t values (2, 6) returning *) "
         "select n from x union all select n from y order by n", [(5,), (6,)]),
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "alters",
    [
        ["alter table t add column c int default 7"],
        ["alter table t drop column gone", "alter table t add column c int default 7"],
        ["alter table t rename column gone to c", "alter table t alter column c set default 7"],
    ],
)
def test_a_table_that_is_altered_while_parts_are_run_is_written_as_it_is_then(alters, said, answer, number):
    """What was looked up, or what a part gives, was of the columns before: 42703, or an internal error."""

    async def story(world: World):
        async with world.adapter() as a:
            await a.sql("create table t (k int primary key, n int, gone int)")
            await a.sql("insert into t values (1, 1, 7)")

            async def altered():
                for each in alters:
                    await a.sql(each)

            before_part(a, number, altered)
            assert await a.sql(said) == answer
            assert await a.sql("select k, n, c from t order by k") == [(1, 5, 7), (2, 6, 7)]

    run(story)


@pytest.mark.parametrize("number", [1, 2])
def test_a_column_that_came_is_not_taken_for_the_one_that_went(number):
    async def story(world: World):
        async with world.adapter() as a:
            await a.sql("create table t (k int primary key, gone int)")
            await a.sql("insert into t values (1, 1)")

            async def altered():
                await a.sql("alter table t drop column gone")
                await a.sql("alter table t add column c int default 7")

            before_part(a, number, altered)
            said = "with x as (update t set k = 2 where k = 1 returning *) select gone from x"
            assert (await refused(a.sql(said))).sqlstate == "42703"
            assert await a.sql("select * from t") == [(1, 7)]

    run(story)


def test_what_is_refused_leaves_nothing_of_any_part():
    async def story(world: World):
        async with world.adapter() as a:
            await tables(a)
            await a.sql("alter table b add check (k < 2)")
            assert (await refused(a.sql(MOVE))).sqlstate == "23514"
            twice = "with x as (delete from a where k = 1 returning k), y as (delete from a returning k) select 1"
            assert (await refused(a.sql(twice))).sqlstate == "21000"
            assert (await a.sql("select count(*) from a"), await a.sql("select * from b")) == ([(3,)], [])

    run(story)


@pytest.mark.parametrize("written", ["insert into a values (0)", "delete from a where k = 1", "drop table b"])
def test_it_is_made_anew_where_what_it_read_was_written_meanwhile(written):
    async def story(world: World):
        async with world.adapter() as a, world.adapter() as other:
            await tables(a)
            before_commit(a, lambda: other.sql(written))
            if "drop" in written:
                assert (await refused(a.sql(MOVE))).sqlstate == "42P01"
                assert await a.sql("select count(*) from a") == [(3,)]
                return
            moved = [(0,), (1,), (2,)] if "insert" in written else [(2,)]
            assert await a.sql(MOVE) == f"INSERT 0 {len(moved)}"
            assert (await a.sql("select * from a"), await a.sql("select * from b order by k")) == ([(3,)], moved)

    run(story)


def test_many_at_once_move_each_row_once():
    async def story(world: World):
        async with world.adapter() as a, world.adapter() as other:
            await tables(a)
            await a.sql("insert into a select generate_series(4, 20)")
            one = "with x as (delete from a where k = {} returning k) insert into b select k from x"
            said = [each.sql(one.format(n)) for n in range(1, 6) for each in (a, other)]
            done = await asyncio.gather(*said, return_exceptions=True)
            count = done.count("INSERT 0 1")
            assert {each if isinstance(each, str) else each.sqlstate for each in done} <= {
                "INSERT 0 1", "INSERT 0 0", "40001"
            }  # fmt: skip
            assert await a.sql("select count(*), count(distinct k) from b") == [(count, count)]
            assert await a.sql("select count(*) from a") == [(20 - count,)]

    run(story)


@on_a_loop
async def test_in_a_block_it_reads_what_the_block_has_written_and_is_of_the_block():
    setup = "create table a (k int)", "create table b (k int)", "insert into a values (1), (2), (3)"
    async with client(World(), *setup, autocommit=False) as c:
        for level in ("read committed", "repeatable read", "serializable"):
            await c.execute(f"set transaction isolation level {level}")
            await c.execute("insert into a values (0)")
            assert (await c.execute(MOVE)).statusmessage == "INSERT 0 3"
            assert await rows(c, "select (select count(*) from a), (select count(*) from b)") == [(1, 3)]
            await c.execute("savepoint s")
            again = "with x as (delete from b returning k), y as (insert into a select k from x) select count(*) from b"
            assert await rows(c, again) == [(3,)]
            assert await rows(c, "select (select count(*) from a), (select count(*) from b)") == [(4, 0)]
            await c.execute("rollback to s")
            assert await rows(c, "select (select count(*) from a), (select count(*) from b)") == [(1, 3)]
            await c.rollback()
        await c.execute(MOVE)
        await c.commit()
        assert await rows(c, "select (select count(*) from a), (select count(*) from b)") == [(1, 2)]


@on_a_loop
async def test_clients_send_it_with_parameters_and_prepared():
    setup = "create table a (k int, v text)", "create table b (k int, v text)"
    async with client(World(), *setup) as c:
        text = "with x as (insert into a values (%s, %s) returning *) insert into b select k + %s, v from x returning k"
        for n in range(7):  # by then psycopg prepares it
            assert await (await c.execute(text, (n, str(n), 10))).fetchall() == [(n + 10,)]
        assert await rows(c, "select count(*) from a join b on a.k + 10 = b.k and a.v = b.v") == [(7,)]
        await c.execute("set default_transaction_read_only = on")
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            await c.execute(text, (1, "x", 1))


def test_many_rows_are_handed_on_and_their_bytes_are_bounded(monkeypatch):
    async def story(world: World):
        async with world.adapter() as a:
            await tables(a)
            many = "with x as (insert into a select generate_series(1, {}) returning k, k::text as t) "
            assert await a.sql(many.format(12_000) + "insert into b select k from x where k > 5") == "INSERT 0 11995"
            joined = many.format(6_000) + "select count(*) from x join b on b.k = x.k"
            assert await a.sql(joined) == [(5_995,)]
            count = await a.sql("select count(*) from a")
            monkeypatch.setattr("controllers.peeks.given.GIVEN_BYTES_MAX", 1000)
            assert (await refused(a.sql(joined))).sqlstate == "54000"  # they would travel
            assert await a.sql(many.format(200) + "select count(t) from x") == [(200,)]
            monkeypatch.setattr("adapter.execute.writings.BUFFER_BYTES_MAX", 1000)
            assert (await refused(a.sql(many.format(200) + "select count(t) from x"))).sqlstate == "54000"
            assert await a.sql("select count(*) from a") == [(count[0][0] + 200,)]

    run(story)


def test_a_part_is_planned_once_however_often_it_is_run(monkeypatch):
    planned = []
    plan = writing.plan_part
    monkeypatch.setattr(writing, "plan_part", lambda *args: planned.append(args[0].tag) or plan(*args))
    afresh = []
    monkeypatch.setattr("adapter.execute.plans.plan_afresh", lambda *args: afresh.append(args[0]) or plan_afresh(*args))

    async def story(world: World):
        async with world.adapter() as a:
            await tables(a)
            least = "delete from a where k = (select min(k) from a) returning k"
            text = f"with x as ({least}) insert into b select k from x"
            for n in range(1, 4):
                assert await a.sql(text) == "INSERT 0 1"
                assert await a.sql("select max(k) from b") == [(n,)]
            assert planned == ["DELETE", "INSERT"]
            assert not any(each.over for each in afresh)

    run(story)


def test_explain_names_what_hands_rows_on():
    async def story(world: World):
        async with world.adapter() as a:
            await tables(a)
            lines = [line for line, in await a.sql(f"explain {MOVE}")]
            assert [line for line in lines if line.strip().split()[0] in ("Insert", "CTE", "Delete")] == [
                "Insert into b (u2)", "  CTE x", "    Delete a (u1)", "  CTE Scan on x",
            ]  # fmt: skip
            both = MOVE.replace("select k", "select x.k") + ", a where x.k = a.k"
            assert "  Inputs: public.a (u1), x (w1)" in [line for line, in await a.sql(f"explain {both}")]
            assert await a.sql("select count(*) from a") == [(3,)]

    run(story)


def test_a_merge_counts_every_one_that_was_acknowledged():
    async def story(world: World):
        async with world.adapter() as a, world.adapter() as other:
            await a.sql("create table t (k int primary key, n int)")
            whens = "when matched then update set n = t.n + 1 when not matched then insert values (s.k, 1)"
            merge = f"merge into t using (values (1), (2)) s (k) on t.k = s.k {whens}"
            parts = parts_of(a)
            assert await a.sql(merge) == "MERGE 2" and len(parts) == 1
            done = await asyncio.gather(*(each.sql(merge) for each in (a, other) * 4), return_exceptions=True)
            assert {each if isinstance(each, str) else each.sqlstate for each in done} <= {"MERGE 2", "40001"}
            count = 1 + done.count("MERGE 2")
            assert await a.sql("select * from t order by k") == [(1, count), (2, count)]
            twice = merge.replace("(2)", "(1)")
            assert (await refused(a.sql(twice))).sqlstate == "21000"
            assert await a.sql("select * from t order by k") == [(1, count), (2, count)]

    run(story)


def test_what_was_handed_on_takes_no_place_among_plans():
    async def story(world: World):
        async with world.adapter() as a:
            await tables(a)
            one = "with x as (insert into a values ({}) returning k) insert into b select k from x"
            await a.sql(one.format("100"))
            kept = len(a.executor.plans.cache)
            await a.sql(one.format("100"))
            await a.sql("delete from b")
            with_one_more = len(a.executor.plans.cache)
            await a.sql("delete from b")
            assert with_one_more == kept + 1 == len(a.executor.plans.cache)
            assert not any("\0" in key[0] for key in a.executor.plans.cache._plans)

    run(story)
