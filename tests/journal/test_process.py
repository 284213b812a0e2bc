"""A process that is told to stop ends, also where something in it cannot; so does one that stands still."""

from __future__ import annotations

import json
import logging
import signal
import subprocess
import sys

import pytest

from journal.errors import FatalLog, Indeterminate, Unavailable
from journal.process import TRY_AGAIN, outcome

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


UNSEEN = """
import signal, threading
from journal import process
stopped = process.stop_event()
elsewhere = threading.Thread(target=threading.Event().wait, daemon=True)
elsewhere.start()
# Once the main thread waits, another one has the signal: what also befalls one that comes just before the waiting.
threading.Timer(0.2, lambda: signal.pthread_kill(elsewhere.ident, signal.SIG{name})).start()
process.announce_ready()
stopped.wait()
process.leave(3)
"""


@pytest.mark.parametrize("name", ["TERM", "INT"])
def test_a_signal_that_the_main_thread_does_not_see_stops_the_process(name: str) -> None:
    done = subprocess.run([sys.executable, "-c", UNSEEN.format(name=name)], capture_output=True, timeout=20)
    assert done.returncode == 3, done.stderr.decode()


def said_at_the_end_of(script: str) -> bytes:
    """Of one that is ready, and ends itself after that."""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        try:
            assert b"ready" in child.stdout.readline(), "three times as long as it may stand still, and it only waited"
            _, said = child.communicate(timeout=30)
        finally:
            child.kill()
    assert child.returncode == 1
    return said


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
    assert b"holds_the_interpreter" in said_at_the_end_of(STANDING_STILL)


LOOP_STANDING_STILL = """
import asyncio, threading, time
from journal import process
process.STILL_S = 0.4
process.stop_event()
def keeps_the_loop():
    threading.Event().wait()
async def serve():
    process.watch_loop()
    await asyncio.sleep(1.2)
    process.announce_ready()
    keeps_the_loop()
asyncio.run(serve())
"""


def test_a_loop_that_stands_still_ends_its_process_and_one_that_only_waits_does_not() -> None:
    assert b"keeps_the_loop" in said_at_the_end_of(LOOP_STANDING_STILL)


STARTING_SLOWLY = """
import logging, threading
from journal import process
process.STILL_S, process.SLOW_START_S = 4.0, 0.1
process.setup_logging("slow")
process.stop_event()
def waits_for_somebody_to_lead():
    threading.Event().wait(1.5)
waits_for_somebody_to_lead()
process.announce_ready()
threading.Event().wait(2.5)
"""


def test_a_process_that_is_not_ready_says_where_it_stands_until_it_is() -> None:
    command = [sys.executable, "-c", STARTING_SLOWLY]
    said = subprocess.run(command, capture_output=True, timeout=30, check=True).stderr.decode()
    lines = [json.loads(line) for line in said.splitlines()]
    assert {line["event"] for line in lines} == {"not ready yet"}
    assert all("waits_for_somebody_to_lead" in "".join(line["stack"]) for line in lines), "or it was ready by then"


@pytest.mark.parametrize("error, code", [
    (Unavailable("nobody is there"), TRY_AGAIN),
    # A registration or a claim that nobody answered: at a first start this is no reason to give up.
    (Indeterminate("nobody answered"), TRY_AGAIN),
    (FatalLog("not the log of this catalog"), 1),
    (ZeroDivisionError("of ours"), 1),
])  # fmt: skip
def test_a_start_that_nobody_answered_may_be_tried_again(error: Exception, code: int) -> None:
    def run() -> int:
        raise error

    assert outcome(run, logging.getLogger("test")) == code
