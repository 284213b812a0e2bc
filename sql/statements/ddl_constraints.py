"""PRIMARY KEY and UNIQUE of a table: each is an index that a cluster keeps, and is called as the constraint is.  Pure.

So whether a key is there is looked up, and nobody reads the table for it; what its commit says of it is enforced by the
log alone (:mod:`adapter.execute.uniques`).  Turned down: keys in the state of the oracle's fold, of which everybody
would hold all of every table; and a constraint without an index, which each row would cost a look at all others.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from catalog_log import records
from catalog_log.model import Schema
from catalog_log.objects import CHECK, PRIMARY, Index, Table
from journal.errors import InvalidUsage
from sql.objects.identifiers import check_identifier, name_made_of
from sql.objects.item_ids import ItemIds
from sql.objects.names import ImageLike, Names, cluster_named
from sql.statements.ddl_checks import with_check
from sql.statements.ddl_made import taken
from sql.syntax.constraints import Constraint
from trees.errors import already_exists, unsupported
from values.types import SqlType, parse_type

_UNKEYED = frozenset({"jsonb", "interval"})
"""Types whose values are equal where they are written otherwise."""


def with_constraints(
    table: Table,
    said: Sequence[Constraint],
    schema: Schema,
    ids: ItemIds,
    image: ImageLike,
    names: Names,
) -> tuple[Table, list[Index]]:
    """A new ``table`` with its checks, whose primary key takes no NULL, and the indexes that keep its other
    constraints.

    Raises 42P16 for two primary keys, 42703 and 42701 for their columns, 42P07 and 42710 for a name that is taken,
    0A000 for types whose equality is not that of bytes, and in catalogs that keep no constraints.
    """
    for each in said:
        if each.kind == CHECK:
            table, _ = with_check(table, each, image, names)
    keys = [each for each in said if each.kind != CHECK]
    if sum(each.kind == PRIMARY for each in keys) > 1:
        raise two_primary_keys(table, [each for each in keys if each.kind == PRIMARY][1])
    found: list[Index] = []
    # The primary key first, as Postgres makes them: what it is called by itself the others are not.
    for each in _each_once(sorted(keys, key=lambda each: each.kind != PRIMARY)):
        index = unique_index(table, each, schema, ids, image, names, [table.name, *(other.name for other in found)])
        found.append(index)
        if each.kind == PRIMARY:
            not_null = [replace(c, nullable=False) if c.stored_as in index.key else c for c in table.columns]
            table = replace(table, columns=tuple(not_null))
    return table, found


def _each_once(said: Sequence[Constraint]) -> list[Constraint]:
    """Without those that say what one before them says, which is called as they are where it has no name."""
    found: dict[tuple[str, ...], Constraint] = {}
    for each in said:
        before = found.get(each.columns)
        if before is None:
            found[each.columns] = each
        elif before.name is None:
            found[each.columns] = replace(before, name=each.name)
    return list(found.values())


def two_primary_keys(table: Table, second: Constraint) -> InvalidUsage:
    """42P16."""
    told = f'multiple primary keys for table "{table.name}" are not allowed'
    return InvalidUsage(told, sqlstate="42P16", position=second.at + 1)


def unique_index(
    table: Table,
    said: Constraint,
    schema: Schema,
    ids: ItemIds,
    image: ImageLike,
    names: Names,
    others: Collection[str],
    since: str | None = None,
    going: Collection[str] = (),
) -> Index:
    """The index that keeps PRIMARY KEY or UNIQUE; ``others`` are names that are taken beside those of ``image``, and
    ``going`` the ids of what leaves its own.

    Raises as :func:`with_constraints`.
    """
    if image.genesis.format_version < records.KEYS_FROM:
        raise unsupported(
            f"{said.kind.upper()} in a catalog of format {image.genesis.format_version}",
            hint=f"constraints are kept by catalogs made with format {records.KEYS_FROM} or later",
        )
    cluster, key = cluster_named(image, names.cluster), key_of(table, said)
    checks = [each.name for each in table.checks]
    name = said.name or _free_name(table.name, said, schema, image, {*others, *checks})
    check_identifier(name)
    if name in others or taken(image, schema, name, going):
        raise already_exists("relation", name)
    if name in checks:
        raise InvalidUsage(f'constraint "{name}" for relation "{table.name}" already exists', sqlstate="42710")
    return Index(
        ids.item(), table.schema_id, name, table.create_sql, relation_id=table.id, key=key, cluster_id=cluster.id,
        constraint=said.kind, since=since,
    )  # fmt: skip


def key_of(table: Table, said: Constraint) -> tuple[str, ...]:
    """The columns of a constraint, as an index has them."""
    by_name = {column.name: column for column in table.columns}
    found = []
    for name in said.columns:
        if name not in by_name:
            told = f'column "{name}" named in key does not exist'
            raise InvalidUsage(told, sqlstate="42703", position=said.at + 1)
        if by_name[name].stored_as in found:
            told = f'column "{name}" appears twice in {said.kind} constraint'
            raise InvalidUsage(told, sqlstate="42701", position=said.at + 1)
        _check_type(parse_type(by_name[name].type), said)
        found.append(by_name[name].stored_as)
    return tuple(found)


def _check_type(kind: SqlType, said: Constraint) -> None:
    if kind.is_array or kind.name in _UNKEYED:
        raise unsupported(f"{said.kind.upper()} of a column of type {kind}", position=said.at + 1)
    if kind.is_free:
        what = f"{said.kind.upper()} of a numeric without a precision"
        raise unsupported(what, hint="give it one: numeric(38, 0)", position=said.at + 1)


def _free_name(table: str, said: Constraint, schema: Schema, image: ImageLike, others: Collection[str]) -> str:
    """``<table>_pkey`` or ``<table>_<columns>_key``, with a number where that is taken, cut to fit."""
    columns, end = (None, "pkey") if said.kind == PRIMARY else ("_".join(said.columns), "key")
    return name_made_of(table, columns, end, lambda name: name in others or taken(image, schema, name))
