"""A client process and its parent: lines of JSON one way, words the other, and nothing that outlives the run.

Promises: a client whose parent dies, however, ends by itself (its standard input closes); :meth:`ClientProcess.end`
returns when the process is gone.  A client may be slow, stuck or dead; the parent is never stuck with it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from pathlib import Path
from typing import Any

from embedded.layout import ROOT

END_GRACE_S = 5.0
"""From closing a client's input to SIGKILL: it has only a file to flush."""

TAIL_BYTES = 4000


class ClientFailed(Exception):
    """A client process ended without having done its work, or did not do it in time: a failure of the harness."""


def python(module: str, *arguments: str) -> tuple[list[str], dict[str, str]]:
    """The command and added environment of one of our own modules."""
    path = os.pathsep.join(p for p in (str(ROOT), os.environ.get("PYTHONPATH", "")) if p)
    return [sys.executable, "-P", "-m", module, *arguments], {"PYTHONPATH": path, "PYTHONUNBUFFERED": "1"}


class ClientProcess:
    """A started client.  ``on_message`` gets each JSON object that it prints, in a thread of its own."""

    def __init__(
        self,
        name: str,
        argv: list[str],
        env: dict[str, str],
        log: Path,
        on_message: Callable[[dict[str, Any]], None] = lambda _message: None,
    ) -> None:
        self.name = name
        self.log = log
        self.exited: Future[int] = Future()
        self._on_message = on_message
        self._said: dict[str, Future[dict[str, Any]]] = {}
        self._lock = threading.Lock()
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as stderr:
            self._process = subprocess.Popen(
                argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, env={**os.environ, **env},
                # Ctrl-C goes to the whole foreground group; clients end when their parent says so.
                start_new_session=True, text=True, cwd=log.parent,
            )  # fmt: skip
        threading.Thread(target=self._read, name=f"stdout-{name}", daemon=True).start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def _read(self) -> None:
        for line in self._process.stdout:
            try:
                message = json.loads(line)
            except ValueError:
                continue
            if isinstance(message, dict):
                if "event" in message:
                    self._hear(message)
                self._on_message(message)
        code = self._process.wait()
        with self._lock:
            self.exited.set_result(code)
            for waited in self._said.values():
                if not waited.done():
                    waited.set_exception(self._gone(code))

    def _hear(self, message: dict[str, Any]) -> None:
        with self._lock:
            waited = self._said.setdefault(message["event"], Future())
            if not waited.done():
                waited.set_result(message)

    def _gone(self, code: int) -> ClientFailed:
        return ClientFailed(f"{self.name} ended with code {code}: {self.tail()}")

    def tail(self) -> str:
        """The end of what it wrote to its standard error."""
        try:
            return self.log.read_bytes()[-TAIL_BYTES:].decode(errors="replace").strip()
        except OSError:
            return ""

    def wait_for(self, event: str, timeout_s: float) -> dict[str, Any]:
        """The first message ``{"event": event, …}``.  Raises ``ClientFailed`` where it ends first or takes longer."""
        with self._lock:
            if event not in self._said and self.exited.done():
                raise self._gone(self.exited.result())
            waited = self._said.setdefault(event, Future())
        try:
            return waited.result(timeout_s)
        except FutureTimeout:
            raise ClientFailed(f"{self.name} did not say {event!r} within {timeout_s:g} s: {self.tail()}") from None

    def send(self, word: str) -> None:
        """Tell it one word.  Raises ``ClientFailed`` where it is gone."""
        try:
            self._process.stdin.write(word + "\n")
            self._process.stdin.flush()
        except (OSError, ValueError):
            raise ClientFailed(f"{self.name} is gone: {self.tail()}") from None

    def end(self) -> int:
        """End it, politely for ``END_GRACE_S``.  Its exit code."""
        try:
            self._process.stdin.close()
        except OSError:
            pass  # it is gone already
        try:
            return self.exited.result(END_GRACE_S)
        except FutureTimeout:
            self._process.kill()
            return self.exited.result(END_GRACE_S)


class Parent:
    """The other side: what a client process knows of its parent."""

    def __init__(self, on_end: Callable[[], None]) -> None:
        """``on_end`` is called, at most once and from a thread of ours, when the parent is gone or wants us gone;
        the process exits when it returns."""
        self._words: dict[str, threading.Event] = {}
        self._lock = threading.Lock()
        self._print_lock = threading.Lock()
        self._on_end = on_end
        self._ended = False
        for signum in (signal.SIGTERM, signal.SIGINT):
            signal.signal(signum, lambda *_: threading.Thread(target=self._end, daemon=True).start())
        threading.Thread(target=self._watch, name="parent", daemon=True).start()

    def _watch(self) -> None:
        for line in sys.stdin:
            self.word(line.strip()).set()
        self._end()

    def _end(self) -> None:
        with self._lock:
            if self._ended:
                return
            self._ended = True
        try:
            self._on_end()
        finally:
            # Threads may hang in a client's call, and nothing they could still say would be heard.
            os._exit(3)

    def word(self, word: str) -> threading.Event:
        """Set once the parent has said ``word``."""
        with self._lock:
            return self._words.setdefault(word, threading.Event())

    def say(self, **message: Any) -> None:
        with self._print_lock:
            try:
                sys.stdout.write(json.dumps(message) + "\n")
                sys.stdout.flush()
            except OSError:
                pass  # the parent is gone: _watch ends us
