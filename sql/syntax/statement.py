"""What every statement says of itself, and names as they are written in one.

A statement is one class, in the module of its family (:mod:`sql.syntax.create`, :mod:`sql.syntax.alter`…): its fields
are what was written, its ``read`` finds them in a text, and the rest is what others ask of it: its command tag, what
sort it is, the columns of its answer, whether a failed block takes it.  What is planned of it is one function, in a
table beside it (:mod:`sql.statements.ddl`); what is done for it is one more (:mod:`adapter.execute.executor`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from catalog_log.objects import KINDS
from values.types import SqlType

KIND_WORDS = {each.kind: each.word for each in KINDS}


class Kind(StrEnum):
    """What sort of statement it is, as far as transactions care."""

    SELECT = "select"
    """Returns rows and changes nothing: SELECT, VALUES, TABLE."""
    INSERT = "insert"
    """Writes rows; honours ``session.defers_writes``."""
    CHANGE = "change"
    """Reads rows and writes what becomes of them: UPDATE, DELETE, TRUNCATE."""
    COPY_FROM = "copy from"
    """Writes rows that the client sends once it runs; honours ``session.defers_writes`` as an INSERT does."""
    COPY_TO = "copy to"
    """Returns rows, in a form of their own."""
    DDL = "ddl"
    """Changes the catalog."""
    SESSION = "session"
    """Reads or changes only the session, or only looks: SET, RESET, SHOW, EXPLAIN."""


PLANNED = (Kind.SELECT, Kind.INSERT, Kind.CHANGE)
"""What is planned on the catalog each time that it runs, and so may turn out to be something else."""

WRITES = (Kind.INSERT, Kind.CHANGE, Kind.COPY_FROM, Kind.DDL)
"""What a read-only transaction refuses."""


class Statement:
    """One statement.  ``sort`` decides what a transaction block makes of it, and that only DDL comes by Kafka."""

    __slots__ = ()

    sort: ClassVar[Kind] = Kind.SESSION
    in_failed_block: ClassVar[bool] = False
    """Whether it may come where a block has failed: what ends that."""
    tag: str
    """The command tag of a run that succeeds, without counts."""

    @property
    def returns(self) -> tuple[tuple[str, SqlType], ...] | None:
        """The columns of its answer as the words alone decide them; ``None`` for no rows.  Of a query its plan says."""
        return None


class DDL(Statement):
    """What changes the catalog, for a session or from the DDL topic."""

    __slots__ = ()

    sort = Kind.DDL


@dataclass(frozen=True)
class Name:
    """A possibly qualified name, folded to lower case where it was not quoted: ``("public", "t")``."""

    parts: tuple[str, ...]
    start: int = 0

    def __str__(self) -> str:
        return ".".join(self.parts)

    @property
    def last(self) -> str:
        return self.parts[-1]
