"""DDL needs the catalog's log and the oracle, and nobody else; what it says of an outcome is what is known of it."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future

import pytest

from adapter.execute.ddl_commit import Asked, image_in_force
from adapter.state.session_state import SessionState
from catalog_log.model import REQUESTS
from catalog_log.objects import INDEX, MATERIALIZED_VIEW, SOURCE, TABLE
from journal.aio import Bridge
from journal.errors import Indeterminate, Unavailable
from sql.objects.names import Names
from sql.statements.ddl import plan_ddl
from sql.syntax.parse import parse
from tests.adapter.stories import HeldTransport, refused, run, until
from tests.adapter.world import World

ASKED = Asked("create table t (k int)")


def test_ddl_is_answered_with_no_controller_anywhere():
    """The world has logs and adapters only; the store that plays the controllers is taken away as well (I8)."""

    async def story(world: World):
        async with world.adapter() as a:
            a.executor.reads._peeks = a.executor.commits.inserter = None
            await a.sql("create source s (k int, v text) from kafka topic 'x' format json")
            await a.sql("create table t (k int)")
            await a.sql("create materialized view m as select s.k, count(*) from s join t on s.k = t.k group by s.k")
            await a.sql("create index i on m (k)")
            await a.sql("drop table t cascade")
            kinds = {item.kind for item in a.catalog.image.objects()}
            assert SOURCE in kinds and not kinds & {TABLE, MATERIALIZED_VIEW, INDEX}

    run(story)


def test_ddl_that_was_appended_but_not_confirmed_is_unknown_never_undone():
    async def story(world: World):
        async with world.adapter() as a:

            async def away(_upper):
                raise Unavailable("the oracle is away")

            a.oracle.apply_catalog_async = away
            with pytest.raises(Indeterminate):
                await a.sql("create table t (k int)")
            assert any(item.name == "t" for item in a.catalog.image.objects())

    run(story)


def test_a_statement_that_was_sent_when_the_adapter_closes_is_unknown_and_one_that_was_not_did_not_happen():
    async def story(world: World):
        async with world.adapter() as a:
            never: Future = Future()
            sent = asyncio.Event()

            def hang(*_args, **_named):
                sent.set()
                return never

            a.catalog.compare_and_append = hang
            first = asyncio.create_task(a.sql("create table t (k int)"))
            await sent.wait()
            second = asyncio.create_task(a.sql("create table u (k int)"))
            while not a.executor.ddl._waiting:
                await asyncio.sleep(0)
            await a.executor.close()
            with pytest.raises(Indeterminate):
                await first
            with pytest.raises(Unavailable):
                await second

    run(story)


def test_a_request_sent_twice_is_not_answered_from_a_proposal_that_nobody_admitted_yet():
    """Both copies are in one group; the second is planned behind the first, whose proposal may come to nothing."""

    async def story(world: World):
        async with world.adapter() as a:
            append = a.catalog.compare_and_append
            never: Future = Future()
            sent = asyncio.Event()

            def hang(*_args, **_named):
                sent.set()
                return never

            a.catalog.compare_and_append = hang
            statement, names = parse("create table t (k int)"), Names("tidemark", ("public",))
            first, second = (
                asyncio.create_task(a.executor.execute_ddl(statement, names, ASKED, request_id="r-1")) for _ in range(2)
            )
            await sent.wait()
            for _ in range(3):  # time enough for whoever answers from what it has
                await a.oracle.barrier_async()
            assert not second.done()
            a.catalog.compare_and_append = append
            never.set_exception(Indeterminate("no answer"))
            with pytest.raises(Indeterminate):
                await first
            outcome = await second
            assert [item.name for item in a.catalog.image.objects()] == ["t"]
            assert a.catalog.image.get(REQUESTS, "r-1").catalog_ts == outcome.catalog_ts

    run(story)


def test_a_request_sent_twice_has_one_answer_also_after_a_conflict():
    async def story(world: World):
        async with world.adapter("a") as a, world.adapter("b") as b:
            append, others = a.catalog.compare_and_append, iter(["create table other (k int)"])

            def overtaken(*args, **named):
                for sql in others:
                    # Somebody else is first: ours is planned again, at a later timestamp.
                    image = b.catalog.image
                    plan = plan_ddl(parse(sql), image, Names("tidemark", ("public",)))
                    b.catalog.compare_and_append(image.upper, image.upper + 100, plan.updates).result(10)
                return append(*args, **named)

            a.catalog.compare_and_append = overtaken
            statement, names = parse("create table t (k int)"), Names("tidemark", ("public",))
            outcomes = await asyncio.gather(
                *(a.executor.execute_ddl(statement, names, ASKED, request_id="r-1") for _ in range(3))
            )
            recorded = a.catalog.image.get(REQUESTS, "r-1").catalog_ts
            assert [outcome.catalog_ts for outcome in outcomes] == [recorded] * 3

    run(story)


async def overtaken(world: World, a, b, slow: HeldTransport) -> tuple[int, asyncio.Task]:
    """A statement of ``a``, whose reader is ``slow``, proposed on an upper that is not the newest; and where the topic
    ended before it."""
    slow.held = True
    await b.sql("create table other (k int)")
    before = world.catalog_topic.end
    first = asyncio.create_task(a.sql("create table t1 (k int)"))
    await until(lambda: world.catalog_topic.end == before + 1)
    return before, first


def test_those_who_come_while_a_proposal_is_overtaken_are_in_the_next():
    async def story(world: World):
        slow = HeldTransport(world.catalog_topic)
        async with world.adapter("a", slow) as a, world.adapter("b") as b:
            before, first = await overtaken(world, a, b, slow)
            others = [asyncio.create_task(a.sql(f"create table t{n} (k int)", session=SessionState(50 + n)))
                      for n in (2, 3)]  # fmt: skip
            await until(lambda: len(a.executor.ddl._waiting) == 2)
            slow.release()
            await asyncio.gather(first, *others)
            assert world.catalog_topic.end == before + 2, "the loser, and one proposal for all three"
            _, image = await b.executor.images.barrier()
            assert sorted(item.name for item in image.objects()) == ["other", "t1", "t2", "t3"]

    run(story)


def test_those_who_come_at_once_are_in_one_proposal():
    """Statements of sessions that were answered together are not in the queue in one turn of the loop, but one after
    the other: the first does not go alone."""

    async def story(world: World):
        async with world.adapter() as a:
            await a.sql("create table warm (k int)")
            before = world.catalog_topic.end

            async def soon(n: int) -> str:
                for _ in range(2 * n):
                    await asyncio.sleep(0)
                return await a.sql(f"create table t{n} (k int)", session=SessionState(50 + n))

            assert await asyncio.gather(*map(soon, range(20))) == ["CREATE TABLE"] * 20
            assert world.catalog_topic.end == before + 1

    run(story)


def test_one_who_fails_takes_no_other_of_its_group_down_also_after_a_conflict():
    """All of a group are planned on one another's images: each outcome is that of its own statement, in their order."""

    async def story(world: World):
        slow = HeldTransport(world.catalog_topic)
        async with world.adapter("a", slow) as a, world.adapter("b") as b:
            before, first = await overtaken(world, a, b, slow)
            statements = (
                "create table t2 (k int)",
                "create table t2 (k text)",
                "drop table t9",
                "create table other (k int)",
                "drop table t2",
                "create table t2 (v int)",
                "create table if not exists t2 (k int)",
                "create table t3 (k int)",
            )
            rest = [asyncio.create_task(a.sql(sql, session=SessionState(50 + n))) for n, sql in enumerate(statements)]
            await until(lambda: len(a.executor.ddl._waiting) == len(statements))
            slow.release()
            told = await asyncio.gather(first, *rest, return_exceptions=True)
            assert [getattr(each, "sqlstate", each) for each in told] == [
                "CREATE TABLE", "CREATE TABLE", "42P07", "42P01", "42P07", "DROP TABLE", "CREATE TABLE", "CREATE TABLE",
                "CREATE TABLE",
            ]  # fmt: skip
            assert world.catalog_topic.end == before + 2, "the loser, and one proposal for all that change anything"
            _, image = await b.executor.images.barrier()
            assert sorted(item.name for item in image.objects()) == ["other", "t1", "t2", "t3"]
            [t2] = [item for item in image.objects() if item.name == "t2"]
            assert [column.name for column in t2.columns] == ["v"]
            assert len({item.id for item in image.objects()}) == 4

    run(story)


