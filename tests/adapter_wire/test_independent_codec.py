"""Sessions seen by a codec that others wrote: pygwire's frontend side builds every request and reads every answer.

It knows the protocol's states by itself and raises for a message that may not come, so what is added here is only what
each request must be answered with.  The second half sends the same conversations with bytes changed.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pygwire import FrontendConnection, TransactionStatus
from pygwire import messages as pg

from tests.adapter_wire.loopback import Loopback, Raw

NAMES = st.sampled_from(["", "s", "c"])
SQLS = st.sampled_from([
    "", ";", "select 1, 'a', null", "select $1::int4", "select * from series(7)", "select * from t", "select oops",
    "fail 22012", "notice", "insert into t values (1,'a')", "insert into t values ($1, $2)", "create table x",
    "begin", "begin read only", "begin isolation level read committed", "commit", "rollback", "commit and chain",
    "savepoint s", "rollback to s", "release s", "set application_name = 'x'", "show application_name",
    "prepare s as select 1", "prepare s (int4) as select $1", "execute s", "execute s(7)", "deallocate s",
    "deallocate all",
    "declare c cursor for select * from series(5)", "declare c cursor with hold for select * from series(5)",
    "fetch 2 from c", "fetch all from c", "move 1 in c", "close c", "close all", "discard all", "unlisten *",
])  # fmt: skip
TEXTS = SQLS | st.lists(SQLS, min_size=2, max_size=4).map("; ".join)
PARAMS = st.lists(st.none() | st.sampled_from([b"1", b"x", b"\0\0\0\7"]), max_size=2)
OIDS = st.lists(st.sampled_from([0, 23, 25, 600]), max_size=2)
FORMATS = st.lists(st.sampled_from([0, 1]), max_size=2)

REQUESTS = st.one_of(
    st.builds(pg.Parse, statement=NAMES, query=SQLS, param_types=OIDS),
    st.builds(pg.Bind, portal=NAMES, statement=NAMES, param_formats=FORMATS, param_values=PARAMS,
              result_formats=FORMATS),
    st.builds(pg.Describe, kind=st.sampled_from("SP"), name=NAMES),
    st.builds(pg.Execute, portal=NAMES, max_rows=st.sampled_from([0, 1, 3])),
    st.builds(pg.Close, kind=st.sampled_from("SP"), name=NAMES),
    st.just(pg.Flush()),
)  # fmt: skip
RUNS = st.builds(  # a statement as drivers run it, so that more than errors is seen
    lambda sql, values, rows: [pg.Parse(query=sql), pg.Bind(param_values=values), pg.Describe(kind="P"),
                               pg.Execute(max_rows=rows)],
    SQLS, PARAMS, st.sampled_from([0, 2]),
)  # fmt: skip
PIPELINES = st.lists(RUNS | REQUESTS.map(lambda request: [request]), max_size=5).map(lambda parts: sum(parts, []))
CHANGES = st.tuples(st.integers(0, 4000), st.sampled_from("rid"), st.integers(0, 255))
BATCHES = st.lists(TEXTS.map(pg.Query) | PIPELINES, min_size=1, max_size=6)

ANSWERS: dict[type, list[tuple[type, ...]]] = {
    pg.Parse: [(pg.ParseComplete,)],
    pg.Bind: [(pg.BindComplete,)],
    pg.Close: [(pg.CloseComplete,)],
    pg.Flush: [],
}
ANY_TIME = (pg.NoticeResponse, pg.ParameterStatus)


class Client:
    """A socket between pygwire's frontend and the server."""

    def __init__(self, server: Loopback, version: int) -> None:
        self.raw = Raw(server, start=False)
        self.raw.socket.settimeout(60)  # no answer is a failure, and a busy machine is not
        self.codec = FrontendConnection()
        self.cut = 1 << 16
        self.send(pg.StartupMessage(params={"user": "tester", "database": "tidemark"}, protocol_version=version))
        self.status = self.until_ready()[-1].status

    def send(self, *requests: pg.PGMessage) -> None:
        data = b"".join(self.codec.send(request) for request in requests)
        for at in range(0, len(data), self.cut):
            self.raw.socket.sendall(data[at : at + self.cut])

    def until_ready(self) -> list[pg.PGMessage]:
        found: list[pg.PGMessage] = []
        while not found or type(found[-1]) is not pg.ReadyForQuery:
            data = self.raw.socket.recv(1 << 16)
            assert data, f"the connection ended after {found}"
            found += self.codec.receive(data)
        return found


