"""What has a name in a schema: one class for each kind of object, with just the fields that its kind has.

``id`` (``u1``, ``u2``…) is never used twice.  ``depends_on`` are the ids that an object's definition names, and so what
must not go before it.  How each is kept as bytes is :mod:`catalog_log.object_records`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

TABLE = "table"
SOURCE = "source"
ERRORS = "errors"
VIEW = "view"
MATERIALIZED_VIEW = "materialized_view"
INDEX = "index"


@dataclass(frozen=True)
class Column:
    """A column: ``type`` is the text form of a :class:`collection.types.SqlType`, e.g. ``int4``, ``numeric(10,2)``."""

    name: str
    type: str
    nullable: bool = True
    default: str | None = None
    """The DEFAULT expression in SQL as the user wrote it, or ``None``."""


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


@dataclass(frozen=True)
class Table(Relation):
    kind = TABLE


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


@dataclass(frozen=True)
class Definition:
    """A query as its user meant it: the one in ``create_sql``, with every name of a relation in it resolved.

    It says nothing of how an engine is told it: every process works that out (``sql/kept_views.py``).
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
    """Names of the columns, in order."""
    cluster_id: str

    @property
    def depends_on(self) -> tuple[str, ...]:
        return (self.relation_id,)


KINDS: tuple[type[Item], ...] = (Table, Source, Errors, View, MaterializedView, Index)


def view_inputs(item: Item) -> tuple[str, ...]:
    """The collections that a view's query reads; nothing of any other object."""
    return item.inputs if isinstance(item, (View, MaterializedView)) else ()


def own_columns(item: Item) -> tuple[Column, ...]:
    """The columns of a relation; an index has none of its own."""
    return item.columns if isinstance(item, Relation) else ()


def cluster_of(item: Item) -> str | None:
    """The cluster that maintains it, if one does."""
    return item.cluster_id if isinstance(item, (MaterializedView, Index)) else None
