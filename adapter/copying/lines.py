r"""The text and CSV forms of COPY, byte by byte as PostgreSQL reads them: lines, and the fields of a line.  Pure.

This is the reference, and says what is wrong; :mod:`adapter.copying.plain` reads what is plain a hundred times as
fast, and must give the same.  What ends a line is found from the first one (``\n``, ``\r`` or ``\r\n``), and anything
else that could end one is an error from then on.  ``\.`` ends the data; what comes behind it is not looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum

from adapter.copying.told import bad_format
from journal.errors import InvalidUsage, Rejected
from sql.syntax.copying import CSV, CopyOptions

LINE_BYTES_MAX = 16 << 20
"""Of one line: a row of 4 MiB, which is what a table may have, is some 9 MiB where all of it is bytes in
hexadecimal."""


Found = tuple[tuple[int, int] | None, int]
"""Where a line is, and where the next begins."""


class Eol(StrEnum):
    """What ends a line."""

    UNKNOWN = "unknown"
    NL = "\n"
    CR = "\r"
    CRNL = "\r\n"


class Lines:
    """Splits what comes into lines; ``number`` is that of the line last given, counted from 1 as Postgres counts: of
    one with ends of lines in quotes, that of its last."""

    def __init__(self, options: CopyOptions) -> None:
        self._csv = options.format == CSV
        self._quote, escape = options.quote.encode(), options.escape.encode()
        self._escape = b"" if escape == self._quote else escape
        signs = b"\r\n\\" + (self._quote + self._escape if self._csv else b"")
        self._sign = re.compile(b"[" + re.escape(signs) + b"]")
        self.eol = Eol.UNKNOWN
        self.number = 0
        self.ended = False
        self._within = 0
        """Ends of lines in the line that is looked at."""

    def split(self, data: bytes, last: bool) -> Iterator[tuple[int, bytes, int]]:
        """The lines of ``data``: each with its number, and where the next one begins.  What is not whole yet is left,
        if more may come (``last`` is false).  Raises 22P04 behind the lines that are well."""
        at = 0
        while at < len(data) and not self.ended:
            found = self._csv_line(data, at, last) if self._csv else self._text_line(data, at, last)
            if found is None:
                if len(data) - at > LINE_BYTES_MAX:
                    told = f"at most {LINE_BYTES_MAX} bytes are read as one line"
                    raise Rejected("a row is too large", sqlstate="54000", detail=told)
                return
            stop, at = found
            self.number += 1 + self._within
            if self.ended and stop is None:
                return
            yield self.number, data[stop[0] : stop[1]], at

    # Each gives where the line is, and where the next begins; ``None``: not whole yet.

    def _text_line(self, data: bytes, start: int, last: bool) -> Found | None:
        at, end = start, len(data)
        while True:
            match = self._sign.search(data, at)
            if match is None:
                return ((start, end), end) if last else None
            at, sign = match.start(), match[0]
            if sign == b"\n":
                self._newline()
                return (start, at), at + 1
            if sign == b"\r":
                ended = self._carriage_return(data, at, last)
                return None if ended is None else ((start, at), ended)
            if at + 1 == end:
                return ((start, end), end) if last else None  # alone at the end it is data
            if data[at + 1 : at + 2] == b".":
                return self._marker(data, start, at, last)
            at += 2

    def _csv_line(self, data: bytes, start: int, last: bool) -> Found | None:
        at, end, quoted, escaped = start, len(data), False, False
        self._within = 0
        inner = b"\n" if self.eol is Eol.NL else b"\r"
        before = -1
        while True:
            match = self._sign.search(data, at)
            if match is None:
                return ((start, end), end) if last else None
            at, sign = match.start(), match[0]
            if at != before + 1:
                escaped = False
            before = at
            if quoted and sign == self._escape:
                escaped = not escaped
            if sign == self._quote and not escaped:
                quoted = not quoted
            if sign != self._escape:
                escaped = False
            if quoted and sign == inner:
                self._within += 1
            if not quoted and sign == b"\n":
                self._newline()
                return (start, at), at + 1
            if not quoted and sign == b"\r":
                ended = self._carriage_return(data, at, last)
                return None if ended is None else ((start, at), ended)
            if sign == b"\\" and at == start:
                if at + 2 >= end:
                    if not last:
                        return None
                    return (start, end), end
                if data[at + 1 : at + 2] == b".":
                    found = self._marker(data, start, at, last)
                    if found is None or self.ended:
                        return found
                    at += 2
                    continue
            at += 1

    def _newline(self) -> None:
        if self.eol in (Eol.CR, Eol.CRNL):
            raise self._stray("newline", "\\n")
        self.eol = Eol.NL

    def _carriage_return(self, data: bytes, at: int, last: bool) -> int | None:
        """Where the next line begins."""
        if self.eol is Eol.NL:
            raise self._stray("carriage return", "\\r")
        if self.eol is Eol.CR:
            return at + 1
        if at + 1 == len(data) and not last:
            return None
        if data[at + 1 : at + 2] == b"\n":
            self.eol = Eol.CRNL
            return at + 2
        if self.eol is Eol.CRNL:
            raise self._stray("carriage return", "\\r")
        self.eol = Eol.CR
        return at + 1

    def _stray(self, what: str, escape: str) -> InvalidUsage:
        self.number += 1 + self._within  # that of the line that it is in
        if self._csv:
            return bad_format(f"unquoted {what} found in data", f"Use quoted CSV field to represent {what}.")
        return bad_format(f"literal {what} found in data", f'Use "{escape}" to represent {what}.')

    def _marker(self, data: bytes, start: int, at: int, last: bool) -> Found | None:
        r"""``\.``, which stands at ``at``: the end, with what stands before it in its line.  In CSV it may be data."""
        if at + 4 > len(data) and not last:
            return None
        behind = data[at + 2 : at + 4]
        if self.eol is Eol.CRNL:
            if behind[:1] == b"\n":
                return self._no_marker("end-of-copy marker does not match previous newline style")
            if behind[:1] != b"\r":
                return self._no_marker("end-of-copy marker corrupt")
            behind = behind[1:]
        sign = behind[:1]
        if sign not in (b"\r", b"\n") or not sign:
            return self._no_marker("end-of-copy marker corrupt")
        wanted = {Eol.NL: b"\n", Eol.CRNL: b"\n", Eol.CR: b"\r"}.get(self.eol, sign)
        if sign != wanted:
            self.number += 1
            raise bad_format("end-of-copy marker does not match previous newline style")
        self.ended = True
        return ((start, at) if at > start else None), len(data)

    def _no_marker(self, message: str) -> Found:
        if not self._csv:
            self.number += 1
            raise bad_format(message)
        return None, 0  # it is data: whoever asked looks on


class Fields:
    """The fields of a line, ``None`` for NULL."""

    def __init__(self, options: CopyOptions) -> None:
        self._csv = options.format == CSV
        self._delimiter, self._null = options.delimiter, options.null
        self._quote, self._escape = options.quote, options.escape
        signs = re.escape(self._delimiter) + (re.escape(self._quote) if self._csv else r"\\")
        self._outside = re.compile(f"[{signs}]")
        self._inside = re.compile(f"[{re.escape(self._quote + self._escape)}]")

    def of(self, line: str) -> list[str | None]:
        """Raises 22P04, and 22021 where what escapes say is no UTF-8."""
        return self._of_csv(line) if self._csv else self._of_text(line)

    def _of_text(self, line: str) -> list[str | None]:
        if "\\" not in line:
            return [None if each == self._null else each for each in line.split(self._delimiter)]
        found: list[str | None] = []
        start = at = 0
        while True:
            match = self._outside.search(line, at)
            if match is not None and match[0] == "\\":
                if match.end() < len(line):
                    at = match.end() + 1
                    continue
                stop, more = match.start(), False  # alone at the end, where it means nothing
            else:
                stop, more = (len(line), False) if match is None else (match.start(), True)
            raw = line[start:stop]
            found.append(None if raw == self._null else unescaped(raw))
            if not more:
                return found
            start = at = stop + 1

    def _of_csv(self, line: str) -> list[str | None]:
        if self._quote not in line:
            return [None if each == self._null else each for each in line.split(self._delimiter)]
        found: list[str | None] = []
        at, end = 0, len(line)
        while True:
            parts: list[str] = []
            quoted, start = False, at
            while True:
                match = self._outside.search(line, at)
                stop = end if match is None else match.start()
                parts.append(line[at:stop])
                if match is None or match[0] == self._delimiter:
                    break
                quoted, at = True, self._quoted(line, stop + 1, parts)
            text = "".join(parts)
            found.append(None if not quoted and line[start:stop] == self._null else text)
            if match is None:
                return found
            at = stop + 1

    def _quoted(self, line: str, at: int, parts: list[str]) -> int:
        """What stands in quotes from ``at`` on, put to ``parts``; where it goes on behind them."""
        while True:
            match = self._inside.search(line, at)
            if match is None:
                raise bad_format("unterminated CSV quoted field")
            parts.append(line[at : match.start()])
            sign, behind = match[0], line[match.end() : match.end() + 1]
            if sign == self._escape and behind and behind in (self._escape, self._quote):
                parts.append(behind)
                at = match.end() + 1
            elif sign == self._quote:
                return match.end()
            else:
                parts.append(sign)
                at = match.end()


_ESCAPED = re.compile(rb"\\(?:([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|(.)|$)", re.DOTALL)
_LETTERS = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}


def _one(match: re.Match[bytes]) -> bytes:
    octal, hexadecimal, other = match.groups()
    if octal is not None:
        return bytes([int(octal, 8) & 0xFF])
    if hexadecimal is not None:
        return bytes([int(hexadecimal, 16)])
    return b"" if other is None else _LETTERS.get(other, other)


def unescaped(raw: str) -> str:
    """A field of the text form without its backslashes.  Raises 22021 where that is no UTF-8."""
    if "\\" not in raw:
        return raw
    return decoded(_ESCAPED.sub(_one, raw.encode()))


def decoded(data: bytes) -> str:
    """22021 where it is no UTF-8, or has a NUL."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        bad = data[error.start : max(error.end, error.start + 1)]
        raise _no_utf8(bad) from None
    if "\0" in text:
        raise _no_utf8(b"\0")
    return text


def _no_utf8(bad: bytes) -> InvalidUsage:
    told = " ".join(f"0x{byte:02x}" for byte in bad)
    return InvalidUsage(f'invalid byte sequence for encoding "UTF8": {told}', sqlstate="22021")