def test_an_append_that_is_not_in_force_yet_is_not_shown():
    """Admitted but not applied: another adapter may still answer without it, so nobody answers with it."""

    async def story(world: World):
        async with world.adapter() as a:
            await a.sql("create table t (k int)")
            in_force = a.oracle.state.catalog_upper
            appended = a.catalog.compare_and_append(in_force, in_force + 5, ())
            await Bridge(asyncio.get_running_loop()).wait(appended)
            assert a.catalog.upper() == in_force + 5
            image = await image_in_force(a.catalog, Bridge(asyncio.get_running_loop()), in_force)
            assert image.upper == in_force
            assert any(item.name == "t" for item in image.objects())

    run(story)


def test_two_adapters_create_one_name_and_exactly_one_is_told_that_it_exists():
    async def story(world):
        async with world.adapter("a") as a, world.adapter("b") as b:
            answers = await asyncio.gather(
                *(x.sql(f"create table t{n} (a int)") for n in range(20) for x in (a, b)), return_exceptions=True
            )
            for n in range(20):
                pair = answers[2 * n : 2 * n + 2]
                assert sorted(getattr(p, "sqlstate", p) for p in pair) == ["42P07", "CREATE TABLE"]
            assert len(await a.sql("show tables")) == 20

    run(story)


