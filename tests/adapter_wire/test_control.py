"""Statements about the session: how they are read, and the variables they change."""

from __future__ import annotations

import pytest

from adapter.state.interfaces import Kind
from adapter.state.session_state import SessionState
from adapter.state.transaction import SAVEPOINTS_MAX, Status, Transaction
from adapter.state.variables import KNOWN, Variables
from journal.errors import InvalidUsage
from sql.syntax import control as c
from sql.syntax import nested_words as n
from sql.syntax.control import parse
from sql.syntax.parse import parse as parse_statement


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("BEGIN", c.Begin(None, None, "BEGIN")),
        ("  begin work ;", c.Begin(None, None, "BEGIN")),
        ("-- why\n/* so */ BEGIN READ ONLY", c.Begin(None, True, "BEGIN")),
        ("START TRANSACTION ISOLATION LEVEL SERIALIZABLE, READ WRITE", c.Begin("serializable", False,
        "START TRANSACTION")),
        ("begin isolation level read committed read only not deferrable", c.Begin("read committed", True, "BEGIN")),
        ("BEGIN ISOLATION LEVEL STRICT SERIALIZABLE", c.Begin("strict serializable", None, "BEGIN")),
        ("COMMIT", c.Commit()), ("end transaction", c.Commit()), ("COMMIT AND CHAIN", c.Commit(True)),
        ("ROLLBACK WORK AND NO CHAIN", c.Rollback()), ("abort", c.Rollback()),
        ("ROLLBACK TO a", c.RollbackTo("a")), ("rollback to savepoint savepoint", c.RollbackTo("savepoint")),
        ('SAVEPOINT "A b""c"', c.Savepoint('A b"c')), ("SAVEPOINT Abc", c.Savepoint("abc")),
        ("RELEASE SAVEPOINT a", c.Release("a")), ("release a", c.Release("a")),
        ("SET TRANSACTION READ ONLY", c.SetTransaction(None, True, False)),
        ("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE",
         c.SetTransaction("serializable", None, True)),
        ("DEALLOCATE ALL", c.Deallocate(None)), ('DEALLOCATE PREPARE "_pg3_0"', c.Deallocate("_pg3_0")),
        ("PREPARE a AS SELECT 1;", n.PrepareAs("a", (), "SELECT 1", 13)),
        ('prepare "A b" (int4, numeric(6,2)) as  select $1, $2',
         n.PrepareAs("A b", ("int4", "numeric(6,2)"), "select $1, $2", 39)),
        ("EXECUTE a", n.ExecuteNamed("a", ())),
        ("execute a(1, 'x,;', f(2, 3) + 1)", n.ExecuteNamed("a", ("1", "'x,;'", "f(2, 3) + 1"))),
        ('DECLARE "c" CURSOR FOR SELECT 1', n.Declare("c", False, False, "SELECT 1", 23)),
        ("declare c binary insensitive no scroll cursor with hold for values (1)",
         n.Declare("c", True, True, "values (1)", 60)),
        ("FETCH c", n.Fetch("c", "forward", 1, False)), ("fetch next in c", n.Fetch("c", "forward", 1, False)),
        ('FETCH FORWARD 100 FROM "c"', n.Fetch("c", "forward", 100, False)),
        ("fetch all from c;", n.Fetch("c", "forward", None, False)), ("FETCH 5 c", n.Fetch("c", "forward", 5, False)),
        ("FETCH ABSOLUTE 7 FROM c", n.Fetch("c", "absolute", 7, False)),
        ("MOVE 10 FROM c", n.Fetch("c", "forward", 10, True)),
        ("move forward all c", n.Fetch("c", "forward", None, True)),
        ("MOVE RELATIVE 3 IN c", n.Fetch("c", "relative", 3, True)),
        ("DISCARD ALL", c.Discard("all")), ("discard temporary", c.Discard("temp")),
        ("CLOSE ALL", c.CloseCursors(None)), ("UNLISTEN *", c.Unlisten()),
        ("", c.Empty()), (" -- nothing", c.Empty()), (";", c.Empty()),
        ("SET search_path = x", None), ("SET SESSION application_name = 'x'", None), ("SELECT 1", None),
        ("(select 1)", None),
        ("SHOW transaction_isolation", None),
    ],
)  # fmt: skip
def test_control_statements(sql, expected):
    assert parse(sql) == expected


