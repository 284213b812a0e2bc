"""A row's key as bytes whose order is that of its values, so that commits can name ranges of keys.  Pure.

As :mod:`collection.keys` it is a format, which changes with the catalog's: everybody's fold compares these bytes with
what others said.  A key is its constraint's id and the codes of its values one after the other.  No code of a value
begins another one of its column's, so the codes of the first columns are a prefix that keys of other values there do
not have, and ``[prefix, after(prefix))`` are all keys that begin with these values.  Of a key whose codes are longer
than ``CODE_BYTES_MAX`` the rest is a digest: such keys are still equal exactly where their values are, and those that
have the same beginning have no order.  A range whose bounds are cut there is wider than what was said, never narrower.

Turned down: both a digest, which is shorter where keys are long, and this.  Every key would be said, kept and compared
twice, in records, in what is remembered of writes, and by everybody's fold.
"""

from __future__ import annotations

import hashlib
import struct
import uuid
from collections.abc import Callable, Sequence

import pyarrow as pa

from values.types import SqlType

CODE_BYTES_MAX = 32
"""Of the codes in a key: two uuids, or a uuid and a timestamp with a number, or what a person calls something.  With
the id and the digest behind it 4,000 keys of a commit (``adapter.execute.inserter``), read and written, take 0.9 of the
4 MiB of a record."""

DIGEST_BYTES = 16

Bounds = tuple[bytes, bytes]
"""Keys ``[lower, upper)``."""

Coder = Callable[[object], bytes]

_FLOAT = struct.Struct(">d")
_BITS = struct.Struct(">Q")
_SIGN = 1 << 63


def owned_by(owner: str) -> bytes:
    """What all keys of the constraint ``owner`` begin with."""
    return f"{owner}/".encode()


def owner_of(key: bytes) -> str:
    """The constraint whose key, or whose lower bound of keys, it is."""
    return key.partition(b"/")[0].decode()


def ordered_keys(owner: str, kinds: Sequence[SqlType], columns: Sequence[pa.ChunkedArray]) -> list[bytes | None]:
    """Of each row of ``columns`` its key for the constraint ``owner``; ``None`` where one of its values is NULL, which
    equals nothing."""
    parts = [codes(kind, column) for kind, column in zip(kinds, columns, strict=True)]
    return [None if None in row else key_of(owner, b"".join(row)) for row in zip(*parts, strict=True)]


def key_of(owner: str, code: bytes) -> bytes:
    """The key whose values have the codes ``code``, one after the other."""
    if len(code) > CODE_BYTES_MAX:
        code = code[:CODE_BYTES_MAX] + hashlib.blake2b(code, digest_size=DIGEST_BYTES).digest()
    return owned_by(owner) + code


def bounds_of(owner: str, lower: bytes, upper: bytes | None) -> Bounds:
    """Where all keys are whose codes are in ``[lower, upper)``; ``None`` is unbounded."""
    prefix = owned_by(owner)
    if upper is not None and len(upper) > CODE_BYTES_MAX:
        upper = after(upper[:CODE_BYTES_MAX])
    last = after(prefix)
    assert last is not None, "an id is no row of bytes 255"
    return prefix + lower[:CODE_BYTES_MAX], last if upper is None else prefix + upper


def after(prefix: bytes) -> bytes | None:
    """The first bytes behind all that begin with ``prefix``; ``None`` where there are none."""
    kept = prefix.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else None


def codes(kind: SqlType, column: pa.ChunkedArray) -> list[bytes | None]:
    """Of each value of a column of ``kind`` its code."""
    arrow = column.type
    if pa.types.is_timestamp(arrow):
        column = column.cast(pa.timestamp("us", arrow.tz)).cast(pa.int64())
    elif pa.types.is_date32(arrow):
        column = column.cast(pa.int32())
    form = _coder(kind, column.type)
    return [None if value is None else form(value) for value in column.to_pylist()]


def _coder(kind: SqlType, arrow: pa.DataType) -> Coder:
    if kind.name == "uuid":
        return _uuid
    if pa.types.is_string(arrow) or pa.types.is_large_string(arrow):
        return lambda value: bytes_code(str(value).encode())
    if pa.types.is_binary(arrow) or pa.types.is_large_binary(arrow):
        return bytes_code
    if pa.types.is_boolean(arrow):
        return lambda value: b"\x01" if value else b"\x00"
    if pa.types.is_integer(arrow):
        return integer_code
    if pa.types.is_decimal(arrow):
        # All values of a column have the same digits behind the point, zeros among them.
        return lambda value: integer_code(int(f"{value:f}".replace(".", "")))
    if pa.types.is_floating(arrow):
        return _float
    raise TypeError(f"no keys of {arrow}")


def integer_code(value: int) -> bytes:
    """How many bytes it takes, further from the middle for more of them, and these: of a negative one all inverted."""
    size = (abs(value).bit_length() + 7) // 8
    if value >= 0:
        return bytes([0x80 + size]) + value.to_bytes(size, "big")
    return bytes([0x80 - size]) + ((1 << 8 * size) - 1 + value).to_bytes(size, "big")


def bytes_code(value: bytes) -> bytes:
    """Texts are in the order of their UTF-8, which is that of their code points and of comparisons in queries.  A zero
    byte is two, and two others are the end, which is before all that goes on."""
    return value.replace(b"\x00", b"\x00\xff") + b"\x00\x01"


def _uuid(value: object) -> bytes:
    """Its 16 bytes, which are in the order of its text."""
    return uuid.UUID(str(value)).bytes


def _float(value: float) -> bytes:
    if value != value:
        return b"\xff" * 8
    [bits] = _BITS.unpack(_FLOAT.pack(value + 0.0))
    return _BITS.pack(bits ^ (_SIGN | (_SIGN - 1)) if bits & _SIGN else bits | _SIGN)
