"""Arrow record batches to DataRow messages, column by column.

A batch is encoded by Arrow's own kernels: every column becomes one array of bytes, every length one array of prefixes,
and a single element-wise join of them lays the finished messages end to end.  No Python runs per value, except for the
rare values that Postgres prints otherwise than Arrow (floats in exponent form, years outside 1 to 9999, numerics in
binary).  Batches of a few rows go value by value, since starting a kernel costs more than they do.

Promises: the same bytes as :mod:`adapter.encode.scalars` for every value; output in pieces of bounded size.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from struct import Struct
from weakref import ref

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from adapter.encode import scalars
from adapter.state.interfaces import OutputColumn, Part
from values.datatypes.registry import DATATYPES
from values.text import named_oids
from values.time.intervals import MICROS_PER_DAY
from values.time.zones import offset_text
from values.types import SqlType, arrow_type, modifier, row_of
from values.wire import DAYS_TO_2000, MICROS_TO_2000

log = logging.getLogger(__name__)

FEW_ROWS = 96
"""Up to so many rows are encoded value by value: measured break-even is about 100 rows, for one column or five."""

KEPT_BYTES_MAX = 4096
"""The last answer is kept with its encoder up to this size."""

WHOLE_ROWS_MAX, WHOLE_BYTES_MAX = 256, 16 * 1024
"""Rows that several readers have parts of are written all at once up to these, and kept until the next come: a row of
some hundred bytes for each of as many keys as a request asks.  So 512 encoders keep some 30 MiB at most."""

PIECE_ROWS_MAX = 8192
PIECE_BYTES = 256 * 1024
"""A piece is about this much Arrow data: large enough that kernels pay, small enough that memory per session stays
bounded by a few times this (text is up to about four times as wide as Arrow)."""

_SIZES = {row.oid: row.length for row in DATATYPES.values()} | {18: 1, 19: 64, 24: 4, 26: 4, 2205: 4}
"""Type lengths that RowDescription tells (pg_type.typlen): of columns' types, and of "char", name, regproc, oid,
regclass.  Others vary (-1)."""

_NUMBERS = {"int2": ">i2", "int4": ">i4", "int8": ">i8", "float4": ">f4", "float8": ">f8"}
_ROW_HEAD = Struct("!cih").pack
_LENGTH = Struct("!i").pack
_NULL = _LENGTH(-1)
_HEX = np.array([f"{n:02x}".encode() for n in range(256)], dtype="S2")
_EMPTY = pa.scalar(b"", pa.binary())

DATE_DAYS = (-719_162, 2_932_896)
"""0001-01-01 to 9999-12-31: where Arrow's ISO text and Postgres's are the same."""


def formats_for(codes: Sequence[int], count: int) -> tuple[int, ...]:
    """One format code per column from Bind's list (none: all text; one: it is for all)."""
    if len(codes) <= 1:
        return (codes[0] if codes else 0,) * count
    return tuple(codes)


def row_fields(columns: Sequence[OutputColumn], formats: Sequence[int]) -> list[tuple[str, int, int, int, int]]:
    """What RowDescription says of the columns."""
    return [
        (c.name, c.type_oid, _SIZES.get(c.type_oid, -1), _modifier(c), code)
        for c, code in zip(columns, formats, strict=True)
    ]


def _modifier(column: OutputColumn) -> int:
    return modifier(column.type)


# --- whole columns ---------------------------------------------------------------------------------------------------


def from_bytes(data: np.ndarray, width: int) -> pa.Array:
    """``data``'s bytes as a binary array of values of ``width`` bytes each."""
    count = data.nbytes // width
    offsets = np.arange(0, (count + 1) * width, width, dtype=np.int32)
    return pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(offsets), pa.py_buffer(data)])


def _scalar_column(encode: scalars.Encode) -> Callable[[pa.Array], pa.Array]:
    def column(array: pa.Array) -> pa.Array:
        return pa.array([None if v is None else encode(v) for v in array.to_pylist()], pa.binary())

    return column


