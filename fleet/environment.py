"""``python -m fleet.environment --kafka … --env NAME --replication-factor N``: make an environment, or find it made.

Done once, before the processes that need it; running it again changes nothing.  An environment that is replicated
otherwise is refused: its topics keep the copies that they were made with, whatever is asked for later.
"""

from __future__ import annotations

import argparse
import json
import logging

from catalog_log.bootstrap import create_environment
from controllers.command_topic import replication_factor
from journal.errors import FatalLog, TidemarkError
from journal.names import TopicNames
from journal.process import common_arguments, leave, setup_logging

log = logging.getLogger("fleet.environment")


def parser() -> argparse.ArgumentParser:
    made = common_arguments(argparse.ArgumentParser(prog="python -m fleet.environment", description=__doc__))
    made.add_argument("--replication-factor", type=int, default=3, metavar="N",
                      help="brokers that keep each record (default: %(default)s)")  # fmt: skip
    return made


def make(bootstrap: str, names: TopicNames, replication: int) -> bool:
    """Whether this call made it.  Raises ``Unavailable``, or ``FatalLog`` if it is not as it must be."""
    made = create_environment(bootstrap, names, replication)
    found = replication_factor(bootstrap, names)
    if found != replication:
        raise FatalLog(
            f"environment {names.env} keeps {found} copies of each record, not {replication}",
            hint="ask for as many as it has, or add copies with kafka-reassign-partitions",
        )
    return made


def main() -> int:
    options = parser().parse_args()
    setup_logging("environment")
    try:
        made = make(options.kafka, TopicNames(options.env), options.replication_factor)
    except TidemarkError as error:
        log.error(error.message, extra={"detail": error.detail, "hint": error.hint})
        return 1
    print(json.dumps({"event": "done", "env": options.env, "made": made}), flush=True)
    return 0


if __name__ == "__main__":
    leave(main())
