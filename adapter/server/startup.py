"""From the first byte to the first ReadyForQuery: who is it, may they come in, what are they told."""

from __future__ import annotations

import re
from collections.abc import Iterator

from adapter.server.authentication import MECHANISM, Scram, WrongPassword
from adapter.session.connection import Connection
from adapter.session.replies import error_message
from adapter.state.interfaces import Executor
from adapter.state.session_state import DEFAULT_DATABASE, SessionState
from adapter.wire import messages as m
from adapter.wire.machine import Broken, Event, Input, State
from journal.errors import InvalidUsage, TidemarkError

NEWEST_MINOR = 2
"""We speak protocol 3.0 and 3.2; a client that asks for something newer is told so and may go on or leave."""


def secret_bytes(minor: int) -> int:
    """How long a session's cancel key is: 3.0 has room for 4 bytes; from 3.2 on it is 32, as Postgres 18 gives."""
    return 32 if minor >= 2 else 4


_OPTION = re.compile(r"(?:-c\s*|--)([A-Za-z0-9_.-]+)=((?:\\.|[^\s\\])*)")


class Refused(Exception):
    """The connection ends before it became a session; the client has been told why (if it is still there)."""


async def next_event(connection: Connection) -> Event:
    """The client's next message before there is a session.  Raises :class:`Refused` where there will be none."""
    machine = connection.machine
    while True:
        event = machine.next_event()
        if machine.output:
            connection.write(b"".join(machine.output))
            machine.output.clear()
        if event is not None:
            if type(event) is Broken:
                refuse(connection, InvalidUsage(event.reason, sqlstate=event.sqlstate))
            return event
        if connection.closed or machine.state is State.CLOSED:
            raise Refused
        await connection.received()


def refuse(connection: Connection, error: BaseException) -> None:
    """Tell the client and end.  Always raises :class:`Refused`."""
    connection.machine.happened(Input.FATAL)
    connection.write(error_message(error, "FATAL"))
    raise Refused from error


async def authenticate(connection: Connection, scram: Scram | None, user: str) -> None:
    """Trust where ``scram`` is ``None``.  Raises :class:`Refused` (28P01) for a wrong password."""
    machine = connection.machine
    if scram is not None:
        exchange = scram.exchange()
        machine.happened(Input.ASK_SASL)
        connection.write(m.authentication_sasl([MECHANISM]))
        try:
            first = await next_event(connection)
            if type(first) is not m.SaslInitial:
                raise Refused
            if first.mechanism != MECHANISM:
                raise WrongPassword(f"mechanism {first.mechanism}")
            answer = exchange.first(first.data)
            machine.happened(Input.CONTINUE_SASL)
            connection.write(m.authentication_sasl_continue(answer))
            final = await next_event(connection)
            if type(final) is not m.SaslResponse:
                raise Refused
            connection.write(m.authentication_sasl_final(exchange.final(final.data)))
        except WrongPassword:
            refuse(connection, InvalidUsage(f'password authentication failed for user "{user}"', sqlstate="28P01"))
    machine.happened(Input.AUTHENTICATED)
    connection.write(m.AUTHENTICATION_OK)


def options(text: str) -> Iterator[tuple[str, str]]:
    """Assignments in the ``options`` parameter: ``-c name=value`` and ``--name=value``; a backslash quotes.

    Raises 08P01 for anything else in it.
    """
    at = 0
    for match in _OPTION.finditer(text):
        if text[at : match.start()].strip():
            break
        at = match.end()
        yield match[1].replace("-", "_"), re.sub(r"\\(.)", r"\1", match[2])
    if text[at:].strip():
        raise InvalidUsage(f'invalid command-line argument for server process: "{text[at:].strip()}"', sqlstate="08P01")


def state_from(startup: m.Startup, session_id: int) -> SessionState:
    """The session that a startup message asks for.  Raises 28000, 0A000, 42704 or 22023.

    libpq names the database after the user where none was given, so that name means "the default" too.
    """
    given = dict(startup.parameters)
    user = given.pop("user", "")
    if not user:
        raise InvalidUsage("no PostgreSQL user name specified in startup packet", sqlstate="28000")
    database = given.pop("database", "") or user
    if given.pop("replication", "false").lower() not in ("false", "off", "no", "0"):
        raise InvalidUsage("replication connections are not supported", sqlstate="0A000")
    state = SessionState(session_id, user, DEFAULT_DATABASE if database == user else database)
    for name, value in [*options(given.pop("options", "")), *given.items()]:
        state.variables.set_default("default_" + name if name.startswith("transaction_") else name, value)
    state.variables.changed.clear()
    return state


async def identify(connection: Connection, startup: m.Startup, scram: Scram | None) -> SessionState:
    """Who the client is, and the session that it asks for, without an id yet.  Raises :class:`Refused`."""
    if startup.minor > NEWEST_MINOR or startup.unknown_options:
        connection.write(m.negotiate_protocol_version(min(startup.minor, NEWEST_MINOR), startup.unknown_options))
    try:
        state = state_from(startup, 0)
    except TidemarkError as e:
        refuse(connection, e)
    await authenticate(connection, scram, state.user)
    return state


async def take_in(connection: Connection, state: SessionState, executor: Executor, secret: bytes) -> None:
    """After this a client that was identified may send statements.  Raises :class:`Refused`."""
    try:
        await executor.open(state)
    except TidemarkError as e:
        refuse(connection, e)
    told = {**state.variables.reported(), "session_authorization": state.user}
    connection.write(
        b"".join(m.parameter_status(name, value) for name, value in told.items())
        + m.backend_key_data(state.session_id, secret)
        + m.ready_for_query(state.transaction.status.value)
    )
    connection.machine.happened(Input.DONE)
