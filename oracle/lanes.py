"""How each kind of the oracle's work shares a record, and what its callers are answered.  Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from collection.binding import Move
from journal.link import Answer, Lane
from journal.sender import LaneSpec
from journal.settling import Token
from oracle.errors import Reason, StaleCatalog, TooMuchHeld, refusal
from oracle.model import MOVES_MAX, OFFSETS_MAX, CommitPart, Kept, Kind, Offsets, Outcome, Record, Stamp, Verdict
from oracle.records import encode_record
from oracle.state import OracleState

STAMPS_PER_RECORD_MAX = 10_000
"""At most 3 MB of them with the longest names."""

NAMES_PER_RECORD_MAX = 10_000

PARTS_PER_RECORD_MAX = 1_000
"""Parts of a commit record: its fold takes some 10 ms then, and everybody else's barrier waits that long."""


RENEWALS_MAX = 3
"""How often the parts of a record are asked anew because one of them has heard of a newer catalog than another: more
than once only where the catalog moves between two questions, which are microseconds apart."""


class Compaction(NamedTuple):
    """``since`` is to move, but of collections that are ``kept``."""

    since: int
    kept: tuple[Kept, ...] = ()


class Commit(NamedTuple):
    """A part to be sent.  ``upper_now`` says, at that moment, on the newest which catalog it still is what it says."""

    part: CommitPart
    upper_now: Callable[[], int] | None = None

    def renewed(self) -> CommitPart:
        """The part as it is to be sent now."""
        if self.upper_now is None or self.part.catalog_upper_seen is None:
            return self.part
        return self.part._replace(catalog_upper_seen=max(self.part.catalog_upper_seen, self.upper_now()))


def renewed(commits: Sequence[Commit]) -> list[CommitPart]:
    """The parts of one record, on one catalog where they can be: the record brings the newest of theirs into force, and
    one that was asked before another heard of it would be refused for it."""
    parts = [each.renewed() for each in commits]
    for _ in range(RENEWALS_MAX):
        newest = max((part.catalog_upper_seen or 0 for part in parts), default=0)
        behind = [n for n, part in enumerate(parts)
                  if part.catalog_upper_seen is not None and part.catalog_upper_seen < newest]  # fmt: skip
        again = {n: commits[n].renewed() for n in behind}
        if all(parts[n] == part for n, part in again.items()):
            break
        parts = [again.get(n, part) for n, part in enumerate(parts)]
    return parts


def part_weight(part: CommitPart) -> int:
    """An upper bound of the bytes that ``part`` takes in a record (lengths and integers at their longest)."""
    runs = sum(4 * (len(b.collection) + len(b.run.topic) + len(b.run.attempt)) + 80 for b in part.bindings)
    ranges = sum(
        4 * len(each.collection) + len(each.lower or b"") + len(each.upper or b"") + 40
        for each in (*part.reads, *part.writes)
    )
    inline = sum(4 * (len(each.collection) + len(each.attempt)) + len(each.value) + 40 for each in part.inline)
    return 100 + 4 * len(part.part_id) + runs + ranges + inline


def move_weight(move: Move) -> int:
    """As :func:`part_weight`, of a move."""
    return 4 * (len(move.collection) + len(move.run.topic) + len(move.run.attempt)) + 100


def offsets_weight(offsets: Offsets) -> int:
    """As :func:`part_weight`, of offsets that are claimed, given up or retired."""
    return 4 * (len(offsets.collection) + len(offsets.run.topic) + len(offsets.run.attempt)) + 100


