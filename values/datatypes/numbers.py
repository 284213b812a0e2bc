"""Numbers.  What a ``numeric`` becomes hangs on its digits (:mod:`values.types`), of which its row says nothing."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa

from values import json_values
from values.datatypes.row import Datatype
from values.numeric import numerics
from values.numeric.numeric_wire import receive_numeric, send_numeric
from values.scalars import read_float4, read_float8, read_int2, read_int4, read_int8, show_float4, show_float8
from values.wire import packed


def _numeric(text: str) -> Decimal:
    return Decimal(numerics.read(text))


def _show_numeric(value: Decimal | str) -> str:
    """A decimal of the engines, or the text of a free one."""
    return value if isinstance(value, str) else f"{value:f}"


_int2, _int4, _int8, _float4, _float8 = (packed(form) for form in "hiqfd")

DATATYPES = (
    Datatype(
        "int2", 21, 1005, "smallint", read_int2, *_int2, json=json_values.int2, aliases=("smallint",),
        arrow=pa.int16(), spark="SMALLINT", avro="int", duckdb=("SMALLINT", "INT16"), category="N", length=2,
        iceberg="int",
    ),
    Datatype(
        "int4", 23, 1007, "integer", read_int4, *_int4, json=json_values.int4, aliases=("integer", "int"),
        arrow=pa.int32(), spark="INT", avro="int", duckdb=("INTEGER", "INT32"), category="N", length=4, iceberg="int",
    ),
    Datatype(
        "int8", 20, 1016, "bigint", read_int8, *_int8, json=json_values.int8, aliases=("bigint",),
        arrow=pa.int64(), spark="BIGINT", avro="long", duckdb=("BIGINT", "INT64"), category="N", length=8,
        iceberg="long",
    ),
    Datatype(
        "numeric", 1700, 1231, "numeric", _numeric, receive_numeric, send_numeric, _show_numeric,
        json=json_values.free_numeric, aliases=("decimal", "dec"), carries="text", duckdb=("DECIMAL",), category="N",
        alike=False, iceberg="string",
    ),
    Datatype(
        "float4", 700, 1021, "real", read_float4, *_float4, show_float4, json_values.float4, aliases=("real",),
        arrow=pa.float32(), spark="FLOAT", avro="float", duckdb=("FLOAT",), category="N", length=4,
        read_by_us=True, shown_by_us=True, alike=False, iceberg="float",
    ),
    Datatype(
        "float8", 701, 1022, "double precision", read_float8, *_float8, show_float8, json_values.float8,
        aliases=("double precision", "double", "float"), arrow=pa.float64(), spark="DOUBLE", avro="double",
        duckdb=("DOUBLE",), category="N", preferred=True, length=8, read_by_us=True, shown_by_us=True, alike=False,
        iceberg="double",
    ),
)  # fmt: skip
