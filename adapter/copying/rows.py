"""Rows that a COPY FROM brings, from bytes that are cut anywhere: columns, where each row stands, what is wrong.  Pure.

A :class:`Chunk` has the rows up to what is wrong, if anything is: whoever takes it looks at those first, since of two
mistakes PostgreSQL tells the one in the row that comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from adapter.copying import plain
from adapter.copying.cells import Cells
from adapter.copying.lines import Eol, Fields, Lines, decoded
from adapter.copying.told import Places, bad_format, placed
from journal.errors import InvalidUsage, TidemarkError
from sql.syntax.copying import CSV, MATCH, CopyOptions


@dataclass(frozen=True)
class Chunk:
    """``arrays`` are the columns of ``height`` rows; ``failed`` is what is wrong with what comes behind them.
    ``place`` tells of a row where it stands."""

    arrays: Sequence[pa.Array]
    height: int
    place: Callable[[int], str]
    failed: TidemarkError | None = None


class Reader(Protocol):
    """Takes bytes in their order."""

    def read(self, data: bytes, last: bool) -> Chunk:
        """The rows that are whole by now; ``last``: nothing comes behind."""
        ...

    @property
    def number(self) -> int:
        """Lines that it has read, or rows."""
        ...


class TextRows:
    """Text or CSV, into the ``columns`` of ``table``."""

    def __init__(self, table: str, columns: Sequence[Cells], options: CopyOptions) -> None:
        self._columns, self._options = columns, options
        self._places = Places(table)
        self._lines, self._fields = Lines(options), Fields(options)
        self._left = b""
        self._headed = not options.header
        forced = options.format == CSV
        self._not_null = [forced and each.name in options.force_not_null for each in columns]
        self._null = [forced and each.name in options.force_null for each in columns]

    @property
    def number(self) -> int:
        return self._lines.number

    def read(self, data: bytes, last: bool) -> Chunk:
        data, self._left = self._left + data if self._left else data, b""
        lines = self._lines
        if lines.ended or not data:
            return self._nothing(self._nameless() if last else None)
        # The first line, which shows what ends one, and a line of names.
        if not self._headed or lines.eol is Eol.UNKNOWN:
            return self._exactly(data, last)
        cut = len(data) if last and data.endswith(b"\n") else plain.whole(data, self._options)
        found = self._plainly(data[:cut]) if cut else None
        if found is None:
            return self._exactly(data, last)
        if not last:
            self._left = data[cut:]
            return found
        if cut == len(data):
            return found
        rest = self._exactly(data[cut:], True)
        return _joined(found, rest)

    def _nothing(self, failed: TidemarkError | None = None) -> Chunk:
        return Chunk([each.made([]) for each in self._columns], 0, lambda row: "", failed)

    def _plainly(self, data: bytes) -> Chunk | None:
        given = data
        if self._lines.eol is Eol.CRNL:
            ends = data.count(b"\r\n")
            quoted = self._options.format == CSV and self._options.quote.encode() in data
            if quoted or not ends == data.count(b"\r") == data.count(b"\n"):
                return None
            given = data.replace(b"\r\n", b"\n")
        elif self._lines.eol is not Eol.NL:
            return None
        texts = plain.columns(given, len(self._columns), self._options) if self._columns else None
        if texts is None:
            return None
        arrays = []
        for cells, each in zip(self._columns, texts, strict=True):
            made = cells.array(each)
            if made is None:
                return None
            arrays.append(made)
        before = self._lines.number
        self._lines.number += given.count(b"\n")
        height = len(texts[0])

        def place(row: int) -> str:
            again = Lines(self._options)
            again.eol, again.number = self._lines.eol, before
            number, line, _ = list(again.split(data, True))[row]
            return self._places.line(number, line)

        return Chunk(arrays, height, place)

    def _exactly(self, data: bytes, last: bool) -> Chunk:
        """Line by line; of the first one alone where that is not known yet."""
        places: list[tuple[int, bytes]] = []
        values: list[list[object]] = [[] for _ in self._columns]
        failed: TidemarkError | None = None
        at = 0
        first = self._lines.eol is Eol.UNKNOWN or not self._headed
        try:
            for number, line, behind in self._lines.split(data, last):
                at = behind
                row = self._row(number, line)
                if row is not None:
                    for column, value in zip(values, row, strict=True):
                        column.append(value)
                    places.append((number, line))
                if first and not self._lines.ended and self._lines.eol in (Eol.NL, Eol.CRNL):
                    break
        except TidemarkError as error:
            failed = error if error.context else placed(error, self._places.line(self._lines.number))
        if failed is None and self._lines.ended and last:
            failed = self._nameless()
        made = Chunk(
            [cells.made(column) for cells, column in zip(self._columns, values, strict=True)], len(places),
            lambda row: self._places.line(*places[row]), failed,
        )  # fmt: skip
        if failed is not None or self._lines.ended:
            return made
        rest = data[at:]
        if first and rest and self._lines.eol is not Eol.UNKNOWN:
            return _joined(made, self.read(rest, last))
        self._left = rest
        return made

    def _row(self, number: int, line: bytes) -> list[object] | None:
        """``None`` of a line of names."""
        try:
            text = decoded(line)
        except InvalidUsage as error:
            raise placed(error, self._places.line(number)) from None
        if not self._headed:
            self._headed = True
            if self._options.header == MATCH:
                self._check_names(text, number, line)
            return None
        try:
            fields = self._fields.of(text)
            if not self._columns and text:
                raise bad_format("extra data after last expected column")
            if self._columns and len(fields) > len(self._columns):
                raise bad_format("extra data after last expected column")
        except InvalidUsage as error:
            raise placed(error, self._places.line(number, line)) from None
        row: list[object] = []
        for place, cells in enumerate(self._columns):
            if place >= len(fields):
                told = bad_format(f'missing data for column "{cells.name}"')
                raise placed(told, self._places.line(number, line))
            field = fields[place]
            if field is None and self._not_null[place]:
                field = self._options.null
            elif self._null[place] and field == self._options.null:
                field = None
            try:
                row.append(None if field is None else cells.value(field))
            except InvalidUsage as error:
                raise placed(error, self._places.value(number, cells.name, field)) from None
        return row

    def _nameless(self) -> TidemarkError | None:
        """What is wrong with data that has no line at all: where names are wanted, it has one of none."""
        if self._headed or self._options.header != MATCH:
            return None
        self._headed = True
        try:
            self._check_names("", 1, b"")
        except InvalidUsage as error:
            return error
        return None

    def _check_names(self, text: str, number: int, line: bytes) -> None:
        try:
            fields = self._fields.of(text)
            wanted = [each.name for each in self._columns]
            if len(fields) != len(wanted):
                told = f"wrong number of fields in header line: got {len(fields)}, expected {len(wanted)}"
                raise bad_format(told)
            for place, (got, name) in enumerate(zip(fields, wanted, strict=True), 1):
                if got != name:
                    shown = f'null value ("{self._options.null}")' if got is None else f'"{got}"'
                    told = f'column name mismatch in header line field {place}: got {shown}, expected "{name}"'
                    raise bad_format(told)
        except InvalidUsage as error:
            raise placed(error, self._places.line(number, line)) from None


def _joined(first: Chunk, second: Chunk) -> Chunk:
    if not first.height:
        return second
    arrays = [pa.concat_arrays([a, b]) for a, b in zip(first.arrays, second.arrays, strict=True)]

    def place(row: int) -> str:
        return first.place(row) if row < first.height else second.place(row - first.height)

    return Chunk(arrays, first.height + second.height, place, second.failed)
