"""Sequences as sessions see them: values in order, never twice, wherever a statement has them."""

from __future__ import annotations

import asyncio
import itertools
from concurrent.futures import Future

import psycopg
import pytest

from adapter.execute import sequences as shell
from adapter.state.session_state import SessionState
from catalog_log.objects import Sequence
from journal.errors import Indeterminate, InvalidUsage
from sql.statements.ddl_sequences import position_of, put_position
from tests.adapter.stories import before_commit, run
from tests.adapter.test_any_text import connected
from tests.adapter.test_clients import serving
from tests.adapter.world import World
from values.numeric.sequence_values import taken


async def refused(adapter, text, *params, session=None) -> tuple[str, str]:
    with pytest.raises(InvalidUsage) as caught:
        await adapter.sql(text, *params, session=session)
    return caught.value.sqlstate, caught.value.message


def test_one_session_counts_as_in_postgres():
    async def story(world: World):
        async with world.adapter() as a:
            await a.sql("create sequence s")
            assert await a.sql("select nextval('s'), nextval('S')") == [(1, 2)]
            assert await a.sql("select currval('s'), lastval()") == [(2, 2)]
            assert await a.sql("select nextval('s'::regclass) + 1 as q, nextval('public.s')") == [(4, 4)]
            assert await a.sql("select setval('s', 100, false)") == [(100,)]
            assert await a.sql("select currval('s'), nextval('s'), currval('s')") == [(4, 100, 100)]
            assert await a.sql("select setval('s', 7)") == [(7,)]
            assert await a.sql("select currval('s'), lastval(), nextval('s')") == [(7, 7, 8)]
            assert await a.sql("select setval('s', nextval('s') + 10), nextval('s')") == [(19, 20)]
            assert await a.sql("select setval('s', null), setval('s', 5, null), nextval('s')") == [(None, None, 21)]
            await a.sql("alter sequence s restart")
            assert await a.sql("select nextval('s')") == [(1,)]
            await a.sql("alter sequence s increment by 10")
            assert await a.sql("select pg_catalog.nextval('s')::text || '!', nextval('s') * 2") == [("11!", 42)]

    run(story)


def test_a_call_is_evaluated_once_whatever_is_made_of_its_value():
    async def story(world: World):
        async with world.adapter() as a:
            await a.sql("create sequence s")
            count = 0
            for text in (
                "nextval('s')::int", "-nextval('s')", "nullif(nextval('s'), 1)", "mod(nextval('s'), 10)",
                "nextval('s') between 2 and 5", "div(nextval('s'), 3)", "greatest(nextval('s'), 3)",
                "format('%s', nextval('s'))", "to_char(nextval('s'), '000')", "round(nextval('s') / 7.0, 2)",
                "array[nextval('s')]", "nextval('s') % 3 = 1", "gcd(nextval('s'), 6)", "abs(nextval('s'))",
                "lpad(nextval('s')::text, 5, '0')", "make_date(2000 + nextval('s')::int, 1, 1)",
                "now() + nextval('s') * interval '1 day'", "jsonb_build_object('a', nextval('s'))",
                "substr('abc', nextval('s')::int)", "sign(nextval('s'))", "power(nextval('s'), 2)",
                "nextval('s') << 2", "nextval('s')::numeric",
            ):  # fmt: skip
                assert ("Draws values of sequences, each time it runs",) in await a.sql(f"explain select {text}")
                await a.sql(f"select {text}")
                count += 1
                assert await a.sql("select currval('s')") == [(count,)], text
            await a.sql("create table t (a bigint, b date default date '2024-01-01' + mod(nextval('s'), 7)::int)")
            await a.sql("insert into t values (div(nextval('s'), 2))")
            assert await a.sql("select nextval('s')") == [(count + 3,)]

    run(story)


