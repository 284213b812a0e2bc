"""Rows that are read all at a time are those that fastavro reads one by one, of whatever bytes."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO

import fastavro
import numpy as np
import pyarrow as pa
import pytest

from catalog_log.objects import Column
from collection import rows
from collection.columns import DIFF, sql_type
from collection.unwoven import Field, unwoven
from tests.seeds import seed_of_commit
from values.types import arrow_type

ROWS = 600

TYPES = (
    "bool", "int2", "int4", "int8", "float4", "float8", "text", "varchar(9)", "bytea", "date", "timestamp",
    "timestamptz", "time", "numeric(18,4)", "numeric", "jsonb", "uuid",
)  # fmt: skip


def values(kind: str, chance: random.Random) -> object:
    """One value as Arrow is given it, of any size."""
    bits = chance.choice((3, 7, 8, 14, 31, 63))
    number = chance.randrange(-(1 << bits), 1 << bits)
    text = "".join(chance.choice(("a", "é", "\x02", "𝄞", "\x01\x02")) for _ in range(chance.choice((0, 1, 3, 70))))
    of: dict[str, Callable[[], object]] = {
        "bool": lambda: number % 2 == 0,
        "int2": lambda: number % 65536 - 32768,
        "int4": lambda: number if bits < 32 else number >> 32,
        "date": lambda: number % 100_000 - 50_000,
        "float4": lambda: float(np.float32(number)),
        "float8": lambda: number / 7,
        "bytea": text.encode,
        "numeric(18,4)": lambda: number % 10**17,
    }
    if kind in of:
        return of[kind]()
    return text if arrow_type(sql_type(kind)) == pa.string() else number % (1 << 50)


def column(kind: str, count: int, nulls: float, chance: random.Random) -> pa.Array:
    found = [None if chance.random() < nulls else values(kind, chance) for _ in range(count)]
    arrow = arrow_type(sql_type(kind))
    if pa.types.is_decimal(arrow):
        return rows.from_physical([None if v is None else v.to_bytes(8, "big", signed=True) for v in found],
                                  sql_type(kind))  # fmt: skip
    if pa.types.is_date(arrow):
        return pa.array(found, pa.int32()).cast(arrow)
    return pa.array(found, arrow)


def columns_of(kinds: Sequence[str], ids: bool) -> tuple[Column, ...]:
    return tuple([Column(f"c_{n}", kind, id=n if ids else 0) for n, kind in enumerate(kinds, 1)])


def table(kinds: Sequence[str], chance: random.Random, count: int = ROWS, diffs: Sequence[int] = (1, -1)) -> pa.Table:
    arrays = [column(kind, count, chance.choice((0, 0, 0.1, 0.9, 1)), chance) for kind in kinds]
    names = [f"c_{n}" for n in range(1, len(kinds) + 1)]
    told = pa.array([chance.choice(diffs) for _ in range(count)], pa.int64())
    return pa.table([*arrays, told], names=[*names, DIFF])


@contextmanager
def one_by_one() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "unwoven", lambda *_: None)
        yield


@contextmanager
def seen() -> Iterator[list[bool]]:
    """Whether each record that might be was read all at a time."""
    found: list[bool] = []

    def noted(*asked: object) -> object:
        answer = unwoven(*asked)
        found.append(answer is not None)
        return answer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "unwoven", noted)
        yield found


@pytest.mark.parametrize("turn", range(12))
def test_many_rows_are_what_they_are_one_by_one(turn: int) -> None:
    chance = random.Random(seed_of_commit() + turn)
    kinds = [chance.choice(TYPES) for _ in range(chance.choice((1, 2, 5, 12)))]
    columns = columns_of(kinds, ids=turn % 3 > 0)
    records = [each.value for each in rows.encode(columns, table(kinds, chance), "mine")]
    with seen() as at_once:
        found = rows.decode(columns, records, ["mine"] * len(records))
    assert at_once and all(at_once), kinds
    with one_by_one():
        assert found.equals(rows.decode(columns, records)), kinds
    found.validate(full=True)


@pytest.mark.parametrize("kind", TYPES)
def test_each_type_with_and_without_nulls(kind: str) -> None:
    chance = random.Random(seed_of_commit())
    columns = columns_of([kind], ids=True)
    for nulls in (0, 0.5, 1):
        given = pa.table([column(kind, ROWS, nulls, chance)], names=["c_1"])
        records = [each.value for each in rows.encode(columns, given, "")]
        with seen() as at_once:
            assert rows.decode(columns, records).column(0).combine_chunks().equals(given.column(0).combine_chunks())
        assert at_once and all(at_once)


@pytest.mark.parametrize("kinds", [["interval"], ["int4", "int4[]"], ["numeric(38,9)"]])
def test_what_is_not_read_so_is_read_one_by_one(kinds: list[str]) -> None:
    columns = columns_of(kinds, ids=True)
    arrays = [pa.array([None] * ROWS, arrow_type(sql_type(kind))) for kind in kinds]
    if kinds == ["numeric(38,9)"]:
        arrays = [rows.from_physical([(1 << 100).to_bytes(16, "big")] * ROWS, sql_type(kinds[0]))]
    records = [each.value for each in rows.encode(columns, pa.table(arrays, names=[c.name for c in columns]), "")]
    with seen() as at_once:
        found = rows.decode(columns, records)
    assert not any(at_once)
    assert found.num_rows == ROWS


def test_rows_that_are_there_more_than_once() -> None:
    chance = random.Random(seed_of_commit())
    columns = columns_of(["int4", "text"], ids=True)
    given = table(["int4", "text"], chance, diffs=(1, 1, 1, 3, -2))
    found = rows.decode(columns, [each.value for each in rows.encode(columns, given, "")])
    assert found.column(DIFF).to_pylist() == given.column(DIFF).to_pylist()
    assert found.column(1).to_pylist() == given.column(1).to_pylist()


def test_columns_that_came_went_and_changed_places() -> None:
    """And records of every kind beside one another, in the order in which they came."""
    chance = random.Random(seed_of_commit())
    now = (Column("t", "text", id=2), Column("new", "int4", id=9), Column("n", "int8", id=1))
    before = (Column("n", "int8", id=1), Column("t", "text", id=2), Column("gone", "float8", id=3))
    parts, given = [], []
    for count in (ROWS, 3, ROWS, ROWS, 2, 5):
        made = table(["int8", "text", "float8"], chance, count)
        given.append(made)
        parts += [each.value for each in rows.encode(before, made.rename_columns(["n", "t", "gone", DIFF]), "")]
    found, counts = rows.decode_counted(now, parts)
    wanted = pa.concat_tables(given)
    assert counts == [ROWS, 3, ROWS, ROWS, 2, 5]
    assert found.column("n").to_pylist() == wanted.column(0).to_pylist()
    assert found.column("t").to_pylist() == wanted.column(1).to_pylist()
    assert found.column("new").null_count == found.num_rows
    with one_by_one():
        assert rows.decode(now, parts).equals(found)


def test_another_writers_rows_and_another_type_are_refused() -> None:
    columns = columns_of(["int4"], ids=True)
    records = [each.value for each in rows.encode(columns, table(["int4"], random.Random(1)), "theirs")]
    with pytest.raises(rows.Undecodable, match="another writer's"):
        rows.decode(columns, records, ["mine"])
    with pytest.raises(rows.Undecodable, match="another type"):
        rows.decode(columns_of(["text"], ids=True), records)


def answer(columns: Sequence[Column], record: bytes) -> object:
    try:
        found = rows.decode(columns, [record])
    except rows.Undecodable:
        return "undecodable"
    # As numbers: Python knows no days behind the year 9999.
    return [each.cast(pa.int32()).to_pylist() if pa.types.is_date(each.type) else each.cast(pa.int64()).to_pylist()
            if pa.types.is_timestamp(each.type) else each.to_pylist() for each in found.columns]  # fmt: skip


@pytest.mark.parametrize("turn", range(8))
def test_spoilt_bytes_are_taken_for_nothing_else(turn: int) -> None:
    """A byte that is another one, is missing or is one too many: what is said of it is what is said row by row."""
    chance = random.Random(seed_of_commit() + turn)
    kinds = [chance.choice(TYPES) for _ in range(chance.choice((1, 2, 4)))]
    columns = columns_of(kinds, ids=True)
    [good, *_] = [each.value for each in rows.encode(columns, table(kinds, chance, 256), "a")]
    for _ in range(60):
        spoilt, at = bytearray(good), chance.randrange(len(good))
        how = chance.randrange(4)
        if how == 0:
            spoilt[at] = chance.choice((0, 1, 2, 3, 0x7F, 0x80, 0xFF, chance.randrange(256)))
        elif how == 1:
            del spoilt[at : at + chance.choice((1, 1, 7))]
        elif how == 2:
            spoilt[at:at] = bytes([chance.randrange(256)] * chance.choice((1, 1, 9)))
        else:
            del spoilt[at:]
        found = answer(columns, bytes(spoilt))
        with one_by_one():
            assert repr(found) == repr(answer(columns, bytes(spoilt))), (kinds, how, at)


@pytest.mark.parametrize("gone", range(1, 5))
def test_the_last_row_has_all_its_bytes(gone: int) -> None:
    """Of rows of NULLs, whose last bytes are as what ends them, and as what is behind them in memory."""
    columns = columns_of(["bytea", "int8"], ids=True)
    nothing = pa.nulls(256)
    given = pa.table([nothing.cast(pa.binary()), nothing.cast(pa.int64())], names=["c_1", "c_2"])
    [record] = [each.value for each in rows.encode(columns, given, "a")]
    assert len(answer(columns, record)[0]) == 256
    assert answer(columns, record[:-gone]) == "undecodable"


def test_bytes_of_anything_never_raise() -> None:
    chance = random.Random(seed_of_commit())
    fields = [Field("long", pa.int64()), Field("string", pa.string()), Field("bytes", pa.decimal128(9, 2)),
              Field("double", None), Field("boolean", pa.bool_())]  # fmt: skip
    for _ in range(300):
        data = bytes(chance.choices((0, 1, 2, 3, 0x80, 0xFF), k=chance.randrange(60)))
        count = chance.randrange(4)
        found = unwoven(data, count, fields[: chance.randrange(1, 6)])
        assert found is None or len(found.diffs) == count


def test_fastavro_wrote_it() -> None:
    """Bytes that nothing of ours has woven."""
    columns = columns_of(["int8", "text"], ids=False)
    schema = fastavro.parse_schema(rows.avro_schema(columns))
    changes = [{"diff": 1, "row": {"c_1": n - 300, "c_2": None if n % 7 else "x" * (n % 90)}} for n in range(ROWS)]
    out = BytesIO(b"T\x01")
    out.seek(2)
    fastavro.schemaless_writer(out, schema, {"attempt": "", "rows": changes})
    with seen() as at_once:
        found = rows.decode(columns, [out.getvalue()])
    assert at_once == [True]
    assert found.column(0).to_pylist() == [each["row"]["c_1"] for each in changes]
    assert found.column(1).to_pylist() == [each["row"]["c_2"] for each in changes]
