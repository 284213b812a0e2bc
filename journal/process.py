"""What every Tidemark process does alike: structured logs on stderr, one ready line on stdout, a clean stop.

A log line is one JSON object; a process is quiet unless something happened that a person should know.  The ready
line is how a supervisor learns that a child serves: it waits for the line, never for a time.
"""

from __future__ import annotations

import argparse
import asyncio
import faulthandler
import gc
import json
import logging
import os
import queue
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from typing import NoReturn

from journal.errors import Indeterminate, TidemarkError, Unavailable

log = logging.getLogger(__name__)

TRY_AGAIN = 75
"""Exit code of a process that somebody did not answer in time, or that does not know the answer; EX_TEMPFAIL of
sysexits.h."""

STOP_SIGNALS = frozenset({signal.SIGTERM, signal.SIGINT})

STOP_TIMEOUT_S = 20.0
"""From the order to stop to the end of the process, at the latest: twice the grace that a supervisor gives.  Anything
may be killed at any time here, so a process that cannot end (a library that waits for a broker that is away) is ended,
and says where each of its threads stood."""

STILL_S = 30.0
"""A process in which no Python ran for so long is ended too, and says where it stood.

One call of a library that keeps the interpreter's lock is enough.  librdkafka makes a client by waiting for its own
thread; where the wall clock is set back just then the waiting misses that it was told, and goes on until the old time
comes round again, for an hour (seen with a clock thrown to and fro, in ``rd_kafka_new``).  Others serve meanwhile, so
that this is longer than any pause that a busy machine makes of itself: ten seconds were seen at a load of sixty.
"""

SLOW_START_S = 45.0
"""A process that is not ready after so long, and each time that has passed again, says where its main thread stands:
four times what Spark takes on an idle machine.  Who waits for it gives up after three minutes, and then has the log."""

RESERVED = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime"}


