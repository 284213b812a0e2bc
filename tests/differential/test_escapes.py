"""String constants with escapes, made at random: PostgreSQL and we read the same text, or refuse it alike."""

from __future__ import annotations

import random

import pytest
from sqlglot import exp

from journal.errors import TidemarkError
from sql.syntax.parse import parse
from tests.differential.postgres import Answer, ask, missing, postgres
from tests.seeds import seed_of_commit

PIECES = (
    *("\\" + c for c in "nrtbfv0aqeE\\'\"8u"), "''", "a", "é", "日", "1", "f", "{", "$1", "%", "\n", "\\\n", "\\é",
    "\\x4", "\\x41", "\\xc3\\xa9", "\\xC3\\251", "\\xff", "\\x0", "\\x00", "\\303\\251", "\\1", "\\101", "\\400",
    "\\777",
    "\\u0041", "\\u00e9", "\\u004", "\\u0000", "\\U0001F600", "\\U00110000", "\\ud83d\\ude00", "\\ud83d", "\\ude00",
    "\\ud83d\\U0000de00", "\\xf0\\x9f\\x98\\x80", "\\xed\\xa0\\x80",
)  # fmt: skip


TWO_FAULTS = {"!22025", "!42601"}
"""Half of a pair, then an escape cut short: which of the two is told is no promise."""


def ours(text: str) -> str:
    """The text, or the SQLSTATE."""
    try:
        (found,) = parse(text).ast.expressions
        return found.this if isinstance(found, exp.Literal) else repr(found)
    except TidemarkError as error:
        return f"!{error.sqlstate}"


@pytest.mark.skipif(missing() is not None, reason=str(missing()))
def test_a_text_with_escapes_is_read_as_postgres_reads_it():
    seed = seed_of_commit()
    draw = random.Random(seed)
    texts = [f"select {draw.choice('eE')}'{piece}'" for piece in PIECES]
    texts += [f"select E'{''.join(draw.choices(PIECES, k=draw.randrange(2, 6)))}'" for _ in range(400)]
    with postgres() as peer:
        for text in texts:
            theirs = ask(peer, text)
            wanted = theirs.rows[0][0] if isinstance(theirs, Answer) else f"!{theirs.sqlstate}"
            found = ours(text)
            assert found == wanted or {found, wanted} == TWO_FAULTS, (text, seed)


@pytest.mark.parametrize("written, meant", [
    (r"\xc3\xa9", "é"), (r"\v\a\e", "vae"), (r"\x0g", "!22021"), (r"\0", "!22021"), (r"\xff", "!22021"),
    (r"\u004", "!22025"),
    (r"\ud83d\ude00", "😀"), (r"\ud83d", "!42601"), (r"\u0000", "!42601"), (r"a''b\'c", "a'b'c"), (r"\101\102", "AB"),
])  # fmt: skip
def test_what_an_escape_means(written, meant):
    assert ours(f"select E'{written}'") == meant


def test_a_comment_may_be_written_in_every_way():
    for written, meant in (("E'\\xc3\\xa9\\n'", "é\n"), ("$$a'b$$", "a'b"), ("U&'\\0041'", "A"), ("'a''b'", "a'b")):
        assert parse(f"comment on table t is {written}").text == meant