def _with_exceptions(array: pa.Array, text: pa.Array, odd: np.ndarray, encode: scalars.Encode) -> pa.Array:
    """``text``, with the rows where ``odd`` is true encoded one by one."""
    if not odd.any():
        return text
    mask = pa.array(odd)
    values = array.filter(mask).to_pylist()
    return pc.replace_with_mask(text, mask, pa.array([encode(v) for v in values], text.type))


def _as_bytes(array: pa.Array) -> pa.Array:
    return array.cast(pa.binary())


def _simple_text(array: pa.Array) -> pa.Array:
    return _as_bytes(array.cast(pa.string()))


def _bool_text(array: pa.Array) -> pa.Array:
    return _as_bytes(pc.if_else(array, "t", "f"))


def _bool_binary(array: pa.Array) -> pa.Array:
    return pc.if_else(array, pa.scalar(b"\1", pa.binary()), pa.scalar(b"\0", pa.binary()))


FLOAT_PLAIN = {"float4": (1.01e-4, 1e6), "float8": (1.01e-4, 1e10)}
"""Magnitudes whose text is Arrow's.  Above, Arrow leaves fixed notation at 1e10, five decades before Postgres does;
below, the shortest decimal counts (the single nearest to 0.0001 is a little less than that), so there is a margin."""


def _float_text(name: str) -> Callable[[pa.Array], pa.Array]:
    (lower, upper), encode = FLOAT_PLAIN[name], scalars.shown(SqlType(name))

    def column(array: pa.Array) -> pa.Array:
        values = np.abs(array.fill_null(0).to_numpy(zero_copy_only=False))
        with np.errstate(invalid="ignore"):
            odd = ~(((values >= lower) & (values < upper)) | (values == 0))
        return _with_exceptions(array, _simple_text(array), odd, encode)

    return column


def _numeric_text(array: pa.Array) -> pa.Array:
    text = array.cast(pa.string())
    odd = pc.fill_null(pc.match_substring(text, "E"), False).to_numpy(zero_copy_only=False)
    return _with_exceptions(array, _as_bytes(text), odd, scalars.shown(SqlType("numeric")))


def _bytea_text(array: pa.Array) -> pa.Array:
    offsets = np.frombuffer(array.buffers()[1], np.int32)[array.offset : array.offset + len(array) + 1]
    data = np.frombuffer(array.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]]
    doubled = pa.Array.from_buffers(
        pa.binary(), len(array), [None, pa.py_buffer((offsets - offsets[0]) * 2), pa.py_buffer(_HEX[data])]
    )
    text = pc.binary_join_element_wise(pa.scalar(b"\\x", pa.binary()), doubled, _EMPTY)
    return pc.if_else(array.is_valid(), text, pa.scalar(None, pa.binary()))


def _within(days: pa.Array, lower: int, upper: int) -> bool:
    bounds = pc.min_max(days)
    return not bounds["min"].is_valid or (bounds["min"].as_py() >= lower and bounds["max"].as_py() <= upper)


def _date_text(array: pa.Array) -> pa.Array:
    if not _within(array, *DATE_DAYS):
        return _scalar_column(scalars.shown(SqlType("date")))(array)
    return _simple_text(array.cast(pa.date32()))


def _timestamp_within(array: pa.Array) -> bool:
    day = MICROS_PER_DAY
    return _within(array, (DATE_DAYS[0] + 1) * day, DATE_DAYS[1] * day - 1)  # a day's room for zones on both sides


def _iso_text(array: pa.Array) -> pa.Array:
    """Microseconds as ``2024-01-31 23:59:59.5``: Arrow's text without the zeros at the end of the fraction."""
    text = array.cast(pa.timestamp("us")).cast(pa.string())
    if pc.any(pc.equal(pc.fill_null(_fraction(array), 1), 0)).as_py():
        text = pc.replace_substring_regex(text, r"\.0{6}$", "")
    return pc.replace_substring_regex(text, r"(\.\d*[1-9])0+$", r"\1")


