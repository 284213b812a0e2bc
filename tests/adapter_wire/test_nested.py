"""PREPARE and EXECUTE, DECLARE and FETCH: byte by byte, on an executor in memory; psycopg's server-side cursors too."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import errors

from tests.adapter_wire import frontend as f
from tests.adapter_wire.loopback import Raw
from tests.adapter_wire.test_sessions import READY_BLOCK, READY_FAILED, error, kinds, rows, tags


def ints(messages) -> list[int]:
    return [int(r[0]) for r in rows(messages)]


# --- prepared statements -----------------------------------------------------------------------------------------


def test_prepare_execute_deallocate(server):
    with Raw(server) as c:
        assert tags(c.ask(f.query("prepare p (int4, text) as select $1, $2, 'a;b'"))) == ["PREPARE"]
        assert server.executor.runs == 0
        messages = c.ask(f.query("execute p(7, 'it''s, so'); execute p (null, null)"))
        assert kinds(messages) == "TDCTDCZ"
        assert rows(messages) == [[b"7", b"it's, so", b"a;b"], [None, None, b"a;b"]]
        assert tags(messages) == ["SELECT 1", "SELECT 1"]
        found = error(c.ask(f.query("execute p(1)")))
        assert (found["C"], found["D"]) == ("42601", "Expected 2 parameters but got 1.")
        assert error(c.ask(f.query("prepare p as select 1")))["C"] == "42P05"
        assert tags(c.ask(f.query("deallocate p"))) == ["DEALLOCATE"]
        assert error(c.ask(f.query("execute p(1, 'x')")))["C"] == "26000"
        for refused, sqlstate in (("prepare q as create table x", "42601"), ("prepare q (money) as select 1", "0A000"),
                                  ("prepare q (mony) as select 1", "42704")):  # fmt: skip
            assert error(c.ask(f.query(refused)))["C"] == sqlstate


def test_errors_inside_tell_their_position_in_the_whole(server):
    with Raw(server) as c:
        for sql in ("select 1; prepare p as select 1, oops", "select 1;  declare c cursor with hold for select oops"):
            assert error(c.ask(f.query(sql)))["P"] == str(sql.index("oops") + 1)


def test_names_are_shared_with_the_protocol(server):
    with Raw(server) as c:
        c.ask(f.query("prepare s (int4) as select $1"), f.parse("select $1::int4, 'x'", "r"), f.SYNC)
        c.until_ready()
        assert rows(c.ask(f.bind((b"5",), "s"), f.execute(), f.SYNC)) == [[b"5"]]
        assert rows(c.ask(f.query("execute r(6)"))) == [[b"6", b"x"]]
        messages = c.ask(f.parse("execute r($1)"), f.describe("S"), f.bind((b"8",)), f.execute(), f.SYNC)
        assert kinds(messages) == "1tT2DCZ" and rows(messages) == [[b"8", b"x"]]
        c.ask(f.close("S", "s"), f.SYNC)
        assert error(c.ask(f.query("execute s(1)")))["C"] == "26000"
        for sql in ("", "begin", "execute r(1)", "declare c cursor for select 1"):
            c.ask(f.parse(sql, "s"), f.SYNC)
            assert error(c.ask(f.query("execute s")))["C"] == "0A000"
            c.ask(f.close("S", "s"), f.SYNC)


def test_what_is_executed_obeys_its_transaction(server):
    with Raw(server) as c:
        c.ask(f.query("prepare i (int4, text) as insert into t values ($1, $2)"))
        assert tags(c.ask(f.query("execute i(1, 'a')"))) == ["INSERT 0 1"]
        c.ask(f.query("begin; execute i(2, 'b'); execute i(3, 'c')"))
        assert server.executor.commits == [1]
        c.ask(f.query("commit"))
        assert server.executor.commits == [1, 2]
        assert error(c.ask(f.query("begin read only; execute i(4, 'd')")))["C"] == "25006"
        assert error(c.ask(f.query("execute i(4, 'd')")))["C"] == "25P02"


# --- cursors -----------------------------------------------------------------------------------------------------


def test_a_cursor_is_read_bit_by_bit(server):
    with Raw(server) as c:
        c.ask(f.query("begin"))
        messages = c.ask(f.query("declare c no scroll cursor for select * from series(2500)"))
        assert (kinds(messages), tags(messages)) == ("CZ", ["DECLARE CURSOR"])
        messages = c.ask(f.query("fetch 2 from c; fetch c; move 996 in c; fetch relative 2 from c"))
        assert ints(messages) == [0, 1, 2, 1000]
        assert tags(messages) == ["FETCH 2", "FETCH 1", "MOVE 996", "FETCH 1"]
        assert server.executor.batches_made == 2, "it is not read ahead of its client"
        assert ints(c.ask(f.query("fetch absolute 1003 c"))) == [1002]
        assert tags(c.ask(f.query("move absolute 1003 in c"))) == ["MOVE 0"]
        messages = c.ask(f.query("fetch all from c; fetch all from c; move all in c"))
        assert ints(messages) == list(range(1003, 2500))
        assert tags(messages) == ["FETCH 1497", "FETCH 0", "MOVE 0"]
        for backward in ("fetch absolute 3 from c", "fetch 0 from c", "fetch first from c"):
            c.ask(f.query("savepoint s"))
            assert error(c.ask(f.query(backward)))["C"] == "55000"
            c.ask(f.query("rollback to s"))
        assert tags(c.ask(f.query("close c"))) == ["CLOSE CURSOR"]
        assert error(c.ask(f.query("fetch c")))["C"] == "34000"


def test_cursors_and_portals_are_the_same(server):
    with Raw(server) as c:
        c.ask(f.query("begin"))
        c.ask(f.parse("select * from series(10)"), f.bind(portal="p"), f.execute("p", 3), f.SYNC)
        assert ints(c.ask(f.query("fetch 2 from p"))) == [3, 4]
        c.ask(f.query("declare c binary cursor for select * from series(10)"))
        messages = c.ask(f.describe("P", "c"), f.execute("c", 1), f.execute("c", 1), f.SYNC)
        assert kinds(messages) == "TDsDsZ"
        assert [r[0] for r in rows(messages)] == [bytes(4), bytes((0, 0, 0, 1))]
        assert error(c.ask(f.query("declare p cursor for select 1")))["C"] == "42P03"


def test_a_binary_cursor_is_fetched_binary_by_a_simple_query_and_as_bind_says_otherwise(server):
    with Raw(server) as c:
        c.ask(f.query("begin; declare b binary cursor for select * from series(10)"))
        messages = c.ask(f.query("fetch 2 from b; fetch b; move b"))
        assert [r[0] for r in rows(messages)] == [bytes(4), bytes((0, 0, 0, 1)), bytes((0, 0, 0, 2))]
        assert [body[-2:] for kind, body in messages if kind == "T"] == [b"\x00\x01"] * 2, "and is described so"
        assert rows(c.ask(f.parse("fetch b"), f.bind(), f.execute(), f.SYNC)) == [[b"4", b"row 4"]]
        messages = c.ask(f.parse("fetch b"), f.bind(results=(1,)), f.execute(), f.SYNC)
        assert rows(messages) == [[bytes((0, 0, 0, 5)), b"row 5"]]
        # One that the protocol opened is text for a simple query, whatever its own Bind said.
        c.ask(f.parse("select * from series(10)"), f.bind(portal="p", results=(1,)), f.execute("p", 3), f.SYNC)
        assert rows(c.ask(f.query("fetch 1 from p"))) == [[b"3", b"row 3"]]


def test_what_ends_a_cursor(server):
    declare = "declare c cursor for select * from series(5000)"
    held = "declare h cursor with hold for select * from series(5000)"
    with Raw(server) as c:
        assert error(c.ask(f.query(declare)))["C"] == "25P01"
        assert error(c.ask(f.query("begin; declare c cursor for insert into t values (1,'a')")))["C"] == "42601"
        c.ask(f.query("rollback"))
        for end in ("commit", "rollback", "close all"):
            c.ask(f.query(f"begin; {declare}; {held}; fetch c; fetch h; {end}"))
            messages = c.ask(f.query("fetch h"))
            if end == "commit":
                assert ints(messages) == [1]
                c.ask(f.query("select oops"))  # neither does an error end it
                assert ints(c.ask(f.query("fetch 2 from h"))) == [2, 3]
                assert tags(c.ask(f.query("discard all"))) == ["DISCARD ALL"]
            else:
                assert error(messages)["C"] == "34000"
            c.ask(f.query("rollback"))
        assert server.executor.batches_closed == 6
        c.ask(f.query(held))
        assert ints(c.ask(f.query("fetch 1 from h"))) == [0]
        c.ask(f.query(f"begin; {declare}; savepoint s; declare d cursor for select 1; rollback to s"))
        assert ints(c.ask(f.query("fetch c; fetch h"))) == [0, 1]
        assert error(c.ask(f.query("fetch d")))["C"] == "34000"


def test_a_cursor_that_was_cancelled_does_not_look_as_if_it_had_ended(server):
    with Raw(server) as c:
        c.ask(f.query("begin; declare c cursor for select * from series(100000000); savepoint s"))
        c.send(f.query("fetch all from c"))
        c.until("D")
        with Raw(server, start=False) as canceller:
            canceller.send(f.cancel(*c.key))
            canceller.rest()
        messages = c.until_ready()
        assert (error(messages[-2:])["C"], messages[-1]) == ("57014", READY_FAILED)
        assert error(c.ask(f.execute("c", 1), f.SYNC))["C"] == "25P02"
        assert c.ask(f.query("rollback to s"))[-1] == READY_BLOCK
        assert error(c.ask(f.query("fetch all from c")))["C"] == "55000"


@pytest.mark.parametrize("binary", [False, True])
def test_psycopgs_server_side_cursors(server, binary):
    with psycopg.connect(server.dsn()) as connection:
        with connection.cursor(name="some cursor", binary=binary) as cursor:
            cursor.execute("select * from series(2345)")
            assert cursor.fetchone() == (0, "row 0")
            assert [row[0] for row in cursor.fetchmany(10)] == list(range(1, 11))
            cursor.scroll(989)
            assert [row[0] for row in cursor] == list(range(1000, 2345))
            cursor.execute("select %s::int4, %s::text", (5, "x"))
            assert cursor.fetchall() == [(5, "x")]
        connection.commit()
        held = connection.cursor(name="held", withhold=True, scrollable=False)
        held.execute("select * from series(10)")
        connection.commit()
        assert len(held.fetchall()) == 10
        held.close()
        with connection.cursor(name="scrolls", scrollable=True) as scrolls, pytest.raises(errors.FeatureNotSupported):
            scrolls.execute("select 1")
