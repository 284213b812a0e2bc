"""Sessions over real sockets, byte by byte as a client sees them, on an executor in memory."""

from __future__ import annotations

import os
import struct
import time
from contextlib import ExitStack

import psycopg
import pytest

from adapter.server.server import Limits
from adapter.wire.machine import MESSAGE_BYTES_MAX
from journal.errors import Conflict
from tests.adapter_wire import frontend as f
from tests.adapter_wire.loopback import Loopback, Raw

READY_IDLE, READY_BLOCK, READY_FAILED = ("Z", b"I"), ("Z", b"T"), ("Z", b"E")


def kinds(messages) -> str:
    return "".join(kind for kind, _ in messages)


def error(messages) -> dict[str, str]:
    (body,) = [body for kind, body in messages if kind == "E"]
    return f.fields(body)


def tags(messages) -> list[str]:
    return [body[:-1].decode() for kind, body in messages if kind == "C"]


def rows(messages) -> list[list[bytes | None]]:
    return [f.row(body) for kind, body in messages if kind == "D"]


def eventually(predicate, timeout_s: float = 10.0) -> None:
    """Wait for something that happens in another process's or thread's time and has no event of its own."""
    deadline = time.monotonic() + timeout_s
    while not predicate():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.005)


# --- startup -----------------------------------------------------------------------------------------------------


def test_startup_tells_what_clients_need(server):
    with Raw(server, application_name="me", options="-c statement_timeout=3s --search_path=a\\ b") as c:
        assert c.parameters["server_version"].startswith("15.0 (Tidemark")
        assert {k: c.parameters[k] for k in ("server_encoding", "client_encoding", "DateStyle", "TimeZone")} == {
            "server_encoding": "UTF8",
            "client_encoding": "UTF8",
            "DateStyle": "ISO, MDY",
            "TimeZone": "UTC",
        }
        for name in ("integer_datetimes", "standard_conforming_strings"):
            assert c.parameters[name] == "on"
        assert c.parameters["in_hot_standby"] == "off"
        assert c.parameters["application_name"] == "me"
        assert c.parameters["session_authorization"] == "tester"
        assert rows(c.ask(f.query("show statement_timeout; show search_path"))) == [[b"3s"], [b"a b"]]


def test_encryption_is_refused_and_the_client_goes_on(server):
    with Raw(server, start=False) as c:
        c.send(f.SSL_REQUEST)
        assert c.socket.recv(1) == b"N"
        c.send(f.GSSENC_REQUEST)
        assert c.socket.recv(1) == b"N"
        c.send(f.startup())
        assert c.until_ready()[-1] == READY_IDLE


@pytest.mark.parametrize(
    ("minor", "options", "told", "key_bytes"),
    [
        (0, {}, None, 4), (2, {}, None, 32), (3, {}, (2, ()), 32), (9999, {"_pq_.x": "y"}, (2, ("_pq_.x",)), 32),
        (0, {"_pq_.x": "y"}, (0, ("_pq_.x",)), 4), (2, {"_pq_.x": "y"}, (2, ("_pq_.x",)), 32),
    ],
)  # fmt: skip
def test_the_version_is_negotiated_and_decides_the_cancel_key(server, minor, options, told, key_bytes):
    with Raw(server, start=False) as c:
        c.send(f.startup(minor, **options))
        messages = c.until_ready()
        if told is None:
            assert messages[0][0] == "R"
        else:
            spoken, unknown = told
            names = b"".join(map(f.z, unknown))
            assert messages[0] == ("v", struct.pack("!ii", 3 << 16 | spoken, len(unknown)) + names)
        ((session_id, secret),) = [(int.from_bytes(b[:4], "big"), b[4:]) for k, b in messages if k == "K"]
        assert len(secret) == key_bytes
        c.send(f.query("hang"))
        wait_for(server, server.executor.hanging)
        for key in (secret[:-1], secret + b"x", secret):  # only the whole key cancels
            assert not server.executor.cancelled.is_set()
            with Raw(server, start=False) as canceller:
                canceller.send(f.cancel(session_id, key))
                assert canceller.rest() == []
        assert error(c.until_ready())["C"] == "57014"


@pytest.mark.parametrize(
    ("parameters", "sqlstate"),
    [
        ({"user": ""}, "28000"), ({"database": "other"}, "3D000"), ({"replication": "database"}, "0A000"),
        ({"nonsense": "1"}, "42704"), ({"client_encoding": "LATIN1"}, "22023"), ({"options": "-x"}, "08P01"),
    ],
)  # fmt: skip
def test_refused_startups(server, parameters, sqlstate):
    with Raw(server, start=False) as c:
        c.send(f.startup(**parameters))
        messages = c.rest()
        assert (error(messages)["S"], error(messages)["C"]) == ("FATAL", sqlstate)


