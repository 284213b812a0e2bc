"""INSERT: conditional on the catalog that it was planned on, made anew where the world changed, committed once."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from decimal import Decimal

import pytest

from adapter.execute import inserts
from adapter.execute.rows import Given, Rows, few_values, merged, rows_of_values
from adapter.state.interfaces import Outdated
from adapter.state.session_state import SessionState
from journal.errors import TidemarkError
from sql.syntax import parse as parsing
from tests.adapter.stories import HeldTransport, before_commit, lag, refused, run, until
from tests.adapter.world import World
from tests.finishing import finished


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


ANY = {
    "int2": (0, -(2**15), 2**15 - 1), "int4": (7, -(2**31), 2**31 - 1), "int8": (1, -(2**63), 2**63 - 1),
    "bool": (True, False), "float4": (1.5, -0.0, float("inf")), "float8": (0.1, 1e300, float("-inf")),
    "text": ("", "é'`\\ \t\n", "x" * 2000),
}  # fmt: skip


def test_few_values_are_the_rows_that_a_table_of_them_has(monkeypatch):
    """Whichever way they go, and however many are written together."""
    rng, seen = random.Random(11), []

    def both(plan, params):
        found = few_values(plan, params)
        held = Rows(plan.table, found, 1)
        made = rows_of_values(plan, params, None)
        assert held.rows.equals(made) and held.count == made.num_rows
        assert abs(held.size - made.nbytes) <= 16 * made.num_rows * made.num_columns
        seen.append((held, Rows(plan.table, made, 1)))
        return found

    async def story(world):
        columns = ", ".join(f"c{n} {kind} default null" for n, kind in enumerate(ANY))
        async with world.adapter() as a:
            await a.sql(f"create table t ({columns})")
            given = [[rng.choice((*of, None)) for of in ANY.values()] for _ in range(40)]
            for n in range(0, 40, 2):
                places = ["(" + ", ".join(f"${k + 1 + 7 * row}" for k in range(7)) + ")" for row in (0, 1)]
                await a.sql(f"insert into t values {', '.join(places)}", *given[n], *given[n + 1])
            assert Counter(map(repr, await a.sql("select * from t"))) == Counter(repr(tuple(each)) for each in given)
            await a.sql("insert into t (c0) values (default), (5)")
        few, made = zip(*seen, strict=True)
        together = merged(made).rows
        assert merged(few).rows.equals(together) and isinstance(merged(few).held, Given)
        mixed = [rng.choice(pair) for pair in seen]
        assert merged(mixed).rows.equals(together)
        seen.clear()

    monkeypatch.setattr(inserts, "few_values", both)
    run(story)


def test_values_that_are_more_than_values_are_worked_out_as_before(monkeypatch):
    """Expressions, limits, checks, many rows, and NULL where it may not be: each is no case for the short way."""
    taken = []

    def looked(plan, params):
        taken.append(few_values(plan, params) is not None)
        return few_values(plan, params)

    async def story(world):
        async with world.adapter() as a:
            await a.sql("create table t (a int not null, b text default 'd')")
            await a.sql("create table limited (a numeric(6,2), b varchar(2), c date)")
            await a.sql("create table checked (a int check (a > 0))")
            taken.clear()
            for text, short in (
                ("insert into t values (1, 'x')", True), ("insert into t (a) values (2)", True),
                ("insert into t values (1 + length('ab'), 'x')", False),
                ("insert into limited values (1.005, 'x', '2024-01-01')", False),
                ("insert into checked values (1)", False),
                ("insert into t values " + ", ".join(f"({n}, 'x')" for n in range(17)), False),
            ):  # fmt: skip
                await a.sql(text)
                assert taken.pop() is short and not taken, text
            for text, state in (
                ("insert into t values (null, 'x')", "23502"), ("insert into t values (3000000000, 'x')", "22003"),
                ("insert into checked values (-1)", "23514"), ("insert into limited (b) values ('abc')", "22001"),
            ):  # fmt: skip
                assert (await refused(a.sql(text))).sqlstate == state, text
            assert (await refused(a.sql("insert into t values ($1, $2)", None, "x"))).sqlstate == "23502"
            assert await a.sql("select count(*) from t where b = 'd'") == [(1,)]

    monkeypatch.setattr(inserts, "few_values", looked)
    finished(story(World()))


def test_what_is_returned_is_what_is_kept_in_the_order_of_the_rows():
    async def story(world):
        async with world.adapter() as a:
            await a.sql("create table t (id int generated always as identity, b text default 'd', n numeric(6,2))")
            assert await a.sql("insert into t (b) values ('y'), ('x') returning id, b") == [(1, "y"), (2, "x")]
            assert await a.sql("insert into t (n) values ($1) returning *, n + $2 as m", 2.345, 1) == [
                (3, "d", Decimal("2.35"), "3.35")
            ]
            assert await a.sql("insert into t default values returning id") == [(4,)]
            copied = "insert into t (b) select b || id from t order by id desc returning id, b"
            assert await a.sql(copied) == [(5, "d4"), (6, "d3"), (7, "x2"), (8, "y1")]
            assert await a.sql("insert into t (b) select 'u' where false returning *") == []
            many = "insert into t (b) values " + ", ".join(f"('{n}')" for n in range(3000)) + " returning b, id"
            assert await a.sql(many) == [(str(n), n + 9) for n in range(3000)]
            before = a.oracle.state.last_ts
            wrong = await refused(a.sql("insert into t (n) values (1) returning 1 / (n - 1)"))
            assert (wrong.sqlstate, a.oracle.state.last_ts) == ("22012", before), "nothing is written then"

    run(story)


def test_what_is_returned_is_of_the_table_as_it_is_committed():
    """A column came between planning and the commit: rows are made anew, or the client has to ask anew what comes."""

    async def story(world):
        async with world.adapter("a") as a, world.adapter("b") as b:
            await a.sql("create table t (a int)")
            before_commit(a, lambda: b.sql("alter table t add column b text default 'new'"))
            assert await a.sql("insert into t values (1) returning a") == [(1,)]
            before_commit(a, lambda: b.sql("alter table t add column c int"))
            assert isinstance(await refused(a.sql("insert into t values (2) returning *")), Outdated)
            assert await b.sql("select * from t") == [(1, "new", None)]

    run(story)


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
            assert not session.buffer and world.oracle_topic.end == before + 1
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
