"""Wrong clocks and slow, remembering disks: what a preloaded library does to a process, and what it leaves alone."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from embedded.java import find_java
from judge.live import shim
from judge.live.clock import HOUR_MS, Clocks, replace_text

REFUSAL = shim.unavailable()
pytestmark = pytest.mark.skipif(REFUSAL is not None, reason=str(REFUSAL))

CLOCK = """
import sys, time, datetime
for _ in sys.stdin:
    before = time.monotonic(); time.sleep(0.01); slept = time.monotonic() - before
    print(time.time(), time.time_ns() / 1e9, datetime.datetime.now().timestamp(), slept, flush=True)
"""


def ask(process: subprocess.Popen) -> list[float]:
    process.stdin.write("now\n")
    process.stdin.flush()
    return [float(word) for word in process.stdout.readline().split()]


def test_a_running_clock_is_set_forward_back_and_right_again(tmp_path: Path) -> None:
    clocks = Clocks(tmp_path / "clocks")
    argv, env = clocks.start_as("one", [sys.executable, "-c", CLOCK], {})
    with subprocess.Popen(argv, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        for ms in (0, HOUR_MS, -HOUR_MS, 0):
            clocks.shift("one", ms)
            clocks.shift("another", 7 * HOUR_MS)
            *told, slept = ask(process)
            assert all(abs(each - ms / 1000 - time.time()) < 30 for each in told)
            assert 0.005 < slept < 5
        process.stdin.close()


def test_javas_clock_is_set_too_and_its_monotonic_one_is_not(tmp_path: Path) -> None:
    clocks = Clocks(tmp_path / "clocks")
    clocks.shift("jvm", HOUR_MS)
    source = tmp_path / "Clock.java"
    source.write_text(
        "public class Clock { public static void main(String[] a) throws Exception { long n = System.nanoTime();"
        'Thread.sleep(10); System.out.println(System.currentTimeMillis() + " " + (System.nanoTime() - n)); } }'
    )
    argv, env = clocks.start_as("jvm", [find_java(), "-XX:TieredStopAtLevel=1", str(source)], {})
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60)
    if "compiler" in done.stderr:
        pytest.skip("this Java has no compiler to run a source with")
    told_ms, slept_ns = map(int, done.stdout.split())
    assert abs(told_ms - HOUR_MS - time.time() * 1000) < 60_000
    assert 5e6 < slept_ns < 30e9


def test_syncs_are_slowed_and_recorded_with_what_was_certain(tmp_path: Path) -> None:
    record, delay, data = tmp_path / "record", tmp_path / "delay", tmp_path / "data"
    script = (
        "import os, sys, time\nf = open(sys.argv[1], 'wb', buffering=0)\nf.write(b'x' * 100)\nos.fsync(f.fileno())\n"
        "f.write(b'y' * 50)\nos.fdatasync(f.fileno())\nf.write(b'lost')\nopen(sys.argv[2], 'w').write('300')\n"
        "t = time.monotonic(); os.fsync(f.fileno()); print(time.monotonic() - t)"
    )
    replace_text(delay, "0")
    env = shim.preloaded({}, shim.compiled("fsync"))
    env |= {"TIDEMARK_FSYNC_RECORD": str(record), "TIDEMARK_FSYNC_DELAY": str(delay)}
    command = [sys.executable, "-c", script, str(data), str(delay)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=30, check=True)
    assert float(done.stdout) >= 0.3
    inode = data.stat().st_ino
    assert record.read_text().splitlines() == [f"{size} {inode} {data}" for size in (100, 150, 154)]
