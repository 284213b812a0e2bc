"""How a query's rows change when its inputs do, where that is one sum of small queries: each a plan again.  Pure.

A relation is *linear* if it is made of projections, filters, joins and UNION ALL over relations that are read, and rows
that are written out.  With every row carrying how often it is there, its *diff*, the change of ``R1 ⋈ … ⋈ Rn`` between
two timestamps is the sum over i of ``R1(old) … Ri-1(old) ⋈ ΔRi ⋈ Ri+1(new) … Rn(new)``, diffs multiplied: one
:class:`Summand` for each place where a relation is read.  A self-join has two.

An outer join by equalities is such a sum too.  With ``D`` the different keys of ``R``, and rows without a partner
filled up with NULLs, ``L ⟕ R`` is ``L ⋈ R`` and ``L`` without what ``L ⋈ D`` has: the last with diffs of the other
sign.

Promises: what :func:`linear` accepts changes by the rows of its summands, put together; ``full`` gives all of its rows.
Both read relations by :func:`versioned` names, whose last column is the diff, and so is theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field

from plan import relations as r
from plan import scalars as s
from plan.calls import call, is_definite
from plan.columns import own_columns, placed
from plan.equal import conjunction, conjuncts, met
from plan.nodes import Node, walk
from plan.types import INT8

DELTA, OLD, NEW = "delta", "old", "new"

SUMMANDS_MAX = 32
"""More places than this where relations are read make the summands more than working out the whole is: each costs 0.2
ms and more where what it reads has changed."""

Key = tuple[str, str]
"""A relation's id, and which version of it."""

Leaf = Callable[[r.Relation], r.Get | None]
"""What is read in the place of a relation whose change somebody else gives; ``None`` where nobody does."""


class NotLinear(Exception):
    """The query's change is no such sum; the message is why."""


@dataclass(frozen=True)
class Summand:
    """One summand: ``leaf`` is the relation whose delta it reads."""

    leaf: str
    plan: r.Relation


@dataclass(frozen=True)
class Linear:
    """``summands`` of the change, and all rows as they are (:data:`NEW`)."""

    summands: tuple[Summand, ...]
    full: r.Relation

    @property
    def kinds(self) -> tuple[r.Kind, ...]:
        """Of its columns, without the diff behind them."""
        return self.full.columns[:-1]


def linear(relation: r.Relation, diff: str, leaf: Leaf = lambda node: None) -> Linear:
    """``diff`` is what the column of diffs is called in the relations that are read.  What reads no relation has
    no summands.  Raises :class:`NotLinear`."""
    made = _Carrying(diff, leaf)
    summands = tuple(Summand(read, plan) for read, plan in made.summands(relation))
    if len(summands) > SUMMANDS_MAX:
        raise NotLinear(f"collections occur in {len(summands)} places, more than {SUMMANDS_MAX}")
    return Linear(summands, made.all_of(relation, NEW))


def key_of(get: r.Get) -> Key:
    """Which version of which relation a versioned ``get`` reads."""
    item_id, _, version = get.item_id.rpartition(" ")
    return item_id, version


def reads(plan: r.Relation) -> dict[str, Key]:
    """What a summand reads, by the names that it has there."""
    return {node.item_id: key_of(node) for node in walk(plan) if isinstance(node, r.Get)}


def check_scalar(scalar: Node) -> None:
    """Raises :class:`NotLinear` where a scalar is not of its own row alone, or not the same every time."""
    for node in walk(scalar):
        if isinstance(node, r.Relation):
            raise NotLinear("a subquery in an expression")
        if isinstance(node, s.Call) and not is_definite(node):
            raise NotLinear(f"{node.name}() is not the same every time")


def names_in(relation: r.Relation) -> Collection[str]:
    """What the columns of all that ``relation`` reads are called."""
    return {name for node in walk(relation) if isinstance(node, r.Get) for name in node.names}


_WHY: dict[type[r.Relation], str] = {
    r.Window: "a window function",
    r.TableFunction: "a function that gives several rows",
    r.Let: "WITH that is read more than once, or by itself",
    r.Named: "WITH that is read more than once, or by itself",
}


def _refusal(node: r.Relation) -> str:
    if isinstance(node, r.TopK):
        limited = node.limit is not None or node.offset is not None
        return "LIMIT" if limited else "ORDER BY below another operator"
    if isinstance(node, r.SetOp):
        return f"{node.kind.upper()}{' ALL' if node.all else ''}"
    if isinstance(node, r.Join):
        return "LATERAL" if node.lateral else f"{node.kind.upper()} JOIN"
    return _WHY.get(type(node), type(node).__name__)


