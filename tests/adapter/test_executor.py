"""The executor's promises, on logs in memory: strict reads, conditional inserts, DDL that everybody sees."""

from __future__ import annotations

import asyncio
import datetime as dt
from dataclasses import replace
from decimal import Decimal

import pytest

from adapter.state.session_state import SessionState
from journal.errors import TidemarkError
from journal.memory import MemoryTransport
from sql.syntax import parse as parsing
from tests.adapter.world import World, rows_of


def run(story):
    """Run ``story(world)`` on a loop of its own, bounded: where commit records carry rows, and where they do not."""
    for carries in (True, False):
        asyncio.run(asyncio.wait_for(story(World(carries)), 60))


async def refused(awaitable) -> TidemarkError:
    with pytest.raises(TidemarkError) as caught:
        await awaitable
    return caught.value


def test_rows_inserted_are_read_back_with_types_and_defaults():
    async def story(world):
        async with world.adapter() as a:
            assert await a.sql("create table t (a int not null, b numeric(6,2) default 1.5, c text)") == "CREATE TABLE"
            assert await a.sql("insert into t values (1, 2.345, 'x'), (2, default, null)") == "INSERT 0 2"
            assert await a.sql("insert into t (a, c) values ($1, $2)", 3, "y") == "INSERT 0 1"
            assert await a.sql("select a, b, c from t order by a") == [
                (1, Decimal("2.35"), "x"),
                (2, Decimal("1.50"), None),
                (3, Decimal("1.50"), "y"),
            ]
            assert await a.sql("select count(*), sum(b) from t where a > $1", 1) == [(2, Decimal("3.00"))]

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


class HeldTransport:
    """A catalog transport whose deliveries a test can hold back: an adapter that lags behind."""

    def __init__(self, topic):
        self.inner = MemoryTransport(topic)
        self.held = False
        self.waiting = []
        self.on_entries = None

    def append(self, value):
        return self.inner.append(value)

    def subscribe(self, from_offset, on_entries, on_error):
        self.on_entries = on_entries

        def deliver(entries):
            if self.held:
                self.waiting.append(entries)
            else:
                on_entries(entries)

        return self.inner.subscribe(from_offset, deliver, on_error)

    def release(self):
        self.held = False
        for entries in self.waiting:
            self.on_entries(entries)
        self.waiting.clear()

    def __getattr__(self, name):
        return getattr(self.inner, name)


def test_an_insert_planned_on_a_stale_image_is_planned_again_and_its_rows_are_written_once():
    async def story(world):
        slow = HeldTransport(world.catalog_topic)
        async with world.adapter("slow", slow) as a, world.adapter("b") as b:
            await a.sql("create table t (a int)")
            slow.held = True
            await b.sql("create table other (a int)")
            inserting = asyncio.create_task(a.sql("insert into t values (1)"))
            await until(lambda: b.oracle.state.stats.parts_refused == 1)
            await asyncio.sleep(0)
            assert not inserting.done(), "the commit was refused: the catalog in force is newer than the plan"
            slow.release()
            assert await inserting == "INSERT 0 1"
            assert world.store.writes == (0 if world.carries else 1)
            assert await b.sql("select a from t") == [(1,)]

    run(story)


def test_an_insert_that_is_cancelled_once_it_was_refused_is_not_committed_on_the_newer_catalog():
    async def story(world):
        slow = HeldTransport(world.catalog_topic)
        async with world.adapter("slow", slow) as a, world.adapter("b") as b:
            await a.sql("create table t (a int)")
            slow.held = True
            await b.sql("create table other (a int)")
            # Larger than what is written in groups, which are others' too and go on.
            inserting = asyncio.create_task(a.sql(f"insert into t values (1){', (1)' * 20_000}"))
            await until(lambda: b.oracle.state.stats.parts_refused == 1)
            inserting.cancel()
            slow.release()
            with pytest.raises(asyncio.CancelledError):
                await inserting
            assert await b.sql("select a from t") == []
            assert b.oracle.state.stats.parts_refused == 1

    run(story)