def test_the_database_that_libpq_names_after_the_user(server):
    with Raw(server, user="alice", database="alice") as c:
        assert c.ask(f.query("select 1"))[-1] == READY_IDLE


def test_a_stranger_who_says_nothing_is_cut_off():
    with Loopback(limits=Limits(authentication_s=0.05)) as server, Raw(server, start=False) as c:
        assert c.rest() == []


def test_strangers_take_no_places_of_sessions():
    """Who never answers the question for a password has been no session, whatever it said of itself before."""
    with Loopback(password="secret", limits=Limits(connections_max=1)) as server, ExitStack() as held:
        for _ in range(3):
            stranger = held.enter_context(Raw(server, start=False))
            stranger.send(f.startup())
            stranger.until("R")
        assert server.server.sessions == 0
        with psycopg.connect(server.dsn(password="secret"), autocommit=True) as connection:
            assert connection.execute("select 1").fetchone() == (1,)
            stranger = held.enter_context(Raw(server, start=False))
            stranger.send(f.startup())
            assert stranger.message()[0] == "R", "it is told that there are too many once it is somebody"


@pytest.mark.parametrize("said", [b"", f.startup()[:6], f.startup()[:-1], struct.pack("!ii", 8, 80877103), f.startup()])
def test_strangers_give_way_to_who_comes_after_them(said):
    """Silence, a startup packet byte by byte, one that never ends, encryption asked for, a password never given."""
    limits = Limits(strangers_max=3, strangers_rush_s=0)
    with Loopback(password="secret", limits=limits) as server, ExitStack() as held:
        strangers = [held.enter_context(Raw(server, start=False)) for _ in range(3)]
        for each in strangers:
            each.send(said)
        eventually(lambda: len(server.server._connections) == 3)
        for _ in range(2):
            with psycopg.connect(server.dsn(password="secret"), autocommit=True) as connection:
                assert connection.execute("select 1").fetchone() == (1,)
        eventually(lambda: len(server.server._connections) == 2)
        assert strangers[0].socket.recv(1 << 16)[:1] in (b"", b"N", b"R"), "the first of them gave way"


def test_a_rush_of_strangers_ends_no_login_under_way():
    with Loopback(password="secret", limits=Limits(strangers_max=1, strangers_rush_s=60)) as server:
        with Raw(server, start=False) as first, Raw(server, start=False) as second:
            assert second.rest() == []
            first.send(f.startup())
            assert first.message()[0] == "R"


def test_connection_limit():
    with Loopback(limits=Limits(connections_max=2)) as server, Raw(server) as one, Raw(server):
        with Raw(server, start=False) as c:
            c.send(f.startup())
            assert (error(m := c.rest())["C"], error(m)["S"]) == ("53300", "FATAL")
        one.send(f.TERMINATE)
        assert one.rest() == []
        eventually(lambda: server.server.sessions == 1)
        with Raw(server) as c:
            assert rows(c.ask(f.query("select 1"))) == [[b"1"]]


# --- simple query ------------------------------------------------------------------------------------------------


def test_simple_query(server):
    with Raw(server) as c:
        messages = c.ask(f.query("select 1, 'a', null"))
        assert kinds(messages) == "TDCZ"
        assert rows(messages) == [[b"1", b"a", None]]
        assert tags(messages) == ["SELECT 1"]


def test_several_statements_in_one_string(server):
    with Raw(server) as c:
        messages = c.ask(f.query("select 1; select 'a;b' ;; select 3"))
        assert kinds(messages) == "TDCTDCTDCZ"
        assert rows(messages) == [[b"1"], [b"a;b"], [b"3"]]


@pytest.mark.parametrize("sql", ["", " ", ";", "-- nothing", ";;"])
def test_empty_query(server, sql):
    with Raw(server) as c:
        assert kinds(c.ask(f.query(sql))) == "IZ"


def test_an_error_stops_the_string_and_tells_where(server):
    with Raw(server) as c:
        messages = c.ask(f.query("select 1;  select oops; select 3"))
        assert kinds(messages) == "TDCEZ"
        assert error(messages)["C"] == "42703"
        assert error(messages)["P"] == str("select 1;  select oops".index("oops") + 1)
        assert messages[-1] == READY_IDLE


