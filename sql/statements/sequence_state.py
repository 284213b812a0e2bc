"""``SELECT last_value, is_called FROM s``: a sequence where a relation is read.  Pure.

In Postgres a sequence is a relation of one row.  Here how far it has come is in the catalog, and a relation of the
system's shows that: so that is what such a query reads.
"""

from __future__ import annotations

from sqlglot import exp

from catalog_log.objects import Sequence
from journal.errors import InvalidUsage
from sql.binding.bind import name_of, real_tables
from sql.objects.names import ImageLike, Names, find

_COLUMNS = ("last_value", "log_cnt", "is_called")


def states_read(ast: exp.Expression, image: ImageLike, names: Names) -> exp.Expression:
    """``ast`` with what the sequences say that it reads in their places; itself where it reads none."""
    found = []
    for place, table in enumerate(_tables(ast)):
        try:
            item = find(image, names, name_of(table))
        except InvalidUsage:
            continue  # which is told of the query as it stands
        if isinstance(item, Sequence):
            found.append((place, item))
    if not found:
        return ast
    made = ast.copy()
    tables = _tables(made)
    for place, item in found:
        _put_state(tables[place], item)
    return made


def _tables(ast: exp.Expression) -> list[exp.Table]:
    return [table for table in real_tables(ast) if isinstance(table.this, exp.Identifier)]


def _put_state(table: exp.Table, item: Sequence) -> None:
    alias = table.args.get("alias") or exp.TableAlias(this=exp.to_identifier(item.name, quoted=True))
    columns = [exp.column(exp.to_identifier(name, quoted=True)) for name in _COLUMNS]
    of = exp.EQ(this=exp.column(exp.to_identifier("id", quoted=True)), expression=exp.Literal.string(item.id))
    state = exp.select(*columns).from_(exp.table_("sequences", db="tm_catalog")).where(of)
    made = exp.Subquery(this=state, alias=alias)
    if joins := table.args.get("joins"):
        made.set("joins", joins)
    table.replace(made)
