"""The lookups' door: answers frame by frame, refuses what is none, bounds what it holds, hangs up when it closes."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator

import pyarrow as pa
import pytest

from controllers.compute import lookup_server
from controllers.compute.lookup_server import LookupServer
from controllers.peeks.lookup_codec import (
    Asked,
    Found,
    decode_answers,
    decode_lookups,
    encode_lookups,
    framed,
    read_frame,
)
from controllers.peeks.peek import Question
from controllers.peeks.peek_codec import TICKET_BYTES_MAX
from journal.errors import InvalidUsage, TidemarkError
from journal.timestamps import CatalogTs, DataTs

BYTES_MAX = 1 << 30


class Desk:
    """A row for each key: the key.  0 is refused, -1 a mistake of ours, -2 not now."""

    def lookups(self, _question, keys):
        for (key,) in keys:
            if key == 0:
                raise InvalidUsage("no zero", sqlstate="22012")
            if key == -1:
                raise KeyError("what we did not think of")
            if key == -2:
                return None
        return Found(pa.record_batch({"k": pa.array([key for (key,) in keys], pa.int64())}), DataTs(7), [1] * len(keys))


class Caller:
    """An adapter, one request at a time."""

    def __init__(self, server: LookupServer) -> None:
        self.socket = socket.create_connection(("127.0.0.1", server.port), 10)
        self.read = self.socket.makefile("rb").read

    def ask(self, *questions: list[int]) -> list[object]:
        """What was answered to each: keys, an SQLSTATE, or nothing."""
        asked = [Asked(Question(("u1",), CatalogTs(3), None, False, "u2", "u1", "{}"), [(k,) for k in keys])
                 for keys in questions]  # fmt: skip
        answers = decode_answers(self.send(framed(encode_lookups(asked))), asked)
        return [a.batch.column(0).to_pylist() if isinstance(a, Found) else a and a.sqlstate for a in answers]

    def send(self, sent: bytes) -> bytes | None:
        self.socket.sendall(sent)
        return read_frame(self.read, BYTES_MAX)


@pytest.fixture
def server() -> Iterator[LookupServer]:
    made = LookupServer("127.0.0.1", 0, Desk())
    yield made
    made.close()


def test_who_may_be_answered_behind_says_so_and_others_say_what_they_always_said() -> None:
    plain = Question(("u1",), CatalogTs(3), DataTs(5), True, "u2", "u1", "{}")
    asked = [Asked(plain, [(1,)]), Asked(plain._replace(behind=True), [(2,), ("x",)])]
    assert decode_lookups(encode_lookups(asked)) == asked
    assert [len(each) for each in json.loads(encode_lookups(asked))] == [8, 9]


def test_each_question_has_its_own_answer(server: LookupServer) -> None:
    one, other = Caller(server), Caller(server)
    assert one.ask([1, 2], [0], [-2], [-1], [3]) == [[1, 2], "22012", None, "XX000", [3]]
    assert other.ask([4]) == [[4]] and one.ask([5]) == [[5]]


def test_what_is_no_request_is_refused_and_the_next_is_answered(server: LookupServer) -> None:
    caller = Caller(server)
    for nonsense in (b"", b"{}", b"[1]", b"\xff"):
        with pytest.raises(InvalidUsage, match="malformed lookups"):
            decode_answers(caller.send(framed(nonsense)), [])
    assert caller.ask([1]) == [[1]]


def test_after_a_frame_that_is_too_long_the_door_is_shut(server: LookupServer) -> None:
    caller = Caller(server)
    with pytest.raises(TidemarkError) as refused:
        decode_answers(caller.send(framed(b"x" * (TICKET_BYTES_MAX + 1))[:4]), [])
    assert refused.value.sqlstate == "54000"
    assert caller.read(1) == b""
    cut = Caller(server)
    cut.socket.sendall(framed(b"[]")[:-1])
    cut.socket.shutdown(socket.SHUT_WR)
    assert cut.read(1) == b"", "half a request is none"
    assert Caller(server).ask([1]) == [[1]]


def test_what_is_too_large_is_put_off(server: LookupServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup_server, "ANSWERS_BYTES_MAX", 3 * 8)
    caller = Caller(server)
    assert caller.ask([1, 2, 3, 4]) == [None]
    assert caller.ask([1, 2], [3, 4], [5], [0]) == [[1, 2], None, None, None]
    assert caller.ask([1, 2], [3], [4]) == [[1, 2], [3], None]


def test_adapters_are_bounded_and_one_that_leaves_makes_room(
    server: LookupServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookup_server, "CONNECTIONS_MAX", 2)
    callers = [Caller(server) for _ in range(2)]
    assert [caller.ask([1]) for caller in callers] == [[[1]], [[1]]]
    assert Caller(server).read(1) == b""
    callers[0].socket.shutdown(socket.SHUT_WR)
    assert callers[0].read(1) == b"", "the door has seen it leave"
    assert Caller(server).ask([2]) == [[2]] and callers[1].ask([3]) == [[3]]


def test_closing_hangs_up(server: LookupServer) -> None:
    caller = Caller(server)
    assert caller.ask([1]) == [[1]]
    server.close()
    assert caller.read(1) == b""
    with pytest.raises(ConnectionRefusedError):
        Caller(server)


def test_the_port_is_the_one_that_was_asked_for() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(OSError, match="in use"):
            LookupServer("127.0.0.1", taken.getsockname()[1], Desk())
    made = LookupServer("localhost", 0, Desk())
    assert Caller(made).ask([1]) == [[1]]
    made.close()


def test_a_refusal_is_json_that_a_person_can_read(server: LookupServer) -> None:
    told = Caller(server).send(framed(b"nonsense"))
    assert json.loads(json.loads(told[4:])["error"])["message"] == "malformed lookups"
