"""The catalog at one upper: immutable, shared, cheap to keep.

Values stay bytes until somebody looks.  Loading a million objects therefore decodes none of them: the name and
dependency indexes read only the first fields of an item (``records.item_head``), once, when the first image that is
asked by name builds them; every later image extends its predecessor's.  Turned down: a copy of schema and name beside
each value in the update, which would be a second truth that can disagree with the value.

A value that does not decode is as good as absent, for every reader alike: it is listed by :meth:`Image.broken` and
found by nothing else.  (Decoding every value in the fold, to refuse the proposal, would cost 20 s per million.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import immutables

from catalog_log import model, records
from catalog_log.index import EMPTY_INDEX, Index, LazyIndex, build, id_order
from catalog_log.model import Cluster, Database, Genesis, Schema
from catalog_log.objects import Item
from catalog_log.records import CatalogValue
from schemas.codec import Undecodable


class Cell:
    """One value: its bytes, decoded at the first look and then kept."""

    __slots__ = ("collection", "data", "_value", "_looked")

    def __init__(self, collection: str, data: bytes) -> None:
        self.collection = collection
        self.data = data
        self._value: CatalogValue | None = None
        self._looked = False

    @property
    def value(self) -> CatalogValue | None:
        """The decoded value; ``None`` if the bytes are none."""
        if not self._looked:
            try:
                self._value = records.decode_value(self.collection, self.data)
            except (Undecodable, TypeError):
                self._value = None
            self._looked = True
        return self._value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cell) and (self.collection, self.data) == (other.collection, other.data)

    def __hash__(self) -> int:
        return hash(self.data)

    def __repr__(self) -> str:
        return f"Cell({self.value!r})"


class Stats(NamedTuple):
    """Verdicts given so far."""

    accepted: int = 0
    stale: int = 0
    malformed: int = 0


Key = tuple[str, str]
"""``(collection, key)``."""

_NO_CELLS: immutables.Map[str, Cell] = immutables.Map()


class Image:
    """The fold of a prefix of the catalog log.  Compares by content."""

    __slots__ = ("upper", "since", "genesis", "stats", "cells", "previous_upper", "changed", "lazy_index")

    def __init__(
        self,
        upper: int,
        since: int,
        genesis: Genesis | None,
        stats: Stats,
        cells: Mapping[str, immutables.Map[str, Cell]],
        previous_upper: int | None = None,
        changed: tuple[Key, ...] = (),
        index: LazyIndex | None = None,
    ) -> None:
        self.upper = upper
        """Everything below is complete; 0 before the genesis."""
        self.since = since
        """The first catalog timestamp that can be read."""
        self.genesis = genesis
        self.stats = stats
        self.cells = cells
        """Collection -> key -> cell, for the fold and the delta; others use the methods."""
        self.previous_upper = previous_upper
        """Upper of the image that ``changed`` is relative to; ``None`` if that is not known."""
        self.changed = changed
        self.lazy_index = index
        """``None`` until somebody asks by name; from then on every later image extends it."""

    @property
    def catalog_ts(self) -> int:
        """The timestamp that a statement planned on this image carries: ``upper - 1``."""
        return self.upper - 1

    def get(self, collection: str, key: str) -> CatalogValue | None:
        """The value at ``key``, or ``None``."""
        cell = self.cells.get(collection, _NO_CELLS).get(key)
        return None if cell is None else cell.value

    def all(self, collection: str) -> Iterator[tuple[str, CatalogValue]]:
        """Every key and value of ``collection``, ids in order."""
        cells = self.cells.get(collection, _NO_CELLS)
        for key in sorted(cells, key=id_order):
            value = cells[key].value
            if value is not None:
                yield key, value

    def count(self, collection: str) -> int:
        """How many keys ``collection`` has (broken ones too)."""
        return len(self.cells.get(collection, _NO_CELLS))

    def item(self, item_id: str) -> Item | None:
        return self.get(model.ITEMS, item_id)

    def item_by_name(self, schema_id: str, name: str) -> Item | None:
        return next(self._items(self.index().item_ids(schema_id, name)), None)

    def items_in(self, schema_id: str) -> Iterator[Item]:
        """The items of a schema, ids in order."""
        return self._items(self.index().item_ids_in(schema_id))

    def dependents(self, item_id: str) -> tuple[Item, ...]:
        """The items whose definitions name ``item_id`` directly, ids in order."""
        return tuple(self._items(self.index().dependent_ids(item_id)))

    def objects(self) -> Iterator[Item]:
        """Every item, ids in order."""
        return self._items(sorted(self.cells.get(model.ITEMS, _NO_CELLS), key=id_order))

    def database_by_name(self, name: str) -> Database | None:
        return next((d for _, d in self.all(model.DATABASES) if d.name == name), None)

    def schema_by_name(self, database_id: str, name: str) -> Schema | None:
        found = self.index().schema_ids(database_id, name)
        return self.get(model.SCHEMAS, found[0]) if found else None

    def schemas_in(self, database_id: str) -> Iterator[Schema]:
        """The schemas of a database, ids in order."""
        return (s for _, s in self.all(model.SCHEMAS) if s.database_id == database_id)

    def cluster_by_name(self, name: str) -> Cluster | None:
        for cell in self.cells.get(model.CLUSTERS, _NO_CELLS).values():
            found = cell.value
            if found is not None and found.name == name:
                return found
        return None

    def broken(self) -> list[Key]:
        """Keys whose values do not decode.  Decodes everything."""
        return [(c, k) for c, cells in self.cells.items() for k, cell in cells.items() if cell.value is None]

    def index(self) -> Index:
        """The indexes, built now if no predecessor had any (about 5 s per million items, once)."""
        if self.lazy_index is None:
            items, schemas = (self.cells.get(c, _NO_CELLS) for c in (model.ITEMS, model.SCHEMAS))
            self.lazy_index = LazyIndex(build(items, schemas))
        return self.lazy_index.get()

    def _items(self, ids: Iterable[str]) -> Iterator[Item]:
        for item_id in ids:
            item = self.item(item_id)
            if item is not None:
                yield item

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Image) and (
            (self.upper, self.since, self.genesis, self.stats) == (other.upper, other.since, other.genesis, other.stats)
            and {c: m for c, m in self.cells.items() if m} == {c: m for c, m in other.cells.items() if m}
        )

    __hash__ = None

    def __repr__(self) -> str:
        return f"Image(upper={self.upper}, since={self.since}, stats={self.stats})"


EMPTY = Image(0, 0, None, Stats(), {}, index=LazyIndex(EMPTY_INDEX))
"""What every fold begins with."""
