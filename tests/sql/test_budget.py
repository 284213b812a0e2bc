"""What is too deep, too large or too much written out is refused as such, and what is not takes time by its length."""

from __future__ import annotations

import gc
import sys

import pytest
from sqlglot import exp

from journal.errors import InvalidUsage
from lower.duckdb.lowering import for_duckdb, text_of
from sql.statements import samples
from sql.statements.ddl import plan_ddl
from sql.statements.insert import plan_insert
from sql.statements.select import plan_select
from sql.syntax import statements as st
from sql.syntax import tokens
from sql.syntax.parse import parse
from sql.typing.keys import compared
from tests.differential.ours import Ours
from tests.sql.doubles import ddl, empty_image, names
from trees import copying, said_once
from trees.budget import DEPTH_MAX, FRAMES, OPERATORS_MAX, bounded
from values.types import SqlType

pytestmark = pytest.mark.usefixtures("little_to_collect")

IMAGE = ddl(empty_image(), "create table t (id int, a int, n text)", "create index on t (n)")


def ctes(n: int, body: str) -> str:
    parts = [f"c{i} as ({body.format('t' if i == 0 else f'c{i - 1}')})" for i in range(n)]
    return f"with {', '.join(parts)} select count(*) from c{n - 1}"


DEEP = {
    "brackets": lambda n: "select " + "(" * n + "1" + ")" * n,
    "not": lambda n: "select " + "not " * n + "true",
    "minus": lambda n: "select " + "- " * n + "1",
    "plus": lambda n: "select " + "+".join(["a"] * n) + " from t",
    "concat": lambda n: "select " + "||".join(["n"] * n) + " from t",
    "from": lambda n: "select * from " + "(select * from " * n + "t" + ") as x" * n,
    "scalar": lambda n: "select " + "(select " * n + "1" + ")" * n,
    "exists": lambda n: "select 1 from t where " + "exists (select 1 from t where " * n + "true" + ")" * n,
    "case": lambda n: "select " + "case when a = 1 then " * n + "1" + " end" * n + " from t",
    "cast": lambda n: "select n" + "::text" * n + " from t",
    "calls": lambda n: "select " + "abs(" * n + "1" + ")" * n,
    "arrays": lambda n: "select " + "array[" * n + "1" + "]" * n,
    "union": lambda n: " union all ".join(["select id from t"] * n),
    "insert": lambda n: "insert into t (id) values (" + "(" * n + "1" + ")" * n + ")",
    "view": lambda n: "create view v as select " + "(" * n + "1" + ")" * n + " as x",
    "default": lambda n: "create table d (x int default " + "(" * n + "1" + ")" * n + ")",
    "explain": lambda n: "explain select " + "(" * n + "1" + ")" * n,
}  # fmt: skip


def planned(text: str) -> str:
    """All that planning does, printing included."""
    statement = parse(text)
    statement = statement.statement if isinstance(statement, st.Explain) else statement
    if isinstance(statement, st.Query):
        plan = plan_select(statement.ast, IMAGE, names())
        return plan.spark_sql([1] * len(plan.params))
    if isinstance(statement, st.Insert):
        return str(plan_insert(statement, IMAGE, names()))
    return str(plan_ddl(statement, IMAGE, names()))


CHAINED = ("plus", "concat")


@pytest.mark.parametrize("kind", DEEP)
def test_what_is_too_deep_is_refused_as_such(kind):
    with pytest.raises(InvalidUsage) as caught:
        planned(DEEP[kind]((OPERATORS_MAX if kind in CHAINED else DEPTH_MAX) + 5))
    assert caught.value.sqlstate == "54001", caught.value.message


