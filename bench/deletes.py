"""What deletes cost readers of settled rows until they are merged: ``python -m bench.deletes``.

A million rows in a file of the store; 1, 10 and 50 % of them are taken back by rows with a negative diff in a file
behind it, as a sealer writes them, beside the same in one file without them, as compaction leaves it, and beside no
deletes.  Each is read by Spark in turns, in one session: its rows, and, where rows were taken back, its changes
(:mod:`plan.weighted`).  A bitmap would give the read of the plain file at best.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from bench.settled import COLUMNS, FILE_ROWS, SINCE, file, written
from collection.columns import DIFF, sql_type
from controllers.changes import consolidate
from plan import relations as r
from plan import scalars as s
from plan.calls import aggregate, call
from plan.types import TEXT
from segments.parquet import LocalFile

ROUNDS = 3
READ = r.Get("u1", tuple(each.name for each in COLUMNS), tuple(r.Kind(sql_type(each.type), True) for each in COLUMNS))
_, CARRIER, DEST, DELAY, FARE = map(READ.column, range(len(COLUMNS)))
_COUNT = aggregate("count", ())


def _query(relation: r.Relation) -> r.Query:
    return r.Query(relation, tuple(f"c{n}" for n in range(len(relation.columns))))


QUERIES = {
    "count": _query(r.Reduce(READ, (), (_COUNT,))),
    "filtered sum": _query(r.Reduce(r.Filter(READ, call("=", CARRIER, s.Literal(TEXT, False, "C3"))), (), (
        _COUNT, aggregate("sum", (DELAY,))))),
    "group by": _query(r.Reduce(READ, (DEST,), (_COUNT, aggregate("sum", (DELAY,))))),
    "group by, max": _query(r.Reduce(READ, (DEST,), (_COUNT, aggregate("max", (FARE,))))),
}  # fmt: skip


def rows_of(each: LocalFile) -> pa.Table:
    return pa.concat_tables(each.chunks(COLUMNS))


def main() -> None:
    from controllers.compute.peek_query import PeekQuery
    from controllers.compute.relation import Relation
    from controllers.compute.session import MASTER, scratch_directory, start_session, stop_session, warm_up
    from controllers.compute.spark_text import text
    from journal.timestamps import DataTs

    asked = {what: PeekQuery(query, 0) for what, query in QUERIES.items()}
    with tempfile.TemporaryDirectory(prefix="tidemark-bench-") as directory:
        scratch = scratch_directory(Path(directory))
        spark = start_session(MASTER, scratch)
        warm_up(spark)
        whole = rows_of(file(scratch / "chunks", 0))
        relations: dict[str, Relation] = {}
        compacting: dict[str, float] = {}

        def held(name: str, *tables: pa.Table) -> None:
            found = relations[name] = Relation(spark, f"u{len(relations)}", COLUMNS, scratch / "chunks")
            paths = (scratch / "chunks" / f"written_{100 * len(relations) + n}.parquet" for n in range(len(tables)))
            files = [written(path, COLUMNS, each) for path, each in zip(paths, tables, strict=True)]
            found.load([], DataTs(SINCE + 1), DataTs(SINCE), files)

        held("no deletes", whole)
        for percent in (1, 10, 50):
            gone = whole.take(pa.array(np.arange(0, FILE_ROWS, 100 // percent)))
            gone = gone.set_column(gone.num_columns - 1, DIFF, pa.repeat(pa.scalar(-1, pa.int64()), gone.num_rows))
            held(f"{percent} %, not merged", whole, gone)
            begun = time.perf_counter()
            places = [f"c{n}" for n in range(len(COLUMNS))]
            both = pa.concat_tables([whole, gone.cast(whole.schema)])
            merged = consolidate(both.rename_columns([*places, DIFF]))
            compacting[f"{percent} %"] = time.perf_counter() - begun
            held(f"{percent} %, merged", merged.rename_columns(whole.column_names))

        def read(relation: Relation, query: PeekQuery, by_changes: bool) -> tuple[float, pa.Table]:
            begun = time.perf_counter()
            with relation.snapshot(DataTs(SINCE)) as snapshot:
                changes = query.by_changes
                if by_changes:
                    read = dict.fromkeys(changes.reads, snapshot.diffs(changes.diff))
                    tree = changes.query.on_spark(read)
                else:
                    tree = query.on_spark({"u1": snapshot.rows()})
                found = spark.sql(text(tree)).toArrow()
            return 1000 * (time.perf_counter() - begun), found

        ways = {name: (relation, False) for name, relation in relations.items()}
        ways |= {f"{name}, by changes": (relations[name], True) for name in relations if "not merged" in name}
        taken: dict[tuple[str, str], list[float]] = {}
        for round_ in range(ROUNDS + 1):
            for name, way in ways.items():
                for what, query in asked.items():
                    took, found = read(way[0], query, way[1])
                    if not round_ and "," in name:
                        same = read(relations[name.partition(",")[0] + ", merged"], query, False)[1]
                        assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, same.to_pylist())), (name, what)
                    if round_:  # the first of each is warming up
                        taken.setdefault((name, what), []).append(took)
        for name in ways:
            told = {what: round(statistics.median(taken[name, what])) for what in QUERIES}
            ratios = {w: round(told[w] / statistics.median(taken["no deletes", w]), 1) for w in QUERIES}
            print({"rows": name, "p50 ms": told, "of no deletes": ratios}, flush=True)
        print({"consolidated in s": {name: round(took, 2) for name, took in compacting.items()}}, flush=True)
        for relation in relations.values():
            relation.close()
        stop_session(spark)


if __name__ == "__main__":
    main()
