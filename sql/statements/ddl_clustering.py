"""CLUSTER BY: by which columns the files of a relation are kept apart, as a setting of the catalog beside it.  Pure.

As RETAIN HISTORY is (:mod:`sql.statements.ddl_history`): who serves the relation need not be told, only who seals its
rows looks at it.  Code that does not know the setting sorts files as it ever did, so every format of the catalog may
have it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from catalog_log import model, records
from catalog_log.model import Setting, Update
from catalog_log.objects import MaterializedView, Relation, Source, Table
from catalog_log.settings import clustering, clustering_key
from collection.columns import sql_type
from journal.errors import InvalidUsage
from segments.statistics import form_of
from sql.objects.names import ImageLike, Names
from sql.statements.ddl_alter import altered
from sql.statements.ddl_history import kept_for
from sql.statements.plans import DdlPlan, PlanNotice
from sql.syntax import statements as st
from sql.syntax.clustering import ClusterColumn, HowStored
from trees.errors import no_column, unsupported, wrong_kind

CLUSTER_COLUMNS_MAX = 4
"""As Delta's tables take: of what is equal in four columns hardly anything is left to be kept apart, and each costs
whoever sorts a file (a million rows 0.1 s)."""


def plan_clustering(s: st.AlterClustering, image: ImageLike, names: Names) -> DdlPlan:
    """The setting as it is to be: for what is written from then on, and for what is written anew.

    Raises what :func:`~sql.statements.ddl_alter.altered` does, 42809 for what has no rows of its own, and as
    :func:`clustered`.
    """
    item = altered(s, image, names)
    if isinstance(item, PlanNotice):
        return DdlPlan((), s.tag, (item,))
    if not isinstance(item, (Table, Source, MaterializedView)):
        raise wrong_kind(item.name, "table, source or materialized view")
    before = image.get(model.SETTINGS, clustering_key(item.id))
    if not s.columns:
        update = [records.remove(model.SETTINGS, clustering_key(item.id))] if before is not None else []
    else:
        update = list(clustered(item, s.columns)) if before != setting_of(item, s.columns) else []
    return DdlPlan(tuple(update), s.tag, described=(item.id,))


def clustered(item: Relation, columns: Sequence[ClusterColumn]) -> Iterator[Update]:
    """What says of a relation that it is kept by ``columns``; nothing of none.  Raises as :func:`setting_of`."""
    if columns:
        yield records.put(model.SETTINGS, clustering_key(item.id), setting_of(item, columns))


def how_stored(item: Relation, stored: HowStored, image: ImageLike) -> Iterator[Update]:
    """What the catalog is to keep of how the rows of a new relation are stored.  Raises as :func:`setting_of` and
    :func:`~sql.statements.ddl_history.kept_for`."""
    yield from clustered(item, stored.cluster_by)
    yield from kept_for(item.id, stored.keep_ms, image)


def setting_of(item: Relation, columns: Sequence[ClusterColumn]) -> Setting:
    """What the catalog keeps of it.

    Raises 42703, 42701 for a column that is not there or there twice, 54011 for too many, 0A000 for one whose values
    have no order in files.
    """
    if len(columns) > CLUSTER_COLUMNS_MAX:
        raise InvalidUsage(f"cannot cluster by more than {CLUSTER_COLUMNS_MAX} columns", sqlstate="54011",
                           position=columns[CLUSTER_COLUMNS_MAX].at)  # fmt: skip
    known = {each.name: each for each in item.columns}
    found = []
    for each in columns:
        column = known.get(each.name)
        if column is None:
            raise no_column(each.name, known, position=each.at)
        if column.stored_as in found:
            raise InvalidUsage(f'column "{each.name}" specified more than once', sqlstate="42701", position=each.at)
        form = form_of(sql_type(column.type))
        if form is None or not form.exact:
            raise unsupported(f"CLUSTER BY a column of type {column.type}", position=each.at)
        found.append(column.stored_as)
    return clustering(found)


PLANS = {st.AlterClustering: plan_clustering}
