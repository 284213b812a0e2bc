"""The log as a witness: what really is on a topic, told in lines that people and checkers read.  Pure but for the two
``read_`` functions.

Promises: a line holds what the record's bytes say and nothing of what anybody made of them; bytes that are no record
become a line of kind ``garbage`` and never an error; ``admitted`` decides by I1 alone, from the lines, without the
product's fold: a fold that errs is found out by disagreeing with it.

It does not promise that the lines are the whole log: whoever writes them sees to that (:func:`gaps` tells).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from pathlib import Path
from typing import Any, NamedTuple

from catalog_log import model
from catalog_log.records import KNOWN_FORMATS, SCHEMA_VERSION_MAX, decode_proposal, decode_value, version_max
from journal.api import Entry
from oracle.model import CommitPart, Token
from oracle.records import Malformed, decode_record
from schemas import codec

PROPOSAL, GENESIS, GARBAGE = "proposal", "genesis", "garbage"

Seen = Callable[[Entry], "int | None"] | int | None
"""When the observer saw a record, in monotonic nanoseconds: one moment for all, or a function of the record."""

STEP_MS_MAX = 1000 * 365 * 86_400_000
"""The largest step of the upper that makes sense, a thousand years: a rule of the catalog's format, so it is said here
again and not asked of the fold."""

GARBAGE_BYTES_SHOWN = 32


class Change(NamedTuple):
    """One update of a proposal: ``value`` as text, ``None`` where the key is removed."""

    collection: str
    key: str
    value: str | None


@dataclass(frozen=True, slots=True)
class CatalogRecord:
    """One record of a catalog topic."""

    offset: int
    seen: int | None
    kind: str
    proposal_id: str = ""
    writer: str = ""
    expected_upper: int = 0
    new_upper: int = 0
    updates: tuple[Change, ...] = ()
    flaw: str = ""
    """Why no reader may admit it whatever the upper, where its bytes alone say so."""
    format_version: int = 0
    """Must be the genesis's."""

    @property
    def request_ids(self) -> list[str]:
        """The DDL requests that it executes."""
        return [key for collection, key, value in self.updates if collection == model.REQUESTS and value is not None]

    def puts(self, collection: str) -> Iterator[tuple[str, str]]:
        """``(key, value)`` of everything that it puts into ``collection``."""
        return ((u.key, u.value) for u in self.updates if u.collection == collection and u.value is not None)


@dataclass(frozen=True, slots=True)
class OracleRecord:
    """One record of an oracle topic; ``kind`` is the record's own or ``garbage``."""

    offset: int
    seen: int | None
    kind: str
    writer: str = ""
    incarnation: int = 0
    seq: int = -1
    catalog_upper: int = 0
    ts: int = 0
    stamps: tuple[tuple[str, int], ...] = ()
    names: tuple[str, ...] = ()
    parts: tuple[dict[str, Any], ...] = ()
    """Of a commit: ``part_id``, ``bindings`` ([collection, topic, partition, lower, upper, attempt, rows]), …"""
    flaw: str = ""


# -- raw records to lines


def catalog_lines(entries: Iterable[Entry], seen: Seen = None) -> Iterator[dict[str, Any]]:
    """A JSON-able line for each raw record of a catalog topic, in the order given.  Never raises for what they hold."""
    for entry in entries:
        yield {"offset": entry.offset, "seen": _seen(seen, entry), **_catalog_fields(entry.value)}


def oracle_lines(entries: Iterable[Entry], seen: Seen = None) -> Iterator[dict[str, Any]]:
    """A JSON-able line for each raw record of an oracle topic, in the order given.  Never raises for what they hold."""
    for entry in entries:
        yield {"offset": entry.offset, "seen": _seen(seen, entry), **_oracle_fields(entry.value)}


def _seen(seen: Seen, entry: Entry) -> int | None:
    return seen(entry) if callable(seen) else seen


def _garbage(value: bytes | None, reason: str, **more: Any) -> dict[str, Any]:
    value = value or b""
    return {"kind": GARBAGE, "flaw": reason, "bytes": len(value), "hex": value[:GARBAGE_BYTES_SHOWN].hex(), **more}


