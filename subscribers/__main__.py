"""``python -m subscribers --kafka HOST:PORT --env NAME --controller NAME``: feed one controller its commands."""

from __future__ import annotations

import argparse
import asyncio
import logging
import threading

from controllers.command_topic import open_command_topic
from journal.kafka import KafkaTransport
from journal.names import TopicNames
from journal.process import (
    announce_ready,
    close_all,
    common_arguments,
    leave,
    look_for_garbage_less,
    outcome,
    setup_logging,
    stop_event,
)
from journal.topics import verify_journal
from subscribers import worker

log = logging.getLogger("subscribers")

CLOSE_TIMEOUT_S = 2.0
"""For the client of Kafka: a producer's watchdog.  With ``worker.LEAVE_S`` it stays below the 10 s after which a
supervisor kills."""


def parser() -> argparse.ArgumentParser:
    made = common_arguments(argparse.ArgumentParser(prog="python -m subscribers", description=__doc__))
    made.add_argument("--controller", required=True, metavar="NAME", help="storage or compute-<cluster>")
    return made


def main() -> int:
    options = parser().parse_args()
    setup_logging(f"subscriber-{options.controller}")
    look_for_garbage_less()
    stopped = stop_event()
    return outcome(lambda: _serve(options.kafka, TopicNames(options.env), options.controller, stopped), log)


def _serve(bootstrap: str, names: TopicNames, controller: str, stopped: threading.Event) -> int:
    verify_journal(bootstrap, names.catalog)
    catalog = KafkaTransport(bootstrap, names.catalog)
    try:
        catalog_end = catalog.bounds()[1]
    finally:
        catalog.close()
    commands = open_command_topic(bootstrap, names, controller)
    commands.make_ready()  # or the first statement after a start would wait for half a second and more
    # Never closed: closing a runner joins the threads of its executor without a bound.  The process ends instead.
    runner = asyncio.Runner()
    try:
        failed = runner.run(
            worker.run(bootstrap, names, controller, commands, catalog_end, stopped,
                       lambda: announce_ready(controller=controller))
        )  # fmt: skip
    finally:
        close_all({"commands": commands.close}, CLOSE_TIMEOUT_S)
    if failed is not None:
        log.error(worker.describe(failed), exc_info=failed, extra={"detail": getattr(failed, "detail", None)})
        return 1
    return 0


if __name__ == "__main__":
    leave(main())
