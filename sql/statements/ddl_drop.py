"""DROP: what goes, what goes with it, and what stands in the way.  Pure."""

from __future__ import annotations

from catalog_log import model, records
from catalog_log.model import Schema
from catalog_log.objects import BY_KIND, Errors, Index, Item, Source, own_columns
from journal.errors import InvalidUsage
from sql.binding.bind import id_order
from sql.objects.names import (
    SYSTEM_SCHEMAS,
    ImageLike,
    Names,
    SystemRelation,
    candidates,
    database_of,
    find,
)
from sql.statements.ddl_comment import gone_with
from sql.statements.plans import DdlPlan, PlanNotice
from sql.syntax import statements as st
from sql.syntax.statements import KIND_WORDS
from trees.errors import no_relation, no_schema, wrong_kind

LISTED_MAX = 100
"""As many dependents are named in a detail or notice, as in Postgres (MAX_REPORTED_DEPS)."""


def plan_drop(s: st.Drop, image: ImageLike, names: Names) -> DdlPlan:
    """Updates that remove what ``s`` names.  2BP01 where other objects depend on it and CASCADE was not said."""
    notices: list[PlanNotice] = []
    items: dict[str, Item] = {}
    schemas: dict[str, Schema] = {}
    for name in s.names:
        try:
            found = _schema(image, names, name) if s.kind == "schema" else item_of_kind(image, names, name, s.kind)
        except InvalidUsage as error:
            if s.if_exists and error.sqlstate in ("42P01", "3F000", "42704"):
                notices.append(PlanNotice(f"{error.message}, skipping", "00000"))
                continue
            raise
        if isinstance(found, Schema):
            schemas[found.id] = found
        else:
            items[found.id] = found
    inside = [item for schema in schemas.values() for item in image.items_in(schema.id)]
    going, standing = closure(image, [*items.values(), *inside])
    blocked = [*((item, None) for item in inside), *standing] if schemas else standing
    if blocked and not s.cascade:
        raise _still_needed(image, s, blocked)
    if blocked:
        notices.extend(told_cascade("drop", blocked))
        going = everything(image, [*items.values(), *inside])
    _check_parts(image, items, going)
    updates = [records.remove(model.ITEMS, item_id) for item_id in sorted(going, key=id_order)]
    updates += [records.remove(model.SCHEMAS, schema_id) for schema_id in schemas]
    gone = tuple(sorted(going, key=id_order))
    left = _left(image, going)
    updates += [records.put(model.ITEMS, item.id, item) for item in left]
    for item in map(image.item, gone):
        updates += gone_with(image, item)
    for schema_id in schemas:
        updates += gone_with(image, schemas[schema_id])
    changed = tuple(item.id for item in left)
    return DdlPlan(tuple(updates), s.tag, tuple(notices), dropped=(*gone, *schemas), described=changed)


def _check_parts(image: ImageLike, items: dict[str, Item], going: set[str]) -> None:
    """2BP01 for what is a part of something that stays, whether CASCADE was said or not."""
    for item in items.values():
        if isinstance(item, Index) and item.constraint is not None and item.relation_id not in going:
            on = image.item(item.relation_id)
            what = f"constraint {item.name} on {on.told() if on is not None else 'its table'}"
            raise InvalidUsage(
                f"cannot drop {item.told()} because {what} requires it",
                sqlstate="2BP01",
                hint=f"You can drop {what} instead.",
            )
        if isinstance(item, Source) and item.group and item.group not in going:
            whole = image.item(item.group)
            what = whole.told() if whole is not None else "its source"
            raise InvalidUsage(
                f"cannot drop {item.told()} because {what} requires it",
                sqlstate="2BP01",
                hint=f"You can drop {what} instead.",
            )
        if item.part_of is None or item.part_of[0] in going:
            continue
        table = image.item(item.part_of[0])
        columns = {column.id: column.name for column in own_columns(table)} if table is not None else {}
        what = f"column {columns.get(item.part_of[1])} of {table.told() if table is not None else 'its table'}"
        raise InvalidUsage(
            f"cannot drop {item.told()} because {what} requires it",
            sqlstate="2BP01",
            hint=f"You can drop {what} instead.",
        )


def _schema(image: ImageLike, names: Names, name: st.Name) -> Schema:
    if name.last in SYSTEM_SCHEMAS:
        raise InvalidUsage(f'cannot drop schema "{name.last}"', sqlstate="2BP01", detail="the system needs it")
    found = image.schema_by_name(database_of(image, names).id, name.last)
    if found is None:
        raise no_schema(str(name), name.start + 1)
    return found


