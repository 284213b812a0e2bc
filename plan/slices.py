"""Whether a query falls apart by keys, so that a change in its inputs touches only what the same keys give.  Pure.

A query *falls apart* by keys if there are, in each relation that it reads, rows of each key, and what it gives of all
of them is what it gives of the rows of each key put together.  A GROUP BY falls apart by its keys, a window by what it
is PARTITIONed BY, an outer join by what it joins on, DISTINCT by any of its columns.  What changed then touches the
keys of the rows that changed, and the query's own change is the difference between what it gives of all rows of those
keys now and what it gave of them then.

Promises: for the :class:`Slices` of a query ``Q`` and any predicates on the rows of its relations that do not hang on
time and let through every row of the keys touched between two timestamps, ``Q`` over what is let through of the new
contents less ``Q`` over what is let through of the old ones is exactly the change of ``Q``.  (Of a key that was not
touched the same rows are let through both times, so what they give goes away.)  So whoever uses it may always read more
rows than it must.

Relations that are read in a place where no key says which rows are needed are :attr:`Slices.whole`: all of them are
needed, and of a change in them nothing is known here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from plan import relations as r
from plan import scalars as s
from plan.equal import alike, closed, conjuncts, equal_columns, equal_outside, plain
from plan.nodes import Node, walk
from plan.types import Type
from values.datatypes.registry import DATATYPES
from values.types import SqlType


@dataclass(frozen=True)
class Way:
    """One place where a relation is read: which of its rows belong to a key.

    Those whose ``columns`` are the key itself where ``parent`` is ``None``; otherwise those whose ``columns`` are the
    ``parent_columns`` of a row of the key in :attr:`Slices.ways` ``[parent]``, which stands before it.
    """

    item_id: str
    columns: tuple[str, ...]
    keys: int = 0
    """Which keys: those of one number are of one kind, and say the same."""
    parent: int | None = None
    parent_columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class Slices:
    ways: tuple[Way, ...]
    whole: frozenset[str]
    outputs: tuple[int, ...] | None = None
    """The places of the query's own columns that are the key of each of its rows, where they are."""


def slices(relation: r.Relation) -> Slices | None:
    """How ``relation`` falls apart; ``None`` where it does not by anything that is seen here."""
    cut = _Cut()
    try:
        traces = cut.free(relation, ())
    except (_Whole, _TooMany):
        return None
    sliced = {way.item_id for way in cut.ways} - cut.whole
    return Slices(tuple(cut.ways), frozenset(cut.whole), _outputs(cut.ways, traces)) if sliced else None


def _outputs(ways: Sequence[Way], traces: Traces) -> tuple[int, ...] | None:
    if len({way.keys for way in ways}) > 1:
        return None
    places = {(trace.way, trace.column): place for place, trace in traces.items() if trace.always}
    for number, way in enumerate(ways):
        found = [places.get((number, column)) for column in way.columns]
        if way.parent is None and None not in found:
            return tuple(found)
    return None


KEYS_MAX = 8
"""Columns of which keys are made at most: more would only make the search longer."""

STEPS_MAX = 2_000
"""Operators looked at for one query, some 2 µs each: a join may be looked at in several ways, and what is below it in
several ways each time."""


class _Whole(Exception):
    """It does not fall apart so."""


class _TooMany(Exception):
    """More steps than ``STEPS_MAX``."""


class Trace(NamedTuple):
    """A column of a way: what a row has in it is what a row of that relation has, or NULL where not ``always``."""

    way: int
    column: str
    always: bool = True


Traces = Mapping[int, Trace]
"""Of a relation's columns by their places, those that are known."""
Pairs = Sequence[tuple[int, int]]
"""Columns that are equal in every row that counts, by their places."""


@dataclass(frozen=True)
class _Origin:
    """What the wanted columns are to be, in the order of the key."""

    keys: int
    parent: int | None = None
    columns: tuple[str, ...] = ()


_KEYS = frozenset(row.name for row in DATATYPES.values() if row.alike) - {"bpchar"}
"""Types whose values are equal where they are written alike, whatever they stand beside."""


