"""What has a name in a schema.

``id`` (``u1``, ``u2``…) is never used twice.  ``depends_on`` are the ids that an object's definition names, and so what
must not go before it.  How each is kept as bytes is :mod:`catalog_log.object_records`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Any, ClassVar, Self

from catalog_log.objects.definition import Definition, SparkText

Record = Mapping[str, Any]
"""An object as the catalog's schema has it (``schemas/``): all fields that any kind has."""


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


class Audience(Enum):
    """Which controllers must know of an object."""

    EVERYBODY = auto()
    """Storage, which keeps its topics, and every cluster, since any may read it."""
    CLUSTERS = auto()
    """Every cluster: it lowers what reads the object."""
    ITS_CLUSTER = auto()
    STORAGE = auto()
    """The storage controller, which alone has to do with it."""
    NOBODY = auto()


@dataclass(frozen=True)
class Item:
    """What every object has.  Only its subclasses are made: a file each beside this one."""

    kind: ClassVar[str]
    word: ClassVar[str]
    """What one is called in statements and messages."""
    belongs: ClassVar[bool] = False
    """Whether it goes, unasked, with what it depends on."""
    named: ClassVar[bool] = True
    """Whether statements speak of one by its word."""
    absent: ClassVar[tuple[str, str | None]] = ("42P01", None)
    """What a statement about one is told where there is none: the SQLSTATE, and a hint."""
    unread: ClassVar[str | None] = None
    """Of what is no relation: a hint for who would read it."""
    plural: ClassVar[str] = ""
    """What SHOW calls them; empty where it lists none of them by themselves."""
    listed: ClassVar[tuple[str, ...]] = ()
    """What it calls the texts that it has of each beside the name."""

    id: str
    schema_id: str
    name: str
    create_sql: str
    """The statement that made it, as it was written."""

    @property
    def depends_on(self) -> tuple[str, ...]:
        return ()

    @property
    def audience(self) -> Audience:
        return Audience.EVERYBODY

    @property
    def settings(self) -> tuple[str, ...]:
        """Keys of settings that are its own, and go with it."""
        return ()

    @property
    def part_of(self) -> tuple[str, int] | None:
        """The table and the column without which it cannot go."""
        return None

    def told(self, on: str | None = None) -> str:
        """What messages call it: that of it which depends on ``on``."""
        return f"{self.word} {self.name}"

    def left_without(self, gone: Collection[str]) -> Self | None:
        """What is left of it where ``gone``, which it depends on, are no more; ``None``: nothing is, it goes too."""
        return None

    def with_ids(self, now: Callable[[str], str], spark: Callable[[str], str]) -> Self:
        """Itself, naming ``now(id)`` wherever it named an id; ``spark`` does that to a text of Spark's."""
        return replace(self, id=now(self.id))

    def fields(self) -> dict[str, Any]:
        """What its record has beside what every object has."""
        return {}

    @classmethod
    def of_record(cls, head: tuple[str, str, str, str], columns: tuple[Column, ...], record: Record) -> Self:
        """From the fields of :class:`Item`, its columns, and all else.  Raises ``LookupError`` for what is missing."""
        raise NotImplementedError


@dataclass(frozen=True)
class Relation(Item):
    """What has columns and can be read."""

    columns: tuple[Column, ...] = ()

    @property
    def stored(self) -> tuple[Column, ...]:
        """All columns that it ever had, in the order of their ids, each by the name that engines know it by.

        So a column is in the same place for whoever reads rows, whatever became of the others.
        """
        return as_stored(self.columns)


@dataclass(frozen=True, kw_only=True)
class Maintained(Item):
    """What a cluster keeps up to date."""

    cluster_id: str


@dataclass(frozen=True, kw_only=True)
class Queried(Relation):
    """A relation that is a query."""

    query: Definition | SparkText

    @property
    def depends_on(self) -> tuple[str, ...]:
        return self.query.depends_on

    @property
    def inputs(self) -> tuple[str, ...]:
        """Ids of the collections that the query reads, itself and through plain views."""
        return self.query.inputs

    def with_ids(self, now: Callable[[str], str], spark: Callable[[str], str]) -> Self:
        return replace(super().with_ids(now, spark), query=self.query.with_ids(now, spark))

    def fields(self) -> dict[str, Any]:
        return super().fields() | self.query.fields()


def numbered(columns: Iterable[Column]) -> tuple[Column, ...]:
    """``columns`` of a new relation, with their ids."""
    return tuple(replace(column, id=n) for n, column in enumerate(columns, 1))


def as_stored(columns: Sequence[Column]) -> tuple[Column, ...]:
    """``columns``, each by the name that engines know it by."""
    return tuple([c if c.field is None else replace(c, name=c.field, field=None) for c in columns])


def required(value: str | None) -> str:
    """A field of a record that this kind must have."""
    if value is None:
        raise LookupError("such field")
    return value
