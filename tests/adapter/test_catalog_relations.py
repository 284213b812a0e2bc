"""System relations in process: every query that psql 15 was seen to send, and the limits of what answers."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from adapter.catalog_relations import CatalogRelations
from adapter.catalog_rewrite import SessionFacts
from adapter.system_rows import item_oid
from adapter.system_schemas import RELATIONS, SYSTEM
from adapter.variables import Variables
from journal.errors import InvalidUsage, TidemarkError
from sql import statements as st
from sql.names import Names
from sql.parse import parse
from sql.select import plan_select
from tests.sql.doubles import ddl, shop

NAMES = Names(system=RELATIONS)
FACTS = SessionFacts(NAMES, "tidemark", "PostgreSQL 15.0 (Tidemark)", 7, Variables().get)

# Captured from psql 15.18 (\d, \dt, \d name, \l… and tab completion) in the log of a Postgres 15.
PSQL = [q.strip() for q in (Path(__file__).parent / "psql_queries.sql").read_text().split(";\n\n") if q.strip()]


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
    outputs = relations.describe(plan, image, facts)
    table = relations.answer(plan, list(params), image, facts)
    assert len(outputs) == table.num_columns
    return [tuple(row.values()) for row in table.to_pylist()]


@pytest.mark.parametrize("text", PSQL, ids=range(len(PSQL)))
def test_everything_that_psql_asks_is_answered(relations, image, text):
    oid = item_oid("u1")
    text = text.rstrip(";").replace("NAME", "items").replace("'OID'", f"'{oid}'").replace("= OID", f"= {oid}")
    if isinstance(parse(text), st.Query):
        ask(relations, image, text)


@pytest.mark.parametrize(("schema", "name"), [(s, n) for s, found in SYSTEM.items() for n in found])
def test_every_system_relation_can_be_read_whole(relations, image, schema, name):
    for row in ask(relations, image, f"select * from {schema}.{name}"):
        assert len(row) == len(SYSTEM[schema][name])


def test_what_it_says(relations, image):
    assert ask(relations, image, "select typname from pg_type where oid = 23") == [("int4",)]
    oids = [item_oid(item.id) for item in image.objects() if item.name in ("items", "t2")]
    assert ask(relations, image, "select 'items'::regclass::oid, 's2.t2'::regclass::int8 - 0") == [tuple(oids)]
    assert ask(relations, image, "select relname from pg_class where pg_table_is_visible(oid) order by 1")[-1] == ("v",)
    elsewhere = dataclasses.replace(FACTS, names=dataclasses.replace(NAMES, search_path=("s2",)))
    assert ask(relations, image, "select relname from pg_class where pg_table_is_visible(oid)", elsewhere) == [("t2",)]
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
        ("select * from read_csv('/etc/hostname')", "42501"),
        ("select * from read_text('/etc/hostname')", "42501"),
        ("select * from read_parquet('http://127.0.0.1:1/x')", "42501"),
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
