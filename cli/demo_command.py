"""``tidemark demo``: a stack, New York's flights of 2013, and two views that stay exact."""

from __future__ import annotations

import argparse
import math

from cli.output import FAILED, OK, StartProgress, console, print_error, print_json
from cli.stack_options import DEMO_DATA, add_stack_options, settings_from
from cli.up_command import print_connect, wait_failed
from demo.run import CORRECTIONS_PER_S, Demo, DemoSettings
from embedded.frontiers import FrontierReader, frontiers_line
from embedded.stack import running
from journal.errors import InvalidUsage, TidemarkError

SPEED = 3000.0
"""Rows per second by default: the year in under two minutes, at which two cores keep the views a second or so fresh."""


def configure(parser: argparse.ArgumentParser) -> None:
    add_stack_options(parser, DEMO_DATA, "demo")
    parser.add_argument("--sample", type=int, metavar="N", help="replay N flights (default: all 336,776)")
    parser.add_argument("--speed", type=float, default=SPEED, metavar="ROWS/S",
                        help="flights per second, 0 for as fast as it goes (default: %(default)g)")  # fmt: skip
    parser.add_argument("--corrections", type=float, default=CORRECTIONS_PER_S, metavar="N",
                        help="transactions per second that correct flights, 0 for none (%(default)g)")  # fmt: skip
    parser.add_argument("--stay", action="store_true", help="keep everything up afterwards, until Ctrl-C")


def run(arguments: argparse.Namespace) -> int:
    rates = (arguments.speed, arguments.corrections)
    if not all(0 <= each < math.inf for each in rates) or (arguments.sample is not None and arguments.sample < 1):
        raise InvalidUsage("--speed and --corrections take 0 or more, --sample 1 or more")
    out = console(arguments.json)
    progress = StartProgress(out)
    summary: dict = {"command": "demo", "exact": False}
    code = FAILED
    try:
        with running(settings_from(arguments), progress) as stack:
            out.print(f"ready after {progress.finish():.1f} s")
            print_connect(out, stack)
            settings = DemoSettings(
                stack.kafka, stack.dsn(), arguments.env, arguments.sample, arguments.speed or None,
                arguments.corrections or None,
            )  # fmt: skip
            reader = FrontierReader(stack.kafka, stack.names, "demo")
            try:
                report = Demo(settings, out, lambda: frontiers_line(reader.now())).run()
            finally:
                reader.close()
            summary |= report.as_json()
            code = OK if report.exact else FAILED
            out.print(closing_line(summary))
            if arguments.stay:
                out.print("Ctrl-C ends it")
                print_connect(out, stack)
                print_error(wait_failed(stack))
                code = FAILED
    except KeyboardInterrupt:
        out.print("stopped")
    except TidemarkError as error:
        print_error(error)
        summary["error"] = {"sqlstate": error.sqlstate, "message": error.message}
        if isinstance(error, InvalidUsage):
            raise
    finally:
        progress.finish()
    if arguments.json:
        print_json(summary)
    return code


def closing_line(summary: dict) -> str:
    fresh = summary["freshness_ms"]
    verdict = (
        "[green]every answer was exact[/]" if summary["exact"] else f"[red]{len(summary['wrong'])} answers wrong[/]"
    )
    return (
        f"{summary['rows']:,} flights at {summary['rows_per_s']:,.0f} rows/s, freshness p50 {fresh['p50']:.0f} ms "
        f"p95 {fresh['p95']:.0f} ms, {summary['corrections']:,} corrections, {summary['answers']} answers on the way: "
        f"{verdict}"
    )
