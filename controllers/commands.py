"""The deterministic commands: what a controller learns of the catalog, and nothing else (DESIGN I6).

A command's identity is ``(catalog_ts, ordinal)``; a subscriber that replays sends the same bytes, and a controller
drops what it has seen.  ``AdvanceCatalogFrontier`` closes every catalog timestamp.

The command topic is a log of the same kind as the catalog: a command says which frontier it continues (``lower``), and
the controller's fold takes it only if that is its frontier (:mod:`controllers.protocol`).  So it does not matter how
many subscribers write at once, whether a deposed one is late, or whether a record was lost between two others: what
does not continue the log is not taken, and the subscriber that reads back its own commands sends the rest again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

from catalog_log.index import id_order
from catalog_log.model import Setting
from catalog_log.objects import Item, view_inputs
from journal.timestamps import CatalogTs


class Kind(StrEnum):
    CREATE = "create"
    """An object exists from now on.  ``item`` says what it is; for an object that exists already, what it is now."""
    DROP = "drop"
    """The object with ``object_id`` is gone."""
    SET = "set"
    """A setting of the controller's cluster: ``object_id`` is its key, ``setting`` what it is (``None``: its default).
    """
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
    """For the closing advance: the catalog's upper after this timestamp, ``catalog_ts + 1``."""
    lower: CatalogTs = CatalogTs(0)
    """The frontier that this timestamp's commands continue; 0 for the first of a new controller."""
    setting: Setting | None = None


def numbered(commands: Iterable[Command]) -> list[Command]:
    """Those of one ``catalog_ts``, with their ordinals."""
    return [command._replace(ordinal=ordinal) for ordinal, command in enumerate(commands)]


STORAGE = "storage"


def compute(cluster_id: str) -> str:
    """Name of the compute controller of a cluster."""
    return f"compute-{cluster_id}"


def in_dependency_order(items: Mapping[str, Item]) -> list[Item]:
    """Every item after all that it names, among these; otherwise in the order in which ids were given out.

    An errors collection names its source and the source names the collection in its options; ``depends_on`` and
    ``inputs`` alone count, and they have no cycles (an object can only name what existed before it).
    """
    done: dict[str, Item] = {}
    begun: set[str] = set()
    for start in sorted(items, key=id_order):
        # Iterative, since a chain of views may be longer than Python's stack.
        stack = [start]
        while stack:
            begun.add(stack[-1])
            item = items[stack[-1]]
            missing = [i for i in (*item.depends_on, *view_inputs(item)) if i in items and i not in begun]
            if missing:
                stack.append(min(missing, key=id_order))
            else:
                done[stack.pop()] = item
    return list(done.values())
