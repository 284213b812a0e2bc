"""The bytes of many values taken from where they lie, or put where they belong, all at a time.  Pure.

Promises: memory is bounded by the bytes themselves and some sixteen times ``PIECE_BYTES``, or the longest value if that
is longer: each byte has its place as a number while it is moved, twice.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

PIECE_BYTES = 1 << 20
"""Bytes that are moved at once.  Of all of a batch at once, 64 MB of rows took a gigabyte."""


def taken(data: np.ndarray, begins: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """The values one behind the other: of each ``sizes`` bytes, which are in ``data`` from ``begins`` on."""
    starts = np.cumsum(sizes) - sizes
    parts = [data[_places(begins - starts, sizes, *each)] for each in _pieces(starts, sizes)]
    return parts[0] if len(parts) == 1 else np.concatenate([np.zeros(0, np.uint8), *parts])


def put(out: np.ndarray, begins: np.ndarray, sizes: np.ndarray, data: np.ndarray) -> None:
    """The other way: into ``out`` from ``begins`` on, what is in ``data`` one behind the other."""
    starts = np.cumsum(sizes) - sizes
    for first, last, lower, upper in _pieces(starts, sizes):
        out[_places(begins - starts, sizes, first, last, lower, upper)] = data[lower:upper]


def _pieces(starts: np.ndarray, sizes: np.ndarray) -> Iterator[tuple[int, int, int, int]]:
    """Which values are moved together, from the first on to before the last, and which bytes these are."""
    first = 0
    while first < len(sizes):
        lower = int(starts[first])
        last = max(first + 1, int(np.searchsorted(starts, lower + PIECE_BYTES)))
        yield first, last, lower, int(starts[last - 1] + sizes[last - 1])
        first = last


def _places(shifts: np.ndarray, sizes: np.ndarray, first: int, last: int, lower: int, upper: int) -> np.ndarray:
    return np.repeat(shifts[first:last], sizes[first:last]) + np.arange(lower, upper)