OPERATORS = {
    "plus": (lambda n: "+".join(["a"] * n), lambda n: [3 * n, None, -n]),
    "times": (lambda n: "*".join(["a", *["1"] * (n - 1)]), lambda n: [3, None, -1]),
    "concat": (lambda n: "||".join(["b"] * n), lambda n: ["x" * n, "y" * n, None]),
    "several": (
        lambda n: " || ".join(["b", "'.'", "a", "(a + 1)"] * (n // 4)),
        lambda n: ["x.34" * (n // 4), None, None],
    ),
    "constants": (lambda n: "+".join(map(str, range(n))), lambda n: [n * (n - 1) // 2] * 3),
    "texts": (lambda n: "||".join(f"'{i % 10}'" for i in range(n)), lambda n: ["0123456789" * (n // 10)] * 3),
}


@pytest.mark.parametrize("kind", OPERATORS)
def test_a_long_chain_of_operators_says_what_a_short_one_does(kind):
    chain, wanted = OPERATORS[kind]
    query = "SELECT {} AS c FROM (VALUES (3, 'x'), (NULL, 'y'), (-1, NULL)) AS v (a, b)"
    ours = Ours()
    for n in (60, 200):
        answer = ours.ask(query.format(chain(n)))
        assert [row[0] for row in answer.rows] == wanted(n)
    assert planned(query.format(chain(OPERATORS_MAX)))


def test_a_long_chain_of_operators_is_refused_where_a_short_one_is():
    ours = Ours()
    wanted = {"a + 2147483647": "22003", "a + b": "42883", "a + c": "42703", "b || '{}'::int": "22P02"}
    for chain, sqlstate in wanted.items():
        long = chain + " + 1" * 100 if "+" in chain else chain + " || 'x'" * 100
        answer = ours.ask(f"SELECT {long} FROM (VALUES (3, 'x')) AS v (a, b)")
        assert answer.sqlstate == sqlstate, answer


def test_a_thousand_operators_are_planned_by_samples_and_others_as_deep_as_they_are():
    assert planned("select " + "+".join(["a"] * 1000) + " from t").count(" + ") == 999
    three = [" + ".join(["a"] * 600), " || ".join(["n"] * 700), " + ".join(map(str, range(600)))]
    assert planned(f"select {', '.join(three)} from t").count(" || ") == 699
    mixed = " + ".join(["a - 1"] * (DEPTH_MAX + 5))
    within = "+".join(["a", "(" + "+".join(["a"] * 600) + ")", *["a"] * 600])
    for text in (mixed, within):
        with pytest.raises(InvalidUsage) as caught:
            planned(f"select {text} from t")
        assert caught.value.sqlstate == "54001"


@pytest.mark.parametrize("kind", [kind for kind in DEEP if kind != "arrays"])
def test_what_people_write_is_not_too_deep(kind):
    assert planned(DEEP[kind](30))


def test_it_is_refused_however_much_of_the_stack_is_taken():
    def below(frames: int) -> None:
        if frames:
            below(frames - 1)
        else:
            with pytest.raises(InvalidUsage) as caught:
                planned(DEEP["brackets"](100))
            assert caught.value.sqlstate == "54001"

    sys.setrecursionlimit(FRAMES)
    below(FRAMES - 400)


@pytest.mark.parametrize("shown", [True, False])
def test_what_a_reader_says_of_a_stack_that_is_full_is_not_what_the_user_hears(shown):
    def deeper() -> None:
        deeper()

    def reader() -> None:
        try:
            deeper()
        except RecursionError as error:
            raise InvalidUsage("no words for it", sqlstate="0A000") from (error if shown else None)

    with pytest.raises(InvalidUsage) as caught:
        bounded(reader)()
    assert (caught.value.sqlstate, caught.value.detail) == ("54001", "it is nested too deeply")


def test_what_is_refused_for_another_reason_stays_so():
    def reader() -> None:
        try:
            raise ValueError
        except ValueError as error:
            raise InvalidUsage("no words for it", sqlstate="0A000") from error

    with pytest.raises(InvalidUsage) as caught:
        bounded(reader)()
    assert caught.value.sqlstate == "0A000"


@pytest.mark.parametrize("word", ["and", "or"])
def test_long_conditions_are_balanced_and_mean_the_same(word):
    short = planned("select id from t where " + f" {word} ".join(f"a > {i}" for i in range(8)))
    text = planned("select id from t where " + f" {word} ".join(f"a > {i}" for i in range(300)))
    ask = f" {word.upper()} "
    assert text.count(ask) == 299 and text.startswith(short.split(ask)[0])
    assert [int(each.rsplit(" ", 1)[1]) for each in text.split(" WHERE ")[1].split(ask)] == list(range(300))
    rows = planned("select id from t where (id, a) in (" + ", ".join(f"({i}, {i})" for i in range(350)) + ")")
    assert rows.count(" OR ") == 349


def test_queries_that_double_what_they_read_are_refused_before_an_engine_writes_them_out():
    assert planned(ctes(20, "select * from {0}"))
    with pytest.raises(InvalidUsage) as caught:
        planned(ctes(30, "select x.id from {0} x, {0} y"))
    assert (caught.value.sqlstate, caught.value.detail) == (
        "54001", "it reads more than 1000 relations once views and WITH queries are written out"
    )  # fmt: skip
    image = IMAGE
    with pytest.raises(InvalidUsage) as caught:
        for i in range(30):
            before = "t" if i == 0 else f"v{i - 1}"
            image = ddl(image, f"create view v{i} as select x.id from {before} x, {before} y")
    assert caught.value.sqlstate == "54001"


def test_a_statement_has_so_many_words(monkeypatch):
    monkeypatch.setattr(tokens, "TOKENS_MAX", 1000)
    with pytest.raises(InvalidUsage) as caught:
        parse("select id from t where a in (" + ",".join(f"a{n}" for n in range(600)) + ")")
    assert caught.value.sqlstate == "54000"


GROWING = {
    "in": lambda n: "select id from t where a in (" + ",".join(map(str, range(n))) + ")",
    "in texts": lambda n: "select id from t where n in (" + ",".join(f"'{i}'" for i in range(n)) + ")",
    "in parameters": lambda n: "select id from t where a in (" + ",".join(f"${i + 1}" for i in range(n)) + ")",
    "or": lambda n: "select id from t where " + " or ".join(f"a = {i}" for i in range(n)),
    "columns": lambda n: "select " + ", ".join(f"a + {i} as c{i}" for i in range(n)) + " from t",
    "case": lambda n: "select case " + " ".join(f"when a = {i} then {i}" for i in range(n)) + " end from t",
    "values": lambda n: "select * from (values " + ",".join(f"({i}, 'x')" for i in range(n)) + ") v (a, b)",
    "insert": lambda n: "insert into t values " + ",".join(f"({i}, 1 + {i}, lower('X'))" for i in range(n)),
    "union": lambda n: " union all ".join(["select id from t"] * (n // 4)),
    "less": lambda n: "select id from t where " + " or ".join(f"a < {i}" for i in range(n)),
    "pairs": lambda n: "select id from t where " + " or ".join(f"(a = {i} and id = {i})" for i in range(n)),
    "not": lambda n: "select id from t where " + " or ".join(f"not (a = {i} and n like '{i}%')" for i in range(n)),
    "between": lambda n: "select id from t where " + " or ".join(f"a between {i} and $1 + {i}" for i in range(n)),
    "casts": lambda n: "select id from t where a in (" + ", ".join(f"'{i}'::int" for i in range(n)) + ")",
    "nested": lambda n: "select id from t where " + " or ".join(f"(a > {i} or (a = {i} and id > 3))" for i in range(n)),
    "rows in": lambda n: "select id from t where (a, n) in (" + ", ".join(f"({i}, '{i}')" for i in range(n)) + ")",
    "plus": lambda n: "select " + "+".join(["a"] * n) + " from t",
    "concat": lambda n: "select " + "||".join(["n"] * n) + " from t",
}  # fmt: skip
CALLED = {
    "numerics": lambda n: "select " + "+".join(["a::numeric"] * n) + " from t",
    "intervals": lambda n: "select " + "+".join(["n::interval"] * n) + " from t",
    "documents": lambda n: "select " + "||".join(["n::jsonb"] * n) + " from t",
    "arrays": lambda n: "select " + "||".join(["array[a]"] * n) + " from t",
    "items": lambda n: "select array[a] ||" + "||".join(["a"] * n) + " from t",
    "bytes": lambda n: "select " + "||".join(["n::bytea"] * n) + " from t",
}
"""Chains of which each operator is a call of what is before it: engines take stack for each, and few are refused."""


def steps(call) -> int:
    """Calls of Python functions and of C functions that ``call`` makes: what it costs, whoever else is busy."""
    count = 0

    def counted(_frame, event, _arg):
        nonlocal count
        count += event in ("call", "c_call")

    gc.collect()
    gc.disable()  # what it looks through is everybody's, and its hooks would be counted
    sys.setprofile(counted)
    try:
        call()
    finally:
        sys.setprofile(None)
        gc.enable()
    return count


@pytest.mark.parametrize("kind", GROWING)
def test_planning_takes_steps_by_the_length_of_the_statement(kind, monkeypatch):
    monkeypatch.setattr(samples, "SIGNS_MIN", samples.LIST_MIN)  # below it a chain's levels count, which are few
    planned(GROWING[kind](40))  # what is made once is made
    small, large = (steps(lambda n=n: planned(GROWING[kind](n))) for n in (40, 160))
    assert large < 4.6 * small, (small, large)


@pytest.mark.parametrize("kind", sorted(CALLED.keys() - {"arrays"}))  # these are copied by who prints them for Spark
def test_a_chain_of_calls_takes_steps_by_its_length(kind, monkeypatch):
    monkeypatch.setattr(samples, "SIGNS_MIN", 10_000)
    planned(CALLED[kind](20))
    small, large = (steps(lambda n=n: planned(CALLED[kind](n))) for n in (20, 60))
    assert large < 4 * small, (small, large)


def test_what_is_written_out_twice_at_each_level_is_refused_before_it_takes_long(monkeypatch):
    monkeypatch.setattr(copying, "COPIED_MAX", 100_000)
    text = "a = 1"
    for _ in range(40):
        text = f"({text}, a) < (true, 3)"
    for _ in range(2):
        with pytest.raises(InvalidUsage) as refused:
            planned(f"select {text} from t")
        assert refused.value.sqlstate == "54001" and "twice" in refused.value.detail
        assert planned("select (a = 1, a) < (true, 3) from t")  # which has an allowance of its own
    assert copying.allowance.left is None


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[pytest.mark.long] if kind == "intervals" else []) for kind in CALLED]
)  # which are planned for 9 s
def test_of_any_length_it_is_planned_or_refused_as_too_complex(kind):
    """Libraries that are told of a stack that is full may take it for an error of their own."""
    for n in (75, 176, 232):
        try:
            assert planned(CALLED[kind](n))
        except InvalidUsage as refused:
            assert refused.sqlstate == "54001", n


def test_what_is_compared_with_doubles_takes_steps_by_its_number():
    def compare(n: int) -> int:
        tree = exp.Array(expressions=[exp.Literal.number(each) for each in range(n)])
        return steps(lambda: compared(tree.expressions, [SqlType("float8"), *[SqlType("int4")] * (n - 1)]))

    assert compare(400) < 5 * compare(100)


VALUES = (
    "(VALUES (1, 'x'), (2, 'y'), (17, 'x'), (99, 'x'), (2, NULL), (99, NULL), (NULL, 'x'), (NULL, 'q'), (NULL, NULL))"
)
CHAINS = {
    "or": " OR ".join(f"a = {n}" for n in range(20)),
    "and": " AND ".join(f"a <> {n}" for n in range(20)),
    "and with another": " AND ".join([*(f"(a <> {n})" for n in range(20)), "b = 'x'"]),
    "one in common": " OR ".join(f"(a = {n} AND b = 'x')" for n in range(20)),
    "one in common, the other way round": " OR ".join(f"(b = 'x' AND a = -{n})" for n in range(20)),
    "some in common": " OR ".join(f"(a = {n} AND b = '{'xyz'[n % 3]}')" for n in range(20)),
    "nothing in common": " OR ".join(f"(a = {n} AND b = '{n}')" for n in range(20)),
    "of several kinds": " OR ".join(
        [*(f"(a = {n} AND b = 'x')" for n in range(20)), "a = 99", "b = 'q' AND a = 3 AND a = 4", "a IS NULL"]
    ),
    "said twice": " OR ".join(["(a = 1 AND b = 'x')"] * 20),
    "twice of one column": " OR ".join(f"(a = {n} AND a = {n + 1} AND b = 'x')" for n in range(20)),
}


@pytest.mark.parametrize("chain", CHAINS)
def test_a_list_in_the_place_of_a_chain_says_the_same(chain):
    """A column with something added to it is no column, and never in a list."""
    as_list = CHAINS[chain]
    as_chain = as_list.replace("a ", "(a + 0) ").replace("b ", "(b || '') ")
    ours = Ours()
    query = "SELECT a, b, {} FROM " + VALUES + " AS v (a, b)"
    answer = ours.ask(query.format(as_list))
    assert len(answer.rows) == 9 and answer == ours.ask(query.format(as_chain))


@pytest.mark.parametrize("chain", ["and", "one in common", "some in common"])
def test_a_chain_that_means_a_list_is_planned_as_one(chain):
    plan = Ours().plan(f"SELECT a FROM {VALUES} AS v (a, b) WHERE {CHAINS[chain]}")
    assert len(list(plan.tree.find_all(exp.In))) in (1, 3) and len(list(plan.tree.find_all(exp.EQ, exp.NEQ))) <= 3


def test_what_a_list_would_be_refused_for_is_refused_in_a_chain():
    ours = Ours()
    for chain in ("b = 1 AND a = {}", "a = 'x' AND b = '{}'", "c = 1 AND a = {}"):
        asked = " OR ".join(f"({chain.format(n)})" for n in range(20))
        alone = ours.ask(f"SELECT 1 FROM {VALUES} AS v (a, b) WHERE ({chain.format(0)})")
        assert ours.ask(f"SELECT 1 FROM {VALUES} AS v (a, b) WHERE {asked}").sqlstate == alone.sqlstate != "XX000"


NESTED = {
    "free numerics": ("a::numeric", "nullif({}, 1.5)"),
    "free numerics, the other way round": ("a::numeric", "nullif(1.5, {})"),
    "documents": ("n::jsonb", "nullif({}, '1')"),
    "decimals": ("a::numeric(9,2)", "nullif({}, 1.50)"),
    "singles": ("a::real", "nullif({}, 1.5::numeric)"),
    "blanks": ("n::char(5)", "nullif({}, n)"),
    "greatest": ("a::numeric", "greatest({}, 1.5)"),
    "least": ("a::numeric", "least(1.5, {}, id)"),
    "truncated": ("a::numeric(9,3)", "trunc({}, 1)::numeric(9,3)"),
    "divided": ("a::numeric(9,3)", "div({}, 2)::numeric(9,3)"),
    "quotients": ("a::float8", "id / {}"),
    "roots": ("a::float8", "sqrt({})"),
    "powers": ("a::float8", "power({}, 0.5)"),
    "parts": ("n", "left({}, id)"),
    "patterns": ("n", "substring({} from '[a-z]+')"),
    "replaced": ("n", "replace({}, n, 'x')"),
    "laid over": ("n", "overlay({} placing 'x' from id)"),
    "shown": ("n", "to_char(({})::timestamp, 'YYYY-MM-DD')"),
    "moved": ("n::timestamp", "n::timestamp + ({} - n::timestamp)"),
}  # fmt: skip
"""What was written several times at each level: where it stood, and the call around it."""


def nested(kind: str, depth: int) -> str:
    made, around = NESTED[kind]
    for _ in range(depth):
        made = around.format(made)
    return made


@pytest.mark.parametrize("kind", NESTED)
def test_what_names_an_operand_several_times_takes_steps_by_its_depth(kind, monkeypatch):
    monkeypatch.setattr(said_once, "LARGE_MIN", 60)
    def told(depth: int) -> tuple[int, int]:
        plan = plan_select(parse(f"select {nested(kind, depth)} as x from t").ast, IMAGE, names())
        return len(plan.spark_sql([])), len(text_of(for_duckdb(plan.tree)))

    told(1)
    few, many, more = (told(depth) for depth in (6, 9, 12))
    for engine in (0, 1):
        assert more[engine] - many[engine] <= 1.5 * (many[engine] - few[engine]), (few, many, more)
    small, large = (steps(lambda depth=depth: told(depth)) for depth in (6, 12))
    assert large < 4 * small, (small, large)