def test_what_sequences_refuse():
    async def story(world: World):
        async with world.adapter() as a:
            for text in ("create sequence s maxvalue 2", "create sequence d increment -5 minvalue -7",
                         "create sequence c maxvalue 2 cycle", "create table t (a int)"):  # fmt: skip
                await a.sql(text)
            assert await refused(a, "select currval('s')") == (
                "55000", 'currval of sequence "s" is not yet defined in this session',
            )  # fmt: skip
            assert await refused(a, "select lastval()") == ("55000", "lastval is not yet defined in this session")
            assert await a.sql("select nextval('s'), nextval('s'), nextval('c'), nextval('c'), nextval('c')") == [
                (1, 2, 1, 2, 1)
            ]
            assert await a.sql("select nextval('d'), nextval('d')") == [(-1, -6)]
            for text, told in (
                ("select nextval('s')", ("2200H", 'nextval: reached maximum value of sequence "s" (2)')),
                ("select nextval('d')", ("2200H", 'nextval: reached minimum value of sequence "d" (-7)')),
                ("select setval('s', 0)", ("22003", 'setval: value 0 is out of bounds for sequence "s" (1..2)')),
                ("select nextval('nope')", ("42P01", 'relation "nope" does not exist')),
                ("select nextval('\"S\"')", ("42P01", 'relation "S" does not exist')),
                ("select nextval('t')", ("42809", '"t" is not a sequence')),
                ("select nextval('pg_class')", ("42809", '"pg_class" is not a sequence')),
                ("select nextval('')", ("42602", "invalid name syntax")),
                ("select nextval()", ("42883", "function nextval() does not exist")),
                ("select setval('s', 5.5)", ("42883", "function setval(regclass, numeric) does not exist")),
                ("select a from t where a = nextval('s')", ("0A000", "nextval() over rows is not supported")),
                ("select nextval('s'), generate_series(1, 3)", ("0A000", "nextval() over rows is not supported")),
                ("select max(nextval('s'))", ("0A000", "nextval() where it may not be evaluated is not supported")),
                ("select 1 in (2, nextval('s'))",
                 ("0A000", "nextval() where it may not be evaluated is not supported")),
                ("select a, (select nextval('s')) from t",
                 ("0A000", "nextval() where it may not be evaluated is not supported")),
                ("select distinct nextval('s') from t", ("0A000", "nextval() beside DISTINCT is not supported")),
                ("select nextval('s') as n from t order by n",
                 ("0A000", "ORDER BY an output that is no column, beside a sequence's value is not supported")),
                ("select nextval('s'), *, * from t",
                 ("0A000", "more than one * beside a sequence's value is not supported")),
                ("select nextval('s'), a from t where a = any(select nextval('s'))",
                 ("0A000", "nextval() over rows is not supported")),
                ("with n as (select nextval('s') as x) select x from n where x > 5",
                 ("0A000", "nextval() over rows is not supported")),
                ("with n as (select nextval('s') as x) select x from n, t",
                 ("0A000", "nextval() over rows is not supported")),
                ("with n as (select nextval('s') as x) select x, (select max(a) from t) from n",
                 ("0A000", "nextval() beside what is read in this place is not supported")),
                ("values (nextval('s'), (select max(a) from t))",
                 ("0A000", "nextval() beside what is read in this place is not supported")),
                ("select setval('s', (select count(*) from pg_class))",
                 ("0A000", "a sequence's value beside what only the system knows is not supported")),
                ("select nextval($1)", ("0A000", "nextval() of another sequence for each call is not supported")),
                ("create view v as select nextval('s') as n", ("0A000", "nextval() in this place is not supported")),
                ("create materialized view v as select lastval() as n",
                 ("0A000", "lastval() in this place is not supported")),
                ("insert into s values (1)", ("42809", '"s" is not a relation that can be read')),
                ("select nextval('s'), version()",
                 ("0A000", "a sequence's value beside what only the system knows is not supported")),
            ):  # fmt: skip
                assert await refused(a, text) == told, text
            assert await a.sql("select currval('s'), nextval('c')") == [(2, 2)]
            await a.sql("drop sequence s")
            assert (await refused(a, "select nextval('s')"))[0] == "42P01"
            await a.sql("select nextval('c')")
            await a.sql("drop sequence c")
            assert (await refused(a, "select lastval()"))[0] == "55000"

    run(story)


