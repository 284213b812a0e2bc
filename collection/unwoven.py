"""Rows out of Avro's bytes, all rows of a record at a time: what :mod:`collection.woven` writes, read back.  Pure.

Promises: :func:`unwoven` gives what fastavro would read (:mod:`collection.rows`), or ``None``: for columns of a type
that it does not know, for rows that neither come nor go once, and for bytes that are not what they should be, of which
whoever reads them row by row says what is wrong.  It never raises, whatever the bytes are.

Where a row begins is known once all before it are read, which is what keeps others from reading many at a time.  Here
it is worked out for every place at which a row *might* begin, where the row behind it would: a row that comes or goes
begins with one of two bytes, and the branch of its first column is one of two more, so these are few.  From the first
row on, each then says where the next one is; that is one step in Python for a row instead of one for each value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from collection.gathered import taken

_NULL, _VALUE = 0, 2
"""Which branch of its union a value is, as Avro writes 0 and 1."""

_COMES, _GOES = 2, 1
"""1 and -1, as Avro writes them."""

_LONG_BYTES_MAX = 10
"""Of a number of 64 bits."""

_BEHIND = 16
"""Bytes of nothing behind the rows: what is read of each row at once may reach beyond the last."""

_NOWHERE = -1


class Field(NamedTuple):
    """A column as its record has it: its Avro type, of the physical ones, and the Arrow type that is asked for; none
    where it is only passed over."""

    avro: str
    arrow: pa.DataType | None


class Unwoven(NamedTuple):
    """The diffs of the rows, and the columns that were asked for, in the order of the fields."""

    diffs: np.ndarray
    columns: list[pa.Array]


def unwoven(rows: bytes | memoryview, count: int, fields: Sequence[Field]) -> Unwoven | None:
    """``count`` rows, each its diff and then ``fields`` that may be NULL; ``rows`` is all of them and no more."""
    if not fields or not all(_known(field) for field in fields):
        return None
    data = _Bytes(rows)
    starts = _starts(data, count, fields)
    if starts is None:
        return None
    return _columns(data, starts, fields)


class _Bytes:
    """The bytes of the rows: ``held`` has some more behind them, ``size`` is without these."""

    def __init__(self, rows: bytes | memoryview) -> None:
        self.size = len(rows)
        self.held = np.zeros(self.size + _BEHIND, np.uint8)
        self.held[: self.size] = np.frombuffer(rows, np.uint8)
        last = self.held < 0x80
        self._last = np.flatnonzero(last).astype(np.int32)
        self._before = np.cumsum(last, dtype=np.int32) - last

    def number_ends(self, places: np.ndarray) -> np.ndarray:
        """Behind the numbers that begin at ``places``; there is always one, among what is behind the rows at the
        latest."""
        return self._last[self._before[places]] + 1

    def numbers(self, places: np.ndarray, ends: np.ndarray) -> np.ndarray | None:
        """The numbers there; ``None`` where one has more than 64 bits."""
        widths = ends - places
        width = int(widths.max()) if len(widths) else 0
        if width > _LONG_BYTES_MAX:
            return None
        bits = self.held[places].astype(np.uint64) & np.uint64(0x7F)
        for n in range(1, width):
            group = self.held[places + n]
            if n == _LONG_BYTES_MAX - 1 and (group[widths > n] > 1).any():
                return None
            bits |= np.where(widths > n, group & 0x7F, 0).astype(np.uint64) << np.uint64(7 * n)
        return (bits >> np.uint64(1)).view(np.int64) ^ -(bits & np.uint64(1)).view(np.int64)


def _starts(data: _Bytes, count: int, fields: Sequence[Field]) -> np.ndarray | None:
    """Where the rows begin; ``None`` where they are not so many, or do not end where their bytes do."""
    held, size = data.held, data.size
    first, second = held[:size], held[1 : size + 1]
    may_begin = ((first == _COMES) | (first == _GOES)) & ((second == _NULL) | (second == _VALUE))
    places = np.flatnonzero(may_begin).astype(np.int32)
    behind = places + 1
    good = np.ones(len(places), bool)
    for field in fields:
        branches = held[behind]
        there = branches == _VALUE
        good &= (there | (branches == _NULL)) & (behind < size)
        behind = np.minimum(behind + 1, size)
        ends = _SIZES[field.avro](data, behind)
        behind = np.where(there, np.minimum(ends, size + 1), behind)
        good &= behind <= size
        behind = np.minimum(behind, size)
    after = np.full(size + 1, _NOWHERE, np.int32)
    after[places] = np.where(good, behind, _NOWHERE)
    steps, at, found = memoryview(after), 0, []
    for _ in range(count):
        found.append(at)
        at = steps[at]
    if at != size or size == 0:  # from nowhere, and from behind all rows, one comes to nowhere
        return None
    return np.array(found, np.int64)


def _columns(data: _Bytes, starts: np.ndarray, fields: Sequence[Field]) -> Unwoven | None:
    columns: list[pa.Array] = []
    behind = starts + 1
    for field in fields:
        there = data.held[behind] == _VALUE
        behind = behind + 1
        ends = np.where(there, _SIZES[field.avro](data, behind), behind)
        if field.arrow is not None:
            column = _READ[field.avro](data, behind, ends, None if there.all() else there, field.arrow)
            if column is None:
                return None
            columns.append(column)
        behind = ends
    return Unwoven(np.where(data.held[starts] == _COMES, 1, -1), columns)


# --- where a value ends, of those that are there


def _number_size(data: _Bytes, places: np.ndarray) -> np.ndarray:
    return data.number_ends(places)


def _counted_size(data: _Bytes, places: np.ndarray) -> np.ndarray:
    """So many bytes as the number before them says; beyond all rows where that is no size."""
    ends = data.number_ends(places)
    sizes = _small_numbers(data, places, ends)
    return np.where((sizes >= 0) & (sizes <= data.size), ends + sizes, data.size + 1)


def _small_numbers(data: _Bytes, places: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """The numbers there; -1 of those of more than four bytes, 2**27 and more: no record is so large."""
    held, widths = data.held, ends - places
    bits = (held[places] & 0x7F).astype(np.int64)
    for n in range(1, min(4, int(widths.max()) if len(widths) else 0)):
        bits |= np.where(widths > n, held[places + n] & 0x7F, 0).astype(np.int64) << 7 * n
    return np.where(widths > 4, -1, (bits >> 1) ^ -(bits & 1))


def _fixed_size(width: int) -> Callable[[_Bytes, np.ndarray], np.ndarray]:
    return lambda _data, places: places + width


_SIZES: dict[str, Callable[[_Bytes, np.ndarray], np.ndarray]] = {
    "int": _number_size, "long": _number_size, "boolean": _fixed_size(1), "float": _fixed_size(4),
    "double": _fixed_size(8), "string": _counted_size, "bytes": _counted_size,
}  # fmt: skip

There = np.ndarray | None
"""Which rows have a value; ``None`` where all have."""


# --- what the values are


def _integers(data: _Bytes, places: np.ndarray, ends: np.ndarray, there: There, arrow: pa.DataType) -> pa.Array | None:
    if there is None:
        values = data.numbers(places, ends)
    else:
        some = data.numbers(places[there], ends[there])
        if some is None:
            return None
        values = np.zeros(len(places), np.int64)
        values[there] = some
    if values is None:
        return None
    if pa.types.is_date32(arrow):
        narrow = np.dtype(np.int32)
    elif pa.types.is_timestamp(arrow):
        narrow = values.dtype
    else:
        narrow = np.dtype(arrow.to_pandas_dtype())
    if narrow != values.dtype:
        held = np.iinfo(narrow)
        if len(values) and not (held.min <= values.min() and values.max() <= held.max):
            return None
        values = values.astype(narrow)
    return _array(values, there, arrow)


def _array(values: np.ndarray, there: There, arrow: pa.DataType) -> pa.Array:
    """``values``, a row for each, of which the bytes are those of ``arrow``."""
    return pa.Array.from_buffers(arrow, len(values), [_valid(there), pa.py_buffer(np.ascontiguousarray(values))])


def _valid(there: There) -> pa.Buffer | None:
    return None if there is None else pa.array(there).buffers()[1]


def _truths(data: _Bytes, places: np.ndarray, _ends: np.ndarray, there: There, _arrow: pa.DataType) -> pa.Array | None:
    values = data.held[places]
    if there is not None:
        values = np.where(there, values, 0)
    if (values > 1).any():
        return None
    return pa.array(values.astype(bool), mask=None if there is None else ~there)


def _floats(kind: str) -> Callable[..., pa.Array]:
    width = np.dtype(kind).itemsize

    def read(data: _Bytes, places: np.ndarray, _ends: np.ndarray, there: There, arrow: pa.DataType) -> pa.Array:
        values = data.held[places[:, None] + np.arange(width)].reshape(-1).view(kind)
        return _array(values if there is None else np.where(there, values, 0).astype(kind), there, arrow)

    return read


def _counted(data: _Bytes, places: np.ndarray, ends: np.ndarray, there: There) -> tuple[np.ndarray, np.ndarray]:
    """Where the bytes of each value begin, and how many they are: none of a NULL."""
    begin = data.number_ends(places)
    if there is not None:
        begin = np.where(there, begin, ends)
    return begin, ends - begin


def _texts(data: _Bytes, places: np.ndarray, ends: np.ndarray, there: There, arrow: pa.DataType) -> pa.Array | None:
    begin, sizes = _counted(data, places, ends, there)
    offsets = np.zeros(len(sizes) + 1, np.int32)
    np.cumsum(sizes, out=offsets[1:])
    held = taken(data.held, begin, sizes)
    array = pa.Array.from_buffers(
        arrow, len(sizes), [_valid(there), pa.py_buffer(offsets), pa.py_buffer(held)]
    )
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:  # it is not UTF-8
        return None
    return array


def _bytes(data: _Bytes, places: np.ndarray, ends: np.ndarray, there: There, arrow: pa.DataType) -> pa.Array | None:
    read = _decimals if pa.types.is_decimal128(arrow) else _texts
    return read(data, places, ends, there, arrow)


def _decimals(data: _Bytes, places: np.ndarray, ends: np.ndarray, there: There, arrow: pa.DataType) -> pa.Array | None:
    """Of at most eight bytes, the highest first, the sign in the highest bit."""
    begin, sizes = _counted(data, places, ends, there)
    if len(sizes) and int(sizes.max()) > 8:
        return None
    values = np.where((sizes > 0) & (data.held[begin] > 0x7F), -1, 0)
    for n in range(int(sizes.max()) if len(sizes) else 0):
        values = np.where(n < sizes, (values << 8) | data.held[begin + n], values)
    halves = np.empty((len(values), 2), np.int64)
    halves[:, 0], halves[:, 1] = values, values >> 63
    return _array(halves, there, arrow)


_READ: dict[str, Callable[..., pa.Array | None]] = {
    "int": _integers, "long": _integers, "boolean": _truths, "float": _floats("<f4"), "double": _floats("<f8"),
    "string": _texts, "bytes": _bytes,
}  # fmt: skip

_INTEGERS = (pa.types.is_signed_integer, pa.types.is_date32, pa.types.is_timestamp)
_CARRIED: dict[str, Sequence[Callable[[pa.DataType], bool]]] = {
    "int": _INTEGERS, "long": _INTEGERS, "boolean": (pa.types.is_boolean,), "float": (pa.types.is_float32,),
    "double": (pa.types.is_float64,), "string": (pa.types.is_string,),
    "bytes": (pa.types.is_binary, pa.types.is_decimal128),
}  # fmt: skip
"""What each Avro type may be asked for as."""


def _known(field: Field) -> bool:
    if not isinstance(field.avro, str) or field.avro not in _SIZES:
        return False
    return field.arrow is None or any(is_it(field.arrow) for is_it in _CARRIED[field.avro])
