"""The bytes of a collection's topic: batches of rows with their diffs and the attempt that wrote them.

Promises: what :func:`encode` wrote, :func:`decode` gives back, value for value and in order, for every SQL type; a
record is at most ``RECORD_BYTES_MAX`` unless a single row is larger; a row above ``ROW_BYTES_MAX`` is refused before
anything is produced.  It does *not* know topics, offsets or which rows are visible.

A record is framed as one byte ``T``, one byte version, then schemaless Avro of :func:`avro_schema`, so that any Avro
reader (Spark's ``from_avro`` too) understands it.  Version 2 begins with its *shape*: which columns its rows have, by
their ids, and of which types.  So it is read for what it is, whatever became of the columns since: a column that was
dropped is passed over, one that was added later has what its ``missing`` says.  Version 1 is of collections whose
columns have no ids and never change.  Many rows share a record because a consumer pays per record, not
per byte (FACTS: 1.13 M records/s against 0.40 M decodes/s).  Python sees only the *physical* values (a timestamp is
its microseconds, a decimal its two's complement bytes): the logical types in the schema change no byte of the
encoding, and skipping them saves a datetime or Decimal object per value.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, chain, repeat
from operator import itemgetter
from typing import NamedTuple

import fastavro
import pyarrow as pa

from collection.columns import DIFF, ColumnLike, Columns, diff_schema, fit, one_array, sql_type
from collection.unwoven import Field, Unwoven, unwoven
from collection.woven import WOVEN_ROWS_MIN, Woven, long_bytes, woven
from journal.errors import FatalLog, InvalidUsage, Rejected
from schemas.codec import leading_strings, long_in
from values.keeping import kept
from values.types import SqlType, arrow_type, avro_type

MARKER = 0x54
"""``T``: tells our records from anything else that might be found on a topic."""

UNSHAPED, SHAPED = 1, 2
"""Versions of a record."""

SHAPE_CHARS_MAX = 64 * 1024
"""1,600 columns (as many as a relation may have) of the longest types are 50 KiB."""

RECORD_BYTES_MAX = 512 * 1024
"""Half of Kafka's default max.message.bytes, so that batches stay well below any broker's own limit."""

ROW_BYTES_MAX = 4 * 1024 * 1024
"""The same bound as a catalog proposal: half of the 8 MiB that our topics allow (54000 above it)."""

_ROWS_PER_TRY = 4096
"""Rows encoded at once before sizes are looked at: about 100 KiB of small rows."""

_AVRO_NAME = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*$")

_PHYSICAL = {"date": pa.int32(), "timestamp": pa.int64(), "timestamptz": pa.int64()}

_RECORD = "record"

_SHAPED_FRAME = bytes((MARKER, SHAPED))


class EncodedBatch(NamedTuple):
    """One record's value and how many rows it holds."""

    value: bytes
    rows: int


class Undecodable(FatalLog):
    """Bytes in a bound range are not a batch of this collection's rows."""


def field_names(columns: Columns) -> tuple[str, ...]:
    """The Avro field of each column: its own name where Avro allows it, else ``c<position>`` (made unique by ``_``)."""
    valid = {c.name for c in columns if _AVRO_NAME.match(c.name)}
    names: list[str] = []
    for index, column in enumerate(columns):
        name = column.name
        if name not in valid:
            name = f"c{index}"
            while name in valid or name in names:
                name += "_"
        names.append(name)
    return tuple(names)


def avro_schema(columns: Columns) -> dict[str, object]:
    """The Avro schema of this collection's records of this shape, with logical types: what an outside reader should
    use."""
    fields = [(f, avro_type(sql_type(c.type))) for f, c in zip(field_names(columns), columns, strict=True)]
    return _schema(fields, has_ids(columns))


def shape_of(columns: Columns) -> str:
    """``id:type`` of each column, as records say it, without the id where it is the next one (of most records, of all);
    empty for columns without ids."""
    return _shape_text(tuple([(c.id, c.type) for c in columns])) if has_ids(columns) else ""


@lru_cache(maxsize=1024)
def _shape_text(columns: tuple[tuple[int, str], ...]) -> str:
    before = (0, *(column_id for column_id, _ in columns))
    return ";".join(
        text if column_id == last + 1 else f"{column_id}:{text}"
        for (column_id, text), last in zip(columns, before, strict=False)
    )


