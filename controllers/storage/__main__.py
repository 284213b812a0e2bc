"""``python -m controllers.storage --kafka HOST:PORT --env NAME``: keep topics, run sources, keep time."""

from __future__ import annotations

import argparse
import logging

import journal.without_pandas  # noqa: F401 - before anything makes an array
from collection.topic_keeper import add_partitions
from controllers.storage.controller import CHECKPOINT_EVERY, StorageController
from controllers.storage.sealer import GRACE_S, Waits
from controllers.storage.sealing import SEAL_ROWS
from controllers.storage.sharing import CARRIED_BYTES
from journal.doors import add_insecure, controller_refused
from journal.names import TopicNames
from journal.process import (
    announce_ready,
    common_arguments,
    leave,
    look_for_garbage_less,
    outcome,
    setup_logging,
    stop_event,
)
from oracle.checkpoints import RETAIN_MS, CheckpointPolicy
from segments.store import open_store

log = logging.getLogger("controllers.storage")


def _positive(text: str) -> int:
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return number


def parser() -> argparse.ArgumentParser:
    made = common_arguments(argparse.ArgumentParser(prog="python -m controllers.storage", description=__doc__))
    made.add_argument("--checkpoint-every", type=int, default=CHECKPOINT_EVERY, metavar="N",
                      help="records of the oracle's log between checkpoints (default: %(default)s)")  # fmt: skip
    made.add_argument("--store", metavar="URL",
                      help="where settled rows go: file:///a/directory, s3://bucket/prefix?region=R "
                           "(default: nowhere, they stay on topics)")  # fmt: skip
    made.add_argument("--seal-rows", type=_positive, default=SEAL_ROWS, metavar="N",
                      help="rows that may be left on a collection's topic (default: %(default)s)")  # fmt: skip
    made.add_argument("--carried", type=_positive, default=CARRIED_BYTES, metavar="BYTES",
                      help="rows that the oracle's log may carry once nobody tells apart when they came "
                           "(default: %(default)s)")  # fmt: skip
    made.add_argument("--retain", type=_positive, default=RETAIN_MS // 1000, metavar="SECONDS",
                      help="history that stays readable at every timestamp (default: %(default)s)")  # fmt: skip
    made.add_argument("--grace", type=_positive, default=int(GRACE_S), metavar="SECONDS",
                      help="how long rows in a file stay where they were, too (default: %(default)s)")  # fmt: skip
    made.add_argument("--host", default="127.0.0.1", help="address for its status server (default: %(default)s)")
    made.add_argument("--port", type=int, default=0, help="its port, 0 for any free one (default: %(default)s)")
    add_partitions(made)
    add_insecure(made)
    return made


def main() -> int:
    options = parser().parse_args()
    setup_logging("storage")
    if controller_refused("storage", options.host, options.insecure):
        return 2
    stopped = stop_event()
    look_for_garbage_less()

    def serve() -> int:
        store = open_store(options.store, options.env) if options.store else None
        controller = StorageController(
            options.kafka, TopicNames(options.env),
            checkpoint_every=options.checkpoint_every, host=options.host, port=options.port,
            store=store, seal_rows=options.seal_rows, carried=options.carried,
            policy=CheckpointPolicy(1000 * options.retain), waits=Waits(options.grace), partitions=options.partitions,
        )  # fmt: skip
        controller.run(stopped, lambda address: announce_ready(controller="storage", address=address))
        return 0

    return outcome(serve, log)


if __name__ == "__main__":
    leave(main())
