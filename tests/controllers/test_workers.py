"""Calls that hang: left behind, they hold nobody up."""

from __future__ import annotations

import threading
from concurrent.futures import CancelledError

import pytest

from controllers.workers import Workers

WAIT_S = 20


class Hanging:
    """A call that goes on until it is let go."""

    def __init__(self) -> None:
        self.begun, self.go_on = threading.Event(), threading.Event()

    def __call__(self) -> str:
        self.begun.set()
        assert self.go_on.wait(WAIT_S)
        return "late"


def test_no_more_run_at_once_than_there_are_places():
    workers = Workers(2, 4, "test")
    calls = [Hanging() for _ in range(3)]
    futures = [workers.submit(call) for call in calls]
    assert calls[0].begun.wait(WAIT_S) and calls[1].begun.wait(WAIT_S)
    assert workers.queued == 1 and not calls[2].begun.is_set()
    calls[0].go_on.set()
    assert calls[2].begun.wait(WAIT_S)
    for call in calls:
        call.go_on.set()
    assert [future.result(WAIT_S) for future in futures] == ["late"] * 3
    workers.close(WAIT_S)


def test_what_is_left_behind_gives_its_place_to_the_next_up_to_a_bound():
    workers = Workers(1, 2, "test")
    calls = [Hanging() for _ in range(4)]
    futures = []
    for call in calls[:3]:
        futures.append(workers.submit(call))
        assert call.begun.wait(WAIT_S)
        workers.leave(futures[-1])
    assert workers.left == 2
    futures.append(workers.submit(calls[3]))
    assert workers.queued == 1, "the third could not be left: there are enough of them"
    calls[0].go_on.set()
    assert futures[0].result(WAIT_S) == "late"
    calls[2].go_on.set()
    assert calls[3].begun.wait(WAIT_S)
    for call in calls:
        call.go_on.set()
    assert futures[3].result(WAIT_S) == "late"
    assert workers.submit(lambda: 5).result(WAIT_S) == 5
    workers.close(WAIT_S)


def test_what_has_not_begun_and_is_left_never_begins():
    workers = Workers(1, 1, "test")
    running, queued = Hanging(), Hanging()
    first, second = workers.submit(running), workers.submit(queued)
    workers.leave(second)
    running.go_on.set()
    assert first.result(WAIT_S) == "late"
    with pytest.raises(CancelledError):
        second.result(0)
    assert workers.submit(lambda: 1).result(WAIT_S) == 1
    assert not queued.begun.is_set()
    workers.close(WAIT_S)


def test_an_error_is_raised_to_whoever_waits_and_closing_cancels_what_has_not_begun():
    workers = Workers(1, 1, "test")
    with pytest.raises(ZeroDivisionError):
        workers.submit(lambda: 1 // 0).result(WAIT_S)
    running = Hanging()
    workers.submit(running)
    assert running.begun.wait(WAIT_S)
    queued = workers.submit(lambda: 1)
    running.go_on.set()
    workers.close(WAIT_S)
    assert queued.done()
    with pytest.raises(RuntimeError):
        workers.submit(lambda: 1)
