"""How far everything is, read from the logs: for ``status`` and for the demo's display.

Promises what any process could tell: it folds the same three journals and asks nobody.  It writes nothing, but for one
barrier where one is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from catalog_log.image import Image
from catalog_log.log import CatalogLog
from catalog_log.objects import MaterializedView
from journal.names import TopicNames
from oracle.client import Oracle
from oracle.completeness import complete_through_all
from oracle.state import OracleState
from oracle.views import ViewsState
from oracle.views_log import ViewsLog

BARRIER_TIMEOUT_S = 15.0


class View(NamedTuple):
    """A materialized view: maintained below ``upper``, complete through ``complete`` (-1: not hydrated yet)."""

    id: str
    name: str
    upper: int
    complete: int
    error: str | None


class Frontiers(NamedTuple):
    """Where the logs are, at one look."""

    image: Image
    oracle: OracleState
    views: tuple[View, ...]


def look(image: Image, oracle: OracleState, views: ViewsState) -> Frontiers:
    """Pure."""
    items = {item.id: item for item in image.objects() if isinstance(item, MaterializedView)}

    def inputs_of(item_id: str) -> Sequence[str] | None:
        return items[item_id].inputs if item_id in items else None

    complete = complete_through_all(items, inputs_of, oracle, views)
    return Frontiers(image, oracle, tuple(
        View(item.id, item.name, views.view(item.id).upper, complete[item.id], views.view(item.id).error)
        for item in items.values()
    ))  # fmt: skip


class FrontierReader:
    """Follows an environment's journals.  Close it."""

    def __init__(self, kafka: str, names: TopicNames, writer_id: str) -> None:
        self._close: list[Callable[[], None]] = []
        try:
            self._catalog = CatalogLog.open(kafka, names, writer_id)
            self._close.append(self._catalog.close)
            self._oracle = Oracle.open(kafka, names, writer_id, self._catalog.upper)
            self._close.append(self._oracle.close)
            self._views = ViewsLog.open(kafka, names, writer_id)
            self._close.append(self._views.close)
        except BaseException:
            self.close()
            raise

    def now(self) -> Frontiers:
        """What has been folded so far: at once, a little behind."""
        # The views first: what they have committed is then in the oracle's state too, or soon.
        views = self._views.state
        return look(self._catalog.image, self._oracle.state, views)

    def after_barrier(self) -> Frontiers:
        """A look that holds everything acknowledged before this call.  Raises ``Unavailable`` where that takes long."""
        oracle = self._oracle.barrier().result(timeout=BARRIER_TIMEOUT_S)
        image = self._catalog.when_upper(oracle.catalog_upper, BARRIER_TIMEOUT_S).result()
        return look(image, oracle, self._views.state)

    def close(self) -> None:
        while self._close:
            self._close.pop()()


def frontiers_line(frontiers: Frontiers) -> str:
    """One line for a live display: how far each view is behind the newest complete timestamp of the tables."""
    last_ts = frontiers.oracle.last_ts
    parts = [f"{view.name} {'not hydrated' if view.complete < 0 else f'{last_ts - view.complete:,} ms behind'}"
             for view in frontiers.views]  # fmt: skip
    return f"frontiers: table {last_ts}" + "".join(f" · {part}" for part in parts)
