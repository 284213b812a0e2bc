"""Long lists and chains planned by samples: what differs in its values alone is bound, typed and planned once.

Of 5,000 terms ``a < 1 OR a < 2 OR …``, items of an IN or rows of VALUES most say the same of other values, and
planning takes 50 to 500 µs for each.  :func:`shortened` leaves two of each mould (:mod:`sql.statements.moulds`) in the
statement, with values that stand nowhere else in it, and :meth:`Shortened.whole` puts the others into the plan
(:mod:`sql.statements.put_back`): what became of a sample, with their values.

A sample has to be found again as it was put in: each of its values once and as a plain literal, as many things in the
list or the chain as were left there, in their order, each sample at its own place.  A text that was read as a date, a
comparison that became two, a list that became a key: all that is :class:`NotAlike`, and the statement is planned as
it is written, which also alone decides about errors.

Of parameters that stand in the statement once, a sample is one of them, and the others have its type.

A long chain of ``+``, ``*`` or ``||`` is shortened too, to its first operands and samples of the others: what it means
hangs on the types to the left, so it is planned with more samples as well, and has to say the same.  Nothing that is
written once is as deep as such a chain then, and so it may be longer than the levels that planning has the stack for.
Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import zip_longest
from operator import itemgetter

from sqlglot import exp

from sql.statements.moulds import Mould, Moulds, Part, Unlike, number_of_parameter
from sql.statements.plans import SelectPlan
from sql.statements.put_back import Group, NotAlike, Sample, chained, in_lookup, in_operators, in_tree
from trees import budget
from trees import types as t
from trees.budget import OPERATORS, check_whole, connected, joined, operands, size
from trees.copying import copied
from trees.unwritten import Flat, Kept, Unwritten
from values.types import SqlType

LIST_MIN = 64
"""Items, rows or terms from which samples are looked for."""

SIGNS_MIN = 200
"""Operands of a chain of operators from which samples are looked for: shorter ones are planned as they are written,
which some more levels allow (:data:`trees.budget.DEPTH_MAX`)."""

SHAPE_MIN = 8
"""Of one mould, from which two of them stand for all."""

FIRST = 3
"""Operands of a chain of operators that are left as they are: behind them its type does not change any more, or the
plan of more samples shows that it does."""

MORE: dict[type[exp.Binary], int] = {exp.Add: 38, exp.Mul: 38, exp.DPipe: 1}
"""What shows whether it does.  A numeric with digits has one more with each operand, until 38 are too few for it."""

_LISTS: dict[type[exp.Expression], str] = {
    **dict.fromkeys((exp.In, exp.Values, exp.Array, exp.Coalesce, exp.Greatest, exp.Least), "expressions"),
    exp.Case: "ifs",
}
"""What has a list that may be long, and under which key."""


@dataclass
class Shortened:
    """``ast`` with samples in the place of what is long in it."""

    ast: exp.Expression
    groups: Sequence[Group]

    @property
    def chained(self) -> bool:
        """Whether a chain of operators is shortened in it."""
        return any(group.operator is not None for group in self.groups)

    def declared(self, declared: Mapping[int, SqlType] | None) -> dict[int, SqlType]:
        """The types that the parameters of ``ast`` are declared to have, where those of the statement are
        ``declared``: any for those that are not in it, so that it is not their absence that is refused."""
        return {**dict.fromkeys(self._types_of, t.TEXT), **(declared or {})}

    def whole(self, plan: SelectPlan) -> SelectPlan:
        """The plan of the statement, from that of ``ast``.  :class:`NotAlike` where it does not say what it is, 54001
        where it is too large: views and WITH queries in it are written out."""
        tree, lookup = plan.tree, plan.lookup
        if plan.kind == "catalog":
            raise NotAlike
        nodes = size(tree)
        for group in self.groups:
            if group.operator is not None:
                tree, lookup = in_operators(tree, group), None  # which evaluates nothing as deep as that
                continue
            tree = in_tree(tree, group)
            lookup = None if lookup is None else in_lookup(lookup, group)
        if nodes is None or self.chained or nodes + sum(group.more for group in self.groups) > budget.NODES_MAX:
            check_whole(tree)
        params = {**plan.params, **{left_out: plan.params[one] for left_out, one in self._types_of.items()}}
        # Of the keys that it sees, those of samples are a few.
        return replace(plan, tree=tree, lookup=lookup, one_row=None, params=params, keys_seen=())

    @cached_property
    def _types_of(self) -> dict[int, int]:
        """Parameters that are not in ``ast``, and one that is for each, which has the same type."""
        found: dict[int, int] = {}
        for group in self.groups:
            of_mould = {mould: [number_of_parameter(value) for value in samples[0].values]
                        for mould, samples in group.samples.items()}  # fmt: skip
            if not any(any(numbers) for numbers in of_mould.values()):
                continue
            for part in group.parts:
                if part is not None and (numbers := of_mould.get(part[0])) is not None:
                    for value, one in zip(part[1], numbers, strict=True):
                        if one is not None:
                            found[number_of_parameter(value)] = one
            left = [value for place in group.kept if (part := group.parts[place]) is not None for value in part[1]]
            left += [value for samples in group.samples.values() for sample in samples for value in sample.values]
            for value in left:
                found.pop(number_of_parameter(value), None)
        return found


def check_alike(plan: SelectPlan, other: SelectPlan) -> None:
    """:class:`NotAlike` where two plans of one statement, of other numbers of samples, do not say the same."""
    if (plan.columns, plan.params, plan.kind) != (other.columns, other.params, other.kind):
        raise NotAlike
    if any(one != another for one, another in zip_longest(_words(plan.tree), _words(other.tree))):
        raise NotAlike


def _words(tree: exp.Expression) -> Iterator[object]:
    """All that ``tree`` says, from its top down."""
    stack: list[tuple[str, object]] = [("", tree)]
    while stack:
        key, node = stack.pop()
        if isinstance(node, exp.Expression):
            yield key, type(node)
            stack += sorted(node.args.items(), key=itemgetter(0))
        elif type(node) is list:
            yield key, len(node)
            stack += [(key, each) for each in node]
        elif node is not None and node is not False:
            yield key, node


def shortened(
    query: exp.Expression | Unwritten, declared: Mapping[int, SqlType] | None = None, more: bool = False
) -> Shortened | None:
    """A copy of ``query`` with samples; ``None`` where nothing in it is long enough, or what is long is not alike, or
    something would stay unwritten.

    ``more``: :data:`MORE` than two of each mould are left in a chain of operators.
    """
    ast, kept = (query.tree, query.kept) if isinstance(query, Unwritten) else (query, 0)
    moulds, long = Moulds(declared or {}), []
    for node, items in _long(ast):
        if items is None:
            moulds.note(node)
        else:
            long.append((node, items, _parts(items, moulds, type(node) in OPERATORS)))
    if not long:
        return None
    if (repeated := moulds.repeated()) is not None:
        long = [(node, items, _parts(items, repeated, type(node) in OPERATORS)) for node, items, _ in long]
        moulds = repeated
    groups: list[Group] = []
    instead: dict[int, exp.Expression] = {}
    chains = 0
    for node, items, parts in long:
        of_each = 2
        if type(node) in OPERATORS:
            of_each += more * MORE[type(node)] + chains
            chains += 1  # by how many are left each is known
        group, left = _group(items, parts, moulds, of_each, FIRST if type(node) in OPERATORS else 0)
        if not group.samples:
            continue
        groups.append(group)
        if type(node) in OPERATORS:
            group.operator = type(node)
            instead[id(node)] = chained(node, left)
        elif isinstance(node, exp.Connector):
            instead[id(node)] = joined(type(node), left)
        else:
            instead[id(node)] = _with_list(node, _LISTS[type(node)], left)
        kept -= items.kept if type(items) is Flat else 0
    if kept:
        return None
    return Shortened(copied(ast, instead), groups) if groups else None


def _long(ast: exp.Expression) -> Iterator[tuple[exp.Expression, Sequence[exp.Expression] | None]]:
    """The lists and chains that are long, the outermost only, with what they are of; and all else that stands around
    them."""
    stack = [ast]
    while stack:
        node = stack.pop()
        kind = type(node)
        long_list = node.args.get(_LISTS[kind]) if kind in _LISTS else None
        chain: Sequence[exp.Expression] = ()
        if long_list and len(long_list := _flat(long_list)) >= LIST_MIN:
            yield node, long_list
            stack += [each for each in node.iter_expressions() if each.arg_key != _LISTS[kind]]
        elif isinstance(node, exp.Connector) and node is not ast:
            chain = _flat(connected(node))
            if len(chain) >= LIST_MIN:
                yield node, chain
            else:
                stack += chain
        elif kind in OPERATORS:
            chain = operands(node)
            if len(chain) >= SIGNS_MIN:
                yield node, chain
            else:
                stack += chain
        else:
            yield node, None
            stack += node.iter_expressions()


def _flat(items: Sequence[exp.Expression]) -> Sequence[exp.Expression]:
    """``items``, those that are not written out among them."""
    return Flat(items) if any(type(item) is Kept for item in items) else items


def _parts(items: Sequence[exp.Expression], moulds: Moulds, in_order: bool) -> list[Part]:
    """``in_order``: of a chain of operators.  What an operand is added to hangs on what has been before it: so one is
    alike those only that are behind the same sorts of operands."""
    if not in_order:
        found: list[Part] = []
        for item in items.parts if type(items) is Flat else items:
            found += moulds.parts(item.this) if type(item) is Kept else [moulds.part(item)]
        return found
    seen: set[object] = set()
    parts: list[Part] = []
    for item in items:
        part = moulds.part(item)
        seen.add(item.sql("postgres") if part is None else part[0])
        parts.append(None if part is None else ((len(seen), part[0]), part[1]))
    return parts


def _group(
    items: Sequence[exp.Expression], parts: Sequence[Part], moulds: Moulds, of_each: int, first: int
) -> tuple[Group, list[exp.Expression]]:
    """What ``items`` are, and what is left of them: the ``first`` as they are, and ``of_each`` mould."""
    places: dict[Mould, list[int]] = {}
    for place, part in enumerate(parts):
        if part is not None and (part[1] or first) and place >= first:
            places.setdefault(part[0], []).append(place)
    samples: dict[Mould, Sequence[Sample]] = {}
    left: dict[int, exp.Expression] = {}
    taken: set[int] = set()
    for mould, found in places.items():
        if len(found) < SHAPE_MIN:
            continue
        try:
            made = moulds.samples([items[place] for place in found[:of_each]], [parts[place][1] for place in found])
        except Unlike:
            continue
        samples[mould] = [Sample(place, values) for place, (_, values) in zip(found, made, strict=False)]
        left.update(zip(found, [item for item, _ in made], strict=False))
        taken.update(found[of_each:])
    kept = [place for place in range(len(items)) if place not in taken]
    if not samples:
        return Group(parts, kept, samples), []
    return Group(parts, kept, samples), [left.get(place) or items[place].copy() for place in kept]


def _with_list(node: exp.Expression, key: str, items: Sequence[exp.Expression]) -> exp.Expression:
    """A copy of ``node`` with other items."""
    made = type(node)()
    for name, each in node.args.items():
        if name != key:
            made.set(name, each.copy() if isinstance(each, exp.Expression) else each)
    made.set(key, items)
    made.meta.update(node.meta)
    return made
