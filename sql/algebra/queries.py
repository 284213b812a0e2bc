"""A bound tree as a plan: each clause of a query as the operator that it is.

The order in which Postgres has them: FROM and its joins, WHERE, functions that make rows, GROUP BY, HAVING, window
functions, the outputs, DISTINCT, ORDER BY with LIMIT and OFFSET.  A key of ORDER BY that is no output is one more
output, which goes again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from types import MappingProxyType

from sqlglot import exp

from catalog_log.objects import Column
from catalog_log.objects import Relation as Item
from plan import relations as r
from plan import scalars as s
from plan.columns import outer_columns, own_columns, replaced
from plan.nodes import Node, rewritten
from sql.algebra.grouped import folds, grouped, without_windows
from sql.algebra.made_rows import with_rows
from sql.algebra.scalars import Scalars, sort_of
from sql.algebra.scope import NotPlanned, Rows, Source, Unsorted, beside
from trees.nodes import bare, branches, reads_itself, unnest
from values.types import SqlType, carried, parse_type


def plan_query(tree: exp.Expression, relations: Mapping[str, Item], params: Mapping[int, SqlType]) -> r.Query:
    """The plan of a tree that is bound: relations by their ids in ``relations``.  Raises ``NotPlanned``."""
    planner = Planner(relations, params)
    try:
        relation = planner.query(tree, None)
    finally:
        del planner.scalars  # or it and they would hold each other (:mod:`trees.acyclic`)
    return r.Query(relation, tuple(_output_names(tree)))


Condition = Callable[[Rows], s.Scalar]
"""Of a join, what holds of both rows side by side."""

Columns = Mapping[str, Sequence[Column]]
"""Relations' columns by the relations' ids, each by the name that engines know it by."""


def plan_over(
    tree: exp.Expression, columns: Columns, params: Mapping[int, SqlType] = MappingProxyType({})
) -> r.Query:
    """The plan of a bound tree over relations with ``columns``.  Raises ``NotPlanned``."""
    return plan_query(tree, {i: _Read(i, tuple(each)) for i, each in columns.items()}, params)


def plan_values(values: Sequence[exp.Expression]) -> list[s.Scalar]:
    """Bound expressions that read nothing, as scalars.  Raises ``NotPlanned``."""
    planner = Planner({}, {})
    try:
        return [planner.scalars.of(each, Rows()) for each in values]
    finally:
        del planner.scalars


@dataclass(frozen=True)
class _Read:
    id: str
    columns: tuple[Column, ...]


def _output_names(query: exp.Expression) -> list[str]:
    """What the outputs of ``query`` are called: by the first branch of a set operation."""
    return [each.alias_or_name for each in next(iter(branches(query))).expressions]


@dataclass
class Planner:
    """Makes the relations of one statement.  Of another kind of tree another class says what stands where."""

    relations: Mapping[str, Item]
    params: Mapping[int, SqlType]
    named: dict[str, tuple[tuple[str, ...], tuple[r.Kind, ...]]] = field(default_factory=dict)
    """What WITH queries give, by their names, which are unique in a statement."""

    def __post_init__(self) -> None:
        self.scalars = Scalars(self.query, self.params)

    # -- whole queries ------------------------------------------------------------------------------------------------

    def query(self, node: exp.Expression, outer: Rows | None) -> r.Relation:
        """``node`` as a relation; ``outer`` is the row around it."""
        with_ = node.args.get("with_")
        if with_ is not None:
            return self._with(node, with_, outer)
        return self._body(node, outer)

    def _body(self, node: exp.Expression, outer: Rows | None) -> r.Relation:
        if isinstance(node, (exp.Subquery, exp.Paren)):
            return self._tail(node, self.query(node.this, outer), outer)
        if isinstance(node, exp.SetOperation):
            return self._set_operation(node, outer)
        if isinstance(node, exp.Select):
            return self._select(node, outer)
        raise NotPlanned(f"{type(node).__name__} as a query")

    def _with(self, node: exp.Expression, with_: exp.With, outer: Rows | None) -> r.Relation:
        values = self._named_queries(with_, outer)
        found = self._body(node, outer)
        for name, value, recursive in reversed(values):
            found = r.Let(name, value, found, recursive)
        return found

    def _named_queries(self, with_: exp.With, outer: Rows | None) -> list[tuple[str, r.Relation, bool]]:
        """Each query's name, rows, and whether it reads itself.  From here on they can be read by those names."""
        values = []
        for cte in with_.expressions:
            aliases = [column.name for column in cte.args["alias"].columns]
            names = aliases + _output_names(cte.this)[len(aliases) :]
            recursive = bool(with_.args.get("recursive")) and reads_itself(cte)
            if recursive:
                if cte.this.args.get("with_") is not None:
                    self._named_queries(cte.this.args["with_"], outer)
                first = self.query(cte.this.this, outer)
                self.named[cte.alias] = tuple(names), tuple(k._replace(nullable=True) for k in first.columns)
            value = self.query(cte.this, outer)
            if not recursive:
                self.named[cte.alias] = tuple(names), value.columns
            values.append((cte.alias, value, recursive))
        return values

    def _set_operation(self, node: exp.SetOperation, outer: Rows | None) -> r.Relation:
        left, right = self.query(node.this, outer), self.query(node.expression, outer)
        kind = {exp.Union: "union", exp.Except: "except", exp.Intersect: "intersect"}[type(node)]
        return self._tail(node, r.SetOp(kind, not node.args.get("distinct"), left, right), outer)

    def _tail(self, node: exp.Expression, found: r.Relation, outer: Rows | None) -> r.Relation:
        """ORDER BY, LIMIT and OFFSET of what has no FROM of its own."""
        if not any(node.args.get(key) for key in ("order", "limit", "offset")):
            return found
        values = [found.column(place) for place in range(len(found.columns))]
        rows = self._of_outputs(node, found, outer, values)
        return self._top(node, found, self._sorts(node, rows, values), rows)

    def _of_outputs(
        self, node: exp.Expression, found: r.Relation, outer: Rows | None, values: Sequence[s.Scalar]
    ) -> Rows:
        """What sorts ``found`` sees: the outputs of ``node``."""
        outputs = tuple(zip(_output_names(node), values, strict=True))
        return Rows(kinds=found.columns, parent=outer, outputs=outputs)

    def _sorts(self, node: exp.Expression, rows: Rows, values: Sequence[s.Scalar]) -> list[s.Sort]:
        """The ORDER BY of ``node``, in which a number means the output there."""
        order = node.args.get("order")
        found = []
        for each in order.expressions if order else ():
            place = self._place(each.this)
            key = self.scalars.of(each.this, rows) if place is None else values[place]
            found.append(sort_of(each, key))
        return found

    def _place(self, node: exp.Expression) -> int | None:
        """The output that is meant in GROUP BY or ORDER BY: a number means one."""
        return int(node.this) - 1 if isinstance(node, exp.Literal) and not node.is_string else None

    def _top(self, node: exp.Expression, found: r.Relation, order: Sequence[s.Sort], rows: Rows) -> r.Relation:
        limits = []
        for key in ("limit", "offset"):
            clause = node.args.get(key)
            limits.append(self._limit(clause, rows) if clause is not None else None)
        if not order and limits == [None, None]:
            return found
        return r.TopK(found, tuple(order), *limits)

    def _limit(self, clause: exp.Expression, rows: Rows) -> s.Scalar | None:
        return self.scalars.of(clause.expression, rows)

    # -- FROM ---------------------------------------------------------------------------------------------------------

    def _from(self, select: exp.Select, outer: Rows | None) -> tuple[r.Relation, tuple[Source, ...]]:
        clause = select.args.get("from_")
        if clause is None:
            return r.UNIT, ()
        return self._joined(clause.this, select.args.get("joins") or (), outer)

    def _joined(
        self, first: exp.Expression, joins: Sequence[exp.Join], outer: Rows | None
    ) -> tuple[r.Relation, tuple[Source, ...]]:
        """``first`` and what is joined to it: a comma binds less than JOIN does."""
        groups: list[list[exp.Join]] = [[]]
        starts = [first]
        for join in joins:
            if _is_comma(join):
                groups.append([])
                starts.append(join.this)
            else:
                groups[-1].append(join)
        found: tuple[r.Relation, tuple[Source, ...]] | None = None
        for start, group in zip(starts, groups, strict=True):
            whole = found is not None and any(join.side in ("RIGHT", "FULL") for join in group)
            if found is None or whole:
                made = self._source(start, outer)
            else:
                made = self._join(found, start, "cross", None, outer)
            for join in group:
                made = self._join(made, join.this, *self._kind(join), outer)
            if whole:
                left, right = found, made
                relation = r.Join("cross", left[0], right[0])
                made = relation, beside(left[1], len(left[0].columns), right[1])
            found = made
        return found

    def _join(
        self,
        left: tuple[r.Relation, tuple[Source, ...]],
        source: exp.Expression,
        kind: str,
        on: Condition | None,
        outer: Rows | None,
    ) -> tuple[r.Relation, tuple[Source, ...]]:
        lateral = self._sees_left(source)
        around = Rows(left[1], left[0].columns, outer) if lateral else outer
        right, sources = self._source(source, around)
        said = isinstance(source, exp.Lateral) and kind not in ("right", "full")
        if lateral and not said and not any(each.level == 1 for each in outer_columns(right)):
            right, lateral = replaced(right, _one_out), False  # LATERAL says nothing there, and no engine takes it
        relation = r.Join(kind, left[0], right, None, lateral)
        sources = beside(left[1], len(left[0].columns), sources)
        if on is not None:
            condition = on(Rows(sources, left[0].columns + right.columns, outer))
            relation = r.Join(kind, left[0], right, condition, lateral)
        return relation, sources

    def _sees_left(self, source: exp.Expression) -> bool:
        """Whether what is joined may name the row that it is joined to."""
        return isinstance(source, exp.Lateral)

    def _source(self, node: exp.Expression, outer: Rows | None) -> tuple[r.Relation, tuple[Source, ...]]:
        found = self._one_source(node, outer)
        joins = node.args.get("joins") or ()
        if not joins:
            return found
        for join in joins:
            found = self._join(found, join.this, *self._kind(join), outer)
        return found

    def _kind(self, join: exp.Join) -> tuple[str, Condition | None]:
        """What kind of join it is, and its condition."""
        on = join.args.get("on")
        side = (join.side or "").lower()
        if on is None:
            return side or "cross", None
        return side or "inner", lambda rows: self.scalars.of(on, rows)

    def _one_source(self, node: exp.Expression, outer: Rows | None) -> tuple[r.Relation, tuple[Source, ...]]:
        alias = node.args.get("alias")
        given = [column.name for column in alias.columns] if alias is not None else []

        def called(relation: r.Relation, names: Sequence[str]) -> tuple[r.Relation, tuple[Source, ...]]:
            return relation, (Source(node.alias_or_name, 0, tuple([*given, *names[len(given) :]])),)

        if isinstance(node, exp.Table):
            if node.name in self.named:
                names, kinds = self.named[node.name]
                return called(r.Named(node.name, kinds), names)
            item = self.relations[node.name]
            return called(get(item), [column.name for column in item.columns])
        if isinstance(node, exp.Lateral):
            return called(self.query(node.this, outer), _output_names(node.this))
        if _is_bracket(node):
            return self._source(node.this, outer)
        if isinstance(node, exp.Subquery) and isinstance(bare(node), exp.Query):
            return called(self.query(node, outer), _output_names(node))
        if isinstance(node, exp.Values):
            return called(self._values(node, outer), given)
        if isinstance(node, (exp.Subquery, exp.Paren)):
            return self._source(node.this, outer)
        raise NotPlanned(f"{type(node).__name__} in FROM")

    def _values(self, node: exp.Values, outer: Rows | None) -> r.Relation:
        rows = Rows(parent=outer)
        return r.Constant(tuple(tuple(self.scalars.of(v, rows) for v in row.expressions) for row in node.expressions))

    # -- SELECT -------------------------------------------------------------------------------------------------------

    def _select(self, select: exp.Select, outer: Rows | None) -> r.Relation:
        relation, sources = self._from(select, outer)
        where = select.args.get("where")
        if where is not None:
            condition = self.scalars.of(where.this, Rows(sources, relation.columns, outer))
            relation = r.Filter(relation, condition)
        rows = Rows(sources, relation.columns, outer)
        values: list[s.Scalar] = []
        relation = self._outputs(select, relation, rows, values)
        rows = Rows(sources, relation.columns, outer, tuple(zip(self._names(select), values, strict=True)))
        having = select.args.get("having")
        condition = self.scalars.of(having.this, rows) if having is not None else None
        order = self._sorts(select, rows, values)
        kept = [*values, *(each.key for each in order), *self._more(select, rows, values)]
        kept += [condition] if condition is not None else []
        group = select.args.get("group")
        if group is not None or condition is not None or any(folds(each) for each in kept):
            keys, sets, named = self._keys(group, rows, values)
            relation, kept = grouped(relation, keys, sets, kept, named)
        if condition is not None:
            relation = r.Filter(relation, kept.pop())
        relation, kept = without_windows(relation, kept)
        if self.scalars.lists:
            relation, kept = with_rows(relation, kept)
        return self._finished(select, relation, kept, len(values), order, rows)

    def _more(self, select: exp.Select, rows: Rows, values: Sequence[s.Scalar]) -> Sequence[s.Scalar]:
        """What is worked out beside the outputs and what sorts them."""
        return ()

    def _names(self, select: exp.Select) -> list[str]:
        """What ORDER BY may call the outputs."""
        return [each.alias_or_name for each in select.expressions]

    def _outputs(
        self, select: exp.Select, relation: r.Relation, rows: Rows, values: list[s.Scalar]
    ) -> r.Relation:
        """Fill ``values`` with the outputs; the relation that they are of."""
        values += [self.scalars.of(each.unalias(), rows) for each in select.expressions]
        return relation

    def _keys(
        self, group: exp.Group | None, rows: Rows, values: Sequence[s.Scalar]
    ) -> tuple[tuple[s.Scalar, ...], tuple[tuple[int, ...], ...] | None, dict[int, int]]:
        """What is grouped by, the choices of it where there are several, and which outputs are which key.

        Two outputs of one constant are two keys: each is NULL where only the other is grouped by.
        """
        if group is None:
            return (), None, {}
        keys: list[s.Scalar] = []
        named: dict[int, int] = {}

        def key(node: exp.Expression) -> int:
            place = self._place(node)
            if place in named:
                return named[place]
            made = values[place] if place is not None else self.scalars.of(node, rows)
            constant = place is not None and not any(True for _ in own_columns(made))
            if made not in keys or constant:
                keys.append(made)
            found = len(keys) - 1 if constant else keys.index(made)
            if constant:
                named[place] = found
            return found

        parts = [*group.expressions]
        for word in ("rollup", "cube", "grouping_sets"):
            parts += group.args.get(word) or ()
        chosen = [_sets(unnest(part), key) for part in parts]
        if all(not isinstance(unnest(part), _SETS) for part in parts):
            return tuple(keys), None, named
        sets = tuple(tuple(sorted({place for each in picked for place in each})) for picked in product(*chosen))
        if group.args.get("all") is False:  # ``GROUP BY DISTINCT``
            sets = tuple(dict.fromkeys(sets))
        return tuple(keys), sets, named

    def _finished(
        self,
        select: exp.Select,
        relation: r.Relation,
        kept: Sequence[s.Scalar],
        width: int,
        order: Sequence[s.Sort],
        rows: Rows,
    ) -> r.Relation:
        """The outputs, DISTINCT, and what sorts them: ``kept`` are the outputs, then what is sorted by."""
        outputs = list(kept[:width])
        distinct = select.args.get("distinct") is not None
        if distinct and select.args["distinct"].args.get("on") is not None:
            return self._first_of_each(select, relation, kept, width, order, rows)
        sorts: list[s.Sort] = []
        places = {value: place for place, value in reversed(list(enumerate(outputs)))}
        for sort, key in zip(order, kept[width:], strict=True):
            made = _of_outputs(key, places)
            if made is None:
                if distinct:
                    raise Unsorted("an order of distinct rows by what is no output")
                places[key] = len(outputs)
                outputs.append(key)
                made = s.Column(key.type, key.nullable, places[key])
            sorts.append(s.Sort(made, sort.descending, sort.nulls_first))
        found: r.Relation = r.Project(relation, tuple(outputs))
        if distinct:
            found = r.Distinct(found)
        found = self._top(select, found, sorts, rows)
        if len(outputs) == width:
            return found
        return r.Project(found, tuple(found.column(place) for place in range(width)))

    def _first_of_each(
        self,
        select: exp.Select,
        relation: r.Relation,
        kept: Sequence[s.Scalar],
        width: int,
        order: Sequence[s.Sort],
        rows: Rows,
    ) -> r.Relation:
        """DISTINCT ON, which the binder writes otherwise."""
        raise NotPlanned("DISTINCT ON")


