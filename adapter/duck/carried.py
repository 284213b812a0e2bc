"""How an output of each of Postgres's types leaves the in-process engine: what it is made into, and what it is told as.

Promises: the values of an answer have the types that were announced before it ran, whatever the engine made of the
query; so what a client asks for in binary is what its type says.  Pure.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from adapter.state.interfaces import OutputColumn
from sql.system.types import NAMED, REGISTERED, ROWS, VECTORS, PgType, element_of
from values.datatypes.registry import DATATYPES
from values.text.named_oids import BETWEEN
from values.types import SqlType, arrow_type

_TEXT = SqlType("text")

PATH = "{path}"
"""In a call: the list of the schemas whose relations are shown without one."""

_INTERVAL = (
    "CASE WHEN {} IS NOT NULL THEN {'months': (datepart('year', {}) * 12 + datepart('month', {}))::INTEGER, "
    "'days': datepart('day', {})::INTEGER, "
    "'micros': datepart('hour', {}) * 3600000000 + datepart('minute', {}) * 60000000 + datepart('microsecond', {})} END"
)

_ARROW = {
    "oid": pa.uint32(), "regtype": pa.uint32(), "_oid": pa.list_(pa.uint32()), "_int2": pa.list_(pa.int16()),
    "int2vector": pa.list_(pa.uint16()), "oidvector": pa.list_(pa.uint64()), "xid": pa.int64(),
}  # fmt: skip
"""Postgres's own types travel through the engine as unsigned integers, and all else that is not here or a type of
``values.types`` as text."""


def arrow_of(name: str) -> pa.DataType:
    """What carries the values of a system relation's column of type ``name`` into the engine."""
    if name in _ARROW:
        return _ARROW[name]
    if (element := element_of(name)) is not None:
        return pa.list_(arrow_of(element))
    return arrow_type(SqlType(name)) if name in DATATYPES else pa.string()

SHOWN_BY = {
    "regclass": ("class_name", f"tm_class_name({{}}, {PATH})"), "regtype": ("format_type", "tm_format_type({}, -1)"),
    "regnamespace": ("namespace_name", "tm_namespace_name({})"),
    "regrole": ("pg_get_userbyid", "tm_pg_get_userbyid({})"),
}  # fmt: skip
"""The macro that gives the name that an oid is shown as, and its call."""


@dataclass(frozen=True, slots=True)
class Carried:
    """``text``: what the engine is told to make of an output, ``{}``; ``oid``: where it is not the type's."""

    text: str
    type: SqlType
    oid: int | None = None


def carried(kind: PgType) -> Carried:
    """How outputs of ``kind`` leave the engine."""
    name = kind.name
    if name in ("unknown", "text", "record"):
        return Carried("CAST({} AS VARCHAR)", _TEXT)
    if name in REGISTERED - NAMED:
        return Carried("CAST({} AS VARCHAR)", _TEXT)  # the name of a function and the like, which has no oid here
    oid = ROWS[name].oid
    if name in NAMED:
        return Carried(f"{SHOWN_BY[name][1]} || '{BETWEEN}' || {{}}", _TEXT, oid)
    if name in VECTORS:
        return Carried("tm_vector_out({})", _TEXT, oid)
    if name.startswith("_"):
        return Carried("tm_array_out({})", _TEXT, oid)
    if name in ("oid", "xid", "cid"):
        return Carried("CAST({} AS BIGINT)", SqlType("int8"), oid)
    if name == "numeric":
        declared = kind.declared
        if declared is not None and not declared.is_free:
            return Carried(f"CAST({{}} AS DECIMAL({declared.precision}, {declared.scale}))", declared)
        return Carried("CAST({} AS VARCHAR)", SqlType("numeric"))
    if name == "interval":
        return Carried(_INTERVAL, SqlType("interval"))
    if name == "jsonb":
        return Carried("tm_jsonb(CAST({} AS VARCHAR))", SqlType("jsonb"))
    if name in DATATYPES:
        made = {"time": "TIME", "uuid": "VARCHAR"}.get(name) or (DATATYPES[name].duckdb or ("VARCHAR",))[0]
        text = f"CAST({{}} AS {made})"
        return Carried(f"epoch_us({text})" if name == "time" else text, kind.declared or SqlType(name))
    return Carried("CAST({} AS VARCHAR)", _TEXT, oid)


def output_column(name: str, kind: PgType) -> OutputColumn:
    """What a session is told of an output."""
    found = carried(kind)
    return OutputColumn(name, found.type, found.oid)
