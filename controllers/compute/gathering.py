"""What a query's aggregates would gather in memory, asked before they do.  Pure.

``array_agg``, ``string_agg``, ``mode``, the percentiles and a list over a window hold a group's values in Spark's heap
until the group is whole, and nothing of Spark's bounds that: its JVM ends.  So whoever runs a query first asks, by
queries that stream (:func:`questions`), how much that would be, and refuses what is too much (54000) before any of it
is taken.  Spark holds many groups at a time, so what counts is the sum of the :data:`GROUPS_AT_ONCE` largest; where
all rows together are few enough, which is asked first and costs a third of that, nobody needs to know.

Of a subquery that names outer columns the conditions with such names are left out: what they compare for equality makes
the groups, as in Spark's own plan.  Where an outer column is needed to read the subquery at all (``unnest`` of it),
nothing is asked; what is gathered there are the items of one value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

from sqlglot import exp

from controllers.compute.spark_text import called, column, derived, number
from functions.aggregates import AGGREGATES, COUNTED, IN_ORDER
from trees.nodes import cast
from trees.types import TEXT

GATHERED_BYTES_MAX = 128 << 20
"""Of what one query gathers at a time: an eighth of Spark's heap, for four reads and a tick run beside one another."""

ITEM_BYTES = 96
"""Of an item besides its value: Spark's row, its array, the place in the list."""

GROUPS_AT_ONCE = 128
"""Spark's own number (``objectHashAggregate.sortBased.fallbackThreshold``): above it, it sorts and holds one."""

_KEEPING = frozenset(row.engine for row in AGGREGATES if row.held == IN_ORDER)
_COUNTING = frozenset(row.engine for row in AGGREGATES if row.held == COUNTED).union(
    ("collect_set", "mode", "percentile_cont")
)
"""Those that hold equal values once."""

_NODES: dict[type[exp.Expression], bool] = {
    exp.GroupConcat: False, exp.ArrayAgg: False, exp.ArrayUniqueAgg: True,
    exp.Mode: True, exp.Quantile: True, exp.PercentileCont: True, exp.PercentileDisc: True,
}  # fmt: skip
"""What the parser makes of some of them, and whether it holds equal values once."""


@dataclass(frozen=True)
class _Gathered:
    """What one aggregate holds of a row, of which rows, by which groups."""

    values: tuple[exp.Expression, ...]
    condition: exp.Expression | None
    keys: tuple[exp.Expression, ...]
    once: bool
    windowed: bool
    """Over what the query gives before its windows: groups, where it has any."""


class Question(NamedTuple):
    """Queries of one row and one column: bytes that are held."""

    at_most: exp.Select
    """Never less than ``exactly``."""
    exactly: exp.Select


def questions(tree: exp.Expression) -> list[Question]:
    """What to ask of the relations of ``tree``, of inner queries first."""
    asked: list[Question] = []
    for select in reversed(list(tree.find_all(exp.Select))):
        beside: dict[object, list[_Gathered]] = {}
        for n, each in enumerate(_gathered(select)):
            beside.setdefault(n if each.once else (each.keys, each.windowed), []).append(each)
        asked += [made for some in beside.values() if (made := _question(select, some)) is not None]
    return asked


# -- what is gathered -------------------------------------------------------------------------------------------------


def _gathered(select: exp.Select) -> Iterator[_Gathered]:
    """Of each aggregate of ``select`` itself that gathers."""
    clauses = [*select.expressions, select.args.get("having"), select.args.get("order"), select.args.get("qualify")]
    for clause in clauses:
        for node in clause.walk(prune=lambda n: isinstance(n, exp.Query)) if clause is not None else ():
            once = _holds_once(node)
            if once is None:
                continue
            values = _values(node)
            around, condition, keys = node.parent, None, _keys(select)
            if isinstance(around, exp.WithinGroup):
                values += [each.this for each in around.expression.expressions]
                around = around.parent
            if isinstance(around, exp.Filter):
                condition = around.expression.this
                around = around.parent
            windowed = isinstance(around, exp.Window)
            if windowed:
                keys = _partition(select, around)
            yield _Gathered(tuple(values), condition, tuple(keys), once, windowed)


def _holds_once(node: exp.Expression) -> bool | None:
    """Whether equal values are held once; ``None`` where ``node`` gathers nothing."""
    if isinstance(node, exp.Anonymous):
        name = node.name.lower()
        return name in _COUNTING if name in _KEEPING | _COUNTING else None
    return _NODES.get(type(node))