def test_what_is_read_for_setval_is_read_where_the_statement_begins():
    async def story(world: World):
        async with world.adapter() as a, world.adapter("other") as b:
            await a.sql("create sequence s")
            await a.sql("create table t (a int)")
            await b.sql("insert into t values (3), (40)")
            text = "select setval('s', coalesce(max(a), 1), max(a) is not null), count(*) from t where a > $1"
            prepared = await a.executor.prepare(a.session, text)
            for more, expected in ((50, 50), (60, 60), (7, 60)):
                await b.sql(f"insert into t values ({more})")  # answered: so it is read
                result = await a.executor.run(a.session, prepared, (5,))
                assert result.batches[0].column(0)[0].as_py() == expected
                assert await b.sql("select nextval('s')") == [(expected + 1,)]
            told = await a.sql("explain select setval('s', max(a)) from t")
            assert told[0] == ("Draws values of sequences, each time it runs, for the rows of:",)
            assert ("  Read by the cluster",) in told

            a.session.transaction.begin()
            assert await a.sql("select count(*) from t") == [(5,)]
            await b.sql("insert into t values (99)")
            assert await a.sql("select setval('s', max(a)) from t") == [(60,)]  # a block reads where it read first
            a.session.transaction.end()
            assert await a.sql("select setval('s', max(a)) from t") == [(99,)]

    run(story)


def test_an_insert_over_rows_that_is_made_anew_reads_anew_and_has_the_values_that_it_had():
    async def story(world: World):
        async with world.adapter() as a, world.adapter("other") as b:
            await a.sql("create sequence s")
            await a.sql("create table t (a int, b int default 1)")
            await a.sql("insert into t (a) values (10), (20)")

            async def change():
                await b.sql("insert into t (a) values (30)")
                await b.sql("alter table t alter column b set default 2")

            await b.executor.images.barrier()
            before_commit(a, change)
            await a.sql("insert into t (a) select nextval('s') from t")
            assert sorted(await a.sql("select a, b from t")) == [(1, 2), (2, 2), (3, 2), (10, 1), (20, 1), (30, 1)]
            before_commit(a, change)
            await a.sql("insert into t (a) select setval('s', max(a) + 100) from t")
            assert await a.sql("select max(a) from t") == [(130,)]
            assert await a.sql("select nextval('s')") == [(131,)]

    run(story)


def test_a_value_that_is_not_wanted_is_not_drawn():
    async def story(world: World):
        async with world.adapter() as a:
            await a.sql("create sequence s")
            asked = await a.executor.prepare(a.session, "select case when $1 > 1 then nextval('s') end, nextval('s')")
            found = [await a.executor.run(a.session, asked, (n,)) for n in (1, 2, 1)]
            assert [tuple(each.as_py() for each in r.batches[0].slice(0, 1).columns[i][0:1])[0]
                    for r in found for i in (0, 1)] == [None, 1, 2, 3, None, 4]  # fmt: skip

    run(story)


def test_many_rows_have_each_their_value_in_their_order():
    async def story(world: World):
        async with world.adapter() as a:
            await a.sql("create sequence s")
            found = await a.sql("select nextval('s'), 2 * g from generate_series(1, 1100) as q (g) order by g desc")
            assert found == [(n, 2 * (1101 - n)) for n in range(1, 1101)], "in more than one turn of the loop"

    run(story)


def test_sessions_know_their_own_values_and_may_forget_them():
    async def story(world: World):
        async with world.adapter() as a:
            await a.sql("create sequence s")
            other = SessionState(99)
            assert await a.sql("select nextval('s')") == [(1,)]
            assert await a.sql("select nextval('s')", session=other) == [(2,)]
            assert await a.sql("select currval('s')") == [(1,)]
            other.discard_sequences()
            assert (await refused(a, "select currval('s')", session=other))[0] == "55000"
            await a.sql("set default_transaction_read_only = on")
            assert await refused(a, "select nextval('s')") == (
                "25006", "cannot execute nextval() in a read-only transaction",
            )  # fmt: skip
            assert await a.sql("select currval('s')") == [(1,)]

    run(story)


def test_rows_have_values_in_the_order_in_which_postgres_evaluates_them():
    async def story(world: World):
        async with world.adapter() as a:
            await a.sql("create sequence o")
            await a.sql("create table v (a bigint, b bigint, c text)")
            await a.sql("insert into v (b, a) values (nextval('o'), nextval('o'))")
            await a.sql("insert into v (b, a) values (nextval('o'), nextval('o')), (nextval('o'), nextval('o'))")
            assert sorted(await a.sql("select a, b from v")) == [(1, 2), (4, 3), (6, 5)]
            await a.sql("insert into v values (nextval('o'), currval('o'), 'x' || nextval('o'))")
            await a.sql("insert into v select nextval('o'), 1, 'one'")
            assert set(await a.sql("select a, b, c from v where c is not null")) == {(7, 7, "x8"), (9, 1, "one")}

    run(story)


