"""Why a commit did not happen, as types: each is known not to have happened and never will (Rejected, Conflict)."""

from __future__ import annotations

from enum import StrEnum

from journal.errors import Conflict, Rejected, TidemarkError


class Reason(StrEnum):
    """Why a fold refused a part, a claim or a commit of views.  Every reader comes to the same one."""

    STALE_CATALOG = "stale catalog"
    """Planned on a catalog older than the one in force: plan again."""
    READ_CONFLICT = "read conflict"
    """Something it read was written after its ``read_ts``: first committer wins."""
    SNAPSHOT_TOO_OLD = "snapshot too old"
    """Its ``read_ts`` is below what the fold still remembers: refused, never guessed."""
    NOT_CONTIGUOUS = "not contiguous"
    """A source's run does not continue where its bindings end: another committer was first."""
    OVERLAP = "overlap"
    """A run covers an offset that is bound already."""
    AHEAD = "ahead of its timeline"
    """A ``read_ts`` that nobody can have read yet."""
    FENCED = "fenced"
    """A later record of its writer came first: a copy, or an append that its client knows not to have happened."""
    MALFORMED = "malformed"
    """The record breaks its own rules."""
    TIMELINE = "timeline"
    """The timeline takes no such record (``table`` moves by commits, ``catalog`` by its log), or there are too many."""
    HELD = "too many rows are held"
    """The log carries as many rows as it may: these have to go to a topic."""
    NOT_THERE = "not there"
    """What is to be moved, given up, retired or exchanged is not what it is taken for, or not any more: another process
    was first, or the collection is gone."""
    CLAIMED = "claimed"
    """Offsets that somebody is still to bind: not given up now."""
    STALE_UPPER = "stale upper"
    """A view's upper is not what the commit expected."""
    STALE_EPOCH = "stale epoch"
    """The cluster is maintained under a newer epoch: this writer is a zombie and should stop."""


class StaleCatalog(Conflict):
    """Plan again on a catalog whose upper is at least ``catalog_upper``; the written rows may be committed again."""

    def __init__(self, seen: int, catalog_upper: int) -> None:
        super().__init__("the catalog changed since the statement was planned",
                         detail=f"planned at catalog upper {seen}, in force is {catalog_upper}")  # fmt: skip
        self.seen = seen
        self.catalog_upper = catalog_upper


class TooMuchHeld(Rejected):
    """The log carries as many rows as it may.  Nothing happened; the same rows may go to a topic."""

    sqlstate = "53400"

    def __init__(self, detail: str) -> None:
        super().__init__("too many rows wait to be moved out of the log", detail=detail,
                         hint="is the storage controller running?")  # fmt: skip


class SnapshotTooOld(Rejected):
    """The timestamp asked for is below what is remembered exactly."""

    sqlstate = "72000"


class StaleEpoch(Conflict):
    """Another writer claimed the cluster: ``epoch`` is the one in force.  Whoever gets this must stop writing."""

    def __init__(self, mine: int, epoch: int) -> None:
        super().__init__("the cluster is maintained by another process", detail=f"epoch {mine}, in force is {epoch}")
        self.mine = mine
        self.epoch = epoch


class StaleUpper(Conflict):
    """A view's upper was ``actual``, not ``expected``; nothing of the commit happened."""

    def __init__(self, view_id: str, expected: int, actual: int) -> None:
        super().__init__(f"view {view_id} is at upper {actual}, not {expected}")
        self.view_id = view_id
        self.expected = expected
        self.actual = actual


def refusal(reason: Reason, detail: str) -> TidemarkError:
    """The error for a verdict that needs no numbers of its own."""
    if reason is Reason.SNAPSHOT_TOO_OLD:
        return SnapshotTooOld("snapshot too old", detail=detail)
    if reason is Reason.OVERLAP:
        return Conflict("could not serialize access due to a concurrent write", detail=f"{reason}: {detail}",
                        hint="rows that were written and claimed by nobody for minutes are given up")  # fmt: skip
    if reason in (Reason.READ_CONFLICT, Reason.NOT_CONTIGUOUS):
        return Conflict("could not serialize access due to a concurrent write", detail=f"{reason}: {detail}")
    return Rejected(f"rejected: {reason}", detail=detail)
