"""The protocol as a state machine: bytes in, events out, no sockets and no clock.

The whole of what may follow what is :data:`TRANSITIONS`; :class:`Machine` is framing around that table.  However the
same bytes are cut on their way here, the same events come out.

A state is either the client's turn or the server's.  In the server's turn no message is taken from the buffer: a client
may pipeline as much as it likes, and it waits there until the server has reported what became of the statement.

What is refused in the middle of a conversation is refused as Postgres does: a message whose *body* is wrong is an error
of that message (the next Sync heals it); bytes that break the *framing* (an unknown type, an impossible length) end the
connection, since nobody can say where the next message starts.
"""

from __future__ import annotations

from enum import StrEnum
from struct import Struct
from typing import NamedTuple

from adapter.wire import messages as m

STARTUP_BYTES_MAX = 10_000
"""Postgres's MAX_STARTUP_PACKET_LENGTH: nobody has authenticated yet, so this is what a stranger can make us hold."""

AUTH_BYTES_MAX = 65_535
"""Postgres's PG_MAX_AUTH_TOKEN_LENGTH."""

MESSAGE_BYTES_MAX = 16 << 20
"""Default limit of any other message.  Twice the largest record that our topics take (8 MiB), since text is wider."""


class State(StrEnum):
    NEW = "new"
    REFUSED_SSL = "refused_ssl"
    REFUSED_GSS = "refused_gss"
    REFUSED_BOTH = "refused_both"
    AUTHENTICATING = "authenticating"
    SASL_INITIAL = "sasl_initial"
    SASL_FINAL = "sasl_final"
    STARTING = "starting"
    READY = "ready"
    SIMPLE = "simple"
    EXTENDED = "extended"
    SYNCING = "syncing"
    SKIPPING = "skipping"
    COPYING_SIMPLE = "copying_simple"
    COPYING_EXTENDED = "copying_extended"
    CLOSED = "closed"


SERVERS_TURN = frozenset({State.AUTHENTICATING, State.STARTING, State.SIMPLE, State.SYNCING})
"""States in which the client is not listened to until the server has said how it went."""

_DEAF = SERVERS_TURN | {State.CLOSED}


class Input(StrEnum):
    """What can happen: a message of the client (upper half) or a decision of the server (lower half)."""

    SSL_REQUEST = "SSLRequest"
    GSSENC_REQUEST = "GSSENCRequest"
    CANCEL_REQUEST = "CancelRequest"
    STARTUP = "StartupMessage"
    SASL = "SASLResponse"
    QUERY = "Query"
    PARSE = "Parse"
    BIND = "Bind"
    DESCRIBE = "Describe"
    EXECUTE = "Execute"
    CLOSE = "Close"
    FLUSH = "Flush"
    SYNC = "Sync"
    FUNCTION_CALL = "FunctionCall"
    COPY_DATA = "CopyData"
    COPY_DONE = "CopyDone"
    COPY_FAIL = "CopyFail"
    TERMINATE = "Terminate"

    ASK_SASL = "server: ask for SASL"
    CONTINUE_SASL = "server: continue SASL"
    AUTHENTICATED = "server: authenticated"
    COPY_IN = "server: copy in"
    DONE = "server: ready for query"
    FAILED = "server: error"
    FATAL = "server: fatal error"


class Action(StrEnum):
    """What becomes of the message: handed up as an event, answered here, or dropped."""

    EMIT = "emit"
    REFUSE = "answer N"
    DROP = "drop"
    NONE = "-"


_COPY = (Input.COPY_DATA, Input.COPY_DONE, Input.COPY_FAIL)
"""Outside of a COPY they are passed over: they were on their way when it failed."""


def _extended(state: State) -> dict[tuple[State, Input], tuple[State, Action]]:
    table = {
        (state, given): (State.EXTENDED, Action.EMIT)
        for given in (Input.PARSE, Input.BIND, Input.DESCRIBE, Input.EXECUTE, Input.CLOSE, Input.FLUSH)
    }
    table[state, Input.QUERY] = (State.SIMPLE, Action.EMIT)
    table[state, Input.FUNCTION_CALL] = (State.SIMPLE, Action.EMIT)
    table[state, Input.SYNC] = (State.SYNCING, Action.EMIT)
    table |= {(state, given): (state, Action.DROP) for given in _COPY}
    table[state, Input.TERMINATE] = (State.CLOSED, Action.EMIT)
    return table


def _copying(state: State, before: State, failed: State) -> dict[tuple[State, Input], tuple[State, Action]]:
    """``before`` is where it was asked for.  A client that asked by an extended query has sent its Sync by then, which
    Postgres passes over: another one comes behind CopyDone."""
    return {
        (before, Input.COPY_IN): (state, Action.NONE),
        (state, Input.COPY_DATA): (state, Action.EMIT),
        (state, Input.COPY_DONE): (before, Action.EMIT),
        (state, Input.COPY_FAIL): (before, Action.EMIT),
        (state, Input.FLUSH): (state, Action.DROP),
        (state, Input.SYNC): (state, Action.DROP),
        (state, Input.TERMINATE): (State.CLOSED, Action.EMIT),
        (state, Input.FAILED): (failed, Action.NONE),
    }