@dataclass(frozen=True)
class _Carrying:
    """Relations whose last column is the diff; ``diff`` is its name in those that are read."""

    diff: str
    leaf: Leaf
    _summands: dict[r.Relation, list[tuple[str, r.Relation]]] = field(default_factory=dict)
    _whole: dict[tuple[r.Relation, str], r.Relation] = field(default_factory=dict)

    def versioned(self, get: r.Get, version: str) -> r.Get:
        kinds = (*get.kinds, r.Kind(INT8, False))
        return r.Get(f"{get.item_id} {version}", (*get.names, self.diff), kinds)

    def all_of(self, node: r.Relation, version: str) -> r.Relation:
        """The rows of ``node`` over that version of all that it reads; only of what has summands."""
        if (node, version) not in self._whole:
            self._whole[node, version] = self._ofconjunction(node, version)
        return self._whole[node, version]

    def _ofconjunction(self, node: r.Relation, version: str) -> r.Relation:
        read = node if isinstance(node, r.Get) else self.leaf(node)
        if read is not None:
            return self.versioned(read, version)
        if isinstance(node, r.Constant):
            one = s.Literal(INT8, False, "1")
            return r.Constant(tuple((*row, one) for row in node.rows))
        if isinstance(node, r.Project):
            return self._project(node, self.all_of(node.input, version))
        if isinstance(node, r.Filter):
            return r.Filter(self.all_of(node.input, version), node.condition)
        if isinstance(node, r.SetOp):
            left, right = (_of_kinds(self.all_of(side, version), node) for side in (node.left, node.right))
            return r.SetOp(node.kind, node.all, left, right)
        assert isinstance(node, r.Join), node
        if node.kind in ("inner", "cross"):
            return self._join(node, self.all_of(node.left, version), self.all_of(node.right, version))
        return _together([sign(self.all_of(part, version)) for part, sign in _parts(node)])

    def summands(self, node: r.Relation) -> list[tuple[str, r.Relation]]:
        """By the relation whose delta it reads, each summand of the change of ``node``: the same objects each time."""
        if node not in self._summands:
            self._summands[node] = self._found(node)
        return list(self._summands[node])

    def _found(self, node: r.Relation) -> list[tuple[str, r.Relation]]:
        read = node if isinstance(node, r.Get) else self.leaf(node)
        if read is not None:
            return [(read.item_id, self.versioned(read, DELTA))]
        if isinstance(node, r.Constant):
            for row in node.rows:
                for value in row:
                    check_scalar(value)
            return []
        if isinstance(node, r.Project):
            for each in node.outputs:
                check_scalar(each)
            return [(leaf, self._project(node, summand)) for leaf, summand in self.summands(node.input)]
        if isinstance(node, r.Filter):
            check_scalar(node.condition)
            return [(leaf, r.Filter(summand, node.condition)) for leaf, summand in self.summands(node.input)]
        if isinstance(node, r.SetOp) and node.kind == "union" and node.all:
            found = [*self.summands(node.left), *self.summands(node.right)]
            return [(leaf, _of_kinds(summand, node)) for leaf, summand in found]
        if not isinstance(node, r.Join) or node.lateral:
            raise NotLinear(_refusal(node))
        if node.condition is not None:
            check_scalar(node.condition)
        if node.kind in ("inner", "cross"):
            lefts, rights = self.summands(node.left), self.summands(node.right)
            found = [(leaf, self._join(node, summand, self.all_of(node.right, NEW))) for leaf, summand in lefts]
            return found + [(leaf, self._join(node, self.all_of(node.left, OLD), summand)) for leaf, summand in rights]
        return self._outer(node)

    def _outer(self, node: r.Join) -> list[tuple[str, r.Relation]]:
        """Of an outer join one for each place where its sides are read, and those of the keys of partners.

        What a side's change gives in several parts is put together: as summands of their own they would be three times
        as many with each outer join above.
        """
        (both, _), *alone = _parts(node)
        found, wide = self.summands(both), len(self.summands(node.left))
        keys = []
        for side in (0, 1) if node.kind == "full" else (0,):
            (rows, as_it_is), (partners, taken_away) = alone[2 * side : 2 * side + 2]
            at = wide if side or node.kind == "right" else 0
            own, less = self.summands(rows), self.summands(partners)
            for place, ((leaf, kept), (_, gone)) in enumerate(zip(own, less, strict=False), at):
                found[place] = leaf, _together([found[place][1], as_it_is(kept), taken_away(gone)])
            keys += [(leaf, taken_away(summand)) for leaf, summand in less[len(own) :]]
        return found + keys

    def _project(self, node: r.Project, below: r.Relation) -> r.Project:
        return r.Project(below, (*node.outputs, below.column(len(below.columns) - 1)))

    def _join(self, node: r.Join, left: r.Relation, right: r.Relation) -> r.Relation:
        wide, all_ = len(left.columns) - 1, len(left.columns) + len(right.columns)
        condition = node.condition and placed(node.condition, lambda place: place + (place >= wide))
        joined = r.Join(node.kind, left, right, condition)
        product = call("*", joined.column(wide), joined.column(all_ - 1))
        places = (*range(wide), *range(wide + 1, all_ - 1))
        return r.Project(joined, (*map(joined.column, places), product))


