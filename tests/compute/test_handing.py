"""Spark is shown all rows of a table, whatever its chunks are."""

from __future__ import annotations

import pyarrow as pa
import pytest

from controllers.compute import handing
from controllers.compute.handing import Handing, schema_sql
from values.types import parse_type

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("bytes_max", (handing.ROWS_BYTES_MAX, 0))
def test_a_table_with_empty_chunks_is_shown_whole(spark, tmp_path, monkeypatch, bytes_max):
    """Rows behind an empty chunk were lost: of a delta in pieces, or of groups and what changed in them."""
    monkeypatch.setattr(handing, "ROWS_BYTES_MAX", bytes_max)
    schema = pa.schema([("c0", pa.int32()), ("c1", pa.string())])
    pieces = [pa.table([pa.array([n], pa.int32()), pa.array([str(n)])], schema=schema) for n in range(4)]
    nothing = schema.empty_table()
    table = pa.concat_tables([nothing, *pieces[:2], nothing, nothing, *pieces[2:], nothing])
    shown = Handing(spark, tmp_path)
    shown.show(table, "shown", schema_sql([("c0", parse_type("int4")), ("c1", parse_type("text"))]))
    found = spark.sql("SELECT * FROM shown ORDER BY c0").toArrow().to_pylist()
    shown.take_back("shown")
    assert found == [{"c0": n, "c1": str(n)} for n in range(4)]


def test_rows_are_sought_in_a_file_by_their_values(spark, tmp_path, monkeypatch):
    """FAILED_READ_FILE: what Spark looks into to skip a file, a column's dictionary, it could not decompress."""
    monkeypatch.setattr(handing, "ROWS_BYTES_MAX", 0)
    table = pa.table({"c0": pa.array(range(1_000_000_000, 1_000_013_182, 3), pa.int64())})
    shown = Handing(spark, tmp_path)
    shown.show(table, "sought", schema_sql([("c0", parse_type("int8"))]))
    found = [spark.sql(f"SELECT c0 FROM sought WHERE c0 = {n}").toArrow().num_rows for n in (10**9 + 3, 10**9 + 4)]
    shown.take_back("sought")
    assert found == [1, 0]
