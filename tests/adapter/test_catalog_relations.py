"""System relations in process: every query that psql 15 was seen to send, and the limits of what answers."""

from __future__ import annotations

import dataclasses
from collections import Counter
from pathlib import Path

import pytest

from adapter.duck.asked import OURS
from adapter.duck.calls import AGGREGATES, SAME, WORDS, meant, of_the_engine
from adapter.duck.catalog_relations import CatalogRelations
from adapter.duck.macros import MACROS
from adapter.duck.session_facts import SessionFacts
from adapter.encode.parameters import decode_params
from adapter.encode.scalars import encoder
from adapter.encode.text_arrays import binary
from adapter.execute.results import declared_types, oids_of
from adapter.state.variables import Variables
from adapter.system.rows import item_oid
from adapter.system.schemas import RELATIONS, SYSTEM
from functions.registry import OWN
from journal.errors import InvalidUsage, TidemarkError
from plan import relations as r
from plan import scalars as s
from plan.checked import check
from plan.nodes import walk
from sql.objects.names import Names
from sql.statements.select import plan_select
from sql.statements.skeletons import filled, fits, skeleton_of
from sql.syntax import statements as st
from sql.syntax.parse import parse
from sql.system import parameters
from sql.system.parameters import assignments
from tests.sql.doubles import ddl, shop
from values.text.named_oids import name_of
from values.time.intervals import Interval

NAMES = Names(system=RELATIONS)
FACTS = SessionFacts(NAMES, "tidemark", "PostgreSQL 15.0 (Tidemark)", 7, Variables().get)

QUERIES = Path(__file__).parent / "client_queries"
"""What clients send.  psql 15.18 (every backslash command of its describe.c, and tab completion), pgjdbc 42.7 (every
method of DatabaseMetaData) and SQLAlchemy 2.1 (its inspection) were recorded in the log of a Postgres 15; Metabase's,
Grafana's, DBeaver's and asyncpg's are from their sources."""


@pytest.fixture(scope="module")
def image():
    return ddl(
        shop(),
        "create index i1 on items (id, name)",
        "create view v as select id, name n from items where ok",
        "create materialized view m as select n, count(*) c from v group by n",
        "create table d (a int not null default 5)",
        "create schema s2",
        "create table s2.t2 (a int)",
    )


@pytest.fixture(scope="module")
def relations():
    return CatalogRelations()


def ask(relations, image, text, facts=FACTS, params=()):
    plan = plan_select(parse(text).ast, image, facts.names)
    assert plan.kind == "catalog", plan.kind
    if plan.system is not None:
        check_plan(parameters.filled(plan.system, *plan.values(params)), image, facts)
    outputs = relations.describe(plan, image, facts)
    table = relations.answer(plan, list(params), image, facts)
    assert len(outputs) == table.num_columns
    return [tuple(map(shown, row.values())) for row in table.to_pylist()]


CALLED = OURS | OWN.keys() | SAME | WORDS | of_the_engine() | AGGREGATES.keys()
TABLES = {f"{schema}.{name}" for schema, found in SYSTEM.items() for name in found}


def check_plan(plan, image, facts):
    """That ``plan`` is one, reads what there is and calls what is known: the engine is told what is printed of it."""
    check(plan)
    for node in walk(meant(plan, image, facts).relation):
        if isinstance(node, (s.Call, s.Aggregate)):
            assert node.name in CALLED
        elif isinstance(node, r.Get):
            assert node.item_id in TABLES


def shown(value: object) -> object:
    """As a client that asks for text has it: a regclass is the name alone."""
    return name_of(value) if isinstance(value, str) else value


