"""Of materialized views."""

from __future__ import annotations

from adapter.system.kinds.kind import KindRows, kept_in
from adapter.system.kinds.view import created
from catalog_log.objects import MaterializedView
from sql.objects.names import ImageLike


def _listed(item: MaterializedView, image: ImageLike) -> tuple[str | None, ...]:
    cluster = kept_in(item, image)
    return (cluster.name if cluster else None,)


ROWS = KindRows("m", created, table_type=None, listed=_listed)
