"""The change of a query that falls apart by keys (:mod:`plan.slices`), from the rows of those that were touched.

Promises: :meth:`Affected.delta` is the change of the whole query, found from contents of its inputs such that what the
query gives of them is, in the keys that were touched, what it gives of all.  DuckDB is asked.  Raises :class:`Left`
where those are not known or are most of what there is, and where DuckDB is not to be asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from controllers.changes import negated, present
from controllers.compute.operators.given import RESIDENT_ROWS_MAX, Given
from controllers.compute.operators.left import Left
from controllers.compute.operators.operator import NEVER, Called, Explained
from controllers.compute.operators.recompute import taken_away, there
from controllers.compute.operators.whole_query import WholeQuery
from journal.timestamps import DataTs
from plan.slices import Slices

SHARE_MAX = 0.3
"""Of the changes that the inputs hold.  To find out which rows a change touches takes as long as to work out a third of
them (20,000 rows in some hundred groups: 1 ms of 3.5)."""

REST_MAX = 64
"""Changes before it is tried again, after ones that touched most keys."""

Keys = list[pa.ChunkedArray]
"""Rows of keys: an array for each of their columns."""

Contents = dict[str, pa.Table]
"""Relations by their ids, with their columns by their names."""


@dataclass(frozen=True)
class Touched:
    """What a change has touched: ``now`` is enough of the inputs at the later timestamp.

    What the query gives of ``now`` less what it gives of ``then()``, enough of them at the earlier one, is the change.
    Where ``rows`` is not ``None``, so is what is there of the rows that it lets through, which are those of the keys.
    """

    now: Contents
    then: Callable[[], Contents]
    rows: Callable[[pa.Table], pa.Table] | None


class Affected:
    """Of ``query``, over relations with columns of ``names``.

    What floats add up to hangs on the order of rows in their last digits: a query with such is compared with what the
    view holds, not with what DuckDB would find again, so no operator of this kind is made of it.
    """

    held = 0

    def __init__(self, slices: Slices, query: WholeQuery, names: Mapping[str, Sequence[str]]) -> None:
        self._ways = slices.ways
        self._whole = slices.whole
        self._outputs = slices.outputs
        self._query = query
        self._names = names
        self._rests = 0
        self._rest = 1
        self.found = 0
        """How many changes were."""

    def explain(self, gear: str, called: Called) -> Explained:
        """By the columns by which what a change touches is told from what it does not."""
        spark = self._query.spark(gear)
        roots = [(way.item_id, name) for way in self._ways if way.parent is None for name in way.columns]
        # Rows that are told apart by all of their columns are so by those too that their relation has no more.
        keys = dict.fromkeys(key for root in roots if (key := called(*root)) is not None)
        lines = [f"of a small change what it touches, by {', '.join(keys)}"] if keys and spark is None else []
        return Explained(spark, "the view and its inputs are small", lines)

    def delta(self, given: Given, t0: DataTs, t1: DataTs) -> pa.Table:
        if t0 == NEVER:
            raise Left("all of it is new")
        query, engines = self._query, given.engines
        try:
            small = query.small(engines.gear())
            touched = self.between(given, t0, t1)
            now = query.rows(small, engines, touched.now, 1)
            if touched.rows is None:
                parts = [now, query.rows(small, engines, touched.then(), -1)]
            else:
                parts = [touched.rows(now), touched.rows(taken_away(given.output, query.schema))]
        except Left as left:
            query.left(left)
            raise
        query.over()
        self.found += 1
        return pa.concat_tables(parts)

    def restore(self, given: Given, t1: DataTs) -> None:
        """It holds nothing."""

    def accept(self) -> None:
        """It holds nothing."""

    def between(self, given: Given, t0: DataTs, t1: DataTs) -> Touched:
        """What the changes of ``(t0, t1]`` touched."""
        if self._rests:
            self._rests -= 1
            raise Left("most of its keys were touched lately")
        inputs, sources = given.inputs, given.sources
        deltas = {i: sources.table(relation, t0, t1) for i, relation in inputs.items()}
        held = {i: there(relation, relation.resident(t1)) for i, relation in inputs.items()}
        for input_id in self._whole:
            if deltas[input_id].num_rows:
                raise Left(f"a change in {input_id} may be of any row")
        # What is gone may be gone from ``held`` too, and what it was linked to must be found all the same.
        known = {i: pa.concat_tables([held[i], deltas[i]]) if deltas[i].num_rows else held[i] for i in held}
        touched = self._touched(known, deltas)
        wanted = self._wanted(known, touched)
        now, taken, parts = {}, 0, {}
        for input_id, relation in inputs.items():
            ways = [place for place, way in enumerate(self._ways) if way.item_id == input_id]
            if input_id in self._whole or not ways:
                now[input_id] = there(relation, sources.present(relation, t1))
                continue
            lets = [(self._columns_of(place), wanted[place]) for place in ways]
            rows = held[input_id].filter(_any(held[input_id], lets))
            taken += rows.num_rows
            if taken > SHARE_MAX * sum(table.num_rows for table in held.values()):
                self._rests, self._rest = self._rest, min(2 * self._rest, REST_MAX)
                raise Left("most of its keys were touched")
            now[input_id] = there(relation, present(rows, self._names[input_id], RESIDENT_ROWS_MAX))
            parts[input_id] = rows, lets

        self._rest = 1

        def then() -> Contents:
            found = dict(now)
            for input_id, (rows, lets) in parts.items():
                changes = negated(deltas[input_id].filter(_any(deltas[input_id], lets)))
                both = pa.concat_tables([rows, changes])
                found[input_id] = there(inputs[input_id], present(both, self._names[input_id], RESIDENT_ROWS_MAX))
            return found

        return Touched(now, then, self._rows(touched))

    def _rows(self, touched: Mapping[int, Keys]) -> Callable[[pa.Table], pa.Table] | None:
        """Of a table of the query's own columns the rows of keys that were touched."""
        if self._outputs is None:
            return None
        keys, outputs = next(iter(touched.values())), self._outputs
        return lambda table: table.filter(_among(table, outputs, keys))

    def _touched(self, known: Mapping[str, pa.Table], deltas: Mapping[str, pa.Table]) -> dict[int, Keys]:
        """The keys in which something changed, by their numbers; ``known`` are rows of now and of then."""
        by_way: list[list[Keys]] = [[] for _ in self._ways]
        found: dict[int, list[Keys]] = {}
        for place, way in reversed(list(enumerate(self._ways))):
            delta = deltas[way.item_id]
            keys = _put_together([_picked(delta, self._columns_of(place)), *by_way[place]])
            if way.parent is None:
                found.setdefault(way.keys, []).append(keys)
            elif len(keys[0]):
                rows = known[self._ways[way.parent].item_id]
                above = rows.filter(_among(rows, self._columns(way.parent, way.parent_columns), keys))
                by_way[way.parent].append(_picked(above, self._columns_of(way.parent)))
        return {number: _put_together(parts) for number, parts in found.items()}

    def _wanted(self, known: Mapping[str, pa.Table], touched: Mapping[int, Keys]) -> list[Keys]:
        """For each way what its columns are in the rows that belong to ``touched``."""
        found: list[Keys] = []
        rows: dict[int, pa.Table] = {}
        for way in self._ways:
            if way.parent is None:
                found.append(touched[way.keys])
                continue
            if way.parent not in rows:
                table = known[self._ways[way.parent].item_id]
                rows[way.parent] = table.filter(_among(table, self._columns_of(way.parent), found[way.parent]))
            found.append(_picked(rows[way.parent], self._columns(way.parent, way.parent_columns)))
        return found

    def _columns_of(self, place: int) -> list[int]:
        return self._columns(place, self._ways[place].columns)

    def _columns(self, place: int, names: Sequence[str]) -> list[int]:
        known = self._names[self._ways[place].item_id]
        return [known.index(name) for name in names]


def _picked(table: pa.Table, columns: Sequence[int]) -> Keys:
    """The columns there, whole numbers of one width."""
    found = [table.column(place) for place in columns]
    return [each.cast(pa.int64()) if pa.types.is_integer(each.type) else each for each in found]


def _put_together(parts: Sequence[Keys]) -> Keys:
    columns = zip(*parts, strict=True)
    return [pa.chunked_array([chunk for each in column for chunk in each.chunks], column[0].type) for column in columns]


def _among(table: pa.Table, columns: Sequence[int], keys: Keys) -> pa.ChunkedArray:
    """Which rows may have one of ``keys`` in ``columns``: each of their values is in one of them."""
    pairs = zip(_picked(table, columns), keys, strict=True)
    return reduce(pc.and_, (pc.is_in(column, value_set=pc.unique(values)) for column, values in pairs))


def _any(table: pa.Table, lets: Sequence[tuple[Sequence[int], Keys]]) -> pa.ChunkedArray:
    return reduce(pc.or_, (_among(table, columns, keys) for columns, keys in lets))