def _first(state: State, **next_states: State) -> dict[tuple[State, Input], tuple[State, Action]]:
    table = {(state, Input[name]): (after, Action.REFUSE) for name, after in next_states.items()}
    table[state, Input.STARTUP] = (State.AUTHENTICATING, Action.EMIT)
    table[state, Input.CANCEL_REQUEST] = (State.CLOSED, Action.EMIT)
    return table


TRANSITIONS: dict[tuple[State, Input], tuple[State, Action]] = {
    **_first(State.NEW, SSL_REQUEST=State.REFUSED_SSL, GSSENC_REQUEST=State.REFUSED_GSS),
    **_first(State.REFUSED_SSL, GSSENC_REQUEST=State.REFUSED_BOTH),
    **_first(State.REFUSED_GSS, SSL_REQUEST=State.REFUSED_BOTH),
    **_first(State.REFUSED_BOTH),
    (State.AUTHENTICATING, Input.ASK_SASL): (State.SASL_INITIAL, Action.NONE),
    (State.AUTHENTICATING, Input.CONTINUE_SASL): (State.SASL_FINAL, Action.NONE),
    (State.AUTHENTICATING, Input.AUTHENTICATED): (State.STARTING, Action.NONE),
    (State.SASL_INITIAL, Input.SASL): (State.AUTHENTICATING, Action.EMIT),
    (State.SASL_FINAL, Input.SASL): (State.AUTHENTICATING, Action.EMIT),
    (State.SASL_INITIAL, Input.TERMINATE): (State.CLOSED, Action.EMIT),
    (State.SASL_FINAL, Input.TERMINATE): (State.CLOSED, Action.EMIT),
    (State.STARTING, Input.DONE): (State.READY, Action.NONE),
    **_extended(State.READY),
    **_extended(State.EXTENDED),
    (State.SIMPLE, Input.FAILED): (State.SIMPLE, Action.NONE),
    (State.SIMPLE, Input.DONE): (State.READY, Action.NONE),
    (State.EXTENDED, Input.FAILED): (State.SKIPPING, Action.NONE),
    (State.SYNCING, Input.FAILED): (State.SYNCING, Action.NONE),
    (State.SYNCING, Input.DONE): (State.READY, Action.NONE),
    **_copying(State.COPYING_SIMPLE, State.SIMPLE, State.SIMPLE),
    **_copying(State.COPYING_EXTENDED, State.EXTENDED, State.SKIPPING),
    (State.SKIPPING, Input.SYNC): (State.SYNCING, Action.EMIT),
    (State.SKIPPING, Input.TERMINATE): (State.CLOSED, Action.EMIT),
    **{
        (State.SKIPPING, given): (State.SKIPPING, Action.DROP)
        for given in (
            Input.QUERY, Input.PARSE, Input.BIND, Input.DESCRIBE, Input.EXECUTE, Input.CLOSE, Input.FLUSH,
            Input.FUNCTION_CALL, *_COPY,
        )
    },
    **{(state, Input.FATAL): (State.CLOSED, Action.NONE) for state in State},
}  # fmt: skip
"""``(state, input) -> (next state, action)``.  A pair that is not here is a violation of the protocol."""

_INPUTS = {
    ord("Q"): Input.QUERY, ord("P"): Input.PARSE, ord("B"): Input.BIND, ord("D"): Input.DESCRIBE,
    ord("E"): Input.EXECUTE, ord("C"): Input.CLOSE, ord("H"): Input.FLUSH, ord("S"): Input.SYNC,
    ord("X"): Input.TERMINATE, ord("F"): Input.FUNCTION_CALL, ord("d"): Input.COPY_DATA,
    ord("c"): Input.COPY_DONE, ord("f"): Input.COPY_FAIL, ord("p"): Input.SASL,
}  # fmt: skip

_FIRST_INPUTS = {
    m.SslRequest: Input.SSL_REQUEST, m.GssEncRequest: Input.GSSENC_REQUEST, m.CancelRequest: Input.CANCEL_REQUEST,
    m.Startup: Input.STARTUP,
}  # fmt: skip

_FIRST_STATES = frozenset({State.NEW, State.REFUSED_SSL, State.REFUSED_GSS, State.REFUSED_BOTH})
_SASL_STATES = frozenset({State.SASL_INITIAL, State.SASL_FINAL})

_COMPACT_AT = 1 << 16

_LENGTH = Struct("!i").unpack_from


class Broken(NamedTuple):
    """The client broke the protocol.  ``fatal``: the connection has to end (the machine is already closed)."""

    reason: str
    sqlstate: str
    fatal: bool


Event = m.Message | Broken


