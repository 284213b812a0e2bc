"""Long lists and chains planned by samples: what differs in its values alone is bound, typed and planned once.

Of 5,000 terms ``a < 1 OR a < 2 OR …``, items of an IN or rows of VALUES most say the same of other values, and
planning takes 50 to 500 µs for each.  :func:`shortened` leaves two of each shape in the statement, with values that
stand nowhere else in it, and :meth:`Shortened.whole` puts the others into the plan: what became of a sample, with their
values.

A value is taken out only where it certainly decides about nothing but itself: a whole number that is an ``int4``, a
decimal as long as the sample's, a text without blanks at its end, compared with a column or by itself in a list.  And a
sample has to be found again as it was put in: each of its values once and as a plain literal, as many things in the
list or the chain as were left there, in their order, each sample at its own place.  A text that was read as a date, a
comparison that became two, a list that became a key: all that is :class:`NotAlike`, and the statement is planned as
it is written, which also alone decides about errors.

A long chain of ``+``, ``*`` or ``||`` is shortened too, to its first operands and samples of the others: what it means
hangs on the types to the left, so it is planned with more samples as well, and has to say the same.  Nothing that is
written once is as deep as such a chain then, and so it may be longer than the levels that planning has the stack for.
Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import count, zip_longest
from operator import itemgetter

from sqlglot import exp

from sql.statements.plans import LookupPlan, SelectPlan
from sql.trees.budget import OPERATORS, check_whole, connected, joined, operands
from sql.trees.nodes import copied

LIST_MIN = 64
"""Items, rows or terms from which samples are looked for."""

SIGNS_MIN = 200
"""Operands of a chain of operators from which samples are looked for: shorter ones are planned as they are written,
which some more levels allow (:data:`sql.trees.budget.DEPTH_MAX`)."""

SHAPE_MIN = 8
"""Of one shape, from which two of them stand for all."""

TRIES_MAX, _SPREAD = 100, 7_919
"""For a value that stands nowhere yet; there are few decimals that are short.  A prime, so that they differ."""

_INT4 = re.compile(r"0|[1-9][0-9]{0,8}")
_DECIMAL = re.compile(r"(0|[1-9][0-9]{0,8})\.([0-9]{1,9})")

_COMPARISONS = frozenset({exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE})


class NotAlike(Exception):
    """The statement has to be planned as it is written."""


@dataclass
class _Sample:
    """One of a shape: its place among what was left, and the values that were put in."""

    place: int
    values: tuple[str, ...]


@dataclass
class _Group:
    """A list or a chain.  ``parts`` are what stood there, each with its shape and its values, or ``None`` where it was
    left as it is; ``kept`` are the places of those that were left."""

    parts: Sequence[tuple[object, tuple[str, ...]] | None]
    kept: Sequence[int]
    samples: Mapping[object, Sequence[_Sample]]
    """Of each shape; the first is what the others are made of."""
    operator: type[exp.Binary] | None = None
    """Of a chain of operators."""

    @property
    def values(self) -> set[str]:
        """All that were put in."""
        return {value for samples in self.samples.values() for sample in samples for value in sample.values}

    def restored(self, found: Sequence, made: Callable[[object, Mapping[str, str]], object]) -> list:
        """Everything in its order, from what became of what was left.  ``made`` makes one of a sample's for other
        values."""
        if len(found) != len(self.kept):
            raise NotAlike
        left = dict(zip(self.kept, found, strict=True))
        sampled = {sample.place: sample for samples in self.samples.values() for sample in samples}
        whole = []
        for place, part in enumerate(self.parts):
            if place in left and place not in sampled:
                whole.append(left[place])
                continue
            shape, values = part
            sample = sampled.get(place) or self.samples[shape][0]
            whole.append(made(left[sample.place], dict(zip(sample.values, values, strict=True))))
        return whole


@dataclass
class Shortened:
    """``ast`` with samples in the place of what is long in it."""

    ast: exp.Expression
    groups: list[_Group] = field(default_factory=list)

    @property
    def chained(self) -> bool:
        """Whether a chain of operators is shortened in it."""
        return any(group.operator is not None for group in self.groups)

    def whole(self, plan: SelectPlan) -> SelectPlan:
        """The plan of the statement, from that of ``ast``.  :class:`NotAlike` where it does not say what it is, 54001
        where it is too large: views and WITH queries in it are written out."""
        tree, lookup = plan.tree, plan.lookup
        if plan.kind == "catalog":
            raise NotAlike
        for group in self.groups:
            if group.operator is not None:
                tree, lookup = _in_operators(tree, group), None  # which evaluates nothing as deep as that
                continue
            tree = _in_tree(tree, group)
            lookup = None if lookup is None else _in_lookup(lookup, group)
        check_whole(tree)
        return replace(plan, tree=tree, lookup=lookup)


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


# -- what is alike ----------------------------------------------------------------------------------------------------


def shortened(ast: exp.Expression, more: bool = False) -> Shortened | None:
    """A copy of ``ast`` with samples; ``None`` where nothing in it is long enough, or what is long is not alike.

    ``more``: :data:`MORE` than two of each shape are left in a chain of operators.
    """
    long = list(_long(ast))
    if not long:
        return None
    seen = {node.this for node in ast.find_all(exp.Literal)}
    fresh = (n for n in count(987_600_001) if str(n) not in seen)
    made = Shortened(ast)
    instead: dict[int, exp.Expression] = {}
    chains = 0
    for node, items in long:
        if type(node) in OPERATORS:
            group, left = _group(items, _values(fresh, seen), FIRST, 2 + more * MORE[type(node)] + chains)
            chains += 1  # by how many are left each is known
        else:
            group, left = _group(items, _values(fresh, seen))
        if group is None:
            continue
        made.groups.append(group)
        if type(node) in OPERATORS:
            group.operator = type(node)
            instead[id(node)] = _chained(node, left)
        elif isinstance(node, exp.Connector):
            instead[id(node)] = joined(type(node), left)
        else:
            others = {key: each for key, each in node.args.items() if key != "expressions"}
            instead[id(node)] = short = type(node)()
            for key, each in others.items():
                short.set(key, copied(each) if isinstance(each, exp.Expression) else each)
            short.set("expressions", left)
            short.meta.update(node.meta)
    if not made.groups:
        return None
    made.ast = copied(ast, instead)
    return made


def _long(ast: exp.Expression) -> Iterator[tuple[exp.Expression, Sequence[exp.Expression]]]:
    """The lists and chains that are long, the outermost only."""
    stack = [ast]
    while stack:
        node = stack.pop()
        if isinstance(node, (exp.In, exp.Values, exp.Array)) and len(node.expressions) >= LIST_MIN:
            yield node, node.expressions
            continue
        if isinstance(node, exp.Connector) and node is not ast:
            chain = connected(node)
            if len(chain) >= LIST_MIN:
                yield node, chain
            else:
                stack += chain
            continue
        if type(node) in OPERATORS:
            chain = operands(node)
            if len(chain) >= SIGNS_MIN:
                yield node, chain
            else:
                stack += chain
            continue
        stack += node.iter_expressions()


FIRST = 3
"""Operands of a chain of operators that are left as they are: behind them its type does not change any more, or the
plan of more samples shows that it does."""


MORE: dict[type[exp.Binary], int] = {exp.Add: 38, exp.Mul: 38, exp.DPipe: 1}
"""What shows whether it does.  A numeric with digits has one more with each operand, until 38 are too few for it."""


def _chained(top: exp.Binary, parts: Sequence[exp.Expression]) -> exp.Expression:
    """``parts`` with the operator of ``top`` between them, from left to right."""
    kind = type(top)
    others = {key: each for key, each in top.args.items() if key not in ("this", "expression")}

    def made(left: exp.Expression, right: exp.Expression) -> exp.Expression:
        both = kind(this=left, expression=right, **others)
        both.meta.update(top.meta)
        return both

    return reduce(made, parts)


def _values(fresh: Iterator[int], seen: set[str]) -> Callable[[str], str]:
    """What makes a value of a kind that stands nowhere in the statement yet."""

    def value(kind: str) -> str:
        for _ in range(TRIES_MAX):
            number = next(fresh)
            made = f"sample {number}" if kind == "text" else str(number)
            if kind not in ("text", "int4"):
                whole, places = map(int, kind.split("."))
                digits = str(number * _SPREAD)[-whole - places :]  # the last ones differ most
                made = f"{digits[:whole].replace('0', '5') or '0'}.{digits[whole:]}"
            if made not in seen:
                seen.add(made)
                return made
        raise NotAlike

    return value


def _group(
    items: Sequence[exp.Expression], value: Callable[[str], str], first: int = 0, left_of_each: int = 2
) -> tuple[_Group | None, list[exp.Expression]]:
    """What ``items`` are, and what is left of them: the ``first`` as they are, and ``left_of_each`` shape.

    ``first``: of a chain of operators.  What an operand is added to hangs on what has been before it: so one is alike
    those only that are behind the same sorts of operands.
    """
    seen: set[object] = set()
    parts: list[tuple[object, tuple[str, ...]] | None] = []
    places: dict[object, list[int]] = {}
    for place, item in enumerate(items):
        values: list[str] = []
        shape = _shape(item, values)
        if first:
            seen.add(shape or item.sql("postgres"))
            shape = None if shape is None else (len(seen), shape)
        parts.append(None if shape is None else (shape, tuple(values)))
        if shape is not None and (values or first) and place >= first:
            places.setdefault(shape, []).append(place)
    samples: dict[object, Sequence[_Sample]] = {}
    left: dict[int, exp.Expression] = {}
    taken: set[int] = set()
    for shape, found in places.items():
        if len(found) < SHAPE_MIN:
            continue
        several = []
        for place in found[:left_of_each]:
            left[place], values = _with_values(items[place], value)
            several.append(_Sample(place, values))
        samples[shape] = several
        taken.update(found[left_of_each:])
    kept = [place for place in range(len(items)) if place not in taken]
    if not samples:
        return None, []
    return _Group(parts, kept, samples), [left.get(place) or copied(items[place]) for place in kept]


def _shape(node: exp.Expression, values: list[str]) -> object | None:
    """What ``node`` says without its values, which are put into ``values``; ``None`` where it says something else."""
    kind = type(node)
    if kind is exp.Literal:
        found = _kind(node)
        if found is not None:
            values.append(node.this)
        return found
    if kind in _COMPARISONS or kind is exp.And:
        left, right = _shape(node.this, values), _shape(node.expression, values)
        return None if left is None or right is None or len(node.args) != 2 else (kind, left, right)
    if kind is exp.Column:
        return (kind, *((key, each.this, each.args.get("quoted")) for key, each in node.args.items() if each))
    if kind is exp.Paren or kind is exp.Neg and type(node.this) is exp.Literal and not node.this.is_string:
        inner = _shape(node.this, values)
        return None if inner is None else (kind, inner)
    if kind is exp.Tuple:
        inners = tuple([_shape(each, values) for each in node.expressions])
        return None if None in inners else (kind, inners)
    if kind is exp.Null or kind is exp.Boolean:
        return kind, node.args.get("this")
    return None


def _kind(literal: exp.Literal) -> str | None:
    """Which values might stand in the place of this one; ``None`` where nobody knows."""
    text = literal.this
    if literal.is_string:
        return "text" if text and not text[-1].isspace() else None
    if _INT4.fullmatch(text):
        return "int4"
    decimal = _DECIMAL.fullmatch(text)
    return None if decimal is None else f"{0 if decimal[1] == '0' else len(decimal[1])}.{len(decimal[2])}"


def _with_values(item: exp.Expression, value: Callable[[str], str]) -> tuple[exp.Expression, tuple[str, ...]]:
    """A copy of ``item`` with other values, and those in the order of :func:`_shape`."""
    made = exp.Paren(this=copied(item))
    values = []
    stack = [made.this]
    while stack:
        node = stack.pop()
        if type(node) is exp.Literal:
            other = value(_kind(node))
            node.set("this", other)
            values.append(other)
        elif type(node) is not exp.Column:
            stack += reversed(list(node.iter_expressions()))
    return made.this.pop(), tuple(values)


# -- what became of it ------------------------------------------------------------------------------------------------


def _in_tree(tree: exp.Expression, group: _Group) -> exp.Expression:
    """``tree`` with all that ``group`` stands for."""
    holder = exp.Paren(this=tree)
    where = _found(holder, group)
    one, other = next(iter(group.samples.values()))[:2]
    around, far = _ancestors(where[one.values[0]]), _ancestors(where[other.values[0]])
    above = {id(node) for node in far}
    at = next((node for node in around if id(node) in above), None)
    if isinstance(at, exp.Connector):
        while type(at.parent) is type(at):
            at = at.parent
        items: Sequence[exp.Expression] = connected(at)
    elif at is not None and type(at.args.get("expressions")) is list:
        items = at.expressions
    else:
        raise NotAlike
    _check_places(items, where, group)
    whole = group.restored(items, _copy_for)
    if isinstance(at, exp.Connector):
        half = len(whole) // 2
        at.set("this", joined(type(at), whole[:half]))
        at.set("expression", joined(type(at), whole[half:]))
    else:
        at.set("expressions", whole)
    return holder.this.pop()


def _in_operators(tree: exp.Expression, group: _Group) -> exp.Expression:
    """The same of a chain of operators: the only one in ``tree`` that has as many operands as were left."""
    holder = exp.Paren(this=tree)
    kind = group.operator
    tops = [node for node in holder.find_all(kind) if type(node) is kind and not _goes_on(node)]
    chains = [(top, items) for top in tops if len(items := operands(top)) == len(group.kept)]
    if len(chains) != 1:
        raise NotAlike
    [(top, items)] = chains
    _check_places(items, _found(holder, group), group)
    top.replace(_chained(top, group.restored(items, _copy_for)))
    return holder.this.pop()


def _goes_on(node: exp.Expression) -> bool:
    """Whether ``node`` is the left side of one like it."""
    return type(node.parent) is type(node) and node.arg_key == "this"


def _found(holder: exp.Expression, group: _Group) -> dict[str, exp.Literal]:
    """Where the values of samples are: each once."""
    wanted = group.values
    where: dict[str, exp.Literal] = {}
    for literal in holder.find_all(exp.Literal):
        if literal.this in wanted:
            if literal.this in where:
                raise NotAlike
            where[literal.this] = literal
    if len(where) != len(wanted):
        raise NotAlike
    return where


def _check_places(items: Sequence[exp.Expression], where: Mapping[str, exp.Literal], group: _Group) -> None:
    """:class:`NotAlike` where a sample's values are not all in the item that stands in its place."""
    inside = {id(item): place for place, item in zip(group.kept, items, strict=False)}
    for samples in group.samples.values():
        for sample in samples:
            for value in sample.values:
                if next((inside[id(n)] for n in _ancestors(where[value]) if id(n) in inside), None) != sample.place:
                    raise NotAlike


