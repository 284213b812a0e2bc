"""``tidemark bench``: measure, print the table, write ``bench/RESULTS.md``."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from bench import (
    contention,
    copying,
    eight,
    executors,
    journals,
    judging,
    large_view,
    own_rows,
    planning,
    round_trips,
    segments,
    sessions,
    settled,
    starts,
    statements,
    topics,
    views,
)
from bench.brokers import broker_in
from bench.figure import Figure, table
from bench.tpcc import figures as tpcc
from embedded.ports import consecutive_ports, free_ports
from embedded.stack import Settings, Stack, running

RESULTS = Path(__file__).with_name("RESULTS.md")
GROUPS = ("journals", "statements", "sessions", "writes", "topics", "copies", "round-trips", "views", "starts")


def main(argv: list[str]) -> int:
    """Returns an exit code: 0 measured, 1 where something could not be, 2 wrong usage (from argparse)."""
    parser = argparse.ArgumentParser(
        prog="tidemark bench", description="Measure, each figure with its limit in the same run."
    )
    parser.add_argument("groups", nargs="*", metavar="GROUP", help="what to measure (default: everything)")
    parser.add_argument(
        "--sample", type=int, default=1_000_000, help="rows of the views' throughput run (default: %(default)s)"
    )
    parser.add_argument(
        "--only", action="append", default=[], metavar="TEXT", help="only figures whose name contains this (repeatable)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object at the end")
    arguments = parser.parse_args(argv)
    wanted = arguments.groups or list(GROUPS)
    measured: list[Figure] = []

    def chosen(name: str) -> bool:
        return not arguments.only or any(text.lower() in name.lower() for text in arguments.only)

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    failed: list[str] = []

    def measure(what: str, figures: Callable[[], list[Figure]]) -> None:
        """One that cannot be measured takes none of the others' minutes with it."""
        say(what)
        try:
            measured.extend(figures())
        except Exception:
            traceback.print_exc()
            failed.append(what.split(":")[0])

    if "journals" in wanted:
        measure("journals: compare-and-append, read_ts, contention, a large catalog; a broker alone",
                lambda: _of_a_broker(chosen))  # fmt: skip
    if {"statements", "sessions"} & set(wanted):
        with _stack() as stack:
            if "statements" in wanted:
                measure("statements: CREATE TABLE, INSERT, SELECT, one at a time",
                        lambda: statements.figures(stack.kafka, stack.dsn(), chosen))  # fmt: skip
                measure("planning: statements that are long, and beside one that is being planned",
                        lambda: planning.figures(stack.kafka, stack.dsn(), chosen))  # fmt: skip
            if "sessions" in wanted:
                measure("sessions: 64 at once, beside Postgres", lambda: sessions.figures(stack.dsn(), chosen))
    asked = any(map(chosen, (*contention.NAMES, *own_rows.NAMES, *tpcc.NAMES, *topics.NAMES)))
    if {"writes", "topics"} & set(wanted) and asked:
        with _stack(adapters=2) as stack:
            dsns = [stack.dsn(number) for number in range(2)]
            if "writes" in wanted:
                measure("writes: sessions that change rows at once, over two adapters, beside Postgres and etcd",
                        lambda: contention.figures(stack, chosen))  # fmt: skip
                measure("writes: statements by key in blocks that have written",
                        lambda: own_rows.figures(dsns[0], chosen))  # fmt: skip
                measure("writes: TPC-C's new-order and payment, beside Postgres", lambda: tpcc.figures(dsns, chosen))
            if "topics" in wanted:
                measure("topics: messages to rows and rows to messages", lambda: topics.figures(stack, chosen))
    for group, what, figures in (
        ("copies", "copies: a million rows in, beside Postgres", copying.figures),
        ("round-trips", "round trips: those that a statement waits for, counted where each takes 100 ms",
         round_trips.figures),
        ("views", "views: freshness, throughput, a read on Spark", partial(views.figures, arguments.sample)),
        ("views", "eight views: freshness", eight.figures),
        ("views", "segments: settled rows, read", segments.figures),
        ("views", "settled: a hundred million settled rows, beside plain Spark", settled.figures),
        ("views", "large view: twenty million rows put out, beside plain Spark", large_view.figures),
        ("views", "executors: a backlog by executors elsewhere, one and two, beside plain Spark", executors.figures),
        ("views", "judging: a source far behind, by executors elsewhere, beside its own thread", judging.figures),
        ("starts", "starts: warm, and from a fresh clone", starts.figures),
    ):  # fmt: skip
        if group in wanted:
            measure(what, partial(figures, chosen))
    if set(wanted) == set(GROUPS) and not arguments.only:
        RESULTS.write_text(report(measured, failed))
    print(table(measured), file=sys.stderr if arguments.json else sys.stdout)
    if arguments.json:
        print(json.dumps({"machine": machine(), "figures": [figure.as_json() for figure in measured]}), flush=True)
    if failed:
        say(f"not measured: {', '.join(failed)}")
    return 1 if failed else 0


@contextmanager
def _stack(adapters: int = 1) -> Iterator[Stack]:
    """One of its own, with that many adapters."""
    print("starting a stack of its own", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory(prefix="tidemark-bench-") as data:
        port, broker_port = consecutive_ports(adapters), free_ports(1)[0]
        settings = Settings(Path(data), "bench", adapters, port=port, broker_port=broker_port)
        with running(settings) as stack:
            yield stack


def _of_a_broker(chosen: Callable[[str], bool]) -> list[Figure]:
    with _broker() as kafka:
        return journals.figures(kafka, chosen)


@contextmanager
def _broker() -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="tidemark-bench-") as data, broker_in(Path(data)) as bootstrap:
        yield bootstrap


def machine() -> str:
    """Processor count, memory and versions: enough to know what kind of machine a figure is from."""
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    system = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    return f"{os.cpu_count()} cores, {memory_gib:.0f} GiB, {system}"


def report(measured: list[Figure], failed: Sequence[str] = ()) -> str:
    """The whole of ``bench/RESULTS.md``."""
    return (
        "# Results\n\n"
        f"Written by `./tidemark bench` on {datetime.now(UTC):%Y-%m-%d}; {machine()}.\n\n"
        "Each figure is held against a limit measured in the same run, in turn with it where that is possible; the\n"
        "machine is shared and noisy, so the ratio is what to quote. `better` says which way the ratio should go.\n"
        "What stands in the way of the aims that are not met is in [docs/performance.md](../docs/performance.md).\n\n"
        f"{table(measured)}\n" + (f"\nNot measured, for an error: {', '.join(failed)}.\n" if failed else "")
    )
