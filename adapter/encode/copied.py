"""Rows as COPY TO writes them: text, CSV or binary, each a CopyData message, a batch at a time.

Pure.  Promises: byte for byte what PostgreSQL sends for the same values, a row in each message; pieces of bounded size.
A column's values are written by :mod:`adapter.encode.values`, as for DataRow; here they are escaped or quoted and put
together, by Arrow's kernels too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from adapter.encode.values import RowEncoder, from_bytes
from adapter.state.interfaces import OutputColumn
from adapter.wire.messages import copy_data
from sql.syntax.copying import BINARY, CSV, CopyOptions

SIGNATURE = b"PGCOPY\n\xff\r\n\0" + bytes(8)
"""What a binary COPY begins with: no flags, nothing more in its head."""

TRAILER = b"\xff\xff"

_EMPTY = pa.scalar(b"", pa.binary())

_ESCAPES = {b"\\": b"\\\\", b"\b": b"\\b", b"\f": b"\\f", b"\n": b"\\n", b"\r": b"\\r", b"\t": b"\\t", b"\v": b"\\v"}
"""In the order in which they are put in: the backslash before those that bring one."""


class CopyWriter:
    """The rows of one COPY TO."""

    def __init__(
        self, columns: Sequence[OutputColumn], options: CopyOptions, zone: str = "UTC", extra_digits: int = 1
    ) -> None:
        self.binary = options.format == BINARY
        self._columns, self._options = columns, options
        self._encoder = RowEncoder(columns, (int(self.binary),) * len(columns), zone, extra_digits)
        self._csv = options.format == CSV
        self._delimiter, self._null = options.delimiter.encode(), options.null.encode()
        self._quote, self._escape = options.quote.encode(), options.escape.encode()
        forced = options.force_quote
        self._forced = [forced is None or column.name in forced for column in columns]
        escapes = {**_ESCAPES, self._delimiter: _ESCAPES.get(self._delimiter, b"\\" + self._delimiter)}
        self._escapes = escapes
        self._special = np.zeros(256, bool)
        self._special[list(self._quotes_for if self._csv else b"".join(escapes))] = True
        self._begun = False

    @property
    def _quotes_for(self) -> bytes:
        return self._delimiter + self._quote + b"\r\n"

    def pieces(self, batch: pa.RecordBatch) -> Iterator[tuple[bytes | memoryview, int]]:
        """The rows of ``batch`` as messages, each piece with its number of rows."""
        if not batch.num_rows:
            return
        if not self._begun:
            first = batch.slice(0, 1)
            yield self._first(bytes(self._rows(first)[0].as_py())), 1
            batch = batch.slice(1)
        for part in self._encoder.parts(batch):
            yield self._framed(self._rows(part)), part.num_rows

    def end(self) -> bytes:
        """What comes behind the last row."""
        head = b"" if self._begun else self._first(None)
        if self.binary and head:
            return copy_data(SIGNATURE + TRAILER)
        return copy_data(TRAILER) if self.binary else head

    def _first(self, row: bytes | None) -> bytes:
        """The head, and the first row, with which a binary one shares a message."""
        self._begun = True
        if self.binary:
            return copy_data(SIGNATURE + (row or b""))
        found = b"" if row is None else copy_data(row)
        if not self._options.header:
            return found
        names = [pa.array([column.name.encode()], pa.binary()) for column in self._columns]
        alone = len(names) == 1
        made = [self._quoted(each, False, alone) if self._csv else self._escaped(each) for each in names]
        return copy_data(self._delimiter.join(each[0].as_py() for each in made) + b"\n") + found

    def _rows(self, batch: pa.RecordBatch) -> pa.Array:
        """Each row without its message's frame."""
        if not self._columns:
            return pa.array([bytes(2) if self.binary else b"\n"] * batch.num_rows, pa.binary())
        written = self._encoder.written(batch)
        if self.binary:
            return self._binary(written)
        alone = len(written) == 1
        parts: list[pa.Array | pa.Scalar] = []
        for values, forced in zip(written, self._forced, strict=True):
            made = self._quoted(values, forced, alone) if self._csv else self._escaped(values)
            parts += [made.fill_null(self._null) if made.null_count else made, pa.scalar(self._delimiter, pa.binary())]
        parts[-1] = pa.scalar(b"\n", pa.binary())
        return pc.binary_join_element_wise(*parts, _EMPTY)

    @staticmethod
    def _binary(written: Sequence[pa.Array]) -> pa.Array:
        parts: list[pa.Array | pa.Scalar] = [pa.scalar(len(written).to_bytes(2, "big"), pa.binary())]
        for values in written:
            lengths = pc.binary_length(values).fill_null(-1).to_numpy(zero_copy_only=False)
            parts += [from_bytes(lengths.astype(">i4"), 4), values.fill_null(b"") if values.null_count else values]
        return pc.binary_join_element_wise(*parts, _EMPTY)

    @staticmethod
    def _framed(rows: pa.Array) -> memoryview:
        lengths = pc.binary_length(rows).to_numpy(zero_copy_only=False)
        head = np.empty(len(rows), np.dtype([("kind", "S1"), ("length", ">i4")]))
        head["kind"], head["length"] = b"d", lengths + 4
        joined = pc.binary_join_element_wise(from_bytes(head, head.itemsize), rows, _EMPTY)
        size = int(lengths.sum()) + head.nbytes
        return memoryview(joined.buffers()[2])[:size]

    def _has_special(self, values: pa.Array) -> bool:
        """Whether a byte is in any of them that means something here."""
        offsets = np.frombuffer(values.buffers()[1], np.int32)[values.offset : values.offset + len(values) + 1]
        data = np.frombuffer(values.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]]
        return bool(self._special[data].any())

    def _escaped(self, values: pa.Array) -> pa.Array:
        if not self._has_special(values):
            return values
        for sign, escaped in self._escapes.items():
            values = pc.replace_substring(values, sign, escaped)
        return values

    def _quoted(self, values: pa.Array, forced: bool, alone: bool) -> pa.Array:
        """In quotes where that is needed: ``alone`` in its row, what would end the copying is."""
        wanted = pc.equal(values, pa.scalar(self._null, pa.binary()))
        if alone:
            wanted = pc.or_(wanted, pc.equal(values, pa.scalar(b"\\.", pa.binary())))
        special = self._has_special(values)
        if special:
            for sign in set(self._quotes_for):
                wanted = pc.or_(wanted, pc.match_substring(values, bytes([sign])))
        if forced:
            wanted = values.is_valid()
        elif not pc.any(wanted).as_py():
            return values
        inner = values
        if self._escape != self._quote:
            inner = pc.replace_substring(inner, self._escape, self._escape * 2)
        inner = pc.replace_substring(inner, self._quote, self._escape + self._quote)
        quote = pa.scalar(self._quote, pa.binary())
        return pc.if_else(wanted, pc.binary_join_element_wise(quote, inner, quote, _EMPTY), values)
