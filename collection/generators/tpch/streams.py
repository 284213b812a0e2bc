"""The random numbers of dbgen: what a row draws is found without those before it.  Pure.

dbgen (TPC-H's own generator, ``rnd.c``) draws for each column from a stream of its own: a Lehmer generator, each
number 16807 times the one before, modulo 2^31 - 1.  A row may draw so many times and no more, and what it does not
draw is skipped; so draw *j* of row *r* is number *r* · (draws of a row) + *j* + 1 of the stream.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

_MULTIPLIER, _MODULUS = 16807, (1 << 31) - 1


@lru_cache(maxsize=32)
def powers(draws: int, count: int) -> np.ndarray:
    """What numbers are multiplied by to come 0, 1, 2… times ``draws`` further."""
    step = pow(_MULTIPLIER, draws, _MODULUS)
    found = np.ones(1, np.uint64)
    while len(found) < count:
        found = np.concatenate([found, found * np.uint64(pow(step, len(found), _MODULUS)) % np.uint64(_MODULUS)])
    return found[:count]


def numbers(seed: int, lower: int, upper: int) -> np.ndarray:
    """The numbers ``[lower, upper)`` of the stream, 0 being the first that is drawn; as uint64."""
    first = seed * pow(_MULTIPLIER, lower + 1, _MODULUS) % _MODULUS
    return powers(1, upper - lower) * np.uint64(first) % np.uint64(_MODULUS)


def fractions(drawn: np.ndarray) -> np.ndarray:
    """In (0, 1); divided as dbgen does, since the last bit may matter."""
    return drawn.astype(np.float64) / float(_MODULUS)


class Rows:
    """What the rows ``[lower, upper)`` draw of the stream that begins with ``seed``, ``draws`` times each at most."""

    def __init__(self, seed: int, draws: int, lower: int, upper: int) -> None:
        count = upper - lower
        # As many as a power of two, so that few tables of powers are kept.
        table = powers(draws, 1 << max(0, count - 1).bit_length())[:count]
        first = seed * pow(_MULTIPLIER, draws * lower, _MODULUS) % _MODULUS
        self._starts = table * np.uint64(first) % np.uint64(_MODULUS)

    def each(self, draw: int = 0) -> np.ndarray:
        """A fraction for every row."""
        return fractions(self._starts * powers(1, 256)[draw + 1] % np.uint64(_MODULUS))

    def at(self, places: np.ndarray, draws: np.ndarray) -> np.ndarray:
        """Fractions by the rows' places and by which of their draws."""
        return fractions(self._starts[places] * powers(1, 256)[draws + 1] % np.uint64(_MODULUS))


def between(fraction: np.ndarray, least: int, most: int) -> np.ndarray:
    """A number from ``least`` to ``most`` of each fraction."""
    return least + (fraction * float(most - least + 1)).astype(np.int64)


def any_number(fraction: np.ndarray) -> np.ndarray:
    """``between`` 0 and 2^31 - 1, as it turns out in dbgen, whose 32 bits turn over as it counts those: not above 0."""
    return (fraction * -float(1 << 31)).astype(np.int64)