@pytest.mark.parametrize(
    ("text", "types", "rows"),
    [
        ("select current_setting('TimeZone'), 1.0/3", "text numeric", [("UTC", "0.33333333333333333333")]),
        ("select version() is null, avg(1), date '2024-01-02' - date '2024-01-01'", "bool numeric int4",
         [(False, "1.00000000000000000000", 1)]),
        ("select pg_backend_pid(), 1e10, '{\"b\": 1, \"a\": 1.0}'::jsonb", "int4 numeric(11,0) jsonb",
         [(7, 10000000000, '{"a": 1.0, "b": 1}')]),
        ("select current_setting('server_version_num')::int / 10000, 7/2", "int4 int4", [(15, 3)]),
        ("select x, current_schema() from (values (1.5), (null)) q(x) order by 1", "numeric(2,1) text",
         [(1.5, "public"), (None, "public")]),
        ("select 'public' = any(current_schemas(false)), substring('foobar' from 'o(.)b')", "bool text", [(True, "o")]),
        ("select pg_catalog.current_schema() || 'x', user = current_user, (select 7 % 4)", "text bool int4",
         [("publicx", True, 3)]),
        ("select current_setting('no.such', true), 1 where version() > ''", "text int4", [(None, 1)]),
        ("select 1 where format_type(23, null) = 'integer' and 'a'::char(3) = 'a  '", "int4", [(1,)]),
        ("select \"user\", format_type(23, null) from (select 1 as \"user\") t", "int4 text", [(1, "integer")]),
        ("with a as (select current_user as u, 1.0/3 as x) select x, u from a", "numeric text",
         [("0.33333333333333333333", "tidemark")]),
        ("select 'it''s \\ ' || current_user, count(*)", "text int8", [("it's \\ tidemark", 1)]),
    ],
)  # fmt: skip
def test_beside_what_only_the_system_knows_all_else_means_what_it_means(relations, image, text, types, rows):
    """It was DuckDB's meaning: a third was a float8, a jsonb kept its spelling."""
    plan = plan_select(parse(text).ast, image, NAMES)
    assert " ".join(str(each.type) for each in relations.describe(plan, image, FACTS)) == types
    assert ask(relations, image, text) == rows


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("select case when false then format_type(1/0, null) else 'a' end, 1.0/3", [("a", "0.33333333333333333333")]),
        ("select coalesce('a', format_type(1/0, null)), version() is null", [("a", False)]),
        ("select case 1 when 2 then format_type(1/0, null) when 1 then 'b' end", [("b",)]),
        ("select case when x > 1 then format_type(1/0, null) else 'a' end from (values (1)) v(x)", [("a",)]),
        ("select case when false then format_type(9223372036854775807 + 1, null) end, current_schema()",
         [(None, "public")]),
        ("select case when true then 1 when pg_table_is_visible(1/0) then 2 end", [(1,)]),
        ("select true or format_type(1/0, null) = 'a'", [(True,)]),
    ],
)  # fmt: skip
def test_what_fails_where_it_is_not_wanted_fails_nothing(relations, image, text, rows):
    assert ask(relations, image, text) == rows


@pytest.mark.parametrize(
    ("text", "sqlstate"),
    [
        ("select case when true then format_type(1/0, null) else 'a' end", "22012"),
        ("select coalesce(null, format_type(1/0, null)), 1.0/3", "22012"),
        ("select format_type(9223372036854775807 + 1, null), version()", "22003"),
        ("select case when x > 1 then format_type(1/0, null) else 'a' end from (values (1), (2)) v(x)", "22012"),
    ],
)
def test_what_fails_where_it_is_wanted_fails_the_query(relations, image, text, sqlstate):
    with pytest.raises(InvalidUsage) as caught:
        ask(relations, image, text)
    assert caught.value.sqlstate == sqlstate


def test_its_columns_are_called_as_they_were_written(relations, image):
    text = "select current_user, version() is null, current_setting('TimeZone') as zone, 1.5 + 1 from (values (1)) q"
    plan = plan_select(parse(text).ast, image, NAMES)
    assert [each.name for each in relations.describe(plan, image, FACTS)] == [
        "current_user", "?column?", "zone", "?column?",
    ]  # fmt: skip
    with pytest.raises(InvalidUsage) as caught:
        ask(relations, image, "select version(), 1/0")
    assert caught.value.sqlstate == "22012"


