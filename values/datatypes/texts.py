"""Texts, and what is carried as one."""

from __future__ import annotations

import pyarrow as pa

from values import json_values, wire
from values.datatypes.row import Datatype
from values.text.jsonb import of_json, read_jsonb
from values.text.macaddr8s import of_macaddr, read_macaddr8, receive_macaddr8, send_macaddr8, to_macaddr
from values.text.macaddrs import read_macaddr, receive_macaddr, send_macaddr
from values.text.uuids import read_uuid


def _trimmed(text: str) -> str:
    return text.rstrip(" ")


DATATYPES = (
    Datatype(
        "text", 25, 1009, "text", str, wire.receive_text, wire.send_text, json=json_values.string, aliases=("string",),
        arrow=pa.string(), spark="STRING", avro="string", duckdb=("VARCHAR",), category="S", preferred=True,
        iceberg="string",
    ),
    Datatype(
        "varchar", 1043, 1015, "character varying", str, wire.receive_text, wire.send_text,
        aliases=("character varying",), carries="text", category="S", iceberg="string",
    ),
    # Carried without the blanks at its end, which mean nothing in it: so equality and order are those of the text.
    Datatype(
        "bpchar", 1042, 1014, "character", _trimmed, wire.receive_char, wire.send_text, carries="text", category="S",
        iceberg="string",
    ),
    # In lower case, so that the texts compare as the bytes do.
    Datatype(
        "uuid", 2950, 2951, "uuid", read_uuid, wire.receive_uuid, wire.send_uuid, carries="text", duckdb=("UUID",),
        length=16, read_by_us=True, has_extremes=False, iceberg="uuid",
    ),
    # The same.
    Datatype(
        "macaddr", 829, 1040, "macaddr", read_macaddr, receive_macaddr, send_macaddr, carries="text", length=6,
        read_by_us=True, has_extremes=False, iceberg="string",
    ),
    # The same.
    Datatype(
        "macaddr8", 774, 775, "macaddr8", read_macaddr8, receive_macaddr8, send_macaddr8, carries="text", length=8,
        read_by_us=True, made_of={"macaddr": of_macaddr}, becomes={"macaddr": to_macaddr}, has_extremes=False,
        iceberg="string",
    ),
    # In Postgres's own form.
    Datatype(
        "jsonb", 3802, 3807, "jsonb", read_jsonb, wire.receive_jsonb, wire.send_jsonb,
        json=json_values.reading(of_json), carries="text", read_by_us=True, alike=False, has_extremes=False,
        iceberg="string",
    ),
)  # fmt: skip
