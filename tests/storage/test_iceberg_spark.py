"""Tables of sinks into Iceberg as stock Spark reads them, through Iceberg's own runtime and the catalog."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections import Counter
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from collection.columns import DIFF
from controllers.storage.iceberg import files
from controllers.storage.iceberg.columns import Columns
from controllers.storage.iceberg.table import IcebergTable
from tests.rest_catalog import Catalog
from tests.storage.test_iceberg_table import History, advance, sink, writer, written
from values.types import arrow_type, parse_type

pytestmark = [pytest.mark.spark, pytest.mark.long]

RUNTIME = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"
"""48 MB, once: Spark's own Ivy fetches it."""

READ = """
import json, sys
from pyspark.sql import SparkSession
url, runtime, mirror = sys.argv[1:4]
made = SparkSession.builder.master("local[1]").config("spark.jars.packages", runtime)
made = made.config("spark.ui.enabled", "false").config("spark.sql.session.timeZone", "UTC")
made = made.config("spark.jars.repositories", mirror) if mirror else made
made = made.config("spark.sql.extensions", "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions")
made = made.config("spark.sql.catalog.c", "org.apache.iceberg.spark.SparkCatalog")
made = made.config("spark.sql.catalog.c.type", "rest").config("spark.sql.catalog.c.uri", url)
spark = made.config("spark.sql.catalog.c.cache-enabled", "false").getOrCreate()
for line in sys.stdin:
    print("ANSWER" + json.dumps([[str(each) for each in row] for row in spark.sql(line).collect()]), flush=True)
"""


@pytest.fixture
def catalog(tmp_path: Path):
    with closing(Catalog(tmp_path)) as found:
        yield found


def asked(catalog: Catalog, *queries: str) -> list[list[tuple[str, ...]]]:
    """The answers of a Spark of its own."""
    mirror = os.environ.get("TIDEMARK_MAVEN_MIRROR", "")
    done = subprocess.run([sys.executable, "-c", READ, catalog.url, RUNTIME, mirror], input="\n".join(queries) + "\n",
                          capture_output=True, text=True, timeout=400)  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    found = [line[6:] for line in done.stdout.splitlines() if line.startswith("ANSWER")]
    return [list(map(tuple, json.loads(each))) for each in found]


def test_each_snapshot_and_each_type(catalog: Catalog, monkeypatch) -> None:
    monkeypatch.setattr(files, "ALIKE_MAX", 2)
    draw, history = random.Random(4), History()
    written(history, draw, 0, 1000)
    sinking = writer(catalog, history)
    for end in range(2000, 9000, 1000):
        written(history, draw, end - 1000, end)
        advance(sinking, end)
    types = {
        "bool": True, "int2": -7, "int8": 2**62, "float8": 0.5, "numeric(20,3)": Decimal("12.5"), "numeric": "1.50",
        "text": "é", "char(3)": "a",
        "uuid": "00112233-4455-6677-8899-aabbccddeeff", "date": 1, "timestamp": 1, "timestamptz": 10**6,
        "bytea": b"\x01\xff", "jsonb": '{"a": 1}', "int4[]": [1, None],
    }  # fmt: skip
    columns = Columns([(f"the {name}", parse_type(name)) for name in types])
    its = IcebergTable(sink("u3", (), table="all", columns=tuple(enumerate(columns.names, 1))), "log", columns, [],
                       lambda: {"uri": catalog.url}, lambda: False)  # fmt: skip
    its.claim()
    arrays = []
    for name, value in types.items():
        kind = arrow_type(parse_type(name))
        whole = {"date": pa.int32(), "timestamp": pa.int64(), "timestamptz": pa.int64()}.get(name, kind)
        arrays.append(pa.array([value], whole).cast(kind))
    its.stage(pa.Table.from_arrays([*arrays, pa.array([1], pa.int64())], [*columns.schema.names, DIFF]))
    its.commit(1000)
    its.close()

    snapshots = catalog.client().load_table(("lake", "t")).snapshots()
    versions = [f"select * from c.lake.t version as of {each.snapshot_id}" for each in snapshots]
    kept = "select snapshot_id, summary['tidemark.ts'], operation from c.lake.t.snapshots"
    *found, told, everything = asked(catalog, *versions, kept, "select * from c.lake.all")
    assert len(found) == len(snapshots) > 5
    for each, rows in zip(snapshots, found, strict=True):
        wanted = history.rows_at(int(each.summary["tidemark.ts"]))
        assert Counter(rows) == Counter({tuple(map(str, row)): count for row, count in wanted.items()})
    assert {(row[0], row[1]) for row in told} == {(str(s.snapshot_id), s.summary["tidemark.ts"]) for s in snapshots}
    assert "replace" in {row[2] for row in told}
    assert everything == [(
        "True", "-7", str(2**62), "0.5", "12.500", "1.50", "é", "a  ", "00112233-4455-6677-8899-aabbccddeeff",
        "1970-01-02", "1970-01-01 00:00:00.000001", "1970-01-01 00:00:01", "b'\\x01\\xff'", '{"a": 1}', "[1, None]",
    )]  # fmt: skip