class _Cut:
    """One query's analysis: fills ``ways`` and ``whole``."""

    def __init__(self) -> None:
        self.ways: list[Way] = []
        self.whole: set[str] = set()
        self._kinds: dict[tuple[int, str], Type] = {}
        self._keys = 0
        self._named: dict[str, r.Relation] = {}
        self._steps = 0

    def _step(self) -> None:
        self._steps += 1
        if self._steps > STEPS_MAX:
            raise _TooMany

    # -- by keys of its own choice ------------------------------------------------------------------------------------

    def free(self, relation: r.Relation, equal: Pairs) -> Traces:
        """Slice ``relation`` by any keys.  ``equal``: pairs of its columns that what is above wants equal."""
        self._step()
        match relation:
            case r.Get():
                wanted = [place for place, kind in enumerate(relation.kinds) if _is_key(kind.type)]
                return self._get(relation, self._some(wanted[:KEYS_MAX]), self._root())
            case r.Constant():
                return self._constant(relation)
            case r.Reduce():
                return self._chosen(relation, _grouped_by(relation), equal)
            case r.Window():
                return self._chosen(relation, _partitioned_by(relation), equal)
            case r.Distinct():
                return self._chosen(relation, range(len(relation.columns)), equal)
            case r.SetOp(kind="union", all=True):
                self.free(relation.left, ())
                self.free(relation.right, ())
                return {}
            case r.SetOp():
                return self._chosen(relation, range(len(relation.columns)), equal)
            case r.Join():
                return self._free_join(relation, equal)
            case _:
                return self._through(relation, equal, lambda inner, places, pairs: self.free(inner, pairs))

    def _chosen(self, relation: r.Relation, places: Iterable[int], equal: Pairs) -> Traces:
        """By as many of the columns at ``places`` as it falls apart by: all, or else one."""
        places = [place for place in places if _is_key(relation.columns[place].type)][:KEYS_MAX]
        usable = [place for place in places if self._tries(partial(self.by, relation, (place,), self._root(), equal))]
        for choice in [usable, *([place] for place in usable)]:
            found = self._tried(partial(self.by, relation, tuple(choice), self._root(), equal))
            if found is not None:
                return found
        raise _Whole

    def _free_join(self, join: r.Join, equal: Pairs) -> Traces:
        """By the rows of a side that goes on as it is, or by what both sides are joined on."""
        pairs = _pairs(join, equal)
        found = self._a_side(join, pairs, lambda side: self.free(_sides(join)[side], pairs.within[side]), linked=True)
        if found is None and pairs.across and not join.lateral:
            for choice in [pairs.across, *([pair] for pair in pairs.across)]:
                found = self._tried(partial(self._both, join, choice))
                if found is not None:
                    break
        if found is None:
            found = self._a_side(join, pairs, lambda side: self.free(_sides(join)[side], pairs.within[side]))
        if found is None:
            raise _Whole
        return found

    def _both(self, join: r.Join, across: Pairs) -> Traces:
        """Each side by what it is joined on."""
        root = self._root()
        left = self.by(join.left, tuple(one for one, _ in across), root, ())
        right = self.by(join.right, tuple(other for _, other in across), root, ())
        return self._joined(join, left, right)

    # -- by keys that are given ---------------------------------------------------------------------------------------

    def by(self, relation: r.Relation, wanted: tuple[int, ...], origin: _Origin, equal: Pairs) -> Traces:
        """Slice ``relation`` by its columns at ``wanted``: of keys that are not touched none of its rows is needed."""
        self._step()
        if not wanted:
            raise _Whole
        match relation:
            case r.Get():
                return self._get(relation, wanted, origin)
            case r.Constant():
                return self._constant(relation)
            case r.Named():
                return self.by(self._value(relation), wanted, origin, equal)
            case r.Join():
                return self._join_by(relation, wanted, origin, equal)
            case r.Reduce():
                if not set(wanted) <= set(_grouped_by(relation)):
                    raise _Whole
                inner = [plain(key) for key in relation.keys]
                traces = self.by(relation.input, tuple(inner[place] for place in wanted), origin, ())
                self._inside([*relation.keys, *relation.aggregates], traces)
                always = _grouped_by(relation)
                found = {at: traces[place] for at, place in enumerate(inner) if place in traces}
                return {at: trace if at in always else trace._replace(always=False) for at, trace in found.items()}
            case r.Window():
                if not set(wanted) <= set(_partitioned_by(relation)):
                    raise _Whole
                traces = self.by(relation.input, wanted, origin, ())
                self._inside(relation.calls, traces)
                return traces
            case r.SetOp():
                if any(not alike(relation.left.columns[at].type, relation.right.columns[at].type) for at in wanted):
                    raise _Whole
                left = self.by(relation.left, wanted, origin, ())
                self.by(relation.right, wanted, origin, ())
                return {} if relation.kind == "union" else left
            case _:
                return self._through(
                    relation, equal, lambda inner, places, pairs: self.by(inner, places(wanted), origin, pairs)
                )

    def _get(self, read: r.Get, wanted: tuple[int, ...], origin: _Origin) -> Traces:
        kinds = [read.kinds[place].type for place in wanted]
        if not all(map(_is_key, kinds)):
            raise _Whole
        columns = tuple(read.names[place] for place in wanted)
        number = len(self.ways)
        self.ways.append(Way(read.item_id, columns, origin.keys, origin.parent, origin.columns))
        for place, name in enumerate(read.names):
            self._kinds[number, name] = read.kinds[place].type
        return {place: Trace(number, name) for place, name in enumerate(read.names)}

    def _join_by(self, join: r.Join, wanted: tuple[int, ...], origin: _Origin, equal: Pairs) -> Traces:
        pairs = _pairs(join, equal)

        def by(side: int) -> Traces:
            one = _sides(join)[side]
            places = [_on_side(place, side, join, pairs.across if _is_inner(join) else ()) for place in wanted]
            return self.by(one, self._some(places), origin, pairs.within[side])

        found = self._a_side(join, pairs, by, linked=True) if len(_kept_sides(join)) > 1 else None
        if found is None:
            found = self._a_side(join, pairs, by)
        if found is None:
            raise _Whole
        return found

    # -- what both ask ------------------------------------------------------------------------------------------------

    def _through(self, relation: r.Relation, equal: Pairs, go_on: Callable) -> Traces:
        """Through an operator that makes rows of single rows.  ``go_on`` is given its input, how a choice of columns is
        said of that, and what is equal there."""
        match relation:
            case r.Project():
                inner = [plain(value) for value in relation.outputs]
                if not _reads(relation, self._named):
                    return {}  # it does not change

                def places(wanted: tuple[int, ...]) -> tuple[int, ...]:
                    return self._some([inner[place] for place in wanted])

                pairs = [(inner[a], inner[b]) for a, b in equal if inner[a] is not None and inner[b] is not None]
                traces = go_on(relation.input, places, pairs)
                self._inside(relation.outputs, traces)
                return {at: traces[place] for at, place in enumerate(inner) if place in traces}
            case r.Filter():
                traces = go_on(relation.input, _same, [*equal, *equal_columns(relation.condition)])
                self._inside([relation.condition], traces, certain=True)
                return traces
            case r.Distinct():
                return go_on(relation.input, _same, equal)
            case r.TopK() if relation.limit is None and relation.offset is None:
                traces = go_on(relation.input, _same, equal)
                self._inside(relation.order, traces)
                return traces
            case r.TableFunction():
                width = len(relation.input.columns)

                def within(wanted: tuple[int, ...]) -> tuple[int, ...]:
                    if any(place >= width for place in wanted):
                        raise _Whole
                    return wanted

                pairs = [pair for pair in equal if max(pair) < width]
                traces = go_on(relation.input, within, pairs)
                self._inside([relation.items], traces)
                return traces
            case r.Let() if not relation.recursive:
                self._named[relation.name] = relation.value
                return go_on(relation.body, _same, equal)
            case r.Named():
                return go_on(self._value(relation), _same, equal)
        raise _Whole

    def _a_side(
        self, join: r.Join, pairs: _Pairs, slice_: Callable[[int], Traces], linked: bool = False
    ) -> Traces | None:
        """Slice a side of which every row goes on, and of the other what its rows meet; ``None`` where neither can be.

        ``linked``: also rather than read the other side as a whole.
        """
        for side in _kept_sides(join):
            found = self._tried(partial(self._beside, join, side, pairs, slice_, linked))
            if found is not None:
                return found
        return None

    def _beside(
        self, join: r.Join, side: int, pairs: _Pairs, slice_: Callable[[int], Traces], linked: bool
    ) -> Traces:
        other = _sides(join)[1 - side]
        traces = slice_(side)
        links: dict[int, list[tuple[str, int]]] = {}
        for pair in pairs.across:
            self._link(links, traces, pair[side], other, pair[1 - side])
        others = self._linked(other, links, pairs.within[1 - side] if _is_inner(join) else ())
        if others is None and join.lateral:
            others = self._meets(other, traces)
        if others is None:
            if linked and _reads(other, self._named):
                raise _Whole
            others = self._as_whole(other)
        return self._joined(join, *((traces, others) if side == 0 else (others, traces)))

    def _joined(self, join: r.Join, left: Traces, right: Traces) -> Traces:
        width = len(join.left.columns)
        if join.kind in ("right", "full"):
            left = {place: trace._replace(always=False) for place, trace in left.items()}
        if join.kind in ("left", "full"):
            right = {place: trace._replace(always=False) for place, trace in right.items()}
        found = {**left, **{place + width: trace for place, trace in right.items()}}
        self._inside([join.condition] if join.condition is not None else [], found, certain=True)
        return found

    def _link(
        self, links: dict[int, list[tuple[str, int]]], traces: Traces, mine: int | None, other: r.Relation, theirs: int
    ) -> None:
        """Note that ``other``'s column is equal to one with a trace, if it is: by the way of that."""
        if mine not in traces:
            return
        way, column, _ = traces[mine]
        if alike(self._kinds[way, column], other.columns[theirs].type):
            links.setdefault(way, []).append((column, theirs))

    def _linked(
        self, relation: r.Relation, links: Mapping[int, Sequence[tuple[str, int]]], equal: Pairs = ()
    ) -> Traces | None:
        """Slice ``relation`` by columns that are equal to some of a way, by as many of one way as there can be."""
        for way, found in sorted(links.items(), key=lambda each: -len(each[1])):
            for choice in [found, *([each] for each in found)] if len(found) > 1 else [found]:
                origin = _Origin(self.ways[way].keys, way, tuple(column for column, _ in choice))
                traces = self._tried(partial(self.by, relation, tuple(place for _, place in choice), origin, equal))
                if traces is not None:
                    return traces
        return None

    def _inside(self, scalars: Iterable[Node], traces: Traces, certain: bool = False) -> None:
        """Subqueries in what is worked out of rows with ``traces``.

        ``certain``: rows of which the scalars are not true do not count.
        """
        for scalar in scalars:
            for condition in conjuncts(scalar):
                self._subqueries(condition, traces, certain)

    def _subqueries(self, node: Node, traces: Traces, certain: bool) -> None:
        if isinstance(node, r.Relation):
            if self._meets(node, traces) is None:
                self._as_whole(node)
        elif isinstance(node, s.InRows) and (certain or not node.nullable):
            # Of a NULL among the rows it is unknown of any value whether it is one of them: it must not matter.
            links: dict[int, list[tuple[str, int]]] = {}
            for place, value in enumerate(node.values):
                self._subqueries(value, traces, certain=False)
                self._link(links, traces, plain(value), node.relation, place)
            if self._linked(node.relation, links) is None:
                self._as_whole(node.relation)
        else:
            for part in node.parts():
                self._subqueries(part, traces, certain=False)

    def _meets(self, relation: r.Relation, traces: Traces) -> Traces | None:
        """Slice a relation that sees a row with ``traces`` around it by what it says must be equal to some of that."""
        self._step()
        match relation:
            case r.Filter():
                links: dict[int, list[tuple[str, int]]] = {}
                for mine, outer in equal_outside(relation.condition):
                    self._link(links, traces, outer, relation, mine)
                found = self._linked(relation.input, links, list(equal_columns(relation.condition)))
                if found is not None:
                    self._inside([relation.condition], found, certain=True)
                return found
            case r.Project() | r.Reduce() | r.Distinct() | r.TopK() | r.Window() | r.TableFunction():
                return self._tried(partial(self._meets_below, relation, traces))
        return None

    def _meets_below(self, relation: r.Relation, traces: Traces) -> Traces:
        found = self._meets(relation.input, traces)
        if found is None:
            raise _Whole
        self._inside((part for part in relation.parts() if part is not relation.input), found)
        return {}

    # -- pieces -------------------------------------------------------------------------------------------------------

    def _root(self) -> _Origin:
        self._keys += 1
        return _Origin(self._keys)

    def _some(self, places: Sequence[int | None]) -> tuple[int, ...]:
        if not places or None in places:
            raise _Whole
        return tuple(places)

    def _value(self, read: r.Named) -> r.Relation:
        if read.name not in self._named:
            raise _Whole
        return self._named[read.name]

    def _constant(self, rows: r.Constant) -> Traces:
        """It does not change."""
        for row in rows.rows:
            self._inside(row, {})
        return {}

    def _as_whole(self, relation: r.Relation) -> Traces:
        self.whole |= _reads(relation, self._named)
        return {}

    def _tried(self, slice_: Callable[[], Traces]) -> Traces | None:
        """What ``slice_`` gives; ``None``, and nothing is said of it, where it does not fall apart so."""
        ways, whole, named = len(self.ways), set(self.whole), dict(self._named)
        try:
            return slice_()
        except _Whole:
            del self.ways[ways:]
            self.whole, self._named = whole, named
            return None

    def _tries(self, slice_: Callable[[], Traces]) -> bool:
        """Whether ``slice_`` gives something, of which nothing is kept."""
        ways, whole = len(self.ways), set(self.whole)
        found = self._tried(slice_) is not None
        del self.ways[ways:]
        self.whole = whole
        return found


