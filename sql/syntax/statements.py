"""What a statement says, before any name in it is looked up.

Positions are 0-based offsets into the statement's text; an error reports them 1-based, as Postgres does.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from catalog_log.objects import ERRORS, INDEX, MATERIALIZED_VIEW, SOURCE, TABLE, VIEW
from sql.syntax.values_list import Cells
from values.types import SqlType

KIND_WORDS = {
    TABLE: "table",
    SOURCE: "source",
    ERRORS: "errors collection",
    VIEW: "view",
    MATERIALIZED_VIEW: "materialized view",
    INDEX: "index",
}


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


@dataclass(frozen=True)
class ColumnDef:
    name: str
    type: SqlType
    nullable: bool = True
    default: exp.Expression | None = None
    default_sql: str | None = None


@dataclass(frozen=True)
class Query:
    ast: exp.Expression
    text: str


@dataclass(frozen=True)
class Insert:
    """``source`` is ``None`` for ``DEFAULT VALUES``; ``columns`` is ``None`` where the list was left out."""

    table: Name
    columns: tuple[str, ...] | None
    source: exp.Expression | Cells | None


@dataclass(frozen=True)
class CreateSchema:
    name: Name
    if_not_exists: bool


@dataclass(frozen=True)
class CreateTable:
    name: Name
    columns: tuple[ColumnDef, ...]
    if_not_exists: bool
    text: str


@dataclass(frozen=True)
class CreateSource:
    name: Name
    columns: tuple[ColumnDef, ...]
    topic: str
    format: str
    envelope: str
    if_not_exists: bool
    text: str


@dataclass(frozen=True)
class CreateView:
    """A plain view, or a materialized one (then ``cluster`` may name where it is kept)."""

    name: Name
    columns: tuple[str, ...] | None
    query: exp.Expression
    materialized: bool
    cluster: str | None
    if_not_exists: bool
    text: str


@dataclass(frozen=True)
class CreateIndex:
    name: Name | None
    relation: Name
    columns: tuple[str, ...]
    cluster: str | None
    if_not_exists: bool
    text: str


@dataclass(frozen=True)
class Drop:
    """``kind`` is an item kind of ``catalog_log.model`` or ``schema``."""

    kind: str
    names: tuple[Name, ...]
    if_exists: bool
    cascade: bool


@dataclass(frozen=True)
class ResetSource:
    """ALTER SOURCE … RESET: begin anew with the topic that has the source's topic's name now."""

    name: Name
    if_exists: bool
    cascade: bool


@dataclass(frozen=True)
class Rename:
    """ALTER … RENAME TO.  ``kind`` is an item kind as the user said it: a table's word may be said of any relation."""

    kind: str
    name: Name
    to: str
    if_exists: bool


@dataclass(frozen=True)
class RenameSchema:
    """ALTER SCHEMA … RENAME TO."""

    name: Name
    to: str


@dataclass(frozen=True)
class SetSchema:
    """ALTER … SET SCHEMA.  ``kind`` as for :class:`Rename`; ``at`` is where ``schema`` stands."""

    kind: str
    name: Name
    schema: str
    if_exists: bool
    at: int = 0


@dataclass(frozen=True)
class AddColumn:
    """``evaluated`` holds what a DEFAULT that is no literal was when the statement was sent."""

    column: ColumnDef
    if_not_exists: bool = False
    evaluated: tuple[object] | None = None


@dataclass(frozen=True)
class DropColumn:
    name: Name
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True)
class RenameColumn:
    name: Name
    to: str


@dataclass(frozen=True)
class SetDefault:
    """``default`` is ``None`` for DROP DEFAULT."""

    name: Name
    default: exp.Expression | None = None
    default_sql: str | None = None


@dataclass(frozen=True)
class DropNotNull:
    name: Name


ColumnAction = AddColumn | DropColumn | RenameColumn | SetDefault | DropNotNull


@dataclass(frozen=True)
class AlterColumns:
    """ALTER … with one or more actions on columns, each on what those before it left.  ``kind`` as for
    :class:`Rename`."""

    kind: str
    name: Name
    actions: tuple[ColumnAction, ...]
    if_exists: bool


@dataclass(frozen=True)
class Comment:
    """``kind`` is an item kind of ``catalog_log.model``, ``schema``, ``database``, ``cluster`` or ``column`` (then
    ``name`` ends in the column's); ``text`` is ``None`` where the comment is taken away."""

    kind: str
    name: Name
    text: str | None


@dataclass(frozen=True)
class Explain:
    """``mode`` is ``plan``, ``timestamp`` or ``strategy``; the last may name a view instead of a statement."""

    mode: str
    statement: object | None
    name: Name | None = None


@dataclass(frozen=True)
class ShowObjects:
    """``what``: tables, views, materialized views, sources, indexes, schemas, databases, clusters, objects, columns."""

    what: str
    schema: Name | None = None
    on: Name | None = None
    like: str | None = None


@dataclass(frozen=True)
class ShowCreate:
    kind: str
    name: Name


@dataclass(frozen=True)
class SetVariable:
    """``value`` is ``None`` for DEFAULT (and RESET)."""

    name: str
    value: str | None
    local: bool = False


@dataclass(frozen=True)
class ShowVariable:
    name: str


@dataclass(frozen=True)
class ResetAll:
    pass


@dataclass(frozen=True)
class Transaction:
    """``action``: begin, commit, rollback, savepoint, release, rollback_to.  ``options`` are SET TRANSACTION modes."""

    action: str
    options: tuple[tuple[str, str], ...] = ()
    name: str | None = None


@dataclass(frozen=True)
class Harmless:
    """A statement that has nothing to do here and is answered with its tag (DISCARD, LISTEN, DEALLOCATE…)."""

    tag: str
    name: str | None = None


@dataclass(frozen=True)
class Empty:
    """Nothing but blanks and comments."""


Statement = (
    Query
    | Insert
    | CreateSchema
    | CreateTable
    | CreateSource
    | CreateView
    | CreateIndex
    | Drop
    | ResetSource
    | Rename
    | RenameSchema
    | SetSchema
    | AlterColumns
    | Comment
    | Explain
    | ShowObjects
    | ShowCreate
    | SetVariable
    | ShowVariable
    | ResetAll
    | Transaction
    | Harmless
    | Empty
)

DDL = (
    CreateSchema, CreateTable, CreateSource, CreateView, CreateIndex, Drop, ResetSource, Rename, RenameSchema,
    SetSchema,    AlterColumns, Comment,
)  # fmt: skip