def _catalog_fields(value: bytes) -> dict[str, Any]:
    try:
        # What a newer schema version wrote is garbage to a log of the known format, though it may look readable.
        newest = max(SCHEMA_VERSION_MAX.values())
        if codec.frame_version(value) > newest:
            return _garbage(value, f"schema version {codec.frame_version(value)} is above {newest}")
        proposal = decode_proposal(value)
    except (codec.Undecodable, TypeError) as error:
        return _garbage(value, str(error))
    fields: dict[str, Any] = {
        "kind": GENESIS if proposal.genesis is not None else PROPOSAL,
        "proposal_id": proposal.proposal_id,
        "writer": proposal.writer,
        "expected_upper": proposal.expected_upper,
        "new_upper": proposal.new_upper,
        "format_version": proposal.format_version,
        "updates": [[u.collection, u.key, _value_text(u.collection, u.value)] for u in proposal.updates],
    }
    if requests := [u.key for u in proposal.updates if u.collection == model.REQUESTS and u.value is not None]:
        fields["request_ids"] = requests
    if proposal.genesis is not None:
        fields["genesis"] = asdict(proposal.genesis)
    if flaw := _flaw(proposal):
        fields["flaw"] = flaw
    return fields


def _value_text(collection: str, value: bytes | None) -> str | None:
    """A setting as it is, other values as JSON; what cannot be decoded in hexadecimal (the fold never decodes it)."""
    if value is None:
        return None
    try:
        found = decode_value(collection, value)
    except (codec.Undecodable, KeyError, TypeError):
        return f"hex:{value[:GARBAGE_BYTES_SHOWN].hex()}"
    if collection == model.SETTINGS:
        return found.value
    return json.dumps(asdict(found) if is_dataclass(found) else str(found), separators=(",", ":"))


def _flaw(proposal: Any) -> str:
    """What makes a proposal malformed by its own bytes."""
    if not proposal.proposal_id:
        return "it has no id"
    if proposal.format_version not in KNOWN_FORMATS:
        return f"format {proposal.format_version}"
    if proposal.genesis is not None and proposal.genesis.format_version != proposal.format_version:
        return f"format {proposal.format_version} with a genesis of format {proposal.genesis.format_version}"
    for update in proposal.updates:
        if update.collection not in model.collections_of(proposal.format_version):
            return f"unknown collection {update.collection!r}"
        if (update.diff, update.value is None) not in ((1, False), (-1, True)):
            return f"{update.collection} {update.key!r}: diff {update.diff}"
        if update.value is not None:
            try:
                version = codec.frame_version(update.value)
            except codec.Undecodable as error:
                return f"{update.collection} {update.key!r}: {error}"
            if not 1 <= version <= version_max(proposal.format_version, update.collection):
                return f"{update.collection} {update.key!r}: schema version {version}"
    return ""


def _oracle_fields(value: bytes) -> dict[str, Any]:
    try:
        record = decode_record(value)
    except Malformed as error:
        return _garbage(value, str(error), **({} if error.token is None else _token_fields(error.token)))
    fields: dict[str, Any] = {
        "kind": record.kind.value, **_token_fields(record.token), "catalog_upper": record.catalog_upper,
    }  # fmt: skip
    if record.ts:
        fields["ts"] = record.ts
    if record.stamps:
        fields["stamps"] = [list(stamp) for stamp in record.stamps]
    if record.names:
        fields["names"] = list(record.names)
    if record.moves:
        fields["moves"] = [[collection, number, *run] for collection, number, run in record.moves]
    if record.offsets:
        fields["offsets"] = [[collection, *run] for collection, run in record.offsets]
    if record.parts:
        fields["parts"] = [_part_fields(part) for part in record.parts]
    return fields


def _token_fields(token: Token) -> dict[str, Any]:
    return {"writer": token.writer, "incarnation": token.incarnation, "seq": token.seq}


def _part_fields(part: CommitPart) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "part_id": part.part_id,
        "bindings": [[collection, *run] for collection, run, _contiguous in part.bindings],
        "proposed_ts": part.proposed_ts,
        "catalog_upper_seen": part.catalog_upper_seen,
        "read_ts": part.read_ts,
    }
    if part.inline:
        fields["inline"] = [[each.collection, each.attempt, each.rows, len(each.value)] for each in part.inline]
    for name, ranges in (("reads", part.reads), ("writes", part.writes)):
        if ranges:
            fields[name] = [[each.collection, _hex(each.lower), _hex(each.upper)] for each in ranges]
    return fields


