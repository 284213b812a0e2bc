"""Types as pg_type and format_type have them."""

from __future__ import annotations

from values.types import OID, TIMES, SqlType

TYPES = (
    # name, length, by value, category, preferred, array's oid, display name
    ("bool", 1, True, "B", True, 1000), ("bytea", -1, False, "U", False, 1001), ("int8", 8, True, "N", False, 1016),
    ("int2", 2, True, "N", False, 1005), ("int4", 4, True, "N", False, 1007), ("text", -1, False, "S", True, 1009),
    ("float4", 4, True, "N", False, 1021), ("float8", 8, True, "N", True, 1022), ("date", 4, True, "D", False, 1182),
    ("timestamp", 8, True, "D", False, 1115), ("timestamptz", 8, True, "D", True, 1185),
    ("numeric", -1, False, "N", False, 1231), ("varchar", -1, False, "S", False, 1015),
    ("bpchar", -1, False, "S", False, 1014), ("uuid", 16, False, "U", False, 2951),
    ("jsonb", -1, False, "U", False, 3807), ("interval", 16, False, "T", True, 1187),
    ("time", 8, True, "D", False, 1183),
)  # fmt: skip

OTHER_TYPES = (
    ("char", 18, 1, True, "Z"), ("name", 19, 64, False, "S"), ("oid", 26, 4, True, "N"),
    ("regclass", 2205, 4, True, "N"),
    ("regtype", 2206, 4, True, "N"), ("unknown", 705, -2, False, "X"), ("json", 114, -1, False, "U"),
    ("record", 2249, -1, False, "P"), ("void", 2278, 4, True, "P"), ("int2vector", 22, -1, False, "A"),
    ("oidvector", 30, -1, False, "A"), ("regproc", 24, 4, True, "N"), ("tid", 27, 6, False, "U"),
    ("xid", 28, 4, True, "U"), ("cid", 29, 4, True, "U"), ("regnamespace", 4089, 4, True, "N"),
    ("regrole", 4096, 4, True, "N"), ("trigger", 2279, 4, True, "P"), ("event_trigger", 3838, 4, True, "P"),
    ("cstring", 2275, -2, False, "P"), ("internal", 2281, 8, True, "P"), ("any", 2276, 4, True, "P"),
    ("anyelement", 2283, 4, True, "P"), ("anyarray", 2277, -1, False, "P"), ("anynonarray", 2776, 4, True, "P"),
)  # fmt: skip

LENGTHS = {OID[name]: (length, by_value) for name, length, by_value, *_ in TYPES} | {26: (4, True)}
ALIGN = {1: "c", 2: "s", 4: "i", 8: "d"}

DISPLAY = {
    16: "boolean", 17: "bytea", 20: "bigint", 21: "smallint", 23: "integer", 25: "text", 700: "real",
    701: "double precision", 1082: "date", 1114: "timestamp without time zone", 1184: "timestamp with time zone",
    1700: "numeric", 18: '"char"', 19: "name", 26: "oid", 1043: "character varying", 1042: "character", 705: "unknown",
    114: "json", 3802: "jsonb", 2950: "uuid", 1186: "interval", 1083: "time without time zone", 2205: "regclass",
    2206: "regtype", 2249: "record", 2278: "void", **{oid: name for name, oid, *_ in OTHER_TYPES[9:]},
}  # fmt: skip
"""format_type without a modifier."""

TYPE_NAMES = {
    **{OID[name]: name for name, *_ in TYPES},
    **{array: f"_{name}" for name, _, _, _, _, array in TYPES},
    **{oid: name for name, oid, *_ in OTHER_TYPES},
    1028: "_oid",
}
"""Oid -> typname."""


def type_display(sql_type: SqlType) -> str:
    """As format_type says it."""
    base = sql_type.element if sql_type.is_array else sql_type
    name = DISPLAY[OID[base.name]]
    if base.name == "numeric":
        name = str(base)
    elif base.name == "interval":
        name = str(base)
    elif base.precision is not None:
        first, *rest = name.split(" ") if base.name in TIMES else [name]
        name = " ".join([f"{first}({base.precision})", *rest])
    return f"{name}[]" if sql_type.is_array else name
