"""What every Tidemark process does alike: structured logs on stderr, one ready line on stdout, a clean stop.

A log line is one JSON object; a process is quiet unless something happened that a person should know.  The ready
line is how a supervisor learns that a child serves: it waits for the line, never for a time.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import logging
import os
import signal
import sys
import threading
import time

STOP_TIMEOUT_S = 20.0
"""From the order to stop to the end of the process, at the latest: twice the grace that a supervisor gives.  Anything
may be killed at any time here, so a process that cannot end (a library that waits for a broker that is away) is ended,
and says where each of its threads stood."""

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


def announce_ready(**fields: object) -> None:
    """Print the one ready line on stdout: ``{"event": "ready", …}``."""
    print(json.dumps({"event": "ready", "pid": os.getpid(), **fields}), flush=True)


def stop_event() -> threading.Event:
    """An event that SIGTERM and SIGINT set; and that is set when the parent that asked for it goes away.

    From then on the process ends within ``STOP_TIMEOUT_S``: by itself, or with exit code 1 and its threads' stacks on
    stderr.

    A supervisor that is killed with -9 cannot stop its children, so a child started with ``TIDEMARK_PARENT_PIPE=1``
    reads its stdin, which the supervisor holds open, and takes end-of-file as the order to stop.
    """
    stopped = threading.Event()

    def stop() -> None:
        faulthandler.dump_traceback_later(STOP_TIMEOUT_S, exit=True)
        stopped.set()

    for signum in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signum, lambda *_: stop())
    if os.environ.get("TIDEMARK_PARENT_PIPE") == "1":

        def watch() -> None:
            try:
                while os.read(0, 4096):
                    pass
            except OSError:
                pass
            stop()

        threading.Thread(target=watch, name="parent-pipe", daemon=True).start()
    return stopped


def common_arguments(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """The arguments that every process of an environment takes."""
    parser.add_argument("--kafka", required=True, metavar="HOST:PORT[,…]", help="bootstrap servers")
    parser.add_argument("--env", default="tidemark", help="prefix of all topics (default: %(default)s)")
    return parser
