"""An index: an arrangement of a relation by some of its columns, kept by a cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from catalog_log.objects.asked import own_columns
from catalog_log.objects.item import Audience, Column, Item, Maintained, Record, required


@dataclass(frozen=True, kw_only=True)
class Index(Maintained):
    kind = word = "index"
    plural, listed = "indexes", ("on", "cluster", "key")
    belongs = True
    absent = "42704", "SHOW INDEXES lists those that there are"
    unread = "an index is used by itself where it helps"

    relation_id: str
    key: tuple[str, ...]
    """The columns in order, each by the name that engines know it by (:attr:`Column.stored_as`)."""
    constraint: str | None = None
    """:data:`PRIMARY` or :data:`UNIQUE` of one that keeps a constraint of its table, which is called as it is: no two
    rows have the same values in its columns, none of which is NULL."""
    since: str | None = None
    """Of a constraint, while somebody looks whether there are rows that do not keep it: what tells this time from any
    other.  Rows that are written keep it already."""

    @property
    def depends_on(self) -> tuple[str, ...]:
        return (self.relation_id,)

    @property
    def audience(self) -> Audience:
        return Audience.ITS_CLUSTER

    def with_ids(self, now: Callable[[str], str], spark: Callable[[str], str]) -> Index:
        return replace(super().with_ids(now, spark), relation_id=now(self.relation_id))

    def fields(self) -> dict[str, Any]:
        options = {_CONSTRAINT: self.constraint, _SINCE: self.since}
        options = {name: said for name, said in options.items() if said is not None}
        return {"index_columns": self.key, "options": options}

    @classmethod
    def of_record(cls, head: tuple[str, str, str, str], columns: tuple[Column, ...], record: Record) -> Index:
        return cls(
            *head, relation_id=record["depends_on"][0], key=tuple(record["index_columns"]),
            cluster_id=required(record["cluster_id"]), constraint=record["options"].get(_CONSTRAINT),
            since=record["options"].get(_SINCE),
        )  # fmt: skip


PRIMARY, UNIQUE = "primary key", "unique"

_CONSTRAINT, _SINCE = "constraint", "since"
"""The options of its record that say which, and since when rows are looked at for it."""


def key_names(index: Index, relation: Item | None) -> tuple[str, ...]:
    """What the columns of an index are called now."""
    now = {} if relation is None else {column.stored_as: column.name for column in own_columns(relation)}
    return tuple(now.get(column, column) for column in index.key)