def _is_key(kind: Type) -> bool:
    return isinstance(kind, SqlType) and kind.name in _KEYS


def _grouped_by(groups: r.Reduce) -> list[int]:
    """The keys that are columns, in every choice of keys."""
    always = set(range(len(groups.keys))).intersection(*groups.sets) if groups.sets is not None else None
    return [
        place for place, key in enumerate(groups.keys)
        if plain(key) is not None and (always is None or place in always)
    ]  # fmt: skip


def _partitioned_by(windows: r.Window) -> list[int]:
    """The columns by which every window falls apart."""
    each = [{plain(value) for value in call.partition} - {None} for call in windows.calls]
    return sorted(set.intersection(*each))


def _same(wanted: tuple[int, ...]) -> tuple[int, ...]:
    return wanted


def _is_inner(join: r.Join) -> bool:
    return join.kind in ("inner", "cross")


def _kept_sides(join: r.Join) -> tuple[int, ...]:
    """The sides of which each row is in a row of the join whatever there is on the other, or may be looked at so."""
    if join.lateral:
        return (0,)
    return {"left": (0,), "right": (1,), "full": ()}.get(join.kind, (0, 1))


def _sides(join: r.Join) -> tuple[r.Relation, r.Relation]:
    return join.left, join.right


@dataclass(frozen=True)
class _Pairs:
    """What is equal in every row of a join that counts, each place counted in its own side."""

    across: Pairs
    """Of the left side, and of the right."""
    within: tuple[Pairs, Pairs]
    """Of one side, where every row of that goes on."""


