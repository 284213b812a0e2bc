"""The door of the in-process engine: several statements, names that are no names, functions that are not ours."""

from __future__ import annotations

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.duck.asked import OURS
from adapter.duck.calls import known
from adapter.duck.catalog_relations import CatalogRelations
from adapter.duck.engine_check import lacking
from adapter.duck.session_facts import SessionFacts
from adapter.state.variables import Variables
from adapter.system.schemas import RELATIONS
from functions.registry import OWN, SEQUENCES
from journal.errors import InvalidUsage, TidemarkError
from plan import codec
from sql.objects.names import Names
from sql.statements.select import plan_select
from sql.syntax.parse import parse
from sql.system.resolve import BY_NAME
from tests.sql.doubles import ddl, empty_image

NAMES = Names(system=RELATIONS)
FACTS = SessionFacts(NAMES, "tidemark", "PostgreSQL 15.0 (Tidemark)", 7, Variables().get)
IMAGE = ddl(empty_image(), "create table t (id int4, a int4)")
MARKER = 'DELETE FROM "pg_catalog.pg_namespace"'


class Asked:
    """One adapter's relations, and what they were before anybody asked."""

    def __init__(self) -> None:
        self.relations = CatalogRelations()
        self.database = self.relations._database(IMAGE, NAMES.database)
        self.ask("select * from pg_catalog.pg_namespace")
        self.before = self.stands()

    def ask(self, text: str) -> list[tuple]:
        plan = plan_select(parse(text).ast, IMAGE, NAMES)
        if plan.kind == "constant":
            found = self.relations.constant(plan.constant([]), [(c.name, c.type) for c in plan.columns])
        else:
            found = self.relations.answer(plan, [], IMAGE, FACTS)
        return [tuple(row.values()) for row in found.to_pylist()]

    def stands(self) -> tuple:
        """What is in the engine, and how it is set."""
        db = self.database._engine.cursor()
        rows = db.execute('SELECT * FROM "pg_catalog.pg_namespace" ORDER BY oid').fetchall()
        settings = db.execute("SELECT name, value FROM duckdb_settings() ORDER BY name").fetchall()
        databases = db.execute("SELECT database_name FROM duckdb_databases()").fetchall()
        return rows, settings, databases


@pytest.fixture(scope="module")
def asked():
    return Asked()


def test_names_that_hold_statements_change_nothing_for_anybody(asked):
    """``hash("1); DELETE …" => 1)`` emptied a system relation for every other session."""
    for text in (
        f'select hash("1); {MARKER.replace(chr(34), chr(34) * 2)}; SELECT 1 --" => 1), n.oid from pg_namespace n',
        f"select extract(\"year from now()); {MARKER.replace(chr(34), chr(34) * 2)}; select (1\" from now()), n.oid "
        "from pg_namespace n",
    ):
        with pytest.raises(InvalidUsage) as refused:
            asked.ask(text)
        assert refused.value.sqlstate in ("42601", "42883", "0A000", "22023"), refused.value
    assert asked.stands() == asked.before


