"""A column's values from what a COPY says of them: one by one as an INSERT reads literals, and many at a time.  Pure.

Promises: :meth:`Cells.array` gives what :meth:`Cells.value` gives for each, or ``None`` where one of them is refused or
it is not sure of that; then whoever asks goes one by one, and finds which it is.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from adapter.encode.parameters import decode_binary
from catalog_log.objects import Column
from collection.columns import sql_type
from journal.errors import InvalidUsage
from sql.statements.insert import stored
from trees import types as t
from values.bad_text import BadText
from values.keeping import kept
from values.time.zones import instant_of
from values.types import OID, SqlType, arrow_type
from values.wire import DAYS_TO_2000, MICROS_TO_2000

FEW_OF_ALL = 4
"""Where at most one value of so many is another one, each is read once."""


class Cells:
    """One column of a table, of a session in ``zone``."""

    def __init__(self, column: Column, zone: str) -> None:
        self.name = column.name
        self._declared = sql_type(column.type)
        self.kind = self._declared.plain
        self.arrow = arrow_type(self.kind)
        self._read_as = self._declared if self.kind == t.INTERVAL else self.kind
        self.oid = OID[str(self.kind)] if self.kind.is_array else OID[self.kind.name]
        self._utc = zone == "UTC"
        local = ZoneInfo(zone)

        def instant(moment: datetime) -> datetime:
            return instant_of(moment, local)

        self._instant = None if self._utc else instant
        self._kernel = None if self.kind.is_array else _KERNELS.get(self.kind.name)
        if self.kind.name == "timestamptz" and not self.kind.is_array:
            self._kernel = lambda texts: _moments(texts, self._utc)
        if self.kind.name == "numeric" and not self.kind.is_array:
            self._kernel = _free_numerics if self.kind.is_free else self._decimals

    def value(self, text: str) -> object:
        """Raises ``InvalidUsage`` 22P02, 22003, 22001…"""
        try:
            return self._kept(stored(t.parse_literal(text, self._read_as, self._instant), self.kind))
        except BadText as error:
            raise InvalidUsage(error.message, sqlstate=error.sqlstate) from None

    def received(self, data: bytes) -> object:
        """The same of Postgres's binary form.  22P03."""
        try:
            return self._kept(stored(decode_binary(self.oid, data), self.kind))
        except BadText as error:
            raise InvalidUsage(error.message, sqlstate=error.sqlstate) from None

    def _kept(self, value: object) -> object:
        if self._declared == self.kind or value is None:
            return value
        try:
            return kept(pa.chunked_array([pa.array([value], self.arrow)]), self._declared)[0].as_py()
        except BadText as error:
            raise InvalidUsage(error.message, sqlstate=error.sqlstate) from None

    def made(self, values: list[object]) -> pa.Array:
        """Of what :meth:`value` gave."""
        return pa.array(values, self.arrow)

    def array(self, texts: pa.Array) -> pa.Array | None:
        try:
            found = self._kernel(texts) if self._kernel is not None else None
        except pa.ArrowInvalid:
            found = None
        if found is not None and (self._declared != self.kind or self.kind.name in ("varchar", "bpchar")):
            found = self._limited(found)
        return self._one_by_one(texts) if found is None else found

    def received_array(self, fields: list[bytes | None]) -> pa.Array | None:
        """:meth:`array` for :meth:`received`."""
        try:
            found = None if self.kind.is_array else _received(fields, self.kind.name)
        except (pa.ArrowInvalid, ValueError):
            found = None
        if found is not None and (self._declared != self.kind or self.kind.name in ("varchar", "bpchar")):
            return self._limited(found)
        if found is not None:
            return found
        try:
            return self.made([None if each is None else self.received(each) for each in fields])
        except InvalidUsage:
            return None

    def _limited(self, values: pa.Array) -> pa.Array | None:
        if self.kind.name in ("varchar", "bpchar"):
            longest = pc.max(pc.utf8_length(values)).as_py() or 0
            return values if self.kind.precision is None or longest <= self.kind.precision else None
        try:
            found = kept(pa.chunked_array([values]), self._declared)
        except BadText:
            return None
        return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found

    def _one_by_one(self, texts: pa.Array) -> pa.Array | None:
        try:
            few = texts.dictionary_encode()
            if FEW_OF_ALL * len(few.dictionary) <= len(texts):
                read = self.made([self.value(each) for each in few.dictionary.to_pylist()])
                return read.take(few.indices)
            return self.made([None if each is None else self.value(each) for each in texts.to_pylist()])
        except InvalidUsage:
            return None

    def _decimals(self, texts: pa.Array) -> pa.Array | None:
        return texts.cast(self.arrow) if _only(texts, _DECIMAL) else None


