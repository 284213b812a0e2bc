"""JSON values of a user's topic to typed rows, or to the reason why not.

Promises: the verdict on a value is a pure function of its bytes and the columns, so that the storage controller
(which counts and binds) and compute (which reads the same range later) always agree on which rows exist; and
:func:`decode_batch` gives for every value exactly what :func:`decode_json` gives, only faster (property-tested).

Who reads values once and for all (``once``: the messages of a copied source) may take more of them for rows than who
reads them again: what was counted by an older release must be found by a newer one, or nobody could read it any more.

A value is one JSON object (RFC 8259, UTF-8, no byte order mark, nesting at most ``DEPTH_MAX``).  A missing key or null
is NULL; unknown keys are ignored; of a repeated key the last counts.

The fast path parses many values in one call of Arrow's JSON reader.  It must never accept what the slow path would
not, so wherever a chunk holds anything the two libraries could see differently, the whole chunk goes row by row:
Arrow takes ``NaN``, takes two objects in one value, takes U+0000 in strings, and rescales a long decimal silently
wrong.  That two objects of one value, or one object spread over two values, cannot shift rows is ensured by numbering
the values: every object gets a first member named U+007F holding its position, and the parsed positions must be
0, 1, 2… with no other U+007F in the chunk, written plainly or as an escape.
"""

from __future__ import annotations

import io
import json
import operator
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from collection.columns import Columns, arrow_schema, sql_type, table_from_rows
from values.bad_text import BadText
from values.datatypes.registry import DATATYPES
from values.from_json import converter
from values.json_values import BadValue, Converter, Number
from values.keeping import kept
from values.text.jsonb import DEPTH_MAX, STRING, too_deep
from values.types import SqlType, arrow_type

_CHUNK_ROWS = 2048
"""Values parsed in one call: the call's overhead (about 0.2 ms) is below 5 % of its work, and a bad row costs the slow
path for this many neighbours only."""

_CHUNK_BYTES_MAX = 4 * 1024 * 1024

_STRING_BYTES = re.compile(STRING.encode(), re.DOTALL)
_POSITION = "\x7f"
_NUMBERS = [b'{"\x7f":%d,' % number for number in range(_CHUNK_ROWS)]
"""How each object of a chunk begins."""

_BEHIND_BRACE = operator.itemgetter(slice(1, None))


class BadRow(NamedTuple):
    """A value that is not a row.  ``index`` is its place among the values given (0 for a single one)."""

    reason: str
    index: int = 0


def planned(columns: Columns, once: bool = False) -> tuple[Field, ...]:
    """What :func:`decode_json` goes by, remembered (4096 distinct shapes: far above what a catalog declares).

    ``once``: the values are read once and for all, so they may be read more freely than older releases did."""
    return _plan(_key(columns), once)


def decode_batch(values: Sequence[bytes | None], columns: Columns) -> tuple[pa.Table, list[BadRow]]:
    """All good rows in order as an Arrow table (columns only, no ``__diff``), and the bad ones with their index.

    Who reads the same values later, with any release, finds the same."""
    found = decode_members(values, columns, "", once=False)
    return found.rows, found.bad


class Members(NamedTuple):
    """The good rows in order, the places of values whose member is null and so no row, and the bad ones."""

    rows: pa.Table
    empty: list[int]
    bad: list[BadRow]


def decode_members(values: Sequence[bytes | None], columns: Columns, member: str, once: bool = True) -> Members:
    """As :func:`decode_batch`, of rows that are what each object has under the name ``member``, if that is any.

    ``once``: as of :func:`planned`."""
    schema = arrow_schema(columns)
    plan = planned(columns, once)
    tables: list[pa.Table] = []
    empty: list[int] = []
    bad: list[BadRow] = []
    for start, chunk in _chunks(values):
        found = _fast(chunk, plan, schema, member)
        if found is not None:
            table, nulls = found
            for index, verdict in nulls.items():
                if isinstance(verdict, BadRow):
                    bad.append(BadRow(verdict.reason, start + index))
                else:
                    empty.append(start + index)
        else:
            rows = []
            for index, value in enumerate(chunk, start):
                row = decode_json(value, plan, member)
                if type(row) is BadRow:
                    bad.append(BadRow(row.reason, index))
                elif member and not row:
                    empty.append(index)
                else:
                    rows.append(row)
            table = table_from_rows(columns, rows)
        tables.append(table)
    return Members(pa.concat_tables(tables) if tables else schema.empty_table(), empty, bad)


class Field(NamedTuple):
    name: str
    sql: SqlType
    nullable: bool
    convert: Converter


def _key(columns: Columns) -> tuple[tuple[str, str, bool], ...]:
    return tuple((c.name, c.type, c.nullable) for c in columns)


@lru_cache(maxsize=4096)
def _plan(key: tuple[tuple[str, str, bool], ...], once: bool) -> tuple[Field, ...]:
    return tuple(
        Field(name, sql_type(text), nullable, converter(sql_type(text), once)) for name, text, nullable in key
    )


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_float=Number, parse_int=Number, parse_constant=_no_constant)


