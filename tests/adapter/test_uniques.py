"""PRIMARY KEY and UNIQUE: keys stay unique whoever writes at once, and nothing waits for a lock."""

from __future__ import annotations

import asyncio
import random

import pytest

from adapter.execute import inserter
from adapter.execute.uniques import Uniques
from adapter.state.session_state import SessionState
from journal.errors import Conflict, TidemarkError, Unavailable
from oracle.model import KeyRange
from tests.adapter.stories import before_commit, refused
from tests.adapter.world import Answer, StorePeeks, World
from tests.finishing import finished


class Looking(StorePeeks):
    """Answers lookups as an index does that is there; counts them."""

    looked = 0
    away = False

    async def lookup(self, peek, cluster_id):
        self.looked += 1
        state = self.oracle.state
        as_of = peek.as_of if peek.as_of is not None else state.last_ts
        return Answer(self._lookup(peek.lookup, self._relation(peek.lookup.relation_id, state, as_of)), as_of)

    async def peek(self, peek, cluster_id, deadline_s, waits=None):
        if self.away:
            raise Unavailable("cluster default is away")
        return await super().peek(peek, cluster_id, deadline_s, waits)


class Indexed(World):
    answers = Looking


class Ahead(Looking):
    """Answers as of now, as an index does that has come further than it was asked for."""

    async def lookup(self, peek, cluster_id):
        return await super().lookup(peek if peek.only_at else peek._replace(as_of=None), cluster_id)


class Newest(World):
    answers = Ahead


def run(story, *worlds):
    for world in worlds or (World(), Indexed()):
        finished(story(world))


async def accounts(a, *more):
    await a.sql("create table t (a int primary key, b text unique, n int default 0)")
    for each in more:
        await a.sql(each)


def parts_of(adapter):
    """The parts that ``adapter`` sends from now on."""
    found, send = [], adapter.oracle.commit_async

    def noted(part, *rest):
        found.append(part)
        return send(part, *rest)

    adapter.oracle.commit_async = noted
    return found


def test_a_key_that_is_there_is_refused_and_nothing_is_written():
    async def story(world):
        async with world.adapter("a") as a, world.adapter("b") as b:
            await accounts(a, "insert into t values (1, 'x'), (2, null), (3, null)")
            before = a.oracle.state.last_ts
            for text, constraint, detail in (
                ("insert into t values (1, 'y')", "t_pkey", "Key (a)=(1) already exists."),
                ("insert into t values (9, 'x')", "t_b_key", "Key (b)=(x) already exists."),
                ("insert into t values (9, 'p'), (9, 'q')", "t_pkey", "Key (a)=(9) already exists."),
                ("insert into t select a + 1, 'n' from t where a = 1", "t_pkey", "Key (a)=(2) already exists."),
                ("update t set a = 1 where a = 2", "t_pkey", "Key (a)=(1) already exists."),
                ("update t set b = 'same'", "t_b_key", "Key (b)=(same) already exists."),
            ):
                error = await refused(b.sql(text))
                assert error.message == f'duplicate key value violates unique constraint "{constraint}"', text
                assert (error.sqlstate, error.detail) == ("23505", detail)
            assert (await refused(b.sql("insert into t (b) values ('n')"))).sqlstate == "23502"
            assert b.oracle.state.last_ts == before
            assert await b.sql("update t set a = a + 1") == "UPDATE 3", "the keys that go are free for those that come"
            assert await a.sql("select a from t order by a") == [(2,), (3,), (4,)]

    run(story)


def test_of_two_who_write_one_key_at_once_the_first_wins_and_the_other_is_told_so():
    async def story(world):
        async with world.adapter("a") as a, world.adapter("b") as b:
            await accounts(a)
            before_commit(a, lambda: b.sql("insert into t values (1, 'b')"))
            error = await refused(a.sql("insert into t values (1, 'a')"))
            assert error.sqlstate == "23505", "it looked again"
            assert a.oracle.state.stats.parts_refused == 1
            before_commit(a, lambda: b.sql("insert into t values (2, 'c')"))
            assert (await refused(a.sql("update t set b = 'c' where a = 1"))).sqlstate == "23505"
            before_commit(a, lambda: b.sql("delete from t where a = 2"))
            assert await a.sql("insert into t values (3, 'd')") == "INSERT 0 1"
            assert await b.sql("select a, b from t order by a") == [(1, "b"), (3, "d")]

    run(story)


def between_looks(adapter, change):
    """Have ``change`` happen once between what the next statement of ``adapter`` reads and its look for keys that are
    free."""
    checked = Uniques.checked

    async def after_the_change(uniques, *args, **named):
        if uniques._images is adapter.executor.images:
            Uniques.checked = checked
            await change()
        return await checked(uniques, *args, **named)

    Uniques.checked = after_the_change


