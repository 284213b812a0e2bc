"""ALTER … RENAME TO and SET SCHEMA: an object is called otherwise, and is what it was.  Pure.

Definitions name what they read by id, so nothing that depends on an object has to be made anew; whoever said its old
name hears that there is none.  What belongs to a relation stays with it: indexes live in its schema, and the errors of
a source are called after it for as long as nobody called them otherwise.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from catalog_log import model, records
from catalog_log.model import Schema
from catalog_log.objects import ERRORS, TABLE, Errors, Index, Item, Sequence, Source
from journal.errors import InvalidUsage
from sql.objects.identifiers import check_identifier, check_schema_name, errors_name
from sql.objects.names import (
    SYSTEM_SCHEMAS,
    ImageLike,
    Names,
    SystemRelation,
    candidates,
    find,
    schema_named,
    target_schema,
)
from sql.statements.ddl_drop import with_its_own
from sql.statements.plans import DdlPlan, PlanNotice
from sql.syntax import statements as st
from sql.syntax.statements import KIND_WORDS
from trees.errors import already_exists, no_relation, unsupported, wrong_kind


def plan_rename(s: st.Rename, image: ImageLike, names: Names) -> DdlPlan:
    """The object under its new name.

    Raises 42P01, 3F000, 42501 or 42809 for what is not there or not of the kind (ALTER TABLE may name any, as in
    Postgres), 42P07 for a name that is taken, 42622 for one that is too long.
    """
    item = altered(s, image, names)
    if isinstance(item, PlanNotice):
        return DdlPlan((), s.tag, (item,))
    now = [replace(item, name=check_identifier(s.to))]
    if isinstance(item, Source):
        errors = image.item(item.errors_id)
        if errors is not None and errors.name == errors_name(item.name):
            now.append(replace(errors, name=check_identifier(errors_name(s.to))))
    return _moved(image, now, s.tag)


def plan_rename_schema(s: st.RenameSchema, image: ImageLike, names: Names) -> DdlPlan:
    """The schema under its new name: search paths that name the old one lead there no more.

    Raises 3F000, 42501 for the system's, 42P06 for a name that is taken, 42939, 42622.
    """
    if s.name.last in SYSTEM_SCHEMAS:
        raise InvalidUsage(f'permission denied: "{s.name}" is a system schema', sqlstate="42501")
    schema = schema_named(image, names, s.name.last, s.name.start + 1)
    if image.schema_by_name(schema.database_id, check_schema_name(s.to)) is not None:
        raise already_exists("schema", s.to, "42P06")
    update = records.put(model.SCHEMAS, schema.id, replace(schema, name=s.to))
    return DdlPlan((update,), s.tag, described=(schema.id,))


def plan_set_schema(s: st.SetSchema, image: ImageLike, names: Names) -> DdlPlan:
    """The object in another schema, with its indexes and errors; nothing where it is in that one.

    Raises as :func:`plan_rename`, and 42809 or 0A000 for what goes where something else goes.
    """
    item = altered(s, image, names)
    if isinstance(item, PlanNotice):
        return DdlPlan((), s.tag, (item,))
    if isinstance(item, Index):
        on = image.item(item.relation_id)
        whose = f'of "{on.name}"' if on is not None else "of its relation"
        raise wrong_kind(item.name, "relation with a schema of its own", f"change the schema {whose} instead")
    if isinstance(item, Errors):
        source = image.item(item.source_id)
        raise unsupported(
            "moving the errors of a source into another schema",
            hint=f'change the schema of "{source.name}" instead' if source is not None else None,
        )
    if isinstance(item, Source) and item.group:
        whole = image.item(item.group)
        raise unsupported(
            "moving a part of a source into another schema",
            hint=f'change the schema of "{whole.name}" instead' if whole is not None else None,
        )
    if isinstance(item, Sequence) and item.owner is not None:
        table = image.item(item.owner[0])
        raise InvalidUsage(
            "cannot move an owned sequence into another schema",
            sqlstate="0A000",
            detail=f'sequence "{item.name}" is linked to table "{table.name if table is not None else item.owner[0]}"',
            hint="change the schema of the table instead",
        )
    schema = target_schema(image, names, st.Name((s.schema, item.name), s.at))
    if schema.id == item.schema_id:
        return DdlPlan((), s.tag)
    moving = with_its_own(image, [item]).values()
    return _moved(image, [replace(each, schema_id=schema.id) for each in moving], s.tag)


class _OfAnObject(Protocol):
    """A statement about an object of a kind: ALTER TABLE may name any."""

    kind: str
    name: st.Name
    if_exists: bool


def altered(s: _OfAnObject, image: ImageLike, names: Names) -> Item | PlanNotice:
    """The object that ``s`` names, or what is said where there is none and that is fine.  42P01, 3F000, 42501,
    42809."""
    try:
        found = find(image, names, s.name)
        if found is None:
            raise no_relation(str(s.name), candidates(image, names, s.name), s.name.start + 1)
    except InvalidUsage as error:
        if s.if_exists and error.sqlstate in ("42P01", "3F000"):
            return PlanNotice(f"{error.message}, skipping", "00000")
        raise
    if isinstance(found, SystemRelation):
        raise InvalidUsage(f'permission denied: "{s.name}" is a system catalog', sqlstate="42501")
    if KIND_WORDS[s.kind] not in (KIND_WORDS[found.kind], KIND_WORDS[TABLE]):
        word = KIND_WORDS[found.kind] if found.kind != ERRORS else KIND_WORDS[TABLE]
        raise wrong_kind(found.name, KIND_WORDS[s.kind], f"use ALTER {word.upper()}")
    return found


def _moved(image: ImageLike, now: list[Item], tag: str) -> DdlPlan:
    """Every item under the name and in the schema that it has in ``now``; 42P07 where another one is there."""
    for item in now:
        if image.item_by_name(item.schema_id, item.name) is not None:
            schema: Schema | None = image.get(model.SCHEMAS, item.schema_id)
            raise already_exists("relation", item.name if schema is None else f"{schema.name}.{item.name}")
    updates = tuple(records.put(model.ITEMS, item.id, item) for item in now)
    return DdlPlan(updates, tag, described=tuple(item.id for item in now))


PLANS = {st.Rename: plan_rename, st.RenameSchema: plan_rename_schema, st.SetSchema: plan_set_schema}