class _JsonLines(logging.Formatter):
    def __init__(self, process: str) -> None:
        super().__init__()
        self._process = process

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "ts": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "process": self._process,
            "logger": record.name,
            "event": record.getMessage(),
        }
        line.update({k: v for k, v in record.__dict__.items() if k not in RESERVED})
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def setup_logging(process: str) -> None:
    """Send structured logs to stderr.  Level from ``TIDEMARK_LOG`` (default ``info``; libraries at ``warning``)."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonLines(process))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    level = os.environ.get("TIDEMARK_LOG", "info").upper()
    for ours in ("journal", "catalog_log", "oracle", "collection", "sql", "controllers", "subscribers", "adapter"):
        logging.getLogger(ours).setLevel(level)


_ready = threading.Event()

_beaten_at: list[float] = []
"""When the loop that is watched ran last, by the monotonic clock; empty: none is."""


def announce_ready(**fields: object) -> None:
    """Print the one ready line on stdout: ``{"event": "ready", …}``."""
    _ready.set()
    print(json.dumps({"event": "ready", "pid": os.getpid(), **fields}), flush=True)


def watch_loop() -> None:
    """Look after the running loop as after the process: where nothing of it ran for ``STILL_S`` the process ends.

    For processes that do nothing but what one loop does.  Threads of a library go on beside a loop that stands still,
    and so does the timer that notices a process that does.
    """
    loop = asyncio.get_running_loop()

    def beat() -> None:
        _beaten_at[:] = [time.monotonic()]
        loop.call_later(STILL_S / 8, beat)

    beat()


def stop_event() -> threading.Event:
    """An event that SIGTERM and SIGINT set; and that is set when the parent that asked for it goes away.

    From then on the process ends within ``STOP_TIMEOUT_S``: by itself, or with exit code 1 and its threads' stacks on
    stderr.  Until then it ends in the same way where it stands still for ``STILL_S``.

    A supervisor that is killed with -9 cannot stop its children, so a child started with ``TIDEMARK_PARENT_PIPE=1``
    reads its stdin, which the supervisor holds open, and takes end-of-file as the order to stop.

    Who is not ready after ``SLOW_START_S`` says where it stands, again and again.
    """
    stopped = threading.Event()
    # A signal may find the main thread inside the event, holding its lock: setting it there would wait for ever for
    # that lock.  This queue's put may be called anywhere.
    orders: queue.SimpleQueue[None] = queue.SimpleQueue()

    def obey() -> None:
        began, told = time.monotonic(), 0
        while True:
            # The timer is C's and needs no interpreter; whoever sets it anew does.
            faulthandler.dump_traceback_later(STILL_S, exit=True)
            try:
                orders.get(timeout=STILL_S / 4)
                break
            except queue.Empty:
                if _beaten_at and time.monotonic() - _beaten_at[0] > STILL_S:
                    faulthandler.dump_traceback()
                    os._exit(1)
                passed_s = time.monotonic() - began
                if not _ready.is_set() and passed_s > (told + 1) * SLOW_START_S:
                    told += 1
                    _tell_where(passed_s)
        faulthandler.dump_traceback_later(STOP_TIMEOUT_S, exit=True)
        stopped.set()

    threading.Thread(target=obey, name="stop", daemon=True).start()
    for signum in STOP_SIGNALS:
        signal.signal(signum, lambda *_: orders.put(None))
    _hear_signals(lambda: orders.put(None))
    if os.environ.get("TIDEMARK_PARENT_PIPE") == "1":

        def watch() -> None:
            try:
                while os.read(0, 4096):
                    pass
            except OSError:
                pass
            orders.put(None)

        threading.Thread(target=watch, name="parent-pipe", daemon=True).start()
    return stopped


def _hear_signals(stop: Callable[[], None]) -> None:
    """Call ``stop`` for a signal also where the main thread, which alone runs Python's handlers, does not look.

    One that comes between its last look and the call in which it then waits for ever is noticed by nobody else; so is
    one that the system hands to another thread.  C's handler writes the number at once, whichever thread it is in.
    """
    heard, told = os.pipe()
    os.set_blocking(told, False)  # as set_wakeup_fd wants it: a handler must not wait
    signal.set_wakeup_fd(told, warn_on_full_buffer=False)

    def listen() -> None:
        while True:
            if STOP_SIGNALS & set(os.read(heard, 64)):
                stop()

    threading.Thread(target=listen, name="signals", daemon=True).start()


def _tell_where(passed_s: float) -> None:
    frame = sys._current_frames().get(threading.main_thread().ident)
    stack = [] if frame is None else traceback.format_stack(frame)[-4:]
    log.warning("not ready yet", extra={"seconds": round(passed_s), "stack": stack})


def close_all(closers: Mapping[str, Callable[[], None]], timeout_s: float) -> list[str]:
    """Call all of ``closers`` at once and wait for them; the names of those that had not returned by ``timeout_s``.

    Those are left behind on daemon threads, with a warning that says where each stands.  Closing a Kafka client has no
    bound: it joins threads that librdkafka keeps by the wall clock, so that where the clock was set back by an hour a
    poll of a tenth of a second takes an hour, unless something arrives.
    """
    deadline = time.monotonic() + timeout_s
    threads: dict[str, threading.Thread] = {}
    for name, close in closers.items():
        threads[name] = threading.Thread(target=_close, args=(name, close), name=f"close-{name}", daemon=True)
        threads[name].start()
    left = []
    for name, thread in threads.items():
        thread.join(max(0.0, deadline - time.monotonic()))
        frame = sys._current_frames().get(thread.ident)
        if thread.is_alive() and frame is not None:
            left.append(name)
            log.warning("was left behind", extra={"what": name, "stack": traceback.format_stack(frame)[-4:]})
    return left


def _close(name: str, close: Callable[[], None]) -> None:
    try:
        close()
    except Exception:
        log.exception("could not be closed", extra={"what": name})


def outcome(run: Callable[[], int], logger: logging.Logger) -> int:
    """What ``run`` gives; else 1, or ``TRY_AGAIN`` where nobody answered, with a line in the log that says why."""
    try:
        return run()
    except TidemarkError as error:
        logger.error(error.message, extra={"detail": error.detail, "hint": error.hint})
        # Whoever does not know whether it registered, or claimed, begins anew and finds out.
        return TRY_AGAIN if isinstance(error, Unavailable | Indeterminate) else 1
    except Exception:
        logger.exception("stopped by an error of ours")
    return 1


YOUNG_OBJECTS = 20_000
"""Objects more than before from which Python looks for garbage in circles: a batch of messages of a source's, or what
is made of some hundred objects of the catalog.  There is none in either, and what is made of the catalog stays.  By
Python's own number, 700, it was a fifth of what judging messages takes, and a tenth to a quarter of what a CREATE TABLE
costs a subscriber, the more the more tables there are (measured)."""


def look_for_garbage_less() -> None:
    """For a process that folds or judges much and answers no session: see :data:`YOUNG_OBJECTS`."""
    gc.set_threshold(YOUNG_OBJECTS, *gc.get_threshold()[1:])


def leave(code: int) -> NoReturn:
    """End the process now with ``code``; everything that was printed or logged is out.

    The interpreter's own end joins the workers of every thread pool (``concurrent.futures``), without a bound.
    """
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            pass  # nobody reads it any more
    os._exit(code)


def common_arguments(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """The arguments that every process of an environment takes."""
    parser.add_argument("--kafka", required=True, metavar="HOST:PORT[,…]", help="bootstrap servers")
    parser.add_argument("--env", default="tidemark", help="prefix of all topics (default: %(default)s)")
    return parser
