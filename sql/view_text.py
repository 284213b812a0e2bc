"""What a view's query says today: its user's statement, with what it reads called as it is called by now.

A definition means its relations by their ids, so it goes on when they are renamed; whoever is shown it should be able
to run it.  As Postgres does, what is called otherwise keeps its old name as the alias: columns are qualified by that.
"""

from __future__ import annotations

from sqlglot import exp

from catalog_log import model
from catalog_log.objects import Definition, MaterializedView, View
from sql import statements as st
from sql.bind import folded, name_of, real_tables
from sql.errors import syntax
from sql.identifiers import needs_quotes
from sql.names import ImageLike
from sql.parse import parse


def query_today(view: View | MaterializedView, image: ImageLike) -> exp.Expression:
    """The query of ``view``.

    A view that its catalog keeps as Spark text says what it said when it was made: what its names meant is not known.
    """
    statement = parse(view.create_sql)
    if not isinstance(statement, st.CreateView):
        raise syntax(None, None, "its statement makes no view")
    if isinstance(view.query, Definition):
        _called_today(statement.query, view.query, image)
    return statement.query


def _called_today(tree: exp.Expression, definition: Definition, image: ImageLike) -> None:
    meant = {each.name: each for each in definition.references}
    moved = set()
    for table in real_tables(tree):
        name = name_of(table)
        reference = meant.get(name.parts)
        item = None if reference is None else image.item(reference.relation_id)
        schema = None if item is None else image.get(model.SCHEMAS, item.schema_id)
        if schema is None or (schema.name, item.name) == (reference.schema, name.last):
            continue
        if table.args.get("alias") is None:
            table.set("alias", exp.TableAlias(this=_identifier(name.last)))
            moved.add((reference.schema, name.last))
        table.set("this", _identifier(item.name))
        table.set("db", _identifier(schema.name))
        table.set("catalog", None)
    for column in [x for x in tree.find_all(exp.Column) if x.args.get("db") is not None]:
        if tuple(folded(column.args[part]) for part in ("db", "table")) in moved:
            column.set("db", None)
            column.set("catalog", None)


def _identifier(name: str) -> exp.Identifier:
    return exp.to_identifier(name, quoted=needs_quotes(name))
