"""A short notation for histories of ``<env>.segments``."""

from __future__ import annotations

from collection.binding import Run
from journal.api import Entry
from oracle.model import Token
from segments.fold import NO_SEGMENTS, fold_segments
from segments.model import Exchange, Segment, SegmentsKind, SegmentsRecord, new_path
from segments.records import encode_segments_record


def run(collection: str, lower: int, upper: int) -> Run:
    return Run(f"t.data.{collection}", 0, lower, upper)


def segment(collection: str, number: int, unique: int, changes: int = 1, net: int | None = None) -> Segment:
    net = changes if net is None else net
    return Segment(
        new_path(collection, number, f"{unique:x}"), 10 * changes, 40 * changes, changes, net, net == changes, unique
    )


class SegmentsHistory:
    """Appends records and folds them at once; remembers the bytes, so that they can be folded again."""

    def __init__(self) -> None:
        self.state = NO_SEGMENTS
        self.entries: list[Entry] = []
        self.seq = 0

    def add(self, kind: SegmentsKind, writer: str = "w", **fields):
        self.seq += 1
        record = SegmentsRecord(Token(writer, 1, self.seq), kind, **fields)
        return self.add_bytes(encode_segments_record(record, self.state.record_version))

    def add_bytes(self, value: bytes):
        entry = Entry(self.state.next_offset, value)
        self.entries.append(entry)
        self.state, outcome = fold_segments(self.state, entry)
        return outcome

    def exchange(self, collection: str, runs=(), added=(), removed=(), through: int = 0, at_ms: int = 0):
        """Its verdict."""
        exchange = Exchange(collection, through, tuple(runs), tuple(added), tuple(each.path for each in removed))
        return self.add(SegmentsKind.EXCHANGE, exchange=exchange, at_ms=at_ms).verdicts[0]

    def files(self, collection: str) -> list[Segment]:
        return list(self.state.sealed(collection).files)
