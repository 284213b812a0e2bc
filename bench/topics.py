"""Messages of users' topics to rows that are visible, and rows to messages: by the storage controller, at full speed.

A rate is of the controller's own processor and, in the note, of the time that it took on this machine, where the broker
and all others of a stack work, too.  Beside the messages of a source stands decoding them alone, by the same judge in
one process; beside those of a sink the same messages produced in one transaction by nothing but Kafka's client.  Where
the time of either goes is what ``python -m bench.stages`` prints.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import fastavro
import psycopg
from confluent_kafka import OFFSET_BEGINNING, KafkaError, Message, TopicPartition

from bench.figure import Figure
from bench.messages import in_avro
from catalog_log.log import CatalogLog
from catalog_log.objects import Source
from catalog_log.objects.reading import NONE
from collection.messages import judging
from demo.topics import ensure_topic
from embedded.stack import Stack
from journal import clients
from oracle.client import Oracle

MESSAGES, BATCH = 300_000, 2_000
CHANGED_ONE_IN = 5
"""Of Debezium's messages: one of so many changes a row that is there."""

DEBEZIUM = "Debezium JSON to visible rows, of a processor"
AVRO = "Avro to visible rows, of a processor"
SINK = "a sink's rows, JSON, UPSERT"
NAMES = (DEBEZIUM, AVRO, SINK)

WAIT_S = 300.0
"""For what takes some seconds."""

SCHEMA = {
    "type": "record", "name": "r", "fields": [
        {"name": "id", "type": "long"}, {"name": "name", "type": "string"}, {"name": "price", "type": "double"},
        {"name": "n", "type": "int"}, {"name": "ok", "type": "boolean"},
    ],
}  # fmt: skip
COLUMNS = "id int8, name text, price float8, n int4, ok bool"


@dataclass(frozen=True)
class Sent:
    """What is sent, how the source that reads it is made, and how many rows there are in the end."""

    clause: Callable[[str], str]
    """What stands behind the source's name, where its topic is so called."""
    messages: Sequence[tuple[bytes | None, bytes]]
    rows: int


def _row(n: int) -> dict[str, object]:
    return {"id": n, "name": f"customer {n}", "price": n / 7, "n": n % 1000, "ok": bool(n % 2)}


