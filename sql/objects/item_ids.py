"""Ids of new objects."""

from __future__ import annotations

from catalog_log import model, records
from catalog_log.model import Setting, Update
from catalog_log.settings import NEXT_ITEM_ID, next_item_id
from sql.objects.names import ImageLike


class ItemIds:
    """Gives ids that were never used: a counter that is itself in the catalog."""

    def __init__(self, image: ImageLike) -> None:
        self._next = next_item_id(image)

    def item(self) -> str:
        self._next += 1
        return f"u{self._next - 1}"

    def schema(self) -> str:
        self._next += 1
        return f"s{self._next}"

    def update(self) -> Update:
        return records.put(model.SETTINGS, NEXT_ITEM_ID, Setting(str(self._next)))
