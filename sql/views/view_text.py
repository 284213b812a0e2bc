"""What a view's query says today: its user's statement, with what it reads called as it is called by now.

A definition means its relations by their ids, so it goes on when they are renamed; whoever is shown it should be able
to run it.  As Postgres does, what is called otherwise keeps its old name as the alias: columns are qualified by that.
Where columns came, went or were called otherwise, those that were meant are listed, by a query in the relation's place.
Relations are shown with their schemas, whatever the reader's search path is.
"""

from __future__ import annotations

from sqlglot import exp

from catalog_log import model
from catalog_log.objects import Definition, MaterializedView, Reference, Relation, View
from sql.binding.bind import folded, name_of, real_tables
from sql.objects.identifiers import needs_quotes
from sql.objects.names import ImageLike
from sql.views.kept_views import view_query
from trees.nodes import stand_in


def query_today(view: View | MaterializedView, image: ImageLike) -> exp.Expression:
    """The query of ``view``.

    A view that its catalog keeps as Spark text says what it said when it was made: what its names meant is not known.
    """
    query = view_query(view)
    if isinstance(view.query, Definition):
        _called_today(query, view.query, image)
    return query


def _called_today(tree: exp.Expression, definition: Definition, image: ImageLike) -> None:
    meant = {each.name: each for each in definition.references}
    moved = set()
    for table in real_tables(tree):
        name = name_of(table)
        reference = meant.get(name.parts)
        item = None if reference is None else image.item(reference.relation_id)
        schema = None if item is None else image.get(model.SCHEMAS, item.schema_id)
        if schema is None or not isinstance(item, Relation):
            continue
        columns = _columns_today(item, reference)
        if columns is None and (schema.name, item.name) == (reference.schema, name.last):
            table.set("db", _identifier(schema.name))  # not every reader's search path leads there
            continue
        if table.args.get("alias") is None:
            table.set("alias", exp.TableAlias(this=_identifier(name.last)))
            moved.add((reference.schema, name.last))
        now = exp.Table(this=_identifier(item.name), db=_identifier(schema.name))
        if columns is None:
            table.set("this", now.this)
            table.set("db", now.args["db"])
            table.set("catalog", None)
            continue
        stand_in(table, exp.select(*columns).from_(now))
    for column in [x for x in tree.find_all(exp.Column) if x.args.get("db") is not None]:
        if tuple(folded(column.args[part]) for part in ("db", "table")) in moved:
            column.set("db", None)
            column.set("catalog", None)


def _columns_today(item: Relation, reference: Reference) -> list[exp.Expression] | None:
    """The columns that were meant, those that are there still, called as they were; ``None`` where they are all that
    the relation has, and are called so."""
    now = {column.id: column.name for column in item.columns}
    meant = list(zip(reference.column_ids, reference.columns, strict=False))
    if not meant or meant == list(now.items()):
        return None
    return [
        exp.column(_identifier(now[column_id]))
        if now[column_id] == name
        else exp.Alias(this=exp.column(_identifier(now[column_id])), alias=_identifier(name))
        for column_id, name in meant
        if column_id in now
    ]


def _identifier(name: str) -> exp.Identifier:
    return exp.to_identifier(name, quoted=needs_quotes(name))
