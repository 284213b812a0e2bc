"""Thousands of ``x = 1 OR x = 2 …`` are planned as the list that they mean; what is something else stays."""

from __future__ import annotations

import pytest
from sqlglot import exp

from sql.syntax.parse import parse

MANY = range(16)


def condition(text: str) -> exp.Expression:
    return parse(f"select 1 from t where {text}").ast.args["where"].this


def any_of(*parts: str) -> str:
    return " or ".join(parts)


@pytest.mark.parametrize("column, values", [
    ("a", [f"{n}" for n in MANY]), ("t.a", [f"-{n}" for n in MANY]), ('"A b"', [f"'{n}'" for n in MANY]),
])  # fmt: skip
def test_many_are_a_list(column, values):
    made = condition(any_of(*(f"{column} = {value}" for value in values)))
    assert made == condition(f"{column} in ({', '.join(values)})")
    assert condition(any_of(*(f"({column} = {value})" for value in values))) == made


def test_what_is_beside_them_stays_beside_them():
    made = condition(any_of("b > 1", *(f"a = {n}" for n in MANY), "c is null", *(f"b = '{n}'" for n in MANY)))
    lists = [each for each in made.find_all(exp.In)]
    assert sorted((each.this.name, len(each.expressions)) for each in lists) == [("a", 16), ("b", 16)]
    assert len(list(made.flatten())) == 4 and not list(made.find_all(exp.EQ))
    assert isinstance(condition(f"not ({any_of(*(f'a = {n}' for n in MANY))})").this.unnest(), exp.In)


@pytest.mark.parametrize("text", [
    any_of(*(f"a = {n}" for n in range(15))),
    any_of(*(f"a <> {n}" for n in MANY)),
    any_of(*(f"{n} = a" for n in MANY)),
    any_of(*(f"a = {n}.5" for n in MANY)),
    any_of(*(f"a = {n}::bigint" for n in MANY)),
    any_of(*(f"a = ${n + 1}" for n in MANY)),
    any_of(*(f"a + 0 = {n}" for n in MANY)),
    any_of(*(f"(a = {n} and b = {n})" for n in MANY)),
    any_of(*(f"a = {n}" for n in range(8)), *(f"a = '{n}'" for n in range(8))),
    any_of(*(f"a = {n}" for n in range(8)), *(f'"A" = {n}' for n in range(8))),
    any_of(*(f"a = {n}" for n in range(8)), *(f"t.a = {n}" for n in range(8))),
    " and ".join(f"a = {n}" for n in MANY),
])  # fmt: skip
def test_these_are_as_they_are_written(text):
    assert condition(text).find(exp.In) is None
