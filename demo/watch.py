"""What the demo sees through SQL: how fresh the view is, and whether each answer is exact for its timestamp.

Two sessions, each in a thread of its own: the *probe* asks the indexed view for its row count many times a second, the
*frames* ask for both views and their source in one statement about once a second and have pandas check the answer.
A session whose connection breaks connects again: a killed adapter is an interruption, never a wrong answer.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import psycopg

from demo import corrections
from demo.replay import Replay
from demo.views import FRAME, PROBE, differences, expected_carriers, expected_corrected, expected_groups
from journal.errors import Unavailable

PROBE_EVERY_S = 0.02
"""Adds at most 20 ms to what is measured, and costs the adapter 50 small reads a second."""
FRAME_EVERY_S = 1.0
AWAY_MAX_S = 120.0
"""How long an adapter may be away before the demo gives up: a restart of everything takes about a minute at worst."""
RETRY_S = 0.2


class Session:
    """A connection that comes back.  One thread."""

    def __init__(self, dsn: str, stopping: threading.Event, setup: str | None = None) -> None:
        self._dsn, self._stopping, self._setup = dsn, stopping, setup
        self._connection: psycopg.Connection | None = None
        self.reconnects = -1

    def query(self, sql: str) -> list[tuple]:
        """The rows.  Repeats (reads only!) while the server is away; raises ``Unavailable`` after ``AWAY_MAX_S``."""
        return self.again("a read", lambda connection: connection.execute(sql).fetchall())

    def again(
        self, what: str, work: Callable[[psycopg.Connection], Any], also: type[psycopg.Error] | tuple[()] = ()
    ) -> Any:
        """What ``work`` gives, with a new connection after the server was away, or an error of ``also``.

        So ``work`` does the same however often it is begun.  Raises ``Unavailable`` as :meth:`query` does.
        """
        deadline = time.monotonic() + AWAY_MAX_S
        while True:
            try:
                return work(self._connected())
            except psycopg.Error as error:
                passes = is_away(error) or isinstance(error, also)
                if not passes or time.monotonic() > deadline or self._stopping.is_set():
                    raise Unavailable(f"{what} failed: {str(error).strip()}", sqlstate=error.sqlstate) from error
                self.close()
                self._stopping.wait(RETRY_S)

    def _connected(self) -> psycopg.Connection:
        if self._connection is None:
            self._connection = psycopg.connect(self._dsn, autocommit=True, connect_timeout=5)
            self.reconnects += 1
            if self._setup:
                self._connection.execute(self._setup)
        return self._connection

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def is_away(error: psycopg.Error) -> bool:
    """Whether the read may simply be tried again: the connection broke, or a service behind it was away or late."""
    state = error.sqlstate or ""
    return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError) and (
        not state or state[:2] in ("08", "57", "58", "53") or state == "25006"
    )


@dataclass
class Frame:
    """One answer and the verdict on it."""

    visible: int
    """Rows of the source at the answer's timestamp."""
    carriers: list[tuple]
    groups: int
    done: int
    """Transactions of the desk at the answer's timestamp."""
    took_s: float
    wrong: list[str]


@dataclass
class Seen:
    """What is known so far; written by the watcher's threads, read by the display."""

    visible: int = 0
    frames: int = 0
    probes: int = 0
    last: Frame | None = None
    wrong: list[str] = field(default_factory=list)
    failure: Exception | None = None
    all_seen_s: float | None = None
    """When (``time.monotonic``) the last row of the replay was first seen in the view."""


