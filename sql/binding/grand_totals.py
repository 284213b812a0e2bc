"""What grouping sets in Spark have not: the row of a set without columns where there are no rows, GROUPING in HAVING.

``GROUP BY ROLLUP (a)`` of nothing is one row in Postgres: the grand total, of which every key is NULL.  Here it is a
second query beside the first, which gives its row only where there is nothing to group.
"""

from __future__ import annotations

import math

from sqlglot import exp

from sql.typing.comparing import SORTS
from trees.errors import unsupported
from trees.nodes import cast, unnest
from values.types import SqlType

NOTED = "grouped_as"
"""What a grouped expression's type is kept under, by the binder."""

_ROWS = "_t"


def without_empty_sets(select: exp.Select) -> None:
    """``GROUP BY ()`` is no grouping, but one of everything; beside others it adds nothing."""
    group = select.args.get("group")
    if group is None:
        return
    kept = [each for each in group.expressions if not (isinstance(each, exp.Tuple) and not each.expressions)]
    if len(kept) == len(group.expressions):
        return
    group.set("expressions", kept)
    if not any(group.args.values()):
        select.set("group", None)
        if select.args.get("having") is None:
            select.set("having", exp.Having(this=exp.true()))


def with_grand_totals(holder: exp.Expression) -> None:
    """Add the second query wherever one is missing below ``holder``, which is typed.  0A000 where it cannot be.

    A HAVING that names GROUPING becomes an output, by which a query around it filters.
    """
    selects = list(holder.find_all(exp.Select))
    found = [each for each in selects if _totals(each.args.get("group")) or _filters_by_grouping(each)]
    for select in reversed(found):  # those inside of others first
        if _totals(select.args["group"]) > 1:
            raise unsupported("GROUPING SETS with more than one ()")
        if _looks_outside(select):
            raise unsupported("ROLLUP, CUBE and GROUPING SETS in a subquery that looks at the rows around it")
        select.replace(_completed(select))


def _totals(group: exp.Group | None) -> int:
    """How many grouping sets of ``group`` have no columns."""
    if group is None:
        return 0
    elsewhere = [each for key in ("cube", "rollup", "grouping_sets") for each in group.args.get(key) or ()]
    return math.prod(_empty_sets(each) for each in [*group.expressions, *elsewhere])


def _empty_sets(node: exp.Expression) -> int:
    node = unnest(node)
    if isinstance(node, exp.GroupingSets):
        return sum(map(_empty_sets, node.expressions))
    if isinstance(node, exp.Tuple):
        return int(not node.expressions)
    return int(isinstance(node, (exp.Rollup, exp.Cube)))


def _completed(select: exp.Select) -> exp.Select:
    """``SELECT … FROM (grouped UNION ALL the total) ORDER BY … LIMIT …``."""
    grouped = select.copy()
    clauses = {key: grouped.args.get(key) for key in ("order", "limit", "offset", "with_")}
    on = grouped.args.get("distinct") is not None and grouped.args["distinct"].args.get("on") is not None
    for key in clauses:
        if key != "order" or not on:  # which rows DISTINCT ON takes is decided by their order
            grouped.set(key, None)
    names = [each.alias_or_name for each in grouped.expressions]
    values = [each.unalias().copy() for each in grouped.expressions]
    order = clauses["order"].copy() if clauses["order"] is not None else None
    for each in order.expressions if order is not None else ():
        meant = each.this.meta.get(SORTS, each.this)
        place = _output(meant, names, values)
        if place is None:
            place = len(values)
            values.append(meant.copy())
        if meant is each.this:
            each.set("this", _column(place))
            continue
        for node in [node for node in each.this.walk() if node == meant]:  # what it is sorted by is made of it
            node.replace(_column(place))
    wanted = _condition_as_value(grouped)
    if wanted is not None:
        values.append(wanted)
    grouped.set("expressions", [exp.alias_(each, f"c{i}", quoted=True) for i, each in enumerate(values)])
    has_total = _totals(grouped.args["group"]) == 1
    total = _total(grouped) if has_total else None
    # An engine may give the total by itself: then it is left out here.
    some = exp.GT(this=exp.Count(this=exp.Star()), expression=exp.Literal.number(0))
    if wanted is None:
        _require(grouped, some)
    else:
        grouped.expressions[-1].set("this", exp.and_(wanted.copy(), some))
    both = exp.Union(this=grouped, expression=total, distinct=False) if total is not None else grouped
    alias = exp.TableAlias(this=exp.to_identifier(_ROWS, quoted=True))
    made = exp.Select(expressions=[exp.alias_(_column(i), name, quoted=True) for i, name in enumerate(names)])
    made.set("from_", exp.From(this=exp.Subquery(this=both, alias=alias)))
    if wanted is not None:
        made.set("where", exp.Where(this=_column(len(values) - 1)))
    made.set("order", order)
    for key in ("limit", "offset", "with_"):
        made.set(key, clauses[key].copy() if clauses[key] is not None else None)
    return made


