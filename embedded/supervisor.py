"""Keep a set of child processes running: start, wait for their ready lines, restart what dies, end all in reverse.

Promises: a child that dies is started again with a growing pause, and one that was late with more patience; one that
keeps dying makes the whole set fail, with the child's last lines as the reason (a stopped process beats a wrong one);
:meth:`Supervisor.stop` returns when every child is gone, whenever it is called, also while something is still starting.
If the supervisor itself is killed, the children end by themselves (``embedded/tether.py``).
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass, replace

from embedded.child import GRACE_S, Child, ChildSpec
from journal.errors import TidemarkError, Unavailable
from journal.process import TRY_AGAIN

BACKOFF_FIRST_S = 0.1
BACKOFF_MAX_S = 5.0
"""0.1 s doubling to 5 s: a killed process is back at once, a crash loop costs little."""
DEATHS_MAX = 10
DEATHS_WINDOW_S = 120.0
"""More deaths than this in two minutes are a crash loop: at the longest pause it takes about 45 s to find out."""
PATIENCE_MAX = 4
"""Times its limit that a child is given to get ready once it was late: twice in its next life, then four times, 12
minutes for Spark.  Where a machine is too slow for the limit each life would end before it served (seen: three lives of
180 s, under a load of 25)."""


@dataclass(frozen=True)
class Event:
    """Something that happened to a child, for the display: ``kind`` is started, ready, died or gave_up."""

    child: str
    kind: str
    detail: str = ""


class RestartPolicy:
    """How long to wait before the next start, or that there is none.  Pure: the caller gives the time."""

    def __init__(self) -> None:
        self._deaths: deque[float] = deque(maxlen=DEATHS_MAX)

    def died(self, now_s: float) -> float | None:
        """Seconds to wait before starting again, or ``None``: it has died too often."""
        while self._deaths and now_s - self._deaths[0] > DEATHS_WINDOW_S:
            self._deaths.popleft()
        if len(self._deaths) == DEATHS_MAX:
            return None
        self._deaths.append(now_s)
        return min(BACKOFF_MAX_S, BACKOFF_FIRST_S * 2 ** (len(self._deaths) - 1))


class _Managed:
    """One child through all its lives, driven by a thread of its own."""

    def __init__(
        self, make_spec: Callable[[], ChildSpec], on_event: Callable[[Event], None], stopping: threading.Event
    ):
        self._make_spec = make_spec
        self._on_event = on_event
        self._stopping = stopping
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self.child: Child | None = None
        self.starts = 0
        self._began = time.monotonic()
        self.first_ready: Future[dict] = Future()
        self.failed: Future[TidemarkError] = Future()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _start(self, patience: int) -> Child | None:
        """Start it unless we are stopping; holding the lock, so that ``end`` sees every child that was started."""
        spec = self._make_spec()
        spec = replace(spec, ready_timeout_s=spec.ready_timeout_s * patience)
        with self._lock:
            if self._stopping.is_set() or self._ended.is_set():
                return None
            self.child = Child(spec)
        self.starts += 1
        self._on_event(Event(spec.name, "started"))
        return self.child

    def _run(self) -> None:
        policy, patience = RestartPolicy(), 1
        while True:
            child = None
            try:
                child = self._start(patience)
                if child is None:
                    return
                fields = child.wait_ready()
            except Exception as error:  # reported: as the first start's failure or as the reason for giving up
                if child is not None and not child.exited.done():
                    patience = min(2 * patience, PATIENCE_MAX)
                if not self._after_death(policy, error):
                    return
                continue
            patience = 1
            if not self.first_ready.done():
                self.first_ready.set_result(fields)
            self._on_event(Event(child.spec.name, "ready", "stands by" if fields.get("standing_by") else ""))
            code = child.exited.result()
            reason = Unavailable(
                f"{child.spec.name} ended with code {code}", detail=child.tail(), hint=f"see {child.spec.log}"
            )
            if not self._after_death(policy, reason):
                return

    def _after_death(self, policy: RestartPolicy, reason: Exception) -> bool:
        """Whether to start it again (after the pause).  A child that never served is not tried again: it says why; but
        for one that somebody did not answer in time, while it still has time to get ready (a busy machine)."""
        child, self.child = self.child, None
        if child is not None:
            child.stop()
        if self._stopping.is_set() or self._ended.is_set():
            return False
        name = child.spec.name if child else "a process"
        now = time.monotonic()
        again = self.first_ready.done() or (
            child is not None
            and child.exited.done()
            and child.exited.result() == TRY_AGAIN
            and now - self._began < child.spec.ready_timeout_s
        )
        pause_s = policy.died(now) if again else None
        if pause_s is None:
            error = reason if isinstance(reason, TidemarkError) else Unavailable(f"{name} could not start: {reason}")
            self._on_event(Event(name, "gave_up", str(error)))
            if not self.first_ready.done():
                self.first_ready.set_exception(error)
            self.failed.set_result(error)
            return False
        self._on_event(Event(name, "died", str(reason)))
        return not (self._stopping.wait(pause_s) or self._ended.is_set())

    def order_stop(self) -> None:
        self._ended.set()
        with self._lock:
            child = self.child
        if child is not None:
            child.order_stop()

    def join(self) -> None:
        with self._lock:
            child = self.child
        if child is not None:
            child.stop()
        self.thread.join(GRACE_S + 10)


class Supervisor:
    """A set of children, ended in the reverse order of their start.  Methods may be called from any thread."""

    def __init__(self, on_event: Callable[[Event], None] = lambda _event: None) -> None:
        self._on_event = on_event
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._managed: dict[str, _Managed] = {}
        self._instead: dict[str, str] = {}
        """Of two that do for each other: the other one."""
        self.failed: Future[TidemarkError] = Future()
        """Done when a child was given up: the set no longer works and should be stopped."""

    def start(self, name: str, make_spec: Callable[[], ChildSpec], *, instead_of: str = "") -> Future[dict]:
        """Start a child; the future gives the fields of its first ready line.

        ``make_spec`` is called for every life.  The future fails with what the child said where it never served.  The
        set works as long as this one does or the one that it is ``instead_of``: where one is given up, it is only told.
        """
        managed = _Managed(make_spec, self._on_event, self._stopping)
        with self._lock:
            if self._stopping.is_set():
                raise Unavailable("the processes are being stopped")
            if name in self._managed:
                raise ValueError(f"{name} is running already")
            self._managed[name] = managed
            if instead_of:
                self._instead[name], self._instead[instead_of] = instead_of, name
        managed.failed.add_done_callback(lambda failed: self._one_failed(name, failed))
        managed.thread.name = f"supervise-{name}"
        managed.thread.start()
        return managed.first_ready

    def _one_failed(self, name: str, failed: Future[TidemarkError]) -> None:
        with self._lock:
            other = self._managed.get(self._instead.get(name, ""))
            if (other is None or other.failed.done()) and not self.failed.done():
                self.failed.set_result(failed.result())

    def pids(self) -> dict[str, int]:
        """The processes' ids by name, without those that are between two lives."""
        with self._lock:
            children = {name: managed.child for name, managed in self._managed.items()}
        found = {}
        for name, child in children.items():
            if child is None or child.exited.done():
                continue
            try:
                found[name] = child.pid
            except (TidemarkError, FutureTimeout):
                continue
        return found

    def starts(self, name: str) -> int:
        """How many times ``name`` has been started."""
        with self._lock:
            return self._managed[name].starts

    def stop(self, keep: tuple[str, ...] = ()) -> None:
        """End all children; those named in ``keep`` last (what the others need in order to end well)."""
        with self._lock:
            self._stopping.set()
            names = list(reversed(self._managed))
        # All but the kept may end at once: each only needs the kept ones to say goodbye to.
        first = [self._managed[name] for name in names if name not in keep]
        for managed in first:
            managed.order_stop()
        for managed in first:
            managed.join()
        for name in names:
            if name in keep:
                self._managed[name].order_stop()
                self._managed[name].join()
