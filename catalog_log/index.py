"""Names to ids and ids to their dependents: what an image needs to answer by name, kept persistent.

Two items of one name cannot come from a correct writer (the compare-and-append sees to that).  Should a hostile one
make them, the lowest id is found, whatever the order in which the index was built.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

import immutables

from catalog_log import model, records
from schemas.codec import Undecodable

Named = immutables.Map  # container id -> name -> ids, ascending; almost always one


class HasData(Protocol):
    data: bytes
    value: object


IndexChange = tuple[str, str, HasData | None, HasData | None]
"""``(collection, key, before, after)``."""


def id_order(item_id: str) -> tuple[int, str]:
    """Sorts ids as people count: ``u2`` before ``u10``."""
    return len(item_id), item_id


class Index:
    """Immutable; :meth:`changed` gives the next one."""

    __slots__ = ("_items", "_schemas", "_dependents")

    def __init__(self, items: Named, schemas: Named, dependents: Named) -> None:
        self._items = items
        self._schemas = schemas
        self._dependents = dependents

    def item_ids(self, schema_id: str, name: str) -> tuple[str, ...]:
        """Ids of the items of that name, in order: one, but for hostile records."""
        return self._items.get(schema_id, {}).get(name, ())

    def schema_ids(self, database_id: str, name: str) -> tuple[str, ...]:
        """Ids of the schemas of that name, in order: one, but for hostile records."""
        return self._schemas.get(database_id, {}).get(name, ())

    def item_ids_in(self, schema_id: str) -> list[str]:
        """Ids of a schema's items, in order."""
        return sorted((i for ids in self._items.get(schema_id, {}).values() for i in ids), key=id_order)

    def dependent_ids(self, item_id: str) -> list[str]:
        """Ids of the items that depend on ``item_id``, in order."""
        return sorted(self._dependents.get(item_id, {}), key=id_order)

    def changed(self, changes: Iterable[IndexChange]) -> Index:
        """After ``changes`` of ``(collection, key, before, after)``."""
        items, schemas, dependents = _Draft(self._items), _Draft(self._schemas), _Draft(self._dependents)
        for collection, key, before, after in changes:
            if collection == model.ITEMS:
                for cell, change in ((before, _Draft.discard), (after, _Draft.add)):
                    if cell is None:
                        continue
                    try:
                        schema_id, name, depends_on = records.item_head(cell.data)
                    except Undecodable:
                        continue  # found by nothing, as the image promises
                    change(items, schema_id, name, key)
                    for dependency in depends_on:
                        change(dependents, dependency, key, key)
            elif collection == model.SCHEMAS:
                for cell, change in ((before, _Draft.discard), (after, _Draft.add)):
                    if cell is not None and cell.value is not None:
                        change(schemas, cell.value.database_id, cell.value.name, key)
        return Index(items.finish(), schemas.finish(), dependents.finish())


def build(items: Mapping[str, HasData], schemas: Mapping[str, HasData]) -> Index:
    """The index of these cells: as :meth:`Index.changed` from empty, at three times the speed."""
    by_name: dict[str, dict[str, tuple[str, ...]]] = {}
    dependents: dict[str, dict[str, tuple[str, ...]]] = {}
    for key, cell in items.items():
        try:
            schema_id, name, depends_on = records.item_head(cell.data)
        except Undecodable:
            continue
        _note(by_name, schema_id, name, key)
        for dependency in depends_on:
            dependents.setdefault(dependency, {})[key] = (key,)
    schemas_by_name: dict[str, dict[str, tuple[str, ...]]] = {}
    for key, cell in schemas.items():
        if cell.value is not None:
            _note(schemas_by_name, cell.value.database_id, cell.value.name, key)
    return Index(_frozen(by_name), _frozen(schemas_by_name), _frozen(dependents))


def _note(named: dict[str, dict[str, tuple[str, ...]]], container: str, name: str, key: str) -> None:
    inner = named.get(container)
    if inner is None:
        inner = named[container] = {}
    ids = inner.get(name)
    inner[name] = (key,) if ids is None else tuple(sorted((*ids, key), key=id_order))


def _frozen(named: dict[str, dict[str, tuple[str, ...]]]) -> Named:
    return immutables.Map({container: immutables.Map(inner) for container, inner in named.items()})


EMPTY_INDEX = Index(immutables.Map(), immutables.Map(), immutables.Map())


class _Draft:
    """A map of maps being changed; only the inner maps that were touched are copied, once."""

    def __init__(self, base: Named) -> None:
        self._base = base
        self._touched: dict[str, object] = {}

    def add(self, container: str, name: str, key: str) -> None:
        inner = self._inner(container)
        ids = inner.get(name, ())
        if key not in ids:
            inner[name] = (key,) if not ids else tuple(sorted((*ids, key), key=id_order))

    def discard(self, container: str, name: str, key: str) -> None:
        inner = self._inner(container)
        ids = inner.get(name, ())
        left = tuple(i for i in ids if i != key)
        if left:
            inner[name] = left
        elif ids:
            del inner[name]

    def finish(self) -> Named:
        done = self._base
        for container, draft in self._touched.items():
            inner = draft.finish()
            if inner:
                done = done.set(container, inner)
            elif container in done:
                done = done.delete(container)
        return done

    def _inner(self, container: str) -> object:
        inner = self._touched.get(container)
        if inner is None:
            inner = self._touched[container] = self._base.get(container, immutables.Map()).mutate()
        return inner


PENDING_MAX = 256
"""Changes that may wait for the next question by name: applied together they cost a millisecond or two."""


class LazyIndex:
    """An index and the changes that nobody has asked about yet.

    Appending must not pay for names that are looked up later, and by another thread; so changes are only noted here,
    and applied by the first question.
    """

    __slots__ = ("_built",)

    def __init__(self, index: Index, pending: tuple[IndexChange, ...] = ()) -> None:
        self._built = (index, pending)

    def get(self) -> Index:
        """The index with everything applied.  Two threads may both do it: the results are equal."""
        index, pending = self._built
        if pending:
            index = index.changed(pending)
            self._built = (index, ())
        return index

    def changed(self, changes: Iterable[IndexChange]) -> LazyIndex:
        """The next one."""
        index, pending = self._built
        pending = (*pending, *changes)
        return LazyIndex(index.changed(pending)) if len(pending) > PENDING_MAX else LazyIndex(index, pending)
