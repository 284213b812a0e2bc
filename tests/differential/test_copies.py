"""COPY: one script, told to PostgreSQL and to us, a statement after another.

``copies.txt`` is the script, in stanzas of a world each, with the data of each COPY FROM behind it.  After each
statement its answer is compared (the tag and every message of rows byte for byte, or the SQLSTATE and the CONTEXT),
and then every table of the stanza.  A line that begins with ``!`` and a SQLSTATE is refused here so, and there
otherwise or not at all.
"""

from __future__ import annotations

import asyncio
import codecs
import re
import select
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import psycopg
import pytest
from psycopg.pq import DiagnosticField, ExecStatus, PGconn
from psycopg.pq.abc import PGresult

from tests.adapter.test_clients import serving
from tests.differential.postgres import missing, postgres
from tests.differential.test_changes import Tables
from tests.finishing import finished

SCRIPT = Path(__file__).with_name("copies.txt")

needs_postgres = pytest.mark.skipif(missing() is not None, reason=str(missing()))

T = TypeVar("T")
Told = tuple[object, ...]

WAIT_S = 10.0
"""For bytes that are on their way."""


class Line:
    """One statement of the script, with what is sent behind it."""

    def __init__(self, line: str) -> None:
        marked = re.match(r"!(\w{5}) ", line)
        self.refused = marked[1] if marked else None
        self.text = line.removeprefix(marked[0] if marked else "")
        made = re.match(r"create table (\S+)", self.text)
        self.makes = made[1] if made else None
        self.data: list[bytes] = []
        self.fails: str | None = None

    def behind(self, line: str) -> None:
        if line.startswith("FAIL "):
            self.fails = line.removeprefix("FAIL ")
            return
        end = "" if line.endswith("\\c") else "\n"
        self.data.append(codecs.escape_decode(line.removesuffix("\\c").encode())[0] + end.encode())


def stanzas(text: str) -> Iterator[list[Line]]:
    for part in text.split("\n\n"):
        lines: list[Line] = []
        for each in part.splitlines():
            if each.startswith(">"):
                lines[-1].behind(each[2:])
            elif each and not each.startswith("#"):
                lines.append(Line(each))
        if lines:
            yield lines


def waited(connection: PGconn, ready: Callable[[], T | None]) -> T:
    """What ``ready`` gives once it gives anything.  libpq's own waiting would keep Python's lock, and the server is
    another thread of this process."""
    while (found := ready()) is None:
        select.select([connection.socket], [], [], WAIT_S)
        connection.consume_input()
    return found


def result_of(connection: PGconn) -> PGresult:
    return waited(connection, lambda: None if connection.is_busy() else connection.get_result())


def row_of(connection: PGconn) -> bytes | None:
    """The next message of rows; ``None`` behind the last."""
    size, data = waited(connection, lambda: got if (got := connection.get_copy_data(1))[0] else None)
    return bytes(data) if size > 0 else None


def ended(connection: PGconn) -> None:
    """The server is ready for the next statement."""
    while waited(connection, lambda: None if connection.is_busy() else (connection.get_result(),))[0] is not None:
        pass


def told(connection: PGconn, line: Line) -> Told:
    connection.send_query(line.text.encode())
    result = first = result_of(connection)
    rows: list[bytes] = []
    if first.status == ExecStatus.COPY_IN:
        for each in line.data:
            connection.put_copy_data(each)
        connection.put_copy_end(line.fails.encode() if line.fails else None)
    elif first.status == ExecStatus.COPY_OUT:
        while (row := row_of(connection)) is not None:
            rows.append(row)
    if first.status in (ExecStatus.COPY_IN, ExecStatus.COPY_OUT):
        result = result_of(connection)
    ended(connection)
    if result.status == ExecStatus.FATAL_ERROR:
        fields = DiagnosticField.SQLSTATE, DiagnosticField.CONTEXT, DiagnosticField.MESSAGE_PRIMARY
        state, context, message = ((result.error_field(each) or b"").decode() for each in fields)
        # What a type's own reader says beside is in Postgres's context, too.
        return "ERROR", state, [each for each in context.split("\n") if each.startswith("COPY")], message
    formats = [first.fformat(at) for at in range(first.nfields)]
    return result.command_status.decode(), first.binary_tuples, formats, rows


def answers(connection: PGconn, lines: list[Line]) -> list[tuple[Told, list[Told]]]:
    found, tables = [], []
    for line in lines:
        answer = told(connection, line)
        tables += [line.makes] if line.makes else []
        found.append((answer, [contents(connection, each) for each in tables]))
    return found


def contents(connection: PGconn, table: str) -> Told:
    connection.send_query(f"select * from {table}".encode())
    result = result_of(connection)
    ended(connection)
    rows = [[result.get_value(row, at) for at in range(result.nfields)] for row in range(result.ntuples)]
    return tuple(sorted(rows, key=repr))


async def ours(lines: list[Line]) -> list[tuple[Told, list[Told]]]:
    def run(port: int) -> list[tuple[Told, list[Told]]]:
        dsn = f"host=127.0.0.1 port={port} user=tidemark dbname=tidemark"
        with psycopg.connect(dsn, autocommit=True) as connection:
            return answers(connection.pgconn, lines)

    async with serving(Tables()) as port:
        return await asyncio.to_thread(run, port)


def theirs(connection: psycopg.Connection, lines: list[Line]) -> list[tuple[Told, list[Told]]]:
    # There is one who may do what nobody here may, so somebody else asks.
    connection.execute("set role plain")
    connection.execute("create schema s authorization plain; set search_path = s")
    try:
        return answers(connection.pgconn, lines)
    finally:
        connection.execute("reset role; drop schema s cascade")


def differences(lines: list[Line], us: list[tuple[Told, list[Told]]], them: list[tuple[Told, list[Told]]]) -> list[str]:
    wrong = []
    for line, (our, our_tables), (their, their_tables) in zip(lines, us, them, strict=True):
        if line.refused:
            alike = our[:2] == ("ERROR", line.refused) != their[:2]
        else:
            alike = our == their or (our[0] == "ERROR" and our[:3] == their[:3])
        if not alike:
            wrong.append(f"{line.text} {line.data}\n  ours   {our}\n  theirs {their}")
        if our_tables != their_tables:
            wrong.append(f"{line.text} {line.data}\n  ours   {our_tables}\n  theirs {their_tables}")
            break  # what follows differs for it
    return wrong


@needs_postgres
def test_a_script_of_copies_is_answered_as_postgres_answers_it() -> None:
    wrong, count = [], 0
    with postgres() as peer:
        peer.execute("create role plain; grant create on database postgres to plain")
        for lines in stanzas(SCRIPT.read_text()):
            count += len(lines)
            us = finished(ours(lines))
            wrong += differences(lines, us, theirs(peer, lines))
    assert not wrong, "\n".join(wrong)
    assert count > 150