@pytest.mark.parametrize(
    ("sql", "sqlstate"),
    [
        ("LISTEN x", "0A000"), ("NOTIFY x", "0A000"),
        ("PREPARE TRANSACTION 'x'", "0A000"), ("COMMIT PREPARED 'x'", "0A000"),
        ("PREPARE a SELECT 1", "42601"), ("PREPARE a (int4 AS SELECT 1", "42601"), ("PREPARE a AS", "42601"),
        ("EXECUTE a (1,)", "42601"), ("EXECUTE a (1) x", "42601"), ("EXECUTE", "42601"),
        ("DECLARE c SCROLL CURSOR FOR SELECT 1", "0A000"), ("DECLARE c FOR SELECT 1", "42601"),
        ("FETCH PRIOR FROM c", "55000"), ("FETCH -1 c", "55000"), ("FETCH BACKWARD ALL IN c", "55000"),
        ("FETCH LAST FROM c", "55000"), ("FETCH 1 2 c", "42601"), ("FETCH ABSOLUTE c", "42601"),
        ("BEGIN NONSENSE", "42601"), ("START", "42601"), ("COMMIT now", "42601"), ("SAVEPOINT", "42601"),
        ("SAVEPOINT 'a'", "42601"), ("DISCARD everything", "42601"), ("BEGIN ISOLATION LEVEL read sideways", "42601"),
        ("SET TRANSACTION SNAPSHOT 'x'", "0A000"),
        ("SET TRANSACTION", "42601"),
        ("SET LOCAL TRANSACTION", "42601"),
        ("SET SESSION CHARACTERISTICS AS TRANSACTION", "42601"),
    ],
)  # fmt: skip
def test_refused_and_malformed(sql, sqlstate):
    with pytest.raises(InvalidUsage) as e:
        parse(sql)
    assert e.value.sqlstate == sqlstate


def test_variables_in_a_block():
    v = Variables()
    v.set("application_name", "before")
    v.begin()
    v.set("application_name", "inside")
    v.set("search_path", "local_path", local=True)
    assert (v.get("application_name"), v.get("search_path")) == ("inside", "local_path")
    v.rollback()
    assert (v.get("application_name"), v.get("search_path")) == ("before", '"$user", public')
    v.begin()
    v.set("application_name", "kept")
    v.set("timezone", "Europe/Berlin", local=True)
    assert v.changed["TimeZone"] == "Europe/Berlin"
    v.commit()
    assert (v.get("application_name"), v.get("TIME ZONE")) == ("kept", "UTC")
    assert v.changed == {"application_name": "kept", "TimeZone": "UTC"}


def test_set_local_outside_of_a_block_does_nothing():
    v = Variables()
    v.set("application_name", "x", local=True)
    assert v.get("application_name") == ""


def test_reset_goes_back_to_what_startup_said():
    v = Variables()
    v.set_default("application_name", "startup")
    v.set("application_name", "x")
    v.reset("application_name")
    assert v.get("application_name") == "startup"
    v.set("my.own", "1")
    v.reset("all")
    with pytest.raises(InvalidUsage):
        v.get("my.own")


@pytest.mark.parametrize(
    ("name", "value", "sqlstate"),
    [
        ("nonsense", "1", "42704"), ("server_version", "9", "55P02"), ("client_encoding", "LATIN1", "22023"),
        ("DateStyle", "German", "22023"), ("TimeZone", "Mars/Base", "22023"), ("TimeZone", "../../etc/passwd", "22023"),
        ("statement_timeout", "soon", "22023"), ("standard_conforming_strings", "off", "22023"),
        ("bytea_output", "escape", "22023"), ("transaction_isolation", "chaos", "22023"), ("extra_float_digits", "9",
        "22023"),
        ("application_name", "x" * 9000, "22023"),
    ],
)  # fmt: skip
def test_what_cannot_be_set(name, value, sqlstate):
    with pytest.raises(InvalidUsage) as e:
        Variables().set(name, value)
    assert e.value.sqlstate == sqlstate


@pytest.mark.parametrize(
    ("name", "given", "shown"),
    [
        ("statement_timeout", "5000", "5s"), ("statement_timeout", "1500ms", "1500ms"), ("statement_timeout", "0", "0"),
        ("statement_timeout", "2min", "2min"), ("client_encoding", "utf-8", "UTF8"),
        ("datestyle", "ISO", "ISO, MDY"), ("timezone", "utc", "UTC"), ("row_security", "FALSE", "off"),
    ],
)  # fmt: skip
def test_values_are_shown_as_in_postgres(name, given, shown):
    v = Variables()
    v.set(name, given)
    assert v.get(name) == shown


def test_every_default_is_a_value_it_takes():
    for variable in KNOWN.values():
        assert variable.check(variable.name, variable.default) == variable.default


def test_custom_variables_are_bounded():
    v = Variables()
    with pytest.raises(InvalidUsage) as e:
        for n in range(1000):
            v.set(f"my.v{n}", "x")
    assert e.value.sqlstate == "54000"