def _pairs(join: r.Join, equal: Pairs) -> _Pairs:
    width = len(join.left.columns)
    met = list(equal_columns(join.condition)) if join.condition is not None else []
    across = within = closed([*met, *equal])
    if not _is_inner(join):
        across, within = met, equal
    crossing = dict.fromkeys((min(p), max(p) - width) for p in across if min(p) < width <= max(p))
    left = [pair for pair in within if max(pair) < width] if 0 in _kept_sides(join) else []
    right = [(a - width, b - width) for a, b in within if min(a, b) >= width] if 1 in _kept_sides(join) else []
    return _Pairs(list(crossing), (left, right))


def _on_side(place: int, side: int, join: r.Join, across: Pairs) -> int | None:
    """The column of one side that the join's column at ``place`` is, or is equal to."""
    width = len(join.left.columns)
    at = place if place < width else place - width
    if (place >= width) == bool(side):
        return at
    return next((pair[side] for pair in across if pair[1 - side] == at), None)


def _reads(relation: r.Relation, named: Mapping[str, r.Relation] | None = None) -> set[str]:
    """The relations of the catalog that are read in ``relation``."""
    found: set[str] = set()
    todo, seen = [relation], set()
    while todo:
        for node in walk(todo.pop()):
            if isinstance(node, r.Get):
                found.add(node.item_id)
            elif isinstance(node, r.Named) and named and node.name in named and node.name not in seen:
                seen.add(node.name)
                todo.append(named[node.name])
    return found
