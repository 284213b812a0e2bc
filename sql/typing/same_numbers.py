"""GROUP BY, DISTINCT and UNION of free numerics and jsonb, of which equal ones may be written with different digits.

Rows are grouped by keys (:mod:`sql.typing.keys`); a group shows the longest of its equal numbers (``1.50`` of ``1.5``
and ``1.50``), where Postgres shows the one that it met first.  That is the greatest text: the others begin it.  Of
equal jsonb the greatest text is shown too, whichever that is.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from sql.typing.comparing import SORTS
from sql.typing.keys import by_key, check_no_keys, key_of
from trees.errors import unsupported
from trees.functions import is_aggregate
from trees.nodes import position, swap
from values.types import SqlType

_STAYS = ("limit", "offset", "with_")


def group_by_keys(select: exp.Select, grouped: Sequence[tuple[exp.Expression, SqlType]]) -> None:
    """Group ``select``, all of which is typed, by the keys of those of ``grouped`` that have some."""
    free = [(node, got) for node, got in grouped if by_key(got)]
    if not free:
        return
    group = select.args["group"]
    if group.find(exp.Rollup, exp.Cube, exp.GroupingSets):
        check_no_keys(free[0][1], "grouping sets", free[0][0])
    values = [node.copy() for node, _ in free]
    for node, got in free:
        swap(node, key_of(node, got))
    places = [*select.expressions, select.args.get("having"), select.args.get("order"), *select.args.get("windows", ())]
    for place in places:
        if place is not None:
            _show_longest(place, values)


def _show_longest(root: exp.Expression, values: list[exp.Expression]) -> None:
    stack = list(root.iter_expressions())
    while stack:
        node = stack.pop()
        if any(node == value for value in values):
            swap(node, exp.Max(this=node.copy()))
        elif isinstance(node, exp.Query):
            if any(each == value for each in node.walk() for value in values):
                raise unsupported("a subquery over a numeric or jsonb that is grouped by", position=position(node))
        elif isinstance(node, exp.Window):
            parts = [each for each in node.iter_expressions() if each is not node.this]
            function = node.this
            if isinstance(function, exp.Filter):
                parts.append(function.expression)
                function = function.this
            stack += [*parts, *function.iter_expressions()]
        elif not (is_aggregate(node) or node.meta.get("aggregate") or isinstance(node, (exp.Filter, exp.WithinGroup))):
            stack += node.iter_expressions()  # an aggregate is of rows, and so is what stands behind it


def distinct_by_keys(select: exp.Select, types: Sequence[SqlType]) -> None:
    """``SELECT DISTINCT``, all of which is typed: as groups of its rows, where an output is compared by a key."""
    if not any(map(by_key, types)):
        return
    names = [each.alias_or_name for each in select.expressions]
    values = [each.unalias() for each in select.expressions]
    order = _order(select, names, values, types)
    rows = exp.Select(**{k: v for k, v in select.args.items() if k not in (*_STAYS, "order", "distinct")}).copy()
    rows.set("expressions", [exp.alias_(each.copy(), f"_c{i}", quoted=True) for i, each in enumerate(values)])
    for key in [key for key in select.args if key not in _STAYS]:
        select.set(key, None)
    _one_of_each(select, exp.Subquery(this=rows, alias=_alias([])), names, types, order)


def union_by_keys(union: exp.Union, names: Sequence[str], types: Sequence[SqlType]) -> None:
    """``UNION`` of rows of which a column is compared by a key: one of each of those of the ``UNION ALL``."""
    order = _order(union, list(names), [], types)
    made = exp.Select(**{key: union.args.get(key) for key in _STAYS if union.args.get(key) is not None}).copy()
    rows = union.copy()
    for key in (*_STAYS, "order"):
        rows.set(key, None)
    rows.set("distinct", False)
    source = exp.Subquery(this=rows, alias=_alias([f"_c{i}" for i in range(len(names))]))
    _one_of_each(made, source, names, types, order)
    union.replace(made)


def _one_of_each(
    select: exp.Select, rows: exp.Subquery, names: Sequence[str], types: Sequence[SqlType], order: exp.Order | None
) -> None:
    shown = [_shown(place, got) for place, got in enumerate(types)]
    select.set("expressions", [exp.alias_(each, name, quoted=True) for each, name in zip(shown, names, strict=True)])
    select.set("from_", exp.From(this=rows))
    keys = [key_of(_column(place), got) if by_key(got) else _column(place) for place, got in enumerate(types)]
    select.set("group", exp.Group(expressions=keys))
    select.set("order", order)


def _order(
    query: exp.Expression, names: list[str], values: list[exp.Expression], types: Sequence[SqlType]
) -> exp.Order | None:
    """The ORDER BY of ``query``, each of whose parts is an output, over the groups."""
    order = query.args.get("order")
    if order is None:
        return None
    made = order.copy()
    for each, was in zip(made.expressions, order.expressions, strict=True):
        key = was.this.meta.get(SORTS, was.this)
        if isinstance(key, exp.Literal) and not key.is_string:
            place = int(key.this) - 1
        elif isinstance(key, exp.Column) and not key.table:
            place = names.index(key.name)
        else:
            place = values.index(key)
        shown = _shown(place, types[place])
        each.set("this", key_of(shown, types[place]) if by_key(types[place]) else shown)
    return made


def _shown(place: int, got: SqlType) -> exp.Expression:
    return exp.Max(this=_column(place)) if by_key(got) else _column(place)


def _column(place: int) -> exp.Column:
    return exp.column(exp.to_identifier(f"_c{place}", quoted=True), table=exp.to_identifier("_d", quoted=True))


def _alias(columns: list[str]) -> exp.TableAlias:
    names = [exp.to_identifier(each, quoted=True) for each in columns]
    return exp.TableAlias(this=exp.to_identifier("_d", quoted=True), columns=names or None)