def _fraction(array: pa.Array) -> pa.Array:
    micros = array.fill_null(1).to_numpy(zero_copy_only=False)
    return pa.array(np.mod(micros, 1_000_000))


def _timestamp_text(array: pa.Array) -> pa.Array:
    if not _timestamp_within(array):
        return _scalar_column(scalars.shown(SqlType("timestamp")))(array)
    return _as_bytes(_iso_text(array))


ARROW_ZONES_UNTIL = 2_114_380_800_000_000
"""2037-01-01: Arrow knows the changes of zones that are listed in the time zone files, which end there, and not the
rules for the years behind (it gives Berlin no summer time in 2038)."""


def _timestamptz_text(zone: str) -> Callable[[pa.Array], pa.Array]:
    one_by_one = _scalar_column(scalars.timestamptz_text(zone))

    def column(array: pa.Array) -> pa.Array:
        if not _timestamp_within(array):
            return one_by_one(array)
        if zone == "UTC":
            return _as_bytes(pc.binary_join_element_wise(_iso_text(array), "+00", ""))
        if not _within(array, -(2**63), ARROW_ZONES_UNTIL):
            return one_by_one(array)
        local = pc.local_timestamp(array.cast(pa.timestamp("us", zone))).cast(pa.int64())
        shift = pc.divide(pc.subtract(local, array), 1_000_000).dictionary_encode()
        names = [None if s is None else offset_text(s) for s in shift.dictionary.to_pylist()]
        suffix = pa.array(names, pa.string()).take(shift.indices)
        return _as_bytes(pc.binary_join_element_wise(_iso_text(local), suffix, ""))

    return column


def _number_binary(dtype: str) -> Callable[[pa.Array], pa.Array]:
    width = np.dtype(dtype).itemsize

    def column(array: pa.Array) -> pa.Array:
        values = from_bytes(array.fill_null(0).to_numpy(zero_copy_only=False).astype(dtype), width)
        return pc.if_else(array.is_valid(), values, pa.scalar(None, pa.binary())) if array.null_count else values

    return column


def _shifted_binary(dtype: str, epoch: int, type_name: str) -> Callable[[pa.Array], pa.Array]:
    numbers, bits = _number_binary(dtype), 8 * np.dtype(dtype).itemsize
    one_by_one = _scalar_column(scalars.sent(SqlType(type_name)))

    def column(array: pa.Array) -> pa.Array:
        if not _within(array, -(2 ** (bits - 1)) + epoch, 2 ** (bits - 1) - 1):
            return one_by_one(array)  # raises where it must
        return numbers(pc.subtract(array, pa.scalar(epoch, array.type)))

    return column


def _column_encoder(
    column: OutputColumn, binary: bool, zone: str, extra_digits: int
) -> Callable[[pa.Array], pa.Array]:
    name, one = column.type.name, scalars.encoder(column.type, column.type_oid, binary, zone, extra_digits)
    rounded = extra_digits < 1 and not binary and name in scalars.FLOAT_DIGITS
    if column.type.is_array or rounded:
        return _scalar_column(one)
    if name == "bpchar":
        return _padded(column.type.precision)
    if column.type_oid != row_of(column.type).oid and (binary or column.type_oid in named_oids.OIDS):
        return _scalar_column(one)
    if binary:
        return _BINARY[name] if name in _BINARY else _scalar_column(one)
    if name == "timestamptz":
        return _timestamptz_text(zone)
    if column.type.is_free:
        return _as_bytes
    return _TEXT[name] if name in _TEXT else _scalar_column(one)


