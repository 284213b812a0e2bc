"""A timeline, and the contract of everything that gives timestamps (I3).

For each timeline, of operations where one finished before the other began:

* a ``write_ts`` is greater than every earlier ``read_ts`` and ``write_ts``;
* a ``read_ts`` is at least the ``ts`` of every earlier ``apply_write``, and smaller than every later ``write_ts``.

No two ``write_ts`` of a generic timeline are ever equal, even concurrent ones.  On ``table`` a write is a commit, and
concurrent ones may share a record and with it the timestamp.
"""

from __future__ import annotations

from concurrent.futures import Future
from typing import NamedTuple, Protocol

TIMELINES_MAX = 1024
"""Timelines that users may open: each costs a map entry in every process; nobody was seen to need more than a few."""


class TimestampOracle(Protocol):
    """All methods may be called from any thread, at once.

    ``judge/checkers/oracle_laws.py`` judges what any of them answered.
    """

    def read_ts(self, timeline: str) -> Future[int]:
        """A timestamp at which everything applied before this call is visible."""
        ...

    def write_ts(self, timeline: str) -> Future[int]:
        """A timestamp of one's own, later than everything handed out before this call."""
        ...

    def apply_write(self, timeline: str, ts: int) -> Future[None]:
        """The write at ``ts`` is finished: reads that begin after this completes are at ``ts`` or later."""
        ...


class Timeline(NamedTuple):
    """The state of one timeline.  Reads are given ``read_ts``; both only grow, and ``read_ts <= write_ts``."""

    read_ts: int = 0
    write_ts: int = 0

    def write(self, proposed: int) -> Timeline:
        """Hand out ``result.write_ts``: at least ``proposed``, above every read and write before."""
        return Timeline(self.read_ts, max(proposed, self.write_ts + 1))

    def apply(self, ts: int) -> Timeline:
        """Everything at or below ``ts`` is finished."""
        return Timeline(max(self.read_ts, ts), max(self.write_ts, ts))
