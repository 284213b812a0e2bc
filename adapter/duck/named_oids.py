"""The oids of what texts name, as ``'items'::regclass`` and its kin read them: functions of an image.  Pure."""

from __future__ import annotations

from adapter.system.kinds import KIND_ROWS
from adapter.system.rows import OWNER, OWNER_OID, item_oid
from adapter.system.schemas import SCHEMA_OIDS, SYSTEM_OIDS
from adapter.system.types import DISPLAY, TYPE_NAMES
from catalog_log import model
from catalog_log.objects import Item
from journal.errors import InvalidUsage
from sql.objects.identifiers import quoted
from sql.objects.names import ImageLike, Names, SystemRelation, find
from sql.statements.sequence_calls import owned_sequence
from sql.syntax.cursor import Cursor
from sql.syntax.statements import Name
from sql.system.types import ROWS
from trees.errors import no_relation, no_schema
from values.types import no_type

_NAMES = {row.oid: name for name, row in ROWS.items()}
_TYPES = {name: oid for oids in (TYPE_NAMES, DISPLAY) for oid, name in oids.items()}


def named_oid(kind: str, name: str, image: ImageLike, names: Names) -> int:
    """The oid of what ``name`` names among things of ``kind`` (``regclass``), ``-`` none.  42P01, 42704, 3F000."""
    if name == "-":
        return 0
    if kind == "regclass":
        return _relation(name, image, names)
    if kind == "regtype":
        word = name.lower().removeprefix("pg_catalog.")
        found = _TYPES.get(word.removesuffix("[]").strip('"'))
        if found is not None and word.endswith("[]"):
            found = ROWS[f"_{_NAMES[found]}"].oid if f"_{_NAMES.get(found)}" in ROWS else None
        if found is None:
            raise no_type(name)
        return found
    if kind == "regrole":
        if name != OWNER:
            raise InvalidUsage(f'role "{name}" does not exist', sqlstate="42704")
        return OWNER_OID
    database = image.database_by_name(names.database)
    found = image.schema_by_name(database.id, name) if database is not None else None
    if found is None and name not in SCHEMA_OIDS:
        raise no_schema(name)
    return SCHEMA_OIDS.get(name) or item_oid(found.id)


def _relation(text: str, image: ImageLike, names: Names) -> int:
    name = _name(text)
    found = find(image, names, name)
    if isinstance(found, Item) and KIND_ROWS[found.kind].relkind:
        return item_oid(found.id)
    if isinstance(found, SystemRelation):
        return SYSTEM_OIDS[found.schema][found.name]
    raise no_relation(str(name))


def _name(text: str) -> Name:
    cursor = Cursor(text)
    name = cursor.name()
    cursor.end()
    return name


def serial_sequence(table: str, column: str, image: ImageLike, names: Names) -> str | None:
    """The sequence of ``pg_get_serial_sequence(table, column)``, as it is shown."""
    found = owned_sequence(image, names, _name(table), column)
    if found is None:
        return None
    return f"{quoted(image.get(model.SCHEMAS, found.schema_id).name)}.{quoted(found.name)}"
