"""A session's transaction block: pure state, and the rules of what may run in it.

What a block is here: its INSERTs become visible together, at COMMIT, in one commit record; everything else in it runs
one statement at a time, each at its own timestamp, so a block is not a snapshot.  A block may hold one DDL statement if
it holds nothing else; it then takes effect at COMMIT.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from journal.errors import InvalidUsage

SAVEPOINTS_MAX = 1000
"""Savepoints alive in one block: far above what ORMs nest, and a bound on what one client can keep here."""


class Status(Enum):
    """The status byte of ReadyForQuery."""

    IDLE = b"I"
    IN_BLOCK = b"T"
    FAILED = b"E"


@dataclass(slots=True)
class Transaction:
    status: Status = Status.IDLE
    isolation: str | None = None
    """What BEGIN or SET TRANSACTION said for this block; ``None``: the session's default."""
    read_only: bool | None = None
    statements: int = 0
    """Statements run in this block that read or write data (SELECT, INSERT, DDL)."""
    ddl: object | None = None
    """The block's one DDL statement, prepared, waiting for COMMIT."""
    savepoints: list[tuple[str, int]] = field(default_factory=list)
    """Name and length of the session's buffer, oldest first."""

    @property
    def in_block(self) -> bool:
        return self.status is not Status.IDLE

    @property
    def failed(self) -> bool:
        return self.status is Status.FAILED

    def begin(self, isolation: str | None = None, read_only: bool | None = None) -> None:
        self.status, self.isolation, self.read_only = Status.IN_BLOCK, isolation, read_only
        self.statements, self.ddl = 0, None
        self.savepoints.clear()

    def end(self) -> None:
        self.status, self.isolation, self.read_only, self.statements, self.ddl = Status.IDLE, None, None, 0, None
        self.savepoints.clear()

    def fail(self) -> None:
        """A statement failed: the block takes nothing more but its end.  Nothing happens outside of a block."""
        if self.in_block:
            self.status = Status.FAILED

    def savepoint(self, name: str, buffered: int) -> None:
        if len(self.savepoints) >= SAVEPOINTS_MAX:
            raise InvalidUsage(f"more than {SAVEPOINTS_MAX} savepoints in one block", sqlstate="54000")
        self.savepoints.append((name, buffered))

    def release(self, name: str) -> None:
        """Forget a savepoint and all after it.  Raises 3B001."""
        del self.savepoints[self._find(name) :]

    def rollback_to(self, name: str) -> int:
        """The buffer length to go back to; the savepoint itself stays.  Raises 3B001."""
        index = self._find(name)
        del self.savepoints[index + 1 :]
        self.status = Status.IN_BLOCK
        return self.savepoints[index][1]

    def _find(self, name: str) -> int:
        for index in range(len(self.savepoints) - 1, -1, -1):
            if self.savepoints[index][0] == name:
                return index
        raise InvalidUsage(f'savepoint "{name}" does not exist', sqlstate="3B001")
