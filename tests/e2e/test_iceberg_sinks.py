"""Sinks into Iceberg that statements make: two tables and a view, read by pyiceberg and by DuckDB at one timestamp."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import duckdb
import psycopg
import pytest

from embedded.stack import Stack
from tests.e2e.conftest import Steps
from tests.rest_catalog import Catalog

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.long]

BACK_S_MAX = 120.0
NAMES = ("checking", "savings", "owners")


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    with closing(Catalog(tmp_path)) as found:
        yield found


def through(catalog: Catalog, name: str) -> int:
    if ("lake", name) not in catalog.tables:
        return 0
    return int(catalog.client().load_table(("lake", name)).properties.get("tidemark.through", 0))


def wait_for(catalog: Catalog, ts: int) -> None:
    until = time.monotonic() + BACK_S_MAX
    while any(through(catalog, each) < ts for each in NAMES):
        assert time.monotonic() < until, {each: through(catalog, each) for each in NAMES}
        time.sleep(0.1)


def as_of(catalog: Catalog, name: str, ts: int) -> list[tuple] | None:
    """The rows of a table at a timestamp through which it is complete; ``None`` where it did not begin yet."""
    table = catalog.client().load_table(("lake", name))
    found = [each for each in table.snapshots() if int(each.summary["tidemark.ts"]) <= ts]
    if not found:
        return None
    newest = max(found, key=lambda each: each.sequence_number)
    scan = table.scan(snapshot_id=newest.snapshot_id)
    rows = [tuple(row.values()) for row in scan.to_arrow().to_pylist()]
    files = [task.file.file_path.removeprefix("file://") for task in scan.plan_files()]
    with duckdb.connect() as engine:
        read = engine.execute("select * from read_parquet(?)", [files]).fetchall() if files else []
    assert Counter(read) == Counter(rows), "DuckDB reads the same files"
    return sorted(rows)


def test_tables_and_a_view_agree_at_each_timestamp_that_all_of_them_have(
    stack: Stack, steps: Steps, catalog: Catalog
) -> None:
    draw = random.Random(8)
    with psycopg.connect(stack.dsn(), autocommit=True) as session:
        run = session.execute
        run("create schema lake")
        run("set search_path to lake")
        for each in NAMES[:2]:
            run(f"create table {each} (id int not null, amount numeric(12,2), \"last change\" timestamptz)")
            run(f"insert into {each} select n, 100, now() from generate_series(1, 10) n")
        run("create materialized view owners as select c.id, c.amount + s.amount total from checking c "
            "join savings s on s.id = c.id")  # fmt: skip
        run(f"create connection c to iceberg catalog (catalog type = 'rest', url = '{catalog.url}')")
        run("validate connection c")
        with pytest.raises(psycopg.errors.UndefinedColumn):
            run("create sink x from owners into iceberg catalog connection c (namespace 'lake', table 'x') "
                "key (amount) mode upsert")  # fmt: skip
        for each in NAMES:
            into = f"into iceberg catalog connection c (namespace 'lake', table '{each}') key (id) mode upsert"
            run(f"create sink s_{each} from {each} {into} with (commit interval '1s')")
        for number in range(20):
            moved, one, other = draw.randint(-50, 50), draw.randint(1, 10), draw.randint(1, 10)
            with session.transaction():
                run("update checking set amount = amount + %s, \"last change\" = now() where id = %s", (moved, one))
                run("update savings set amount = amount - %s, \"last change\" = now() where id = %s", (moved, other))
            if number == 12:
                wait_for(catalog, 1)
                seen = steps.count("storage", "serves again")
                os.kill(stack.supervisor.pids()["storage"], signal.SIGKILL)
        assert steps.wait_for_another("storage", "serves again", seen, BACK_S_MAX)
        last = run("select max(last_change) from tm_internal.frontiers where object_name in ('checking', 'savings')")
        wait_for(catalog, last.fetchone()[0])
        status = run("select name, topic, status, error from tm_internal.sink_status where name like 's_%' order by 1")
        assert status.fetchall() == [(f"s_{each}", f"lake.{each}", "running", None) for each in sorted(NAMES)]
        end = min(through(catalog, each) for each in NAMES)
        stamps = {int(each.summary["tidemark.ts"]) for name in NAMES
                  for each in catalog.client().load_table(("lake", name)).snapshots()}  # fmt: skip
        looked = 0
        whole = [each for each in sorted(stamps) if each <= end]
        for ts in {*whole[-2:], *draw.sample(whole, min(3, len(whole)))}:  # each of them is read seven times
            checking, savings, owners = (as_of(catalog, each, ts) for each in NAMES)
            if None in (checking, savings, owners):
                continue
            looked += 1
            assert sum(row[1] for row in checking) + sum(row[1] for row in savings) == 2000, ts
            assert sum(row[1] for row in owners) == 2000, ts
            for name, rows in zip(NAMES, (checking, savings, owners), strict=True):
                assert sorted(run(f"select * from {name} as of {ts}").fetchall()) == rows, (name, ts)
        assert looked >= 2
        run("drop schema lake cascade")