def test_parameters_beside_it_have_their_types(relations, image):
    text = "select current_setting($1), $2::numeric / 3, $3::text"
    plan = plan_select(parse(text).ast, image, NAMES)
    assert [str(each.type) for each in relations.describe(plan, image, FACTS)] == ["text", "numeric", "text"]
    assert ask(relations, image, text, params=["TimeZone", "1", "it's"]) == [("UTC", "0.33333333333333333333", "it's")]
    for array, among in ((["a", "tidemark"], True), (["a"], False)):
        assert ask(relations, image, "select current_user = any($1)", params=[array]) == [(among,)]


@pytest.mark.parametrize("client", sorted(path.stem for path in QUERIES.glob("*.sql")))
def test_everything_that_a_client_asks_is_answered(relations, image, client):
    oid, failed, shared = item_oid("u1"), [], 0
    for text in (QUERIES / f"{client}.sql").read_text().split(";\n\n"):
        text = text.strip().rstrip(";").replace("'OID'", f"'{oid}'")
        text = text.replace("= OID", f"= {oid}")
        if not isinstance(parse(text), st.Query):
            continue
        try:
            found = ask(relations, image, text)
            other = by_skeleton(relations, image, text)
            if other is not None:
                shared += 1
                assert Counter(map(repr, other)) == Counter(map(repr, found)), text
        except TidemarkError as error:
            failed.append((error.message, text))
    assert not failed
    assert shared or client == "sqlalchemy", "no query shares its plan with those that differ in values"


def by_skeleton(relations, image, text):
    """What a query gives by the plan of its skeleton; ``None`` where it has none that serves."""
    skeleton = skeleton_of(text)
    written = plan_select(parse(text).ast, image, NAMES)
    if skeleton is None or not written.reads_system:
        return None
    plan = plan_select(parse(skeleton.text).ast, image, NAMES, declared_types(skeleton.param_oids))
    if not fits(plan, written):
        return None
    plan = filled(plan, skeleton)
    assert oids_of(plan.params, (), plan.system_oids) == ()
    table = relations.answer(plan, [], image, FACTS)
    return [tuple(map(shown, row.values())) for row in table.to_pylist()]


def test_every_macro_can_be_defined(image):
    """A name that is renamed to a macro has one, and the macro is understood with what it looks things up in."""
    database = CatalogRelations()._database(image, "tidemark")
    for name in MACROS:
        database._macro(name)


def test_every_system_relation_can_be_read_whole(relations, image):
    for schema, found in SYSTEM.items():
        for name in found:
            for row in ask(relations, image, f"select * from {schema}.{name}"):
                assert len(row) == len(SYSTEM[schema][name]), name


