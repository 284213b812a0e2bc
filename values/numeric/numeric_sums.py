"""Sums of ``numeric`` that are kept: a value's parts can be added up and taken away again by any engine.  Pure.

Promises: of any rows whose parts were added and not taken away again, :func:`total` is what Postgres's ``sum`` gives,
to the digit and with its scale (the greatest among the values there are).  What has no room is refused, never summed
wrongly.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from values.bad_text import BadText
from values.numeric.numeric_roots import root
from values.numeric.numerics import (
    EXACT,
    INFINITY,
    NAN,
    NEGATIVE_INFINITY,
    is_special,
    quotient,
    quotient_scale,
    shown,
)

SUMMED_WHOLE_MAX = 40
SUMMED_SCALE_MAX = 40
"""Digits before and behind the point that sums are kept of: a quotient's square has 40 behind it."""

SUMMED_ROWS_MAX = 900_000_000
"""Whose parts may be added up: each of the sums is then an int8 still."""

_GROUP = 10
_GROUPS_BEHIND = SUMMED_SCALE_MAX // _GROUP
_GROUPS = (SUMMED_WHOLE_MAX + SUMMED_SCALE_MAX) // _GROUP
_BASE = 10**_GROUP

# Two counts a part: of every scale, of NaN and of both infinities.
_COUNT_BITS = 31
_COUNT_MASK = (1 << _COUNT_BITS) - 1
_COUNTED = SUMMED_SCALE_MAX + 1 + 3
_NANS, _INFINITIES, _NEGATIVE_INFINITIES = range(SUMMED_SCALE_MAX + 1, _COUNTED)
_SPECIALS = {NAN: _NANS, INFINITY: _INFINITIES, NEGATIVE_INFINITY: _NEGATIVE_INFINITIES}

PARTS = _GROUPS + (_COUNTED + 1) // 2
"""How many integers :func:`parts` gives."""

_PLACES = [(_GROUPS + counted // 2, 1 << _COUNT_BITS * (counted % 2)) for counted in range(_COUNTED)]
_NONE = [0] * PARTS


def parts(text: str) -> list[int]:
    """``PARTS`` integers, whose sums over up to ``SUMMED_ROWS_MAX`` rows are int8 each.

    First groups of ten digits, each with the value's sign, from the last behind the point; then counts of values by
    display scale, of NaN and of infinities, two counts an integer.  Subtract the parts of a row that goes.
    Raises ``BadText`` 0A000 for a value with more than 40 digits before or behind the point.
    """
    found = _NONE.copy()
    if text in _SPECIALS:
        place, one = _PLACES[_SPECIALS[text]]
        found[place] = one
        return found
    negative = text[0] == "-"
    whole, point, fraction = (text[1:] if negative else text).partition(".")
    length, scale = len(whole), len(fraction)
    if length > SUMMED_WHOLE_MAX or scale > SUMMED_SCALE_MAX:
        raise BadText("numeric value with more digits than sums are kept of", "0A000")
    place, one = _PLACES[scale]
    found[place] = one
    group = _GROUPS_BEHIND
    while length > _GROUP:
        length -= _GROUP
        found[group] = int(whole[length : length + _GROUP])
        group += 1
    found[group] = int(whole[:length])
    group = _GROUPS_BEHIND
    for start in range(0, scale, _GROUP):
        group -= 1
        found[group] = int(fraction[start : start + _GROUP].ljust(_GROUP, "0"))
    if negative:
        found[:_GROUPS] = [-each for each in found[:_GROUPS]]
    return found


def _counts(sums: Sequence[int]) -> list[int]:
    return [count for packed in sums[_GROUPS:PARTS] for count in (packed & _COUNT_MASK, packed >> _COUNT_BITS)]


def total(sums: Sequence[int]) -> str:
    """The sum of the values whose parts were added up to ``sums``; of none, ``0``."""
    counts = _counts(sums)
    if counts[_NANS] or (counts[_INFINITIES] and counts[_NEGATIVE_INFINITIES]):
        return NAN
    if counts[_INFINITIES] or counts[_NEGATIVE_INFINITIES]:
        return INFINITY if counts[_INFINITIES] else NEGATIVE_INFINITY
    scale = max((each for each in range(SUMMED_SCALE_MAX + 1) if counts[each]), default=0)
    number = 0
    for group in reversed(sums[:_GROUPS]):
        number = number * _BASE + group
    whole, behind = divmod(abs(number), 10**SUMMED_SCALE_MAX)
    minus = "-" if number < 0 else ""
    return f"{minus}{whole}.{behind:0{SUMMED_SCALE_MAX}}"[: -(SUMMED_SCALE_MAX - scale) or None].rstrip(".")


def deviation(kind: str, n: int, sum_text: str, sum_of_squares_text: str) -> str | None:
    """``var_pop``, ``var_samp``, ``stddev_pop`` or ``stddev_samp`` of ``n`` values; of too few, ``None``."""
    measure, _, among = kind.partition("_")
    sample = among == "samp"
    if n <= sample:
        return None
    if is_special(sum_text) or is_special(sum_of_squares_text):
        return NAN
    count, summed, squares = Decimal(n), Decimal(sum_text), Decimal(sum_of_squares_text)
    above = EXACT.subtract(EXACT.multiply(count, squares), EXACT.multiply(summed, summed))
    if above <= 0:
        return "0"
    below = EXACT.multiply(count, Decimal(n - sample))
    scale = quotient_scale(above, below)
    variance = quotient(above, below, scale)
    return shown(variance if measure == "var" else root(variance, scale))
