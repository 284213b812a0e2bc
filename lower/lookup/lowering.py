"""When the arrangement of an index can answer a plan by itself: no Spark, milliseconds.  Pure.

That is a plan over one indexed relation that only filters, projects, sorts and limits, or aggregates everything into
one row, in the small portable grammar that ``controllers/arrangements/residual.py`` evaluates.  Whatever does not fit
is ``None``, and another engine answers; the two must never differ, so anything doubtful (sums of floats, text
functions) does not fit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from catalog_log.objects import Index, Relation, key_names, places
from lower.lookup.asked import Lookup
from lower.lookup.portable import NODES_MAX, Form, NotPortable, Portable
from plan import relations as r
from plan import scalars as s
from plan.columns import over
from plan.nodes import walk
from plan.types import INTERVAL, Type, is_float, is_number
from values.types import SqlType, carried, parse_type

_FOLDED = {"sum", "min", "max", "count"}


def lookup(
    plan: r.Relation, relation: Relation, indexes: Sequence[Index], params: Mapping[int, SqlType], here: bool = False
) -> Lookup | None:
    """The lookup that answers ``plan``, which reads ``relation`` alone, by one of its ``indexes``; or ``None``.
    ``params`` are the types of the parameters in it.  ``here``: of which an adapter evaluates the residual."""
    if not indexes:
        return None
    try:
        parts = _Parts.of(plan)
        residual, conjuncts = _Residual(Portable(params, here), parts).made()
    except NotPortable:
        return None
    index, fixed = max(((each, fixed_by(each, conjuncts, relation)) for each in indexes), key=lambda pair: len(pair[1]))
    # What the key says holds for every row that it finds.  Said twice it would make another residual for every key,
    # and readers of one statement would have less in common.
    said = [id(conjunct) for _, conjunct in fixed]
    residual["filter"] = _all_of([each for each in conjuncts if id(each) not in said])
    return Lookup(index.id, relation.id, tuple(value for value, _ in fixed), residual)


def read_by(plan: r.Relation) -> str | None:
    """The relation that ``plan`` reads where nothing else can be in it but operators of one input."""
    while isinstance(plan, (r.TopK, r.Project, r.Reduce, r.Filter)):
        plan = plan.input
    return plan.item_id if isinstance(plan, r.Get) else None


@dataclass(frozen=True)
class _Parts:
    """A plan of the shape that a lookup has, from its outputs down; ``None`` and empty where it has no such part."""

    outputs: tuple[s.Scalar, ...]
    """Over the columns of ``get``, or over ``aggregates`` where there are any."""
    shown: int
    """How many of them are the query's: the others are sorted by."""
    top: r.TopK | None
    aggregates: tuple[tuple[s.Aggregate, s.Scalar | None], ...] | None
    """Each with what it folds, over the columns of ``get``."""
    conditions: tuple[s.Scalar, ...]
    get: r.Get

    @classmethod
    def of(cls, plan: r.Relation) -> _Parts:
        """Raises ``NotPortable``."""
        shown = None
        if isinstance(plan, r.Project) and isinstance(plan.input, r.TopK):
            if any(not isinstance(o, s.Column) or o.position != i or o.level for i, o in enumerate(plan.outputs)):
                raise NotPortable
            shown, plan = len(plan.outputs), plan.input
        top = plan if isinstance(plan, r.TopK) else None
        if top is not None:
            plan = top.input
        if not isinstance(plan, r.Project) or not plan.outputs:
            raise NotPortable
        outputs, plan = plan.outputs, plan.input
        while isinstance(plan, r.Project):
            outputs, plan = tuple(_over(outputs, plan.outputs)), plan.input
        shown = len(outputs) if shown is None else shown
        if not isinstance(plan, r.Reduce):
            below = Below.of(plan, outputs)
            return cls(below.scalars, shown, top, None, below.conditions, below.get)
        if plan.keys or plan.sets is not None:
            raise NotPortable
        if any(len(each.arguments) > 1 or each.distinct or each.condition or each.within for each in plan.aggregates):
            raise NotPortable
        below = Below.of(
            plan.input, [each.arguments[0] if each.arguments else s.truth(True) for each in plan.aggregates]
        )
        folded = [
            (each, value if each.arguments else None)
            for each, value in zip(plan.aggregates, below.scalars, strict=True)
        ]
        return cls(outputs, shown, top, tuple(folded), below.conditions, below.get)


