"""Which keys of its tables a query can see, as far as its plan tells.  Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from catalog_log.objects import PRIMARY, Table
from collection.columns import sql_type
from collection.ordered_keys import Bounds
from lower.lookup.key_ranges import Key, apart, ranges_of
from lower.lookup.portable import Form
from lower.lookup.seen import Place, places_read
from plan import relations as r
from sql.objects.names import ImageLike
from sql.objects.uniques import Unique, uniques_of
from values.types import SqlType


@dataclass(frozen=True)
class Seen:
    """Of a table each place where a query reads it: some constraints, with what is asked of the rows there."""

    table_id: str
    places: tuple[tuple[tuple[Key, ...], tuple[Form, ...]], ...]

    def ranges(self, params: Sequence[object | None], usable: Callable[[str], bool]) -> tuple[Bounds, ...] | None:
        """The keys of all rows that are seen, by constraints whose ids are ``usable``; ``None``: of all rows, or of
        rows that have none."""
        found: dict[str, list[Bounds]] = {}
        for keys, conditions in self.places:
            each = [(key.owner, ranges_of(key, conditions, params)) for key in keys if usable(key.owner)]
            told = [(owner, ranges) for owner, ranges in each if ranges is not None]
            if not told:
                return None
            owner, best = max(told, key=lambda pair: pair[1].narrow)
            found.setdefault(owner, []).extend(best.bounds)
        return tuple(chain.from_iterable(map(apart, found.values())))


def keys_seen(plan: r.Relation, params: Mapping[int, SqlType], image: ImageLike) -> tuple[Seen, ...]:
    """Of the tables that ``plan`` reads by conditions on keys wherever it reads them; any other it reads as a whole."""
    places = places_read(plan, params)
    by_table: dict[str, list[Place]] = {}
    for each in places or ():
        by_table.setdefault(each.item_id, []).append(each)
    found = []
    for item_id, of in by_table.items():
        table = image.item(item_id) if all(each.conditions for each in of) else None
        if isinstance(table, Table):
            uniques = [each for each in uniques_of(table, image) if each.ordered and each.index.since is None]
            uniques.sort(key=lambda each: each.index.constraint != PRIMARY)
            with_keys = [_of_place(each, uniques) for each in of]
            if all(keys for keys, _ in with_keys):
                found.append(Seen(item_id, tuple(with_keys)))
    return tuple(found)


def _of_place(place: Place, uniques: Sequence[Unique]) -> tuple[tuple[Key, ...], tuple[Form, ...]]:
    """The constraints of whose first column something is asked there; what says nothing of any column of theirs is
    left out."""
    at = {name: number for number, name in enumerate(place.names)}
    named = {number for each in place.conditions for number in _columns(each)}
    keys = []
    for each in uniques:
        columns = tuple([at[name] for name in each.stored_as if name in at])
        if len(columns) == len(each.columns) and columns[0] in named:
            kinds = tuple([sql_type(column.type) for column in each.columns])
            keys.append(Key(each.index.id, kinds, columns, each.index.constraint == PRIMARY))
    of_keys = {column for key in keys for column in key.places}
    return tuple(keys), tuple([each for each in place.conditions if not of_keys.isdisjoint(_columns(each))])


def _columns(form: object) -> set[int]:
    found, stack = set(), [form]
    while stack:
        each = stack.pop()
        if isinstance(each, (list, tuple)):
            if len(each) == 2 and each[0] == "col":
                found.add(each[1])
            else:
                stack += each
    return found
