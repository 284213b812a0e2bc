"""Options of the commands that run a stack, or find one that runs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from collection.topic_keeper import add_partitions
from embedded.data_dir import read_run
from embedded.layout import STATE
from embedded.ports import HOST
from journal.doors import add_insecure
from journal.errors import Unavailable

if TYPE_CHECKING:
    from embedded.stack import Settings

DATA = STATE / "data"
DEMO_DATA = STATE / "demo"


def add_stack_options(parser: argparse.ArgumentParser, data: Path, env: str) -> None:
    """The options of a command that starts a stack."""
    parser.add_argument("--adapters", type=int, default=1, metavar="N", help="adapters to run, on consecutive ports")
    parser.add_argument("--port", type=int, default=6875, help="port of the first adapter (default: %(default)s)")
    parser.add_argument("--webhook-port", type=int, metavar="PORT",
                        help="take rows over HTTP: port of the first adapter for that (default: off)")  # fmt: skip
    parser.add_argument("--host", default=HOST, help="address the adapters listen on (default: %(default)s)")
    parser.add_argument("--password-file", type=Path, metavar="FILE",
                        help="ask for the password in its first line (default: TIDEMARK_PASSWORD_FILE)")  # fmt: skip
    add_insecure(parser)
    parser.add_argument("--data", type=Path, default=data, metavar="DIR", help="data and logs (default: %(default)s)")
    parser.add_argument("--kafka", metavar="HOST:PORT[,…]", help="use this Kafka cluster instead of an own broker")
    parser.add_argument("--broker-port", type=int, metavar="PORT",
                        help="port of the own broker (default: 9092, or any free one)")  # fmt: skip
    parser.add_argument("--spark-master", metavar="URL", help="a Spark cluster's master (default: a local one)")
    parser.add_argument("--store", metavar="URL",
                        help="where settled rows go: file:///a/directory, s3://bucket/prefix?region=R (default: in the "
                             "data directory; with --kafka nowhere, they stay on topics)")  # fmt: skip
    parser.add_argument("--stand-by", action="store_true",
                        help="run a second compute, which takes over where the first one is gone (0.6 GB)")  # fmt: skip
    add_partitions(parser)
    parser.add_argument("--env", default=env, help="environment: the prefix of all topics (default: %(default)s)")
    parser.add_argument("--fresh", action="store_true", help="forget what is there and start over")


def settings_from(arguments: argparse.Namespace) -> Settings:
    """The stack's settings.  Imported here: commands that only look need none of what a stack needs."""
    from embedded.stack import Settings

    return Settings(
        data=arguments.data, env=arguments.env, adapters=arguments.adapters, host=arguments.host, port=arguments.port,
        webhook_port=arguments.webhook_port,
        broker_port=arguments.broker_port, kafka=arguments.kafka, spark_master=arguments.spark_master,
        store=arguments.store, fresh=arguments.fresh, password_file=arguments.password_file,
        insecure=arguments.insecure, partitions=arguments.partitions, stand_by=arguments.stand_by,
    )  # fmt: skip


def add_find_options(parser: argparse.ArgumentParser) -> None:
    """The options of a command that looks at a stack that runs."""
    parser.add_argument("--data", type=Path, metavar="DIR", help="the running stack's data directory")
    parser.add_argument("--kafka", metavar="HOST:PORT[,…]", help="bootstrap servers (default: the running stack's)")
    parser.add_argument("--env", help="environment (default: the running stack's)")


def find_run(data: Path | None) -> dict | None:
    """What runs on ``data``; without it, on the directory of ``up`` or else of ``demo``."""
    for path in [data] if data else [DATA, DEMO_DATA]:
        if found := read_run(path):
            return found
    return None


def find_kafka(arguments: argparse.Namespace) -> tuple[str, str, dict | None]:
    """Bootstrap servers, environment and, if it is one of this machine's, the running stack."""
    run = None if arguments.kafka else find_run(arguments.data)
    if not run and not arguments.kafka:
        raise Unavailable("nothing runs here", hint="start it with `tidemark up`, or name a cluster with --kafka")
    return arguments.kafka or run["kafka"], arguments.env or (run or {}).get("env") or "tidemark", run
