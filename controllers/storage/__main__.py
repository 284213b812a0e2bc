"""``python -m controllers.storage --kafka HOST:PORT --env NAME``: keep topics, run sources, keep time."""

from __future__ import annotations

import argparse
import logging

from controllers.storage.controller import CHECKPOINT_EVERY, StorageController
from journal.errors import TidemarkError
from journal.names import TopicNames
from journal.process import announce_ready, common_arguments, leave, setup_logging, stop_event

log = logging.getLogger("controllers.storage")


def parser() -> argparse.ArgumentParser:
    made = common_arguments(argparse.ArgumentParser(prog="python -m controllers.storage", description=__doc__))
    made.add_argument("--checkpoint-every", type=int, default=CHECKPOINT_EVERY, metavar="N",
                      help="records of the oracle's log between checkpoints (default: %(default)s)")  # fmt: skip
    made.add_argument("--host", default="127.0.0.1", help="address for its status server (default: %(default)s)")
    made.add_argument("--port", type=int, default=0, help="its port, 0 for any free one (default: %(default)s)")
    return made


def main() -> int:
    options = parser().parse_args()
    setup_logging("storage")
    stopped = stop_event()
    try:
        controller = StorageController(options.kafka, TopicNames(options.env),
                                       checkpoint_every=options.checkpoint_every, host=options.host,
                                       port=options.port)  # fmt: skip
        controller.run(stopped, lambda address: announce_ready(controller="storage", address=address))
    except TidemarkError as error:
        log.error(error.message, extra={"detail": error.detail, "hint": error.hint})
        return 1
    except Exception:
        log.exception("stopped by an error of ours")
        return 1
    return 0


if __name__ == "__main__":
    leave(main())
