"""Which days and moments there are: those of the years 1 to 9999, which is what can be read again as a text."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from journal.errors import InvalidUsage

_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
_DAY_MICROS = 86_400_000_000
_FIRST, _LAST = _FIRST_DAY * _DAY_MICROS, (_LAST_DAY + 1) * _DAY_MICROS - 1


def check_years(values: pa.Array | pa.ChunkedArray) -> None:
    """22008 where one of ``values``, or of the arrays that they are, is a day or a moment of another year."""
    kind = values.type
    while pa.types.is_list(kind):
        values, kind = pc.list_flatten(values), kind.value_type
    if pa.types.is_date32(kind):
        name, whole, first, last = "date", pa.int32(), _FIRST_DAY, _LAST_DAY
    elif pa.types.is_timestamp(kind) and kind.unit == "us":
        name, whole, first, last = "timestamp", pa.int64(), _FIRST, _LAST
    else:
        return
    found = pc.min_max(values.cast(whole))
    least, most = found["min"].as_py(), found["max"].as_py()
    if least is not None and not first <= least <= most <= last:
        raise InvalidUsage(f"{name} out of range", sqlstate="22008", detail="years are 1 to 9999")
