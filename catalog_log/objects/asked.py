"""What is asked of any object, whatever its kind."""

from __future__ import annotations

from collections.abc import Iterator

from catalog_log.objects.item import Column, Item, Maintained, Queried, Relation
from catalog_log.objects.table import Table


def view_inputs(item: Item) -> tuple[str, ...]:
    """The collections that a view's query reads; nothing of any other object."""
    return item.inputs if isinstance(item, Queried) else ()


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


def cluster_of(item: Item) -> str | None:
    """The cluster that maintains it, if one does."""
    return item.cluster_id if isinstance(item, Maintained) else None