def test_isolation_of_a_session_and_of_a_block():
    s = SessionState(1)
    assert s.strict
    s.set_variable("tidemark.isolation", "serializable")
    assert not s.strict and s.isolation == "serializable"
    s.transaction.begin("strict serializable")
    assert s.strict and s.variable("tidemark.isolation") == "strict serializable"
    assert s.variable("transaction_isolation") == "serializable"
    s.transaction.end()
    assert not s.strict
    s.set_variable("transaction_isolation", "read committed")
    assert s.strict and s.variable("transaction isolation level") == "read committed" == s.isolation
    s.reset_variable("transaction_isolation")
    assert not s.strict
    s.set_variable("transaction_isolation", "strict  Serializable")
    assert s.strict and s.variable("default_transaction_isolation") == "serializable"


@pytest.mark.parametrize("name", ["transaction_isolation", "default_transaction_isolation"])
def test_a_level_that_clients_know_is_shown_and_setting_it_again_changes_nothing(name):
    """SQLAlchemy refuses levels that are not the standard's, and sets what it was shown when it is done."""
    s = SessionState(1)
    assert s.variable(name) == "serializable" and s.variable("tidemark.isolation") == "strict serializable"
    s.set_variable(name, s.variable(name))
    assert s.strict and s.isolation == "strict serializable"
    for level in ("read uncommitted", "read committed", "repeatable read", "serializable"):
        s.set_variable(name, level.upper())
        assert s.variable(name) == level and s.strict
    with pytest.raises(InvalidUsage):
        s.set_variable("tidemark.isolation", "read committed")


def test_search_path():
    s = SessionState(1)
    assert s.search_path == ("public",)
    s.set_variable("search_path", '"My ""Schema", Other, public')
    assert s.search_path == ('My "Schema', "other", "public")


@pytest.mark.parametrize("text,shown,path", [
    ('set search_path to "q,Q"', '"q,Q"', ("q,Q",)),
    ('set search_path to "q""q", public', '"q""q", public', ('q"q', "public")),
    ("set search_path = 'a, b'", '"a, b"', ("a, b",)),
    ('set search_path to "$user", Foo, "Bar"', '"$user", foo, "Bar"', ("foo", "Bar")),
    ("set schema 'x y'", '"x y"', ("x y",)),
    ("set search_path to ''", '""', ()),
    ("set search_path to $$a b$$, Foo", '"a b", foo', ("a b", "foo")),
    (r"set search_path to E'a\tb'", '"a\tb"', ("a\tb",)),
    ('set search_path to U&"\\0061b", char', 'ab, "char"', ("ab", "char")),
])  # fmt: skip
def test_each_name_of_a_search_path_stays_one(text, shown, path):
    s = SessionState(1)
    said = parse_statement(text)
    s.set_variable(said.name, said.value)
    assert (s.variable("search_path"), s.search_path) == (shown, path)


@pytest.mark.parametrize(
    "value", ["a b", "a.b", "a,", "(a)", "'a' 'b'", "", ",a", "default, a", "a, default", "select", "1+1"]
)
def test_what_is_no_list_of_values_is_refused(value):
    for text in (f"set search_path to {value}", f"set application_name = {value}", f"set no.such = {value}"):
        with pytest.raises(InvalidUsage) as found:
            parse_statement(text)
        assert found.value.sqlstate == "42601"


@pytest.mark.parametrize(
    "text", ["set schema a", "set schema 1", "set schema default", "set schema 'a', 'b'", "set schema"]
)
def test_a_schema_is_set_by_a_string(text):
    with pytest.raises(InvalidUsage) as found:
        parse_statement(text)
    assert found.value.sqlstate == "42601"


def test_an_unknown_parameters_hint_is_about_parameters():
    for name, hint in (("search_pth", 'did you mean "search_path"?'), ("zzz", "SHOW ALL lists those that there are")):
        with pytest.raises(InvalidUsage) as found:
            SessionState(1).variable(name)
        assert (found.value.sqlstate, found.value.hint) == ("42704", hint)


def test_savepoints_nest():
    t = Transaction()
    t.begin()
    t.savepoint("a", 1)
    t.savepoint("b", 2)
    t.savepoint("a", 3)
    t.fail()
    assert t.rollback_to("a").buffered == 3 and t.status is Status.IN_BLOCK
    t.release("a")
    assert t.rollback_to("a").buffered == 1
    with pytest.raises(InvalidUsage):
        t.release("b")
    with pytest.raises(InvalidUsage):
        for _ in range(SAVEPOINTS_MAX + 1):
            t.savepoint("x", 0)


def test_ddl_is_alone_in_its_block():
    t = Transaction()
    t.admit(Kind.DDL)  # outside of a block anything goes
    t.begin()
    t.admit(Kind.SESSION)
    t.admit(Kind.DDL)
    t.ddl = object()
    for kind in (Kind.SELECT, Kind.INSERT, Kind.DDL):
        with pytest.raises(InvalidUsage):
            t.admit(kind)
    t.admit(Kind.SESSION)
    t.begin()
    t.admit(Kind.SELECT)
    with pytest.raises(InvalidUsage) as e:
        t.admit(Kind.DDL)
    assert e.value.sqlstate == "0A000"
