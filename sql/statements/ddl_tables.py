"""CREATE SCHEMA and TABLE: what holds rows that somebody sends, and where names live.  Pure."""

from __future__ import annotations

from catalog_log import model, records
from catalog_log.model import Schema
from catalog_log.objects import Column, Table
from journal.errors import InvalidUsage
from sql.objects.identifiers import check_columns, check_identifier, check_schema_name
from sql.objects.item_ids import ItemIds
from sql.objects.names import ImageLike, Names, database_of, target_schema
from sql.statements.ddl_clustering import how_stored
from sql.statements.ddl_constraints import with_constraints
from sql.statements.ddl_made import created, exists, new_columns, taken
from sql.statements.ddl_sequences import put_position, with_sequences
from sql.statements.defaults import read_by_default
from sql.statements.plans import DdlPlan
from sql.syntax import statements as st
from values.numeric.sequence_values import Position


def plan_create_schema(s: st.CreateSchema, image: ImageLike, names: Names) -> DdlPlan:
    database = database_of(image, names)
    if len(s.name.parts) > 1 and s.name.parts[0] != names.database or len(s.name.parts) > 2:
        raise InvalidUsage(f'database "{s.name.parts[0]}" does not exist', sqlstate="3D000")
    name = check_schema_name(s.name.last)
    if image.schema_by_name(database.id, name) is not None:
        return exists("schema", name, s.if_not_exists, s.tag, "42P06")
    ids = ItemIds(image)
    schema_id = ids.schema()
    return DdlPlan(
        (records.put(model.SCHEMAS, schema_id, Schema(schema_id, database.id, name)), ids.update()),
        s.tag,
        created=(schema_id,),
    )


def _columns(defs: tuple[st.ColumnDef, ...], what: str, image: ImageLike) -> tuple[Column, ...]:
    if not defs:
        raise InvalidUsage(f"a {what} needs at least one column", sqlstate="42601")
    check_columns([d.name for d in defs])
    return new_columns(image, (Column(d.name, str(d.type), d.nullable, d.default_sql) for d in defs))


def _reads(defs: tuple[st.ColumnDef, ...], image: ImageLike, names: Names) -> tuple[tuple[int, tuple[str, ...]], ...]:
    """The sequences that the DEFAULTs of a new table's columns read, which are checked here."""
    found = []
    for number, each in enumerate(defs, 1):
        if each.default is not None and (ids := read_by_default(each, image, names)):
            found.append((number, ids))
    return tuple(found)


def plan_create_table(s: st.CreateTable, image: ImageLike, names: Names) -> DdlPlan:
    schema = target_schema(image, names, s.name)
    columns = _columns(s.columns, "table", image)
    reads = _reads(s.columns, image, names)
    name = check_identifier(s.name.last)
    if taken(image, schema, name):
        return exists("relation", name, s.if_not_exists, s.tag)
    ids = ItemIds(image)
    item = Table(ids.item(), schema.id, name, s.text, columns, reads=reads)
    item, sequences = with_sequences(item, s.columns, ids, image)
    positions = [put_position(each, Position(each.start)) for each in sequences]
    item, constraints = with_constraints(item, s.constraints, schema, ids, image, names)
    also = [*positions, *how_stored(item, s.stored, image)]
    return created(ids, s.tag, item, *sequences, *constraints, also=also)


PLANS = {st.CreateSchema: plan_create_schema, st.CreateTable: plan_create_table}