def _hex(key: bytes | None) -> str | None:
    return None if key is None else key.hex()


# -- lines to records


def catalog_record(line: dict[str, Any]) -> CatalogRecord:
    """The record that a line of :func:`catalog_lines` tells of."""
    return CatalogRecord(
        line["offset"], line.get("seen"), line["kind"], line.get("proposal_id", ""), line.get("writer", ""),
        line.get("expected_upper", 0), line.get("new_upper", 0),
        tuple([Change(*update) for update in line.get("updates", ())]), line.get("flaw", ""),
        line.get("format_version", 0),
    )  # fmt: skip


def oracle_record(line: dict[str, Any]) -> OracleRecord:
    """The record that a line of :func:`oracle_lines` tells of."""
    return OracleRecord(
        line["offset"], line.get("seen"), line["kind"], line.get("writer", ""), line.get("incarnation", 0),
        line.get("seq", -1), line.get("catalog_upper", 0), line.get("ts", 0),
        tuple([(name, ts) for name, ts in line.get("stamps", ())]), tuple(line.get("names", ())),
        tuple(line.get("parts", ())), line.get("flaw", ""),
    )  # fmt: skip


def read_catalog(path: Path) -> list[CatalogRecord]:
    """The records of a ``log-catalog.jsonl``.  Raises ``FileNotFoundError``, ``ValueError`` for what is not one."""
    return [catalog_record(line) for line in _read(path)]


def read_oracle(path: Path) -> list[OracleRecord]:
    """The records of a ``log-oracle.jsonl``.  Raises ``FileNotFoundError``, ``ValueError`` for what is not one."""
    return [oracle_record(line) for line in _read(path)]


def _read(path: Path) -> Iterator[dict[str, Any]]:
    with path.open() as file:
        for line in file:
            yield json.loads(line)


# -- the verdict of the log


def admitted(records: Iterable[CatalogRecord]) -> list[CatalogRecord]:
    """Those that count, in order (I1): ``expected_upper`` is the upper there, ``new_upper`` is above it, and it makes
    sense: nothing before a genesis, one genesis only and everything of its format, nothing removed that is not there.
    """
    upper, begun, format_version = 0, False, 0
    present: set[tuple[str, str]] = set()
    found = []
    for record in records:
        if record.kind == GARBAGE or record.flaw or record.expected_upper != upper:
            continue
        if not upper < record.new_upper <= upper + STEP_MS_MAX or begun == (record.kind == GENESIS):
            continue
        if begun and record.format_version != format_version:
            continue
        if any(u.value is None for u in record.updates):
            after = _present_after(present, record.updates)
            if after is None:
                continue
            present = after
        else:
            present.update((u.collection, u.key) for u in record.updates)
        upper, begun, format_version = record.new_upper, True, record.format_version
        found.append(record)
    return found


def _present_after(present: set[tuple[str, str]], updates: Sequence[Change]) -> set[tuple[str, str]] | None:
    """``present`` with ``updates`` made, or ``None`` (and it as it was) where one removes what is not there."""
    undo: list[tuple[tuple[str, str], bool]] = []
    for collection, key, value in updates:
        place = (collection, key)
        there = place in present
        if value is None and not there:
            for earlier, was in reversed(undo):
                (present.add if was else present.discard)(earlier)
            return None
        undo.append((place, there))
        (present.discard if value is None else present.add)(place)
    return present


def gaps(records: Sequence[CatalogRecord] | Sequence[OracleRecord], begins: int | None = 0) -> list[str]:
    """Where offsets do not follow one another, in words: a hole, a record told twice, a log that does not begin at
    ``begins`` (``None``: it may have been cut)."""
    found = []
    if begins is not None and records and records[0].offset != begins:
        found.append(f"the log begins at offset {records[0].offset}, expected {begins}: its beginning is gone")
    for before, after in zip(records, records[1:], strict=False):
        if after.offset != before.offset + 1:
            found.append(f"offset {after.offset} follows offset {before.offset}")
    return found