def decode_json(value: bytes | None, plan: tuple[Field, ...], member: str = "") -> tuple[object, ...] | BadRow:
    """The row in ``value``, one Python value per column, or why there is none.  Never raises for any bytes.

    ``member``: the row is what the object has under that name, and empty where that is null.  An object that has no
    such member may be :func:`unwrapped`.
    """
    if value is None:
        return BadRow("the record has no value")
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError:
        return BadRow("not UTF-8")
    if too_deep(text):
        return BadRow(f"nested deeper than {DEPTH_MAX}")
    try:
        parsed = _DECODER.decode(text)
    except ValueError:
        return BadRow("not valid JSON")
    if type(parsed) is not dict:
        return BadRow("not a JSON object")
    if member:
        if parsed.get(member) is None and (payload := unwrapped(parsed)) is not parsed:
            if payload is None:
                return ()
            if type(payload) is not dict:
                return BadRow(f'its member "{PAYLOAD}" is not a JSON object')
            parsed = payload
        if member not in parsed:
            return BadRow(f'it has no member "{member}"')
        parsed = parsed[member]
        if parsed is None:
            return ()
        if type(parsed) is not dict:
            return BadRow(f'its member "{member}" is not a JSON object')
    row = []
    for name, _, nullable, convert in plan:
        item = parsed.get(name)
        if item is None:
            if not nullable:
                return BadRow(f'column "{name}": null in a NOT NULL column')
        else:
            try:
                item = convert(item)
            except BadValue as error:
                return BadRow(f'column "{name}": {error}')
        row.append(item)
    return tuple(row)


PAYLOAD = "payload"


def unwrapped(parsed: object) -> object:
    """What is in a message that says its own schema, as Kafka Connect's converter writes them unless it is told not to
    (``{"schema": {"type": "struct", …}, "payload": …}``, ``schemas.enable``); of any other one itself."""
    if type(parsed) is not dict or PAYLOAD not in parsed:
        return parsed
    schema = parsed.get("schema")
    return parsed[PAYLOAD] if type(schema) is dict and isinstance(schema.get("type"), str) else parsed


def _is_wrapped(value: bytes | None) -> bool:
    if not value or b'"payload"' not in value:
        return False
    try:
        parsed = _DECODER.decode(value.decode())
    except ValueError:
        return False
    return unwrapped(parsed) is not parsed


