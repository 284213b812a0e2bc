"""What became of samples, put into a plan for all that they stood for (:mod:`sql.statements.samples`).

Promises: :class:`NotAlike` where a sample is not found as it was put in, each of its values once and in its own place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from sqlglot import exp

from lower.lookup.asked import PARAMETERS, Lookup
from sql.statements.moulds import Mould, number_of_parameter, parameter, written
from trees.budget import connected, joined, operands
from trees.stamps import Stamp


class NotAlike(Exception):
    """The statement has to be planned as it is written."""


@dataclass
class Sample:
    """One of a mould: its place among what was left, and the values that were put in."""

    place: int
    values: tuple[str, ...]


@dataclass
class Group:
    """A list or a chain.  ``parts`` are what stood there, each with its mould and its values, or ``None`` where it was
    left as it is; ``kept`` are the places of those that were left."""

    parts: Sequence[tuple[Mould, tuple[str, ...]] | None]
    kept: Sequence[int]
    samples: Mapping[Mould, Sequence[Sample]]
    """Of each mould; the first is what the others are made of."""
    operator: type[exp.Binary] | None = None
    """Of a chain of operators."""
    more: int = 0
    """How many nodes are put in for it at most, once they are."""

    @property
    def values(self) -> set[str]:
        """All that were put in."""
        return {value for samples in self.samples.values() for sample in samples for value in sample.values}

    def restored(self, found: Sequence, maker: Callable[[object, Sample], Callable[[Sequence[str]], object]]) -> list:
        """Everything in its order, from what became of what was left.  ``maker``: what makes one of a sample's for
        other values."""
        if len(found) != len(self.kept):
            raise NotAlike
        left = dict(zip(self.kept, found, strict=True))
        of_sample, of_mould = {}, {}
        for mould, samples in self.samples.items():
            makers = [maker(left[sample.place], sample) for sample in samples]
            of_sample.update(zip([sample.place for sample in samples], makers, strict=True))
            of_mould[mould] = makers[0]
        whole = []
        for place, part in enumerate(self.parts):
            if place in left and place not in of_sample:
                whole.append(left[place])
            else:
                mould, values = part
                whole.append((of_sample.get(place) or of_mould[mould])(values))
        return whole


def in_tree(tree: exp.Expression, group: Group) -> exp.Expression:
    """``tree`` with all that ``group`` stands for."""
    holder = exp.Paren(this=tree)
    where = _found(holder, group)
    one, other = next(iter(group.samples.values()))[:2]
    around = _ancestors(where[one.values[0]])
    above = {id(node) for node in _ancestors(where[other.values[0]])}
    below, at = next((pair for pair in zip(around, around[1:], strict=False) if id(pair[1]) in above), (None, None))
    if isinstance(at, exp.Connector):
        while type(at.parent) is type(at):
            at = at.parent
        items: Sequence[exp.Expression] = connected(at, _chains_within(where, group))
    elif at is not None and type(at.args.get(below.arg_key)) is list:
        items = at.args[below.arg_key]
    else:
        raise NotAlike
    _check_places(items, where, group)
    whole = group.restored(items, _stamp(where, group))
    if isinstance(at, exp.Connector):
        half = len(whole) // 2
        at.set("this", joined(type(at), whole[:half]))
        at.set("expression", joined(type(at), whole[half:]))
    else:
        at.set(below.arg_key, whole)
    return holder.this.pop()


def in_operators(tree: exp.Expression, group: Group) -> exp.Expression:
    """The same of a chain of operators: the only one in ``tree`` that has as many operands as were left."""
    holder = exp.Paren(this=tree)
    kind = group.operator
    tops = [node for node in holder.find_all(kind) if type(node) is kind and not _goes_on(node)]
    chains = [(top, items) for top in tops if len(items := operands(top)) == len(group.kept)]
    if len(chains) != 1:
        raise NotAlike
    [(top, items)] = chains
    where = _found(holder, group)
    _check_places(items, where, group)
    top.replace(chained(top, group.restored(items, _stamp(where, group))))
    return holder.this.pop()


def chained(top: exp.Binary, parts: Sequence[exp.Expression]) -> exp.Expression:
    """``parts`` with the operator of ``top`` between them, from left to right."""
    kind = type(top)
    others = {key: each for key, each in top.args.items() if key not in ("this", "expression")}

    def made(left: exp.Expression, right: exp.Expression) -> exp.Expression:
        both = kind(this=left, expression=right, **others)
        both.meta.update(top.meta)
        return both

    return reduce(made, parts)


def _goes_on(node: exp.Expression) -> bool:
    """Whether ``node`` is the left side of one like it."""
    return type(node.parent) is type(node) and node.arg_key == "this"


def _found(holder: exp.Expression, group: Group) -> dict[str, exp.Literal]:
    """Where the values of samples are: each once."""
    wanted = group.values
    where: dict[str, exp.Literal] = {}
    for node in holder.find_all(exp.Literal, exp.Parameter):
        value = parameter(node.name) if type(node) is exp.Parameter else node.this
        if value in wanted:
            if value in where:
                raise NotAlike
            where[value] = node.this if type(node) is exp.Parameter else node
    if len(where) != len(wanted):
        raise NotAlike
    return where


def _check_places(items: Sequence[exp.Expression], where: Mapping[str, exp.Literal], group: Group) -> None:
    """:class:`NotAlike` where a sample's values are not all in the item that stands in its place."""
    inside = {id(item): place for place, item in zip(group.kept, items, strict=False)}
    for samples in group.samples.values():
        for sample in samples:
            for value in sample.values:
                if next((inside[id(n)] for n in _ancestors(where[value]) if id(n) in inside), None) != sample.place:
                    raise NotAlike


