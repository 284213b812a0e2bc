"""RETAIN HISTORY: for how long the past of a table or a source is kept, as a setting of the catalog beside it.  Pure.

Turned down: a field of the item.  Whoever serves the item need not be told, and an item of a newer version would be
one that older code cannot read.
"""

from __future__ import annotations

from collections.abc import Iterator

from catalog_log import model, records
from catalog_log.model import Setting, Update
from catalog_log.objects import MATERIALIZED_VIEW, Source, Table
from catalog_log.settings import history_key
from sql.objects.names import ImageLike, Names
from sql.statements.ddl_alter import altered
from sql.statements.plans import DdlPlan, PlanNotice
from sql.syntax import statements as st
from trees.errors import unsupported, wrong_kind


def plan_history(s: st.AlterHistory, image: ImageLike, names: Names) -> DdlPlan:
    """The setting as it is to be.  Raises what :func:`~sql.statements.ddl_alter.altered` does, 42809 for what has no
    rows of its own, 0A000 for a view and in catalogs of formats before 9."""
    item = altered(s, image, names)
    if isinstance(item, PlanNotice):
        return DdlPlan((), s.tag, (item,))
    if item.kind == MATERIALIZED_VIEW:
        raise unsupported("RETAIN HISTORY of a materialized view", hint="retain that of what it reads")
    if not isinstance(item, (Table, Source)):
        raise wrong_kind(item.name, "table or source")
    there = image.get(model.SETTINGS, history_key(item.id))
    if s.keep_ms is None:
        update = [records.remove(model.SETTINGS, history_key(item.id))] if there is not None else []
    else:
        update = list(kept_for(item.id, s.keep_ms, image)) if there != Setting(str(s.keep_ms)) else []
    return DdlPlan(tuple(update), s.tag, described=(item.id,))


def kept_for(item_id: str, keep_ms: int | None, image: ImageLike) -> Iterator[Update]:
    """What says of a relation that its history is kept so long; nothing of ``None``.  0A000 in older catalogs."""
    if keep_ms is None:
        return
    if image.genesis.format_version < records.HISTORY_FROM:
        raise unsupported(
            f"RETAIN HISTORY in a catalog of format {image.genesis.format_version}",
            hint=f"it is kept in environments made with format {records.HISTORY_FROM} or later",
        )
    yield records.put(model.SETTINGS, history_key(item_id), Setting(str(keep_ms)))


PLANS = {st.AlterHistory: plan_history}
