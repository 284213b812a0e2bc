"""All statements there are, by their names: what is written, before any name in it is looked up.

Positions are 0-based offsets into the statement's text; an error reports them 1-based, as Postgres does.
"""

from __future__ import annotations

from functools import partial

from catalog_log.objects import MATERIALIZED_VIEW, SEQUENCE, SOURCE, TABLE
from sql.syntax.alter import (
    AddColumn,
    AddConstraint,
    AddIdentity,
    AlterCluster,
    AlterColumns,
    Altered,
    ClusterSetting,
    ColumnAction,
    DropColumn,
    DropConstraint,
    DropIdentity,
    DropNotNull,
    Rename,
    RenameColumn,
    RenameConstraint,
    RenameSchema,
    ResetSource,
    SetDefault,
    SetIdentity,
    SetNotNull,
    SetSchema,
    TakeBack,
    Unmark,
    ValidateConstraint,
    Withdraw,
    read_actions,
    read_reset_source,
)
from sql.syntax.changes import Change, Delete, Truncate, Update
from sql.syntax.clustering import AlterClustering, read_alter_clustering
from sql.syntax.column_defs import ColumnDef
from sql.syntax.connections import CreateConnection, ValidateConnection
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
from sql.syntax.copying import Copy, CopyFrom, CopyOptions, CopyTo
from sql.syntax.create import (
    Created,
    CreateIndex,
    CreateSchema,
    CreateTable,
    CreateView,
    read_materialized,
)
from sql.syntax.cursor import Cursor
from sql.syntax.drop import Comment, Drop
from sql.syntax.generators import CreateGenerator
from sql.syntax.merge import Merge
from sql.syntax.query import Insert, Query
from sql.syntax.retention import AlterHistory, read_alter_history
from sql.syntax.sequences import AlterSequence, CreateSequence
from sql.syntax.show import Explain, ShowCreate, ShowObjects, ShowVariable
from sql.syntax.sinks import CreateSink
from sql.syntax.sources import CreateSource, Fetched, FormatSpec
from sql.syntax.statement import DDL, KIND_WORDS, PLANNED, WRITES, Kind, Name, Statement
from sql.syntax.upkeep import Upkeep, Vacuum
from sql.syntax.variables import ResetAll, SetVariable
from sql.syntax.webhooks import CreateWebhook
from sql.syntax.writing import Writing

CREATED: Created = {
    ("schema",): CreateSchema.read,
    ("table",): CreateTable.read,
    ("source",): CreateSource.read,
    ("materialized", "view"): read_materialized,
    ("view",): CreateView.read,
    ("index",): CreateIndex.read,
    ("sequence",): CreateSequence.read,
    ("connection",): CreateConnection.read,
    ("sink",): CreateSink.read,
}


def _read_stored(kind: str, c: Cursor, name: Name, exists: bool) -> DDL | None:
    """What is said of how the rows of a relation are stored."""
    return read_alter_history(kind, c, name, exists) or read_alter_clustering(kind, c, name, exists)


def _read_table(c: Cursor, name: Name, exists: bool) -> DDL | None:
    return _read_stored(TABLE, c, name, exists) or read_actions(c, name, exists)


def _read_source(c: Cursor, name: Name, exists: bool) -> DDL | None:
    return _read_stored(SOURCE, c, name, exists) or read_reset_source(c, name, exists)


ALTERED: Altered = {
    TABLE: _read_table,
    SOURCE: _read_source,
    MATERIALIZED_VIEW: partial(_read_stored, MATERIALIZED_VIEW),
    SEQUENCE: AlterSequence.read,
}

__all__ = [
    "ALTERED", "CREATED", "DDL", "KIND_WORDS", "PLANNED", "WRITES", "AddColumn", "AddConstraint", "AddIdentity",
    "AlterCluster", "AlterClustering", "AlterColumns", "AlterHistory", "AlterSequence", "Begin", "Change",
    "CloseCursors", "ClusterSetting", "ColumnAction", "ColumnDef", "Comment", "Commit", "Control", "Copy", "CopyFrom",
    "CopyOptions", "CopyTo", "CreateConnection", "CreateGenerator", "CreateIndex", "CreateSchema", "CreateSequence",
    "CreateSink", "CreateSource", "CreateTable", "CreateView", "CreateWebhook", "Deallocate", "Delete", "Discard",
    "Drop", "DropColumn", "DropConstraint", "DropIdentity", "DropNotNull", "Empty", "Explain", "Fetched", "FormatSpec",
    "Insert", "Kind", "Merge", "Name", "Query", "Release", "Rename", "RenameColumn", "RenameConstraint",
    "RenameSchema", "ResetAll", "ResetSource", "Rollback", "RollbackTo", "Savepoint", "SetDefault", "SetIdentity",
    "SetNotNull", "SetSchema", "SetTransaction", "SetVariable", "ShowCreate", "ShowObjects", "ShowVariable",
    "Statement", "TakeBack", "Truncate", "Unlisten", "Unmark", "Update", "Upkeep", "Vacuum",
    "ValidateConnection", "ValidateConstraint", "Withdraw", "Writing",
]  # fmt: skip
