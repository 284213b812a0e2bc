"""What settled rows cost whoever loads them: from a segment, beside the same rows as they lie on topics.

In this process alone, without a broker: what is compared is reading the bytes, which is most of what a start does.
"""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq

from bench.figure import Figure, p50
from catalog_log.objects import Column, numbered
from collection.columns import table_from_rows, with_diff
from collection.json_rows import decode_batch
from collection.rows import decode, encode
from segments.model import Segment, new_path
from segments.parquet import chunks
from segments.parquet import encode as encode_segment

ROWS = 200_000
ROUNDS = 5

COLUMNS = numbered((
    Column("id", "int8"), Column("carrier", "text"), Column("dest", "text"), Column("delay", "int4"),
    Column("fare", "numeric(10,2)"), Column("at", "timestamptz"),
))  # fmt: skip

BATCHES = "rows of a segment, beside a table's records"
OBJECTS = "rows of a segment, beside a source's JSON"
BARE = "rows of a segment, beside pyarrow alone"
SIZE = "bytes a row in a segment, beside a table's records"


def figures(wanted: Callable[[str], bool]) -> list[Figure]:
    """Measures in turns; takes some ten seconds."""
    if not any(wanted(name) for name in (BATCHES, OBJECTS, BARE, SIZE)):
        return []
    objects, table = _rows()
    batches = [each.value for each in encode(COLUMNS, table, "bench")]
    data = encode_segment(COLUMNS, table)
    segment = Segment(new_path("u1", 0, "1"), len(data), table.nbytes, ROWS, ROWS, True, zlib.crc32(data))

    def sealed() -> int:
        return sum(each.num_rows for each in chunks(segment, data, COLUMNS))

    beside: dict[str, tuple[Callable[[], int], str]] = {
        BATCHES: (lambda: decode(COLUMNS, batches).num_rows, "the same rows decoded from Avro"),
        OBJECTS: (lambda: decode_batch(objects, COLUMNS)[0].num_rows, "the same rows decoded from JSON"),
        BARE: (lambda: pq.read_table(pa.BufferReader(data)).num_rows, "pyarrow reads the same bytes"),
    }
    found = []
    for name, (other, what) in beside.items():
        if wanted(name):
            pairs = [(_rate(sealed), _rate(other)) for _ in range(ROUNDS)]
            ours, limit = (p50(side) for side in zip(*pairs, strict=True))
            found.append(Figure(name, ours, limit, what, "rows/s", "more", ROUNDS, "check sum included"))
    if wanted(SIZE):
        on_topic = sum(map(len, batches)) / ROWS
        found.append(Figure(SIZE, len(data) / ROWS, on_topic, "a record's share", "B", "less", ROWS))
    return found


def _rows() -> tuple[list[bytes | None], pa.Table]:
    """The same rows as JSON and as a table."""
    made = [
        {"id": n, "carrier": f"C{n % 20}", "dest": f"D{n * 7919 % 300}", "delay": n * 31 % 90 - 15,
         "fare": f"{n * 17 % 90_000 / 100:.2f}", "at": f"2026-01-{n % 28 + 1:02}T{n % 24:02}:00:00Z"}
        for n in range(ROWS)
    ]  # fmt: skip
    objects = [json.dumps(each).encode() for each in made]
    table, bad = decode_batch(objects, COLUMNS)
    assert not bad, bad[:1]
    assert table.num_rows == ROWS and table_from_rows(COLUMNS, []).schema == table.schema
    return objects, with_diff(table)


def _rate(read: Callable[[], int]) -> float:
    begun = time.perf_counter()
    assert read() == ROWS
    return ROWS / (time.perf_counter() - begun)