def test_what_it_says(relations, image):
    assert ask(relations, image, "select typname from pg_type where oid = 23") == [("int4",)]
    oids = [item_oid(item.id) for item in image.objects() if item.name in ("items", "t2")]
    assert ask(relations, image, "select 'items'::regclass::oid, 's2.t2'::regclass::int8 - 0") == [tuple(oids)]
    assert ask(relations, image, "select relname from pg_class where pg_table_is_visible(oid) order by 1")[-1] == ("v",)
    elsewhere = dataclasses.replace(FACTS, names=dataclasses.replace(NAMES, search_path=("s2",)))
    visible = "select relname from pg_class where pg_table_is_visible(oid) and oid >= 16384"
    assert ask(relations, image, visible, elsewhere) == [("t2",)]
    assert ask(
        relations,
        image,
        "select column_default, is_nullable, data_type from information_schema.columns where table_name = 'd'",
    ) == [("5", "NO", "integer")]
    assert ask(
        relations,
        image,
        "select attname, format_type(atttypid, atttypmod) from pg_attribute where attrelid = "
        "'items'::regclass and attnum = 3",
    ) == [("price", "numeric(10,2)")]
    assert ask(relations, image, "select current_setting('server_version_num'), current_schemas(true)") == [
        ("150000", "{pg_catalog,public}")
    ]
    assert ask(relations, image, "select referenced_name from tm_catalog.dependencies where object_name = 'm'") == [
        ("v",)
    ]
    assert ask(relations, image, "select count(*) from pg_class where relname = $1", params=("items",)) == [(1,)]
    with pytest.raises(InvalidUsage, match="LIMIT must not be negative"):
        ask(relations, image, "select oid from pg_am limit $1", params=(-1,))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        # What USING and NATURAL merge is there once, and is the side's that has all rows.
        ("select * from pg_am a left join (select 2::oid oid, 'z' z) b using (oid) where oid = 403",
         [(403, "arrangement", "-", "i", None)]),
        ("select oid, z from pg_am a full join (select 9::oid oid, 'z' z) b using (oid) order by oid",
         [(2, None), (9, "z"), (403, None)]),
        ("select x.o from (pg_am a join (select 2::oid as oid) b using (oid)) x(o, p)", [(2,)]),
        # A name in GROUP BY is a column first, in ORDER BY an output.
        ("select lower(amname) as amname, count(*) from pg_am group by amname order by amname desc",
         [("heap", 1), ("arrangement", 1)]),
        ("select distinct on (relkind) relkind, count(*) from pg_class where oid > 16383 group by relkind, "
         "relpersistence order by relkind, count(*) desc", [("i", 1), ("m", 1), ("r", 4), ("v", 1)]),
        ("with recursive t(n, p) as (select oid, amname::text from pg_am where oid = 2 union all select t.n, t.p || "
         "'x' from t where length(t.p) < 5) select * from t order by 2", [(2, "heap"), (2, "heapx")]),
        # Functions that make rows, side by side and with numbers.
        ("select generate_series(1, 2), unnest('{a,b,c}'::text[]) from pg_am where oid = 2",
         [(1, "a"), (2, "b"), (None, "c")]),
        ("select i.indexrelid::regclass, k.attnum, k.n from pg_index i, unnest(i.indkey) with ordinality "
         "k(attnum, n) order by 3", [("i1", 1, 1), ("i1", 2, 2)]),
        ("select (a).amname, (a).* from pg_am a where a.oid = 2", [("heap", 2, "heap", "heap_tableam_handler", "t")]),
        # ANY and ALL of any operator, NULL where a NULL decides.
        ("select 3 > any(array[1, 4]), 3 > all(array[1, 4]), 'ab' like any(array['a%']), 2 = all(select 2), "
         "not (1 = any(array[2, null])), 1 = all('{}'::int4[]) from pg_am where oid = 2",
         [(True, False, True, True, None, True)]),
        ("select array(select attname from pg_attribute where attrelid = 'items'::regclass and attnum > 0 order by "
         "attnum desc limit 2), array[1] || 2, array[]::int4[] from pg_am where oid = 2",
         [("{ok,sold}", "{1,2}", "{}")]),
        ("select json_agg(amname order by oid desc), json_agg(oid) filter (where oid = 3) from pg_am",
         [('["arrangement","heap"]', None)]),
        ("select 'abc' similar to 'a%', substring('foobar' from 'o(.)b'), concat(true, null, 1), concat_ws(null, 'a'), "
         "row(null, null) is null, 'int4[]'::regtype, '-'::regclass from pg_am where oid = 2",
         [(True, "o", "t1", None, True, "integer[]", "-")]),
        ("select pg_typeof(amname), encode('\\x6162'::bytea, 'hex'), length('\\x6162'::bytea), to_hex(255) from pg_am "
         "where oid = 2", [("name", "6162", 2, "ff")]),
        ("select percentile_cont(0.5) within group (order by oid::int4), mode() within group (order by amname), "
         "string_agg(distinct amtype::text, ',' order by amtype::text) from pg_am", [(202.5, "arrangement", "i,t")]),
        # Vectors are text separated by spaces, their subscripts begin at 0, and both survive subqueries.
        ("select indkey, indkey[0], indkey[1] from (select indkey from pg_index) i", [("1 2", 1, 2)]),
        ("select generate_subscripts(indkey, 1) from pg_index", [(0,), (1,)]),
        ("select '3 5'::int2vector, ('3 5'::oidvector)[1], ''::int2vector from pg_am where oid = 2", [("3 5", 5, "")]),
        ("select indkey::text from pg_index where 1 = any (indkey)", [("1 2",)]),
        ("select (k).x, (k).n from (select information_schema._pg_expandarray(indkey) k from pg_index) q order by 1",
         [(1, 1), (2, 2)]),
        ("select array_agg(relname order by relname) from pg_class where relkind = 'm'", [("{m}",)]),
        ("select array['a b', 'c', null, 'x,y', '\"', 'NULL'] from pg_am where oid = 2",
         [('{"a b",c,NULL,"x,y","\\\"","NULL"}',)]),
        ("select relname from pg_class where relkind = any ('{m,v}') and oid >= 16384 order by 1", [("m",), ("v",)]),
        ("select 1 from pg_am where oid = 2 and 'a' <> all ('{b,\"c d\"}'::text[])", [(1,)]),
        ("select 3 = any ('{1,3}'::int4[]), 26 = any ('{26}'::oid[])", [(True, True)]),
        # regclass and its kin are shown as names and compared as oids.
        ("select 'items'::regclass, 's2.t2'::regclass::text, 'pg_class'::regclass", [("items", "s2.t2", "pg_class")]),
        ("select c.oid::regclass from pg_class c where oid = 's2.t2'::regclass", [("s2.t2",)]),
        ("select attname from pg_attribute where attrelid = format('%I.%I', 's2', 't2')::regclass", [("a",)]),
        ("select to_regclass('nope') is null, to_regclass('items') = 'items'::regclass", [(True, True)]),
        ("select 23::regtype, 'int4'::regtype::oid, 's2'::regnamespace::text, 10::regrole", [("integer", 23, "s2",
         "tidemark")]),
        ("select format('%I %s %L %2$s %%', 'A b', null, 'o''k') from pg_am where oid = 2",
         [('"A b"  \'o\'\'k\'  %',)]),
        ("select quote_ident('order'), quote_ident('a1'), parse_ident('S.\"T t\"')", [('"order"', "a1",
         ["s", "T t"])]),
        ("select json_build_object('a', 1, 'b', null) from pg_am where oid = 2", [('{"a":1,"b":null}',)]),
        ("select array_length(string_to_array('a,b', ','), 1), array_to_string(array['a', 'b'], '-') from pg_am "
         "where oid = 2", [(2, "a-b")]),
        ("select trim(s[i]) from generate_series(1, 2) as i, string_to_array('a, b', ',') s, pg_am "
         "where oid = 2", [("a",), ("b",)]),
        ("select 7 / 2, current_setting('server_version_num')::int / 100", [(3, 1500)]),
        ("select count(*) from pg_get_keywords() where word in ('select', 'source')", [(2,)]),
        ("select tableoid::regclass from pg_class limit 1", [("pg_class",)]),
        # A regproc is an oid that is shown as a name: beside a number it is one.
        ("select amname from pg_am where amhandler = 3", [("heap",)]),
        ("select amname from pg_am where amhandler = 0 and 0 = amhandler and amhandler::oid = 0", [("arrangement",)]),
        ("select a.amname, p.proname from pg_am a left join pg_proc p on p.oid = a.amhandler order by 1",
         [("arrangement", None), ("heap", None)]),
        ("select 'sqrt'::regproc = oid from pg_proc where proname = 'sqrt' and oid = 1344", [(True,)]),
        ("select 1 as select, 2 as update from pg_am where oid = 2", [(1, 2)]),
        # What is negated is the comparison with each.
        ("select amname not like all(array['h%', 'x']), amname not like any(array['h%', 'x']), "
         "amname !~ all('{^h,x}'), amname !~ some(array['^h', 'x']), "
         "not amname ~ all(array['^h', 'x']), amname not ilike all(select 'H%') "
         "from pg_am where oid = 2", [(False, True, False, True, True, False)]),
        # Digits that a cast says, whatever the value; a number written with a power; more digits than are exact.
        ("select avg(n), sum(n) / 3.0, 1 / 3::numeric, round(avg(n), 2) "
         "from (values (1), (2), (2)) v(n), pg_am where oid = 2",
         [("1.6666666666666667", "1.6666666666666667", "0.33333333333333333333", "1.67")]),
        ("select n, count(*) from (values (1.50), (1.5), (2)) v(n), pg_am where oid = 2 group by n order by n desc",
         [("2", 1), ("1.5", 2)]),
        ("select '10:11:12.678'::time(1)::text, (timestamp '2024-01-01 23:59:59.96')::timestamp(1)::text, "
         "'{1.25,null}'::numeric(5,1)[]::text, 12345678901234567890123456789012345678901234567890.5 "
         "from pg_am where oid = 2",
         [("10:11:12.7", "2024-01-02 00:00:00", "{1.3,NULL}", "12345678901234567890123456789012345678901234567890.5")]),
        ("select to_json(1.5), row_to_json(row(n, 'NaN'::numeric))::text from (values (2)) v(n), pg_am where oid = 2",
         [("1.5", '{"f1":2,"f2":"NaN"}')]),
        ("select 1.5::numeric(6,3)::text, '2.345'::dec(4,2)::text, oid::int4::numeric(5,1)::text, "
         "(select count(*) from pg_am where oid = 2)::numeric(5,2)::text from pg_am where oid = 2",
         [("1.500", "2.35", "2.0", "1.00")]),
        ("select 1e-3::text, '1e-3'::numeric::text, '1e5'::numeric::text, (-1.5e2)::text, 3.4e38::float4, "
         "(-1e300)::float8 from pg_am where oid = 2",
         [("0.001", "0.001", "100000", "-150", pytest.approx(3.4e38), -1e300)]),
        ("select a.attname from pg_class c join pg_attribute a on a.attrelid = c.oid where c.relname = 'pg_am' and "
         "attnum = 1", [("oid",)]),
    ],
)  # fmt: skip
def test_what_postgres_would_say(relations, image, text, wanted):
    assert ask(relations, image, text) == wanted


