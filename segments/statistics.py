"""What a file holds of each column: the least and the greatest value, and how many nulls.  Pure.

Promises: a statistic may be missing, and is never wrong: no value of the column lies outside its bounds, in the order
that Postgres has for the type (texts by their bytes, as its collation "C"; NaN above all floats and equal to itself).
What a file holds is said of all its rows, of those with negative diffs too.

A bound is a *key*: bytes that compare, byte by byte, as the values do, whatever engine made these.  One of at most
:data:`BOUND_BYTES` is kept, which is where longer ones are cut off; so a bound of that length may be of more.
jsonb, intervals and arrays have no such keys, and no bounds.  A numeric whose values have digits of their own has the
keys of the nearest floats: they compare as the values do except where they are equal.

The statistics of a file are bytes with a version of their own (``schemas/segment_statistics.avsc``), which the fold of
``<env>.segments`` carries and never reads: code that does not know the version knows nothing of that file, and so they
can come to say more without another format of anything.
"""

from __future__ import annotations

import datetime as dt
import math
import struct
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from decimal import Decimal
from functools import lru_cache
from sys import intern
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from collection.columns import Columns, sql_type
from collection.rows import has_ids
from journal.errors import InvalidUsage
from schemas import codec
from segments.model import EXCHANGE_STATISTICS_BYTES, Segment
from values.sql_type import SqlType
from values.types import row_of

SEGMENT_STATISTICS = "segment_statistics"

COLUMNS_MAX = 32
"""Columns of a file that have bounds and nulls: the first.  Delta's and Iceberg's writers keep 32 and 100; with 32 a
file has 3 kB at most."""

BOUND_BYTES = 32
"""Of a bound: longer than every number, moment and uuid, and than what sets texts apart that are not built alike."""

_BELOW, _ABOVE = b"", b"\xff" * (BOUND_BYTES + 1)
"""Keys beyond those of all values whose keys are fixed in length."""

_EPOCH = dt.date(1970, 1, 1).toordinal()
_EPOCH_TIME = dt.datetime(1970, 1, 1)
_MICRO = dt.timedelta(microseconds=1)


class ColumnStatistics(NamedTuple):
    """Of one column of one file: ``lower <= every value < or = upper``, as keys; ``None`` where there is no bound.

    A column with nothing but nulls has none either: then ``nulls`` is as many as the file has changes.
    """

    key: str
    """The column as the file calls it (:func:`column_keys`)."""
    type: str
    nulls: int
    lower: bytes | None = None
    upper: bytes | None = None

    @property
    def is_cut(self) -> bool:
        """Whether the greatest value may be more than ``upper``, with which it begins."""
        return self.upper is not None and len(self.upper) >= BOUND_BYTES


class Probe(NamedTuple):
    """Where a value lies that a column is compared with: at neither less than ``lower`` nor more than ``upper``.

    Unless ``exact``, another value may have the same key.
    """

    lower: bytes
    upper: bytes
    exact: bool = True


class Form(NamedTuple):
    """How the values of a type become keys."""

    width: int
    """Bytes of a key; 0 where they differ."""
    exact: bool
    """Whether equal keys are of equal values."""
    extremes: Callable[[pa.ChunkedArray], tuple[bytes, bytes] | None]
    """The keys of the least and the greatest value of a column; ``None`` where there is none but nulls."""
    probe: Callable[[Any], Probe | None]
    """``None`` for what cannot be compared with the type's values by key."""
    show: Callable[[bytes], str]


def column_keys(columns: Columns) -> list[str]:
    """What files call ``columns``: by their ids, or by their places in collections whose columns have none."""
    return [f"c{c.id}" for c in columns] if has_ids(columns) else [f"p{n}" for n in range(len(columns))]


def measured(columns: Columns, changes: pa.Table) -> list[ColumnStatistics]:
    """Of the first columns of ``changes``, which are ``columns`` by position and then the diffs."""
    found = []
    for key, column, values in zip(column_keys(columns), columns, changes.columns, strict=False):
        if len(found) == COLUMNS_MAX:
            break
        form = form_of(sql_type(column.type))
        ends = None if form is None else form.extremes(values)
        lower, upper = (None, None) if ends is None else (end[:BOUND_BYTES] for end in ends)
        found.append(ColumnStatistics(key, column.type, values.null_count, lower, upper))
    return found


def packed(found: Iterable[ColumnStatistics]) -> bytes:
    """As a record of the log has them; nothing for nothing."""
    columns = [each._asdict() for each in found]
    return codec.encode(SEGMENT_STATISTICS, {"columns": columns}) if columns else b""


def unpacked(segment: Segment) -> dict[str, ColumnStatistics]:
    """By column.  One of which nothing is known is missing, and so are all where the bytes say nothing to this code."""
    if not segment.statistics:
        return {}
    try:
        raw = codec.decode(SEGMENT_STATISTICS, segment.statistics)["columns"]
    except codec.Undecodable:
        return {}
    found = {}
    for each in raw:
        lower, upper = each["lower"], each["upper"]
        if (lower is None) is (upper is None) and (lower is None or lower <= upper) and (
            0 <= each["nulls"] <= segment.changes
        ):
            found[each["key"]] = ColumnStatistics(each["key"], intern(each["type"]), each["nulls"], lower, upper)
    return found