def make_lanes(
    catalog_upper: Callable[[], int], now_ms: Callable[[], int], state: Callable[[], OracleState]
) -> list[Lane]:
    """The lanes of an oracle client.  ``catalog_upper`` is the newest upper this process folded, ``state`` the newest
    oracle state, ``now_ms`` its clock; all are read at the moment of sending or answering."""

    def known(at_least: int = 0) -> int:
        return max(catalog_upper(), at_least, 0)

    def encode(record: Record) -> bytes:
        return encode_record(record, state().record_version)

    def barrier(token: Token, _payloads: Sequence[Any]) -> bytes:
        return encode(Record(token, known(), Kind.BARRIER))

    def at_barrier(_outcome: Outcome | None, payloads: Sequence[Any]) -> Sequence[Answer]:
        return [state()] * len(payloads)

    def apply(token: Token, uppers: Sequence[int]) -> bytes:
        return encode(Record(token, known(max(uppers)), Kind.APPLY))

    def commit(token: Token, commits: Sequence[Commit]) -> bytes:
        # Before the parts are asked: by a catalog that came in between, the record would refuse its own parts.
        now, upper = now_ms(), known()
        parts = renewed(commits)
        stamped = tuple(part if part.proposed_ts else part._replace(proposed_ts=now) for part in parts)
        seen = max((part.catalog_upper_seen or 0 for part in parts), default=0)
        return encode(Record(token, max(upper, seen), Kind.COMMIT, parts=stamped))

    def committed(outcome: Outcome, commits: Sequence[Commit]) -> Sequence[Answer]:
        if outcome.refused is not None:
            return _whole(outcome, len(commits))
        return [_part_answer(each.part, verdict) for each, verdict in zip(commits, outcome.verdicts, strict=True)]

    def stamps(kind: Kind) -> Callable[[Token, Sequence[Stamp]], bytes]:
        return lambda token, payloads: encode(Record(token, known(), kind, stamps=tuple(payloads)))

    def stamped(result: Callable[[Verdict], Answer]) -> Callable[[Outcome, Sequence[Any]], Sequence[Answer]]:
        def answers(outcome: Outcome, payloads: Sequence[Any]) -> Sequence[Answer]:
            if outcome.refused is not None:
                return _whole(outcome, len(payloads))
            return [result(v) if v.reason is None else refusal(v.reason, v.detail) for v in outcome.verdicts]

        return answers

    def forget(token: Token, names: Sequence[str]) -> bytes:
        return encode(Record(token, known(), Kind.FORGET, names=tuple(names)))

    def compact(token: Token, asked: Sequence[Compaction]) -> bytes:
        [one] = asked
        return encode(Record(token, known(), Kind.COMPACT, ts=one.since, kept=one.kept))

    def format(token: Token, versions: Sequence[int]) -> bytes:
        return encode(Record(token, known(), Kind.FORMAT, ts=max(versions)))

    def move(token: Token, moves: Sequence[Move]) -> bytes:
        return encode(Record(token, known(), Kind.MOVE, moves=tuple(moves)))

    def offsets(kind: Kind) -> Callable[[Token, Sequence[Offsets]], bytes]:
        return lambda token, payloads: encode(Record(token, known(), kind, offsets=tuple(payloads)))

    def done(outcome: Outcome, payloads: Sequence[Any]) -> Sequence[Answer]:
        return _whole(outcome, len(payloads)) if outcome.refused is not None else [None] * len(payloads)

    return [
        Lane(LaneSpec(Kind.BARRIER, read=True), barrier, at_barrier),
        Lane(LaneSpec(Kind.APPLY), apply, done),
        Lane(LaneSpec(Kind.COMMIT, PARTS_PER_RECORD_MAX), commit, committed),
        Lane(LaneSpec(Kind.ADVANCE, STAMPS_PER_RECORD_MAX), stamps(Kind.ADVANCE), stamped(lambda _verdict: None)),
        Lane(LaneSpec(Kind.WRITE_TS, STAMPS_PER_RECORD_MAX), stamps(Kind.WRITE_TS), stamped(lambda v: v.ts)),
        Lane(LaneSpec(Kind.APPLY_WRITE, STAMPS_PER_RECORD_MAX), stamps(Kind.APPLY_WRITE), stamped(lambda _v: None)),
        Lane(LaneSpec(Kind.FORGET, NAMES_PER_RECORD_MAX), forget, done),
        Lane(LaneSpec(Kind.COMPACT, 1), compact, done),
        Lane(LaneSpec(Kind.FORMAT), format, done),
        Lane(LaneSpec(Kind.MOVE, MOVES_MAX), move, stamped(lambda _verdict: None)),
        Lane(LaneSpec(Kind.CLAIM, OFFSETS_MAX), offsets(Kind.CLAIM), done),
        Lane(LaneSpec(Kind.GIVE_UP, OFFSETS_MAX), offsets(Kind.GIVE_UP), stamped(lambda _verdict: None)),
        Lane(LaneSpec(Kind.RETIRE, OFFSETS_MAX), offsets(Kind.RETIRE), stamped(lambda _verdict: None)),
    ]


def fence_record(token: Token, catalog_upper: int, version: int) -> bytes:
    """The record after which nothing counts that was sent before it."""
    return encode_record(Record(token, max(catalog_upper, 0), Kind.FENCE), version)


def _part_answer(part: CommitPart, verdict: Verdict) -> Answer:
    if verdict.reason is None:
        return verdict.ts
    if verdict.reason is Reason.STALE_CATALOG:
        return StaleCatalog(part.catalog_upper_seen or 0, verdict.actual)
    if verdict.reason is Reason.HELD:
        return TooMuchHeld(verdict.detail)
    return refusal(verdict.reason, verdict.detail)


def _whole(outcome: Outcome, count: int) -> list[Answer]:
    """Answers of a record that counted for nothing.

    Its sender knew of a fenced record before it sees it, so this is one that the fold found malformed: a mistake
    in this code, and yet something that is known not to have happened.
    """
    return [refusal(outcome.refused or Reason.MALFORMED, f"at offset {outcome.offset}")] * count
