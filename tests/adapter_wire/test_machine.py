"""The protocol machine by itself: byte strings in, events and states out."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.wire import messages as m
from adapter.wire.machine import (
    MESSAGE_BYTES_MAX,
    SERVERS_TURN,
    STARTUP_BYTES_MAX,
    TRANSITIONS,
    Action,
    Broken,
    Input,
    Machine,
    State,
)
from tests.adapter_wire import frontend as f


def ready() -> Machine:
    machine = Machine()
    machine.receive(f.startup())
    assert type(machine.next_event()) is m.Startup
    machine.happened(Input.AUTHENTICATED)
    machine.happened(Input.DONE)
    return machine


def drive(pieces: list[bytes], machine: Machine | None = None) -> tuple[list, bytes, State]:
    """Feed the pieces; in the server's turn, decide at once that all went well.  Gives events, answers and state."""
    machine = machine or Machine()
    events = []
    for piece in pieces:
        machine.receive(piece)
        while True:
            event = machine.next_event()
            if event is not None:
                events.append(event)
            elif machine.state is State.AUTHENTICATING:
                machine.happened(Input.AUTHENTICATED)
            elif machine.state in SERVERS_TURN:
                machine.happened(Input.DONE)
            else:
                break
    return events, b"".join(machine.output), machine.state


CONVERSATION = (
    f.SSL_REQUEST
    + f.GSSENC_REQUEST
    + f.startup(application_name="a")
    + f.query("select 1")
    + f.parse("select $1", "s", (23,))
    + f.bind((b"1", None), "s", formats=(0, 0), results=(1,))
    + f.describe("S", "s")
    + f.execute("", 5)
    + f.FLUSH
    + f.close("S", "s")
    + f.message("d", b"ignored")
    + f.SYNC
    + f.TERMINATE
)


def test_a_whole_conversation():
    events, answered, state = drive([CONVERSATION])
    assert answered == b"NN"
    assert state is State.CLOSED
    assert events == [
        m.Startup(0, {"user": "tester", "database": "tidemark", "application_name": "a"}, ()),
        m.Query("select 1"),
        m.Parse("s", "select $1", (23,)),
        m.Bind("", "s", (0, 0), (b"1", None), (1,)),
        m.Describe("S", "s"),
        m.Execute("", 5),
        m.Flush(),
        m.Close("S", "s"),
        m.Sync(),
        m.Terminate(),
    ]


def test_every_cut_in_two_gives_the_same():
    whole = drive([CONVERSATION])
    for at in range(len(CONVERSATION) + 1):
        assert drive([CONVERSATION[:at], CONVERSATION[at:]]) == whole, at


def test_byte_by_byte_gives_the_same():
    assert drive([bytes([b]) for b in CONVERSATION]) == drive([CONVERSATION])


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=6), st.booleans())
def test_hostile_bytes_are_cut_alike_and_never_raise(data, cuts, started):
    if started:
        data = f.startup() + data
    places = sorted({min(c, len(data)) for c in cuts})
    pieces = [data[a:b] for a, b in zip([0, *places], [*places, len(data)], strict=True)]
    assert drive(pieces) == drive([data])


_bodies = st.one_of(
    st.binary(max_size=40),
    st.lists(st.sampled_from([b"\0", b"S", b"P", b"\0\1", b"\0\0\0\1", b"\xff\xff", b"abc\0"])).map(b"".join),
)


@settings(max_examples=500, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("QPBDECHSFdcfXp"), _bodies), max_size=8), st.integers(0, 400))
def test_well_framed_messages_with_any_body_never_raise(messages, at):
    data = f.startup() + b"".join(f.message(kind, body) for kind, body in messages)
    assert drive([data[:at], data[at:]]) == drive([data])


@pytest.mark.parametrize("length", [0, 3, 7, STARTUP_BYTES_MAX + 1, 2**31 - 1])
def test_startup_packets_of_impossible_length(length):
    events, _, state = drive([struct.pack("!i", length) + b"x" * 8])
    assert state is State.CLOSED
    assert events == [Broken("invalid length of startup packet", "08P01", True)]


def test_a_startup_packet_is_not_awaited_beyond_its_limit():
    machine = Machine()
    machine.receive(struct.pack("!i", -1))
    assert machine.next_event().fatal


@pytest.mark.parametrize(
    ("body", "sqlstate"),
    [
        (struct.pack("!i", 2 << 16) + b"user\0x\0\0", "0A000"),
        (struct.pack("!i", 4 << 16) + b"user\0x\0\0", "0A000"),
        (struct.pack("!i", 3 << 16) + b"user\0x", "08P01"),
        (struct.pack("!i", 3 << 16) + b"user\0x\0\0rest", "08P01"),
        (struct.pack("!i", 3 << 16) + b"us\xff\0x\0\0", "08P01"),
        (struct.pack("!i", 80877102) + b"\0\0\0\1", "08P01"),
        (struct.pack("!i", 80877103) + b"x", "08P01"),
    ],
)
def test_bad_startup_packets_are_fatal(body, sqlstate):
    events, _, state = drive([struct.pack("!i", len(body) + 4) + body])
    assert state is State.CLOSED
    assert [(e.sqlstate, e.fatal) for e in events] == [(sqlstate, True)]


def test_encryption_is_asked_for_once_each():
    events, answered, state = drive([f.SSL_REQUEST, f.SSL_REQUEST])
    assert (answered, state) == (b"N", State.CLOSED)
    assert events[0].fatal


