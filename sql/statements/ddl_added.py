"""ALTER TABLE … ADD, RENAME and DROP CONSTRAINT: constraints of tables that have rows.  Pure.

Whether rows keep a constraint is said by rows, so it is added in two halves, as NOT NULL is
(:mod:`sql.statements.ddl_not_null` says why): first it is *announced*, and whoever writes keeps it from then on; once
no row was found that does not, it holds.  Announced it is in the catalog under its name, as not valid: where a process
ends between the halves it may be dropped, or added again, which goes on with it.  NOT VALID is the first half alone,
and VALIDATE CONSTRAINT the second.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from catalog_log import model
from catalog_log.model import Schema
from catalog_log.objects import CHECK, PRIMARY, Check, Column, Index, Table
from journal.errors import Conflict, InvalidUsage
from sql.objects.identifiers import check_identifier, quoted
from sql.objects.item_ids import ItemIds
from sql.objects.names import ImageLike, Names, name_parts
from sql.objects.uniques import uniques_of
from sql.statements.ddl_checks import same_check, with_check
from sql.statements.ddl_constraints import key_of, two_primary_keys, unique_index
from sql.statements.ddl_made import taken
from sql.syntax.constraints import Constraint
from sql.views.kept_checks import check_today
from trees.errors import already_exists

_LEFT = "n"
"""What a check that was added NOT VALID has before the number in its ``since``: nobody goes on with it unasked."""


def left_not_valid(kept_by: Check | Index) -> bool:
    """Whether it was added NOT VALID, and so stays where rows do not keep it."""
    return kept_by.since is not None and kept_by.since.startswith(_LEFT)


@dataclass(frozen=True)
class Added:
    """A constraint that is to be added: ``said`` with its name, and what keeps it."""

    said: Constraint
    kept_by: Check | Index


@dataclass(frozen=True)
class Look:
    """``query`` gives a row where rows do not keep something, and ``told`` what is said of its values, and of these as
    texts.  Its parameters are what rows have in ``filled``: columns that are not there yet."""

    query: str
    told: Callable[[Sequence[object], Sequence[str | None]], InvalidUsage]
    filled: Sequence[Column] = ()


def added(
    table: Table,
    said: Constraint,
    going: Collection[str],
    image: ImageLike,
    names: Names,
    ids: ItemIds,
    others: Collection[str],
    made: Collection[Index],
    since: str | None,
    not_valid: bool = False,
) -> tuple[Table, Added]:
    """``table`` with the constraint that is ``said``, where a check keeps it, and what keeps it: begun ``since`` then,
    or what was begun before of it and never ended; ``not_valid`` where nobody is to
    look at the rows.

    ``going`` are the ids of indexes that the same statement drops, ``others`` the names of constraints that it adds,
    ``made`` the indexes of those.  Raises as :func:`~sql.statements.ddl_constraints.with_constraints`.
    """
    if not_valid and since is not None:
        since = _LEFT + since
    begun = None if not_valid else _begun(table, said, image, names)
    if begun is not None and begun.name not in others:
        return table, Added(replace(said, name=begun.name), begun)
    uniques = [each.index for each in uniques_of(table, image) if each.index.id not in going]
    if said.kind == CHECK:
        table, check = with_check(table, said, image, names, [each.name for each in (*uniques, *made)], since)
        return table, Added(replace(said, name=check.name), check)
    if said.kind == PRIMARY and any(each.constraint == PRIMARY for each in uniques):
        raise two_primary_keys(table, said)
    called, schema = [each.name for each in made], schema_of(table, image)
    index = unique_index(table, said, schema, ids, image, names, called, since, going)
    return table, Added(replace(said, name=index.name), index)


def _begun(table: Table, said: Constraint, image: ImageLike, names: Names) -> Check | Index | None:
    """What keeps the same constraint by a statement that was not ended."""
    if said.kind == CHECK:
        begun = [
            each
            for each in table.checks
            if each.since is not None and not left_not_valid(each) and said.name in (None, each.name)
        ]
        if not begun:
            return None
        _, wanted = with_check(replace(table, checks=()), said, image, names)
        return next((each for each in begun if same_check(each, wanted)), None)
    for each in uniques_of(table, image):
        index = each.index
        if index.since is not None and index.constraint == said.kind and said.name in (None, index.name):
            if index.key == key_of(table, said):
                return index
    return None


def schema_of(table: Table, image: ImageLike) -> Schema:
    found = image.get(model.SCHEMAS, table.schema_id)
    assert isinstance(found, Schema), table.schema_id
    return found


def mark_of(kept_by: Check | Index, table: Table, called: str | None = None) -> str | None:
    """What tells the time since which rows are looked at for it from any other; ``None`` where they are not.
    ``called``: as it would be under that name."""
    if kept_by.since is None:
        return None
    if isinstance(kept_by, Check):
        return f"{table.id}/{called or kept_by.name}/{kept_by.text}"
    return f"{kept_by.id}/{kept_by.since}"


def announced(table: Table, name: str, mark: str, image: ImageLike) -> Check | Index | None:
    """What keeps the constraint that got ``mark`` as ``name``, whatever it is called by now."""
    of = sorted(kept(table, image), key=lambda each: each.name != name)
    return next((each for each in of if mark_of(each, table, name) == mark), None)


def kept(table: Table, image: ImageLike) -> list[Check | Index]:
    """What keeps the constraints of ``table``."""
    return [*table.checks, *(each.index for each in uniques_of(table, image))]


def named(table: Table, name: str, image: ImageLike) -> Check | Index | None:
    """What keeps the constraint of ``table`` that is called ``name``."""
    return next((each for each in kept(table, image) if each.name == name), None)


def to_validate(table: Table, name: str, image: ImageLike) -> Added | None:
    """The check that is to hold of all rows; ``None`` where it does.  42704 where there is none, 42809 for a key."""
    found = named(table, name, image)
    if found is None:
        raise no_constraint(name, table)
    if isinstance(found, Index):
        told = f'constraint "{name}" of relation "{table.name}" is not a foreign key or check constraint'
        raise InvalidUsage(told, sqlstate="42809")
    return None if found.since is None else Added(Constraint(CHECK, (), name, sql=found.sql), found)


def no_constraint(name: str, table: Table, word: str = "relation") -> InvalidUsage:
    """42704."""
    return InvalidUsage(f'constraint "{name}" of {word} "{table.name}" does not exist', sqlstate="42704")


def valid(kept_by: Check | Index | None, table: Table, name: str, checked: str) -> Check | Index:
    """What keeps a constraint that was looked at under the mark ``checked``, as one that holds.  40001 where it is
    another one by now."""
    if kept_by is None or mark_of(kept_by, table) != checked:
        told = f'constraint "{name}" of relation "{table.name}" was altered while its rows were looked at'
        raise Conflict(told, hint="try again")
    return replace(kept_by, since=None)


def renamed(table: Table, was: str, name: str, image: ImageLike) -> tuple[Table, Index | None]:
    """``table`` with a check called otherwise, or the index of a constraint that is.

    Raises 42704 where there is none, 42710 and 42P07 for a name that is taken.
    """
    found = named(table, was, image)
    if found is None:
        told = f'constraint "{was}" for table "{table.name}" does not exist'
        raise InvalidUsage(told, sqlstate="42704")
    if isinstance(found, Index) and taken(image, schema_of(table, image), check_identifier(name)):
        raise already_exists("relation", name)
    if named(table, name, image) is not None:
        raise InvalidUsage(f'constraint "{name}" for relation "{table.name}" already exists', sqlstate="42710")
    if isinstance(found, Index):
        return table, replace(found, name=name)
    return table.without_check(was).with_check(replace(found, name=check_identifier(name))), None


def looks(these: Sequence[Added], image: ImageLike, table_id: str, coming: Sequence[Column] = ()) -> list[Look]:
    """What is looked at for them, in their order.  Where ``coming`` columns are not there yet it is rows as they will
    be."""
    table = image.item(table_id)
    assert isinstance(table, Table), table_id
    relation = ".".join(map(quoted, name_parts(image, table)))
    there = {column.name for column in table.columns}
    filled = [column for column in coming if column.name not in there]
    if filled:
        said = ", ".join(f"${number} as {quoted(column.name)}" for number, column in enumerate(filled, 1))
        relation = f"(select *, {said} from {relation}) as {quoted(table.name)}"
    now = replace(table, columns=(*table.columns, *filled))
    # What is announced may not be what was planned, on an older catalog: where others added columns, say.
    kept = [named(table, each.said.name or "", image) or each.kept_by for each in these]
    asked = [
        _of_check(each, now, relation) if isinstance(each, Check) else _of_key(each, now, relation) for each in kept
    ]
    return [replace(each, filled=filled) for each in asked]


def _of_check(check: Check, table: Table, relation: str) -> Look:
    def told(values: Sequence[object], texts: Sequence[str | None]) -> InvalidUsage:
        error = InvalidUsage(
            f'check constraint "{check.name}" of relation "{table.name}" is violated by some row', sqlstate="23514"
        )
        error.about = {"table": table.name, "constraint": check.name}
        return error

    return Look(f"select 1 from {relation} where not ({check_today(check, table)}\n) limit 1", told)


def _of_key(index: Index, table: Table, relation: str) -> Look:
    called: Mapping[str, str] = {column.stored_as: column.name for column in table.columns}
    names = [called[each] for each in index.key]
    key = ", ".join(map(quoted, names))
    some = " and ".join(f"{quoted(name)} is not null" for name in names)

    def told(values: Sequence[object], texts: Sequence[str | None]) -> InvalidUsage:
        shown = ", ".join(text or "" for text in texts)
        error = InvalidUsage(
            f'could not create unique index "{index.name}"',
            sqlstate="23505",
            detail=f"Key ({key})=({shown}) is duplicated.",
        )
        error.about = {"table": table.name, "constraint": index.name}
        return error

    query = f"select {key} from {relation} where {some} group by {key} having count(*) > 1 order by {key} limit 1"
    return Look(query, told)
