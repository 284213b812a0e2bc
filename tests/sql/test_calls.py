"""A call of any function that any part of us knows, with any arguments, is planned or refused in our words.

The parser's library takes calls apart without counting their arguments, and functions have words said of them that
only aggregates have a use for.  Everyday some calls by a seed; the long run makes some of every name.
"""

from __future__ import annotations

import os
import random
from collections import Counter

import pytest

from journal.errors import TidemarkError
from sql.syntax.dialect import Dialect
from sql.typing.check import NAMED
from sql.typing.check_functions import KNOWN_ELSEWHERE
from sql.typing.check_functions import NAMED as SIGNED
from tests.seeds import new_seed
from tests.sql.doubles import ddl, empty_image
from tests.sql.test_statements import planned, wrong_about

TABLE = (
    "create table t (a int, s text, n numeric(6,2), f float8, d date, ts timestamp, r int[], j jsonb, iv interval, "
    "ok bool, h bytea)"
)
EVERYDAY, LONG = 600, 12
"""Calls of an everyday run, and calls of each name of a long one."""

NAMES = sorted(
    {name.lower() for name in (
        *Dialect.Parser.FUNCTIONS, *Dialect.Parser.FUNCTION_PARSERS, *Dialect.Parser.NO_PAREN_FUNCTION_PARSERS,
        *NAMED, *SIGNED, *KNOWN_ELSEWHERE,
    )}
)  # fmt: skip
PLAIN = (
    "a", "a", "s", "s", "n", "f", "d", "ts", "r", "j", "iv", "ok", "h", "1", "-1", "1.5", "'a'", "null", "$1::int",
    "array[1]", "'{}'::jsonb", "interval '1 day'",
)  # fmt: skip
STRANGE = (
    "(select 1)", "(a, s)", "t", "*", "t.*", "a => 1", "x := 's'", "variadic r", "a order by s", "distinct a",
    "distinct", "distinct a, s", "s order by 1 desc nulls first", "case when ok then a end", "all a", "a as b",
    "s from 1", "year from d", "a in s", "s placing 'x' from 1", "both 'a' from s", "default", "x -> x", "$1",
    "distinct 'x' @> j", "",
)  # fmt: skip
AROUND = (
    "{}", "{}", "{}", "{}", "{} over ()", "{} over (order by a)", "{} filter (where ok)",
    "{} within group (order by a)", "{}::text", "({}).x", "{} ignore nulls over (order by a)", "{} + 1", "{} || 'a'",
)  # fmt: skip


def call_of(name: str, draw: random.Random) -> str:
    count = draw.choice((0, 1, 1, 1, 2, 2, 3, 4, 5))
    arguments = [draw.choice(PLAIN if draw.random() < 0.85 else STRANGE) for _ in range(count)]
    call = draw.choice(AROUND).format(f"{name}({', '.join(arguments)})")
    create = "create materialized view v as " if draw.random() < 0.1 else ""
    return f"{create}select {call} as z" + draw.choice((" from t", " from t", " from t group by 1", ""))


def run(seed: int, names: list[str]) -> None:
    draw, image, states, wrong = random.Random(seed), ddl(empty_image(), TABLE), Counter(), []
    for name in names:
        text = call_of(name, draw)
        try:
            planned(text, image)
            states["00000"] += 1
        except Exception as error:  # judged below: anything but a refusal of ours is wrong
            states[getattr(error, "sqlstate", None)] += 1
            if found := wrong_about(text, error):
                wrong.append(f"{found}\n    {text}")
    print(dict(states.most_common()))
    assert not wrong, f"seed {seed}, {len(wrong)} wrong:\n" + "\n".join(wrong[:20])
    assert states["42883"] and states["00000"] and states["42809"], states


def test_any_call_is_planned_or_refused():
    draw = random.Random(5)
    run(5, [draw.choice(NAMES) for _ in range(EVERYDAY)])


@pytest.mark.long
@pytest.mark.timeout(0)
def test_calls_of_every_name_are_planned_or_refused():
    each = int(os.environ.get("TIDEMARK_STATEMENTS") or LONG * len(NAMES)) // len(NAMES) + 1
    seed = new_seed()
    for number in range(each):
        run(seed + number, NAMES)


@pytest.mark.parametrize("call, state", [
    ("cardinality()", "42883"), ("ceil()", "42883"), ("regr_r2(f)", "42883"), ("split_part(s)", "42883"),
    ("string_to_array(s)", "42883"), ("lower(s, s)", "42883"), ("string_agg() within group (order by 1)", "42883"),
    ("string_agg(distinct )", "42883"), ("levenshtein_less_equal()", "42883"), ("var_map(a)", "42883"),
    ("cardinality(distinct r)", "42809"), ("format(distinct s)", "42809"), ("num_nulls(distinct s)", "42809"),
    ("quote_ident(distinct s)", "42809"), ("format('%s' order by s)", "42809"), ("trunc(distinct n)", "42809"),
    ("lag(distinct a) over ()", "0A000"), ("lag(distinct 'x' @> j, null) over ()", "0A000"),
    ("array[array[1]]::int[]", "0A000"), ("array['{1}'::int[]]::text[]", "0A000"), ("array[1]::date[]", "42846"),
])  # fmt: skip
def test_a_call_says_what_is_wrong_with_it(call, state):
    """Not that it is not supported, under a reference, where Postgres says that there is no such function."""
    with pytest.raises(TidemarkError) as refused:
        planned(f"select {call} from t", ddl(empty_image(), TABLE))
    assert refused.value.sqlstate == state and not wrong_about(call, refused.value)
