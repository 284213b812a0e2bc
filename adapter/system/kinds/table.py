"""Of tables."""

from __future__ import annotations

from adapter.system.kinds.kind import KindRows, column_lines
from catalog_log.objects import Table
from sql.objects.names import ImageLike


def _created(item: Table, name: str, image: ImageLike) -> str:
    return f"CREATE TABLE {name} (\n{column_lines(item, image)}\n)"


ROWS = KindRows("r", _created, privileges=("SELECT", "INSERT"))
