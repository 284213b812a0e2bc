"""``tidemark up``: everything in the foreground until Ctrl-C."""

from __future__ import annotations

import argparse
from concurrent.futures import TimeoutError as FutureTimeout

from rich.console import Console

from cli.output import FAILED, OK, StartProgress, console, print_error, print_json
from cli.stack_options import DATA, add_stack_options, settings_from
from embedded.archives import BROKER, SPARK, find_archive
from embedded.stack import Stack, running
from journal.errors import TidemarkError


def configure(parser: argparse.ArgumentParser) -> None:
    add_stack_options(parser, DATA, "tidemark")


def print_connect(out: Console, stack: Stack) -> None:
    """How to reach it."""
    host = stack.settings.host
    for port in stack.ports:
        out.print(f"  SQL    psql -h {host} -p {port} -U tidemark tidemark")
    if stack.settings.webhook_port is not None:
        for number in range(stack.settings.adapters):
            at = stack.settings.webhook_port + number
            out.print(f"  HTTP   http://{host}:{at}/webhook/tidemark/<schema>/<source>")
    out.print(f"  Kafka  {stack.kafka}, DDL on topic {stack.names.ddl}")
    out.print(f"  logs   {stack.settings.data / 'logs'}")


def run(arguments: argparse.Namespace) -> int:
    out = console(arguments.json)
    progress = StartProgress(out)
    summary: dict = {"command": "up", "env": arguments.env}
    code = OK
    try:
        with running(settings_from(arguments), progress) as stack:
            seconds = progress.finish()
            summary |= {"ready_s": round(seconds, 1), "kafka": stack.kafka, "ports": stack.ports}
            out.print(f"ready after {seconds:.1f} s, Ctrl-C ends it")
            print_connect(out, stack)
            if not all(map(find_archive, (BROKER, SPARK))):
                out.print("  later  ./tidemark setup makes starts shorter by a quarter")
            try:
                error = wait_failed(stack)
                print_error(error)
                code = FAILED
            except KeyboardInterrupt:
                out.print("stopping")
    except KeyboardInterrupt:
        progress.finish()
        out.print("stopped")
    finally:
        progress.finish()
    if arguments.json:
        print_json(summary | {"ok": code == OK})
    return code


def wait_failed(stack: Stack) -> TidemarkError:
    """The reason why a process was given up.  Waits for ever; Ctrl-C ends it."""
    while True:
        try:
            # A wait without a timeout would not let the signal's exception in on every platform.
            return stack.supervisor.failed.result(timeout=3600)
        except FutureTimeout:
            continue
