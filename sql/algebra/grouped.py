"""What scalars of rows are of the groups of those rows, and beside windows over them.  Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from plan import relations as r
from plan import scalars as s
from plan.columns import moved
from plan.nodes import Node, rewritten
from plan.types import NOTHING
from sql.algebra.scope import NotGrouped


def folds(scalar: s.Scalar) -> bool:
    """Whether an aggregate stands in ``scalar``: not below a window, nor in a subquery."""
    stack: list[Node] = [scalar]
    while stack:
        node = stack.pop()
        if isinstance(node, s.Aggregate):
            return True
        if isinstance(node, s.WindowCall):
            stack += [*node.function.parts(), *node.partition, *node.order]
        elif not isinstance(node, r.Relation):
            stack += node.parts()
    return False


def grouped(
    relation: r.Relation,
    keys: tuple[s.Scalar, ...],
    sets: tuple[tuple[int, ...], ...] | None,
    kept: Sequence[s.Scalar],
    named: Mapping[int, int],
) -> tuple[r.Relation, list[s.Scalar]]:
    """The groups of ``relation``, and ``kept`` as what is made of them: those of ``named`` are a key."""
    groups = _Groups(keys, sets is not None)
    made = [groups.key(named[at]) if at in named else groups.of(each) for at, each in enumerate(kept)]
    return r.Reduce(relation, keys, tuple(groups.aggregates), sets), made


class _Groups:
    """What scalars of rows are of their groups: keys, and aggregates, which are found."""

    def __init__(self, keys: tuple[s.Scalar, ...], several: bool) -> None:
        self._keys = keys
        self._several = several
        """Whether keys are NULL in groups of another choice of keys."""
        self._kinds = {type(key) for key in keys}
        self._by_depth: dict[int, dict[Node, int]] = {}
        self.aggregates: dict[s.Aggregate, int] = {}

    def of(self, node: Node, depth: int = 0) -> Node:
        """``node``, whose row is ``depth`` levels out."""
        place = self._place(node, depth) if type(node) in self._kinds else None
        if place is not None:
            return self.key(place, depth)
        if isinstance(node, s.Aggregate) and depth == 0:
            place = self.aggregates.setdefault(node, len(self.aggregates))
            return s.Column(node.type, node.nullable, len(self._keys) + place)
        if isinstance(node, s.Column) and node.level == depth:
            raise NotGrouped(node.position)
        if isinstance(node, s.WindowCall) and depth == 0:
            function = node.function.with_parts(self.of)
            others = s.WindowCall(node.type, node.nullable, _NO_FUNCTION, *_rest(node)).with_parts(self.of)
            return s.WindowCall(node.type, node.nullable, function, *_rest(others))
        if isinstance(node, r.Join) and node.lateral:
            return node.with_parts(lambda part: self.of(part, depth + (part is node.right)))
        enters = isinstance(node, s.Scalar)
        return node.with_parts(lambda part: self.of(part, depth + (enters and isinstance(part, r.Relation))))

    def key(self, place: int, depth: int = 0) -> s.Column:
        key = self._keys[place]
        return s.Column(key.type, key.nullable or self._several, place, depth)

    def _place(self, node: Node, depth: int) -> int | None:
        if depth not in self._by_depth:
            self._by_depth[depth] = {moved(key, depth): place for place, key in enumerate(self._keys)}
        return self._by_depth[depth].get(node)


_NO_FUNCTION = s.Literal(NOTHING, True, None)


def _rest(call: s.WindowCall) -> tuple:
    return call.partition, call.order, call.frame


def without_windows(relation: r.Relation, kept: Sequence[s.Scalar]) -> tuple[r.Relation, list[s.Scalar]]:
    """``kept`` without window functions, which the relation works out."""
    calls: dict[s.WindowCall, int] = {}
    width = len(relation.columns)

    def out(node: Node) -> Node | None:
        if isinstance(node, s.WindowCall):
            place = calls.setdefault(node, len(calls))
            return s.Column(node.type, node.nullable, width + place)
        return node if isinstance(node, r.Relation) else None

    made = [rewritten(each, out) for each in kept]
    return (r.Window(relation, tuple(calls)) if calls else relation), made
