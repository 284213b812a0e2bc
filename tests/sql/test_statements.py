"""Any statement is planned or refused: by a SQLSTATE of its own, in our words, with what to do about it.

Everyday some hundred by a seed, through the parser and the planner alone; ``TIDEMARK_STATEMENTS`` says how many the
long run has, ``TIDEMARK_SEED`` replays one.
"""

from __future__ import annotations

import itertools
import os
import re
from collections import Counter

import pytest

from journal.errors import InvalidUsage, TidemarkError
from sql.statements.ddl import plan_ddl
from sql.statements.insert import plan_insert
from sql.statements.select import plan_select
from sql.syntax import statements as st
from sql.syntax.parse import parse, split
from tests.foreign_words import foreign_words
from tests.seeds import new_seed
from tests.sql.doubles import apply, ddl, empty_image, names
from tests.statements import Statements
from trees.errors import untold

EVERYDAY = 250
FIXED_SEED = 104
"""Everyday the same: other ones still find a refusal that is none in some ten thousand statements, for the
long run."""
LONG = 50_000
HINTED = ("0A000", "42883", "42704")
"""Refusals that leave their reader alone without a hint."""


def planned(text: str, image):
    """The catalog after one statement.  What a session does by itself (SET, FETCH…) is only parsed."""
    statement = parse(text)
    while isinstance(statement, st.Explain) and statement.statement is not None:
        statement = statement.statement
    if isinstance(statement, st.Query):
        plan = plan_select(statement.ast, image, names())
        if plan.kind != "catalog":
            plan.spark_sql([None] * len(plan.params))
    elif isinstance(statement, st.Insert):
        plan_insert(statement, image, names())
    elif isinstance(statement, st.DDL):
        updates = plan_ddl(statement, image, names()).updates
        return apply(image, updates) if updates else image
    return image


HIDDEN = (AttributeError, LookupError, TypeError, ValueError, AssertionError)
"""Python's own errors behind a refusal that says nothing but a reference: bugs of ours that look like refusals."""


def wrong_about(text: str, error: Exception) -> str | None:
    if not isinstance(error, TidemarkError):
        return f"{type(error).__name__}: {str(error)[:200]}"
    if isinstance(error.__cause__, HIDDEN) and "the log of" in (error.detail or ""):
        return f"{error} hides {type(error.__cause__).__name__}: {str(error.__cause__)[:200]}"
    if not re.fullmatch(r"[0-9A-Z]{5}", error.sqlstate or "") or error.sqlstate.startswith("XX"):
        return f"sqlstate {error.sqlstate}: {error}"
    if error.sqlstate in HINTED and not error.hint:
        return f"{error.sqlstate} without a hint: {error}"
    told = foreign_words(error)
    return f"foreign words: {told}" if told and not foreign_words(TidemarkError(f"{text} {text.upper()}")) else None


def run(seed: int, count: int) -> list[str]:
    """Judge ``count`` statements of ``seed``; each wrong one is printed as it is found."""
    made, image = Statements(seed), empty_image()
    image = ddl(image, *made.setup())
    states: Counter[str] = Counter()
    wrong = []
    for text in itertools.islice(made, count):
        for one in split(text) or [text]:
            try:
                image = planned(one, image)
                states["00000"] += 1
            except Exception as error:  # judged below: anything but a refusal of ours is wrong
                states[getattr(error, "sqlstate", None) or type(error).__name__] += 1
                if found := wrong_about(one, error):
                    wrong.append(f"seed {seed}: {found}\n    {one}")
                    print(wrong[-1], flush=True)
    print(dict(states.most_common()))
    assert states["00000"] > count // 5 and len(states) > 8, states
    return wrong


def test_any_statement_is_planned_or_refused():
    assert not run(FIXED_SEED, EVERYDAY)


