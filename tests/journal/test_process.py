"""A process that is told to stop ends, also where something in it cannot; so does one that stands still."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

HANGING = """
import threading
from journal import process
process.STOP_TIMEOUT_S = 0.3
stopped = process.stop_event()
process.announce_ready()
stopped.wait()
def waits_for_what_never_comes():
    threading.Event().wait()
waits_for_what_never_comes()
"""


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_a_process_that_cannot_end_is_ended_and_says_where_it_stood(signum: int) -> None:
    with subprocess.Popen([sys.executable, "-c", HANGING], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        try:
            assert b"ready" in child.stdout.readline()
            child.send_signal(signum)
            _, said = child.communicate(timeout=30)
        finally:
            child.kill()
    assert child.returncode == 1
    assert b"waits_for_what_never_comes" in said


STANDING_STILL = """
import ctypes, sys, threading, time
from journal import process
process.STILL_S = 0.4
process.stop_event()
time.sleep(1.2)
process.announce_ready()
def holds_the_interpreter():
    ctypes.PyDLL(None).sleep(60)
threading.Thread(target=holds_the_interpreter).start()
time.sleep(60)
"""


def test_a_process_that_stands_still_is_ended_and_one_that_only_waits_is_not() -> None:
    command = [sys.executable, "-c", STANDING_STILL]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        try:
            assert b"ready" in child.stdout.readline(), "three times as long as it may stand still, and it only waited"
            _, said = child.communicate(timeout=30)
        finally:
            child.kill()
    assert child.returncode == 1
    assert b"holds_the_interpreter" in said
