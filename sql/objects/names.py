"""Looking names up in one catalog image: the only place of ``sql/`` that knows how an image is asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from catalog_log import model
from catalog_log.model import Cluster, Database, Genesis, Schema
from catalog_log.objects import Item, Relation
from journal.errors import InvalidUsage
from sql.syntax.statements import Name
from trees.errors import no_relation, no_schema, wrong_kind
from values.types import SqlType, parse_type

SYSTEM_SCHEMAS = ("pg_catalog", "information_schema", "tm_catalog", "tm_internal")


class ImageLike(Protocol):
    """What planning asks of a catalog image; ``catalog_log.image.Image`` is one."""

    @property
    def upper(self) -> int: ...
    @property
    def genesis(self) -> Genesis | None: ...
    def get(self, collection: str, key: str) -> Any: ...
    def all(self, collection: str) -> Iterator[tuple[str, Any]]: ...
    def item(self, item_id: str) -> Item | None: ...
    def item_by_name(self, schema_id: str, name: str) -> Item | None: ...
    def items_in(self, schema_id: str) -> Iterator[Item]: ...
    def dependents(self, item_id: str) -> tuple[Item, ...]: ...
    def objects(self) -> Iterator[Item]: ...
    def database_by_name(self, name: str) -> Database | None: ...
    def schema_by_name(self, database_id: str, name: str) -> Schema | None: ...
    def schemas_in(self, database_id: str) -> Iterator[Schema]: ...
    def cluster_by_name(self, name: str) -> Cluster | None: ...


@dataclass(frozen=True)
class Names:
    """Where a session looks names up, and by which zone's clocks it reckons (:mod:`sql.typing.zones`).  ``system`` are
    the relations of the system schemas: by schema, then by name, with the kind of each column."""

    database: str = "tidemark"
    search_path: tuple[str, ...] = ("public",)
    cluster: str = "default"
    zone: str = "UTC"
    system: Mapping[str, Mapping[str, Mapping[str, str]]] = field(default_factory=dict)


@dataclass(frozen=True)
class SystemRelation:
    schema: str
    name: str


def database_of(image: ImageLike, names: Names) -> Database:
    """The session's database.  3D000 where there is none of that name."""
    found = image.database_by_name(names.database)
    if found is None:
        raise InvalidUsage(f'database "{names.database}" does not exist', sqlstate="3D000")
    return found


def cluster_named(image: ImageLike, name: str) -> Cluster:
    """42704 where there is no such cluster."""
    found = image.cluster_by_name(name)
    if found is None:
        hint = "tm_catalog.clusters lists the clusters that there are"
        raise InvalidUsage(f'cluster "{name}" does not exist', sqlstate="42704", hint=hint)
    return found


def schema_named(image: ImageLike, names: Names, name: str, position: int | None = None) -> Schema:
    """3F000 where there is no such schema in the session's database."""
    found = image.schema_by_name(database_of(image, names).id, name)
    if found is None:
        raise no_schema(name, position)
    return found


def target_schema(image: ImageLike, names: Names, name: Name) -> Schema:
    """The schema in which an object called ``name`` is created."""
    _check_database(names, name)
    if len(name.parts) > 1:
        wanted = name.parts[-2]
        if wanted in SYSTEM_SCHEMAS or wanted.startswith("pg_"):
            raise InvalidUsage(
                f'permission denied to create "{name}"',
                sqlstate="42501",
                detail="system catalog modifications are not allowed",
            )
        return schema_named(image, names, wanted, name.start + 1)
    database = database_of(image, names)
    for each in names.search_path:
        if found := image.schema_by_name(database.id, each):
            return found
    raise InvalidUsage("no schema has been selected to create in", sqlstate="3F000")


def _check_database(names: Names, name: Name) -> None:
    if len(name.parts) == 3 and name.parts[0] != names.database:
        raise InvalidUsage(
            f'cross-database references are not implemented: "{name}"', sqlstate="0A000", position=name.start + 1
        )


def find(image: ImageLike, names: Names, name: Name) -> Item | SystemRelation | None:
    """What ``name`` means, or ``None``.  3F000 where it names a schema that is missing."""
    _check_database(names, name)
    if len(name.parts) > 1:
        schema = name.parts[-2]
        if schema in SYSTEM_SCHEMAS:
            return SystemRelation(schema, name.last) if name.last in names.system.get(schema, ()) else None
        return image.item_by_name(schema_named(image, names, schema, name.start + 1).id, name.last)
    if name.last in names.system.get("pg_catalog", ()) and "pg_catalog" not in names.search_path:
        return SystemRelation("pg_catalog", name.last)
    database = database_of(image, names)
    for each in names.search_path:
        if each in SYSTEM_SCHEMAS:
            if name.last in names.system.get(each, ()):
                return SystemRelation(each, name.last)
        elif (schema := image.schema_by_name(database.id, each)) and (item := image.item_by_name(schema.id, name.last)):
            return item
    return None


def candidates(image: ImageLike, names: Names, name: Name) -> list[str]:
    """Names that a user may have meant: at most 10,000 are looked at, so that a typo stays cheap in a large catalog."""
    found: list[str] = []
    path = (name.parts[-2],) if len(name.parts) > 1 else names.search_path
    for each in path:
        if each in SYSTEM_SCHEMAS:
            found.extend(names.system.get(each, ()))
        elif schema := image.schema_by_name(database_of(image, names).id, each):
            for item in image.items_in(schema.id):
                if len(found) >= 10_000:
                    return found
                if isinstance(item, Relation):
                    found.append(item.name)
    return found


def relation(image: ImageLike, names: Names, name: Name) -> Relation | SystemRelation:
    """A relation that can be read.  42P01 with a hint where there is none, 42809 for what is none (an index)."""
    found = find(image, names, name)
    if found is None:
        raise no_relation(str(name), candidates(image, names, name), name.start + 1)
    if not isinstance(found, (Relation, SystemRelation)):
        raise wrong_kind(name.last, "relation that can be read", found.unread)
    return found


def column_types(item: Item) -> dict[str, SqlType]:
    """Columns of a relation, in order, and what their values are typed with."""
    return {column.name: parse_type(column.type).plain for column in item.columns}


def full_name(image: ImageLike, item: Item) -> str:
    """``schema.name`` for messages."""
    return ".".join(name_parts(image, item))


def name_parts(image: ImageLike, item: Item) -> tuple[str, ...]:
    """Its schema's name and its own."""
    schema = image.get(model.SCHEMAS, item.schema_id)
    return (schema.name, item.name) if schema else (item.name,)
