"""Answers with the plan cache against answers without it, through a whole executor, under random DDL."""

from __future__ import annotations

import asyncio
import random

import duckdb
import pytest

from adapter.execute.planning import ON_LOOP_CHARS_MAX
from adapter.state.session_state import SessionState
from journal.errors import TidemarkError
from sql.statements.plan_cache import PlanCache
from tests.adapter.world import World, rows_of
from tests.seeds import seed_of_commit

STEPS = 80
CHANGES = 60

DDL = (
    "create table public.t (x int)",
    "create table a.t (x bigint, y text)",
    "create table a.u (x int)",
    "create view public.u as select x + 100 as x from public.t",
    "create table public.bystander (q int)",
    "drop table if exists public.t cascade",
    "drop table if exists a.t cascade",
    "drop table if exists a.u",
    "drop view if exists public.u",
    "drop table if exists public.bystander",
)
WRITES = ("insert into t (x) values (1)", "insert into a.t values (2, 'two')", "insert into u (x) values (3)")
READS = (
    "select * from t order by x",
    "select count(*) as n from u",
    "select x from a.t order by x",
    "select 1 + 1 as two",
    "select t.x as x from t join u on t.x = u.x order by 1",
    # by their skeletons, which differ in values
    *(f"select x from t where x = {value}" for value in (1, 2, "'1'", "'one'", "'2'")),
    *(f"select count(*) as n, x = {value} as it from t group by x = {value} order by 2" for value in (1, 2)),
    *(f"select y from t where y = {value} or x >= 2" for value in ("'two'", "'three'", "2")),
)
PATHS = ("public", "a, public", "a")


async def outcome(adapter, session, text):
    """Rows with their columns' types, a tag, or the error: whatever a client would be told."""
    try:
        prepared = await adapter.executor.prepare(session, text)
        rows = await rows_of(await adapter.executor.run(session, prepared))
        return [(c.name, c.type) for c in prepared.columns or ()], rows
    except TidemarkError as error:
        return error.sqlstate, error.message, error.position
    except duckdb.Error as error:  # of the stand-in for a cluster, which says it in its engine's words
        return type(error)


async def walk(seed: int) -> int:
    chance, world = random.Random(seed), World()
    async with world.adapter() as adapter:
        await adapter.sql("create schema a")
        cached, none = adapter.executor.plans.cache, PlanCache(plans_max=0)
        sessions = [SessionState(1000 + n) for n in range(3)]
        for _ in range(STEPS):
            world.now_ms += 5
            session, act = chance.choice(sessions), chance.random()
            if act < 0.3:
                await outcome(adapter, session, chance.choice(DDL))
            elif act < 0.45:
                await outcome(adapter, session, chance.choice(WRITES))
            elif act < 0.55:
                session.set_variable("search_path", chance.choice(PATHS))
            else:
                text = chance.choice(READS)
                found = await outcome(adapter, session, text)
                adapter.executor.plans.cache = none
                afresh = await outcome(adapter, session, text)
                adapter.executor.plans.cache = cached
                assert found == afresh, f"seed {seed}: {text}"
        return cached.statistics.hits + cached.statistics.carried


@pytest.mark.parametrize("seed", (1, 3))
def test_an_answer_with_the_cache_equals_the_answer_without(seed):
    assert asyncio.run(walk(seed)) > 10  # or nothing was tested


def test_the_cache_is_shared_by_sessions_and_shows_how_it_does():
    async def story():
        async with World().adapter() as adapter:
            await adapter.sql("create table t (x int)")
            for session in (SessionState(1), SessionState(2)):
                await adapter.sql("select x from t", session=session)
            ((shown,),) = await adapter.sql("show plan_cache")
            assert shown.startswith("plans 1 of 2000, characters 15 of 200000; hits 3 carried 0 misses 1 ")

    asyncio.run(story())


def test_a_long_text_that_is_sent_once_is_planned_once_and_its_kind_by_their_skeleton():
    async def story():
        async with World().adapter() as a:
            await a.sql("create table t (x int, y text)")

            def text(value: int) -> str:
                return f"select x, y, {', '.join(['x + 1'] * 40)} from t where x = {value}"

            cache = a.executor.plans.cache
            found = []
            for value in range(4):
                before = cache.statistics.misses
                await a.sql(text(value))
                found.append(cache.statistics.misses - before)
            assert len(text(0)) > ON_LOOP_CHARS_MAX and found == [1, 2, 0, 0]
            before = cache.statistics.misses
            for value in range(3):
                await a.sql(f"select x from t where x = {value}")
            assert cache.statistics.misses - before == 2

    asyncio.run(story())


CHANGED = {
    "i": "7|-7|'7'|'seven'|2147483647|3000000000|i + 1|i - 40|i * 2000000000|s + 1",
    "s": "7|40000|'7'|'40000'|s + 1|s * 30000|i - 1",
    "n": "7|7.125|'7.125'|12345|n + 1|n * 1000|i + 5",
    "f": "7|'1e400'|'NaN'|f + 1",
    "t": "7|'x'|'it''s'|''|'a longer one'|concat(t, 'x')",
    "v": "7|'x'|'abc'|'abcd'|'abc   '",
    "c": "7|'x'|'abcd'",
    "d": "7|'2020-02-29'|'2021-02-29'|'today'|d + 1|d - 400",
    "b": "7|'t'|'no'|'maybe'|i = 7",
    "j": "7|'{\"a\": 1}'|'{'",
}
"""By column, what it is set to."""

FOUND = "k = 1|k = 2|k = '3'|k >= 2 and t <> 'x'|s = 7|t = 'x'|v = 'abcd'|n = 7|i + 1 = 8"


async def changes_walk(seed: int) -> int:
    """The same statements in two worlds of which one remembers nothing."""
    chance, worlds = random.Random(seed), (World(), World())
    async with worlds[0].adapter() as remembers, worlds[1].adapter() as forgets:
        both = remembers, forgets
        forgets.executor.plans.cache = PlanCache(plans_max=0)
        for adapter in both:
            await adapter.sql(
                "create table w (k int primary key, i int check (i < 1000000000), s smallint, n numeric(6, 2),"
                " f float8, t text not null, v varchar(3), c char(2), d date, b bool, j jsonb)"
            )
        sessions = [SessionState(1), SessionState(1)]
        served = 0
        for step in range(4 * CHANGES):  # a seed may have to go on for longer until two have one skeleton
            if step >= CHANGES and served:
                break
            if step % 30 == 0:
                row = "7, 7, 7, 7, 'x', 'x', 'x', '2020-01-01', true, '[1]'"
                text = f"insert into w select g + {10 * step}, {row} from generate_series(1, 3) g"
            else:
                name = chance.choice([*CHANGED])
                sets = f"{name} = {chance.choice(CHANGED[name].split('|'))}"
                if chance.random() < 0.3:
                    sets += ", i = 8"
                found = chance.choice(FOUND.split("|"))
                text = f"update w set {sets} where {found} returning *, i = 8 as it, i - 3"
                if chance.random() < 0.1:
                    text = f"delete from w where {found} returning k, t"
            told = [await outcome(adapter, session, text) for adapter, session in zip(both, sessions, strict=True)]
            assert repr(told[0]) == repr(told[1]), f"seed {seed}: {text}"  # NaN is itself here
            served = sum(planned.serves for _, planned in remembers.executor.plans.cache._plans.values())
        return served


def test_statements_that_differ_in_their_values_change_the_same_whether_their_skeleton_is_remembered_or_not():
    assert asyncio.run(changes_walk(seed_of_commit())) > 0  # skeletons served, or nothing was tested