def _condition_as_value(grouped: exp.Select) -> exp.Expression | None:
    """The HAVING of ``grouped``, taken out of it, if it names GROUPING: Spark finds no key behind it there, but does
    in an output.  0A000 where what is done with the outputs comes behind HAVING."""
    if not _filters_by_grouping(grouped):
        return None
    if grouped.args.get("distinct") is not None or any(each.find(exp.Window) for each in grouped.expressions):
        raise unsupported("GROUPING in HAVING beside DISTINCT or window functions", "filter in a query around it")
    return grouped.args["having"].pop().this


def _filters_by_grouping(select: exp.Select) -> bool:
    having = select.args.get("having")
    return having is not None and any(_is_grouping(each) for each in having.find_all(exp.Anonymous))


def _is_grouping(node: exp.Anonymous) -> bool:
    return str(node.this) == "GROUPING"


def _column(place: int) -> exp.Column:
    return exp.column(exp.to_identifier(f"c{place}", quoted=True), table=exp.to_identifier(_ROWS, quoted=True))


def _output(key: exp.Expression, names: list[str], values: list[exp.Expression]) -> int | None:
    """The output that an ORDER BY means, if it is one."""
    if isinstance(key, exp.Literal) and not key.is_string:
        return int(key.this) - 1
    if isinstance(key, exp.Column) and not key.table and key.name in names:
        return names.index(key.name)
    return values.index(key) if key in values else None


def _total(grouped: exp.Select) -> exp.Select:
    """``grouped`` of no rows, as one row, if there are none."""
    total = grouped.copy()
    keys = _keys(total.args["group"], [each.unalias() for each in total.expressions])
    total.set("group", None)
    for place in ("expressions", "having", "windows", "distinct", "order"):
        for each in total.args[place] if isinstance(total.args.get(place), list) else [total.args.get(place)]:
            if each is not None:
                _of_nothing(each, keys)
    asked = exp.Select(expressions=[exp.alias_(exp.Literal.number(1), "one", quoted=True)])
    for key in ("from_", "joins", "where"):
        value = grouped.args.get(key)
        asked.set(key, [v.copy() for v in value] if isinstance(value, list) else value and value.copy())
    condition = exp.Not(this=exp.Exists(this=asked))
    total.set("where", exp.Where(this=exp.false()))
    _require(total, condition)
    return total


def _require(select: exp.Select, condition: exp.Expression) -> None:
    having = select.args.get("having")
    select.set("having", exp.Having(this=exp.and_(having.this, condition) if having is not None else condition))


def _keys(group: exp.Group, outputs: list[exp.Expression]) -> list[tuple[exp.Expression, SqlType]]:
    found = []
    for each in group.walk():
        if NOTED in each.meta:
            key = outputs[int(each.this) - 1] if isinstance(each, exp.Literal) and each.is_int else each
            while key is not each and isinstance(key, exp.Cast):
                key = key.this
            found.append((key.copy(), each.meta[NOTED]))
    return found


def _of_nothing(node: exp.Expression, keys: list[tuple[exp.Expression, SqlType]]) -> None:
    """Make every key in ``node`` NULL, and GROUPING say so."""
    if isinstance(node, exp.Anonymous) and _is_grouping(node):
        node.replace(exp.Literal.number((1 << len(node.expressions)) - 1))
        return
    for key, sql_type in keys:
        if node == key:
            node.replace(cast(exp.null(), sql_type))
            return
    for each in list(node.iter_expressions()):
        _of_nothing(each, keys)


def _looks_outside(select: exp.Select) -> bool:
    """Whether ``select`` names relations of a query around it."""
    own = {each.alias_or_name for each in select.find_all(exp.Table, exp.Subquery, exp.Values, exp.Lateral)}
    return any(each.table and each.table not in own for each in select.find_all(exp.Column))