def test_error_fields(server):
    with Raw(server) as c:
        found = error(c.ask(f.query("fail 22012")))
        assert found == {
            "S": "ERROR", "V": "ERROR", "C": "22012", "M": "it failed", "D": "the detail", "H": "the hint", "P": "1",
        }  # fmt: skip


def test_a_bug_is_xx000_and_the_session_lives_on(server, caplog):
    with Raw(server) as c:
        found = error(c.ask(f.query("bug")))
        assert (found["C"], found["M"]) == ("XX000", "internal error")
        assert "RuntimeError" not in found["D"]
        assert rows(c.ask(f.query("select 1"))) == [[b"1"]]
    (record,) = [each for each in caplog.records if "statement failed" in each.message]
    assert "a bug of the executor's" in caplog.text and record.reference in found["D"]


def test_notices_and_their_level(server):
    with Raw(server) as c:
        messages = c.ask(f.query("notice"))
        assert kinds(messages) == "NCZ"
        assert f.fields(messages[0][1])["M"] == "mind the gap"
        assert (
            kinds(
                c.ask(
                    f.query("set client_min_messages = warning"),
                )
            )
            == "CZ"
        )
        assert kinds(c.ask(f.query("notice"))) == "CZ"


DATA, DONE = f.message("d", b"1\tone\n2\ttwo\n"), f.message("c")


def test_copy_from_in_a_simple_query(server):
    with Raw(server) as c:
        c.send(f.query("copy t from stdin"))
        assert c.message() == ("G", b"\0\0\2\0\0\0\0")
        assert c.ask(DATA, f.FLUSH, f.SYNC, DONE)[0] == ("C", b"COPY 2\0")  # Postgres passes over the two
        assert server.executor.table == [(1, "one"), (2, "two")]
        assert server.executor.commits == [2] and server.executor.copies_closed == 1


def test_copies_among_other_statements_of_a_string(server):
    with Raw(server) as c:
        c.send(f.query("insert into t values (0,'a'); copy t from stdin; copy t from stdin; select 1"))
        assert kinds(c.until("G")) == "CG"
        c.send(DATA, DONE)
        assert kinds(c.until("G")) == "CG"
        assert server.executor.table == []
        assert kinds(c.ask(DATA, DONE)) == "CTDCZ"
        assert server.executor.commits == [5]


def test_copy_in_a_block_is_of_the_block(server):
    with Raw(server) as c:
        c.ask(f.query("begin"))
        c.send(f.query("copy t from stdin"))
        c.until("G")
        assert c.ask(DATA, DONE)[-1] == ("Z", b"T")
        assert server.executor.commits == []
        c.ask(f.query("commit"))
        assert server.executor.commits == [2]


@pytest.mark.parametrize(("sent", "sqlstate"), [
    (f.message("f", b"no more\0"), "57014"), (f.message("d", b"x\t1\n"), "22P02"), (f.message("f", b"no end"), "08P01"),
])  # fmt: skip
def test_a_copy_that_fails_leaves_nothing_and_its_data_is_passed_over(server, sent, sqlstate):
    with Raw(server) as c:
        c.send(f.query("copy t from stdin"))
        c.until("G")
        assert error(c.ask(DATA, sent, DATA, DONE))["C"] == sqlstate
        assert rows(c.ask(f.query("select 1"))) == [[b"1"]]
        assert server.executor.table == [] and server.executor.copies_closed == 1


def test_copy_from_in_an_extended_query(server):
    """As libpq sends it: all up to Sync at once, and another Sync behind the end of the data."""
    with Raw(server) as c:
        c.send(f.parse("copy t from stdin"), f.bind(), f.describe(), f.execute(), f.SYNC)
        assert kinds(c.until("G")) == "12nG"
        assert kinds(c.ask(DATA, DONE, f.SYNC)) == "CZ"
        c.send(f.parse("copy t from stdin"), f.bind(), f.describe(), f.execute(), f.SYNC)
        c.until("G")
        assert kinds(c.ask(DATA, f.message("d", b"x\t1\n"), DATA, DONE, f.SYNC)) == "EZ"
        assert rows(c.ask(f.query("select 1"))) == [[b"1"]]
        assert server.executor.commits == [2]


def test_copy_to_is_a_message_a_row(server):
    server.executor.table = [(1, "one"), (2, None)]
    with Raw(server) as c:
        messages = c.ask(f.query("copy t to stdout"))
        assert messages[:-1] == [
            ("H", b"\0\0\2\0\0\0\0"), ("d", b"1\tone\n"), ("d", b"2\t\\N\n"), ("c", b""), ("C", b"COPY 2\0"),
        ]  # fmt: skip
        extended = c.ask(f.parse("copy t to stdout"), f.bind(), f.describe(), f.execute(), f.SYNC)
        assert kinds(extended) == "12nHddcCZ"