PLACES = [
    'select lower({n} => 1) from pg_namespace n',
    'select {n}(1) from pg_namespace n',
    'select {n} from pg_namespace n',
    'select 1 as {n} from pg_namespace n',
    'select {n}.oid from pg_namespace {n}',
    'select n.oid from pg_namespace n({n})',
    'select * from {n}(1) x, pg_namespace n',
    'select * from pg_namespace n, generate_series(1, 2) {n}({n})',
    'select extract({n} from now()) from pg_namespace n',
    "select interval '1' {n} from pg_namespace n",
    "select interval '1 {t}' from pg_namespace n",
    'select n.oid::{n} from pg_namespace n',
    'select n.nspname collate {n} from pg_namespace n',
    'select n.oid from {n}.pg_namespace n',
    'select n.oid from pg_catalog.{n} n',
    'select row_number() over {n} from pg_namespace n window {n} as (order by n.oid)',
    'select count(*) over (partition by {n}) from pg_namespace n',
    'with {n} as (select 1 as {n}) select {n} from {n}, pg_namespace n',
    'with {n}({n}) as (select 1) select * from {n}, pg_namespace n',
    'select a.oid from pg_namespace a join pg_namespace b using ({n})',
    'select n.oid from pg_namespace n order by {n}',
    'select n.oid from pg_namespace n group by {n}',
    'select (n).{n} from pg_namespace n',
    'select {n}.{n}.{n} from pg_namespace n',
    "select '{t}' from pg_namespace n",
    "select '{t}'::regclass::oid, n.oid from pg_namespace n",
    "select n.oid from pg_namespace n where n.nspname = '{t}'",
    "select n.oid from pg_namespace n where n.nspname ~ '{t}'",
    "select current_setting('{t}'), n.oid from pg_namespace n",
    "select date_trunc('{t}', now()), n.oid from pg_namespace n",
    "select format('%I {t}', n.nspname) from pg_namespace n",
    'select lower({n} => 1)',
    'select extract({n} from now())',
    "select interval '1' {n}",
    'select 1::{n}',
    'select 1 as {n}',
    "select '{t}' as {n}",
    "select x.{n} from (values (1)) x({n})",
]  # fmt: skip
"""Every place of a query where a name or a text can stand."""

HOSTILE = [
    f"1); {MARKER}; SELECT 1 --", f"x; {MARKER}; --", f"a' ; {MARKER}; --", f'a" ; {MARKER}; --', "a\\' ; b",
    "*/ /*",
    "oid) FROM duckdb_settings() --", "/etc/passwd", "x.csv", "day)); checkpoint(", "day", "oid", "$1", "?", ":x",
    "{x}",
    "a.b", "\u2028", "日本", "1", "", " ", "--", "';--", "int4[]; select 1", "SELECT", "read_text",
    "checkpoint", "query",
]  # fmt: skip


def tried(asked: Asked, place: str, name: str) -> None:
    text = place.replace("{n}", '"' + name.replace('"', '""') + '"').replace("{t}", name.replace("'", "''"))
    try:
        asked.ask(text)
    except TidemarkError as error:
        assert error.sqlstate != "XX000", (text, error)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(PLACES), st.text("aé\"'\\;()-/*$?{}.,= \n\t1", max_size=12))
def test_any_name_in_any_place_is_a_name_or_refused(place: str, name: str):
    asked = _shared()
    tried(asked, place, name)
    assert asked.stands() == asked.before, (place, name)


def test_every_hostile_name_and_every_place():
    """Each name in some places, each place with some names; all of them with all is the long one."""
    asked = _shared()
    for at, place in enumerate(PLACES):
        for name in (HOSTILE * 2)[at % len(HOSTILE) :][:4]:
            tried(asked, place, name)
    assert asked.stands() == asked.before


@pytest.mark.long
def test_every_hostile_name_in_every_place():
    asked = _shared()
    for place in PLACES:
        for name in HOSTILE:
            tried(asked, place, name)
        assert asked.stands() == asked.before, place


_SHARED: list[Asked] = []


def _shared() -> Asked:
    if not _SHARED:
        _SHARED.append(Asked())
    return _SHARED[0]


@pytest.mark.parametrize("name", ["", "a b", 'a"b', "'; --", "日本", "SELECT", "x.csv", "\\"])
def test_a_name_that_is_one_comes_back_as_it_was_given(asked, name):
    quoted = '"' + name.replace('"', '""') + '"'
    if name:
        plan = plan_select(parse(f"select n.oid as {quoted} from pg_namespace n").ast, IMAGE, NAMES)
        assert [each.name for each in asked.relations.describe(plan, IMAGE, FACTS)] == [name]
    literal = "'" + name.replace("'", "''") + "'"
    assert asked.ask(f"select {literal} from pg_namespace n where n.nspname = 'pg_catalog'") == [(name,)]


