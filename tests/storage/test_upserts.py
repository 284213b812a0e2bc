"""UPSERT and DEBEZIUM against a model, in any batches and through any restarts: a key is what it was told last.

The source's rows are folded here as the log has them; a restart throws away what is kept beside and makes it of these.
"""

from __future__ import annotations

import json
import random
import tempfile
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from decimal import Decimal
from types import SimpleNamespace

import pyarrow as pa
import pytest

from catalog_log.objects import Column, Source
from catalog_log.objects.reading import Format, Reading
from collection.columns import DIFF, arrow_schema, table_from_rows, with_diff
from collection.messages.judging import Judge, KeyedTable, Message
from collection.row_bytes import one_by_one, row_bytes, rows_of, rows_one_by_one
from collection.rows import Undecodable, decode, encode
from controllers.changes import canonical
from controllers.storage import keyed_state
from controllers.storage.copied import Copied
from controllers.storage.keyed_state import Inconsistent, KeyedState
from controllers.storage.upserts import KEY_BYTES, Keys, changed
from journal.errors import Unavailable
from tests.collection.test_json_written import VALUES, many
from tests.seeds import seed_of_commit
from values.datatypes.registry import DATATYPES


def source(envelope: str) -> Source:
    columns = (Column("key", "text", False, id=1), Column("n", "int8", id=2), Column("x", "float8", id=3))
    reading = Reading(Format("json"), Format("text"), ("key", "value", "value"))
    return Source("u1", "s1", "s", "", columns, topic="t", format="json", envelope=envelope, errors_id="u2",
                  reading=reading)  # fmt: skip


def changed_one_by_one(keys: Keys, told: KeyedTable, hashes: list[bytes], before: dict[bytes, bytes]) -> pa.Table:
    """What changes, key by key in the order in which they come first: what a key had goes, what it has comes."""
    rows = iter(told.rows.to_pylist())
    last = {key: next(rows) if there else None for key, there in zip(hashes, told.there, strict=True)}
    changes: list[tuple[list[object], int]] = []
    for key, row in last.items():
        now = None if row is None else list(row.values())
        old = (
            [list(each.values()) for each in rows_of(keys.columns, [before[key]]).to_pylist()] if key in before else []
        )
        if old != [now] and (old or now is not None):
            changes += [(each, -1) for each in old] + ([(now, 1)] if now is not None else [])
    table = with_diff(table_from_rows(keys.columns, [row for row, _ in changes]))
    return table.set_column(
        len(keys.columns), table.schema.field(DIFF), pa.array([diff for _, diff in changes], pa.int64())
    )


class World:
    """A source's rows on its topic, and what its controller keeps."""

    def __init__(self, of: Source) -> None:
        self.source = of
        self.judge = Judge(of)
        self.keys = Keys(of.stored, self.judge.key_columns, self.judge.key_places)
        self.topic: list[bytes] = []
        self.state = KeyedState()

    def batch(self, messages: list[Message]) -> None:
        told = self.judge.keyed_table(messages)
        assert not told.bad
        hashes = self.keys.hashes(told.keys)
        before = self.state.get(hashes)
        found = changed(self.keys, told, hashes, before)
        assert found.table == changed_one_by_one(self.keys, told, hashes, before)
        self.state.put(found.puts)
        self.topic += [each.value for each in encode(self.source.stored, found.table, "a")]

    def restart(self) -> None:
        self.state.close()
        self.state = KeyedState()
        tables = [decode(self.source.stored, [each]) for each in self.topic]
        self.state.load(map(self.keys.of_rows, tables))

    def rows(self) -> dict[tuple, int]:
        """Each row with how often it is there."""
        table = decode(self.source.stored, self.topic)
        found: dict[tuple, int] = {}
        for *row, diff in zip(*(column.to_pylist() for column in table.columns), strict=True):
            found[tuple(row)] = found.get(tuple(row), 0) + diff
        return {row: count for row, count in found.items() if count}


def sent(envelope: str, key: str, value: dict | None, before: dict | None, rng: random.Random) -> list[Message]:
    """What says that ``key`` is ``value`` now: of Debezium also twice, with a ``before`` that need not be true."""
    if envelope == "upsert":
        data = None if value is None else json.dumps(value).encode()
        return [Message(0, 0, key.encode(), data, -1)]
    said = json.dumps({"before": rng.choice([None, before, {"n": 99}]), "after": value}).encode()
    found = [Message(0, 0, key.encode(), said, -1)] * rng.choice([1, 1, 2])
    return found + ([Message(0, 0, key.encode(), None, -1)] if value is None else [])


