"""``java.util.Random``, many side by side: what Beam's generator of Nexmark draws from.  Pure.

The generator and what is made of its bits are specified in the class's documentation (java.util.Random, Java SE: each
method "as if" by the algorithm that stands there), so they are the same in every Java; a test asks one.
"""

from __future__ import annotations

import numpy as np

_MULTIPLIER, _ADDEND, _MASK = np.uint64(0x5DEECE66D), np.uint64(0xB), np.uint64((1 << 48) - 1)


class Randoms:
    """One for each of ``seeds`` (int64).  Whoever draws says by ``at`` for which of them, by their places; each goes on
    by itself."""

    def __init__(self, seeds: np.ndarray) -> None:
        self._states = (seeds.astype(np.uint64) ^ _MULTIPLIER) & _MASK

    def __len__(self) -> int:
        return len(self._states)

    def _next(self, bits: int, at: np.ndarray | None) -> np.ndarray:
        states = self._states if at is None else self._states[at]
        states = (states * _MULTIPLIER + _ADDEND) & _MASK
        if at is None:
            self._states = states
        else:
            self._states[at] = states
        return (states >> np.uint64(48 - bits)).astype(np.int64)

    def ints(self, at: np.ndarray | None = None) -> np.ndarray:
        """``nextInt()``, as int32."""
        return self._next(32, at).astype(np.uint32).view(np.int32)

    def below(self, bound: int | np.ndarray, at: np.ndarray | None = None) -> np.ndarray:
        """``nextInt(bound)``: from 0 on; bounds are above 0 and below 2^31, one for all or one for each."""
        drawn = self._next(31, at)
        bounds = np.broadcast_to(np.asarray(bound, np.int64), drawn.shape)
        whole = (bounds & -bounds) == bounds
        found = np.where(whole, (bounds * drawn) >> 31, drawn % bounds)
        # What would make some numbers likelier than others is drawn again.
        again = np.flatnonzero(~whole & (drawn - found + bounds > 1 << 31))
        while len(again):
            drawn = self._next(31, again if at is None else at[again])
            found[again] = drawn % bounds[again]
            again = again[drawn - found[again] + bounds[again] > 1 << 31]
        return found

    def longs(self, at: np.ndarray | None = None) -> np.ndarray:
        """``nextLong()``."""
        high = self.ints(at).astype(np.int64)
        return (high << 32) + self.ints(at)

    def doubles(self, at: np.ndarray | None = None) -> np.ndarray:
        """``nextDouble()``: in [0, 1)."""
        high = self._next(26, at)
        return ((high << 27) + self._next(27, at)) * 2.0**-53
