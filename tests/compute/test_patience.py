"""What takes too long in process is interrupted, and nothing else is."""

from __future__ import annotations

import threading

from controllers.compute.operators.process import _Patience


class Question:
    def __init__(self) -> None:
        self.interrupted = threading.Event()

    def interrupt(self) -> None:
        self.interrupted.set()


def test_what_runs_for_too_long_is_interrupted_however_many_do() -> None:
    patience = _Patience(0.05)
    for _ in range(3):  # also after it had nothing to look after
        questions = [Question() for _ in range(5)]
        for each in questions:
            patience.begin(each)
        assert all(each.interrupted.wait(20) for each in questions)
        for each in questions:
            patience.end(each)


def test_what_has_ended_is_not_and_a_later_one_is() -> None:
    patience = _Patience(0.2)
    over, late = Question(), Question()
    for _ in range(1_000):
        patience.begin(over)
        patience.end(over)
    patience.begin(late)
    assert late.interrupted.wait(20) and not over.interrupted.is_set()
