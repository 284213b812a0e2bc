"""What an error says of the statement that it ended: it certainly did not happen, or nobody knows.  Pure.

Promises: what :func:`outcome` calls :class:`~judge.workloads.api.Failed` did not happen and never will, *if the
product keeps its word*; so a write that shows up after all is the product's fault and the checkers say so.  Whatever
the product does not vouch for is :class:`~judge.workloads.api.Unknown`.

The product's word is ``journal/errors.py``: ``InvalidUsage``, ``Rejected`` (with ``Conflict``) and ``Unavailable``
promise that nothing happened, ``Indeterminate`` says that it does not know.  Over the wire only the SQLSTATE is left
of the family.  An internal error (XX000) promises nothing, and neither does a session that is ended from outside
(57P01) or a connection that is lost.
"""

from __future__ import annotations

from journal.errors import FatalLog, Indeterminate, InvalidUsage, Rejected, TidemarkError, Unavailable
from judge.workloads.api import Failed, Unknown

NOT_CONNECTED = ("08001", "08004")
"""No session was there to do anything: refused, or not reachable."""

UNVOUCHED = ("57P01", "57P02", "40003")
"""The session was ended while the statement ran; the completion is unknown by definition."""

UNVOUCHED_CLASSES = ("08", "58", "XX")
"""Connection exceptions (``Indeterminate`` is 08007), errors of the system below, internal errors."""

_MESSAGE_CHARS_MAX = 300


def sqlstate_certain(sqlstate: str | None) -> bool:
    """Whether a write that was answered with ``sqlstate`` (``None``: not answered) certainly did not happen."""
    if sqlstate is None or sqlstate in UNVOUCHED:
        return False
    return sqlstate in NOT_CONNECTED or sqlstate[:2] not in UNVOUCHED_CLASSES


def certain(error: BaseException) -> bool:
    """Whether a write that ended with ``error`` certainly did not happen."""
    if isinstance(error, TidemarkError):  # in this process: the family itself is here
        if isinstance(error, Indeterminate | FatalLog):
            return False
        return isinstance(error, InvalidUsage | Rejected | Unavailable)
    return sqlstate_certain(getattr(error, "sqlstate", None))


def code(error: BaseException) -> str:
    """A SQLSTATE where a server gave one, else the exception's name: for ``Event.error``."""
    if isinstance(error, TidemarkError):
        return type(error).__name__
    return getattr(error, "sqlstate", None) or type(error).__name__


def outcome(error: BaseException, *, write: bool) -> Failed | Unknown:
    """What to raise instead of ``error``, which ended a write or a read.  A read has no effect: it always failed."""
    if isinstance(error, Failed) or (write and isinstance(error, Unknown)):
        return error
    message = (str(error).split("\n")[0] or type(error).__name__)[:_MESSAGE_CHARS_MAX]
    if not write or certain(error):
        return Failed(code(error), message)
    return Unknown(code(error), message)