_BINARY = {
    **{name: _number_binary(form) for name, form in _NUMBERS.items()},
    "time": _number_binary(">i8"),
    "date": _shifted_binary(">i4", DAYS_TO_2000, "date"),
    **dict.fromkeys(("timestamp", "timestamptz"), _shifted_binary(">i8", MICROS_TO_2000, "timestamp")),
    "bool": _bool_binary,
    **dict.fromkeys(("text", "varchar", "bytea"), _as_bytes),
}
_TEXT = {
    **{row.name: _as_bytes for row in DATATYPES.values() if "text" in (row.name, row.carries) and not row.shown_by_us},
    "bool": _bool_text,
    **dict.fromkeys(("int2", "int4", "int8"), _simple_text),
    "float4": _float_text("float4"), "float8": _float_text("float8"), "numeric": _numeric_text,
    "bytea": _bytea_text, "date": _date_text, "timestamp": _timestamp_text,
}  # fmt: skip
"""What Arrow's kernels write at once.  Whatever is not here, and arrays, are written value by value."""


def _padded(length: int | None) -> Callable[[pa.Array], pa.Array]:
    return lambda array: _as_bytes(pc.utf8_rpad(array, length or 0, " "))


_INTEGERS_UNDER = {"date": pa.int32(), "timestamp": pa.int64(), "timestamptz": pa.int64()}


@lru_cache(maxsize=512)  # a statement's columns are the same at each execution; an encoder takes about a kilobyte
def encoder_for(
    columns: tuple[OutputColumn, ...], formats: tuple[int, ...], zone: str, extra_digits: int = 1
) -> RowEncoder:
    """The encoder of these, made once: it has no state but for the last small answers that it wrote."""
    return RowEncoder(columns, formats, zone, extra_digits)


def _under(sql_type: SqlType) -> pa.DataType | None:
    """The integers that the encoders take instead of temporal values, also in arrays of these; else ``None``."""
    if sql_type.is_array:
        inner = _under(sql_type.element)
        return None if inner is None else pa.list_(inner)
    return _INTEGERS_UNDER.get(sql_type.name)


def _gone() -> None:
    """What a weak reference says when its object is gone."""


