"""Tables that are changed and cut down through both adapters, with everything that follows from them beside it."""

from __future__ import annotations

import os
import random
import signal
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from embedded.stack import Stack

pytestmark = [pytest.mark.integration, pytest.mark.spark]

VIEWS = {
    "filtered": "select a, b from c_t where a > 1",
    "joined": "select t.a, t.b, u.v from c_t t join c_u u on u.a = t.a",
    "outer_joined": "select t.a, t.b, u.v from c_t t left join c_u u on u.a = t.a",
    "grouped": "select a, count(*) as n, sum(b) as s from c_t group by a",
    "extremes": "select a, min(b) as low, max(b) as high from c_t group by a",
    "told_once": "select distinct a, b from c_t",
    "top": "select a, b from c_t order by b desc nulls last, a limit 3",
}


BACK_S_MAX = 180
"""Until the cluster's process that was killed serves again, Spark included."""


def connected(stack: Stack, number: int) -> psycopg.Connection:
    return psycopg.connect(stack.dsn(number), autocommit=True)


def expected(name: str, t: list[tuple], u: list[tuple]) -> Counter:
    """What ``VIEWS[name]`` says of these rows."""
    if name == "filtered":
        return Counter(row for row in t if row[0] > 1)
    if name.endswith("joined"):
        rows = Counter((a, b, v) for a, b in t for k, v in u if k == a)
        missing = [(a, b, None) for a, b in t if all(k != a for k, _ in u)]
        return rows + Counter(missing) if name.startswith("outer") else rows
    if name == "told_once":
        return Counter(set(t))
    if name == "top":
        return Counter(sorted(t, key=lambda row: (row[1] is None, -(row[1] or 0), row[0]))[:3])
    groups = defaultdict(list)
    for a, b in t:
        groups[a].append(b)
    there = {a: [b for b in values if b is not None] for a, values in groups.items()}
    if name == "grouped":
        return Counter((a, len(groups[a]), sum(values) if values else None) for a, values in there.items())
    return Counter((a, min(values, default=None), max(values, default=None)) for a, values in there.items())


class Bag:
    """Random statements, and what they leave of a list of rows."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.t: list[tuple] = []
        self.u: list[tuple] = []

    def step(self) -> str:
        a, b = self.draw.randrange(4), self.draw.choice((0, 1, 2, None))
        kind = self.draw.choice(("insert", "insert", "insert", "set", "set", "move", "delete", "using", "from", "u"))
        if self.draw.random() < 0.05:
            kind = "truncate"
        said = "null" if b is None else b
        match kind:
            case "insert":
                self.t += [(a, b), (a, b), (a + 1, b)]
                return f"insert into c_t values ({a}, {said}), ({a}, {said}), ({a + 1}, {said})"
            case "set":
                self.t = [(x, b) if x == a else (x, y) for x, y in self.t]
                return f"update c_t set b = {said} where a = {a}"
            case "move":
                self.t = [(x + (y == 1), y) for x, y in self.t]
                return "update c_t set a = a + 1 where b = 1"
            case "delete":
                self.t = [row for row in self.t if row != (a, b)]
                return f"delete from c_t where a = {a} and b is not distinct from {said}"
            case "using":
                keys = {k for k, v in self.u if v == "x"}
                self.t = [row for row in self.t if row[0] not in keys]
                return "delete from c_t using c_u u where u.a = c_t.a and u.v = 'x'"
            case "from":
                keys = {k for k, v in self.u if v == "y"}
                self.t = [(x, 7) if x in keys else (x, y) for x, y in self.t]
                return "update c_t set b = 7 from c_u u where u.a = c_t.a and u.v = 'y'"
            case "u":
                v = self.draw.choice("xyz")
                self.u = [row for row in self.u if row[0] != a] + [(a, v), (a, v)]
                comes = f"insert into c_u values ({a}, '{v}'), ({a}, '{v}')"
                return f"begin; delete from c_u where a = {a}; {comes}; commit"
        self.t = []
        return "truncate c_t"


def check(connection: psycopg.Connection, bag: Bag, told: object) -> None:
    for name in VIEWS:
        found = Counter(connection.execute(f"select * from c_{name}").fetchall())
        assert found == expected(name, bag.t, bag.u), (told, name)
    assert Counter(connection.execute("select a, b from c_t").fetchall()) == Counter(bag.t), told
    for a in range(5):
        found = Counter(connection.execute("select b from c_t where a = %s", (a,)).fetchall())
        assert found == Counter((y,) for x, y in bag.t if x == a), (told, "by the index", a)


def test_what_follows_from_a_table_that_is_changed_is_what_there_is(stack: Stack, steps) -> None:
    """Views of every sort and an index, after each of random statements, blocks that read what they wrote among them,
    through either adapter; the cluster's process begins anew in the middle."""
    seed = 11
    bag = Bag(random.Random(seed))
    with connected(stack, 0) as one, connected(stack, 1) as two:
        one.execute("create table c_t (a int not null, b int)")
        one.execute("create table c_u (a int, v text)")
        for name, query in VIEWS.items():
            one.execute(f"create materialized view c_{name} as {query}".encode())
        one.execute("create index c_by_a on c_t (a)")
        for number in range(36):
            writer = bag.draw.choice((one, two))
            if number == 18:
                seen = steps.count("compute", "serves again")
                os.kill(stack.supervisor.pids()["compute"], signal.SIGKILL)
                assert steps.wait_for_another("compute", "serves again", seen, BACK_S_MAX)
            if bag.draw.random() < 0.25:
                block(writer, bag)
            else:
                writer.execute(bag.step().encode())
            check(bag.draw.choice((one, two)), bag, (seed, number))
        one.execute("drop table c_t, c_u cascade")


def block(writer: psycopg.Connection, bag: Bag) -> None:
    """One that reads what it wrote, and takes some of it back."""
    with writer.transaction():
        bag.t += [(1, 1), (1, 1)]
        writer.execute("insert into c_t values (1, 1), (1, 1)")
        writer.execute("update c_t set b = coalesce(b, 0) + 1 where a = 1")
        bag.t = [(x, (y or 0) + 1) if x == 1 else (x, y) for x, y in bag.t]
        writer.execute("savepoint before")
        writer.execute("delete from c_t where a = 1")
        assert writer.execute("select count(*) from c_t where a = 1").fetchone() == (0,)
        writer.execute("rollback to savepoint before")
        assert Counter(writer.execute("select a, b from c_t").fetchall()) == Counter(bag.t)


def test_sessions_of_both_adapters_count_and_lose_nothing(stack: Stack) -> None:
    with connected(stack, 0) as one:
        one.execute("create table c_n (k int, n int)")
        one.execute("insert into c_n values (1, 0)")

        def count(number: int) -> tuple[int, int]:
            done = refused = 0
            with connected(stack, number % 2) as mine:
                for _ in range(10):
                    try:
                        assert mine.execute("update c_n set n = n + 1 where k = 1").rowcount == 1
                        done += 1
                    except psycopg.errors.SerializationFailure:  # after all its tries
                        refused += 1
            return done, refused

        with ThreadPoolExecutor(6) as pool:
            found = list(pool.map(count, range(6)))
        done = sum(each for each, _ in found)
        assert one.execute("select n from c_n").fetchone() == (done,)
        assert done >= 30, found  # on two busy cores all 60
        one.execute("drop table c_n")