def test_a_client_that_leaves_in_the_middle_of_its_rows(server):
    for goodbye in (f.TERMINATE, b""):
        with Raw(server) as c:
            c.send(f.query("copy t from stdin"))
            c.until("G")
            c.send(DATA, goodbye)
    with Raw(server) as c:
        assert rows(c.ask(f.query("select 1"))) == [[b"1"]]
        deadline = time.monotonic() + 10
        while server.executor.copies_closed < 2 and time.monotonic() < deadline:
            c.ask(f.query("select 1"))
        assert server.executor.copies_closed == 2 and server.executor.table == []


def test_another_message_among_its_rows_ends_the_connection(server):
    with Raw(server) as c:
        c.send(f.query("copy t from stdin"))
        c.until("G")
        c.send(f.query("select 1"))
        assert error(c.rest())["C"] == "08P01"


def test_a_cancelled_copy_is_given_up(server):
    with Raw(server) as c:
        c.send(f.query("copy t from stdin"))
        c.until("G")
        with Raw(server, start=False) as other:
            other.send(f.cancel(*c.key))
        assert error(c.until_ready())["C"] == "57014"
        assert server.executor.copies_closed == 1


def test_changed_variables_are_told(server):
    with Raw(server) as c:
        messages = c.ask(f.query("set application_name = 'you'"))
        assert kinds(messages) == "CSZ"
        assert messages[1][1] == b"application_name\0you\0"
        assert kinds(c.ask(f.query("begin; set timezone = 'Europe/Berlin'; rollback"))) == "CCCSZ"


def test_function_calls_are_refused(server):
    with Raw(server) as c:
        assert error(c.ask(f.message("F", b"\0\0\0\1")))["C"] == "0A000"


def test_text_that_is_not_utf8(server):
    with Raw(server) as c:
        assert error(c.ask(f.message("Q", b"select '\xff'\0")))["C"] == "08P01"
        assert rows(c.ask(f.query("select 1"))) == [[b"1"]]


# --- extended query ----------------------------------------------------------------------------------------------


def test_parse_describe_bind_execute(server):
    with Raw(server) as c:
        messages = c.ask(f.parse("select $1::int4, $2", "s"), f.describe("S", "s"), f.SYNC)
        assert kinds(messages) == "1tTZ"
        assert messages[1][1] == struct.pack("!hII", 2, 23, 25)
        assert server.executor.runs == 0
        messages = c.ask(f.bind((b"7", None), "s", results=(1, 0)), f.describe("P"), f.execute(), f.SYNC)
        assert kinds(messages) == "2TDCZ"
        assert rows(messages) == [[struct.pack("!i", 7), None]]


def test_declared_oids_are_kept(server):
    with Raw(server) as c:
        messages = c.ask(f.parse("select $1, $2", "", (20, 0)), f.describe("S"), f.SYNC)
        assert messages[1][1] == struct.pack("!hII", 2, 20, 25)


def test_a_statement_without_rows_has_no_data(server):
    with Raw(server) as c:
        messages = c.ask(f.parse("insert into t values ($1, $2)"), f.describe("S"), f.SYNC)
        assert kinds(messages) == "1tnZ"


def test_empty_statement(server):
    with Raw(server) as c:
        assert kinds(c.ask(f.parse(""), f.bind(), f.describe(), f.execute(), f.SYNC)) == "12nIZ"


def test_row_limits_and_suspended_portals(server):
    with Raw(server) as c:
        c.send(f.parse("select * from series(2500)"), f.bind(portal="p"))
        for expected in (1200, 1200):
            c.send(f.execute("p", 1200), f.FLUSH)
            messages = c.until("s")
            assert len(rows(messages)) == expected
        messages = c.ask(f.execute("p", 1200), f.execute("p", 0), f.SYNC)
        assert len(rows(messages)) == 100
        assert tags(messages) == ["SELECT 100", "SELECT 0"]
        assert server.executor.batches_closed == 1
        assert [int(r[0]) for r in rows(messages)] == list(range(2400, 2500))


def test_exactly_as_many_rows_as_the_limit(server):
    with Raw(server) as c:
        messages = c.ask(f.parse("select 1"), f.bind(), f.execute("", 1), f.execute("", 1), f.SYNC)
        assert kinds(messages) == "12DsCZ"
        assert tags(messages) == ["SELECT 0"]


