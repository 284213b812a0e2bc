"""SELECT … AS OF: what there was at a timestamp, whatever a session reads otherwise."""

from __future__ import annotations

import random
from datetime import UTC, datetime

import pytest

from adapter.execute import history
from adapter.state.session_state import SessionState
from controllers.arrangements.arrangement import too_old
from journal.errors import Conflict
from tests.adapter import test_transactions as blocks
from tests.adapter.stories import refused, run


async def refusal(asking, sqlstate):
    told = await refused(asking)
    assert told.sqlstate == sqlstate, told
    return told


def test_each_timestamp_is_answered_as_it_was():
    async def story(world):
        rng = random.Random(5)
        async with world.adapter() as a, world.adapter() as other:
            await a.sql("create table t (a int)")
            await a.sql("create index on t (a)")
            model, rows = {a.oracle.state.last_ts: []}, []
            for n in range(10):
                world.now_ms += rng.randint(1, 2000)
                if rows and rng.random() < 0.4:
                    gone = rng.choice(rows)
                    rows = [row for row in rows if row != gone]
                    await a.sql(f"delete from t where a = {gone}")
                else:
                    rows = [*rows, n]
                    await a.sql(f"insert into t values ({n})")
                model[a.oracle.state.last_ts] = rows
            asked = {**model, **{ts - 1: dict(zip([*model][1:], [*model.values()], strict=False)).get(ts)
                                 for ts in [*model][1:]}}  # fmt: skip
            for ts, there in asked.items():
                said = rng.choice((str(ts), f"'{datetime.fromtimestamp(ts / 1000, UTC)}'::timestamptz"))
                for reader in (a, other):
                    assert await reader.sql(f"select a from t order by a as of {said}") == [(n,) for n in there]
            assert await a.sql(f"select count(*) from t where a = 3 as of {ts}") == [(there.count(3),)]
            assert all(each.lookup is None and each.only_at for each in other.peeks.asked)

    run(story)


def test_what_is_to_come_is_waited_for_if_it_is_near():
    async def story(world):
        async with world.adapter() as a:
            await a.sql("create table t (a int)")
            await a.sql("insert into t values (1)")
            now = a.oracle.state.last_ts
            told = await refusal(a.sql(f"select a from t as of {now + history.AHEAD_MS_MAX + 1}"), "22023")
            assert "in the future" in told.message and str(now) in told.detail
            await refusal(a.sql("select 1 as of 99999999999999"), "22023")
            await refusal(a.sql("select a from t as of null::timestamptz"), "22004")

            async def waiting(peek, *_):
                assert peek.only_at and peek.as_of == now + history.AHEAD_MS_MAX
                raise Conflict("as a controller would that waits")

            a.peeks.peek = waiting
            await refusal(a.sql(f"select a from t as of {now + history.AHEAD_MS_MAX}"), "22023")

    run(story)


def test_what_is_not_kept_is_an_error_that_says_so():
    async def story(world):
        async with world.adapter() as a:
            await a.sql("create table t (a int)")

            async def forgot(*_):
                raise too_old(7, 70)

            a.peeks.peek = forgot
            told = await refusal(a.sql("select a from t as of 7"), "22023")
            assert "70" in told.detail and history.KEPT == told.hint

            async def between(*_):
                raise Conflict("cannot read at the timestamp of this transaction block", detail="u9 was between two")

            a.peeks.peek = between
            told = await refusal(a.sql("select a from t as of 7"), "22023")
            assert told.message == "cannot read as of 7" and "u9" in told.detail

    run(story)


@pytest.mark.parametrize("isolation", ["serializable", "strict serializable"])
def test_a_session_that_has_just_written_reads_the_past_too(isolation):
    async def story(world):
        async with world.adapter() as a:
            session = SessionState(99)
            session.set_variable("tidemark.isolation", isolation)
            await a.sql("create table t (a int)", session=session)
            before = a.oracle.state.last_ts
            world.now_ms += 1000
            await a.sql("insert into t values (1)", session=session)
            assert await a.sql(f"select a from t as of {before}", session=session) == []
            assert await a.sql("select a from t", session=session) == [(1,)]

    run(story)


def test_a_block_reads_the_past_beside_what_it_reads_and_wrote():
    async def story(block, other, world):
        world.now_ms += 1000
        await other.execute("insert into t values (2)")
        then = world.now_ms - 1000
        await block.execute("insert into t values (5)")
        assert await blocks.one(block, f"select count(*) from t as of {then + 900}") == 1
        await other.execute("insert into t values (3)")
        # It decided nothing of where the block reads, and what it wrote is in no past.
        assert await blocks.one(block, "select count(*) from t") == 4
        assert await blocks.one(block, f"select count(*) from t as of {then + 1000}") == 2
        await block.commit()
        assert await blocks.one(other, "select count(*) from t") == 4

    blocks.run(story)


def test_a_block_that_read_the_past_alone_conflicts_with_nobody():
    async def story(block, other, world):
        world.now_ms += 1000
        await other.execute("insert into u values (0)")
        assert await blocks.one(block, "select count(*) from t as of 1000900") == 1
        await other.execute("insert into t values (2)")
        await block.execute("insert into u values (1)")
        await block.commit()
        assert await blocks.one(other, "select count(*) from u") == 2

    blocks.run(story)


def test_explain_says_when_and_asks_no_index():
    async def story(world):
        async with world.adapter() as a:
            await a.sql("create table t (a int)")
            await a.sql("create index on t (a)")
            lines = [row[0] for row in await a.sql("explain select a from t where a = 1 as of now() - interval '1 h'")]
            assert lines[:2] == ["As of: now() - interval '1 h'", "Read by the cluster"]
            lines = [row[0] for row in await a.sql("explain timestamp select a from t as of 7")]
            assert lines[0] == "As of: 7" and "since" in " ".join(lines)
            await refusal(a.sql("explain select a from t as of 'never'"), "22007")

    run(story)