def bounded(files: Sequence[Segment], total: int = EXCHANGE_STATISTICS_BYTES) -> list[Segment]:
    """``files``, whose statistics together are at most ``total`` bytes: of each the first columns, where they are more.

    An exchange of so many files is rare (all of a large collection is written anew), and the next one that merges some
    of them has room for all.
    """
    if sum(len(each.statistics) for each in files) <= total:
        return list(files)
    share = total // len(files)
    return [each._replace(statistics=_within(each, share)) for each in files]


def _within(segment: Segment, share: int) -> bytes:
    if len(segment.statistics) <= share:
        return segment.statistics
    found = list(unpacked(segment).values())
    count = bisect_right(range(1, len(found)), share, key=lambda n: len(packed(found[:n])))
    return packed(found[:count])


def shown(segment: Segment) -> Iterator[tuple[str, dict[str, object]]]:
    """For people: of each column ``min``, ``max`` and ``nulls``.  An ellipsis stands for what was cut off."""
    for key, each in unpacked(segment).items():
        told: dict[str, object] = {"nulls": each.nulls}
        # A type, or keys, that only the code knows that wrote them: people are not shown these.
        with suppress(InvalidUsage, ValueError, OverflowError, struct.error):
            form = form_of(sql_type(each.type))
            if form is not None and each.lower is not None and each.upper is not None:
                told = {"min": _shown(form, each.lower), "max": _shown(form, each.upper), **told}
        yield key, told


def _shown(form: Form, key: bytes) -> str:
    return form.show(key) + ("…" if len(key) >= BOUND_BYTES else "")


# -- keys of each type ------------------------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def form_of(kind: SqlType) -> Form | None:
    """``None`` for types whose values have no keys.  Remembered as :func:`~collection.columns.sql_type` is."""
    if kind.is_array:
        return None
    if kind.name == "numeric":
        return _free_numerics() if kind.is_free else _decimals(kind.precision or 0, kind.scale or 0)
    if kind.name in _FORMS:
        return _FORMS[kind.name](kind)
    row = row_of(kind)
    return _FORMS[row.carries](kind) if row.carries and row.alike else None


def _of(key: Callable[[Any], bytes], plain: Callable[[pa.ChunkedArray], pa.ChunkedArray] = lambda column: column):
    """The extremes that Arrow finds of ``plain`` values, which it orders as we do."""

    def extremes(column: pa.ChunkedArray) -> tuple[bytes, bytes] | None:
        found = pc.min_max(plain(column)).as_py()
        return None if found["min"] is None else (key(found["min"]), key(found["max"]))

    return extremes


def _at(key: bytes) -> Probe:
    return Probe(key, key)


def _whole_key(value: int) -> bytes:
    return struct.pack(">Q", value + (1 << 63))


def _whole(key: bytes) -> int:
    return struct.unpack(">Q", key)[0] - (1 << 63)