def test_portals_end_with_their_transaction(server):
    with Raw(server) as c:
        c.send(f.parse("select * from series(5000)", "s"), f.bind(statement="s", portal="p"), f.execute("p", 1))
        assert kinds(c.ask(f.SYNC)) == "12DsZ"
        assert server.executor.batches_closed == 1
        assert error(c.ask(f.execute("p"), f.SYNC))["C"] == "34000"
        c.ask(f.query("begin"))
        c.ask(f.bind(statement="s", portal="p"), f.execute("p", 1), f.SYNC)
        messages = c.ask(f.execute("p", 2), f.SYNC)
        assert [int(r[0]) for r in rows(messages)] == [1, 2]
        c.ask(f.query("commit"))
        assert error(c.ask(f.execute("p"), f.SYNC))["C"] == "34000"


def test_close(server):
    with Raw(server) as c:
        closed = f.close("S", "s") + f.close("S", "never")
        messages = c.ask(f.parse("select 1", "s"), closed, f.bind(statement="s"), f.SYNC)
        assert kinds(messages) == "133EZ"
        assert error(messages)["C"] == "26000"


@pytest.mark.parametrize(
    ("parts", "sqlstate"),
    [
        ((f.bind(statement="x"),), "26000"), ((f.describe("S", "x"),), "26000"), ((f.describe("P", "x"),), "34000"),
        ((f.execute("x"),), "34000"), ((f.parse("select 1", "s"), f.parse("select 2", "s")), "42P05"),
        ((f.parse("select 1; select 2"),), "42601"), ((f.parse("select $1"), f.bind()), "08P01"),
        ((f.parse("select 1"), f.bind(results=(0, 1))), "08P01"), ((f.parse("select $1::int4"), f.bind((b"x",))),
        "22P02"),
        ((f.parse("select $1::int4"), f.bind((b"\0",), formats=(1,))), "22P03"),
        ((f.parse("select 1", "s"), f.bind(statement="s", portal="p"), f.bind(statement="s", portal="p")), "42P03"),
        ((f.parse("insert into t values (1,'a')"), f.bind(), f.execute(), f.execute()), "55000"),
        ((f.message("B", b"\0"),), "08P01"), ((f.message("D", b"Zx\0"),), "08P01"),
    ],
)  # fmt: skip
def test_errors_skip_until_sync(server, parts, sqlstate):
    with Raw(server) as c:
        messages = c.ask(*parts, f.parse("select 1"), f.bind(), f.query("select 2"), f.execute(), f.SYNC)
        assert error(messages)["C"] == sqlstate
        assert kinds(messages)[-2:] == "EZ" and messages[-1] == READY_IDLE
        assert rows(c.ask(f.query("select 1"))) == [[b"1"]]
        assert server.executor.table == []


def test_a_pipeline_is_answered_in_order(server):
    with Raw(server) as c:
        c.send(*[f.parse(f"select {n}") + f.bind() + f.execute() + f.SYNC for n in range(500)])
        for n in range(500):
            assert rows(c.until_ready()) == [[str(n).encode()]]


def test_messages_cut_anywhere(server):
    conversation = f.parse("select $1::int4, 'x'", "s") + f.bind((b"5",), "s") + f.execute() + f.SYNC
    conversation += f.query("select 2")
    with Raw(server) as c:
        for at in range(0, len(conversation), 7):
            c.send(conversation[:at])
            c.send(conversation[at:])
            assert rows(c.until_ready() + c.until_ready()) == [[b"5", b"x"], [b"2"]]
            c.ask(f.close("S", "s"), f.SYNC)


# --- transactions ------------------------------------------------------------------------------------------------


def test_status_bytes_and_failed_blocks(server):
    with Raw(server) as c:
        assert c.ask(f.query("begin"))[-1] == READY_BLOCK
        assert c.ask(f.query("select oops"))[-1] == READY_FAILED
        messages = c.ask(f.query("select 1"))
        assert (error(messages)["C"], messages[-1]) == ("25P02", READY_FAILED)
        assert error(c.ask(f.parse("select 1"), f.SYNC))["C"] == "25P02"
        for text in ("fetch backward 2 from c", "move backward 2 c", "declare c scroll cursor for select 1"):
            assert error(c.ask(f.query(text)))["C"] == "25P02", "also what is refused wherever it stands"
        messages = c.ask(f.query("commit"))
        assert (tags(messages), messages[-1]) == (["ROLLBACK"], READY_IDLE)


def test_inserts_of_a_block_are_one_commit(server):
    with Raw(server) as c:
        c.ask(f.query("begin; insert into t values (1,'a'); insert into t values (2,'b')"))
        assert server.executor.table == []
        assert tags(c.ask(f.query("commit"))) == ["COMMIT"]
        assert (server.executor.table, server.executor.commits) == ([(1, "a"), (2, "b")], [2])


