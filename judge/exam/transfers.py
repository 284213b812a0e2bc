"""The exam's input: so many transfers of one unit between ten accounts, each as late as the seed says.  Pure.

Promises: the same seed and count give the same transfers in the same order.  A transfer's time is spread over
:data:`MINUTE_MS`; it is sent in the order of its time and a delay of up to :data:`LATE_MS`, as in the public exam, so
later ones overtake it.  Who sends and who takes is drawn; they may be the same account.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

ACCOUNTS = 10
MINUTE_MS = 60_000
LATE_MS = 10_000

BEGAN = np.datetime64("2021-01-01T00:00:00.000")


class Transfers(NamedTuple):
    """In the order of their sending; one entry of each array is a transfer of one unit."""

    id: np.ndarray
    sender: np.ndarray
    taker: np.ndarray
    at_ms: np.ndarray
    """Since :data:`BEGAN`."""

    def messages(self) -> Iterator[bytes]:
        """Each as a JSON object."""
        times = np.datetime_as_string(BEGAN + self.at_ms.astype("timedelta64[ms]"), unit="ms")
        for n, sender, taker, at in zip(self.id, self.sender, self.taker, times, strict=True):
            yield (
                b'{"id": %d, "from_account": %d, "to_account": %d, "amount": 1, "ts": "%s"}'
                % (n, sender, taker, at.encode())
            )

    def credits(self) -> dict[int, int]:
        """What each account was given in the end; accounts that were given nothing are not there."""
        return _counted(self.taker)

    def debits(self) -> dict[int, int]:
        """Likewise, what each gave."""
        return _counted(self.sender)


def transfers(seed: int, count: int) -> Transfers:
    """``count`` transfers."""
    draw = np.random.default_rng(seed)
    at_ms = np.arange(count, dtype=np.int64) * MINUTE_MS // max(count, 1)
    order = np.argsort(at_ms + draw.integers(0, LATE_MS, count, endpoint=True), kind="stable")
    sender, taker = draw.integers(0, ACCOUNTS, count), draw.integers(0, ACCOUNTS, count)
    return Transfers(order, sender[order], taker[order], at_ms[order])


def _counted(accounts: np.ndarray) -> dict[int, int]:
    found, counts = np.unique(accounts, return_counts=True)
    return dict(zip(found.tolist(), counts.tolist(), strict=True))