def _signs(signs: bytes) -> np.ndarray:
    found = np.zeros(256, bool)
    found[list(signs)] = True
    return found


_DIGITS = b"0123456789"
_INTEGER, _DECIMAL, _FLOAT = _signs(_DIGITS + b"-"), _signs(_DIGITS + b".-"), _signs(_DIGITS + b".-+eE")
_DATE, _TIMESTAMP = _signs(_DIGITS + b"-"), _signs(_DIGITS + b"-:. T")


def _bytes(texts: pa.Array) -> np.ndarray:
    offsets = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return np.frombuffer(texts.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]]


def _only(texts: pa.Array, allowed: np.ndarray) -> bool:
    """Whether they are of these signs: Arrow reads more than Postgres does (``0x10``), and other things otherwise."""
    return bool(allowed[_bytes(texts)].all())


def _all(truths: pa.Array) -> bool:
    return pc.all(truths).as_py() is not False


def _integers(kind: pa.DataType) -> Callable[[pa.Array], pa.Array | None]:
    return lambda texts: texts.cast(kind) if _only(texts, _INTEGER) else None


_ZERO = r"^-?(0+\.?0*|\.0+)([eE][+-]?[0-9]+)?$"


def _floats(kind: pa.DataType) -> Callable[[pa.Array], pa.Array | None]:
    """Read as doubles, and then made singles, as literals are."""

    def read(texts: pa.Array) -> pa.Array | None:
        if not _only(texts, _FLOAT):
            return None
        found = texts.cast(pa.float64())
        made = found if kind == pa.float64() else found.cast(kind, safe=False)
        if not _all(pc.is_finite(made)):
            return None
        vanished = pc.fill_null(pc.equal(made, pa.scalar(0, made.type)), False)
        if pc.any(vanished).as_py() and not _all(pc.match_substring_regex(texts.filter(vanished), _ZERO)):
            return None
        return made

    return read


def _texts(texts: pa.Array) -> pa.Array:
    return texts


def _chars(texts: pa.Array) -> pa.Array:
    return pc.utf8_rtrim(texts, " ")


_CANONICAL = r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?$"
_NEGATIVE_ZERO = r"^-0(\.0*)?$"
NUMERIC_CHARS_MAX = 100
"""Of numbers that are kept as they are written; longer ones have limits of their own."""


def _free_numerics(texts: pa.Array) -> pa.Array | None:
    longest = pc.max(pc.binary_length(texts)).as_py() or 0
    if longest > NUMERIC_CHARS_MAX or not _only(texts, _DECIMAL):
        return None
    if not _all(pc.match_substring_regex(texts, _CANONICAL)):
        return None
    return None if pc.any(pc.match_substring_regex(texts, _NEGATIVE_ZERO)).as_py() else texts


_UUID = r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"


def _uuids(texts: pa.Array) -> pa.Array | None:
    return texts if _all(pc.match_substring_regex(texts, _UUID)) else None


_FIRST_DAY, _FIRST_MICRO = -719_162, -719_162 * 86_400_000_000
"""Of year 1: before it Postgres writes years otherwise."""


