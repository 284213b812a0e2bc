"""RETAIN HISTORY: for how long the past of a relation can be read, as Materialize writes it.  Pure."""

from __future__ import annotations

from dataclasses import dataclass

from journal.errors import InvalidUsage
from sql.syntax.cursor import Cursor
from sql.syntax.statement import DDL, KIND_WORDS, Name
from trees.types import parse_literal
from values.time.intervals import Interval
from values.types import SqlType

KEEP_DAYS_MAX = 365
"""What is asked for by mistake is more; what is kept is bounded otherwise, too (:mod:`oracle.retention`)."""

_INTERVAL = SqlType("interval")


@dataclass(frozen=True)
class AlterHistory(DDL):
    """ALTER … SET (RETAIN HISTORY = FOR '…'), or RESET of it: then ``keep_ms`` is ``None``.  ``kind`` as for
    :class:`~sql.syntax.alter.Rename`."""

    kind: str
    name: Name
    if_exists: bool
    keep_ms: int | None

    @property
    def tag(self) -> str:
        return f"ALTER {KIND_WORDS[self.kind].upper()}"


def read_with_history(c: Cursor) -> int | None:
    """``WITH (RETAIN HISTORY [=] FOR '…')`` in milliseconds; ``None``, and nothing stepped over, where something else
    stands there."""
    if not c.take("with", "(", "retain", "history"):
        return None
    keep_ms = _kept(c)
    c.expect(")")
    return keep_ms


def read_alter_history(kind: str, c: Cursor, name: Name, exists: bool) -> AlterHistory | None:
    """What stands behind the name, where it is of history."""
    if c.take("reset", "(", "retain"):
        c.expect("history", ")")
        c.end()
        return AlterHistory(kind, name, exists, None)
    if not c.take("set", "(", "retain"):
        return None
    c.expect("history")
    keep_ms = _kept(c)
    c.expect(")")
    c.end()
    return AlterHistory(kind, name, exists, keep_ms)


def _kept(c: Cursor) -> int:
    c.take("=")
    c.expect("for")
    at = c.position
    text = c.string()
    try:
        value = parse_literal(text, _INTERVAL)
    except InvalidUsage as error:
        raise InvalidUsage(error.message, sqlstate=error.sqlstate, position=at) from error
    assert isinstance(value, Interval)
    keep_ms = value.length // 1000
    if not 0 < keep_ms <= KEEP_DAYS_MAX * 86_400_000:
        raise InvalidUsage(f'invalid RETAIN HISTORY: "{text}"', sqlstate="22023", position=at,
                           hint=f"a millisecond to {KEEP_DAYS_MAX} days")  # fmt: skip
    return keep_ms
