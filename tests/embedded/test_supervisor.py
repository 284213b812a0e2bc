"""What dies comes back, what keeps dying is given up, and everything is gone after a stop."""

from __future__ import annotations

import os
import signal
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from embedded.child import ChildSpec
from embedded.supervisor import BACKOFF_MAX_S, DEATHS_MAX, DEATHS_WINDOW_S, Event, RestartPolicy, Supervisor
from journal.errors import Unavailable

SERVES = 'import json, os, sys; print(json.dumps({"event": "ready", "pid": os.getpid()}), flush=True); sys.stdin.read()'
DIES = 'import json; print(json.dumps({"event": "ready"}), flush=True); raise SystemExit("no use")'

NO_ROOM = "raise SystemExit('no room')"


def spec(tmp_path: Path, code: str, name: str = "one") -> ChildSpec:
    return ChildSpec(name, [sys.executable, "-S", "-c", code], tmp_path / f"{name}.log")


class Recorder:
    """Collects events and lets a test wait for one."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._changed = threading.Condition()

    def __call__(self, event: Event) -> None:
        with self._changed:
            self.events.append(event)
            self._changed.notify_all()

    def wait(self, kind: str, count: int = 1) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: sum(e.kind == kind for e in self.events) >= count, 30), self.events


def test_pauses_grow_and_are_bounded() -> None:
    policy = RestartPolicy()
    pauses = [policy.died(0.0) for _ in range(DEATHS_MAX + 1)]
    assert pauses[:3] == [0.1, 0.2, 0.4]
    assert max(p for p in pauses if p is not None) == BACKOFF_MAX_S
    assert pauses[-1] is None


def test_deaths_long_ago_are_forgiven() -> None:
    policy = RestartPolicy()
    for n in range(100):
        assert policy.died(n * (DEATHS_WINDOW_S + 1)) == 0.1


def test_what_is_killed_comes_back(tmp_path: Path) -> None:
    recorder = Recorder()
    supervisor = Supervisor(recorder)
    try:
        first = supervisor.start("one", lambda: spec(tmp_path, SERVES)).result(timeout=20)["pid"]
        assert supervisor.pids() == {"one": first}
        os.kill(first, signal.SIGKILL)
        recorder.wait("ready", 2)
        assert supervisor.pids()["one"] != first
        assert supervisor.starts("one") == 2
    finally:
        supervisor.stop()
    assert supervisor.pids() == {}


def test_a_crash_loop_is_given_up_with_its_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("embedded.supervisor.BACKOFF_MAX_S", 0.01)
    supervisor = Supervisor()
    supervisor.start("one", lambda: spec(tmp_path, DIES)).result(timeout=20)
    error = supervisor.failed.result(timeout=60)
    assert "no use" in error.detail
    supervisor.stop()


@pytest.mark.parametrize("first", [SERVES, NO_ROOM])
def test_of_two_that_do_for_each_other_a_set_needs_one(tmp_path: Path, first: str) -> None:
    recorder = Recorder()
    supervisor = Supervisor(recorder)
    there = threading.Event()  # the first one is given up only once there is another
    try:
        one = supervisor.start("one", lambda: there.wait(20) and spec(tmp_path, first, "one"))
        other = supervisor.start("other", lambda: spec(tmp_path, NO_ROOM, "other"), instead_of="one")
        there.set()
        with pytest.raises(Unavailable, match="no room"):
            raise Unavailable(other.exception(timeout=20).detail)
        if first == SERVES:
            assert one.result(timeout=20)
            recorder.wait("gave_up")
            assert not supervisor.failed.done() and supervisor.pids().keys() == {"one"}
        else:
            assert supervisor.failed.result(timeout=20)
    finally:
        supervisor.stop()


def test_what_never_served_is_not_tried_again(tmp_path: Path) -> None:
    supervisor = Supervisor()
    ready = supervisor.start("one", lambda: spec(tmp_path, "raise SystemExit('wrong disk')"))
    with pytest.raises(Unavailable) as raised:
        ready.result(timeout=20)
    assert "wrong disk" in raised.value.detail
    assert supervisor.starts("one") == 1
    supervisor.stop()


def test_what_nobody_answered_in_time_is_tried_again_while_there_is_time(tmp_path: Path) -> None:
    lives = iter(["raise SystemExit(75)", SERVES])
    supervisor = Supervisor()
    assert supervisor.start("one", lambda: spec(tmp_path, next(lives))).result(timeout=20)["pid"]
    assert supervisor.starts("one") == 2
    late = lambda: replace(spec(tmp_path, "raise SystemExit(75)", "late"), ready_timeout_s=0.0)  # noqa: E731
    with pytest.raises(Unavailable):
        supervisor.start("late", late).result(timeout=20)
    supervisor.stop()


def test_what_was_late_has_more_time_in_its_next_life(tmp_path: Path) -> None:
    """A machine that is too slow for the limit would never get it back."""
    recorder = Recorder()
    supervisor = Supervisor(recorder)
    told = tmp_path / "told"
    slow = f"import time; open({str(told)!r}, 'a').write('.'); time.sleep(1.5); {SERVES}"
    lives = iter([SERVES, slow, slow, slow])
    late = lambda: replace(spec(tmp_path, next(lives)), ready_timeout_s=20.0 if not told.exists() else 1.0)  # noqa: E731
    try:
        first = supervisor.start("one", late).result(timeout=20)["pid"]
        told.touch()
        os.kill(first, signal.SIGKILL)
        recorder.wait("ready", 2)
        assert 2 <= len(told.read_text()) <= 3, "one life or two were too short"
    finally:
        supervisor.stop()


def test_a_stop_while_something_starts_leaves_nothing(tmp_path: Path) -> None:
    recorder = Recorder()
    supervisor = Supervisor(recorder)
    ready = supervisor.start("one", lambda: spec(tmp_path, "import signal; signal.pause()"))
    recorder.wait("started")
    pid = supervisor.pids()["one"]
    supervisor.stop()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert not ready.done() or ready.exception() is not None
    with pytest.raises(Unavailable):
        supervisor.start("two", lambda: spec(tmp_path, SERVES, "two"))


def test_kept_ones_end_last(tmp_path: Path) -> None:
    order = []
    says = SERVES + f"; open({str(tmp_path / 'order')!r}, 'a').write(sys.argv[1])"
    supervisor = Supervisor()
    for name in "ab":
        code = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN);" + says
        argv = [sys.executable, "-S", "-c", code, name]
        made = ChildSpec(name, argv, tmp_path / f"{name}.log")
        supervisor.start(name, lambda made=made: made).result(timeout=20)
    supervisor.stop(keep=("a",))
    order = (tmp_path / "order").read_text()
    assert order == "ba"