def test_what_another_has_made_of_a_row_is_no_duplicate_of_what_one_makes_of_it():
    async def story(world):
        async with world.adapter("a") as a, world.adapter("b") as b:
            await accounts(a, "insert into t values (1, 'x'), (5, 'y')")
            between_looks(a, lambda: b.sql("update t set a = a + 1"))
            assert await a.sql("update t set a = a + 1") == "UPDATE 2"
            between_looks(a, lambda: b.sql("update t set b = 'z' where a = 3"))
            assert await a.sql("update t set b = 'z' where a = 3") == "UPDATE 1"
            assert await b.sql("select a, b from t order by a") == [(3, "z"), (7, "y")]
            between_looks(a, lambda: b.sql("delete from t where a = 3"))
            assert await a.sql("insert into t select a + 1, 'moved' from t where a = 3") == "INSERT 0 0"
            assert (await refused(a.sql("insert into t select a, 'twice' from t"))).sqlstate == "23505"

    run(story, World(), Newest())


def test_a_duplicate_is_only_told_of_a_row_that_is_there_now():
    """The adapter has not heard yet that the row is gone: it asks before it refuses."""

    async def story(world):
        async with world.adapter("a") as a, world.adapter("b") as b:
            await accounts(a, "insert into t values (1, 'x')")
            state = a.oracle.state
            await b.sql("delete from t where a = 1")
            newest = type(a.executor.images).newest_ts
            type(a.executor.images).newest_ts = property(lambda self: state.last_ts)
            try:
                assert await a.sql("insert into t values (1, 'y') returning b") == [("y",)]
            finally:
                type(a.executor.images).newest_ts = newest

    run(story)


def test_changes_of_different_keys_do_not_meet():
    async def story(world):
        async with world.adapter("a") as a, world.adapter("b") as b:
            await accounts(a, "insert into t values (1, 'x'), (2, 'y')")
            before_commit(a, lambda: b.sql("update t set n = n + 1 where a = 2"))
            assert await a.sql("update t set n = n + $1 where a = $2", 5, 1) == "UPDATE 1"
            before_commit(a, lambda: b.sql("insert into t values (3, 'z')"))
            assert await a.sql("delete from t where b = 'y' returning n") == [(1,)]
            assert a.oracle.state.stats.parts_refused == 0
            before_commit(a, lambda: b.sql("update t set n = 7 where b = 'x'"))
            assert await a.sql("update t set n = n + 1 where a = 1") == "UPDATE 1"
            assert a.oracle.state.stats.parts_refused == 1, "one row by another of its keys is the same row"
            assert await b.sql("select n from t where a = 1") == [(8,)]
            before_commit(a, lambda: b.sql("insert into t values (4, 'w')"))
            assert await a.sql("update t set n = 0") == "UPDATE 3", "all rows are all rows"
            assert a.oracle.state.stats.parts_refused == 2

    run(story)


def test_a_commit_says_which_keys_it_looked_up_and_which_its_rows_have(monkeypatch):
    async def story(world):
        async with world.adapter() as a:
            await accounts(a)
            parts = parts_of(a)
            await a.sql("insert into t values (1, 'x'), (2, null)")
            await a.sql("update t set n = 1 where a = 1")
            await a.sql("delete from t")
            insert, update, delete = parts
            assert len(insert.reads) == len(insert.writes) == 3 and insert.read_ts is not None
            assert all(each.lower is not None for each in (*insert.reads, *insert.writes))
            assert len(update.reads) == 1 and set(update.reads) < set(update.writes) and len(update.writes) == 2
            assert delete.reads == (KeyRange(insert.reads[0].collection),) and set(delete.writes) == set(insert.writes)
            monkeypatch.setattr(inserter, "POINTS_MAX", 3)
            await a.sql("insert into t select n, n::text from generate_series(1, 4) n")
            assert parts[3].reads == parts[3].writes == delete.reads
            await a.sql("create table u (k int unique)")
            await a.sql("insert into u values (null)")
            assert not parts[4].reads and len(parts[4].writes) == 1, "nobody who reads a key reads this row"

    run(story, Indexed())


def test_keys_are_looked_up_and_the_table_is_not_read():
    async def story(world):
        async with world.adapter() as a:
            await accounts(a)
            await a.sql("insert into t values (1, 'x'), (2, 'y')")
            assert (a.peeks.looked, a.peeks.asked) == (4, [])
            await a.sql("insert into t select n, n::text from generate_series(10, 500) n")
            assert (a.peeks.looked, a.peeks.asked) == (4 + 2 * 491, [])
            assert (await refused(a.sql("insert into t values (400, 'no')"))).sqlstate == "23505"

    run(story, Indexed())


def test_many_keys_are_found_where_no_index_answers():
    async def story(world):
        async with world.adapter() as a:
            await accounts(a, "insert into t select n, n::text from generate_series(1, 50) n")
            error = await refused(a.sql("insert into t select n, 'new ' || n from generate_series(50, 90) n"))
            assert error.detail == "Key (a)=(50) already exists."
            assert await a.sql("insert into t select n, 'new ' || n from generate_series(51, 90) n") == "INSERT 0 40"

    run(story, World())


