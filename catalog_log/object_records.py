"""Objects as the records that the catalog keeps of them, and back.  Pure.

Raises ``Undecodable`` for a record that is no object: a kind that is not known, a field missing that its kind has.
"""

from __future__ import annotations

from typing import Any

from catalog_log.objects import BY_KIND, Column, Definition, Item, Queried, Relation, cluster_of
from schemas.codec import Undecodable


def to_record(item: Item) -> dict[str, Any]:
    """``item`` as today's record of one."""
    columns = item.columns if isinstance(item, Relation) else ()
    return {
        "id": item.id,
        "schema_id": item.schema_id,
        "name": item.name,
        "kind": item.kind,
        "depends_on": item.depends_on,
        "cluster_id": cluster_of(item),
        "create_sql": item.create_sql,
        "query_sql": None,
        "references": [],
        "inputs": (),
        "index_columns": (),
        "topic": None,
        "columns": [vars(column) for column in columns],
        "dropped": [],
        "options": {},
        **item.fields(),
    }


def version_of(item: Item) -> int:
    """The version of the record that ``item`` is written as: the oldest that says all of it.

    So what a catalog of an older format may hold is written as older code reads it, also to controllers.
    """
    if isinstance(item, Relation) and any(column.id for column in item.columns):
        return 3
    query = item.query if isinstance(item, Queried) else None
    if isinstance(query, Definition):
        return 3 if any(each.column_ids for each in query.references) else 2
    return 1


def from_record(found: dict[str, Any]) -> Item:
    """The object that ``found`` is a record of.  Raises ``Undecodable``."""
    head = found["id"], found["schema_id"], found["name"], found["create_sql"]
    kind = BY_KIND.get(found["kind"])
    if kind is None:
        raise Undecodable(f"an object of kind {found['kind']!r}")
    try:
        return kind.of_record(head, tuple([Column(**column) for column in found["columns"]]), found)
    except (LookupError, ValueError, TypeError, RecursionError) as error:
        raise Undecodable(f"not a {kind.kind}: it has no {error}") from error