@pytest.mark.parametrize(
    ("text", "sqlstate"),
    [
        ("select distinct oid from pg_am order by amname", "42P10"), ("select oid from pg_am order by 5", "42P10"),
        ("select oid from pg_am order by 'x'", "42601"), ("select amname from pg_am where count(*) > 1", "42803"),
        ("select sum(sum(oid::int4)) from pg_am", "42803"), ("select count(*), amname from pg_am", "42803"),
        ("select 1 from pg_am where row_number() over () = 1", "42P20"), ("select oid from pg_am limit -1", "2201W"),
        ("select tableoid from pg_class a, pg_class b", "42702"), ("select 'nosuch'::regproc::oid from pg_am", "42883"),
        ("select amname from pg_am union select 'a' order by length(amname)", "0A000"),
        ("select 1 from pg_am where unnest('{1}'::int4[]) = 1", "0A000"),
        ("select oid from pg_am limit oid", "42P10"), ("select oid from pg_am offset abs(oid::int4)", "42P10"),
        ("select (select 1 from pg_am limit a.oid) from pg_am a", "0A000"), ("select 1e39::float4 from pg_am", "22003"),
        ("select 1e999999999 from pg_am", "22003"), ("select '1.5x'::numeric from pg_am", "22P02"),
        ("select 1 / 0.0 from pg_am", "22012"), ("select sum(distinct 1.5) from pg_am", "0A000"),
        ("select n from (values (1.5)) v(n), pg_am except select 1.50", "0A000"),
        ("select '1 day'::interval(2) from pg_am", "0A000"),
        ("select '12345.6'::numeric(6,2) from pg_am", "22003"), ("select 12345.6::numeric(6,2) from pg_am", "22003"),
        ("select oid::int4::numeric(2,2) from pg_am", "22003"),
    ],
)  # fmt: skip
def test_what_postgres_would_refuse(relations, image, text, sqlstate):
    with pytest.raises(InvalidUsage) as refused:
        ask(relations, image, text)
    assert refused.value.sqlstate == sqlstate, refused.value