def test_rollback_and_savepoints(server):
    with Raw(server) as c:
        c.ask(f.query("begin; insert into t values (1,'a'); savepoint s; insert into t values (2,'b')"))
        assert c.ask(f.query("select oops"))[-1] == READY_FAILED
        assert c.ask(f.query("rollback to s"))[-1] == READY_BLOCK
        c.ask(f.query("insert into t values (3,'c'); release s; commit"))
        assert server.executor.table == [(1, "a"), (3, "c")]
        assert server.executor.rolled_back == [[(2, "b")]]
        c.ask(f.query("begin; insert into t values (4,'d'); rollback"))
        assert server.executor.commits == [2]
        c.ask(f.query("begin; set application_name = 'a'; savepoint s; set application_name = 'b'; rollback to s"))
        assert rows(c.ask(f.query("show application_name; commit; show application_name"))) == [[b"a"], [b"a"]]


def test_a_commit_that_fails_is_a_rollback(server):
    with Raw(server) as c:
        c.ask(f.query("begin; insert into t values (1,'a')"))
        server.executor.commit_error = Conflict("somebody was first")
        messages = c.ask(f.query("commit"))
        assert (error(messages)["C"], messages[-1], tags(messages)) == ("40001", READY_IDLE, [])


def test_ddl_in_a_block_takes_effect_at_commit(server):
    with Raw(server) as c:
        assert tags(c.ask(f.query("begin; create table x"))) == ["BEGIN", "CREATE TABLE"]
        assert server.executor.ddl == []
        c.ask(f.query("commit"))
        assert server.executor.ddl == ["create table x"]
        c.ask(f.query("begin; create table y; rollback"))
        assert server.executor.ddl == ["create table x"]
        found = error(c.ask(f.query("begin; insert into t values (1,'a'); create table z")))
        assert (found["C"], "H" in found) == ("0A000", True)
        c.ask(f.query("rollback"))


def test_read_only(server):
    with Raw(server) as c:
        assert error(c.ask(f.query("begin read only; insert into t values (1,'a')")))["C"] == "25006"
        c.ask(f.query("rollback; set session characteristics as transaction read only"))
        assert error(c.ask(f.query("create table x")))["C"] == "25006"
        assert rows(c.ask(f.query("show transaction_read_only"))) == [[b"on"]]


def test_warnings_about_blocks(server):
    with Raw(server) as c:
        assert f.fields(c.ask(f.query("commit"))[0][1])["C"] == "25P01"
        c.ask(f.query("begin"))
        assert f.fields(c.ask(f.query("begin"))[0][1])["C"] == "25001"


def test_isolation_of_a_block(server):
    with Raw(server) as c:
        show = "show transaction_isolation"
        messages = c.ask(f.query(f"begin isolation level serializable; {show}; commit; {show}"))
        assert rows(messages) == [[b"serializable"], [b"serializable"]]


def test_adjacent_inserts_of_one_string_are_one_commit(server):
    with Raw(server) as c:
        one, two, three = (f"insert into t values ({n},'a')" for n in (1, 2, 3))
        c.ask(f.query(f"{one}; {two}; create table x; {three}"))
        assert server.executor.commits == [2, 1]
        assert tags(c.ask(f.query("insert into t values (4,'d'); select oops"))) == ["INSERT 0 1"]
        assert server.executor.commits == [2, 1]  # not settled yet, so it went with its string, as in Postgres
        assert server.executor.rolled_back == [[(4, "d")]]


def test_a_string_or_pipeline_is_a_transaction_of_its_inserts(server):
    """What BEGIN finds in its string joins the block, what ROLLBACK finds is undone, SET comes between without harm."""
    one, two = "insert into t values (1,'a')", "insert into t values (2,'b')"
    with Raw(server) as c:
        messages = c.ask(f.query(f"{one}; rollback; {two}"))
        assert (tags(messages), server.executor.table) == (["INSERT 0 1", "ROLLBACK", "INSERT 0 1"], [(2, "b")])
        c.ask(f.query(f"{one}; set application_name = 'x'; {one}"))
        c.ask(f.query(f"{one}; begin; {two}"))
        assert server.executor.commits == [1, 2]
        assert c.ask(f.query("rollback"))[-1] == READY_IDLE
        c.ask(f.parse(one), f.bind(), f.execute(), f.parse("begin"), f.bind(), f.execute(), f.SYNC)
        c.ask(f.query(f"{two}; commit"))
        assert server.executor.commits == [1, 2, 2]


