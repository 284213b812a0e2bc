"""Rows numbered by kernels, as DuckDB numbers them: random tables with ties and NULLs, of the decided plan.  Pure.

(That Spark says the same where rows do not tie is in ``test_gears.py``.)
"""

from __future__ import annotations

import random
from collections import Counter
from decimal import Decimal

import pyarrow as pa
import pytest

from controllers.arrangements.tuples import NAN, schema_of, to_rows, to_table
from controllers.compute import windows
from controllers.compute.expressions import NotHere
from controllers.compute.operators.process import Process
from controllers.compute.operators.small import small
from controllers.compute.windows import compile_query
from plan import relations as r
from plan.codec import decode
from tests.differential.routes import planned
from tests.seeds import seed_of_commit
from tests.sql.doubles import ddl, empty_image
from values.types import carried, parse_type

COLUMNS = {"k": "int4", "x": "int8", "s": "text", "b": "bool", "n": "numeric(12,3)", "d": "date", "ts": "timestamptz",
           "f": "float8", "g": "float4"}  # fmt: skip
POOL = {
    "k": [None, 1, 2, 3], "x": [None, -1, 0, 2**40], "s": [None, "", "a", "B", "ä", "b"], "b": [None, True, False],
    "n": [None, Decimal("0.000"), Decimal("-1.500"), Decimal("10.000")], "d": [None, -1, 19_000],
    "ts": [None, 0, 1_700_000_000_000_000], "f": [None, 0.0, 1.5, NAN, -2.0, float("-inf")],
    "g": [None, 0.0, NAN, float("inf"), 1.25],
}  # fmt: skip
IMAGE = ddl(empty_image(), f"create table t ({', '.join(f'{name} {kind}' for name, kind in COLUMNS.items())})")
[TABLE] = IMAGE.objects()
PROCESS = Process(patience_s=60.0)
TABLES, ROUNDS = 40, 5

KEYS = ("k", "x", "s", "b", "n", "d", "ts", "f", "g", "k + 1", "coalesce(k, 2)")

LISTED = (
    "select k, max(p) n, count(*) c from (select k, row_number() over (partition by k order by x desc, s) p from t) q "
    "group by k",
    "select k, s, p from (select k, s, row_number() over (partition by k order by n) p from t) q where p <= 2",
    "select row_number() over (), rank() over (), dense_rank() over () from t",
    "select k, p, sum(k) a, min(d) b, max(ts) c, count(s) e from (select *, rank() over (order by s) p from t) q "
    "group by k, p",
    "select x, rank() over (partition by k, b order by n desc, d nulls first), row_number() over (order by ts) from t "
    "where k > 1 or s is null",
)


def rows_of(draw: random.Random) -> pa.Table:
    rows = [tuple(draw.choice(POOL[name]) for name in COLUMNS) for _ in range(draw.choice((0, 1, 7, 40)))]
    rows += draw.choices(rows, k=draw.randrange(4)) if rows else []
    cut = draw.randrange(len(rows) + 1)  # what a tick reads is in several chunks
    schema = schema_of([parse_type(kind) for kind in COLUMNS.values()], list(COLUMNS))
    return pa.concat_tables([to_table(part, schema) for part in (rows[:cut], rows[cut:])])


def query_of(text: str) -> tuple[r.Query, list]:
    plan = planned(text, IMAGE)
    return decode(plan.plan_text(())), [carried(column.type) for column in plan.columns]


def at_random(draw: random.Random) -> str:
    def call() -> str:
        ways = ("", " desc", " nulls first", " desc nulls last", " desc nulls first")
        partition = ", ".join(draw.sample(KEYS, draw.randrange(3)))
        order = ", ".join(f"{key}{draw.choice(ways)}" for key in draw.sample(KEYS, draw.randrange(3)))
        words = f"{'partition by ' * bool(partition)}{partition} {'order by ' * bool(order)}{order}"
        return f"{draw.choice(sorted(windows.NUMBERS))}() over ({words})"

    calls = ", ".join(f"{call()} as c{n}" for n in range(draw.randrange(1, 4)))
    while calls.count("row_number") > 1:  # of equal rows an engine chooses then
        calls = calls.replace("row_number", "rank", 1)
    return f"select k, s, x, {calls} from t"


def differs(text: str, table: pa.Table) -> bool:
    """Whether the two give different rows."""
    query, types = query_of(text)
    tables = {TABLE.id: table}
    asked = small(query)
    assert not isinstance(asked, str), asked
    wanted, found = PROCESS.rows(asked, types, tables), compile_query(query).run(tables)
    assert [field.type for field in found.schema] == [field.type for field in wanted.schema], text
    return Counter(map(repr, to_rows(found))) != Counter(map(repr, to_rows(wanted)))


def test_what_is_numbered_by_kernels_is_what_duckdb_numbers():
    draw = random.Random(seed_of_commit())
    for text in LISTED:
        for _ in range(ROUNDS):
            table = rows_of(draw)
            assert not differs(text, table), (text, to_rows(table))
    for _ in range(TABLES):
        text, table = at_random(draw), rows_of(draw)
        assert not differs(text, table), (text, to_rows(table))


@pytest.mark.parametrize("name, wrong", [
    ("_places", lambda column, way, nulls, right=windows._places: right(column, way, "at_end")),
    ("_places", lambda column, way, nulls, right=windows._places: right(column, "ascending", nulls)),
    ("_numbered", lambda name, *rest, right=windows._numbered: right("rank", *rest)),
    ("_numbered", lambda name, rows, codes, parts, right=windows._numbered: right(name, rows, codes, 0)),
])  # fmt: skip
def test_rows_that_are_numbered_wrongly_are_found(monkeypatch, name, wrong):
    monkeypatch.setattr(windows, name, wrong)
    draw = random.Random(1)
    assert any(differs(at_random(draw), rows_of(draw)) for _ in range(TABLES))


@pytest.mark.parametrize("text", [
    "select k, count(*) from t group by k",  # its changes keep it
    "select k, max(f) from (select k, f, rank() over (order by k) p from t) q group by k",
    "select row_number() over (order by k), row_number() over (order by k desc) from t",
    "select lag(x) over (order by k) from t",
    "select sum(x) over (partition by k) from t",
    "select count(*) from (select row_number() over () from t) q",  # one row of no rows
    "select k, sum(n) from (select k, n, rank() over (order by k) p from t) q group by k",
    "select k, count(distinct s) from (select k, s, rank() over (order by k) p from t) q group by k",
    "select k, count(*) filter (where p > 1) from (select k, rank() over (order by k) p from t) q group by rollup (k)",
])  # fmt: skip
def test_what_is_not_plain_is_left_to_an_engine(text: str):
    with pytest.raises(NotHere):
        compile_query(query_of(text)[0])


def test_what_is_much_is_left_to_an_engine(monkeypatch):
    table = rows_of(random.Random(2))
    monkeypatch.setattr(windows, "ROWS_MAX", max(table.num_rows - 1, 0))
    if not table.num_rows:
        table = pa.concat_tables([table, *[rows_of(random.Random(n)) for n in range(9)]])
    with pytest.raises(NotHere, match="more rows"):
        compile_query(query_of(LISTED[2])[0]).run({TABLE.id: table})
