"""Run one command that must not outlive its parent: ``python -I -S tether.py --log FILE -- COMMAND…``.

Promises: when the parent closes our standard input (or dies, which closes it), or sends SIGTERM, the command gets its
own input closed and SIGTERM, ``--grace-s`` later SIGKILL, and so do all processes it left behind.  If this process
itself is killed, Linux kills the command.  Its standard error goes to a log file of bounded size.

Our standard output is the command's own, with one line of ours first: ``{"event": "started", "pid": …}``.  We exit with
the command's code, or 128 + the number of the signal that ended it.  Standard library only, and no package
imports, so that it starts in about 20 ms and costs few megabytes.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import selectors
import signal
import subprocess
import sys
import time

LOG_BYTES_MAX = 16 * 1024 * 1024
"""A log is rotated once (``FILE.1``) at this size: two of them hold days of our own lines and never fill a disk."""

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36


def _prctl(option: int, value: int) -> None:
    """Linux only; elsewhere the closed input alone ends the command."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


class _Log:
    """Append to a file; start over in a new one at ``LOG_BYTES_MAX``, keeping the one before."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._open()

    def _open(self) -> None:
        self._file = open(self._path, "ab", buffering=0)  # noqa: SIM115 (lives as long as the process)
        self._size = self._file.tell()

    def write(self, data: bytes) -> None:
        if self._size > LOG_BYTES_MAX:
            self._file.close()
            os.replace(self._path, self._path + ".1")
            self._open()
        try:
            self._size += self._file.write(data)
        except OSError:
            # A full disk must not stop the command from being ended: its lines are lost, its life is not.
            pass


def _descendants() -> list[int]:
    """Processes that were left behind and, we being their subreaper, are now our children."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children") as file:
            return [int(pid) for pid in file.read().split()]
    except OSError:
        return []


def _kill_group(pid: int, signum: int) -> None:
    try:
        os.killpg(pid, signum)
    except ProcessLookupError:
        pass


def _start(command: list[str]) -> subprocess.Popen[bytes]:
    """Start ``command`` in a process group of its own, tied to us by the kernel.

    The kernel's tie is to the *thread* that forks; this process has one thread.  If we died between fork and prctl,
    the command would have another parent by now, and ends itself.
    """
    parent = os.getpid()

    def tie() -> None:
        os.setpgid(0, 0)
        for signum in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
            signal.signal(signum, signal.SIG_DFL)
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)

    return subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=tie)


def run(command: list[str], log: _Log, grace_s: float) -> int:
    """Run ``command`` to its end or ours; the exit code to give."""
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    os.set_blocking(wake_read, False)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    asked_to_stop: list[int] = []
    for signum in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signum, lambda number, _frame: asked_to_stop.append(number))
    signal.signal(signal.SIGCHLD, lambda *_: None)
    _prctl(PR_SET_CHILD_SUBREAPER, 1)

    child = _start(command)
    os.write(1, json.dumps({"event": "started", "pid": child.pid}).encode() + b"\n")

    selector = selectors.DefaultSelector()
    selector.register(0, selectors.EVENT_READ, "parent")
    selector.register(wake_read, selectors.EVENT_READ, "wake")
    selector.register(child.stderr, selectors.EVENT_READ, "stderr")
    deadline: float | None = None
    while child.poll() is None:
        wait_s = None if deadline is None else max(0.0, deadline - time.monotonic())
        for key, _ in selector.select(wait_s):
            if key.data == "stderr":
                data = os.read(key.fd, 65536)
                log.write(data) if data else selector.unregister(child.stderr)
            elif key.data == "wake":
                os.read(key.fd, 4096)
            elif not os.read(key.fd, 4096):
                selector.unregister(0)
                asked_to_stop.append(0)
        if asked_to_stop and deadline is None:
            deadline = time.monotonic() + grace_s
            child.stdin.close()
            child.terminate()
        elif deadline is not None and time.monotonic() >= deadline:
            _kill_group(child.pid, signal.SIGKILL)
            child.wait()
    _kill_group(child.pid, signal.SIGKILL)
    _finish(child, log)
    return child.returncode if child.returncode >= 0 else 128 - child.returncode


def _finish(child: subprocess.Popen[bytes], log: _Log) -> None:
    """Write what is left of the error output and end whatever the command left behind."""
    while orphans := _descendants():
        for pid in orphans:
            try:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            except (ProcessLookupError, ChildProcessError):
                pass
    os.set_blocking(child.stderr.fileno(), False)
    try:
        while data := os.read(child.stderr.fileno(), 65536):
            log.write(data)
    except BlockingIOError:
        pass


def main() -> int:
    parser = argparse.ArgumentParser(description="run a command that ends when the parent does")
    parser.add_argument("--log", required=True, help="file for the command's standard error")
    parser.add_argument("--grace-s", type=float, default=10.0, help="seconds from SIGTERM to SIGKILL")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    command = arguments.command[1:] if arguments.command[:1] == ["--"] else arguments.command
    return run(command, _Log(arguments.log), arguments.grace_s)


if __name__ == "__main__":
    sys.exit(main())