def test_where_the_index_cannot_be_asked_nothing_is_written():
    async def story(world):
        async with world.adapter() as a:
            await accounts(a)
            await a.sql("create table plain (a int)")
            a.peeks.away = True

            async def not_now(peek, cluster_id):
                return None

            a.peeks.lookup = not_now
            before = a.oracle.state.last_ts
            assert isinstance(await refused(a.sql("insert into t values (1, 'x')")), Unavailable)
            assert a.oracle.state.last_ts == before
            assert await a.sql("insert into plain values (1)") == "INSERT 0 1", "which has no keys"

    run(story, Indexed())


def test_a_block_counts_what_it_has_written():
    async def story(world):
        async with world.adapter("a") as a, world.adapter("b") as b:
            await accounts(a, "insert into t values (1, 'x'), (2, 'y')")
            session = a.session
            session.transaction.begin()

            async def inside(text, *params):
                session.defers_writes = True
                try:
                    return await a.sql(text, *params)
                finally:
                    session.defers_writes = False

            assert await inside("insert into t values (3, 'z')") == "INSERT 0 1"
            assert (await refused(inside("insert into t values (3, 'q')"))).sqlstate == "23505"
            assert await inside("delete from t where a = 1") == "DELETE 1"
            assert await inside("insert into t values (1, 'x')") == "INSERT 0 1", "it took that key away itself"
            assert (await refused(inside("update t set a = 1 where a = 3"))).sqlstate == "23505"
            assert await inside("update t set a = 4 where a = 3") == "UPDATE 1"
            assert await inside("insert into t values (3, 'again')") == "INSERT 0 1"
            assert await b.sql("insert into t values (5, 'five')") == "INSERT 0 1"
            await a.executor.commit(session)
            session.transaction.end()
            rows = await b.sql("select a, b from t order by a")
            assert rows == [(1, "x"), (2, "y"), (3, "again"), (4, "z"), (5, "five")]

            session.transaction.begin()
            assert await inside("insert into t values (6, 'mine')") == "INSERT 0 1"
            assert await b.sql("insert into t values (6, 'theirs')") == "INSERT 0 1"
            with pytest.raises(Conflict) as caught:
                await a.executor.commit(session)
            assert caught.value.sqlstate == "40001"
            session.transaction.end()
            assert await b.sql("select b from t where a = 6") == [("theirs",)]

    run(story, World())


def test_an_insert_that_was_planned_before_the_constraint_is_not_committed_after_it():
    async def story(world):
        async with world.adapter("a") as a, world.adapter("b") as b:
            await a.sql("create table t (a int, constraint k unique (a))")
            before_commit(a, lambda: b.sql("alter table t drop constraint k"))
            assert await a.sql("insert into t values (1)") == "INSERT 0 1"
            assert await a.sql("insert into t values (1)") == "INSERT 0 1"

    run(story)


@pytest.mark.parametrize("seed", range(4))
def test_keys_stay_unique_whatever_is_written_at_once(seed):
    """Sessions on two adapters write the same few keys by all statements that there are; what was acknowledged is
    there, and no key is ever there twice."""

    async def story(world):
        rng = random.Random(seed)
        async with world.adapter("a") as a, world.adapter("b") as b:
            await accounts(a)
            added = 0

            async def client(adapter):
                nonlocal added
                session = SessionState(rng.randrange(1 << 30))
                for _ in range(12):
                    key, text = rng.randrange(5), rng.choice(["null", "'p'", "'q'", "'r'"])
                    statement = rng.choice(
                        [
                            f"insert into t values ({key}, {text})",
                            f"insert into t values ({key}, {text}), ({key + 5}, null)",
                            f"update t set n = n + 1 where a = {key}",
                            f"update t set a = {key}, b = {text} where a = {rng.randrange(5)}",
                            f"update t set b = {text} where a >= {key}",
                            f"delete from t where a = {key}",
                            f"delete from t where b = {text}",
                        ]
                    )
                    await asyncio.sleep(rng.random() / 500)
                    try:
                        tag = await adapter.sql(statement, session=session)
                        count = int(tag.split()[-1])
                        added += count if tag.startswith("INSERT") else -count if tag.startswith("DELETE") else 0
                    except TidemarkError as error:
                        assert error.sqlstate in ("23505", "40001"), error

            await asyncio.gather(*(client(adapter) for adapter in (a, b) * 3))
            rows = await b.sql("select a, b from t")
            assert len(rows) == added
            assert len({row[0] for row in rows}) == len(rows)
            texts = [row[1] for row in rows if row[1] is not None]
            assert len(set(texts)) == len(texts)

    run(story, Indexed())


def test_older_catalogs_keep_no_constraints():
    async def story(world):
        async with world.adapter() as a:
            error = await refused(a.sql("create table t (a int primary key)"))
            assert error.sqlstate == "0A000" and "format 9" in error.hint

    run(story, World(carries=False))