def insert(n: int) -> bytes:
    return f.bind((str(n).encode(), b"x"), "i") + f.execute()


def test_a_pipeline_of_inserts_is_one_commit_at_sync(server):
    with Raw(server) as c:
        c.ask(f.parse("insert into t values ($1, $2)", "i"), f.SYNC)
        messages = c.ask(*[insert(n) for n in range(100)], f.SYNC)
        assert tags(messages) == ["INSERT 0 1"] * 100
        assert server.executor.commits == [100]
        messages = c.ask(insert(1), insert(2), f.bind((b"x", b"x"), "i"), f.execute(), f.SYNC)
        assert error(messages)["C"] == "22P02"
        assert server.executor.commits == [100]
        assert len(server.executor.rolled_back) == 2


def test_a_failed_commit_is_told_instead_of_a_completion(server):
    with Raw(server) as c:
        c.ask(f.parse("insert into t values ($1, $2)", "i"), f.SYNC)
        server.executor.commit_error = Conflict("somebody was first")
        for parts in ([insert(1), f.SYNC], [insert(1), insert(2), f.SYNC]):
            messages = c.ask(*parts)
            assert error(messages)["C"] == "40001"
            assert len(tags(messages)) == len(parts) - 2
        c.send(insert(1))  # Sync comes so late that the commit had to be deferred
        time.sleep(0.05)
        messages = c.ask(f.SYNC)
        assert (error(messages)["C"], tags(messages)) == ("40001", [])


def test_a_client_that_leaves_before_sync_committed_nothing(server):
    with Raw(server) as c:
        c.ask(f.parse("insert into t values ($1, $2)", "i"), f.SYNC)
        c.send(insert(1), f.FLUSH)
        c.until("C")
    eventually(lambda: server.executor.rolled_back == [[(1, "x")]])
    assert server.executor.commits == []


def test_deallocate_and_discard(server):
    with Raw(server) as c:
        c.ask(f.parse("select 1", "s"), f.parse("select 2", "r"), f.SYNC)
        assert tags(c.ask(f.query("deallocate s"))) == ["DEALLOCATE"]
        assert error(c.ask(f.query("deallocate s")))["C"] == "26000"
        assert tags(c.ask(f.query("discard all"))) == ["DISCARD ALL"]
        assert error(c.ask(f.bind(statement="r"), f.SYNC))["C"] == "26000"


# --- interruption ------------------------------------------------------------------------------------------------


def wait_for(server: Loopback, event) -> None:
    server.call(event.wait())


def test_cancel_request(server):
    with Raw(server) as c:
        c.send(f.query("hang"))
        wait_for(server, server.executor.hanging)
        with Raw(server, start=False) as stranger:
            stranger.send(f.cancel(c.key[0], b"xxxx"))
            assert stranger.rest() == []
        assert not server.executor.cancelled.is_set()
        with Raw(server, start=False) as canceller:
            canceller.send(f.cancel(*c.key))
            assert canceller.rest() == []
        assert error(c.until_ready()) == {
            "S": "ERROR", "V": "ERROR", "C": "57014", "M": "canceling statement due to user request"}  # fmt: skip
        assert server.executor.cancelled.is_set()
        assert rows(c.ask(f.query("select 1"))) == [[b"1"]]


def test_a_cancel_that_one_statement_outlives_stops_the_next(server):
    """A commit that was under way is answered as done; what stands behind it in the same string does not run."""
    with Raw(server) as c:
        server.executor.hold_commit = True
        c.send(f.query("insert into t values (1,'a'); create table never"))
        wait_for(server, server.executor.hanging)
        with Raw(server, start=False) as canceller:
            canceller.send(f.cancel(*c.key))
            assert canceller.rest() == []
        messages = c.until_ready()
        assert error(messages)["C"] == "57014"
        assert (server.executor.commits, server.executor.ddl) == ([1], [])
        assert rows(c.ask(f.query("select 1"))) == [[b"1"]]


def test_cancel_of_an_idle_session_does_nothing(server):
    with Raw(server) as c, Raw(server, start=False) as canceller:
        canceller.send(f.cancel(*c.key))
        assert canceller.rest() == []
        assert rows(c.ask(f.query("select 1"))) == [[b"1"]]


def test_statement_timeout(server):
    with Raw(server) as c:
        c.ask(f.query("set statement_timeout = '30ms'"))
        found = error(c.ask(f.parse("hang"), f.bind(), f.execute(), f.SYNC))
        assert (found["C"], found["M"]) == ("57014", "canceling statement due to statement timeout")
        assert rows(c.ask(f.query("select 1"))) == [[b"1"]]