def test_newer_minor_versions_and_options_are_reported():
    events, _, _ = drive([f.startup(2, **{"_pq_.colour": "blue"})])
    assert events == [m.Startup(2, {"user": "tester", "database": "tidemark"}, ("_pq_.colour",))]


def test_cancel_closes():
    events, _, state = drive([f.cancel(7, b"abcd")])
    assert (events, state) == ([m.CancelRequest(7, b"abcd")], State.CLOSED)


def test_cancel_after_a_refused_encryption():
    events, answered, _ = drive([f.SSL_REQUEST + f.cancel(7, b"abcd")])
    assert (events, answered) == ([m.CancelRequest(7, b"abcd")], b"N")


def test_nothing_is_read_in_the_servers_turn():
    machine = ready()
    machine.receive(f.query("a") + f.query("b"))
    assert machine.next_event() == m.Query("a")
    assert machine.next_event() is None
    assert machine.unread_bytes == len(f.query("b"))
    machine.happened(Input.DONE)
    assert machine.next_event() == m.Query("b")


def test_after_an_error_everything_is_skipped_until_sync():
    machine = ready()
    machine.receive(f.parse("x") + f.bind() + f.query("skipped") + f.message("B", b"garbage") + f.SYNC + f.query("y"))
    assert type(machine.next_event()) is m.Parse
    machine.happened(Input.FAILED)
    assert machine.state is State.SKIPPING
    assert machine.next_event() == m.Sync()
    machine.happened(Input.DONE)
    assert machine.next_event() == m.Query("y")


def test_a_wrong_body_is_an_error_of_that_message_only():
    machine = ready()
    machine.receive(f.message("B", b"\0") + f.SYNC)
    event = machine.next_event()
    assert type(event) is Broken and not event.fatal and event.sqlstate == "08P01"
    assert machine.state is State.EXTENDED


@pytest.mark.parametrize(
    "body",
    [
        f.z("") + f.z("") + b"\0\1\0\2\0\0\0\0",  # a format code that does not exist
        f.z("") + f.z("") + b"\0\2\0\0\0\0\0\1\0\0\0\1x\0\0",  # two formats for one parameter
        f.z("") + f.z("") + b"\0\0\0\1\0\0\0\x09x\0\0",  # a parameter longer than the message
        f.z("") + f.z("") + b"\0\0\0\1\xff\xff\xff\xfe\0\0",  # a negative length that is not -1
        f.z("") + f.z("") + b"\0\0\xff\xff",  # 65535 parameters, none there
    ],
)
def test_bad_bind_messages(body):
    machine = ready()
    machine.receive(f.message("B", body))
    assert type(machine.next_event()) is Broken


def test_unknown_types_and_lengths_are_fatal():
    for data in (b"z\0\0\0\4", b"Q\0\0\0\3", b"Q\xff\xff\xff\xff"):
        events, _, state = drive([data], ready())
        assert state is State.CLOSED
        assert events[0].fatal


def test_a_message_above_the_limit_is_refused_before_it_is_read():
    machine = ready()
    machine.receive(b"Q" + struct.pack("!i", MESSAGE_BYTES_MAX + 1))
    event = machine.next_event()
    assert (event.sqlstate, event.fatal) == ("54000", True)


def test_sasl():
    machine = Machine()
    machine.receive(f.startup())
    machine.next_event()
    machine.happened(Input.ASK_SASL)
    machine.receive(f.password(f.z("SCRAM-SHA-256") + struct.pack("!i", 3) + b"n,,") + f.password(b"final"))
    assert machine.next_event() == m.SaslInitial("SCRAM-SHA-256", b"n,,")
    assert machine.next_event() is None
    machine.happened(Input.CONTINUE_SASL)
    assert machine.next_event() == m.SaslResponse(b"final")


@pytest.mark.parametrize("given", [f.query("select 1"), f.SYNC, b"p\x7f\0\0\0"])
def test_in_sasl_only_sasl(given):
    machine = Machine()
    machine.receive(f.startup())
    machine.next_event()
    machine.happened(Input.ASK_SASL)
    machine.receive(given)
    assert machine.next_event().fatal


def test_a_password_that_nobody_asked_for():
    machine = ready()
    machine.receive(f.password(b"x"))
    assert machine.next_event().fatal


def test_the_server_may_only_decide_in_its_turn():
    with pytest.raises(AssertionError):
        ready().happened(Input.DONE)


def test_the_table_is_sound():
    """Every state can be reached and left; the server's turn takes decisions only; nothing leaves CLOSED."""
    client = [i for i in Input if not i.value.startswith("server:")]
    reached, frontier = {State.NEW}, [State.NEW]
    while frontier:
        state = frontier.pop()
        for (before, _), (after, _) in TRANSITIONS.items():
            if before is state and after not in reached:
                reached.add(after)
                frontier.append(after)
    assert reached == set(State)
    for (state, what), (after, action) in TRANSITIONS.items():
        if state in SERVERS_TURN:
            assert what not in client
        if state is State.CLOSED:
            assert after is State.CLOSED
        assert (action is Action.NONE) == (what not in client)


def test_the_buffer_does_not_keep_what_was_taken():
    machine = ready()
    one = f.query("x" * 1000)
    for _ in range(500):
        machine.receive(one + one[:10])
        assert type(machine.next_event()) is m.Query
        machine.happened(Input.DONE)
        machine.receive(one[10:])
        assert type(machine.next_event()) is m.Query
        machine.happened(Input.DONE)
    assert machine.unread_bytes == 0
    assert len(machine._buffer) == 0