@pytest.fixture(scope="module")
def shared() -> Iterator[Loopback]:
    with Loopback() as running:
        yield running


@contextmanager
def no_error_of_ours() -> Iterator[None]:
    heard: list[logging.LogRecord] = []
    handler = logging.Handler(logging.ERROR)
    handler.emit = heard.append
    logging.getLogger("adapter").addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger("adapter").removeHandler(handler)
    assert not heard, [record.getMessage() for record in heard]


def check_pipeline(requests: list[pg.PGMessage], answers: list[pg.PGMessage]) -> None:
    """Each request is answered in its turn, until one is answered with an error: then nothing more is."""
    left = [answer for answer in answers if type(answer) not in ANY_TIME]
    for request in requests:
        for wanted in expected(request, left):
            if type(left[0]) is pg.ErrorResponse:
                assert len(left) == 1, left
                return
            assert type(left.pop(0)) in wanted, (request, wanted, answers)
        if left and type(left[0]) is pg.ErrorResponse:
            assert len(left) == 1, left
            return
    assert left == []


def expected(request: pg.PGMessage, left: list[pg.PGMessage]) -> list[tuple[type, ...]]:
    if type(request) is pg.Describe:
        shape = (pg.RowDescription, pg.NoData)
        return [(pg.ParameterDescription,), shape] if request.kind == "S" else [shape]
    if type(request) is pg.Execute:
        rows = next((i for i, answer in enumerate(left) if type(answer) is not pg.DataRow), len(left))
        assert not request.max_rows or rows <= request.max_rows
        return [(pg.DataRow,)] * rows + [(pg.CommandComplete, pg.PortalSuspended, pg.EmptyQueryResponse)]
    return ANSWERS[type(request)]


@settings(max_examples=100, deadline=None)
@given(batches=BATCHES, cut=st.sampled_from([3, 50, 1 << 16]), version=st.sampled_from([3 << 16, 3 << 16 | 2]))
def test_every_request_is_answered_in_its_turn(shared, batches, cut, version):
    with no_error_of_ours():
        client = Client(shared, version)
        client.cut = cut
        with client.raw:
            for batch in batches:
                before = client.status
                requests = [batch] if type(batch) is pg.Query else [*batch, pg.Sync()]
                client.send(*requests)
                answers = client.until_ready()
                client.status = answers.pop().status
                failed = [answer for answer in answers if type(answer) is pg.ErrorResponse]
                if type(batch) is pg.Query:
                    assert len(failed) <= 1 and type(answers[-1]) in (
                        pg.CommandComplete, pg.EmptyQueryResponse, pg.ErrorResponse, *ANY_TIME
                    )  # fmt: skip
                else:
                    check_pipeline(batch, answers)
                if failed:
                    assert client.status is not TransactionStatus.IN_TRANSACTION, answers
                elif before is TransactionStatus.ERROR_TRANSACTION and client.status is before:
                    assert all(type(answer) is not pg.DataRow for answer in answers)


def conversation(batches: list, version: int) -> bytes:
    codec = FrontendConnection(strict=False)  # it is written down without waiting for answers
    given = [pg.StartupMessage(params={"user": "tester", "database": "tidemark"}, protocol_version=version)]
    for batch in batches:
        given += [batch] if type(batch) is pg.Query else [*batch, pg.Sync()]
    return b"".join(message.to_wire() for message in given) + codec.send(pg.Terminate())


@settings(max_examples=100, deadline=None)
@given(
    batches=BATCHES,
    version=st.sampled_from([3 << 16, 3 << 16 | 2]),
    changes=st.lists(CHANGES, min_size=1, max_size=4),
)
def test_conversations_with_bytes_changed_end_and_harm_nobody(shared, batches, version, changes):
    """Bytes replaced, inserted and dropped: the server answers what it understands, ends, and serves the next one."""
    data = bytearray(conversation(batches, version))
    for at, what, byte in changes:
        at %= len(data)
        data[at : at + (what != "i")] = b"" if what == "d" else bytes([byte])
    with no_error_of_ours():
        with Raw(shared, start=False) as c:
            try:
                c.socket.sendall(bytes(data))
                c.socket.shutdown(1)
                while c.socket.recv(1 << 16):
                    pass
            except (ConnectionResetError, BrokenPipeError):
                pass  # it had heard enough
        with Client(shared, 3 << 16).raw:
            pass
