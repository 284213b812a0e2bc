"""Truth and bytes."""

from __future__ import annotations

import pyarrow as pa

from values import json_values
from values.datatypes.row import Datatype
from values.scalars import read_bool, read_bytea
from values.wire import packed


def _show_bool(value: bool) -> str:
    return "t" if value else "f"


def _show_bytea(value: bytes) -> str:
    return "\\x" + value.hex()


DATATYPES = (
    Datatype(
        "bool", 16, 1000, "boolean", read_bool, *packed("?"), _show_bool, json_values.boolean, aliases=("boolean",),
        arrow=pa.bool_(), spark="BOOLEAN", avro="boolean", duckdb=("BOOLEAN", "BOOL"), category="B", preferred=True,
        length=1, read_by_us=True, has_extremes=False, iceberg="boolean",
    ),
    Datatype(
        "bytea", 17, 1001, "bytea", read_bytea, bytes, bytes, _show_bytea, json_values.bytea, arrow=pa.binary(),
        spark="BINARY", avro="bytes", duckdb=("BLOB",), read_by_us=True, has_extremes=False, iceberg="binary",
    ),
)  # fmt: skip