def outputs(relations, image, text):
    plan = plan_select(parse(text).ast, image, NAMES)
    return [column.type_oid for column in relations.describe(plan, image, FACTS)]


def test_types_are_postgress(relations, image):
    text = "select i.indkey, i.indclass, i.indrelid, array_agg(i.indrelid), array['a'], array[1], json_build_object() "
    assert outputs(relations, image, text + "from (select * from pg_index) i group by 1, 2, 3") == [
        22, 30, 26, 1028, 1009, 1007, 114,
    ]  # fmt: skip


def test_parameters_are_what_they_are_compared_with(image):
    def types(text):
        return [str(kind) for _, kind in sorted(plan_select(parse(text).ast, image, NAMES).params.items())]

    assert types("select 1 from pg_class c where c.oid = $1 and relname = $2 limit $3") == ["int8", "text", "int8"]
    assert types("select $1::oid, $2::int4, $3::text") == ["int8", "int4", "text"]
    assert types("select 1 from information_schema.columns where ordinal_position in ($1)") == ["int4"]


def test_arrays_in_binary():
    assert binary(22)("1 2").hex() == "0000000100000000000000150000000200000000" + "000000020001000000020002"
    assert binary(1009)('{a,NULL,"b \\" c"}').hex() == (
        "00000001000000010000001900000003000000010000000161ffffffff0000000562202220" + "63"
    )
    assert binary(1028)("{}").hex() == "00000000000000000000001a"


