"""What looks at the catalog and changes nothing: SHOW, EXPLAIN, upkeep, the system's relations."""

from __future__ import annotations

from tests.adapter.stories import refused, run
from tests.adapter.world import World
from tests.finishing import finished


def test_every_kind_of_object_says_how_it_would_be_made():
    """What SHOW CREATE says is a statement that makes the object; of an object of each kind."""

    async def story(world):
        async with world.adapter() as a:
            kept = "with (retain history = for '1 day 02:00:00')"
            options = kept if world.carries else ""
            await a.sql(f"create table t (a int not null, b text default 'x') {options}")
            await a.sql(f"create source s (a int) from kafka topic 'user.s' format json {options}")
            await a.sql("create view v as select a, b from t where a > 1")
            await a.sql("create materialized view m (k, n) as select b, count(*) from v group by b")
            await a.sql("create index by_k on m (k)")
            named = {"table": "t", "source": "s", "view": "v", "materialized view": "m", "index": "by_k"}
            for kind, name in named.items():
                ((_, said),) = await a.sql(f"show create {kind} {name}")
                assert not world.carries or said.upper().endswith(kept.upper()) == (kind in ("table", "source"))
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


def test_a_connection_is_nobodys_relation():
    async def story(world):
        async with world.adapter() as a:
            await a.sql("create connection c to kafka (broker 'a:1')")
            await a.sql("create table t (a int)")
            for text in ("select 'c'::regclass", "select 'public.c'::regclass::oid"):
                assert (await refused(a.sql(text))).sqlstate == "42P01"
            found = "select to_regclass('c') is null, to_regclass('t') is null, relname::regclass::text from pg_class"
            assert await a.sql(f"{found} where oid >= 16384") == [(True, False, "t")]
            assert await a.sql("select objoid from pg_description where objoid >= 16384") == []
            for text in ("alter table c add column x int", "comment on column c.a is 'x'", "create index on c (a)",
                         "show columns from c", "analyze c", "insert into c values (1)", "create view v as table c",
                         "alter source c reset", "create sequence s owned by c.a", "select nextval('c')"):  # fmt: skip
                assert (await refused(a.sql(text))).sqlstate == "42809", text

    finished(story(World()))


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


def test_upkeep_is_taken_and_only_looks_up_what_it_names():
    async def story(world):
        async with world.adapter() as a:
            await a.sql("create table t (a int, b text)")
            await a.sql("create view p as select a from t")
            await a.sql("create materialized view m as select count(*) as n from t")
            await a.sql("create index i on m (n)")
            for text, tag in (
                ("analyze", "ANALYZE"), ("ANALYZE VERBOSE t (a, b), m", "ANALYZE"), ("analyze pg_class", "ANALYZE"),
                ("refresh materialized view concurrently m", "REFRESH MATERIALIZED VIEW"),
                ("refresh materialized view public.m with data", "REFRESH MATERIALIZED VIEW"),
                ("reindex (verbose) index i", "REINDEX"), ("reindex table concurrently t", "REINDEX"),
            ):  # fmt: skip
                assert await a.sql(text) == tag, text
            for text, state in (
                ("analyze none", "42P01"), ("analyze t (none)", "42703"), ("analyze t,", "42601"),
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