def test_ddl_of_one_adapter_is_visible_at_once_through_the_other():
    async def story(world):
        async with world.adapter("a") as a, world.adapter("b") as b:
            for n in range(20):
                await a.sql(f"create table t{n} (a int)")
                assert await b.sql(f"insert into t{n} values ({n})") == "INSERT 0 1"
                assert await a.sql(f"select a from t{n}") == [(n,)]
                await b.sql(f"drop table t{n}")
                assert (await refused(a.sql(f"select a from t{n}"))).sqlstate == "42P01"
                assert (await refused(a.sql(f"insert into t{n} values (1)"))).sqlstate == "42P01"

    run(story)


def test_concurrent_ddl_of_one_adapter_shares_proposals():
    async def story(world):
        async with world.adapter() as a:
            before = world.catalog_topic.end
            await asyncio.gather(*(a.sql(f"create table t{n} (a int)") for n in range(50)))
            assert world.catalog_topic.end - before < 10
            assert len({i.id for i in a.catalog.image.objects()}) == 50

    run(story)


def test_what_is_called_otherwise_is_called_so_everywhere():
    """By sessions that wrote it before, and in the system's relations."""

    async def story(world):
        async with world.adapter() as a, world.adapter() as other:
            await a.sql("create schema s")
            await a.sql("create table t (a int not null)")
            await a.sql("create view v as select public.t.a from public.t")
            await other.sql("insert into t values (1)")
            assert await a.sql("alter table t rename to u") == "ALTER TABLE"
            assert (await refused(other.sql("insert into t values (2)"))).sqlstate == "42P01"
            await other.sql("insert into u values (2)")
            assert await a.sql("alter table u set schema s") == "ALTER TABLE"
            for relation in ("s.u", "v"):
                assert sorted(await other.sql(f"select a from {relation}")) == [(1,), (2,)]
            own = "select relname, nspname, pg_get_viewdef(c.oid) from pg_class c join pg_namespace n"
            assert await other.sql(f"{own} on n.oid = relnamespace where c.oid >= 16384 order by 1") == [
                ("u", "s", None),
                ("v", "public", " SELECT\n  t.a\nFROM s.u AS t;"),
            ]
            assert (await other.sql("show create table s.u"))[0][1].startswith("CREATE TABLE tidemark.s.u (")
            assert await a.sql("alter table if exists t rename to x") == "ALTER TABLE"

    run(story)
