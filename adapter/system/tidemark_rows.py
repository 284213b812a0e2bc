"""What the relations of tm_catalog hold: pure functions from a catalog image to rows."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from adapter.system.rows import Rows, System, comments_of, of_kinds
from catalog_log import model
from catalog_log.objects import Index, Source, WebhookSource, cluster_of, key_names, numbered_columns
from catalog_log.settings import GEAR, cluster_setting
from sql.statements.sequence_calls import default_today


def _objects(s: System) -> Rows:
    for schema, item in s.named():
        yield {"id": item.id, "database_name": s.database, "schema_name": schema.name, "name": item.name,
               "kind": item.kind, "cluster_id": cluster_of(item),
               "topic": isinstance(item, Source) and item.topic or None, "definition": item.create_sql}  # fmt: skip


def _columns(s: System) -> Rows:
    for schema, item in s.named():
        for number, column in numbered_columns(item):
            yield {"object_id": item.id, "schema_name": schema.name, "object_name": item.name, "position": number,
                   "name": column.name, "type": column.type, "nullable": column.nullable,
                   "default_expression": default_today(item, column, s.image)}  # fmt: skip


def _dependencies(s: System) -> Rows:
    for _, item in s.named():
        for other in item.depends_on:
            found = s.image.item(other)
            yield {"object_id": item.id, "object_name": item.name, "referenced_id": other,
                   "referenced_name": found.name if found else None}  # fmt: skip


def _indexes(s: System) -> Rows:
    for _, item in s.named():
        if isinstance(item, Index):
            found = s.image.item(item.relation_id)
            yield {"id": item.id, "name": item.name, "relation_id": item.relation_id,
                   "relation_name": found.name if found else None, "cluster_id": item.cluster_id,
                   "key_columns": ", ".join(key_names(item, found))}  # fmt: skip


def _sources(s: System) -> Rows:
    for _, item in s.named():
        if isinstance(item, WebhookSource):
            yield {"id": item.id, "name": item.name, "topic": None, "format": item.format, "envelope": "none",
                   "errors_id": None}  # fmt: skip
        if isinstance(item, Source):
            yield {"id": item.id, "name": item.name, "topic": item.topic or None, "format": item.format,
                   "envelope": item.envelope, "errors_id": item.errors_id or None}  # fmt: skip


def _nodes(s: System) -> Rows:
    for _, node in s.image.all(model.NODES):
        yield {"kind": node.kind, "cluster": node.cluster, "address": node.address, "incarnation": node.incarnation,
               "started": datetime.fromtimestamp(node.started_ms / 1000, UTC)}  # fmt: skip


def _plain(collection: str, **columns: str) -> Callable[[System], Rows]:
    def rows(s: System) -> Rows:
        for key, value in s.image.all(collection):
            yield {name: key if field == "key" else getattr(value, field) for name, field in columns.items()}

    return rows


def _clusters(s: System) -> Rows:
    for _, cluster in s.image.all(model.CLUSTERS):
        yield {"id": cluster.id, "name": cluster.name, "gear": cluster_setting(s.image, GEAR, cluster.id)}


def _comments(s: System) -> Rows:
    named = {item.id: (item.kind, f"{schema.name}.{item.name}") for schema, item in s.named()}
    named |= {schema.id: ("schema", schema.name) for schema in s.schemas()}
    for collection, kind in ((model.DATABASES, "database"), (model.CLUSTERS, "cluster")):
        named |= {key: (kind, value.name) for key, value in s.image.all(collection)}
    for object_id, number, text in comments_of(s):
        if object_id in named:
            kind, name = named[object_id]
            item = s.image.item(object_id)
            columns = {n: column.name for n, column in numbered_columns(item)} if item is not None else {}
            yield {"object_id": object_id, "object_kind": kind, "object_name": name, "column_name": columns.get(number),
                   "comment": text}  # fmt: skip


def _ddl_audit(s: System) -> Rows:
    """Statements of every database, in the order in which they took effect."""
    for key, said in s.image.all(model.AUDIT):
        catalog_ts, ordinal = map(int, key.split("."))
        yield {"catalog_ts": catalog_ts, "ordinal": ordinal, "at": datetime.fromtimestamp(catalog_ts / 1000, UTC),
               "role": said.role, "database_name": said.database, "tag": said.tag, "statement": said.statement,
               "request_id": said.request_id, "object_ids": list(said.objects)}  # fmt: skip


ROWS: dict[str, Callable[[System], Rows]] = {
    **of_kinds("tm_catalog"),
    "objects": _objects, "columns": _columns, "dependencies": _dependencies, "indexes": _indexes,
    "sources": _sources, "nodes": _nodes,
    "comments": _comments, "ddl_audit": _ddl_audit,
    "databases": _plain(model.DATABASES, id="id", name="name"),
    "schemas": _plain(model.SCHEMAS, id="id", database_id="database_id", name="name"),
    "clusters": _clusters,
    "settings": _plain(model.SETTINGS, name="key", value="value"),
    "ddl_requests": _plain(model.REQUESTS, request_id="key", catalog_ts="catalog_ts", status="status",
                           message="message"),
}  # fmt: skip
"""How to make the rows; a missing column is NULL."""