def test_a_table_dropped_between_write_and_commit_is_missing_and_no_rows_appear():
    async def story(world):
        slow = HeldTransport(world.catalog_topic)
        async with world.adapter("slow", slow) as a, world.adapter("b") as b:
            await a.sql("create table t (a int)")
            slow.held = True
            await b.sql("drop table t")
            await b.sql("create table t (a int)")
            inserting = [
                asyncio.create_task(a.sql("insert into t values (1)", session=SessionState(100 + n))) for n in range(3)
            ]
            await until(lambda: b.oracle.state.stats.parts_refused > 0)
            slow.release()
            for each in inserting:  # they were written together, and each is told
                assert (await refused(each)).sqlstate == "42P01"
            assert await b.sql("select a from t") == []

    run(story)


def test_inserts_of_many_sessions_are_few_writes_and_each_has_its_own_outcome():
    async def story(world):
        async with world.adapter("a") as a, world.adapter("b") as b:
            await a.sql("create table t (a int not null, b text default 'x')")

            async def insert(n):
                return await a.sql(f"insert into t (a) values ({n or 'null'})", session=SessionState(100 + n))

            asked = [asyncio.create_task(insert(n)) for n in range(50)]
            await b.sql("create table other (a int)")  # the catalog moves on while they are under way
            assert (await refused(asked[0])).sqlstate == "23502"
            assert await asyncio.gather(*asked[1:]) == ["INSERT 0 1"] * 49
            assert await b.sql("select count(*), sum(a), min(b) from t") == [(49, 1225, "x")]
            assert world.store.writes < 10

    run(story)


def test_a_select_waits_for_the_catalog_that_is_in_force():
    async def story(world):
        slow = HeldTransport(world.catalog_topic)
        async with world.adapter("slow", slow) as a, world.adapter("b") as b:
            slow.held = True
            await b.sql("create table t (a int)")
            await b.sql("insert into t values (7)")
            reading = asyncio.create_task(a.sql("select a from t"))
            asking = asyncio.create_task(a.sql("create table if not exists t (a int)"))
            await asyncio.sleep(0.05)
            assert not reading.done() and not asking.done()
            slow.release()
            assert await reading == [(7,)]
            assert await asking == "CREATE TABLE"

    run(story)


def test_a_serializable_session_reads_without_a_barrier():
    async def story(world):
        async with world.adapter() as a:
            await a.sql("create table t (a int)")
            session = SessionState(99)
            session.set_variable("tidemark.isolation", "serializable")
            before = world.oracle_topic.end
            assert await a.sql("select a from t", session=session) == []
            assert world.oracle_topic.end == before
            assert a.peeks.asked[-1].as_of is None

    run(story)


@pytest.mark.parametrize("grouped", [False, True])
def test_a_serializable_session_reads_what_it_wrote_also_of_a_controller_that_is_behind(grouped):
    async def story(world):
        async with world.adapter() as a:
            await a.sql("create table t (a int)")
            writer, other = SessionState(98), SessionState(99)
            for each in (writer, other):
                each.set_variable("tidemark.isolation", "serializable")
            await a.sql("insert into t values (1)")
            a.peeks.complete = a.oracle.state.last_ts
            if grouped:
                await asyncio.gather(*(a.sql(f"insert into t values ({n})", session=writer) for n in (2, 3)))
            else:
                writer.defers_writes = True
                await a.sql("insert into t values (2), (3)", session=writer)
                await a.executor.commit(writer)
            await a.sql("create view v as select a from t", session=writer)
            for relation in ("t", "v"):
                assert await a.sql(f"select a from {relation} order by a", session=writer) == [(1,), (2,), (3,)]
                assert await a.sql(f"select a from {relation}", session=other) == [(1,)], "it never waits"
            await a.sql("insert into t values (4)")
            a.peeks.complete = None
            assert len(await a.sql("select a from t", session=writer)) == 4, "its write is a bound, not the time"

    run(story)


def test_inserts_of_a_block_are_held_back_and_committed_as_one():
    async def story(world):
        async with world.adapter() as a:
            await a.sql("create table t (a int)")
            await a.sql("create table u (a int)")
            session = SessionState(99)
            session.defers_writes = True
            await a.sql("insert into t values (1)", session=session)
            await a.sql("insert into u values (2)", session=session)
            assert await a.sql("select a from t") == []
            before = world.oracle_topic.end
            await a.executor.commit(session)
            assert session.buffer == [] and world.oracle_topic.end == before + 1
            assert await a.sql("select t.a, u.a from t, u") == [(1, 2)]

    run(story)


