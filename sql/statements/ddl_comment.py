"""COMMENT ON: what is described, and where its description is kept.  Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from catalog_log import model, records
from catalog_log.model import Comment, Schema, Update
from catalog_log.objects import ERRORS, SOURCE, TABLE, WEBHOOK, Item, numbered_columns
from catalog_log.settings import keys_of_relation
from journal.errors import InvalidUsage
from sql.objects.names import (
    SYSTEM_SCHEMAS,
    ImageLike,
    Names,
    SystemRelation,
    candidates,
    cluster_named,
    find,
    relation,
    schema_named,
)
from sql.statements.plans import DdlPlan
from sql.syntax import statements as st
from sql.syntax.statements import KIND_WORDS
from trees.errors import no_column, no_relation, unsupported, wrong_kind

T = TypeVar("T", bound=Item)

_TABLES = (TABLE, SOURCE, ERRORS, WEBHOOK)
"""What clients see as tables, and so describe as tables."""


def plan_comment(s: st.Comment, image: ImageLike, names: Names) -> DdlPlan:
    """The update that sets or removes a comment; none where there is nothing to remove.

    Raises 42P01, 42703, 42704, 3F000, 3D000, 42809, 0A000 in a catalog of format 1.
    """
    object_id, number = _described(s, image, names)
    if image.genesis.format_version < 2:
        raise unsupported(
            "COMMENT ON in a catalog of format 1", hint="comments are kept by catalogs made with format 2 or later"
        )
    key = object_id if number is None else column_key(object_id, number)
    if s.text is None:
        present = image.get(model.COMMENTS, key) is not None
        updates: tuple[Update, ...] = (records.remove(model.COMMENTS, key),) if present else ()
    else:
        updates = (records.put(model.COMMENTS, key, Comment(s.text)),)
    return DdlPlan(updates, s.tag, described=(object_id,))


def column_key(item_id: str, number: int) -> str:
    """Where the comment of an item's column is; columns are numbered from 1."""
    return f"{item_id}/{number}"


def gone_with(image: ImageLike, going: Item | Schema) -> Iterator[Update]:
    """Updates that remove what is kept of an object that goes beside it: every comment, and its settings."""
    for key in going.settings if isinstance(going, Item) else ():
        yield records.remove(model.SETTINGS, key)
    for key in keys_of_relation(going.id):
        if image.get(model.SETTINGS, key) is not None:
            yield records.remove(model.SETTINGS, key)
    numbers = [number for number, _ in numbered_columns(going)] if isinstance(going, Item) else []
    for key in (going.id, *(column_key(going.id, number) for number in numbers)):
        if image.get(model.COMMENTS, key) is not None:
            yield records.remove(model.COMMENTS, key)


def _described(s: st.Comment, image: ImageLike, names: Names) -> tuple[str, int | None]:
    """``(id, number of the column)``."""
    if s.kind == "schema":
        if s.name.last in SYSTEM_SCHEMAS:
            raise InvalidUsage(f'permission denied: "{s.name}" is a system schema', sqlstate="42501")
        return schema_named(image, names, s.name.last, s.name.start + 1).id, None
    if s.kind == "database":
        found = image.database_by_name(s.name.last)
        if found is None:
            raise InvalidUsage(f'database "{s.name}" does not exist', sqlstate="3D000")
        return found.id, None
    if s.kind == "cluster":
        return cluster_named(image, s.name.last).id, None
    if s.kind == "column":
        return _column(s.name, image, names)
    found = find(image, names, s.name)
    if found is None:
        raise no_relation(str(s.name), candidates(image, names, s.name), s.name.start + 1)
    return _checked(_ours(found, s.name), s).id, None


def _ours(found: T | SystemRelation, name: st.Name) -> T:
    if isinstance(found, SystemRelation):
        raise InvalidUsage(f'permission denied: "{name}" is a system catalog', sqlstate="42501")
    return found


def _checked(item: Item, s: st.Comment) -> Item:
    if KIND_WORDS[item.kind] != KIND_WORDS[s.kind] and not (s.kind == TABLE and item.kind in _TABLES):
        raise wrong_kind(item.name, KIND_WORDS[s.kind], f"use COMMENT ON {KIND_WORDS[item.kind].upper()}")
    return item


def _column(name: st.Name, image: ImageLike, names: Names) -> tuple[str, int]:
    if len(name.parts) < 2:
        raise InvalidUsage(
            "column name must be qualified", sqlstate="42601", position=name.start + 1, hint="write table.column"
        )
    named = st.Name(name.parts[:-1], name.start)
    item = _ours(relation(image, names, named), named)
    known = {column.name: number for number, column in numbered_columns(item)}
    if name.last not in known:
        raise no_column(name.last, known)
    return item.id, known[name.last]


PLANS = {st.Comment: plan_comment}
