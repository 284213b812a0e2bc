"""UPDATE, DELETE and TRUNCATE: what was read is what is changed, once, and nothing where somebody else was first."""

from __future__ import annotations

import asyncio
import random
from collections import Counter

import pytest

from adapter.execute import changes, lines
from adapter.state.session_state import SessionState
from journal.errors import Conflict, TidemarkError
from oracle.errors import SnapshotTooOld
from tests.adapter.stories import refused, run
from tests.adapter.world import World
from tests.finishing import finished


def test_rows_go_and_come():
    async def story(world):
        async with world.adapter() as a:
            await a.sql("create table t (a int not null, b text default 'new')")
            await a.sql("insert into t values (1, 'x'), (1, 'x'), (2, 'y'), (3, null)")
            assert await a.sql("delete from t where a = 3") == "DELETE 1"
            assert await a.sql("update t set b = b || $1 where a = $2", "!", 1) == "UPDATE 2"
            assert await a.sql("select * from t order by a") == [(1, "x!"), (1, "x!"), (2, "y")]
            assert await a.sql("update t set b = default, a = a * 10 where b = 'y'") == "UPDATE 1"
            assert await a.sql("update t set (b, a) = ('z', a + 1) where a = 20") == "UPDATE 1"
            assert await a.sql("select * from t order by a") == [(1, "x!"), (1, "x!"), (21, "z")]
            before = a.oracle.state.last_ts
            assert await a.sql("delete from t where a > 100") == "DELETE 0"
            assert a.oracle.state.last_ts == before, "where no row is meant nothing is written"
            assert await a.sql("truncate t") == "TRUNCATE TABLE"
            assert await a.sql("select count(*) from t") == [(0,)]

    run(story)


def test_a_row_goes_once_however_many_match_it_and_each_of_equal_ones():
    async def story(world):
        async with world.adapter() as a:
            await a.sql("create table t (a int, b text)")
            await a.sql("create table u (k int, v text)")
            await a.sql("insert into t values (1, 'x'), (1, 'x'), (2, 'y')")
            await a.sql("insert into u values (1, 'one'), (1, 'eins'), (3, 'three')")
            updating = "update t set b = v from u where k = a returning t.a, b, v, upper(v)"
            assert await a.sql(updating) == 2 * [(1, "eins", "eins", "EINS")]
            assert await a.sql("delete from t using u where k = a returning a, v") == 2 * [(1, "eins")]
            await a.sql("insert into t values (1, 'x'), (1, 'x')")
            assert await a.sql("delete from t using u where k = a") == "DELETE 2"
            assert await a.sql("select * from t") == [(2, "y")]

    run(story)


def test_what_is_returned():
    async def story(world):
        async with world.adapter() as a:
            await a.sql("create table t (a int, b text)")
            await a.sql("insert into t values (1, 'x')")
            assert await a.sql("update t set a = a + 1 returning *, a as n, t.b") == [(2, "x", 2, "x")]
            assert await a.sql("update t set a = 3 returning a * $1 as n", 2) == [(6,)]
            assert await a.sql("update t set a = 4 where false returning a") == []
            assert await a.sql("delete from t returning a, (select count(*) from t)") == [(3, 1)]

    run(story)


@pytest.mark.parametrize(
    ("sql", "sqlstate"),
    [
        ("update t set a = null", "23502"), ("update t set c = 'four'", "22001"), ("update t set i = 1", "428C9"),
        ("update t set a = 'x'", "22P02"), ("update t set a = c", "42804"), ("delete from v", "42809"),
    ],
)  # fmt: skip
def test_what_is_refused_changes_nothing(sql, sqlstate):
    async def story(world):
        async with world.adapter() as a:
            await a.sql("create table t (a int not null, c varchar(3), i int generated always as identity)")
            await a.sql("create view v as select a from t")
            await a.sql("insert into t (a, c) values (1, 'abc')")
            assert (await refused(a.sql(sql))).sqlstate == sqlstate
            assert await a.sql("select * from t") == [(1, "abc", 1)]
            assert await a.sql("update t set i = default") == "UPDATE 1"
            assert await a.sql("select * from t") == [(1, "abc", 2)]

    run(story)


