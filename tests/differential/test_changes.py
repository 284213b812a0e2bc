"""INSERT, UPDATE, DELETE, TRUNCATE and RETURNING: one script, told to PostgreSQL and to us, a statement after another.

``changes.txt`` is the script, in stanzas of a world each.  After each statement its answer is compared (the tag, the
names, types and texts of what is returned, or the SQLSTATE), and then every table of the stanza; and EXPLAIN of it is
refused where it itself is whatever rows there are, and changes nothing.  A line that begins with ``!`` and a SQLSTATE
is refused here so, and there otherwise or not at all; behind ``-- `` stand its parameters, whose types nobody says.
What reads tables is what a cluster asks in process, of the plan as it travels.
"""

from __future__ import annotations

import asyncio
import io
import json
import re
import sys
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path

import psycopg
import pytest

from controllers.compute.operators.left import Left
from controllers.compute.operators.process import Process
from controllers.compute.operators.small import small
from controllers.compute.peek_query import query_of
from controllers.peeks.given import unpacked
from journal.errors import TidemarkError
from tests.adapter.test_clients import serving
from tests.adapter.world import Answer, StorePeeks, World
from tests.differential.postgres import missing, postgres
from tests.seeds import seed_of_commit

SCRIPT = Path(__file__).with_name("changes.txt")

EXPLAINED = 3
"""Each so manieth statement is asked for its plan before: others with another commit."""

ANSWER_S = 120.0
"""For one statement, of some 20 ms."""

needs_postgres = pytest.mark.skipif(missing() is not None, reason=str(missing()))

Told = tuple[object, ...]


class InProcess(StorePeeks):
    """Asks the engine of a cluster's small gear; what it leaves to Spark is refused as that error says, or fails."""

    process = Process(patience_s=60.0)

    async def peek(self, peek, cluster_id, deadline_s, waits=None):
        query = query_of(peek)
        asked = query.told.ordinary  # the same for whoever asks again, as most here do
        if isinstance(asked, str):
            asked = query.query if isinstance(query.query, str) else small(query.query)  # it may hang on the clock
        if isinstance(asked, str):
            return await super().peek(peek, cluster_id, deadline_s, waits)
        state = self.oracle.state
        as_of = peek.as_of if peek.as_of is not None else state.last_ts
        own = {each.collection_id: each.values for each in peek.own}
        tables = {each: self._relation(each, state, as_of, own.get(each, ())) for each in peek.inputs} | unpacked(peek)
        try:
            return Answer(self.process.rows(asked, query.types, tables), as_of)
        except Left as left:
            assert isinstance(left.__cause__, TidemarkError), left
            raise left.__cause__ from None


class Tables(World):
    answers = InProcess


class Line:
    """One statement of the script."""

    def __init__(self, line: str) -> None:
        marked = re.match(r"!(\w{5}) ", line)
        self.refused = marked[1] if marked else None
        self.text, _, params = line.removeprefix(marked[0] if marked else "").partition(" -- ")
        self.params = json.loads(params) if params else None
        made = re.match(r"create table (\S+)", self.text)
        self.makes = made[1] if made else None
        self.changes = re.match(r"(update|delete|truncate|with)\b", self.text) is not None

    def looks_at(self, tables: Sequence[str], lines: Sequence[Line]) -> list[str]:
        """Those of ``tables`` that are read after it: what it names, and all behind the last line."""
        return [each for each in tables if self is lines[-1] or re.search(rf"\b{each}\b", self.text)]


def stanzas(text: str) -> Iterator[list[Line]]:
    for part in text.split("\n\n"):
        lines = [Line(each) for each in part.splitlines() if each and not each.startswith("#")]
        if lines:
            yield lines


def _told(cursor) -> Told:
    result = cursor.pgresult
    if cursor.description is None:
        return (cursor.statusmessage,)
    columns = [(each.name, each.type_code) for each in cursor.description]
    rows = [[result.get_value(row, at) for at in range(len(columns))] for row in range(result.ntuples)]
    ordered = cursor.statusmessage.startswith("INSERT")  # of what comes in the order in which it was written
    return (cursor.statusmessage, columns, rows if ordered else sorted(rows, key=repr))


