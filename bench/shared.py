"""``python -m bench.shared``: many tables of one row each, and what these cost the brokers and every process.

On a broker of its own, with a storage controller: rows are committed as an adapter commits small ones, and everything
is counted once what came is told apart no more.  Counts hold wherever it runs.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import closing
from pathlib import Path

from bench.brokers import broker_in
from bench.objects import add_items
from catalog_log.bootstrap import create_environment
from catalog_log.log import CatalogLog
from catalog_log.objects import Column, Table, numbered
from collection.binding import Inline
from collection.columns import table_from_rows, with_diff
from collection.rows import encode
from controllers.storage.controller import StorageController
from journal import clients
from journal.names import TopicNames
from journal.process import setup_logging
from oracle.checkpoints import CheckpointPolicy
from oracle.client import Oracle
from oracle.image import dump
from oracle.model import CommitPart
from segments.image import dump_segments
from segments.log import SegmentsLog
from segments.store import directory_of, open_store

COLUMNS = numbered((Column("k", "int4"), Column("v", "text")))
UNDER_WAY = 500
RETAIN_MS = 20_000
"""History that is told apart: less than by default, so that it does not take as long."""
QUIET_S = 40.0
ENDS_S = 900.0


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m bench.shared", description=__doc__)
    options.add_argument("--tables", type=int, default=30_000, metavar="N", help="(default: %(default)s)")
    tables = options.parse_args().tables
    setup_logging("bench")
    with tempfile.TemporaryDirectory(prefix="tidemark-bench-") as directory, broker_in(Path(directory)) as bootstrap:
        print(json.dumps(_measured(bootstrap, Path(directory), tables), indent=2))
    return 0


def _measured(bootstrap: str, directory: Path, tables: int) -> dict[str, object]:
    names = TopicNames("bench")
    create_environment(bootstrap, names, 1)
    with closing(CatalogLog.open(bootstrap, names, "bench")) as catalog:
        add_items(catalog, tables, lambda n: Table(f"u{n}", "s1", f"t{n}", "", COLUMNS))
        first = int(min(each.id[1:] for each in catalog.image.objects() if isinstance(each, Table)))
        upper = catalog.upper()
    store = open_store((directory / "store").as_uri(), names.env)
    stopped, ready = threading.Event(), threading.Event()
    controller = StorageController(bootstrap, names, store=store, policy=CheckpointPolicy(retain_ms=RETAIN_MS))
    serving = threading.Thread(target=controller.run, args=(stopped, lambda _: ready.set()), daemon=True)
    serving.start()
    ready.wait(ENDS_S)
    oracle = Oracle.open(bootstrap, names, "bench", lambda: upper)
    segments = SegmentsLog.open(bootstrap, names, "bench")
    try:
        oracle.raise_format().result()
        begun = time.monotonic()
        _write(oracle, [f"u{n}" for n in range(first, first + tables)])
        written = time.monotonic()
        _until_quiet(lambda: (oracle.state.held_bytes, segments.state.next_offset, _topics(bootstrap, names)))
        files = list(store.below(directory_of(segments.topic_id)).files())
        return {
            "tables": tables, "written in s": round(written - begun, 1),
            "settled after s": round(time.monotonic() - written - QUIET_S, 1),
            "topics of tables": _topics(bootstrap, names), "files": len(files),
            "bytes of files": sum(each.size for each in files),
            "bytes carried": oracle.state.held_bytes, "image of the oracle's log": len(dump(oracle.state)),
            "image of the log of segments": len(dump_segments(segments.state)),
            "bytes of the broker": sum(each.stat().st_size for each in (directory / "broker").rglob("*.log")),
        }  # fmt: skip
    finally:
        stopped.set()
        serving.join(60)
        segments.close()
        oracle.close()


def _write(oracle: Oracle, names: list[str]) -> None:
    under_way: list[Future] = []
    for name in names:
        [batch] = encode(COLUMNS, with_diff(table_from_rows(COLUMNS, [(1, name.ljust(100, "-"))])), name)
        under_way.append(oracle.commit(CommitPart(name, inline=(Inline(name, batch.value, name, batch.rows),))))
        if len(under_way) == UNDER_WAY:
            for each in under_way:
                each.result()
            under_way = []
    for each in under_way:
        each.result()


def _until_quiet(look: Callable[[], object]) -> None:
    """Until nothing has changed for a while."""
    seen, since = look(), time.monotonic()
    ends = since + ENDS_S
    while time.monotonic() < min(since + QUIET_S, ends):
        time.sleep(1)
        now = look()
        if now != seen:
            seen, since = now, time.monotonic()
            print(now, file=sys.stderr)


def _topics(bootstrap: str, names: TopicNames) -> int:
    with closing(clients.make_consumer(bootstrap)) as consumer:
        return sum(name.startswith(names.data("")) for name in consumer.list_topics(timeout=60).topics)


if __name__ == "__main__":
    raise SystemExit(main())