@pytest.mark.parametrize(
    "call",
    ["getvariable('x')", "write_log('x')", "pg_sleep(1)", "sleep_ms(1)", "getenv('HOME')", "hash(1)", "stats(1)",
     "json_serialize_sql('select 1')", "current_query()", "setseed(0.5)", "current_connection_id()"],
)  # fmt: skip
def test_a_function_that_is_not_ours_does_not_exist(asked, call):
    for text in (f"select {call}, n.oid from pg_namespace n", f"select {call}"):
        with pytest.raises(InvalidUsage) as refused:
            asked.ask(text)
        assert refused.value.sqlstate == "42883", (text, refused.value)


def test_sequences_are_never_the_engines_own(asked):
    assert not SEQUENCES.keys() & known()
    for text, sqlstate in (
        ("select nextval('x'), n.oid from pg_namespace n", "42P01"),
        ("select n.oid from pg_namespace n where currval('x') = 1", "0A000"),
        ("select nextval('x')", "42P01"),
    ):
        with pytest.raises(InvalidUsage) as refused:
            asked.ask(text)
        assert refused.value.sqlstate == sqlstate


@pytest.mark.parametrize(
    "call",
    ["duckdb_settings()", "duckdb_tables()", "duckdb_logs()", "pragma_version()", "checkpoint()", "query('select 1')",
     "read_text('/etc/passwd')", "read_csv('/etc/passwd')", "read_parquet('x')", "sql_auto_complete('sel')",
     "pragma_database_list()", "json_execute_serialized_sql('x')", "duckdb_secrets()", "enable_logging()",
     "query_table('x')", "repeat_row(1, num_rows => 3)", "test_all_types()", "arrow_scan(1, 2, 3)"],
)  # fmt: skip
def test_a_table_function_that_is_not_ours_does_not_exist(asked, call):
    with pytest.raises(InvalidUsage) as refused:
        asked.ask(f"select r.* from pg_namespace n, {call} r")
    assert refused.value.sqlstate in ("42883", "42601"), refused.value


def test_a_question_cannot_write_even_where_it_is_let_through(asked):
    """The transaction is one that reads: a second bolt, behind the door."""
    cursor = asked.database._engine.cursor()
    cursor.execute("BEGIN TRANSACTION READ ONLY")
    with pytest.raises(duckdb.TransactionException):
        cursor.execute(MARKER)
    cursor.close()
    for text in ("SET threads = 2", "SET temp_directory = '/tmp'", "SET enable_external_access = true"):
        with pytest.raises(duckdb.Error):
            asked.database._engine.cursor().execute(text)


def _offered() -> set[str]:
    with duckdb.connect(":memory:") as db:
        return {name for (name,) in db.execute("SELECT DISTINCT function_name FROM duckdb_functions()").fetchall()}


def test_every_function_of_the_engine_is_ours_or_refused(asked):
    """Asked of the engine itself, so that a new version's functions are refused until somebody has looked at them."""
    offered = {name.lower() for name in _offered()}
    assert len(offered) > 1000
    assert BY_NAME.keys() <= known(), "a function is declared that nothing has a meaning for"
    refused = sorted(name for name in offered - BY_NAME.keys() - WRITTEN if name.isidentifier())
    for name in refused[::20]:
        for call in (f'"{name}"(n.oid)', f'"{name}"()', f'"{name}"(n.nspname) over ()'):
            with pytest.raises(InvalidUsage) as caught:
                asked.ask(f"select {call} from pg_namespace n")
            assert caught.value.sqlstate in ("42883", "42601", "0A000"), (call, caught.value)


WRITTEN = {"coalesce", "nullif", "row", "greatest", "least", "any", "all", "array", "cast", "exists", "grouping"}
"""What the grammar knows by such names."""


def test_every_function_on_the_list_is_in_the_engine():
    """As the adapter asks when it starts."""
    assert lacking() == []


def test_nothing_of_ours_hides_a_function_of_the_engine():
    ours = {*OURS, *OWN}
    assert all(name.startswith("tm_") for name in ours)
    assert not ours & {name.lower() for name in _offered()}


def test_no_such_plan_travels():
    """A controller is never asked about the system's relations: what carries their types is nobody else's."""
    plan = plan_select(parse("select oid from pg_namespace").ast, IMAGE, NAMES).system.plan
    with pytest.raises(TypeError, match="uinteger"):
        codec.encode(plan)
