"""The values of a column in JSON, all at once: as a sink says them one by one, several times as fast.  Pure.

Promises: :func:`texts` gives what the ``write`` that it is given gives of each value, or nothing for types of which it
knows no other way.  What Arrow shows otherwise (a float beyond some powers of ten, a number that is very small, a
moment beyond Python's calendar) ``write`` shows by itself, value by value; a text that has anything to escape has its
column go so as a whole, since most have none at all.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from values.sql_type import SqlType

Write = Callable[[object], str]
"""One value, never ``None``, in JSON."""

FIXED_MIN, FIXED_MAX = 1e-3, {"float4": 1e5, "float8": 1e9}
"""Of floats' sizes: those that Arrow and Postgres lay out alike, a power of ten and more within what each does."""

_DAYS = (-719_162, 2_932_896)
"""Of the years 1 to 9999."""

_MICROS = (86_400_000_000 * _DAYS[0], 86_400_000_000 * (_DAYS[1] + 1) - 1)

_ESCAPED = np.zeros(256, bool)
_ESCAPED[:0x20] = True
_ESCAPED[[ord('"'), ord("\\")]] = True
"""Bytes of a text that JSON has otherwise."""


def texts(column: pa.Array, sql: SqlType, write: Write) -> pa.Array | None:
    """What is written of each of ``column``, whose type is ``sql``, as a text; null for null."""
    if sql.is_array:
        return None
    find = _KINDS.get(sql.name)
    if sql.name == "numeric" and sql.is_free:
        find = _quoted_text
    return None if find is None else find(column, sql, write)


def escapes(column: pa.Array) -> bool:
    """Whether a text of ``column`` has a character that JSON has otherwise."""
    _, offsets, data = column.buffers()
    if data is None or not len(column):
        return False
    bounds = np.frombuffer(offsets, np.int32, len(column) + 1, 4 * column.offset)
    return bool(_ESCAPED[np.frombuffer(data, np.uint8)[bounds[0] : bounds[-1]]].any())


def _shown(column: pa.Array, _sql: SqlType, _write: Write) -> pa.Array:
    return column.cast(pa.string())


def _as_it_is(column: pa.Array, _sql: SqlType, _write: Write) -> pa.Array:
    return column


def _quoted_text(column: pa.Array, _sql: SqlType, _write: Write) -> pa.Array | None:
    return None if escapes(column) else _quoted(column)


def _quoted(column: pa.Array, behind: str = "") -> pa.Array:
    quote = pa.scalar('"')
    return pc.binary_join_element_wise(quote, column, pa.scalar(behind + '"'), "")


def _floats(column: pa.Array, sql: SqlType, write: Write) -> pa.Array:
    size = pc.abs(column)
    fixed = pc.and_(pc.greater_equal(size, FIXED_MIN), pc.less(size, FIXED_MAX[sql.name]))
    return _but(column.cast(pa.string()), pc.or_(fixed, pc.equal(column, 0)), column, write)


def _decimals(column: pa.Array, _sql: SqlType, write: Write) -> pa.Array:
    shown = column.cast(pa.string())
    if column.type.scale <= 5:  # from the sixth on Arrow shows a small number with a power of ten
        return _quoted(shown)
    return _but(_quoted(shown), pc.invert(pc.match_substring(shown, "E")), column, write)


def _dates(column: pa.Array, _sql: SqlType, write: Write) -> pa.Array:
    return _within(column, column.cast(pa.int32()), _DAYS, lambda known: _quoted(known.cast(pa.string())), write)


def _moments(column: pa.Array, sql: SqlType, write: Write) -> pa.Array:
    behind = "+00:00" if sql.name == "timestamptz" else ""
    micros = column.cast(pa.int64())

    def shown(known: pa.Array) -> pa.Array:
        text = pc.replace_substring(known.cast(pa.string()), " ", "T")
        return _quoted(pc.replace_substring_regex(text, r"\.?0+$", ""), behind)

    return _within(micros.cast(pa.timestamp("us")), micros, _MICROS, shown, write)


def _within(
    column: pa.Array, numbers: pa.Array, span: tuple[int, int], show: Callable[[pa.Array], pa.Array], write: Write
) -> pa.Array:
    """``show`` of those whose number is within ``span``, ``write`` of the number of the others."""
    known = pc.and_(pc.greater_equal(numbers, span[0]), pc.less_equal(numbers, span[1]))
    inside = pc.if_else(known, column, pa.scalar(None, column.type))
    return _but(show(inside), known, numbers, write)


def _but(shown: pa.Array, right: pa.Array, values: pa.Array, write: Write) -> pa.Array:
    """``shown`` where ``right``, and elsewhere what ``write`` gives of ``values``; null where they are."""
    wrong = pc.fill_null(pc.invert(right), False)
    if not pc.any(wrong).as_py():
        return shown
    mended = pa.array([write(value) for value in values.filter(wrong).to_pylist()], pa.string())
    return pc.replace_with_mask(shown, wrong, mended)


_KINDS: dict[str, Callable[[pa.Array, SqlType, Write], pa.Array | None]] = {
    "bool": _shown, "int2": _shown, "int4": _shown, "int8": _shown, "jsonb": _as_it_is,
    "float4": _floats, "float8": _floats, "numeric": _decimals, "date": _dates,
    "timestamp": _moments, "timestamptz": _moments,
    "text": _quoted_text, "varchar": _quoted_text, "uuid": _quoted_text, "macaddr": _quoted_text,
    "macaddr8": _quoted_text,
}  # fmt: skip
