"""One child process: started through the tether, known by its ready line, ended by closing a pipe.

Promises: :meth:`Child.stop` returns only when the process is gone; a child whose owner is killed ends by itself (see
``embedded/tether.py``).  It does not promise to restart anything: that is the supervisor's.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass, field
from pathlib import Path

from journal.errors import Unavailable

TETHER = Path(__file__).with_name("tether.py")
GRACE_S = 10.0
"""From SIGTERM to SIGKILL.  A broker closes its logs in about 1 s, a Spark application in 2 to 4 s (measured)."""

TAIL_LINES = 12
"""How much of a log an error message quotes: a Java stack's head fits."""


def ready_json(line: str) -> dict | None:
    """The fields of a ready line (``journal.process.announce_ready``), or ``None`` for any other line."""
    if not line.startswith("{"):
        return None
    try:
        fields = json.loads(line)
    except ValueError:
        return None
    return fields if isinstance(fields, dict) and fields.get("event") == "ready" else None


@dataclass(frozen=True)
class ChildSpec:
    """How to start a process and how to tell that it serves."""

    name: str
    argv: Sequence[str]
    log: Path
    env: Mapping[str, str] = field(default_factory=dict)
    """Added to our own environment."""
    ready: Callable[[str], dict | None] = ready_json
    """From a line of its standard output to what the ready line says, or ``None`` if that is another line."""
    ready_timeout_s: float = 60.0
    cwd: Path | None = None


class Child:
    """A started process.  Use from any thread."""

    def __init__(self, spec: ChildSpec) -> None:
        self.spec = spec
        self.ready: Future[dict] = Future()
        self.exited: Future[int] = Future()
        self._pid: Future[int] = Future()
        self._last_lines: deque[str] = deque(maxlen=TAIL_LINES)
        spec.log.parent.mkdir(parents=True, exist_ok=True)
        self._tether = subprocess.Popen(
            [
                sys.executable,
                "-I",
                "-S",
                str(TETHER),
                "--log",
                str(spec.log),
                "--grace-s",
                str(GRACE_S),
                "--",
                *spec.argv,
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "TIDEMARK_PARENT_PIPE": "1", **spec.env},
            cwd=spec.cwd,
            # Ctrl-C in a terminal goes to the whole foreground group; children end in our order, not all at once.
            start_new_session=True,
            text=True,
            errors="replace",
        )
        self._reader = threading.Thread(target=self._read, name=f"stdout-{spec.name}", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """The process's own id (not the tether's)."""
        return self._pid.result(timeout=10)

    def _read(self) -> None:
        for line in self._tether.stdout:
            line = line.rstrip("\n")
            self._last_lines.append(line)
            if not self._pid.done():
                try:
                    fields = json.loads(line)
                except ValueError:
                    fields = None
                if isinstance(fields, dict) and fields.get("event") == "started":
                    self._pid.set_result(fields["pid"])
                    continue
            if not self.ready.done() and (fields := self.spec.ready(line)) is not None:
                self.ready.set_result(fields)
        code = self._tether.wait()
        gone = Unavailable(f"{self.spec.name} ended with code {code}", detail=self.tail(), hint=f"see {self.spec.log}")
        for future in (self._pid, self.ready):
            if not future.done():
                future.set_exception(gone)
        self.exited.set_result(code)

    def tail(self) -> str:
        """The last lines it printed or logged, for a message."""
        try:
            with self.spec.log.open("rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - 8192))
                lines = file.read().decode(errors="replace").splitlines()[-TAIL_LINES:]
        except OSError:
            lines = []
        return "\n".join(lines or self._last_lines)

    def wait_ready(self) -> dict:
        """What the ready line says.  Raises ``Unavailable`` where it ended or did not say so in time."""
        try:
            return self.ready.result(timeout=self.spec.ready_timeout_s)
        except FutureTimeout:
            raise Unavailable(
                f"{self.spec.name} was not ready within {self.spec.ready_timeout_s:.0f} s",
                detail=self.tail(),
                hint=f"see {self.spec.log}",
            ) from None

    def order_stop(self) -> None:
        """Ask it to end, without waiting."""
        try:
            self._tether.stdin.close()
        except OSError:
            pass

    def stop(self) -> int:
        """End it: politely, then by SIGKILL.  Its exit code."""
        self.order_stop()
        try:
            return self.exited.result(timeout=GRACE_S + 5)
        except FutureTimeout:
            self._tether.kill()
            return self.exited.result(timeout=5)
