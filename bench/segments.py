"""What settled rows cost whoever loads them: from a segment, beside the same rows as they lie on topics; what it costs
to write them; and what it costs to know which of 80,000 files to open.

In this process alone, without a broker: what is compared is reading the bytes, which is most of what a start does.
"""

from __future__ import annotations

import json
import time
import tracemalloc
import zlib
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.figure import Figure, p50
from catalog_log.objects import Column, numbered
from collection.binding import Run
from collection.columns import table_from_rows, with_diff
from collection.json_rows import decode_batch
from collection.rows import decode, encode
from journal.api import Entry
from oracle.model import Token
from schemas import codec
from segments.fold import NO_SEGMENTS, SegmentsState, fold_segments
from segments.image import dump_segments, load_segments
from segments.model import FILES_MAX, Exchange, Segment, SegmentsKind, SegmentsRecord, new_path
from segments.parquet import chunks, in_order
from segments.parquet import encode as encode_segment
from segments.pruning import Op, Predicate, SegmentIndex
from segments.records import SEGMENTS_RECORD, encode_segments_record
from segments.statistics import measured, packed

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
SEALED = "rows of a segment written, sorted and measured, beside as they come"
SORTED = "bytes a row in a segment, sorted, beside as they come"

FILES = 80_000
PER_RECORD = 2_000
PRUNED = f"{FILES:,} files pruned by a range of their key"
FIRST = f"{FILES:,} files' statistics read when a column is first asked for"
MEMORY = "memory a file of the log of segments, six columns"
FOLDED = f"{FILES:,} files folded"
IMAGE = "bytes a file in an image of the log of segments"
LOADED = f"an image of {FILES:,} files loaded"


def figures(wanted: Callable[[str], bool]) -> list[Figure]:
    """Measures in turns; takes half a minute."""
    return [*_of_rows(wanted), *_of_files(wanted)]


def _of_rows(wanted: Callable[[str], bool]) -> list[Figure]:
    if not any(wanted(name) for name in (BATCHES, OBJECTS, BARE, SIZE, SEALED, SORTED)):
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
    mixed = table.take(pa.array(np.random.default_rng(1).permutation(ROWS)))
    if wanted(SEALED):

        def written() -> int:
            rows = in_order(COLUMNS[1:], mixed.drop_columns(["id"]))
            packed(measured(COLUMNS[1:], rows))
            encode_segment(COLUMNS[1:], rows)
            return ROWS

        def bare() -> int:
            encode_segment(COLUMNS[1:], mixed.drop_columns(["id"]))
            return ROWS

        pairs = [(_rate(written), _rate(bare)) for _ in range(ROUNDS)]
        ours, limit = (p50(side) for side in zip(*pairs, strict=True))
        note = "by carrier, destination and delay; without the id"
        found.append(Figure(SEALED, ours, limit, "the same rows unsorted", "rows/s", "more", ROUNDS, note))
    if wanted(SORTED):
        rows = mixed.drop_columns(["id"])
        ours, limit = (len(encode_segment(COLUMNS[1:], each)) / ROWS for each in (in_order(COLUMNS[1:], rows), rows))
        found.append(Figure(SORTED, ours, limit, "the same rows unsorted", "B", "less", ROWS))
    return found


