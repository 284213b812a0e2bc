"""The three families of failure (never fold the third into the second).

* :class:`InvalidUsage`: the caller broke the contract.  Never retried.
* :class:`Conflict` and :class:`Rejected`: we *know* that it did not happen and never will.
* :class:`Indeterminate`: we do not know whether it happened.

Every error carries a SQLSTATE, so that the adapter can hand it to a client unchanged.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

REFUSED = {
    "0A000": "docs/sql.md lists what there is, and what is refused and why",
    "42883": "docs/sql.md lists the functions and operators that there are",
}
"""What to do about a refusal that has no better hint of its own: none leaves its reader alone."""


class TidemarkError(Exception):
    """Base of all errors that a user may see: a short lower-case message, a SQLSTATE, optional detail and hint."""

    sqlstate = "XX000"

    def __init__(
        self,
        message: str,
        *,
        sqlstate: str | None = None,
        detail: str | None = None,
        hint: str | None = None,
        position: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.sqlstate = sqlstate or type(self).sqlstate
        self.detail = detail
        self.hint = hint or REFUSED.get(self.sqlstate)
        self.position = position
        """1-based character position in the statement's text, as Postgres counts it; ``None`` where unknown."""
        self.context: str | None = None
        """Where in what is being read it happened (``COPY t, line 3``), set by whoever knows."""
        self.about: Mapping[str, str] = {}
        """The names of what it is about, by what they name: ``table``, ``column``, ``constraint``."""


class InvalidUsage(TidemarkError):
    """The caller broke the contract: wrong name, wrong type, wrong argument.  Retrying cannot help."""

    sqlstate = "22023"


class Rejected(TidemarkError):
    """It did not happen and never will: refused before or at the fold (too large, queue full, malformed, fenced)."""

    sqlstate = "40000"


class Conflict(Rejected):
    """It did not happen because somebody else was first.  Plan again from the new state; a blind resend is a bug."""

    sqlstate = "40001"


class Indeterminate(TidemarkError):
    """Nobody answered and the outcome could not be settled in time: it may or may not have happened."""

    sqlstate = "08007"


class Unavailable(TidemarkError):
    """Nothing was attempted: a service that is needed is away (a broker at start, a controller).  Safe to try again."""

    sqlstate = "57P03"


class FatalLog(TidemarkError):
    """The log itself is not what it should be (wrong topic, wrong configuration, unknown format): the process stops.

    A stopped process beats a wrong catalog (I10).
    """

    sqlstate = "XX001"


def reference(text: str) -> str:
    """A short name for ``text``: a client is told it in place of words that are not for it; the log has both.

    The same for the same text, since errors of views are compared and kept.
    """
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:10]


def internal(error: BaseException, where: str) -> TidemarkError:
    """What a client is told of an ``error`` that is our bug: where to look.  The caller logs it by :func:`logged`."""
    return TidemarkError("internal error", detail=f"the log of {where} has more under {logged(error)}")


def logged(error: BaseException) -> str:
    """The reference of an exception that is our bug."""
    return reference(f"{type(error).__name__}: {error}")
