"""Sequences, serial and identity columns: one script, told to PostgreSQL and to us, a statement after another.

``sequences.txt`` is the script.  Compared are rows, or the SQLSTATE and the message of what is refused; where ours is
another on purpose, :data:`OTHERWISE` says why.  Tables are read by what plays the controller, so simply.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import psycopg
import pytest

from tests.adapter.test_any_text import connected
from tests.adapter.test_clients import serving
from tests.adapter.world import World
from tests.differential.postgres import missing, postgres

SCRIPT = Path(__file__).with_name("sequences.txt")

OTHERWISE = {
    "select nextval(": "42883 and its kin name the types of arguments there",
    "select setval('s', 5.5)": "the sequence's name is a regclass here, and unknown there",
    "select setval('nn_id_seq', (select max(b) from nn))": "likewise",
    "select setval('ys', (select max(d) from y))": "likewise",
    "alter table s add column a int": "of ALTER TABLE's actions we say what it is not",
    "insert into o values (1)": "likewise of INSERT",
}
"""Statements, by how they begin, whose message is another here: their SQLSTATE is not."""


def told(error: psycopg.Error) -> tuple[str, str]:
    return error.sqlstate or "", (error.diag.message_primary or "")


async def ours(statements: list[str]) -> list[object]:
    async with serving(World()) as port, await connected(port) as connection:
        return [await _asked(connection, each) for each in statements]


async def _asked(connection: psycopg.AsyncConnection, text: str) -> object:
    try:
        cursor = await connection.execute(text.encode())
        return cursor.statusmessage if cursor.description is None else await cursor.fetchall()
    except psycopg.Error as error:
        return told(error)


def theirs(statements: list[str]) -> list[object]:
    found: list[object] = []
    with postgres() as peer:
        for text in statements:
            try:
                cursor = peer.execute(text.encode())
                found.append(cursor.statusmessage if cursor.description is None else cursor.fetchall())
            except psycopg.Error as error:
                found.append(told(error))
    return found


@pytest.mark.skipif(missing() is not None, reason=str(missing()))
def test_a_script_is_answered_as_postgres_answers_it() -> None:
    statements = SCRIPT.read_text().splitlines()
    wrong = []
    for text, us, them in zip(statements, asyncio.run(ours(statements)), theirs(statements), strict=True):
        if any(text.startswith(each) for each in OTHERWISE) and isinstance(us, tuple) and isinstance(them, tuple):
            us, them = us[0], them[0]
        if us != them:
            wrong.append(f"{text}\n  ours   {us}\n  theirs {them}")
    assert not wrong, "\n".join(wrong)
    assert len(statements) > 100
