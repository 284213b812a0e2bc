"""Types as pg_type and format_type have them."""

from __future__ import annotations

from sql.system.types import ROWS
from values.datatypes.registry import DATATYPES
from values.types import TIMES, SqlType, row_of

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
    ("pg_node_tree", 194, -1, False, "Z"), ("aclitem", 1033, 12, False, "U"), ("pg_lsn", 3220, 8, True, "U"),
    ("inet", 869, -1, False, "I"), ("pg_ndistinct", 3361, -1, False, "Z"), ("pg_dependencies", 3402, -1, False, "Z"),
    ("pg_mcv_list", 5017, -1, False, "Z"),
)  # fmt: skip

OTHER_ARRAYS = {name: ROWS[f"_{name}"].oid for name, *_ in OTHER_TYPES if f"_{name}" in ROWS}
"""Of those that there are arrays of: the oid of these."""

LENGTHS = {row.oid: (row.length, row.by_value) for row in DATATYPES.values()} | {
    oid: (length, by_value) for _, oid, length, by_value, _ in OTHER_TYPES
}
ALIGN = {1: "c", 2: "s", 4: "i", 8: "d"}

DISPLAY = {
    **{oid: name for name, oid, *_ in OTHER_TYPES},
    18: '"char"',
    **{row.oid: row.shown for row in DATATYPES.values()},
}
"""format_type without a modifier."""

TYPE_NAMES = {
    **{row.oid: row.name for row in DATATYPES.values()},
    **{row.array_oid: f"_{row.name}" for row in DATATYPES.values()},
    **{oid: name for name, oid, *_ in OTHER_TYPES},
    **{oid: f"_{name}" for name, oid in OTHER_ARRAYS.items()},
}
"""Oid -> typname."""


def type_display(sql_type: SqlType) -> str:
    """As format_type says it."""
    base = sql_type.element if sql_type.is_array else sql_type
    name = row_of(base).shown
    if base.name == "numeric":
        name = str(base)
    elif base.name == "interval":
        name = str(base)
    elif base.precision is not None:
        first, *rest = name.split(" ") if base.name in TIMES else [name]
        name = " ".join([f"{first}({base.precision})", *rest])
    return f"{name}[]" if sql_type.is_array else name