def _over(scalars: Sequence[s.Scalar], values: tuple[s.Scalar, ...]) -> list[s.Scalar]:
    """``scalars`` of a row whose columns are ``values``, which stand in it as often as they are named: no more of them
    than a lookup may have, or twenty views over each other would be a million."""
    sizes = [sum(1 for _ in walk(each)) for each in values]
    size = 0
    for node in (node for each in scalars for node in walk(each)):
        if isinstance(node, r.Relation):
            raise NotPortable
        size += sizes[node.position] if isinstance(node, s.Column) and not node.level else 1
        if size > NODES_MAX:
            raise NotPortable
    return [over(each, values) for each in scalars]


@dataclass(frozen=True)
class Below:
    """What is under a plan's outputs: filters and views that stand in it, down to the relation."""

    scalars: tuple[s.Scalar, ...]
    conditions: tuple[s.Scalar, ...]
    get: r.Get

    @classmethod
    def of(cls, plan: r.Relation, scalars: Sequence[s.Scalar]) -> Below:
        """``scalars`` over ``plan`` as what they are over the relation.  Raises ``NotPortable``."""
        scalars, conditions = list(scalars), []
        while not isinstance(plan, r.Get):
            if isinstance(plan, r.Filter):
                conditions.insert(0, plan.condition)
            elif isinstance(plan, r.Project):
                scalars, conditions = _over(scalars, plan.outputs), _over(conditions, plan.outputs)
            else:
                raise NotPortable
            plan = plan.input
        return cls(tuple(scalars), tuple(conditions), plan)


@dataclass(frozen=True)
class _Residual:
    portable: Portable
    parts: _Parts

    def made(self) -> tuple[dict[str, object], list[Form]]:
        """The residual, and the terms of its filter."""
        parts = self.parts
        condition = self.portable.all_of(parts.conditions)
        shown = parts.outputs[: parts.shown]
        residual: dict[str, object] = {
            "filter": condition,
            "project": [],
            "aggregate": None,
            "order_by": [],
            "limit": self._limit(),
            "offset": self._offset(),
        }
        if parts.aggregates is not None:
            residual["aggregate"] = [self._aggregate(each, parts.aggregates) for each in shown]
        else:
            made = [self._output(each) for each in shown]
            residual["project"] = [form for form, _ in made]
            residual["order_by"] = self._order(made)
        return residual, conjuncts_of(condition)

    def _output(self, scalar: s.Scalar) -> tuple[Form, SqlType]:
        """An output, and its type.  The cast to what the query says that it is says nothing where it is that."""
        if isinstance(scalar, s.Cast) and not isinstance(scalar.value, s.Parameter):
            if self.portable.constant(scalar) is None:
                form, kind = self.portable.of(scalar.value)
                if kind != scalar.type and not (_is_numeric(kind, scalar.value.type, scalar.type)):
                    raise NotPortable
                return form, kind
        return self.portable.of(scalar)

    def _aggregate(self, scalar: s.Scalar, aggregates: Sequence[tuple[s.Aggregate, s.Scalar | None]]) -> Form:
        target = scalar.type
        while isinstance(scalar, s.Cast) and scalar.type == target:
            scalar = scalar.value
        if not isinstance(scalar, s.Column) or scalar.level:
            raise NotPortable
        node, folded = aggregates[scalar.position]
        if target != node.type:
            raise NotPortable
        if node.name not in _FOLDED:
            raise NotPortable
        if folded is None:
            return ["count_star"]
        if node.name == "sum":
            return ["sum", self._summed(folded)]
        form, kind = self.portable.of(folded)
        if node.name != "count":
            self.portable.check_compared(kind, kind)
        return [node.name, form]

    def _summed(self, scalar: s.Scalar) -> Form:
        if isinstance(scalar, s.Cast) and scalar.type.name == "numeric":
            form, kind = self.portable.of(scalar.value)
            if kind != SqlType("int8"):
                raise NotPortable
            return ["*", form, ["lit", "1", "numeric(1,0)"]]
        form, kind = self.portable.of(scalar)
        if not is_number(kind) or is_float(kind):
            raise NotPortable
        return form

    def _order(self, outputs: Sequence[tuple[Form, SqlType]]) -> list[list[object]]:
        """ORDER BY by output position: what it sorts by is an output, or says what an output says."""
        if self.parts.top is None or not self.parts.top.order:
            return []
        if any(kind.is_array or kind == INTERVAL for _, kind in outputs):
            raise NotPortable
        forms = [form for form, _ in outputs]
        found: list[list[object]] = []
        for each in self.parts.top.order:
            key = each.key
            if not isinstance(key, s.Column) or key.level:
                raise NotPortable
            if key.position < len(forms):
                place = key.position
            elif (wanted := self._output(self.parts.outputs[key.position])[0]) in forms:
                place = forms.index(wanted)
            else:
                raise NotPortable
            found.append([place, "desc" if each.descending else "asc", "first" if each.nulls_first else "last"])
        return found

    def _limit(self) -> object:
        given = _uncast(self.parts.top.limit) if self.parts.top is not None else None
        if isinstance(given, s.Parameter):
            return ["param", given.number, "integer"]
        return None if given is None else _whole(given)

    def _offset(self) -> int:
        given = _uncast(self.parts.top.offset) if self.parts.top is not None else None
        return 0 if given is None else _whole(given)


