"""Columns of a query two or more out, handed in by the queries between.  Pure: a tree in, another out.

Spark looks for a name in a subquery's own FROM and in the query next out, no further.  So each query between gets one
more relation of one row, which has what is needed further in under names of ours:

    … FROM x WHERE EXISTS (SELECT 1 FROM y WHERE EXISTS (SELECT 1 FROM z WHERE z.a = x.a))
    … FROM x WHERE EXISTS (SELECT 1 FROM y CROSS JOIN (SELECT x.a AS c0) d
                           WHERE EXISTS (SELECT 1 FROM z WHERE z.a = d.c0))

One row changes neither how many rows there are nor which.  Turned down: ``SELECT DISTINCT x.a FROM x`` and a
comparison, which reads the outer relation again, has to know about its outer joins, and is wrong where it is volatile.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

from sqlglot import exp

from journal.errors import InvalidUsage
from trees.errors import unsupported
from trees.functions import folding, is_aggregate
from trees.nodes import position, swap, unnest

_AFTER_GROUPING = ("expressions", "having", "order", "windows", "distinct")
"""Clauses of a SELECT that see groups, where there are any."""

_IN_FROM = ("from_", "joins")


def handed_in(tree: exp.Expression) -> exp.Expression:
    """A copy of ``tree``, which is bound, without names of queries two or more out.  0A000 where it cannot be."""
    holder = exp.Paren(this=tree.copy())
    taken = {each.name.lower() for each in holder.find_all(exp.Identifier)}
    names = (name for n in count() if (name := f"_in{n}") not in taken)
    relations: dict[int, _Relation] = {}
    folded: dict[int, exp.Expression] = {}
    seen: dict[int, frozenset[str]] = {}
    for column in [each for each in holder.find_all(exp.Column) if each.table]:
        crossed = _crossed(column, seen)
        if len(crossed) < 2:
            continue
        wanted = column
        for crossing in reversed(crossed[1:]):
            relation = relations.get(id(crossing.select))
            if relation is None:
                relation = relations[id(crossing.select)] = _Relation(crossing.select, next(names))
            if crossing.clause in _IN_FROM:
                relation.first = _before_others(crossing, column) or relation.first
            elif crossing.clause in _AFTER_GROUPING and _has_groups(crossing.select):
                _check_keys(crossing, column)
                if not crossing.folded:
                    folded[id(crossing.subquery)] = crossing.subquery
            wanted = relation.column(wanted)
        column.replace(wanted)
    for subquery in folded.values():  # the same for each row of a group
        swap(subquery, over := exp.Max())
        over.set("this", subquery)
    for relation in relations.values():
        relation.join()
    return holder.this


class _Crossing(NamedTuple):
    """A query that a name passes on its way out, and from where in it."""

    select: exp.Select
    clause: str
    subquery: exp.Expression
    """What stands in that clause: the subquery, with its EXISTS or IN."""
    folded: bool
    """Whether an aggregate of ``select`` folds the subquery: then it sees rows and not groups."""
    join: exp.Join | None
    """The join in whose condition it stands, if it does."""


def _crossed(column: exp.Column, seen: dict[int, frozenset[str]]) -> list[_Crossing]:
    """The queries between ``column`` and the one that it is of, its own first."""
    found: list[_Crossing] = []
    node: exp.Expression = column
    subquery: exp.Expression = column
    folded = hidden = False
    join: exp.Join | None = None
    while (above := node.parent) is not None:
        if isinstance(above, exp.Select):
            if not hidden and node.arg_key != "with_":
                if column.table in _sources(above, seen):
                    return found
                found.append(_Crossing(above, node.arg_key or "", subquery, folded, join))
            folded, hidden, join = False, False, None
            subquery = above
        elif node is subquery and (isinstance(above, (*_QUERIES, exp.Exists)) or node.arg_key == "query"):
            subquery = above
        elif isinstance(above, exp.Window):
            folded = False  # what a window folds are groups, where there are any
        elif is_aggregate(above) or above.meta.get("aggregate"):
            folded = True
        if isinstance(above, (exp.From, exp.Join)) and node.arg_key == "this":
            hidden = hidden or isinstance(node, exp.Subquery) and isinstance(node.this, _QUERIES)
        if isinstance(above, exp.Join) and node.arg_key == "on":
            join = above
        node = above
    return []  # of nothing in reach: none of ours


_QUERIES = (exp.Query, exp.Subquery)


def _sources(select: exp.Select, seen: dict[int, frozenset[str]]) -> frozenset[str]:
    """The aliases in the FROM of ``select``."""
    if id(select) not in seen:
        found = set()
        joined = [select.args.get("from_"), *(select.args.get("joins") or ())]
        stack = [each.this for each in joined if each is not None]
        while stack:
            source = stack.pop()
            found.add(source.alias_or_name)
            if isinstance(source, (exp.Subquery, exp.Paren)) and not isinstance(source.this, _QUERIES):
                stack.append(source.this)
            stack += [join.this for join in source.args.get("joins") or ()]
        seen[id(select)] = frozenset(found)
    return seen[id(select)]


def _has_groups(select: exp.Select) -> bool:
    """Whether the outputs of ``select`` are of groups and not of rows."""
    if select.args.get("group") is not None or select.args.get("having") is not None:
        return True
    order = select.args.get("order")
    stack = [*select.expressions, *(order.expressions if order is not None else ())]
    while stack:
        node = stack.pop()
        if isinstance(node, exp.Window):
            function = node.this
            if isinstance(function, exp.Filter):
                stack.append(function.expression)
                function = function.this
            stack += function.iter_expressions()
            stack += [each for each in node.iter_expressions() if each.arg_key != "this"]
        elif is_aggregate(node) or node.meta.get("aggregate"):
            return True
        elif not isinstance(node, _QUERIES):
            stack += node.iter_expressions()
    return False


def _check_keys(crossing: _Crossing, column: exp.Column) -> None:
    """0A000 where no aggregate can fold the subquery: Spark takes none in a query without a key, where there would be
    none of no rows besides, and no aggregate may be within another or in a key."""
    group, made = crossing.select.args.get("group"), crossing.subquery
    keys = group.expressions if group is not None else []
    outputs = crossing.select.expressions
    meant = [outputs[int(key.this) - 1] if isinstance(key, exp.Literal) and key.is_int else key for key in keys]
    plain = meant and not any(value for key, value in group.args.items() if key != "expressions")
    sets = any(isinstance(unnest(key), (exp.Rollup, exp.Cube, exp.GroupingSets, exp.Tuple)) for key in meant)
    left = made.this if isinstance(made, exp.In) else None
    if not plain or sets or any(key.find(exp.Query) for key in meant) or left is not None and folding(left):
        hint = "select it in a subquery of FROM" if crossing.folded else "select the aggregates in a subquery of FROM"
        raise _refused(column, hint)


def _before_others(crossing: _Crossing, column: exp.Column) -> bool:
    """Whether the relation has to stand before the others of FROM, so that what stands there sees it.

    What an inner join asks for, WHERE may ask for.  0A000 where it cannot: rows of the other side without a match would
    not have it, and Spark takes no condition of an outer join that looks at both sides in a subquery.
    """
    select, join = crossing.select, crossing.join
    outer = {each.side for each in select.args.get("joins") or ()} - {""}
    if join is not None and join.parent is select and not outer:
        where = select.args.get("where")
        asked = join.args["on"].pop()
        join.set("kind", "CROSS")
        select.set("where", exp.Where(this=exp.and_(where.this, asked, copy=False) if where is not None else asked))
        return False
    if join is not None or outer & {"RIGHT", "FULL"}:
        raise _refused(column, "join in a subquery of FROM first, and look at the rows around it from there")
    return True


def _refused(column: exp.Column, hint: str) -> InvalidUsage:
    what = f"{column.table}.{column.name}, of a query that is not the next one out, at this place"
    return unsupported(what, hint=hint, position=position(column))


@dataclass
class _Relation:
    """The relation of one row that ``select`` gets, called ``alias``."""

    select: exp.Select
    alias: str
    first: bool = False
    """Whether other relations look at it, and it has to stand before them."""
    given: dict[tuple[str, str], exp.Alias] = field(default_factory=dict)

    def column(self, wanted: exp.Column) -> exp.Column:
        """The column of this relation that is ``wanted``, a name that ``select`` finds in the query next out."""
        key = (wanted.table, wanted.name)
        if key not in self.given:
            self.given[key] = exp.alias_(wanted.copy(), f"c{len(self.given)}", quoted=True)
        name = exp.to_identifier(self.given[key].alias, quoted=True)
        made = exp.column(name, table=exp.to_identifier(self.alias, quoted=True))
        made.meta.update(wanted.meta)
        return made

    def join(self) -> None:
        """Put it into FROM."""
        alias = exp.TableAlias(this=exp.to_identifier(self.alias, quoted=True))
        made = exp.Subquery(this=exp.Select(expressions=list(self.given.values())), alias=alias)
        from_, joins = self.select.args.get("from_"), list(self.select.args.get("joins") or ())
        if from_ is None:
            self.select.set("from_", exp.From(this=made))
        elif self.first:
            self.select.set("joins", [exp.Join(this=from_.this, kind="CROSS"), *joins])
            self.select.set("from_", exp.From(this=made))
        else:
            self.select.set("joins", [*joins, exp.Join(this=made, kind="CROSS")])