def test_columns_that_went_are_taken_back_with_their_rows():
    async def story(world):
        async with world.adapter() as a:
            await a.sql("create table t (a int, gone text)")
            await a.sql("insert into t values (1, 'x'), (1, 'y'), (2, 'z')")
            await a.sql("alter table t drop column gone")
            await a.sql("alter table t add column d int default 7")
            assert await a.sql("update t set d = d + a where a = 1") == "UPDATE 2"
            assert await a.sql("select * from t order by a, d") == [(1, 8), (1, 8), (2, 7)]
            await a.sql("create table u (k int)")
            await a.sql("insert into u values (2), (2)")
            assert await a.sql("update t set a = 9 from u where k = a returning *") == [(9, 7, 2)]
            assert await a.sql("delete from t") == "DELETE 3"
            item = next(each for each in a.catalog.image.objects() if each.name == "t")
            assert world.store.rows_at(item, a.oracle.state, a.oracle.state.last_ts).num_rows == 0, "all of them cancel"

    run(story)


def test_columns_that_went_are_nobodys_where_the_table_is_read_once_more():
    """They are read along with the rows that go, and a ``*`` would see them."""

    async def story(world):
        async with world.adapter() as a:
            await a.sql("create table t (a int, gone text)")
            await a.sql("insert into t values (1, 'x'), (1, 'y'), (2, 'z')")
            await a.sql("alter table t drop column gone")
            for sql in ("delete from t where a in (select * from t)",
                        "delete from t where exists (select x.* from t x)",
                        "update t set a = 3 from (select 1 from t x natural join public.t y) q"):  # fmt: skip
                error = await refused(a.sql(sql))
                assert (error.sqlstate, error.hint) == ("0A000", "name the columns"), sql
            await a.sql("create table u (a int, k int)")
            await a.sql("insert into u values (2, 5)")
            taken = "delete from t where exists (select * from u natural join u v where u.a = t.a)"
            assert await a.sql(taken) == "DELETE 1"
            assert await a.sql("update t set a = (select count(*) from t x)::int") == "UPDATE 2"
            assert await a.sql("delete from t where a in (select x.a from t x)") == "DELETE 2"

    run(story)


def _before_commits(adapter, does, error=None):
    """Have ``does()`` happen before each commit of ``adapter``'s changes, or ``error`` be what comes of it."""
    commits = adapter.executor.commits
    commit = commits.commit

    async def slipped_in(session, entries):
        await does()
        if error is not None:
            raise error
        await commit(session, entries)

    commits.commit = slipped_in
    return lambda: setattr(commits, "commit", commit)


def test_a_statement_that_lost_is_made_anew_of_what_there_is_then():
    async def story(world):
        async with world.adapter() as a, world.adapter("b") as b:
            await a.sql("create table t (a int, n int)")
            await a.sql("insert into t values (1, 0)")
            left = [2]

            async def other():
                if left[0]:
                    left[0] -= 1
                    await b.sql("update t set n = n + 10")

            _before_commits(a, other)
            assert await a.sql("update t set n = n + 1") == "UPDATE 1"
            assert await b.sql("select n from t") == [(21,)]

    run(story)


def test_who_always_loses_is_told_so_and_nothing_is_there(monkeypatch):
    async def story(world):
        monkeypatch.setattr(lines, "PAUSE_S_MAX", 0.001)
        async with world.adapter() as a, world.adapter("b") as b:
            await a.sql("create table t (n int)")
            await a.sql("insert into t values (0)")
            before = await _count(b)
            _before_commits(a, lambda: b.sql("insert into t values (1)"))
            error = await refused(a.sql("update t set n = 7"))
            assert (type(error), error.sqlstate) == (Conflict, "40001")
            assert await _count(b) - before == changes.TRIES_MAX
            assert await b.sql("select count(*) from t where n = 7") == [(0,)]

    run(story)


async def _count(adapter) -> int:
    [(count,)] = await adapter.sql("select count(*) from t")
    return count


@pytest.mark.parametrize(("error", "again"), [(SnapshotTooOld("snapshot too old"), True), (None, False)])
def test_only_what_is_known_not_to_have_happened_is_made_anew(error, again):
    async def story(world):
        async with world.adapter() as a:
            await a.sql("create table t (n int)")
            await a.sql("insert into t values (0)")
            tries = []

            async def count():
                tries.append(1)
                if len(tries) > 1:
                    undo()

            unknown = TidemarkError("nobody knows", sqlstate="08007")
            undo = _before_commits(a, count, error or unknown)
            if again:
                commit = a.executor.commits.commit

                async def once(session, entries):
                    undo()
                    await commit(session, entries)

                a.executor.commits.commit = once
                assert await a.sql("update t set n = 1") == "UPDATE 1"
            else:
                assert (await refused(a.sql("update t set n = 1"))).sqlstate == "08007"
                assert len(tries) == 1

    run(story)