def test_insert_select_reads_at_a_barrier_and_loses_to_a_concurrent_writer_until_it_wins():
    async def story(world):
        async with world.adapter("a") as a, world.adapter("b") as b:
            await a.sql("create table t (a int)")
            await a.sql("create table total (n bigint)")
            await a.sql("insert into t values (1), (2)")
            interfere = [True]
            peek = a.peeks.peek

            async def interfering(*args):
                answer = await peek(*args)
                if interfere:
                    interfere.pop()
                    await b.sql("insert into t values (3)")
                return answer

            a.peeks.peek = interfering
            assert await a.sql("insert into total select count(*) from t") == "INSERT 0 1"
            assert await a.sql("select n from total") == [(3,)], "the first count was overtaken, so it was taken again"

    run(story)


def test_values_are_refused_with_postgres_sqlstates():
    async def story(world):
        async with world.adapter() as a:
            await a.sql("create table t (a int2 not null, b numeric(4,1))")
            for text, params, sqlstate in (
                ("insert into t values (null)", (), "23502"),
                ("insert into t values ($1)", (None,), "23502"),
                ("insert into t values (70000)", (), "22003"),
                ("insert into t values ($1, $2)", (1, Decimal("12345")), "22003"),
                ("insert into t values (1/0)", (), "22012"),
                ("insert into t values ('x')", (), "22P02"),
                ("insert into t (b) values (1)", (), "23502"),
                ("select 1/0", (), "22012"),
                ("select * from nope", (), "42P01"),
            ):
                assert (await refused(a.sql(text, *params))).sqlstate == sqlstate, text
            assert await a.sql("select count(*) from t") == [(0,)]

    run(story)


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


def test_a_lookup_answers_as_spark_would():
    async def story(world):
        async with world.adapter() as a:
            await a.sql("create table t (a int, b numeric(6,2), c text, d timestamptz)")
            await a.sql("insert into t values (1, 1.5, 'x', '2024-01-01'), (2, null, 'y', null), (3, 2.5, null, now())")
            queries = [
                "select * from t where a = 1",
                "select a, b * 2 from t where b > 1 order by b * 2 desc limit 1",
                "select count(*), sum(b), min(c), max(a), sum(a), count(b) from t",
                "select c from t where c is null",
                "select a from t where a in (1, 3) or c = 'y' order by a desc",
                "select sum(b) from t where a > 10",
                "select a from t where d = '2024-01-01 00:00:00+00'",
                "select a from t order by a offset 1",
                "select a + 1, -5, 'k' from t where not a = 1 order by 1",
            ]
            by_spark = [await a.sql(q) for q in queries]
            assert all(peek.lookup is None for peek in a.peeks.asked)
            await a.sql("create index on t (a)")
            asked = len(a.peeks.asked)
            assert [await a.sql(q) for q in queries] == by_spark
            assert all(peek.lookup is not None for peek in a.peeks.asked[asked:])

    run(story)


def test_every_kind_of_object_says_how_it_would_be_made():
    """What SHOW CREATE says is a statement that makes the object; of an object of each kind."""

    async def story(world):
        async with world.adapter() as a:
            await a.sql("create table t (a int not null, b text default 'x')")
            await a.sql("create source s (a int) from kafka topic 'user.s' format json")
            await a.sql("create view v as select a, b from t where a > 1")
            await a.sql("create materialized view m (k, n) as select b, count(*) from v group by b")
            await a.sql("create index by_k on m (k)")
            named = {"table": "t", "source": "s", "view": "v", "materialized view": "m", "index": "by_k"}
            for kind, name in named.items():
                ((_, said),) = await a.sql(f"show create {kind} {name}")
                before = [await a.sql(each) for each in ("show objects", "show indexes")]
                await a.sql(f"drop {kind} {name} cascade")
                await a.sql(said)
                if kind == "index":
                    assert [await a.sql(each) for each in ("show objects", "show indexes")] == before
                assert (await a.sql(f"show create {kind} {name}")) == [(_, said)]
                if kind == "table":  # what stood on it went with it
                    await a.sql("create view v as select a, b from t where a > 1")
                if kind in ("table", "view"):
                    await a.sql("create materialized view m (k, n) as select b, count(*) from v group by b")
                if kind != "index":
                    await a.sql("create index if not exists by_k on m (k)")

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


