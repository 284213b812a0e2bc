"""Long lists and chains that are read as one token each: what is made of them must be what the parser makes."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as some
from sqlglot import exp

from journal.errors import TidemarkError
from sql.syntax import parse as parsing
from sql.syntax import statements as st
from sql.syntax import stretches
from sql.syntax.parse import parse, split
from trees import budget

VALUES = some.sampled_from(
    ("1", "-2", "0", "007", "1.5", "-0.25", "'x'", "'it''s'", "''", "'a or b = 1 or c'", "'1, 2, 3'", "'\\'", "$1",
     "$12", "null", "TRUE", "false", "'é'", "';'")
)  # fmt: skip
ODD = some.sampled_from(
    ("- 3", "--1\n2", "/* 1, 2 */ 3", "(4)", "e'\\x41'", "$$, 1, 2, $$", "$q$'$q$", "1e3", "1 + 1", "x", '"x"',
     "'a'\n'b'", "1::int", "date '2020-01-01'", "u&'\\0041'", "b'1'", "(1, 2)", "(select 1)", "now()", ".5", "5.",
     "1_0", "'open", "", "array[1, 2]", "interval '1' day", "fal\u017fe", "$0", "not true", "\x05",
     "99999999999999999999999", "lower('A')", "a + 1", "-(1)", "interval '1 day'", "interval '2'", "interval '3' hour",
     "array[1, 2]", "(array[1, 2])[1]", "j -> 1", "j ->> 'a'", "1::numeric(4, 1)", "7::numeric(10, 2)", "'x'::char(3)",
     "numeric '1'", "substring('abc', 2)", "extract(year from a)", "date_trunc('day', a)", "to_char(a, 'YYYY')",
     "case when a = 1 then 2 when a = 3 or b then 4 end", "t.end", "t.case", "end", "case", "a b", "a as b", "1 as q",
     "a desc", "+5", "- -5", "2 - -5", "1e-5", "date'2020-01-01'", "time '10:00' at time zone 'x'", "a collate \"C\"",
     "not 1", "x.*", "*", "count(*)", "(1)", "((1, 2))", "\u00a01", "a;b", "f(1, 2, 3, 4)", "'2020-01-01'::date",
     "'[1]'", "a . 5", "'a' 'b'")
)  # fmt: skip
SPACES = some.sampled_from((" ", " ", " ", "\n", "  ", "\r\n", "\t"))
NAMES = some.sampled_from(
    ("a", "B", "t.a", "s.t.a", '"Q q"', '"q""q"', 't."a"', "é", "a$1", "current_date", "user", "order", "a.b.c.d",
     "left", "date", "interval", "x", "not", "null", "row", "value", "n" * 70, '"' + "é" * 40 + '"')
)  # fmt: skip
PLAIN = some.sampled_from(("a", "b", "t.a", '"B"', "s.t.a"))
SIGNS = some.sampled_from((" = ", "=", "<", " <> ", "!=", " >= ", " = ", "\n<\n"))


def some_of(mostly: some.SearchStrategy, seldom: some.SearchStrategy) -> some.SearchStrategy:
    return some.integers(0, 9).flatmap(lambda n: seldom if n < 2 else mostly)


def spaced(sign: str) -> some.SearchStrategy:
    return some.builds(lambda a, b: a + sign + b, SPACES, SPACES)


CELLS = some_of(VALUES, ODD)
LISTS = some.builds(lambda cells, comma: comma.join(cells), some.lists(CELLS, min_size=3, max_size=9), spaced(","))
ROWS = some.builds(
    lambda rows, comma: comma.join(f"({', '.join(row)})" for row in rows),
    some.integers(1, 3).flatmap(
        lambda n: some.lists(some.lists(CELLS, min_size=n, max_size=n), min_size=3, max_size=6)
    ),
    spaced(","),
)
COMPARED = some.builds("{}{}{}".format, some_of(PLAIN, NAMES), SIGNS, some_of(VALUES, ODD))
SAME = some.builds(
    "{}{}{}".format, some.just("a"), some.sampled_from((" = ", "<>")), some.sampled_from(("1", "-2", "3"))
)
TERMS = some_of(
    some.one_of(
        COMPARED,
        SAME,
        COMPARED.map("({})".format),
        some.builds("{} and {}".format, COMPARED, COMPARED),
        some.builds("({} AND\n{} and {})".format, COMPARED, COMPARED, COMPARED),
    ),
    some.sampled_from(
        ("a", "a between 1", "not a = 1", "a is null", "(a = 1 or b = 2)", "case when a = 1", "a like 'x'", "not a < 2",
         "a between 1 and 2", "a not between symmetric 2 and b", "a between 3 and 4 and b = 5", "a in (1, 2)",
         "a in (3, 4)", "a not in (select 1)", "a like 'y%'", "a not ilike 'z'", "a is distinct from 2", "a::int = 5",
         "a = 7::bigint", "(a > 1 or b = 2)", "(a > 3 or (a = 3 and b > 4))", "abs(a) = 3", "a similar to 'x'",
         "j -> 2 = 'x'", "a > interval '1 day'", "a > interval '2' day", "a = date '2020-01-01'",
         "d < '2020-01-02'::date",
         "exists (select 1 or 2)", "case when a or b then c end", "a = any (array[1, 2])", "a = 1 is true", "a < -3",
         "a <-4", "3 = a", "'x' = a", "a = $1 or b = $2", "(a, b) = (1, 2)", "a % 2 = 1", "row(1, 2) = a", "a from t",
         "a = 1 group by a", "a = 'it''s' 'x'", "a escape 'x'", "a like 'x' escape '!'", "b'1' = a", "a = 1 -- or\n")
    ),
)
CHAINS = some.builds(
    lambda terms, word: word.join(terms), some.lists(TERMS, min_size=3, max_size=8),
    some.sampled_from((" or ", " OR\n", " and ", "\nAnd ")),
) | some.builds(lambda terms, word: word.join(terms), some.lists(SAME, min_size=3, max_size=8),
                some.sampled_from((" or ", " and ", ")or(")))  # fmt: skip
ARMS = some.lists(some.builds("when {} then {}".format, TERMS, CELLS), min_size=3, max_size=7).map(" ".join)
STATEMENTS = some.one_of(
    some.builds("select case {} {} else {} end from t".format, some_of(some.just(""), PLAIN), ARMS, CELLS),
    some.builds("select case a when 1 then 2 when case {} end then 3 {} end from t".format, ARMS, ARMS),
    some.builds("select a from t where a in ({})".format, LISTS),
    some.builds("select a from t where (a, b) not in ({}) -- it's".format, ROWS),
    some.builds("select a from t where ({}) = 1 /* , 1 */".format, CHAINS),
    some.builds("select {} from t".format, LISTS),
    some.builds("select a from t order by {}".format, LISTS),
    some.builds("select array[{}], coalesce({})".format, LISTS, LISTS),
    some.builds("values {}".format, ROWS),
    some.builds("values {}".format, LISTS),
    some.builds("with c as (values {}) select * from c".format, ROWS),
    some.builds("select * from t where a in (values {}) or exists (values {})".format, ROWS, ROWS),
    some.builds("select * from t, lateral (values {}) v (a) union (values {})".format, ROWS, ROWS),
    some.builds("with c as (select a from t where {}) select array(values {}) from c join t on {}".format,
                CHAINS, ROWS, CHAINS),
    some.builds("select * from (values {}) v (a, b) limit 1".format, ROWS),
    some.builds("insert into t values {}, (1 + 1)".format, ROWS),
    some.builds("create view v as select a from t where {}".format, CHAINS),
    some.builds("explain select a from t where {} order by 1".format, CHAINS),
    some.builds("select a from t where a = 1 or {} and a = 2 or a = 3".format, CHAINS),
    some.builds("select a from t where a between 1 and {} and a <> 2 and a <> 3".format, CHAINS),
    some.builds("select case when {} then 1 when {} then 2 end from t".format, CHAINS, CHAINS),
    some.builds("select 'it''s', \"{}\", '{}'".format, CHAINS, LISTS),
    some.builds("{}".format, CHAINS),
)


def said(value: object) -> object:
    """All that a tree says, the places of its words too."""
    if isinstance(value, exp.Expression):
        args = {key: said(each) for key, each in value.args.items() if each not in (None, [])}
        return type(value).__name__, dict(value.meta), args
    return [said(each) for each in value] if isinstance(value, list) else value


def told(text: str, chars: int, monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.setattr(stretches, "STRETCH_CHARS_MIN", chars)
    try:
        statement = parse(text)
    except TidemarkError as error:
        return "refused", error.sqlstate, error.message, error.detail, error.hint, error.position
    inner = statement.statement if isinstance(statement, st.Explain) else statement
    whole = {"ast": inner.ast, "text": inner.text} if isinstance(inner, st.Query) else vars(inner)
    return type(statement), {key: said(each) for key, each in whole.items()}


@settings(max_examples=200, deadline=None)
@given(STATEMENTS)
@example("select a from t where a between 1 and a <> 2 and a <> 3 and a <> 4 and a <> 5")
@example("select a from t where a<-1 or a<-1 or a<-1")
@example("with c as (values (1), (2), (3), (4)) select * from c")
@example("select a from t where a = 1 or a = 2 or a = 3 or a = 4 union select 1")
@example("select a from t where a in (1, /* , 2, 3, /* , 4, */ 5, */ 6, 7, 8)")
@example("select 1 --, 2, 3, 4\n, 2 from t where color = 1 or a = 2 or a = 3")
@example("select \x05 from t where a in (1, 2, 3)")
@example("select a from t where a = 1 or false = 2 or null = 3 or a = 4")
@example("explain select 1 where a < 1 or a < 2 or a < 3; select 1 where a < 1 or a < 2 or a < 3")
@example("select a from t where a = 1 or(a = 2)or(b = 3)or(a = 4)or(c = 5)")
@example("select a from t where ((a = 1) or (a = 2) or (a = 3) or (a = 4) or (a = 5)) is true")
@example("select a from t where a in ('x', 'y', 'two\n lines', 'of\n\nthree') or a = 1")
def test_what_is_read_by_stretches_is_what_the_parser_reads(text):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(budget, "CHAIN_MIN", 3)
        patched.setattr(stretches, "ALIKE_MIN", 0)
        plain = told(text, 1 << 30, patched)
        assert told(text, 1, patched) == plain
        patched.setattr(stretches, "KEPT_MIN", 1)
        assert told(text, 1, patched) == plain
        patched.setattr(stretches, "STRETCH_CHARS_MIN", 1)
        by_stretches = split(text + " ; select 2")
        patched.setattr(stretches, "STRETCH_CHARS_MIN", 1 << 30)
        assert by_stretches == split(text + " ; select 2")


LONG = {
    "case": "select case " + " ".join(f"when a = {n} and b then 'x{n}'" for n in range(100)) + " else 'y' end from t",
    "case of one": "select case a " + " ".join(f"when {n} then {n}.5" for n in range(100)) + " end from t",
    "list": "select a from t where a in (" + ", ".join(map(str, range(100))) + ")",
    "rows": "select a from t where (a, b) in (" + ", ".join(f"({n}, '{n}')" for n in range(100)) + ")",
    "values": "select * from (values " + ",\n".join(f"({n}, '{n}', null)" for n in range(100)) + ") v (a, b, c)",
    "array": "select a from t where a = any (array[" + ",".join(f"${n + 1}" for n in range(100)) + "])",
    "or": "select a from t where " + " or ".join(f"a = {n}" for n in range(100)),
    "or not": "select a from t where not (" + " or ".join(f"(a = {n})" for n in range(100)) + ")",
    "and": "select a from t where " + " and ".join(f"t.a <> 'x{n}'" for n in range(100)),
    "pairs": "select a from t where " + " OR ".join(f'(a = {n} AND "B" = {n})' for n in range(100)),
    "is distinct": "select a from t where " + " or ".join(f"a is distinct from {n}" for n in range(100)),
    "not": "select a from t where " + " or ".join(f"not (a like 'x{n}' and b between {n} and 7)" for n in range(100)),
    "less": "select a from t where " + " or ".join(f"a < {n}" for n in range(100)),
}


@pytest.mark.parametrize("kind", LONG)
def test_long_ones_are_read_by_few_tokens(kind, monkeypatch):
    text = LONG[kind]
    asked = []
    monkeypatch.setattr(parsing, "tokenize", lambda *a, **k: asked.append(parsing_tokenize(*a, **k)) or asked[-1])
    parsing_tokenize = long_tokens
    fast = told(text, stretches.STRETCH_CHARS_MIN, monkeypatch)
    assert [len(each) < 60 for each in asked] == [True], "read again"
    assert fast == told(text, 1 << 30, monkeypatch)


long_tokens = parsing.tokenize


def test_an_error_behind_a_run_is_where_it_was():
    text = LONG["or"] + " order by nothing nothing"
    with pytest.raises(TidemarkError) as caught:
        parse(text)
    assert (caught.value.sqlstate, caught.value.position) == ("42601", text.rindex("nothing") + 1)


LIST = ", ".join(map(str, range(100)))


@pytest.mark.parametrize("text", [
    f"select $a$ $A$ , {LIST}, $a$",
    f"select $é$ , {LIST}, $É$ , {LIST}, $é$",
    f"select $+$ , {LIST}, $+$",
    f"select U&'a\\' , {LIST}, '1'",
    f"select 1 /* /* */ , {LIST}, */",
    f"select $a$ , {LIST}, $b$",
    f"/* /* */ , {LIST}, */ explain select 1",
])  # fmt: skip
def test_what_looks_like_a_run_within_a_string_or_a_comment_is_none(text, monkeypatch):
    assert told(text, 1, monkeypatch) == told(text, 1 << 30, monkeypatch)
    monkeypatch.setattr(stretches, "STRETCH_CHARS_MIN", 1)
    by_stretches = split(text)
    monkeypatch.setattr(stretches, "STRETCH_CHARS_MIN", 1 << 30)
    assert by_stretches == split(text)


def test_a_dollar_quote_keeps_what_another_tag_stands_around():
    text = f" $A$ , {LIST}, "
    [found] = parse(f"select $a${text}$a$").ast.expressions
    assert found.this == text
