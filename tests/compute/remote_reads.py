"""Rows of a relation read by a Spark whose executors are processes of their own: the body of ``test_remote.py``.

A program of its own, since a process has one Spark.  Its executors find nothing of ours but what is sent to them.
"""

from __future__ import annotations

import sys
import time
import zlib
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from catalog_log.objects import Column
from collection.columns import DIFF
from controllers.changes import stamp
from controllers.compute.relation import Relation
from controllers.compute.running import MUCH_ROWS, answered, cores
from controllers.compute.session import scratch_directory, serve_files, start_session, stop_session
from controllers.compute.spark_text import parse, text
from journal.timestamps import DataTs
from segments.model import Segment, new_path
from segments.parquet import LocalFile, encode
from sql.views.spark_gate import name_relations

MASTER = "local-cluster[2,1,1024]"
PART = 100_000


def rows(first: int, count: int, width: int = 30) -> pa.Table:
    """``count`` rows from number ``first`` on: some 40 bytes and ``width`` each."""
    keys = pa.array(range(first, first + count), pa.int64())
    words = pc.binary_join_element_wise(pa.scalar("row number "), keys.cast(pa.string()), pa.scalar("x" * width), "")
    return pa.table({"k": keys, "s": words, DIFF: pa.repeat(pa.scalar(1, pa.int64()), count)})


def file(directory: Path, columns: Sequence[Column], first: int, count: int = PART, width: int = 30) -> LocalFile:
    """A file of the store with the rows from number ``first`` on."""
    table = rows(first, count, width)
    data = encode(columns, table)
    path = directory / f"settled_{first}.parquet"
    path.write_bytes(data)
    return LocalFile(
        Segment(new_path("u2", 0, f"{first:x}"), len(data), table.nbytes, count, count, True, zlib.crc32(data)), path
    )


def main(directory: str, wanted: str) -> None:
    count = int(wanted)
    scratch = scratch_directory(Path(directory))
    spark = start_session(MASTER, scratch)
    files = serve_files(spark, scratch / "chunks")
    assert files is not None, "its executors are not elsewhere"
    relation = Relation(spark, "u1", [Column("k", "int8"), Column("s", "text")], scratch / "chunks", files.uri)

    def check(query: str, expected: int) -> None:
        started = time.perf_counter()
        sql = f"SELECT COUNT(*), COUNT(DISTINCT k % 1000), SUM(k), MAX(LENGTH(s)) FROM ({query})"
        found = tuple(spark.sql(sql).collect()[0])
        assert found[0] == expected and found[1] == 1000 and found[2] == expected * (expected - 1) // 2, found
        print(f"{expected} rows read in {time.perf_counter() - started:.1f} s", flush=True)

    def read(ts: int, expected: int) -> None:
        with relation.snapshot(DataTs(ts)) as snapshot:
            check(text(snapshot.rows()), expected)

    # As inserts bring them: read now and then, sealed and merged in between, read again.
    ts = 0
    for first in range(0, count, PART):
        ts += 1
        relation.append([stamp(rows(first, PART), ts, relation.types)], DataTs(ts + 1))
        if first % (4 * PART) == 0:
            read(ts, first + PART)
        relation.maintain()
    read(ts, count)
    # As one statement brings them: the change of a tick, and a tail that nobody has sealed yet.
    whole = relation.delta(DataTs(0), DataTs(ts))
    check(text(relation.local(whole, "tm_change")), count)
    relation.handing.take_back("tm_change")
    relation.append([stamp(rows(count, count), ts + 1, relation.types)], DataTs(ts + 2))
    read(ts + 1, 2 * count)
    # What runs in Python on the executors finds our modules there.
    with relation.snapshot(DataTs(ts)) as snapshot:
        few = f"SELECT s FROM ({text(snapshot.rows())}) WHERE k < 1000"
        assert spark.sql(f"SELECT COUNT(DISTINCT tm_quoted_identifier(s)) FROM ({few})").collect()[0][0] == 1000
    relation.close()
    # What is settled they read as it is, and shuffle it in parts for all of them.
    columns = (Column("k", "int8", id=1), Column("s", "text", id=2))
    settled = Relation(spark, "u2", columns, scratch / "chunks", files.uri)
    held = [file(scratch / "chunks", columns, first) for first in range(0, count, PART)]
    settled.load([], DataTs(11), DataTs(10), held)
    assert cores(spark) == 2
    with settled.snapshot(DataTs(10)) as snapshot:
        grouped = parse("SELECT `k` % 1000 AS `g`, COUNT(*) AS `n` FROM `u2` AS `t` GROUP BY `k` % 1000")
        tree = name_relations(text(grouped), ("u2",), {"u2": snapshot.rows()})
        found = answered(spark, tree, MUCH_ROWS)
    assert found.num_rows == 1000 and pc.sum(found.column(1)).as_py() == count
    settled.close()
    files.close()
    stop_session(spark)
    print("done", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