class Machine:
    """One connection's protocol state.  Not thread-safe; holds at most what :meth:`receive` was given."""

    __slots__ = ("_at", "_buffer", "_bytes_max", "output", "state")

    def __init__(self, message_bytes_max: int = MESSAGE_BYTES_MAX) -> None:
        self._buffer: bytes | bytearray = b""
        self._at = 0
        self._bytes_max = message_bytes_max
        self.state = State.NEW
        self.output: list[bytes] = []
        """Bytes that the machine itself answers with; the owner sends and clears them."""

    def receive(self, data: bytes) -> None:
        """More bytes from the client."""
        if self._at == len(self._buffer):  # nearly always: what came is whole messages, and is read where it is
            self._buffer, self._at = data, 0
            return
        if type(self._buffer) is bytes:
            self._buffer, self._at = bytearray(memoryview(self._buffer)[self._at :]), 0
        self._buffer += data

    @property
    def unread_bytes(self) -> int:
        """Bytes received and not yet taken by :meth:`next_event`: what a reader's back-pressure looks at."""
        return len(self._buffer) - self._at

    def next_is(self, given: Input) -> bool:
        """Whether the first unread byte announces ``given``.  Takes nothing."""
        return self._at < len(self._buffer) and _INPUTS.get(self._buffer[self._at]) is given

    def next_event(self) -> Event | None:
        """The next thing the client did; ``None`` where more bytes are needed or it is the server's turn."""
        while True:
            state = self.state
            if state in _DEAF or self._at == len(self._buffer):
                return None
            try:
                taken = self._take_first() if state in _FIRST_STATES else self._take(state)
            except _FramingBroken as e:
                self.state = State.CLOSED
                return Broken(e.reason, e.sqlstate, fatal=True)
            if taken is None:
                return None
            given, event = taken
            step = TRANSITIONS.get((state, given))
            if step is None:
                self.state = State.CLOSED
                return Broken(f"unexpected {given} message in state {state}", "08P01", fatal=True)
            self.state, action = step
            if action is Action.EMIT:
                return event
            if action is Action.REFUSE:
                self.output.append(m.REFUSE_ENCRYPTION)

    def happened(self, given: Input) -> None:
        """The server decided something.  A decision that the state does not allow is a bug of ours, so it raises."""
        step = TRANSITIONS.get((self.state, given))
        assert step is not None, f"{given} in state {self.state}"
        self.state = step[0]

    def _take_first(self) -> tuple[Input, m.Message] | None:
        available = len(self._buffer) - self._at
        if available < 4:
            return None
        (length,) = _LENGTH(self._buffer, self._at)
        if not 8 <= length <= STARTUP_BYTES_MAX:
            raise _FramingBroken("invalid length of startup packet")
        if available < length:
            return None
        body = self._cut(4, length)
        try:
            event = m.decode_first(body)
        except (m.Malformed, m.StructError) as e:
            why = m.why(e)
            raise _FramingBroken(why, "0A000" if "unsupported frontend protocol" in why else "08P01") from e
        return _FIRST_INPUTS[type(event)], event

    def _take(self, state: State) -> tuple[Input, m.Message | Broken | None] | None:
        available = len(self._buffer) - self._at
        kind = self._buffer[self._at]
        given = _INPUTS.get(kind)
        if given is None:
            raise _FramingBroken(f"invalid frontend message type {kind}")
        if available < 5:
            return None
        (length,) = _LENGTH(self._buffer, self._at + 1)
        if length < 4:
            raise _FramingBroken("invalid message length")
        limit = AUTH_BYTES_MAX if state in _SASL_STATES else self._bytes_max
        if length > limit:
            raise _FramingBroken(f"message of {length} bytes is larger than the limit of {limit}", "54000")
        if available < length + 1:
            return None
        body = self._cut(5, length + 1)
        if state is State.SKIPPING and given is not Input.SYNC:
            return given, m.Terminate() if given is Input.TERMINATE else None
        decoder = m.DECODERS.get(kind)
        if decoder is None:
            decoder = m.decode_sasl_initial if state is State.SASL_INITIAL else m.decode_sasl_response
        try:
            return given, decoder(body)
        except (m.Malformed, m.StructError) as e:
            return given, Broken(f"{given} message: {m.why(e)}", "08P01", fatal=False)

    def _cut(self, lower: int, upper: int) -> bytes:
        buffer, at = self._buffer, self._at
        self._at = end = at + upper
        if type(buffer) is bytes:
            body = buffer[at + lower : end]
        else:
            body = bytes(memoryview(buffer)[at + lower : end])
            if _COMPACT_AT < end < len(buffer):
                del buffer[:end]
                self._at = 0
        if self._at == len(self._buffer):
            self._buffer, self._at = b"", 0
        return body


class _FramingBroken(Exception):
    def __init__(self, reason: str, sqlstate: str = "08P01") -> None:
        super().__init__(reason)
        self.reason = reason
        self.sqlstate = sqlstate
