"""Of plain views, and what views of both kinds write alike."""

from __future__ import annotations

from adapter.system.kinds.kind import NO_ACCESS, KindRows, cluster_by, in_cluster
from catalog_log.objects import Queried
from sql.objects.identifiers import quoted
from sql.objects.names import ImageLike
from sql.views.view_text import query_today


def definition(item: Queried, image: ImageLike) -> str:
    """The query as its creator wrote it, what it reads called as it is called now."""
    return query_today(item, image).sql("postgres", pretty=True)


def created(item: Queried, name: str, image: ImageLike) -> str:
    columns = ", ".join(quoted(c.name) for c in item.columns)
    stored = f" {found}" if (found := cluster_by(item, image)) else ""
    head = f"CREATE {item.word.upper()} {name} ({columns}){in_cluster(item, image)}{stored}"
    return f"{head} AS\n{definition(item, image)}"


ROWS = KindRows("v", created, access=NO_ACCESS, table_type="VIEW")