def test_parameters_beside_a_value_and_a_plan_that_is_kept_draw_anew_each_time():
    async def story(world: World):
        async with world.adapter() as a:
            await a.sql("create sequence s")
            await a.sql("create table t (a int, b text)")
            inserted = await a.executor.prepare(a.session, "insert into t values (nextval('s'), $1)")
            asked = await a.executor.prepare(a.session, "select nextval('s') + $1::int8 as n")
            set_to = await a.executor.prepare(a.session, "select setval('s', $1)")
            assert len(inserted.param_oids) == 1 and [c.name for c in asked.columns] == ["n"]
            for text in ("one", "two", "three"):
                await a.executor.run(a.session, inserted, (text,))
            found = [await a.executor.run(a.session, asked, (10,)) for _ in range(2)]
            assert [r.batches[0].column(0)[0].as_py() for r in found] == [14, 15]
            await a.executor.run(a.session, set_to, (40,))
            await a.sql("insert into t values (nextval('s'), 'four')")
            await a.sql("insert into t values (nextval('s'), 'four')")
            assert sorted(await a.sql("select a, b from t")) == [
                (1, "one"), (2, "two"), (3, "three"), (41, "four"), (42, "four"),
            ]  # fmt: skip

    run(story)


def test_a_driver_prepares_describes_and_runs_what_draws():
    async def story(world: World):
        async with serving(world) as port, await connected(port) as connection:
            connection.prepare_threshold = 0
            await connection.execute("create sequence s")
            await connection.execute("create table t (a bigint, b text, c bigint default nextval('s'))")
            for text in ("one", "two"):
                await connection.execute("insert into t values (nextval('s'), %s)", (text,))
            cursor = connection.cursor()
            await cursor.executemany("insert into t (b, a) values (%s, currval('s'))", [("three",), ("four",)])
            cursor = await connection.execute("select nextval('s') as n, %s::text as said", ("x",), binary=True)
            assert [each.name for each in cursor.description] == ["n", "said"]
            assert await cursor.fetchall() == [(7, "x")]
            cursor = await connection.execute("select a, b, c from t")
            assert set(await cursor.fetchall()) == {(1, "one", 2), (3, "two", 4), (4, "three", 5), (5, "four", 6)}
            await connection.execute("discard sequences")
            with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
                await connection.execute("select currval('s')")

    run(story)


def test_a_default_draws_for_every_row_however_the_row_comes():
    async def story(world: World):
        async with world.adapter() as a:
            await a.sql("create sequence s increment 10 start 7")
            await a.sql(
                "create table u (a int default nextval('s'), b bigint default currval('s'), "
                "c text default 'x' || nextval('s'), k int)"
            )
            await a.sql("insert into u (k) values (1), (2)")
            await a.sql("insert into u values (default, default, 'y', 3), (default, 5, default, 4)")
            await a.sql("insert into u default values")
            await a.sql("insert into u (c, k) select c, 10 + k from u where k < 3")
            found = await a.sql("select a, b, c, k from u")
            assert sorted(found, key=lambda row: row[0]) == [
                (7, 7, "x17", 1), (27, 27, "x37", 2), (47, 47, "y", 3), (57, 5, "x67", 4), (77, 77, "x87", None),
                *sorted(((97, 97, "x17", 11), (107, 107, "x37", 12)) if (97, 97, "x17", 11) in found
                        else ((97, 97, "x37", 12), (107, 107, "x17", 11))),
            ]  # fmt: skip

    run(story)


