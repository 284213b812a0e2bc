"""The oracle's records as bytes and back, with every rule that a record must keep to be folded.  Pure.

Promises: ``decode_record(encode_record(r)) == r`` for every valid record; anything else raises :class:`Malformed`, in
every reader alike, and with the record's token where that much could be read (so that its sender is told).
"""

from __future__ import annotations

from typing import Any

from collection.binding import INLINE, Binding, Inline, Move, Run
from journal.errors import InvalidUsage
from oracle.model import (
    KEPT_MAX,
    MOVES_MAX,
    OFFSETS_MAX,
    CommitPart,
    Kept,
    KeyRange,
    Kind,
    Offsets,
    Record,
    Stamp,
    Token,
    check_move,
    check_name,
    check_offsets,
    check_part,
    check_ts,
)
from schemas import codec

OF_OFFSETS = frozenset((Kind.CLAIM, Kind.GIVE_UP, Kind.RETIRE))

ORACLE_RECORD = "oracle_record"

CARRYING, KEEPING, GIVING_UP, CARRIED_SEALED = 2, 3, 4, 5
"""From which version on commits carry rows, history of some collections is kept for longer, offsets are claimed, given
up and retired, and rows that the log carries are sealed where they are."""

RECORD_VERSIONS = (1, CARRYING, KEEPING, GIVING_UP, CARRIED_SEALED)
"""Of records on the oracle's topic.  One above what is in force (``OracleState.record_version``) counts for nobody,
also for code that could read it: two releases side by side must fold the same.  A record says from where on a newer one
counts (``Kind.FORMAT``), and it is written where the catalog's format keeps out code that does not know it.

Version 2 lets commits carry rows, and rows be moved out of them; version 3 lets a COMPACT spare collections; version 4
has claims on offsets, gives up such as nobody binds, and retires those whose rows are in files alone.  From version 5
on numbers of rows that the log carries may be retired, too, and those at or below ``since`` are not moved to a topic:
the log of segments knows them by these numbers, and no row may have two names."""


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
        "inline": [each._asdict() for each in part.inline],
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
        tuple(Inline(each["collection"], each["value"], each["attempt"], each["rows"]) for each in part["inline"]),
    )


def _range_from_dict(each: dict[str, Any]) -> KeyRange:
    return KeyRange(each["collection"], each["lower"], each["upper"])


def encode_record(record: Record, version: int = 1) -> bytes:
    """``record`` as bytes of the topic, of that version.  Raises ``ValueError`` where it says what that has no words
    for."""
    token = record.token
    if version < 2 and (record.moves or any(part.inline for part in record.parts)):
        raise ValueError("a record of version 1 carries and moves no rows")
    if version < KEEPING and record.kept:
        raise ValueError("no record below version 3 keeps history")
    if version < GIVING_UP and record.offsets:
        raise ValueError("no record below version 4 claims, gives up or retires offsets")
    if version < CARRIED_SEALED and any(run.topic == INLINE for _, run in record.offsets):
        raise ValueError("no record below version 5 retires rows that the log carries")
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
            "moves": [{"collection": name, "number": number, "run": run_to_dict(run)}
                      for name, number, run in record.moves],
            "kept": [each._asdict() for each in record.kept],
            "offsets": [{"collection": name, "run": run_to_dict(run)} for name, run in record.offsets],
        },
        written=version,
    )  # fmt: skip


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


def decode_in_format(name: str, value: bytes, version_max: int = 1) -> dict[str, Any]:
    """The fields of a record that is of ``version_max`` at most.  Raises :class:`Malformed`."""
    try:
        if codec.frame_version(value) > version_max:
            raise Malformed(f"schema version {codec.frame_version(value)} in a log of version {version_max}")
        return codec.decode(name, value)
    except codec.Undecodable as error:
        raise Malformed(str(error)) from error


def decode_record(value: bytes, version_max: int = RECORD_VERSIONS[-1]) -> Record:
    """The record in ``value``, in a log whose records are of ``version_max`` at most.  Raises :class:`Malformed` and
    nothing else."""
    raw = decode_in_format(ORACLE_RECORD, value, version_max)
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
            tuple(Move(each["collection"], each["number"], run_from_dict(each["run"])) for each in raw["moves"]),
            tuple(Kept(each["collection"], each["since"]) for each in raw["kept"]),
            tuple(Offsets(each["collection"], run_from_dict(each["run"])) for each in raw["offsets"]),
        )
        _check(record, version_max)
    except InvalidUsage as error:
        raise Malformed(error.message, token) from error
    except ValueError as error:
        raise Malformed(str(error), token) from error
    return record


def _check(record: Record, version: int) -> None:
    """Raises ``InvalidUsage`` where the record, in a log of that version, breaks a rule that its fold relies on."""
    check_ts(record.catalog_upper)
    for part in record.parts:
        check_part(part)
    for stamp in record.stamps:
        check_name("timeline", stamp.timeline)
        check_ts(stamp.ts)
    for name in record.names:
        check_name("collection", name)
    check_ts(record.ts)
    if record.kind is Kind.MOVE and not record.moves:  # also of version 1, which has no words for them
        raise InvalidUsage("a move of nothing")
    if len(record.moves) > MOVES_MAX:
        raise InvalidUsage(f"too many moves in one record: {len(record.moves)}", hint=f"at most {MOVES_MAX}")
    for move in record.moves:
        check_move(move)
    if len(record.kept) > KEPT_MAX:
        raise InvalidUsage(f"too many collections kept by one record: {len(record.kept)}", hint=f"at most {KEPT_MAX}")
    for kept in record.kept:
        check_name("collection", kept.collection)
        check_ts(kept.since)
    if record.kind in OF_OFFSETS and not record.offsets:  # also of versions that have no words for them
        raise InvalidUsage(f"a {record.kind} of nothing")
    if len(record.offsets) > OFFSETS_MAX:
        raise InvalidUsage(f"too many ranges in one record: {len(record.offsets)}", hint=f"at most {OFFSETS_MAX}")
    may_be_carried = record.kind is Kind.RETIRE and version >= CARRIED_SEALED
    for offsets in record.offsets:
        check_offsets(offsets, may_be_carried)
