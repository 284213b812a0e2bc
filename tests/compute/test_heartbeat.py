"""A Spark that is dead is noticed, one that is only busy is left alone."""

from __future__ import annotations

import queue
import threading

import pytest

from controllers.compute import heartbeat
from controllers.compute.heartbeat import ALONE_S_MAX, BUSY_S_MAX, IDLE_S_MAX, Heartbeat, Spark, SparkEnded, overdue
from journal.errors import Unavailable

WAIT_S = 30


def test_when_a_beat_is_overdue():
    assert not overdue(IDLE_S_MAX + 1, IDLE_S_MAX - 1)
    assert overdue(IDLE_S_MAX + 1, IDLE_S_MAX)
    assert not overdue(BUSY_S_MAX - 1, 0)
    assert overdue(BUSY_S_MAX, 0)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def quick(monkeypatch):
    for name in ("BEAT_S", "LOOK_S", "GRACE_S"):
        monkeypatch.setattr(heartbeat, name, 0.01)


class StandIn:
    """A Spark in whichever state a test puts it."""

    def __init__(self) -> None:
        self.asked, self.looked = threading.Semaphore(0), threading.Semaphore(0)
        self.answering, self.saying = threading.Event(), threading.Event()
        self.answering.set()
        self.saying.set()
        self.has_room = True
        self.code: int | None = None
        self.gave_up = False
        self.alone = False
        self.dead: queue.Queue = queue.Queue()
        self.ended: queue.Queue = queue.Queue()
        self.clock = Clock()
        self.heart = Heartbeat(
            Spark(self.beat, self.idle, lambda: self.code, lambda: self.gave_up, lambda: self.alone), self.dead.put,
            end=self.ended.put, clock=self.clock,
        )  # fmt: skip

    def beat(self) -> None:
        self.asked.release()
        self.answering.wait(WAIT_S)

    def idle(self) -> bool:
        self.looked.release()
        self.saying.wait(WAIT_S)
        return self.has_room

    def hang(self) -> None:
        """From now on a beat waits; returns when one does, and slots have been looked at since."""
        self.answering.clear()
        while self.asked.acquire(blocking=False):
            pass
        assert self.asked.acquire(timeout=WAIT_S)
        self.look()

    def look(self) -> None:
        while self.looked.acquire(blocking=False):
            pass
        for _ in range(3):
            assert self.looked.acquire(timeout=WAIT_S)

    def close(self) -> None:
        self.heart.close()
        self.answering.set()
        self.saying.set()


@pytest.fixture
def stand_in(quick):
    found = StandIn()
    yield found
    found.close()


def test_one_that_answers_lives(stand_in):
    for _ in range(20):
        assert stand_in.asked.acquire(timeout=WAIT_S)
        stand_in.clock.now += IDLE_S_MAX / 3
    assert stand_in.dead.empty()


def test_one_that_stopped_by_itself_is_dead_though_its_jvm_answers(stand_in):
    assert stand_in.asked.acquire(timeout=WAIT_S) and stand_in.dead.empty()
    stand_in.gave_up = True
    error = stand_in.dead.get(timeout=WAIT_S)
    assert isinstance(error, SparkEnded) and "master" in error.detail
    assert stand_in.ended.get(timeout=WAIT_S) == 1


def test_one_with_room_that_does_not_run_a_job_is_dead_and_its_process_ended_where_it_does_not_end(stand_in):
    stand_in.hang()
    stand_in.clock.now += IDLE_S_MAX - 1
    stand_in.look()
    assert stand_in.dead.empty()
    stand_in.clock.now += 1
    error = stand_in.dead.get(timeout=WAIT_S)
    assert isinstance(error, Unavailable) and "60 s" in error.detail
    assert stand_in.ended.get(timeout=WAIT_S) == 1


def test_one_without_room_is_busy_for_longer(stand_in):
    stand_in.has_room = False
    stand_in.hang()
    stand_in.clock.now += BUSY_S_MAX - 1
    stand_in.look()
    assert stand_in.dead.empty()
    stand_in.clock.now += 1
    assert isinstance(stand_in.dead.get(timeout=WAIT_S), Unavailable)


def test_one_without_executors_is_given_up_though_its_jvm_answers(stand_in):
    stand_in.has_room, stand_in.alone = False, True
    stand_in.hang()
    stand_in.clock.now += ALONE_S_MAX - 1
    stand_in.look()
    stand_in.alone = False  # one came
    stand_in.look()
    stand_in.alone = True
    stand_in.look()
    stand_in.clock.now += ALONE_S_MAX - 1
    stand_in.look()
    assert stand_in.dead.empty()
    stand_in.clock.now += 1
    error = stand_in.dead.get(timeout=WAIT_S)
    assert isinstance(error, SparkEnded) and "no executor for 120 s" in error.detail


def test_one_that_does_not_even_say_what_it_runs_is_dead(stand_in):
    stand_in.has_room = False
    stand_in.saying.clear()
    stand_in.answering.clear()
    assert stand_in.looked.acquire(timeout=WAIT_S) or True
    assert stand_in.asked.acquire(timeout=WAIT_S)
    while stand_in.heart._looking_since is None:
        threading.Event().wait(0.001)
    stand_in.clock.now += IDLE_S_MAX
    assert isinstance(stand_in.dead.get(timeout=WAIT_S), Unavailable)


@pytest.mark.parametrize("code", [3, 52])
def test_the_end_of_the_jvm_is_told_with_its_code(stand_in, code):
    stand_in.code = code
    assert stand_in.dead.get(timeout=WAIT_S).detail == f"exit code {code}, out of memory"


def test_who_fails_because_the_jvm_ended_hears_so_at_once(stand_in, monkeypatch):
    stand_in.close()  # nobody looks
    threading.Timer(0.1, setattr, (stand_in, "code", 137)).start()
    found = stand_in.heart.last_word()
    assert isinstance(found, SparkEnded) and found.detail == "exit code 137"
    monkeypatch.setattr(heartbeat, "LAST_WORD_S", 0.05)
    stand_in.code = None
    assert stand_in.heart.last_word() is None


def test_nothing_is_told_once_it_is_closed(stand_in):
    stand_in.close()
    stand_in.code = 0
    stand_in.heart.close()
    assert stand_in.dead.empty() and stand_in.ended.empty()


@pytest.mark.spark
def test_what_it_asks_of_spark(spark):
    from controllers.compute.session import watched

    asked = watched(spark)
    asked.beat()
    assert asked.idle() and not asked.alone()
    assert asked.exit_code() is None