def test_a_sequence_that_a_default_needs_is_not_dropped_but_by_cascade():
    async def story(world: World):
        async with world.adapter() as a:
            await a.sql("create sequence s")
            await a.sql("create table u (a bigint default nextval('s'), b int default 5)")
            assert await refused(a, "drop sequence s") == (
                "2BP01", "cannot drop sequence s because other objects depend on it",
            )  # fmt: skip
            await a.sql("create schema other")
            await a.sql("alter sequence s set schema other")
            await a.sql("alter sequence other.s rename to \"Odd 's\"")
            await a.sql("insert into u values (default, 1)")
            shown = (await a.sql("show create table u"))[0][1]
            assert "DEFAULT nextval('other.\"Odd ''s\"')" in shown
            columns = "select column_default from information_schema.columns where table_name = 'u' order by 1"
            assert await a.sql(columns) == [("5",), ("nextval('other.\"Odd ''s\"')",)]
            await a.sql("create sequence s")  # the name of before means another one now, and not to the table
            await a.sql("insert into u values (default, 2)")
            assert sorted(await a.sql("select a from u")) == [(1,), (2,)]
            assert (await refused(a, "drop schema other"))[0] == "2BP01"
            await a.sql("drop schema other cascade")
            assert await a.sql(columns) == [("5",), (None,)]
            await a.sql("insert into u (b) values (3)")
            assert sorted(await a.sql("select a from u"), key=str) == [(1,), (2,), (None,)]
            assert sorted(await a.sql("select b from u")) == [(1,), (2,), (3,)]
            await a.sql("alter table u alter column b set default nextval('s')")
            await a.sql("alter table u add column c bigint")
            assert (await refused(a, "drop sequence s"))[0] == "2BP01"
            assert (await refused(a, "alter table u add column d bigint default nextval('s')"))[0] == "0A000"
            await a.sql("alter table u drop column b")
            await a.sql("drop sequence s")

    run(story)


def test_a_busy_sequence_takes_larger_reserves_and_still_gives_every_value_once_in_order():
    async def story(world: World):
        async with world.adapter() as a:
            a.executor.sequences._clock_s = lambda: 0.0
            await a.sql("create sequence s")
            found = [(await a.sql("select nextval('s')"))[0][0] for _ in range(100)]
            assert found == list(range(1, 101))
            assert reserves(a) <= 8  # 1, 2, 4 … 64
            [(last,)] = await a.sql("select last_value from pg_sequences")
            assert 100 <= last <= 127

    run(story)


def reserves(adapter) -> int:
    """How often the position of the only sequence changed."""
    [item] = [each for each in adapter.catalog.image.objects() if isinstance(each, Sequence)]
    positions = [image.get("settings", item.state_key) for image in adapter.catalog._images]
    return len([1 for a, b in itertools.pairwise(positions) if a is not None and a != b])


def test_who_asks_now_and_then_has_a_reserve_of_one():
    async def story(world: World):
        async with world.adapter() as a:
            now = [0.0]
            a.executor.sequences._clock_s = lambda: now[0]
            await a.sql("create sequence s")
            for n in range(1, 6):
                assert await a.sql("select nextval('s')") == [(n,)]
                assert await a.sql("select last_value from pg_sequences") == [(n,)]
                now[0] += 2 * shell.BUSY_S
            await a.sql("create sequence cached cache 20")
            assert await a.sql("select nextval('cached')") == [(1,)]
            at = "select last_value from pg_sequences where sequencename = 'cached'"
            assert await a.sql(at) == [(20,)]
            assert await a.sql("select pg_sequence_last_value('cached'::regclass)") == [(20,)]
            assert await a.sql("select pg_sequence_last_value(seqrelid) from pg_sequence order by 1") == [(5,), (20,)]

    run(story)


def test_sequences_that_are_gone_are_forgotten(monkeypatch):
    monkeypatch.setattr(shell, "HELD_MAX", 3)

    async def story(world: World):
        async with world.adapter() as a:
            for n in range(6):
                await a.sql(f"create sequence s{n}")
                assert await a.sql(f"select nextval('s{n}')") == [(1,)]
                if n < 4:
                    await a.sql(f"drop sequence s{n}")
            assert await a.sql("select nextval('s4'), nextval('s5')") == [(2, 2)]
            assert len(a.executor.sequences._held) <= 3

    run(story)


def test_the_largest_cache_costs_no_more_than_a_small_one():
    async def story(world: World):
        async with world.adapter() as a:
            largest, lowest = (1 << 63) - 1, -(1 << 63)
            await a.sql(f"create sequence s cache {largest} minvalue {lowest}")
            await a.sql(f"create sequence c cache {largest} maxvalue 3 cycle")
            assert await a.sql("select nextval('s'), nextval('s')") == [(lowest, lowest + 1)]
            assert await a.sql("select nextval('c'), nextval('c'), nextval('c'), nextval('c')") == [(1, 2, 3, 1)]
            [held] = [each for each in a.executor.sequences._held.values() if len(each.runs) > 1]
            assert len(held.runs) <= shell.RESERVE_MAX

    run(story)


