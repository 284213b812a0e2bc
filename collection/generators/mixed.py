"""Numbers that look random, by their place alone: what generators of our own draw from.  Pure.

The mixing function of SplitMix64 (Steele, Lea, Flood: *Fast Splittable Pseudorandom Number Generators*, 2014): a
bijection of 64 bits of which every bit of the result hangs on every bit that went in.
"""

from __future__ import annotations

import numpy as np

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def mix(numbers: np.ndarray) -> np.ndarray:
    """Of each of these uint64, another; of 0 it is 0."""
    z = (numbers ^ (numbers >> np.uint64(30))) * _FIRST
    z = (z ^ (z >> np.uint64(27))) * _SECOND
    return z ^ (z >> np.uint64(31))


def drawn(seed: int, purpose: int, numbers: np.ndarray) -> np.ndarray:
    """64 bits for each of ``numbers``, by ``seed`` and what they are for."""
    key = mix(np.array([seed, purpose], np.uint64) + _GAMMA)
    base = mix(key[:1] + key[1:] * _GAMMA)
    return mix(base + (numbers.astype(np.uint64) + np.uint64(1)) * _GAMMA)


def below(bits: np.ndarray, bound: int) -> np.ndarray:
    """Of 64 bits each a number in ``[0, bound)``, for bounds up to 2^32: the high half decides, so none is likelier
    than another by more than 2^-32."""
    return ((bits >> np.uint64(32)) * np.uint64(bound) >> np.uint64(32)).astype(np.int64)
