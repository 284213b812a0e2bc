"""Objects as the records that the catalog keeps of them, and back.  Pure.

Raises ``Undecodable`` for a record that is no object: a kind that is not known, a field missing that its kind has.
"""

from __future__ import annotations

from typing import Any

from catalog_log.objects import (
    ERRORS,
    INDEX,
    MATERIALIZED_VIEW,
    SOURCE,
    TABLE,
    VIEW,
    Column,
    Definition,
    Errors,
    Index,
    Item,
    MaterializedView,
    Reference,
    Relation,
    Source,
    SparkText,
    Table,
    View,
    cluster_of,
    view_inputs,
)
from schemas.codec import Undecodable


def to_record(item: Item) -> dict[str, Any]:
    """``item`` as today's record of one."""
    columns = item.columns if isinstance(item, Relation) else ()
    source = isinstance(item, Source)
    query = item.query if isinstance(item, (View, MaterializedView)) else None
    return {
        "id": item.id,
        "schema_id": item.schema_id,
        "name": item.name,
        "kind": item.kind,
        "depends_on": item.depends_on,
        "cluster_id": cluster_of(item),
        "create_sql": item.create_sql,
        "query_sql": query.sql if isinstance(query, SparkText) else None,
        "references": [vars(each) for each in query.references] if isinstance(query, Definition) else [],
        "inputs": view_inputs(item),
        "index_columns": item.key if isinstance(item, Index) else (),
        "topic": item.topic if source else None,
        "columns": [vars(column) for column in columns],
        "dropped": [vars(column) for column in item.dropped] if isinstance(item, Table) else [],
        "options": {"format": item.format, "envelope": item.envelope, "errors_id": item.errors_id} if source else {},
    }


def version_of(item: Item) -> int:
    """The version of the record that ``item`` is written as: the oldest that says all of it.

    So what a catalog of an older format may hold is written as older code reads it, also to controllers.
    """
    if isinstance(item, Relation) and any(column.id for column in item.columns):
        return 3
    query = item.query if isinstance(item, (View, MaterializedView)) else None
    if isinstance(query, Definition):
        return 3 if any(each.column_ids for each in query.references) else 2
    return 1


def from_record(found: dict[str, Any]) -> Item:
    """The object that ``found`` is a record of.  Raises ``Undecodable``."""
    head = found["id"], found["schema_id"], found["name"], found["create_sql"]
    kind, cluster, options = found["kind"], found["cluster_id"], found["options"]
    columns = tuple([Column(**column) for column in found["columns"]])
    try:
        if kind == TABLE:
            return Table(*head, columns, tuple([Column(**column) for column in found["dropped"]]))
        if kind == SOURCE:
            return Source(*head, columns, topic=_there(found["topic"]), format=options.get("format", "json"),
                          envelope=options.get("envelope", "none"), errors_id=options["errors_id"])  # fmt: skip
        if kind == ERRORS:
            return Errors(*head, columns, source_id=found["depends_on"][0])
        if kind == VIEW:
            return View(*head, columns, query=_query(found))
        if kind == MATERIALIZED_VIEW:
            return MaterializedView(*head, columns, query=_query(found), cluster_id=_there(cluster))
        if kind == INDEX:
            return Index(*head, relation_id=found["depends_on"][0], key=tuple(found["index_columns"]),
                         cluster_id=_there(cluster))  # fmt: skip
    except LookupError as error:
        raise Undecodable(f"not a {kind}: it has no {error}") from error
    raise Undecodable(f"an object of kind {kind!r}")


def _query(found: dict[str, Any]) -> Definition | SparkText:
    if found["query_sql"] is None:
        references = [
            Reference(tuple(r["name"]), r["relation_id"], r["schema"], tuple(r["columns"]), tuple(r["column_ids"]))
            for r in found["references"]
        ]
        return Definition(tuple(references), tuple(found["inputs"]))
    return SparkText(_there(found["query_sql"]), tuple(found["depends_on"]), tuple(found["inputs"]))


def _there(value: str | None) -> str:
    if value is None:
        raise LookupError("such field")
    return value
