"""A hundred million settled rows, as a cluster has them: loaded, summed up, and looked into, beside plain Spark.

In a process of its own (``python -m bench.settled DIRECTORY``), since a process has one Spark: both are asked by the
same session, in turns.  The files are what a sealer writes, without a store and a log around them.
"""

from __future__ import annotations

import json
import sys
import time
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.apart import told_by
from bench.figure import Figure, p50
from catalog_log.objects import Column, numbered
from collection.columns import DIFF, sql_type
from controllers.compute.sought import Sought, sought
from controllers.compute.spark_text import parse
from segments.model import Segment, new_path
from segments.parquet import LocalFile, encode, in_order
from segments.statistics import measured, packed
from sql.algebra.queries import plan_over
from trees.budget import bounded

FILES = 100
FILE_ROWS = 1_000_000
ROUNDS = 5
SINCE = 10
ENDS_S = 1200
"""Ten times what it takes."""

COLUMNS = numbered((
    Column("id", "int8"), Column("carrier", "text"), Column("dest", "text"), Column("delay", "int4"),
    Column("fare", "numeric(10,2)"),
))  # fmt: skip

LOAD = "100 M settled rows, loaded"
SUM = "a filtered aggregate over 100 M settled rows, p50"
FIND = "one row of 100 M settled rows by its key, p50"

FILTERED = "SELECT COUNT(*), SUM(`t`.`delay`) FROM {} AS `t` WHERE `t`.`carrier` = 'C3'"
FOUND = "SELECT `t`.`dest`, `t`.`fare` FROM {} AS `t` WHERE `t`.`id` = 12345678"


def figures(wanted: Callable[[str], bool]) -> list[Figure]:
    """Takes a minute and a half."""
    if not any(wanted(name) for name in (LOAD, SUM, FIND)):
        return []
    found = told_by("bench.settled", ENDS_S)
    told = {
        LOAD: Figure(LOAD, found["load"], found["read"], "zlib's check sum of the same bytes", "s", "less", 1,
                     f"{found['bytes'] / 1e6:.0f} MB"),
        SUM: Figure(SUM, p50(found["sum"]), p50(found["plain sum"]), "plain Spark on the same files", "ms", "less",
                    ROUNDS, "in turns, in one session", "ratio ≤ 1.2"),
        FIND: Figure(FIND, p50(found["find"]), p50(found["unpruned"]), "the same without the log's statistics", "ms",
                     "less", ROUNDS, f"plain Spark on the same files: {p50(found['plain find']):.0f} ms"),
    }  # fmt: skip
    return [figure for name, figure in told.items() if wanted(name)]


def main(directory: str) -> None:
    from controllers.compute.relation import Relation
    from controllers.compute.session import MASTER, scratch_directory, start_session, stop_session, warm_up
    from controllers.compute.spark_text import text
    from journal.timestamps import DataTs
    from sql.views.spark_gate import name_relations

    scratch = scratch_directory(Path(directory))
    files = [file(scratch / "chunks", n) for n in range(FILES)]
    spark = start_session(MASTER, scratch)
    warm_up(spark)
    relation = Relation(spark, "u1", COLUMNS, scratch / "chunks")

    def checked():
        for each in files:
            each.check()
            yield each

    begun = time.perf_counter()
    relation.load([], DataTs(SINCE + 1), DataTs(SINCE), checked())
    found: dict[str, object] = {"load": time.perf_counter() - begun, "bytes": sum(f.segment.size for f in files)}
    begun = time.perf_counter()
    for each in files:
        each.check()
    found["read"] = time.perf_counter() - begun
    plain = spark.read.parquet(*(str(each.path) for each in files))
    plain.selectExpr(*(f"c{c.id} AS {c.name}" for c in COLUMNS)).createOrReplaceTempView("plain")

    def ours(query: str, prune: bool = True) -> int:
        sql = query.format("`u1`")
        asked = seeks(sql) if prune else ()
        with relation.snapshot(DataTs(SINCE), asked) as snapshot:
            tree = name_relations(sql, ("u1",), {"u1": snapshot.rows()})
            return spark.sql(text(tree)).toArrow().num_rows

    def theirs(query: str) -> int:
        return spark.sql(query.format("plain")).toArrow().num_rows

    sides: dict[str, Callable[[], int]] = {
        "sum": lambda: ours(FILTERED), "plain sum": lambda: theirs(FILTERED), "find": lambda: ours(FOUND),
        "unpruned": lambda: ours(FOUND, False), "plain find": lambda: theirs(FOUND),
    }  # fmt: skip
    taken: dict[str, list[float]] = {name: [] for name in sides}
    for round_ in range(ROUNDS + 1):
        for name, side in sides.items():
            begun = time.perf_counter()
            assert side() == 1, name
            if round_:  # the first of each is warming up
                taken[name].append(1000 * (time.perf_counter() - begun))
    stop_session(spark)
    print(json.dumps({**found, **taken}))


def seeks(sql: str) -> Sequence[Sought]:
    """What a query over ``u1`` seeks in it, as a cluster reads it from the query's plan."""
    plan = bounded(plan_over)(parse(sql), {"u1": COLUMNS})
    types = {"u1": {c.name: sql_type(c.type) for c in COLUMNS}}
    return sought(plan.relation, types).get("u1", ())


def file(directory: Path, number: int) -> LocalFile:
    ids = np.arange(number * FILE_ROWS, (number + 1) * FILE_ROWS)
    fares = pc.cast(pa.array(ids * 17 % 900), pa.decimal128(19, 0)).cast(pa.decimal128(10, 2))
    table = pa.table({
        "id": ids, "carrier": pa.array([f"C{n}" for n in range(20)]).take(pa.array(ids % 20)),
        "dest": pa.array([f"D{n}" for n in range(300)]).take(pa.array(ids * 7919 % 300)),
        "delay": pa.array((ids * 31 % 90 - 15).astype(np.int32)), "fare": fares,
        DIFF: pa.repeat(pa.scalar(1, pa.int64()), len(ids)),
    })  # fmt: skip
    return written(directory / f"file_{number}.parquet", COLUMNS, table)


def written(path: Path, columns: Sequence[Column], table: pa.Table) -> LocalFile:
    """``table``, with diffs, as the file that a sealer makes of it."""
    table = in_order(columns, table)
    data = encode(columns, table)
    path.write_bytes(data)
    rows, net, where = len(table), pc.sum(table.column(DIFF)).as_py(), new_path("u1", SINCE, path.stem)
    segment = Segment(where, len(data), table.nbytes, rows, net, net == rows, zlib.crc32(data))
    return LocalFile(segment._replace(statistics=packed(measured(columns, table))), path)


if __name__ == "__main__":
    main(sys.argv[1])
