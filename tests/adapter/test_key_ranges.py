"""Commits that hang on ranges of keys: they meet who writes there, rows that were not there among them, and nobody
else."""

from __future__ import annotations

import random
from contextlib import AsyncExitStack
from dataclasses import replace

import psycopg
import pytest
from psycopg import IsolationLevel, errors

from adapter.execute import changes
from catalog_log.records import RANGES_FROM
from tests.adapter import world as worlds
from tests.adapter.stories import before_commit
from tests.adapter.test_clients import serving
from tests.adapter.test_uniques import Indexed, parts_of
from tests.adapter.world import World
from tests.finishing import finished
from tests.seeds import seed_of_commit

ROWS = "insert into t select x, 'k' || x, 0 from generate_series(1, 20) x"


def run(story, world=None):
    finished(story(world or Indexed()))


async def table(adapter):
    await adapter.sql("create table t (a int, b text, n int, primary key (a, b))")
    await adapter.sql(ROWS)


def test_changes_of_ranges_that_do_not_meet_are_not_refused_and_others_are_made_anew():
    async def story(world):
        async with world.adapter("a") as a, world.adapter("b") as b:
            await table(a)
            stats = lambda: a.oracle.state.stats.parts_refused  # noqa: E731
            change = "update t set n = n + 1 where a between 5 and 9"
            before_commit(a, lambda: b.sql("update t set n = n + 1 where a >= 10"))
            assert await a.sql(change) == "UPDATE 5" and stats() == 0
            before_commit(a, lambda: b.sql("insert into t values (4, 'z', 0), (10, '', 0)"))
            assert await a.sql(change) == "UPDATE 5" and stats() == 0, "next to it on both sides"
            before_commit(a, lambda: b.sql("insert into t values (7, 'phantom', 0)"))
            assert await a.sql(change) == "UPDATE 6" and stats() == 1, "a row that it had not seen"
            before_commit(a, lambda: b.sql("update t set a = 8 where a = 20"))
            assert await a.sql(change) == "UPDATE 7" and stats() == 2, "a row comes into it"
            before_commit(a, lambda: b.sql("update t set a = 30 where a = 8 and b = 'k20'"))
            assert await a.sql(change) == "UPDATE 6" and stats() == 3, "and goes out of it"
            before_commit(a, lambda: b.sql("delete from t where n > 1 and a > 15"))
            assert await a.sql(change) == "UPDATE 6" and stats() == 3
            before_commit(a, lambda: b.sql("delete from t where a < 6"))
            assert await a.sql(change) == "UPDATE 5" and stats() == 4
            assert await b.sql("select n from t where a = 7 and b = 'k7'") == [(7,)], "each has happened once"

    run(story)


def test_an_insert_hangs_on_the_range_that_it_selects_from():
    async def story(world):
        async with world.adapter("a") as a, world.adapter("b") as b:
            await table(a)
            await a.sql("create table counts (n bigint)")
            counts = "insert into counts select count(*) from t where a = 3 and b >= 'k'"
            before_commit(a, lambda: b.sql("insert into t values (3, 'a', 0)"))
            await a.sql(counts)
            before_commit(a, lambda: b.sql("insert into t values (3, 'z', 0)"))
            await a.sql(counts)
            assert a.oracle.state.stats.parts_refused == 1
            assert await b.sql("select n from counts order by n") == [(1,), (2,)]

    run(story)


def test_a_change_hangs_on_the_keys_that_an_array_has():
    async def story(world):
        async with world.adapter("a") as a, world.adapter("b") as b:
            await table(a)
            stats = lambda: a.oracle.state.stats.parts_refused  # noqa: E731
            change = "update t set n = n + 1 where a = any($1)"
            before_commit(a, lambda: b.sql("update t set n = n + 1 where a in (4, 6)"))
            assert await a.sql(change, [5, None, 7]) == "UPDATE 2" and stats() == 0
            before_commit(a, lambda: b.sql("update t set n = n + 1 where a in (4, 6)"))
            written = "update t set n = n + 1 where a = any('{5,NULL,7}')"
            assert await a.sql(written) == "UPDATE 2" and stats() == 0
            for among, count in (("", 0), ("NULL", 0), (",".join(["7"] * 65), 1), ("5, 7", 2)):  # of the same shape
                assert await a.sql(written.replace("5,NULL,7", among)) == f"UPDATE {count}"
            before_commit(a, lambda: b.sql("insert into t values (7, 'phantom', 0)"))
            assert await a.sql(change, [5, 7]) == "UPDATE 3" and stats() == 1, "a row that it had not seen"
            before_commit(a, lambda: b.sql("delete from t where a = 7 and b = 'phantom'"))
            assert await a.sql(change, [7] * 100) == "UPDATE 1" and stats() == 2
            assert await a.sql(change, []) == await a.sql(change, None) == "UPDATE 0"

    run(story)


def test_older_environments_know_no_ranges(monkeypatch):
    """Code of then, which may be beside us, says keys that no range has in it."""

    async def story(world):
        async with world.adapter("a") as a, world.adapter("b") as b:
            await table(a)
            parts = parts_of(a)
            before_commit(a, lambda: b.sql("update t set n = n + 1 where a >= 10"))
            assert await a.sql("update t set n = n + 1 where a < 10") == "UPDATE 9"
            assert a.oracle.state.stats.parts_refused == 1
            assert all(each.lower is None for part in parts for each in part.reads)

    monkeypatch.setattr(worlds, "GENESIS", replace(worlds.GENESIS, format_version=RANGES_FROM - 1))
    run(story)


