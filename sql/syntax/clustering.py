"""CLUSTER BY: which columns' values are kept near each other in a relation's files, as Spark writes it.  Pure."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot.tokens import TokenType

from sql.syntax.cursor import Cursor
from sql.syntax.retention import read_with_history
from sql.syntax.statement import DDL, KIND_WORDS, Name
from trees.errors import unsupported


@dataclass(frozen=True)
class ClusterColumn:
    name: str
    at: int
    """Where it stands in the statement, from 1."""


@dataclass(frozen=True)
class AlterClustering(DDL):
    """ALTER … CLUSTER BY (…), or NONE: then there are no ``columns``.  ``kind`` as for
    :class:`~sql.syntax.alter.Rename`."""

    kind: str
    name: Name
    if_exists: bool
    columns: tuple[ClusterColumn, ...]

    @property
    def tag(self) -> str:
        return f"ALTER {KIND_WORDS[self.kind].upper()}"


@dataclass(frozen=True)
class HowStored:
    """What stands behind the columns of a relation that is created: how its rows are to be stored."""

    cluster_by: tuple[ClusterColumn, ...] = ()
    keep_ms: int | None = None
    """How long its history is kept; ``None``: as all others'."""


def read_how_stored(c: Cursor) -> HowStored:
    """``CLUSTER BY (…)`` and ``WITH (RETAIN HISTORY …)``, both or one, in any order; nothing is stepped over where
    something else stands there."""
    keep_ms = read_with_history(c)
    columns = read_cluster_by(c)
    return HowStored(columns, read_with_history(c) if keep_ms is None else keep_ms)


def read_cluster_by(c: Cursor) -> tuple[ClusterColumn, ...]:
    return _columns(c) if _begins(c) else ()


def read_alter_clustering(kind: str, c: Cursor, name: Name, exists: bool) -> AlterClustering | None:
    """What stands behind the name, where it is of this."""
    if not _begins(c):
        return None
    if c.word() == "auto":
        raise unsupported("CLUSTER BY AUTO", hint="name the columns", position=c.position)
    columns = () if c.take("none") else _columns(c)
    c.end()
    return AlterClustering(kind, name, exists, columns)


def _begins(c: Cursor) -> bool:
    """The two words, which are one token where nothing but space is between them."""
    pair = c.current is not None and c.current.token_type is TokenType.CLUSTER_BY
    return c.take("cluster") if pair else c.take("cluster", "by")


def _columns(c: Cursor) -> tuple[ClusterColumn, ...]:
    c.expect("(")
    found = [_column(c)]
    while c.take(","):
        found.append(_column(c))
    c.expect(")")
    return tuple(found)


def _column(c: Cursor) -> ClusterColumn:
    at = c.position
    return ClusterColumn(c.identifier(), at)
