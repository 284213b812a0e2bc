"""The text and CSV forms of COPY where they are plain: many lines at a time, by Arrow's reader of CSV.  Pure.

Promises: :func:`columns` gives exactly the fields that :mod:`adapter.copying.lines` finds, or ``None``.  What Arrow
reads otherwise than PostgreSQL is looked for before it is asked: other ends of lines, quotes inside of a field, an end
marker, escapes of what separates, a byte order mark.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from adapter.copying.lines import unescaped
from journal.errors import InvalidUsage
from sql.syntax.copying import CSV, CopyOptions

_NEWLINE = ord("\n")


def whole(data: bytes, options: CopyOptions) -> int:
    """Where the last line ends that is whole, if ``data`` is plain."""
    end = data.rfind(b"\n") + 1
    if options.format != CSV or options.escape != options.quote or not end:
        return end
    quote = options.quote.encode()
    if quote not in data:
        return end
    signs = np.frombuffer(data, np.uint8)
    quotes, ends = np.flatnonzero(signs == quote[0]), np.flatnonzero(signs == _NEWLINE)
    outside = ends[np.searchsorted(quotes, ends) % 2 == 0]
    return int(outside[-1]) + 1 if len(outside) else 0


def columns(data: bytes, width: int, options: CopyOptions) -> list[pa.Array] | None:
    r"""The fields of whole lines that end in ``\n``, as text, NULL where they are; ``None`` where this is not sure."""
    if b"\r" in data or b"\0" in data or data.startswith(b"\xef\xbb\xbf"):
        return None
    if data.startswith(b"\n") or b"\n\n" in data:  # of an empty line Arrow makes NULL in every column
        return None
    if options.format == CSV:
        return _of_csv(data, width, options)
    return _of_text(data, width, options)


def _of_text(data: bytes, width: int, options: CopyOptions) -> list[pa.Array] | None:
    escapes = data.count(b"\\")
    if escapes and any(sign in data for sign in (b"\\.", b"\\\n", b"\\" + options.delimiter.encode())):
        return None
    found = _read(data, width, options, quoted=False)
    if found is None or not escapes:
        return found
    nulls = sum(each.null_count for each in found)
    if escapes == nulls * options.null.count("\\"):
        return found
    try:
        return [_unescaped(each) for each in found]
    except InvalidUsage:
        return None


def _unescaped(values: pa.Array) -> pa.Array:
    escaped = pc.fill_null(pc.match_substring(values, "\\"), False)
    if not pc.any(escaped).as_py():
        return values
    made = [unescaped(each) for each in values.filter(escaped).to_pylist()]
    return pc.replace_with_mask(values, escaped, pa.array(made, pa.string()))


def _of_csv(data: bytes, width: int, options: CopyOptions) -> list[pa.Array] | None:
    if options.force_null or options.force_not_null or options.escape != options.quote:
        return None
    if data.startswith(b"\\.") or b"\n\\." in data:
        return None
    quoted = options.quote.encode() in data
    if quoted and not _well_quoted(data, options):
        return None
    return _read(data, width, options, quoted)


def _well_quoted(data: bytes, options: CopyOptions) -> bool:
    """Whether quotes open where a field begins, and close where it ends, or are doubled within them."""
    signs = np.frombuffer(data, np.uint8)
    quotes = np.flatnonzero(signs == ord(options.quote))
    if len(quotes) % 2:
        return False
    edge = np.zeros(256, bool)
    edge[[_NEWLINE, ord(options.delimiter)]] = True
    opens, closes = quotes[0::2], quotes[1::2]
    doubled = opens[1:] == closes[:-1] + 1
    begins = edge[signs[opens - 1]]
    begins[0] |= opens[0] == 0
    begins[1:] |= doubled
    ends = edge[signs[np.minimum(closes + 1, len(signs) - 1)]]
    ends[:-1] |= doubled
    return bool(begins.all() and ends.all())


def _read(data: bytes, width: int, options: CopyOptions, quoted: bool) -> list[pa.Array] | None:
    names = [str(at) for at in range(width)]
    try:
        table = csv.read_csv(
            pa.BufferReader(data),
            csv.ReadOptions(use_threads=False, column_names=names, block_size=len(data) + 1),
            csv.ParseOptions(
                delimiter=options.delimiter, quote_char=options.quote if quoted else False, double_quote=True,
                escape_char=False, newlines_in_values=quoted, ignore_empty_lines=False,
            ),
            csv.ConvertOptions(
                column_types={name: pa.string() for name in names}, null_values=[options.null],
                strings_can_be_null=True, quoted_strings_can_be_null=False,
            ),
        )  # fmt: skip
    except (pa.ArrowInvalid, pa.ArrowKeyError):
        return None
    return [column.combine_chunks() if column.num_chunks != 1 else column.chunk(0) for column in table.columns]
