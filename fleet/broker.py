"""``python -m fleet.broker --node N --hosts A,B,C --cluster-id ID --data DIR``: one broker of a cluster.

Formats its directory the first time, then becomes Kafka: signals and the exit code are the broker's own.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from embedded.jars import ensure_jars
from embedded.layout import JARS
from fleet.member import CONTROLLER_PORT, PORT, Member
from journal.errors import InvalidUsage, TidemarkError


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m fleet.broker", description=__doc__)
    made.add_argument("--node", type=int, required=True, metavar="N", help="this broker's place among --hosts, from 1")
    made.add_argument("--hosts", required=True, metavar="A,B,C",
                      help="the hosts of all brokers, in the same order for each of them")  # fmt: skip
    made.add_argument("--cluster-id", required=True, metavar="ID", help="the same 22 characters for all of them")
    made.add_argument("--data", type=Path, required=True, metavar="DIR", help="directory for its data and its log")
    made.add_argument("--port", type=int, default=PORT, help="for clients and brokers (default: %(default)s)")
    made.add_argument("--controller-port", type=int, default=CONTROLLER_PORT,
                      help="for the quorum of controllers (default: %(default)s)")  # fmt: skip
    return made


def member(options: argparse.Namespace, jars: Path = JARS) -> Member:
    """The broker that ``options`` tell of.  Raises ``InvalidUsage``."""
    hosts = [host.strip() for host in options.hosts.split(",")]
    if not 1 <= options.node <= len(hosts):
        raise InvalidUsage(f"there is no node {options.node} among {len(hosts)} hosts")
    return Member(
        options.data, jars, hosts, options.node, options.cluster_id, port=options.port,
        controller_port=options.controller_port,
    )  # fmt: skip


def main() -> int:
    options = parser().parse_args()
    try:
        broker = member(options, ensure_jars(JARS, lambda line: print(line, file=sys.stderr)))
        command = broker.prepare().argv
    except TidemarkError as error:
        print(f"broker: {error.message}" + (f" ({error.hint or error.detail})" if error.hint or error.detail else ""),
              file=sys.stderr)  # fmt: skip
        return 1
    os.execv(command[0], command)


if __name__ == "__main__":
    sys.exit(main())