def _ancestors(node: exp.Expression) -> list[exp.Expression]:
    """``node`` and what is above it."""
    found = []
    while node is not None:
        found.append(node)
        node = node.parent
    return found


def _copy_for(item: exp.Expression, values: Mapping[str, str]) -> exp.Expression:
    """A copy of ``item`` with other values."""
    made = copied(item)
    stack = [made]
    while stack:
        node = stack.pop()
        if type(node) is exp.Literal:
            if node.this in values:
                node.args["this"] = values[node.this]
        elif type(node) is not exp.Column:
            stack += node.iter_expressions()
    return made


def _in_lookup(lookup: LookupPlan, group: _Group) -> LookupPlan:
    """``lookup`` with all that ``group`` stands for in its filter: :class:`NotAlike` where it is elsewhere."""
    wanted = group.values
    where: dict[str, tuple[int, ...]] = {}
    stack: list[tuple[tuple[int, ...], object]] = [((), lookup.residual["filter"])]
    while stack:
        path, node = stack.pop()
        if not isinstance(node, list):
            continue
        if node and node[0] == "lit" and node[1] is not None:
            value = node[1].removeprefix("-")
            if value in wanted:
                if value in where:
                    raise NotAlike
                where[value] = path
        else:
            stack += [((*path, place), each) for place, each in enumerate(node)]
    if len(where) != len(wanted):
        raise NotAlike
    one, other = (where[sample.values[0]] for sample in next(iter(group.samples.values()))[:2])
    depth = next((n for n in range(min(len(one), len(other))) if one[n] != other[n]), None)
    if depth is None:
        raise NotAlike
    path = one[:depth]
    at = lookup.residual["filter"]
    for place in path:
        at = at[place]
    begin = _OPERANDS_FROM.get(at[0])
    if begin is None:
        raise NotAlike
    for samples in group.samples.values():
        for sample in samples:
            expected = (*path, begin + group.kept.index(sample.place))
            if any(where[value][: depth + 1] != expected for value in sample.values):
                raise NotAlike
    whole = [*at[:begin], *group.restored(at[begin:], _form_for)]
    return replace(lookup, residual={**lookup.residual, "filter": _replaced(lookup.residual["filter"], path, whole)})


_OPERANDS_FROM = {"or": 1, "and": 1, "in": 2}
"""Where the terms of a chain and the items of a list begin, in the portable form."""


def _replaced(node: list, path: Sequence[int], made: list) -> list:
    if not path:
        return made
    return [_replaced(each, path[1:], made) if place == path[0] else each for place, each in enumerate(node)]


def _form_for(form: object, values: Mapping[str, str]) -> object:
    """A term or an item in the portable form, with other values."""
    if not isinstance(form, list):
        return form
    if form[0] == "lit" and form[1] is not None:
        sign = "-" if form[1].startswith("-") else ""
        value = values.get(form[1].removeprefix("-"))
        return form if value is None else ["lit", sign + value, *form[2:]]
    return [_form_for(each, values) for each in form]