def test_a_query_in_from_sees_the_queries_of_with(relations, image):
    """And nothing that stands beside it in FROM."""
    text = "with x as (select relname from pg_class where relname = 'items') select * from (select * from x) q"
    assert ask(relations, image, text) == [("items",)]
    beside = "with x as (select 1 as a) select q.a, relname from (select * from x) q, pg_class where relname = 'items'"
    assert ask(relations, image, beside) == [(1, "items")]
    inner = "with x as (select relname as a from pg_class) select * from x"
    hidden = f"with x as (select 1 as a) select q.a from ({inner}) q"
    assert len(ask(relations, image, hidden)) > 1
    with pytest.raises(InvalidUsage) as caught:
        ask(relations, image, "with x as (select 1 as a) select 1 from pg_class c, (select c.relname from x) q")
    assert caught.value.sqlstate == "42P01"


def test_set_config_says_what_it_assigns(relations, image):
    text = "select current_setting('timezone') cur, set_config('timezone', 'Europe/Berlin', false) as new"
    assert ask(relations, image, text) == [("UTC", "Europe/Berlin")]


    def assigned(sql, *values):
        plan = plan_select(parse(sql).ast, image, NAMES)
        return list(assignments(parameters.filled(plan.system, values, plan.params)))

    assert assigned(text) == [("timezone", "Europe/Berlin", False)]
    assert assigned("select set_config('a', 'b', true), 1") == [("a", "b", True)]
    assert assigned("select set_config($1, $2, $3)", "a", "b", True) == [("a", "b", True)]
    with pytest.raises(InvalidUsage):
        assigned("select set_config('a', relname, true) from pg_class")


def test_arrays_as_parameters(relations, image):
    """asyncpg's introspection of types: ``ANY($1::oid[])``, in binary."""
    text = "select typname from pg_type where oid = any($1::oid[]) order by 1"
    plan = plan_select(parse(text).ast, image, NAMES)
    assert oids_of(plan.params, (0,), plan.system_oids) == (1028,)
    raw = bytes.fromhex("00000001000000000000001a0000000200000001000000040000001700000004000000" + "19")
    [value] = decode_params([1028], [1], [raw])
    assert value == '{"23","25"}'
    assert ask(relations, image, text, params=(value,)) == [("int4",), ("text",)]
    text = "select typname from pg_type where typname = any($1::text[]) order by 1"
    [value] = decode_params([1009], [1], [binary(1009)('{int4,NULL,"te\\"xt",text}')])
    assert value == ["int4", None, 'te"xt', "text"]
    assert ask(relations, image, text, params=(value,)) == [("int4",), ("text",)]
    for broken in (b"", raw[:-2], raw[:11] + b"\x17" + raw[12:]):
        with pytest.raises(InvalidUsage) as caught:
            decode_params([1028], [1], [broken])
        assert caught.value.sqlstate == "22P03"


def test_the_type_query_of_psycopg_and_sqlalchemy_at_connect(relations, image):
    text = "select typname, oid from pg_type where oid = to_regtype($1)"
    assert ask(relations, image, text, params=("Integer",)) == [("int4", 23)]
    assert ask(relations, image, text, params=("hstore",)) == []


