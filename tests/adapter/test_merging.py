"""MERGE by key hangs on the keys that its source asks for, those that no row has among them, and on nothing else."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from tests.adapter.stories import before_commit
from tests.adapter.test_copies import client, on_a_loop, rows
from tests.adapter.test_uniques import parts_of
from tests.adapter.world import World
from tests.finishing import finished

TABLE = "create table t (k int primary key, n int)"
WHENS = "when matched then update set n = t.n + s.n when not matched then insert values (s.k, s.n)"


def merge(k: object, n: int = 1, on: str = "t.k = s.k") -> str:
    return f"merge into t using (values ({k}, {n})) s (k, n) on {on} {WHENS}"


def run(story) -> None:
    finished(story(World()))


def merged_beside(there: str, other: str, tries: int, left: list[tuple[int, int]]):
    """Key 1 merged where ``there`` made the rows and ``other`` is committed just before: in so many tries, with the
    rows that are left."""

    async def story(world: World):
        async with world.adapter("a") as a, world.adapter("b") as b:
            await a.sql(TABLE)
            await a.sql(there)
            parts = parts_of(a)
            before_commit(a, lambda: b.sql(other))
            assert await a.sql(merge(1)) == "MERGE 1"
            assert len(parts) == tries
            assert await a.sql("select * from t order by k") == left

    return story


@pytest.mark.parametrize(
    ("other", "tries", "left"),
    [
        ("insert into t values (2, 2)", 1, [(1, 11), (2, 2), (9, 1)]),
        ("update t set n = 5 where k = 9", 1, [(1, 11), (9, 5)]),
        ("delete from t where k = 9", 1, [(1, 11)]),
        ("update t set n = 20 where k = 1", 2, [(1, 21), (9, 1)]),
        ("delete from t where k = 1", 2, [(1, 1), (9, 1)]),
        ("update t set k = 7 where k = 1", 2, [(1, 1), (7, 10), (9, 1)]),
    ],
)
def test_a_row_that_is_there_is_merged_anew_where_its_own_key_was_written_alone(other, tries, left):
    run(merged_beside("insert into t values (1, 10), (9, 1)", other, tries, left))


@pytest.mark.parametrize(
    ("other", "tries", "left"),
    [
        ("insert into t values (2, 2)", 1, [(1, 1), (2, 2), (9, 1)]),
        ("insert into t values (1, 5)", 2, [(1, 6), (9, 1)]),
        ("update t set k = 1 where k = 9", 2, [(1, 2)]),
        ("delete from t", 1, [(1, 1)]),
    ],
)
def test_a_key_that_no_row_had_is_no_phantom(other, tries, left):
    run(merged_beside("insert into t values (9, 1)", other, tries, left))


@on_a_loop
async def test_in_a_block_only_its_keys_are_what_a_commit_is_refused_for():
    """Serializable ones also where nothing was written for a key, by which it was known what to do."""
    world = World()
    deleted = "merge into t using (values (3)) s (k) on t.k = s.k when matched then delete"
    async with client(world, TABLE, autocommit=False) as c, client(world) as other:
        for level, said, wrote, is_refused in (
            ("read committed", merge(1), "insert into t values (2, 2)", False),
            ("read committed", merge(1), "insert into t values (1, 1)", True),
            ("serializable", merge(1), "insert into t values (2, 2)", False),
            ("serializable", merge(1), "insert into t values (1, 1)", True),
            ("serializable", deleted, "insert into t values (2, 2)", False),
            ("serializable", deleted, "insert into t values (3, 3)", True),
        ):
            await c.execute(f"set transaction isolation level {level}")
            await c.execute(said)
            await c.execute("insert into t values (50, 50)")
            await other.execute(wrote)
            if is_refused:
                with pytest.raises(psycopg.errors.SerializationFailure):
                    await c.commit()
            else:
                await c.commit()
            await c.rollback()
            await other.execute("delete from t")


@pytest.mark.parametrize(
    "said",
    [
        merge(1, on="t.k = s.k and t.n > 0"),
        "merge into t using (values (1, 1)) s (q, m) on q = k when matched then update set n = n + m",
        merge(1, on="(t.k) = (s.k) and (s.n = 1)"),
        "with q as (select 1 as k) merge into t using q s on t.k = s.k when matched then update set n = t.n + 1",
        "with q as (insert into u values (1, 1) returning k, v as n) merge into t using q s on t.k = s.k " + WHENS,
        "merge into t using (select k, v as n from u) s on t.k = s.k " + WHENS,
        "merge into t x using u s on x.k = s.k when matched and s.v < 5 then update set n = x.n + s.v",
        "merge into t using u s on t.k = s.k when matched and t.n > (select max(v) from u) then update set n = 11",
        "merge into t using u s join (values (1)) o (q) on o.q = s.k on t.k = o.q when matched then update set n = 11",
    ],
)  # fmt: skip
def test_who_merges_by_key_does_not_meet_who_writes_others(said):
    async def story(world: World):
        async with world.adapter("a") as a, world.adapter("b") as b:
            await a.sql(TABLE)
            await a.sql("insert into t values (1, 10), (9, 1)")
            await a.sql("create table u (k int, v int)")
            await a.sql("insert into u values (1, 1)") if "returning" not in said else None
            parts = parts_of(a)
            before_commit(a, lambda: b.sql("update t set n = 5 where k = 9"))
            assert (await a.sql(said)).startswith("MERGE")
            assert len(parts) == 1 and all(each.lower for each in parts[0].reads if each.collection == "u1"), parts
            assert await a.sql("select * from t order by k") == [(1, 11), (9, 5)]

    run(story)


@pytest.mark.parametrize(
    "said",
    [
        "merge into t using (values (1, 1)) s (k, n) on t.n = s.k + 9 " + WHENS,
        "merge into t using (values (1, 1)) s (k, n) on t.k >= s.k and t.k < 2 " + WHENS,
        "merge into t using (values (1, 1)) s (k, n) on t.k = s.k or t.k = 1 " + WHENS,
        "merge into t using (values (1.0, 1)) s (k, n) on t.k = s.k " + WHENS,
        "merge into t using (select 1 as k, min(n) as n from t) s on t.k = s.k " + WHENS,
        "merge into t using (values (1, 1)) s (k, n) on t.k = s.k and exists (select from t where n = 1) " + WHENS,
    ],
)
def test_any_other_hangs_on_the_table(said):
    async def story(world: World):
        async with world.adapter("a") as a, world.adapter("b") as b:
            await a.sql(TABLE)
            await a.sql("insert into t values (1, 10), (9, 1)")
            parts = parts_of(a)
            before_commit(a, lambda: b.sql("update t set n = 1 where k = 9"))
            assert await a.sql(said) == "MERGE 1"
            assert len(parts) == 2 and any(each.collection == "u1" and each.lower is None for each in parts[-1].reads)
            assert await a.sql("select * from t order by k") == [(1, 11), (9, 1)]

    run(story)


def test_each_of_many_sessions_merges_its_own_keys_at_the_first_try():
    async def story(world: World):
        async with world.adapter("a") as a, world.adapter("b") as b:
            await a.sql(TABLE)
            sent = [parts_of(each) for each in (a, b)]
            said = [each.sql(merge(f"{k}, 1), ({k + 100}")) for k in range(1, 9) for each in (a, b)[k % 2 :][:1]]
            assert set(await asyncio.gather(*said)) == {"MERGE 2"}
            assert sum(map(len, sent)) == 8
            one = [each.sql(merge(k)) for k in (1, 2) for each in (a, b) for _ in range(3)]
            done = await asyncio.gather(*one, return_exceptions=True)
            assert {each if isinstance(each, str) else each.sqlstate for each in done} <= {"MERGE 1", "40001"}
            count = done.count("MERGE 1")
            assert await a.sql("select sum(n) from t where k in (1, 2)") == [(2 + count,)]

    run(story)


def test_more_keys_than_are_looked_up_one_by_one_read_the_table(monkeypatch):
    monkeypatch.setattr("adapter.execute.merging.KEYS_MAX", 2)

    async def story(world: World):
        async with world.adapter("a") as a:
            await a.sql(TABLE)
            parts = parts_of(a)
            for values, count in (("1, 1), (2", 2), ("1, 1), (2, 1), (3", 3), ("null::int, 1), (1, 1), (null", 1)):
                said = merge(values).replace("then insert", "and s.k is not null then insert")
                assert await a.sql(said) == f"MERGE {count}"
            whole = [any(each.lower is None for each in part.reads) for part in parts]
            assert whole == [False, True, False]
            assert await a.sql("select * from t order by k") == [(1, 3), (2, 2), (3, 1)]

    run(story)


@on_a_loop
async def test_a_block_merges_what_it_has_written_itself():
    async with client(World(), TABLE, "insert into t values (1, 10)", autocommit=False) as c:
        for level in ("read committed", "repeatable read", "serializable"):
            await c.execute(f"set transaction isolation level {level}")
            await c.execute("update t set n = 20 where k = 1")
            await c.execute("insert into t values (2, 2)")
            await c.execute(merge("1, 1), (2, 1), (3"))
            assert await rows(c, "select * from t order by k") == [(1, 21), (2, 3), (3, 1)]
            await c.execute(merge(3))
            assert await rows(c, "select * from t order by k") == [(1, 21), (2, 3), (3, 2)]
            await c.rollback()
