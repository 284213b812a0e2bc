"""CREATE TABLE in a catalog of 100 and of 100,000 objects, in turn: DDL must not slow with what is there already.

Both catalogs are environments of their own with an adapter and nothing else: DDL waits for no controller (I8), and a
hundred thousand tables would be as many topics if one listened.
"""

from __future__ import annotations

import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import psycopg

from bench.figure import Figure, interleaved_ms, p50
from catalog_log import model, records
from catalog_log.bootstrap import NEXT_ITEM_ID, create_environment
from catalog_log.log import CatalogLog
from catalog_log.model import Setting
from catalog_log.objects import Column, Item, Table
from embedded.ports import HOST, free_ports
from journal.names import TopicNames

NAME = "CREATE TABLE among 100,000 objects, p50"
FEW, MANY = 100, 100_000
STATEMENTS = 300
PROPOSAL_LEN = 5_000
"""Objects in one proposal while filling a catalog: half a MiB of tables, more of views; it may hold four MiB."""

START_S = 120
"""An adapter folds 100,000 objects in a second or two; a busy machine may take many times that."""


def figure(bootstrap: str) -> Figure:
    with ExitStack() as stack:
        many, few = (stack.enter_context(_adapter(bootstrap, count)) for count in (MANY, FEW))
        ours, limit = interleaved_ms(_creates(many), _creates(few), STATEMENTS)
    what = "the same among 100 objects"
    return Figure(NAME, p50(ours), p50(limit), what, "ms", "less", STATEMENTS, aim="within 10 %")


def _creates(connection: psycopg.Connection) -> Callable[[], float]:
    numbers = iter(range(10**9))

    def once() -> float:
        begun = time.perf_counter()
        connection.execute(f"CREATE TABLE c{next(numbers)} (a int)")
        return time.perf_counter() - begun

    return once


@contextmanager
def _adapter(bootstrap: str, objects: int) -> Iterator[psycopg.Connection]:
    """A session of an adapter on a new environment of ``objects`` tables."""
    names, port = TopicNames(f"bench-{uuid.uuid4().hex[:8]}"), free_ports(1)[0]
    create_environment(bootstrap, names, 1)
    _fill(bootstrap, names, objects)
    command = [sys.executable, "-m", "adapter", "--kafka", bootstrap, "--env", names.env, "--port", str(port)]
    process = subprocess.Popen([*command, "--no-ddl-topic"], stdout=subprocess.PIPE, text=True)
    try:
        ready = process.stdout.readline()  # its announcement; nothing comes if it ends instead
        if not ready:
            raise RuntimeError(f"the adapter ended with code {process.wait(START_S)}")
        with psycopg.connect(f"postgresql://tidemark@{HOST}:{port}/tidemark", autocommit=True) as connection:
            yield connection
    finally:
        process.terminate()
        process.wait(START_S)


def _fill(bootstrap: str, names: TopicNames, objects: int) -> None:
    columns = (Column("k", "int4"), Column("v", "text"))
    catalog = CatalogLog.open(bootstrap, names, "bench")
    try:
        add_items(catalog, objects, lambda n: Table(
            f"u{n}", "s1", f"table_{n}", f"CREATE TABLE table_{n} (k int, v text)", columns
        ))  # fmt: skip
    finally:
        catalog.close()


def add_items(catalog: CatalogLog, count: int, make: Callable[[int], Item]) -> None:
    """Append ``count`` items that ``make`` makes of the numbers that their ids are to have, in proposals that fit."""
    first = int(catalog.image.get(model.SETTINGS, NEXT_ITEM_ID).value)
    for lower in range(first, first + count, PROPOSAL_LEN):
        upper = min(lower + PROPOSAL_LEN, first + count)
        updates = [records.put(model.ITEMS, item.id, item) for item in map(make, range(lower, upper))]
        updates.append(records.put(model.SETTINGS, NEXT_ITEM_ID, Setting(str(upper))))
        at = catalog.upper()
        catalog.compare_and_append(at, at + 1, updates).result()
