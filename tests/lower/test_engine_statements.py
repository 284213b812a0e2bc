"""A text that DuckDB was told before is not read again, and means what it meant."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from journal.errors import InvalidUsage
from lower.duckdb import engine
from lower.duckdb.engine import Engine, Running

TEXT = "SELECT n, count(*) FROM t GROUP BY n ORDER BY n"


@pytest.fixture(scope="module")
def asked() -> Engine:
    return Engine("64MB")


def ask(asked: Engine, text: str, column: pa.Array) -> list[tuple]:
    found = asked.ask(text, Running(), 1 << 20, tables={"t": pa.table({"n": column})})
    return list(zip(*(each.to_pylist() for each in found.columns), strict=True))


def test_what_was_read_once_is_asked_of_tables_of_other_types(asked):
    assert ask(asked, TEXT, pa.array([2, 1, 2], pa.int32())) == [(1, 1), (2, 2)]
    assert ask(asked, TEXT, pa.array(["b", None, "b"])) == [("b", 2), (None, 1)]
    assert ask(asked, TEXT, pa.array([[1], [1]], pa.list_(pa.int64()))) == [([1], 2)]


def test_many_ask_the_same_text_at_once(asked):
    def one(n: int) -> list[tuple]:
        return ask(asked, TEXT, pa.array([n] * n, pa.int64()))

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(one, range(1, 200))) == [[(n, n)] for n in range(1, 200)]


def test_only_what_is_one_select_is_known(asked, monkeypatch):
    monkeypatch.setattr(engine, "KNOWN_MAX", 2)
    for text in ("SELECT 1; SELECT 2", "DROP TABLE t", "SELECT 1 FROM"):
        for _ in range(2):
            with pytest.raises(InvalidUsage):
                ask(asked, text, pa.array([1]))
        assert text not in asked._known
    for n in range(5):
        assert ask(asked, f"SELECT n + {n} FROM t", pa.array([1])) == [(1 + n,)]
    assert list(asked._known) == ["SELECT n + 3 FROM t", "SELECT n + 4 FROM t"]
    long = "x" * engine.KNOWN_CHARS_MAX
    assert ask(asked, f"SELECT '{long}' FROM t", pa.array([1])) == [(long,)]
    assert len(asked._known) == 2
