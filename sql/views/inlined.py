"""A query's plan as one over what is stored, and as its user would read it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from catalog_log.objects import Item, SparkText, View
from catalog_log.objects import Relation as Stored
from plan.relations import Get, Project, Query, Relation, with_gets
from sql.objects.called import Objects
from sql.views.kept_views import bound_as, view_query


def with_views(query: Query, objects: Objects) -> Query:
    """``query`` with the plans of plain views in their places: over tables, sources and materialized views alone.

    A view of which only Spark's text is kept stays as it is.  Whoever calls has lowered the query before, which bounds
    how much its views are together (:func:`sql.views.kept_views.inline_views`).
    """
    plans: dict[str, Relation] = {}

    def inlined(read: Get) -> Relation:
        view = objects.item(read.item_id)
        if not isinstance(view, View) or isinstance(view.query, SparkText):
            return read
        if view.id not in plans:
            plans[view.id] = with_gets(bound_as(view, view_query(view), objects).plan.relation, inlined)
        made = plans[view.id]
        places = {column.stored_as: place for place, column in enumerate(view.columns)}
        chosen = [places[name] for name in read.names]
        if chosen == list(range(len(made.columns))):
            return made
        return Project(made, tuple(made.column(place) for place in chosen))

    return query.with_gets(inlined)


def as_called(query: Query, objects: Objects, label: Callable[[Item], str]) -> Query:
    """``query`` with relations called as ``label`` says, and their columns as they are called now: for who reads it."""

    def called(read: Get) -> Get:
        item = objects.item(read.item_id)
        if not isinstance(item, Stored):
            return read
        now = {column.stored_as: column.name for column in item.columns}
        return replace(read, item_id=label(item), names=tuple(now.get(name, name) for name in read.names))

    return query.with_gets(called)
