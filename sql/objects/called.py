"""What the names of relations in a query mean: to the session that sends it, or to who made the view that it is of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from catalog_log import model
from catalog_log.objects import Item, Reference, Relation, ever
from journal.errors import InvalidUsage
from sql.objects.names import ImageLike, Names, SystemRelation, relation
from sql.syntax.statements import Name
from trees.errors import no_relation


class Objects:
    """The objects of one catalog by their ids, for who reads what they mean.

    ``spend(chars)`` is told how much text of plain views is about to be read; it may raise, and ends it so.
    """

    def __init__(self, item: Callable[[str], Item | None], spend: Callable[[int], None] = lambda chars: None) -> None:
        self.item = item
        self.spend = spend

    @classmethod
    def of(cls, image: ImageLike) -> Objects:
        spend = getattr(image, "spend", None)  # a watched one's, also where something stands over it
        return cls(image.item) if spend is None else cls(image.item, spend)


class Called:
    """What names mean to a session."""

    def __init__(self, image: ImageLike, names: Names) -> None:
        self._image = image
        self._names = names

    def relation(self, name: Name) -> Relation | SystemRelation:
        """42P01 where there is none of that name, 42809 for an index."""
        return relation(self._image, self._names, name)

    def schema(self, name: Name) -> str:
        """What the schema of the relation is called."""
        item = self.relation(name)
        if isinstance(item, SystemRelation):
            return item.schema
        schema = self._image.get(model.SCHEMAS, item.schema_id)
        return schema.name if schema else ""


class Meant:
    """What the names in a kept definition mean: the relations that they meant, with the columns that those had."""

    def __init__(self, references: Sequence[Reference], objects: Objects) -> None:
        self._references = {each.name: each for each in references}
        self._objects = objects

    def relation(self, name: Name) -> Relation:
        """42P01, 42703 where what it meant is gone, of which nothing but a hostile catalog can be the reason."""
        reference = self._reference(name)
        item = self._objects.item(reference.relation_id)
        if not isinstance(item, Relation):
            raise InvalidUsage(f"relation {reference.relation_id} is gone", sqlstate="42P01")
        if tuple(c.name for c in item.columns) == reference.columns:
            if not reference.column_ids or tuple(c.id for c in item.columns) == reference.column_ids:
                return item
        if reference.column_ids:
            meant, known = reference.column_ids, {column.id: column for column in ever(item)}
        else:
            meant, known = reference.columns, {column.name: column for column in item.columns}
        missing = [name for name, which in zip(reference.columns, meant, strict=True) if which not in known]
        if missing:
            raise InvalidUsage(f'column "{missing[0]}" of {item.name} is gone', sqlstate="42703")
        columns = [
            replace(known[which], name=name, field=known[which].stored_as)
            for name, which in zip(reference.columns, meant, strict=True)
        ]
        return replace(item, columns=tuple(columns))

    def schema(self, name: Name) -> str:
        return self._reference(name).schema

    def _reference(self, name: Name) -> Reference:
        found = self._references.get(name.parts)
        if found is None:
            raise no_relation(str(name), [], name.start + 1)
        return found
