"""Many values of Avro as columns at once, where each is beyond doubt.  Pure.

Promises: what :func:`column_of` gives is what the field's ``convert`` gives of each value, only faster (tested beside
it at random); wherever any of them could be none, it gives nothing, and whoever asked goes value by value.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from collection.columns import sql_type
from collection.messages.avro_types import Field
from values.json_values import BadValue
from values.types import arrow_type

_MOMENTS = (-62_135_596_800_000_000, 253_402_300_799_999_999)
"""Microseconds of the years 1 to 9999, as Python's own dates have them."""

_BOUNDS = {
    "int4": (-(1 << 31), (1 << 31) - 1), "int8": (-(1 << 63), (1 << 63) - 1), "date": (-719_162, 2_932_896),
    "time": (0, 86_400_000_000), "timestamp": _MOMENTS, "timestamptz": _MOMENTS,
}  # fmt: skip
"""Of types that are numbers, in Arrow's units."""


def column_of(field: Field, nullable: bool, values: Sequence[object] | pa.Array) -> pa.Array | None:
    """``values`` as Arrow has them, or ``None`` where one may be none of the column's."""
    wanted = arrow_type(sql_type(field.type))
    try:
        if field.unit:
            found = _numbers(field, values)
            found = None if found is None else found.cast(pa.int32() if wanted.bit_width == 32 else pa.int64())
            found = None if found is None else found.cast(wanted)
        elif field.type in ("bool", "float4", "float8", "bytea"):
            found = pa.array(values, wanted)
        elif field.type == "text":
            found = pa.array(values, wanted)
            if pc.any(pc.match_substring(found, "\0")).as_py():
                return None
        else:
            convert = field.convert
            found = pa.array([None if each is None else convert(each) for each in values], wanted)
    except (pa.ArrowException, BadValue, OverflowError):
        return None
    return None if found is None or found.null_count and not nullable else found


def column_from(field: Field, nullable: bool, found: pa.Array) -> pa.Array | None:
    """As :func:`column_of`, of values that are in Arrow already, as Avro has them."""
    wanted = arrow_type(sql_type(field.type))
    if field.unit or field.type not in ("bool", "float4", "float8", "bytea", "text"):
        return column_of(field, nullable, found if field.unit else found.to_pylist())
    if found.type != wanted:
        found = found.cast(wanted)
    if field.type == "text" and pc.any(pc.match_substring(found, "\0")).as_py():
        return None
    return None if found.null_count and not nullable else found


def _numbers(field: Field, values: Sequence[object] | pa.Array) -> pa.Array | None:
    low, high = _BOUNDS[field.type]
    found = values if isinstance(values, pa.Array) else pa.array(values, pa.int64())
    if field.unit < 0:
        found = _divided(found, -field.unit)
    elif field.unit != 1:
        found = pc.multiply_checked(found, field.unit)
    span = pc.min_max(found).as_py()
    return found if span["min"] is None or low <= span["min"] and span["max"] <= high else None


def _divided(numbers: pa.Array, by: int) -> pa.Array:
    """Rounded down, also below 0, where Arrow rounds up."""
    found = pc.divide(numbers, by)
    return pc.subtract(found, pc.less(numbers, pc.multiply(found, by)).cast(pa.int64()))