class RowEncoder:
    """Encodes a result's batches for one set of formats, one time zone and one ``extra_float_digits``."""

    def __init__(
        self, columns: Sequence[OutputColumn], formats: Sequence[int], zone: str = "UTC", extra_digits: int = 1
    ) -> None:
        self._types = [(arrow_type(c.type), _under(c.type)) for c in columns]
        pairs = list(zip(columns, formats, strict=True))
        self._columns = [_column_encoder(c, bool(code), zone, extra_digits) for c, code in pairs]
        self._scalars = [scalars.encoder(c.type, c.type_oid, bool(code), zone, extra_digits) for c, code in pairs]
        # By reference to what was written: a small batch may be a part of a response of megabytes.
        self._last: tuple[Callable[[], pa.RecordBatch | None], bytes] = _gone, b""
        self._whole: Callable[[], pa.RecordBatch | None] = _gone
        self._written: list[bytes] = []

    def encode(self, batch: pa.RecordBatch) -> Iterator[tuple[bytes | memoryview, int]]:
        """The batch's rows as DataRow messages, in pieces; each with its number of rows."""
        for part in self.parts(batch):
            if not self._types:
                yield _ROW_HEAD(b"D", 6, 0) * part.num_rows, part.num_rows
            elif part.num_rows <= FEW_ROWS:
                yield self._few(self._arrays(part)), part.num_rows
            else:
                yield self._many(self._arrays(part)), part.num_rows

    @staticmethod
    def parts(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """``batch`` in parts that are each written as one piece."""
        rows, step = batch.num_rows, 1
        if rows > 1:
            per_row = max(1, batch.nbytes // rows)
            step = max(1, min(PIECE_ROWS_MAX, PIECE_BYTES // per_row))
        for lower in range(0, rows, step):
            yield batch.slice(lower, step) if rows > step else batch

    def written(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """The bytes of its values, column by column."""
        return [encode(array) for array, encode in zip(self._arrays(batch), self._columns, strict=True)]

    def few(self, batch: pa.RecordBatch) -> bytes:
        """A batch of at most ``FEW_ROWS`` rows at once.

        The very batch that came last is not written again: a constant's answer is kept with its plan, and is the same
        object each time.
        """
        last, data = self._last
        if last() is batch:
            return data
        data = self._few(self._arrays(batch)) if self._types else _ROW_HEAD(b"D", 6, 0) * batch.num_rows
        if len(data) <= KEPT_BYTES_MAX:
            self._last = ref(batch), data
        return data

    def part(self, part: Part) -> bytes | None:
        """At most ``FEW_ROWS`` rows at once; ``None`` where they are too large for that.

        A small whole is written when its first part is: 64 readers of a row each cost little more than one of 64 rows.
        """
        if part.whole is not self._whole():
            rows, size = part.whole.num_rows, part.whole.get_total_buffer_size()
            if size > PIECE_BYTES:
                return None
            written = self._all_of(part.whole) if rows <= WHOLE_ROWS_MAX and size <= WHOLE_BYTES_MAX else None
            if written is None:
                return b"".join([self.few(batch) for batch in part])
            self._whole, self._written = ref(part.whole), written
        return b"".join(self._written[part.at : part.at + part.count])

    def _all_of(self, whole: pa.RecordBatch) -> list[bytes] | None:
        """Its rows' messages; ``None`` where one cannot be written, for then only its own reader should hear of it."""
        if not self._types:
            return [_ROW_HEAD(b"D", 6, 0)] * whole.num_rows
        try:
            return self._rows(self._arrays(whole))
        except Exception as error:  # raised again for whoever has that row
            log.debug("rows are written one reader at a time", extra={"why": str(error)[:200]})
            return None

    def _arrays(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """The columns in the types that the encoders take: temporal ones as the integers under them."""
        assert batch.num_columns == len(self._types), (batch.schema, self._types)
        arrays = []
        for array, (wanted, under) in zip(batch.columns, self._types, strict=True):
            if array.type != wanted:
                array = array.cast(wanted)
            if under is not None:
                array = array.cast(under) if pa.types.is_list(under) else array.view(under)
            arrays.append(array)
        return arrays

    def _few(self, arrays: list[pa.Array]) -> bytes:
        return b"".join(self._rows(arrays))

    def _rows(self, arrays: list[pa.Array]) -> list[bytes]:
        """The DataRow message of each row, value by value."""
        out, count = [], len(arrays)
        columns = [array.to_pylist() for array in arrays]
        for row in zip(*columns, strict=True):
            parts = []
            for value, encode in zip(row, self._scalars, strict=True):
                if value is None:
                    parts.append(_NULL)
                else:
                    data = encode(value)
                    parts.append(_LENGTH(len(data)))
                    parts.append(data)
            body = b"".join(parts)
            out.append(_ROW_HEAD(b"D", len(body) + 6, count) + body)
        return out

    def _many(self, arrays: list[pa.Array]) -> memoryview:
        rows = len(arrays[0])
        parts: list[pa.Array] = []
        totals = np.full(rows, 6 + 4 * len(arrays), np.int64)
        for array, encode in zip(arrays, self._columns, strict=True):
            data = encode(array)
            lengths = pc.binary_length(data)
            prefix = lengths.fill_null(-1) if lengths.null_count else lengths
            prefix = prefix.to_numpy(zero_copy_only=False)
            totals += np.maximum(prefix, 0)
            parts.append(from_bytes(prefix.astype(">i4"), 4))
            parts.append(data.fill_null(b"") if data.null_count else data)
        head = np.empty(rows, np.dtype([("kind", "S1"), ("length", ">i4"), ("columns", ">i2")]))
        head["kind"], head["length"], head["columns"] = b"D", totals, len(arrays)
        joined = pc.binary_join_element_wise(from_bytes(head, head.itemsize), *parts, _EMPTY)
        size = int(totals.sum()) + rows
        buffer = memoryview(joined.buffers()[2])
        assert joined.offset == 0 and buffer.nbytes >= size
        return buffer[:size]
