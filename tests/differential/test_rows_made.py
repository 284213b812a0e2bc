"""Functions that make rows where a SELECT puts them out: rows, types, SQLSTATEs, words and positions of PostgreSQL."""

from __future__ import annotations

from pathlib import Path

import pytest

from sql.algebra import made_rows, queries
from tests.differential.compare import difference
from tests.differential.ours import Ours
from tests.differential.postgres import Refusal, ask, missing, postgres
from tests.differential.sides import lines

V = "(values (1, 'a'), (2, 'b'), (2, 'c')) t(k, s)"
ASKED = [text.replace("{V}", V) for text in lines(Path(__file__).with_name("rows_made.txt"))]

NOT_HERE = [
    "select row_number() over (order by unnest(array[1, 2])) from {V}",
    "select k, generate_series(1, 2) g, count(*) from {V} group by k, g",
    "select generate_series(1, generate_series(1, 2))",
    "select array(select unnest(array[3, 1, 2]) + 1)",
]
"""What Postgres answers."""


@pytest.fixture(scope="module")
def peer():
    if missing() is not None:
        pytest.skip(missing())
    with postgres() as connection:
        yield connection


def differing(peer, asked: list[str]) -> list[str]:
    ours, found = Ours(), []
    for text in asked:
        theirs, mine = ask(peer, text), ours.ask(text)
        ordered = "order by" in text.rpartition(")")[2]
        if differs := difference(theirs, mine, ordered):
            found.append(f"{text}\n    {differs}")
        elif isinstance(theirs, Refusal) and theirs.message != mine.message:
            found.append(f"{text}\n    {theirs.message}, here {mine.message}")
    return found


def test_they_make_rows_as_postgres_has_them(peer) -> None:
    assert differing(peer, ASKED) == []


def test_what_is_not_here_is_told(peer) -> None:
    for text in NOT_HERE:
        said = Ours().ask(text.replace("{V}", V))
        assert isinstance(said, Refusal) and said.sqlstate == "0A000" and said.position is not None, text
        assert not isinstance(ask(peer, text.replace("{V}", V)), Refusal), f"Postgres refuses it too: {text}"


def test_wrong_variants_are_found(peer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several that are not made in step, and rows that are made before windows count them."""
    in_step, windows = made_rows._in_step, queries.without_windows
    monkeypatch.setattr(made_rows, "_in_step", lambda relation, lists: in_step(relation, lists[:1] * len(lists)))
    assert differing(peer, ASKED)
    monkeypatch.undo()
    monkeypatch.setattr(queries, "without_windows", lambda *rows: windows(*made_rows.with_rows(*rows)))
    assert differing(peer, ASKED)
