"""The records of the oracle topic as values, and what the fold answers to each.  Pure.

A record is one of the ``Kind``s in an envelope that says who sent it and which catalog upper the sender knew.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from collection.binding import INLINE, Binding, Inline, Move, Run
from journal.errors import InvalidUsage
from journal.settling import Token
from oracle.errors import Reason

TS_MAX = 253_402_300_799_999
"""The last millisecond of the year 9999: a timestamp or upper above it is malformed.

One hostile or broken clock must not be able to push a timeline to where it cannot move any more.
"""

NAME_LENGTH_MAX = 255
"""Longest writer, timeline, collection or part id; Kafka's own limit for topic names is 249."""

BINDINGS_MAX = 20_000
"""Bindings, reads and writes of one part, each: a run is about 60 bytes, so they stay below the 4 MiB of a record."""


INLINE_BYTES_MAX = 64 << 10
"""Of rows that one part carries: four times what an adapter puts into one (``adapter.execute.placing``), and 64 of them
fill a record."""

MOVES_MAX = 10_000
"""In one record: at most 2 MB."""


KEPT_MAX = 10_000
"""Collections that a record may name as kept: at most 3 MB."""

OFFSETS_MAX = 4_000
"""Ranges of offsets that a record may claim, give up or retire: at most 3 MB with the longest names."""


class Kind(StrEnum):
    BARRIER = "barrier"
    """Nothing but its place in the log: whoever folded up to it holds the read_ts of every timeline."""
    APPLY = "apply"
    """Nothing but its envelope: the catalog upper in it is in force from here on."""
    COMMIT = "commit"
    """Parts, each admitted or refused; all admitted ones become visible at one new timestamp of ``table``."""
    ADVANCE = "advance"
    """Timelines are at least at these timestamps."""
    WRITE_TS = "write_ts"
    """Give a new timestamp of each named timeline."""
    APPLY_WRITE = "apply_write"
    """Writes at these timestamps are finished: reads from here on see them."""
    FORGET = "forget"
    """These collections are gone; so are their bindings, and when they were written (``OracleState.forgettable``)."""
    COMPACT = "compact"
    """History below ``ts`` need not be told apart any more, but for collections that are ``kept``: ``since`` moves."""
    FORMAT = "format"
    """Records may be of version ``ts`` from here on.  Whoever writes it knows that everybody can read them: by the
    catalog's format, which old code stops at (``catalog_log.records.INLINE_FROM``)."""
    MOVE = "move"
    """Rows that commits carried are on topics now: the same rows at the same timestamps, elsewhere (I5)."""
    CLAIM = "claim"
    """These offsets were written by somebody who is still to bind them: they are not given up for a while."""
    GIVE_UP = "give_up"
    """Nobody is to bind these offsets any more: a commit of them is refused from here on, as of what is bound."""
    RETIRE = "retire"
    """Rows of these offsets are in files alone, and nobody tells apart when which was bound: they are one run."""
    FENCE = "fence"
    """Nothing but its number: no record of its writer with a smaller one counts from here on (as after any record)."""


class Stamp(NamedTuple):
    """A timestamp of a timeline: proposed, reached or finished, as the record's kind says."""

    timeline: str
    ts: int


class Kept(NamedTuple):
    """Of ``collection`` timestamps from ``since`` on are told apart, however far everybody's ``since`` has come."""

    collection: str
    since: int


class Offsets(NamedTuple):
    """Offsets ``run`` of the topic of ``collection``: to be claimed, given up or retired, as the record's kind says."""

    collection: str
    run: Run


class KeyRange(NamedTuple):
    """Keys ``[lower, upper)`` of a collection in the order of their bytes; ``None`` is unbounded, so both: all keys."""

    collection: str
    lower: bytes | None = None
    upper: bytes | None = None


class CommitPart(NamedTuple):
    """One transaction's share of a commit record.  Admitted or refused as a whole.

    ``proposed_ts`` 0 means "now" by the client's clock; the fold gives at least this, and more if time is further on.
    ``catalog_upper_seen`` is the upper of the image it was planned on, ``None`` if it does not depend on one.
    ``read_ts`` and ``reads`` ask for first-committer-wins: refused if any of ``reads`` was written after ``read_ts``.
    ``writes`` narrows what it writes for others' checks: keys of collections; a bound collection without an entry
    there counts as written everywhere.
    ``inline`` are rows that the record carries itself, beside ``bindings`` of what lies on topics.
    """

    part_id: str
    bindings: tuple[Binding, ...] = ()
    proposed_ts: int = 0
    catalog_upper_seen: int | None = None
    read_ts: int | None = None
    reads: tuple[KeyRange, ...] = ()
    writes: tuple[KeyRange, ...] = ()
    inline: tuple[Inline, ...] = ()