class Watcher:
    """Watches a replay through SQL until stopped."""

    def __init__(self, dsn: str, replay: Replay, desk: Callable[[], tuple[int, int]]) -> None:
        """``desk``: how many of its transactions are known to be over, and how many were begun."""
        self._replay, self._desk = replay, desk
        self.stopping = threading.Event()
        self.all_visible = threading.Event()
        self.seen = Seen(visible=replay.start_at)
        self._freshness: list[np.ndarray] = []
        self._lock = threading.Lock()
        # Serializable: the newest timestamp that the view has reached, which is what freshness asks about.
        self._probe = Session(dsn, self.stopping, "SET tidemark.isolation = 'serializable'")
        self._frames = Session(dsn, self.stopping)
        self._threads = [
            threading.Thread(target=self._guard, args=(work,), name=name, daemon=True)
            for name, work in (("probe", self._probe_once), ("frames", self._frame_once))
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self.stopping.set()
        for thread in self._threads:
            thread.join(timeout=10)

    def probe_session(self) -> Session:
        """The probe's session, for use before :meth:`start`."""
        return self._probe

    def reconnects(self) -> int:
        return max(0, self._probe.reconnects) + max(0, self._frames.reconnects)

    def freshness_ms(self, last_rows: int | None = None) -> tuple[float, float] | None:
        """Median and 95th percentile, in milliseconds, from a row's sending to its being seen; ``None`` before any."""
        with self._lock:
            known = np.concatenate(self._freshness) if self._freshness else np.empty(0)
        known = known[-last_rows:] if last_rows else known
        if not len(known):
            return None
        p50, p95 = np.percentile(known, (50, 95)) * 1000
        return float(p50), float(p95)

    def _guard(self, work: Callable[[], float]) -> None:
        try:
            while not self.stopping.is_set():
                self.stopping.wait(work())
        except Exception as error:  # handed to the demo, which ends with it
            if not self.stopping.is_set():
                self.seen.failure = self.seen.failure or error
        if self.seen.failure:
            self.all_visible.set()

    def _probe_once(self) -> float:
        """Ask how many rows are visible.  Seconds until the next time."""
        began = time.monotonic()
        count = int(self._probe.query(PROBE)[0][0] or 0)
        now = time.monotonic()
        self.seen.probes += 1
        before, self.seen.visible = self.seen.visible, max(self.seen.visible, count)
        if count < before:
            self.seen.wrong.append(f"the view went back from {before} to {count} rows")
        sent = self._replay.sent_at(count - self._replay.start_at)[before - self._replay.start_at :]
        if len(sent):
            with self._lock:
                self._freshness.append(now - sent)
        if self._replay.start_at + self._replay.count <= count and self.seen.all_seen_s is None:
            self.seen.all_seen_s = now
            self.all_visible.set()
        return max(0.0, PROBE_EVERY_S - (now - began))

    def _frame_once(self) -> float:
        """Ask for everything at one timestamp and check it.  Seconds until the next time."""
        began = time.monotonic()
        over, _ = self._desk()
        rows = self._frames.query(FRAME)
        _, begun = self._desk()
        frame = judge(rows, time.monotonic() - began, over, begun)
        self.seen.last = frame
        self.seen.frames += 1
        self.seen.wrong += frame.wrong
        # At most a third of the time: what looks must not keep what is looked at from its work on a small machine.
        took_s = time.monotonic() - began
        return max(FRAME_EVERY_S - took_s, 2 * took_s)


def judge(rows: list[tuple], took_s: float, over: int, begun: int) -> Frame:
    """Check an answer to ``FRAME`` against the input: what it shows must be right for the prefix that it counts.

    ``over``: transactions of the desk that were acknowledged before it was asked for; ``begun``: those that had been
    begun when it was there.
    """
    by_part: dict[str, list[tuple]] = {
        "carrier": [], "routes": [], "source": [], "corrected": [], "corrections": [], "desk": [],
    }  # fmt: skip
    for part, *rest in rows:
        by_part[part].append(tuple(rest))
    ((_key, _name, visible, arrived, delay_sum, _mean),) = by_part["source"]
    ((_key, groups, route_flights, route_arrived, route_sum, _mean),) = by_part["routes"]
    visible = int(visible)
    carriers = expected_carriers(visible)
    expected_count = expected_groups(visible)
    found = {(key, name): tuple(rest) for key, name, *rest in by_part["carrier"]}
    wrong = [f"at {visible} rows, delays_by_carrier: {line}" for line in differences(found, carriers)]
    if len(found) != len(by_part["carrier"]):
        wrong.append(f"at {visible} rows, delays_by_carrier has a carrier twice")
    whole = (sum(row[0] for row in carriers.values()), sum(row[1] for row in carriers.values()),
             sum(row[2] or 0 for row in carriers.values()))  # fmt: skip
    for name, actual in (
        ("flights", (visible, int(arrived or 0), int(delay_sum or 0))),
        ("delays_by_route_day", (int(route_flights or 0), int(route_arrived or 0), int(route_sum or 0))),
    ):
        if actual != whole:
            wrong.append(f"at {visible} rows, {name} adds up to {actual}, expected {whole}")
    if int(groups) != expected_count:
        wrong.append(f"at {visible} rows, delays_by_route_day has {groups} rows, expected {expected_count}")
    done = int(by_part["desk"][0][2])
    wrong += _wrong_corrections(by_part, visible, done, expected_corrected(carriers, done))
    if not over <= done <= begun:
        wrong.append(f"{done} corrections are there, of which {over} were acknowledged before and {begun} begun")
    return Frame(visible, sorted(by_part["carrier"], key=lambda row: -int(row[2])), int(groups), done, took_s, wrong)


def _wrong_corrections(
    by_part: dict[str, list[tuple]], visible: int, done: int, right_view: dict[tuple, tuple[int, int, int]]
) -> list[str]:
    """What is wrong in the desk's table and in the view over it, at ``visible`` flights and ``done`` transactions."""
    at = f"at {visible} rows and {done} corrections"
    right = corrections.after(done)
    corrected = [each.corrected for each in right.values() if each.corrected is not None]
    ((_key, _name, *found, _mean),) = by_part["corrections"]
    expected = [len(right), len(corrected), sum(corrected)]
    wrong = []
    if [int(each or 0) for each in found] != expected:
        wrong.append(f"{at}, corrections adds up to {found}, expected {expected}")
    view = {(key, name): tuple(map(int, row)) for key, name, *row, _mean in by_part["corrected"]}
    if view != right_view or len(view) != len(by_part["corrected"]):
        wrong.append(f"{at}, corrected_by_carrier is {view}, expected {right_view}")
    if right and visible <= max(right):
        wrong.append(f"{at}, a flight is corrected that has not come")
    return wrong