def _is_numeric(*kinds: Type) -> bool:
    """Whether they are decimals, of which the last two are one: how many digits the portable form counts is its own."""
    return all(isinstance(kind, SqlType) and kind.name == "numeric" for kind in kinds) and kinds[-1] == kinds[-2]


def _uncast(scalar: s.Scalar | None) -> s.Scalar | None:
    while isinstance(scalar, s.Cast):
        scalar = scalar.value
    return scalar


def _whole(scalar: s.Scalar) -> int:
    if not isinstance(scalar, s.Literal) or scalar.value is None:
        raise NotPortable
    return int(scalar.value)


def fixed_by(index: Index, conjuncts: list[Form], relation: Relation) -> list[tuple[tuple[object, ...], Form]]:
    """Values for the leading columns of ``index`` that the query fixes by equality, each with what says so."""
    place = places(relation)
    types = {column.name: carried(parse_type(column.type).plain) for column in relation.columns}
    fixed: dict[int, tuple[tuple[object, ...], Form]] = {}
    for each in conjuncts:
        if each[0] != "=":
            continue
        for left, right in ((each[1], each[2]), (each[2], each[1])):
            if left[0] == "col" and right[0] in ("lit", "param", "cast") and right[1] is not None:
                fixed.setdefault(left[1], (tuple(right), each))
    found = []
    for name in key_names(index, relation):
        value = fixed.get(place[name]) if name in place else None
        if value is None or not same_family(parse_type(value[0][2]), types[name]):
            break
        found.append(value)
    return found


def same_family(left: SqlType, right: SqlType) -> bool:
    """Whether values of ``left`` are a key's as they are, in a column of type ``right``."""
    if is_number(left) and is_number(right):
        return is_float(left) == is_float(right)
    return left.name == right.name


def _all_of(conjuncts: list[Form]) -> Form | None:
    """The condition that they are together."""
    return ["and", *conjuncts] if len(conjuncts) > 1 else conjuncts[0] if conjuncts else None


def conjuncts_of(condition: Form | None) -> list[Form]:
    """What is true where ``condition`` is."""
    if condition is None:
        return []
    return list(condition[1:]) if condition[0] == "and" else [condition]