def test_a_client_that_disappears_cancels_its_statement(server):
    with Raw(server) as c:
        c.ask(f.query("begin; insert into t values (1,'a')"))
        c.send(f.query("hang"))
        wait_for(server, server.executor.hanging)
    wait_for(server, server.executor.cancelled)
    eventually(lambda: server.server.sessions == 0)
    assert server.executor.rolled_back == [[(1, "a")]]


def test_a_client_that_resets_in_the_middle_of_rows(server):
    c = Raw(server)
    c.send(f.query("select * from series(100000000)"))
    c.until("D")
    c.socket.setsockopt(1, 13, struct.pack("ii", 1, 0))  # SOL_SOCKET, SO_LINGER: close with RST
    c.socket.close()
    eventually(lambda: server.executor.batches_closed == 1)
    eventually(lambda: server.server.sessions == 0)


def test_a_slow_reader_slows_the_result_down(server):
    with Raw(server) as c:
        c.send(f.query("select * from series(3000000)"))
        c.until("D")
        before = -1
        while server.executor.batches_made != before:  # until it stands still
            before = server.executor.batches_made
            time.sleep(0.2)
        assert before < 2000, "the result was produced ahead of its reader"
        with Raw(server, start=False) as canceller:
            canceller.send(f.cancel(*c.key))
            canceller.rest()
        assert error(c.until_ready()[-2:])["C"] == "57014"
        assert server.executor.batches_closed == 1


def test_a_client_is_not_read_without_end_while_its_statement_runs(server):
    with Raw(server) as c:
        c.send(f.query("hang"))
        wait_for(server, server.executor.hanging)
        c.socket.settimeout(0.5)
        with pytest.raises(TimeoutError):
            for _ in range(1000):
                c.send(f.query("select '" + "x" * 65_000 + "'"))


def test_a_client_is_not_read_without_end_while_its_rows_are_taken(server):
    with Raw(server) as c:
        c.send(f.query("copy t from stdin"))
        c.until("G")
        c.send(f.message("d", b"1\twait\n"))
        wait_for(server, server.executor.hanging)
        c.socket.settimeout(0.5)
        with pytest.raises(TimeoutError):
            for _ in range(1000):
                c.send(f.message("d", b"1\tone\n" * 10_000))


def test_a_message_above_the_limit_ends_the_session(server):
    with Raw(server) as c:
        c.send(b"Q" + struct.pack("!i", MESSAGE_BYTES_MAX + 1))
        assert error(c.rest())["C"] == "54000"


def test_a_large_message_below_the_limit(server):
    with Raw(server) as c:
        text = "x" * (4 << 20)
        assert rows(c.ask(f.query(f"select '{text}'"))) == [[text.encode()]]


def test_broken_framing_ends_the_session(server):
    with Raw(server) as c:
        c.send(b"\x80\0\0\0\4")
        assert (error(m := c.rest())["C"], error(m)["S"]) == ("08P01", "FATAL")


def test_idle_timeouts(server):
    with Raw(server) as c:
        c.send(f.query("set idle_session_timeout = 30"))
        assert error(c.rest())["C"] == "57P05"
    with Raw(server) as c:
        c.send(f.query("set idle_in_transaction_session_timeout = 30; begin"))
        assert error(c.rest())["C"] == "25P03"


# --- the end -----------------------------------------------------------------------------------------------------


def test_stop_ends_idle_sessions_at_once_and_running_ones_after_their_grace():
    with Loopback(limits=Limits(stop_grace_s=0.2)) as server:
        idle, running, stranger = Raw(server), Raw(server), Raw(server, start=False)
        running.send(f.query("hang"))
        wait_for(server, server.executor.hanging)
        server.call(server.server.stop())
        assert error(idle.rest())["C"] == "57P01"
        assert error(running.rest())["C"] == "57P01"
        assert server.executor.cancelled.is_set()
        try:
            assert stranger.rest() == []
        except ConnectionResetError:
            pass
        for client in (idle, running, stranger):
            client.socket.close()
        assert server.server.sessions == 0


def test_idle_sessions_cost_little():
    count = 300

    def resident_kib() -> int:
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024

    with Loopback() as server:
        clients = [Raw(server) for _ in range(20)]
        before = resident_kib()
        clients += [Raw(server) for _ in range(count)]
        per_session = (resident_kib() - before) / count
        for client in clients:
            client.socket.close()
        assert per_session < 64, f"{per_session:.1f} KiB a session, the test's own client included"
