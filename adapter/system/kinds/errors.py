"""Of the errors of sources: tables to clients."""

from __future__ import annotations

from adapter.system.kinds.kind import KindRows
from catalog_log.objects import Errors
from sql.objects.names import ImageLike


def _created(item: Errors, name: str, image: ImageLike) -> str:
    raise AssertionError(f"{name} is made by CREATE SOURCE alone")


ROWS = KindRows("r", _created)