def lag(adapter):
    """Have the next statement of ``adapter`` prepared and planned on the catalog as it is now, whatever comes."""
    image, present, calls = adapter.catalog.image, adapter.executor.images.known, iter(range(2))

    async def as_it_was(upper):
        return await present(upper) if next(calls, None) is None else image

    adapter.executor.images.known = as_it_was


STALE = {
    "alter table t rename to u": "42P01",
    "alter table t rename column b to c": "42703",
    "alter table t add column c int": [(1, None), (2, 5, None)],
    "alter table t alter b set default 6": [(1, None), (2, 6)],
    "alter schema s rename to z": "3F000",
    "alter table t set schema public": "42P01",
    "create table s.other (a int)": [(1, None), (2, 5)],
}


@pytest.mark.parametrize("altered", STALE)
@pytest.mark.parametrize("block", [False, True])
def test_an_adapter_that_lags_behind_inserts_into_what_there_is_now(altered, block):
    """Whoever was told that a table has another name, or a column another default, is not answered from before."""

    async def story(world):
        async with world.adapter() as a, world.adapter() as other:
            await a.sql("create schema s")
            await a.sql("create table s.t (a int, b int default 5)")
            await a.sql("insert into s.t values (1, null)")
            assert await other.sql("select * from s.t") == [(1, None)]
            if block:
                other.session.defers_writes = True
            lag(other)
            await a.sql(altered.replace("table t", "table s.t"))
            await until(lambda: other.catalog.image.upper >= a.catalog.image.upper)  # it has heard; its plans have not
            insert = other.sql("insert into s.t (a, b) values (2, default)")
            expected = STALE[altered]
            if block:
                await insert
                if isinstance(expected, str) or altered.startswith("alter"):
                    assert (await refused(other.executor.commit(other.session))).sqlstate == "40001"
                    expected = [(1, None)]
                else:
                    await other.executor.commit(other.session)
            elif isinstance(expected, str):
                assert (await refused(insert)).sqlstate == expected
                expected = [(1, None)]
            else:
                await insert
            if altered.startswith("create"):
                assert other.oracle.state.stats.parts_refused == 0, "what has nothing to do with it refuses nothing"
            ((name,),) = await a.sql("select oid::regclass::text from pg_class where relname in ('t', 'u')")
            assert [row[: len(expected[0])] for row in sorted(await a.sql(f"select * from {name}"))] == [
                row[: len(expected[0])] for row in expected
            ]

    run(story)


def test_an_insert_that_meets_an_alter_table_is_made_again():
    """In Postgres it would have waited for the other to be done."""

    async def story(world):
        async with world.adapter() as a, world.adapter() as other:
            await a.sql("create table t (a int, b int)")
            inserter = a.executor.commits.inserter
            place, altering = inserter._place, iter(["add column c text default 'x'", "drop column b"])

            async def after_alter(entries):
                if (action := next(altering, None)) is not None:
                    await other.sql(f"alter table t {action}")
                return await place(entries)

            inserter._place = after_alter
            await a.sql("insert into t (a) values (1)")
            assert await a.sql("select * from t") == [(1, "x")], "each statement met one, and each of its tries another"
            altering = iter(["add column b int default 5"])
            assert (await refused(a.sql("insert into t (a, d) values (1, 2)"))).sqlstate == "42703"
            await a.sql("insert into t values (2, 'y')")
            assert sorted(await other.sql("select a, b, c from t")) == [(1, 5, "x"), (2, 5, "y")]
            altering = iter(["drop column a"])
            assert (await refused(a.sql("insert into t (a) values (3)"))).sqlstate == "42703"
            assert len(await other.sql("select * from t")) == 2

    run(story)


def test_a_default_of_a_new_column_is_what_it_is_when_the_column_is_added():
    async def story(world):
        async with world.adapter() as a:
            await a.sql("create table t (a int)")
            await a.sql("insert into t values (1), (2)")
            await a.sql("alter table t add at timestamptz default now() not null, add n int default 3 * 4, add s text")
            await a.sql("insert into t (a) values (3)")
            rows = sorted(await a.sql("select a, at, n, s from t"))
            assert [(row[0], *row[2:]) for row in rows] == [(1, 12, None), (2, 12, None), (3, 12, None)]
            assert rows[0][1] == rows[1][1] < rows[2][1], "once for those that were there, anew for each statement"
            assert (await refused(a.sql("alter table t add x int default 1 / 0"))).sqlstate == "22012"
            assert (await refused(a.sql("alter table t add x float8 default random()"))).sqlstate == "0A000"
            await a.sql("alter table t add x float8, alter x set default random()")

    run(story)


