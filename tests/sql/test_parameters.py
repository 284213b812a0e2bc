"""``$n`` beside anything is that parameter and nothing else, and nothing else is a parameter."""

from __future__ import annotations

import re

import pytest
from sqlglot import exp

from journal.errors import InvalidUsage
from sql.statements.changes import plan_change
from sql.statements.insert import plan_insert
from sql.statements.select import plan_select
from sql.syntax.parse import parse, split
from sql.syntax.to_tree import parse_tokens
from sql.syntax.tokens import tokenize
from tests.sql.doubles import names, shop
from trees.types import TEXT

OPERATORS = "+ - * / % ^ | & # < > = <> != <= >= || << >> ~ !~ ~* !~* @> <@ && -> ->> #> #>> ? ?| ?&".split()


def read(text: str) -> exp.Expression:
    return parse_tokens(tokenize(text), text)


def numbers(tree: exp.Expression) -> list[int]:
    return sorted(int(node.this.this) for node in tree.find_all(exp.Parameter))


@pytest.mark.parametrize("op", OPERATORS)
def test_an_operator_ends_where_a_parameter_begins(op):
    """``2<$1`` was read as ``2 <@ 1``."""
    for left, right, asked in (("2", "$1", [1]), ("$1", "a", [1]), ("$1", "$2", [1, 2]), ("a", "$12", [12])):
        for gap in ("", " ", "/* $9 /* $8 */ */"):
            if gap.startswith("/") and op[-1] in "*/|":  # sqlglot has ||/ and |/ for operators, comment or not
                continue
            tree = read(f"SELECT {left}{gap}{op}{gap}{right}")
            assert numbers(tree) == asked
            plain = read(f"SELECT {left.replace('$', 'p')} {op} {right.replace('$', 'p')}")
            named = tree.transform(
                lambda n: exp.column(f"p{n.this.this}") if isinstance(n, exp.Parameter) else n
            )  # fmt: skip
            assert type(named.expressions[0].unnest()) is type(plain.expressions[0].unnest())
            assert named.sql("postgres", comments=False) == plain.sql("postgres", comments=False)


@pytest.mark.parametrize("text, asked", [
    ("SELECT -$1", [1]),
    ("SELECT $1::int, $2::text||$3", [1, 2, 3]),
    ("SELECT x[$1:$2], x[$3], ARRAY[$4,$5], ($6,$7)", [1, 2, 3, 4, 5, 6, 7]),
    ("SELECT $1IN($2), $3IS NULL", [1, 2, 3]),
    ("SELECT $1\"a\"", [1]),
    ("SELECT $1a", [1]),
    ("SELECT a$1, \"$1\", '$1', $$ $1 $$, $q$ $2 $q$, E'\\'$1' FROM b$2", []),
    ("SELECT 1 -- $1 '\n,$2", [2]),
    ("SELECT /* /* $1 */ $2 */ $3", [3]),
    ("SELECT $1,$2,$1", [1, 1, 2]),
    ("SELECT '\\'||$1", [1]),
    ("SELECT f($1) LIMIT $2 OFFSET $3", [1, 2, 3]),
    ("SELECT a IS NOT UNKNOWN, $1 IS UNKNOWN", [1]),
])  # fmt: skip
def test_what_stands_beside_it(text, asked):
    assert numbers(read(text)) == asked
    assert split(f"{text}; {text}") == [text, text]


@pytest.mark.parametrize("text, near", [
    ("SELECT $1$2", "$2"), ("SELECT 1$1", "$1"), ("SELECT $1.5", "."), ('SELECT "a"$1', "$1"), ("SELECT 1 AS $1", "$1"),
    ("SELECT a.$1", "$1"), ("SELECT * FROM $1", "$1"), ("SELECT * FROM t $1", "$1"), ("SELECT @1", "@"),
    ("SELECT :x", ":x"), ("SELECT ?", "?"), ("SELECT %(x)s", ":x"), ("SELECT \x01", "\x01"), ("SELECT $1\x02", "\x02"),
    ("SELECT 1\x01\x02", "\x01"), ("WITH $1 AS (SELECT 1) SELECT 1", "$1"), ("SELECT INTERVAL $1", "$"),
    ("SELECT INTERVAL '1' '2'", "'2'"),
])  # fmt: skip
def test_what_is_no_parameter_or_no_place_for_one(text, near):
    with pytest.raises(InvalidUsage) as caught:
        read(text)
    assert caught.value.sqlstate == "42601" and re.search(f'at or near "{re.escape(near)}"', caught.value.message)


def test_a_nul_is_no_part_of_a_statement():
    with pytest.raises(InvalidUsage, match="0x00") as caught:
        tokenize("SELECT 'a\0b'")
    assert caught.value.sqlstate == "22021" and caught.value.position == 10


def test_an_intervals_text_is_not_taken_apart():
    """``INTERVAL '$1 day'`` was read as one day."""
    for text in ("$1 day", "x 3 day", "1 day 2 hours", "${n} day", "1"):
        assert read(f"SELECT INTERVAL '{text}'").expressions[0] == exp.Interval(this=exp.Literal.string(text))


@pytest.mark.parametrize("from_", [" from items", ""])
def test_a_unit_of_date_trunc_may_be_one(from_):
    of = "sold" if from_ else "timestamptz '2024-02-03 10:00+00'"
    plan = plan_select(parse(f"select date_trunc($1, {of}){from_}").ast, shop(), names())
    assert dict(plan.params) == {1: TEXT}
    for given, written in (("Months", "'Months'"), ("mnth", "'mnth'"), (None, "NULL")):  # rows tell a unit that is none
        assert f"TM_TRUNCATED(CAST(CAST({written} AS STRING) AS STRING), " in plan.spark_sql([given])


@pytest.mark.parametrize("plan, text", [
    (plan_change, "update items set id = $1, name = $1"),
    (plan_insert, "insert into items (id, name) values ($1, $1)"),
    (plan_insert, "insert into items (id, stock) values ($1, $1)"),
])
def test_one_parameter_is_not_of_two_types(plan, text):
    """It was of the first, and the other place made of it what it could."""
    with pytest.raises(InvalidUsage, match=r"inconsistent types deduced for parameter \$1") as caught:
        plan(parse(text), shop(), names())
    assert caught.value.sqlstate == "42P08" and caught.value.detail.startswith("integer versus ")


def test_one_parameter_in_several_places_of_one_type():
    plan = plan_change(parse("update items set id = $1, stock = $2 where id = $1 or stock = $2"), shop(), names())
    assert {number: kind.name for number, kind in plan.params.items()} == {1: "int4", 2: "int8"}


def test_a_number_of_a_window_function_may_be_one():
    """NULL makes every row's result NULL; what is not above zero is refused once it is known, in no engine's words."""
    calls = "lag(id, $1) over (order by id), nth_value(id, $2) over (order by id), ntile($3) over (order by id)"
    plan = plan_select(parse(f"select {calls} from items").ast, shop(), names())
    assert "NTILE(CAST('2' AS INT))" in plan.spark_sql([2, 1, 2])
    assert plan.spark_sql([None, None, None]).count("LAG(CASE WHEN FALSE THEN `t0`.`id` END, 1)") == 2
    assert "LAG(CAST(NULL AS INT), 1)" in plan.spark_sql([1, 1, None])
    for params, sqlstate in (([1, 0, 1], "22016"), ([1, 1, -1], "22014")):
        with pytest.raises(InvalidUsage, match="must be greater than zero") as caught:
            plan.spark_sql(params)
        assert caught.value.sqlstate == sqlstate