def encode_value(sql: SqlType, value: object) -> bytes:
    """One value as rows have it in a column of type ``sql``, with its digits and fields.  Raises ``BadText`` 22008."""
    out = io.BytesIO()
    [plain] = to_physical(kept(pa.chunked_array([pa.array([value], arrow_type(sql))]), sql), sql)
    fastavro.schemaless_writer(out, _value_schema(str(sql)), plain)
    return out.getvalue()


def encode(columns: Columns, table: pa.Table, attempt: str) -> Iterator[EncodedBatch]:
    """Split ``table`` (columns by position, ``__diff`` optional) into records.  Row order is kept.

    Raises ``InvalidUsage`` where the table does not fit the columns, ``Rejected`` 54000 for a row that is too large.
    """
    table = fit(columns, table)
    shape = shape_of(columns)
    if len(shape) > SHAPE_CHARS_MAX:
        told = f"their types are {len(shape)} characters, at most {SHAPE_CHARS_MAX} are allowed"
        raise Rejected("too many columns for one row", sqlstate="54011", detail=told)
    schema = _shaped(shape).schema if shape else _physical_schema(_key(columns))
    names = [f"c{c.id}" for c in columns] if shape else field_names(columns)
    head = (SHAPED, {"shape": shape, "attempt": attempt}) if shape else (UNSHAPED, {"attempt": attempt})
    types = [sql_type(c.type) for c in columns]
    for start in range(0, table.num_rows, _ROWS_PER_TRY):
        part = table.slice(start, _ROWS_PER_TRY)
        found = None
        if part.num_rows >= WOVEN_ROWS_MIN:
            found = woven([one_array(part.column(i)) for i in range(len(types))], one_array(part.column(DIFF)))
        if found is not None:
            yield from _split_woven(_head(schema, head), found, 0, part.num_rows)
            continue
        values = [to_physical(part.column(i), t) for i, t in enumerate(types)]
        rows = [
            {"diff": diff, "row": dict(zip(names, row, strict=True))}
            for diff, *row in zip(part.column(DIFF).to_pylist(), *values, strict=True)
        ]
        yield from _split(schema, head, rows)


def decode(columns: Columns, values: Iterable[bytes], attempts: Iterable[str] = ()) -> pa.Table:
    """The rows of ``values`` in order: the columns, then ``__diff``.

    ``attempts`` says, value by value, who must have written it (empty: anybody).  Raises :class:`Undecodable` for bytes
    that are not such a record and for another writer's.
    """
    return decode_counted(columns, values, attempts)[0]


def decode_counted(
    columns: Columns, values: Iterable[bytes], attempts: Iterable[str] = ()
) -> tuple[pa.Table, list[int]]:
    """As :func:`decode`, with how many rows each of ``values`` held."""
    counts: list[int] = []
    unshaped = _unshaped(_key(columns))
    parts: list[_Part | _WovenPart] = []
    for value, attempt in zip(values, chain(attempts, repeat("")), strict=False):
        shape = _shape_in(value) or unshaped
        part = _woven_part(value, shape, columns, unshaped)
        if part is None:
            record = _decode_record(shape.flat, value)
            part = _Part(shape, record["attempt"], record["rows"])
        if attempt and part.attempt != attempt:
            raise Undecodable(
                "a bound range holds another writer's rows",
                detail=f"expected attempt {attempt!r}, found {part.attempt!r}",
            )
        counts.append(part.count)
        before = parts[-1] if parts else None
        if isinstance(part, _Part) and isinstance(before, _Part) and before.shape is shape:
            before.rows.extend(part.rows)
        else:
            parts.append(part)
    try:
        arrays = [_column(parts, unshaped, place, column) for place, column in enumerate(columns)]
    except (pa.ArrowException, OverflowError) as error:
        raise Undecodable("a row batch holds a value outside its column's type", detail=str(error)) from error
    arrays.append(_joined([part.diffs() for part in parts], pa.int64()))
    return pa.Table.from_arrays(arrays, schema=diff_schema(columns)), counts


def empty(columns: Columns) -> pa.Table:
    """No rows, right schema (with ``__diff``)."""
    return diff_schema(columns).empty_table()


class _Shape(NamedTuple):
    """How a record is written, how its bytes are read, and where in a row that was read a column is: by its id, of a
    record without a shape by its place.

    Of the bytes nothing says that a row is a record in the record of its change, so that they are read as one: that
    saves a dictionary for each row.
    """

    schema: object
    flat: object
    fields: dict[int, str]
    types: dict[int, str]
    avro: tuple[tuple[str, object], ...]
    """The fields in the order of the bytes, with their physical types."""