def _scaled(value: object, scale: int, bits: int) -> Probe | None:
    """A number among whole numbers of so many bits that each stand for one with ``scale`` digits behind the point."""
    if isinstance(value, bool) or not isinstance(value, (int, Decimal)):
        return None  # Postgres compares these with a float as floats: not by these keys
    if isinstance(value, Decimal) and not value.is_finite():
        return _at(_BELOW if value.is_infinite() and value < 0 else _ABOVE)
    size = value.adjusted() if isinstance(value, Decimal) and value else 0
    if size > bits:  # so many digits: a number that is far too large is not written out
        return _at(_BELOW if value < 0 else _ABOVE)
    if size < -bits:
        whole, rest = (-1 if value < 0 else 0), 1
    elif not value:
        whole, rest = 0, 0
    else:
        numerator, denominator = value.as_integer_ratio()
        whole, rest = divmod(numerator * 10**scale, denominator)
    biased = whole + (1 << (bits - 1))
    if biased < 0:
        return _at(_BELOW)
    if biased >> bits:
        return _at(_ABOVE)
    return _at(biased.to_bytes(bits // 8, "big") + (b"\x01" if rest else b""))


def _wholes(show: Callable[[int], str], read: Callable[[object], Probe | None]) -> Form:
    extremes = _of(_whole_key, lambda column: column.cast(_integers(column.type)))
    return Form(8, True, extremes, read, lambda key: show(_whole(key)))


def _integers(kind: pa.DataType) -> pa.DataType:
    return pa.int32() if kind.bit_width == 32 else pa.int64() if kind.bit_width == 64 else kind


def _numbers(kind: SqlType) -> Form:
    return _wholes(str, lambda value: _scaled(value, 0, 64))


def _days(value: object) -> Probe | None:
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        value = value.toordinal() - _EPOCH
    return _scaled(value, 0, 64) if isinstance(value, int) else None


def _micros(with_zone: bool) -> Callable[[object], Probe | None]:
    def read(value: object) -> Probe | None:
        if isinstance(value, dt.datetime):
            if (value.tzinfo is not None) is not with_zone:
                return None  # the session's time zone decides
            value = (value - (_EPOCH_TIME.replace(tzinfo=dt.UTC) if with_zone else _EPOCH_TIME)) // _MICRO
        return _scaled(value, 0, 64) if isinstance(value, int) else None

    return read


def _float_key(value: float) -> bytes:
    if value != value:
        return b"\xff\xf8" + bytes(6)
    bits = struct.unpack(">Q", struct.pack(">d", value + 0.0))[0]  # + 0.0: -0.0 is 0.0
    return struct.pack(">Q", bits ^ (0xFFFF_FFFF_FFFF_FFFF if bits >> 63 else 1 << 63))


def _float(key: bytes) -> float:
    bits = struct.unpack(">Q", key)[0]
    return struct.unpack(">d", struct.pack(">Q", bits ^ (1 << 63 if bits >> 63 else 0xFFFF_FFFF_FFFF_FFFF)))[0]


def _float_extremes(column: pa.ChunkedArray) -> tuple[bytes, bytes] | None:
    if len(column) == column.null_count:
        return None
    found = pc.min_max(column).as_py()  # NaN only where there is nothing else
    nan = pc.any(pc.is_nan(column)).as_py()
    return _float_key(found["min"]), _float_key(float("nan") if nan else found["max"])


def _as_float(value: object, exact: bool) -> Probe | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        return None
    try:
        found = float(value)
    except (OverflowError, ValueError):  # beyond floats; a signalling NaN
        return None
    if exact and math.isinf(found) and not (isinstance(value, float) or value.is_infinite()):
        return None  # likewise
    key = _float_key(found)
    return Probe(key, key, exact)


def _floats(kind: SqlType) -> Form:
    # Of four bytes as of eight: Postgres compares a float4 with a number as a float8.
    show = row_of(kind).show
    return Form(8, True, _float_extremes, lambda value: _as_float(value, True), lambda key: show(_float(key)))


def _free_numerics() -> Form:
    """Arrow and Python round a text to the nearest float, and of two numbers the less is never rounded to more."""

    def extremes(column: pa.ChunkedArray) -> tuple[bytes, bytes] | None:
        try:
            return _float_extremes(column.cast(pa.float64()))
        except pa.ArrowException:  # a text that it does not take for a number
            return None

    def probe(value: object) -> Probe | None:
        if isinstance(value, float):
            return None  # Postgres compares both as floats then
        return _as_float(value, False)

    return Form(8, False, extremes, probe, lambda key: f"~{row_of(SqlType('float8')).show(_float(key))}")


def _decimals(precision: int, scale: int) -> Form:
    def key(value: Decimal) -> bytes:
        found = _scaled(value, scale, 128)
        assert found is not None
        return found.lower

    def show(found: bytes) -> str:
        sign, digits, _ = Decimal(int.from_bytes(found, "big") - (1 << 127)).as_tuple()
        return f"{Decimal((sign, digits, -scale)):f}"

    return Form(16, True, _of(key), lambda value: _scaled(value, scale, 128), show)


def _texts(kind: SqlType) -> Form:
    def probe(value: object) -> Probe | None:
        if not isinstance(value, str):
            return None
        try:
            whole = value.encode()
        except UnicodeEncodeError:
            return None
        # Blanks at the end mean nothing to a char; in a comparison with a text they do.  So it is one or the other.
        return Probe(whole.rstrip(b" ") if kind.name == "bpchar" else whole, whole)

    return Form(0, True, _of(str.encode), probe, lambda key: key.decode(errors="ignore"))


def _bytes(kind: SqlType) -> Form:
    return Form(0, True, _of(bytes), lambda value: _at(value) if isinstance(value, bytes) else None, row_of(kind).show)


def _truths(kind: SqlType) -> Form:
    def key(value: bool) -> bytes:
        return b"\x01" if value else b"\x00"

    return Form(1, True, _of(key), lambda value: _at(key(value)) if isinstance(value, bool) else None,
                lambda found: row_of(kind).show(found == b"\x01"))  # fmt: skip


_FORMS: dict[str, Callable[[SqlType], Form]] = {
    "bool": _truths,
    "int2": _numbers,
    "int4": _numbers,
    "int8": _numbers,
    "float4": _floats,
    "float8": _floats,
    "text": _texts,
    "bytea": _bytes,
    "date": lambda kind: _wholes(row_of(kind).show, _days),
    "time": lambda kind: _wholes(row_of(kind).show, lambda value: _scaled(value, 0, 64)),
    "timestamp": lambda kind: _wholes(row_of(kind).show, _micros(with_zone=False)),
    "timestamptz": lambda kind: _wholes(row_of(kind).show, _micros(with_zone=True)),
}
"""What others carry and is equal where they are has theirs.  Of the rest, equal values may have two forms, or compare
part by part."""
