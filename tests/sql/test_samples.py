"""What is planned by samples must be what is planned of the statement as it is written, to the last word."""

from __future__ import annotations

import re
from itertools import count

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as some

from journal.errors import InvalidUsage
from sql.statements import samples, select
from sql.statements.select import plan_query, plan_select
from sql.syntax import stretches
from sql.syntax.parse import parse
from tests.sql.doubles import ddl, empty_image, names
from trees import budget
from trees.unwritten import Unwritten

IMAGE = ddl(
    empty_image(),
    "create table t (i int, s smallint, b bigint, n numeric, m numeric(6,2), f double precision, r real, x text, "
    "v varchar(4), c char(3), d date, z timestamptz, u uuid, j jsonb, y bytea, o boolean, a int[])",
    "create table w (i int, x text)",
    "create index on w (i)",
)
COLUMNS = some.sampled_from((*"isbnmfrxvcdzujyoa", "t.i", '"x"', "nothing"))
NUMBERS = some.sampled_from(
    ("0", "1", "7", "-3", "32768", "999999999", "2147483648", "-2147483649", "1.5", "-0.25", "0.00", "12.50", "100.0",
     "987600001", "1e3", "99999999999999999999")
)  # fmt: skip
TEXTS = some.sampled_from(
    ("'x'", "'it''s'", "'abc '", "''", "' '", "'1'", "'2024-01-01'", "'{}'", "'\\x41'", "'true'", "'sample 987600001'",
     "'00000000-0000-0000-0000-000000000000'", "'2024-01-01 00:00+02'", "'{1}'", "'é'")
)  # fmt: skip
DATES = some.sampled_from(
    ("'2024-01-01'", "'2024-02-29'", "'2023-02-29'", "'0001-01-01'", "'9999-12-31'", "'1999-12-01'", "'2024-13-01'",
     "date '2024-01-01'", "date '2024-03-31'", "'2024-01-01'::date", "'2024-07-01'::timestamptz", "'0000-01-01'",
     "'infinity'", "date 'epoch'", "'20240101'")
)  # fmt: skip
UUIDS = some.sampled_from(
    ("'00000000-0000-0000-0000-000000000000'", "'3ade6a31-0000-4000-8000-00003ade6a31'",
     "'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'", "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", "'{}'",
     "'a0eebc999c0b4ef8bb6d6bb9bd380a11'", "'00000000-0000-0000-0000-000000000001'::uuid")
)  # fmt: skip
CASTS = some.sampled_from(
    ("1::int", "70000::int", "3::smallint", "70000::smallint", "5::bigint", "12345678901::bigint", "7::numeric",
     "7::numeric(3,1)", "123456::numeric(3,1)", "1::real", "16777217::real", "2::double precision", "'a'::text",
     "'abcdef'::varchar(4)", "'ab'::char(3)", "'xyz'::char(3)", "'abc'::bpchar", "'5'::int", "1.5::int", "0::boolean",
     "1::boolean", "4::text", "'x'::bytea", "-3::int", "12345678901", "123456789012345678", "$?::int", "$?::date")
)  # fmt: skip
PARAMETERS = some.sampled_from(("$?", "$?", "$?", "$1", "$?::int"))
PATTERNS = some.sampled_from(("'x%'", "'_'", "'%'", "'a\\%b'", "'a\\'", "'100\\\\'", "'x'", "''", "$?"))
VALUES = some.integers(0, 11).flatmap(
    lambda n: some.sampled_from(("null", "true", "$1", "now()", "(1)", "1 + 1", "i", "abs(3)", "lower('X')")) if n == 0
    else NUMBERS if n < 7 else TEXTS
)  # fmt: skip
KINDS = some.sampled_from((NUMBERS, TEXTS, VALUES, DATES, UUIDS, CASTS, PARAMETERS))
FORMS = some.sampled_from(
    ("{a} {s} {v}", "{a} {s} {v}", "{v} {s} {a}", "({a} {s} {v} and {b} = {w})", "{a} = {v} and o", "not {a} {s} {v}",
     "not ({a} {s} {v} and {b} = {w})", "{a} between {v} and {w}", "{a} not between symmetric {v} and {w}",
     "({a} > {v} or {a} = {v} and {b} {s} {w})", "{a} in ({v}, {w})", "{a} not in ({v})", "{a} + {v} {s} {w}",
     "{a} - {v} > 3", "abs({a}) {s} {v}", "lower(x) {s} {v}", "coalesce({a}, {v}) {s} {w}", "{a} is distinct from {v}",
     "({a} {s} {v}) is true", "{a} % 3 = {v}", "i * 2 {s} {v}", "x || {v} = 'y'", "{a} = {v}::text",
     "{a} is null and {b} {s} {v}", "a[1] {s} {v}", "j ->> 'k' = {v}", "{a} > now() - interval '1 day' and {b} = {v}",
     "case when {a} {s} {v} then o else {b} = {w} end", "{a} = (select {v})", "{v} = any (a)", "x {l}", "x {l} and o")
)  # fmt: skip
SIGNS = some.sampled_from(("=", "=", "<>", "<", ">="))


