"""What is prepared, and run later: by the catalog as it is then, and as what its client was told."""

from __future__ import annotations

from dataclasses import replace

from adapter.state.session_state import SessionState
from tests.adapter.stories import refused, run
from tests.adapter.world import rows_of


def test_a_prepared_statement_follows_the_catalog_but_never_changes_its_columns():
    async def story(world):
        async with world.adapter() as a:
            await a.sql("create table t (a int)")
            select = await a.executor.prepare(a.session, "select * from t where a = $1")
            insert = await a.executor.prepare(a.session, "insert into t values ($1)")
            assert select.param_oids == (23,) and insert.param_oids == (23,)
            await a.sql("create index on t (a)")
            await a.executor.run(a.session, insert, (5,))
            assert await rows_of(await a.executor.run(a.session, select, (5,))) == [(5,)]
            assert a.peeks.asked[-1].lookup is not None, "planned again: the new index is used"
            await a.sql("drop table t")
            await a.sql("create table t (a text)")
            assert (await refused(a.executor.run(a.session, select, (5,)))).sqlstate in ("0A000", "42883")

    run(story)


def test_a_parameter_keeps_the_type_that_it_was_prepared_with():
    """A value that was read as one type is not taken for one of another, since a column has moved into its place."""

    async def story(world):
        async with world.adapter() as a, world.adapter() as other:
            await a.sql("create table t (a int, b text default 'q', c int)")
            insert = await a.executor.prepare(a.session, "insert into t values (5, $1)")
            select = await a.executor.prepare(a.session, "select a from t where b = $1")
            await a.executor.run(a.session, insert, ("z",))
            for action in ("drop column b", "add column b int", "drop column a", "add column a int"):
                await other.sql(f"alter table t {action}")
            for untold in (insert, select):
                assert (await refused(a.executor.run(a.session, untold, ("z",)))).sqlstate == "0A000"
            insert, select = [replace(each, told=True) for each in (insert, select)]
            assert (await refused(a.executor.run(a.session, insert, ("z",)))).sqlstate == "42804"
            assert (await refused(a.executor.run(a.session, select, ("z",)))).sqlstate == "42883"
            assert await other.sql("select * from t") == [(None, None, None)]

    run(story)


def test_an_unknown_database_is_refused_when_the_session_opens():
    async def story(world):
        async with world.adapter() as a:
            await a.executor.open(a.session)
            assert (await refused(a.executor.open(SessionState(5, database="nope")))).sqlstate == "3D000"

    run(story)
