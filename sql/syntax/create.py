"""CREATE: what is to be made, before any name in it is looked up.  Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sqlglot import exp

from sql.syntax.clustering import ClusterColumn, HowStored, read_cluster_by, read_how_stored
from sql.syntax.column_defs import ColumnDef, table_elements
from sql.syntax.constraints import Constraint
from sql.syntax.cursor import Cursor
from sql.syntax.kind_words import ELSEWHERE
from sql.syntax.statement import DDL, Name
from trees.errors import unsupported


@dataclass(frozen=True)
class CreateSchema(DDL):
    tag = "CREATE SCHEMA"

    name: Name
    if_not_exists: bool

    @classmethod
    def read(cls, c: Cursor, text: str) -> CreateSchema:
        exists = _if_not_exists(c)
        name = c.name()
        c.end()
        return cls(name, exists)


@dataclass(frozen=True)
class CreateTable(DDL):
    tag = "CREATE TABLE"

    name: Name
    columns: tuple[ColumnDef, ...]
    if_not_exists: bool
    text: str
    constraints: tuple[Constraint, ...] = ()
    stored: HowStored = HowStored()

    @classmethod
    def read(cls, c: Cursor, text: str) -> CreateTable:
        exists = _if_not_exists(c)
        name = c.name()
        if c.word() == "as":
            raise unsupported("CREATE TABLE AS", hint="create the table, then INSERT INTO … SELECT")
        columns, constraints = table_elements(c, name.last)
        stored = read_how_stored(c)
        if c.word() in ("with", "inherits", "partition", "using", "tablespace", "as"):
            raise unsupported(f"CREATE TABLE … {c.word().upper()}")
        c.end()
        return cls(name, columns, exists, text, constraints, stored)


@dataclass(frozen=True)
class CreateView(DDL):
    """A plain view, or a materialized one (then ``cluster`` may name where it is kept)."""

    name: Name
    columns: tuple[str, ...] | None
    query: exp.Expression
    materialized: bool
    cluster: str | None
    if_not_exists: bool
    text: str
    cluster_by: tuple[ClusterColumn, ...] = ()

    @property
    def tag(self) -> str:
        return "CREATE MATERIALIZED VIEW" if self.materialized else "CREATE VIEW"

    @classmethod
    def read(cls, c: Cursor, text: str, materialized: bool = False) -> CreateView:
        exists = _if_not_exists(c)
        name = c.name()
        columns = c.names() if c.word() == "(" else None
        cluster = _in_cluster(c) if materialized else None
        cluster_by = read_cluster_by(c) if materialized else ()
        c.expect("as")
        return cls(name, columns, c.parse_query(), materialized, cluster, exists, text, cluster_by)


@dataclass(frozen=True)
class CreateIndex(DDL):
    tag = "CREATE INDEX"

    name: Name | None
    relation: Name
    columns: tuple[str, ...]
    cluster: str | None
    if_not_exists: bool
    text: str

    @classmethod
    def read(cls, c: Cursor, text: str) -> CreateIndex:
        c.take("concurrently")
        exists = _if_not_exists(c)
        name = c.name() if c.word() not in ("on", "in") else None
        cluster = _in_cluster(c)
        c.expect("on")
        relation = c.name()
        if c.take("using") and c.identifier() not in ("btree", "hash"):
            raise unsupported("an index method other than the arrangement")
        columns = c.names()
        c.end()
        return cls(name, relation, columns, cluster, exists, text)


def _if_not_exists(c: Cursor) -> bool:
    return c.take("if", "not", "exists")


def _in_cluster(c: Cursor) -> str | None:
    return c.identifier(allow=("default",)) if c.take("in", "cluster") else None


def read_materialized(c: Cursor, text: str) -> CreateView:
    return CreateView.read(c, text, materialized=True)


Created = Mapping[tuple[str, ...], Callable[[Cursor, str], DDL]]
"""What stands after CREATE, and who reads on."""


def read_create(created: Created, c: Cursor, text: str) -> DDL:
    """What stands from CREATE on.  42601, 0A000 for what Postgres creates and we do not."""
    c.expect("create")
    if c.take("or", "replace"):
        raise unsupported("CREATE OR REPLACE", hint="drop the object first, in a statement of its own")
    for word in ("temp", "temporary", "unlogged", "unique", "recursive"):
        if c.word() == word:
            raise unsupported(f"CREATE {word.upper()} {(c.word(1) or '').upper()}".rstrip())
    for words, read in created.items():
        if c.take(*words):
            return read(c, text)
    if c.word() in ELSEWHERE:
        raise unsupported(f"CREATE {c.word().upper()}")
    raise c.error()
