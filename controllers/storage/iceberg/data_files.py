"""Data files of an Iceberg table: Parquet in its store, with what the table's metadata says of each.

Of what libraries do by themselves two things are done here.  A file is written slice by slice, and ends once it is
large enough.  And a file's bounds are found here: pyiceberg takes those of the slices of which Parquet has some for
all's, so that readers miss a long text; makes bounds that are no text; and fails at years that Python has not.
"""

from __future__ import annotations

import logging
import struct
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.conversions import from_bytes, to_bytes
from pyiceberg.io.pyarrow import (
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
    schema_to_pyarrow,
)
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.schema import sanitize_column_names
from pyiceberg.table import Table
from pyiceberg.table.locations import load_location_provider
from pyiceberg.typedef import Record
from pyiceberg.types import (
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    PrimitiveType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)
from pyiceberg.utils.decimal import unscaled_to_decimal

from controllers.storage.iceberg.files import File
from journal.errors import Unavailable

log = logging.getLogger(__name__)

FILE_BYTES = 32 << 20
"""After which another one begins: twice what is not merged any more."""

SLICE_ROWS = 65_536
"""Rows of one row group, and that are read at once: some 10 MB."""

BOUND_MAX = 16
"""Signs of a text, or bytes, in a bound: as Iceberg has it (``write.metadata.metrics.default``)."""

_MOMENTS = (DateType, TimeType, TimestampType, TimestamptzType)


class DataFiles:
    """As :class:`controllers.storage.iceberg.files.Store`, of one table as it is now."""

    def __init__(self, table: Table, schema: pa.Schema, stopping: Callable[[], bool]) -> None:
        """``schema``: of rows, by position."""
        self.schema = schema
        self._io = table.io
        self._properties = table.metadata.properties
        self._stopping = stopping
        self._locations = load_location_provider(table.metadata.location, self._properties)
        self._spec_id = table.metadata.default_spec_id
        its = table.schema()
        self._fields = [(field.field_id, field.field_type) for field in its.fields]
        self._file_schema = sanitize_column_names(its)
        self._arrow = schema_to_pyarrow(self._file_schema, include_field_ids=True)
        self._plan = compute_statistics_plan(self._file_schema, {"write.metadata.metrics.default": "counts"})
        self._ids = parquet_path_to_id_mapping(self._file_schema)

    def known(self, its: DataFile) -> File:
        """One that is in the table's metadata."""
        bounds: dict[int, tuple[object, object]] = {}
        no_odd = set()
        lower, upper, nulls = its.lower_bounds or {}, its.upper_bounds or {}, its.null_value_counts or {}
        for place, (number, kind) in enumerate(self._fields):
            if not isinstance(kind, PrimitiveType):
                continue
            if number in lower and number in upper:
                bounds[place] = _value(kind, lower[number]), _value(kind, upper[number])
            if nulls.get(number) == 0 and not isinstance(kind, (FloatType, DoubleType)):
                no_odd.add(place)
        return File(its.file_path, its.file_size_in_bytes, its.record_count, bounds, frozenset(no_odd), its)

    def read(self, file: File) -> Iterator[pa.Table]:
        with self._io.new_input(file.path).open() as stream, pq.ParquetFile(stream) as parquet:
            places = _places(parquet.schema_arrow)
            for batch in parquet.iter_batches(SLICE_ROWS):
                self._look()
                arrays = [
                    batch.column(places[number]).cast(field.type) if number in places
                    else pa.nulls(batch.num_rows, field.type)
                    for (number, _), field in zip(self._fields, self.schema, strict=True)
                ]  # fmt: skip
                yield pa.Table.from_arrays(arrays, schema=self.schema)

    def writer(self) -> _Writer:
        return _Writer(self)

    def remove(self, file: File) -> None:
        self.discard(file.path)

    def discard(self, path: str) -> None:
        """A file that nobody knows of; where it cannot be deleted it stays."""
        try:
            self._io.delete(path)
        except Exception as error:
            log.info("a file is left to whoever removes files that no table has",
                     extra={"file": path, "reason": repr(error)})  # fmt: skip

    def _look(self) -> None:
        if self._stopping():
            raise Unavailable("the controller is stopping")

    def _begin(self) -> tuple[str, Any, pq.ParquetWriter]:
        path = self._locations.new_data_location(f"{uuid.uuid4()}.parquet")
        stream = self._io.new_output(path).create(overwrite=True)
        return path, stream, pq.ParquetWriter(stream, self._arrow, store_decimal_as_integer=True, compression="zstd")

    def _written(self, path: str, size: int, metadata: pq.FileMetaData) -> DataFile:
        found = data_file_statistics_from_parquet_metadata(metadata, self._plan, self._ids).to_serialized_dict()
        found["lower_bounds"], found["upper_bounds"] = self._bounds(metadata)
        its = DataFile.from_args(
            content=DataFileContent.DATA, file_path=path, file_format=FileFormat.PARQUET, partition=Record(),
            file_size_in_bytes=size, sort_order_id=None, equality_ids=None, key_metadata=None,
            **found,
        )  # fmt: skip
        its.spec_id = self._spec_id  # which is not among the arguments of one that is read
        return its

    def _bounds(self, metadata: pq.FileMetaData) -> tuple[dict[int, bytes], dict[int, bytes]]:
        """The least and the greatest value of each column, as Iceberg's metadata has them."""
        kinds, lower, upper = dict(self._fields), {}, {}
        for place in range(metadata.num_columns):
            number = self._ids[metadata.schema.column(place).path]
            kind = kinds.get(number)
            if not isinstance(kind, PrimitiveType):  # a list's elements have none
                continue
            groups = [metadata.row_group(group).column(place) for group in range(metadata.num_row_groups)]
            some = [each for each in groups if not _is_empty(each)]
            if not some or not all(each.is_stats_set and each.statistics.has_min_max for each in some):
                continue  # Parquet has none of values that are long: what the others have is no bound of all
            least = to_lower(min(_told(kind, each, "min") for each in some))
            greatest = to_upper(max(_told(kind, each, "max") for each in some))
            lower[number] = _packed(kind, least)
            if greatest is not None:
                upper[number] = _packed(kind, greatest)
        return lower, upper