class _Part(NamedTuple):
    """Rows of records of one shape, read one by one."""

    shape: _Shape
    attempt: str
    rows: list[dict[str, object]]

    @property
    def count(self) -> int:
        return len(self.rows)

    def diffs(self) -> pa.Array:
        return pa.array(list(map(_DIFF, self.rows)), type=pa.int64())

    def column(self, field: str, column: ColumnLike) -> pa.Array:
        return from_physical(list(map(itemgetter(field), self.rows)), sql_type(column.type))


class _WovenPart(NamedTuple):
    """Rows of one record, read all at a time; ``columns`` by their fields."""

    shape: _Shape
    attempt: str
    found: Unwoven
    columns: dict[str, pa.Array]

    @property
    def count(self) -> int:
        return len(self.found.diffs)

    def diffs(self) -> pa.Array:
        return pa.array(self.found.diffs, type=pa.int64())

    def column(self, field: str, _column: ColumnLike) -> pa.Array:
        return self.columns[field]


def _woven_part(value: bytes, shape: _Shape, columns: Columns, unshaped: _Shape) -> _WovenPart | None:
    """The rows of ``value`` where they are many, of types that are read so, and in one block of their array; else
    whoever reads them one by one says what they are, or what is wrong."""
    if len(value) < WOVEN_ROWS_MIN or value[0] != MARKER or value[1] not in (UNSHAPED, SHAPED):
        return None
    try:
        said, at = leading_strings(value, 2 if value[1] == SHAPED else 1)
        count, at = long_in(value, at)
    except ValueError:
        return None
    if count < WOVEN_ROWS_MIN or value[-1:] != _END:
        return None
    asked = {}
    for place, column in enumerate(columns):
        field = _field_of(shape, unshaped, place, column)
        if field is not None:
            asked[field] = arrow_type(sql_type(column.type))
    fields = [Field(avro, asked.get(name)) for name, avro in shape.avro]
    found = unwoven(memoryview(value)[at : -len(_END)], count, fields)
    if found is None:
        return None
    names = [name for name, _ in shape.avro if name in asked]
    return _WovenPart(shape, said[-1], found, dict(zip(names, found.columns, strict=True)))


def _column(parts: Sequence[_Part | _WovenPart], unshaped: _Shape, place: int, column: ColumnLike) -> pa.Array:
    """One column of all rows.  Raises :class:`Undecodable` where some have it of another type."""
    found: list[pa.Array] = []
    for part in parts:
        shape = part.shape
        field = _field_of(shape, unshaped, place, column)
        if field is None:
            found.append(missing_values(column, part.count))
            continue
        if shape is not unshaped and shape.types[column.id] != column.type:
            detail = f"{column.name}: {shape.types[column.id]}, not {column.type}"
            raise Undecodable("rows have a column of another type", detail=detail)
        found.append(part.column(field, column))
    return _joined(found, arrow_type(sql_type(column.type)))


def _field_of(shape: _Shape, unshaped: _Shape, place: int, column: ColumnLike) -> str | None:
    """Where rows of ``shape`` have ``column``; ``None`` where they have it not."""
    return shape.fields.get(place if shape is unshaped else column.id)


def _joined(arrays: Sequence[pa.Array], arrow: pa.DataType) -> pa.Array:
    if len(arrays) == 1:
        return arrays[0]
    return pa.concat_arrays(arrays) if arrays else pa.array([], type=arrow)


def _missing(column: ColumnLike) -> object:
    if column.missing is None:
        return None
    return fastavro.schemaless_reader(io.BytesIO(column.missing), _value_schema(column.type), None)


def has_ids(columns: Columns) -> bool:
    """Whether columns are known by their ids, and so may come and go."""
    return any(c.id for c in columns)


def missing_values(column: ColumnLike, count: int) -> pa.Array:
    """What ``count`` rows that were written before there was ``column`` have in it."""
    return from_physical([_missing(column)] * count, sql_type(column.type))


def _shape_in(value: bytes) -> _Shape | None:
    """The shape that a record says it has; ``None`` for one that says none.  Raises :class:`Undecodable`."""
    if value[:2] != _SHAPED_FRAME:
        return None
    try:
        [shape], _ = leading_strings(value, 1)
        if len(shape) > SHAPE_CHARS_MAX:
            raise ValueError(f"{len(shape)} characters")
        return _shaped(shape)
    except (ValueError, LookupError, InvalidUsage) as error:
        raise Undecodable("a row batch says no shape", detail=f"starts with {value[:16].hex()}") from error