def _chunks(values: Sequence[bytes | None]):
    start = 0
    while start < len(values):
        chunk = values[start : start + _CHUNK_ROWS]
        while len(chunk) > 1 and sum(map(len, filter(None, chunk))) > _CHUNK_BYTES_MAX:
            chunk = chunk[: len(chunk) // 2]
        yield start, chunk
        start += len(chunk)


def _fast(
    values: Sequence[bytes | None], plan: tuple[Field, ...], schema: pa.Schema, member: str
) -> tuple[pa.Table, dict[int, tuple[()] | BadRow]] | None:
    """The rows of the chunk where every value is one beyond doubt, or has none as ``member``: with the verdict on each
    of these, by its place.  Otherwise ``None``."""
    for value in values:
        if not value or value[0] != 0x7B:
            return None
        # What is shorter and as deep closes less than it opens: Arrow refuses it.
        if len(value) > 2 * DEPTH_MAX and value.count(b"{") + value.count(b"[") > DEPTH_MAX:
            return None
    joined = b"\n".join(map(operator.add, _NUMBERS, map(_BEHIND_BRACE, values)))
    if _looks_odd(joined, len(values)) or any(_POSITION in name for name in (member, *(each.name for each in plan))):
        return None
    if any(field.sql.is_array or field.sql.name == "jsonb" for field in plan):
        return None
    fields = [pa.field(field.name, _wire_type(field.sql)) for field in plan]
    wrapped = bool(member) and _is_wrapped(values[0])
    if member:
        fields = [pa.field(member, pa.struct(fields))]
    if wrapped:
        said = pa.field("schema", pa.struct([pa.field("type", pa.string())]))
        fields = [pa.field(PAYLOAD, pa.struct(fields)), said, *fields]
    try:
        parsed = pj.read_json(
            io.BytesIO(joined),
            read_options=pj.ReadOptions(use_threads=False, block_size=len(joined) + 1),
            parse_options=pj.ParseOptions(
                explicit_schema=pa.schema([pa.field(_POSITION, pa.int64()), *fields]),
                newlines_in_values=True,
                unexpected_field_behavior="ignore",
            ),
        )
        if parsed.num_rows != len(values) or not parsed.column(0).combine_chunks().equals(_positions(len(values))):
            return None
        columns, nulls = parsed.columns[1:], []
        if wrapped:
            payload, said, bare = columns
            if bare.null_count < len(values) or pc.struct_field(said, "type").null_count:
                return None
            columns = [pc.struct_field(payload, member)]
        if member:
            columns, nulls = _taken_apart(columns[0])
        arrays = [_finish(columns[i], field) for i, field in enumerate(plan)]
    except (pa.ArrowException, UnicodeDecodeError):
        return None
    if any(array is None for array in arrays):
        return None
    verdicts = {place: decode_json(values[place], plan, member) for place in nulls}  # or there is no such member
    if any(verdict and type(verdict) is not BadRow for verdict in verdicts.values()):
        return None  # one that is wrapped, among others that are not
    return pa.Table.from_arrays(arrays, schema=schema), verdicts


def _taken_apart(members: pa.ChunkedArray) -> tuple[list[pa.ChunkedArray], list[int]]:
    """The columns of those that are there, and the places of the others."""
    nulls: list[int] = []
    if members.null_count:
        nulls = np.flatnonzero(members.is_null().to_numpy()).tolist()
        members = members.drop_null()
    return members.flatten(), nulls


def _looks_odd(joined: bytes, count: int) -> bool:
    if joined.count(b"\x7f") != count:
        return True
    # One byte is found ten times as fast as more, and most text has none of these.
    if b"\\" in joined and (b"\\u007" in joined or b"\\u0000" in joined):
        return True
    try:
        joined.decode("utf-8")
    except UnicodeDecodeError:
        return True
    if not _has_no_number(joined):
        return False
    return _has_no_number(_STRING_BYTES.sub(b"", joined))


def _has_no_number(data: bytes) -> bool:
    return b"N" in data and b"NaN" in data or b"I" in data and b"Inf" in data


@lru_cache(maxsize=8)
def _positions(count: int) -> pa.Array:
    return pa.array(range(count), type=pa.int64())


def _wire_type(sql: SqlType) -> pa.DataType:
    """As what Arrow reads a column.

    Decimals: Arrow checks a literal's digits against the precision, then rescales without looking for overflow. With
    38 digits into 256 bits (76 digits) and a scale of at most 38 the rescaling cannot overflow.
    """
    if sql.name == "numeric" and not sql.is_free:
        return pa.decimal256(38, sql.scale)
    if sql.name == "float4":
        return pa.float64()  # rounded in two steps, exactly as the slow path does
    if sql.name in _CONVERTED or sql.name in _ISO:
        return pa.string()
    return arrow_type(sql)


def _finish(column: pa.ChunkedArray, field: Field) -> pa.Array | None:
    """The column in its final type, or ``None`` where some value is not beyond doubt."""
    if column.null_count and not field.nullable:
        return None
    name = field.sql.name
    target = arrow_type(field.sql)
    if field.sql.is_free:
        return None  # Arrow would read a number as one: its digits are in the text alone
    if name == "numeric":
        return _finish_numeric(column, field.sql, target)
    if name == "float4":
        narrow = column.cast(target, safe=False)
        return None if pc.any(pc.is_inf(narrow)).as_py() else narrow
    if name == "float8":
        return None if pc.any(pc.is_inf(column)).as_py() else column
    if name in _CONVERTED:
        try:
            return pa.array([None if v is None else field.convert(v) for v in column.to_pylist()], type=target)
        except BadValue:
            return None
    if name in _ISO:
        found = _finish_iso(column, name, target)
        return None if found is None else _kept(found, field.sql)
    return _kept(column, field.sql)


def _kept(column: pa.ChunkedArray, sql: SqlType) -> pa.ChunkedArray | None:
    try:
        return kept(column, sql)
    except BadText:
        return None


_ISO = {
    "date": r"^[1-8][0-9]{3}-[0-9]{2}-[0-9]{2}$",
    "timestamp": r"^[1-8][0-9]{3}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?Z?$",
    "timestamptz": r"^[1-8][0-9]{3}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?Z?$",
}
"""The forms whose reading by Arrow is the same as ours.  Years at the far ends and zone offsets go row by row."""

_BY_ARROW = frozenset({"bool", "int2", "int4", "int8", "float4", "float8", "numeric", "text", "jsonb"})
_CONVERTED = frozenset(DATATYPES) - _BY_ARROW - set(_ISO)
"""Types that Arrow reads as text, for the slow path's own rules to be applied value by value."""


def _finish_iso(column: pa.ChunkedArray, name: str, target: pa.DataType) -> pa.ChunkedArray | None:
    if not pc.all(pc.match_substring_regex(column, _ISO[name])).as_py() and column.null_count < len(column):
        return None
    if name == "date":
        return column.cast(target)
    naive = pc.utf8_rtrim(column, characters="Z").cast(pa.timestamp("us"))
    return naive if name == "timestamp" else pc.assume_timezone(naive, "UTC")


def _finish_numeric(column: pa.ChunkedArray, sql: SqlType, target: pa.DataType) -> pa.ChunkedArray | None:
    span = pc.min_max(column).as_py()
    if span["min"] is None:
        return pa.chunked_array([pa.nulls(len(column), target)])
    # Unscaled digits, compared as integers: Decimal's context would round 38 digits to 28.
    limit = 10**sql.precision
    if any(not -limit < _unscaled(v, sql.scale) < limit for v in (span["min"], span["max"])):
        return None
    return column.cast(target)


def _unscaled(value: object, scale: int) -> int:
    sign, digits, exponent = value.as_tuple()
    number = int("".join(map(str, digits))) * 10 ** (exponent + scale)
    return -number if sign else number