def _one_out(column: s.Column, depth: int) -> s.Column:
    """A column of a relation that stands beside what was around it."""
    out = int(column.level > depth)
    return s.Column(column.type, column.nullable, column.position, column.level - out)


def get(item: Item) -> r.Get:
    """All columns of a relation of the catalog."""
    names = tuple(column.stored_as for column in item.columns)
    return r.Get(item.id, names, tuple(r.Kind(carried(parse_type(c.type)), True) for c in item.columns))


def _is_bracket(node: exp.Expression) -> bool:
    """Whether it is ``(relation JOIN …)``, where a query stands in the relation's place."""
    inner = node.this
    if not isinstance(node, exp.Subquery) or not isinstance(inner, exp.Subquery) or node.alias:
        return False
    return bool(inner.alias or inner.args.get("joins"))


def _is_comma(join: exp.Join) -> bool:
    return not (join.side or join.kind or join.method or join.args.get("on") or join.args.get("using"))


_SETS = (exp.Rollup, exp.Cube, exp.GroupingSets, exp.Tuple)


def _sets(node: exp.Expression, key: Callable[[exp.Expression], int]) -> list[tuple[int, ...]]:
    """The choices of keys that one part of GROUP BY makes."""
    node = unnest(node)
    if isinstance(node, exp.Tuple):
        return [tuple(place for each in node.expressions for place in _sets(each, key)[0])]
    if isinstance(node, exp.GroupingSets):
        return [chosen for each in node.expressions for chosen in _sets(each, key)]
    if isinstance(node, (exp.Rollup, exp.Cube)):
        parts = [_sets(each, key)[0] for each in node.expressions]
        if isinstance(node, exp.Rollup):
            picked = [parts[:count] for count in range(len(parts), -1, -1)]
        else:
            masks = range((1 << len(parts)) - 1, -1, -1)
            picked = [[p for at, p in enumerate(reversed(parts)) if mask >> at & 1] for mask in masks]
            picked = [list(reversed(each)) for each in picked]
        return [tuple(place for part in each for place in part) for each in picked]
    return [(key(node),)]


def _of_outputs(key: s.Scalar, places: Mapping[s.Scalar, int]) -> s.Scalar | None:
    """``key`` as it is worked out of the outputs, ``None`` where it is not."""
    if key in places:
        return s.Column(key.type, key.nullable, places[key])

    def out(node: Node) -> Node | None:
        if isinstance(node, s.Scalar) and node in places:
            return s.Column(node.type, node.nullable, places[node], -1)
        return node if isinstance(node, r.Relation) else None

    made = rewritten(key, out)
    if any(True for _ in own_columns(made)):
        return None
    return _placed(made)


def _placed(node: Node) -> Node:
    if isinstance(node, s.Column) and node.level == -1:
        return s.Column(node.type, node.nullable, node.position)
    return node if isinstance(node, r.Relation) else node.with_parts(_placed)
