"""The oracle's records as bytes and back, with every rule that a record must keep to be folded.  Pure.

Promises: ``decode_record(encode_record(r)) == r`` for every valid record; anything else raises :class:`Malformed`, in
every reader alike, and with the record's token where that much could be read (so that its sender is told).
"""

from __future__ import annotations

from typing import Any

from collection.binding import Binding, Run
from journal.errors import InvalidUsage
from oracle.model import (
    CommitPart,
    KeyRange,
    Kind,
    Record,
    Stamp,
    Token,
    check_name,
    check_part,
    check_ts,
)
from schemas import codec

ORACLE_RECORD = "oracle_record"

SCHEMA_VERSION_MAX = 1
"""Of records on the oracle's and the views' topics.  A record above it counts for nobody, also for code that could read
it: two releases side by side must fold the same.  Raising it takes a record that says from where on (as the catalog's
format version does, which lives in its genesis), never a newer schema alone."""


class Malformed(ValueError):
    """The bytes are not a valid record.  ``token`` names its sender's record where it could be read."""

    def __init__(self, reason: str, token: Token | None = None) -> None:
        super().__init__(reason)
        self.token = token


def run_to_dict(run: Run) -> dict[str, Any]:
    return run._asdict()


def run_from_dict(run: dict[str, Any]) -> Run:
    return Run(run["topic"], run["partition"], run["lower"], run["upper"], run["attempt"], run["rows"])


def _part_to_dict(part: CommitPart) -> dict[str, Any]:
    return {
        "part_id": part.part_id,
        "bindings": [
            {"collection": collection, "run": run_to_dict(run), "contiguous": contiguous}
            for collection, run, contiguous in part.bindings
        ],
        "proposed_ts": part.proposed_ts,
        "catalog_upper_seen": part.catalog_upper_seen,
        "read_ts": part.read_ts,
        "reads": [each._asdict() for each in part.reads],
        "writes": [each._asdict() for each in part.writes],
    }


def _part_from_dict(part: dict[str, Any]) -> CommitPart:
    return CommitPart(
        part["part_id"],
        tuple(Binding(b["collection"], run_from_dict(b["run"]), b["contiguous"]) for b in part["bindings"]),
        part["proposed_ts"],
        part["catalog_upper_seen"],
        part["read_ts"],
        tuple(_range_from_dict(each) for each in part["reads"]),
        tuple(_range_from_dict(each) for each in part["writes"]),
    )


def _range_from_dict(each: dict[str, Any]) -> KeyRange:
    return KeyRange(each["collection"], each["lower"], each["upper"])


def encode_record(record: Record) -> bytes:
    """``record`` as bytes of the topic."""
    token = record.token
    return codec.encode(
        ORACLE_RECORD,
        {
            "writer": token.writer,
            "incarnation": token.incarnation,
            "seq": token.seq,
            "catalog_upper": record.catalog_upper,
            "kind": record.kind.value,
            "parts": [_part_to_dict(part) for part in record.parts],
            "stamps": [{"timeline": name, "ts": ts} for name, ts in record.stamps],
            "names": record.names,
            "ts": record.ts,
        },
    )


def token_of(raw: dict[str, Any]) -> Token:
    """The token in a decoded record of either topic.  Raises :class:`Malformed`."""
    token = Token(raw["writer"], raw["incarnation"], raw["seq"])
    try:
        check_name("writer", token.writer)
    except InvalidUsage as error:
        raise Malformed(error.message) from error
    if token.incarnation < 1 or token.seq < 0:
        raise Malformed(f"invalid incarnation or seq in {token}")
    return token


def decode_in_format(name: str, value: bytes) -> dict[str, Any]:
    """The fields of a record that both topics' format allows.  Raises :class:`Malformed`."""
    try:
        if codec.frame_version(value) > SCHEMA_VERSION_MAX:
            raise Malformed(f"schema version {codec.frame_version(value)} in a log of version {SCHEMA_VERSION_MAX}")
        return codec.decode(name, value)
    except codec.Undecodable as error:
        raise Malformed(str(error)) from error


def decode_record(value: bytes) -> Record:
    """The record in ``value``.  Raises :class:`Malformed` and nothing else."""
    raw = decode_in_format(ORACLE_RECORD, value)
    token = token_of(raw)
    try:
        record = Record(
            token,
            raw["catalog_upper"],
            Kind(raw["kind"]),
            tuple(_part_from_dict(part) for part in raw["parts"]),
            tuple(Stamp(each["timeline"], each["ts"]) for each in raw["stamps"]),
            tuple(raw["names"]),
            raw["ts"],
        )
        _check(record)
    except InvalidUsage as error:
        raise Malformed(error.message, token) from error
    except ValueError as error:
        raise Malformed(str(error), token) from error
    return record


def _check(record: Record) -> None:
    """Raises ``InvalidUsage`` where the record breaks a rule that its fold relies on."""
    check_ts(record.catalog_upper)
    for part in record.parts:
        check_part(part)
    for stamp in record.stamps:
        check_name("timeline", stamp.timeline)
        check_ts(stamp.ts)
    for name in record.names:
        check_name("collection", name)
    check_ts(record.ts)