def _values(node: exp.Expression) -> list[exp.Expression]:
    if isinstance(node, exp.Anonymous):
        return list(node.expressions)
    if isinstance(node, (exp.PercentileCont, exp.PercentileDisc)) or node.this is None:
        return []  # they are behind WITHIN GROUP
    if isinstance(node.this, exp.Order):
        return [node.this.this, *(each.this for each in node.this.expressions)]
    return [node.this]


def _keys(select: exp.Select) -> list[exp.Expression]:
    """What ``select`` groups by; nothing where it groups in several ways, since one of them may be all rows."""
    group = select.args.get("group")
    if group is None or any(value for key, value in group.args.items() if key != "expressions"):
        return []
    if any(isinstance(each, (exp.Rollup, exp.Cube, exp.GroupingSets)) for each in group.expressions):
        return []
    outputs = {each.alias: each.unalias() for each in select.expressions if isinstance(each, exp.Alias)}
    keys = []
    for key in group.expressions:
        if isinstance(key, exp.Literal) and key.is_int:
            key = select.expressions[int(key.name) - 1].unalias()
        elif isinstance(key, exp.Column) and not key.table:
            key = outputs.get(key.name, key)
        keys.append(key)
    return keys


def _groups(select: exp.Select) -> bool:
    """Whether ``select`` gives groups and no rows."""
    if select.args.get("group") or select.args.get("having"):
        return True
    return any(
        isinstance(node, exp.AggFunc) and not isinstance(_behind(node), exp.Window)
        for each in select.expressions for node in each.walk(prune=lambda n: isinstance(n, exp.Query))
    )  # fmt: skip


def _behind(node: exp.Expression) -> exp.Expression | None:
    """What stands around an aggregate besides WITHIN GROUP and FILTER."""
    around = node.parent
    while isinstance(around, (exp.WithinGroup, exp.Filter)):
        around = around.parent
    return around


def _partition(select: exp.Select, window: exp.Window) -> list[exp.Expression]:
    """What ``window`` goes by, also where it says so by the name of another one."""
    named = {each.name: each for each in select.args.get("windows") or ()}
    found: exp.Expression | None = window
    while found is not None:
        if found.args.get("partition_by"):
            return list(found.args["partition_by"])
        found = named.get(found.args["alias"].name) if found.args.get("alias") is not None else None
    return []


# -- how much of it ---------------------------------------------------------------------------------------------------


def _question(select: exp.Select, held: Sequence[_Gathered]) -> Question | None:
    """How many bytes ``held``, which go by the same groups, come to; ``None`` where only an outer row can tell."""
    reading, equal = _uncorrelated(select)
    if held[0].windowed and _groups(select):
        if equal:
            return None
        for clause in ("group", "having"):
            reading.set(clause, select.args[clause].copy() if select.args.get(clause) else None)
    size = called(_total([_size(each) for each in held]), "held")
    rows = reading.copy()
    rows.set("expressions", [size])
    keys = [*held[0].keys, *equal]
    outputs = [*(called(key.copy(), f"k{i}") for i, key in enumerate(keys)), size.copy()]
    if held[0].once:
        outputs += [called(_where(held[0], each.copy(), exp.null()), f"v{i}") for i, each in enumerate(held[0].values)]
        reading.set("distinct", exp.Distinct())
    reading.set("expressions", outputs)
    groups = _sum(reading)
    if keys:
        groups.set("group", exp.Group(expressions=[column(f"k{i}") for i in range(len(keys))]))
        groups.set("order", exp.Order(expressions=[exp.Ordered(this=column("held"), desc=True)]))
        groups.set("limit", exp.Limit(expression=exp.Literal.number(GROUPS_AT_ONCE)))
    question = Question(_sum(rows), _sum(groups))
    for each in question:
        _hand_down(select, each)
    return None if any(map(_strays, question)) else question


def _sum(query: exp.Select) -> exp.Select:
    """Of its column ``held``; 0 of no rows."""
    total = exp.Coalesce(this=exp.Sum(this=column("held")), expressions=[number(0)])
    made = exp.Select(expressions=[called(total, "held")])
    made.set("from_", exp.From(this=derived(query, "r")))
    return made


