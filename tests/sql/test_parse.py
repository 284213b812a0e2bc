"""Parsing: parameters, splitting, positions; and that no text whatever raises anything but an error for its user."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from journal.errors import InvalidUsage, TidemarkError
from sql.statements.ddl import plan_ddl
from sql.statements.insert import plan_insert
from sql.statements.select import plan_select
from sql.syntax import statements as st
from sql.syntax.parse import parse, split
from sql.syntax.tokens import tokenize
from tests.sql.doubles import names, shop
from tests.sql.test_stories import tell
from values.types import SqlType

INT4 = SqlType("int4")


@pytest.mark.parametrize(
    "text",
    ["select $1,$2", "select $1::int,$2::text", "values ($1,$2)", "select $1+$2, $3", "select '$1,$2', \"$1$\", $3"],
)
def test_parameters_need_no_blanks_between_them(text):
    plan = plan_select(parse(text).ast, shop(), names()) if "+" not in text and '"' not in text else None
    assert isinstance(parse(text), st.Query)
    if plan is not None:
        assert list(plan.params) == [1, 2]


def test_a_parameter_of_which_nothing_tells_the_type_is_refused():
    with pytest.raises(InvalidUsage, match=r"could not determine data type of parameter \$1") as refused:
        plan_select(parse("select $2::int").ast, shop(), names())
    assert refused.value.sqlstate == "42P18"
    assert str(plan_select(parse("select $2::int").ast, shop(), names(), {1: INT4}).params[1]) == "int4"


def test_names_are_what_postgres_keeps_of_them():
    long, kept = "x" * 70, "x" * 63
    for text in (f"create table {long} (a int)", f'create table "{long}" (a int)', f"create table {kept} (a int)"):
        assert parse(text).name.parts == (kept,)
    assert parse(f'create table "{"é" * 40}" (a int)').name.parts == ("é" * 31,)
    assert parse(f'create table u&"{"!0061" * 70}" uescape \'!\' (a int)').name.parts == ("a" * 63,)


def test_dollar_quotes_are_strings():
    plan = plan_select(parse("select $$it's $1$$, $x$a $$ b$x$").ast, shop(), names())
    assert "it\\'s $1" in plan.spark_sql([]) and "a $$ b" in plan.spark_sql([])
    assert plan.params == {}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("select 1; select 2;", ["select 1", "select 2"]),
        (";; select ';' -- a;b\n ;", ["select ';'"]),
        ("", []),
        ("-- nothing", []),
        ("show tables; select $$;$$", ["show tables", "select $$;$$"]),
        ("select 'unterminated; select 2", ["select 'unterminated; select 2"]),
    ],
)
def test_split(text, wanted):
    assert split(text) == wanted


def test_a_statement_is_bounded():
    with pytest.raises(InvalidUsage) as caught:
        parse("select '" + "x" * (1 << 20) + "'")
    assert caught.value.sqlstate == "54000"
    with pytest.raises(InvalidUsage) as caught:
        parse("select " + "(" * 5000 + "1" + ")" * 5000)
    assert caught.value.sqlstate in ("54001", "42601")


WORDS = (
    "select from where group by order limit offset having distinct on join left using union all except values with as "
    "in is not null and or case when then else end exists any between like cast create table view materialized source "
    "index drop insert into default if cascade explain show set items orders id name price stock sold ok day at weight "
    "note u1 count sum avg min max coalesce extract epoch interval lateral over partition rows filter within recursive "
    "( ) , . ; :: + - * / % || = <> < > ~ $1 $2 1 2.5 'a' '1' '2024-01-01' \"id\" * int text date array [ ]"
).split()


@settings(max_examples=200, deadline=None)
@given(some.lists(some.sampled_from(WORDS), max_size=16))
def test_no_statement_raises_but_for_its_user(words):
    image = shop()
    for text in (" ".join(words), "select " + " ".join(words), "select id from items where " + " ".join(words)):
        split(text)
        try:
            statement = parse(text)
            if isinstance(statement, st.Query):
                plan = plan_select(statement.ast, image, names())
                if plan.kind != "catalog":
                    plan.spark_sql([None] * len(plan.params))
            elif isinstance(statement, st.Insert):
                plan_insert(statement, image, names())
            elif isinstance(statement, st.DDL):
                plan_ddl(statement, image, names())
        except TidemarkError as error:
            assert len(error.sqlstate) == 5 and error.message


@settings(max_examples=200, deadline=None)
@given(some.text(max_size=40))
def test_no_text_raises_but_for_its_user(text):
    split(text)
    try:
        parse(text)
    except TidemarkError as error:
        assert len(error.sqlstate) == 5


SAID = [
    line[2:]
    for story in sorted((Path(__file__).parent / "stories").glob("*.txt"))
    for line in story.read_text().splitlines()
    if line.startswith("> ")
]


@settings(max_examples=250, deadline=None)
@given(some.sampled_from(SAID), some.lists(some.tuples(some.integers(0, 60), some.sampled_from(WORDS)), max_size=4))
def test_no_mutilated_statement_raises_but_for_its_user(text, changes):
    pieces = re.findall(r"'[^']*'|\"[^\"]*\"|\$?\w+|\S", text)
    for at, word in changes:
        at %= len(pieces)
        if word in ("(", ")"):
            pieces.insert(at, word)
        else:
            pieces[at] = word
    try:
        tell(" ".join(pieces), shop(), False)
    except AssertionError as error:
        raise AssertionError(" ".join(pieces)) from error


CUT = sorted({said for said in SAID if not re.match(r"(?i)\(*(select|values|with|table)\b", said)})


def test_a_statement_that_breaks_off_anywhere_is_refused_or_whole():
    """Whoever reads the next token may find that there is none."""
    for text in CUT:
        for token in tokenize(text):
            try:
                parse(text[: token.start])
            except TidemarkError:
                pass


def test_reset():
    """What asyncpg's pool sends when a connection comes back; sqlglot swallows what is behind RESET."""
    assert parse("RESET ALL") == st.ResetAll()
    assert parse("reset time zone;") == st.SetVariable("timezone", None)
    assert parse("reset extra_float_digits") == st.SetVariable("extra_float_digits", None)