def item_of_kind(image: ImageLike, names: Names, name: st.Name, kind: str) -> Item:
    """The object that a statement about a ``kind`` names.  Raises 42P01 or 42704, 42501, 42809."""
    found = find(image, names, name)
    if found is None:
        error = no_relation(str(name), candidates(image, names, name), name.start + 1)
        error.message = f'{KIND_WORDS[kind]} "{name}" does not exist'
        error.args = (error.message,)
        error.sqlstate, hint = BY_KIND[kind].absent
        error.hint = error.hint or hint
        raise error
    if isinstance(found, SystemRelation):
        raise InvalidUsage(f'permission denied: "{name}" is a system catalog', sqlstate="42501")
    if KIND_WORDS[found.kind] != KIND_WORDS[kind]:
        actual = KIND_WORDS[found.kind]
        hint = f"use DROP {actual.upper()} to remove it" if not isinstance(found, Errors) else "it goes with its source"
        raise wrong_kind(name.last, KIND_WORDS[kind], hint)
    return found


def with_its_own(image: ImageLike, roots: list[Item]) -> dict[str, Item]:
    """``roots`` and what is theirs, by id: their indexes, the errors of sources, and the indexes on those."""
    going = {item.id: item for item in roots}
    queue = list(roots)
    while queue:
        here = queue.pop()
        for each in image.dependents(here.id):
            if each.id not in going and each.belongs:
                going[each.id] = each
                queue.append(each)
    return going


def closure(image: ImageLike, roots: list[Item]) -> tuple[set[str], list[tuple[Item, Item]]]:
    """What goes with ``roots`` without CASCADE, and ``(dependent, what it depends on)`` for what stands in the way."""
    going = with_its_own(image, roots)
    standing, seen = [], set()
    queue = list(going.values())
    while queue:
        here = queue.pop(0)
        for each in image.dependents(here.id):
            if each.id not in going and each.id not in seen:
                seen.add(each.id)
                standing.append((each, here))
                if not each.belongs and each.left_without((here.id,)) is None:
                    queue.append(each)
    return set(going), [(a, b) for a, b in standing if not a.belongs]


def everything(image: ImageLike, roots: list[Item]) -> set[str]:
    """What goes with ``roots`` where CASCADE was said; of what is not among it something is left (:func:`_left`)."""
    going = {item.id for item in roots}
    queue = list(roots)
    while queue:
        here = queue.pop()
        for each in image.dependents(here.id):
            if each.id not in going and each.left_without((here.id,)) is None:
                going.add(each.id)
                queue.append(each)
    return going


def _left(image: ImageLike, going: set[str]) -> list[Item]:
    """What depended on ``going`` and stays, as it is without."""
    found = {each.id: each for gone in going for each in image.dependents(gone) if each.id not in going}
    return [item for key in sorted(found, key=id_order) if (item := found[key].left_without(going)) is not None]


def _still_needed(image: ImageLike, s: st.Drop, blocked: list[tuple[Item, Item | None]]) -> InvalidUsage:
    one = len(s.names) == 1
    what = f"{s.word} {s.names[0]}" if one else "desired object(s)"
    return InvalidUsage(
        f"cannot drop {what} because other objects depend on it"
        if one
        else "cannot drop desired object(s) because other objects depend on them",
        sqlstate="2BP01",
        detail=told_dependents(image, blocked),
        hint="use DROP … CASCADE to drop the dependent objects too",
    )


def told_dependents(image: ImageLike, blocked: list[tuple[Item, Item | None]]) -> str:
    """What stands in the way, a line each."""
    lines = [
        f"{item.told(on and on.id)} depends on "
        + (on.told() if on is not None else f"schema {_schema_name(image, item)}")
        for item, on in blocked[:LISTED_MAX]
    ]
    if len(blocked) > LISTED_MAX:
        lines.append(f"and {len(blocked) - LISTED_MAX} other objects")
    return "\n".join(lines)


def _schema_name(image: ImageLike, item: Item) -> str:
    schema = image.get(model.SCHEMAS, item.schema_id)
    return schema.name if schema is not None else item.schema_id


def told_cascade(what: str, also: list[tuple[Item, Item | None]]) -> list[PlanNotice]:
    """That ``what`` was done to ``also`` (each with what it depends on), because CASCADE was said."""
    told = [f"{what} cascades to {item.told(on and on.id)}" for item, on in also[:LISTED_MAX]]
    if len(also) == 1:
        return [PlanNotice(told[0], "00000")]
    return [PlanNotice(f"{what} cascades to {len(also)} other objects", "00000", "\n".join(told))]


PLANS = {st.Drop: plan_drop}
