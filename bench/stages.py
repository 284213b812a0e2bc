"""Where the processor's time of a row goes, stage by stage, in sources and sinks: ``python -m bench.stages``.

No Kafka and nothing beside: what of a storage controller's work is Python's and ours.  The rows are those of
``bench topics``, in batches as the controller takes them; microseconds of processor for a row, the best of some rounds,
since whatever else the machine does makes a round slower only.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import TypeVar

import pyarrow as pa

from bench.topics import SCHEMA, avro, debezium
from catalog_log.objects import Column, Sink, Source, Table, numbered
from catalog_log.objects.reading import Format, Reading
from catalog_log.objects.sink import DEBEZIUM, UPSERT
from collection.columns import sql_type
from collection.messages.avro_written import AvroRows, WrittenColumn, as_json
from collection.messages.judging import Judge, Message
from collection.rows import decode, encode
from controllers.changes import stamp
from controllers.storage.keyed_state import KeyedState
from controllers.storage.sink_contents import SLICE_ROWS
from controllers.storage.sink_forms import form_of
from controllers.storage.sinking import ChangeColumns, Keys, messages
from controllers.storage.source import BATCH_ROWS_MAX
from controllers.storage.upserts import Keys as SourceKeys
from controllers.storage.upserts import changed
from journal.process import look_for_garbage_less

ROWS, ROUNDS = 100_000, 3
TS = 1_700_000_000_000

COLUMNS = numbered((Column("id", "int8"), Column("name", "text"), Column("price", "float8"), Column("n", "int4"),
                    Column("ok", "bool")))  # fmt: skip

T = TypeVar("T")


class Stages:
    """What each stage took of the processor, in seconds."""

    def __init__(self) -> None:
        self.took: dict[str, float] = {}

    def of(self, name: str, work: Callable[[], T]) -> T:
        begun = time.process_time()
        found = work()
        self.took[name] = self.took.get(name, 0.0) + time.process_time() - begun
        return found


def sink(rows: int) -> Stages:
    """From records of ours to what is handed to Kafka's client, for a sink in JSON; other forms beside."""
    stages, attempt = Stages(), "bench"
    table = pa.table([range(rows), [f"customer {n}" for n in range(rows)], [n / 7 for n in range(rows)],
                      pa.array([n % 1000 for n in range(rows)], pa.int32()), [n % 2 == 1 for n in range(rows)]],
                     names=[each.name for each in COLUMNS])  # fmt: skip
    records = [each.value for each in encode(COLUMNS, table, attempt)]
    types = [sql_type(each.type) for each in COLUMNS]
    item = Sink("u2", "s1", "s", "", relation_id="u1", topic="t", progress_topic="p", key=(1,), format="json",
                columns=tuple((each.id, each.name) for each in COLUMNS), envelope=UPSERT)  # fmt: skip
    form = form_of(item, Table("u1", "s1", "t", "", COLUMNS))
    avro_rows = AvroRows([WrittenColumn(each.name, sql_type(each.type), True) for each in COLUMNS])
    decoded = stages.of("rows read", lambda: decode(COLUMNS, records))
    stamped = stages.of("stamped", lambda: stamp(decoded, TS, types))
    for at in range(0, rows, SLICE_ROWS):
        part = stamped.slice(at, SLICE_ROWS)
        columns = part.columns[: len(COLUMNS)]
        written = stages.of("JSON", lambda columns=columns: form.rows(columns))
        keys = stages.of("keys", lambda columns=columns: form.keys(columns[:1]))
        changes = ChangeColumns([TS] * len(keys), keys, written, [1] * len(keys))
        stages.of("messages", lambda changes=changes: list(messages(UPSERT, [changes], Keys(), form)))
        stages.of(
            "(messages of ENVELOPE DEBEZIUM)", lambda changes=changes: list(messages(DEBEZIUM, [changes], None, form))
        )
        stages.of("(Avro instead of JSON)", lambda columns=columns: avro_rows.rows(columns))
    return stages


def keyed_source(rows: int) -> Stages:
    """From messages of Debezium's in JSON to records of ours."""
    stages = Stages()
    columns = numbered((Column("key", "jsonb"), *COLUMNS))
    reading = Reading(Format("json"), Format("json"), ("key", *["value"] * len(COLUMNS)))
    source = Source("u1", "s1", "s", "", columns, topic="t", format="json", envelope=DEBEZIUM, errors_id="u2",
                    reading=reading)  # fmt: skip
    judge = Judge(source)
    keys = SourceKeys(columns, judge.key_columns, judge.key_places)
    with closing(KeyedState()) as state:
        for part in _batches(debezium(rows).messages):
            told = stages.of("judged", lambda part=part: judge.keyed_table(part))
            assert not told.bad
            hashes = stages.of("keys", lambda told=told: keys.hashes(told.keys))
            before = stages.of("what they had", lambda hashes=hashes: state.get(hashes))
            given = told, hashes, before
            found = stages.of("what changes", lambda given=given: changed(keys, *given))
            stages.of("kept", lambda found=found: state.put(found.puts))
            stages.of("encoded", lambda found=found: list(encode(columns, found.table, "bench")))
    return stages


def plain_source(rows: int) -> Stages:
    """From messages in Avro to records of ours."""
    stages = Stages()
    reading = Reading(Format("avro", schema=as_json(SCHEMA)), None, ("value",) * len(COLUMNS))
    source = Source("u1", "s1", "s", "", COLUMNS, topic="t", format="avro", envelope="none", errors_id="u2",
                    reading=reading)  # fmt: skip
    judge = Judge(source)
    for part in _batches(avro(rows).messages):
        table, bad = stages.of("judged", lambda part=part: judge.table(part))
        assert not bad
        stages.of("encoded", lambda table=table: list(encode(COLUMNS, table, "bench")))
    return stages


def _batches(sent: Sequence[tuple[bytes | None, bytes]]) -> Iterator[list[Message]]:
    for at in range(0, len(sent), BATCH_ROWS_MAX):
        part = sent[at : at + BATCH_ROWS_MAX]
        yield [Message(0, offset, key, value, -1) for offset, (key, value) in enumerate(part, at)]


MEASURED: dict[str, Callable[[int], Stages]] = {
    "a sink in JSON, UPSERT": sink,
    "a source in JSON, DEBEZIUM": keyed_source,
    "a source in Avro": plain_source,
}


def told(name: str, rounds: Sequence[Stages], rows: int) -> str:
    """The best of ``rounds``, stage by stage; those in brackets are beside the others, and in no sum."""
    best = {stage: min(each.took[stage] for each in rounds) / rows * 1e6 for stage in rounds[0].took}
    lines = [f"  {stage:34}{micros:6.2f} µs" for stage, micros in best.items()]
    whole = sum(micros for stage, micros in best.items() if not stage.startswith("("))
    return "\n".join([f"{name}: {whole:.2f} µs a row, {1e6 / whole:,.0f} rows/s of a processor", *lines])


def main(rows: int = ROWS) -> None:
    look_for_garbage_less()  # as the process does of which these are the stages
    for name, measure in MEASURED.items():
        print(told(name, [measure(rows) for _ in range(ROUNDS)], rows), flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
