"""COPY: into which columns rows go, what the others get, and what a table that is copied out is asked.  Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from catalog_log.objects import MATERIALIZED_VIEW, SEQUENCE, SOURCE, VIEW, WEBHOOK, Column, Item, Table, is_table
from journal.errors import InvalidUsage
from journal.timestamps import CatalogTs
from sql.objects.names import ImageLike, Names, SystemRelation, column_types, find, relation
from sql.objects.uniques import Unique, uniques_of
from sql.objects.watched import Answers, Watched
from sql.statements.insert import default_slot, no_column_of, source_hint
from sql.statements.plans import InsertPlan, SelectPlan
from sql.statements.select import plan_select
from sql.syntax import statements as st
from sql.syntax.cursor import Cursor
from sql.syntax.statement import KIND_WORDS
from trees.budget import bounded
from trees.errors import unsupported


@dataclass(frozen=True)
class CopyPlan:
    """Rows with ``columns``, in their order, become rows of ``table`` by ``made`` (an INSERT of a query that gave
    them); ``kept`` gives those of them that its WHERE keeps.  ``uniques`` are its constraints.  ``answers`` is what the
    catalog said meanwhile."""

    table: Table
    columns: tuple[Column, ...]
    made: InsertPlan
    kept: SelectPlan | None
    uniques: tuple[Unique, ...]
    answers: Answers


@bounded
def plan_copy(s: st.CopyFrom, image: ImageLike, names: Names) -> CopyPlan:
    """Raises 42P01, 42809, 42501, 42703, 42701, 42P10, and the errors of what stands behind WHERE."""
    watched = Watched(image)
    table = _target(s.table, watched, names)
    chosen = _chosen(s, table, s.columns)
    types = tuple(column_types(table).values())
    places = [table.columns.index(column) for column in chosen]
    defaults = {i: default_slot(table, i, kind) for i, kind in enumerate(types) if i not in places}
    kept = None if s.where is None else _kept(s.where, table, watched, names)
    at = CatalogTs(watched.upper - 1)
    made = InsertPlan(table, types, {}, at, query_columns=tuple(places), defaults=defaults)
    return CopyPlan(table, tuple(chosen), made, kept, uniques_of(table, watched), watched.answers)


def _target(name: st.Name, image: ImageLike, names: Names) -> Table:
    found = find(image, names, name)
    if found is None:
        relation(image, names, name)  # which says so
    if isinstance(found, SystemRelation):
        raise InvalidUsage(f'permission denied for table "{name.last}"', sqlstate="42501")
    if not is_table(found):
        hint = source_hint(found) if found.kind in (SOURCE, WEBHOOK) else "write to the tables that it reads"
        word = KIND_WORDS.get(found.kind, found.kind)
        raise InvalidUsage(f'cannot copy to {word} "{found.name}"', sqlstate="42809", hint=hint)
    return found


def _chosen(s: st.Copy, item: Item, named: Sequence[str] | None) -> list[Column]:
    """The columns that are copied, in their order."""
    by_name = {column.name: column for column in item.columns}
    chosen: list[Column] = list(item.columns)
    if named is not None:
        chosen = []
        for name in named:
            if name not in by_name:
                raise no_column_of(item, name)
            if by_name[name] in chosen:
                raise InvalidUsage(f'column "{name}" specified more than once', sqlstate="42701")
            chosen.append(by_name[name])
    check_forced(s.options, [column.name for column in chosen], item)
    return chosen


def check_forced(options: st.CopyOptions, names: Sequence[str], item: Item | None = None) -> None:
    """42703 and 42P10 where an option names a column that is not copied."""
    known = names if item is None else [column.name for column in item.columns]
    for option in ("force_quote", "force_not_null", "force_null"):
        for name in getattr(options, option) or ():
            if name not in known and item is not None:
                raise no_column_of(item, name)
            if name not in known:
                raise InvalidUsage(f'column "{name}" does not exist', sqlstate="42703")
            if name not in names:
                told = f'{option.upper()} column "{name}" not referenced by COPY'
                raise InvalidUsage(told, sqlstate="42P10")


def _kept(where: str, table: Table, image: ImageLike, names: Names) -> SelectPlan:
    """Over rows of ``table``: those that ``where`` keeps."""
    c = Cursor(f"SELECT * FROM _ WHERE {where}")
    c.parse_query()  # what is no expression is refused with its own text
    tree = Cursor(f"SELECT * FROM _ WHERE ({where}\n)").parse_query()
    try:
        assert isinstance(tree, exp.Select)
        if any(value for key, value in tree.args.items() if key not in ("expressions", "from_", "where", "kind")):
            raise c.error()
        if tree.args["where"].find(exp.Select, exp.Subquery, exp.Exists):
            raise unsupported("a subquery in COPY FROM WHERE", "copy into another table first")
        schema = image.get("schemas", table.schema_id)
        named = exp.to_table(table.name)
        named.set("this", exp.to_identifier(table.name, quoted=True))
        if schema is not None:
            named.set("db", exp.to_identifier(schema.name, quoted=True))
        tree.args["from_"].set("this", named)
        plan = plan_select(tree, image, names)
    except InvalidUsage as error:
        error.position = None  # it counts in a text that the client never wrote
        raise
    if plan.draws or plan.kind == "constant" or plan.params:
        raise unsupported("a parameter or a sequence's value in COPY FROM WHERE")
    return plan


def query_of(s: st.CopyTo, image: ImageLike, names: Names) -> tuple[str, str | None]:
    """What a table that is copied out is asked, and its id, if it has one.  Raises 42P01, 42809, 42703, 42701."""
    assert s.table is not None
    found = find(image, names, s.table)
    if found is None:
        relation(image, names, s.table)
    if not isinstance(found, SystemRelation):
        assert isinstance(found, Item)
        if found.kind in (VIEW, MATERIALIZED_VIEW, SEQUENCE):
            hint = None if found.kind == SEQUENCE else "Try the COPY (SELECT ...) TO variant."
            word = KIND_WORDS.get(found.kind, found.kind)
            raise InvalidUsage(f'cannot copy from {word} "{found.name}"', sqlstate="42809", hint=hint)
        relation(image, names, s.table)
        chosen = [column.name for column in _chosen(s, found, s.columns)]
    else:
        chosen = list(s.columns or ())
    item_id = found.id if isinstance(found, Item) else None
    outputs = ", ".join(map(_quoted, chosen)) or "*"
    return f"SELECT {outputs} FROM {'.'.join(map(_quoted, s.table.parts))}", item_id


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
