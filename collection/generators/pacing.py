"""When events are due.  Pure: whoever asks has the clock.

Event *n* is due at start + (*n* - first) / rate, or at the start where that is negative; so how many there are is a
function of the time, however often anybody looked, and what was missed while nobody did is made up for.
"""

from __future__ import annotations

from catalog_log.objects import Generator


def due(generator: Generator, now_ms: int) -> int:
    """How many events are due at ``now_ms``: those below that number."""
    elapsed_us = 1000 * (now_ms - generator.start_ms)
    if elapsed_us < 0:
        return 0
    if not generator.events:
        return generator.bound
    return min(generator.bound, generator.first + elapsed_us * generator.events // generator.micros + 1)


def due_ms(generator: Generator, number: int) -> int:
    """The first millisecond at which event ``number`` is due."""
    behind = max(0, number - generator.first)
    if not generator.events or not behind:
        return generator.start_ms
    return generator.start_ms - (-behind * generator.micros // (1000 * generator.events))


def batch(generator: Generator, at: int, due_now: int, batch_max: int) -> int:
    """Up to where to go on from ``at``, when ``due_now`` are due: ``batch_max`` at once, or all that are to be visible
    together."""
    if at < generator.together <= due_now:
        return generator.together
    return min(due_now if at >= generator.together else at, at + batch_max)