@some.composite
def terms(draw):
    """Of few moulds."""
    made = []
    for _ in range(draw(some.integers(1, 2))):
        column, other, sign, form, values = draw(COLUMNS), draw(COLUMNS), draw(SIGNS), draw(FORMS), draw(KINDS)
        like = draw(some.sampled_from(("like", "not like", "ilike")))
        for _ in range(draw(some.integers(3, 6))):
            matched = f"{like} {draw(PATTERNS)}"
            made.append(form.format(a=column, b=other, s=sign, v=draw(values), w=draw(values), l=matched))
    return draw(some.permutations(made)) if draw(some.booleans()) else made


@some.composite
def lists(draw):
    return ", ".join(draw(some.lists(draw(KINDS), min_size=3, max_size=8)))


@some.composite
def rows(draw):
    kinds = draw(some.lists(KINDS, min_size=2, max_size=3))
    return [f"({', '.join(draw(kind) for kind in kinds)})" for _ in range(draw(some.integers(3, 7)))]


CHAINS = some.builds(lambda parts, word: f" {word} ".join(parts), terms(), some.sampled_from(("or", "or", "and")))
OPERANDS = some.one_of(COLUMNS, VALUES, NUMBERS.map("({} - i)".format), some.just("abs(i)"))


@some.composite
def sums(draw):
    operands = some.sampled_from(draw(some.lists(OPERANDS, min_size=1, max_size=3)))
    operator = draw(some.sampled_from(("+", "||", "*")))
    return f" {operator} ".join(draw(some.lists(operands, min_size=5, max_size=14)))


@some.composite
def cases(draw):
    """CASE of many, and what it is if it is none of them."""
    condition = draw(some.sampled_from(("when {v} then {w}", "when {a} {s} {v} then {w}")))
    column, sign, values, results = draw(COLUMNS), draw(SIGNS), draw(KINDS), draw(KINDS)
    arms = [
        condition.format(a=column, s=sign, v=draw(values), w=draw(results)) for _ in range(draw(some.integers(3, 6)))
    ]
    operand = draw(COLUMNS) if condition.startswith("when {v}") else ""
    otherwise = draw(some.sampled_from(("", "else c", "else 'abc'", "else v", "else i", "else null")))
    return f"case {operand} {' '.join(arms)} {otherwise} end"


def numbered(text: str) -> str:
    """``text`` with parameters that stand in it once."""
    numbers = count(2 if "$1" in text else 1)
    return re.sub(r"\$\?", lambda _: f"${next(numbers)}", text)


STATEMENTS = some.one_of(
    sums().map("select {} from t".format),
    some.builds("select {} as k from t where ({}) is null or x = ({})".format, sums(), sums(), sums()),
    CHAINS.map("select i from t where {}".format),
    CHAINS.map("select i from t where not ({})".format),
    some.builds("select i from t where x = 'y' and ({}) or ({})".format, CHAINS, CHAINS),
    some.builds("select i, {} as q from t order by 2".format, CHAINS),
    some.builds("select case when {} then 1 when {} then 2 end from t".format, CHAINS, CHAINS),
    CHAINS.map("select 1 from t join (select i as k from w) q on i = k and ({})".format),
    some.builds("select i from t where {} in ({})".format, COLUMNS, lists()),
    some.builds("select i from w where i not in ({}) and i > 3".format, lists()),
    some.builds("select i from w where {}".format, some.lists(NUMBERS, min_size=3, max_size=9).map(
        lambda values: " or ".join(f"(i < {value} and x = 'k')" for value in values))),
    some.builds("select x from w where i = 4 and x <> all (array[{}])".format, lists()),
    some.builds("select {} = any (array[{}]) from t".format, COLUMNS, lists()),
    some.builds("select i from t where ({}, {}) in ({})".format, COLUMNS, COLUMNS, rows().map(", ".join)),
    some.builds("select * from (values {}) q".format, rows().map(", ".join)),
    some.builds("values {} order by 1 limit 3".format, rows().map(", ".join)),
    some.builds("select i in ({}), count(*) from t group by i in ({})".format, lists(), lists()),
    lists().map("select i in ({0}), count(*) from t group by i in ({0})".format),
    cases().map("select {} as q from t".format),
    cases().map("select i from w where ({}) = 'abc'".format),
    cases().map("select count({0}) from t group by {0}".format),
    some.builds("select coalesce({0}), greatest(i, {1}) from t".format, lists(), lists()),
    CHAINS.map("select i from w where i = $1 and ({})".format),
).map(numbered)  # fmt: skip


