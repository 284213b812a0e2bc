"""SQL column types and what each becomes in Avro, Arrow and Spark: the one table everybody uses.

Pure.  A :class:`SqlType` is written as text (``int4``, ``numeric(10,2)``, ``timestamptz``) in catalog records, and
parsed back with :func:`parse_type`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import pyarrow as pa

from journal.errors import InvalidUsage

NUMERIC_PRECISION_MAX = 38
"""Spark's and Arrow's decimal128 limit; a declared precision above it is refused, never rounded silently."""

NUMERIC_DEFAULT = (38, 9)
"""Postgres's unconstrained ``numeric`` has no fixed scale; ours is (38,9): 29 digits before the point, 9 behind."""


@dataclass(frozen=True)
class SqlType:
    """A scalar type.  ``precision`` and ``scale`` are set for ``numeric`` only."""

    name: str
    precision: int | None = None
    scale: int | None = None

    def __str__(self) -> str:
        return f"numeric({self.precision},{self.scale})" if self.name == "numeric" else self.name


_ARROW = {
    "bool": pa.bool_(),
    "int2": pa.int16(),
    "int4": pa.int32(),
    "int8": pa.int64(),
    "float4": pa.float32(),
    "float8": pa.float64(),
    "text": pa.string(),
    "bytea": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", tz="UTC"),
}

_SPARK = {
    "bool": "BOOLEAN",
    "int2": "SMALLINT",
    "int4": "INT",
    "int8": "BIGINT",
    "float4": "FLOAT",
    "float8": "DOUBLE",
    "text": "STRING",
    "bytea": "BINARY",
    "date": "DATE",
    "timestamp": "TIMESTAMP_NTZ",
    "timestamptz": "TIMESTAMP",
}

_AVRO = {
    "bool": "boolean",
    "int2": "int",
    "int4": "int",
    "int8": "long",
    "float4": "float",
    "float8": "double",
    "text": "string",
    "bytea": "bytes",
    "date": {"type": "int", "logicalType": "date"},
    "timestamp": {"type": "long", "logicalType": "local-timestamp-micros"},
    "timestamptz": {"type": "long", "logicalType": "timestamp-micros"},
}

_ALIASES = {
    "boolean": "bool",
    "smallint": "int2",
    "int": "int4",
    "integer": "int4",
    "bigint": "int8",
    "real": "float4",
    "float": "float8",
    "double": "float8",
    "double precision": "float8",
    "decimal": "numeric",
    "varchar": "text",
    "character varying": "text",
    "string": "text",
    "timestamp without time zone": "timestamp",
    "timestamp with time zone": "timestamptz",
}

_NUMERIC = re.compile(r"^numeric\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)$")

OID = {
    "bool": 16, "bytea": 17, "int8": 20, "int2": 21, "int4": 23, "text": 25, "float4": 700, "float8": 701,
    "date": 1082, "timestamp": 1114, "timestamptz": 1184, "numeric": 1700,
}  # fmt: skip
"""Postgres's type oids (pg_type.dat)."""

TYPE_NAMES = (*_ARROW, "numeric")


def parse_type(text: str) -> SqlType:
    """The type that ``text`` names.  Raises ``InvalidUsage`` 42704 (unknown) or 22023 (numeric out of range)."""
    name = " ".join(text.lower().split())
    name = re.sub(r"^(decimal|dec)\b", "numeric", name)
    name = re.sub(r"^(varchar|character varying)\s*\(\s*\d+\s*\)$", "text", name)
    name = _ALIASES.get(name, name)
    if name == "numeric":
        return SqlType("numeric", *NUMERIC_DEFAULT)
    if match := _NUMERIC.match(name):
        precision, scale = int(match[1]), int(match[2] or 0)
        if not 1 <= precision <= NUMERIC_PRECISION_MAX or scale > precision:
            raise InvalidUsage(f"numeric({precision},{scale}) is out of range", sqlstate="22023",
                               hint=f"precision is 1 to {NUMERIC_PRECISION_MAX}, scale 0 to precision")  # fmt: skip
        return SqlType("numeric", precision, scale)
    if name in _ARROW:
        return SqlType(name)
    raise InvalidUsage(f'type "{text}" does not exist', sqlstate="42704")


def arrow_type(sql_type: SqlType) -> pa.DataType:
    """The Arrow type that carries values of ``sql_type``."""
    if sql_type.name == "numeric":
        return pa.decimal128(sql_type.precision, sql_type.scale)
    return _ARROW[sql_type.name]


def spark_type(sql_type: SqlType) -> str:
    """The Spark SQL name of ``sql_type``."""
    if sql_type.name == "numeric":
        return f"DECIMAL({sql_type.precision},{sql_type.scale})"
    return _SPARK[sql_type.name]


def avro_type(sql_type: SqlType) -> object:
    """The Avro schema of ``sql_type`` (without the null branch)."""
    if sql_type.name == "numeric":
        return {"type": "bytes", "logicalType": "decimal",
                "precision": sql_type.precision, "scale": sql_type.scale}  # fmt: skip
    return _AVRO[sql_type.name]


def from_arrow(arrow: pa.DataType) -> SqlType:
    """The SQL type for values that Spark returned as ``arrow``.  Raises ``InvalidUsage`` 0A000 where there is none."""
    if pa.types.is_decimal(arrow):
        return SqlType("numeric", arrow.precision, arrow.scale)
    if pa.types.is_timestamp(arrow):
        return SqlType("timestamptz" if arrow.tz else "timestamp")
    if pa.types.is_large_string(arrow):
        return SqlType("text")
    if pa.types.is_int8(arrow):
        return SqlType("int2")
    if pa.types.is_null(arrow):
        return SqlType("text")
    for name, candidate in _ARROW.items():
        if candidate == arrow:
            return SqlType(name)
    raise InvalidUsage(f"no SQL type for values of Arrow type {arrow}", sqlstate="0A000")
