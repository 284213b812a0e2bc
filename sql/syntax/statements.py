"""All statements there are, by their names: what is written, before any name in it is looked up.

Positions are 0-based offsets into the statement's text; an error reports them 1-based, as Postgres does.
"""

from __future__ import annotations

from sql.syntax.alter import (
    AddColumn,
    AlterCluster,
    AlterColumns,
    ClusterSetting,
    ColumnAction,
    DropColumn,
    DropNotNull,
    Rename,
    RenameColumn,
    RenameSchema,
    ResetSource,
    SetDefault,
    SetSchema,
)
from sql.syntax.column_defs import ColumnDef
from sql.syntax.control import (
    Begin,
    CloseCursors,
    Commit,
    Control,
    Deallocate,
    Discard,
    Empty,
    Release,
    Rollback,
    RollbackTo,
    Savepoint,
    SetTransaction,
    Unlisten,
)
from sql.syntax.create import CreateIndex, CreateSchema, CreateSource, CreateTable, CreateView
from sql.syntax.drop import Comment, Drop
from sql.syntax.query import Insert, Query
from sql.syntax.show import Explain, ShowCreate, ShowObjects, ShowVariable
from sql.syntax.statement import DDL, KIND_WORDS, Kind, Name, Statement
from sql.syntax.upkeep import Upkeep
from sql.syntax.variables import ResetAll, SetVariable

__all__ = [
    "DDL", "KIND_WORDS", "AddColumn", "AlterCluster", "AlterColumns", "Begin", "CloseCursors", "ClusterSetting",
    "ColumnAction", "ColumnDef", "Comment", "Commit", "Control", "CreateIndex", "CreateSchema", "CreateSource",
    "CreateTable", "CreateView", "Deallocate", "Discard", "Drop", "DropColumn", "DropNotNull", "Empty", "Explain",
    "Insert", "Kind", "Name", "Query", "Release", "Rename", "RenameColumn", "RenameSchema", "ResetAll", "ResetSource",
    "Rollback", "RollbackTo", "Savepoint", "SetDefault", "SetSchema", "SetTransaction", "SetVariable", "ShowCreate",
    "ShowObjects", "ShowVariable", "Statement", "Unlisten", "Upkeep",
]  # fmt: skip
