"""Texts that are made to take long are read or refused in time that grows with them."""

from __future__ import annotations

import time
from itertools import islice, product
from string import ascii_lowercase

import pytest

from journal.errors import TidemarkError
from sql.syntax.control import RollbackTo
from sql.syntax.parse import parse, split

SECONDS_MAX = 4
"""Of processor time, for 60,000 characters.  What grew by their square took minutes, what doubled for each for ever."""

CHARS = 60_000
TAGS = " ".join(f"${''.join(tag)}$" for tag in islice(product(ascii_lowercase, repeat=4), CHARS // 7))


def repeated(unit: str) -> str:
    return (unit * (CHARS // len(unit) + 1))[:CHARS]


TEXTS = {
    "dollar quotes that never end": "select 1, " + TAGS,
    "comments before a word": repeated("/**/"),
    "comments before a query": repeated("/* */ ") + " select 1",
    "a comment that never ends": "select 1 " + repeated("/* "),
    "comments in a statement of the session's": "begin " + repeated("/* "),
    "modes of a transaction": "begin " + repeated("deferrable, ") + "x",
    "a quote that never ends": "select '" + repeated("'' "),
    "a name that never ends": 'select "' + repeated('"" '),
    "arrays in arrays": "select " + "array[" * 60 + "1" + "]" * 60,
    "escapes": "select e'" + repeated("\\' "),
}


@pytest.mark.parametrize("kind", TEXTS)
def test_what_takes_long_is_no_text(kind):
    before = time.process_time()
    for read in (split, parse):
        try:
            read(TEXTS[kind])
        except TidemarkError as error:
            assert error.sqlstate == "42601"
    assert time.process_time() - before < SECONDS_MAX


def test_comments_before_a_statement_of_the_sessions_nest():
    assert parse("/* a /* b */ c */ rollback /* d /* */ */ to /**/ x -- y") == RollbackTo("x")
    with pytest.raises(TidemarkError) as caught:
        parse("rollback to x /* y")
    assert (caught.value.sqlstate, caught.value.position) == ("42601", 15)


@pytest.mark.parametrize("text", ["/* a /* b */ c */ show all", "/* show */ show all -- x"])
def test_comments_before_a_word_nest(text):
    assert type(parse(text)) is type(parse("show all"))