def _chains_within(where: Mapping[str, exp.Literal], group: Group) -> set[int]:
    """Ids of connectors that are a sample's own: what all of its values are in."""
    found = set()
    for samples in group.samples.values():
        for sample in samples:
            around = _ancestors(where[sample.values[0]])
            for value in sample.values[1:]:
                above = {id(node) for node in _ancestors(where[value])}
                around = [node for node in around if id(node) in above]
            if len(sample.values) > 1:
                found.add(id(around[0]))
    return found


def _ancestors(node: exp.Expression) -> list[exp.Expression]:
    """``node`` and what is above it."""
    found = []
    while node is not None:
        found.append(node)
        node = node.parent
    return found


def _stamp(
    where: Mapping[str, exp.Literal], group: Group
) -> Callable[[exp.Expression, Sample], Callable[[Sequence[str]], object]]:
    def maker(item: exp.Expression, sample: Sample) -> Callable[[Sequence[str]], exp.Expression]:
        stamp = Stamp(item, [where[value] for value in sample.values])
        group.more = max(group.more, (len(stamp.nodes) + 1) * len(group.parts))
        if not any(map(number_of_parameter, sample.values)):
            return stamp.made
        return lambda values: stamp.made([written(value) for value in values])

    return maker


# -- lookups ----------------------------------------------------------------------------------------------------------


def in_lookup(lookup: Lookup, group: Group) -> Lookup:
    """``lookup`` with all that ``group`` stands for in its filter: :class:`NotAlike` where it is elsewhere."""
    wanted = group.values
    where: dict[str, tuple[int, ...]] = {}
    stack: list[tuple[tuple[int, ...], object]] = [((), lookup.residual["filter"])]
    while stack:
        path, node = stack.pop()
        if not isinstance(node, list):
            continue
        value = _value_of(node)
        if value is None:
            stack += [((*path, place), each) for place, each in enumerate(node)]
        elif value in wanted:
            if value in where:
                raise NotAlike
            where[value] = path
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

    def maker(form: object, sample: Sample) -> Callable[[Sequence[str]], object]:
        return lambda values: _form_for(form, dict(zip(sample.values, values, strict=True)))

    whole = [*at[:begin], *group.restored(at[begin:], maker)]
    return replace(lookup, residual={**lookup.residual, "filter": _replaced(lookup.residual["filter"], path, whole)})


_OPERANDS_FROM = {"or": 1, "and": 1, "in": 2}
"""Where the terms of a chain and the items of a list begin, in the portable form."""


def _value_of(form: list) -> str | None:
    """The value that is all that ``form`` says."""
    if not form or form[0] not in ("lit", *PARAMETERS) or form[1] is None:
        return None
    return form[1].removeprefix("-") if form[0] == "lit" else parameter(form[1])


def _replaced(node: list, path: Sequence[int], made: list) -> list:
    if not path:
        return made
    return [_replaced(each, path[1:], made) if place == path[0] else each for place, each in enumerate(node)]


def _form_for(form: object, values: Mapping[str, str]) -> object:
    """A term or an item in the portable form, with other values."""
    if not isinstance(form, list):
        return form
    if (known := _value_of(form)) is None:
        return [_form_for(each, values) for each in form]
    value = values.get(known)
    if value is None:
        return form
    if form[0] != "lit":
        return [form[0], int(written(value)), *form[2:]]
    return ["lit", ("-" if form[1].startswith("-") else "") + value, *form[2:]]
