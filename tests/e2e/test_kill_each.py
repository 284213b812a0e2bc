"""kill -9 each process in turn while the demo runs: every answer on the way and at the end is exact (I10).

Beside it transfers come in, as in the internal-consistency exam: no version of any view over them is impossible.
"""

from __future__ import annotations

import os
import signal
import threading

import pytest
from rich.console import Console

from demo.run import Demo, DemoSettings
from embedded.stack import Stack
from judge.exam.exam import Exam, Outcome
from judge.exam.versions import JOINS
from tests.e2e.conftest import Steps

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.long]
"""Everyday's judged run (``tests/judge/test_judge_live.py``) hurts every process too."""

ROWS, SPEED = 24_000, 400
"""A minute of rows: longer than killing and restarting everything takes."""
TRANSFERS, TRANSFERS_SPEED = 6_000, 100
BACK_S_MAX = 120.0


@pytest.mark.timeout(600)
def test_every_process_is_killed_in_turn_and_every_answer_is_exact(stack: Stack, steps: Steps) -> None:
    console = Console(stderr=True)
    demo = Demo(DemoSettings(stack.kafka, stack.dsn(), stack.settings.env, sample=ROWS, speed=SPEED), console)
    exam = Exam(stack.kafka, stack.dsn(), stack.settings.env, TRANSFERS, seed=4)
    exam.prepare()
    raised: list[BaseException] = []
    outcomes: list[Outcome] = []

    def judged(work) -> threading.Thread:
        def run() -> None:
            try:
                work()
            except BaseException as error:  # judged below, in the test's own thread
                raised.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        return thread

    running = judged(demo.run)
    sitting = judged(lambda: outcomes.append(exam.sit(TRANSFERS_SPEED)))
    killed = []
    try:
        for name in stack.supervisor.pids():
            if not running.is_alive():
                break
            seen = steps.count(name, "serves again")
            os.kill(stack.supervisor.pids()[name], signal.SIGKILL)
            assert steps.wait_for_another(name, "serves again", seen, BACK_S_MAX), f"{name} did not come back"
            killed.append(name)
    finally:
        running.join(timeout=400)
        sitting.join(timeout=150)
    if raised:
        raise raised[0]
    exam.close()  # the stack is everybody's
    assert not running.is_alive() and not sitting.is_alive()
    subscribers = {"subscriber-storage", "subscriber-compute-default"}
    assert {"broker", "compute", "storage", "adapter-1", *subscribers} <= set(killed)
    assert demo.report.exact, demo.report.wrong
    assert demo.report.reconnects > 0
    assert demo.report.rows == ROWS
    [outcome] = outcomes
    assert outcome.passed, (outcome.versions, outcome.wrong)
    joined = {view: numbers.tolist() for view, numbers in outcome.versions.joined.items()}
    assert outcome.versions.seen >= 2 and joined == dict.fromkeys(JOINS, [*range(TRANSFERS)])