Sign = Callable[[r.Relation], r.Relation]


def _as_it_is(carried: r.Relation) -> r.Relation:
    return carried


def _taken_away(carried: r.Relation) -> r.Relation:
    """Rows with diffs of the other sign."""
    *columns, diff = (carried.column(place) for place in range(len(carried.columns)))
    return r.Project(carried, (*columns, call("neg", diff)))


def _together(parts: list[r.Relation]) -> r.Relation:
    found = parts[0]
    for part in parts[1:]:
        found = r.SetOp("union", True, found, part)
    return found


def _of_kinds(side: r.Relation, node: r.SetOp) -> r.Relation:
    """A branch of ``node`` with its diffs, in the types of the whole."""
    wanted = [kind.type for kind in node.columns]
    if [kind.type for kind in side.columns[:-1]] == wanted:
        return side
    *columns, diff = (side.column(place) for place in range(len(side.columns)))
    return r.Project(side, (*s.as_types(columns, wanted), diff))


# -- outer joins ------------------------------------------------------------------------------------------------------


def _parts(node: r.Join) -> list[tuple[r.Relation, Sign]]:
    """The outer join ``node`` as relations that are put together, or taken away."""
    on = _On.of(node)
    found: list[tuple[r.Relation, Sign]] = [(r.Join("inner", node.left, node.right, node.condition), _as_it_is)]
    if node.kind in ("left", "full"):
        found += _alone(node, node.left, node.right, on.left, on.right, on.left_only, on.right_only, 0)
    if node.kind in ("right", "full"):
        behind = len(node.left.columns)
        found += _alone(node, node.right, node.left, on.right, on.left, on.right_only, on.left_only, behind)
    return found


def _alone(
    node: r.Join, side: r.Relation, other: r.Relation, mine: list[s.Scalar], theirs: list[s.Scalar],
    only_mine: list[s.Scalar], only_theirs: list[s.Scalar], at: int,
) -> Iterator[tuple[r.Relation, Sign]]:  # fmt: skip
    """The rows of ``side`` without a partner, filled up with NULLs; ``at`` is where its columns are among all."""
    width = len(side.columns)

    def filled(relation: r.Relation) -> r.Project:
        before = [s.Literal(kind.type, True, None) for kind in node.columns[:at]]
        behind = [s.Literal(kind.type, True, None) for kind in node.columns[at + width :]]
        return r.Project(relation, (*before, *map(relation.column, range(width)), *behind))

    yield filled(side), _as_it_is
    partners = r.Distinct(r.Project(r.Filter(other, conjunction(only_theirs)) if only_theirs else other, tuple(theirs)))
    equal = [
        call("=", one, s.Column(kind.type, kind.nullable, width + place))
        for place, (one, kind) in enumerate(zip(mine, partners.columns, strict=True))
    ]
    yield filled(r.Join("inner", side, partners, conjunction([*equal, *only_mine]))), _taken_away


@dataclass(frozen=True)
class _On:
    """What an outer join's condition says, each scalar of its own side's row."""

    left: list[s.Scalar]
    right: list[s.Scalar]
    """Equal, pair by pair."""
    left_only: list[s.Scalar]
    right_only: list[s.Scalar]

    @staticmethod
    def of(node: r.Join) -> _On:
        """Raises :class:`NotLinear` where it says something else of both sides together."""
        wide = len(node.left.columns)
        made = _On([], [], [], [])
        for part in conjuncts(node.condition) if node.condition is not None else ():
            sides = [{place >= wide for place in own_columns(each)} for each in part.parts()]
            if isinstance(part, s.Call) and part.name == "=" and sorted(map(tuple, sides)) == [(False,), (True,)]:
                one, other = part.arguments if sides[0] == {False} else part.arguments[::-1]
                left, right = met(one, _from(other, wide))
                made.left.append(left)
                made.right.append(right)
                continue
            all_sides = {place >= wide for place in own_columns(part)}
            if len(all_sides) > 1:
                break
            (made.right_only if all_sides == {True} else made.left_only).append(
                _from(part, wide) if all_sides == {True} else part
            )
        else:
            if made.left:
                return made
        raise NotLinear(f"{node.kind.upper()} JOIN by more than equal columns")


def _from(scalar: s.Scalar, place: int) -> s.Scalar:
    """``scalar`` of the right side's row alone, which begins at ``place`` of both."""
    return placed(scalar, lambda at: at - place)
