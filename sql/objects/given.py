"""Relations of one statement: the rows that a WITH query which writes gives to the other parts of its statement.  Pure.

Each is planned as any relation is, by columns whose types are known from what gives it; its rows are there only once
that part has run.  Its schema has a name that no client can write, since names of theirs have no zero byte.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from catalog_log import model
from catalog_log.model import Schema
from catalog_log.objects import Column, Item, Relation
from journal.errors import InvalidUsage
from sql.objects.names import ImageLike
from sql.syntax.writing import GIVEN
from values.types import SqlType


@dataclass(frozen=True)
class Given(Relation):
    """Called as the WITH query is; its columns are called by their places, whatever that calls them."""

    kind = word = "WITH query"


def given(number: int, name: str, types: Sequence[SqlType]) -> Given:
    """What the WITH query ``name`` gives, ``number`` of its statement: rows of these types."""
    columns = [Column(f"c{at}", str(kind), id=at + 1) for at, kind in enumerate(types)]
    return Given(f"w{number}", GIVEN, name, "", tuple(columns))


def is_given(item_id: str) -> bool:
    """Whether an id is of such a relation: the catalog's have other letters."""
    return item_id.startswith("w")


class Giving:
    """``image`` with ``relations`` in it, by the names of their WITH queries; ``None`` of one that gives nothing."""

    def __init__(self, image: ImageLike, relations: dict[str, Given | None]) -> None:
        self._image, self._relations = image, relations

    def __getattr__(self, name: str) -> Any:
        return getattr(self._image, name)

    def item(self, item_id: str) -> Item | None:
        if not is_given(item_id):
            return self._image.item(item_id)
        return next((each for each in self._relations.values() if each is not None and each.id == item_id), None)

    def item_by_name(self, schema_id: str, name: str) -> Item | None:
        """0A000 for a WITH query that gives nothing."""
        if schema_id != GIVEN:
            return self._image.item_by_name(schema_id, name)
        found = self._relations[name]
        if found is None:
            raise InvalidUsage(f'WITH query "{name}" does not have a RETURNING clause', sqlstate="0A000")
        return found

    def dependents(self, item_id: str) -> tuple[Item, ...]:
        return () if is_given(item_id) else self._image.dependents(item_id)

    def schema_by_name(self, database_id: str, name: str) -> Schema | None:
        return _SCHEMA if name == GIVEN else self._image.schema_by_name(database_id, name)

    def get(self, collection: str, key: str) -> Any:
        return _SCHEMA if (collection, key) == (model.SCHEMAS, GIVEN) else self._image.get(collection, key)


_SCHEMA = Schema(GIVEN, "", "WITH")
