"""What every CREATE has in common: a name that may be taken, columns, and the updates that put what was made.  Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from catalog_log import model, records
from catalog_log.model import Schema, Update
from catalog_log.objects import Column, Item, numbered
from sql.objects.item_ids import ItemIds
from sql.objects.names import ImageLike
from sql.statements.plans import DdlPlan, PlanNotice
from trees.errors import already_exists


def exists(kind: str, name: str, if_not_exists: bool, tag: str, sqlstate: str = "42P07") -> DdlPlan:
    """Of a name that is taken: nothing to do, where IF NOT EXISTS was said; else raises ``sqlstate``."""
    error = already_exists(kind, name, sqlstate)
    if not if_not_exists:
        raise error
    return DdlPlan((), tag, (PlanNotice(f"{error.message}, skipping", sqlstate),))


def taken(image: ImageLike, schema: Schema, name: str, going: Collection[str] = ()) -> bool:
    """Whether something is called so, of another id than those ``going``: all that has a name in a schema is in one
    namespace."""
    found = image.item_by_name(schema.id, name)
    return found is not None and found.id not in going


def created(ids: ItemIds, tag: str, *items: Item, also: Iterable[Update] = ()) -> DdlPlan:
    """``items`` in the catalog, with ``also``; ``ids`` are where their ids are from."""
    puts = tuple(records.put(model.ITEMS, item.id, item) for item in items)
    return DdlPlan((*puts, *also, ids.update()), tag, created=tuple(item.id for item in items))


def new_columns(image: ImageLike, columns: Iterable[Column]) -> tuple[Column, ...]:
    """Of a new relation: with ids, where the catalog keeps them."""
    return numbered(columns) if image.genesis.format_version >= records.COLUMN_IDS_FROM else tuple(columns)