def test_a_column_holds_numbers_to_digits_that_no_engine_has_decimals_for():
    """By whatever way a value comes into it."""
    long = "1" + "0" * 46

    async def story(world):
        async with world.adapter() as a:
            await a.sql("create table t (k int, n numeric(50,3), h numeric(3,-2), s numeric(2,4)[])")
            await a.sql(f"insert into t (k, n, h) values (1, 1.23456, 12345), (2, {long}, -49), (3, 'NaN', null)")
            await a.sql("insert into t (k, n) values ($1, $2)", 4, "0.0005")
            await a.sql("insert into t (k, n) select 5, 2::int8 union all select 6, 0.1::float8 + 0.2")
            await a.sql("insert into t (k, s) values (7, array[0.00994, null])")
            assert sorted(await a.sql("select k, n, h, s from t")) == [
                (1, "1.235", "12300", None), (2, long + ".000", "0", None), (3, "NaN", None, None),
                (4, "0.001", None, None), (5, "2.000", None, None), (6, "0.300", None, None),
                (7, None, None, ["0.0099", None]),
            ]  # fmt: skip
            assert await a.sql("select n + 1, n::numeric(60,1), h::int from t where k = 1") == [("2.235", "1.2", 12300)]
            await a.sql("alter table t add d numeric(40,2) default 1.005")
            assert {d for (d,) in await a.sql("select d from t")} == {"1.01"}, "of rows that were there"
            for wide in (
                f"insert into t (n) values ({long}0)",
                "insert into t (h) values (99950)",
                "insert into t (n) values ('infinity')",
                "insert into t (s) values (array[0.01])",
                "insert into t (h) select 1e6",
                "select 1e50::numeric(45,2)",
            ):
                assert (await refused(a.sql(wide))).sqlstate == "22003", wide
            shown = "select format_type(atttypid, atttypmod) from pg_attribute where attrelid = 't'::regclass"
            types = [t for (t,) in await a.sql(shown + " and attnum > 0 order by attnum")]
            assert types == ["integer", "numeric(50,3)", "numeric(3,-2)", "numeric(2,4)[]", "numeric(40,2)"]
            ((*_, made),) = await a.sql("show create table t")
            assert "numeric(50,3)" in made and "numeric(3,-2)" in made and "numeric(2,4)[]" in made
            scales = "select column_name, numeric_precision, numeric_scale from information_schema.columns"
            assert set(await a.sql(scales + " where table_name = 't' and column_name in ('n', 'h')")) == {
                ("n", 50, 3), ("h", 3, -2)
            }  # fmt: skip
            for wrong, sqlstate in (
                ("select 1::numeric(0)", "22023"), ("select 1::numeric(-3,1)", "22023"),
                ("select 1::numeric(3,-)", "42601"), ("select 1::numeric(3,1001)", "22023"),
                ("select 1::numeric(3,-1001)", "22023"),
            ):  # fmt: skip
                assert (await refused(a.sql(wrong))).sqlstate == sqlstate, wrong

    run(story)


