"""MERGE as it is written: what is wrong in it is told where it stands, as PostgreSQL 15 tells it."""

from __future__ import annotations

import pytest

from journal.errors import InvalidUsage
from sql.statements.writing import plan_statement
from sql.syntax.parse import parse
from tests.sql.doubles import ddl, empty_image, names

IMAGE = ddl(empty_image(), "create table m (k int, v text, n int default 7)", "create table s (k int, v text, n int)")


@pytest.mark.parametrize(("behind", "sqlstate", "at"), [
    ("m.k = s.kk when matched then delete", "42703", "s.kk"),
    ("k = s.k when matched then delete", "42702", "k = s.k"),
    ("m.k = s.k when matched then update set nope = 1", "42703", "nope"),
    ("m.k = s.k when matched then update set n = 1 when matched and m.n = 2 then delete", "42601", None),
    ("m.k = s.k when matched and m.n = 2 then delete when matched then update set v = nope", "42703", "nope"),
    ("m.k = s.k when matched then update set v = (select nope from s)", "42703", "nope"),
    ("m.k = s.k when matched then update set v = s.k + 'x'", "22P02", "'x'"),
    ("m.k = s.k when matched and q.z then delete", "42P01", "q.z"),
    ("m.k = s.k when matched and 5 then delete", "42804", "5"),
    ("m.k = s.k when matched then update set v = when matched then delete", "42601", "when matched then delete"),
    ("m.k = s.k when matched then update set v = case when m.n > 1 then s.v end where true", "42601", "where"),
    ("m.k = s.k when matched then delete returning 1", "42601", "returning"),
    ("m.k = s.k when not matched and m.k > 1 then insert (k) values (s.k)", "42P01", "m.k > 1"),
    ("m.k = s.k when not matched then insert (k) values (m.k)", "42P01", "m.k)"),
    ("m.k = s.k when not matched then insert (k) select 1", "42601", "select"),
    ("m.k = s.k when not matched then insert values (nosuch(s.k))", "42883", "nosuch"),
    ("m.k = s.k when not matched then insert values (s.k, default, s.n + default)", "42601", "default)"),
    ("m.k = s.k when foo", "42601", "foo"),
])  # fmt: skip
def test_what_is_wrong_is_told_where_it_stands(behind, sqlstate, at):
    text = f"merge into m using s on {behind}"
    for said in (text, f"with q as (select 1), w as (insert into s values (1) returning k) {text}"):
        with pytest.raises(InvalidUsage) as caught:
            plan_statement(parse(said), IMAGE, names(), {})
        position = None if at is None else said.index(at, said.index(behind)) + 1
        assert (caught.value.sqlstate, caught.value.position) == (sqlstate, position), caught.value.message


def test_each_clause_is_planned_of_the_rows_that_none_before_it_is_for():
    merge = parse(
        "with q as (select 1 as k), r as (select 2 as k) merge into m using q on m.k = q.k and m.n = $2 "
        "when matched and m.n > $1 then update set v = 'a' when matched then delete "
        "when not matched then insert values (q.k, default)"
    )
    told = {part.name: part.statement for part in merge.parts}
    assert [each.tag for each in told.values() if each] == ["UPDATE", "DELETE", "INSERT", "SELECT"]
    first, second = (told[name].rows for name in ("?when 1", "?when 2"))
    assert "NOT (m.n > $1) IS TRUE" in second.sql("postgres") and "NOT" not in first.sql("postgres")
    assert [cte.alias for cte in first.ctes] == ["q"]
    assert [part.numbers for part in merge.parts[2:]] == [(1, 2), (1, 2), (2,), (1, 2)]
    assert told["?when 3"].left == {1}