def told(plan) -> object:
    try:
        made = plan()
    except InvalidUsage as error:
        return error.sqlstate, error.message, error.detail, error.hint, error.position
    given = [None] * len(made.params)
    return made.spark_sql(given), made.lookup, made.columns, made.params, made.kind, made.volatile, made.inputs


def both_ways(text: str) -> tuple[object, object]:
    ast = parse(text).ast
    before = repr(ast)
    by_samples = told(lambda: plan_select(ast, IMAGE, names()))
    assert repr(ast) == before
    return by_samples, told(lambda: select._planned(ast, IMAGE, names(), None))


def unwritten_and_written(text: str) -> tuple[object, object]:
    """The plan of ``text`` by its stretches, which stay unwritten where they may, and that of the parser's tree."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(budget, "CHAIN_MIN", 3)
        ast = parse(text).ast
        written = told(lambda: select._planned(ast, IMAGE, names(), None))
        patched.setattr(stretches, "STRETCH_CHARS_MIN", 1)
        patched.setattr(stretches, "KEPT_MIN", 1)
        patched.setattr(stretches, "ALIKE_MIN", 0)
        query = parse(text)
        unwritten = told(lambda: plan_query(query, IMAGE, names()))
        assert repr(query.ast) == repr(ast)
        return unwritten, written


def planned_alike(text, plans) -> None:
    """Both of ``plans(text)`` are one, where three of a kind are many already."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(samples, "LIST_MIN", 3)
        patched.setattr(samples, "SIGNS_MIN", 3)
        patched.setattr(samples, "SHAPE_MIN", 3)
        try:
            parse(text)
        except InvalidUsage:
            return
        one, other = plans(text)
        assert one == other


@settings(max_examples=250, deadline=None)  # others are drawn each time
@given(STATEMENTS)
@example("select i from t where c = 'ab' or c = 'ab ' or c = 'a' or c = 'abc'")
@example("select * from (values (1, 0.5), (2, 0.7), (3, 0.25), (4, 12.5), (5, 0.6)) q")
@example("select x || i || i || i || i || i || x || x || 1 || 2 || 3 || 4 || 5 from t")
@example("select m + m + m + m + m + m + m + m from t")
@example("select x || 'a' || 'b' || 'c' || 'd' || 'e' || 'f' || 'g' || 'h' from t where y = ''")
@example("select 1 + 2 + 3 + -2147483648 + 4 + 1 + 1 + 5 + 6 + 9223372036854775808 + 7 + 8 from t")
@example("select i + i + i + i + i + i + i + m + i + i + i + i + i from t where i + i + i + i + i + b + i + i + i > 3")
@example("select s + 1 + 1 + 1 + 1 + b + 1 + 1 + 1 from t")
@example("select i + i + i + i + i + i, i + i + i + i + i + i + i from t")
@example("select * from (values ('abc'::char(3)), ('abd'), ('abe'), ('abf')) q (a)")
@example("select array[c, 'abd', 'abc', 'abe', 'aaa'] from t")
@example("select i from t where n in (3::smallint, 4::smallint, 5::smallint)")
@example("select x from t where i < $1 or i < $2 or i < $3 or i < $4")
@example("select x from t where (i < $1 and x = $5) or (i < $2 and x = $5) or (i < $3 and x = $5)")
@example("select i from t where i < 1 or i < 987600001 or i < 987600002 or i < 2")
def test_a_plan_by_samples_is_the_plan(text):
    planned_alike(text, both_ways)


@settings(max_examples=120, deadline=None)
@given(STATEMENTS)
@example("select i from t where (i, x) in ((1, 'a'), (2, 'b'), ((3), 'c'), (4, 'd'), (5, 'e'))")
@example("select i from w where " + " or ".join(f"(i = {n} and x = 'k')" for n in range(5)))
@example("select i from w where i = -1 or i = 2 or i = 3 or i = 4 or i = 5 or i = 6")
@example("select x from t where (i < $1 and x = $5) or (i < $2 and x = $5) or (i < $3 and x = $5)")
@example("select i from t where i < 1 or i < 987600001 or i < 987600002 or i < 2 or i < 3")
def test_what_stays_unwritten_is_planned_as_it_is_written(text):
    planned_alike(text, unwritten_and_written)