@pytest.mark.long
@pytest.mark.timeout(0)
def test_many_statements_are_planned_or_refused():
    seed, each, wrong = new_seed(), 1000, []
    for number in range(int(os.environ.get("TIDEMARK_STATEMENTS") or LONG) // each):
        wrong += run(seed + number, each)
        print(f"{(number + 1) * each} statements, {len(wrong)} wrong", flush=True)
    assert not wrong, "\n".join(wrong[:50])


def test_a_seed_alone_decides():
    first, again, other = (list(itertools.islice(Statements(seed), 50)) for seed in (7, 7, 8))
    assert first == again != other


def test_a_refusal_that_says_nothing_is_found():
    assert wrong_about("x", KeyError("x")) and wrong_about("x", TidemarkError("a word of spark's", sqlstate="42601"))
    assert wrong_about("x", TidemarkError("gone", sqlstate="XX000"))
    assert wrong_about("x", TidemarkError("no", sqlstate="42601")) is None
    with pytest.raises(TidemarkError) as refused:
        try:
            {}["one of ours"]
        except KeyError as error:
            raise untold("this query", error) from error
    assert wrong_about("x", refused.value)


@pytest.mark.parametrize("call", [
    "string_to_array(s)", "cardinality()", "regr_count(a)", "string_agg() within group (order by a)", "var_map(a)",
    "levenshtein_less_equal()", "combined_parameterized_agg(s, s, s)", "j_s_o_n_exists(s, s, s)",
    "ts_or_ds_add(s, s, s, s)", "ts_or_ds_to_date_str()",
])  # fmt: skip
def test_a_call_of_any_shape_is_refused(call):
    image = ddl(empty_image(), "create table t (a int, s text)")
    with pytest.raises(TidemarkError) as refused:
        planned(f"select {call} from t", image)
    assert refused.value.sqlstate in ("42883", "0A000", "42601") and not wrong_about(call, refused.value)


@pytest.mark.parametrize("test, sqlstate, told", [
    ("now()", "42601", "now"), ("not now() unknown", "42601", "now"), ("5", "42601", "5"), ("s", "42601", "s"),
    ("(true)", "42601", "("), ('"true"', "42601", '"true"'), ("$1", "42601", "$"), ("true + 1", "42601", "+"),
    ("", "42601", "end of input"), ("json", "0A000", "IS JSON"), ("not normalized", "0A000", "IS NORMALIZED"),
])  # fmt: skip
def test_nothing_but_a_truth_value_or_null_stands_behind_is(test, sqlstate, told):
    image = ddl(empty_image(), "create table t (a bool, s text)")
    with pytest.raises(TidemarkError) as refused:
        planned(f"select * from t where a is {test}", image)
    assert refused.value.sqlstate == sqlstate and told in str(refused.value)


@pytest.mark.parametrize("kind, sqlstate", [
    ("char(now())", "42601"), ("numeric(a)", "42601"), ("numeric('x')", "42601"), ("varchar(5)", None),
    ("char(unnest('{1}'::int[]))", "42601"), ("foo(now())", "42601"), ("foo(1)", "42704"), ("numeric(5, 2)", None),
])  # fmt: skip
def test_a_type_is_made_longer_by_nothing_but_a_number(kind, sqlstate):
    """Whatever else was there was printed, and the type read from that."""
    image = ddl(empty_image(), "create table t (a text)")
    try:
        planned(f"select a::{kind} from t", image)
        assert sqlstate is None
    except TidemarkError as refused:
        assert refused.sqlstate == sqlstate and not wrong_about(kind, refused)


DIGITS = "9" * 5000


@pytest.mark.parametrize("text", [
    "select {}", "select 1.{}", "select 1e{}", "select -{}", "select a from t order by {}", "select a from t limit {}",
    "select a from t group by {}", "select ${}", "select s::varchar({})", "select 1::numeric({})", "select '{}'::int",
    "select '{}'::int8", "select '-{}'::int2", "select '{}'::numeric", "select '1e{}'::numeric", "select '{}'::jsonb",
    "select '[1e{}]'::jsonb", "select '{} days'::interval", "select interval '{}'", "select '{}-01-01'::date",
    "select '2020-01-01 {}:00'::timestamp", "select '{}'::time", "select '{}'::oid", "select '{}'::bool",
    "select '{{{}}}'::int[]", "select a[{}] from (select array[1] as a) as q", "select s ~ 'a{{{}}}' from t",
    "select regexp_replace(s, 'a', '\\{}') from t", "select to_char(a, '{}') from t",
    "select format('%{}$s', s) from t", "select format('%{}s', s) from t", "select B'{}'", "select 0x{}",
    "select row_number() over (rows {} preceding) from t",
    "create table n (a numeric({}))", "create table n (a int default {})", "insert into t values ({}, 'a')",
    "insert into t values ('{}', 'a')", "create view v as select {} as a", "select U&'\\{}'", "select E'\\x{}'",
    "select '\\x{}'::bytea", "select f.a from generate_series(1, {}) as f(a)", "select s like '{}' from t",
])  # fmt: skip
def test_more_digits_than_python_converts_are_a_value_like_any_other(text):
    image = ddl(empty_image(), "create table t (a int, s text)")
    try:
        planned(text.format(DIGITS), image)
    except TidemarkError as refused:
        assert not wrong_about(text, refused)


@pytest.mark.parametrize("call, told", [
    ("upper(distinct s)", "DISTINCT specified, but upper is not an aggregate function"),
    ("concat(distinct s) over ()", "DISTINCT specified, but concat is not an aggregate function"),
    ("upper(s order by s)", "ORDER BY specified, but upper is not an aggregate function"),
    ("abs(a) filter (where true)", "FILTER specified, but abs is not an aggregate function"),
    ("upper(s) over ()", "OVER specified, but upper is not a window function nor an aggregate function"),
])  # fmt: skip
def test_what_folds_no_rows_has_no_use_for_words_of_aggregates(call, told):
    image = ddl(empty_image(), "create table t (a int, s text)")
    with pytest.raises(InvalidUsage) as refused:
        planned(f"create materialized view v as select {call} as x from t", image)
    assert (refused.value.sqlstate, refused.value.message) == ("42809", told)
