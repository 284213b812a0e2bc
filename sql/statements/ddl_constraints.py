"""PRIMARY KEY and UNIQUE of a table: each is an index that a cluster keeps, and is called as the constraint is.  Pure.

So whether a key is there is looked up, and nobody reads the table for it; what its commit says of it is enforced by the
log alone (:mod:`adapter.execute.uniques`).  Turned down: keys in the state of the oracle's fold, of which everybody
would hold all of every table; and a constraint without an index, which each row would cost a look at all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from catalog_log import records
from catalog_log.model import Schema
from catalog_log.objects import PRIMARY, Index, Table
from journal.errors import InvalidUsage
from sql.objects.identifiers import IDENTIFIER_BYTES_MAX, check_identifier
from sql.objects.item_ids import ItemIds
from sql.objects.names import ImageLike, Names, cluster_named
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
    """``table``, whose primary key takes no NULL, and the indexes that keep its constraints.

    Raises 42P16 for two primary keys, 42703 and 42701 for their columns, 42P07 for a name that is taken,
    0A000 for types whose equality is not that of bytes, and in catalogs that keep no constraints.
    """
    if not said:
        return table, []
    if image.genesis.format_version < records.KEYS_FROM:
        raise unsupported(
            f"{said[0].kind.upper()} in a catalog of format {image.genesis.format_version}",
            hint=f"constraints are kept by catalogs made with format {records.KEYS_FROM} or later",
        )
    cluster = cluster_named(image, names.cluster)
    if sum(each.kind == PRIMARY for each in said) > 1:
        told = f'multiple primary keys for table "{table.name}" are not allowed'
        second = [each for each in said if each.kind == PRIMARY][1]
        raise InvalidUsage(told, sqlstate="42P16", position=second.at + 1)
    found: list[Index] = []
    names_taken = {table.name}
    # The primary key first, as Postgres makes them: what it is called by itself the others are not.
    for key, each in _once(table, sorted(said, key=lambda each: each.kind != PRIMARY)).items():
        name = each.name or _free_name(table.name, each, schema, image, names_taken)
        check_identifier(name)
        if name in names_taken or taken(image, schema, name):
            raise already_exists("relation", name)
        names_taken.add(name)
        found.append(
            Index(ids.item(), table.schema_id, name, table.create_sql, relation_id=table.id, key=key,
                  cluster_id=cluster.id, constraint=each.kind)
        )  # fmt: skip
        if each.kind == PRIMARY:
            not_null = [replace(c, nullable=False) if c.stored_as in key else c for c in table.columns]
            table = replace(table, columns=tuple(not_null))
    return table, found


def _once(table: Table, said: Sequence[Constraint]) -> dict[tuple[str, ...], Constraint]:
    """Each by its key.  What is said again of the same columns is the same constraint, which keeps the first name that
    it is given, as in Postgres."""
    found: dict[tuple[str, ...], Constraint] = {}
    for each in said:
        first = found.setdefault(key_of(table, each), each)
        if first.name is None and each.name is not None:
            found[key_of(table, each)] = replace(first, name=each.name)
    return found


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


def _free_name(table: str, said: Constraint, schema: Schema, image: ImageLike, others: set[str]) -> str:
    """``<table>_pkey`` or ``<table>_<columns>_key``, with a number where that is taken, cut to fit."""
    stem = (table,) if said.kind == PRIMARY else (table, *said.columns)
    end = "pkey" if said.kind == PRIMARY else "key"
    cut = "_".join(stem).encode()[: IDENTIFIER_BYTES_MAX - 8].decode(errors="ignore")
    name, n = f"{cut}_{end}", 0
    while name in others or taken(image, schema, name):
        n += 1
        name = f"{cut}_{end}{n}"
    return name