def debezium(count: int) -> Sent:
    made, rows = [], 0
    for n in range(count):
        change = n % CHANGED_ONE_IN == CHANGED_ONE_IN - 1
        key, rows = (n // CHANGED_ONE_IN, rows) if change else (rows, rows + 1)
        after = _row(n) | {"id": key}
        before = _row(key) if change else None
        value = {"before": before, "after": after, "op": "u" if change else "c", "ts_ms": 1_700_000_000_000 + n}
        made.append((b'{"id": %d}' % key, json.dumps(value).encode()))
    formats = "KEY FORMAT JSON VALUE FORMAT JSON ENVELOPE DEBEZIUM"
    return Sent(lambda topic: f"({COLUMNS}) FROM KAFKA TOPIC '{topic}' {formats}", made, rows)


def avro(count: int) -> Sent:
    schema = fastavro.parse_schema(SCHEMA)
    made = [(None, in_avro(schema, _row(n))) for n in range(count)]
    return Sent(
        lambda topic: f"FROM KAFKA TOPIC '{topic}' FORMAT AVRO USING SCHEMA '{json.dumps(SCHEMA)}'", made, count
    )


def figures(stack: Stack, wanted: Callable[[str], bool] = lambda _name: True, count: int = MESSAGES) -> list[Figure]:
    """On a running stack; what is made is dropped again, but for topics of the user's."""
    chosen = [name for name in NAMES if wanted(name)]
    if not chosen:
        return []
    found = []
    with psycopg.connect(stack.dsn(), autocommit=True) as connection:
        schema = f"bench_{uuid.uuid4().hex[:8]}"
        connection.execute(f"CREATE SCHEMA {schema}")
        try:
            if DEBEZIUM in chosen:
                found.append(_read(stack, connection, schema, DEBEZIUM, debezium(count), "≥ 80,000 rows/s"))
            if AVRO in chosen:
                found.append(_read(stack, connection, schema, AVRO, avro(count), "≥ 200,000 rows/s"))
            if SINK in chosen:
                found.append(_written(stack, connection, schema, count))
        finally:
            connection.execute(f"DROP SCHEMA {schema} CASCADE")
    return found


@dataclass
class Took:
    seconds: float = 0.0
    processor: float = 0.0


@contextmanager
def _taken(stack: Stack) -> Iterator[Took]:
    """What a block takes, and what the storage controller's process does of it."""
    took, begun, had = Took(), time.monotonic(), _processor(stack)
    yield took
    took.seconds, took.processor = time.monotonic() - begun, _processor(stack) - had


def _processor(stack: Stack) -> float:
    fields = Path(f"/proc/{stack.supervisor.pids()['storage']}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# --- into Tidemark


def _read(stack: Stack, connection: psycopg.Connection, schema: str, name: str, sent: Sent, aim: str) -> Figure:
    topic = f"{stack.settings.env}-{uuid.uuid4().hex[:8]}"
    ensure_topic(stack.kafka, topic, {"retention.ms": "-1"})
    _send(stack.kafka, topic, sent.messages)
    with ExitStack() as until:
        catalog = CatalogLog.open(stack.kafka, stack.names, "bench")
        until.callback(catalog.close)
        oracle = Oracle.open(stack.kafka, stack.names, "bench", catalog.upper)
        until.callback(oracle.close)
        with _taken(stack) as took:
            connection.execute(f"CREATE SOURCE {schema}.s {sent.clause(topic)}".encode())
            source = _source(connection, catalog, topic)
            whole = {(topic, 0): len(sent.messages)}
            oracle.when(lambda state: state.bindings(source.progress_id).ends() == whole, WAIT_S).result()
    (found,) = connection.execute(f"SELECT count(*) FROM {schema}.s").fetchone()
    (bad,) = connection.execute(f"SELECT count(*) FROM {schema}.s_errors").fetchone()
    if (found, bad) != (sent.rows, 0):
        raise RuntimeError(f"{found} rows and {bad} errors instead of {sent.rows} and none")
    connection.execute(f"DROP SOURCE {schema}.s")
    alone = _decoded_s(source, sent.messages)
    count = len(sent.messages)
    note = f"{count / took.seconds:,.0f} rows/s of time; decoding is {alone / took.processor:.0%} of the processor"
    limit_is = "decoding the same messages alone"
    return Figure(name, count / took.processor, count / alone, limit_is, "rows/s", "more", count, note, aim)


def _source(connection: psycopg.Connection, catalog: CatalogLog, topic: str) -> Source:
    (found,) = connection.execute("SELECT id FROM tm_catalog.sources WHERE topic = %s", [topic]).fetchone()
    deadline = time.monotonic() + WAIT_S
    while (item := catalog.image.item(found)) is None:  # it is in the log: this reader comes to it
        if time.monotonic() > deadline:
            raise TimeoutError(f"{found} did not come")
        time.sleep(0.01)
    return item


def _send(kafka: str, topic: str, messages: Sequence[tuple[bytes | None, bytes]]) -> None:
    producer = clients.make_producer(kafka)
    for key, value in messages:
        while True:
            try:
                producer.produce(topic, value, key)
                break
            except BufferError:
                producer.poll(0.01)
    if left := producer.flush(WAIT_S):
        raise TimeoutError(f"{left} messages were not delivered")


def _decoded_s(source: Source, messages: Sequence[tuple[bytes | None, bytes]]) -> float:
    """Seconds of processor."""
    judge = judging.Judge(source)
    told = [judging.Message(0, offset, key, value, -1) for offset, (key, value) in enumerate(messages)]
    begun = time.process_time()
    for at in range(0, len(told), BATCH):
        if source.envelope == NONE:
            _, bad = judge.table(told[at : at + BATCH])
        else:
            bad = judge.keyed_table(told[at : at + BATCH]).bad
        assert not bad
    return time.process_time() - begun


# --- out of it


def _written(stack: Stack, connection: psycopg.Connection, schema: str, count: int) -> Figure:
    topic = f"{stack.settings.env}-{uuid.uuid4().hex[:8]}"
    connection.execute(f"CREATE TABLE {schema}.t ({COLUMNS})")
    connection.execute(
        f"INSERT INTO {schema}.t SELECT k, 'customer ' || k, k / 7.0, k % 1000, k % 2 = 1 "
        f"FROM generate_series(1, {count}) AS g(k)"
    )
    clause = f"INTO KAFKA (TOPIC '{topic}', PARTITION COUNT 1) KEY (id) FORMAT JSON ENVELOPE UPSERT"
    # Made before, so that there is a topic to wait for; as the sink would make it.
    ensure_topic(stack.kafka, f"{topic}-progress", {"cleanup.policy": "compact"})
    with _taken(stack) as took:
        connection.execute(f"CREATE SINK {schema}.out FROM {schema}.t {clause}")
        _await_note(stack.kafka, f"{topic}-progress")
    messages = _consumed(stack.kafka, topic)
    if len(messages) != count or len({key for key, _ in messages}) != count:
        raise RuntimeError(f"{len(messages)} messages instead of {count}")
    connection.execute(f"DROP SINK {schema}.out")
    alone = _produced_s(stack.kafka, messages)
    note = f"{count / took.processor:,.0f} rows/s of a processor; from CREATE SINK to the note that all are there"
    limit_is = "raw produce of the same messages, one transaction"
    aim = "≥ 100,000 rows/s"
    return Figure(SINK, count / took.seconds, count / alone, limit_is, "rows/s", "more", count, note, aim)


def _await_note(kafka: str, topic: str) -> None:
    """Until the sink says that all that it begins with is in its topic."""
    with closing(clients.make_consumer(kafka, **{"isolation.level": "read_committed"})) as consumer:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        for message in _polled(consumer):
            if "timestamp" in json.loads(message.value()):
                return


def _consumed(kafka: str, topic: str) -> list[tuple[bytes | None, bytes | None]]:
    settings = {"isolation.level": "read_committed", "enable.partition.eof": True}
    with closing(clients.make_consumer(kafka, **settings)) as consumer:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        return [(message.key(), message.value()) for message in _polled(consumer)]


def _polled(consumer: object) -> Iterator[Message]:
    """Its messages, to the end of the partition where it tells of that."""
    while True:
        message = consumer.poll(WAIT_S)
        if message is None:
            raise TimeoutError(f"nothing came for {WAIT_S:.0f} s")
        if message.error() is None:
            yield message
        elif message.error().code() == KafkaError._PARTITION_EOF:
            return
        else:
            raise RuntimeError(str(message.error()))


def _produced_s(kafka: str, messages: Sequence[tuple[bytes | None, bytes | None]]) -> float:
    topic = f"bench-{uuid.uuid4().hex[:8]}"
    ensure_topic(kafka, topic)
    producer = clients.transactional_producer({"bootstrap.servers": kafka}, topic, int(WAIT_S * 1000))
    producer.init_transactions(WAIT_S)
    begun = time.monotonic()
    producer.begin_transaction()
    for key, value in messages:
        while True:
            try:
                producer.produce(topic, value, key, headers=[("tidemark-timestamp", b"1700000000000")])
                break
            except BufferError:
                producer.poll(0.01)
    producer.commit_transaction(WAIT_S)
    return time.monotonic() - begun