@lru_cache(maxsize=1024)
def _shaped(shape: str) -> _Shape:
    types: dict[int, str] = {}
    column_id = 0
    for each in shape.split(";"):
        said, _, text = each.rpartition(":")
        column_id = int(said) if said else column_id + 1
        if column_id in types:
            raise ValueError(f"column {column_id} twice")
        types[column_id] = text
    fields = [(f"c{column_id}", physical(avro_type(sql_type(text)))) for column_id, text in types.items()]
    flat = fastavro.parse_schema(_schema(fields, True, True))
    return _Shape(fastavro.parse_schema(_schema(fields, True)), flat, {i: f"c{i}" for i in types}, types, tuple(fields))


@lru_cache(maxsize=4096)
def _unshaped(key: tuple[tuple[str, str], ...]) -> _Shape:
    fields = [(f"c{place}", physical(avro_type(sql_type(text)))) for place, (_, text) in enumerate(key)]
    flat = fastavro.parse_schema(_schema(fields, False, True))
    return _Shape(_physical_schema(key), flat, {place: f"c{place}" for place in range(len(key))}, {}, tuple(fields))


@lru_cache(maxsize=4096)
def _value_schema(text: str) -> object:
    return fastavro.parse_schema(["null", physical(avro_type(sql_type(text)))])


_DIFF_FIELD = "diff"
_DIFF = itemgetter(_DIFF_FIELD)


def _schema(fields: Sequence[tuple[str, object]], shaped: bool = False, flat: bool = False) -> dict[str, object]:
    """``flat``: for reading, a row's fields beside its diff."""
    defined: set[str] = set()
    fields = [(name, defined_once(avro, defined)) for name, avro in fields]
    own = [{"name": n, "type": ["null", t]} for n, t in fields]
    row = [{"name": "row", "type": {"type": "record", "name": "Row", "fields": own}}]
    diff = {"name": _DIFF_FIELD, "type": "long"}
    change = {"type": "record", "name": "Change", "fields": [diff, *(own if flat else row)]}
    return {
        "type": "record",
        "name": "RowBatch",
        "namespace": "tidemark",
        "fields": [
            *([{"name": "shape", "type": "string"}] if shaped else []),
            {"name": "attempt", "type": "string"},
            {"name": "rows", "type": {"type": "array", "items": change}},
        ],
    }


def defined_once(avro: object, defined: set[str]) -> object:
    """``avro`` with a record that was defined before said by its name, as Avro wants it."""
    if not isinstance(avro, dict):
        return avro
    if avro["type"] == "array":
        null, items = avro["items"]
        return {"type": "array", "items": [null, defined_once(items, defined)]}
    if avro["type"] == _RECORD:
        if avro["name"] in defined:
            return avro["name"]
        defined.add(avro["name"])
    return avro


def physical(avro: object) -> object:
    """``avro`` without its logical types."""
    if not isinstance(avro, dict) or avro["type"] == _RECORD:
        return avro
    if avro["type"] == "array":
        return {"type": "array", "items": [physical(each) for each in avro["items"]]}
    return avro["type"]


def _key(columns: Columns) -> tuple[tuple[str, str], ...]:
    return tuple((f, c.type) for f, c in zip(field_names(columns), columns, strict=True))


@lru_cache(maxsize=4096)
def _physical_schema(key: tuple[tuple[str, str], ...]) -> object:
    fields = []
    for name, text in key:
        fields.append((name, physical(avro_type(sql_type(text)))))
    return fastavro.parse_schema(_schema(fields))


def _split(schema: object, head: tuple[int, dict[str, str]], rows: list[dict[str, object]]) -> Iterator[EncodedBatch]:
    version, said = head
    out = io.BytesIO()
    out.write(bytes((MARKER, version)))
    fastavro.schemaless_writer(out, schema, {**said, "rows": rows})
    size = out.tell()
    if size <= RECORD_BYTES_MAX or (len(rows) == 1 and size <= ROW_BYTES_MAX):
        yield EncodedBatch(out.getvalue(), len(rows))
        return
    if len(rows) == 1:
        raise _too_large(size)
    half = len(rows) // 2
    yield from _split(schema, head, rows[:half])
    yield from _split(schema, head, rows[half:])


def _head(schema: object, head: tuple[int, dict[str, str]]) -> bytes:
    """What a record begins with, before how many rows it has."""
    version, said = head
    out = io.BytesIO()
    out.write(bytes((MARKER, version)))
    fastavro.schemaless_writer(out, schema, {**said, "rows": []})
    return out.getvalue()[: -len(_END)]


_END = b"\0"
"""Of an array; one without items is that alone."""


