"""Of sources: tables to clients, since that is what can be done with them."""

from __future__ import annotations

from adapter.system.kinds.kind import KindRows, column_lines
from catalog_log.objects import Source
from sql.objects.names import ImageLike


def _created(item: Source, name: str, image: ImageLike) -> str:
    topic = item.topic.replace("'", "''")
    columns = column_lines(item, image)
    return f"CREATE SOURCE {name} (\n{columns}\n)\nFROM KAFKA TOPIC '{topic}' FORMAT JSON ENVELOPE NONE"


ROWS = KindRows("r", _created, listed=lambda item, image: (item.topic, item.format))
