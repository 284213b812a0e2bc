"""How the messages of a topic become the rows of a source that is **copied**: decoded once, into a topic of ours.

Sources of ``FORMAT JSON`` over the environment's own brokers have none of this: their rows are the user's records,
read where they are.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

JSON, TEXT, BYTES, CSV, AVRO, PROTOBUF = "json", "text", "bytes", "csv", "avro", "protobuf"

NONE, UPSERT, DEBEZIUM = "none", "upsert", "debezium"
"""Each message is a row; the newest message of a key is its row; the newest ``after`` of a key is."""

KEY, VALUE, BOTH, PARTITION, OFFSET, TIMESTAMP, HEADERS = (
    "key", "value", "both", "partition", "offset", "timestamp", "headers"
)  # fmt: skip
"""What is in a column: a part of the key, of the value, or what is in both; where the message is; what comes with
it."""

METADATA = (PARTITION, OFFSET, TIMESTAMP, HEADERS)


@dataclass(frozen=True)
class Format:
    """What bytes mean.  ``columns``, ``delimiter`` and ``header`` are of CSV.  Of Avro ``schema`` is the reader's, as
    JSON; with a ``registry_id`` (a connection's) each message says by which schema it was written.  Of Protocol Buffers
    it is a ``FileDescriptorSet``, in hex, and ``message`` the type in it."""

    kind: str
    columns: int = 0
    delimiter: str = ","
    schema: str = ""
    registry_id: str = ""
    header: tuple[str, ...] = ()
    """The fields of a message that is a header, and no row; none: there is no such."""
    message: str = ""


@dataclass(frozen=True)
class Reading:
    value: Format
    key: Format | None
    roles: tuple[str, ...]
    """What is in each of the source's columns, in the order of their ids."""
    connection_id: str = ""
    """Where the brokers are; empty: the environment's own."""
    start_offsets: tuple[int, ...] = field(default=())
    """Of partitions 0, 1…: the first to be read; others begin with what is oldest, or at ``start_ms``."""
    start_ms: int | None = None
    """The first message to be read is the first of this time or later, by the brokers' word."""

    @property
    def connections(self) -> tuple[str, ...]:
        """Ids, each once, that it cannot do without."""
        formats = [self.value] if self.key is None else [self.value, self.key]
        ids = (self.connection_id, *(each.registry_id for each in formats))
        return tuple(dict.fromkeys(each for each in ids if each))

    def with_ids(self, now: Callable[[str], str]) -> Reading:
        key = None if self.key is None else replace(self.key, registry_id=now(self.key.registry_id))
        value = replace(self.value, registry_id=now(self.value.registry_id))
        return replace(self, value=value, key=key, connection_id=now(self.connection_id))

    def text(self) -> str:
        """As a record has it."""
        found = asdict(self)
        for each in (found["value"], found["key"]):
            for name in ("header", "message"):  # which code that knows format 10 alone has no names for
                if each is not None and not each[name]:
                    del each[name]
        return json.dumps(found, separators=(",", ":"))

    @classmethod
    def of_text(cls, text: str) -> Reading:
        """Raises ``LookupError`` for what is none."""
        try:
            found: Mapping[str, Any] = json.loads(text)
            return cls(
                _format(found["value"]), None if found["key"] is None else _format(found["key"]),
                tuple(found["roles"]), found["connection_id"], tuple(found["start_offsets"]), found["start_ms"],
            )  # fmt: skip
        except (ValueError, TypeError) as error:
            raise LookupError(f"reading of a source: {error}") from None


def _format(found: Mapping[str, Any]) -> Format:
    """Raises ``TypeError``."""
    made = Format(**found)
    if not isinstance(made.header, (list, tuple)) or not all(isinstance(each, str) for each in made.header):
        raise TypeError("a header of texts")
    if not isinstance(made.message, str):
        raise TypeError("a message's name")
    return replace(made, header=tuple(made.header))
