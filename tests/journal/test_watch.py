"""Who looks after what is waited for: looks while there is something, sleeps while there is nothing."""

from __future__ import annotations

import queue
import threading

import pytest

from journal import watch as watch_module
from journal.watch import Watch


@pytest.fixture
def looks(monkeypatch):
    """``(watch, looks)``: one entry each time that it looked; it says that something is waited for twice in three."""
    monkeypatch.setattr(watch_module, "EVERY_S", 0.01)
    looks: queue.SimpleQueue[int] = queue.SimpleQueue()
    counted = iter(range(1, 1000))

    def look() -> bool:
        looks.put(n := next(counted))
        return n % 3 != 0

    watch = Watch(look, "watch-test")
    yield watch, looks
    watch.stop()


def asleep(looks) -> bool:
    """Whether nobody looks for twenty times as long as it takes to look again."""
    try:
        looks.get(timeout=20 * watch_module.EVERY_S)
    except queue.Empty:
        return True
    return False


def test_it_looks_until_nothing_is_waited_for_and_again_when_woken(looks):
    watch, looked = looks
    assert asleep(looked)
    watch.wake()
    assert [looked.get(timeout=5) for _ in range(3)] == [1, 2, 3]
    assert asleep(looked)
    watch.wake()
    assert [looked.get(timeout=5) for _ in range(3)] == [4, 5, 6]
    assert asleep(looked)


def test_who_wakes_it_while_it_looks_is_looked_for_once_more(monkeypatch):
    """The look may have been past what became waited for."""
    monkeypatch.setattr(watch_module, "EVERY_S", 0.01)
    looks: queue.SimpleQueue[Watch | None] = queue.SimpleQueue()
    seen = threading.Semaphore(0)

    def look() -> bool:
        woken = looks.get_nowait()
        if woken is not None:
            woken.wake()
        seen.release()
        return False

    watch = Watch(look, "watch-test")
    looks.put(watch)
    looks.put(None)
    watch.wake()
    try:
        assert seen.acquire(timeout=5) and seen.acquire(timeout=5)
    finally:
        watch.stop()


def test_stopped_it_looks_no_more(looks):
    watch, looked = looks
    watch.stop()
    watch.wake()
    assert asleep(looked)