def test_many_sessions_count_without_losing_one():
    async def story(world):
        async with world.adapter() as a, world.adapter("b") as b:
            await a.sql("create table t (k int, n int)")
            await a.sql("insert into t values (1, 0), (2, 0)")

            async def session(adapter, number):
                mine = SessionState(1000 + number)
                for _ in range(5):
                    tag = await adapter.sql("update t set n = n + 1 where k = $1", 1 + number % 2, session=mine)
                    assert tag == "UPDATE 1"

            await asyncio.gather(*(session((a, b)[n % 2], n) for n in range(8)))
            assert await a.sql("select sum(n) from t") == [(40,)]

    finished(story(World()))


@pytest.mark.parametrize("seed", range(3))
def test_any_history_is_that_of_a_bag_of_rows(seed):
    """Random statements, each beside what it does to a list of rows."""
    chance = random.Random(seed)

    async def story():
        world = World(carries=bool(seed % 2))
        async with world.adapter() as a, world.adapter("b") as b:
            await a.sql("create table t (a int, b text)")
            rows: list[tuple] = []
            for step in range(60):
                adapter, k, n = chance.choice((a, b)), chance.randrange(4), chance.randrange(3)
                rare = "truncate" if step % 17 == 3 else "dup"
                what = chance.choice(("insert", "insert", "update", "delete", "move", rare))
                if what == "insert":
                    await adapter.sql(f"insert into t values ({k}, '{n}'), ({k}, '{n}'), ({k}, null)")
                    rows += [(k, str(n)), (k, str(n)), (k, None)]
                elif what == "update":
                    hit = [row for row in rows if row[0] == k]
                    assert await adapter.sql(f"update t set b = '{n}' where a = {k}") == f"UPDATE {len(hit)}"
                    rows = [(k, str(n)) if row[0] == k else row for row in rows]
                elif what == "move":
                    await adapter.sql("update t set a = a + 1 where b = $1", str(n))
                    rows = [(row[0] + 1, row[1]) if row[1] == str(n) else row for row in rows]
                elif what == "delete":
                    hit = [row for row in rows if row == (k, str(n))]
                    assert await adapter.sql(f"delete from t where a = {k} and b = '{n}'") == f"DELETE {len(hit)}"
                    rows = [row for row in rows if row not in hit]
                elif what == "truncate":
                    await adapter.sql("truncate t")
                    rows = []
                else:
                    await adapter.sql(f"insert into t select a, b from t where a = {k} and b is null")
                    rows += [row for row in rows if row[0] == k and row[1] is None]
                found = await chance.choice((a, b)).sql("select a, b from t")
                assert Counter(found) == Counter(rows), (seed, step, what)

    finished(story())


def test_who_had_to_wait_for_its_turn_is_told_so():
    async def story():
        mine = lines.Lines()
        async with mine.first_of(["a", "b"]) as waited:
            assert not waited

            async def beside(*names):
                async with mine.first_of(names) as waited:
                    return waited

            assert not await beside("c")
            behind = asyncio.ensure_future(beside("c", "b"))
            await asyncio.sleep(0)
        assert await behind

    finished(story())


def test_no_day_is_written_that_could_not_be_read_again():
    async def story(world):
        async with world.adapter() as a:
            await a.sql("create table t (id int, d date, s timestamp, l date[])")
            await a.sql("create table e (id int, d date default date '9999-12-31' + 1)")
            await a.sql("insert into t values (1, '9999-12-31', '9999-12-31 23:59:59.999999')")
            for statement in (
                "insert into t values (2, date '0001-01-01' - 1)",
                "insert into t (id, s) values (2, timestamp '9999-12-31' + interval '1 day')",
                "insert into t (id, s) values (2, timestamp '2020-01-01' + interval '900000 years')",
                "insert into t select g, date '9999-12-31' + g from generate_series(0, 2) as g",
                "insert into e values (1)",
                "update t set d = d + 1",
                "update t set l = array[d, d + 1]",
                "select date '9999-12-31' + 1",
            ):
                assert (await refused(a.sql(statement))).sqlstate == "22008", statement
            assert await a.sql("update t set d = d - 1") == "UPDATE 1"
            assert await a.sql("delete from t") == "DELETE 1"

    run(story)
