"""Random transaction blocks of statements by key, for whoever compares two ways of running them."""

from __future__ import annotations

import random
from collections.abc import Iterator

import psycopg

Block = list[str]

SETUP = (
    "create table t (a int, b varchar(5), n numeric(10,2), f float8, c char(4), s text, d date, primary key (a, b))",
    "create index t_s on t (s)",
    "create index t_n on t (n, c)",
    "create index t_f on t (f)",
    "create table u (id bigint primary key, v int, w int unique)",
    "insert into t values (1, 'x', 1.0, 0.0, 'ab', 's1', '2024-01-31'), (1, 'y', 1.00, '-0.0', 'ab ', 's1', null),"
    " (2, 'x', 2.5, 'NaN', null, 's2', '1970-01-01'), (2, 'y', null, 'Infinity', 'abcd', null, '2023-12-31'),"
    " (3, 'x', -0.5, 1e300, '', '', '2000-02-29'), (3, 'z', 1, null, 'x', 's1', '2024-01-31')",
    "insert into u values (1, 1, 10), (2, 2, 20), (3, null, 30), (4, 4, null), (9007199254740993, 5, 50)",
)

READS_MAX = 30


class _Chosen:
    """Statements, by one source of chance."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def of(self, *choices: str) -> str:
        return self._chance.choice(choices)

    def key(self) -> str:
        """A condition on columns of an index of ``t``."""
        one = self._chance.randrange
        return self.of(
            f"a = {one(1, 5)} and b = '{self.of('x', 'y', 'z', 'new')}'",
            f"b = '{self.of('x', 'y')}' and a = {self.of('1', '2', '1 + 1')} and n > 0",
            f"a = {one(1, 4)}",
            f"s = '{self.of('s1', 's2', '', 's9')}'",
            f"n = {self.of('1', '1.0', '1.005', '2.50', '-0.5')}",
            f"n = {self.of('1', '2.5')} and c = '{self.of('ab', 'ab  ', 'x')}'",
            f"f = {self.of('0', chr(39) + '-0.0' + chr(39), chr(39) + 'NaN' + chr(39), '1e300')}",
            f"(a, b) = ({one(1, 4)}, 'x')",
            f"a = {one(1, 4)} and b in ('x', 'y')",
            "a = 2 and b = 'y' and s is null",
        )

    def other(self) -> str:
        """A condition on columns of an index of ``u``."""
        one = self._chance.randrange
        return self.of(f"id = {one(1, 6)}", f"w = {one(1, 6)}0", f"id = {one(1, 6)} and v is not null", "w = null",
                       "id = 9007199254740993")  # fmt: skip

    def keys(self) -> str:
        """A condition that lists several keys, or is of one.  No UPDATE has it: PostgreSQL refuses some that move keys
        for the order in which it comes to their rows."""
        one = self._chance.randrange
        return self.of(
            f"a in ({one(1, 4)}, {one(1, 4)}) and b <> 'y'",
            f"s in ('s1', null, '{self.of('s2', 's9')}')",
            f"n = {self.of('1', '2.50')} or n = {self.of('1.0', '-0.5', 'null')}",
            f"a = {one(1, 4)} and (b = 'x' or 'z' = b)",
            self.key(),
            self.key(),
        )

    def other_keys(self) -> str:
        """The same of ``u``."""
        one = self._chance.randrange
        several = f"id in ({one(1, 6)}, {one(1, 6)}, 9007199254740993)", f"w in ({one(1, 6)}0, null) and v > 1"
        return self.of(*several, self.other(), self.other())

    def sets(self) -> str:
        return self.of(
            "n = n + 1", "n = n * 2, f = f + 1", "s = s || '!'", "s = 's1'", "c = case when n > 1 then 'ab' else c end",
            "f = '-0.0'", "f = 0", "n = null", "d = d + 1", "c = 'ab'", "s = upper(s), n = coalesce(n, 0) + 1",
            f"b = '{self.of('x', 'y', 'z', 'new')}'", "a = a + 1", "a = 2, b = 'y'", "n = default",
        )  # fmt: skip

    def others(self) -> str:
        return self.of("v = v + 1", "v = coalesce(v, 0) + 10", "id = id + 1", "w = w + 10", "w = null", "v = v / 2",
                       "v = case when v > 3 and w is not null then v - 1 when v is null then 7 else v * 2 end",
                       "v = case when v > 3 then 0 else v end, w = (id % 100) * 7",
                       )  # fmt: skip

    def read(self) -> str:
        if self._chance.random() < 0.4:
            columns = self.of("*", "v", "count(*), sum(v)", "v::text || '.'", "id, w")
            return f"select {columns} from u where {self.other_keys()}"
        where = self.keys()
        return self.of(
            f"select * from t where {where} order by a, b",
            f"select a, b, upper(s), round(n) from t where {where} order by a, b",
            f"select count(*), sum(n), min(s), max(d) from t where {where}",
            f"select a, b from t where {where} order by a desc, b limit 1",
            f"select s, count(*) from t where {where} group by s order by s",
        )

    def write(self) -> str:
        one = self._chance.randrange
        if self._chance.random() < 0.4:
            return self.of(
                f"update u set {self.others()} where {self.other()}",
                f"update u set {self.others()} where {self.other()} returning *",
                f"delete from u where {self.other_keys()} returning id",
                f"insert into u values ({one(1, 9)}, {one(9)}, {one(1, 9)}0)",
                f"insert into u values ({one(1, 6)}, 1, null) on conflict (id) do update set v = u.v + excluded.v",
                f"insert into u values ({one(1, 6)}, 1, {one(1, 6)}0) on conflict do nothing",
                f"merge into u using (values ({one(1, 6)}, 1), ({one(6, 9)}, 2)) s (k, n) on u.id = s.k when matched"
                " and u.v > 3 then delete when matched then update set v = u.v + s.n when not matched then"
                " insert values (s.k, s.n, null)",
            )
        key = self.key()
        return self.of(
            f"update t set {self.sets()} where {key}",
            f"update t set {self.sets()} where {key}",
            f"update t set {self.sets()} where {key} returning a, b, n",
            f"delete from t where {self.keys()}",
            f"insert into t values ({one(1, 5)}, '{self.of('x', 'y', 'z', 'new')}', {one(3)}, {one(3)}, 'ab', 's1')",
            f"insert into t (a, b) values ({one(1, 4)}, 'x') on conflict (a, b) do update set s = 's1', n = t.n + 1",
        )

    def block(self, length: int) -> Block:
        found = ["begin"]
        alive = 0
        for _ in range(length):
            roll = self._chance.random()
            if roll < 0.06:
                found.append(f"savepoint p{alive}")
                alive += 1
            elif roll < 0.12 and alive:
                to = self._chance.randrange(alive)
                found.append(f"rollback to p{to}")
                alive = to + 1
            elif roll < 0.13:
                found.append(self.of("truncate t", "truncate u", "delete from t", "update u set v = v + 1"))
            elif roll < 0.55:
                found.append(self.write())
            else:
                found.append(self.read())
        return [*found, self.of("commit", "commit", "commit", "rollback")]


def blocks(seed: int, count: int, length: int = READS_MAX) -> Iterator[Block]:
    """``count`` blocks, for who runs each over the rows of ``SETUP``."""
    chance = random.Random(seed)
    for _ in range(count):
        yield _Chosen(chance).block(length)


async def run_block(connection: psycopg.AsyncConnection, block: Block) -> list[tuple[str, object]]:
    """What each statement answered, its rows in no order or its SQLSTATE, and what the tables are at last.  A statement
    that fails is taken back by itself; ``block`` may be statements without a BEGIN."""
    found: list[tuple[str, object]] = []
    inside = False
    for text in block:
        inside = "begin" in block and text not in ("begin", "commit", "rollback")
        if inside and not text.startswith(("savepoint", "rollback")):
            await connection.execute("savepoint one")
        try:
            cursor = await connection.execute(text.encode())
            answer: object = cursor.statusmessage
            if cursor.description is not None:
                answer = await _shown(cursor)
        except psycopg.Error as error:
            answer = error.sqlstate
            if inside:
                await connection.execute("rollback to one")
        if inside and not text.startswith(("savepoint", "rollback")):
            await connection.execute("release one")
        found.append((text, answer))
    for table in ("t", "u"):
        cursor = await connection.execute(f"select * from {table}".encode())
        found.append((table, await _shown(cursor)))
    return found


async def _shown(cursor: psycopg.AsyncCursor) -> list[str]:
    """Rows in no order; a zero has no sign, which an index does not keep."""
    rows = [[value + 0.0 if isinstance(value, float) else value for value in row] for row in await cursor.fetchall()]
    return sorted(map(repr, rows))
