"""The deterministic commands: what a controller learns of the catalog, and nothing else (DESIGN I6).

A command's identity is ``(catalog_ts, ordinal)``; a subscriber that replays sends the same bytes, and a controller
drops what it has seen.  ``AdvanceCatalogFrontier`` closes every catalog timestamp.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from catalog_log.model import Item
from journal.timestamps import CatalogTs


class Kind(StrEnum):
    CREATE = "create"
    """An object exists from now on.  ``item`` says what it is."""
    DROP = "drop"
    """The object with ``object_id`` is gone."""
    ADVANCE_CATALOG_FRONTIER = "advance_catalog_frontier"
    """All commands below ``frontier`` have been sent."""


class Command(NamedTuple):
    catalog_ts: CatalogTs
    ordinal: int
    """Position among the commands of this ``catalog_ts``, from 0; the closing advance is the last."""
    kind: Kind
    object_id: str | None = None
    item: Item | None = None
    frontier: CatalogTs | None = None


STORAGE = "storage"


def compute(cluster_id: str) -> str:
    """Name of the compute controller of a cluster."""
    return f"compute-{cluster_id}"