@pytest.mark.parametrize(
    ("text", "sqlstate"),
    [
        ("select nope(1)", "42883"),
        ("select foo from pg_class", "42703"),
        ("select 'nope'::regclass", "42P01"),
        ("select current_setting('nope')", "42704"),
        ("select relname from pg_class group by oid", "42803"),
        ("select relname::int4 from pg_class", "22P02"),
        ("select * from read_csv('/etc/hostname')", "0A000"),
        ("select * from read_csv('/etc/hostname'), pg_class", "42883"),
        ("select * from read_text('/etc/hostname'), pg_class", "42883"),
        ("select * from read_parquet('http://127.0.0.1:1/x'), pg_class", "42883"),
    ],
)
def test_refusals(relations, image, text, sqlstate):
    with pytest.raises(TidemarkError) as caught:
        ask(relations, image, text)
    assert caught.value.sqlstate == sqlstate


def test_a_missing_system_relation_has_a_hint(relations, image):
    with pytest.raises(InvalidUsage) as caught:
        ask(relations, image, "select * from pg_catalog.pg_clas")
    assert caught.value.sqlstate == "42P01" and "pg_class" in caught.value.hint


def test_images_are_forgotten_oldest_first(image):
    relations = CatalogRelations()
    for n in range(10):
        image = ddl(image, f"create table more{n} (a int)")
        assert len(ask(relations, image, "select 1 from pg_class where relname like 'more%'")) == n + 1
    assert len(relations._kept) <= 4


@pytest.mark.parametrize("value", [
    "repeat(relname, 1000000000)", "lpad(relname, 1000000000)", "length(rpad(relname, 1000000000, 'ab'))",
    "replace(repeat(relname, 100000), 'i', repeat('b', 100000))",
])  # fmt: skip
def test_a_value_that_is_too_large_is_refused_before_the_memory_is_taken(relations, image, value):
    with pytest.raises(TidemarkError) as caught:
        ask(relations, image, f"SELECT {value} FROM pg_class")
    assert caught.value.sqlstate == "54000", caught.value
    fits = "SELECT lpad(relname, 7, '.'), repeat(relname, 2) FROM pg_class WHERE relname = 'items'"
    assert ask(relations, image, fits) == [("..items", "itemsitems")]


@pytest.mark.parametrize(
    ("text", "params", "rows"),
    [
        ("select oid::regclass from pg_class where oid = $1::regclass", ["items"], [("items",)]),
        ("select relname from pg_class where oid = any($1)", [["1259"]], [("pg_class",)]),
        ("select case when $1 then 1 end from pg_am where oid = 2", ["true"], [(1,)]),
        ("select format_type($1, $2) from pg_am where oid = 2", ["1700", "-1"], [("numeric",)]),
        ("select relname from pg_class where oid = 1259 limit all", [], [("pg_class",)]),
        ("select relname from pg_class where relname = any($1) limit $2", ['{pg_class,"x y",NULL}', None],
         [("pg_class",)]),
        ("select $1::regclass, $1::regclass::oid from pg_am where oid = 2", ["1259"], [("pg_class", 1259)]),
        ("select $1::interval = '24:00', $2::time > '00:30' from pg_am where oid = 2",
         [Interval(0, 1, 0), 3_600_000_000], [(True, True)]),
        ("select oid from pg_am where oid = any($1) or amname = $2 or $3", [None, None, False], []),
    ],
)
def test_a_parameter_without_a_type_has_that_of_its_place(relations, image, text, params, rows):
    assert ask(relations, image, text, params=params) == rows


def test_a_regclass_is_its_name_in_text_and_its_oid_in_binary(relations, image):
    plan = plan_select(parse("select 'pg_class'::regclass from pg_am limit 1").ast, image, NAMES)
    (column,) = relations.describe(plan, image, FACTS)
    (value,) = relations.answer(plan, [], image, FACTS).to_pylist()[0].values()
    assert column.type_oid == 2205
    assert encoder(column.type, column.type_oid, False, "UTC")(value) == b"pg_class"
    assert encoder(column.type, column.type_oid, True, "UTC")(value) == (1259).to_bytes(4, "big")
