"""``python -m fleet.spark master|worker …``: Spark's own cluster, for a compute controller's ``--spark-master``.

Becomes the JVM that it starts: signals and the exit code are Spark's own.  A master that is started anew in the same
directory remembers its workers and applications.
"""

from __future__ import annotations

import argparse
import os
import socket
import sys
from pathlib import Path

from embedded.standalone import MASTER_PORT, master_command, worker_command, worker_environment
from journal.errors import TidemarkError

MASTER_WEB_PORT, WORKER_WEB_PORT = 8080, 8081
"""Spark's own choices; ``fleet.health spark`` asks there."""

CORES, MEMORY_MB = 1, 1_024
"""Of a worker: one executor as Spark has it by itself."""


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m fleet.spark", description=__doc__)
    kinds = made.add_subparsers(dest="kind", required=True)
    master = kinds.add_parser("master", help="gives drivers executors")
    master.add_argument("--port", type=int, default=MASTER_PORT, help="for drivers and workers (default: %(default)s)")
    worker = kinds.add_parser("worker", help="starts executors beside itself")
    worker.add_argument("--master", required=True, metavar="URL", help="spark://HOST:PORT")
    worker.add_argument("--cores", type=int, default=CORES, help="of all executors together (default: %(default)s)")
    worker.add_argument("--memory-mb", type=int, default=MEMORY_MB, metavar="MB",
                        help="of all executors together (default: %(default)s)")  # fmt: skip
    for each, port in ((master, MASTER_WEB_PORT), (worker, WORKER_WEB_PORT)):
        each.add_argument("--host", help="the address that others reach it by (default: what this host is called)")
        each.add_argument("--web-port", type=int, default=port, help="for health checks (default: %(default)s)")
        each.add_argument("--data", type=Path, required=True, metavar="DIR", help="directory for its files")
    return made


def command(options: argparse.Namespace) -> tuple[list[str], dict[str, str]]:
    """What to become, and what that finds in its environment besides.  Raises ``InvalidUsage``."""
    host = options.host or socket.gethostname()
    if options.kind == "master":
        made = master_command(host, options.port, web_port=options.web_port, memory=options.data / "recovery")
        return made, {}
    made = worker_command(
        options.master, host, cores=options.cores, memory_mb=options.memory_mb, work=options.data / "work",
        web_port=options.web_port,
    )  # fmt: skip
    return made, worker_environment()


def main() -> int:
    options = parser().parse_args()
    try:
        argv, environment = command(options)
        for name in ("recovery", "work"):
            (options.data / name).mkdir(parents=True, exist_ok=True)
    except (TidemarkError, OSError) as error:
        print(f"spark: {error}", file=sys.stderr)
        return 1
    os.execve(argv[0], argv, {**os.environ, **environment})


if __name__ == "__main__":
    sys.exit(main())
