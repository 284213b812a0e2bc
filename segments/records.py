"""The records of ``<env>.segments`` as bytes and back.  Pure.

Promises: ``decode_segments_record(encode_segments_record(r)) == r`` for every valid record; anything else raises
:class:`~oracle.records.Malformed`, in every reader alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from collection.binding import Run
from journal.errors import InvalidUsage
from oracle.model import check_name, check_ts
from oracle.records import Malformed, decode_in_format, token_of
from schemas import codec
from segments.model import (
    Exchange,
    Segment,
    SegmentsKind,
    SegmentsRecord,
    check_exchange,
    check_paths,
    shares,
)

SEGMENTS_RECORD = "segments_record"

STATISTICS_VERSION, SHARED_VERSION = 2, 3

RECORD_VERSIONS = (1, STATISTICS_VERSION, SHARED_VERSION)
"""Of records of ``<env>.segments``.  One above what is in force (``SegmentsState.record_version``) counts for nobody,
as on the oracle's topic (:mod:`oracle.records`).

Version 2 says of files which values they hold.  Older code could do without, but not read such a record: it would take
the exchange for none, and look for rows where they are no longer.  Version 3 names parts of files, and seals what the
oracle's log carries: older code would take such a record for none, too.
"""

NO_EXCHANGE = Exchange("")


def encode_segments_record(record: SegmentsRecord, version: int = 1) -> bytes:
    """``record`` as bytes of the topic, of that version.  Raises ``ValueError`` where it says what that has no words
    for."""
    token, exchange = record.token, record.exchange or NO_EXCHANGE
    if version < STATISTICS_VERSION and any(each.statistics for each in exchange.added):
        raise ValueError("a record of version 1 has no statistics of files")
    if version < SHARED_VERSION and shares(record):
        raise ValueError("no record below version 3 names parts of files, or seals what the oracle's log carries")
    return codec.encode(
        SEGMENTS_RECORD,
        {
            "writer": token.writer,
            "incarnation": token.incarnation,
            "seq": token.seq,
            "kind": record.kind.value,
            "at_ms": record.at_ms,
            "collection": exchange.collection,
            "through": exchange.through,
            "runs": [
                {"topic": each.topic, "partition": each.partition, "lower": each.lower, "upper": each.upper}
                for each in exchange.runs
            ],
            "added": [each._asdict() for each in exchange.added],
            "paths": exchange.removed or record.paths,
            "names": record.names,
            "below": record.below,
        },
        written=version,
    )


def decode_segments_record(value: bytes, version_max: int = RECORD_VERSIONS[-1]) -> SegmentsRecord:
    """The record in ``value``, in a log whose records are of ``version_max`` at most.  Raises
    :class:`~oracle.records.Malformed` and nothing else."""
    raw = decode_in_format(SEGMENTS_RECORD, value, version_max)
    token = token_of(raw)
    try:
        kind = SegmentsKind(raw["kind"])
        paths, exchange = tuple(raw["paths"]), None
        if kind is SegmentsKind.EXCHANGE:
            runs = tuple(Run(r["topic"], r["partition"], r["lower"], r["upper"]) for r in raw["runs"])
            added = tuple(map(segment_from_dict, raw["added"]))
            exchange, paths = Exchange(raw["collection"], raw["through"], runs, added, paths), ()
        record = SegmentsRecord(token, kind, raw["at_ms"], exchange, paths, tuple(raw["names"]), raw["below"])
        _check(record, version_max)
    except InvalidUsage as error:
        raise Malformed(error.message, token) from error
    except ValueError as error:
        raise Malformed(str(error), token) from error
    return record


def segment_from_dict(raw: Mapping[str, Any]) -> Segment:
    """A file as a record or an image has it."""
    return Segment(
        raw["path"], raw["size"], raw["loaded"], raw["changes"], raw["net"], raw["plain"], raw["crc32"],
        raw["statistics"] or b"",  # where an older record has none Avro's default for bytes is a str
    )  # fmt: skip


def _check(record: SegmentsRecord, version: int) -> None:
    check_ts(record.at_ms)
    if record.exchange is not None:
        check_exchange(record.exchange)
    check_paths(record.paths)
    # What older code cannot read must count for nobody, who is beside it: whatever version the record says it is of.
    if version < SHARED_VERSION and shares(record):
        raise InvalidUsage(f"parts of files, or rows of the oracle's log, in a log of version {version}")
    if record.below < 0:
        raise InvalidUsage(f"invalid number of a file {record.below}")
    for name in record.names:
        check_name("collection", name)
