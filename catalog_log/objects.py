"""What has a name in a schema: one class for each kind of object, with just the fields that its kind has.

``id`` (``u1``, ``u2``…) is never used twice.  ``depends_on`` are the ids that an object's definition names, and so what
must not go before it.  How each is kept as bytes is :mod:`catalog_log.object_records`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

TABLE = "table"
SOURCE = "source"
ERRORS = "errors"
VIEW = "view"
MATERIALIZED_VIEW = "materialized_view"
INDEX = "index"


@dataclass(frozen=True)
class Column:
    """A column: ``type`` is the text form of a :class:`values.types.SqlType`, e.g. ``int4``, ``numeric(10,2)``."""

    name: str
    type: str
    nullable: bool = True
    default: str | None = None
    """The DEFAULT expression in SQL as the user wrote it, or ``None``."""
    id: int = 0
    """1, 2… in the order in which its relation got them, never used twice there; 0 in catalogs of formats 1 to 3, whose
    columns stay as they are.  Rows say of each value which column's it is (:mod:`collection.rows`)."""
    field: str | None = None
    """What engines and messages call it, for ever: its first name.  ``None``: the one that it has."""
    missing: bytes | None = None
    """What rows have in it that were written before it was there, as :func:`collection.rows.encode_value` gives it;
    ``None``: null."""

    @property
    def stored_as(self) -> str:
        return self.name if self.field is None else self.field


def numbered(columns: Iterable[Column]) -> tuple[Column, ...]:
    """``columns`` of a new relation, with their ids."""
    return tuple(replace(column, id=n) for n, column in enumerate(columns, 1))


@dataclass(frozen=True)
class Item:
    """What every object has.  Only its subclasses are made."""

    kind: ClassVar[str]

    id: str
    schema_id: str
    name: str
    create_sql: str
    """The statement that made it, as it was written."""

    @property
    def depends_on(self) -> tuple[str, ...]:
        return ()


@dataclass(frozen=True)
class Relation(Item):
    """What has columns and can be read."""

    columns: tuple[Column, ...] = ()

    @property
    def stored(self) -> tuple[Column, ...]:
        """All columns that it ever had, in the order of their ids, each by the name that engines know it by.

        So a column is in the same place for whoever reads rows, whatever became of the others.
        """
        return _as_stored(self.columns)


@dataclass(frozen=True)
class Table(Relation):
    kind = TABLE

    dropped: tuple[Column, ...] = ()
    """Columns that it had: rows that were written then have them still."""

    @property
    def stored(self) -> tuple[Column, ...]:
        if not self.dropped:
            return _as_stored(self.columns)
        return _as_stored(sorted((*self.columns, *self.dropped), key=lambda column: column.id))


@dataclass(frozen=True, kw_only=True)
class Source(Relation):
    """Rows of the messages of a user's topic."""

    kind = SOURCE

    topic: str
    format: str
    envelope: str
    errors_id: str
    """Where messages are kept that are no rows of it."""


@dataclass(frozen=True, kw_only=True)
class Errors(Relation):
    """The messages that are no rows of their source."""

    kind = ERRORS

    source_id: str

    @property
    def depends_on(self) -> tuple[str, ...]:
        return (self.source_id,)


@dataclass(frozen=True)
class Reference:
    """What a name in a definition means, whatever is called so later."""

    name: tuple[str, ...]
    """As it stands there, folded to lower case where it was not quoted: ``("public", "t")``."""
    relation_id: str
    schema: str
    """What the relation's schema was called: columns may be qualified by it."""
    columns: tuple[str, ...]
    """The columns that the relation had, in order: what ``*`` and NATURAL mean."""
    column_ids: tuple[int, ...] = ()
    """Which ones they are; empty in catalogs of format 3, in which a column is what it is called."""


@dataclass(frozen=True)
class Definition:
    """A query as its user meant it: the one in ``create_sql``, with every name of a relation in it resolved.

    It says nothing of how an engine is told it: every process works that out (``sql/views/kept_views.py``).
    """

    references: tuple[Reference, ...]
    inputs: tuple[str, ...]
    """Ids of the collections that it reads, itself and through plain views."""

    @property
    def depends_on(self) -> tuple[str, ...]:
        """Ids of the relations that are named in it, plain views among them."""
        return tuple(dict.fromkeys(each.relation_id for each in self.references))


@dataclass(frozen=True)
class SparkText:
    """A query as catalogs of formats 1 and 2 keep it, and as Spark is told it: plain views inlined, relations named by
    item id."""

    sql: str
    depends_on: tuple[str, ...]
    """Ids of the relations that were named in it, plain views among them."""
    inputs: tuple[str, ...]
    """Ids of the collections that ``sql`` reads (tables, sources, materialized views)."""


@dataclass(frozen=True, kw_only=True)
class View(Relation):
    """A plain view: nothing is kept of it, who reads it reads its query."""

    kind = VIEW

    query: Definition | SparkText

    @property
    def depends_on(self) -> tuple[str, ...]:
        return self.query.depends_on

    @property
    def inputs(self) -> tuple[str, ...]:
        return self.query.inputs


@dataclass(frozen=True, kw_only=True)
class MaterializedView(Relation):
    """A view whose rows its cluster keeps."""

    kind = MATERIALIZED_VIEW

    query: Definition | SparkText
    cluster_id: str

    @property
    def depends_on(self) -> tuple[str, ...]:
        return self.query.depends_on

    @property
    def inputs(self) -> tuple[str, ...]:
        return self.query.inputs


@dataclass(frozen=True, kw_only=True)
class Index(Item):
    """An arrangement of a relation by some of its columns, kept by a cluster."""

    kind = INDEX

    relation_id: str
    key: tuple[str, ...]
    """The columns in order, each by the name that engines know it by (:attr:`Column.stored_as`)."""
    cluster_id: str

    @property
    def depends_on(self) -> tuple[str, ...]:
        return (self.relation_id,)


def _as_stored(columns: Sequence[Column]) -> tuple[Column, ...]:
    return tuple([c if c.field is None else replace(c, name=c.field, field=None) for c in columns])


KINDS: tuple[type[Item], ...] = (Table, Source, Errors, View, MaterializedView, Index)


def view_inputs(item: Item) -> tuple[str, ...]:
    """The collections that a view's query reads; nothing of any other object."""
    return item.inputs if isinstance(item, (View, MaterializedView)) else ()


def own_columns(item: Item) -> tuple[Column, ...]:
    """The columns of a relation; an index has none of its own."""
    return item.columns if isinstance(item, Relation) else ()


def ever(item: Relation) -> tuple[Column, ...]:
    """All columns that it ever had, called as they are called now or were at last."""
    return (*item.columns, *item.dropped) if isinstance(item, Table) else item.columns


def numbered_columns(item: Item) -> Iterator[tuple[int, Column]]:
    """The columns of a relation with their numbers: their ids, without which it is their places from 1."""
    return ((column.id or place, column) for place, column in enumerate(own_columns(item), 1))


def places(relation: Relation) -> dict[str, int]:
    """Where each of its columns is in rows as they are stored."""
    stored = {column.name: place for place, column in enumerate(relation.stored)}
    return {column.name: stored[column.stored_as] for column in relation.columns}


def key_names(index: Index, relation: Item | None) -> tuple[str, ...]:
    """What the columns of an index are called now."""
    now = {} if relation is None else {column.stored_as: column.name for column in own_columns(relation)}
    return tuple(now.get(column, column) for column in index.key)


def cluster_of(item: Item) -> str | None:
    """The cluster that maintains it, if one does."""
    return item.cluster_id if isinstance(item, (MaterializedView, Index)) else None