class Record(NamedTuple):
    """A record of the oracle topic.  Only the fields of its kind are set."""

    token: Token
    catalog_upper: int
    kind: Kind
    parts: tuple[CommitPart, ...] = ()
    stamps: tuple[Stamp, ...] = ()
    names: tuple[str, ...] = ()
    ts: int = 0
    moves: tuple[Move, ...] = ()
    kept: tuple[Kept, ...] = ()
    offsets: tuple[Offsets, ...] = ()


class Verdict(NamedTuple):
    """What became of one part or stamp: it happened at ``ts``, or did not for ``reason`` (and never will)."""

    ts: int = 0
    reason: Reason | None = None
    detail: str = ""
    actual: int = 0
    """What disagreed: the catalog upper, epoch or view upper in force, where ``reason`` is about one."""
    subject: str = ""
    """The view that it was about, where it was about one."""


class Outcome(NamedTuple):
    """What the fold answered to a record.  ``token`` is ``None`` where the bytes could not be read."""

    token: Token | None
    offset: int
    kind: str
    refused: Reason | None = None
    """Set if the record as a whole counted for nothing (fenced, malformed)."""
    verdicts: tuple[Verdict, ...] = ()


def check_part(part: CommitPart) -> None:
    """Raises ``InvalidUsage`` where ``part`` breaks the rules that every reader checks (the fold would refuse it)."""
    check_name("part id", part.part_id)
    lengths = {"bindings": part.bindings, "reads": part.reads, "writes": part.writes, "inline": part.inline}
    for what, length in ((what, len(found)) for what, found in lengths.items()):
        if length > BINDINGS_MAX:
            raise InvalidUsage(f"too many {what} in one commit: {length}", sqlstate="54000",
                               hint=f"at most {BINDINGS_MAX}")  # fmt: skip
    for binding in part.bindings:
        check_name("collection", binding.collection)
        check_run(binding.run)
    for each in part.inline:
        check_name("collection", each.collection)
        if not each.value or each.rows < 0 or len(each.attempt) > NAME_LENGTH_MAX:
            raise InvalidUsage(f"invalid rows of {each.collection}: {len(each.value)} bytes, {each.rows} rows")
    if (size := sum(len(each.value) for each in part.inline)) > INLINE_BYTES_MAX:
        raise InvalidUsage(f"too many bytes of rows in one commit: {size}", sqlstate="54000",
                           hint=f"at most {INLINE_BYTES_MAX}")  # fmt: skip
    for each in (*part.reads, *part.writes):
        check_name("collection", each.collection)
        if each.lower is not None and each.upper is not None and each.lower >= each.upper:
            raise InvalidUsage(f"empty key range {each}")
    if part.reads and part.read_ts is None:
        raise InvalidUsage("a commit that names what it read must say at which timestamp")
    for ts in (part.proposed_ts, part.catalog_upper_seen or 0, part.read_ts or 0):
        check_ts(ts)


def check_run(run: Run, may_be_carried: bool = False) -> None:
    """Raises ``InvalidUsage`` unless ``run`` is a non-empty range of a partition, or, where that ``may_be``, of the
    numbers of what the log carries."""
    if run[:2] != (INLINE, 0) or not may_be_carried:
        check_name("topic", run.topic)
    if len(run.attempt) > NAME_LENGTH_MAX or run.partition < 0 or not 0 <= run.lower < run.upper or run.rows < -1:
        raise InvalidUsage(f"invalid run {run}")


def check_move(move: Move) -> None:
    """Raises ``InvalidUsage`` where ``move`` breaks the rules that every reader checks."""
    check_name("collection", move.collection)
    check_run(move.run)
    if move.number < 0:
        raise InvalidUsage(f"invalid number of inline rows {move.number}")


def check_offsets(offsets: Offsets, may_be_carried: bool = False) -> None:
    """Raises ``InvalidUsage`` where ``offsets`` breaks the rules that every reader checks."""
    check_name("collection", offsets.collection)
    check_run(offsets.run, may_be_carried)


def check_name(what: str, name: str) -> None:
    """Raises ``InvalidUsage`` unless ``name`` has 1 to :data:`NAME_LENGTH_MAX` characters."""
    if not 0 < len(name) <= NAME_LENGTH_MAX:
        raise InvalidUsage(f"invalid {what} {name[:NAME_LENGTH_MAX]!r}", hint=f"1 to {NAME_LENGTH_MAX} characters")


def check_ts(ts: int) -> None:
    """Raises ``InvalidUsage`` unless ``0 <= ts <= TS_MAX``."""
    if not 0 <= ts <= TS_MAX:
        raise InvalidUsage(f"timestamp {ts} is out of range", sqlstate="22008", hint=f"0 to {TS_MAX}")