@pytest.mark.parametrize("recent", [0, 3_000, 1 << 20])
@pytest.mark.parametrize("envelope", ["upsert", "debezium"])
def test_what_keys_were_told_last_is_what_is_there(envelope: str, recent: int, monkeypatch) -> None:
    """Wherever what a key was is: on the disk, in memory, or the one before the other."""
    monkeypatch.setattr(keyed_state, "RECENT_BYTES", recent)
    monkeypatch.setattr(keyed_state, "LOADED_AT_ONCE", 5)
    rng = random.Random(seed_of_commit())
    world, model = World(source(envelope)), {}
    for _ in range(60):
        batch = []
        for _ in range(rng.randrange(1, 30)):
            key = f"k{rng.randrange(40)}"
            n, x = rng.randrange(3), rng.choice([0.0, -0.0, 1.5])
            value = rng.choice([None, {"n": n}, {"n": n, "x": x}])
            batch += sent(envelope, key, value, model.get(key), rng)
            model[key] = value
        world.batch(batch)
        if rng.random() < 0.2:
            world.restart()
        expected = {(key, value["n"], value.get("x")) for key, value in model.items() if value is not None}
        assert world.rows() == dict.fromkeys(expected, 1)
    assert len(world.state) == len(expected)
    world.state.close()


def test_what_is_told_again_changes_nothing() -> None:
    world = World(source("upsert"))
    world.batch([Message(0, 0, b"a", b'{"n":1,"x":0}', -1), Message(0, 1, b"b", None, -1)])
    written = len(world.topic)
    world.batch([Message(0, 2, b"a", b'{"n":1,"x":-0.0}', -1), Message(0, 3, b"b", None, -1)])
    world.restart()
    world.batch([Message(0, 4, b"a", b'{"x":0,"n":1}', -1)])
    assert len(world.topic) == written == 1
    world.state.close()


@pytest.mark.parametrize("name", sorted(VALUES))
def test_rows_are_bytes_and_come_back(name: str) -> None:
    """Of every type: all at once and one by one, equal bytes for equal rows and no others."""
    table = canonical(many(name, True)).combine_chunks()
    columns = (Column("a", name), Column("many", f"{name}[]"), Column("n", "int8"))
    for some in ((0, 2), (0, 1, 2)):
        of, part = [columns[at] for at in some], table.select(list(some))
        found = row_bytes(of, part)
        assert found == one_by_one(of, part)
        for back in (rows_of(of, found), rows_one_by_one(of, found)):
            assert back.schema == arrow_schema(of)
            assert repr(back.to_pydict().values()) == repr(part.to_pydict().values())
        alone = part.select([0])
        shown = [repr(each) for each in alone.column(0).to_pylist()]
        assert len(set(row_bytes(of[:1], alone))) == len(set(shown))
    assert rows_of(columns, []).num_rows == 0


def test_long_rows_that_go_are_read_back_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """All at a time each byte takes several numbers."""
    columns = (Column("k", "text"),)
    found = row_bytes(columns, table_from_rows(columns, [("x" * 500,)] * 300))
    monkeypatch.setattr("collection.row_bytes.WOVEN_BYTES_MAX", 100_000)
    monkeypatch.setattr("collection.row_bytes.unwoven", None)
    assert rows_of(columns, found).num_rows == 300


def test_what_is_loaded_at_once_is_bounded_by_its_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyed_state, "LOADED_BYTES", 1_000)
    some = [(b"%d" % n, b"x" * 400, 1) for n in range(7)]
    assert [len(each) for each in keyed_state._pieces(some)] == [3, 3, 1]
    with closing(KeyedState()) as state:
        state.load([some])
        assert len(state) == 7 and state.get([b"3", b"9"]) == {b"3": b"x" * 400}


def test_a_process_has_room_for_many_sources() -> None:
    """Each is given addresses, of which there are no more than a processor knows."""
    with ExitStack() as until:
        for _ in range(200):
            until.enter_context(closing(KeyedState()))


def test_short_keys_are_themselves_and_long_ones_never_look_so() -> None:
    columns = (Column("k", "text"),)
    keys = Keys(columns, columns, (0,))
    texts = ["", None, "a", "a" * (KEY_BYTES - 3), "a" * (KEY_BYTES - 2), "b" * 400, "é"]
    found = keys.hashes(table_from_rows(columns, [(each,) for each in texts]))
    assert len(set(found)) == len(texts)
    assert [len(each) for each in found] == [2, 1, 3, KEY_BYTES - 1, KEY_BYTES, KEY_BYTES, 4]


def test_rows_that_are_not_one_of_each_key_are_told() -> None:
    world = World(source("upsert"))
    columns = world.source.stored
    for rows in ([("a", 1, None), ("a", 2, None)], [("a", 1, None), ("a", 1, None)]):
        with pytest.raises(Inconsistent):
            world.state.load([world.keys.of_rows(with_diff(table_from_rows(columns, rows)))])
    gone = with_diff(table_from_rows(columns, [("a", 1, None)]), -1)
    with pytest.raises(Inconsistent):
        world.state.load([world.keys.of_rows(gone)])
    there = with_diff(table_from_rows(columns, [("a", 1, None)]))
    world.state.load([world.keys.of_rows(gone), world.keys.of_rows(there)])
    assert len(world.state) == 0
    world.state.close()