def _size(held: _Gathered) -> exp.Expression:
    """The bytes of one row, as a BIGINT: as text, which no value's form in memory is much larger than."""
    texts = [cast(value.copy(), TEXT) for value in held.values]
    lengths: list[exp.Expression] = [
        exp.Coalesce(this=exp.Anonymous(this="OCTET_LENGTH", expressions=[text]), expressions=[exp.Literal.number(0)])
        for text in texts
    ]
    return _where(held, _total([number(ITEM_BYTES), *lengths]), number(0))


def _where(held: _Gathered, value: exp.Expression, otherwise: exp.Expression) -> exp.Expression:
    if held.condition is None:
        return value
    return exp.Case(ifs=[exp.If(this=held.condition.copy(), true=value)], default=otherwise)


def _total(terms: Sequence[exp.Expression]) -> exp.Expression:
    return reduce(lambda left, right: exp.Add(this=left, expression=right), terms)


def _uncorrelated(select: exp.Select) -> tuple[exp.Select, list[exp.Expression]]:
    """What ``select`` reads without its outputs and the conditions that name outer columns, and what those compare."""
    reading = exp.Select()
    for clause in ("from_", "joins", "laterals"):
        given = select.args.get(clause)
        if given:
            reading.set(clause, [each.copy() for each in given] if isinstance(given, list) else given.copy())
    where, own = select.args.get("where"), frozenset(_called(select))
    if where is None or not _strays(where, own):
        reading.set("where", where and where.copy())
        return reading, []
    kept: list[exp.Expression] = []
    equal: list[exp.Expression] = []
    for condition in _conjuncts(where.this):
        if not _strays(condition, own):
            kept.append(condition.copy())
        elif isinstance(condition, exp.EQ):
            sides = [side for side in (condition.this, condition.expression) if not _strays(side, own)]
            equal += [side.copy() for side in sides if side.find(exp.Column)]
    if kept:
        reading.set("where", exp.Where(this=exp.and_(*kept, copy=False)))
    return reading, equal


def _conjuncts(condition: exp.Expression) -> Iterator[exp.Expression]:
    stack = [condition]
    while stack:
        found = stack.pop()
        if isinstance(found, exp.And):
            stack += [found.expression, found.this]
        elif isinstance(found, exp.Paren) and isinstance(found.this, (exp.And, exp.EQ, exp.Paren)):
            stack.append(found.this)
        else:
            yield found


def _hand_down(select: exp.Select, asked: exp.Select) -> None:
    """Give ``asked`` the WITH queries that ``select`` sees."""
    seen: list[exp.CTE] = []
    recursive = False
    below: exp.Expression | None = None
    node: exp.Expression | None = select
    while node is not None:
        within = node if isinstance(node, exp.With) else node.args.get("with_")
        if within is not None and within is not below:
            around = within.expressions
            if within is node and not within.args.get("recursive"):  # of those beside it only the earlier ones
                around = around[: next(i for i, each in enumerate(around) if each is below)]
            recursive = recursive or bool(within.args.get("recursive"))
            seen = [*(each.copy() for each in around), *seen]
        below, node = node, node.parent
    if seen:
        asked.set("with_", exp.With(expressions=seen, recursive=recursive))


# -- names ------------------------------------------------------------------------------------------------------------


def _called(select: exp.Expression) -> set[str]:
    """What the relations in FROM of ``select`` are called."""
    names: set[str] = set()
    stack: list[exp.Expression] = []
    for clause in ("from_", "joins", "laterals"):
        given = select.args.get(clause)
        stack += given if isinstance(given, list) else [given] if given is not None else []
    while stack:
        found = stack.pop()
        if isinstance(found, (exp.From, exp.Join)):
            stack.append(found.this)
            continue
        if found.alias_or_name:
            names.add(found.alias_or_name)
        stack += [*(found.args.get("joins") or ()), *(found.args.get("laterals") or ())]
        if isinstance(found, (exp.Subquery, exp.Paren)) and not isinstance(found.this, exp.Query):
            stack.append(found.this)
        elif isinstance(found, exp.Subquery) and not found.alias:
            names |= _called(found.this)
    return names


def _strays(node: exp.Expression, known: frozenset[str] = frozenset()) -> bool:
    """Whether ``node``, where relations called ``known`` are read, names a column of another one around it."""
    stack = [(node, known)]
    while stack:
        found, known = stack.pop()
        if isinstance(found, exp.Select):
            known = known | _called(found)
        elif isinstance(found, exp.Column) and found.table and found.table not in known:
            return True
        stack += [(each, known) for each in found.iter_expressions()]
    return False
