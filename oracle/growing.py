"""An append-only sequence whose versions share one buffer.

Promises: a version never changes, appending costs O(1) amortised and keeps every older version valid; any number of
threads may read while one appends.  A second append to the same version (a fork) copies, so it is correct but slow:
folds go forward only, and never pay for it.

Why not a tuple or ``immutables.Map``: a busy table takes a run per commit, so a tuple would copy the whole window
each time (300,000 entries in five minutes at 1,000 commits/s), and a map has no order to bisect.
"""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Generic, TypeVar

T = TypeVar("T")

_GROW = threading.Lock()
"""Held for the few instructions of an append.  One for all buffers: appends come from a fold's single thread."""


class Growing(Generic[T]):
    """An immutable view of the first ``len(self)`` items of a shared buffer."""

    __slots__ = ("_buffer", "_length")

    def __init__(self, items: Iterable[T] = ()) -> None:
        self._buffer: list[T] = list(items)
        self._length = len(self._buffer)

    def append(self, item: T) -> Growing[T]:
        """This sequence with ``item`` at its end."""
        grown: Growing[T] = Growing.__new__(Growing)
        with _GROW:
            buffer = self._buffer
            if len(buffer) != self._length:
                buffer = buffer[: self._length]
            buffer.append(item)
            grown._buffer = buffer
            grown._length = self._length + 1
        return grown

    def replaced(self, items: Mapping[int, T]) -> Growing[T]:
        """This sequence with others at those indexes.  Copies what it shares: some 2 ms for 300,000."""
        buffer = self._buffer[: self._length]
        for index, item in items.items():
            buffer[index] = item
        changed: Growing[T] = Growing.__new__(Growing)
        changed._buffer, changed._length = buffer, self._length
        return changed

    def first_at_or_after(self, value: int, key: Callable[[T], int]) -> int:
        """Index of the first item with ``key(item) >= value``; the keys must not decrease along the sequence."""
        return bisect_left(self._buffer, value, 0, self._length, key=key)

    def first_after(self, value: int, key: Callable[[T], int]) -> int:
        """Index of the first item with ``key(item) > value``."""
        return bisect_right(self._buffer, value, 0, self._length, key=key)

    def slice(self, lower: int, upper: int | None = None) -> list[T]:
        """The items at indexes ``[lower, upper)``; ``upper`` defaults to the end."""
        return self._buffer[lower : self._length if upper is None else min(upper, self._length)]

    def __getitem__(self, index: int) -> T:
        if not -self._length <= index < self._length:
            raise IndexError(index)
        return self._buffer[index if index >= 0 else self._length + index]

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[T]:
        return iter(self._buffer[: self._length])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Growing) and self.slice(0) == other.slice(0)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Growing({self.slice(0)!r})"
