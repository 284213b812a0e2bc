"""Keys that sessions of two adapters write at once, also while the process that keeps their index is killed."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from embedded.stack import Stack

pytestmark = [pytest.mark.integration, pytest.mark.spark]

SESSIONS, KEYS = 6, 10

BACK_S_MAX = 180
"""Until the cluster's process that was killed serves again, Spark included."""


def connected(stack: Stack, number: int) -> psycopg.Connection:
    return psycopg.connect(stack.dsn(number % 2), autocommit=True)


def told(session: psycopg.Connection, text: str, *params: object) -> list[tuple]:
    """The rows of a statement, said again where the cluster was away for longer than a statement waits: then nothing
    of it has happened."""
    for left in reversed(range(BACK_S_MAX // 60 + 1)):
        try:
            return session.execute(text.encode(), params).fetchall()
        except psycopg.errors.CannotConnectNow:
            if not left:
                raise
    raise AssertionError("unreachable: the last try returns or raises")


@pytest.mark.parametrize("kills", [False, pytest.param(True, marks=pytest.mark.long)])
def test_keys_are_unique_and_every_count_is_there(stack: Stack, steps, kills: bool) -> None:
    with connected(stack, 0) as one, connected(stack, 1) as two:
        one.execute("create table k_t (id int primary key, who int, name text unique)")
        one.execute("create table k_n (id int primary key, n int default 1)")
        seen = steps.count("compute", "serves again")

        def client(number: int) -> tuple[list[int], int]:
            """The ids that it was told are its own, and how often it has counted."""
            mine, counted = [], 0
            with connected(stack, number) as session:
                for key in range(KEYS):
                    if kills and key == KEYS // 2 and number == 0:
                        os.kill(stack.supervisor.pids()["compute"], signal.SIGKILL)
                    try:
                        own = "insert into k_t values (%s, %s, %s) returning id"
                        mine += [row[0] for row in told(session, own, key, number, f"name {key % 7}")]
                    except (psycopg.errors.UniqueViolation, psycopg.errors.SerializationFailure):
                        pass  # somebody was first
                    count = "insert into k_n values (%s) on conflict (id) do update set n = k_n.n + 1 returning n"
                    counted += len(told(session, count, key % 3))
            return mine, counted

        with ThreadPoolExecutor(SESSIONS) as pool:
            found = list(pool.map(client, range(SESSIONS)))
        assert not kills or steps.wait_for_another("compute", "serves again", seen, BACK_S_MAX)
        owners = {key: number for number, (mine, _) in enumerate(found) for key in mine}
        assert sum(len(mine) for mine, _ in found) == len(owners) == 7, "of the names there are seven"
        assert dict(two.execute("select id, who from k_t").fetchall()) == owners
        assert two.execute("select count(*), count(distinct id), count(distinct name) from k_t").fetchone() == (7, 7, 7)
        assert two.execute("select sum(n) from k_n").fetchone() == (sum(counted for _, counted in found),)
        with pytest.raises(psycopg.errors.UniqueViolation, match="k_t_pkey"):
            two.execute("insert into k_t values (0, 9, 'another')")
        assert two.execute("update k_t set who = 9 where id = 0 returning id").fetchall() == [(0,)]
        one.execute("drop table k_t, k_n")


def test_merges_by_key_meet_only_where_their_keys_do(stack: Stack) -> None:
    """Each of several sessions of two adapters counts in a row of its own, never refused, and in one of them all."""
    merged = (
        "merge into k_m using (values (%s::int)) s (k) on id = s.k when matched then update set n = n + 1 "
        "when not matched then insert values (s.k, 1)"
    )
    with connected(stack, 0) as one, connected(stack, 1) as two:
        one.execute("create table k_m (id int primary key, n int)")

        def client(number: int) -> int:
            counted = 0
            with connected(stack, number) as session:
                for _ in range(KEYS // 2):
                    assert session.execute(merged.encode(), (number,)).statusmessage == "MERGE 1"
                    try:
                        counted += session.execute(merged.encode(), (99,)).statusmessage == "MERGE 1"
                    except psycopg.errors.SerializationFailure:
                        pass  # 16 times somebody was first
            return counted

        with ThreadPoolExecutor(SESSIONS) as pool:
            counted = sum(pool.map(client, range(SESSIONS)))
        expected = [(number, KEYS // 2) for number in range(SESSIONS)]
        assert two.execute("select * from k_m order by id").fetchall() == [*expected, (99, counted)]
        assert counted >= KEYS // 2
        one.execute("drop table k_m")


def test_ranges_meet_only_where_they_overlap(stack: Stack) -> None:
    """Blocks and statements of two adapters: what was read by ranges of a key, and rows that come into them."""
    with connected(stack, 0) as one, connected(stack, 1) as two:
        one.execute("create table k_r (g int, id int, n int, primary key (g, id))")
        one.execute("insert into k_r select x % 6, x, 0 from generate_series(0, 59) x")
        one.execute("create table k_s (n bigint)")

        def block(condition: str, between: str) -> bool:
            """Whether a block that has counted the rows of ``condition`` is committed where ``between`` happens."""
            one.execute("begin isolation level serializable")
            one.execute(f"insert into k_s select count(*) from k_r where {condition}".encode())
            two.execute(between.encode())
            try:
                one.execute("commit")
            except psycopg.errors.SerializationFailure:
                return False
            return True

        assert block("g = 1 and id < 30", "insert into k_r values (1, 30, 0)")
        assert block("g in (1, 3)", "update k_r set n = n + 1 where g = 2")
        assert not block("g = 1 and id < 30", "insert into k_r values (1, 29, 0)"), "a row that was not there"
        assert not block("g between 1 and 3", "update k_r set g = 2 where g = 5 and id = 5"), "one that moves into it"
        assert not block("g < 2 or g > 4", "delete from k_r where g = 1 and id >= 29")
        assert two.execute("select n from k_s order by n").fetchall() == [(5,), (21,)]

        def client(number: int) -> int:
            """Each in a range of its own, never refused; and in one that meets others', made anew."""
            refused = 0
            with connected(stack, number) as session:
                for _ in range(KEYS // 2):
                    session.execute("update k_r set n = n + 1 where g between %s and %s", (10 + number, 10 + number))
                    try:
                        session.execute("update k_r set n = n + 1 where g between %s and 99", (10 + number,))
                    except psycopg.errors.SerializationFailure:
                        refused += 1  # 16 times somebody was first
            return refused

        one.execute("insert into k_r select 10 + x, 0, 0 from generate_series(0, 5) x")
        with ThreadPoolExecutor(SESSIONS) as pool:
            refused = list(pool.map(client, range(SESSIONS)))
        counted = dict(two.execute("select g - 10, n from k_r where g >= 10").fetchall())
        each = KEYS // 2
        assert counted == {n: each + sum(each - refused[m] for m in range(n + 1)) for n in range(SESSIONS)}, refused
        one.execute("drop table k_r, k_s")
