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