ALIKE = {
    "or": " or ".join(f"i < {n}" for n in range(200)),
    "pairs": " or ".join(f"(i = {n} and x = 'x{n}')" for n in range(200)),
    "two moulds": " or ".join(f"i < {n} or b > -{n}" for n in range(200)),
    "and": " and ".join(f"i <> {n} and x <> '{n}'" for n in range(100)),
    "in": f"i in ({', '.join(map(str, range(200)))})",
    "not in": f"x not in ({', '.join(repr(str(n)) for n in range(200))})",
    "decimals": f"m in ({', '.join(f'{n}.25' for n in range(200))})",
    "rows in": f"(i, x) in ({', '.join(f'({n}, {str(n)!r})' for n in range(200))})",
    "any": f"b = any (array[{', '.join(map(str, range(200)))}])",
    "odd ones": f"i in (3000000000, {', '.join(map(str, range(200)))}, 2.5, null)",
    "below another": "x = 'q' and (" + " or ".join(f"i > {n}" for n in range(200)) + ")",
}


@pytest.mark.parametrize("kind", [kind for kind in ALIKE if kind != "and"])  # which means two lists
def test_what_is_alike_is_not_written_out(kind):
    query = parse(f"select i from t where {ALIKE[kind]}")
    assert isinstance(query.tree, Unwritten) and query.tree.kept == 1
    by_samples = told(lambda: plan_query(query, IMAGE, names()))
    assert by_samples == told(lambda: plan_query(query, IMAGE, names()))
    assert "written" not in vars(query.tree)
    assert by_samples == told(lambda: select._planned(query.ast, IMAGE, names(), None))


@pytest.mark.parametrize("kind", ALIKE)
@pytest.mark.parametrize("table", ["t", "w"])
def test_what_is_alike_is_planned_once(kind, table, monkeypatch):
    text = f"select i from {table} where {ALIKE[kind]}"
    if table == "w":
        text = text.replace(" b ", " i ").replace(" m ", " i ")
    asked = []
    planned = select._planned
    monkeypatch.setattr(select, "_planned", lambda ast, *rest: asked.append(ast) or planned(ast, *rest))
    by_samples, written = both_ways(text)
    assert by_samples == written
    assert len(asked) == 2 and len(list(asked[0].walk())) < 120, [len(list(each.walk())) for each in asked]


def test_rows_of_values_are_planned_by_samples(monkeypatch):
    rows = ", ".join(f"({n}, 'x{n}', {n}.5, null)" if n % 3 else f"({n}, null, 0.{n}, true)" for n in range(300))
    asked = []
    planned = select._planned
    monkeypatch.setattr(select, "_planned", lambda ast, *rest: asked.append(ast) or planned(ast, *rest))
    by_samples, written = both_ways(f"select * from (values {rows}) q (a, b, c, d) order by a")
    assert by_samples == written
    assert len(asked) == 2 and len(list(asked[0].walk())) < 200


def test_an_error_says_of_the_value_what_it_said():
    ast = parse("select i from t where " + " or ".join(f"d = '2024-01-{n + 1}'" for n in range(100))).ast
    with pytest.raises(InvalidUsage) as caught:
        plan_select(ast, IMAGE, names())
    assert caught.value.sqlstate == "22008" and "2024-01-32" in caught.value.message


@pytest.mark.parametrize("operand", ["m", "i + m", "1.5", "n", "0.5 * i", "i", "f"])
@pytest.mark.parametrize("operator", ["+", "*"])
def test_a_number_that_grows_with_each_operand_has_the_digits_that_it_has(operand, operator, monkeypatch):
    """Where a numeric is wider than 38 digits it is another thing to an engine, and nothing before says so."""
    monkeypatch.setattr(samples, "SIGNS_MIN", 40)
    chain = f" {operator} ".join([operand] * 45)
    by_samples, written = both_ways(f"select i from t where {chain} > 5")
    assert by_samples == written


def test_a_statement_is_as_large_as_it_is_written(monkeypatch):
    """A bound that its samples would keep."""
    monkeypatch.setattr(budget, "NODES_MAX", 3_000)
    items = ", ".join(map(str, range(1000)))
    image = ddl(IMAGE, f"create view many as select i from t where i in ({items})")
    for text in (
        f"with c as (select i from t where i in ({items})) select 1 from c, c d, c e, c f",
        f"select 1 from many, many e where many.i in ({items})",
    ):
        for plan in (plan_select, select._planned):
            with pytest.raises(InvalidUsage) as caught:
                plan(parse(text).ast, image, names(), None)
            assert caught.value.sqlstate == "54001"