def test_keys_of_all_types_are_told_apart_alike_before_and_after_a_restart() -> None:
    types = {"i": "int4", "n": "numeric(6,2)", "at": "timestamptz", "d": "date", "b": "bytea", "f": "float8",
             "iv": "interval", "a": "int4[]"}  # fmt: skip
    columns = tuple(Column(name, kind, id=n) for n, (name, kind) in enumerate(types.items(), 1))
    keys = Keys(columns, columns, range(len(columns)))
    row = (1, Decimal("1.50"), datetime(2020, 1, 1, tzinfo=UTC), datetime(2020, 1, 1).date(), b"\0", -0.0,
           DATATYPES["interval"].read("1 day 2 s"), [1, None])  # fmt: skip
    table = table_from_rows(columns, [row])
    hashes = keys.hashes(table)
    found = changed(keys, KeyedTable(table, [True], table, []), hashes, {})
    again = decode(columns, [each.value for each in encode(columns, found.table, "a")])
    assert isinstance(again, pa.Table) and again.column(DIFF).to_pylist() == [1]
    ((key, value, _),) = keys.of_rows(again)
    assert [key] == hashes and found.puts == {key: value}


def test_keys_that_are_equal_are_one_however_they_are_written() -> None:
    columns = (Column("k", "jsonb", id=1), Column("n", "numeric", id=2))
    keys = Keys(columns, columns, (0, 1))
    alike = [
        [("1", "2"), ("1.0", "2.00"), ("1.000", "2.0")], [('{"a": 1.50, "b": [2, "1.0"]}', None),
        ('{"a": 1.5, "b": [2.0, "1.0"]}', None)], [('"1.0"', "-0.50"), ('"1.0"', "-0.5")], [('"1"', "10")],
        [("10", "1")], [("100", "0"), ("100", "0.00")],
    ]  # fmt: skip
    found = [set(keys.hashes(table_from_rows(columns, each))) for each in alike]
    assert [len(each) for each in found] == [1] * len(alike) and len(set().union(*found)) == len(alike)


def test_a_source_that_has_rows_of_equal_keys_goes_on_as_it_was() -> None:
    """From when ``1`` and ``1.0`` were two; new ones have one row of both, and of the same key there is never more."""
    columns = (Column("key", "jsonb", False, id=1), Column("n", "int8", id=2))
    reading = Reading(Format("json"), Format("json"), ("key", "value"))
    of = Source("u1", "s1", "s", "", columns, topic="t", format="json", envelope="upsert", errors_id="u2",
                reading=reading)  # fmt: skip
    state = SimpleNamespace(
        bindings=lambda _: SimpleNamespace(ends=lambda: {("t", 0): 5}, bound=SimpleNamespace(base=(), recent=()))
    )

    def held(*rows: tuple) -> Copied:
        table = with_diff(table_from_rows(columns, rows))
        copied = Copied(of, None, None, lambda *_: (each for each in (table,)), "e")
        copied.begin(state)
        return copied

    def hashes(copied: Copied, *keys: str) -> set[bytes]:
        return set(copied._keys.hashes(table_from_rows(columns[:1], [(key,) for key in keys])))

    old, new = held(("1", 1), ("1.0", 2), ("2", 3)), held(("1.0", 2), ("2", 3))
    assert (len(old._state), len(new._state)) == (3, 2)
    assert len(hashes(old, "1", "1.0")) == 2 and len(hashes(new, "1", "1.0", "1.00")) == 1
    for each in (old, new):
        each.close()
    with pytest.raises(Undecodable, match="not one of each key"):
        held(("1", 1), ("1", 2))


def test_nothing_of_it_is_left_on_the_disk(tmp_path, monkeypatch) -> None:
    """However its process ends: after three that were killed there were three directories that nobody took away."""
    monkeypatch.setattr(keyed_state, "RECENT_BYTES", 0)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    state = KeyedState()
    state.put({b"k%d" % n: b"r" * 1_000 for n in range(5_000)})
    assert len(state) == 5_000 and state.get([b"k7"]) == {b"k7": b"r" * 1_000}
    assert not list(tmp_path.iterdir())
    state.close()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    with pytest.raises(Unavailable, match="cannot be kept on disk"):
        KeyedState()


def test_what_fails_where_rows_are_read_from_is_not_said_of_its_disk() -> None:
    def changes():
        yield []
        raise FileNotFoundError("a file of the store")

    with closing(KeyedState()) as state, pytest.raises(FileNotFoundError):
        state.load(changes())


def test_what_failed_in_the_middle_is_made_anew(monkeypatch) -> None:
    """A disk that was full: what is kept is made of the rows again, once there is room."""
    of = source("upsert")
    rows = with_diff(table_from_rows(of.stored, [("k", 1, 2.0)]))
    copied = Copied(of, None, None, lambda *_: (each for each in (rows,)), "e")
    state = SimpleNamespace(
        bindings=lambda _: SimpleNamespace(ends=lambda: {("t", 0): 5}, bound=SimpleNamespace(base=(), recent=()))
    )
    monkeypatch.setattr(keyed_state, "MAP_BYTES", 32 << 10)
    with pytest.raises(Unavailable) as caught:
        copied.begin(state)
    assert "MDB_MAP_FULL" in caught.value.detail
    monkeypatch.undo()
    copied.begin(state)
    assert len(copied._state) == 1
    copied.close()
