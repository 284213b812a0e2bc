"""What a block has written is held so that a statement costs what it writes; and says what a plain list would say."""

from __future__ import annotations

import random
from collections import Counter

import pyarrow as pa

from adapter.execute.laid_over import Keyed
from adapter.execute.own_keys import net, own_keys
from adapter.state.buffer import Buffer
from tests.adapter.world import World
from tests.finishing import finished


class Named:
    def __init__(self, id: str) -> None:
        self.id = id


class Entry:
    """Rows of one table with one constraint, ``-1`` where they go."""

    more_keys: frozenset[bytes] = frozenset()
    columns = ()

    def __init__(self, table: str, keys: list[bytes | None], gone: bool, size: int = 1) -> None:
        self.table, self.removed, self._keys, self.bytes = Named(table), () if gone else None, keys, size
        self.runs = ["somewhere"] * (size % 3)
        self.sized = self.looked = 0
        self.rows = pa.table({})

    @property
    def size(self) -> int:
        self.sized += 1
        return self.bytes

    @property
    def keys(self):
        self.looked += 1
        return [("a constraint", self._keys)]


def test_it_is_a_list_with_savepoints() -> None:
    rng = random.Random(1)
    for _ in range(300):
        buffer, plain = Buffer(), []
        for _ in range(rng.randint(0, 30)):
            if rng.random() < 0.2:
                keep = rng.randint(0, len(plain))
                assert buffer.cut(keep) == plain[keep:]
                del plain[keep:]
            else:
                keys = [rng.choice([None, b"1", b"2", b"3"]) for _ in range(rng.randint(0, 3))]
                plain.append(Entry(rng.choice("tuv"), keys, rng.random() < 0.4, rng.randint(0, 9)))
                buffer.append(plain[-1])
            if rng.random() < 0.7:
                check(rng, buffer, plain)
        another = Buffer()
        another.extend(buffer)
        assert list(another) == plain
        check(rng, buffer.copy(), plain)


def check(rng: random.Random, buffer: Buffer, plain: list[Entry]) -> None:
    assert list(buffer) == plain and len(buffer) == len(plain) and bool(buffer) == bool(plain)
    assert buffer.size == sum(each.bytes for each in plain)
    assert buffer.placed == [each for each in plain if each.runs]
    visible = rng.choice([None, rng.randint(0, len(plain))])
    for tables in ((), "t", "uv", "tuw", "x"):
        assert list(buffer.seen(tables, visible)) == [each for each in plain[:visible] if each.table.id in tables]
    since = rng.randint(0, len(plain))
    assert buffer.since(since) == plain[since:]
    for table in "tux":
        here = [each for each in plain if each.table.id == table]
        keys = own_keys(buffer.of(table))
        assert +keys.counts == +net(here) and -keys.counts == -net(here)
        newest: dict[bytes, bool] = {}
        for each in here:
            newest |= {key: each.removed is None for key in each._keys if key is not None}
        found = keys.rows({b"1", b"3", b"9"})
        assert {key: row is not None for key, row in found.items()} == {
            key: there for key, there in newest.items() if key in (b"1", b"3", b"9")
        }


def test_a_statement_costs_what_it_writes_however_many_came_before() -> None:
    buffer, entries = Buffer(), [Entry("t", [b"%d" % n], False) for n in range(500)]
    for each in entries:
        buffer.append(each)
        keys = own_keys(buffer.of("t"))
        assert keys.counts[each._keys[0]] == 1 and set(keys.rows([each._keys[0]])) == set(each._keys)
        assert buffer.size
    assert Counter(each.sized for each in entries) == {1: 500} and Counter(each.looked for each in entries) == {2: 500}
    for n in reversed(range(400, 500)):
        buffer.cut(n)
        assert own_keys(buffer.of("t")).counts[b"%d" % n] == 0
    assert Counter(each.looked for each in entries[:400]) == {2: 400}, "what goes is counted down, not all anew"


def test_reads_by_key_in_a_long_block_cost_what_they_find() -> None:
    async def story(world: World) -> None:
        async with world.adapter() as a:
            await a.sql("create table t (a int primary key, b int)")
            await a.sql("create table u (a int)")
            await a.sql("insert into t select n, 0 from generate_series(1, 50) as g(n)")
            session, looked = a.session, []
            session.transaction.begin(None, None)
            session.defers_writes = True
            by_key = Keyed._grouped
            Keyed._grouped = lambda keyed, entry: looked.append(entry) or by_key(keyed, entry)
            try:
                for n in range(1, 51):
                    await a.sql(f"update t set b = b + {n} where a = {n}")
                    await a.sql(f"insert into u values ({n})")
                    assert await a.sql(f"select b from t where a = {n}") == [(n,)]
                    assert await a.sql(f"select b from t where a = {n % 50 + 1}") == [(0 if n < 50 else 1,)]
                    kept = len(session.buffer)
                    await a.sql(f"update t set b = 1000 where a in ({n}, {n % 50 + 1})")
                    assert await a.sql(f"select b from t where a = {n}") == [(1000,)]
                    session.buffer.cut(kept)
                    assert await a.sql(f"select b from t where a = {n}") == [(n,)]
            finally:
                Keyed._grouped = by_key
            assert len(looked) == len({id(each) for each in looked})
            await a.executor.commit(session)
            session.transaction.end()
            session.defers_writes = False
            assert sorted(await a.sql("select a, b from t")) == [(n, n) for n in range(1, 51)]

    finished(story(World()))


def test_keys_of_a_block_come_and_go_with_its_savepoints() -> None:
    async def story(world: World) -> None:
        async with world.adapter() as a:
            await a.sql("create table t (a int primary key, b int)")
            session = a.session
            session.transaction.begin(None, None)
            session.defers_writes = True
            await a.sql("insert into t values (1, 1), (2, 2)")
            kept = len(session.buffer)
            await a.sql("insert into t values (3, 3)")
            await a.sql("insert into t values (3, 30), (2, 20) on conflict (a) do update set b = excluded.b")
            session.buffer.cut(kept)
            await a.sql("insert into t values (3, 4)")
            await a.sql("insert into t values (2, 0) on conflict (a) do update set b = t.b + 5")
            await a.executor.commit(session)
            session.transaction.end()
            session.defers_writes = False
            assert sorted(await a.sql("select a, b from t")) == [(1, 1), (2, 7), (3, 4)]

    finished(story(World()))
