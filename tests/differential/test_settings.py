"""SET and what SHOW says afterwards, as PostgreSQL has them: what is read of each value, and what is refused."""

from __future__ import annotations

import psycopg
import pytest

from adapter.state.session_state import SessionState
from journal.errors import InvalidUsage
from sql.syntax.parse import parse
from tests.differential.postgres import missing

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))

OF = {
    "search_path": r"""
a b; a.b; a,; (a); 'a' 'b'; ; ,a; a, b; default; DEFAULT, a; a, default; A, "B", 'C d'; $$a b$$; $x$a b$x$; E'a\tb'
U&"a"; U&"\0061b", u&"A""b"; U&'\0061b'; U & "a"; "q""q"; "a$b"; 1; -1; +1.5; - 1; - -1; 1, 2.50, 1e3, -1e-3, .5, 5.
007; 2147483647, 02147483648; 12345678901234567890; true, on, off, false, TRUE; select; user; null; table; char, left
time; is; varchar, join; schema; all; local; current; Foo; B'101'; X'1a'; $1; 1+1; 1a; a::text; f(a); *; ''; '', a
'  a '; -a; a-b; double precision; "$user", Public""",
    "application_name": r"""
a b; a, b; a b, c; A; 'A b'; '  A b  '; 12; -12; - 12; +12; 1.50; 1e3; -1.50e2; 007; .5; 5.; TRUE; ON; Off; a.b; "A""b"
''; a-b; -a; default; 'default'; "default"; local; U&"a"; array[1]""",
    "statement_timeout": "5; '5s'; 5s; 5 s; -5; ' 5 s '; 1.5; 1, 2; 1e3; abc; ''",
    "extra_float_digits": "3; -3; '-3'; +3; 2.4; 0.5; 1.5; ' 2 '; 3.4; 3.5; 1_0; '1_0'; nan; 1e-9",
    "timezone": "'Europe/Berlin'; utc; UTC; Europe/Berlin; local; 'default'; 'UTC', 'UTC'",
    "client_encoding": "'UTF8'; utf8; default; 'UTF8', x",
    "datestyle": "ISO, MDY; 'ISO, MDY'; ISO; ISO MDY; 'ISO', US; iso,",
    "client_min_messages": "WARNING; 'warning'; warning, notice",
    "default_transaction_isolation": "'read committed'; read committed; serializable",
    "jit": "on; off; false; 1; 'yes'; tr; on, off",
    "tidemark_test.custom": "'x'; X, y; x y; 1; Abc; ' s '",
}
"""Values by variable, without an ``=`` before them."""

SAID = r"""
search_path: set schema a; set schema 'a'; set schema "a"; set schema 'a', 'b'; set schema 'a' 'b'; set schema E'a b'
search_path: set schema $$a$$; set schema = 'a'; set schema to a; set schema default; set schema; set schema 1
search_path: set local schema 'a'; set session schema 'a'; set local search_path to a; set session search_path to a
search_path: set local session search_path to a; set session local search_path to a; set "SEARCH_PATH" to a
search_path: set search_path a; set 'search_path' to a; reset schema; reset search_path; set all to a
timezone: set time zone 'Europe/Berlin'; set time zone UTC; set time zone "Europe/Berlin"; set time zone local
timezone: set time zone default; set time zone = 'UTC'; set time zone to 'UTC'; set time zone 'UTC', 'UTC'
timezone: set time zone 'UTC' 'UTC'; set time zone; set local time zone 'UTC'; set time zone a.b; set timezone UTC
client_encoding: set names 'UTF8'; set names utf8; set names "UTF8"; set names; set names default; set names 'UTF8' 'x'
client_encoding: set names 'UTF8', 'x'; set names = 'UTF8'; set names 'utf-8'; set local names 'UTF8'
session_authorization: set session authorization = peer; set session authorization; set session authorization 1
role: set role none; set role 'none'; set role no_such; set role to none; set role
"""
"""A variable, then statements."""


def statements() -> list[tuple[str, str]]:
    said = [(name, f"set {name} = {each}") for name, values in OF.items() for each in _each(values)]
    for line in SAID.strip().splitlines():
        name, _, rest = line.partition(": ")
        said += [(name, each) for each in _each(rest)]
    return said


def _each(text: str) -> list[str]:
    return [each.strip() for line in text.strip("\n").splitlines() for each in line.split(";")]


def _of_postgres(peer: psycopg.Connection, name: str, text: str) -> str:
    """What SHOW says, or the SQLSTATE."""
    peer.execute("reset all")
    try:
        peer.execute(text.encode())
        return peer.execute(f"show {name}").fetchone()[0]
    except psycopg.Error as error:
        return error.sqlstate
    finally:
        peer.execute("reset all")


def _of_ours(name: str, text: str) -> str:
    session = SessionState(1)
    try:
        said = parse(text)
        if said.value is None:
            session.reset_variable(said.name)
        else:
            session.set_variable(said.name, said.value, local=said.local)
        return session.variable(name)
    except InvalidUsage as error:
        return error.sqlstate


def test_every_statement_is_read_as_postgres_reads_it(peer):
    found = [(text, _of_postgres(peer, name, text), _of_ours(name, text)) for name, text in statements()]
    assert [each for each in found if each[1] != each[2]] == []
    assert len({each[1] for each in found}) > 50
