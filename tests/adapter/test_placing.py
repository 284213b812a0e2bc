"""Which rows a commit record carries, and that it is decided before they are encoded."""

from __future__ import annotations

from dataclasses import dataclass
from unittest import mock

import pyarrow as pa
import pytest

from adapter.execute import placing
from adapter.execute.placing import HELD_BYTES_GOAL, INLINE_BYTES_MAX, INLINE_ROWS_MAX, carried
from adapter.execute.rows import Rows
from catalog_log.objects import Column
from oracle.state import EMPTY

CARRIES = EMPTY._replace(record_version=2)


@dataclass(frozen=True)
class Item:
    id: str
    columns: tuple[Column, ...]


def rows(type_name: str, *values: object, id: str = "u1") -> Rows:
    arrow = {"text": pa.string(), "bool": pa.bool_()}[type_name]
    return Rows(Item(id, (Column("a", type_name),)), pa.table({"a": pa.array(values, arrow)}), 1)


def test_rows_of_all_tables_count_together() -> None:
    half = rows("text", "x" * (INLINE_BYTES_MAX // 2 + 1))
    assert carried([half], CARRIES, "w") is not None
    assert carried([half, rows("text", "y", id="u2")], CARRIES, "w") is not None
    assert carried([half, rows("text", *half.rows["a"].to_pylist(), id="u2")], CARRIES, "w") is None


def test_none_are_carried_before_everybody_can_read_it_or_where_much_is_held() -> None:
    one = rows("text", "x")
    assert carried([one], EMPTY, "w") is None
    assert carried([one], CARRIES._replace(held_bytes=HELD_BYTES_GOAL + 1), "w") is None


@pytest.mark.parametrize("columns", [{"a": pa.array([True] * (INLINE_ROWS_MAX + 1))}, {}])
def test_many_rows_of_next_to_no_bytes_are_not_encoded_on_the_event_loop(columns) -> None:
    """A hundred thousand booleans are 12 KB for Arrow, and took everybody's event loop for 0.3 s."""
    table = pa.table({"x": pa.array([1] * (INLINE_ROWS_MAX + 1)), **columns}).select(list(columns))
    many = Rows(Item("u1", tuple(Column(name, "bool") for name in columns)), table, 1)
    with mock.patch.object(placing, "encode", side_effect=AssertionError("encoded")):
        assert carried([many], CARRIES, "w") is None
    assert many.heavy