class _Writer:
    """As :class:`controllers.storage.iceberg.files.Writer`."""

    def __init__(self, files: DataFiles) -> None:
        self._files = files
        self._open: tuple[str, Any, pq.ParquetWriter] | None = None
        self._done: list[File] = []

    def add(self, rows: pa.Table) -> None:
        for start in range(0, rows.num_rows, SLICE_ROWS):
            self._files._look()
            if self._open is None:
                self._open = self._files._begin()
            part = rows.slice(start, SLICE_ROWS)
            arrays = [column.cast(field.type) for column, field in zip(part.columns, self._files._arrow, strict=True)]
            _, stream, writer = self._open
            writer.write_table(pa.Table.from_arrays(arrays, schema=self._files._arrow))
            if stream.tell() >= FILE_BYTES:
                self._end()

    def close(self) -> list[File]:
        if self._open is not None:
            self._end()
        return self._done

    def _end(self) -> None:
        assert self._open is not None
        path, stream, writer = self._open
        writer.close()
        size = stream.tell()
        stream.close()
        self._open = None
        self._done.append(self._files.known(self._files._written(path, size, writer.writer.metadata)))


def to_lower(value: object) -> object:
    """What is not above ``value``, and short."""
    return value[:BOUND_MAX] if isinstance(value, (str, bytes)) else value


def to_upper(value: object) -> object | None:
    """What is not below ``value``, and short; ``None`` where there is no such text."""
    if not isinstance(value, (str, bytes)) or len(value) <= BOUND_MAX:
        return value
    for end in range(BOUND_MAX, 0, -1):
        head, last = value[: end - 1], value[end - 1]
        if isinstance(last, int):
            if last < 0xFF:
                return head + bytes([last + 1])
        elif ord(last) < 0x10FFFF:
            return head + chr(0xE000 if ord(last) == 0xD7FF else ord(last) + 1)  # between which there is no text
    return None


def _is_empty(column: pq.ColumnChunkMetaData) -> bool:
    """Whether it has nothing but NULL."""
    return column.is_stats_set and column.statistics.has_null_count and column.statistics.num_values == 0


def _told(kind: PrimitiveType, column: pq.ColumnChunkMetaData, which: str) -> object:
    statistics = column.statistics
    whole = statistics.physical_type in ("INT32", "INT64")
    if isinstance(kind, _MOMENTS):
        return getattr(statistics, f"{which}_raw")
    if isinstance(kind, DecimalType) and whole:
        return unscaled_to_decimal(getattr(statistics, f"{which}_raw"), kind.scale)
    return getattr(statistics, which)


def _packed(kind: PrimitiveType, value: object) -> bytes:
    if isinstance(kind, _MOMENTS):
        return struct.pack("<i" if isinstance(kind, DateType) else "<q", value)
    return to_bytes(kind, value)


def _value(kind: PrimitiveType, told: bytes) -> object:
    found = from_bytes(kind, told)
    return found.bytes if isinstance(kind, UUIDType) and isinstance(found, uuid.UUID) else found


def _places(schema: pa.Schema) -> dict[int, int]:
    """Of a file's columns their places, by the ids of the table's fields."""
    found = {}
    for place, field in enumerate(schema):
        number = (field.metadata or {}).get(b"PARQUET:field_id")
        if number is not None:
            found[int(number)] = place
    return found
