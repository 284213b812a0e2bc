"""What a request is answered.  Pure.

A status says which of the three families it is (:mod:`journal.errors`), and the body says so in words: 4xx but 409, the
request is wrong and nothing was written; 409 and 503, nothing was written and the same request may be sent again; 500
and 504, nobody knows, and the same request with the same id may be sent again.
"""

from __future__ import annotations

from dataclasses import dataclass

from adapter.webhooks.requests import Unproved
from journal.errors import Conflict, InvalidUsage, Rejected, TidemarkError, Unavailable

NOTHING, UNKNOWN = "nothing was written", "unknown"

_ABSENT = frozenset({"42P01", "3F000", "3D000", "42809"})
"""SQLSTATEs of a path that leads to no source that takes posts."""

_NOT_OURS = frozenset({"55000", "57014"})
"""A secret that is not in its place here, and a wait that was given up: not the sender's fault."""


@dataclass(frozen=True)
class Answer:
    status: int
    body: dict[str, object]


def done(added: int) -> Answer:
    """The rows are there, and visible: so many by this request, or none where one of its id was before it."""
    return Answer(200, {"added": added})


def refused(error: TidemarkError, has_id: bool) -> Answer:
    """What went wrong."""
    status = _status(error)
    told: dict[str, object] = {"error": error.message, "sqlstate": error.sqlstate}
    if error.detail:
        told["detail"] = error.detail
    if error.hint:
        told["hint"] = error.hint
    told["written"] = UNKNOWN if status in (500, 504) else NOTHING
    if status in (500, 504):
        again = "send it again with the same id: it is added once"
        told["retry"] = again if has_id else "it had no id: sent again it may be added twice"
    elif status in (409, 503):
        told["retry"] = "send it again"
    return Answer(status, told)


def _status(error: TidemarkError) -> int:
    if error.sqlstate in _NOT_OURS:
        return 503
    if isinstance(error, Unproved):
        return 401
    if error.sqlstate == "54000":
        return 413
    if isinstance(error, InvalidUsage):
        return 404 if error.sqlstate in _ABSENT else 400
    if isinstance(error, Conflict):
        return 409
    if isinstance(error, (Rejected, Unavailable)):
        return 503
    return 504 if error.sqlstate.startswith("08") else 500