def test_a_column_has_the_digits_and_fields_that_it_was_declared_with():
    """By whatever way a value comes into it."""
    at, rounded = dt.datetime(2024, 1, 1, 0, 0, 0, 999_600), dt.datetime(2024, 1, 1, 0, 0, 1)

    async def story(world):
        async with world.adapter() as a:
            await a.sql("create table t (a timestamp(3), b time(0), c interval minute, d timestamptz(0)[])")
            await a.sql("insert into t (a) values ('2024-01-01 00:00:00.9996')")
            await a.sql("insert into t (a) values ($1)", at)
            await a.sql("insert into t (a) select timestamp '2024-01-01 00:00:00.9996'")
            await a.sql("insert into t (a) values (timestamp '2024-01-01' + interval '0.9996 s')")
            assert await a.sql("select a from t") == [(rounded,)] * 4
            await a.sql("insert into t (b, c) values ('23:59:59.5', '10'), ('0:0:0.4', '1:2:3')")
            await a.sql("insert into t (b, c) values ('1:00', interval '90 s')")
            found = await a.sql("select b, c from t where b is not null")
            minute, hour = 60 * 10**6, 3600 * 10**6
            assert [(b, c["micros"]) for b, c in found] == [(24 * hour, 10 * minute), (0, 62 * minute), (hour, minute)]
            await a.sql("insert into t (d) values (array['2024-01-01 00:00:00.5+00'::timestamptz, null])")
            ((moments,),) = await a.sql("select d from t where d is not null")
            assert moments == [rounded.replace(tzinfo=dt.UTC), None]
            await a.sql("alter table t add e timestamp(0) default '2024-01-01 00:00:00.9996'")
            await a.sql("alter table t add f interval day default '10'")
            ((e, f),) = {(e, tuple(f.values())) for e, f in await a.sql("select e, f from t")}
            assert (e, f) == (rounded, (0, 10, 0)), "of rows that were there"
            await a.sql("create table u (k int, i interval minute default '10', y interval year default '3')")
            await a.sql("insert into u (k) values (1)")
            await a.sql("insert into u select 2")
            await a.sql("insert into u values (3, default, default)")
            for i, y in await a.sql("select i, y from u"):
                assert (i["micros"], y["months"]) == (10 * minute, 36), "a number is of the last field in a default too"
            await a.sql("insert into t (c) values (null)")
            assert {e for (e,) in await a.sql("select e from t")} == {rounded}, "and of those that come"
            for late in (
                "insert into t (a) values ('9999-12-31 23:59:59.9999')",
                "alter table t add g timestamp(0) default '9999-12-31 23:59:59.5'",
                "select '9999-12-31 23:59:59.5'::timestamp(0)",
            ):
                assert (await refused(a.sql(late))).sqlstate == "22008", late
            shown = "select format_type(atttypid, atttypmod) from pg_attribute where attrelid = 't'::regclass"
            names = [name for (name,) in await a.sql(f"{shown} and attndims = 0 order by attnum")]
            assert names[:3] == ["timestamp(3) without time zone", "time(0) without time zone", "interval minute"]
            assert names[-2:] == ["timestamp(0) without time zone", "interval day"]
            assert (await a.sql("show columns from t"))[0][2] == "timestamp(3) without time zone"
            digits = "select datetime_precision, interval_type from information_schema.columns where table_name = 't'"
            assert (await a.sql(digits))[:3] == [(3, None), (0, None), (6, "MINUTE")]
            await a.sql("create view v as select a, a::timestamp(1) as b from t")
            assert (await a.sql("show columns from v"))[0][2] == "timestamp without time zone", "as expressions are"

    run(story)


def test_columns_that_come_and_go_have_numbers_as_in_postgres():
    async def story(world):
        async with world.adapter() as a:
            await a.sql("create table t (a int, b text, c text)")
            await a.sql("create index i on t (c, a)")
            await a.sql("alter table t drop b, add column d int default 7 not null")
            await a.sql("alter table t rename c to cc")
            own = "select attname, attnum, attnotnull from pg_attribute where attrelid = 't'::regclass order by attnum"
            assert await a.sql(own) == [("a", 1, False), ("cc", 3, False), ("d", 4, True)]
            assert await a.sql("select indkey from pg_index") == [("3 1",)]
            assert await a.sql("select adnum, adbin from pg_attrdef") == [(4, "7")]
            assert await a.sql("select relnatts from pg_class where relname = 't'") == [(4,)]
            columns = "select column_name, ordinal_position from information_schema.columns where table_name = 't'"
            assert await a.sql(columns) == [("a", 1), ("cc", 3), ("d", 4)]
            shown = [("a", True, "integer"), ("cc", True, "text"), ("d", False, "integer")]
            assert await a.sql("show columns from t") == shown
            assert (await a.sql("show create index i"))[0][1].endswith("(cc, a)")
            await a.sql("insert into t values (1, 'x', 2), (3, 'y', default)")
            assert sorted(await a.sql("select * from t")) == [(1, "x", 2), (3, "y", 7)]

    run(story)