def _refused(error: psycopg.Error) -> Told:
    diag, told = error.diag, ()
    if error.sqlstate[:2] == "23":
        about = diag.table_name, diag.column_name, diag.constraint_name
        told = (diag.message_primary, diag.message_detail, *about)
    return ("ERROR", error.sqlstate, *told)


def _where_all_stand() -> str:
    told = io.StringIO()
    for task in asyncio.all_tasks():
        task.print_stack(file=told)
    for name, frame in sys._current_frames().items():
        told.write(f"thread {name}\n{''.join(traceback.format_stack(frame))}")
    return told.getvalue()


async def ours(lines: list[Line], turn: int = 0) -> list[tuple[Told, list[Told]]]:
    async with serving(Tables()) as port, await psycopg.AsyncConnection.connect(
        f"host=127.0.0.1 port={port} user=tidemark dbname=tidemark", autocommit=True,
        cursor_factory=psycopg.AsyncRawCursor, prepare_threshold=None,
    ) as connection:  # fmt: skip
        async def asked(text: str, params=None) -> Told:
            try:
                return _told(await asyncio.wait_for(connection.execute(text.encode(), params), ANSWER_S))
            except TimeoutError:
                raise AssertionError(f"no answer to {text}\n{_where_all_stand()}") from None
            except psycopg.Error as error:
                return _refused(error)

        found, tables = [], []
        for at, line in enumerate(lines):
            told_first = line.changes and line.params is None and at % EXPLAINED == turn
            explained = await asked(f"explain {line.text}") if told_first else None
            answer = await asked(line.text, line.params)
            if explained is not None:
                never = answer[0] == "ERROR" and str(answer[1])[:2] in ("42", "0A")  # whatever rows there are
                assert explained == answer or (explained[0] == "EXPLAIN" and not never), (line.text, answer, explained)
            tables += [line.makes] if line.makes else []
            looked_at = line.looks_at(tables, lines)
            found.append((answer, [await asked(f"select * from {each}") for each in looked_at]))
        return found


def theirs(connection: psycopg.Connection, lines: list[Line]) -> list[tuple[Told, list[Told]]]:
    def asked(text: str, params=None, keep: bool = True) -> Told:
        try:
            with psycopg.RawCursor(connection) as cursor:
                if keep:
                    return _told(cursor.execute(text.encode(), params))
                with connection.transaction(force_rollback=True):
                    return _told(cursor.execute(text.encode(), params))
        except psycopg.Error as error:
            return _refused(error)

    found, tables = [], []
    for line in lines:
        answer = asked(line.text, line.params, line.refused is None)
        tables += [line.makes] if line.makes else []
        found.append((answer, [asked(f"select * from {each}") for each in line.looks_at(tables, lines)]))
    for each in reversed(tables):
        connection.execute(f"drop table if exists {each} cascade".encode())
    return found


def differences(lines: list[Line], us: list[tuple[Told, list[Told]]], them: list[tuple[Told, list[Told]]]) -> list[str]:
    wrong = []
    for line, (our, our_tables), (their, their_tables) in zip(lines, us, them, strict=True):
        if line.refused:
            alike = our[:2] == ("ERROR", line.refused) != their[:2]
        else:
            alike = our == their
        if not alike:
            wrong.append(f"{line.text}\n  ours   {our}\n  theirs {their}")
        elif our_tables != their_tables:
            wrong.append(f"{line.text}\n  ours   {our_tables}\n  theirs {their_tables}")
            break  # what follows differs for it
    return wrong


@needs_postgres
def test_a_script_of_changes_is_answered_as_postgres_answers_it() -> None:
    wrong, count, turn = [], 0, seed_of_commit() % EXPLAINED
    with postgres() as peer:
        peer.prepare_threshold = None
        for lines in stanzas(SCRIPT.read_text()):
            count += len(lines)
            wrong += differences(lines, asyncio.run(ours(lines, turn)), theirs(peer, lines))
    assert not wrong, "\n".join(wrong)
    assert count > 150
