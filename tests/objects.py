"""Objects of any kind for tests that care about little of them."""

from __future__ import annotations

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
    Source,
    SparkText,
    Table,
    View,
)


def made(
    kind: str,
    object_id: str,
    name: str | None = None,
    *,
    on: tuple[str, ...] = (),
    columns: tuple[Column, ...] = (),
    cluster: str = "default",
    sql: str = "",
    schema_id: str = "s1",
    create_sql: str = "",
    key: tuple[str, ...] = (),
    topic: str = "topic",
    defined: bool = False,
) -> Item:
    """An object of ``kind`` that names ``on``: what a view reads, an index is on, errors are of.

    ``defined``: a view is kept as its user meant it, otherwise as ``sql``, which Spark is told.
    """
    head = object_id, schema_id, object_id if name is None else name, create_sql
    references = tuple(Reference((each,), each, "public", ()) for each in on)
    query = Definition(references, on) if defined else SparkText(sql, on, on)
    if kind == TABLE:
        assert not on, "a table names nothing"
        return Table(*head, columns)
    if kind == SOURCE:
        return Source(*head, columns, topic=topic, format="json", envelope="none", errors_id=f"{object_id}e")
    if kind == ERRORS:
        return Errors(*head, columns, source_id=on[0])
    if kind == VIEW:
        return View(*head, columns, query=query)
    if kind == MATERIALIZED_VIEW:
        return MaterializedView(*head, columns, query=query, cluster_id=cluster)
    assert kind == INDEX, kind
    return Index(*head, relation_id=on[0], key=key, cluster_id=cluster)