def test_a_statement_takes_all_that_it_needs_at_once():
    async def story(world: World):
        async with world.adapter() as a:
            await a.sql("create sequence s")
            await a.sql("create table t (a bigint default nextval('s'), k int)")
            await a.sql(f"insert into t (k) values {', '.join(f'({n})' for n in range(1000))}")
            assert reserves(a) == 1
            assert sorted(await a.sql("select a, k from t")) == [(n + 1, n) for n in range(1000)]

    run(story)


def test_two_adapters_never_give_the_same_value():
    async def story(world: World):
        async with world.adapter("one") as a, world.adapter("two") as b:
            await a.sql("create sequence s")
            await b.executor.images.barrier()
            sessions = [(each, SessionState(n)) for n, each in enumerate([a, b] * 4)]

            async def some(adapter, session):
                return [(await adapter.sql("select nextval('s')", session=session))[0][0] for _ in range(25)]

            found = await asyncio.gather(*(some(*each) for each in sessions))
            values = list(itertools.chain.from_iterable(found))
            assert len(set(values)) == len(values) == 200
            assert all(each == sorted(each) for each in found)
            assert (await refused(a, "select setval('s', 0)"))[0] == "22003"

    run(story)


def test_an_adapter_that_is_stopped_leaves_no_gap():
    async def story(world: World):
        async with world.adapter("one") as a:
            await a.sql("create sequence s cache 50")
            await a.sql("create sequence r cache 50")
            assert await a.sql("select nextval('s'), nextval('s'), nextval('r')") == [(1, 2, 1)]
            async with world.adapter("two") as b:
                assert await b.sql("select nextval('r'), nextval('r')") == [(51, 52)]
        async with world.adapter("three") as c:
            await c.executor.images.barrier()
            assert await c.sql("select nextval('s'), nextval('r')") == [(3, 53)]

    run(story)


def test_what_is_set_in_one_adapter_ends_the_reserves_of_others():
    async def story(world: World):
        async with world.adapter("one") as a, world.adapter("two") as b:
            await a.sql("create sequence s cache 50")
            assert await a.sql("select nextval('s')") == [(1,)]
            assert await b.sql("select nextval('s')") == [(51,)]
            await b.sql("select setval('s', 1000)")
            await a.sql("select 1 from pg_sequences")  # after this barrier it has folded that
            assert await a.sql("select nextval('s')") == [(1001,)]
            await b.sql("alter sequence s restart with 5000")
            await a.sql("select 1 from pg_sequences")
            assert await a.sql("select nextval('s')") == [(5000,)]

    run(story)


def test_a_reserve_whose_append_nobody_knows_of_is_lost_and_nothing_else():
    async def story(world: World):
        async with world.adapter() as a:
            await a.sql("create sequence s")
            assert await a.sql("select nextval('s')") == [(1,)]
            append = a.catalog.compare_and_append

            def landed_unheard(*args, **named):
                done: Future = Future()
                append(*args, **named).result(10)
                done.set_exception(Indeterminate("nobody knows"))
                return done

            a.catalog.compare_and_append = landed_unheard
            with pytest.raises(Indeterminate):
                await a.sql("select nextval('s')")
            a.catalog.compare_and_append = append
            [(value,)] = await a.sql("select nextval('s')")
            assert value > 2  # what was lost is a gap
            assert await a.sql("select nextval('s')") == [(value + 1,)]

    run(story)


async def give_up(adapter, text, append) -> None:
    """Cancel a statement while it waits for what ``append`` gives in the place of its append to the catalog."""
    real, sent = adapter.catalog.compare_and_append, asyncio.Event()

    def under_way(*args, **named):
        found = append(*args, **named)
        sent.set()
        return found

    adapter.catalog.compare_and_append = under_way
    statement = asyncio.create_task(adapter.sql(text))
    await sent.wait()
    statement.cancel()
    with pytest.raises(asyncio.CancelledError):
        await statement
    adapter.catalog.compare_and_append = real


