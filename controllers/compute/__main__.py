"""``python -m controllers.compute --kafka HOST:PORT --env NAME --cluster default --data DIR``: one cluster on Spark."""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path

from catalog_log.bootstrap import await_environment
from collection.topic_keeper import add_partitions
from controllers.spark_masters import check_store
from journal.doors import add_insecure, controller_refused
from journal.errors import InvalidUsage
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
from segments.store import open_store

log = logging.getLogger("controllers.compute")


def parser() -> argparse.ArgumentParser:
    made = common_arguments(argparse.ArgumentParser(prog="python -m controllers.compute", description=__doc__))
    made.add_argument("--cluster", default="default", help="the cluster to be (default: %(default)s)")
    made.add_argument("--spark-master", metavar="URL",
                      help="where spark runs (default: in this process, with 16 slots)")  # fmt: skip
    made.add_argument("--data", type=Path, required=True, help="directory for spark's scratch files")
    made.add_argument("--store", metavar="URL",
                      help="where settled rows are, as the storage controller is told (default: nowhere)")
    made.add_argument("--flight-host", default="127.0.0.1",
                      help="address to serve reads on; it has no authentication (default: %(default)s)")  # fmt: skip
    made.add_argument("--flight-port", type=int, default=0, help="port, 0 for any free one (default: %(default)s)")
    made.add_argument("--lookup-port", type=int, default=0,
                      help="port beside it for what indexes answer at once (default: any free one)")  # fmt: skip
    made.add_argument("--await-environment", type=float, default=0.0, metavar="SECONDS",
                      help="how long the environment may still be missing (default: not at all)")  # fmt: skip
    add_partitions(made)
    add_insecure(made)
    return made


def main() -> int:
    options = parser().parse_args()
    setup_logging(f"compute-{options.cluster}")
    look_for_garbage_less()
    if controller_refused(f"compute-{options.cluster}", options.flight_host, options.insecure):
        return 2
    try:
        check_store(options.spark_master, options.store, options.data)
    except InvalidUsage as error:
        print(f"compute-{options.cluster}: {error.message} ({error.hint})", file=sys.stderr)
        return 2
    stopped = stop_event()
    # Late, so that a wrong argument does not wait for Spark's own imports.
    from controllers.compute.controller import ComputeController
    from controllers.compute.session import MASTER, StartingSession
    from oracle.errors import StaleEpoch

    name = f"compute-{options.cluster}"
    names = TopicNames(options.env)

    def serve() -> int:
        store = open_store(options.store, options.env) if options.store else None
        spark = StartingSession(options.spark_master or MASTER, options.data)
        patience_s = options.await_environment
        if patience_s and not await_environment(options.kafka, names, patience_s, stopped):
            return 0
        try:
            controller = ComputeController(
                options.kafka, names, options.cluster, spark,
                host=options.flight_host, port=options.flight_port, lookup_port=options.lookup_port,
                store=store, partitions=options.partitions,
            )  # fmt: skip
            controller.run(
                stopped,
                lambda address: announce_ready(controller=name, address=address),
                lambda: announce_ready(controller=name, standing_by=True),
            )
        except StaleEpoch as fenced:
            why = {"detail": str(fenced)}
            log.error("fenced: another controller serves this cluster now; this one stops", extra=why)
            return 3
        return 0

    return outcome(serve, log)


if __name__ == "__main__":
    leave(main())
