"""ALTER SOURCE … RESET: a source begins anew with the topic that has its topic's name now.  Pure.

What was read of the old topic cannot be read again, and ids are never used twice: so the source, its errors, its
indexes and (with CASCADE) all that depends on it are dropped and made again under new ids, in one proposal, with the
names, definitions and comments that they had.  Controllers are told of drops and creations, as of any others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp

from catalog_log import model, records
from catalog_log.model import Update
from catalog_log.objects import (
    SOURCE,
    Item,
    Source,
    WebhookSource,
    numbered_columns,
)
from catalog_log.settings import keys_of_relation
from journal.errors import InvalidUsage
from sql.binding.bind import id_order
from sql.objects.item_ids import ItemIds
from sql.objects.names import ImageLike, Names
from sql.statements.ddl_comment import column_key, gone_with
from sql.statements.ddl_drop import closure, everything, item_of_kind, told_cascade, told_dependents
from sql.statements.plans import DdlPlan, PlanNotice
from sql.syntax import statements as st
from trees.errors import unsupported
from trees.nodes import parse_spark


def plan_reset(s: st.ResetSource, image: ImageLike, names: Names) -> DdlPlan:
    """The updates.  Raises 42P01, 42809; 2BP01 where other objects depend on the source and CASCADE was not said;
    0A000 for a part of a source."""
    try:
        source = item_of_kind(image, names, s.name, SOURCE)
    except InvalidUsage as error:
        if s.if_exists and error.sqlstate in ("42P01", "3F000"):
            return DdlPlan((), s.tag, (PlanNotice(f"{error.message}, skipping", "00000"),))
        raise
    if isinstance(source, WebhookSource):
        raise unsupported("RESET of a source whose rows are posted", hint="there is no topic to begin anew with")
    if isinstance(source, Source) and source.group:
        whole = image.item(source.group)
        assert whole is not None, f"{source.id} is a part of nothing"
        raise unsupported("resetting a part of a source", hint=f'reset "{whole.name}" instead')
    going, standing = closure(image, [source])
    if standing and not s.cascade:
        raise InvalidUsage(
            f"cannot reset source {s.name} because other objects depend on it",
            sqlstate="2BP01",
            detail=told_dependents(image, standing),
            hint="use ALTER SOURCE … RESET CASCADE to begin the dependent objects anew too",
        )
    notices = told_cascade("reset", standing) if standing else []
    before = [image.item(i) for i in sorted(everything(image, [source]) if standing else going, key=id_order)]
    ids = ItemIds(image)
    anew = {item.id: ids.item() for item in before}
    updates: list[Update] = []
    for item in before:
        updates.append(records.remove(model.ITEMS, item.id))
        updates += gone_with(image, item)
    for item in before:
        made = renamed(item, anew)
        updates.append(records.put(model.ITEMS, made.id, made))
        updates += _comments(image, item, made.id)
        for old, new in zip(keys_of_relation(item.id), keys_of_relation(made.id), strict=True):
            if (setting := image.get(model.SETTINGS, old)) is not None:
                updates.append(records.put(model.SETTINGS, new, setting))
    return DdlPlan((*updates, ids.update()), s.tag, tuple(notices), tuple(anew.values()), tuple(anew))


def renamed(item: Item, anew: Mapping[str, str]) -> Item:
    """``item`` under its new id, naming the new ids of all that has one."""
    return item.with_ids(lambda each: anew.get(each, each), lambda sql: _renamed_query(sql, item.name, anew))


def _renamed_query(sql: str, view: str, anew: Mapping[str, str]) -> str:
    """The query with its relations' identifiers replaced where they stand; nothing else of the text is touched."""
    tree = parse_spark(sql)
    if any(cte.alias in anew for cte in tree.find_all(exp.CTE)):  # of a release that let a CTE be called like an id
        raise unsupported(f'resetting below "{view}", which has a CTE called like an object', hint="drop it first")
    found = []
    for table in tree.find_all(exp.Table):
        if isinstance(table.this, exp.Identifier) and not table.db and table.name in anew:
            found.append((table.this.meta["start"], table.this.meta["end"] + 1, f"`{anew[table.name]}`"))
    for start, end, text in sorted(found, reverse=True):
        sql = sql[:start] + text + sql[end:]
    return sql


def _comments(image: ImageLike, item: Item, new_id: str) -> Iterator[Update]:
    """The comments on ``item`` and its columns, under its new id."""
    numbers = [number for number, _ in numbered_columns(item)]
    keys = [(item.id, new_id), *((column_key(item.id, n), column_key(new_id, n)) for n in numbers)]
    for old, new in keys:
        if (comment := image.get(model.COMMENTS, old)) is not None:
            yield records.put(model.COMMENTS, new, comment)


PLANS = {st.ResetSource: plan_reset}
