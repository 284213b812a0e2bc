"""What SHOW CREATE and the system relations ask of a kind of object, and what most kinds write alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from adapter.system.types import type_display
from catalog_log import model
from catalog_log.model import Cluster, Setting
from catalog_log.objects import ALWAYS, Column, Item, Sequence, Table, cluster_of, own_columns
from catalog_log.settings import clustered_by, history_key
from sql.objects.identifiers import quoted
from sql.objects.names import ImageLike
from sql.statements.sequence_calls import default_today
from values.time.intervals import Interval, show_interval
from values.types import parse_type

HEAP, NO_ACCESS = 2, 0
"""Oids of access methods."""


@dataclass(frozen=True)
class Place:
    """Where an object is for clients."""

    database: str
    schema: str
    oid: int
    owner: str


Own = Callable[[Any, Place, ImageLike], dict[str, object] | None]
"""The row of an object in a relation of its kind, ``None`` where it has none there."""


@dataclass(frozen=True)
class KindRows:
    """``created``: DDL that would make the object again under the full name that it is given."""

    relkind: str
    """Empty where it is in none of pg_catalog's relations that are of all kinds."""
    created: Callable[[Any, str, ImageLike], str]
    access: int = HEAP
    table_type: str | None = "BASE TABLE"
    """In information_schema; ``None`` where it is in no relation of tables and columns there."""
    privileges: tuple[str, ...] = ("SELECT",)
    own: Mapping[str, Own] = field(default_factory=dict)
    """The relations of the system that are of this kind alone: ``schema.name`` -> what an object's row is."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """Of those in tm_catalog: their names -> their columns, as :mod:`adapter.system.schemas` writes them."""
    listed: Callable[[Any, ImageLike], tuple[str | None, ...]] = lambda item, image: ()
    """The texts that SHOW has of each beside its name, as its class lists them."""

    @property
    def insertable(self) -> bool:
        return "INSERT" in self.privileges


def with_options(item: Item, image: ImageLike) -> str:
    """What is said behind the columns of a relation of how its rows are stored."""
    return "".join(f"\n{each}" for each in (cluster_by(item, image), _with_history(item, image)) if each)


def cluster_by(item: Item, image: ImageLike) -> str:
    """``CLUSTER BY (…)`` of what is kept so."""
    called = {column.stored_as: quoted(column.name) for column in own_columns(item)}
    found = [called[each] for each in clustered_by(image, item.id) if each in called]
    return f"CLUSTER BY ({', '.join(found)})" if found else ""


def _with_history(item: Item, image: ImageLike) -> str:
    kept: Setting | None = image.get(model.SETTINGS, history_key(item.id))
    if kept is None or not kept.value.isdigit():
        return ""
    days, ms = divmod(int(kept.value), 86_400_000)
    return f"WITH (RETAIN HISTORY = FOR '{show_interval(Interval(0, days, 1000 * ms))}')"


def column_lines(item: Item, image: ImageLike, columns: Iterable[Column] | None = None) -> str:
    """The columns of a relation, or some of them, as CREATE TABLE declares them."""
    return ",\n".join(
        f"    {quoted(c.name)} {type_display(parse_type(c.type))}"
        + ("" if c.nullable else " NOT NULL")
        + (f" DEFAULT {default_today(item, c, image)}" if c.default is not None else "")
        + _identity(item, c, image)
        for c in (own_columns(item) if columns is None else columns)
    )


def _identity(item: Item, column: Column, image: ImageLike) -> str:
    found = identity_of(item, column, image)
    if found is None:
        return ""
    word, sequence = found
    return f" GENERATED {word} AS IDENTITY ({steps_of(sequence)})"


def identity_of(item: Item, column: Column, image: ImageLike) -> tuple[str, Sequence] | None:
    """How an identity column is generated, in the words of SQL, and by which sequence."""
    found = item.identity_of(column) if isinstance(item, Table) else None
    sequence = image.item(found[1]) if found is not None else None
    if not isinstance(sequence, Sequence):
        return None
    return "ALWAYS" if found[0] == ALWAYS else "BY DEFAULT", sequence


def steps_of(item: Sequence) -> str:
    """How a sequence steps, as CREATE SEQUENCE says it."""
    steps = item.steps
    return (
        f"START WITH {item.start} INCREMENT BY {steps.increment} MINVALUE {steps.lowest} MAXVALUE {steps.highest} "
        f"CACHE {item.cache}{' CYCLE' if steps.cycle else ''}"
    )


def kept_in(item: Item, image: ImageLike) -> Cluster | None:
    """The cluster that maintains it, if one does."""
    cluster_id = cluster_of(item)
    return None if cluster_id is None else image.get(model.CLUSTERS, cluster_id)


def in_cluster(item: Item, image: ImageLike) -> str:
    """`` IN CLUSTER`` and its name, for what a cluster keeps."""
    cluster = kept_in(item, image)
    return "" if cluster is None else f" IN CLUSTER {quoted(cluster.name)}"
