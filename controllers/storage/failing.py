"""Collections of which something could not be done, each left alone for a while, twice as long after each failure."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

from journal.errors import TidemarkError

AFTER_FAILURE_S = 30.0
AFTER_FAILURE_MAX_S = 600.0
"""Before a collection is tried again."""


class _Failure(NamedTuple):
    """Why it could not be done, until when it is left, and how long that is."""

    reason: str
    not_before: float
    waits_s: float


class Failing:
    """Bounded by the collections there are, where :meth:`keep` is told of them.  One thread; any may ask
    :meth:`reasons`."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._failures: dict[str, _Failure] = {}

    def leave(self, name: str, error: Exception) -> str:
        """Leave it alone for a while; the reason that people are told."""
        reason = str(error) or type(error).__name__
        if isinstance(error, TidemarkError):
            reason = error.message if error.detail is None else f"{error.message}: {error.detail}"
        before = self._failures.get(name)
        waits_s = AFTER_FAILURE_S if before is None else min(2 * before.waits_s, AFTER_FAILURE_MAX_S)
        self._failures[name] = _Failure(reason, self._clock() + waits_s, waits_s)
        return reason

    def is_left(self, name: str) -> bool:
        failure = self._failures.get(name)
        return failure is not None and failure.not_before > self._clock()

    def succeeded(self, name: str) -> None:
        self._failures.pop(name, None)

    def keep(self, names: Collection[str]) -> None:
        """Of all others nothing is remembered."""
        self._failures = {name: each for name, each in self._failures.items() if name in names}

    def reasons(self) -> dict[str, str]:
        return {name: each.reason for name, each in list(self._failures.items())}