def _split_woven(head: bytes, rows: Woven, lower: int, upper: int) -> Iterator[EncodedBatch]:
    """As :func:`_split`, of rows that are bytes."""
    start, end = (int(rows.ends[n - 1]) if n else 0 for n in (lower, upper))
    count = long_bytes(upper - lower)
    size = len(head) + len(count) + end - start + len(_END)
    if size <= RECORD_BYTES_MAX or (upper - lower == 1 and size <= ROW_BYTES_MAX):
        yield EncodedBatch(b"".join((head, count, rows.data[start:end], _END)), upper - lower)
        return
    if upper - lower == 1:
        raise _too_large(size)
    half = lower + (upper - lower) // 2
    yield from _split_woven(head, rows, lower, half)
    yield from _split_woven(head, rows, half, upper)


def _too_large(size: int) -> Rejected:
    return Rejected("row is too large", sqlstate="54000", detail=f"{size} bytes, at most {ROW_BYTES_MAX}")


def _decode_record(schema: object, value: bytes) -> dict:
    if len(value) < 2 or value[0] != MARKER or value[1] not in (UNSHAPED, SHAPED):
        raise Undecodable("a bound range holds bytes that are not a row batch", detail=f"starts with {value[:2].hex()}")
    stream = io.BytesIO(value)
    stream.seek(2)
    try:
        record = fastavro.schemaless_reader(stream, schema, None)
    except Exception as error:  # fastavro raises whatever the bytes led it into
        raise Undecodable("a bound range holds a row batch that cannot be decoded", detail=repr(error)) from error
    if stream.tell() != len(value):
        raise Undecodable("a row batch is longer than its schema says", detail=f"{stream.tell()} of {len(value)} bytes")
    return record


def to_physical(column: pa.ChunkedArray | pa.Array, sql: SqlType) -> list[object]:
    """The values as Avro has them, without their logical types."""
    if isinstance(column, pa.ChunkedArray):
        return [value for chunk in column.chunks for value in to_physical(chunk, sql)]
    if sql.is_array:
        elements, offsets = to_physical(column.values, sql.element), column.offsets.to_pylist()
        spans = zip(offsets, offsets[1:], column.is_valid().to_pylist(), strict=False)
        return [elements[start:end] if present else None for start, end, present in spans]
    if sql.name == "numeric" and not sql.is_free:
        return _decimal_bytes(column)
    if sql.name in _PHYSICAL:
        column = column.cast(_PHYSICAL[sql.name])
    return column.to_pylist()


def from_physical(values: list[object], sql: SqlType) -> pa.Array:
    """What :func:`to_physical` was given."""
    if sql.is_array:
        elements = from_physical([each for value in values for each in value or ()], sql.element)
        offsets = [0, *accumulate(len(value or ()) for value in values)]
        absent = pa.array([value is None for value in values], pa.bool_())
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), elements, arrow_type(sql), mask=absent)
    if sql.name == "numeric" and not sql.is_free:
        return _decimal_array(values, arrow_type(sql))
    if sql.name in _PHYSICAL:
        return pa.array(values, type=_PHYSICAL[sql.name]).cast(arrow_type(sql))
    return pa.array(values, type=arrow_type(sql))


def _decimal_bytes(column: pa.Array) -> list[bytes | None]:
    """Avro wants the unscaled value big-endian in two's complement; Arrow holds it as 16 little-endian bytes."""
    out: list[bytes | None] = []
    raw = memoryview(column.buffers()[1]) if len(column) else b""
    for index, present in enumerate(column.is_valid().to_pylist(), column.offset):
        if not present:
            out.append(None)
            continue
        unscaled = int.from_bytes(raw[index * 16 : index * 16 + 16], "little", signed=True)
        out.append(unscaled.to_bytes(unscaled.bit_length() // 8 + 1, "big", signed=True))
    return out


def _decimal_array(values: list[object], arrow: pa.DataType) -> pa.Array:
    raw = b"".join(
        bytes(16) if v is None else int.from_bytes(v, "big", signed=True).to_bytes(16, "little", signed=True)
        for v in values
    )
    mask = pa.array([v is not None for v in values], type=pa.bool_())
    return pa.Array.from_buffers(arrow, len(values), [mask.buffers()[1], pa.py_buffer(raw)])


__all__ = [
    "EncodedBatch", "RECORD_BYTES_MAX", "ROW_BYTES_MAX", "Undecodable", "avro_schema",
    "decode", "empty", "encode", "encode_value", "field_names", "has_ids", "missing_values", "shape_of",
]  # fmt: skip