def test_system_relations_and_session_statements():
    async def story(world):
        async with world.adapter() as a:
            await a.sql("create table t (a int not null)")
            await a.sql("create materialized view m as select count(*) as n from t")
            own = "select relname, relkind from pg_class where oid >= 16384 order by 1"
            assert await a.sql(own) == [("m", "m"), ("t", "r")]
            columns = "select column_name, is_nullable from information_schema.columns where table_name = 't'"
            assert await a.sql(columns) == [("a", "NO")]
            assert (await a.sql("select version()"))[0][0].startswith("PostgreSQL 15")
            assert await a.sql("select current_database(), current_schema()") == [("tidemark", "public")]
            made = "btrim(' x '), btrim('xax', 'x'), lpad('a', 3), rpad('a', 2, '-'), replace('aa', 'a', 'b')"
            made = f"{made}, repeat('a', 2), ascii('a'), chr(97), power(2, 3), ltrim('xa', 'x')"
            made = f"{made}, split_part('a,b', ',', 2), md5('')"
            [found] = await a.sql(f"select {made} from pg_class where relname = 't'")
            assert found[:6] == ("x", "a", "  a", "a-", "bb", "aa")
            assert found[6:] == (97, "a", 8.0, "a", "b", "d41d8cd98f00b204e9800998ecf8427e")
            assert await a.sql("show tables") == [("t",)]
            assert await a.sql("show materialized views") == [("m", "default")]
            assert await a.sql("set application_name to 'x'") == "SET"
            assert await a.sql("show application_name") == [("x",)]
            assert "CREATE TABLE tidemark.public.t" in (await a.sql("show create table t"))[0][1]
            assert (await a.sql("explain strategy m"))[0][0].startswith("incremental")
            for asked, gear in (
                ("bit_xor(a)", "process while the view and its inputs are small, otherwise spark"),
                ("string_agg(a::text, ',')", "spark because the order in which string_agg() joins values is an "
                 "engine's own without ORDER BY"),
            ):  # fmt: skip
                assert (f"gear: {gear}",) in await a.sql(f"explain strategy for select {asked} from t")
            assert "as_of" in str(await a.sql("explain timestamp for select * from t"))
            assert await a.sql("explain select 1") == [
                ("Constant: answered by the adapter",), ("Plan:",), ("  Outputs: ?column? int4 not null",),
                ("  Project 1::int4",), ("    One row",),
            ]  # fmt: skip
            assert (await refused(a.sql("show nonsense"))).sqlstate == "42704"

    run(story)


def test_concurrent_ddl_of_one_adapter_shares_proposals():
    async def story(world):
        async with world.adapter() as a:
            before = world.catalog_topic.end
            await asyncio.gather(*(a.sql(f"create table t{n} (a int)") for n in range(50)))
            assert world.catalog_topic.end - before < 10
            assert len({i.id for i in a.catalog.image.objects()}) == 50

    run(story)


def test_a_constant_that_never_ends_is_interrupted_and_one_that_is_too_large_is_refused():
    async def story(world):
        async with world.adapter() as a:
            text = "select sum(a * b) from generate_series(1, 1000000) a, generate_series(1, 1000000) b"
            endless = asyncio.create_task(a.sql(text))
            await asyncio.sleep(0.2)
            endless.cancel()
            with pytest.raises(asyncio.CancelledError):
                await endless
            assert await a.sql("select 1") == [(1,)]
            huge = await refused(a.sql("select a, md5(a::text) from generate_series(1, 10000000) a"))
            assert huge.sqlstate in ("54000", "53200")

    run(story)


def test_an_unknown_database_is_refused_when_the_session_opens():
    async def story(world):
        async with world.adapter() as a:
            await a.executor.open(a.session)
            assert (await refused(a.executor.open(SessionState(5, database="nope")))).sqlstate == "3D000"

    run(story)


async def until(condition) -> None:
    """Wait for a condition that another thread brings about; the caller's story is bounded."""
    while not condition():
        await asyncio.sleep(0.001)


@pytest.mark.parametrize(
    ("kind", "cast", "value"),
    [
        ("int", "bigint", 1 << 31), ("int", "bigint", -5), ("smallint", "int", 40000), ("numeric(4,1)", "int", 12),
        ("numeric(4,2)", "numeric", "1.235"), ("numeric(4,2)", "numeric(6,1)", "12.345"),
        ("numeric(4,2)", "numeric", "99.995"), ("text", "varchar", "x "), ("varchar(2)", "varchar", "abc"),
        ("real", "double precision", 0.1), ("date", "date", None),
    ],
)  # fmt: skip
def test_a_cast_parameter_is_kept_as_its_cast_would_be(kind, cast, value, monkeypatch):
    """Read without a tree, and as DuckDB evaluates the tree: the same value, or the same refusal."""

    async def kept():
        async with World().adapter() as a:
            await a.sql(f"create table t (a {kind})")
            given = Decimal(value) if "numeric" in cast else value
            try:
                await a.sql(f"insert into t values ($1::{cast})", given)
            except TidemarkError as error:
                return error.sqlstate
            return await a.sql("select a from t")

    async def both():
        here = await kept()
        with monkeypatch.context() as patched:
            patched.setattr(parsing, "read_values", lambda text: None)
            return here, await kept()

    here, there = asyncio.run(both())
    assert here == there