def _of_files(wanted: Callable[[str], bool]) -> list[Figure]:
    """Of one collection with as many files as 80 TB have."""
    if not any(wanted(name) for name in (PRUNED, FIRST, MEMORY, FOLDED, IMAGE, LOADED)):
        return []
    records, bare = _records(_files(with_statistics=True)), _records(_files(with_statistics=False))
    state = _folded(records)
    files = state.sealed("u1").files
    assert len(files) == FILES
    found = []
    asked = [Predicate("c1", "int8", Op.AT_LEAST, (4_000_000,)), Predicate("c1", "int8", Op.LESS, (5_000_000,))]
    index, first = SegmentIndex(files), 0.0
    if wanted(PRUNED) or wanted(FIRST):
        first = _ms(lambda: index.may_match(asked))
        assert index.may_match(asked).sum() == 1_000
    if wanted(PRUNED):
        lower = np.arange(FILES) * 1_000
        upper = lower + 999
        pairs = [
            (_ms(lambda: index.may_match(asked)), _ms(lambda: (upper >= 4_000_000) & (lower < 5_000_000)))
            for _ in range(200)
        ]
        ours, limit = (p50(side) for side in zip(*pairs, strict=True))
        found.append(Figure(PRUNED, ours, limit, "numpy compares two arrays", "ms", "less", 200, aim="20 ms at most"))
    if wanted(FIRST):
        limit = _ms(lambda: [codec.decode("segment_statistics", each.statistics) for each in files])
        note = "once a column; files that come later are read alone"
        found.append(Figure(FIRST, first, limit, "decoding them alone", "ms", "less", 1, note))
    if wanted(MEMORY):
        ours, limit = (_memory(each) / FILES for each in (records, bare))
        found.append(Figure(MEMORY, ours, limit, "the same without statistics", "B", "less", FILES,
                            "a column that is asked for takes 19 B more, a text 67"))  # fmt: skip
    if wanted(FOLDED):
        pairs = [
            (_ms(lambda: _folded(records)), _ms(lambda: [codec.decode(SEGMENTS_RECORD, each) for each in records[1:]]))
            for _ in range(ROUNDS)
        ]
        ours, limit = (p50(side) for side in zip(*pairs, strict=True))
        note = f"{len(records) - 1} exchanges, the largest of {max(map(len, records)) >> 10} KiB"
        found.append(Figure(FOLDED, ours, limit, "decoding the records alone", "ms", "less", ROUNDS, note))
    image = dump_segments(state)
    if wanted(IMAGE):
        limit = len(dump_segments(_folded(bare))) / FILES
        found.append(Figure(IMAGE, len(image) / FILES, limit, "the same without statistics", "B", "less", FILES))
    if wanted(LOADED):
        pairs = [
            (_ms(lambda: load_segments(image)), _ms(lambda: codec.decode("segments_image", image)))
            for _ in range(ROUNDS)
        ]
        ours, limit = (p50(side) for side in zip(*pairs, strict=True))
        found.append(Figure(LOADED, ours, limit, "decoding it alone", "ms", "less", ROUNDS))
    return found


def _files(*, with_statistics: bool) -> list[Segment]:
    """Of the rows above, a thousand ids each."""
    _, table = _rows(1_000)
    ids = table.column("id")
    made = []
    for n in range(FILES):
        statistics = b""
        if with_statistics:
            statistics = packed(measured(COLUMNS, table.set_column(0, "id", pa.chunked_array([_moved(ids, n)]))))
        made.append(Segment(new_path("u1", 0, f"{n:032x}"), 4 << 20, 20 << 20, 1_000, 1_000, True, n, statistics))
    return made


def _moved(ids: pa.ChunkedArray, n: int) -> pa.Array:
    return pa.array(ids.to_numpy() + 1_000 * n)


def _records(files: Sequence[Segment]) -> list[bytes]:
    assert PER_RECORD <= FILES_MAX
    records = [encode_segments_record(SegmentsRecord(Token("bench", 1, 0), SegmentsKind.FORMAT, below=2))]
    for n in range(0, FILES, PER_RECORD):
        exchange = Exchange("u1", 0, (Run("t", 0, n, n + PER_RECORD),), tuple(files[n : n + PER_RECORD]))
        record = SegmentsRecord(Token("bench", 1, n + 1), SegmentsKind.EXCHANGE, exchange=exchange)
        records.append(encode_segments_record(record, 2))
    return records


def _folded(records: Sequence[bytes]) -> SegmentsState:
    state = NO_SEGMENTS
    for offset, value in enumerate(records):
        state, _ = fold_segments(state, Entry(offset, value))
    return state


def _memory(records: Sequence[bytes]) -> int:
    tracemalloc.start()
    try:
        state = _folded(records)
        assert state.collections
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


def _ms(run: Callable[[], object]) -> float:
    """Of this process's own time: one thread works, and others on the machine are none of its business."""
    begun = time.process_time_ns()
    run()
    return (time.process_time_ns() - begun) / 1e6


def _rows(count: int = ROWS) -> tuple[list[bytes | None], pa.Table]:
    """The same rows as JSON and as a table."""
    made = [
        {"id": n, "carrier": f"C{n % 20}", "dest": f"D{n * 7919 % 300}", "delay": n * 31 % 90 - 15,
         "fare": f"{n * 17 % 90_000 / 100:.2f}", "at": f"2026-01-{n % 28 + 1:02}T{n % 24:02}:00:00Z"}
        for n in range(count)
    ]  # fmt: skip
    objects = [json.dumps(each).encode() for each in made]
    table, bad = decode_batch(objects, COLUMNS)
    assert not bad, bad[:1]
    assert table.num_rows == count and table_from_rows(COLUMNS, []).schema == table.schema
    return objects, with_diff(table)


def _rate(read: Callable[[], int]) -> float:
    begun = time.perf_counter()
    assert read() == ROWS
    return ROWS / (time.perf_counter() - begun)