def _lengths(texts: pa.Array, allowed: list[int]) -> bool:
    return _all(pc.is_in(pc.binary_length(texts), pa.array(allowed, pa.int32()), skip_nulls=True).filter(
        texts.is_valid()))  # fmt: skip


def _dates(texts: pa.Array) -> pa.Array | None:
    if not _only(texts, _DATE) or not _lengths(texts, [10]):
        return None
    found = texts.cast(pa.date32())
    least = pc.min(found.view(pa.int32())).as_py()
    return found if least is None or least >= _FIRST_DAY else None


_OF_SECONDS = [19, 21, 22, 23, 24, 25, 26]
"""Lengths of what has seconds, perhaps with digits behind them."""


_OF_ANY = [10, 16, *_OF_SECONDS]


def _timestamps(texts: pa.Array, lengths: list[int] = _OF_ANY) -> pa.Array | None:
    if not _only(texts, _TIMESTAMP) or not _lengths(texts, lengths):
        return None
    found = texts.cast(pa.timestamp("us"))
    least = pc.min(found.view(pa.int64())).as_py()
    return found if least is None or least >= _FIRST_MICRO else None


def _moments(texts: pa.Array, utc: bool) -> pa.Array | None:
    """Of UTC, which either they say themselves or their session does."""
    if _all(pc.ends_with(texts, "+00")):
        local = _timestamps(pc.utf8_slice_codeunits(texts, 0, -3), _OF_SECONDS)
    else:
        local = _timestamps(texts) if utc else None
    return None if local is None else local.view(pa.int64()).view(pa.timestamp("us", "UTC"))


_KERNELS: dict[str, Callable[[pa.Array], pa.Array | None]] = {
    "int2": _integers(pa.int16()), "int4": _integers(pa.int32()), "int8": _integers(pa.int64()),
    "float4": _floats(pa.float32()), "float8": _floats(pa.float64()),
    "text": _texts, "varchar": _texts, "bpchar": _chars, "uuid": _uuids,
    "date": _dates, "timestamp": _timestamps,
}  # fmt: skip
"""By type; of others, and where a kernel is not sure, each different text is read once."""


_FIXED = {
    "int2": (">i2", pa.int16()), "int4": (">i4", pa.int32()), "int8": (">i8", pa.int64()),
    "float4": (">f4", pa.float32()), "float8": (">f8", pa.float64()),
    "date": (">i4", pa.int32()), "timestamp": (">i8", pa.int64()), "timestamptz": (">i8", pa.int64()),
}  # fmt: skip
"""Of binary values that are numbers: their form there, and here."""

_LAST_DAY, _LAST_MICRO = 2_932_896, 2_932_897 * 86_400_000_000 - 1
"""Of year 9999."""


def _received(fields: list[bytes | None], name: str) -> pa.Array | None:
    if name in ("text", "varchar", "bpchar"):
        found = pa.array(fields, pa.binary()).cast(pa.string())
        if (_bytes(found) == 0).any():
            return None
        return _chars(found) if name == "bpchar" else found
    if name not in _FIXED:
        return None
    form, kind = _FIXED[name]
    width = np.dtype(form).itemsize
    nulls = np.fromiter((each is None for each in fields), bool, len(fields))
    whole = fields if not nulls.any() else [bytes(width) if each is None else each for each in fields]
    if any(len(each) != width for each in whole):  # type: ignore[arg-type]
        return None
    numbers = np.frombuffer(b"".join(whole), form).astype(form[1:])  # type: ignore[arg-type]
    if name in ("int2", "int4", "int8", "float4", "float8"):
        return pa.array(numbers, kind, mask=nulls)
    epoch, first, last = DAYS_TO_2000, _FIRST_DAY, _LAST_DAY
    if name != "date":
        epoch, first, last = MICROS_TO_2000, _FIRST_MICRO, _LAST_MICRO
    if ((numbers < first - epoch) | (numbers > last - epoch)).any():
        return None
    moved = pa.array(numbers + epoch, kind, mask=nulls)
    return moved.view(arrow_type(SqlType(name)))
