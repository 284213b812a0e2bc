"""What cells of an INSERT are planned to by samples must be what each is planned to alone."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from journal.errors import InvalidUsage
from sql.statements import cells
from sql.statements.insert import plan_insert
from sql.syntax.parse import parse
from tests.sql.doubles import ddl, empty_image, names

IMAGE = ddl(
    empty_image(),
    "create sequence q",
    "create table t (i int, s smallint, b bigint, n numeric, m numeric(6,2), f double precision, r real, x text, "
    "v varchar(4), c char(3), d date, z timestamptz, u uuid, j jsonb, y bytea, o boolean, a int[], w time, "
    "p interval, g bigint generated always as identity, k text not null default 'k')",
)
COLUMNS = ("i", "s", "b", "n", "m", "f", "r", "x", "v", "c", "d", "z", "u", "j", "y", "o", "a", "w", "p", "g")
CELLS = (
    "{n}", "-{n}", "({n})", "{n}::int", "{n}::bigint", "{n}::smallint", "{n}::numeric", "{n}::numeric(6,2)",
    "-{n}::int", "{n}.25", "-{n}.5", "{n}.25::numeric", "{n}.5::real", "{n}::text", "'a{n}'::text",
    "'{n}'::text", "'a{n}'::varchar", "'a{n}'::varchar(3)", "'{n}'::int", "'it''s {n}'::text", "''::text",
    "'a '::text", "now()", "random()", "null::int", "null", "'{n}'", "true", "{n} > 3", "{n} + 1", "1 - {n}",
    "{n} + {n}", "abs({n})", "lower('A{n}')", "'x' || 'y{n}'", "coalesce({n}, 5)",
    "case when {n} > 2 then 1 end", "array[{n}, 2]", "array[1]::int[]", "'{{1,2}}'::int[]",
    "'2024-01-0{d}'::date", "date '2024-02-0{d}'", "'2024-01-0{d}'::text", "'2024-01-0{d}'::timestamptz",
    "current_date", "'00000000-0000-0000-0000-00000000000{d}'::uuid", "1234567890{n}", "12345678901{n}::bigint",
    "nextval('q')", "interval '{d} day'", "'{d} day'::interval", "'10:00'::time", "$1",
    "lower($1)", "{n} + $1", "abs($1)", "$1::int", "default",
    "(select 1)", "i", "{n}::int * 2", "'a{n}' = 'a'", "{n} in (1, 2)", "not true", "'{{}}'::jsonb",
    "'x'::bytea", "987600001", "-987600001::bigint", "1e{d}", "{n}::boolean", "current_timestamp", "count(*)",
    "{n}::oid", "'sample'::text",
)  # fmt: skip
NUMBERS = some.sampled_from((0, 1, 2, 3, 7, 12, 99, 32768, 70000, 999999999))


@some.composite
def inserts(draw):
    columns = draw(some.lists(some.sampled_from(COLUMNS), min_size=1, max_size=3, unique=True))
    said = [draw(some.lists(some.sampled_from(CELLS), min_size=1, max_size=2)) for _ in columns]
    rows = []
    for _ in range(draw(some.integers(4, 9))):
        row = [draw(some.sampled_from(each)).format(n=draw(NUMBERS), d=draw(some.integers(1, 9))) for each in said]
        rows.append(f"({', '.join(row)})")
    return f"insert into t ({', '.join(columns)}) values {', '.join(rows)}"


def told(text: str, cells_min: int) -> object:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(cells, "CELLS_MIN", cells_min)
        patched.setattr(cells, "SHAPE_MIN", 1)
        try:
            plan = plan_insert(parse(text), IMAGE, names())
        except InvalidUsage as error:
            return error.sqlstate, error.message, error.detail, error.hint, error.position
        rows = [[(type(slot.value), repr(slot)) for slot in row] for row in plan.rows]
        return rows, plan.params, plan.literals, plan.order, plan.query is None


@settings(max_examples=250, deadline=None)
@given(inserts())
def test_a_cell_by_samples_is_the_cell(text):
    assert told(text, 0) == told(text, 1 << 30)


def test_what_is_alike_is_planned_once(monkeypatch):
    asked = []
    learnt = cells.Cells._learnt
    monkeypatch.setattr(cells.Cells, "_learnt", lambda self, *given: asked.append(given) or learnt(self, *given))
    rows = ", ".join(f"({n}::int, 'a{n}'::text, now(), {n}.25, -{n} + 1)" for n in range(200))
    text = f"insert into t (i, x, z, m, b) values {rows}"
    by_samples = told(text, 64)
    assert len(asked) == 6  # decimals of two and of three digits
    assert by_samples == told(text, 1 << 30)


def test_every_row_has_a_call_of_its_own():
    """Which is evaluated for each row."""
    plan = plan_insert(parse(f"insert into t (f) values {', '.join(['(random())'] * 200)}"), IMAGE, names())
    slots = {id(row[5]) for row in plan.rows}
    assert len(slots) == len({id(row[5].tree) for row in plan.rows}) == 200
