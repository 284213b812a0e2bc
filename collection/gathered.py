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
    parts = [data[places] for places, _ in _pieces(begins, sizes)]
    return parts[0] if len(parts) == 1 else np.concatenate([np.zeros(0, np.uint8), *parts])


def put(out: np.ndarray, begins: np.ndarray, sizes: np.ndarray, data: np.ndarray) -> None:
    """The other way: into ``out`` from ``begins`` on, what is in ``data`` one behind the other."""
    for places, bytes_of in _pieces(begins, sizes):
        out[places] = data[bytes_of]


def _pieces(begins: np.ndarray, sizes: np.ndarray) -> Iterator[tuple[np.ndarray, slice]]:
    """Of the values that are moved together: the places of their bytes, and which bytes of all these are."""
    ends = np.cumsum(sizes)
    starts = ends - sizes
    shifts = begins - starts
    first = 0
    while first < len(sizes):
        lower = int(starts[first])
        last = max(first + 1, int(np.searchsorted(starts, lower + PIECE_BYTES)))
        upper = int(ends[last - 1])
        yield np.repeat(shifts[first:last], sizes[first:last]) + np.arange(lower, upper), slice(lower, upper)
        first = last