def test_what_is_inserted_from_a_query_is_decided_before_it_is_cast():
    """DISTINCT of 1.3 and 1.4 are two rows, both of which are 1 in a column of integers."""

    async def story(world):
        async with world.adapter() as a:
            await a.sql("create table ints (i int)")
            await a.sql("create table reals (n numeric(4,1))")
            await a.sql("insert into reals values (1.3), (1.4), (2.0), (1.4)")
            values = "(values (1.3), (1.4), (2.0), (1.4)) q(n)"
            for source in (values, "reals"):
                for query, expected in (
                    ("select distinct n from {0}", [1, 1, 2]),
                    ("select n from {0} union select n from {0}", [1, 1, 2]),
                    ("select n from {0} except select 1.3", [1, 2]),
                    ("select n from {0} intersect select 1.4", [1]),
                    ("select n from {0} order by n desc limit 2", [1, 2]),
                    ("select -n from {0} where n < 2 order by 1 limit 1", [-1]),
                    ("select distinct on (n) n from {0} order by n", [1, 1, 2]),
                    ("(select distinct n from {0})", [1, 1, 2]),
                    ("with c as (select distinct n from {0}) select n from c", [1, 1, 2]),
                    ("select count(*) / 2.0 from {0} group by n > 1.3", [1, 2]),
                ):
                    text = query.format(source)
                    assert await a.sql(f"insert into ints {text}") == f"INSERT 0 {len(expected)}", text
                    rows = await a.sql("select i from ints order by i")
                    assert [i for (i,) in rows] == expected, text
                    await a.sql("drop table ints")
                    await a.sql("create table ints (i int)")

    run(story)


def test_upkeep_is_taken_and_only_looks_up_what_it_names():
    async def story(world):
        async with world.adapter() as a:
            await a.sql("create table t (a int, b text)")
            await a.sql("create view p as select a from t")
            await a.sql("create materialized view m as select count(*) as n from t")
            await a.sql("create index i on m (n)")
            for text, tag in (
                ("analyze", "ANALYZE"), ("ANALYZE VERBOSE t (a, b), m", "ANALYZE"), ("vacuum full t", "VACUUM"),
                ("vacuum (analyze, verbose off) t (a)", "VACUUM"), ("analyze pg_class", "ANALYZE"),
                ("refresh materialized view concurrently m", "REFRESH MATERIALIZED VIEW"),
                ("refresh materialized view public.m with data", "REFRESH MATERIALIZED VIEW"),
                ("reindex (verbose) index i", "REINDEX"), ("reindex table concurrently t", "REINDEX"),
            ):  # fmt: skip
                assert await a.sql(text) == tag, text
            for text, state in (
                ("analyze none", "42P01"), ("analyze t (none)", "42703"), ("analyze t,", "42601"),
                ("vacuum p", "42809"), ("vacuum t (a)", "0A000"), ("vacuum (none) t", "42601"),
                ("refresh materialized view t", "42809"), ("refresh materialized view none", "42P01"),
                ("refresh materialized view m with no data", "0A000"), ("refresh t", "42601"),
                ("reindex index t", "42809"), ("reindex table i", "42809"), ("reindex database d", "0A000"),
            ):  # fmt: skip
                assert (await refused(a.sql(text))).sqlstate == state, text

    run(story)


def test_upkeep_that_postgres_does_outside_of_blocks_is_refused_in_one():
    async def story(world):
        async with world.adapter() as a:
            await a.sql("create table t (a int)")
            a.session.transaction.begin()
            for text in ("vacuum t", "vacuum", "reindex table concurrently t"):
                assert (await refused(a.sql(text))).sqlstate == "25001", text
            assert await a.sql("analyze t") == "ANALYZE"

    run(story)