def test_where_a_constraint_went_meanwhile_its_ranges_are_of_the_whole_table():
    """Who writes when it is gone does not say its keys."""

    async def story(world):
        async with world.adapter("a") as a, world.adapter("b") as b:
            await a.sql("create table t (a int primary key, b int unique, n int)")
            await a.sql("create table counts (n bigint)")
            await a.sql("insert into t values (1, 1, 0), (9, 9, 0)")

            async def without_its_key():
                await b.sql("alter table t drop constraint t_pkey")
                await b.sql("insert into t values (2, 2, 0)")

            parts = parts_of(a)
            before_commit(a, without_its_key)
            await a.sql("insert into counts select count(*) from t where a < 5")
            assert [bool(each.lower) for each in parts[0].reads] == [False], "it was gone when it was sent"
            assert await b.sql("select n from counts") == [(2,)]

    run(story)


def test_a_constraint_that_came_behind_a_block_s_read_tells_it_no_ranges():
    async def story(block, other):
        await other.execute("create table late (a int not null, b int unique, n int)")
        await other.execute("insert into late values (1, 1, 0)")
        await block.execute("select count(*) from t where a < 0")
        await other.execute("insert into late values (2, 2, 0)")
        await other.execute("alter table late add primary key (a)")
        await block.execute("insert into counts select count(*) from late where a < 5")
        with pytest.raises(errors.SerializationFailure):
            await block.commit()

    in_block(story)


def in_block(story):
    """``story(block, other)``: a connection that opens blocks by itself, and one that does not."""

    async def bounded():
        async with AsyncExitStack() as stack:
            port = await stack.enter_async_context(serving(World()))
            given = {"host": "127.0.0.1", "port": port, "user": "tidemark", "dbname": "tidemark"}
            block, other = [
                await stack.enter_async_context(await psycopg.AsyncConnection.connect(**given, autocommit=autocommit))
                for autocommit in (False, True)
            ]
            await block.set_isolation_level(IsolationLevel.SERIALIZABLE)
            await other.execute("create table t (a int, b text, n int, primary key (a, b))")
            await other.execute("create table counts (n bigint)")
            await other.execute(ROWS.encode())
            await story(block, other)

    finished(bounded())


def test_a_block_is_committed_only_if_what_it_read_is_as_it_was():
    """Against a model of the rows: random conditions, and a random change between a block's read and its COMMIT, every
    third time one of what was read."""
    rng = random.Random(seed_of_commit())
    asked = [
        ("a = %s", lambda row, p: row[0] == p), ("a < %s", lambda row, p: row[0] < p),
        ("a between %s and 12", lambda row, p: p <= row[0] <= 12), ("a in (%s, 5)", lambda row, p: row[0] in (p, 5)),
        ("a = %s and b > 'k'", lambda row, p: row[0] == p and row[1] > "k"),
        ("a = %s or a > 17", lambda row, p: row[0] == p or row[0] > 17),
    ]  # fmt: skip

    def changed(rows: set[tuple[int, str]]) -> tuple[str, tuple, set]:
        n, to = rng.randint(0, 21), rng.randint(0, 21)
        name = rng.choice("éaz") + str(rng.randrange(10**6))
        match rng.randrange(3):
            case 0:
                return "insert into t values (%s, %s, 0)", (n, name), rows | {(n, name)}
            case 1:
                return "delete from t where a = %s", (n,), {row for row in rows if row[0] != n}
            case _:
                moved = {row for row in rows if row[0] == n}
                return "update t set a = %s, b = b || %s where a = %s", (to, name, n), rows - moved | {
                    (to, b + name) for _, b in moved
                }  # fmt: skip

    async def story(block, other):
        rows = {(n, f"k{n}") for n in range(1, 21)}
        refusals = admitted = 0
        for wanted in (True, True, False) * 8:
            same = None
            while same is not wanted:  # nothing that is done concerns "a < 0"
                (text, test), value = rng.choice(asked), rng.randint(0, 21)
                before = {row for row in rows if test(row, value)}
                statement, params, after = changed(rows)
                same = {row for row in after if test(row, value)} == before
            rows = after
            found = await (await block.execute(f"select a, b from t where {text}", (value,))).fetchall()
            assert set(found) == before
            await other.execute(statement, params)
            await block.execute("insert into counts values (1)")
            try:
                await block.commit()
                admitted += 1
                assert same, (text, value, statement, params)
            except errors.SerializationFailure:
                refusals += 1
                await block.rollback()
        assert refusals >= 8 and admitted > refusals, (admitted, refusals)  # what is too careful is refused as well

    in_block(story)


def test_who_changes_one_range_stands_in_line_and_who_changes_another_does_not(monkeypatch):
    async def story(world):
        async with world.adapter() as a:
            await table(a)
            lines, line = [], changes._line
            monkeypatch.setattr(changes, "_line", lambda *args: lines.append(line(*args)) or lines[-1])
            for where in ("a < 3", "a < 3", "a < 4", "a = 1 and b = 'k1'", "n = 7"):
                await a.sql(f"update t set n = 0 where {where}")
            assert lines[0] == lines[1] and len(set(lines)) == 4 and lines[4] == "u1"

    run(story)
