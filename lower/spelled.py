"""A plan, or a part of one, as the tree that the binder would have left of it: what every lowering reads.

Promises: :func:`spelled` gives a query whose plan is the one that it was given, but for columns that are merely put in
another order, which need no query of their own; or it raises :class:`NotSpelled`.  Each relation in it has an alias
that nothing else has, no column among them, and every column is named with its relation's: so no name means another
thing further in, whatever the columns of a collection are called.  Pure.

An operator goes into the SELECT of its input where that is what its clause means there (:class:`_Select` says how far a
SELECT has come), else it is over a query in FROM.  What stands in one SELECT is written where it is used, so it may be
written twice; nothing is that gives another value each time, and what a subquery names of the row around it is a column
of a relation there, never an aggregate, which would be the subquery's own.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from itertools import count

from sqlglot import exp

from lower.spelled_scalars import NotSpelled, Scope, Spelling, identifier, ordered
from plan import relations as r
from plan import scalars as s
from plan.calls import is_definite
from plan.columns import moved, names_outside, outer_columns, own_columns
from plan.nodes import Node, walk
from plan.types import NOTHING, is_integer
from trees.budget import bounded
from trees.functions import is_aggregate
from trees.nodes import Ordinality, loose

__all__ = ["NotSpelled", "spelled"]


@bounded
def spelled(relation: r.Relation, names: Sequence[str] | None = None) -> exp.Expression:
    """``relation`` as a query over what its :class:`~plan.relations.Get` name, by their ids and their columns' names.

    Its outputs are called ``names``; where there are none, by names of ours that differ in more than case from any
    other (``c0``, ``c1``… unless a collection has such).  Raises :class:`NotSpelled`, 54001 for what is too deep.
    """
    width = len(relation.columns)
    if width == 0:
        raise NotSpelled("rows without columns")
    if names is not None and len(names) != width:
        raise NotSpelled(f"{len(names)} names of {width} columns")
    speller = _Speller(relation, names or ())
    try:
        return speller.finished(speller.of(relation, None), names)
    finally:
        del speller.scalars  # or it and they would hold each other (:mod:`trees.acyclic`)


class _Stage(IntEnum):
    """The last clause of a SELECT that is said, in the order in which they work."""

    FROM = 0
    WHERE = 1
    GROUP = 2
    HAVING = 3
    WINDOW = 4
    ROWS = 5
    """A function that makes rows is among what the outputs may be."""
    OUTPUTS = 6
    DISTINCT = 7
    TOP = 8
    WHOLE = 9
    """Nothing may be added."""


@dataclass
class _Select:
    """A SELECT under way, or a set operation of two of them."""

    columns: list[exp.Expression]
    """What each column is written as in it."""
    stage: _Stage = _Stage.FROM
    source: exp.Expression | None = None
    joins: list[exp.Join] = field(default_factory=list)
    where: exp.Expression | None = None
    group: exp.Group | None = None
    folds: bool = False
    """Whether all of its rows are one group."""
    having: exp.Expression | None = None
    rows: list[exp.Expression] = field(default_factory=list)
    """Of the columns those that make rows: each is an output once, and by itself."""
    distinct: bool = False
    order: list[tuple[s.Sort, exp.Expression]] = field(default_factory=list)
    limit: exp.Expression | None = None
    offset: exp.Expression | None = None
    ctes: list[exp.CTE] = field(default_factory=list)
    recursive: bool = False
    sides: tuple[type[exp.SetOperation], bool, _Select, _Select] | None = None

    def takes(self, stage: _Stage) -> bool:
        """Whether a clause that works at ``stage`` can be the next one."""
        return self.stage <= stage and not self.ctes and self.sides is None

    @property
    def is_source(self) -> bool:
        return self.takes(_Stage.FROM) and self.source is not None


_SET = {"union": exp.Union, "except": exp.Except, "intersect": exp.Intersect}


class _Speller:
    def __init__(self, relation: r.Relation, names: Sequence[str]) -> None:
        given = set(names)
        ids: set[str] = set()
        self.volatile = False
        for node in walk(relation):
            if isinstance(node, r.Get):
                ids.add(node.item_id)
                given.update(node.names)
            self.volatile = self.volatile or not is_definite(node)
        self._letter = _prefix("c", [each for each in given | ids if each != each.lower()])
        self._aliases = (f"{_prefix('t', given | ids)}{number}" for number in count())
        self._taken = {each.lower() for each in given | ids}
        self._called: dict[str, str] = {}
        """What WITH queries are called, by what their :class:`~plan.relations.Let` calls them."""
        self.scalars = Spelling(lambda inner, scope: self.finished(self.of(inner, scope)))

    # -- queries of selects -------------------------------------------------------------------------------------------

    def finished(self, select: _Select, names: Sequence[str] | None = None) -> exp.Expression:
        """``select`` as a query whose outputs are called ``names``."""
        made = self._set_operation(select, names) if select.sides is not None else self._written(select, names)
        if select.order:
            made.set("order", exp.Order(expressions=[ordered(_key(select, each), sort) for sort, each in select.order]))
        if select.limit is not None:
            made.set("limit", exp.Limit(expression=select.limit))
        if select.offset is not None:
            made.set("offset", exp.Offset(expression=select.offset))
        if select.ctes:
            made.set("with_", exp.With(expressions=select.ctes, recursive=select.recursive or None))
        return made

    def _written(self, select: _Select, names: Sequence[str] | None) -> exp.Select:
        outputs = select.columns or [exp.Literal.number(1)]
        called = names or self._names(len(outputs))
        if select.folds and select.having is None and not any(map(_folds, [*outputs, *_keys(select)])):
            select.having = exp.true()  # or it would be a SELECT of rows
        made = exp.Select(
            expressions=[
                exp.Alias(this=loose(each), alias=identifier(name)) for each, name in zip(outputs, called, strict=True)
            ]
        )
        if select.source is not None:
            made.set("from_", exp.From(this=select.source))
        if select.joins:
            made.set("joins", select.joins)
        if select.where is not None:
            made.set("where", exp.Where(this=select.where))
        if select.group is not None:
            made.set("group", select.group)
        if select.having is not None:
            made.set("having", exp.Having(this=select.having))
        if select.distinct:
            made.set("distinct", exp.Distinct())
        return made

    def _set_operation(self, select: _Select, names: Sequence[str] | None) -> exp.SetOperation:
        kind, all_, left, right = select.sides
        first, second = self.finished(left, names), self.finished(right, names)
        # From left to right UNION and EXCEPT are as they are written.
        chain = (exp.Select,) if kind is exp.Intersect else (exp.Select, exp.Union, exp.Except)
        return kind(this=_branch(first, chain), expression=_branch(second, (exp.Select,)), distinct=not all_)

    def _names(self, width: int) -> list[str]:
        return [f"{self._letter}{place}" for place in range(width)]

    def _of_alias(self, alias: str, names: Sequence[str]) -> list[exp.Expression]:
        return [exp.Column(this=identifier(name), table=identifier(alias)) for name in names]

    def apart(self, select: _Select) -> _Select:
        """A SELECT from ``select`` in FROM."""
        alias = next(self._aliases)
        query = exp.Subquery(this=self.finished(select), alias=_alias(alias))
        return _Select(self._of_alias(alias, self._names(len(select.columns))), source=query)

    def until(self, relation: r.Relation, outer: Scope | None, stage: _Stage) -> _Select:
        """``relation``, to which a clause that works at ``stage`` can be added."""
        found = self.of(relation, outer)
        return found if found.takes(stage) else self.apart(found)

    def _within_reach(self, select: _Select, scalars: Sequence[Node]) -> _Select:
        """``select``, of whose columns ``scalars`` can be worked out in it."""
        loose = {place for place, each in enumerate(select.columns) if not isinstance(each, exp.Column)}
        # Beside groups Spark takes no subquery that names one of their keys.
        grouped = select.stage in (_Stage.GROUP, _Stage.HAVING)
        for scalar in scalars if loose or grouped else ():
            inside = {c.position for each in _relations(scalar) for c in outer_columns(each) if c.level == 1}
            if inside and (grouped or loose & inside) or self.volatile and loose.intersection(own_columns(scalar)):
                return self.apart(select)
        return select

    # -- relations ----------------------------------------------------------------------------------------------------

    def of(self, relation: r.Relation, outer: Scope | None) -> _Select:
        """``relation`` in a query whose rows around are ``outer``."""
        return _RULES[type(relation)](self, relation, outer)

    def _get(self, node: r.Get, outer: Scope | None) -> _Select:
        return self._table(node.item_id, node.names)

    def _table(self, name: str, columns: Sequence[str]) -> _Select:
        alias = next(self._aliases)
        return _Select(
            self._of_alias(alias, columns), source=exp.Table(this=identifier(name), alias=_alias(alias))
        )

    def _constant(self, node: r.Constant, outer: Scope | None) -> _Select:
        if node == r.UNIT:
            return _Select([])
        if not node.rows:
            return _Select([], _Stage.WHERE, where=exp.false())
        if not node.rows[0]:
            raise NotSpelled("several rows without columns")
        alias, scope = next(self._aliases), Scope((), outer)
        names = self._names(len(node.rows[0]))
        rows = [exp.Tuple(expressions=self.scalars.all(row, scope)) for row in node.rows]
        return _Select(self._of_alias(alias, names), source=exp.Values(expressions=rows, alias=_alias(alias, names)))

    def _project(self, node: r.Project, outer: Scope | None) -> _Select:
        places = [each.position for each in node.outputs if isinstance(each, s.Column) and each.level == 0]
        picks = len(places) == len(node.outputs)
        if picks and isinstance(node.input, r.TopK):
            return self._picked(self._top(node.input, outer, places), places)
        found = self.of(node.input, outer)
        if picks:
            return self._picked(found, places)
        # Spark takes what names a row around for an output of rows, never for one of groups.
        grouped = found.stage in (_Stage.GROUP, _Stage.HAVING)
        around = grouped and any(map(names_outside, node.outputs))
        if around or not found.takes(_Stage.ROWS) or not _made_once(found, node.outputs):
            found = self.apart(found)
        found = self._within_reach(found, node.outputs)
        scope = Scope(found.columns, outer)
        found.columns = self._outputs(found, node.outputs, scope)
        found.stage = _Stage.OUTPUTS
        return found

    def _outputs(self, select: _Select, outputs: Sequence[s.Scalar], scope: Scope) -> list[exp.Expression]:
        """What ``outputs`` are written as; what makes rows stays what it is."""
        made = []
        for each in outputs:
            plain = select.columns[each.position] if isinstance(each, s.Column) and each.level == 0 else None
            is_rows = plain is not None and any(plain is one for one in select.rows)
            made.append(plain if is_rows else self.scalars.of(each, scope))
        return made

    def _picked(self, select: _Select, places: list[int]) -> _Select:
        """Columns of ``select``, in another order."""
        if places == list(range(len(select.columns))):
            return select
        columns = [select.columns[place] for place in places]
        if any(_is_heavy(key) and not any(key is each for each in columns) for _, key in select.order):
            raise NotSpelled("an order by what is made of rows and no output")
        once = {id(each) for each in columns}
        loose = [each for each in columns if not isinstance(each, exp.Column)]
        whole = select.stage == _Stage.DISTINCT or select.distinct
        if (
            not select.takes(_Stage.TOP)
            or whole and sorted(places) != list(range(len(select.columns)))
            or any(id(each) not in once for each in select.rows)
            or (select.rows or self.volatile) and len({id(each) for each in loose}) < len(loose)
        ):
            return self._picked(self.apart(select), places)
        seen = Counter(id(each) for each in columns)
        select.columns = [each if seen[id(each)] == 1 else each.copy() for each in columns]
        return select

    def _filter(self, node: r.Filter, outer: Scope | None) -> _Select:
        found = self.of(node.input, outer)
        grouped = found.stage in (_Stage.GROUP, _Stage.HAVING)
        if not found.takes(_Stage.HAVING):
            found, grouped = self.apart(found), False
        reached = self._within_reach(found, (node.condition,))
        grouped = grouped and reached is found
        condition = self.scalars.of(node.condition, Scope(reached.columns, outer))
        if grouped:
            reached.having, reached.stage = _both(reached.having, condition), _Stage.HAVING
        else:
            reached.where, reached.stage = _both(reached.where, condition), _Stage.WHERE
        return reached

    def _join(self, node: r.Join, outer: Scope | None) -> _Select:
        left = self.of(node.left, outer)
        left = left if left.is_source else self.apart(left)
        right = self.of(node.right, Scope(left.columns, outer) if node.lateral else outer)
        source, columns = self._lateral(right) if node.lateral else self._source(right)
        both = [*left.columns, *columns]
        join = exp.Join(this=source)
        if node.kind in ("left", "right", "full"):
            join.set("side", node.kind.upper())
        if node.condition is not None:
            join.set("on", self.scalars.of(node.condition, Scope(both, outer)))
        elif node.kind in ("inner", "cross"):
            join.set("kind", "CROSS")
        else:
            join.set("on", exp.true())
        left.joins.append(join)
        left.columns = both
        return left

    def _source(self, select: _Select) -> tuple[exp.Expression, list[exp.Expression]]:
        """``select`` as what another relation is joined to."""
        if not select.is_source or select.joins and isinstance(select.source, exp.Values):  # printed in no brackets
            select = self.apart(select)
        if not select.joins:
            return select.source, select.columns
        select.source.set("joins", select.joins)
        return exp.Subquery(this=select.source), select.columns

    def _lateral(self, select: _Select) -> tuple[exp.Expression, list[exp.Expression]]:
        alias = next(self._aliases)
        query = exp.Lateral(this=exp.Subquery(this=self.finished(select)), alias=_alias(alias))
        return query, self._of_alias(alias, self._names(len(select.columns)))

    def _reduce(self, node: r.Reduce, outer: Scope | None) -> _Select:
        if any(self._is_worked_out(key) for key in node.keys) or len(set(node.keys)) < len(node.keys):
            return self.of(_of_columns(node), outer)
        found = self.until(node.input, outer, _Stage.WHERE)
        scope = Scope(found.columns, outer)
        keys = self.scalars.all(node.keys, scope)
        if node.sets is not None and len(set(keys)) < len(keys):  # columns that are one to an engine
            found = self.apart(found)
            scope = Scope(found.columns, outer)
            keys = self.scalars.all(node.keys, scope)
        aggregates = [self.scalars.aggregate(each, scope) for each in node.aggregates]
        if node.sets is not None:
            if {place for chosen in node.sets for place in chosen} != set(range(len(keys))):
                raise NotSpelled("a key of no grouping set")
            sets = [exp.Tuple(expressions=[loose(keys[place]) for place in chosen]) for chosen in node.sets]
            found.group = exp.Group(grouping_sets=[exp.GroupingSets(expressions=sets)])
        elif keys:
            found.group = exp.Group(expressions=[loose(each) for each in keys])
        found.folds = found.group is None
        found.columns, found.stage = [*keys, *aggregates], _Stage.GROUP
        return found

    def _is_worked_out(self, key: s.Scalar) -> bool:
        """Whether an engine would take ``key`` in GROUP BY for something else, or not know it again in an output."""
        if isinstance(key, s.Column):
            return False
        return isinstance(key, s.Literal) or self.volatile or any(True for _ in _relations(key))

    def _distinct(self, node: r.Distinct, outer: Scope | None) -> _Select:
        found = self.until(node.input, outer, _Stage.OUTPUTS)
        found.distinct, found.stage = True, _Stage.DISTINCT
        return found

    def _top(self, node: r.TopK, outer: Scope | None, kept: Collection[int] | None = None) -> _Select:
        """``kept``: the columns that stay behind it."""
        found = self.of(node.input, outer)
        sorts = [each for each in node.order if not isinstance(each.key, s.Literal)]  # a number would be an output's
        made = [each.key for each in sorts if not (isinstance(each.key, s.Column) and each.key.level == 0)]
        open_ = found.stage < _Stage.TOP and not found.ctes
        # Spark sorts by what it has folded, or numbered, or asked for, only where that is an output, and never by what
        # names a row around.
        heavy = False
        for each in sorts:
            for place in own_columns(each.key):
                column, lost = found.columns[place], kept is not None and place not in kept
                asks = column.find(exp.Query) is not None or _names_around(node.input, place)
                heavy = heavy or asks or _is_heavy(column) and (lost or each.key in made)
        if not open_ or heavy or made and (found.distinct or found.sides is not None or found.rows):
            found = self.apart(found)
        found = self._within_reach(found, made)
        scope = Scope(found.columns, outer)
        for sort in sorts:
            plain = isinstance(sort.key, s.Column) and sort.key.level == 0
            key = found.columns[sort.key.position] if plain else self.scalars.of(sort.key, scope)
            found.order.append((sort, key))
        found.limit, found.offset = (
            self.scalars.of(each, Scope((), outer)) if each is not None else None for each in (node.limit, node.offset)
        )
        found.stage = _Stage.TOP
        return found

    def _window(self, node: r.Window, outer: Scope | None) -> _Select:
        found = self._within_reach(self.until(node.input, outer, _Stage.HAVING), node.calls)
        if found.folds and found.having is None:
            found.having = exp.true()  # or a lowering would take its one row for rows, which columns tell apart
        scope = Scope(found.columns, outer)
        found.columns = [*found.columns, *(self.scalars.window(each, scope) for each in node.calls)]
        found.stage = _Stage.WINDOW
        return found

    def _set_of(self, node: r.SetOp, outer: Scope | None) -> _Select:
        left, right = (self.of(_of_kinds(each, node.columns), outer) for each in (node.left, node.right))
        places = [exp.Literal.number(place + 1) for place in range(len(node.columns))]
        return _Select(places, _Stage.OUTPUTS, sides=(_SET[node.kind], node.all, left, right))

    def _table_function(self, node: r.TableFunction, outer: Scope | None) -> _Select:
        if node.ordinality and node.input != r.UNIT:
            made = r.TableFunction(r.UNIT, moved(node.items, 1), node.element, True)
            return self.of(r.Join("cross", node.input, made, lateral=True), outer)
        found = self.until(node.input, outer, _Stage.WHERE)
        items = self.scalars.of(node.items, Scope(found.columns, outer))
        rows = [exp.Anonymous(this="EXPLODE", expressions=[items]), *([Ordinality()] if node.ordinality else ())]
        found.columns, found.rows = [*found.columns, *rows], rows
        found.stage = _Stage.WHOLE if node.ordinality else _Stage.ROWS
        return found

    # -- WITH ---------------------------------------------------------------------------------------------------------

    def _let(self, node: r.Let, outer: Scope | None) -> _Select:
        before, name = self._called.get(node.name), self._cte_name(node.name)
        if node.recursive:
            self._called[node.name] = name
        value = self.of(node.value, outer)
        if node.recursive and (value.sides is None or value.sides[0] is not exp.Union or value.stage == _Stage.TOP):
            raise NotSpelled(f"{node.name}, which reads itself and is no union")
        cte = exp.CTE(this=self.finished(value), alias=_alias(name))
        self._called[node.name] = name
        found = self.of(node.body, outer)
        if before is None:
            del self._called[node.name]
        else:
            self._called[node.name] = before
        if not found.columns:
            found = self.apart(found)
        return replace(found, ctes=[cte, *found.ctes], recursive=found.recursive or node.recursive)

    def _cte_name(self, wanted: str) -> str:
        """A name that no relation has, and no other WITH query."""
        name = wanted
        for number in count():
            if name.lower() not in self._taken:
                break
            name = f"{wanted}_{number}"
        self._taken.add(name.lower())
        return name

    def _named(self, node: r.Named, outer: Scope | None) -> _Select:
        if node.name not in self._called:
            raise NotSpelled(f"{node.name}, which is no name in this part of the plan")
        return self._table(self._called[node.name], self._names(len(node.kinds)))


_RULES = {
    r.Get: _Speller._get, r.Constant: _Speller._constant, r.Project: _Speller._project, r.Filter: _Speller._filter,
    r.Join: _Speller._join, r.Reduce: _Speller._reduce, r.Distinct: _Speller._distinct, r.TopK: _Speller._top,
    r.Window: _Speller._window, r.SetOp: _Speller._set_of, r.TableFunction: _Speller._table_function,
    r.Let: _Speller._let, r.Named: _Speller._named,
}  # fmt: skip


def _prefix(letter: str, given: Collection[str]) -> str:
    """What begins names of ours, with a number behind, that none of ``given`` is, in any case."""
    numbered = re.compile(rf"{letter}(_*)[0-9]+", re.IGNORECASE)
    found = [len(match[1]) for each in given if (match := numbered.fullmatch(each))]
    return letter + "_" * (max(found) + 1 if found else 0)


def _alias(name: str, columns: Sequence[str] = ()) -> exp.TableAlias:
    made = exp.TableAlias(this=identifier(name))
    if columns:
        made.set("columns", [identifier(each) for each in columns])
    return made


def _both(one: exp.Expression | None, other: exp.Expression) -> exp.Expression:
    if one is None:
        return other
    sides = (exp.Paren(this=each) if isinstance(each, exp.Or) else each for each in (one, other))
    return exp.And(**dict(zip(("this", "expression"), sides, strict=True)))


def _branch(query: exp.Expression, bare: tuple[type[exp.Expression], ...]) -> exp.Expression:
    """``query`` in a set operation: in brackets where it is none of ``bare`` kinds, or has clauses of its own."""
    own = any(query.args.get(key) is not None for key in ("order", "limit", "offset", "with_"))
    return query if isinstance(query, bare) and not own else exp.Subquery(this=query)


def _key(select: _Select, key: exp.Expression) -> exp.Expression:
    """What ``select`` is sorted by: an output by its number."""
    for place, each in enumerate(select.columns):
        if each is key:
            return exp.Literal.number(place + 1)
    return loose(key)


def _names_around(relation: r.Relation, place: int) -> bool:
    """Whether the column there is worked out of a row around ``relation``."""
    return isinstance(relation, r.Project) and names_outside(relation.outputs[place])


def _is_heavy(node: exp.Expression) -> bool:
    """Whether it is made of several rows, or asks for some."""
    return any(
        isinstance(each, (exp.Window, exp.Query)) or is_aggregate(each) or each.meta.get("aggregate")
        for each in node.walk()
    )


def _keys(select: _Select) -> list[exp.Expression]:
    return [each for _, each in select.order]


def _made_once(select: _Select, outputs: Sequence[s.Scalar]) -> bool:
    """Whether each column that makes rows is one of ``outputs`` by itself, and is named nowhere else."""
    for place, each in enumerate(select.columns):
        if not any(each is one for one in select.rows):
            continue
        bare = sum(isinstance(one, s.Column) and (one.level, one.position) == (0, place) for one in outputs)
        if bare != 1 or sum(list(own_columns(one)).count(place) for one in outputs) != 1:
            return False
    return True


def _relations(scalar: Node) -> Iterator[r.Relation]:
    """The relations of the subqueries in ``scalar``, without those further in."""
    stack = [scalar]
    while stack:
        node = stack.pop()
        if isinstance(node, r.Relation):
            yield node
        else:
            stack += node.parts()


def _folds(node: exp.Expression) -> bool:
    """Whether an aggregate of the SELECT around it stands in ``node``: neither over a window nor in a subquery."""
    stack = [node]
    while stack:
        here = stack.pop()
        if isinstance(here, exp.Window):
            stack += [each for each in here.iter_expressions() if each.arg_key != "this"]
            here = here.this
            if isinstance(here, exp.Filter):
                stack.append(here.expression)
                here = here.this
        elif is_aggregate(here) or here.meta.get("aggregate"):
            return True
        if not isinstance(here, exp.Query):
            stack += here.iter_expressions()
    return False


def _of_columns(node: r.Reduce) -> r.Reduce:
    """``node`` over a relation of which all keys are columns."""
    width = len(node.input.columns)
    worked_out = [key for key in node.keys if not isinstance(key, s.Column)]
    columns_of = [s.Column(key.type, key.nullable, width + place) for place, key in enumerate(worked_out)]
    placed = dict(zip(worked_out, columns_of, strict=True))
    below = iter(columns_of)

    def grouping(each: s.Aggregate) -> s.Aggregate:
        if each.name != "grouping":
            return each
        return replace(each, arguments=tuple(placed.get(one, one) for one in each.arguments))

    columns = tuple(node.input.column(place) for place in range(width))
    return r.Reduce(
        r.Project(node.input, (*columns, *worked_out)),
        tuple(key if isinstance(key, s.Column) else next(below) for key in node.keys),
        tuple(grouping(each) for each in node.aggregates),
        node.sets,
    )


def _of_kinds(side: r.Relation, kinds: Sequence[r.Kind]) -> r.Relation:
    """A side of a set operation, in the types of the whole.  Of integers every engine takes the widest by itself."""
    wanted = [kind.type for kind in kinds]
    pairs = [(kind.type, other) for kind, other in zip(side.columns, wanted, strict=True)]
    if all(one in (NOTHING, other) or is_integer(one) and is_integer(other) for one, other in pairs):
        return side
    return r.Project(side, s.as_types(map(side.column, range(len(wanted))), wanted))
