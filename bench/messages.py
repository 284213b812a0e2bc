"""How fast messages of users' topics become rows, format by format: ``python -m bench.messages``.

One processor, no Kafka: batches of 2,000 messages of five columns through a source's judge, the best of five.
"""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable, Sequence

import fastavro
from google.protobuf import message_factory
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet

from catalog_log.objects import Column, Source
from catalog_log.objects.reading import Format, Reading
from collection.messages.judging import Judge, Message
from schemas.protobuf_messages import read_type

MESSAGES, BATCH, TIMES = 20_000, 2_000, 5

FLAT = {"id": "int64", "name": "string", "price": "double", "n": "int32", "ok": "bool"}
DEEP = {"id": "int64", "name": "string", "price": "double", "n": "int32", "tags": "repeated string"}
TYPES = {"int64": "int8", "string": "text", "double": "float8", "int32": "int4", "bool": "bool"}
AVRO = {"int64": "long", "int32": "int", "bool": "boolean"}


def described() -> bytes:
    """A ``FileDescriptorSet`` of both."""
    file = FileDescriptorProto(name="p.proto", package="p", syntax="proto3")
    for name, fields in (("Flat", FLAT), ("Deep", DEEP)):
        message = file.message_type.add(name=name)
        for number, (each, said) in enumerate(fields.items(), 1):
            *label, kind = said.split()
            message.field.add(
                name=each, number=number, type=FieldDescriptorProto.Type.Value(f"TYPE_{kind.upper()}"),
                label=FieldDescriptorProto.LABEL_REPEATED if label else FieldDescriptorProto.LABEL_OPTIONAL,
            )  # fmt: skip
    return FileDescriptorSet(file=[file]).SerializeToString()


def main() -> None:
    flat = [
        {"id": n, "name": f"customer {n}", "price": n / 7, "n": n % 1000, "ok": bool(n % 2)} for n in range(MESSAGES)
    ]
    deep = [{**{name: row[name] for name in DEEP if name in row}, "tags": ["a", "b"]} for row in flat]
    schema = {"type": "record", "name": "r", "fields": [{"name": n, "type": AVRO.get(t, t)} for n, t in FLAT.items()]}
    schema = fastavro.parse_schema(schema)
    descriptors = described()

    def protobuf(name: str, rows: list[dict]) -> tuple[Format, list[dict], Callable[[dict], bytes]]:
        made = message_factory.GetMessageClass(read_type(descriptors, name))
        format = Format("protobuf", schema=descriptors.hex(), message=name)
        return format, rows, lambda row: made(**row).SerializeToString()

    formats: list[tuple[str, Format, list[dict], Callable[[dict], bytes]]] = [
        ("Protobuf", *protobuf("p.Flat", flat)),
        ("Avro", Format("avro", schema=json.dumps(schema)), flat, lambda row: in_avro(schema, row)),
        ("JSON", Format("json"), flat, lambda row: json.dumps(row).encode()),
        ("Protobuf, one jsonb", *protobuf("p.Deep", deep)),
        ("JSON, one jsonb", Format("json"), deep, lambda row: json.dumps(row).encode()),
    ]
    for name, format, rows, encoded in formats:
        fields = FLAT if rows is flat else DEEP
        columns = tuple(Column(n, TYPES.get(t, "jsonb"), id=i) for i, (n, t) in enumerate(fields.items(), 1))
        source = Source("u1", "s1", "s", "", columns, topic="t", format=format.kind, envelope="none", errors_id="u2",
                        reading=Reading(format, None, ("value",) * len(columns)))  # fmt: skip
        print(f"{name}: {speed(source, [Message(0, 0, None, encoded(row), -1) for row in rows]):,.0f} rows a second")


def in_avro(schema: object, row: dict) -> bytes:
    found = io.BytesIO()
    fastavro.schemaless_writer(found, schema, row)
    return found.getvalue()


def speed(source: Source, messages: Sequence[Message]) -> float:
    """Rows a second of processor."""
    judge, best = Judge(source), float("inf")
    for _ in range(TIMES):
        begun, rows = time.process_time(), 0
        for at in range(0, len(messages), BATCH):
            table, bad = judge.table(messages[at : at + BATCH])
            assert not bad
            rows += table.num_rows
        assert rows == len(messages)
        best = min(best, time.process_time() - begun)
    return len(messages) / best


if __name__ == "__main__":
    main()
