"""The binary form of COPY: a head, rows of fields with their lengths, an end.  Pure."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct

from adapter.copying.cells import Cells
from adapter.copying.rows import Chunk
from adapter.copying.told import Places, bad_format, placed
from adapter.encode.copied import SIGNATURE
from journal.errors import InvalidUsage, Rejected, TidemarkError

_MAGIC = SIGNATURE[:11]
_HEAD = Struct("!iI").unpack_from
_COUNT, _LENGTH = Struct("!h").unpack_from, Struct("!i").unpack_from

_CRITICAL, _WITH_OIDS = 0xFFFF0000, 1 << 16

EXTENSION_BYTES_MAX = 1 << 20
"""Of the part of the head that nobody has a use for yet."""

ROW_BYTES_MAX = 16 << 20
"""Of one row: four times what a table takes."""


class _Short(Exception):
    """A row is not whole yet."""


class BinaryRows:
    """Into the ``columns`` of ``table``."""

    def __init__(self, table: str, columns: Sequence[Cells]) -> None:
        self._columns, self._places = columns, Places(table)
        self._left = b""
        self._headed = self._ended = False
        self._number = 0

    @property
    def number(self) -> int:
        return self._number

    def read(self, data: bytes, last: bool) -> Chunk:
        data, self._left = self._left + data if self._left else data, b""
        fields: list[list[bytes | None]] = [[] for _ in self._columns]
        first, at = self._number, 0
        failed: TidemarkError | None = None
        try:
            if not self._headed:
                at = self._head(data, last)
            while self._headed and not (self._ended and at == len(data)):
                if at == len(data) and last:
                    break  # Postgres takes the end of what is sent for an end, too
                at = self._row(data, at, last, fields)
        except _Short:
            self._left = data[at:]
            if len(self._left) > ROW_BYTES_MAX:
                told = f"at most {ROW_BYTES_MAX} bytes are read as one row"
                failed = Rejected("a row is too large", sqlstate="54000", detail=told)
        except TidemarkError as error:
            failed = error  # of its head nothing more is said
            if self._number and not error.context:
                failed = placed(error, self._places.line(self._number))
        height = min(map(len, fields), default=0)
        fields = [column[:height] for column in fields]
        arrays = [cells.received_array(column) for cells, column in zip(self._columns, fields, strict=True)]
        if any(each is None for each in arrays):
            return self._exactly(fields, first, failed)
        return Chunk(arrays, height, lambda row: self._places.line(first + row + 1), failed)

    def _exactly(self, fields: list[list[bytes | None]], first: int, failed: TidemarkError | None) -> Chunk:
        """Row by row, up to the first that is refused."""
        rows: list[list[object]] = []
        for number, row in enumerate(zip(*fields, strict=True), first + 1):
            values: list[object] = []
            for cells, field in zip(self._columns, row, strict=True):
                try:
                    values.append(None if field is None else cells.received(field))
                except InvalidUsage as error:
                    failed = placed(error, self._places.column(number, cells.name))
                    break
            if len(values) < len(self._columns):
                break
            rows.append(values)
        arrays = [cells.made([row[place] for row in rows]) for place, cells in enumerate(self._columns)]
        return Chunk(arrays, len(rows), lambda row: self._places.line(first + row + 1), failed)

    def _head(self, data: bytes, last: bool) -> int:
        if not last and len(data) < len(SIGNATURE):
            raise _Short
        if data[:11] != _MAGIC:
            raise bad_format("COPY file signature not recognized")
        if len(data) < 15:
            raise bad_format("invalid COPY file header (missing flags)")
        if len(data) < 19:
            raise bad_format("invalid COPY file header (missing length)")
        flags, length = _HEAD(data, 11)
        flags &= 0xFFFFFFFF
        if flags & _WITH_OIDS:
            raise bad_format("invalid COPY file header (WITH OIDS)")
        if flags & _CRITICAL:
            raise bad_format("unrecognized critical flags in COPY file header")
        if length > EXTENSION_BYTES_MAX:
            raise bad_format("invalid COPY file header (wrong length)")
        if len(data) < 19 + length:
            if not last:
                raise _Short
            raise bad_format("invalid COPY file header (wrong length)")
        self._headed = True
        return 19 + length

    def _row(self, data: bytes, at: int, last: bool, columns: list[list[bytes | None]]) -> int:
        """Read the row at ``at``; where the next one begins."""
        end = len(data)
        if self._ended:
            raise bad_format("received copy data after EOF marker")
        if at + 2 > end:
            if last:
                self._number += 1
                raise bad_format("unexpected EOF in COPY data")
            raise _Short
        (count,) = _COUNT(data, at)
        at += 2
        if count == -1:
            self._ended = True
            self._number += 1
            return at
        fields: list[bytes | None] = []
        whole = min(count, len(self._columns)) if count == len(self._columns) else 0
        for _ in range(whole):
            if at + 4 > end:
                return self._cut(last, len(fields))
            (length,) = _LENGTH(data, at)
            at += 4
            if length < 0:
                if length < -1:
                    self._number += 1
                    raise placed(bad_format("invalid field size"), self._column(len(fields)))
                fields.append(None)
                continue
            if at + length > end:
                return self._cut(last, len(fields))
            fields.append(data[at : at + length])
            at += length
        self._number += 1
        if count != len(self._columns):
            raise bad_format(f"row field count is {count}, expected {len(self._columns)}")
        for column, field in zip(columns, fields, strict=True):
            column.append(field)
        return at

    def _cut(self, last: bool, place: int) -> int:
        if not last:
            raise _Short
        self._number += 1
        raise placed(bad_format("unexpected EOF in COPY data"), self._column(place))

    def _column(self, place: int) -> str:
        return self._places.column(self._number, self._columns[place].name)
