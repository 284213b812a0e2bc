"""The frame, and that hostile bytes are refused in one way only."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas import codec
from schemas.codec import Undecodable

DATABASE = {"id": "d1", "name": "tidemark"}


def test_bytes_are_marker_version_and_avro() -> None:
    assert codec.encode("database", DATABASE) == b"T\x01" + b"\x04d1" + b"\x10tidemark"


def test_round_trip() -> None:
    assert codec.decode("database", codec.encode("database", DATABASE)) == DATABASE


@pytest.mark.parametrize(
    "data",
    [b"", b"T", b"X\x01\x04d1\x10tidemark", b"T\x01\x04d1\x10tide", b"T\x01\x04d1\x10tidemark!", b"T\x01\x04d1\x03"],
    ids=["empty", "marker only", "other marker", "cut short", "left over", "negative length"],
)
def test_what_is_no_record_is_undecodable(data: bytes) -> None:
    with pytest.raises(Undecodable):
        codec.decode("database", data)


def test_an_unknown_version_is_undecodable_and_named() -> None:
    with pytest.raises(Undecodable, match="unknown schema version 200"):
        codec.decode("database", b"T\xc8\x04d1\x10tidemark")


def test_a_record_without_a_schema_is_a_mistake_in_the_code() -> None:
    with pytest.raises(codec.UnknownRecord):
        codec.encode("no_such_record", {})


@pytest.mark.parametrize("record", [{"id": "d1"}, {"id": 1, "name": "x"}, {"id": None, "name": "x"}])
def test_a_record_that_does_not_fit_is_not_written(record: dict) -> None:
    with pytest.raises((ValueError, TypeError)):
        codec.encode("database", record)


@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_but_undecodable(tail: bytes) -> None:
    for name in ("proposal", "item", "catalog_image", "checkpoint_chunk"):
        for data in (tail, b"T\x01" + tail):
            try:
                codec.decode(name, data)
            except Undecodable:
                pass


texts = st.text(max_size=90)


@given(st.lists(texts, min_size=4, max_size=4), st.lists(texts, max_size=4))
def test_leading_fields_are_what_decoding_gives(leading: list[str], depends_on: list[str]) -> None:
    item_id, schema_id, name, kind = leading
    item = {
        "id": item_id, "schema_id": schema_id, "name": name, "kind": kind, "depends_on": depends_on,
        "cluster_id": None, "create_sql": "", "query_sql": None, "inputs": [], "index_columns": [], "topic": None,
        "columns": [], "options": {},
    }  # fmt: skip
    data = codec.encode("item", item)
    found, position = codec.leading_strings(data, 4)
    assert found == leading
    assert codec.string_array(data, position) == depends_on


@given(st.binary(max_size=60))
def test_leading_fields_of_any_bytes_are_strings_or_undecodable(tail: bytes) -> None:
    data = b"T\x01" + tail
    try:
        found, position = codec.leading_strings(data, 4)
        found += codec.string_array(data, position)
    except Undecodable:
        return
    assert all(isinstance(text, str) for text in found)
    assert sum(len(text.encode()) for text in found) <= len(tail)
