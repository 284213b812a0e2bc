"""What the relations of TPCH are made of: money, names with numbers, addresses, comments.  Pure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from collection.generators.core import texts
from collection.generators.tpch.streams import Rows, any_number, between
from collection.generators.tpch.text import SIZE, cut

_MONEY = pa.decimal128(15, 2)


def money(cents: np.ndarray) -> pa.Array:
    halves = np.empty((len(cents), 2), "<i8")
    halves[:, 0], halves[:, 1] = cents, cents >> 63
    return pa.Array.from_buffers(_MONEY, len(cents), [None, pa.py_buffer(halves)])


def days(since_1970: np.ndarray) -> pa.Array:
    return pa.array(since_1970.astype(np.int32)).cast(pa.date32())


def one_of(fraction: np.ndarray, them: Sequence[str]) -> pa.Array:
    return pa.array(them, pa.string()).take(pa.array(between(fraction, 0, len(them) - 1)))


def numbered(prefix: str, them: np.ndarray) -> pa.Array:
    """``prefix`` and a number of nine digits, or more where it has more."""
    digits = pc.utf8_lpad(pa.array(them).cast(pa.string()), 9, "0")
    return pc.binary_join_element_wise(prefix, digits, "")


def lengths_of(average: int) -> tuple[int, int]:
    """From which to which length texts of so long an ``average`` are."""
    return average * 4 // 10, average * 16 // 10


def comments(offset: np.ndarray, length: np.ndarray, average: int) -> pa.Array:
    """Cut out of the text by two fractions each."""
    least, most = lengths_of(average)
    return cut(between(offset, 0, SIZE - most), between(length, least, most))


def comments_of(seed: int, average: int, lower: int, upper: int) -> pa.Array:
    """One for each row."""
    drawn = Rows(seed, 2, lower, upper)
    return comments(drawn.each(0), drawn.each(1), average)


_LETTERS = np.frombuffer(b"0123456789abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ,", np.uint8)
_AT_ONCE = 5
"""Letters of a number that is drawn: six bits each."""
_ADDRESS = 25


def addresses(seed: int, lower: int, upper: int) -> pa.Array:
    least, most = lengths_of(_ADDRESS)
    draws = most // _AT_ONCE
    drawn = Rows(seed, 1 + draws, lower, upper)
    chars = np.empty((upper - lower, most), np.uint8)
    for draw in range(draws):
        bits = any_number(drawn.each(1 + draw))
        for place in range(_AT_ONCE):
            chars[:, _AT_ONCE * draw + place] = _LETTERS[bits & 63]
            bits = bits >> 6
    return texts(chars, between(drawn.each(0), least, most))


def phones(seed: int, nation: np.ndarray, lower: int, upper: int) -> pa.Array:
    drawn = Rows(seed, 3, lower, upper)
    parts = [10 + nation % 90, between(drawn.each(0), 100, 999), between(drawn.each(1), 100, 999),
             between(drawn.each(2), 1000, 9999)]  # fmt: skip
    return pc.binary_join_element_wise(*(pa.array(each).cast(pa.string()) for each in parts), "-")
