"""Of indexes, and of constraints: those that indexes keep, and checks."""

from __future__ import annotations

from adapter.system.kinds.kind import KindRows, in_cluster, kept_in
from catalog_log import model
from catalog_log.objects import Check, Index, Table, key_names
from sql.objects.identifiers import quoted
from sql.objects.names import ImageLike
from sql.views.kept_checks import check_today

ARRANGEMENT = 403
"""The oid of the access method of indexes, as of Postgres's btree."""


def _created(item: Index, name: str, image: ImageLike) -> str:
    """By its name alone: its schema is its relation's."""
    on = image.item(item.relation_id)
    schema = image.get(model.SCHEMAS, on.schema_id) if on else None
    where = f"{quoted(schema.name)}.{quoted(on.name)}" if on and schema else item.relation_id
    if item.constraint is not None:
        return f"ALTER TABLE {where} ADD CONSTRAINT {quoted(item.name)} {constraint_text(item, image)}"
    keys = ", ".join(map(quoted, key_names(item, on)))
    return f"CREATE INDEX {quoted(item.name)}{in_cluster(item, image)} ON {where} ({keys})"


def constraint_text(item: Index, image: ImageLike) -> str:
    """What ALTER TABLE … ADD CONSTRAINT would say of the constraint that ``item`` keeps."""
    keys = ", ".join(map(quoted, key_names(item, image.item(item.relation_id))))
    return f"{(item.constraint or '').upper()} ({keys})"


def check_text(check: Check, table: Table) -> str:
    """The same of a check."""
    return f"CHECK ({check_today(check, table)})"


def _listed(item: Index, image: ImageLike) -> tuple[str | None, ...]:
    on, cluster = image.item(item.relation_id), kept_in(item, image)
    return on.name if on else None, cluster.name if cluster else None, ", ".join(key_names(item, on))


ROWS = KindRows("i", _created, access=ARRANGEMENT, table_type=None, listed=_listed)
