"""A session's transaction block: pure state, and the rules of what may run in it.

What a block is here: all its reads of data are at one timestamp, that of the first, with what it wrote itself; its
writes become visible together, at COMMIT, in one commit record, and where the block is serializable, or has changed
rows that it read, that commit is refused (40001) if something that it so read was written since: a table, or keys of
one.  At READ COMMITTED and below, every statement reads at its own newest timestamp instead, until it changes rows.
A block may hold one DDL statement if it holds nothing else; it then takes effect at COMMIT.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from itertools import chain
from typing import NamedTuple

from adapter.state.interfaces import Kind
from catalog_log.image import Image
from journal.errors import InvalidUsage
from journal.timestamps import DataTs
from oracle.model import KeyRange

RANGES_READ_MAX = 4_000
"""Ranges of one table that a block remembers, as many as its commit may name keys (``adapter.execute.inserter``)."""

SAVEPOINTS_MAX = 1000
"""Savepoints alive in one block: far above what ORMs nest, and a bound on what one client can keep here."""


class Savepoint(NamedTuple):
    """How things stood: ``buffered`` writes, ``opened`` portals, ``variables`` as their owner remembers them."""

    name: str
    buffered: int
    opened: int
    variables: object
    ddl: object | None
    statements: int


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
    """Statements run in this block that read or write data (SELECT, INSERT, UPDATE, DDL…)."""
    ddl: object | None = None
    """The block's one DDL statement, prepared, waiting for COMMIT."""
    read_ts: DataTs | None = None
    """Where the block reads, once it has read."""
    failed_ts: DataTs | None = None
    """Where it may have read at the earliest before that, in a read that failed: what that said is of rows too."""
    changed: bool = False
    """Whether it has changed rows that it read.  All that it reads then is at the timestamp where it read them, at any
    level: only there they are what it takes back."""
    tables_read: set[str] = field(default_factory=set)
    """Ids of the tables below everything that it read."""
    keys_read: set[tuple[str, bytes]] = field(default_factory=set)
    """Of tables of which it read the rows of one key alone: their ids, and those keys as commits name them."""
    ranges_read: dict[str, set[KeyRange]] = field(default_factory=dict)
    """Of other tables of which it read rows by ranges of keys: these, as commits name them."""
    image: Image | None = None
    """A catalog that was in force where it reads, or before; ``None`` where none is known."""
    visible: int | None = None
    """How many of the writes in its session's buffer its reads see; ``None``: all."""
    savepoints: list[Savepoint] = field(default_factory=list)
    """Oldest first."""

    @property
    def in_block(self) -> bool:
        return self.status is not Status.IDLE

    @property
    def failed(self) -> bool:
        return self.status is Status.FAILED

    @property
    def hangs_from(self) -> DataTs | None:
        """Behind which nobody may have written what it read, where it hangs on that."""
        read_at = [ts for ts in (self.read_ts, self.failed_ts) if ts is not None]
        return min(read_at, default=None)

    def begin(self, isolation: str | None = None, read_only: bool | None = None) -> None:
        self.status, self.isolation, self.read_only = Status.IN_BLOCK, isolation, read_only
        self._forget()

    def end(self) -> None:
        self.status, self.isolation, self.read_only = Status.IDLE, None, None
        self._forget()

    def _forget(self) -> None:
        self.statements, self.ddl, self.read_ts, self.failed_ts, self.changed = 0, None, None, None, False
        self.tables_read.clear()
        self.keys_read.clear()
        self.ranges_read.clear()
        self.image = None
        self.savepoints.clear()

    def saw(self, tables: Iterable[str], ranges: Iterable[KeyRange]) -> None:
        """It has read ``tables`` as wholes, and ``ranges`` of others: of too many it is all of their table."""
        self.tables_read.update(tables)
        for each in ranges:
            of_table = self.ranges_read.setdefault(each.collection, set())
            of_table.add(each)
            if len(of_table) > RANGES_READ_MAX:
                self.tables_read.add(each.collection)
            if each.collection in self.tables_read:
                del self.ranges_read[each.collection]

    def saw_with(self, part: Transaction) -> None:
        """It has read what ``part`` has, a block within it."""
        self.saw(part.tables_read, chain.from_iterable(part.ranges_read.values()))
        self.keys_read |= part.keys_read

    def failed_at(self, ts: DataTs) -> None:
        """A read there failed."""
        self.failed_ts = min(self.failed_ts or ts, ts)

    def fail(self) -> None:
        """A statement failed: the block takes nothing more but its end.  Nothing happens outside of a block."""
        if self.in_block:
            self.status = Status.FAILED

    def savepoint(self, name: str, buffered: int, opened: int = 0, variables: object = None) -> None:
        """Remember how things stand.  ``buffered`` is the length of the session's buffer."""
        if len(self.savepoints) >= SAVEPOINTS_MAX:
            raise InvalidUsage(f"more than {SAVEPOINTS_MAX} savepoints in one block", sqlstate="54000")
        self.savepoints.append(Savepoint(name, buffered, opened, variables, self.ddl, self.statements))

    def release(self, name: str) -> None:
        """Forget a savepoint and all after it.  Raises 3B001."""
        del self.savepoints[self._find(name) :]

    def rollback_to(self, name: str) -> Savepoint:
        """Back to a savepoint, which itself stays; the caller undoes what this class does not hold.  Raises 3B001."""
        index = self._find(name)
        del self.savepoints[index + 1 :]
        found = self.savepoints[index]
        self.status, self.ddl, self.statements = Status.IN_BLOCK, found.ddl, found.statements
        return found

    def admit(self, kind: Kind) -> None:
        """Whether a statement that reads or writes data may run in this block now.  Raises 0A000; counts it."""
        if not self.in_block or kind is Kind.SESSION:
            return
        self.check_catalog_stays()
        if kind is Kind.DDL and self.statements:
            raise InvalidUsage(
                "the catalog cannot be changed in a transaction block with other statements", sqlstate="0A000",
                hint="run it outside of the block, or in a block of its own",
            )  # fmt: skip
        self.statements += 1

    def check_catalog_stays(self) -> None:
        """0A000 where the block changes the catalog, which takes effect with it."""
        if self.ddl is not None:
            raise InvalidUsage(
                "a transaction block that changes the catalog may hold only that one statement", sqlstate="0A000",
                hint="COMMIT first: the change takes effect then",
            )  # fmt: skip

    def _find(self, name: str) -> int:
        for index in range(len(self.savepoints) - 1, -1, -1):
            if self.savepoints[index].name == name:
                return index
        raise InvalidUsage(f'savepoint "{name}" does not exist', sqlstate="3B001")