def test_a_statement_that_is_given_up_leaves_its_reserve_for_the_next():
    async def story(world: World):
        async with world.adapter() as a:
            await a.sql("create sequence s")
            await a.sql("create sequence r")
            append, held = a.catalog.compare_and_append, Future()
            await give_up(a, "select nextval('s')", lambda *args, **named: held)
            assert await a.sql("select nextval('r')", session=SessionState(5)) == [(1,)]  # nobody else waits
            waiting = asyncio.create_task(a.sql("select nextval('s')", session=SessionState(6)))
            await asyncio.sleep(0.05)
            assert not waiting.done()  # one asker at a time
            [key] = [i.id for i in a.catalog.image.objects() if i.name == "s"]
            update = [u for u in await put_of(a, key)]
            held.set_result(append(a.catalog.upper(), a.catalog.upper() + 1, update).result(10))
            assert await waiting == [(1,)]

    run(story)


def test_what_is_given_back_is_nothing_that_another_adapter_had():
    async def story(world: World):
        async with world.adapter("one") as a, world.adapter("two") as b:
            await a.sql("create sequence s cache 5")
            assert await a.sql("select nextval('s')") == [(1,)]
            assert await b.sql("select nextval('s')") == [(6,)]
            await a.executor.images.barrier()
            append, held = a.catalog.compare_and_append, Future()

            def land_unheard(*args, **named):
                held.landed = append(*args, **named)
                return held

            await give_up(a, "select nextval('s') + 0 * (" + "+".join(5 * ["nextval('s')"]) + ")", land_unheard)
            held.set_result(await asyncio.wrap_future(held.landed))
            [filling] = [each.filling for each in a.executor.sequences._held.values()]
            await filling
            await a.sql("alter sequence s cache 1")  # the adapter has 2 to 5 and 11 to 15, and 6 is given out
            found = [value for _ in range(8) for (value,) in await a.sql("select nextval('s')")]
            assert found == list(range(11, 19))

    run(story)


async def put_of(adapter, key):
    item = adapter.catalog.image.item(key)
    _, at = taken(item.steps, position_of(item, adapter.catalog.image), 1)
    return [put_position(item, at)]


def test_an_insert_that_is_made_anew_has_the_values_that_it_had():
    async def story(world: World):
        async with world.adapter() as a, world.adapter("other") as b:
            await a.sql("create sequence s")
            await a.sql("create table t (a bigint default nextval('s'), b int default 1)")
            commit, altered = a.oracle.commit_async, []

            async def after_alter(part):
                if not altered:
                    altered.append(await b.sql("alter table t alter column b set default 2"))
                return await commit(part, lambda: 0)

            a.oracle.commit_async = lambda part, upper_now: asyncio.ensure_future(after_alter(part))
            await a.sql("insert into t default values")
            assert altered and a.oracle.state.stats.parts_refused > 0
            a.oracle.commit_async = commit
            await a.sql("insert into t default values")
            assert [row[0] for row in sorted(await a.sql("select a, b from t"))] == [1, 2]

    run(story)


def test_what_comes_behind_setval_is_drawn_again_where_a_statement_is_made_anew():
    async def story(world: World):
        async with world.adapter() as a, world.adapter("other") as b:
            await a.sql("create sequence s")
            await a.sql("create table t (a bigint, b bigint, c int default 1)")
            await b.executor.images.barrier()
            before_commit(a, lambda: b.sql("alter table t alter column c set default 2"))
            await a.sql("insert into t (a, b) values (setval('s', 100), nextval('s'))")
            await a.sql("insert into t (a, b) values (nextval('s'), nextval('s'))")
            assert sorted(await a.sql("select a, b, c from t")) == [(100, 101, 2), (102, 103, 2)]

    run(story)


def test_a_value_that_is_cast_is_held_to_what_it_is_cast_to():
    async def story(world: World):
        async with world.adapter() as a:
            await a.sql("create sequence s start 40000")
            await a.sql("create table t (a bigint, d bigint default nextval('s')::int2)")
            for text in ("insert into t values (nextval('s')::int2, 1)", "insert into t values (1)"):
                assert await refused(a, text) == ("22003", "smallint out of range")
            await a.sql("insert into t values (nextval('s')::int4::int8, 1)")
            assert await a.sql("select a from t") == [(40002,)]

    run(story)


def test_reserves_come_to_be_in_force_though_nobody_waits_for_that():
    async def story(world: World):
        async with world.adapter() as a:
            await a.sql("create sequence s")
            for _ in range(5):
                await a.sql("select nextval('s')")
            for _ in range(200):
                if a.oracle.state.catalog_upper == a.catalog.upper():
                    break
                await asyncio.sleep(0.01)
            assert a.oracle.state.catalog_upper == a.catalog.upper()

    run(story)
