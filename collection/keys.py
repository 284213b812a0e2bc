"""A row's key as bytes: equal exactly where the values are, and the same in every process and release.  Pure.

In catalogs of format 12 and before; from format 13 on commits name keys by :mod:`collection.ordered_keys`.

What commits say of keys (:class:`oracle.model.KeyRange`) is compared by everybody's fold with what others said, perhaps
by other code: so this is a format, and changes with the catalog's.  A key is its constraint's id and a digest of its
values: of a bounded length whatever they are, and no two different ones are ever taken for one (a collision of 128 bits
would refuse a commit that could have been admitted, and admit none).
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence

import pyarrow as pa

DIGEST_BYTES = 16

_FLOAT = struct.Struct(">d")
_NAN = b"nan"


def row_keys(owner: str, columns: Sequence[pa.ChunkedArray]) -> list[bytes | None]:
    """Of each row of ``columns`` its key for the constraint ``owner``; ``None`` where one of its values is NULL, which
    equals nothing."""
    parts = [_values(column) for column in columns]
    prefix = f"{owner}/".encode()
    return [None if None in row else prefix + _digest(row) for row in zip(*parts, strict=True)]


def _digest(row: Sequence[bytes]) -> bytes:
    found = hashlib.blake2b(digest_size=DIGEST_BYTES)
    for value in row:
        found.update(len(value).to_bytes(8, "big"))
        found.update(value)
    return found.digest()


def _values(column: pa.ChunkedArray) -> list[bytes | None]:
    kind = column.type
    if pa.types.is_timestamp(kind):
        column = column.cast(pa.timestamp("us", kind.tz)).cast(pa.int64())
    elif pa.types.is_date32(kind):
        column = column.cast(pa.int32())
    form = _form(column.type)
    return [None if value is None else form(value) for value in column.to_pylist()]


def _form(kind: pa.DataType):
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return str.encode
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return bytes
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        # A decimal has as many digits behind its point as its column's type says, zeros among them.
        return lambda value: str(value).encode()
    if pa.types.is_floating(kind):
        return lambda value: _NAN if value != value else _FLOAT.pack(value + 0.0)
    raise TypeError(f"no keys of {kind}")
