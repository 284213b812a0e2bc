"""A typed query over system relations as a plan: what is in FROM, and what its notes say that names mean.  Pure.

Promises: :func:`plan_of` gives the plan of a tree that :mod:`sql.system.queries` typed.  Its
:class:`~plan.relations.Get` are called ``schema.relation``, and have the relation's columns and behind them
:data:`~sql.system.scope.HIDDEN`, where it has that.  Calls of functions are still Postgres's
(:mod:`sql.system.scalars`).  42803 and 42P10 as Postgres has them, 0A000 for what no plan says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from journal.errors import InvalidUsage
from plan import relations as r
from plan import scalars as s
from plan.types import INT8, Row
from sql.algebra.queries import Condition, Planner
from sql.algebra.scope import NotGrouped, NotPlanned, Rows, Source, Unsorted
from sql.system.calls import output_name
from sql.system.carriers import as_carried, carrier
from sql.system.exact import exact
from sql.system.notes import COLUMNS, MEANS, NAMED, OUTPUT, READS, RELATION, STAR, TYPED, USING
from sql.system.operators import compared
from sql.system.rows import makes_rows, rows_of
from sql.system.scalars import SystemScalars
from sql.system.scope import HIDDEN, Columns, Place
from sql.system.types import PgType
from trees.errors import grouping, unsupported
from trees.nodes import position, reads_itself, unnest


def plan_of(tree: exp.Expression, columns: Columns, params: Mapping[int, PgType]) -> r.Query:
    """The plan of a typed ``tree``, whose outputs are ``columns``."""
    planner = SystemPlanner({}, {number: carrier(kind) for number, kind in params.items()})
    try:
        relation = exact(planner.query(tree, None))
    except NotPlanned as why:
        raise unsupported(f"{why} in a query over system relations") from None
    finally:
        del planner.scalars  # or it and they would hold each other (:mod:`trees.acyclic`)
    return r.Query(relation, tuple(name for name, _ in columns))


@dataclass
class SystemPlanner(Planner):
    def __post_init__(self) -> None:
        self.scalars = SystemScalars(self.query, self.params)
        self.called: dict[str, tuple[str, Columns]] = {}
        """What relations are called, and their columns, by the names of their sources."""

    # -- whole queries ------------------------------------------------------------------------------------------------

    def _body(self, node: exp.Expression, outer: Rows | None) -> r.Relation:
        if isinstance(node, exp.Values):
            return self._tail(node, self._values(node, outer), outer)
        return super()._body(node, outer)

    def _named_queries(self, with_: exp.With, outer: Rows | None) -> list[tuple[str, r.Relation, bool]]:
        values = []
        for cte in with_.expressions:
            name, kinds = cte.meta[NAMED], _kinds(cte.meta[COLUMNS])
            self.named[name] = (), kinds
            recursive = bool(with_.args.get("recursive")) and reads_itself(cte)
            value = self.query(cte.this, outer)
            values.append((name, _as_kinds(value, kinds), recursive))
        return values

    def _set_operation(self, node: exp.SetOperation, outer: Rows | None) -> r.Relation:
        """A chain of them is as long as it likes."""
        chain = [node]
        while isinstance(chain[-1].this, exp.SetOperation) and chain[-1].this.args.get("with_") is None:
            chain.append(chain[-1].this)
        kinds = _kinds(node.meta[COLUMNS])
        found = _as_kinds(self.query(chain[-1].this, outer), kinds)
        for each in reversed(chain):
            right = _as_kinds(self.query(each.expression, outer), kinds)
            kind = {exp.Union: "union", exp.Except: "except", exp.Intersect: "intersect"}[type(each)]
            found = r.SetOp(kind, not each.args.get("distinct"), found, right)
        return self._tail(node, found, outer)

    def _of_outputs(
        self, node: exp.Expression, found: r.Relation, outer: Rows | None, values: Sequence[s.Scalar]
    ) -> Rows:
        return Rows((_source(node),), found.columns, outer)

    def _place(self, node: exp.Expression) -> int | None:
        return node.meta.get(OUTPUT)

    def _limit(self, clause: exp.Expression, rows: Rows) -> s.Scalar | None:
        value = clause.args.get("expression") or clause.args.get("count")
        if isinstance(value, (exp.Var, exp.Null)) or isinstance(value, exp.Column):  # ALL
            return None
        return as_carried(self.scalars.of(value, rows), INT8)

    # -- FROM ---------------------------------------------------------------------------------------------------------

    def _kind(self, join: exp.Join) -> tuple[str, Condition | None]:
        using = join.meta.get(USING)
        if using is None:
            return super()._kind(join)

        def condition(rows: Rows) -> s.Scalar:
            pairs = []
            for each in using:
                left, right = (self.scalars.meaning(side, rows) for side in each.meaning.sides)
                pairs.append(compared("=", as_carried(left, carrier(each.kind)), as_carried(right, carrier(each.kind))))
            made = pairs[0]
            for each in pairs[1:]:
                made = compared("and", made, each)
            return made

        return (join.side or "").lower() or "inner", condition

    def _sees_left(self, source: exp.Expression) -> bool:
        """Functions do, without a word."""
        if isinstance(source, exp.Table):
            return not isinstance(source.this, exp.Identifier)
        lateral = isinstance(source, exp.Subquery) and bool(source.args.get("lateral"))
        return lateral or isinstance(source, (exp.Lateral, exp.Unnest))

    def _one_source(self, node: exp.Expression, outer: Rows | None) -> tuple[r.Relation, tuple[Source, ...]]:
        if isinstance(node, exp.Paren):
            return self._source(node.this, outer)
        if isinstance(node, exp.Subquery) and not isinstance(node.this, (exp.Query, exp.Values)):
            return self._source(node.this, outer)
        if isinstance(node, exp.Lateral) and isinstance(node.this, exp.Table) and RELATION in node.this.meta:
            return self._one_source(node.this, outer)
        if RELATION not in node.meta:
            raise NotPlanned("this in FROM")
        found = self._relation(node, outer)
        kinds = _kinds(node.meta[COLUMNS])
        if READS not in node.meta:
            found = _as_kinds(found, kinds)
        source = Source(f"r{node.meta[RELATION]}", 0, tuple(map(str, range(len(found.columns)))))
        self.called[source.alias] = node.alias or _name(node), node.meta[COLUMNS]
        return found, (source,)

    def _relation(self, node: exp.Expression, outer: Rows | None) -> r.Relation:
        if READS in node.meta:
            return node.meta[READS]
        if NAMED in node.meta:
            return r.Named(node.meta[NAMED], self.named[node.meta[NAMED]][1])
        inner = node.this if isinstance(node, (exp.Lateral, exp.Table)) else node
        while isinstance(inner, exp.Dot):
            inner = inner.expression
        if isinstance(inner, (exp.Subquery, exp.Query, exp.Values)):
            return self.query(inner, outer)
        numbered = bool(node.args.get("ordinality") or inner.args.get("offset"))
        return self._function(inner, numbered, outer)

    def _function(self, node: exp.Expression, numbered: bool, outer: Rows | None) -> r.Relation:
        """A call in FROM: its rows, or its one value."""
        rows = Rows(parent=outer)
        if isinstance(node, exp.Unnest):
            items = [self.scalars.of(each, rows) for each in node.expressions]
        elif makes_rows(node):
            items = [self.scalars.items(node, rows)]
        else:
            outputs = (self.scalars.of(node, rows), *((s.Literal(INT8, False, "1"),) if numbered else ()))
            return r.Project(r.UNIT, outputs)
        found = rows_of(r.UNIT, items, numbered)
        values = found.values
        if len(values) == 1 and isinstance(values[0].type, Row):
            values = [s.field(values[0], name) for name, _ in values[0].type.fields]
        if numbered:
            values = [*values, found.relation.column(len(found.relation.columns) - 1)]
        return r.Project(found.relation, tuple(values))

    def _values(self, node: exp.Values, outer: Rows | None) -> r.Relation:
        kinds = _kinds(node.meta[COLUMNS])
        rows = Rows(parent=outer)
        made = tuple(
            tuple(as_carried(self.scalars.of(v, rows), k.type) for v, k in zip(row.expressions, kinds, strict=True))
            for row in node.expressions
        )
        return r.Constant(made)

    # -- SELECT -------------------------------------------------------------------------------------------------------

    def _select(self, select: exp.Select, outer: Rows | None) -> r.Relation:
        try:
            return super()._select(select, outer)
        except NotGrouped as error:
            raise self._not_grouped(select, outer, error.position) from None
        except Unsorted:
            told = "for SELECT DISTINCT, ORDER BY expressions must appear in select list"
            raise InvalidUsage(told, sqlstate="42P10", position=position(select.args["order"])) from None

    def _not_grouped(self, select: exp.Select, outer: Rows | None, place: int) -> InvalidUsage:
        _, sources = self._from(select, outer)
        source = next(each for each in sources if each.start <= place < each.start + len(each.names))
        alias, columns = self.called[source.alias]
        names = [name for name, _ in columns] + [HIDDEN]
        told = f'column "{alias}.{names[place - source.start]}" must appear in the GROUP BY clause or be used in an ' \
               "aggregate function"
        number, at = int(source.alias[1:]), place - source.start
        named = [n for n in select.find_all(exp.Column) if n.meta.get(MEANS) == Place(number, at)]
        return grouping(told, position(named[0]) if named else None)

    def _names(self, select: exp.Select) -> list[str]:
        return [name for name, _ in select.meta[COLUMNS]]

    def _outputs(
        self, select: exp.Select, relation: r.Relation, rows: Rows, values: list[s.Scalar]
    ) -> r.Relation:
        calls = [call_ for each in select.expressions for call_ in _calls_of_rows(each)]
        if calls:
            made = rows_of(relation, [self.scalars.items(each, rows) for each in calls], False)
            self.scalars.made.update(zip(map(id, calls), made.values, strict=True))
            relation = made.relation
        kinds = _kinds(select.meta[COLUMNS])
        for each in select.expressions:
            values += self._output(each, rows)
        values[:] = [as_carried(value, kind.type) for value, kind in zip(values, kinds, strict=True)]
        return relation

    def _output(self, node: exp.Expression, rows: Rows) -> list[s.Scalar]:
        if STAR in node.meta:
            return [as_carried(self.scalars.meaning(e.meaning, rows), carrier(e.kind)) for e in node.meta[STAR]]
        if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Star):
            row = self.scalars.of(node.this, rows)
            return [s.field(row, name) for name, _ in node.this.meta[TYPED].fields]
        return [self.scalars.of(node.unalias(), rows)]

    def _more(self, select: exp.Select, rows: Rows, values: Sequence[s.Scalar]) -> list[s.Scalar]:
        """What DISTINCT ON names."""
        on = select.args["distinct"].args.get("on") if select.args.get("distinct") is not None else None
        if on is None:
            return []
        keys = unnest(on).expressions or [unnest(on)]
        places = [self._place(each) for each in keys]
        return [self.scalars.of(e, rows) if p is None else values[p] for e, p in zip(keys, places, strict=True)]

    def _first_of_each(
        self,
        select: exp.Select,
        relation: r.Relation,
        kept: Sequence[s.Scalar],
        width: int,
        order: Sequence[s.Sort],
        rows: Rows,
    ) -> r.Relation:
        outputs, keys = list(kept[:width]), tuple(kept[width + len(order) :])
        sorted_by = kept[width : width + len(order)]
        sorts = tuple(s.Sort(key, e.descending, e.nulls_first) for key, e in zip(sorted_by, order, strict=True))
        number = s.Aggregate(INT8, False, "row_number", ())
        numbered = r.Window(relation, (s.WindowCall(INT8, False, number, keys, sorts, None),))
        first = compared("=", numbered.column(len(relation.columns)), s.number(1))
        found = r.Project(r.Filter(numbered, first), (*outputs, *(each.key for each in sorts)))
        places = [found.column(width + at) for at in range(len(sorts))]
        by = [s.Sort(key, e.descending, e.nulls_first) for key, e in zip(places, sorts, strict=True)]
        return r.Project(self._top(select, found, by, rows), tuple(found.column(place) for place in range(width)))


def _source(node: exp.Expression) -> Source:
    return Source(f"r{node.meta[RELATION]}", 0, tuple(map(str, range(len(node.meta[COLUMNS])))))


def _kinds(columns: Columns) -> tuple[r.Kind, ...]:
    return tuple(r.Kind(carrier(kind), True) for _, kind in columns)


def _as_kinds(found: r.Relation, kinds: Sequence[r.Kind]) -> r.Relation:
    """``found``, each of whose columns is of its kind."""
    if all(one.type == other.type for one, other in zip(found.columns, kinds, strict=True)):
        return found
    made = r.Project(found, tuple(as_carried(found.column(at), kind.type) for at, kind in enumerate(kinds)))
    if all(one.type == other.type for one, other in zip(made.columns, kinds, strict=True)):
        return made
    return r.Project(made, tuple(s.Column(kind.type, True, at) for at, kind in enumerate(kinds)))  # numbers alone


def _name(node: exp.Expression) -> str:
    return node.name if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier) else output_name(node)


def _calls_of_rows(node: exp.Expression) -> list[exp.Expression]:
    """The calls in an output that make rows, none within another, without those in subqueries."""
    if isinstance(node, exp.Query):
        return []
    if makes_rows(node):
        return [node]
    return [found for each in node.iter_expressions() for found in _calls_of_rows(each)]
