"""Lists of plain values that are read without the parser: what is planned must be what the parser's way gives."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as some
from sqlglot import exp

from journal.errors import TidemarkError
from sql.statements import insert
from sql.statements.insert import plan_insert
from sql.syntax import parse as parsing
from sql.syntax.dialect import DIALECT
from sql.syntax.parse import parse
from sql.syntax.to_tree import parse_tokens
from tests.sql.doubles import ddl, empty_image, names
from values.types import parse_type

IMAGE = ddl(
    empty_image(),
    "create table t (a int, b bigint not null, c text default 'd', d numeric(6,2), e double precision, f boolean, "
    "g varchar(4), h date, i smallint, j real, k timestamptz default now(), l uuid, m jsonb, n numeric, o char(3))",
)
COLUMNS = "abcdefghijklmno"

NUMBERS = (
    "0", "-1", "7", "32768", "-32768", "2147483648", "-2147483648", "9223372036854775808", "1.5", "-2.345",
    "9999.995", "1" * 31, "0.1", "123456789012345678901234567890",
)  # fmt: skip
TYPES = (
    "int", "INTEGER", "BIGINT", "smallint", "text", "VARCHAR", "varchar(3)", "NUMERIC", "numeric(6, 2)", "numeric(3,1)",
    "float", "double precision", "real", "boolean", "date", "timestamp with time zone", "uuid",
    "jsonb", "nothing", "char(3)",
)  # fmt: skip
CELLS = some.one_of(
    some.sampled_from(NUMBERS),
    some.sampled_from(
        ("null", "NULL", "true", "False", "default", "DEFAULT", "'1'", "'it''s'", "''", "'2024-01-01'", "' 5 '")
    ),
    some.sampled_from(
        ("$1", "$2", "$0", "$65536", "now()", "1+1", "- 1", "--1\n1", "(1)", "e'\\x'", "1e3", "$1 :: int", "'a' 'b'")
    ),
    some.builds("${}::{}".format, some.integers(1, 3), some.sampled_from(TYPES)),
)  # fmt: skip
DECLARED = some.dictionaries(
    some.integers(1, 3), some.sampled_from(("int2", "int4", "int8", "text", "numeric", "bool", "date"))
)


def told(text, declared, monkeypatch, plain):
    with monkeypatch.context() as patched:
        if not plain:
            patched.setattr(parsing, "read_values", lambda text: None)
        try:
            plan = plan_insert(parse(text), IMAGE, names(), {n: parse_type(each) for n, each in declared.items()})
        except TidemarkError as error:
            return "refused", error.sqlstate, error.message, error.detail, error.hint, error.position
    return plan.table, plan.params, plan.rows


def alike(fast, slow):
    """A parameter that is only checked stands for the tree that casts it, and for nothing else."""
    assert fast[:2] == slow[:2]
    if fast[0] == "refused":
        assert fast == slow
        return
    for ours, theirs in zip(fast[2], slow[2], strict=True):
        for mine, other in zip(ours, theirs, strict=True):
            if mine.param is not None and other.tree is not None:
                assert [int(p.this.this) for p in other.tree.find_all(exp.Parameter)] == [mine.param]
            else:
                assert mine == other and type(mine.value) is type(other.value)


@settings(max_examples=150, deadline=None)
@given(
    some.lists(some.sampled_from(COLUMNS), min_size=1, max_size=4, unique=True),
    some.lists(some.lists(CELLS, min_size=1, max_size=4), min_size=1, max_size=3),
    some.booleans(),
    some.sampled_from(("", ";", " ; ", " returning a", " on conflict do nothing", " x")),
    DECLARED,
)
@example(["a"], [["1"]], True, "", {})
@example(["d", "b"], [["$1::NUMERIC", "$2::BIGINT"], ["$1::int", "-9223372036854775808"]], True, "", {1: "int2"})
def test_a_plain_list_is_planned_as_the_parser_would(columns, rows, listed, rest, declared):
    head = "insert into t" + (f" ({', '.join(columns)})" if listed else "")
    text = f"{head} values {', '.join('(' + ', '.join(row) + ')' for row in rows)}{rest}"
    patch = pytest.MonkeyPatch()
    alike(told(text, declared, patch, True), told(text, declared, patch, False))


@pytest.mark.parametrize(
    "text",
    ["insert into never_said values ($1)", "INSERT  INTO never.said (a, \"b\")VALUES(1,'x;'),\n(null,$2::varchar);"],
)
def test_plain_lists_reach_no_tokenizer_but_for_their_head(text, monkeypatch):
    seen = []
    tokenize = DIALECT.tokenize
    monkeypatch.setattr(DIALECT, "tokenize", lambda sql: seen.append(sql) or tokenize(sql))
    parse(text)
    assert len(seen) == 1 and "values" not in seen[0].lower()


def test_planning_two_thousand_rows_parses_one_cell_of_a_kind(monkeypatch):
    parsed = []
    monkeypatch.setattr(insert, "parse_tokens", lambda *given: parsed.append(given) or parse_tokens(*given))
    cells = ",".join(
        f"(${3 * i + 1}::BIGINT, ${3 * i + 2}::VARCHAR, ${3 * i + 3}::NUMERIC(6, 2), {i}, '{i}')" for i in range(2000)
    )
    plan = plan_insert(parse(f"insert into t (b, c, d, a, e) values {cells}"), IMAGE, names(), {})
    assert len(plan.rows) == 2000 and len(plan.params) == 6000
    assert len(parsed) == 3, "one for each type that a parameter is cast to"


def test_a_subquery_among_values_reads_relations():
    """sqlsmith writes such: the column was looked for where there were no relations (42703)."""
    image = ddl(empty_image(), "create table t (id int, x text)", "create table u (id int, v text default 'd', w int)")
    for text in (
        "insert into u values (1, (select x from t limit 1), default)",
        "insert into u values (1, default, (select max(id) from t)), ('2', 'b', 3)",
        "insert into u (v, id) values (default, (select max(t.id) from t))",
    ):
        plan = plan_insert(parse(text), image, names())
        assert plan.query is not None and plan.query.kind == "peek" and len(plan.query.inputs) == 1, text
